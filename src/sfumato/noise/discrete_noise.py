"""Noise that is added to counts: exact, integer forms of the Laplace and Gaussian mechanisms.

A real parameter becomes a ratio that the kernels can hold, rounded to a stated side. Every draw is
a function of the word stream: one that runs out of words is drawn again from the same words and
more of them. Dropping the words instead would make long draws rarer than they should be: the noise
would be biased.
"""

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from types import ModuleType
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato import check
from sfumato.errors import InputError, InternalError
from sfumato.privacy.guarantees import ZCDP, Cost, PureDP
from sfumato.randomness import Rng, Words

MAX_RATIO: Final = 2**31 - 1
"""Largest numerator and denominator of a scale or a rate: products of two stay below 2^62."""


def fits(ratio: Fraction) -> bool:
    """Whether numerator and denominator are at most ``MAX_RATIO``."""
    return 0 < ratio.numerator <= MAX_RATIO and ratio.denominator <= MAX_RATIO


def round_up(value: Fraction, *, name: str) -> Fraction:
    """A ratio that fits, at least ``value`` and at most 1e-9 of it larger.

    >>> round_up(Fraction(1, 10), name="scale")
    Fraction(1, 10)
    """
    if fits(value):
        return value
    if not Fraction(1, MAX_RATIO) <= value <= MAX_RATIO:
        raise InputError(
            f"{name} would be {float(value):.6g}; exact draws need {1 / MAX_RATIO:.3g} to "
            f"{MAX_RATIO:.3g}. Choose a privacy parameter or a sensitivity nearer to 1."
        )
    if value >= 1:
        denominator = math.floor(MAX_RATIO / value)
        return Fraction(math.ceil(value * denominator), denominator)
    numerator = math.floor(MAX_RATIO * value)
    return Fraction(numerator, math.floor(numerator / value))


def round_down(value: Fraction, *, name: str) -> Fraction:
    """A ratio that fits, at most ``value`` and at most 1e-9 of it smaller."""
    return 1 / round_up(1 / value, name=f"1/{name}")


def ceil_sqrt(square: Fraction) -> int:
    """The smallest whole number whose square is at least ``square > 0``.

    >>> ceil_sqrt(Fraction(4)), ceil_sqrt(Fraction(17, 4))
    (2, 3)
    """
    return math.isqrt(math.ceil(square) - 1) + 1


def floor_sqrt(square: Fraction) -> int:
    """The largest whole number whose square is at most ``square >= 0``."""
    return math.isqrt(math.floor(square))


Kernel = Callable[[Words, int], tuple[int, int]]
"""From words and draws done to draws done and where the first unfinished draw began."""

MAX_WORDS: Final = 2**15
"""No draw takes more words, but one that is expected to take a quarter of them or more.

Kernels rely on it where they shorten a long run of Bernoulli trials."""

_BUFFER_WORDS: Final = 2**14  # 128 KiB: stays in the second-level cache


def replay(kernel: Kernel, n: int, *, rng: Rng, words_each: int) -> None:
    """Call ``kernel`` with fresh words until ``n`` draws are done.

    Args:
        kernel: Takes words from their beginning on and keeps its own results.
        n: The number of draws.
        rng: Where the words come from.
        words_each: About how many words a draw takes. It sets the size of the buffer, and how
            many words are too many for a draw: four times as many, or ``MAX_WORDS`` if more.
    """
    size, most = max(_BUFFER_WORDS, 2 * words_each), max(MAX_WORDS, 4 * words_each)
    words = np.empty(min(size, 32 + words_each * n), dtype=np.uint64)
    fresh, done = words, 0
    while done < n:
        rng.fill(fresh)
        done, used = kernel(words, done)
        if done < n:
            words, fresh = _make_room(words, used, most)
    words.fill(0)  # used words do not linger in memory


@cache
def kernels() -> ModuleType:
    """The compiled code; it loads numba, and so only when something is drawn."""
    from sfumato.noise import kernels as _kernels

    return _kernels


def _make_room(words: Words, used: int, most: int) -> tuple[Words, Words]:
    """The words with the unfinished draw at the front, and the part to be filled afresh."""
    tail = words[used:].copy()
    if used == 0:
        words = np.empty(_more(words.size, most), dtype=np.uint64)
    words[: tail.size] = tail
    return words, words[tail.size :]


def _more(size: int, most: int) -> int:
    """Room for a draw that ``size`` words are not enough for."""
    if size >= most:
        raise InternalError(
            f"one draw took more than {most} random words, which uniform words do with a "
            "probability below e^-1000. The generator must be broken."
        )
    return min(2 * size, most)


@dataclass(frozen=True, kw_only=True, slots=True)
class DiscreteLaplace:
    """Integer noise with P(k) = (1 - q) / (1 + q) * q^|k|, q = exp(-1 / scale).

    Formal guarantee: added to integers whose L1 sensitivity is D, it gives (D / scale)-DP, and
    no smaller epsilon. Ghosh, Roughgarden, Sundararajan 2009, "Universally utility-maximizing
    privacy mechanisms", arXiv 0811.2841.
    """

    scale: Fraction
    """In counts. Numerator and denominator are at most ``MAX_RATIO``, for exact 64-bit draws."""

    def __post_init__(self) -> None:
        if not isinstance(self.scale, Fraction) or not fits(self.scale):
            raise InputError(
                f"scale must be a fraction above 0 of whole numbers up to {MAX_RATIO}, "
                f"got {self.scale!r}. DiscreteLaplace.for_cost rounds to one."
            )

    @classmethod
    def for_cost(cls, cost: PureDP, sensitivity: int) -> "DiscreteLaplace":
        """The least noise whose guarantee is within ``cost``.

        Args:
            cost: The guarantee to be kept.
            sensitivity: The L1 sensitivity of the numbers, whole.
        """
        sensitivity = check.whole(at_least=1, sensitivity=sensitivity)
        # Rounded up, towards more noise.
        noise = cls(scale=round_up(sensitivity / cost.epsilon, name="scale"))
        if noise.guarantee(sensitivity).epsilon > cost.epsilon:
            raise InternalError(f"{noise} costs more than {cost}.")
        return noise

    def guarantee(self, sensitivity: int = 1) -> PureDP:
        """What it promises for integers of this L1 sensitivity: sensitivity / scale, exactly."""
        return PureDP(check.whole(at_least=1, sensitivity=sensitivity) / self.scale)

    def sample(self, n: int, *, rng: Rng) -> NDArray[np.int64]:
        """``n`` independent draws, exact: integers only, from uniform words."""
        out = np.empty(check.whole(at_least=0, n=n), dtype=np.int64)
        fill, (t, s) = kernels().fill_laplace, self.scale.as_integer_ratio()
        replay(lambda words, done: fill(words, out, done, t, s), n, rng=rng, words_each=9)
        return out

    def pmf(self, k: ArrayLike) -> NDArray[np.float64]:
        """The probability of each whole number in ``k``."""
        rate = self._rate
        return np.asarray(math.tanh(rate / 2) * np.exp(-rate * np.abs(k)), dtype=np.float64)

    @property
    def variance(self) -> float:
        """2 q / (1 - q)^2 in squared counts; kept above 0, so that it can be divided by."""
        rate = self._rate
        return max(2 * math.exp(-rate) / math.expm1(-rate) ** 2, sys.float_info.min)

    @property
    def sigma_counts(self) -> float:
        """The standard deviation in counts."""
        return math.sqrt(self.variance)

    @property
    def _rate(self) -> float:
        return self.scale.denominator / self.scale.numerator


MIN_SIGMA: Final = Fraction(1, 20)
MAX_SIGMA: Final = 2**26
"""Standard deviations for which all draws stay within 64-bit integers."""

_SPREAD_BITS: Final = 24
"""Of a spread's numerator: it is rounded up by at most 2^-23 of it."""
_MAX_DIVISOR: Final = 2**54
"""Limit of 2 t u v and of u^2, so that no product overflows (see ``DiscreteGaussian``)."""
_MAX_PRODUCT: Final = 2**62
"""Limit of 2 t v^2 y: a larger proposal is refused without this product."""
_SMOOTH_SPREAD: Final = 4.0
"""A spread from which sums over all integers equal integrals to all digits of a float."""


@dataclass(frozen=True, kw_only=True, slots=True)
class DiscreteGaussian:
    """Integer noise with P(k) proportional to exp(-(k / spread)^2), spread = sqrt(2) sigma.

    Formal guarantee: added to integers whose L2 sensitivity is D, it gives rho-zCDP with
    rho = D^2 / (2 sigma^2) = (D / spread)^2, and no smaller rho. It is not Gaussian DP: its
    delta lies above that curve for small sigma. Canonne, Kamath, Steinke 2020, arXiv 2004.00010,
    theorem 4; over several counts the squares add up.

    The draws accept a proposal y with probability exp(-z^2), z = |2 t v^2 y - u^2| / (2 t u v),
    for spread = u / v and t = floor(sigma) + 1. With 2 t u v < 2^54, u^2 < 2^54 and products up
    to 2^62, whatever could overflow has z > (2^62 - 2^54) / 2^54 = 255 (see ``kernels``).
    """

    spread: Fraction
    """sqrt(2) times the sigma of the formula, in counts. Make one with ``for_cost`` or
    ``for_sigma``; a ratio of integers, so that rho is exact."""

    def __post_init__(self) -> None:
        if not isinstance(self.spread, Fraction) or not self._fits():
            raise InputError(
                f"spread must be a fraction for a sigma from {float(MIN_SIGMA)} to {MAX_SIGMA} "
                f"with numerator and denominator of about {_SPREAD_BITS} bits, got "
                f"{self.spread!r}. DiscreteGaussian.for_sigma and for_cost round to one."
            )

    @classmethod
    def for_cost(cls, cost: ZCDP, sensitivity_squared: int) -> "DiscreteGaussian":
        """The least noise whose guarantee is within ``cost``.

        Args:
            cost: The guarantee to be kept.
            sensitivity_squared: The square of the L2 sensitivity of the numbers, whole.
        """
        sensitivity_squared = check.whole(at_least=1, sensitivity_squared=sensitivity_squared)
        # Towards more noise: never below the smallest sigma, and the spread is rounded up.
        square = max(sensitivity_squared / cost.rho, 2 * MIN_SIGMA**2)
        noise = cls._with_square(square)
        if noise.guarantee(sensitivity_squared).rho > cost.rho:
            raise InternalError(f"{noise} costs more than {cost}.")
        return noise

    @classmethod
    def for_sigma(cls, sigma: check.Number) -> "DiscreteGaussian":
        """Noise of this sigma, rounded up by at most 2^-23 of it."""
        return cls._with_square(2 * check.exact(sigma=check.positive(sigma=sigma)) ** 2)

    def guarantee(self, sensitivity_squared: int = 1) -> ZCDP:
        """What it promises for integers of this squared L2 sensitivity, exactly."""
        moved = check.whole(at_least=1, sensitivity_squared=sensitivity_squared)
        return ZCDP(moved / self.spread**2)

    def sample(self, n: int, *, rng: Rng) -> NDArray[np.int64]:
        """``n`` independent draws, exact: integers only, from uniform words."""
        out = np.empty(check.whole(at_least=0, n=n), dtype=np.int64)
        u, v, t = self.spread.numerator, self.spread.denominator, self._proposal_scale
        step = 2 * t * v * v
        integers = [np.uint64(i) for i in (t, _MAX_PRODUCT // step, step, u * u, 2 * t * u * v)]
        fill = kernels().fill_gaussian
        replay(lambda words, done: fill(words, out, done, *integers), n, rng=rng, words_each=16)
        return out

    def pmf(self, k: ArrayLike) -> NDArray[np.float64]:
        """The probability of each whole number in ``k``."""
        spread = float(self.spread)
        total = math.sqrt(math.pi) * spread
        if spread < _SMOOTH_SPREAD:
            total = float(self._weights().sum())
        return np.exp(-np.square(np.asarray(k) / spread)) / total

    @property
    def variance(self) -> float:
        """In squared counts: sigma^2 to all digits from a spread of 4 on, summed below it."""
        if float(self.spread) >= _SMOOTH_SPREAD:
            return float(self.spread**2 / 2)
        weights = self._weights()
        squares = np.square(_integers_around_zero())
        return float((weights * squares).sum() / weights.sum())

    @property
    def sigma_counts(self) -> float:
        """The standard deviation in counts."""
        return math.sqrt(self.variance)

    @classmethod
    def _with_square(cls, square: Fraction) -> "DiscreteGaussian":
        """The smallest spread u / v with (u / v)^2 >= square, v a power of two, u of 24 bits.

        From 2^24 on v is 1 and u is longer.
        """
        if square > 2 * MAX_SIGMA**2 or square < 2 * MIN_SIGMA**2:
            raise InputError(
                f"sigma would be {math.sqrt(square / 2):.6g} counts; exact draws need "
                f"{float(MIN_SIGMA)} to {MAX_SIGMA}. Choose a privacy parameter or a sensitivity "
                "nearer to 1."
            )
        bits = floor_sqrt(square * 4**_SPREAD_BITS).bit_length()  # of spread * 2^24
        v = 2 ** max(0, 2 * _SPREAD_BITS - bits)
        return cls(spread=Fraction(ceil_sqrt(square * v**2), v))

    @property
    def _proposal_scale(self) -> int:
        """floor(sigma) + 1: the scale of the discrete Laplace proposals."""
        return floor_sqrt(self.spread**2 / 2) + 1

    def _fits(self) -> bool:
        u, v = self.spread.numerator, self.spread.denominator
        in_range = 2 * MIN_SIGMA**2 <= self.spread**2 <= 2 * (MAX_SIGMA + 1) ** 2
        return in_range and 2 * self._proposal_scale * u * v < _MAX_DIVISOR and u**2 < _MAX_DIVISOR

    def _weights(self) -> NDArray[np.float64]:
        return np.exp(-np.square(_integers_around_zero() / float(self.spread)))


def _integers_around_zero() -> NDArray[np.float64]:
    """Enough of them for a spread below ``_SMOOTH_SPREAD``: the rest weighs less than e^-200."""
    reach = math.ceil(15 * _SMOOTH_SPREAD)
    return np.arange(-reach, reach + 1, dtype=np.float64)


Noise = DiscreteLaplace | DiscreteGaussian


def noise_for(cost: Cost, l1_sensitivity: int, l2_sensitivity_squared: int) -> Noise:
    """The least noise within ``cost``: discrete Laplace for pure DP, discrete Gaussian for zCDP.

    Args:
        cost: The guarantee to be kept.
        l1_sensitivity: How far neighbors can be apart in L1, whole.
        l2_sensitivity_squared: The square of how far they can be apart in L2, whole.
    """
    if isinstance(cost, PureDP):
        return DiscreteLaplace.for_cost(cost, l1_sensitivity)
    return DiscreteGaussian.for_cost(cost, l2_sensitivity_squared)
