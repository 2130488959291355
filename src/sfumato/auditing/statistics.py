"""Limits that hold with a stated confidence, from counts alone: no formula of a mechanism in them.

Clopper-Pearson limits of a probability; from two of them a lower bound of epsilon; and for
concentrated privacy a lower bound of rho from two samples of bounded scores.
"""

from math import exp, inf, lgamma, log, log1p, sqrt
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sfumato import check
from sfumato.errors import InputError, InternalError

_HALVINGS: Final = 60  # of [0, 1]: more than a float has digits
_MOST_TERMS: Final = 1_000_000  # of a continued fraction, far beyond those that are needed
_TINY: Final = 1e-300  # in place of 0, as Lentz's method needs
_ORDERS: Final = (1.5, 2.0, 3.0, 5.0)  # of Renyi divergences that are tried


def clopper_pearson(hits: int, runs: int, *, error: float) -> tuple[float, float]:
    """Limits of a probability, each of which is wrong with probability at most ``error``.

    Clopper, Pearson 1934, "The use of confidence or fiducial limits". The lower limit is the p
    for which ``hits`` or more has probability ``error``, the upper one the same for ``hits`` or
    fewer; both are rounded outward.

    >>> [round(limit, 4) for limit in clopper_pearson(3, 10, error=0.025)]
    [0.0667, 0.6525]
    """
    check.whole(at_least=1, runs=runs)
    check.whole(at_least=0, at_most=runs, hits=hits)
    if not 0 < error < 1:
        raise InputError(f"error must be above 0 and below 1, got {error!r}")
    low = 0.0 if hits == 0 else _where_beta_reaches(error, hits, runs - hits + 1)[0]
    high = 1.0 if hits == runs else _where_beta_reaches(1 - error, hits + 1, runs - hits)[1]
    return low, high


def epsilon_lower_bound(
    hits_x: int,
    runs_x: int,
    hits_y: int,
    runs_y: int,
    *,
    confidence: float,
    delta: float = 0.0,
) -> float:
    """A lower bound of epsilon from how often an event followed x and y; at least 0.

    (epsilon, delta)-DP allows P(E|x) <= e^epsilon P(E|y) + delta, so ln((lower limit of P(E|x) -
    delta) / upper limit of P(E|y)) is exceeded by no honest epsilon but with probability
    1 - confidence, which is split over both sides. Ding, Wang, Wang, Zhang, Kifer 2018, "Detecting
    violations of differential privacy", arXiv 1805.10277; Jagielski, Ullman, Oprea 2020, arXiv
    2006.07709, theorem 1.
    """
    error = _error(confidence) / 2
    low, _ = clopper_pearson(hits_x, runs_x, error=error)
    _, high = clopper_pearson(hits_y, runs_y, error=error)
    return max(0.0, log((low - delta) / high)) if low > delta else 0.0


def rho_lower_bound(
    scores_x: NDArray[np.float64], scores_y: NDArray[np.float64], *, width: float, confidence: float
) -> float:
    """A lower bound of the rho of zCDP from a score of outputs under x and y; at least 0.

    rho-zCDP bounds the Kullback-Leibler divergence by rho (Bun, Steinke 2016, arXiv 1605.02065,
    the limit of order 1), and for every f the divergence is at least E_x[f] - ln E_y[e^f]
    (Donsker, Varadhan 1975). The expectations get empirical Bernstein limits (Maurer, Pontil
    2009, arXiv 0907.3740, theorem 4). A single event could show only 2/pi of a Gaussian's rho.

    Args:
        scores_x: f of the outputs under x, all within [-width/2, width/2].
        scores_y: The same f of the outputs under y.
        width: The public range of f.
        confidence: Split over both sides.
    """
    error = _error(confidence) / 2
    low = _bernstein(scores_x, width=width, error=error, side=-1)
    reach = exp(width / 2) - exp(-width / 2)
    high = _bernstein(np.exp(scores_y), width=reach, error=error, side=1)
    return max(0.0, low - log(high))


def event_rho_lower_bound(
    hits_x: int, runs_x: int, hits_y: int, runs_y: int, *, confidence: float
) -> float:
    """A lower bound of the rho of zCDP from how often an event followed x and y; at least 0.

    rho-zCDP bounds the Renyi divergence of every order a by a rho, and "in the event or not" is a
    function of the output, which can't raise it (Bun, Steinke 2016, arXiv 1605.02065). So the
    divergence of two Bernoulli distributions over its order is at most rho: here of those that are
    nearest to each other within the limits. It needs fewer samples than ``rho_lower_bound`` and
    can show only about 2/pi of a Gaussian's rho.
    """
    error = _error(confidence) / 2
    low, _ = clopper_pearson(hits_x, runs_x, error=error)
    _, high = clopper_pearson(hits_y, runs_y, error=error)
    return rho_of_bernoulli(low, high)


def rho_of_bernoulli(p: float, q: float) -> float:
    """The largest Renyi divergence over its order of Bernoulli(p) and Bernoulli(q); 0 if p <= q.

    >>> round(rho_of_bernoulli(0.75, 0.25), 4)
    0.5493
    """
    if p <= q:
        return 0.0
    if q == 0 or p == 1:
        return inf
    ways = (p, q), (q, p)
    divergences = [a * log(a / b) + (1 - a) * log((1 - a) / (1 - b)) for a, b in ways]
    return max(*divergences, *(_renyi(a, b, order) / order for a, b in ways for order in _ORDERS))


def rho_between(
    one: NDArray[np.float64], other: NDArray[np.float64], sigma: NDArray[np.float64] | float
) -> float:
    """Sum of (change / sigma)^2 / 2: what Gaussian noise of these deviations lets through.

    Two measurements drawn with one seed have the same noise, so their difference is the exact
    change: the whole way from ratings to what is released, rounding and all.
    """
    return float((((one - other) / sigma) ** 2).sum() / 2)


def _renyi(p: float, q: float, order: float) -> float:
    both = p**order * q ** (1 - order) + (1 - p) ** order * (1 - q) ** (1 - order)
    return log(both) / (order - 1)


def _error(confidence: float) -> float:
    if not 0.5 <= confidence < 1:
        raise InputError(f"confidence must be at least 0.5 and below 1, got {confidence!r}")
    return 1 - confidence


def _bernstein(values: NDArray[np.float64], *, width: float, error: float, side: int) -> float:
    """The mean, moved down (side -1) or up (1) as far as the empirical Bernstein bound asks."""
    n, level = values.size, log(2 / error)
    spread = sqrt(2 * float(values.var(ddof=1)) * level / n)
    return float(values.mean()) + side * (spread + 7 * width * level / (3 * (n - 1)))


def _where_beta_reaches(level: float, a: int, b: int) -> tuple[float, float]:
    """Two neighboring points around the x with I_x(a, b) = level."""
    below, above = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (below + above) / 2
        if incomplete_beta(middle, a, b) < level:
            below = middle
        else:
            above = middle
    return below, above


def incomplete_beta(x: float, a: float, b: float) -> float:
    """The regularized incomplete beta function I_x(a, b), by its continued fraction.

    DLMF 8.17.22, evaluated where it converges fast, below the mean; else by symmetry. For whole
    a, I_x(a, n - a + 1) is the probability of a or more hits in n.

    >>> round(incomplete_beta(0.5, 2, 3), 6)  # 2 or more heads of 4
    0.6875
    """
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):
        return 1 - incomplete_beta(1 - x, b, a)
    front = lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x)
    return exp(front) / (a * _beta_fraction(x, a, b))


def _beta_fraction(x: float, a: float, b: float) -> float:
    """1 + d1/(1 + d2/(1 + ...)) by the method of Lentz (1976), modified for zeros."""
    value, c, d = 1.0, 1.0, 0.0
    for term in range(1, _MOST_TERMS):
        m = term // 2
        if term % 2:
            factor = -(a + m) * (a + b + m) * x / ((a + term - 1) * (a + term))
        else:
            factor = m * (b - m) * x / ((a + term - 1) * (a + term))
        d = 1 / ((1 + factor * d) or _TINY)
        c = (1 + factor / c) or _TINY
        value *= c * d
        if abs(c * d - 1) < 1e-15:
            return value
    raise InternalError(f"the incomplete beta function I_x({a}, {b}) did not converge.")
