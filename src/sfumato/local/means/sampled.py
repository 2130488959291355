"""Means of many attributes: each person answers about a few of them, drawn at random.

Splitting epsilon over all d attributes would cost d^2 in variance, sampling costs d.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product
from math import comb, prod
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from sfumato import check
from sfumato.errors import InputError
from sfumato.local.layout import Answer, Answers, IntegerLayout
from sfumato.local.means.duchi import MAX_DIMENSIONS, Duchi
from sfumato.local.means.grid import MAX_POINTS
from sfumato.local.means.laplace import LocalLaplace
from sfumato.local.means.mechanism import (
    MeanEstimate,
    MeanMechanism,
    record_of,
    records_of,
)
from sfumato.local.means.piecewise import Hybrid, Piecewise
from sfumato.local.mechanism import (
    Codes,
    Counts,
    LocalMechanism,
    Transition,
    checked_tally,
    refuse_large,
    transition_of,
)
from sfumato.randomness import Rng

Inner = Literal["hybrid", "piecewise", "duchi", "laplace"]

_INNER: Final[dict[str, type[MeanMechanism]]] = {
    "hybrid": Hybrid,
    "piecewise": Piecewise,
    "duchi": Duchi,
    "laplace": LocalLaplace,
}

_BITS: Final = 63
"""Of an answer, so that it fits a signed integer of 64 bits."""


@dataclass(frozen=True, kw_only=True)
class SampledMeans(LocalMechanism):
    """k of d attributes, uniformly, each answered with eps / k by a one-dimensional mechanism.

    k = max(1, min(d, floor(eps / 2.5))). An answer is one integer: the rank of the set of
    attributes, then an answer for each of them in ascending order. Formal guarantee: epsilon-local
    DP for the whole record, the set being independent of it. Wang et al. 2019, arXiv 1907.00782,
    algorithm 4.
    """

    dimensions: int
    points: int = 1024
    """Points of each attribute's grid, as in ``Grid``."""
    inner: Inner = "hybrid"

    def __post_init__(self) -> None:
        super().__post_init__()
        check.keep_whole(self, at_least=1, at_most=MAX_DIMENSIONS, dimensions=self.dimensions)
        check.keep_whole(self, at_least=2, at_most=MAX_POINTS, points=self.points)
        check.one_of(_INNER, inner=self.inner)
        below = self.sets * self.mechanism.cells**self.sampled
        if below > 2**_BITS:
            raise InputError(
                f"an answer about {self.sampled} of {self.dimensions} attributes would take "
                f"{(below - 1).bit_length()} bits, at most {_BITS} are allowed. Use fewer points "
                "or a smaller epsilon."
            )

    @cached_property
    def sampled(self) -> int:
        """How many attributes a person answers about."""
        return max(1, min(self.dimensions, int(self.epsilon // Fraction(5, 2))))

    @cached_property
    def mechanism(self) -> MeanMechanism:
        """What answers about one attribute."""
        return _INNER[self.inner](points=self.points, epsilon=self.epsilon / self.sampled)

    @cached_property
    def sets(self) -> int:
        """How many sets of attributes there are to draw from."""
        return comb(self.dimensions, self.sampled)

    @property
    def inputs(self) -> int:
        """One code for each record: the first attribute is its lowest digit."""
        return int(self.points**self.dimensions)

    @cached_property
    def layout(self) -> IntegerLayout:
        """Rank of the set, then the answers, as digits with the lowest last."""
        return IntegerLayout(below=self.sets * self.mechanism.cells**self.sampled)

    @property
    def cells(self) -> int:
        """A tally of the inner mechanism for each attribute."""
        return self.dimensions * self.mechanism.cells

    def answer(self, code: int | Sequence[int], *, rng: Rng) -> Answer:
        """One answer, by plain integers, about the codes of d attributes or their one code."""
        record = record_of(code, base=self.points, length=self.dimensions)
        rank = int(rng.below(self.sets, 1)[0])
        packed = rank
        for attribute in self.attributes(np.array([rank]))[0]:
            answer = self.mechanism.response.draw(record[attribute], rng=rng)
            packed = packed * self.mechanism.cells + answer
        return packed

    def answer_many(self, codes: Codes, *, rng: Rng) -> Answers:
        """One answer for each row of d codes, or for each code of a record."""
        records = records_of(codes, base=self.points, length=self.dimensions)
        n = len(records)
        ranks = rng.below(self.sets, n)
        out, people = ranks.astype(np.uint64), np.arange(n)
        for attribute in self.attributes(ranks).T:
            out *= np.uint64(self.mechanism.cells)
            out += self.mechanism.answer_many(records[people, attribute], rng=rng)
        return out.astype(self.layout.dtype)

    def add(self, answers: Answers, counts: Counts) -> None:
        """Count each part of each answer in the tally of its attribute."""
        below, rest = np.uint64(self.mechanism.cells), answers.astype(np.uint64)
        parts = []
        for _ in range(self.sampled):
            rest, part = np.divmod(rest, below)
            parts.append(part.astype(np.int64))
        tally = self.attributes(rest.astype(np.int64)) * self.mechanism.cells
        for attribute, part in zip(tally.T, reversed(parts), strict=True):
            counts += np.bincount(attribute + part, minlength=self.cells)

    def transition(self) -> Transition:
        """The exact weights: for each set the products of its attributes' weights."""
        refuse_large(self, self.inputs * self.layout.below, fewer="dimensions or points")
        sets = self.attributes(np.arange(self.sets)).tolist()
        rows = [self.mechanism.response.row(code) for code in range(self.points)]
        whole = []
        for code in range(self.inputs):
            record = record_of(code, base=self.points, length=self.dimensions)
            chosen = ([rows[record[attribute]] for attribute in each] for each in sets)
            whole.append([prod(weights) for each in chosen for weights in product(*each)])
        return transition_of(range(self.layout.below), whole)

    def means(self, counts: Counts) -> list[MeanEstimate | None]:
        """The mean of each attribute with its standard error, or None without answers."""
        tallies = checked_tally(counts, self.cells).reshape(self.dimensions, -1)
        return [self.mechanism.mean(tally) if tally.any() else None for tally in tallies]

    def variance(self, value: float = 0.0) -> float:
        """The variance of one attribute's mean times the number of people, about: d/k answer."""
        return self.mechanism.variance(value) * self.dimensions / self.sampled

    @property
    def worst_variance(self) -> float:
        """The largest ``variance`` of any value."""
        return self.mechanism.worst_variance * self.dimensions / self.sampled

    def attributes(self, ranks: NDArray[np.int64]) -> NDArray[np.int64]:
        """The sets of these ranks, each ascending: the combinatorial number system.

        A set c_1 < ... < c_k has the rank sum of binom(c_j, j), and the largest c_k with
        binom(c_k, k) <= rank is its last member.
        """
        rest, out = ranks.astype(np.int64), np.empty((ranks.size, self.sampled), np.int64)
        for size in range(self.sampled, 0, -1):
            firsts = np.array([comb(c, size) for c in range(self.dimensions)])
            out[:, size - 1] = np.searchsorted(firsts, rest, side="right") - 1
            rest -= firsts[out[:, size - 1]]
        return out
