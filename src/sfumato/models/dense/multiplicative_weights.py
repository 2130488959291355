"""Multiplicative weights: a histogram moved, little by little, towards its measurements.

For a range q with measurement m, every cell inside is multiplied by exp((m - q(A)) / 2n) and the
whole brought back to n: Hardt, Ligett, McSherry 2012, arXiv 1012.4763, figure 1. A marginal is
measured whole, so its cells are moved at once, each group by m / q(A): the step that makes the
marginal fit exactly (raking), which the small steps only approach.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.models.dense.model import Blocks, sums, sweep
from sfumato.models.model import project
from sfumato.randomness import Rng
from sfumato.schema.measurement import Measurement
from sfumato.schema.schema import Schema, possible

_PUBLIC_SIGMA = 1.0
"""A measurement without noise fits when it fits as one with noise of a single count."""


@dataclass(kw_only=True, eq=False)
class WeightedHistogram:
    """The state of a fit: cells with a known total and the measurements so far."""

    schema: Schema
    total: float
    capacity: int
    """The most measurements that will come."""
    cells: NDArray[np.float64] = field(init=False)

    def __post_init__(self) -> None:
        self._blocks = Blocks(self.schema)
        size = self._blocks.count * self._blocks.width
        self.cells = np.full(size, self.total / size)
        self._possible: NDArray[np.float64] | None = None
        if self.schema.impossible:
            self._possible = possible(self.schema, self.schema.names).reshape(-1).astype(float)
            self.cells = self._possible * (self.total / self._possible.sum())
        self._count = 0
        self._base = np.empty((self.capacity, self._blocks.count), dtype=np.int32)
        self._runs = np.empty((0, 3), dtype=np.int32)
        self._run_ends = np.zeros(self.capacity + 1, dtype=np.int64)
        self._goals = np.empty(0)
        self._goal_ends = np.zeros(self.capacity + 1, dtype=np.int64)
        self._sigma = np.ones(self.capacity)
        self._rake = np.zeros(self.capacity, dtype=np.bool_)

    def add(self, measurement: Measurement) -> None:
        """Take one more measurement into the fit."""
        target, index, width = measurement.target, self._count, self._blocks.width
        self._count += 1
        self._sigma[index] = measurement.sigma_counts or _PUBLIC_SIGMA
        self._rake[index] = isinstance(target, tuple)
        first, end = self._run_ends.item(index), self._goal_ends.item(index)
        self._runs = _with_room(self._runs, first, width)
        result = self._blocks.write(target, self._base[index], self._runs[first : first + width])
        self._run_ends[index + 1] = first + result
        size = measurement.values.size
        self._goals = _with_room(self._goals, end, size)
        self._goals[end : end + size] = self._nearest(measurement)
        self._goal_ends[index + 1] = end + size

    def fit(self, *, repetitions: int, rng: Rng) -> None:
        """Pass over all measurements, in a new random order each time, until they fit."""
        if not self.total > 0 or not self._count:
            return
        sweep(
            self.cells,
            self.total,
            rng.words(repetitions * self._count).reshape(repetitions, self._count),
            self._base,
            self._runs,
            self._run_ends,
            self._blocks.width,
            self._goals,
            self._goal_ends,
            self._rake,
            self._sigma,
        )

    def _nearest(self, measurement: Measurement) -> NDArray[np.float64] | float:
        """The nearest counts that could exist: of a marginal none where no cell is possible."""
        if not isinstance(measurement.target, tuple):
            return min(max(measurement.values.item(), 0.0), self.total)
        values = measurement.values.reshape(-1)
        if self._possible is None:
            return project(values, self.total)
        reachable = sums(self._possible, self._blocks.group(measurement.target)) > 0
        counts = np.zeros_like(values)
        counts[reachable] = project(values[reachable], self.total)
        return counts


def _with_room(buffer: NDArray[Any], used: int, more: int) -> NDArray[Any]:
    """The buffer itself, or its used part in a larger one."""
    if used + more <= len(buffer):
        return buffer
    larger = np.empty((2 * (used + more), *buffer.shape[1:]), dtype=buffer.dtype)
    larger[:used] = buffer[:used]
    return larger
