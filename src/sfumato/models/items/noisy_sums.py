"""What noisy counts and sums of an item say about it, judged by the known noise: empirical Bayes.

Every prior is fitted to the same released numbers, so that all of it is post-processing.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_LEAST_COUNT = 0.2
"""No item is taken to have less than this share of the mean count: noise is larger than that."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Spread:
    """Public guesses about ratings, in ratings."""

    items: float
    """The variance of what items get, beyond what their popularity tells."""
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
    that of sum - mean count, which tells about liking.
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
    kept = true_variance / (true_variance + sigma**2) if true_variance else 0.0
    return np.maximum(mean + kept * (counts - mean), _LEAST_COUNT * mean)


def mean_residual(noisy: NoisySums, *, guess: float, variance: float) -> float:
    """The mean over all ratings: sum / count, moved towards a public guess by the known noise.

    Its error has about the variance (sigma_sums^2 + guess^2 sigma_counts^2) items / count^2.
    """
    total = float(noisy.counts.sum())
    noise = noisy.counts.size * (noisy.sigma_sums**2 + (guess * noisy.sigma_counts) ** 2)
    if total <= 0:
        return guess
    kept = variance / (variance + noise / total**2)
    return guess + kept * (float(noisy.sums.sum()) / total - guess)


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
    seen = n[:, None] * line
    held = np.diag([0.5, 0.05]) * spread.items  # prior variances of level and slope
    fitted = np.linalg.solve(
        seen.T @ (seen / variance[:, None]) + np.linalg.inv(held), seen.T @ (d / variance)
    )
    prior = line @ fitted
    biases: Floats = prior + (d - n * prior) * n * spread.items / variance
    return biases
