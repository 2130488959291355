"""Whether dependence between columns is worth its noise, and how much of it to believe.

All in squared distances of two-way tables from the product of their one-way tables: there both
the signal and the noise can be predicted, and the noise subtracted without bias.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf, pi, sqrt
from statistics import NormalDist
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from sfumato.models.answers.pair_tables import Edge, NoisyTable

Table = NDArray[np.float64]
Kind = Literal["none", "tree", "pairs"]

MEAN_SIZE: Final = sqrt(2 / pi)
"""The mean size of a normal number of variance 1."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Dependence:
    """The squared distance of a two-way table from independence, without bias."""

    squared: float
    """An unbiased estimate: it may be negative."""
    error: float
    """Its standard error."""
    freedom: float
    """The degrees of freedom of the chi-square that noise alone would make of it, about."""

    def chance(self) -> float:
        """How likely noise alone shows this much or more: the tail of that chi-square.

        With the squared distance X over its noise N as a mean of ``freedom`` squares; its cube
        root is about normal: Wilson, Hilferty 1931. For the error under independence.

        >>> round(Dependence(squared=0.0386, error=0.02, freedom=1.0).chance(), 3)
        0.051
        """
        ratio = max(1 + self.squared / self.error * sqrt(2 / self.freedom), 0.0)
        spread = 2 / (9 * self.freedom)
        return NormalDist().cdf(-(ratio ** (1 / 3) - 1 + spread) / sqrt(spread))


def interaction_noise(shape: tuple[int, ...], variance: float) -> float:
    """The expected squared distance from the product that noise alone makes.

    Tables sum to 1, so the noise of m = rc cells with the variance v has m v/(m-1) in each of m-1
    dimensions, (r-1)(c-1) of which change neither one-way table.

    >>> round(interaction_noise((2, 2), 0.1875), 6)  # four equal shares s: v = s(1 - s)
    0.25
    """
    rows, columns = shape
    cells = rows * columns
    return (rows - 1) * (columns - 1) * variance * cells / max(cells - 1, 1)


def dependence(table: NoisyTable, rows: Table, columns: Table) -> Dependence:
    """How far a noisy two-way table is from the product of its columns' own tables.

    The difference is first cleared of means by row and by column, which would be errors of the
    one-way tables. Then X = sum of squares has the mean D + N and the variance 2 N^2/k + 4 D N/k
    with k = (r-1)(c-1) and N = ``interaction_noise``: the moments of a noncentral chi-square. So
    D = X - N.

    >>> table = NoisyTable(frequencies=np.array([[0.4, 0.1], [0.1, 0.4]]), variance=1e-4)
    >>> found = dependence(table, np.array([0.5, 0.5]), np.array([0.5, 0.5]))
    >>> round(found.squared, 4), round(found.error, 4)
    (0.0899, 0.0069)
    """
    gap = table.frequencies - np.outer(rows, columns)
    gap = gap - gap.mean(axis=0) - gap.mean(axis=1, keepdims=True) + gap.mean()
    noise = interaction_noise(gap.shape, table.variance)
    squared = float((gap**2).sum()) - noise
    freedom = _freedom(gap.shape)
    spread = (2 * noise + 4 * max(squared, 0.0)) * noise / freedom
    return Dependence(squared=squared, error=sqrt(spread), freedom=freedom)


def _freedom(shape: tuple[int, ...]) -> int:
    return max((shape[0] - 1) * (shape[1] - 1), 1)


def mean_dependence(
    pairs: Mapping[Edge, NoisyTable], columns: Mapping[str, NoisyTable]
) -> Dependence:
    """The mean squared total variation between two columns and their product, without bias.

    A squared distance D over m cells stands for the squared total variation m D/(2 pi): see
    ``distance_left``. Pairs are averaged with weights 1/(m N)^2, the precision if columns are
    independent. The error is that under independence too, and the degrees of freedom those of
    the chi-square of the same mean and variance: Satterthwaite 1946. Errors of one-way tables are
    also seen as dependence unless shares are equal: r v_r sum (c - mean c)^2 of the rows, and
    likewise of the columns. They are subtracted.

    Args:
        pairs: By edge; there must be one.
        columns: By bins, the one-way tables of all columns in them.
    """
    total = found = mean = 0.0
    for (one, other), table in pairs.items():
        rows, others = columns[one], columns[other]
        own = dependence(table, rows.frequencies, others.frequencies)
        spread = rows.frequencies.size**2 * rows.variance * float(others.frequencies.var())
        spread += others.frequencies.size**2 * others.variance * float(rows.frequencies.var())
        cells, shape = table.frequencies.size, table.frequencies.shape
        noise = interaction_noise(shape, table.variance) + spread
        weight = _freedom(shape) / (cells * noise) ** 2
        found += weight * cells * (own.squared - spread)
        mean += weight * cells * noise
        total += weight
    part = 1 / (2 * pi)
    return Dependence(
        squared=part * found / total, error=part * sqrt(2 / total), freedom=mean**2 / total
    )


def shrink(table: Table, product: Table, variance: float) -> Table:
    """A noisy table moved towards the product of its one-way tables, as far as noise may explain.

    product + max(0, 1 - N/X) (table - product), X the squared distance and N = (r-1)(c-1) v its
    expected value under independence: the positive-part estimator of James, Stein 1961, read as
    empirical Bayes by Efron, Morris 1973. Where the distance is no larger than its noise the
    product remains; it never moves beyond the table.

    >>> product = np.full((2, 2), 0.25)
    >>> shrink(product + 0.02 * np.array([[1, -1], [-1, 1]]), product, 6e-4).round(3).tolist()
    [[0.26, 0.24], [0.24, 0.26]]
    """
    gap = table - product
    observed = float((gap**2).sum())
    noise = interaction_noise(table.shape, variance)
    return np.asarray(product + max(0.0, 1 - noise / observed) * gap if observed > 0 else product)


def spanning_tree(weights: Mapping[Edge, float]) -> tuple[Edge, ...]:
    """The edges of largest total weight without a circle; edges of weight <= 0 are left out.

    Kruskal 1956. With mutual information as weights it is the likeliest tree: Chow, Liu 1968.
    """
    group: dict[str, str] = {name: name for edge in weights for name in edge}

    def top(name: str) -> str:
        while group[name] != name:
            group[name] = group[group[name]]
            name = group[name]
        return name

    chosen = []
    for edge in sorted(weights, key=lambda edge: -weights[edge]):
        one, other = top(edge[0]), top(edge[1])
        if weights[edge] > 0 and one != other:
            group[one] = other
            chosen.append(edge)
    return tuple(chosen)


def distance_left(squared: float, noise: float, cells: int) -> float:
    """The predicted total variation from a two-way table that was measured and shrunk.

    Of the squared distance D remains D N/(D + N), the risk of the best linear shrinkage; with
    infinite noise (not measured) D itself. A difference of mean square s over m cells has about
    the total variation m/2 sqrt(2/pi) sqrt(s), as if it were normal.

    >>> round(distance_left(0.04, inf, 4), 3), round(distance_left(0.04, 0.01, 4), 3)
    (0.16, 0.071)
    """
    left = squared if noise == inf else squared * noise / (squared + noise)
    return MEAN_SIZE / 2 * sqrt(cells * left)


def column_distance(frequencies: Table, variance: float) -> float:
    """The predicted total variation of a projected one-way table with that noise in each code.

    Half the sum of the mean sizes of the errors; of a code that holds less than its error half
    of it counts, because projection cuts what is below zero.
    """
    error = MEAN_SIZE * sqrt(variance)
    return float(np.where(frequencies > error, error, error / 2).sum()) / 2
