"""What is known of one and two columns: noisy tables, and answers about two columns at once."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError
from sfumato.models.answers.bins import Bins, ordered_codes, smoothed
from sfumato.models.model import project
from sfumato.schema.schema import Schema

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
        """The debiased two-way table; refuses where nobody answered.

        Answers are a multinomial sample with shares s, so (s - q)/(p - q) has the variance
        s(1 - s)/n/(p - q)^2, sample included. A cell counts one answer more for it: nobody
        is no certainty.
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
    found = {}
    for column in schema:
        own = one_ways.get(column.name) or _unknown(column.size)
        if own.frequencies.shape != (column.size,):
            raise InputError(
                f"the one-way table of {column.name!r} has the shape {own.frequencies.shape}, the "
                f"column has {column.size} codes."
            )
        smooth, variance = smoothed(own.frequencies, own.variance, ordered=ordered_codes(column))
        found[column.name] = NoisyTable(frequencies=project(smooth, 1.0), variance=variance)
    return found


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
    are the best. A column that nobody answered about is uniform, with the variance 1.
    """
    found = {}
    for name, cut in bins.items():
        said = []
        if name in one_ways:
            own = one_ways[name]
            # Codes summed into bins are a two-way table summed over what is inside the bins.
            inside = own.variance * cut.codes / cut.count
            part = (1 - 1 / cut.count) / (1 - 1 / cut.codes) if cut.codes > 1 else 1.0
            said.append((_to_one(cut.sums(own.frequencies)), inside * part or own.variance))
        for edge, table in pairs.items():
            if name in edge:
                axis, (rows, columns) = edge.index(name), table.frequencies.shape
                own_side = _to_one(table.frequencies.sum(axis=1 - axis))
                noise = side_noise((rows, columns), table.variance, axis=axis)
                said.append((own_side, noise or table.variance))
        if not said:
            found[name] = _unknown(cut.count)
            continue
        weights = [1 / variance for _own, variance in said]
        average = np.average([own for own, _variance in said], axis=0, weights=weights)
        found[name] = NoisyTable(frequencies=average, variance=1 / sum(weights))
    return found


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
    found = possible_tables(schema, by_code)
    for name, cut in bins.items():
        if cut.count < cut.codes:
            inside = cut.inside(found[name].frequencies)
            shares = project(averages[name].frequencies, 1.0)[cut.of] * inside
            found[name] = NoisyTable(frequencies=shares, variance=found[name].variance)
    return found


def agreed_pairs(
    pairs: Mapping[Edge, NoisyTable], averages: Mapping[str, NoisyTable]
) -> dict[Edge, NoisyTable]:
    """Pair tables moved evenly until they sum to the columns' averages: none of it dependence.

    The orthogonal projection: Qardaji, Yang, Li 2014, "PriView", section 4.4.
    """
    found = {}
    for (one, other), table in pairs.items():
        moved, (rows, columns) = table.frequencies, table.frequencies.shape
        moved = moved + (1 - moved.sum()) / moved.size
        moved = moved + (averages[one].frequencies - moved.sum(axis=1))[:, None] / columns
        moved = moved + (averages[other].frequencies - moved.sum(axis=0)) / rows
        found[one, other] = NoisyTable(frequencies=moved, variance=table.variance)
    return found


def _to_one(frequencies: Table) -> Table:
    return np.asarray(frequencies + (1 - frequencies.sum()) / frequencies.size)


def _unknown(codes: int) -> NoisyTable:
    return NoisyTable(frequencies=np.full(codes, 1 / codes), variance=1.0)
