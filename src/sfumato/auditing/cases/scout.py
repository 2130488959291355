"""Texts that nobody declared, as the gate of a table without a schema shows them, as a case.

One call counts many texts of a column, each in as many rows as the threshold or in one more: each
is an experiment, as its rows are in nobody else's count. That a text of one row is hardly ever
shown is a matter of one in a billion, which no sample sees: it is computed.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from math import exp, floor, log
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.auditing.case import Case, Planted, with_larger
from sfumato.auditing.checks import Check
from sfumato.auditing.outputs import Outputs
from sfumato.gate.scout import Scout
from sfumato.ledger.ledger import Ledger
from sfumato.noise.thresholding import NOT_SHOWN, Thresholding
from sfumato.privacy.guarantees import ApproxDP
from sfumato.privacy.protection import OneRow
from sfumato.randomness import Rng
from sfumato.readers.open_table import source_of
from sfumato.readers.undeclared_table import UndeclaredTable

CLAIMED: Final = ApproxDP(1, "1e-9")
PROTECT: Final = OneRow()

_TEXTS: Final = 4_096
_RUNS: Final = 100_000


def texts(larger: Fraction) -> Case:
    """A text of as many rows as the threshold, or of one more."""
    honest = Thresholding.for_cost(CLAIMED, 1)
    case = _made(Fraction(1))
    halved = Thresholding(scale=honest.scale / 2, reach=honest.reach)
    noisier = Planted(bug="half the noise", case=replace(case, draw=_beside(_Shown(spec=halved))))
    exactly = [
        Planted(bug=bug, case=replace(case, checks=(broken.within_delta,)), by="check")
        for bug, broken in {
            "a threshold one row lower": _Shown(spec=honest, above=honest.reach - 1),
            "a threshold in floats, rounded down": _in_floats(honest),
        }.items()
    ]
    return with_larger(_made, larger, noisier, *exactly)


def _made(factor: Fraction) -> Case:
    """The case that spends ``factor`` times the epsilon that it claims."""
    spec = Thresholding.for_cost(ApproxDP(CLAIMED.epsilon * factor, CLAIMED.delta), 1)
    shown = _Shown(spec=spec)
    return Case(
        name="GateTexts",
        guarantee=CLAIMED,
        inputs=(0, 1),
        draw=_through_the_gate if factor == 1 else _beside(shown),
        ratio=lambda: exp(1 / spec.scale),
        checks=(shown.within_delta,) if factor == 1 else (),
        runs=_RUNS,
        note=f"a text at the threshold of {CLAIMED}, a row more or less",
    )


def _through_the_gate(more: int, n: int, *, rng: Rng) -> Outputs:
    """What is shown of many texts, call after call; a text that is not shown counts as 0."""
    found = [_one_call(more, rng) for _ in range(-(-n // _TEXTS))]
    return np.concatenate(found)[:n]


def _one_call(more: int, rng: Rng) -> Outputs:
    ledger = Ledger.in_memory(dataset="audit")
    table, names = _table(more)
    scout = Scout(
        UndeclaredTable(source_of(table, ())),
        protect=PROTECT,
        budget=CLAIMED,
        ledger=ledger,
        rng=rng,
    )
    shown = scout.texts(["a"], cost=CLAIMED)["a"]
    return np.array([shown.get(name, NOT_SHOWN) for name in names], dtype=np.int16)


@cache
def _table(more: int) -> tuple[pa.Table, tuple[str, ...]]:
    names = tuple(f"text {number}" for number in range(_TEXTS))
    rows = Thresholding.for_cost(CLAIMED, 1).reach + more
    return pa.table({"a": pa.array(np.repeat(np.array(names), rows))}), names


def _beside(shown: "_Shown") -> Callable[..., Outputs]:
    """The same draws beside the gate, which does not spend more than it says."""
    rows = Thresholding.for_cost(CLAIMED, 1).reach

    def draw(more: int, n: int, *, rng: Rng) -> Outputs:
        return shown.spec.show(np.full(n, rows + more), rng=rng).astype(np.int16)

    return draw


def _in_floats(honest: Thresholding) -> "_Shown":
    """The paper's formula for the threshold, but rounded to the wrong side."""
    odds, delta = exp(1 / honest.scale), float(CLAIMED.delta)
    near = log((odds + 2 * delta - 1) / (delta * (odds + 1))) * float(honest.scale)
    return _Shown(spec=Thresholding(scale=honest.scale, reach=floor(near)))


@dataclass(frozen=True, kw_only=True, slots=True)
class _Shown:
    """A mechanism, and the largest sum that it does not show."""

    spec: Thresholding
    above: int | None = None
    """By default its reach, as it should be."""

    def within_delta(self, runs: int, rng: Rng) -> Check:
        """The exact hockey-stick divergence for every number of rows; nothing is drawn."""
        most = 2 * self.spec.reach + 2
        found = max(
            max(self._divergence(rows, rows + 1), self._divergence(rows + 1, rows))
            for rows in range(most)
        )
        return Check(
            name="a row more or less stays within delta, exactly",
            passed=found <= CLAIMED.delta * (1 + Fraction(1, 10**6)),
            detail=f"{found:.4g} of {float(CLAIMED.delta):g}",
        )

    def _divergence(self, one: int, other: int) -> float:
        excess = self._chances(one) - exp(CLAIMED.epsilon) * self._chances(other)
        return float(np.maximum(0.0, excess).sum())

    def _chances(self, rows: int) -> NDArray[np.float64]:
        """Of not being shown, and of every sum that can be."""
        above = self.spec.reach if self.above is None else self.above
        sums: NDArray[Any] = np.arange(3 * self.spec.reach + 4)
        chances = self.spec.pmf(sums - rows)
        hidden = 1.0 if rows == 0 else max(0.0, 1.0 - float(chances[above + 1 :].sum()))
        return np.array([hidden, *(chances[above + 1 :] * (rows > 0))])
