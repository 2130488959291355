"""How far two sets of numbers are apart: the mathematics, as pure functions of arrays.

Every formula stands above its function; the tests compare with scipy. ``NaN`` is no value, and is
left out. Of numbers without an end (infinite) only the order counts: they enter shares, ranks and
the distance of Kolmogorov and Smirnov, but no mean.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]
Codes = NDArray[np.int64]

DECILES: Final = tuple(tenth / 10 for tenth in range(1, 10))
BINS: Final = 16
"""Codes of a number in pairs: values alone and bins together, the missing ones not counted."""
SPREAD_SHARE: Final = 0.1
"""Of the standard deviation: a mean nearer to 0 than this is not divided by itself."""


def relative_error(published: float, real: float, *, spread: float) -> float:
    """|published - real| / max(|real|, spread / 10): the error of a mean or of a quantile.

    ``spread`` is the real standard deviation: what is near 0 by chance has no error without end.
    Where both are 0 any difference is an error of 1; so is a figure that is not there (``NaN``).

    >>> round(relative_error(4660, 1485, spread=2909), 2), relative_error(1, 0, spread=0)
    (2.14, 1.0)
    """
    gap = abs(published - real)
    if not np.isfinite(gap):
        return 1.0
    unit = max(abs(real), SPREAD_SHARE * spread)
    if unit > 0:
        return float(gap / unit)
    return float(gap > 0)


def quantiles(ordered: Values, shares: Sequence[float]) -> Values:
    """The values below which these shares lie, between two values in proportion (as in numpy).

    Args:
        ordered: Sorted, finite.
        shares: From 0 to 1.
    """
    if not ordered.size:
        return np.full(len(shares), np.nan)
    at = np.asarray(shares) * (ordered.size - 1)
    below = np.floor(at).astype(np.int64)
    above = np.minimum(below + 1, ordered.size - 1)
    part = at - below
    return np.asarray((1 - part) * ordered[below] + part * ordered[above])


def heaviest_value(ordered: Values) -> float:
    """The value that most rows have, the least of several; ``NaN`` of none.

    >>> heaviest_value(np.array([0.0, 1.0, 1.0, 7.0]))
    1.0
    """
    if not ordered.size:
        return float("nan")
    starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
    lengths = np.diff(np.append(starts, ordered.size))
    return float(ordered[starts[np.argmax(lengths)]])


def share_of_value(ordered: Values, value: float) -> float:
    """The share of rows that have exactly this value; 0 of none."""
    if not ordered.size:
        return 0.0
    first, last = np.searchsorted(ordered, value), np.searchsorted(ordered, value, side="right")
    return float((last - first) / ordered.size)


def kolmogorov_smirnov(real: Values, published: Values) -> float:
    """The largest |F(x) - G(x)| of the shares of rows up to x; 1 where one side is empty.

    Args:
        real: Sorted.
        published: Sorted.
    """
    if not real.size or not published.size:
        return float(real.size != published.size)
    steps = _merged(real, published)
    return float(np.max(np.abs(_shares_below(real, steps) - _shares_below(published, steps))))


def wasserstein(real: Values, published: Values) -> float:
    """The integral over x of |F(x) - G(x)|: how far values must move, on average, to be the others.

    The Wasserstein distance of order 1 on the line; in the unit of the values. ``NaN`` where one
    side is empty.

    Args:
        real: Sorted, finite.
        published: Sorted, finite.
    """
    if not real.size or not published.size:
        return float("nan")
    steps = _merged(real, published)
    gaps = np.abs(_shares_below(real, steps[:-1]) - _shares_below(published, steps[:-1]))
    return float(np.sum(gaps * np.diff(steps)))


def group_means(groups: Codes, values: Values, size: int) -> tuple[Values, Values]:
    """The mean of the values of each group, ``NaN`` of an empty one, and how many there are."""
    there = np.isfinite(values)
    if not there.all():
        groups, values = groups[there], values[there]
    counts = np.bincount(groups, minlength=size).astype(np.float64)
    sums = np.bincount(groups, weights=values, minlength=size)
    return np.divide(sums, counts, out=np.full(size, np.nan), where=counts > 0), counts


def dense_codes(values: Values) -> Codes:
    """The index of each value among the different values, from low to high; -1 of ``NaN``."""
    different, codes = np.unique(values, return_inverse=True)
    return np.where(np.isnan(values), -1, codes) if np.isnan(different).any() else codes


def rank_correlation(one: Codes, other: Codes) -> float:
    """Spearman's rank correlation of the rows where both have a value, ties at their mean rank.

    Pearson's correlation of the ranks (Spearman 1904); 0 where one of the columns shows a single
    value, as nothing goes up or down with it.

    Args:
        one: ``dense_codes`` of a column.
        other: Those of another one.
    """
    both = (one >= 0) & (other >= 0)
    if not both.all():
        one, other = one[both], other[both]
    x, y = _centered_ranks(one), _centered_ranks(other)
    spread = float(np.dot(x, x) * np.dot(y, y))
    return float(np.clip(np.dot(x, y) / np.sqrt(spread), -1, 1)) if spread > 0 else 0.0


def rank_correlations(columns: Sequence[Values]) -> Values:
    """``rank_correlation`` of every two columns, as a matrix with 1 on the diagonal."""
    codes = [dense_codes(values) for values in columns]
    whole = [None if (each < 0).any() else _unit_ranks(each) for each in codes]
    matrix = np.eye(len(codes))
    for i, one in enumerate(codes):
        for j in range(i):
            x, y = whole[i], whole[j]
            if x is None or y is None:
                value = rank_correlation(one, codes[j])
            else:
                value = float(np.clip(np.dot(x, y), -1, 1))
            matrix[i, j] = matrix[j, i] = value
    return matrix


@dataclass(frozen=True, kw_only=True, eq=False)
class QuantileCoding:
    """A coding of numbers that real values decide: heavy values alone, bins of even mass between.

    The same coding is applied to real and to published values. So values that a bad bin of the
    schema has moved lie in other codes, and can't hide.
    """

    alone: Values
    """Values that have a code of their own, from low to high."""
    cuts: Values
    """Where one bin ends and the next begins: a value at a cut lies above it."""

    @staticmethod
    def of(values: Values, bins: int = BINS) -> "QuantileCoding":
        """Single values of a share of at least 1/(2 bins), and bins of the rest.

        At most ``bins - 1`` single values, the heaviest first; the other rows in
        max(1, bins - single values) bins of even mass.
        """
        ordered = np.sort(values[~np.isnan(values)])
        different, counts = np.unique(ordered, return_counts=True)
        heavy = np.flatnonzero(counts >= ordered.size / (2 * bins))
        heavy = heavy[np.argsort(-counts[heavy], kind="stable")][: bins - 1]
        alone = np.sort(different[heavy])
        rest = ordered[~np.isin(ordered, alone)]
        parts = max(1, bins - alone.size)
        indices = (np.arange(1, parts) * rest.size) // parts
        return QuantileCoding(alone=alone, cuts=np.unique(rest[indices]) if rest.size else rest)

    @property
    def size(self) -> int:
        """The number of codes: values alone, bins, and the one of no value."""
        return self.alone.size + self.cuts.size + 2

    def codes(self, values: Values) -> Codes:
        """The code of each value; ``NaN`` has the last one."""
        codes = self.alone.size + np.searchsorted(self.cuts, values, side="right")
        if self.alone.size:
            at = np.minimum(np.searchsorted(self.alone, values), self.alone.size - 1)
            codes = np.where(self.alone[at] == values, at, codes)
        return np.where(np.isnan(values), self.size - 1, codes)


def pair_counts(x: Codes, y: Codes, shape: tuple[int, int]) -> Codes:
    """How many rows have each pair of codes."""
    return np.bincount(x * shape[1] + y, minlength=shape[0] * shape[1])


def share_distance(real: Codes, published: Codes) -> float:
    """Total variation: half the summed difference of shares; 1 where one side has no rows."""
    if not real.any() or not published.any():
        return float(real.any() != published.any())
    return float(np.abs(real / real.sum() - published / published.sum()).sum() / 2)


def _merged(one: Values, other: Values) -> Values:
    merged = np.concatenate([one, other])
    merged.sort(kind="stable")  # two runs that are sorted: merged in one pass
    return merged


def _shares_below(ordered: Values, steps: Values) -> Values:
    """The share of values up to and including each step."""
    return np.asarray(np.searchsorted(ordered, steps, side="right") / ordered.size)


def _unit_ranks(codes: Codes) -> Values:
    """The centered ranks of all rows as a vector of length 1; of a single value 0."""
    ranks = _centered_ranks(codes)
    length = float(np.sqrt(np.dot(ranks, ranks)))
    return ranks / length if length > 0 else ranks


def _centered_ranks(codes: Codes) -> Values:
    """Of each row the mean rank of its value, less the mean rank of all."""
    if not codes.size:
        return np.empty(0)
    counts = np.bincount(codes)
    ranks = np.cumsum(counts) - (counts - 1) / 2
    return np.asarray(ranks[codes] - (codes.size + 1) / 2)
