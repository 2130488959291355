"""Noisy tables of one and two columns: bins that the noise allows, answers, and consistency.

Bins have two uses. A question about two columns has one cell for each pair of bins, and a cell that
holds less than its own noise says nothing. And a noisy one-way table of an ordered column is mostly
noise between neighbors: averages over stretches of them are nearer to the truth.

Tables estimated from different answers contradict each other: each says something else about the
attributes they share. The agreed tables are the nearest ones in weighted least squares; all that is
known of an attribute goes into it, so errors fall.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import isfinite, sqrt
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sfumato import check
from sfumato.errors import InputError, InternalError
from sfumato.models.model import project
from sfumato.schema.columns import Category, Column
from sfumato.schema.schema import Schema

Frequencies = NDArray[np.float64]
Noise = Callable[[int], float]
"""The variance of one cell times the number of answers, by the number of cells asked about."""

FRACTION: Final = 0.5
"""The largest standard error of an average cell, as a part of what the cell holds."""

MOST_BINS: Final = 16
"""The most bins of a column in a question about a pair: a table of 256 cells."""
MOST_STRETCHES: Final = 64
"""The most stretches that a one-way table is smoothed to; bounds the time."""
MOST_BLOCKS: Final = 512
"""Blocks of neighbors that a longer one-way table is averaged to first; bounds the time."""
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
        totals = self.sums(frequencies)[self.of]
        equal = 1 / np.bincount(self.of)[self.of]
        return np.divide(frequencies, totals, out=equal, where=totals > 0)

    def expand(self, table: Frequencies, frequencies: Frequencies, *, axis: int) -> Frequencies:
        """A table by bins as one by codes: within a bin codes follow their own frequencies.

        So within a bin the column is independent of the table's other axes.
        """
        shape = [1] * table.ndim
        shape[axis] = self.codes
        result: Frequencies = np.take(table, self.of, axis=axis)
        return result * self.inside(frequencies).reshape(shape)

    @cached_property
    def _sorted(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Codes by bin, and where each bin starts among them."""
        order = np.argsort(self.of, kind="stable")
        return order, np.searchsorted(self.of[order], np.arange(self.count))


def whole(codes: int) -> Bins:
    """A bin for every code."""
    return Bins(of=np.arange(check.whole(at_least=1, codes=codes)))


def even_bins(codes: int, *, most: int) -> Bins:
    """At most ``most`` bins of about equally many neighbors: when nothing is known yet.

    >>> even_bins(7, most=3).of.tolist()
    [0, 0, 0, 1, 1, 2, 2]
    """
    count = min(check.whole(at_least=1, most=most), check.whole(at_least=1, codes=codes))
    return Bins(of=np.sort(np.arange(codes) % count))


def bins_by_mass(frequencies: Frequencies, *, most: int, ordered: int = 0) -> Bins:
    """At most ``most`` bins of about equal mass; a code with more mass is alone.

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
    left, mass_in_bin, now = float(frequencies.sum()), 0.0, 0
    for code in (*range(ordered), *rest.tolist()):
        mass = float(frequencies[code])
        # Close the bin where half of the next code would already be too much for it.
        if now < most - 1 and mass_in_bin > 0 and mass_in_bin + mass / 2 > left / (most - now):
            left, mass_in_bin, now = left - mass_in_bin, 0.0, now + 1
        of[code], mass_in_bin = now, mass_in_bin + mass
    return Bins(of=of)


def bins_allowed(answers: float, noise: Noise) -> int:
    """How many bins each of two columns may have, given the number of answers about the pair.

    The largest B with sqrt(noise(B^2) / answers) <= FRACTION / B^2, the right side being the part
    of what one of B^2 equal cells holds; at least 2, below which there is nothing to ask.
    """
    check.positive(answers=answers)
    for count in range(MOST_BINS, 2, -1):
        if sqrt(noise(count**2) / answers) <= FRACTION / count**2:
            return count
    return 2


def ordered_codes(column: Column) -> int:
    """How many of a column's first codes have neighbors: not "other", not "missing"."""
    if not column.ordered:
        return 0
    return column.size - column.missing - (isinstance(column, Category) and column.other)


def stretches(frequencies: Frequencies, variance: float) -> Bins:
    """Stretches of neighbors whose averages fit best for the number of them.

    Of all cuts of k codes into D stretches, dynamic programming takes the one of least squared
    residuals, and D minimizes residuals + variance D (2 log(k/D) + 2). Of the form of Birgé,
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
    smooth = frequencies.copy()
    smooth[:ordered] = means[bins.of[blocks.of]]
    left = (min(2 * bins.count, ordered) + frequencies.size - ordered) / frequencies.size
    return smooth, left * variance


def _residuals(values: Frequencies) -> Frequencies:
    """Of the values from a start (rows) up to an end (columns), squares around their mean."""
    sums = np.concatenate([[0.0], np.cumsum(values)])
    squares = np.concatenate([[0.0], np.cumsum(values**2)])
    indices = np.arange(values.size + 1)
    length = indices[None, :] - indices[:, None]
    means = np.subtract.outer(sums, sums) ** 2 / np.maximum(length, 1)
    around = squares[None, :] - squares[:, None] - means
    return np.where(length > 0, np.maximum(around, 0.0), np.inf)


Table = NDArray[np.float64]
Edge = tuple[str, str]


@dataclass(frozen=True, kw_only=True, eq=False)
class NoisyTable:
    """Frequencies without bias that sum to about 1, and the average variance of one cell."""

    frequencies: Table
    variance: float
    """Of the answers' noise and of the sample of people who gave them."""

    def __post_init__(self) -> None:
        if not np.isfinite(self.frequencies).all() or not 0 < self.variance < np.inf:
            raise InputError(
                "a noisy table needs finite frequencies and a finite variance above 0, got "
                f"variance {self.variance!r}."
            )


@dataclass(frozen=True, kw_only=True, eq=False)
class PairAnswers:
    """Counted answers about the bins of two columns, by a response among all pairs of bins.

    A person's pair is answered with probability p and each other one with q.
    """

    columns: Edge
    counts: NDArray[np.int64]
    """How often each pair of bins was answered."""
    p: float
    q: float

    def __post_init__(self) -> None:
        counts = self.counts
        if counts.ndim != 2 or not counts.size or counts.min() < 0 or not 0 <= self.q < self.p <= 1:
            raise InputError(
                f"answers about {self.columns} need a table of counts and probabilities q < p, "
                f"got the shape {counts.shape}, p={self.p:g} and q={self.q:g}."
            )

    def table(self) -> NoisyTable:
        """The debiased two-way table; refuses where there are no answers.

        Answers are a multinomial sample with shares s, so (s - q)/(p - q) has the variance
        s(1 - s)/n/(p - q)^2, sample included. A cell counts one answer more for
        it, as no answers do not mean a share of 0.
        """
        n, gap = int(self.counts.sum()), self.p - self.q
        if n == 0:
            raise InputError(f"nobody answered about {self.columns}: no table can be estimated.")
        smooth = (self.counts + 1) / (n + self.counts.size)
        variance = float((smooth * (1 - smooth)).mean()) / n / gap**2
        return NoisyTable(frequencies=(self.counts / n - self.q) / gap, variance=variance)


def possible_tables(schema: Schema, one_ways: Mapping[str, NoisyTable]) -> dict[str, NoisyTable]:
    """One-way tables of all columns that could exist: smoothed where ordered, then projected.

    The variance is that after smoothing; projection lowers it further. A column of which nothing
    is known is uniform.
    """
    result = {}
    for column in schema:
        own = one_ways.get(column.name) or _unknown(column.size)
        if own.frequencies.shape != (column.size,):
            raise InputError(
                f"the one-way table of {column.name!r} has the shape {own.frequencies.shape}, the "
                f"column has {column.size} codes."
            )
        smooth, variance = smoothed(own.frequencies, own.variance, ordered=ordered_codes(column))
        result[column.name] = NoisyTable(frequencies=project(smooth, 1.0), variance=variance)
    return result


def side_noise(shape: tuple[int, int], variance: float, *, axis: int) -> float:
    """The variance of one column's frequencies that are sums of a two-way table's cells.

    Cells sum to 1, so errors of a sum partly cancel: with r rows, c columns and cell variance v it
    is c v (1 - 1/r)/(1 - 1/(rc)), exact for answers that are evenly shared out.

    >>> round(side_noise((2, 2), 0.1875, axis=0), 6)  # four equal shares; then two: s(1 - s)
    0.25
    """
    rows, others = shape[axis], shape[1 - axis]
    return others * variance * (1 - 1 / rows) / (1 - 1 / (rows * others))


def column_averages(
    *,
    one_ways: Mapping[str, NoisyTable],
    pairs: Mapping[Edge, NoisyTable],
    bins: Mapping[str, Bins],
) -> dict[str, NoisyTable]:
    """By bins, what the one-way table and all pair tables say of each column, by their precision.

    Different people are behind each of them, so errors are independent and weights 1/variance
    are the best. A column without answers is uniform, with the variance 1.
    """
    result = {}
    for name, cut in bins.items():
        estimates = []
        if name in one_ways:
            own = one_ways[name]
            # Codes summed into bins are a two-way table summed over what is inside the bins.
            inside = own.variance * cut.codes / cut.count
            part = (1 - 1 / cut.count) / (1 - 1 / cut.codes) if cut.codes > 1 else 1.0
            estimates.append((_to_one(cut.sums(own.frequencies)), inside * part or own.variance))
        for edge, table in pairs.items():
            if name in edge:
                axis, (rows, columns) = edge.index(name), table.frequencies.shape
                own_side = _to_one(table.frequencies.sum(axis=1 - axis))
                noise = side_noise((rows, columns), table.variance, axis=axis)
                estimates.append((own_side, noise or table.variance))
        if not estimates:
            result[name] = _unknown(cut.count)
            continue
        weights = [1 / variance for _own, variance in estimates]
        average = np.average([own for own, _variance in estimates], axis=0, weights=weights)
        result[name] = NoisyTable(frequencies=average, variance=1 / sum(weights))
    return result


def known_columns(
    schema: Schema,
    *,
    one_ways: Mapping[str, NoisyTable],
    pairs: Mapping[Edge, NoisyTable],
    bins: Mapping[str, Bins],
) -> dict[str, NoisyTable]:
    """The shares of every column's codes, by all that is known, with the variance of one.

    Bins hold what all answers say; within a bin codes follow the one-way table. Ordered codes are
    smoothed: see ``possible_tables``.
    """
    averages = column_averages(one_ways=one_ways, pairs=pairs, bins=bins)
    by_code = dict(one_ways)
    by_code |= {n: averages[n] for n, cut in bins.items() if cut.count == cut.codes}
    result = possible_tables(schema, by_code)
    for name, cut in bins.items():
        if cut.count < cut.codes:
            inside = cut.inside(result[name].frequencies)
            shares = project(averages[name].frequencies, 1.0)[cut.of] * inside
            result[name] = NoisyTable(frequencies=shares, variance=result[name].variance)
    return result


def agreed_pairs(
    pairs: Mapping[Edge, NoisyTable], averages: Mapping[str, NoisyTable]
) -> dict[Edge, NoisyTable]:
    """Pair tables moved evenly until they sum to the columns' averages: none of it dependence.

    The orthogonal projection: Qardaji, Yang, Li 2014, "PriView", section 4.4.
    """
    result = {}
    for (one, other), table in pairs.items():
        moved, (rows, columns) = table.frequencies, table.frequencies.shape
        moved = moved + (1 - moved.sum()) / moved.size
        moved = moved + (averages[one].frequencies - moved.sum(axis=1))[:, None] / columns
        moved = moved + (averages[other].frequencies - moved.sum(axis=0)) / rows
        result[one, other] = NoisyTable(frequencies=moved, variance=table.variance)
    return result


def _to_one(frequencies: Table) -> Table:
    return np.asarray(frequencies + (1 - frequencies.sum()) / frequencies.size)


def _unknown(codes: int) -> NoisyTable:
    return NoisyTable(frequencies=np.full(codes, 1 / codes), variance=1.0)


Marginal = tuple[str, ...]

_ROUNDS: Final = 10_000  # some 30 to 90 are needed


def consistent(
    tables: Mapping[Marginal, Table],
    variances: Mapping[Marginal, float],
    *,
    non_negative: bool = False,
    tolerance: float = 1e-6,
) -> dict[Marginal, Table]:
    """The tables that sum to 1 and imply the same frequencies of every attribute they share.

    A table with cell variance v implies the frequencies of an attribute with variance k v, where k
    cells are summed for each. They are averaged with weights 1/(k v), and the difference is spread
    evenly over the cells of the other attribute, which leaves that one as it was. This is the
    orthogonal projection in the norm that divides each table's squares by its variance. Qardaji,
    Yang, Li 2014, "PriView: practical differentially private release of marginal contingency
    tables", section 4.4; Hay, Rastogi, Miklau, Suciu 2010, arXiv 0904.0942.

    Args:
        tables: Frequencies by marginal: one name and a vector, or two names and a matrix.
        variances: The (average) variance of one cell of each table.
        non_negative: Whether cells must also be >= 0.
        tolerance: The largest part of the uniform distribution that may be mixed in at the end to
            lift the last cells to zero.
    """
    result = _checked(tables, variances)
    result = _agreed(result, variances)
    if not non_negative:
        return result
    rounds = 0
    while _uniform_part(result) > tolerance:
        if (rounds := rounds + 1) > _ROUNDS:
            raise InternalError(f"the tables did not settle in {_ROUNDS} rounds. None is returned.")
        # Norm-sub is a projection in the same norm: alternating converges to tables in both sets.
        result = _agreed({key: project(table, 1.0) for key, table in result.items()}, variances)
    part = _uniform_part(result)
    return {
        key: np.maximum((1 - part) * table + part / table.size, 0.0)
        for key, table in result.items()
    }


def _agreed(
    tables: Mapping[Marginal, Table], variances: Mapping[Marginal, float]
) -> dict[Marginal, Table]:
    """The projection: sums first, then one attribute after the other; no step undoes another."""
    result = {key: table + (1 - table.sum()) / table.size for key, table in tables.items()}
    for name in dict.fromkeys(name for key in tables for name in key):
        result |= averaged(result, variances, frozenset({name}))
    return result


def averaged(
    tables: Mapping[Marginal, Table], variances: Mapping[Marginal, float], names: frozenset[str]
) -> dict[Marginal, Table]:
    """The tables that have these columns, moved evenly to the mean of their sums for them.

    The sums of a table of cell variance v have variance k v, where k cells are summed; means are
    weighted by precision, and each difference is spread over its k cells.
    """
    having = sorted(key for key in tables if names.issubset(key))
    order = tuple(sorted(names))
    sums = [summed(key, tables[key], order) for key in having]
    each = [tables[key].size // own.size for key, own in zip(having, sums, strict=True)]
    weights = [1 / (k * variances[key]) for key, k in zip(having, each, strict=True)]
    mean = np.average(sums, axis=0, weights=weights)
    return {
        key: tables[key] + _spread((mean - own) / k, order, key)
        for key, own, k in zip(having, sums, each, strict=True)
    }


def summed(key: Marginal, table: Table, names: Marginal) -> Table:
    """A table's sums for some of its columns, in the order of the names."""
    others = tuple(axis for axis, name in enumerate(key) if name not in names)
    left = [name for name in key if name in names]
    return np.asarray(table.sum(axis=others).transpose([left.index(name) for name in names]))


def _spread(change: Table, names: Marginal, key: Marginal) -> Table:
    """A change by some columns with an axis for every column of a table."""
    left = [name for name in key if name in names]
    rising = change.transpose([names.index(name) for name in left])
    sizes = dict(zip(left, rising.shape, strict=True))
    return rising.reshape([sizes.get(name, 1) for name in key])


def _uniform_part(tables: Mapping[Marginal, Table]) -> float:
    """The least part of uniform tables, which agree too, whose admixture leaves no cell < 0."""
    needs = [-float(table.min()) * table.size for table in tables.values()]
    return max([0.0, *(need / (1 + need) for need in needs if need > 0)])


def _checked(
    tables: Mapping[Marginal, Table], variances: Mapping[Marginal, float]
) -> dict[Marginal, Table]:
    """The tables as arrays of floats of their own, or an error that names the misfit."""
    result: dict[Marginal, Table] = {}
    sizes: dict[str, int] = {}
    for key, given in tables.items():
        table = np.array(given, dtype=np.float64)
        if len(set(key)) != table.ndim or len(key) != table.ndim or table.ndim not in (1, 2):
            raise InputError(
                f"a table has one or two different names and as many axes, got {key!r} with "
                f"{table.ndim} axes."
            )
        if key[::-1] in result:
            raise InputError(f"{key!r} is there twice, in both orders. Keep one table.")
        if not table.size or not np.isfinite(table).all():
            raise InputError(f"the table {key!r} must have finite cells.")
        for name, size in zip(key, table.shape, strict=True):
            if sizes.setdefault(name, size) != size:
                raise InputError(
                    f"{name!r} has {sizes[name]} categories in one table and {size} in {key!r}."
                )
        _check_variance(key, variances)
        result[key] = table
    return result


def _check_variance(key: Marginal, variances: Mapping[Marginal, float]) -> None:
    variance = variances.get(key)
    if variance is None or not isfinite(variance) or variance <= 0:
        raise InputError(
            f"the table {key!r} needs a finite cell variance above 0, got {variance!r}."
        )
