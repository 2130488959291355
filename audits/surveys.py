"""Questions and surveys, end to end: records in, whole messages out, as a server gets them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, partial
from typing import Any, Final, Protocol

import numpy as np

from audits.end_to_end import EndToEnd, Tell, promised_within
from audits.facts import Facts, facts_of, flattened
from sfumato.auditing.case import Case
from sfumato.gate import Curator
from sfumato.privacy.guarantees import LocalDP, PureDP
from sfumato.privacy.sensitivity import OneRow
from sfumato.randomness import Rng
from sfumato.readers.array_table import ArrayTable
from sfumato.schema import Boolean, Category, Number, Schema
from sfumato.survey.device.device import Client
from sfumato.survey.dp2pub.two_round import TwoRound
from sfumato.survey.estimate.moments import VarianceQuestion
from sfumato.survey.estimate.pairs import PairsQuestion
from sfumato.survey.estimate.question import Question
from sfumato.survey.estimate.records import RecordQuestion
from sfumato.survey.estimate.simulation import simulate
from sfumato.survey.protocol.messages import Answer

ONE: Final = Fraction(1)
TIMES: Final = 4
_FRESH: Final = 8
_RAISED: Final = Fraction(8)
_VALUES: Final = ("0", "1", "2")
_SCHEMA: Final = Schema(columns=(Boolean(name="a"), Boolean(name="b")), dataset="audit")
_RECORDS: Final = tuple({"a": a, "b": b} for a in (False, True) for b in (False, True))
_OTHERS: Final = (_RECORDS[0], _RECORDS[3], _RECORDS[3], _RECORDS[0])
_RUNS: Final = 20_000
_BUG_RUNS: Final = 500


class _Asked(Protocol):
    """A question, as a device has it."""

    @property
    def guarantee(self) -> LocalDP: ...
    def answer(self, value: Any, /, *, rng: Rng) -> Answer: ...


def _categories(epsilon: Fraction, values: tuple[str, ...] = _VALUES) -> Question:
    return Question(column=Category(name="a", values=values), epsilon=epsilon)


def _pairs(epsilon: Fraction) -> PairsQuestion:
    return PairsQuestion(keys=("x", "y"), epsilon=epsilon)


def _record(epsilon: Fraction) -> RecordQuestion:
    return RecordQuestion(schema=_SCHEMA, epsilon=epsilon)


def _variance(epsilon: Fraction) -> VarianceQuestion:
    return VarianceQuestion(column=Number(name="a", edges=(0.0, 1.0)), epsilon=epsilon)


def _asked(
    name: str, ask: Callable[[Fraction], _Asked], inputs: tuple[Any, ...], note: str
) -> Case:
    """A question, as a device answers it."""

    def telling(epsilon: Fraction, times: int = 1) -> Tell:
        question = ask(epsilon)
        return lambda value, rng: dict(
            flattened("answer", [question.answer(value, rng=rng).to_dict() for _ in range(times)])
        )

    whole = EndToEnd(
        name=name,
        claimed=LocalDP(ONE),
        inputs=inputs,
        tell=telling(ONE),
        runs=_RUNS,
        bug_runs=_BUG_RUNS,
        replays=True,
        note=f"whole messages, {note}",
    )
    return whole.case(
        {
            f"the budget used {TIMES} times": telling(TIMES * ONE),
            f"a fresh answer each time, asked {_FRESH} times": telling(ONE, _FRESH),
        },
        checks=(promised_within(whole.claimed, lambda: ask(ONE).guarantee),),
        checked={
            "the budget used twice, as told": promised_within(
                whole.claimed, lambda: ask(2 * ONE).guarantee
            )
        },
    )


def _simulated(name: str) -> Case:
    """``sfumato answers simulate``: rows of a table answer through the gate."""

    def telling(epsilon: Fraction, values: Callable[[tuple[str, ...]], tuple[str, ...]]) -> Tell:
        asked = cache(partial(_categories, epsilon))

        def tell(value: str, rng: Rng) -> Facts:
            rows = (value, "0", "2")
            own = values(rows)
            question = asked(own)
            schema = Schema(columns=(question.column,), dataset="audit")
            table = ArrayTable(schema, {"a": np.array([own.index(row) for row in rows])})
            protect = OneRow(neighbors="replace")
            curator = Curator(table, protect=protect, budget=PureDP(epsilon), rng=rng)
            batches = [batch.values.tolist() for batch in simulate(question, curator)]
            return dict(flattened("answers", [question.id, *batches]))

        return tell

    whole = EndToEnd(
        name=name,
        claimed=PureDP(ONE),
        inputs=_VALUES,
        tell=telling(ONE, lambda rows: _VALUES),
        runs=4_000,
        replays=True,
        note="all answers of 3 rows of 3 categories, a row replaced",
    )
    return whole.case(
        {
            f"the budget used {TIMES} times": telling(TIMES * ONE, lambda rows: _VALUES),
            "a domain taken from the rows": telling(ONE, lambda rows: tuple(sorted(set(rows)))),
        }
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class _Survey:
    """Two rounds among five people, of whom one is in question."""

    variant: str
    epsilon: Fraction = ONE
    """What devices answer with."""

    def tell(self, record: Mapping[str, bool], rng: Rng) -> Facts:
        """Every message of every round, and the release."""
        survey = TwoRound(_SCHEMA, self.epsilon, variant=self.variant)
        agreed = survey.manifest
        people = [Client(one, agreed=agreed, rng=rng) for one in (record, *_OTHERS)]
        first = [person.answer(survey.first_round()) for person in people]
        message = survey.second_round(first)
        second = [person.answer(message) for person in people]
        facts = dict(facts_of(survey.publish(second, rng=rng)))
        facts |= flattened("second plan", message)
        for name, answers in {"first": first, "second": second}.items():
            facts |= flattened(name, [answer and answer.to_dict() for answer in answers])
        return facts

    def case(self, name: str) -> Case:
        """With its bug."""
        whole = EndToEnd(
            name=name,
            claimed=LocalDP(ONE),
            inputs=_RECORDS,
            tell=self.tell,
            runs=600,
            note="all messages of 5 people and the release, a record replaced",
        )
        broken = replace(self, epsilon=_RAISED)
        return whole.case(
            {f"devices that take {_RAISED} times the epsilon": broken.tell},
            checks=(promised_within(whole.claimed, self.agreed),),
            checked={"twice the epsilon, as agreed": promised_within(whole.claimed, broken.agreed)},
        )

    def agreed(self) -> LocalDP:
        """What the manifest promises to every participant."""
        return LocalDP(TwoRound(_SCHEMA, self.epsilon, variant=self.variant).manifest["epsilon"])


_HELD: Final[tuple[dict[str, float], ...]] = ({}, {"x": 1.0}, {"x": -1.0}, {"x": 1.0, "y": 1.0})


def _case(name: str, larger: Fraction) -> Case:
    return _MADE[name](name)


_MADE: Final[Mapping[str, Callable[[str], Case]]] = {
    "AskQuestion": lambda name: _asked(name, _categories, _VALUES, "3 categories"),
    "AskPairs": lambda name: _asked(name, _pairs, _HELD, "2 keys"),
    "AskRecord": lambda name: _asked(name, _record, _RECORDS, "2 columns of 2 values"),
    "AskVariance": lambda name: _asked(name, _variance, (0.0, 0.5, 1.0), "a number or its square"),
    "AnswersSimulate": _simulated,
    "SurveyGrouped": _Survey(variant="grouped").case,
    "SurveyFaithful": _Survey(variant="faithful").case,
}

CASES: Final = {name: partial(_case, name) for name in _MADE}
"""As ``registry.WHOLE_RUNS`` takes them."""
