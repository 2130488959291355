"""What items get above the mean, shrunk: from sums and counts that may carry noise (Koren 2010)."""

import numpy as np
from numpy.typing import NDArray

from sfumato import check
from sfumato.errors import InputError
from sfumato.models.items.rating_rows import RatingRows
from sfumato.models.items.recommenders import BiasModel

Floats = NDArray[np.float64]


def shrunk_means(sums: Floats, counts: Floats, *, strength: float) -> Floats:
    """b_i = sum_i / (max(count_i, 0) + strength): 0 where nothing is known.

    The minimizer of sum_u (x_ui - b_i)^2 + strength b_i^2. A noisy count may be negative; it says
    that the item has few ratings.

    >>> shrunk_means(np.array([6.0, 1.0]), np.array([1.0, -3.0]), strength=2).tolist()
    [2.0, 0.5]
    """
    if not 0 <= strength < np.inf:
        raise InputError(f"strength must be >= 0, got {strength!r}.")
    known = np.maximum(counts, 0.0) + strength
    return np.divide(sums, known, out=np.zeros(known.size), where=known > 0)


def fit_bias(
    ratings: RatingRows,
    *,
    low: float,
    high: float,
    item_strength: float = 2.0,
    person_strength: float = 5.0,
    rounds: int = 10,
) -> BiasModel:
    """Mean, items and persons by turns: each shrunk mean is exact given the other.

    Minimizes sum (r - mean - b_i - b_u)^2 + item_strength |b_i|^2 + person_strength |b_u|^2. One
    round is the closed form from sums and counts by item.
    """
    check.whole(at_least=1, rounds=rounds)
    persons, items = ratings.persons, ratings.items
    mean = float(ratings.ratings.mean()) if items.size else (low + high) / 2
    rated, above = np.diff(ratings.starts), ratings.ratings - mean
    of_person = np.zeros(ratings.people)
    for _ in range(rounds):
        left = ratings.item_sums(above - of_person[persons])
        of_item = shrunk_means(left, ratings.counts, strength=item_strength)
        left = ratings.person_sums(above - of_item[items])
        of_person = shrunk_means(left, rated, strength=person_strength)
    return BiasModel(low=low, high=high, mean=mean, item_bias=of_item, strength=person_strength)


def item_means(ratings: RatingRows, *, low: float, high: float) -> BiasModel:
    """Each item's mean, whoever asks; the mean of all for an item that nobody rated."""
    mean = float(ratings.ratings.mean()) if ratings.items.size else (low + high) / 2
    left = ratings.item_sums(ratings.ratings - mean)
    above = shrunk_means(left, ratings.counts, strength=0.0)
    return BiasModel(low=low, high=high, mean=mean, item_bias=above, strength=np.inf)


def own_mean(*, low: float, high: float, items: int, strength: float = 0.0) -> BiasModel:
    """The person's own mean, shrunk towards the middle of the scale: knows nobody's ratings."""
    middle = (low + high) / 2
    zero = np.zeros(check.whole(at_least=1, items=items))
    return BiasModel(low=low, high=high, mean=middle, item_bias=zero, strength=strength)
