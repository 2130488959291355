"""Numbers: from noisy counts of ever finer bins to counts that could exist, and coarse groups.

Each level of counts divides all values of a column; the next one divides its heavy bins. All of it
is post-processing of public counts.

- ``finer``: which bins to divide.
- ``consistent``: all levels together, by least squares.
- ``likely_counts``: not negative, of a known sum, with tails that noise does not inflate.
- ``even_groups``: bins joined into few groups of even mass, for tables of several columns.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sfumato.models.model import project
from sfumato.schema.classes import first_classes, round_pieces
from sfumato.schema.columns import GridColumn
from sfumato.schema.measurement import Coarse, Measurement
from sfumato.schema.schema import Schema

Floats = NDArray[np.float64]
Cells = NDArray[np.int64]

SURE_SIGMAS: Final = 4.0
"""A bin is divided if its count is above this many standard deviations of its noise: an empty one
is so once in 30,000 times."""
HEAVY: Final = 128
"""And if it holds more than one in so many rows: finer bins are drawn from evenly, at little
loss."""
MOST_BINS: Final = 512
"""Bins of one column; beyond, the lightest of those that could be divided stay whole."""
CLEAR_SIGMAS: Final = 3.0
"""A class beyond all with counts above this many standard deviations is in the tail."""
DECLINE: Final = 4.0
"""Tails are expected to fall by this factor from a class to the next."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Level:
    """Noisy counts of one division of a column's values."""

    starts: Cells
    """The first cell of each bin; of missing values the cell after all."""
    counts: Floats
    sigma_counts: float


def starts_of(column: GridColumn) -> Cells:
    """Where the bins of a column begin, missing values after all."""
    bins = range(column.cells) if column.bins is None else column.bins
    return np.array([*bins, *([column.cells] * column.missing)], dtype=np.int64)


def finer(column: GridColumn, level: Level, *, rows: float) -> tuple[int, ...]:
    """The bins with those divided that hold many rows for sure."""
    first = [int(start) for start in level.starts if start < column.cells]
    last = [*(start - 1 for start in first[1:]), column.cells - 1]
    least = max(SURE_SIGMAS * level.sigma_counts, rows / HEAVY)
    pieces = {
        index: round_pieces(column, first[index], last[index])
        for index in range(len(first))
        if last[index] > first[index] and level.counts[index] > least
    }
    starts, room = set(first), MOST_BINS - len(first)
    for index in sorted(pieces, key=lambda index: -level.counts[index]):
        if len(pieces[index]) - 1 <= room:
            starts |= set(pieces[index])
            room -= len(pieces[index]) - 1
    return tuple(sorted(starts))


def consistent(levels: Sequence[Level]) -> tuple[list[Floats], list[Floats]]:
    """For each level the counts that fit all levels best, and their variances.

    Each level divides the bins of the one before. Generalized least squares on a tree: means
    weighed by precision from the leaves up, then the parent's surplus dealt to its children in
    proportion to their variances. Hay, Rastogi, Miklau, Suciu 2010, "Boosting the accuracy of
    differentially private histograms through consistency", arXiv 0904.0942, theorem 3, for noise
    and branching that differ.
    """
    parents = [
        np.searchsorted(upper.starts, lower.starts, side="right") - 1
        for upper, lower in zip(levels, levels[1:], strict=False)
    ]
    ups, variances = [], []
    for index in reversed(range(len(levels))):
        own, noise = levels[index].counts, max(levels[index].sigma_counts, 1e-9) ** 2
        if not ups:
            ups.append(own.astype(np.float64))
            variances.append(np.full(own.size, noise))
            continue
        summed = np.bincount(parents[index], ups[-1], own.size)
        variance = np.bincount(parents[index], variances[-1], own.size)
        ups.append((summed / variance + own / noise) / (1 / variance + 1 / noise))
        variances.append(1 / (1 / variance + 1 / noise))
    ups, variances = ups[::-1], variances[::-1]
    for index, parent in enumerate(parents):
        lower = index + 1
        summed = np.bincount(parent, ups[lower], ups[index].size)
        variance = np.bincount(parent, variances[lower], ups[index].size)
        part = variances[lower] / variance[parent]
        ups[lower] = ups[lower] + part * (ups[index] - summed)[parent]
        variances[lower] = variances[lower] - part**2 * (variance - variances[index])[parent]
    return ups, variances


def likely_counts(
    column: GridColumn, starts: Cells, counts: Floats, variances: Floats, *, total: float
) -> Floats:
    """Counts of bins that could exist: of the public classes first, then inside each of them.

    Args:
        column: On a grid.
        starts: Where its bins begin, missing values after all.
        counts: Of the bins, from all levels.
        variances: Of their noise, as if they were independent.
        total: The number of rows.
    """
    classes = np.array([*first_classes(column), *([column.cells] * column.missing)])
    parent = np.searchsorted(classes, starts, side="right") - 1
    sums = np.bincount(parent, counts, classes.size)
    noise = np.bincount(parent, variances, classes.size)
    sums = _without_noise_in_tails(sums, noise, total=total, missing=column.missing)
    result = np.zeros(counts.size)
    for index in range(classes.size):
        own = np.flatnonzero(parent == index)
        if own.size:
            result[own] = project(counts[own], float(sums[index]))
    return result


def _without_noise_in_tails(sums: Floats, noise: Floats, *, total: float, missing: bool) -> Floats:
    """Counts of classes that could exist, small where only noise says that there are rows.

    Beyond the outermost class that clearly holds rows, a class is expected to hold a quarter of
    the one before it, give or take as much: the count is the mean of that normal prior after the
    measurement. Cutting at zero alone would turn noise into rows far from all others, which are
    what a mean hangs on.
    """
    size = sums.size - missing
    clear = np.flatnonzero(sums[:size] > CLEAR_SIGMAS * np.sqrt(noise[:size]))
    if not clear.size:
        return project(sums, total)
    tails = np.zeros(sums.size, dtype=np.bool_)
    result = sums.copy()
    for order in (range(clear[-1] + 1, size), range(clear[0] - 1, -1, -1)):
        before = float(sums[clear[-1] if order.step > 0 else clear[0]])
        for index in order:
            prior = max(before / DECLINE, 1e-9)
            own, variance = float(sums[index]), max(float(noise[index]), 1e-9)
            mean = (own / variance + 1 / prior) / (1 / variance + 1 / prior**2)
            result[index] = before = min(max(mean, 0.0), DECLINE * prior)
            tails[index] = True
    rest = max(0.0, total - float(result[tails].sum()))
    result[~tails] = project(result[~tails], rest)
    return result


def improved(
    column: GridColumn, known: Sequence[Level], measured: Measurement, *, total: float
) -> Measurement:
    """A measured column with what all levels say of it, as counts that could exist."""
    own = Level(
        starts=starts_of(column), counts=measured.values, sigma_counts=measured.sigma_counts
    )
    estimates, variances = consistent([*known, own])
    counts = likely_counts(column, own.starts, estimates[-1], variances[-1], total=total)
    sigma = float(np.sqrt(np.mean(variances[-1])))
    return replace(measured, values=counts, sigma_counts=sigma, as_measured=measured)


def even_groups(
    column: GridColumn, counts: Floats, *, groups: int, least: float = 0.0
) -> NDArray[np.int64]:
    """For each bin the number of its group: heavy single values alone, the rest of even mass.

    Args:
        column: On a grid; its missing values stay alone.
        counts: Of its bins, none negative.
        groups: How many to make.
        least: Missing values with fewer rows are joined with nothing all the same.
    """
    ends = np.array(column.bin_ends)
    size, single = len(ends), ends[:, 0] == ends[:, 1]
    mass = np.maximum(counts[:size], 0.0)
    share = mass / max(float(mass.sum()), 1e-9)
    heavy = np.flatnonzero(single & (share >= 1 / (2 * groups)))
    heavy = heavy[np.argsort(-share[heavy], kind="stable")][: groups - 1]
    rest = np.ones(size, dtype=np.bool_)
    rest[heavy] = False
    bins = max(1, groups - heavy.size)
    label = np.zeros(len(counts), dtype=np.int64)
    cumulated = np.cumsum(np.where(rest, share, 0.0))
    left = float(cumulated[-1]) if size else 0.0
    middle = cumulated - np.where(rest, share, 0.0) / 2
    label[:size] = np.minimum((middle / max(left, 1e-12) * bins).astype(np.int64), bins - 1)
    label[heavy] = bins + np.arange(heavy.size)
    label[size:] = bins + heavy.size
    return _in_order(label)


def _in_order(label: NDArray[np.int64]) -> NDArray[np.int64]:
    """Groups numbered by where they begin, without gaps."""
    _, first, inverse = np.unique(label, return_index=True, return_inverse=True)
    rank = np.empty(first.size, dtype=np.int64)
    rank[np.argsort(first)] = np.arange(first.size)
    return np.asarray(rank[inverse], dtype=np.int64)


def as_measurement(schema: Schema, name: str, level: Level) -> Measurement:
    """A level of a column as a measurement of a schema whose bins are finer."""
    column = schema[name]
    assert isinstance(column, GridColumn)
    groups = np.searchsorted(level.starts, starts_of(column), side="right") - 1
    return Measurement(
        target=(name,),
        values=level.counts,
        sigma_counts=level.sigma_counts,
        merged=Coarse(fine=schema, groups={name: groups.astype(np.int64)}),
    )
