"""Two-sided geometric noise: the exact, integer form of the Laplace mechanism."""

import math
import sys
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato import check
from sfumato.errors import InputError, InternalError
from sfumato.noise.ratios import MAX_RATIO, fits, round_up
from sfumato.noise.word_stream import kernels, replay
from sfumato.privacy.guarantees import PureDP
from sfumato.randomness import Rng


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
