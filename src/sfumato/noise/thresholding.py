"""Counts of values that nobody declared: shown with noise, and only where many rows have them."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato import check
from sfumato.errors import InputError, InternalError
from sfumato.noise.discrete_noise import DiscreteLaplace, round_up
from sfumato.privacy.composition import delta_factor, scaled
from sfumato.privacy.guarantees import ApproxDP
from sfumato.randomness import Rng

NOT_SHOWN: Final = 0
"""Stands in the place of a count that is not shown; one that is shown is larger."""

_DIGITS: Final = 60
"""Of the decimals that delta is computed with; see ``_MARGIN``."""
_MARGIN: Final = Decimal("1e-35")
"""Relative allowance for some ten roundings to 60 digits, of which 1 - q may lose 20."""
_MAX_REACH: Final = 2**40
"""A limit against abuse: sums of counts and noise stay far below 2^63."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Thresholding:
    """Adds truncated geometric noise to a count and shows the sum if it is above ``reach``.

    The noise is P(x) proportional to q^|x| for |x| <= reach, q = exp(-1 / scale), else 0.

    Formal guarantee: applied to the counts of all values that occur, for one row more or less it
    gives (1 / scale, delta)-DP with delta = P(x = reach) = q^reach (1 - q) / (1 + q - 2 q^(reach +
    1)), and no smaller delta. For ``changes`` such steps it is that of ``composition.scaled``.

    Why: think of every value there could be, also of those with a count of 0. One row moves one
    count from n to n + 1. The noisy sums o of both have probabilities within e^(1 / scale) of each
    other but for o = n + 1 + reach, which only the larger count gives, and o = n - reach, which
    only the smaller one gives; each has probability delta. Hiding all o <= reach is
    post-processing, and hides a count of 0 always: so only values that occur need a draw, and the
    value of a single row is shown with probability delta.

    Thresholds for values that are not known in advance: Korolova, Kenthapadi, Mishra, Ntoulas
    2009, "Releasing search queries and clicks privately"; that truncated noise shows each value
    with the largest probability possible: Desfontaines, Voss, Gipson, Mandayam 2022,
    "Differentially private partition selection", arXiv 2006.03684, theorem 3.
    """

    scale: Fraction
    """As of ``DiscreteLaplace``, in counts."""
    reach: int
    """The largest noise, and the largest sum that is not shown."""

    def __post_init__(self) -> None:
        DiscreteLaplace(scale=self.scale)  # refuses a scale that can't be drawn exactly
        reach = check.whole(at_least=1, at_most=_MAX_REACH, reach=self.reach)
        object.__setattr__(self, "reach", reach)

    @classmethod
    def for_cost(cls, cost: ApproxDP, changes: int) -> "Thresholding":
        """The one within ``cost`` that shows most.

        Args:
            cost: The guarantee to be kept.
            changes: How many rows may come or go: ``sensitivity.histogram_l1``.
        """
        changes = check.whole(at_least=1, changes=changes)
        # Rounded up, towards more noise; the epsilon of all changes is then at most the cost's.
        scale = round_up(changes / cost.epsilon, name="scale")
        if scale > _MAX_REACH // 2**12:
            raise InputError(
                f"thresholds for {cost} and {changes:,} rows would be too large to be of use. "
                "Give more epsilon, or count fewer rows of a person."
            )

        limit = cost.delta / delta_factor(1 / scale, changes)

        def fits(reach: int) -> bool:
            return _end(scale, reach) <= limit

        thresholding = cls(scale=scale, reach=_first(fits))
        promised = thresholding.guarantee(changes)
        if promised.epsilon > cost.epsilon or promised.delta > cost.delta:
            raise InternalError(f"{thresholding} costs more than {cost}.")
        return thresholding

    def guarantee(self, changes: int = 1) -> ApproxDP:
        """What it promises for this number of rows more or less, delta rounded up."""
        return scaled(ApproxDP(1 / self.scale, _end(self.scale, self.reach)), changes)

    def show(self, counts: ArrayLike, *, rng: Rng) -> NDArray[np.int64]:
        """The noisy counts, ``NOT_SHOWN`` where they are not to be shown.

        Args:
            counts: How many rows have each value that occurs: whole numbers from 1 on.
            rng: Where the noise comes from.
        """
        exact = np.asarray(counts, dtype=np.int64)
        if exact.size and exact.min() < 1:
            raise InputError("only values that occur are counted.")
        sums = exact + self.sample(exact.size, rng=rng).reshape(exact.shape)
        return np.where(sums > self.reach, sums, NOT_SHOWN)

    def sample(self, n: int, *, rng: Rng) -> NDArray[np.int64]:
        """``n`` draws of the noise, exact: those of the untruncated one that are within reach."""
        noise = DiscreteLaplace(scale=self.scale)
        out = noise.sample(n, rng=rng)
        while (beyond := np.flatnonzero(np.abs(out) > self.reach)).size:
            out[beyond] = noise.sample(beyond.size, rng=rng)
        return out

    def pmf(self, k: ArrayLike) -> NDArray[np.float64]:
        """The probability of each whole number in ``k`` as noise."""
        size = np.abs(np.asarray(k, dtype=np.int64))
        rate = self.scale.denominator / self.scale.numerator
        total = 1 + math.exp(-rate) - 2 * math.exp(-rate * (self.reach + 1))
        inside = np.exp(-rate * size) / (total / -math.expm1(-rate))
        return np.where(size <= self.reach, inside, 0.0)

    @property
    def sigma_counts(self) -> float:
        """The standard deviation of the noise, in counts: at most that without truncation."""
        return DiscreteLaplace(scale=self.scale).sigma_counts


@lru_cache(maxsize=1024)
def _end(scale: Fraction, reach: int) -> Fraction:
    """P(x = reach), rounded up."""
    with localcontext(Context(prec=_DIGITS)):
        q = (-Decimal(scale.denominator) / Decimal(scale.numerator)).exp()
        chance = q**reach * (1 - q) / (1 + q - 2 * q ** (reach + 1))
        return Fraction(chance * (1 + _MARGIN))


def _first(fits: Callable[[int], bool]) -> int:
    """The smallest whole number from 1 on that fits, where all larger ones do too."""
    high = 1
    while not fits(high):
        high *= 2
    low = high // 2  # does not fit, or is 0
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if fits(middle) else (middle, high)
    return high
