"""Private neighbor collaborative filtering as published, which claims no guarantee here.

Zhu, Ren, Zhou, Rong, Xiong 2014, "An effective privacy preserving algorithm for neighborhood-based
collaborative filtering", and ASONAM 2013, from a description of both, misprints corrected. It is
run to be compared with and to be broken: ``docs/pncf.md`` says how. The noise is made of floats;
what protects nobody needs no better. Nothing here makes a release.
"""

from dataclasses import dataclass
from functools import cached_property
from math import exp, log
from typing import Any, ClassVar, Final, Literal, NoReturn

import numpy as np
from numpy.typing import NDArray

from sfumato import check
from sfumato.errors import InputError
from sfumato.models.items.bias import item_means
from sfumato.models.items.rating_rows import RatingRows
from sfumato.models.items.recommenders import BiasModel, History, NeighborModel
from sfumato.randomness import Rng

Codes = NDArray[np.int64]
Floats = NDArray[np.float64]

Similarity = Literal["cosine", "Pearson"]
SIMILARITIES: Final[tuple[Similarity, ...]] = ("cosine", "Pearson")


@dataclass(frozen=True, kw_only=True, slots=True)
class Pncf:
    """The parameters of the paper. ``epsilon`` is what it says it spends; nobody is protected."""

    epsilon: float
    k: int = 40
    """Neighbors of each item."""
    similarity: Similarity = "cosine"
    beta: float = 0.1
    """Sensitivities are multiplied by exp(-beta), which the paper calls smoothing."""
    candidates: int | None = None
    """How many of the most similar items may become neighbors; None: all with a common rater."""
    missing: float = 0.5
    """The paper's rho: how likely a neighbor may be far from the k best."""

    def __post_init__(self) -> None:
        check.positive(epsilon=self.epsilon)
        check.whole(at_least=1, k=self.k)
        check.one_of(SIMILARITIES, similarity=self.similarity)
        if not 0 <= self.beta < np.inf:
            raise InputError(f"beta must be >= 0, got {self.beta!r}.")
        if self.candidates is not None:
            check.whole(at_least=1, candidates=self.candidates)
        if not 0 < self.missing < 1:
            raise InputError(f"missing must be between 0 and 1, got {self.missing!r}.")

    def scales(self, sensitivity: Floats) -> Floats:
        """Of the Laplace noise on similarities: 2 exp(-beta) RS / epsilon."""
        return sensitivity * (2 * exp(-self.beta) / self.epsilon)


@dataclass(frozen=True, kw_only=True, eq=False)
class PncfModel:
    """What PNCF makes of ratings: it recommends, says what it is, and is not to be published."""

    spec: Pncf
    means: BiasModel
    """The exact mean of each item."""
    neighbors: NDArray[np.int32]
    similarity: Floats
    """Noisy, of the chosen neighbors."""
    kind: ClassVar[str] = "PNCF as published"
    promise: ClassVar[str] = "claims no guarantee"

    @cached_property
    def _model(self) -> NeighborModel:
        """Not to be had: a release takes models of this kind, and knows not where they are from."""
        return NeighborModel(bias=self.means, neighbors=self.neighbors, weights=self.similarity)

    @property
    def items(self) -> int:
        """The size of the catalogue."""
        return self.means.items

    def scores(self, history: History) -> Floats:
        """The sum of the noisy similarities to the history."""
        return self._model.scores(history)

    def predict(self, history: History) -> Floats:
        """rbar_i + sum_j s_ij (r_aj - rbar_j) / sum_j |s_ij|, over neighbors that a rated."""
        return self._model.predict(history)

    def arrays(self) -> NoReturn:
        """Refused: whoever stores a model wants to publish it."""
        raise InputError(
            f"{self.kind} {self.promise} and can't become a release. docs/pncf.md has the "
            "attacks; a private recommender has a guarantee."
        )

    def to_dict(self) -> dict[str, Any]:
        """What it is, for ``--json``; nothing of what it learned."""
        return {
            "kind": self.kind,
            "promise": self.promise,
            "epsilon_as_published": self.spec.epsilon,
        }


@dataclass(frozen=True, kw_only=True, eq=False)
class ItemPairs:
    """One item with every other one that somebody rated too: exact, sensitive."""

    others: Codes
    raters: Floats
    """How many rated both."""
    similarity: Floats
    sensitivity: Floats
    """RS, not smoothed."""


@dataclass(frozen=True, eq=False)
class PairTable:
    """Ratings by item as well as by person, to go through pairs of items row by row."""

    ratings: RatingRows

    @cached_property
    def squares(self) -> Floats:
        """|r_i|^2 for each item, over all who rated it."""
        return self.ratings.item_sums(self.ratings.ratings**2)

    @cached_property
    def _by_item(self) -> tuple[Codes, Codes]:
        order = np.argsort(self.ratings.items, kind="stable")
        starts = np.concatenate([[0], np.cumsum(self.ratings.counts)]).astype(np.int64)
        return order, starts

    @cached_property
    def _persons(self) -> Codes:
        return self.ratings.persons

    def pairs(self, item: int, *, similarity: Similarity = "cosine") -> ItemPairs:
        """Similarity and RS with each other item.

        There is one RS for both, made for the cosine; for Pearson it bounds nothing.
        """
        own, other = self._met(item)
        size, values = self.ratings.catalogue, self.ratings.ratings
        met, x, y = self.ratings.items[other], values[own], values[other]
        raters = np.bincount(met, minlength=size)
        dots: Floats = np.bincount(met, x * y, size).astype(np.float64)
        norms = np.sqrt(self.squares[item] * self.squares)
        cosine = np.divide(dots, norms, out=np.zeros(size), where=norms > 0)
        change = largest_changes(
            x, y, self.squares[item], self.squares[met], dots[met], cosine[met]
        )
        sensitivity = np.zeros(size)
        np.maximum.at(sensitivity, met, change)
        measure = cosine if similarity == "cosine" else _correlations(met, x, y, raters, dots)
        others = np.flatnonzero(raters)
        return ItemPairs(
            others=others,
            raters=raters[others].astype(np.float64),
            similarity=measure[others],
            sensitivity=sensitivity[others],
        )

    def only_raters(self, item: int, pairs: ItemPairs) -> Codes:
        """Who alone rated both the item and some other one."""
        own, other = self._met(item)
        alone = np.zeros(self.ratings.catalogue, dtype=bool)
        alone[pairs.others[pairs.raters == 1]] = True
        return np.unique(self._persons[own[alone[self.ratings.items[other]]]])

    def _met(self, item: int) -> tuple[Codes, Codes]:
        """The rows of the item's ratings, each with every other rating of the same person."""
        order, starts = self._by_item
        own = order[starts[item] : starts[item + 1]]
        first = self.ratings.starts[self._persons[own]]
        lengths = self.ratings.starts[self._persons[own] + 1] - first
        ends = np.cumsum(lengths)
        other = np.arange(lengths.sum()) + np.repeat(first - ends + lengths, lengths)
        differs = self.ratings.items[other] != item
        return np.repeat(own, lengths)[differs], other[differs]


def largest_changes(
    x: Floats, y: Floats, square: float, squares: Floats, dots: Floats, similarity: Floats
) -> Floats:
    """What removing one common rater may change of a cosine, by the paper's two terms.

    max(x y / (|r_i'| |r_j'|), <r_i, r_j> (|r_i||r_j| - |r_i'||r_j'|) / (|r_i||r_j||r_i'||r_j'|)),
    primes: without that person. The change itself is the first less the second. Nothing is
    said about what holds for someone who is the only rater of an item: then all of it is lost.

    Args:
        x: The person's rating of item i.
        y: Of item j.
        square: |r_i|^2.
        squares: |r_j|^2.
        dots: <r_i, r_j>.
        similarity: Their cosine.
    """
    left = np.sqrt(np.maximum(square - x**2, 0.0) * np.maximum(squares - y**2, 0.0))
    whole = np.sqrt(square * squares)
    with np.errstate(divide="ignore", invalid="ignore"):
        change = np.maximum(x * y / left, dots * (whole - left) / (whole * left))
    return np.where(left > 0, change, similarity)


def fit_pncf(ratings: RatingRows, spec: Pncf, *, low: float, high: float, rng: Rng) -> PncfModel:
    """Choose neighbors and put noise on similarities, for each item with all of epsilon.

    Args:
        ratings: Exact; nothing of them is protected.
        spec: Parameters.
        low: The end of the scale.
        high: The other one.
        rng: For choices and noise.
    """
    table, width = PairTable(ratings), min(spec.k, ratings.catalogue)
    neighbors = np.full((ratings.catalogue, width), -1, dtype=np.int32)
    weights = np.zeros((ratings.catalogue, width))
    for item in range(ratings.catalogue):
        codes, similarity = noisy_neighbors(table, item, spec, rng=rng)
        neighbors[item, : codes.size], weights[item, : codes.size] = codes, similarity
    means = item_means(ratings, low=low, high=high)
    return PncfModel(spec=spec, means=means, neighbors=neighbors, similarity=weights)


def noisy_neighbors(table: PairTable, item: int, spec: Pncf, *, rng: Rng) -> tuple[Codes, Floats]:
    """The chosen neighbors of one item and their noisy similarities, the most similar first."""
    pairs = table.pairs(item, similarity=spec.similarity)
    chosen = choose_neighbors(pairs, spec, rng=rng)
    noise = spec.scales(pairs.sensitivity[chosen]) * _laplace(chosen.size, rng)
    similarity = pairs.similarity[chosen] + noise
    order = np.argsort(-similarity, kind="stable")
    return pairs.others[chosen[order]], similarity[order]


def choose_neighbors(pairs: ItemPairs, spec: Pncf, *, rng: Rng) -> Codes:
    """Indices of k others, drawn without replacement in proportion to their weights.

    The largest of ln(weight) + Gumbel noise are such a draw (Yellott 1977, Vieira 2014).
    """
    candidates, logs = log_weights(pairs, spec)
    keys = logs + _gumbel(candidates.size, rng)
    return candidates[np.argsort(-keys, kind="stable")[: spec.k]]


def log_weights(pairs: ItemPairs, spec: Pncf) -> tuple[Codes, Floats]:
    """Indices of the candidates, and epsilon s / (4 k RS) of each, s truncated, RS its own."""
    candidates = np.argsort(-pairs.similarity, kind="stable")[: spec.candidates]
    sensitivity = exp(-spec.beta) * pairs.sensitivity[candidates]
    similarity = truncated(pairs.similarity[candidates], sensitivity, spec)
    known = np.where(sensitivity > 0, sensitivity, np.inf)
    return candidates, spec.epsilon * similarity / (4 * spec.k * known)


def truncated(similarity: Floats, sensitivity: Floats, spec: Pncf) -> Floats:
    """max(s, s_k - w), w = min(s_k, (4 k RS / epsilon) ln(k (v - k) / rho)); RS is the largest.

    Args:
        similarity: Of v candidates, the largest first.
        sensitivity: Smoothed, of the same.
        spec: k, epsilon and rho (``missing``).
    """
    v, k = similarity.size, spec.k
    if v <= k:
        return similarity
    least, log_odds = float(similarity[k - 1]), log(k * (v - k) / spec.missing)
    width = min(least, 4 * k * float(sensitivity.max()) / spec.epsilon * log_odds)
    return np.asarray(np.maximum(similarity, least - width))


def laplace_step(table: PairTable, item: int, others: Codes, spec: Pncf) -> tuple[Floats, Floats]:
    """Centers and scales of the noisy similarities of an item with some others.

    A scale of 0 says that nothing comes out: without a common rater two items are no candidates.
    """
    pairs = table.pairs(item, similarity=spec.similarity)
    centers, sensitivity = np.zeros((2, table.ratings.catalogue))
    centers[pairs.others], sensitivity[pairs.others] = pairs.similarity, pairs.sensitivity
    return centers[others], spec.scales(sensitivity[others])


def without(ratings: RatingRows, removed: NDArray[np.bool_]) -> RatingRows:
    """The neighboring ratings that lack some, such as ``ratings.persons == p``."""
    remaining = ~removed
    return RatingRows.of(
        ratings.persons[remaining],
        ratings.items[remaining].astype(np.int64),
        ratings.ratings[remaining],
        people=ratings.people,
        catalogue=ratings.catalogue,
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class SingleRaters:
    """Pairs of items that one person alone ties together: what the support of PNCF gives away."""

    pairs: int
    """That somebody rated both of."""
    single: int
    """Of these, that exactly one person did."""
    people: int
    """Who rated anything."""
    exposed: int
    """Of these, who are that person for some pair."""


def single_raters(ratings: RatingRows) -> SingleRaters:
    """Count them."""
    table, exposed = PairTable(ratings), np.zeros(ratings.people, dtype=bool)
    twice = np.zeros(2, dtype=np.int64)  # each pair is met from both its items
    for item in range(ratings.catalogue):
        pairs = table.pairs(item)
        twice += np.array([pairs.others.size, np.count_nonzero(pairs.raters == 1)])
        exposed[table.only_raters(item, pairs)] = True
    return SingleRaters(
        pairs=int(twice[0]) // 2,
        single=int(twice[1]) // 2,
        people=int(np.count_nonzero(np.diff(ratings.starts))),
        exposed=int(exposed.sum()),
    )


def _correlations(met: NDArray[np.int32], x: Floats, y: Floats, n: Codes, dots: Floats) -> Floats:
    """Pearson's, over common raters; 0 where one of both does not vary."""
    sums = [np.bincount(met, values, n.size) for values in (x, y, x * x, y * y)]
    spread = (n * sums[2] - sums[0] ** 2) * (n * sums[3] - sums[1] ** 2)
    both = n * dots - sums[0] * sums[1]
    return np.divide(both, np.sqrt(np.maximum(spread, 0)), out=np.zeros(n.size), where=spread > 0)


def _gumbel(n: int, rng: Rng) -> Floats:
    return -np.log(-np.log(_open_uniform(n, rng)))


def _laplace(n: int, rng: Rng) -> Floats:
    """Of scale 1: the difference of two exponential numbers."""
    return np.log(_open_uniform(n, rng)) - np.log(_open_uniform(n, rng))


def _open_uniform(n: int, rng: Rng) -> Floats:
    return rng.uniform(n) + 2.0**-54  # never 0, never 1
