"""Weighted sums over people's ratings, as the gate measures them, as cases.

One call measures many disjoint groups of items, each an experiment of its own: the same people
rate each group's items in the same way, so its noisy sums are one output. An attacker who knows
all but one person looks along the line on which that person moves the sums; what is left of an
output is its place there, in quarters of a standard deviation.
"""

from collections.abc import Callable
from fractions import Fraction
from functools import cache
from math import exp
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.auditing.case import Case, Draw, Planted, with_larger
from sfumato.auditing.outputs import Outputs
from sfumato.curator.rating_sums import Gram, ItemSums, measured_gram, measured_sums
from sfumato.engine.ratings import Ratings, open_ratings
from sfumato.privacy.guarantees import ZCDP
from sfumato.privacy.protection import OnePerson
from sfumato.randomness import Rng
from sfumato.schema.ratings import RatingScale

Floats = NDArray[np.float64]
Measure = Callable[[Ratings, ZCDP, Rng], tuple[Floats, Floats]]
"""Noisy entries of each group, a row each, and their standard deviations."""

CLAIMED: Final = ZCDP(Fraction(1, 2))
RATED: Final = 4
"""Items of a group; the person in question rates them all, another one the first."""
_SCALE: Final = RatingScale(1, 5)
_MIDDLE: Final = 3.0
_BOUND: Final = 2.0
_BINS: Final = 4  # of an output in one standard deviation
_SUM_GROUPS: Final = 4_096
_GRAM_GROUPS: Final = 12  # a matrix of 12 x 4 items has 1,176 entries, of which 120 are used
_WITHOUT, _WITH, _TWICE = 0, 1, 2


def rating_sums(larger: Fraction) -> Case:
    """Counts and sums by item, one person more or less."""
    return _case("RatingSums", _sums, _SUM_GROUPS, larger)


def rating_gram(larger: Fraction) -> Case:
    """The matrix of products of ratings, one person more or less."""
    return _case("RatingGram", _gram, _GRAM_GROUPS, larger)


def _case(name: str, measure: Measure, groups: int, larger: Fraction) -> Case:
    def make(factor: Fraction, times: int = _WITH) -> Case:
        cost = ZCDP(CLAIMED.rho * factor**2)  # the multiple is one of 1 / sigma
        return Case(
            name=name,
            guarantee=CLAIMED,
            inputs=(_WITHOUT, times),
            draw=_along_the_change(measure, groups, cost),
            ratio=lambda: exp(_loss(measure, cost, times)),
            note=f"{RATED} items, one person who rated all more or less",
        )

    halved = Planted(bug="half the sensitivity", case=make(Fraction(2)))
    # Twice the share of a weighted person is the share of one whose four ratings are each given
    # the weight of a single one: sums 1 = 2 / sqrt(4), products 1 = 4 / 4, here half of that.
    heavy = Planted(bug="many ratings weigh as much as one", case=make(Fraction(1), _TWICE))
    return with_larger(make, larger, halved, heavy)


@cache
def _ratings(groups: int, times: int) -> Ratings:
    """In each group a bystander with one rating, and ``times`` the person who rated all of it."""
    group = np.repeat(np.arange(groups), 1 + times * RATED)
    items = np.tile(np.concatenate([[0], *([np.arange(RATED)] * times)]), groups)
    persons = np.tile(np.concatenate([[0], np.repeat(np.arange(times) + 1, RATED)]), groups)
    table = pa.table(
        {
            "user": group * (times + 1) + persons,
            "item": group * RATED + items,
            "rating": np.full(items.size, 5),
        }
    )
    return open_ratings(table, catalogue=range(groups * RATED), scale=_SCALE)


def _sums(ratings: Ratings, cost: ZCDP, rng: Rng) -> tuple[Floats, Floats]:
    items = len(ratings.catalogue)
    ask = ItemSums(offsets=np.full(items, _MIDDLE), bound=_BOUND, c0=1)
    found = measured_sums(ratings, ask, cost, OnePerson(max_rows=RATED), rng=rng)
    entries = [part.reshape(-1, RATED) for part in (found.counts, found.sums)]
    sigma = np.repeat([found.sigma_counts, found.sigma_sums], RATED)
    return np.concatenate(entries, axis=1), sigma


def _gram(ratings: Ratings, cost: ZCDP, rng: Rng) -> tuple[Floats, Floats]:
    items = len(ratings.catalogue)
    ask = Gram(items=np.arange(items), c0=1, bound=_BOUND, offsets=np.full(items, _MIDDLE))
    found = measured_gram(ratings, ask, cost, OnePerson(max_rows=RATED), rng=rng)
    first = np.arange(0, items, RATED)[:, np.newaxis]
    row, column = np.triu_indices(RATED)  # the lower half repeats the upper one
    sigma = np.where(row == column, found.sigma_diagonal, found.sigma)
    return found.matrix[first + row, first + column], sigma


def _change(measure: Measure, cost: ZCDP, times: int) -> tuple[Floats, Floats]:
    """What the person adds to the entries, and the deviations: with one seed the noise cancels."""
    from sfumato.randomness import simulation_rng

    (one, sigma), (other, _) = (
        measure(_ratings(1, which), cost, simulation_rng(0)) for which in (times, _WITHOUT)
    )
    return (one - other)[0], sigma


def _loss(measure: Measure, cost: ZCDP, times: int) -> float:
    """The rho of that change."""
    change, sigma = _change(measure, cost, times)
    return float(((change / sigma) ** 2).sum() / 2)


def _along_the_change(measure: Measure, groups: int, cost: ZCDP) -> Draw:
    change, sigma = _change(measure, cost, _WITH)
    direction = change / sigma / np.linalg.norm(change / sigma)

    def draw(times: int, n: int, *, rng: Rng) -> Outputs:
        ratings, places = _ratings(groups, times), np.empty(0)
        while places.size < n:
            entries, _ = measure(ratings, cost, rng)
            places = np.concatenate([places, entries / sigma @ direction])
        return np.rint(places[:n] * _BINS).astype(np.int16)

    return draw


CASES: Final = {"RatingSums": rating_sums, "RatingGram": rating_gram}
"""As ``cases.CASES`` takes them."""
