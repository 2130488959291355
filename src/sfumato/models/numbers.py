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
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sfumato.models.model import project
from sfumato.schema.classes import first_classes, growing_classes, round_pieces
from sfumato.schema.columns import GridColumn
from sfumato.schema.measurement import Coarse, KnownNumbers, Measurement
from sfumato.schema.schema import Marginal, Schema

Floats = NDArray[np.float64]
Cells = NDArray[np.int64]

SURE_SIGMAS: Final = 4.0
"""A bin is divided if its count is above this many standard deviations of its noise: an empty one
is so once in 30,000 times."""
HEAVY: Final = 128
"""And if it holds more than one row in this number: finer bins are drawn from evenly, at little
loss."""
MOST_BINS: Final = 1_024
"""Bins of one column; beyond, the lightest of those that could be divided stay whole."""
NEAR_SIGMAS: Final = 3.0
"""A class next to one that clearly holds rows holds some itself above this many standard deviations
of noise; farther out only above ``SURE_SIGMAS``, as there are many empty classes."""
GROUPS: Final = (4, 32)
"""The fewest and the most groups of a number in tables of several columns."""
GROUP_FACTOR: Final = 1.3
"""How many more groups than the cube root of the rows over twice the noise: pairs of groups that
most rows are in are worth more. From 8 to 17 groups on the made-up tables of ``bench/values.py``,
about 11 have the least errors of pairs and of rank correlations."""
STEEPEST: Final = 5.0
"""The most by which the logarithm of a density changes inside a class: a factor of 150."""
FEW_ROWS: Final = 3.0
"""Where fewer rows than this are expected in all that lies farther out there are none: they would
stand far from all others, where only noise could have told of them. By judgment."""
SLOPES: Final = np.linspace(-12, 12, 48)
"""By how much the logarithm of a density may change inside a class that was divided; none is 0."""
SLOPE_SPREAD: Final = 3.0
"""The standard deviation of that around what the neighbors tell; by judgment."""
FEWEST_PARTS: Final = 4
"""Of a class, from which they tell how its density changes."""
DECLINE: Final = 4.0
"""Tails are expected to fall by this factor from a class to the next."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Level:
    """Noisy counts of one division of a column's values."""

    starts: Cells
    """The first cell of each bin; of missing values the cell after all."""
    counts: Floats
    sigma_counts: float | Floats
    """The standard deviation of the noise, of all counts or of each."""


def starts_of(column: GridColumn) -> Cells:
    """Where the bins of a column begin, missing values after all."""
    bins = range(column.cells) if column.bins is None else column.bins
    return np.array([*bins, *([column.cells] * column.missing)], dtype=np.int64)


def finer(column: GridColumn, level: Level, *, rows: float) -> tuple[int, ...]:
    """The bins with those divided that hold many rows for sure."""
    first = [int(start) for start in level.starts if start < column.cells]
    last = [*(start - 1 for start in first[1:]), column.cells - 1]
    least = max(SURE_SIGMAS * float(np.max(level.sigma_counts)), rows / HEAVY)
    pieces = {
        index: _with_round_values(round_pieces(column, first[index], last[index]), last[index])
        for index in range(len(first))
        if last[index] > first[index] and level.counts[index] > least
    }
    starts, room = set(first), MOST_BINS - len(first)
    for index in sorted(pieces, key=lambda index: -level.counts[index]):
        if len(pieces[index]) - 1 <= room:
            starts |= set(pieces[index])
            room -= len(pieces[index]) - 1
    return tuple(sorted(starts))


def _with_round_values(pieces: tuple[int, ...], last: int) -> tuple[int, ...]:
    """Pieces whose first value is one of its own: people round, and many rows are there.

    More bins of a level bring no more noise to each, and what is not clear shrinks to its expected
    share.
    """
    return tuple(sorted({*pieces, *(piece + 1 for piece in pieces if piece < last)}))


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
        for upper, lower in pairwise(levels)
    ]
    ups: list[Floats] = []
    variances: list[Floats] = []
    for index in reversed(range(len(levels))):
        own = levels[index].counts.astype(np.float64)
        noise = np.broadcast_to(np.maximum(levels[index].sigma_counts, 1e-9) ** 2, own.shape)
        if not ups:
            ups.append(own)
            variances.append(noise)
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
    column: GridColumn, levels: Sequence[Level], starts: Cells, *, total: float
) -> tuple[Floats, Floats]:
    """Counts of bins that could exist, and how uncertain they are, from all levels.

    Of the public classes first, in whose tails noise does not become rows; then bin by bin what is
    inside, as even as the counts allow.

    Args:
        column: On a grid.
        levels: From the coarsest to the finest; without any, nothing is known.
        starts: Where the bins begin, missing values after all; they divide those of the levels.
        total: The number of rows.
    """
    end = column.cells + column.missing
    if not levels:
        widths = np.diff(np.append(starts, end)).astype(np.float64)
        return total * widths / widths.sum(), np.full(starts.size, total**2)
    estimates, variances = consistent(levels)
    classes = levels[0].starts
    counts = _without_noise_in_tails(
        estimates[0],
        variances[0],
        widths=np.diff(np.append(classes, end)),
        total=total,
        missing=column.missing,
    )
    slopes = _slopes(counts, variances[0], np.append(classes, end), missing=column.missing)
    if len(levels) > 1:
        slopes = _refined(slopes, levels[1].starts, estimates[1], variances[1], classes, end)
    for index in range(1, len(levels)):
        upper, lower = levels[index - 1].starts, levels[index].starts
        weights = _weights(lower, end, classes, slopes)
        counts = _inside(counts, upper, lower, weights, estimates[index], variances[index])
    parent = np.searchsorted(levels[-1].starts, starts, side="right") - 1
    weights = _weights(starts, end, classes, slopes)
    share = weights / np.bincount(parent, weights)[parent]
    likely = _without_outermost(counts[parent] * share, size=starts.size - column.missing)
    return likely, variances[-1][parent] * share


def _without_outermost(counts: Floats, *, size: int) -> Floats:
    """Counts of the same sum without the few rows that would stand farthest out on either side.

    Args:
        counts: Of bins in order, none negative, missing values after the first ``size``.
        size: The number of bins.
    """
    below, above = np.cumsum(counts[:size]), np.cumsum(counts[:size][::-1])[::-1]
    far = (below < FEW_ROWS) | (above < FEW_ROWS)
    rest = float(counts[:size][~far].sum())
    if not rest > 0:
        return counts
    result = counts.copy()
    result[:size] = np.where(far, 0.0, counts[:size] * (float(counts[:size].sum()) / rest))
    return result


def _slopes(counts: Floats, variances: Floats, ends: Cells, *, missing: bool) -> Floats:
    """How the logarithm of the density changes inside each class, by cell, from its neighbors.

    Amounts thin out: inside a wide class an even density would put too many rows at its far end.
    Of a class whose own count, or whose neighbors' counts, are lost in noise nothing is said.
    """
    size = counts.size - missing
    widths = np.diff(ends[: size + 1]).astype(np.float64)
    middles = (ends[:size] + ends[1 : size + 1]) / 2
    clear = counts[:size] > np.sqrt(variances[:size])
    density = np.log(np.maximum(counts[:size], 1e-9) / widths)
    slopes = np.zeros(counts.size)
    for index in np.flatnonzero(clear & (widths > 1)):
        before = index - 1 if index > 0 and clear[index - 1] else index
        after = index + 1 if index + 1 < size and clear[index + 1] else index
        if before < after:
            slope = (density[after] - density[before]) / (middles[after] - middles[before])
            most = STEEPEST / widths[index]
            slopes[index] = min(max(slope, -most), most)
    return slopes


def _refined(
    slopes: Floats, starts: Cells, values: Floats, noise: Floats, classes: Cells, end: int
) -> Floats:
    """The slopes that fit the parts of each class best, near those that its neighbors tell.

    A class at the end of the values has a neighbor on one side only, and densities of other forms
    than an exponential are steeper far out. What stands out by itself counts as little.
    """
    parent = np.searchsorted(classes, starts, side="right") - 1
    widths = np.diff(np.append(classes, end)).astype(np.float64)
    ends = np.append(starts[1:], end)
    result = slopes.copy()
    for index in np.flatnonzero(np.bincount(parent) >= FEWEST_PARTS):
        own = np.flatnonzero(parent == index)
        lows, highs = ((each[own] - classes[index]) / widths[index] for each in (starts, ends))
        mass = (np.exp(np.outer(SLOPES, highs)) - np.exp(np.outer(SLOPES, lows))) / SLOPES[:, None]
        expected = mass / mass.sum(axis=1, keepdims=True) * values[own].sum()
        misfit = np.minimum((values[own] - expected) ** 2 / noise[own], SURE_SIGMAS**2)
        away = (SLOPES - slopes[index] * widths[index]) / SLOPE_SPREAD
        best = int(np.argmin(misfit.sum(axis=1) + away**2))
        result[index] = SLOPES[best] / widths[index]
    return result


def _weights(starts: Cells, end: int, classes: Cells, slopes: Floats) -> Floats:
    """The mass of each bin if inside every class the density is exponential with its slope."""
    parent = np.searchsorted(classes, starts, side="right") - 1
    lows, highs = starts.astype(np.float64), np.append(starts[1:], end).astype(np.float64)
    slope, origin = slopes[parent], classes[parent].astype(np.float64)
    flat = np.abs(slope) * (highs - origin) < 1e-9
    near, far = (np.where(flat, 0.0, slope * (each - origin)) for each in (lows, highs))
    return np.where(flat, highs - lows, (np.exp(far) - np.exp(near)) / np.where(flat, 1.0, slope))


def _inside(
    counts: Floats,
    upper: Cells,
    lower: Cells,
    weights: Floats,
    estimates: Floats,
    variances: Floats,
) -> Floats:
    """Likely counts of the parts of each bin, which sum to the bin's.

    What differs clearly from the expected density stays; the other differences shrink as noise
    would explain them. James, Stein 1961, "Estimation with quadratic loss", around that density.
    """
    parent = np.searchsorted(upper, lower, side="right") - 1
    result = counts[parent].astype(np.float64)
    for index in np.flatnonzero(np.bincount(parent) > 1):
        own = np.flatnonzero(parent == index)
        values, noise, weight = estimates[own].copy(), variances[own], weights[own]
        surplus = values - values.sum() * weight / weight.sum()
        rest = np.abs(surplus) <= SURE_SIGMAS * np.sqrt(noise)
        if rest.any():
            expected = values[rest].sum() * weight[rest] / weight[rest].sum()
            surplus = values[rest] - expected
            freedom = max(int(rest.sum()) - 1, 1) * float(noise[rest].mean())
            shrink = max(0.0, 1 - freedom / max(float((surplus**2).sum()), 1e-9))
            values[rest] = expected + shrink * surplus
        result[own] = project(values, float(counts[index]))
    return result


def smoother(
    column: GridColumn, levels: Sequence[Level], bins: tuple[int, ...], *, rows: float
) -> tuple[int, ...]:
    """The bins with those divided whose rows should not be drawn evenly: no count, no cost."""
    if not levels:
        return bins
    starts = np.array([*bins, *([column.cells] * column.missing)], dtype=np.int64)
    counts, _ = likely_counts(column, levels, starts, total=rows)
    ends = np.append(starts, column.cells + column.missing)
    result = set(bins)
    for index in np.argsort(-counts, kind="stable"):
        first, last = int(starts[index]), int(ends[index + 1]) - 1
        if first >= last or first >= column.cells:
            continue
        pieces = round_pieces(column, first, last)
        if counts[index] >= 1 and len(result) + len(pieces) - 1 <= MOST_BINS:
            result |= set(pieces)
    return tuple(sorted(result))


def _without_noise_in_tails(
    sums: Floats, noise: Floats, *, widths: Cells, total: float, missing: bool
) -> Floats:
    """Counts of classes that could exist, small where only noise says that there are rows."""
    result, tails, _ = tail_counts(sums, noise, widths=widths, missing=missing)
    rest = total - float(result[tails].sum())
    if rest < 0:  # fewer rows than even the tails seem to hold
        return project(np.where(tails, result, 0.0), total)
    result[~tails] = project(result[~tails], rest)
    return result


def tail_counts(
    sums: Floats, noise: Floats, *, widths: Cells, missing: bool
) -> tuple[Floats, NDArray[np.bool_], Floats]:
    """Counts of classes with likely ones in the tails, which those are, and standard errors.

    Beyond the outermost class that clearly holds rows, a class is expected to hold a quarter of
    the one before it, or less where the last clear ones fell faster, give or take as much: the
    count is the mean of that normal prior after the measurement. Cutting at zero alone would turn
    noise into rows far from all others, which are what a mean hangs on.

    Args:
        sums: Noisy counts of the classes in order, missing values last.
        noise: The variance of each.
        widths: The number of cells of each; a last one that the limit cuts short is expected to
            hold less.
        missing: Whether the last one is of missing values.
    """
    size = sums.size - missing
    sigmas = sums[:size] / np.sqrt(np.maximum(noise[:size], 1e-18))
    clear = np.flatnonzero(sigmas > SURE_SIGMAS)
    tails = np.zeros(sums.size, dtype=np.bool_)
    result, errors = sums.copy(), np.sqrt(noise)
    if not clear.size:
        return result, tails, errors
    for last, step, past in ((int(clear[-1]), 1, size), (int(clear[0]), -1, -1)):
        while last + step != past and sigmas[last + step] > NEAR_SIGMAS:
            last += step
        before, decline = float(sums[last]), DECLINE
        if 0 <= last - step < size and sigmas[last - step] > NEAR_SIGMAS:
            decline = max(DECLINE, float(sums[last - step]) / before)
        for index in range(last + step, past, step):
            cut = min(1.0, widths[index] / widths[index - 1]) if index == size - 1 else 1.0
            prior = max(before * cut / decline, 1e-9)
            own, variance = float(sums[index]), max(float(noise[index]), 1e-9)
            mean = (own / variance + 1 / prior) / (1 / variance + 1 / prior**2)
            likely = min(max(mean, 0.0), DECLINE * prior)
            result[index] = likely
            loose = max(prior, before * cut / DECLINE)  # how steep a tail falls is not known either
            errors[index] = (1 / variance + 1 / loose**2) ** -0.5
            tails[index] = True
            decline = max(decline, before * cut / max(likely, 1e-9))  # tails fall no less steeply
            before = likely
    return result, tails, errors


def improved(
    schema: Schema,
    measurements: Sequence[Measurement],
    *,
    known: KnownNumbers | None = None,
    total: float,
) -> list[Measurement]:
    """Measurements, those of each number by itself as one estimate of counts that could exist.

    Args:
        schema: The columns.
        measurements: Of any marginals.
        known: Counts of single columns by coarser bins.
        total: The number of rows.
    """
    single: dict[Marginal, list[Measurement]] = {
        (c.name,): []
        for c in schema
        if isinstance(c, GridColumn) and c.on_grid and not c.adaptive and c.cells > 1
    }
    result = []
    for one in measurements:
        own = single.get(one.target) if isinstance(one.target, tuple) else None
        if own is None or one.sigma_counts == 0:
            result.append(one)
            continue
        if not own:
            result.append(one)  # in its place, the estimate
        own.extend(one.as_measured or [one])
    levels = () if known is None else known.levels
    for index, one in enumerate(result):
        if isinstance(one.target, tuple) and single.get(one.target) and one.sigma_counts > 0:
            before = [each for each in levels if each.target == one.target]
            groups = None if known is None else known.groups.groups.get(one.columns[0])
            own = single[one.target]
            result[index] = _improved(schema, before, own, groups=groups, total=total)
    return result


def _improved(
    schema: Schema,
    levels: Sequence[Measurement],
    own: Sequence[Measurement],
    *,
    groups: NDArray[np.int64] | None,
    total: float,
) -> Measurement:
    """One column from all that was measured of it."""
    name = own[0].columns[0]
    column = schema.grid(name)
    if column.bins is None:
        return _without_noise_far_out(column, own, total=total)
    starts = starts_of(column)
    counted = [(one, one.merged.groups[name]) for one in own if one.merged is not None]
    fine = [level_of(schema, one) for one in own if one.merged is None]
    ladder = [level_of(schema, one) for one in levels]
    if ladder:  # what parts say of the first level's classes
        ladder = [
            *(summed(one, parts, ladder[0].starts, starts) for one, parts in counted),
            *ladder,
        ]
    likely, variances = likely_counts(column, [*ladder, *fine], starts, total=total)
    classes = np.searchsorted(ladder[0].starts if ladder else starts, starts, side="right") - 1
    for one, parts in counted:
        likely, variances = _with_parts(likely, variances, one, parts, classes)
    own_groups = np.arange(starts.size) if groups is None else groups
    sizes = np.bincount(own_groups)
    noise = float(np.mean(np.bincount(own_groups, variances) / sizes))
    return Measurement(
        target=own[0].target,
        values=likely,
        sigma_counts=noise**0.5,
        as_measured=tuple(own),
        variances=variances,
    )


def _without_noise_far_out(
    column: GridColumn, own: Sequence[Measurement], *, total: float
) -> Measurement:
    """A column of few values, each counted: in its tail, as likely as classes of values say.

    A value that clearly holds rows by itself keeps its count, as a top code far out does, and says
    nothing of its class. Counts elsewhere stay as they were measured. A column without a zero has
    no tail: there is no reason why its last values should be rare.
    """
    precision = np.array([max(one.sigma_counts, 1e-9) ** -2.0 for one in own])
    counts = np.tensordot(precision / precision.sum(), [one.values for one in own], axes=1)
    sigma = float(precision.sum() ** -0.5)
    classes = growing_classes(column)
    if not classes:
        return (
            own[0]
            if len(own) == 1
            else replace(own[0], values=counts, sigma_counts=sigma, as_measured=tuple(own))
        )
    starts = starts_of(column)
    ends = np.array([*classes, *([column.cells] * column.missing)])
    parent = np.searchsorted(ends, starts, side="right") - 1
    heavy = (counts > SURE_SIGMAS * sigma) & (np.bincount(parent)[parent] > 1)
    rest = ~heavy
    sizes = np.bincount(parent[rest], minlength=ends.size)
    counted = np.where(rest | (sizes[parent] == 0), counts, 0.0)
    sums = np.bincount(parent, counted).astype(np.float64)
    noise = np.maximum(sizes, 1) * sigma**2
    widths = np.bincount(parent)
    likely, tails, _ = tail_counts(sums, noise, widths=widths, missing=column.missing)
    values, size = counts.copy(), column.cells
    for index in np.flatnonzero(tails):
        inside = (parent == index) & rest
        values[inside] = project(counts[inside], float(likely[index]))
    outside = np.where(tails[parent] & rest, values, np.inf)[:size]
    far = np.minimum(np.cumsum(outside), np.cumsum(outside[::-1])[::-1]) < FEW_ROWS
    values[:size][far] = 0.0
    return replace(own[0], values=values, sigma_counts=sigma, as_measured=tuple(own))


def summed(one: Measurement, parts: Cells, classes: Cells, starts: Cells) -> Level:
    """Counts of parts as one level of the classes that they divide."""
    first = starts[np.unique(parts, return_index=True)[1]]
    inside = np.searchsorted(classes, first, side="right") - 1
    numbers = np.bincount(inside, minlength=classes.size)
    return Level(
        starts=classes,
        counts=np.bincount(inside, one.values, classes.size).astype(np.float64),
        sigma_counts=one.sigma_counts * np.sqrt(numbers),
    )


def _with_parts(
    counts: Floats, variances: Floats, one: Measurement, parts: Cells, classes: Cells
) -> tuple[Floats, Floats]:
    """Likely counts whose sums over parts are moved to a measurement of these, by precision.

    Classes keep their counts, and the bins of a part their shares: a surplus dealt to bins by their
    variances would put rows into tails, where only noise said that there could be some.
    """
    sums, variance = np.bincount(parts, counts), np.bincount(parts, variances)
    gain = variance / (variance + max(one.sigma_counts, 1e-9) ** 2)
    pooled = sums + gain * (one.values - sums)
    class_of = classes[np.unique(parts, return_index=True)[1]]
    totals = np.bincount(classes, counts)
    for index in np.unique(class_of):
        own = np.flatnonzero(class_of == index)
        pooled[own] = project(pooled[own], float(totals[index]))
    even = (1 / np.bincount(parts))[parts]
    share = np.where(sums[parts] > 0, counts / np.maximum(sums[parts], 1e-300), even)
    return pooled[parts] * share, variances * (1 - gain[parts])


def level_of(schema: Schema, one: Measurement) -> Level:
    """The level that ``as_measurement`` made a measurement of."""
    name = one.columns[0]
    starts = starts_of(schema.grid(name))
    if one.merged is not None and name in one.merged.groups:
        groups = one.merged.groups[name]
        starts = starts[np.flatnonzero(np.diff(groups, prepend=-1))]
    return Level(starts=starts, counts=one.values, sigma_counts=one.sigma_counts)


def estimated_counts(
    schema: Schema, name: str, levels: Sequence[Measurement], *, total: float
) -> Floats:
    """Likely counts of the bins of a column, from its levels alone."""
    column = schema.grid(name)
    starts = starts_of(column)
    ladder = [level_of(schema, one) for one in levels]
    return likely_counts(column, ladder, starts, total=total)[0]


def group_count(rows: float, sigma: float) -> int:
    """How many groups of a number a table of two columns holds: so that noise and bins cost alike.

    With K groups a side, noise of sigma a cell is a total variation of about K^2 sigma / (2 n), and
    what lies inside a group about 1 / (2 K): least together at a K of the order of the cube root of
    n / (2 sigma).
    """
    return int(np.clip(round(GROUP_FACTOR * (rows / (2 * max(sigma, 1e-9))) ** (1 / 3)), *GROUPS))


def even_groups(column: GridColumn, counts: Floats, *, groups: int) -> NDArray[np.int64]:
    """For each bin the number of its group: heavy single values alone, the rest of even mass.

    Args:
        column: On a grid; its missing values stay alone.
        counts: Of its bins, none negative.
        groups: How many to make, beside the missing values.
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


def cut_at_classes(column: GridColumn, groups: NDArray[np.int64]) -> NDArray[np.int64]:
    """Groups of bins, cut where public classes begin."""
    starts = starts_of(column)
    classes = np.array([*first_classes(column), *([column.cells] * column.missing)])
    parent = np.searchsorted(classes, starts, side="right") - 1
    return _in_order(groups * classes.size + parent)


def _in_order(label: NDArray[np.int64]) -> NDArray[np.int64]:
    """Groups numbered by where they begin, without gaps."""
    _, first, inverse = np.unique(label, return_index=True, return_inverse=True)
    rank = np.empty(first.size, dtype=np.int64)
    rank[np.argsort(first)] = np.arange(first.size)
    return np.asarray(rank[inverse], dtype=np.int64)


def as_measurement(schema: Schema, name: str, level: Level) -> Measurement:
    """A level of a column as a measurement of a schema whose bins are finer."""
    groups = np.searchsorted(level.starts, starts_of(schema.grid(name)), side="right") - 1
    return Measurement(
        target=(name,),
        values=level.counts,
        sigma_counts=float(np.max(level.sigma_counts)),
        merged=Coarse(fine=schema, groups={name: groups.astype(np.int64)}),
    )
