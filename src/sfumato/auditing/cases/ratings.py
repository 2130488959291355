"""Weighted sums over people's ratings, as the gate measures them, as cases.

One call measures many groups of items that share no entry, each an experiment of its own: the same
people rate each group in the same way, so its noisy entries are one output. An attacker who knows
all but one person looks along the line on which that person moves the entries; what is left of an
output is its position there, in quarters of a standard deviation.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import exp
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.auditing.case import Case, Planted, with_larger
from sfumato.auditing.checks import Outputs
from sfumato.auditing.statistics import rho_between
from sfumato.counting.ratings import Ratings
from sfumato.gate.rating_sums import Gram, ItemSums, measured_gram, measured_sums
from sfumato.privacy.guarantees import ZCDP
from sfumato.privacy.sensitivity import OnePerson
from sfumato.randomness import Rng, simulation_rng
from sfumato.readers.ratings import open_ratings
from sfumato.schema.ratings import RatingScale

Codes = NDArray[np.int64]
Floats = NDArray[np.float64]

CLAIMED: Final = ZCDP(Fraction(1, 2))
RATED: Final = 4
"""Items of a group: the person in question rates them all, a bystander the first."""

_SCALE: Final = RatingScale(1, 5)
_MIDDLE: Final = 3.0  # of the scale
_BOUND: Final = 2.0  # of a rating from the middle
_PRIME: Final = 61  # its square is the number of groups
_BINS: Final = 4  # of an output, in one standard deviation
_WITHOUT, _WITH, _TWICE = 0, 1, 2  # how often the person in question is there


def rating_sums(larger: Fraction) -> Case:
    """Counts and sums by item, one person more or less."""
    groups = np.arange(_PRIME**2 * RATED).reshape(-1, RATED)
    crowd = _Crowd(groups=groups, measure=_sums)
    return _case("RatingSums", crowd, larger, note=f"{RATED} items, all rated by the person")


def rating_gram(larger: Fraction) -> Case:
    """Products of ratings of any two items, one person more or less."""
    crowd = _Crowd(groups=_groups_without_common_pairs(), measure=_gram)
    note = f"{RATED} items, all rated by the person; seen beside the diagonal: 3/4 of the loss"
    return _case("RatingGram", crowd, larger, note=note)


CASES: Final = {"RatingSums": rating_sums, "RatingGram": rating_gram}
"""By their names, in the order of the table."""

Measure = Callable[[Ratings, Codes, ZCDP, Rng], tuple[Floats, Floats]]
"""Noisy entries of each group, a row each, and their standard deviations."""


@dataclass(frozen=True, kw_only=True, eq=False)
class _Crowd:
    """Groups of items that share no measured entry, and how they are measured."""

    groups: Codes
    measure: Measure

    @cached_property
    def ratings(self) -> tuple[Ratings, ...]:
        """Without the person in question, with them, with them under two names."""
        return tuple(self._rated(times) for times in (_WITHOUT, _WITH, _TWICE))

    def _rated(self, times: int) -> Ratings:
        own = [self.groups[:, :1], *[self.groups] * times]
        sizes = [1, *[RATED] * times]
        names = np.repeat(np.arange(1 + times), sizes)
        persons = np.arange(len(self.groups))[:, np.newaxis] * (1 + times) + names
        items = np.concatenate(own, axis=1)
        columns = {"user": persons.reshape(-1), "item": items.reshape(-1)}
        table = pa.table({**columns, "rating": np.full(items.size, 5)})
        return open_ratings(table, catalogue=range(int(self.groups.max()) + 1), scale=_SCALE)

    def outputs(self, times: int, cost: ZCDP, rng: Rng) -> tuple[Floats, Floats]:
        """Of each group."""
        return self.measure(self.ratings[times], self.groups, cost, rng)

    def moved(self, times: int, cost: ZCDP) -> tuple[Floats, Floats]:
        """What the person moves in a group, and the deviations: noise of one seed cancels."""
        (one, sigma), (other, _) = (
            self.outputs(which, cost, simulation_rng(0)) for which in (times, _WITHOUT)
        )
        return (one - other)[0], sigma


def _case(name: str, crowd: _Crowd, larger: Fraction, *, note: str) -> Case:
    def make(factor: Fraction, times: int = _WITH) -> Case:
        cost = ZCDP(CLAIMED.rho * factor**2)  # of 1 / sigma, the same multiple
        change, sigma = crowd.moved(_WITH, cost)
        direction = change / sigma / np.linalg.norm(change / sigma)

        def draw(times: int, n: int, *, rng: Rng) -> Outputs:
            positions, drawn = [np.empty(0)], 0
            while drawn < n:
                entries, _ = crowd.outputs(times, cost, rng)
                positions.append(entries / sigma @ direction)
                drawn += len(entries)
            return np.rint(np.concatenate(positions)[:n] * _BINS).astype(np.int16)

        def ratio() -> float:
            moved, sigma = crowd.moved(times, cost)
            return exp(rho_between(moved, np.zeros(moved.size), sigma))

        return Case(
            name=name,
            guarantee=CLAIMED,
            inputs=(_WITHOUT, times),
            draw=draw,
            ratio=ratio,
            note=note,
        )

    # Weights that do not fall with the number of ratings let four of them count like four people
    # with one each; two people is half of that, and must not pass either.
    heavy = Planted(bug="weights that do not fall", case=make(Fraction(1), _TWICE))
    halved = Planted(bug="half the sensitivity", case=make(Fraction(2)))
    return with_larger(make, larger, heavy, halved)


def _sums(ratings: Ratings, groups: Codes, cost: ZCDP, rng: Rng) -> tuple[Floats, Floats]:
    offsets = np.full(len(ratings.catalogue), _MIDDLE)
    ask = ItemSums(offsets=offsets, bound=_BOUND, c0=1)
    sums = measured_sums(ratings, ask, cost, OnePerson(max_rows=RATED), rng=rng)
    entries = np.concatenate([sums.counts[groups], sums.sums[groups]], axis=1)
    return entries, np.repeat([sums.sigma_counts, sums.sigma_sums], RATED)


def _gram(ratings: Ratings, groups: Codes, cost: ZCDP, rng: Rng) -> tuple[Floats, Floats]:
    items = len(ratings.catalogue)
    ask = Gram(items=np.arange(items), c0=1, bound=_BOUND, offsets=np.full(items, _MIDDLE))
    gram = measured_gram(ratings, ask, cost, OnePerson(max_rows=RATED), rng=rng)
    row, column = np.triu_indices(RATED, 1)
    entries = gram.matrix[groups[:, row], groups[:, column]]
    return entries, np.full(row.size, gram.sigma)


def _groups_without_common_pairs() -> Codes:
    """The points of lines y = s x + t modulo a prime, at x = 0 .. 3: two lines meet at most once.

    So no two groups have two items in common, and entries beside the diagonal are nobody else's.
    """
    slope, start = np.divmod(np.arange(_PRIME**2), _PRIME)
    x = np.arange(RATED)
    return x * _PRIME + (slope[:, np.newaxis] * x + start[:, np.newaxis]) % _PRIME
