"""Whether dependence between columns is worth its noise, and how much of it to believe.

All in squared distances of two-way tables from the product of their one-way tables: there both
the signal and the noise can be predicted, and the noise subtracted without bias.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb, inf, pi, sqrt
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from sfumato import check
from sfumato.models.binning import Noise, bins_allowed
from sfumato.models.pairs import Edge, NoisyTable

Table = NDArray[np.float64]
Kind = Literal["none", "tree", "pairs"]

TYPICAL: Final = 0.06
"""The mean total variation between two columns of a real table and their product, about: 0.051 in
BR2000, 0.065 in ACS, 0.074 in Adult, 0.16 in NLTCS. What is assumed before any pair is seen."""

SHARES: Final = (0.0, 0.4, 0.7, 1.0)

HARM: Final = 1.15
"""The most that asking about pairs may multiply the error by, should columns be independent."""

_MEAN_SIZE: Final = sqrt(2 / pi)
"""The mean size of a normal number of variance 1."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Dependence:
    """The squared distance of a two-way table from independence, without bias."""

    squared: float
    """An unbiased estimate: it may be negative."""
    error: float
    """Its standard error."""


def interaction_noise(shape: tuple[int, ...], variance: float) -> float:
    """The expected squared distance from the product that noise alone makes: (r-1)(c-1) v.

    The part of the noise that changes neither one-way table has (r-1)(c-1) dimensions.
    """
    rows, columns = shape
    return (rows - 1) * (columns - 1) * variance


def dependence(table: NoisyTable, rows: Table, columns: Table) -> Dependence:
    """How far a noisy two-way table is from the product of its columns' own tables.

    The difference is first cleared of means by row and by column, which would be errors of the
    one-way tables. Then X = sum of squares has the mean D + k v and the variance
    2 k v^2 + 4 D v with k = (r-1)(c-1): the moments of a noncentral chi-square. So D = X - k v.

    >>> table = NoisyTable(frequencies=np.array([[0.4, 0.1], [0.1, 0.4]]), variance=1e-4)
    >>> found = dependence(table, np.array([0.5, 0.5]), np.array([0.5, 0.5]))
    >>> round(found.squared, 4), round(found.error, 4)
    (0.0899, 0.006)
    """
    gap = table.frequencies - np.outer(rows, columns)
    gap = gap - gap.mean(axis=0) - gap.mean(axis=1, keepdims=True) + gap.mean()
    noise = interaction_noise(gap.shape, table.variance)
    squared = float((gap**2).sum()) - noise
    spread = 2 * noise * table.variance + 4 * max(squared, 0.0) * table.variance
    return Dependence(squared=squared, error=sqrt(spread))


def shrink(table: Table, product: Table, variance: float) -> Table:
    """A noisy table moved towards the product of its one-way tables, as far as noise may explain.

    product + max(0, 1 - N/X) (table - product), X the squared distance and N = (r-1)(c-1) v its
    expected value under independence: the positive-part estimator of James, Stein 1961, read as
    empirical Bayes by Efron, Morris 1973. Where the distance is no larger than its noise the
    product remains; it never moves beyond the table.

    >>> product = np.full((2, 2), 0.25)
    >>> shrink(product + 0.02 * np.array([[1, -1], [-1, 1]]), product, 8e-4).round(3).tolist()
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
    return _MEAN_SIZE / 2 * sqrt(cells * left)


def column_distance(frequencies: Table, variance: float) -> float:
    """The predicted total variation of a projected one-way table with that noise in each code.

    Half the sum of the mean sizes of the errors; of a code that holds less than its error half
    of it counts, because projection cuts what is below zero.
    """
    error = _MEAN_SIZE * sqrt(variance)
    return float(np.where(frequencies > error, error, error / 2).sum()) / 2


@dataclass(frozen=True, kw_only=True, slots=True)
class PairPlan:
    """What the people of the second round are asked, and the error predicted for it."""

    share: float
    """The part of them who are asked about a pair of columns; the others about one column."""
    most_bins: int
    """The most bins of a column in such a question."""
    predicted: float
    """The mean total variation of two-way tables."""


def column_shares(sizes: Mapping[str, int], *, noise: Noise) -> dict[str, float]:
    """How to divide the people who answer about one column: a part for each column, summing to 1.

    A column of k codes with variance v/n each has the total variation k sqrt(v/n), about, and the
    sum of these is least for n as (k sqrt v)^(2/3). But no distance exceeds 1, where more answers
    would not help yet; half of that exponent was better on real tables than either end.
    A column of one code needs nobody.
    """
    raw = {
        name: (codes * sqrt(noise(codes))) ** (1 / 3) if codes > 1 else 0.0
        for name, codes in sizes.items()
    }
    total = sum(raw.values()) or 1.0
    return {name: part / total for name, part in raw.items()}


def plan_pairs(
    one_ways: Mapping[str, NoisyTable],
    *,
    answered: int,
    left: int,
    noise: Noise,
    shares: Sequence[float] = SHARES,
    assumed: float = TYPICAL,
) -> PairPlan:
    """How many of the people who are left should be asked about pairs: the least predicted error.

    But no more than what is bearable if the assumption is wrong and there is no dependence.

    Args:
        one_ways: What the first round says, by column, with the mean squared error of one code:
            see ``possible_tables``. Nobody is asked about a column of one code.
        answered: The people who answered in the first round, each about one column.
        left: The people of the second round.
        noise: Of a question about a pair, by its number of cells.
        shares: The parts to choose from; the first, 0, leaves all columns independent.
        assumed: The mean total variation between a two-way table and the product.
    """
    check.whole(at_least=1, answered=answered)
    check.whole(at_least=0, left=left)
    asked = {name: table for name, table in one_ways.items() if table.frequencies.size > 1}
    plans, bearable = [], inf
    for share in shares if left > 0 and len(asked) > 1 else (0.0,):
        each = share * left / max(comb(len(asked), 2), 1)
        bins = bins_allowed(each, noise) if each > 0 else 1
        question = _Question(one_ways=asked, bins=bins, each=each, noise=noise)
        more = 1 + (1 - share) * left / answered
        if question.distance(more=more, assumed=0.0) > bearable:
            continue
        predicted = question.distance(more=more, assumed=assumed)
        plans.append(PairPlan(share=share, most_bins=max(bins, 2), predicted=predicted))
        if not plans[1:]:
            bearable = HARM * question.distance(more=more, assumed=0.0)
    return min(plans, key=lambda plan: plan.predicted)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Question:
    """Each pair of columns is asked of so many people, in at most so many bins a column."""

    one_ways: Mapping[str, NoisyTable]
    bins: int
    each: float
    noise: Noise

    def distance(self, *, more: float, assumed: float) -> float:
        """The mean total variation of two-way tables.

        The errors of two columns and of their dependence are independent, so their squares add.

        Args:
            more: How many times as many people as in the first round answer about one column.
            assumed: As in ``plan_pairs``.
        """
        single = {name: self._single(name, more) ** 2 for name in self.one_ways}
        pairs = list(combinations(self.one_ways, 2))
        if not pairs:
            return sqrt(sum(single.values()))
        averaged = self._averaged(pairs)
        found = [
            sqrt(single[i] + single[j] + self._apart(i, j, averaged, assumed)) for i, j in pairs
        ]
        return min(sum(found) / len(found), 1.0)

    def _count(self, name: str) -> int:
        return min(self.one_ways[name].frequencies.size, self.bins)

    def _single(self, name: str, more: float) -> float:
        """A column's own error; if it is asked about without bins, pairs tell about it too."""
        table = self.one_ways[name]
        precision = more / table.variance
        if self.each > 0 and table.frequencies.size <= self.bins:
            for other in self.one_ways:
                if other != name:
                    cells = self._count(name) * self._count(other)
                    precision += self.each / (self._count(other) * self.noise(cells))
        return column_distance(table.frequencies, 1 / precision)

    def _averaged(self, pairs: Sequence[Edge]) -> float:
        """The part of the pairs' noise that a fit of all of them keeps: of numbers to numbers.

        A mixture of two classes has two for each bin but one of a column.
        """
        measured = sum((self._count(i) - 1) * (self._count(j) - 1) for i, j in pairs)
        fitted = 2 * sum(self._count(name) - 1 for name in self.one_ways)
        return min(1.0, fitted / max(measured, 1))

    def _apart(self, one: str, other: str, averaged: float, assumed: float) -> float:
        """The squared error in the dependence of two columns: what bins hide, and noise.

        B bins of many codes are taken to show the part 1 - 1/B of it.
        """
        if self.each == 0:
            return assumed**2
        shape = self._count(one), self._count(other)
        seen = 1.0
        for name, count in ((one, shape[0]), (other, shape[1])):
            seen *= 1.0 if count == self.one_ways[name].frequencies.size else 1 - 1 / count
        cells = shape[0] * shape[1]
        squared = (2 * assumed * seen / _MEAN_SIZE) ** 2 / cells
        noise = averaged * interaction_noise(shape, self.noise(cells) / self.each)
        return distance_left(squared, noise, cells) ** 2 + assumed**2 * (1 - seen**2)
