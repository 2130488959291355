"""What to measure and how precisely, so that the predicted error is least.

A measured marginal brings noise, an unmeasured one what independence gets wrong there plus the
noise of its single columns. All of it is predicted from public numbers: noisy scores of how far
from independent each marginal is, and the counts that independent columns would have.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.models.graphical.junction_tree import Clique

Floats = NDArray[np.float64]

MEAN_ABSOLUTE = float(np.sqrt(2 / np.pi))
"""The mean of |x| for Gaussian noise of standard deviation 1."""

_ROUNDS = 3
"""Sizes depend on the noise and the noise on sizes: so often each is computed from the other."""
_HALVINGS = 80
_WORTH_AGAIN = 0.05
"""A column is measured again if that adds at least this share of its precision."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Candidate:
    """A marginal that could be measured."""

    columns: Clique
    error: float
    """Rows that independent columns put into wrong cells; noisy."""
    counts: Floats
    """What independent columns expect in each cell."""
    weight: float = 1.0


@dataclass(frozen=True, kw_only=True, eq=False)
class Single:
    """A column that was measured once."""

    counts: Floats
    precision: float
    """One over the variance of a count; infinite where the counts are public."""
    weight: float = 0.0
    """What its own table is worth, beside those of candidates that are not measured."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Allocation:
    """What to measure next: 1 / variance of a count for each; zero where nothing is measured."""

    candidates: Floats
    singles: Floats
    gain: float
    """Predicted: misplaced rows, weighed and summed over candidates, fewer than if only single
    columns were measured once more."""


def misplaced(counts: Floats, sigma_counts: float) -> float:
    """Rows in wrong cells after fitting counts with noise: ``sum min(E|noise|, 2 count) / 2``.

    A cell far above the noise keeps its noise; one far below is lost in it, and its rows land in
    other cells. Within a factor 1.5 of simulated projections of flat, geometric and spiky tables,
    1.7 where all counts are a third of the noise (see the tests). Too low for a table that is
    almost empty: cells of no rows count for nothing here, and noise puts some into them.

    >>> round(misplaced(np.array([1000.0, 1.0]), 10.0), 3)
    4.989
    """
    return float(np.minimum(MEAN_ABSOLUTE * sigma_counts, 2 * counts).sum()) / 2


def allocate(
    candidates: Sequence[Candidate], singles: Sequence[Single], *, precision: float
) -> Allocation:
    """Choose candidates and precisions whose sum is ``precision``.

    Minimize ``sum_m w_m misplaced_m + sum_u w_u (error_u + its columns' misplaced)`` over the
    measured m and the unmeasured u. With effective cells s and misplaced rows c s / sqrt(b), the
    best split of a budget b over given terms has b proportional to (w s)^(2/3), and the sum is
    ``c (sum (w s)^(2/3))^(3/2) / sqrt(b)`` (Lagrange). Candidates are tried in order of
    w error / (w s)^(2/3) and kept if they lower the sum.
    """
    pooled = precision + float(_paid(singles).sum())
    sizes = np.array([float(one.counts.size) for one in candidates])
    single_sizes = np.array([0.0 if _public(one) else float(one.counts.size) for one in singles])
    chosen = np.zeros(len(candidates), dtype=np.bool_)
    gain = 0.0
    for _ in range(_ROUNDS):
        keys = _Keys(candidates, singles, sizes, single_sizes, pooled)
        chosen, gain = keys.search()
        sizes, single_sizes = keys.effective(singles)
    return _settled(keys, chosen, singles, precision, gain)


class _Keys:
    """The terms of the objective for given effective sizes: each enters as (w s)^(2/3)."""

    def __init__(
        self,
        candidates: Sequence[Candidate],
        singles: Sequence[Single],
        sizes: Floats,
        single_sizes: Floats,
        pooled: float,
    ) -> None:
        self.candidates, self.single_sizes, self.pooled = candidates, single_sizes, pooled
        self.weights = np.array([one.weight for one in candidates])
        self.keys = (self.weights * sizes) ** (2 / 3)
        self.open = np.array([one.weight for one in singles])  # and of unmeasured candidates
        for one in candidates:
            self.open[list(one.columns)] += one.weight
        self.held = float(self.single_keys(range(len(singles))).sum())

    def search(self) -> tuple[NDArray[np.bool_], float]:
        """The candidates that lower the objective, and by how much they do together."""
        errors = self.weights * np.array([one.error for one in self.candidates])
        chosen = np.zeros(len(self.candidates), dtype=np.bool_)
        value = start = -self._noise(self.held)
        saved = 0.0
        for place in np.argsort(-errors / self.keys, kind="stable"):
            if errors[place] <= 0:
                break
            columns, weight = list(self.candidates[place].columns), self.weights[place]
            before = self.single_keys(columns).sum()
            self.open[columns] -= weight
            held = self.held + self.keys[place] + self.single_keys(columns).sum() - before
            if saved + errors[place] - self._noise(held) > value:
                chosen[place], self.held, saved = True, held, saved + errors[place]
                value = saved - self._noise(held)
            else:
                self.open[columns] += weight
        return chosen, value - start

    def effective(self, singles: Sequence[Single]) -> tuple[Floats, Floats]:
        """The number of cells that matter at the noise each term would get."""
        found = [
            _cells_above(one.counts, self._sigma(key))
            for one, key in zip(self.candidates, self.keys, strict=True)
        ]
        keys = self.single_keys(range(len(singles)))
        columns = [
            0.0
            if _public(one)
            else _cells_above(one.counts, min(self._sigma(key), one.precision**-0.5))
            for one, key in zip(singles, keys, strict=True)
        ]
        return np.array(found), np.array(columns)

    def single_keys(self, columns: Sequence[int] | range) -> Floats:
        places = list(columns)
        open_weight = np.maximum(self.open[places], 0.0)  # a sum of floats may end just below 0
        return np.asarray((open_weight * self.single_sizes[places]) ** (2 / 3))

    def _noise(self, held: float) -> float:
        return float(MEAN_ABSOLUTE / 2 * max(held, 0.0) ** 1.5 / np.sqrt(self.pooled))

    def _sigma(self, key: float) -> float:
        share = key / max(self.held, key) if key > 0 else 0.0
        return float(1 / np.sqrt(max(share * self.pooled, 1e-300)))


def _public(single: Single) -> bool:
    return bool(np.isinf(single.precision))


def _paid(singles: Sequence[Single]) -> Floats:
    """The precision that was bought; public counts took none."""
    return np.array([0.0 if _public(one) else one.precision for one in singles])


def _cells_above(counts: Floats, sigma_counts: float) -> float:
    """Cells as if all that matter had the full noise; at least one."""
    return max(1.0, misplaced(counts, sigma_counts) / (MEAN_ABSOLUTE / 2 * sigma_counts))


def _settled(
    keys: _Keys,
    chosen: NDArray[np.bool_],
    singles: Sequence[Single],
    precision: float,
    gain: float,
) -> Allocation:
    """The exact split: singles keep what they have, so some get nothing more."""
    weighed = np.where(chosen, keys.keys, 0.0)
    wanted, had = keys.single_keys(range(len(singles))), _paid(singles)
    if not weighed.any() and not wanted.any():
        nothing = np.zeros(len(singles))
        return Allocation(candidates=np.zeros(weighed.size), singles=nothing, gain=gain)
    least, most = 0.0, (precision + had.sum()) / max(float(weighed.sum() + wanted.sum()), 1e-300)
    for _ in range(_HALVINGS):
        level = (least + most) / 2
        spent = level * weighed.sum() + np.maximum(level * wanted - had, 0).sum()
        least, most = (level, most) if spent <= precision else (least, level)
    more = np.maximum(least * wanted - had, 0)
    worth = more >= _WORTH_AGAIN * had
    if weighed.any() or worth.any():  # else a little for all is what is left to buy
        more[~worth] = 0
    found = least * weighed
    scale = precision / max(float(found.sum() + more.sum()), 1e-300)
    return Allocation(candidates=found * scale, singles=more * scale, gain=gain)
