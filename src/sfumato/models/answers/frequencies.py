"""From counted answers of randomized devices to frequencies, each with its standard error."""

from fractions import Fraction
from statistics import NormalDist
from typing import Any

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


def interval(
    frequencies: Frequencies, errors: Frequencies, confidence: float
) -> tuple[Frequencies, Frequencies]:
    """Lower and upper ends of normal confidence intervals, f -+ z error.

    Each covers its own frequency with about the stated probability, all together with less. The
    ends are not cut to [0, 1]: an interval around a negative estimate would vanish.

    >>> low, high = interval(np.array([0.5]), np.array([0.1]), confidence=0.95)
    >>> low.round(3).tolist(), high.round(3).tolist()
    ([0.304], [0.696])
    """
    if not 0 < confidence < 1:
        raise InputError(f"confidence must be above 0 and below 1, got {confidence!r}")
    reach = NormalDist().inv_cdf((1 + confidence) / 2) * errors
    return frequencies - reach, frequencies + reach
