"""Whether dependence of columns is worth its noise, and how many people answer about pairs.

All in squared distances of two-way tables from the product of their one-way tables: there both
the signal and the noise can be predicted, and the noise subtracted without bias.

Answers about pairs show dependence and cost precision in the one-way tables. Before anything is
known the first round asks only for what hardly costs anything should columns be independent; the
second asks for more if the first saw dependence. Public facts and noisy tables decide.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb, inf, pi, prod, sqrt
from statistics import NormalDist
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from sfumato import check
from sfumato.models.answers.pair_tables import (
    MOST_BINS,
    Edge,
    Noise,
    NoisyTable,
    bins_allowed,
    side_noise,
)

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
    >>> measured = dependence(table, np.array([0.5, 0.5]), np.array([0.5, 0.5]))
    >>> round(measured.squared, 4), round(measured.error, 4)
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
    also measured as dependence unless shares are equal: r v_r sum (c - mean c)^2 of the rows, and
    likewise of the columns. They are subtracted.

    Args:
        pairs: By edge; there must be one.
        columns: By bins, the one-way tables of all columns in them.
    """
    total = squared = mean = 0.0
    for (one, other), table in pairs.items():
        rows, others = columns[one], columns[other]
        own = dependence(table, rows.frequencies, others.frequencies)
        spread = rows.frequencies.size**2 * rows.variance * float(others.frequencies.var())
        spread += others.frequencies.size**2 * others.variance * float(rows.frequencies.var())
        cells, shape = table.frequencies.size, table.frequencies.shape
        noise = interaction_noise(shape, table.variance) + spread
        weight = _freedom(shape) / (cells * noise) ** 2
        squared += weight * cells * (own.squared - spread)
        mean += weight * cells * noise
        total += weight
    part = 1 / (2 * pi)
    return Dependence(
        squared=part * squared / total, error=part * sqrt(2 / total), freedom=mean**2 / total
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


HARM: Final = 0.0075
"""How much of its error each round may expect to add, should columns be independent, for a chance
to see that they are not. Predicted at equal shares of all codes; at unequal ones it is up to
half as much again, about 2% in both rounds together."""

SHARES: Final = (0.25, 0.5, 0.75, 1.0)
"""Parts of the people to be asked about pairs that the second round compares."""
PILOT_SHARES: Final = (1.0, *(part * 2**-power for power in range(9) for part in (0.75, 0.5)))
"""Parts that the first round compares, falling."""
PILOT_BINS: Final = (2, 3, 4)
"""The most bins of a column that the first round compares, where all columns are in pairs."""


@dataclass(frozen=True, kw_only=True)
class Questions:
    """What the people of a round are asked: about one column, or some of them about a pair."""

    bins: Mapping[str, int]
    """The columns that pairs are asked of, and the number of bins of each."""
    share: float
    """Of the people who would be asked about one of these columns, the part asked about a pair."""
    edges: tuple[Edge, ...]
    """The pairs, each asked equally often."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PairChoice:
    """The questions of the second round, and the error predicted for them."""

    questions: Questions
    predicted: float
    """The mean total variation of two-way tables."""


NO_PAIRS: Final = Questions(bins={}, share=0.0, edges=())


@dataclass(frozen=True, kw_only=True)
class Population:
    """The columns, how people are divided among them, and what an answer is worth."""

    sizes: Mapping[str, int]
    """Codes by column; each has two or more."""
    alone: Mapping[str, float]
    """The variance of one code, times the people asked about that column alone."""
    noise: Noise
    """The variance of one cell of a pair, times the people asked about it, by its cells."""
    shares: Mapping[str, float]
    """The part of the people who are asked about each column: see ``column_shares``."""

    def each(self, questions: Questions) -> float:
        """The part of the people who are asked about each of the pairs."""
        pooled = sum(self.shares[name] for name in questions.bins)
        return questions.share * pooled / max(len(questions.edges), 1)

    def precision(self, questions: Questions) -> dict[str, float]:
        """What one person of the round adds, on average, to the precision of each column's codes.

        An answer about a pair adds to both columns, except those whose codes bins hide.
        """
        result = {}
        for name, share in self.shares.items():
            left = 1 - questions.share if name in questions.bins else 1.0
            result[name] = left * share / self.alone[name]
        each = self.each(questions)
        for edge in questions.edges:
            shape = questions.bins[edge[0]], questions.bins[edge[1]]
            for axis, name in enumerate(edge):
                if questions.bins[name] == self.sizes[name]:
                    result[name] += each / side_noise(shape, self.noise(prod(shape)), axis=axis)
        return result

    def insight(self, questions: Questions) -> float:
        """How well dependence is measured, and of how many pairs.

        The inverse standard error of its mean for one person, in squared total variations as
        ``mean_dependence``, times the root of the number of pairs: as many people with as much
        noise are worth the same whether they answer about few pairs or many. And times the part
        of all pairs of columns that these columns have, since those left out may depend while
        these do not. B bins of many codes are taken to show the part (1 - 1/B)^2 of it.
        """
        squares, each = 0.0, self.each(questions)
        for edge in questions.edges:
            shape = questions.bins[edge[0]], questions.bins[edge[1]]
            cells, freedom = prod(shape), (shape[0] - 1) * (shape[1] - 1)
            shown = prod(
                1.0 if questions.bins[name] == self.sizes[name] else (1 - 1 / count) ** 2
                for name, count in zip(edge, shape, strict=True)
            )
            error = cells * interaction_noise(shape, self.noise(cells)) / sqrt(freedom)
            squares += (each * shown / error) ** 2
        covered = comb(len(questions.bins), 2) / comb(len(self.sizes), 2)
        return sqrt(squares * len(questions.edges)) * covered


def column_shares(sizes: Mapping[str, int], *, noise: Noise) -> dict[str, float]:
    """How to divide the people who answer about one column: a part for each column, summing to 1.

    A column of k codes with variance v/n each has the total variation k sqrt(v/n), about, and the
    sum of these is least for n as (k sqrt v)^(2/3). But no distance exceeds 1, where more answers
    would not help yet; half of that exponent was better on real tables than either end.
    A column of one code needs no answers.
    """
    raw = {
        name: (codes * sqrt(noise(codes))) ** (1 / 3) if codes > 1 else 0.0
        for name, codes in sizes.items()
    }
    total = sum(raw.values()) or 1.0
    return {name: part / total for name, part in raw.items()}


def choose_pilot(people: Population) -> Questions:
    """The questions of the first round that see dependence best, but hardly cost anything.

    Tried are the columns up to a size, code by code, and all columns in few bins; so that the
    error of no column, see ``pilot_loss``, is predicted to grow by more than ``HARM``. Where
    answers about pairs tell more of their columns than answers about a column, all people of
    these columns are asked about pairs.
    """
    best, insight = NO_PAIRS, 0.0
    for bins in _pilot_bins(people.sizes):
        for share in PILOT_SHARES:
            questions = Questions(bins=bins, share=share, edges=pilot_edges(tuple(bins), share))
            if pilot_loss(people, questions) <= HARM:
                if people.insight(questions) > insight:
                    best, insight = questions, people.insight(questions)
                break
    return best


def pilot_edges(names: Sequence[str], share: float) -> tuple[Edge, ...]:
    """Which pairs the first round asks about: the neighbors in a circle, or all if all are asked.

    The error of a mean over m pairs, each answered by N/m people, grows as sqrt(m): few pairs see
    best whether there is dependence, all pairs see best what it is.
    """
    every = tuple(combinations(names, 2))
    if share > 1 / 2:
        return every
    near = {frozenset((names[i - 1], names[i])) for i in range(len(names))}
    return tuple(edge for edge in every if frozenset(edge) in near)


def pilot_loss(people: Population, questions: Questions) -> float:
    """How much the error of any column grows at most with these questions in the first round.

    Two rounds of equally many people, and all of the second asked about one column. The error of
    a column is as 1/sqrt(P), P the precision of its codes; so no table of independent columns,
    however its errors depend on those of the columns, loses more than the worst column does.
    """
    before, first = people.precision(NO_PAIRS), people.precision(questions)
    return max(sqrt(2 * own / (own + first[name])) - 1 for name, own in before.items())


def _pilot_bins(sizes: Mapping[str, int]) -> Iterator[dict[str, int]]:
    if len(sizes) < 2:
        return
    yield from ({name: sizes[name] for name in names} for names in _up_to_a_size(sizes))
    for most in PILOT_BINS:
        yield {name: min(size, most) for name, size in sizes.items()}


def _up_to_a_size(sizes: Mapping[str, int]) -> Iterator[tuple[str, ...]]:
    """Sets of two columns or more, by a limit of codes that is within ``MOST_BINS``."""
    for most in sorted({size for size in sizes.values() if size <= MOST_BINS}):
        names = tuple(name for name, size in sizes.items() if size <= most)
        if len(names) > 1:
            yield names


def choose_pairs(
    people: Population,
    known: Mapping[str, NoisyTable],
    *,
    left: int,
    observed: Dependence | None,
    whole: Collection[str] = (),
    shares: Sequence[float] = SHARES,
) -> PairChoice:
    """What the people who are left should be asked: the least predicted error.

    The prediction takes the dependence to be what was observed of it less one standard error, since
    what looks large enough to matter is partly luck. And questions that would make the error of
    some column larger are chosen only if what was observed has at most the chance HARM/L under
    independence, where the worst of them multiplies an error by 1 + L: so the expected loss, should
    there be no dependence, is at most HARM.

    Args:
        people: The columns, and what answers are worth.
        known: What the first round measured, by column, with the mean squared error of one code:
            see ``known_columns``.
        left: The people of the second round.
        observed: The ``mean_dependence``; None if no pairs were asked about.
        whole: The columns asked about code by code in pairs before, and so again: then answers
            of both rounds are about the same cells.
        shares: Parts of the people of some columns to be asked about pairs.
    """
    check.whole(at_least=0, left=left)
    chance = 1.0 if observed is None else observed.chance()
    assumed = (
        0.0 if observed is None else sqrt(min(max(observed.squared - observed.error, 0.0), 1.0))
    )
    alone = _Prediction(people, known, left, NO_PAIRS)
    choices = [PairChoice(questions=NO_PAIRS, predicted=alone.distance(assumed=assumed))]
    tried = [
        _Prediction(people, known, left, questions)
        for questions in _second_questions(people, left, whole, shares)
    ]
    worst = max((each.loss(alone) for each in tried), default=0.0)
    for each in tried:
        if each.loss(alone) <= 0 or chance * worst <= HARM:
            distance = each.distance(assumed=assumed)
            choices.append(PairChoice(questions=each.questions, predicted=distance))
    return min(choices, key=lambda choice: choice.predicted)


def _second_questions(
    people: Population, left: int, whole: Collection[str], shares: Sequence[float]
) -> Iterator[Questions]:
    if len(people.sizes) < 2 or left == 0:
        return
    for names in dict.fromkeys([*_up_to_a_size(people.sizes), tuple(people.sizes)]):
        edges = tuple(combinations(names, 2))
        for share in shares:
            answers = share * sum(people.shares[name] for name in names) * left / len(edges)
            most = bins_allowed(answers, people.noise)
            cut = (people.sizes[name] if name in whole else most for name in names)
            bins = {name: min(people.sizes[name], k) for name, k in zip(names, cut, strict=True)}
            yield Questions(bins=bins, share=share, edges=edges)


class _Prediction:
    """The error after a second round with given questions and number of people."""

    def __init__(
        self,
        people: Population,
        known: Mapping[str, NoisyTable],
        left: int,
        questions: Questions,
    ) -> None:
        self._people, self.questions = people, questions
        self._each = left * people.each(questions)
        added = people.precision(questions)
        self.precision = {
            name: 1 / known[name].variance + left * added[name] for name in people.sizes
        }
        self._columns = {
            name: column_distance(known[name].frequencies, 1 / precision)
            for name, precision in self.precision.items()
        }

    def loss(self, other: "_Prediction") -> float:
        """How much larger the error of a column is at most than in another prediction."""
        pairs = zip(other.precision.values(), self.precision.values(), strict=True)
        return max(sqrt(theirs / own) for theirs, own in pairs) - 1

    def distance(self, *, assumed: float) -> float:
        """The mean total variation of two-way tables, if columns are so far from their product.

        The errors of two columns and of their dependence are independent, so their squares add.
        """
        names = list(self._people.sizes)
        if len(names) == 1:
            return self._columns[names[0]]
        measured, averaged, total = set(self.questions.edges), self._averaged(), 0.0
        for one, other in combinations(names, 2):
            apart = assumed**2
            if assumed > 0 and (one, other) in measured:
                apart = self._apart((one, other), averaged, assumed)
            total += sqrt(self._columns[one] ** 2 + self._columns[other] ** 2 + apart)
        return min(total / comb(len(names), 2), 1.0)

    def _averaged(self) -> float:
        """The part of the pairs' noise that a fit of all of them keeps: of numbers to numbers.

        A mixture of two classes has two for each bin but one of a column.
        """
        bins = self.questions.bins
        measured = sum((bins[i] - 1) * (bins[j] - 1) for i, j in self.questions.edges)
        fitted = 2 * sum(count - 1 for count in bins.values())
        return min(1.0, fitted / max(measured, 1))

    def _apart(self, edge: Edge, averaged: float, assumed: float) -> float:
        """The squared error in the dependence of two columns: what bins hide, and noise.

        B bins of many codes are taken to show the part 1 - 1/B of it.
        """
        counts = [self.questions.bins[name] for name in edge]
        shown = 1.0
        for name, count in zip(edge, counts, strict=True):
            shown *= 1.0 if count == self._people.sizes[name] else 1 - 1 / count
        cells = counts[0] * counts[1]
        squared = (2 * assumed * shown / MEAN_SIZE) ** 2 / cells
        variance = self._people.noise(cells) / self._each
        noise = averaged * interaction_noise((counts[0], counts[1]), variance)
        return distance_left(squared, noise, cells) ** 2 + assumed**2 * (1 - shown**2)
