"""How much discrete Gaussian draws give away together: their composed privacy loss, never low.

The losses of one class of draws add up to a multiple of a whole number, the sum of the draws: its
tails on a lattice are the whole distribution. Only positive numbers are added and every bound
errs to the private side, so a delta of 1e-30 is as good as one of 1e-3.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

SMALLEST_DELTA: Final = Fraction(1, 10**36)
"""Below it what floats can't hold would count: 2^18 numbers of 1e-308, times e^600."""

_SLACK: Final = 2.0**-30
"""Relative, for what floats lose: in sums of up to 2^18 numbers, in exponentials of up to 600 and
in sigma itself, which moves a weight exp(-(x/sigma)^2 / 2) by a few hundred times as much."""
_BEYOND: Final = 1e-5
"""The share of delta that stands for whatever lies beyond the tables."""
_FINENESS: Final = 2048
"""Lattice points a standard deviation; a lattice of twice as many is made coarser."""
_BLOCKS: Final = 4096
_NEAREST: Final = 8.0
"""Standard deviations that a table covers at least: beyond them lies 1e-14."""
_LARGEST_LOSS: Final = 600.0
"""So that e to the loss, and that times a tail, are floats. It also keeps tables small: rho is
below 600, so that n draws of a sigma below 2, which are convolved, are fewer than 5000."""
_EQUAL: Final = 2.0**-40


@dataclass(frozen=True, kw_only=True, slots=True)
class Draws:
    """Independent draws of P(x) ~ exp(-x^2 / (2 sigma^2)), each on a number that may move."""

    sigma: float
    n: int
    shift: int
    """How far each number may move, whole."""

    @property
    def rho(self) -> float:
        """The sum of shift^2 / (2 sigma^2): the mean of the loss; its variance is at most 2 rho."""
        return self.n * self.shift**2 / (2 * self.sigma**2)

    @property
    def width(self) -> float:
        """sqrt(n) sigma, about the standard deviation of the sum."""
        return math.sqrt(self.n) * self.sigma


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Losses:
    """The tables of one or two classes of draws, for deltas about as large as one given.

    The pair. P is the law of X + t and Q that of X, X a draw, t the shift. The loss at x,
    log P(x)/Q(x) = (2 t x - t^2) / (2 sigma^2), grows with x, so the divergence for any factor
    a >= 0 is attained by a half-line: H(a) = max over c of P(X > c - t) - a P(X > c). Each
    term grows with t: a smaller move is dominated by a larger one. X is symmetric, so (Q, P)
    has the same losses as (P, Q): removing counts as adding. Pairs that dominate each step,
    whatever came before it, dominate together; that covers steps chosen in view of earlier
    results as long as the list of pairs is fixed (Zhu, Dong, Wang 2022, arXiv 2106.08567,
    theorem 10).

    The sum. Under P the losses of n draws add up to L = (2 t S + n t^2) / (2 sigma^2), S being
    the sum of n centered draws, and delta(e) = E max(0, 1 - exp(e - L)), which is the integral of
    exp(e - l) P(L > l) over l > e. Two classes: the mean of delta_1(e - L_2) over the second.
    """

    first: "_Table"
    second: "_Table | None"
    beyond: float

    @staticmethod
    def of(classes: Sequence[Draws], *, delta: float) -> "Losses | None":
        """The tables, or None where they would be too large or too far out."""
        reach = _reach(classes, delta)
        tables = [_table(draws, reach) for draws in sorted(classes, key=lambda d: -d.rho)]
        known = [table for table in tables if table is not None]
        if len(known) != len(classes) or len(known) not in (1, 2):
            return None
        return Losses(
            first=known[0], second=known[1] if len(known) == 2 else None, beyond=_BEYOND * delta
        )

    def delta(self, epsilon: float) -> float:
        """An upper bound of the delta at ``epsilon``.

        With a second class in blocks of S_2, f_j being delta_1 at the loss of the upper end of
        block j, the mean is at most sum_j (f_j - f_(j-1)) P(S_2 >= the start of block j). The
        first block has all that lies below it too.
        """
        if self.second is None:
            return float(self.first.delta(np.array([epsilon]))[0]) + self.beyond
        starts, losses = self.second.blocks()
        f = np.maximum.accumulate(self.first.delta(epsilon - losses))
        return float(f[0] + np.diff(f) @ self.second.tail(starts[1:])) + self.beyond

    def epsilon(self, *, delta: float, at_most: float) -> float:
        """An epsilon of at most ``at_most`` whose bound is within ``delta``; else infinity.

        Bisection to 2^-24 of ``at_most``; the result itself was tried.
        """
        low, high = 0.0, at_most
        if at_most > _LARGEST_LOSS or self.delta(high) > delta:
            return math.inf
        for _ in range(24):
            middle = (low + high) / 2
            low, high = (low, middle) if self.delta(middle) <= delta else (middle, high)
        return high


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class _Table:
    """The sum S of a class of draws on the places ``(first + j) stride``, and its losses."""

    over: Floats
    """Bounds of P(S > that place): from 1 down to 0."""
    rest: Floats
    """The integral of exp(-l) P(L > l) over the losses l above that of each place."""
    first: int
    stride: int
    step: float
    """The loss from one place to the next."""
    start: float
    """The loss at the first place."""

    def delta(self, losses: Floats) -> Floats:
        """A bound of the delta at each loss e: what lies up to the next place, and the rest.

        Where floats put e into the wrong interval it is at its end, and both give the same.
        """
        last = self.over.size - 1
        place = np.floor(np.clip((losses - self.start) / self.step, -1.0, last)).astype(np.int64)
        above = np.minimum(place + 1, last)
        to_next = -np.expm1(np.minimum(0.0, losses - (self.start + above * self.step)))
        rest = np.exp(np.minimum(losses, _LARGEST_LOSS)) * self.rest[above]
        return np.asarray((self.over[np.maximum(place, 0)] * to_next + rest) * (1 + _SLACK))

    def tail(self, k: NDArray[np.int64]) -> Floats:
        """An upper bound of P(S >= k)."""
        place = np.clip((k - 1) // self.stride - self.first, 0, self.over.size - 1)
        return self.over[place] * (1 + _SLACK)

    def blocks(self) -> tuple[NDArray[np.int64], Floats]:
        """Starts of blocks of S, and the loss of the upper end of each."""
        width = self.stride * -(-self.over.size // _BLOCKS)
        starts = np.arange(0, self.over.size * self.stride, width, dtype=np.int64)
        losses = self.start + self.step * ((starts + width - 1) / self.stride)
        return starts + self.first * self.stride, losses


def _table(draws: Draws, reach: float) -> _Table | None:
    """The table of a class, up to ``reach`` standard deviations.

    Sums of draws, by Poisson summation: for parameters a and b,
    sum_x exp(-x^2/2a^2 - (s-x)^2/2b^2) = exp(-s^2 / 2(a^2+b^2)) sum_x exp(-(x-y)^2 / 2v^2) with
    v^2 = a^2 b^2 / (a^2+b^2) and some y; the last sum is sqrt(2 pi) v (1 + r) with
    |r| <= 2.1 exp(-2 pi^2 v^2), whatever y is. For a^2 = j sigma^2 and b = sigma, v^2 is at least
    sigma^2 / 2. So n draws sum to the lattice Gaussian of parameter sqrt(n) sigma with a relative
    error of at most 8 n exp(-pi^2 sigma^2) at every point, normalization included. Where that is
    not below 2^-40 the sum is convolved.

    A lattice of w units, w > 1: with g the density and I(x) its integral over (x, inf), the
    coarse tail C(j) = sum over i >= j of w g(i w) is at least I(j w): g falls for j >= 0, and
    below it g is symmetric and the total is 1. In the same way P(S > k) <= I(k) <= C(j), k = j w.
    """
    stride = max(1, math.floor(draws.width / _FINENESS))
    half = math.ceil(reach * draws.width / stride) + 1
    step = stride * draws.shift / draws.sigma**2
    if draws.rho + half * step + reach**2 > _LARGEST_LOSS:
        return None
    if draws.n == 1 or 8 * draws.n * math.exp(-((math.pi * draws.sigma) ** 2)) <= _EQUAL:
        pmf = _lattice_gaussian(half, draws.width / stride)
    else:
        pmf = _sum_of(draws, reach)
    over = np.append(np.cumsum(pmf[::-1])[::-1], 0.0)
    first = -(pmf.size // 2) - (stride == 1)  # on a fine lattice P(S > k) is P(S >= k + 1) itself
    losses = draws.rho + step * (first + np.arange(over.size))
    slices = over * np.exp(-losses) * -math.expm1(-step)
    rest = np.cumsum(slices[::-1])[::-1]
    return _Table(
        over=over, rest=rest, first=first, stride=stride, step=step, start=float(losses[0])
    )


def _lattice_gaussian(half: int, width: float) -> Floats:
    """exp(-x^2 / (2 width^2)) over the whole numbers up to ``half``, with sum 1."""
    weights = np.exp(-np.square(np.arange(-half, half + 1) / width) / 2)
    return np.asarray(weights / weights.sum())


def _sum_of(draws: Draws, reach: float) -> Floats:
    """The probabilities of the sum, convolved by squaring.

    What lies beyond ``reach`` standard deviations is dropped each time; ``_reach`` allows for it.
    """
    square = _lattice_gaussian(math.ceil(reach * draws.sigma) + 1, draws.sigma)
    whole, done, terms, left = np.ones(1), 0, 1, draws.n
    while left:
        if left & 1:
            done += terms
            whole = _middle(np.convolve(whole, square), reach * math.sqrt(done) * draws.sigma)
        left, terms = left >> 1, 2 * terms
        if left:
            square = _middle(np.convolve(square, square), reach * math.sqrt(terms) * draws.sigma)
    return whole


def _middle(pmf: Floats, reach: float) -> Floats:
    """A symmetric table up to ``reach`` on both sides."""
    cut = max(0, pmf.size // 2 - math.ceil(reach) - 1)
    return pmf[cut : pmf.size - cut]


def _reach(classes: Sequence[Draws], delta: float) -> float:
    """Standard deviations beyond which all sums together have less than 1e-5 delta.

    P(S >= r sqrt(n) sigma) <= exp(-r^2 / 2): E exp(u X) is exp(u^2 sigma^2 / 2) times a quotient
    of sums of exp(-(x - y)^2 / 2 sigma^2) over whole x, which is largest at y = 0 because their
    Fourier coefficients are positive. For n draws at most 4 n such tails are dropped.
    """
    tails = 4 * sum(draws.n for draws in classes) + len(classes)
    return max(_NEAREST, math.sqrt(2 * math.log(tails / (_BEYOND * delta))))
