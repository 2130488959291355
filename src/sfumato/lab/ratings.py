"""Ratings by nobody, made to measure with: popular items, tastes, and numbers that follow both."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from sfumato import check
from sfumato.errors import InputError
from sfumato.models.items.rating_rows import RatingRows
from sfumato.randomness import Rng

Codes = NDArray[np.int64]
Floats = NDArray[np.float64]

GENRES: Final = 12
"""Groups of items; each person likes two."""
FACTORS: Final = 4
"""Hidden numbers of each person and item, beside the genres."""
_OWN_GENRE: Final = 0.6  # share of choices that stay in the genres a person likes
_HEAD: Final = 20  # popularity falls like 1/(20 + rank): the first items are about equally popular


def made_ratings(people: int, *, items: int, ratings: int, rng: Rng) -> RatingRows:
    """The given number of ratings from 1 to 5, each person and item at most once.

    How active people are is exponential, how popular items are falls like 1/(20 + rank). Each
    person likes two of 12 genres and chooses mostly from these. A rating is 3.5, plus what the
    item, the person, the genre and 4 hidden factors add, plus noise, rounded: there is something
    to learn about the order of items and about the numbers.
    """
    check.whole(at_least=1, people=people)
    check.whole(at_least=1, items=items)
    check.whole(at_least=1, ratings=ratings)
    if ratings > people * items / 4:
        raise InputError(
            f"{ratings:,} ratings are more than a quarter of {people:,} people times {items:,} "
            "items. Ask for fewer."
        )
    genre = rng.permutation(items) % GENRES
    liked = rng.below(GENRES, 2 * people).reshape(2, people)
    person, item = _choices(people, genre, liked, ratings, rng)
    likes = (genre[item] == liked[:, person]).any(axis=0)
    value = 3.3 + 0.5 * likes + _normal(items, rng)[item] * 0.4 + _normal(people, rng)[person] * 0.4
    for _ in range(FACTORS):
        value += 0.3 * _normal(items, rng)[item] * _normal(people, rng)[person]
    value += 0.7 * _normal(ratings, rng)
    rating = np.clip(np.rint(value), 1, 5)
    return RatingRows.of(person, item, rating, people=people, catalogue=items)


def _choices(
    people: int, genre: Codes, liked: Codes, ratings: int, rng: Rng
) -> tuple[Codes, Codes]:
    """Persons and items, each pair once: drawn until there are enough, the surplus dropped."""
    items = genre.size
    by_genre = np.argsort(genre, kind="stable")
    popular = 1.0 / (_HEAD + rng.permutation(items))
    upto = np.concatenate([[0.0], np.cumsum(popular[by_genre])])
    edges = upto[np.searchsorted(genre[by_genre], np.arange(GENRES + 1))]
    active = np.cumsum(0.2 - np.log1p(-rng.uniform(people)))
    pairs = np.zeros(0, dtype=np.int64)
    while pairs.size < ratings:
        n = ratings - pairs.size + ratings // 8
        person = _draw(active, rng.uniform(n) * active[-1])
        chosen = liked[rng.below(2, n), person]
        own = rng.uniform(n) < _OWN_GENRE
        low, high = np.where(own, edges[chosen], 0.0), np.where(own, edges[chosen + 1], upto[-1])
        position = _draw(upto[1:], low + rng.uniform(n) * (high - low))
        pairs = np.sort(np.concatenate([pairs, person * items + by_genre[position]]))
        pairs = pairs[np.diff(pairs, prepend=-1) > 0]
    drawn = np.sort(rng.permutation(pairs.size)[:ratings])
    return pairs[drawn] // items, pairs[drawn] % items


def _draw(upto: Floats, at: Floats) -> Codes:
    """The index whose stretch of the cumulated weights contains each number."""
    return np.minimum(np.searchsorted(upto, at, side="right"), upto.size - 1)


def _normal(n: int, rng: Rng) -> Floats:
    """Box and Muller 1958."""
    radius = np.sqrt(-2 * np.log1p(-rng.uniform(n)))
    return np.asarray(radius * np.cos(2 * np.pi * rng.uniform(n)))
