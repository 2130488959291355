"""From counted answers of randomized devices to frequencies, with standard errors.

The inverse of a transition matrix is unbiased but gives frequencies below zero and noise without
end; expectation maximization looks for the likeliest frequencies that could exist. With a smoothing
step it recovers densities of numbers from very noisy answers.
"""

from collections.abc import Callable
from fractions import Fraction
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sfumato import check
from sfumato.errors import InputError
from sfumato.models.model import project

Frequencies = NDArray[np.float64]


def debias(
    supports: NDArray[Any], n: int, p: Fraction | float, q: Fraction | float
) -> tuple[Frequencies, Frequencies]:
    """Unbiased frequencies and their standard errors.

    With c of n answers in support of a category, f = (c/n - q)/(p - q), and its variance is
    (q(1-q)/(p-q)^2 + f(1-p-q)/(p-q))/n, taken at the estimate cut to [0, 1]. That is the noise of
    the answers alone: how far f is from the share among those who answered. A statement about the
    population they were drawn from adds f(1-f)/n. Frequencies are not cut: they may be negative.
    Wang, Blocki, Li, Jha 2017, "Locally differentially private protocols for frequency
    estimation", USENIX Security, equations 2 and 5.

    Args:
        supports: The number of answers that support each category.
        n: The number of answers.
        p: The probability that an answer supports the true category.
        q: The probability that it supports a given other one.

    >>> frequencies, errors = debias(np.array([60, 40]), 100, p=0.75, q=0.25)
    >>> frequencies.round(3).tolist(), errors.round(4).tolist()
    ([0.7, 0.3], [0.0866, 0.0866])
    """
    if n == 0:
        raise InputError(
            "there are no answers, so no frequency can be estimated. Collect some first."
        )
    check.whole(at_least=1, n=n)
    if not 0 <= q < p <= 1:
        raise InputError(
            f"p and q must be probabilities with q < p, got p={float(p):g} and q={float(q):g}."
        )
    shift, gap = float(q), float(p - q)
    frequencies = (np.asarray(supports, dtype=np.float64) / n - shift) / gap
    rare, slope = float(q * (1 - q)) / gap**2, float(1 - p - q) / gap
    variances = rare + np.clip(frequencies, 0.0, 1.0) * slope
    return frequencies, np.sqrt(np.maximum(variances, 0.0) / n)  # rounding may give -1e-17


def norm_sub(frequencies: Frequencies) -> Frequencies:
    """The nearest frequencies that are not negative and sum to 1: see ``models.model.project``.

    >>> norm_sub(np.array([0.9, 0.3, -0.1])).round(3).tolist()
    [0.8, 0.2, 0.0]
    """
    return project(np.asarray(frequencies, dtype=np.float64), 1.0)


Vector = NDArray[np.float64]
Product = Callable[[Vector], Vector]

_SPARSE: Final = 1 / 32
"""Below this share of entries that differ from the row above, multiplying those is faster."""

_WIDEST: Final = 1e-6
"""Sums over differences lose digits where the smallest entry is less than this of the largest."""


def expectation_maximization(
    counts: NDArray[Any],
    transition: NDArray[np.float64],
    *,
    smooth: bool = False,
    tolerance: float = 1e-3,
    max_rounds: int = 10_000,
) -> Vector:
    """The frequencies of the inputs that make the counted answers likeliest.

    From equal frequencies on, f_i <- f_i / n * sum_a c_a M_ia / (f M)_a: each round shares out the
    answers to the inputs that may have caused them, and the likelihood never falls. Also known as
    iterative Bayesian update; Dempster, Laird, Rubin 1977; Agrawal, Aggarwal 2001. With ``smooth``
    each round ends with an average of neighbors, weights 1-2-1, for inputs that are points of a
    line: EMS of Li et al. 2020, arXiv 1912.01047, section 5.5.

    Args:
        counts: How often each answer was given; they need not be whole.
        transition: The probability of each answer (columns) under each input (rows).
        smooth: Average neighbors in each round.
        tolerance: Stop when a round changes the log-likelihood of all answers by less.
        max_rounds: Stop then at the latest; the frequencies are usable after any round.
    """
    counts, matrix = _checked(counts, transition)
    predict, explain = _products(matrix)
    given = counts > 0
    frequencies = np.full(len(matrix), 1 / len(matrix))
    expected, before = predict(frequencies), -np.inf
    for _ in range(max_rounds):
        shares = np.divide(counts, expected, out=np.zeros_like(counts), where=given)
        frequencies = frequencies * explain(shares)
        if smooth:
            frequencies = smoothed(frequencies)
        frequencies /= frequencies.sum()
        expected = predict(frequencies)
        now = _log_likelihood(counts[given], expected[given])
        if abs(now - before) < tolerance:
            break
        before = now
    return frequencies


def smoothed(frequencies: Vector) -> Vector:
    """Averages of neighbors with the weights 1-2-1; at an end, 2-1 of what is there.

    >>> smoothed(np.array([0.0, 0.0, 12.0, 0.0])).tolist()
    [0.0, 3.0, 6.0, 4.0]
    """
    sums = 2 * frequencies
    sums[1:] += frequencies[:-1]
    sums[:-1] += frequencies[1:]
    weights = np.full(frequencies.size, 4.0)
    weights[0] -= 1
    weights[-1] -= 1
    return np.asarray(sums / weights)


def _log_likelihood(counts: Vector, expected: Vector) -> float:
    return float(counts @ np.log(expected))


def _products(matrix: NDArray[np.float64]) -> tuple[Product, Product]:
    """Functions for f M and M x.

    In a matrix whose rows differ from each other in few places (a window that moves, a diagonal),
    the differences are multiplied and then summed up: hundreds of times less work for 1,024 rows.
    """
    changes = np.diff(matrix, axis=0, prepend=np.zeros((1, matrix.shape[1])))
    rows, columns = np.nonzero(changes)
    if rows.size > _SPARSE * matrix.size or matrix.min() < _WIDEST * matrix.max():
        return lambda f: f @ matrix, lambda x: matrix @ x
    steps, (inputs, answers) = changes[rows, columns], matrix.shape

    def predict(f: Vector) -> Vector:
        tails = np.cumsum(f[::-1])[::-1]
        return np.bincount(columns, steps * tails[rows], minlength=answers).astype(np.float64)

    def explain(x: Vector) -> Vector:
        return np.cumsum(np.bincount(rows, steps * x[columns], minlength=inputs), dtype=np.float64)

    return predict, explain


def _checked(counts: Any, transition: Any) -> tuple[Vector, NDArray[np.float64]]:
    tally, matrix = np.asarray(counts), np.asarray(transition, dtype=np.float64)
    if matrix.ndim != 2 or not len(matrix) or not (matrix >= 0).all():
        raise InputError("a transition must be a matrix of probabilities, inputs by answers")
    if not np.allclose(matrix.sum(axis=1), 1, rtol=0, atol=1e-6):
        raise InputError("every row of a transition must sum to 1: inputs are rows, not columns")
    if tally.shape != matrix.shape[1:] or tally.dtype.kind not in "iuf":
        raise InputError(
            f"counts must be one number for each of the {matrix.shape[1]} answers, got "
            f"{tally.dtype} of shape {tally.shape}."
        )
    tally = tally.astype(np.float64)
    if not (np.isfinite(tally) & (tally >= 0)).all():
        raise InputError("counts must be finite and >= 0.")
    if not tally.any():
        raise InputError("frequencies are not estimable from no answers. Collect at least one.")
    if (tally[~matrix.any(axis=0)] > 0).any():
        raise InputError("an answer was counted that no input can give.")
    return tally, matrix
