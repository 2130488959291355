"""What items get above the mean, shrunk: from exact sums and counts, or from noisy ones.

Exact: Koren 2010. Noisy sums are judged by their known noise (empirical Bayes); every prior is
fitted to the same released numbers, so that all of it is post-processing.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato import check
from sfumato.errors import InputError
from sfumato.models.items.rating_rows import RatingRows
from sfumato.models.items.recommenders import BiasModel

Floats = NDArray[np.float64]

_LEAST_COUNT = 0.2
"""No item is taken to have less than this share of the mean count: noise is larger than that."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Spread:
    """Public guesses about ratings, in ratings."""

    items: float
    """The variance of what items get, beyond what their popularity predicts."""
    ratings: float
    """The variance of one rating around its item."""


@dataclass(frozen=True, kw_only=True, eq=False)
class NoisySums:
    """For each item a weighted count and the sum of weighted residuals, with noise."""

    counts: Floats
    sums: Floats
    sigma_counts: float
    sigma_sums: float
    weight: float
    """What one rating adds to a count, about."""


def best_counts(noisy: NoisySums, mean: float) -> tuple[Floats, float]:
    """Counts as counts and sums tell them together, and their noise.

    A sum is about mean count, so it counts too: (count + k sum) / (1 + k mean) with
    k = mean sigma_counts^2 / sigma_sums^2 has the least noise, and its noise is not correlated with
    that of sum - mean count, which measures liking.
    """
    k = mean * (noisy.sigma_counts / noisy.sigma_sums) ** 2
    counts = (noisy.counts + k * noisy.sums) / (1 + k * mean)
    sigma = np.hypot(noisy.sigma_counts, k * noisy.sigma_sums) / (1 + k * mean)
    return counts, float(sigma)


def likely_counts(counts: Floats, sigma: float) -> Floats:
    """Counts moved towards their mean by the share of their variance that is noise (Efron, Morris).

    >>> likely_counts(np.array([0.0, 4.0]), 2.0).tolist()
    [2.0, 2.0]
    """
    mean = max(float(counts.mean()), 1e-9)
    true_variance = max(float(counts.var()) - sigma**2, 0.0)
    factor = true_variance / (true_variance + sigma**2) if true_variance else 0.0
    return np.maximum(mean + factor * (counts - mean), _LEAST_COUNT * mean)


def mean_residual(noisy: NoisySums, *, guess: float, variance: float) -> float:
    """The mean over all ratings: sum / count, moved towards a public guess by the known noise.

    Its error has about the variance (sigma_sums^2 + guess^2 sigma_counts^2) items / count^2.
    """
    total = float(noisy.counts.sum())
    noise = noisy.counts.size * (noisy.sigma_sums**2 + (guess * noisy.sigma_counts) ** 2)
    if total <= 0:
        return guess
    factor = variance / (variance + noise / total**2)
    return guess + factor * (float(noisy.sums.sum()) / total - guess)


def item_biases(noisy: NoisySums, *, mean: float, spread: Spread) -> Floats:
    """What each item gets above ``mean``, given its sum, its count and how popular items do.

    With n the likely count and d = sum - mean count, d = n b + error, whose variance is
    n w ratings + sigma^2. The prior of b is a line in log n, since popular items are liked more,
    with variance ``spread.items`` around it; the line is fitted by weighted least squares with
    slopes held near 0. The mean of the posterior follows; where noise is all, it is the line.
    """
    n = likely_counts(*best_counts(noisy, mean))
    d = noisy.sums - mean * noisy.counts
    error = n * noisy.weight * spread.ratings
    error += noisy.sigma_sums**2 + (mean * noisy.sigma_counts) ** 2
    variance = n**2 * spread.items + error
    line = np.column_stack([np.ones(n.size), np.log(n / n.mean())])
    design = n[:, None] * line
    variances = np.diag([0.5, 0.05]) * spread.items  # prior variances of level and slope
    fitted = np.linalg.solve(
        design.T @ (design / variance[:, None]) + np.linalg.inv(variances),
        design.T @ (d / variance),
    )
    prior = line @ fitted
    biases: Floats = prior + (d - n * prior) * n * spread.items / variance
    return biases


def shrunk_means(sums: Floats, counts: Floats, *, strength: float) -> Floats:
    """b_i = sum_i / (max(count_i, 0) + strength): 0 where nothing is known.

    The minimizer of sum_u (x_ui - b_i)^2 + strength b_i^2. A noisy count may be negative: the
    item then has few ratings.

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
    """Each item's mean, for every person; the mean of all for an item without ratings."""
    mean = float(ratings.ratings.mean()) if ratings.items.size else (low + high) / 2
    left = ratings.item_sums(ratings.ratings - mean)
    above = shrunk_means(left, ratings.counts, strength=0.0)
    return BiasModel(low=low, high=high, mean=mean, item_bias=above, strength=np.inf)


def own_mean(*, low: float, high: float, items: int) -> BiasModel:
    """The person's own mean, or the middle of the scale without one: uses nobody else's ratings."""
    middle = (low + high) / 2
    zero = np.zeros(check.whole(at_least=1, items=items))
    return BiasModel(low=low, high=high, mean=middle, item_bias=zero, strength=0.0)
