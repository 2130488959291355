"""Nothing that draws for privacy goes without an audit: a new mechanism, verb or method fails here.

Everything is found by looking at the code, and each thing is either a case or named here with the
case that audits it, or with the reason why there is nothing to audit. Mechanisms and verbs are
audited by ``sfumato audit``, wherever it is installed; whole runs by ``make audit``.
"""

import importlib
import inspect
import pkgutil

import pytest

import sfumato
from audits.registry import EVERY_CASE
from sfumato import local, noise, survey
from sfumato.auditing import CASES
from sfumato.auditing import cases as audited_cases
from sfumato.auditing.cases import case, known, persons
from sfumato.commands.dp2pub_publication import TRUSTS
from sfumato.errors import InputError
from sfumato.gate import Curator, scores
from sfumato.gate.row_answers import Interview
from sfumato.gate.scout import Scout
from sfumato.publishing.methods import METHODS, RECOMMENDERS
from sfumato.survey.protocol.rounds import TWO_ROUNDS

AS_PART_OF = {
    "BitWeights": "BitResponse",
    "ClampedNoise": "LocalLaplace",
    "LinearWeights": "Duchi",
    "MixedWeights": "Hybrid",
    "ResponseWeights": "Grr",
    "Thresholding": "GateTexts",
    "ValueBit": "PrivKvm",  # its later rounds
    "WindowWeights": "Piecewise",
}
"""What a mechanism is made of, and the mechanism."""


def classes_in(package):
    """All public classes that the modules of a package define."""
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        found = importlib.import_module(module.name)
        for name, kind in inspect.getmembers(found, inspect.isclass):
            if kind.__module__ == module.name and not name.startswith("_"):
                yield name, kind


def mechanisms():
    """All public classes of what draws noise and of what answers on a device."""
    yield from classes_in(noise)
    yield from classes_in(local)


def draws(kind):
    """Whether a class randomizes: one of its public methods takes a generator."""
    public = inspect.getmembers(kind, lambda one: inspect.isfunction(one) or inspect.ismethod(one))
    return any(
        "rng" in inspect.signature(method).parameters
        for name, method in public
        if not name.startswith("_")
    )


WITHOUT_A_PROMISE = {
    "Bernoulli": "a coin for other code to use",
    "Categorical": "a die for other code to use",
    "Grid": "rounds a number before a mechanism sees it",
}


def test_every_mechanism_that_draws_is_audited():
    found = {
        name
        for name, kind in mechanisms()
        if not inspect.isabstract(kind) and not getattr(kind, "_is_protocol", False) and draws(kind)
    }
    assert {"Grr", "DiscreteLaplace", "PermuteAndFlip", "RsFd", "Memo"} <= found
    expected = {AS_PART_OF.get(name, name) for name in found - set(WITHOUT_A_PROMISE)}
    assert expected <= set(CASES)


VERBS = {
    Curator: {
        "total": "GateTotal",
        "measure": "GateMeasure",
        "binned": "GateBinned",
        "score": "GateScore",
        "select": "GateSelect",
        "perturb": "GatePerturb",
        "perturb_to": "GatePerturb",
        "respond": "GateRespond",
        "interview": "GateInterview",
        "item_sums": "RatingSums",
        "gram": "RatingGram",
        "reserve": "",
        "sigma_of": "",
        "tell": "",
        "pick": "",
    },
    Scout: {
        "texts": "GateTexts",
        "shapes": "GateShapes",
        "rows": "GateScout",
    },
    Interview: {"ask": "GateInterview"},
}
"""The case of every verb of the gates; none for those that look at nothing."""


@pytest.mark.parametrize("gate", VERBS, ids=lambda gate: gate.__name__)
def test_every_verb_of_a_gate_is_audited(gate):
    public = {
        name for name, _ in inspect.getmembers(gate, inspect.isfunction) if not name.startswith("_")
    }
    assert public == set(VERBS[gate])
    assert {name for name in VERBS[gate].values() if name} <= set(CASES)


def test_every_score_is_of_a_selection_that_is_audited():
    """The sensitivities of scores are tested on neighbors in ``test_scores``; selections here."""
    here = {
        name
        for name, kind in inspect.getmembers(scores, inspect.isclass)
        if hasattr(kind, "sensitivity") and not getattr(kind, "_is_protocol", False)
    }
    assert here == {"L1Error", "WeightedL1Error", "MutualInformation"}
    assert {"GateSelect", "GateSelectReplaced", "PublishPrivBayes"} <= set(EVERY_CASE)


def spelled(*words):
    return "".join(words).replace("-", "").lower()


def test_every_method_of_every_command_is_audited_end_to_end():
    every = {name: case(name, cases=EVERY_CASE) for name in EVERY_CASE}
    known = {name.lower() for name, made in every.items() if made.end_to_end}
    methods = {spelled("publish", method) for method in METHODS}
    recommenders = {spelled("recommend", method) for method in RECOMMENDERS}
    trusts = {
        spelled("dp2pub", trust, variant if trust == "nobody" else "")
        for trust, variants in TRUSTS.items()
        for variant in variants
        if trust != "server"  # that is ``publish --method dp2pub``
    }
    surveys = {spelled("survey", variant) for variant in TWO_ROUNDS}
    assert methods | recommenders | trusts | surveys | {"answerssimulate"} <= known
    assert len(trusts) == 3


ASKED = {
    "Question": "AskQuestion",
    "PairsQuestion": "AskPairs",
    "RecordQuestion": "AskRecord",
    "VarianceQuestion": "AskVariance",
}


IN_ROUNDS = {"PartsQuestion": "grouped", "ColumnsQuestion": "faithful"}
"""Questions of a round of a survey of the whole record, and the variant that asks them."""


def test_every_question_that_a_device_answers_is_audited_end_to_end():
    questions = {
        name
        for name, made in classes_in(survey)
        if name.endswith("Question") and not getattr(made, "_is_protocol", False)
    }
    assert questions == {*ASKED, *IN_ROUNDS}
    assert {*IN_ROUNDS.values()} <= {*TWO_ROUNDS}  # audited as whole surveys: see above
    assert all(case(name, cases=EVERY_CASE).end_to_end for name in ASKED.values())


def test_every_case_plants_a_bug_and_claims_something():
    for name in EVERY_CASE:
        made = case(name, cases=EVERY_CASE)
        assert made.planted, name
        assert made.claimed > 0, name


KINDS_OF_BUGS = {
    "a scale a fifth too small", "a predictable generator", "a domain taken from the rows",
    "the number of rows published exactly", "values in the order in which rows have them",
    "the budget used twice, by the file", "the published amplification, sampled",
    "floats: answers that some values can't give", "floats: sums that some counts can't give",
    "the factor 2 for scores that rise and fall left out", "a replaced row taken for an added one",
    "the true value in slot 0", "rows of a person not bounded",
    "a level counted for free", "limits read from the data", "bins chosen from exact counts",
    "levels charged once for all of them",
    "the noise of one row for all rows of a person",
}  # fmt: skip


def test_bugs_of_every_kind_are_planted():
    planted = {bug.bug for name in EVERY_CASE for bug in case(name, cases=EVERY_CASE).planted}
    assert planted >= KINDS_OF_BUGS


def test_rows_of_persons_and_rows_that_spark_counts_are_audited():
    assert {"GatePersons", "GateScout", "GateShapes"} <= set(CASES)
    assert set(CASES) & {"GateSpark"} or "GateSpark" in audited_cases.NOT_RUN


def test_where_spark_is_missing_that_is_said(monkeypatch):
    here = {name: made for name, made in CASES.items() if name != "GateSpark"}
    monkeypatch.setattr(audited_cases, "NOT_RUN", {"GateSpark": persons.NEEDED})
    with pytest.raises(InputError, match=r"needs pyspark and java.*not run"):
        known("GateSpark", here)


def test_every_public_mechanism_of_the_package_was_looked_at():
    """What ``import sfumato`` offers of mechanisms is among the classes that are looked at."""
    offered = [getattr(sfumato, name) for name in sfumato.__all__]
    rooms = ("sfumato.noise.", "sfumato.local.")
    kinds = [
        kind for kind in offered if inspect.isclass(kind) and kind.__module__.startswith(rooms)
    ]
    assert len(kinds) > 30
    assert {kind.__name__ for kind in kinds} <= {name for name, _ in mechanisms()}
