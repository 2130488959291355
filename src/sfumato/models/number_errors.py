"""How far noise alone may move the mean and the quantiles of a published number.

Post-processing of public numbers: the published counts stand in for the real ones. Classes are
estimated independently of each other, so the errors of their counts add up as variances do; in the
tails a count is as uncertain as its prior, not as its noise; how rows lie inside a bin is known to
a part of its width. What else a model simplifies, and what was clipped at the limits, is left out.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sfumato.models.numbers import Level, consistent, level_of, starts_of, summed, tail_counts
from sfumato.schema.classes import growing_classes
from sfumato.schema.columns import GridColumn
from sfumato.schema.measurement import Measurement
from sfumato.schema.schema import Schema

Floats = NDArray[np.float64]

SHAPE: Final = 0.1
"""Of the width of a bin: how far its mean may be from where a density of the fitted slope has it.
Exponential densities that end inside a bin and that fill it differ by twice as much."""
QUANTILES: Final = (0.1, 0.25, 0.5, 0.75, 0.9)
"""Shares of the rows below a quantile of which a release tells the error."""


@dataclass(frozen=True, kw_only=True, slots=True)
class NumberError:
    """Standard errors, from noise, of what a number's published values are read for."""

    mean: float
    """In the unit of the values."""
    ranks: Mapping[float, float]
    """By share of the rows below: of that share."""

    def to_dict(self) -> dict[str, Any]:
        """For ``release.json``."""
        ranks = {f"{share:g}": float(f"{error:.3g}") for share, error in self.ranks.items()}
        return {"mean": float(f"{self.mean:.4g}"), "ranks": ranks}


def number_error(
    schema: Schema,
    name: str,
    measured: Sequence[Measurement],
    *,
    counts: Floats,
    values: Floats,
) -> NumberError | None:
    """The errors of one column; None where it was not measured by itself.

    Args:
        schema: With the bins of the release.
        name: A column of numbers, days or moments.
        measured: All that was measured of this column alone, as it was measured.
        counts: Published, of every code.
        values: In the middle of every code but that of a missing value.
    """
    own = [one for one in measured if one.sigma_counts > 0]
    size = values.size
    rows = float(counts[:size].sum())
    if not own or len(own) < len(measured) or not rows > 0:
        return None
    classes = _measured_classes(schema, name, own)
    own_class = np.searchsorted(classes.first, np.arange(counts.size), side="right") - 1
    weight = np.maximum(counts, 0.0)
    likely = np.bincount(own_class, weight, classes.first.size)
    missing = counts.size > size
    _, _, errors = tail_counts(
        classes.counts, classes.variances, widths=classes.widths, missing=missing
    )
    last = classes.first.size - missing
    inside = own_class[:size]
    mean = float(values @ weight[:size] / rows)
    even = 1 / np.bincount(inside, minlength=last)[inside]
    total = likely[inside]
    share = np.where(total > 0, weight[:size] / np.maximum(total, 1e-300), even)
    middle = np.bincount(inside, share * values, last)
    spread = np.bincount(inside, share * (values - middle[inside]) ** 2, last)
    moved = np.bincount(inside, classes.inner[:size] * (values - middle[inside]) ** 2, last)
    variance = float((errors[:last] ** 2 * (middle - mean) ** 2).sum())
    variance += float(np.minimum(moved, likely[:last] ** 2 * spread).sum())
    variance += _shape(classes.bins[:size], weight[:size], values)
    within = np.bincount(inside, classes.inner[:size], last)
    ranks = _ranks(np.asarray(likely[:last], float), errors[:last], np.asarray(within, float), rows)
    return NumberError(mean=variance**0.5 / rows, ranks=ranks)


def _shape(counted: NDArray[np.int64], weight: Floats, values: Floats) -> float:
    """How rows lie inside a bin that was counted whole: its mean is known to a tenth of its width.

    >>> _shape(np.array([0, 1, 1]), np.array([5.0, 10.0, 10.0]), np.array([0.0, 1.0, 2.0]))
    4.0
    """
    first = np.flatnonzero(np.diff(counted, prepend=-1))
    width = np.maximum.reduceat(values, first) - np.minimum.reduceat(values, first)
    return float(((SHAPE * np.add.reduceat(weight, first) * width) ** 2).sum())


def _ranks(likely: Floats, errors: Floats, within: Floats, rows: float) -> dict[float, float]:
    """Of each share the standard error of the rows below.

    That of the classes below, less the share of all rows' error; and, in the class that is cut, of
    its part below, whose variance is that of a bridge between its ends and at most that of a place
    in the class which is not known at all.
    """
    below = np.cumsum(likely) - likely
    result = {}
    for share in QUANTILES:
        part = np.clip((share * rows - below) / np.maximum(likely, 1e-9), 0.0, 1.0)
        bridge = np.minimum(within * part * (1 - part), likely**2 / 12)
        result[share] = float(((errors * (part - share)) ** 2 + bridge).sum() ** 0.5) / rows
    return result


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class _Classes:
    """Estimates of the classes of a column, and what was counted inside them."""

    first: NDArray[np.int64]
    """The first code of each class."""
    widths: NDArray[np.int64]
    """The number of values of each."""
    counts: Floats
    variances: Floats
    inner: Floats
    """Of each code the variance of its count beside its class."""
    bins: NDArray[np.int64]
    """Of each code the finest bin that was counted."""


def _measured_classes(schema: Schema, name: str, own: Sequence[Measurement]) -> _Classes:
    column: Any = schema[name]
    if not (isinstance(column, GridColumn) and column.on_grid):
        return _by_code(column.size, own, np.arange(column.size))
    if column.bins is None:
        classes = growing_classes(column) or tuple(range(column.cells))
        return _by_code(column.size, own, np.array([*classes, *[column.cells] * column.missing]))
    levels, others = _ladder(schema, name, own)
    if not levels:
        return _by_code(column.size, own, np.arange(column.size))
    starts, first = starts_of(column), levels[0].starts
    parts = [summed(one, groups, first, starts) for one, groups in others]
    estimates, variances = consistent([*parts, *levels])
    bins = np.searchsorted(levels[-1].starts, starts, side="right") - 1
    return _Classes(
        first=np.searchsorted(starts, first),
        widths=np.diff(np.append(first, column.cells + column.missing)),
        counts=estimates[len(parts)],
        variances=variances[len(parts)],
        inner=variances[-1][bins] / np.bincount(bins)[bins],
        bins=bins,
    )


def _by_code(size: int, own: Sequence[Measurement], first: NDArray[np.int64]) -> _Classes:
    """The same where every code was counted."""
    whole = [one for one in own if one.values.size == size]
    sigmas = [one.sigma_counts for one in whole] or [max(one.sigma_counts for one in own)]
    precision = np.array(sigmas) ** -2.0
    variance = float(1 / precision.sum())
    counts = np.zeros(size)
    if whole:
        counts = np.tensordot(precision * variance, [one.values for one in whole], axes=1)
    parent = np.searchsorted(first, np.arange(size), side="right") - 1
    widths = np.bincount(parent)
    return _Classes(
        first=first,
        widths=widths,
        counts=np.bincount(parent, counts).astype(np.float64),
        variances=np.asarray(variance * widths, dtype=np.float64),
        inner=np.full(size, variance),
        bins=np.arange(size),
    )


def _ladder(
    schema: Schema, name: str, own: Sequence[Measurement]
) -> tuple[list[Level], list[tuple[Measurement, NDArray[np.int64]]]]:
    """Levels that divide each other, the coarsest first, and what was counted otherwise."""
    levels: list[Level] = []
    others = []
    for one in sorted(own, key=lambda each: each.values.size):
        groups = None if one.merged is None else one.merged.groups.get(name)
        if groups is not None and (np.diff(groups) < 0).any():
            others.append((one, groups))
            continue
        level = level_of(schema, one)
        if not levels or np.isin(levels[-1].starts, level.starts).all():
            levels.append(level)
        elif groups is not None:
            others.append((one, groups))
    return levels, others
