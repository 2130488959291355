"""The rounds of the variant with groups: what each person is asked once, counted, and fitted.

Half of the people answer about one column; what they say decides how the other half is asked
about pairs of columns. All functions take public values: the server sees answers only.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import combinations
from math import sqrt
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sfumato import check
from sfumato.collection.device import by_part
from sfumato.collection.messages import Answer
from sfumato.collection.plans import (
    PROTOCOLS,
    Agreement,
    AnswerRows,
    PlanPart,
    RoundPlan,
    mechanism_of,
)
from sfumato.errors import InputError
from sfumato.mechanisms.local.mechanism import FrequencyMechanism
from sfumato.models.binning import Bins, bins_by_mass, ordered_codes
from sfumato.models.grouped import GroupedFit, fit_grouped
from sfumato.models.pairs import NoisyTable, PairAnswers, possible_tables
from sfumato.models.structure import PairPlan, column_shares, plan_pairs
from sfumato.privacy.protection import OneRow
from sfumato.randomness import Rng
from sfumato.release import TableRelease, draw_table
from sfumato.schema.table import Marginal

Collected = AnswerRows | Answer | Mapping[str, Any] | None
"""What may be counted: many answers, one, its message, or None from who had nothing to answer."""

_UNIT: Final = 2**32
"""Shares become whole-number weights out of this."""


@dataclass(frozen=True, kw_only=True, eq=False)
class RoundTally:
    """The counted answers to a plan: an array for each part."""

    plan: RoundPlan
    counts: tuple[NDArray[np.int64], ...]
    answers: NDArray[np.int64]
    """The number of people who answered about each part."""
    simulated: bool

    @property
    def people(self) -> int:
        """Everybody who answered."""
        return int(self.answers.sum())

    def of(self, columns: Marginal) -> tuple[NDArray[np.int64], int] | None:
        """Counts and people of the part about these columns, if it was asked about."""
        for part, counts, people in zip(self.plan.parts, self.counts, self.answers, strict=True):
            if part.columns == columns:
                return counts, int(people)
        return None


@dataclass(frozen=True, kw_only=True, eq=False)
class SecondRound:
    """The plan of the second round and why: bins of every column, the predicted error."""

    plan: RoundPlan
    bins: Mapping[str, Bins]
    choice: PairPlan


def first_plan(agreed: Agreement) -> RoundPlan:
    """Everybody of the first round is asked about one column, larger ones more often."""
    return _plan(agreed, 1, _column_parts(agreed))


def second_plan(agreed: Agreement, heard: RoundTally) -> SecondRound:
    """How the second round is asked, from what was heard in the first: post-processing.

    As many people are expected to answer as in the first round: a coin divides them.
    """
    if heard.people == 0:
        raise InputError("nobody answered in the first round: there is nothing to plan with.")
    known = possible_tables(agreed.schema, column_tables(agreed, [heard]))
    choice = plan_pairs(
        known,
        answered=heard.people,
        left=heard.people,
        noise=lambda cells: cell_noise(mechanism_of("grr", cells, agreed.epsilon)),
    )
    bins = {
        column.name: bins_by_mass(
            known[column.name].frequencies, most=choice.most_bins, ordered=ordered_codes(column)
        )
        for column in agreed.schema
    }
    pairs = [_pair_part(edge, bins) for edge in combinations(agreed.asked, 2)]
    shares = [(part, choice.share / len(pairs)) for part in pairs if choice.share > 0]
    if choice.share < 1:
        shares += [(part, share * (1 - choice.share)) for part, share in _column_parts(agreed)]
    return SecondRound(plan=_plan(agreed, 2, shares), bins=bins, choice=choice)


def count(
    plan: RoundPlan, agreed: Agreement, answers: Collected | Iterable[Collected]
) -> RoundTally:
    """Check and count answers to a plan; one that does not fit refuses all of them."""
    mechanisms = [part.mechanism(agreed.schema, plan.epsilon) for part in plan.parts]
    counts = tuple(np.zeros(mechanism.cells, dtype=np.int64) for mechanism in mechanisms)
    people = np.zeros(len(plan.parts), dtype=np.int64)
    simulated = False
    for rows in _gathered(answers, plan):
        simulated |= rows.simulated
        for place, mine in by_part(rows.part, len(plan.parts)):
            mechanism = mechanisms[place]
            mechanism.add(mechanism.layout.checked_many(rows.answer[mine]), counts[place])
            people[place] += mine.size
    return RoundTally(plan=plan, counts=counts, answers=people, simulated=simulated)


def column_tables(agreed: Agreement, rounds: Iterable[RoundTally]) -> dict[str, NoisyTable]:
    """The debiased one-way tables from all answers about one column; without any, none."""
    rounds, found = list(rounds), {}
    for name in agreed.asked:
        heard = [own for own in (each.of((name,)) for each in rounds) if own is not None]
        people = sum(own[1] for own in heard)
        if people == 0:
            continue
        mechanism = best_protocol(agreed.schema[name].size, agreed.epsilon)[1]
        supports = mechanism.supports(np.sum([own[0] for own in heard], axis=0))
        p, q = float(mechanism.p), float(mechanism.q)
        found[name] = NoisyTable(
            frequencies=(supports / people - q) / (p - q),
            variance=cell_noise(mechanism) / people,
        )
    return found


def pair_answers(agreed: Agreement, heard: RoundTally) -> list[PairAnswers]:
    """The counted answers about pairs of columns."""
    found = []
    for part, counts in zip(heard.plan.parts, heard.counts, strict=True):
        if len(part.columns) == 2:
            one, other = part.columns
            mechanism = part.mechanism(agreed.schema, agreed.epsilon)
            table = counts.reshape(part.shape(agreed.schema))
            p, q = float(mechanism.p), float(mechanism.q)
            found.append(PairAnswers(columns=(one, other), counts=table, p=p, q=q))
    return found


def release(
    agreed: Agreement, asked: SecondRound, first: RoundTally, second: RoundTally, *, rng: Rng
) -> TableRelease:
    """Fit and draw: a row for each person who answered, a number that is public."""
    people = first.people + second.people
    one_ways = column_tables(agreed, [first, second])
    pairs = pair_answers(agreed, second)
    fit = fit_grouped(
        agreed.schema,
        total=float(people),
        one_ways=one_ways,
        answers=pairs,
        bins=asked.bins,
        rng=rng,
    )
    tables: dict[Marginal, NoisyTable] = {(name,): table for name, table in one_ways.items()}
    tables |= {each.columns: each.table() for each in pairs if each.counts.any()}
    return TableRelease(
        dataset=agreed.schema.dataset or f"survey {agreed.id}",
        guarantee=agreed.guarantee,
        protect=OneRow(neighbors="replace"),
        private=not (first.simulated or second.simulated),
        method=_method(agreed, asked, fit, first.people, second.people),
        schema=agreed.schema,
        model=fit.model,
        measurements=tuple(
            {"target": list(columns), "sigma_counts": people * sqrt(table.variance)}
            for columns, table in tables.items()
        ),
        data=draw_table(fit.model, n_rows=people, rng=rng),
        ledger={"head": {"seq": 0, "hash": agreed.id}, "entries": []},  # devices keep their own
    )


def cell_noise(mechanism: FrequencyMechanism) -> float:
    """The variance of an average cell times the number of answers: of noise and of sampling.

    v(m, k) = m.variance(1/k) + (1 - 1/k)/k for k categories.
    """
    share = 1 / mechanism.categories
    return mechanism.variance(share) + share * (1 - share)


@lru_cache(maxsize=4_096)
def best_protocol(categories: int, epsilon: Fraction) -> tuple[str, FrequencyMechanism]:
    """Of the protocols with integer answers the one of least noise, the simplest of equals."""
    made = {name: mechanism_of(name, categories, epsilon) for name in PROTOCOLS}
    best = min(made, key=lambda name: cell_noise(made[name]))
    return best, made[best]


def _column_parts(agreed: Agreement) -> list[tuple[PlanPart, float]]:
    sizes = {name: agreed.schema[name].size for name in agreed.asked}
    shares = column_shares(
        sizes, noise=lambda codes: cell_noise(best_protocol(codes, agreed.epsilon)[1])
    )
    parts = [
        PlanPart(columns=(name,), bins=(None,), protocol=best_protocol(size, agreed.epsilon)[0])
        for name, size in sizes.items()
    ]
    return list(zip(parts, shares.values(), strict=True))


def _pair_part(edge: tuple[str, str], bins: Mapping[str, Bins]) -> PlanPart:
    cuts = [bins[name] for name in edge]
    asked = (None if cut.count == cut.codes else tuple(cut.of.tolist()) for cut in cuts)
    return PlanPart(columns=edge, bins=tuple(asked))


def _plan(agreed: Agreement, number: int, shares: list[tuple[PlanPart, float]]) -> RoundPlan:
    return RoundPlan(
        survey=agreed.id,
        round=number,
        epsilon=agreed.epsilon,
        parts=tuple(part for part, _ in shares),
        weights=tuple(max(1, round(share * _UNIT)) for _, share in shares),
    )


def _method(
    agreed: Agreement, asked: SecondRound, fit: GroupedFit, first: int, second: int
) -> dict[str, Any]:
    """What a release says of how it was made: public numbers only."""
    return {
        "name": "two-round",
        "variant": agreed.variant,
        "survey": agreed.id,
        "answers": [first, second],
        "asked_about_pairs": asked.choice.share,
        "most_bins": asked.choice.most_bins,
        "predicted": asked.choice.predicted,
        "structure": fit.kind,
        "worth": dict(fit.worth),
    }


def _gathered(answers: Collected | Iterable[Collected], plan: RoundPlan) -> Iterable[AnswerRows]:
    """Checked answers as rows: those of one person each put together at the end."""
    if answers is None or isinstance(answers, AnswerRows | Answer | Mapping):
        answers = [answers]
    if not isinstance(answers, Iterable) or isinstance(answers, str | bytes):
        raise InputError(
            f"answers are rows, answers or their messages; got {type(answers).__name__}. "
            "None was counted."
        )
    parts, values, simulated = [], [], False
    for each in answers:
        if each is None:
            continue
        if isinstance(each, AnswerRows):
            yield _checked(each, plan)
            continue
        answer = each if isinstance(each, Answer) else Answer.from_dict(each)
        place, value = _read(answer, plan)
        parts.append(place)
        values.append(value)
        simulated |= answer.simulated
    yield AnswerRows(
        question=plan.id,
        part=np.array(parts, dtype=np.int64),
        answer=np.array(values, dtype=np.uint64),
        simulated=simulated,
    )


def _read(answer: Answer, plan: RoundPlan) -> tuple[int, int]:
    _same_plan(answer.question, plan)
    value = answer.value
    if not isinstance(value, list | tuple) or len(value) != 2:
        raise InputError("an answer is a part and what is answered about it. None was counted.")
    place = check.whole(at_least=0, at_most=len(plan.parts) - 1, part=value[0])
    return place, check.whole(at_least=0, at_most=2**63 - 1, answer=value[1])


def _checked(rows: AnswerRows, plan: RoundPlan) -> AnswerRows:
    _same_plan(rows.question, plan)
    part, answer = np.asarray(rows.part), np.asarray(rows.answer)
    whole_numbers = part.dtype.kind in "iu" and answer.dtype.kind in "iu"
    if part.ndim != 1 or part.shape != answer.shape or not whole_numbers:
        raise InputError("rows are two arrays of whole numbers, of one length. None was counted.")
    if part.size and (part.min() < 0 or part.max() >= len(plan.parts)):
        raise InputError(
            f"parts are from 0 to {len(plan.parts) - 1}; some are not. None was counted."
        )
    return rows


def _same_plan(question: str, plan: RoundPlan) -> None:
    if question != plan.id:
        raise InputError(
            f"this is an answer to another plan ({question[:40]!r}, not {plan.id!r}): another "
            "round or survey. None was counted."
        )
