"""The number of rows, and rows that answer one by one, as the gate gives them.

Rows are randomized each for itself, so one table of many equal rows is as many experiments. A row
that is interviewed answers in one of two groups; its output is the group, the question and the
answer.
"""

from collections.abc import Callable
from fractions import Fraction
from typing import Final

import numpy as np

from sfumato.auditing.case import Case, Planted, ratio_of, with_larger
from sfumato.auditing.finding import Ratio
from sfumato.auditing.outputs import Outputs
from sfumato.counting.array_table import ArrayTable
from sfumato.gate import Curator
from sfumato.local.frequency.grr import Grr
from sfumato.local.records.parts import Part
from sfumato.noise import DiscreteLaplace
from sfumato.privacy.guarantees import PureDP
from sfumato.privacy.protection import OneRow
from sfumato.randomness import Rng
from sfumato.schema import Boolean, Schema

ONE: Final = Fraction(1)
CLAIMED: Final = PureDP(ONE)
TOTAL: Final = PureDP(2)
REPLACED: Final = OneRow(neighbors="replace")
ROWS: Final = 8

_SCHEMA: Final = Schema(columns=(Boolean(name="a"), Boolean(name="b")), dataset="audit")
_CELLS: Final = ((0, 0), (0, 1), (1, 0), (1, 1))
_CALLS: Final = 500

Record = tuple[int, int]
Look = Callable[[Curator, Fraction], Outputs]
"""What a gate answers for epsilon: a line for each row, in any order."""


def perturb(larger: Fraction) -> Case:
    """Every row as one answer of a local mechanism."""
    return _answered("GatePerturb", _perturbed, larger, "4 cells of 2 columns, a row replaced")


def respond(larger: Fraction) -> Case:
    """Every row as an answer about each column, half of epsilon for each."""
    note = "an answer about each of 2 columns, a row replaced"
    twice = Planted(
        bug="all of epsilon for each column",
        case=_rows("GateRespond", _responded, 2 * ONE, note),
    )
    return _answered("GateRespond", _responded, larger, note, twice)


def interview(larger: Fraction) -> Case:
    """Rows in two groups, each asked once about a drawn column."""
    note = "2 groups, each asked about one of 2 columns, a row replaced"
    again = Planted(
        bug="both groups are everybody", case=_rows("GateInterview", _asked_in_both, ONE, note)
    )
    return _answered("GateInterview", _interviewed, larger, note, again)


def total(larger: Fraction) -> Case:
    """The number of rows, a row more or less."""

    def make(factor: Fraction) -> Case:
        cost = PureDP(TOTAL.epsilon * factor)
        noise = DiscreteLaplace.for_cost(cost, 1)

        def draw(more: int, n: int, *, rng: Rng) -> Outputs:
            table = ArrayTable(_SCHEMA, dict.fromkeys("ab", np.zeros(ROWS + more, dtype=int)))
            found: list[float] = []
            while len(found) < n:
                calls = min(_CALLS, n - len(found))
                budget = PureDP(cost.epsilon * calls)
                gate = Curator(table, protect=OneRow(), budget=budget, rng=rng)
                gate.reserve(budget, label="all calls")
                found += [float(gate.total(cost=cost).values) for _ in range(calls)]
            return np.array(found).astype(np.int16)

        return Case(
            name="GateTotal",
            guarantee=TOTAL,
            inputs=(0, 1),
            draw=draw,
            ratio=lambda: float(np.exp(float(noise.guarantee(1).epsilon))),
            runs=30_000,
            note="the number of rows, a row more or less",
        )

    exact = Planted(bug="the exact number, as if it were public", case=_exact_total())
    return with_larger(make, larger, exact)


CASES: Final = {
    "GateTotal": total,
    "GatePerturb": perturb,
    "GateRespond": respond,
    "GateInterview": interview,
}
"""As ``cases.CASES`` takes them."""


def _exact_total() -> Case:
    """A gate that is told that one row is replaced, of tables of which one has a row more."""

    def draw(more: int, n: int, *, rng: Rng) -> Outputs:
        table = ArrayTable(_SCHEMA, dict.fromkeys("ab", np.zeros(ROWS + more, dtype=int)))
        gate = Curator(table, protect=REPLACED, budget=TOTAL, rng=rng)
        return np.full(n, int(gate.total().values), dtype=np.int16)

    return Case(name="GateTotal", guarantee=TOTAL, inputs=(0, 1), draw=draw, ratio=lambda: None)


def _answered(name: str, look: Look, larger: Fraction, note: str, *bugs: Planted) -> Case:
    return with_larger(lambda factor: _rows(name, look, ONE * factor, note), larger, *bugs)


def _rows(name: str, look: Look, epsilon: Fraction, note: str) -> Case:
    def draw(record: Record, n: int, *, rng: Rng) -> Outputs:
        codes = {column: np.full(n, code) for column, code in zip("ab", record, strict=True)}
        budget = PureDP(2 * epsilon)  # of which a look takes what it is given
        gate = Curator(ArrayTable(_SCHEMA, codes), protect=REPLACED, budget=budget, rng=rng)
        return look(gate, epsilon)[rng.permutation(n)]  # answers may come by group

    return Case(
        name=name,
        guarantee=CLAIMED,
        inputs=_CELLS,
        draw=draw,
        ratio=lambda: _ratio(look, epsilon),
        runs=100_000,
        note=note,
    )


def _ratio(look: Look, epsilon: Fraction) -> Ratio | None:
    """Of the declared integers: both answers of a row together, or its one."""
    if look is _perturbed:
        return _of(Grr(categories=len(_CELLS), epsilon=epsilon))
    if look is _responded:
        part = _of(Grr(categories=2, epsilon=epsilon / 2))
        return None if part is None else part * part
    return _of(Grr(categories=2, epsilon=epsilon)) if look is _interviewed else None


def _of(mechanism: Grr) -> Ratio | None:
    return ratio_of(mechanism, mechanism.transition())


def _perturbed(gate: Curator, epsilon: Fraction) -> Outputs:
    answers = gate.perturb(("a", "b"), Grr(categories=len(_CELLS), epsilon=epsilon))
    return np.concatenate([np.asarray(batch) for batch in answers])


def _responded(gate: Curator, epsilon: Fraction) -> Outputs:
    codes = gate.respond(dict.fromkeys("ab", epsilon / 2)).codes
    return np.stack([codes[name] for name in "ab"], axis=1)


def _interviewed(gate: Curator, epsilon: Fraction) -> Outputs:
    asked = gate.interview(PureDP(epsilon), columns=("a", "b"))
    response = Grr(categories=2, epsilon=epsilon)
    parts = [Part(columns=(name,), sizes=(2,), bins=(None,), mechanism=response) for name in "ab"]
    rounds = [asked.ask(parts, (1, 1)) for _ in range(2)]
    lines = [
        np.stack([np.full(drawn.size, number), drawn, said.astype(np.int64)], axis=1)
        for number, (drawn, said) in enumerate(rounds)
    ]
    return np.concatenate(lines).astype(np.uint8)


def _asked_in_both(gate: Curator, epsilon: Fraction) -> Outputs:
    """Two interviews of one group: a row answers twice."""
    answers = []
    for _ in range(2):
        asked = gate.interview(PureDP(epsilon), columns=("a", "b"), groups=1)
        response = Grr(categories=2, epsilon=epsilon)
        part = Part(columns=("a",), sizes=(2,), bins=(None,), mechanism=response)
        answers.append(asked.ask([part], (1,))[1])
    return np.stack(answers, axis=1).astype(np.uint8)
