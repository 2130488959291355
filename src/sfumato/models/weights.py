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
"""Raking makes no group emptier than this: a zero would be for ever."""

_SMALLEST_STEP, _LARGEST_STEP = 1e-3, 1e12
"""Raking never moves a group by more than these factors at once."""

_CLOSE = 0.05
"""Stop when every measurement fits to this part of its own noise: more would fit the noise."""


@dataclass(kw_only=True, eq=False)
class WeightedHistogram:
    """The state of a fit: cells with a known total and the measurements seen so far."""

    schema: Schema
    total: float
    capacity: int
    """The most measurements that will come."""
    cells: NDArray[np.float64] = field(init=False)
    _count: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        size = self.schema.cells(self.schema.names)
        self.cells = np.full(size, self.total / size)
        blocks = group(self.schema, ())
        self._high = np.zeros((self.capacity, blocks.high_key.size), dtype=np.int32)
        self._low = np.zeros((self.capacity, blocks.low_key.size), dtype=np.int32)
        self._touched = np.zeros(self._high.shape, dtype=np.bool_)
        self._rake = np.zeros(self.capacity, dtype=np.bool_)
        self._sigma = np.ones(self.capacity)
        self._offsets = np.zeros(self.capacity + 1, dtype=np.int64)
        self._wanted = np.zeros(0)
        self._inside = np.zeros(0, dtype=np.bool_)

    def add(self, measurement: Measurement) -> None:
        """Take one more measurement into the fit."""
        grouping = group(self.schema, measurement.target)
        place, self._count = self._count, self._count + 1
        self._high[place] = grouping.high_key
        self._low[place] = grouping.low_key
        self._touched[place] = grouping.touched
        self._sigma[place] = max(measurement.sigma_counts, 1e-9)
        self._rake[place] = isinstance(measurement.target, tuple)
        values = measurement.values.reshape(-1)
        wanted = np.zeros(grouping.groups)
        wanted[grouping.inside] = (
            simplex.project(values, self.total)
            if self._rake[place]
            else np.clip(values, 0, self.total)  # the nearest count that could exist
        )
        self._wanted = np.concatenate([self._wanted, wanted])
        self._inside = np.concatenate([self._inside, grouping.inside])
        self._offsets[self._count :] = self._wanted.size

    def fit(self, *, repetitions: int, rng: Rng) -> None:
        """Pass over all measurements, in a new random order each time, until they fit."""
        if not self.total > 0:
            return
        words = rng.words(repetitions * self._count).reshape(repetitions, self._count)
        _sweep(
            self.cells,
            self.total,
            np.argsort(words, axis=1),
            self._high,
            self._low,
            self._touched,
            self._rake,
            self._sigma,
            self._offsets,
            self._wanted,
            self._inside,
        )


@numba.njit(cache=True, nogil=True)
def _sweep(
    cells: NDArray[np.float64],
    total: float,
    orders: NDArray[np.int64],
    high: NDArray[np.int32],
    low: NDArray[np.int32],
    touched: NDArray[np.bool_],
    rake: NDArray[np.bool_],
    sigma: NDArray[np.float64],
    offsets: NDArray[np.int64],
    wanted: NDArray[np.float64],
    inside: NDArray[np.bool_],
) -> None:
    mass = total
    largest = 0
    for i in orders[0]:
        largest = max(largest, offsets[i + 1] - offsets[i])
    found_room, factor_room = np.zeros(largest), np.ones(largest)  # no allocation in the loop
    for repetition in range(orders.shape[0]):
        worst = 0.0
        for i in orders[repetition]:
            goal = wanted[offsets[i] : offsets[i + 1]]
            counted = inside[offsets[i] : offsets[i + 1]]
            found, factors = found_room[: goal.size], factor_room[: goal.size]
            found[:] = 0
            factors[:] = 1
            add_groups(cells, high[i], low[i], touched[i], found)
            scale = total / mass  # as it was before this step: the same for all groups
            for g in range(goal.size):
                if not counted[g]:
                    continue
                has = found[g] * scale
                worst = max(worst, abs(goal[g] - has) / sigma[i])
                if rake[i]:
                    factors[g] = _raking_factor(goal[g], has)
                else:
                    factors[g] = np.exp((goal[g] - has) / (2 * total))
                mass += found[g] * (factors[g] - 1)
            scale_groups(cells, high[i], low[i], touched[i], factors)
            if not 0.01 < mass / total < 100:  # far away, the running mass has lost its digits
                cells *= total / cells.sum()
                mass = total
        cells *= total / cells.sum()
        mass = total
        if worst < _CLOSE:
            break


@numba.njit(cache=True, nogil=True)
def _raking_factor(goal: float, has: float) -> float:
    if has <= 0:
        return 1.0
    step = max(goal, _LEAST_COUNT) / has
    return min(max(step, _SMALLEST_STEP), _LARGEST_STEP)
