"""Projection of noisy counts to counts that could exist: not negative, with a given sum."""

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InternalError


def project(counts: NDArray[np.float64], total: float) -> NDArray[np.float64]:
    """The nearest counts in Euclidean distance that are >= 0 and sum to ``total``.

    Subtract one number from all and cut at zero; the number is found on the sorted counts. Also
    known as norm-sub. Held, Wolfe, Crowder 1974, "Validation of subgradient optimization"; Wang
    et al. 2020, arXiv 1905.08320, section 4.

    >>> project(np.array([3.0, 1.0, -2.0]), 3.0).tolist()
    [2.5, 0.5, 0.0]
    """
    if not np.isfinite(counts).all() or not 0 <= total < np.inf:
        raise InternalError("noisy counts must be finite and their total must not be negative")
    # Seen from the largest count, and no farther down than the total: whatever lies below becomes
    # zero, and so counts that are huge against the total lose no digits.
    below = np.maximum(counts.reshape(-1) - counts.max(), -total)
    falling = np.sort(below)[::-1]
    excess = (np.cumsum(falling) - total) / np.arange(1, below.size + 1)
    kept = np.flatnonzero(falling > excess)
    shift = excess[kept[-1]] if kept.size else 0.0  # nothing is kept only of a total of zero
    return np.asarray(np.maximum(below - shift, 0.0)).reshape(counts.shape)


def estimated_total(counts: NDArray[np.float64]) -> float:
    """The sum of noisy counts, never below zero: the total when nobody declared one."""
    return max(0.0, float(counts.sum()))
