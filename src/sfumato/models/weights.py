"""Multiplicative weights: a histogram moved, little by little, towards its measurements.

For a range q with measurement m, every cell inside is multiplied by exp((m - q(A)) / 2n) and the
whole brought back to n: Hardt, Ligett, McSherry 2012, arXiv 1012.4763, figure 1. A marginal is
measured whole, so its cells are moved at once, each group by m / q(A): the step that makes the
marginal fit exactly (raking), which the small steps only approach.
"""

from dataclasses import dataclass, field

import numba
import numpy as np
from numpy.typing import NDArray

from sfumato.models import simplex
from sfumato.models.grouping import add_groups, group, scale_groups
from sfumato.randomness import Rng
from sfumato.schema.measurement import Measurement
from sfumato.schema.table import Schema

_LEAST_COUNT = 1e-9
"""Raking leaves every group at least this much: a zero would stay for ever."""

_SMALLEST_FACTOR, _LARGEST_FACTOR = 1e-3, 1e12
"""Raking never moves a group by more than these factors at once."""

_CLOSE = 0.05
"""Stop when every measurement fits to this part of its own noise: more would fit the noise."""

_STALLED = 1.0
"""Stop raking when a sweep leaves more than this part of the worst misfit: the rest is noise
that contradicts itself. Not for ranges, whose steps are too small to tell."""


@dataclass(kw_only=True, eq=False)
class WeightedHistogram:
    """The state of a fit: cells with a known total and the measurements seen so far."""

    schema: Schema
    total: float
    capacity: int
    """The most measurements that will come."""
    cells: NDArray[np.float64] = field(init=False)

    def __post_init__(self) -> None:
        size = self.schema.cells(self.schema.names)
        self.cells = np.full(size, self.total / size)
        whole = group(self.schema, ())
        self._count = 0
        self._width = whole.width
        self._base = np.empty((self.capacity, whole.base.size), dtype=np.int32)
        self._runs = np.empty((3, 0), dtype=np.int32)
        self._wanted = np.empty(0)
        self._run_ends = np.zeros(self.capacity + 1, dtype=np.int64)
        self._wanted_ends = np.zeros(self.capacity + 1, dtype=np.int64)
        self._sigma = np.ones(self.capacity)
        self._rake = np.zeros(self.capacity, dtype=np.bool_)

    def add(self, measurement: Measurement) -> None:
        """Take one more measurement into the fit."""
        grouping = group(self.schema, measurement.target)
        place, self._count = self._count, self._count + 1
        self._base[place] = grouping.base
        self._sigma[place] = max(measurement.sigma_counts, 1e-9)
        self._rake[place] = isinstance(measurement.target, tuple)
        wanted = measurement.values.reshape(-1)
        if self._rake[place]:
            wanted = simplex.project(wanted, self.total)
        else:
            wanted = np.clip(wanted, 0, self.total)  # the nearest count that could exist
        self._wanted = np.concatenate([self._wanted, wanted])
        self._runs = np.concatenate([self._runs, grouping.runs], axis=1)
        self._wanted_ends[self._count] = self._wanted.size
        self._run_ends[self._count] = self._runs.shape[1]

    def fit(self, *, repetitions: int, rng: Rng) -> None:
        """Pass over all measurements, in a new random order each time, until they fit."""
        if not self.total > 0 or not self._count:
            return
        words = rng.words(repetitions * self._count).reshape(repetitions, self._count)
        _sweep(
            self.cells,
            self.total,
            np.argsort(words, axis=1),
            self._base,
            self._runs,
            self._run_ends,
            self._width,
            self._wanted,
            self._wanted_ends,
            self._rake,
            self._sigma,
        )


@numba.njit(cache=True, nogil=True)
def _sweep(
    cells: NDArray[np.float64],
    total: float,
    orders: NDArray[np.int64],
    base: NDArray[np.int32],
    runs: NDArray[np.int32],
    run_ends: NDArray[np.int64],
    width: int,
    wanted: NDArray[np.float64],
    wanted_ends: NDArray[np.int64],
    rake: NDArray[np.bool_],
    sigma: NDArray[np.float64],
) -> None:
    found, factors = np.empty(wanted.size), np.empty(wanted.size)  # room for the largest
    mass, before = total, np.inf
    only_marginals = rake[orders[0]].all()
    for repetition in range(orders.shape[0]):
        worst = 0.0
        for i in orders[repetition]:
            its_runs = runs[:, run_ends[i] : run_ends[i + 1]]
            first, groups = wanted_ends[i], wanted_ends[i + 1] - wanted_ends[i]
            found[:groups] = 0
            add_groups(cells, base[i], its_runs, width, found)
            for g in range(groups):
                has, goal = found[g] * total / mass, wanted[first + g]
                worst = max(worst, abs(goal - has) / sigma[i])
                if rake[i]:
                    factors[g] = _raking_factor(goal, has)
                else:
                    factors[g] = np.exp((goal - has) / (2 * total))
            for g in range(groups):
                mass += found[g] * (factors[g] - 1)
            scale_groups(cells, base[i], its_runs, width, factors)
            if not 0.01 < mass / total < 100:  # so far away, the running mass loses its digits
                cells *= total / cells.sum()
                mass = total
        cells *= total / cells.sum()  # the running mass drifts by rounding: take the true one
        mass = total
        if worst < _CLOSE or (only_marginals and worst > _STALLED * before):
            break
        before = worst


@numba.njit(cache=True, nogil=True)
def _raking_factor(goal: float, has: float) -> float:
    if has <= 0:
        return 1.0
    return min(max(max(goal, _LEAST_COUNT) / has, _SMALLEST_FACTOR), _LARGEST_FACTOR)
