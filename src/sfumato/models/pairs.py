"""What is known of one and two columns: noisy tables, and answers about two columns at once."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError
from sfumato.models.binning import Bins, ordered_codes, smoothed
from sfumato.models.consistency import consistent
from sfumato.models.simplex import project
from sfumato.schema.table import Marginal, Schema

Table = NDArray[np.float64]
Edge = tuple[str, str]


@dataclass(frozen=True, kw_only=True, eq=False)
class NoisyTable:
    """Frequencies without bias, and the average variance of one cell."""

    frequencies: Table
    variance: float
    """Of the answers' noise and of the sample of people who gave them."""

    def __post_init__(self) -> None:
        if not np.isfinite(self.frequencies).all() or not 0 < self.variance < np.inf:
            raise InputError(
                "a noisy table needs finite frequencies and a finite variance above 0, got "
                f"variance {self.variance!r}. Nothing was fitted."
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
                f"answers about {self.columns} need a table of counts and probabilities q < p, got "
                f"the shape {counts.shape}, p={self.p:g} and q={self.q:g}. Nothing was fitted."
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
                f"column has {column.size} codes. Nothing was fitted."
            )
        smooth, variance = smoothed(own.frequencies, own.variance, ordered=ordered_codes(column))
        found[column.name] = NoisyTable(frequencies=project(smooth, 1.0), variance=variance)
    return found


def agreed_tables(
    schema: Schema,
    *,
    one_ways: Mapping[str, NoisyTable],
    pairs: Mapping[Edge, NoisyTable],
    bins: Mapping[str, Bins],
) -> tuple[dict[str, Table], dict[Edge, Table]]:
    """One-way shares by code, and pair tables by bin that agree with what all say of a column.

    Bins are averaged with weights by precision over the one-way table and all pair tables
    (``consistent``); within a bin codes follow the one-way table of ``possible_tables``.

    Args:
        schema: The columns.
        one_ways: By column, one frequency a code.
        pairs: By edge, one frequency a pair of bins.
        bins: Of every column.
    """
    tables: dict[Marginal, Table] = {}
    variances: dict[Marginal, float] = {}
    for column in schema:
        name, cut = column.name, bins[column.name]
        own = one_ways.get(name) or _unknown(column.size)
        tables[name,] = cut.sums(own.frequencies)
        variances[name,] = own.variance * cut.codes / cut.count
    tables |= {edge: table.frequencies for edge, table in pairs.items()}
    variances |= {edge: table.variance for edge, table in pairs.items()}
    agreed = consistent(tables, variances)
    shares = {
        name: project(agreed[name,], 1.0)[bins[name].of] * bins[name].inside(table.frequencies)
        for name, table in possible_tables(schema, one_ways).items()
    }
    return shares, {edge: agreed[edge] for edge in pairs}


def _unknown(codes: int) -> NoisyTable:
    return NoisyTable(frequencies=np.full(codes, 1 / codes), variance=1.0)
