"""Selections as the gate makes them for central synthesis, as cases.

Neighboring tables of three columns go through a ``Curator`` that chooses a pair of columns, again
and again. The models are such that the row in question raises the error of the first pair by as
much as it lowers that of the second; the scores, and with them the probabilities of every choice,
are written out by hand.
"""

from dataclasses import dataclass, replace
from fractions import Fraction
from math import exp
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sfumato.auditing.case import Case, Planted, largest_ratio, with_larger
from sfumato.auditing.cases.measurement import (
    ADDED,
    REPLACED,
    ROWS,
    WITH,
    WITHOUT,
    codes,
    merged,
    three,
)
from sfumato.auditing.outputs import Outputs
from sfumato.counting.array_table import ArrayTable
from sfumato.gate import Curator, L1Error, WeightedL1Error
from sfumato.gate.requests import amount, same_kind
from sfumato.gate.scores import Score
from sfumato.noise import selection_for
from sfumato.privacy.guarantees import MAX_EPSILON, ZCDP, Cost, PureDP
from sfumato.privacy.protection import OneRow
from sfumato.randomness import Rng
from sfumato.schema import Schema

_NAMES: Final = ("a", "b", "c")
_PAIRS: Final = (("a", "b"), ("a", "c"), ("b", "c"))
_SCHEMA: Final = Schema(columns=tuple(three(name) for name in _NAMES), dataset="audit")
_VIEW: Final = merged(_SCHEMA, _NAMES)
_WEIGHT: Final = 3


def select(larger: Fraction) -> Case:
    """Weighted errors less penalties, as AIM chooses by: the exponential mechanism, in rho."""
    asked = _Asked(
        cost=ZCDP("4.5"),
        score=WeightedL1Error(
            error=_errors((0, ROWS + 10), (5, ROWS + 10), (0, ROWS + 10), penalties=(9, 13, 10)),
            weights=np.array([_WEIGHT, _WEIGHT, 1]),
        ),
        neighbors=ADDED,
        written=((3, 6, 0), (6, 3, 1)),
        runs=22_000,
        moves=_WEIGHT,
    )
    bugs = {"noise as for errors that have no weights": asked.spending(_WEIGHT)}
    note = "3 merged pairs, weights 3, 3, 1, a row more or less"
    return _case("GateSelect", asked, larger, bugs, note=note)


def select_replaced(larger: Fraction) -> Case:
    """Errors less penalties for a pure budget: permute-and-flip, in epsilon."""
    asked = _Asked(
        cost=PureDP(2),
        score=_errors((0, ROWS + 10), (5, ROWS - 10), (0, ROWS), penalties=(9, 12, 30)),
        neighbors=REPLACED,
        written=((0, 4, -29), (2, 2, -29)),
        runs=9_000,
        moves=2,
    )
    bugs = {"a replaced row taken for an added one": replace(asked, told=ADDED, moves=1)}
    note = "3 merged pairs, pure, a row replaced"
    return _case("GateSelectReplaced", asked, larger, bugs, note=note)


def _errors(*models: tuple[int, int], penalties: tuple[int, ...]) -> L1Error:
    """Against models of so many rows of zeros, and of ones, in each pair."""
    answers = [(zeros, 0.0, 0.0, ones) for zeros, ones in models]
    return L1Error(
        answers=np.array(answers, dtype=np.float64).reshape(-1),
        penalties=np.array(penalties, dtype=np.float64),
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class _Asked:
    """What is asked of two neighboring tables."""

    cost: Cost
    """Claimed for one choice."""
    score: Score
    neighbors: OneRow
    """How the tables differ."""
    written: tuple[tuple[int, ...], tuple[int, ...]]
    """The scores without and with the row, by hand."""
    runs: int
    moves: int
    """How far a row moves a score, as far as the gate knows, by hand."""
    told: OneRow | None = None
    """What the gate is told to protect, if that is not how they differ."""
    multiple: Fraction = Fraction(1)
    """Of epsilon, what is spent: its square in rho."""

    def spending(self, multiple: Fraction | int) -> "_Asked":
        """The same for a multiple of the cost."""
        return replace(self, multiple=Fraction(multiple))

    @property
    def spent(self) -> Cost:
        """On one choice."""
        multiple = self.multiple if isinstance(self.cost, PureDP) else self.multiple**2
        return same_kind(self.cost, amount(self.cost) * multiple)

    def draw(self, held: int, n: int, *, rng: Rng) -> Outputs:
        """The places of the chosen pairs, from one curator after the other."""
        table = ArrayTable(_SCHEMA, dict.fromkeys(_NAMES, codes(held, self.neighbors)))
        chosen: list[int] = []
        while len(chosen) < n:
            chosen += self._choices(table, n - len(chosen), rng)
        return np.array(chosen, dtype=np.uint8)

    def _choices(self, table: ArrayTable, most: int, rng: Rng) -> list[int]:
        """As many as the largest budget of a curator pays for."""
        cost, score = self.spent, self.score
        calls = min(most, int(MAX_EPSILON / amount(cost)))
        budget = same_kind(cost, amount(cost) * calls)
        gate = Curator(table, protect=self.told or self.neighbors, budget=budget, rng=rng)
        gate.reserve(budget, label="all calls")
        return [gate.select(_PAIRS, score=score, cost=cost, merged=_VIEW) for _ in range(calls)]

    def ratio(self) -> float:
        """Of the declared probabilities; for rho, e to the divergence that it bounds."""
        spec = selection_for(self.spent, self.moves)
        chances = np.stack([spec.probabilities(np.array(scores)) for scores in self.written])
        return (
            largest_ratio(chances) if isinstance(self.cost, PureDP) else exp(_divergence(chances))
        )


def _case(
    name: str, asked: _Asked, larger: Fraction, bugs: dict[str, _Asked], *, note: str
) -> Case:
    def case_of(asked: _Asked) -> Case:
        return Case(
            name=name,
            guarantee=asked.cost,
            inputs=(WITHOUT, WITH),
            draw=asked.draw,
            ratio=asked.ratio,
            runs=asked.runs,
            note=note,
        )

    planted = [Planted(bug=bug, case=case_of(broken)) for bug, broken in bugs.items()]
    return with_larger(lambda factor: case_of(asked.spending(factor)), larger, *planted)


def _divergence(chances: NDArray[np.float64]) -> float:
    """Of Kullback and Leibler, which rho bounds, in the direction in which it is larger."""
    logs = np.log(chances[0] / chances[1])
    return max(float(chances[0] @ logs), float(-chances[1] @ logs))
