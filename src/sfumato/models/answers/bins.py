"""Bins that noise allows: many values of a column taken together, so that each bin can be seen.

Two uses. A question about two columns has one cell for each pair of bins, and a cell that holds
less than its own noise says nothing. And a noisy one-way table of an ordered column is mostly
noise between neighbors: averages over stretches of them are nearer to the truth.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import sqrt
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sfumato import check
from sfumato.errors import InputError
from sfumato.schema.columns import Category, Column

Frequencies = NDArray[np.float64]
Noise = Callable[[int], float]
"""The variance of one cell times the number of answers, by the number of cells asked about."""

FRACTION: Final = 0.5
"""The largest standard error of an average cell, as a part of what the cell holds."""

MOST_BINS: Final = 16
MOST_STRETCHES: Final = 64
MOST_BLOCKS: Final = 512
WIDE: Final = 16
"""One-way tables with fewer ordered codes than this are left as they are."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Bins:
    """A bin for each code of a column; every bin holds at least one code."""

    of: NDArray[np.int64]
    """The bin of each code, from 0 on."""

    def __post_init__(self) -> None:
        of = np.array(self.of, dtype=np.int64)
        if of.ndim != 1 or not of.size or of.min() < 0 or np.bincount(of).min() == 0:
            raise InputError(
                "bins must be numbered from 0 on, one number a code, and none may be empty"
            )
        of.setflags(write=False)
        object.__setattr__(self, "of", of)

    @property
    def codes(self) -> int:
        """The number of codes."""
        return int(self.of.size)

    @cached_property
    def count(self) -> int:
        """The number of bins."""
        return int(self.of.max()) + 1

    def sums(self, frequencies: Frequencies, *, axis: int = 0) -> Frequencies:
        """What each bin holds: a table by codes as one by bins."""
        order, starts = self._sorted
        return np.add.reduceat(np.take(frequencies, order, axis=axis), starts, axis=axis)

    def inside(self, frequencies: Frequencies) -> Frequencies:
        """The share of each code in its own bin; equal shares where the bin holds nothing."""
        held = self.sums(frequencies)[self.of]
        equal = 1 / np.bincount(self.of)[self.of]
        return np.divide(frequencies, held, out=equal, where=held > 0)

    def expand(self, table: Frequencies, frequencies: Frequencies, *, axis: int) -> Frequencies:
        """A table by bins as one by codes: within a bin codes follow their own frequencies.

        So within a bin the column is independent of the table's other axes.
        """
        shape = [1] * table.ndim
        shape[axis] = self.codes
        found: Frequencies = np.take(table, self.of, axis=axis)
        return found * self.inside(frequencies).reshape(shape)

    @cached_property
    def _sorted(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Codes by bin, and where each bin starts among them."""
        order = np.argsort(self.of, kind="stable")
        return order, np.searchsorted(self.of[order], np.arange(self.count))


def whole(codes: int) -> Bins:
    """A bin for every code."""
    return Bins(of=np.arange(check.whole(at_least=1, codes=codes)))


def even_bins(codes: int, *, most: int) -> Bins:
    """At most so many bins of about equally many neighbors: when nothing is known yet.

    >>> even_bins(7, most=3).of.tolist()
    [0, 0, 0, 1, 1, 2, 2]
    """
    count = min(check.whole(at_least=1, most=most), check.whole(at_least=1, codes=codes))
    return Bins(of=np.sort(np.arange(codes) % count))


def bins_by_mass(frequencies: Frequencies, *, most: int, ordered: int = 0) -> Bins:
    """At most so many bins that hold about equally much; a code that holds more is alone.

    The first ``ordered`` codes are merged with neighbors. The others have no neighbors: they are
    taken from the most frequent down, so that rare ones end up together.

    >>> bins_by_mass(np.array([0.1, 0.1, 0.5, 0.1, 0.1, 0.1]), most=3, ordered=6).of.tolist()
    [0, 0, 1, 2, 2, 2]
    >>> bins_by_mass(np.array([0.1, 0.1, 0.5, 0.1, 0.1, 0.1]), most=3).of.tolist()
    [1, 1, 0, 2, 2, 2]
    """
    codes, most = frequencies.size, check.whole(at_least=1, most=most)
    if codes <= most:
        return whole(codes)
    rest = ordered + np.argsort(-frequencies[ordered:], kind="stable")
    of = np.empty(codes, dtype=np.int64)
    left, held, now = float(frequencies.sum()), 0.0, 0
    for code in (*range(ordered), *rest.tolist()):
        mass = float(frequencies[code])
        # Close the bin where half of the next code would already be too much for it.
        if now < most - 1 and held > 0 and held + mass / 2 > left / (most - now):
            left, held, now = left - held, 0.0, now + 1
        of[code], held = now, held + mass
    return Bins(of=of)


def bins_allowed(answers: float, noise: Noise, *, fraction: float = FRACTION) -> int:
    """How many bins each of two columns may have when so many people answer about the pair.

    The largest B with sqrt(noise(B^2) / answers) <= fraction / B^2, the right side being the part
    of what one of B^2 equal cells holds; at least 2, below which there is nothing to ask.
    """
    check.positive(answers=answers)
    for count in range(MOST_BINS, 2, -1):
        if sqrt(noise(count**2) / answers) <= fraction / count**2:
            return count
    return 2


def ordered_codes(column: Column) -> int:
    """How many of a column's first codes have neighbors: not "other", not "missing"."""
    if not column.ordered:
        return 0
    return column.size - column.missing - (isinstance(column, Category) and column.other)


def stretches(frequencies: Frequencies, variance: float) -> Bins:
    """Stretches of neighbors whose averages fit best for the number of them.

    Of all cuts of k codes into D stretches the one of least squared residuals is found by dynamic
    programming, and D minimizes residuals + variance D (2 log(k/D) + 2). Of the form of Birgé,
    Massart 2001, "Gaussian model selection", and of Lebarbier 2005, "Detecting multiple
    change-points in the mean of Gaussian process by model selection", whose last number is 5;
    after randomized answers about real tables 2 was nearer to the truth.
    """
    check.positive(variance=variance)
    codes = frequencies.size
    residuals, ends = _residuals(frequencies), np.arange(codes + 1)
    best, before = residuals[0], []
    risks = [best[codes] + variance * (2 * np.log(codes) + 2)]
    for count in range(2, min(codes, MOST_STRETCHES) + 1):
        total = best[:, None] + residuals
        starts = total.argmin(axis=0)
        best = total[starts, ends]
        before.append(starts)
        risks.append(best[codes] + variance * count * (2 * np.log(codes / count) + 2))
    of, end = np.zeros(codes, dtype=np.int64), codes
    for number in range(int(np.argmin(risks)), 0, -1):
        start = int(before[number - 1][end])
        of[start:end] = number
        end = start
    return Bins(of=of)


def smoothed(
    frequencies: Frequencies, variance: float, *, ordered: int
) -> tuple[Frequencies, float]:
    """A noisy one-way table with its first, ordered codes averaged over ``stretches``.

    Of very many codes, blocks of neighbors are averaged first. Also the mean squared error of a
    code that is left, about: D of k stretches keep D/k of the noise, and as much is taken to be
    lost inside them.

    Args:
        frequencies: By code; they may be negative.
        variance: Of one frequency.
        ordered: How many of the first codes have neighbors: see ``ordered_codes``.
    """
    if ordered < WIDE:
        return frequencies, variance
    blocks = even_bins(ordered, most=MOST_BLOCKS)
    sizes = np.bincount(blocks.of).astype(np.float64)
    sums = blocks.sums(frequencies[:ordered])
    bins = stretches(sums / sizes, variance / float(sizes.mean()))
    means = bins.sums(sums) / bins.sums(sizes)
    found = frequencies.copy()
    found[:ordered] = means[bins.of[blocks.of]]
    kept = (min(2 * bins.count, ordered) + frequencies.size - ordered) / frequencies.size
    return found, kept * variance


def _residuals(values: Frequencies) -> Frequencies:
    """Of the values from a start (rows) up to an end (columns), squares around their mean."""
    sums = np.concatenate([[0.0], np.cumsum(values)])
    squares = np.concatenate([[0.0], np.cumsum(values**2)])
    places = np.arange(values.size + 1)
    length = places[None, :] - places[:, None]
    means = np.subtract.outer(sums, sums) ** 2 / np.maximum(length, 1)
    around = squares[None, :] - squares[:, None] - means
    return np.where(length > 0, np.maximum(around, 0.0), np.inf)
