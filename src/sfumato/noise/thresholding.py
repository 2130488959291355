"""Counts of values that nobody declared: shown with noise, and only where many rows have them."""

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
from sfumato.noise.discrete_noise import DiscreteGaussian
from sfumato.privacy import sensitivity
from sfumato.privacy.guarantees import ZCDP, ApproxZCDP
from sfumato.privacy.sensitivity import Protection
from sfumato.randomness import Rng

NOT_SHOWN: Final = 0
"""Stands in the place of a count that is not shown; one that is shown is larger."""

_DIGITS: Final = 60
"""Of the decimals that a tail is computed with; see ``_MARGIN``."""
_MARGIN: Final = Decimal("1e-35")
"""Relative allowance for some ten roundings to 60 digits, of which 1 - q may lose 20."""
_ROOT_OF_PI: Final = Decimal("1.772453850905516027298167483341145182797")
"""Rounded down: it divides an upper bound."""
_MAX_REACH: Final = 2**40
"""A limit against abuse: sums of counts and noise stay far below 2^63."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Thresholding:
    """Adds discrete Gaussian noise to a count and shows the sum if it is above ``reach``.

    Formal guarantee: applied to the counts of all values that occur in each of d columns, it is
    delta-approximate rho-zCDP for a unit of at most K rows, with rho that of the noise for d
    columns, and delta = d K P(noise > reach - K).

    Why: of two neighbors, a value is shared if it occurs in both. Of each column at most K values
    are not shared, each in at most K rows, as only rows of the unit have them. Each is shown with
    probability at most P(noise > reach - K), so none of them is, but for an event of probability
    at most delta, in either neighbor. Given that, what is shown is about shared values: post-
    processing of their noisy counts, whose L2 distance is that of d histograms (``sensitivity``).
    The noise of values that are not shared is independent of theirs, so conditioning changes
    nothing there. Bun, Steinke 2016, arXiv 1605.02065, definition 8.1; the Gaussian sparse
    histogram mechanism: Wilkins, Kifer, Zhang, Karrer 2024, arXiv 2202.01100.

    A count of 0 is always hidden, so only values that occur need a draw.
    """

    noise: DiscreteGaussian
    protect: Protection
    columns: int
    """Whose values are counted."""
    reach: int
    """The largest sum that is not shown."""

    def __post_init__(self) -> None:
        columns = check.whole(at_least=1, columns=self.columns)
        reach = check.whole(at_least=self.protect.rows, at_most=_MAX_REACH, reach=self.reach)
        object.__setattr__(self, "columns", columns)
        object.__setattr__(self, "reach", reach)

    @classmethod
    def for_cost(cls, cost: ApproxZCDP, protect: Protection, *, columns: int) -> "Thresholding":
        """The one within ``cost`` that shows most."""
        columns = check.whole(at_least=1, columns=columns)
        moved = columns * sensitivity.histogram_l2_squared(protect)
        noise = DiscreteGaussian.for_cost(ZCDP(cost.rho), moved)
        limit = cost.delta / (columns * protect.rows)
        # Above reach - K there is less than the limit; reach is at least K.
        reach = protect.rows - 1 + _first(lambda least: _tail(noise.spread, least) <= limit)
        thresholding = cls(noise=noise, protect=protect, columns=columns, reach=reach)
        promised = thresholding.guarantee()
        if promised.rho > cost.rho or promised.delta > cost.delta:
            raise InternalError(f"{thresholding} costs more than {cost}.")
        return thresholding

    def guarantee(self) -> ApproxZCDP:
        """What it promises, delta rounded up."""
        moved = self.columns * sensitivity.histogram_l2_squared(self.protect)
        rows = self.protect.rows
        tail = _tail(self.noise.spread, self.reach - rows + 1)
        return ApproxZCDP(self.noise.guarantee(moved).rho, self.columns * rows * tail)

    def show(self, counts: ArrayLike, *, rng: Rng) -> NDArray[np.int64]:
        """The noisy counts, ``NOT_SHOWN`` where they are not to be shown.

        Args:
            counts: How many rows have each value that occurs: whole numbers from 1 on.
            rng: Where the noise comes from.
        """
        exact = np.asarray(counts, dtype=np.int64)
        if exact.size and exact.min() < 1:
            raise InputError("only values that occur are counted.")
        sums = exact + self.noise.sample(exact.size, rng=rng).reshape(exact.shape)
        return np.where(sums > self.reach, sums, NOT_SHOWN)


@lru_cache(maxsize=1024)
def _tail(spread: Fraction, least: int) -> Fraction:
    """An upper bound of P(noise >= m) for m = ``least`` from 1 on, close from 4 sigma on.

    With s the spread, the sum of e^(-k^2/s^2) over k >= m is at most the geometric series
    e^(-m^2/s^2) / (1 - e^(-2m/s^2)), as (m + j)^2 >= m^2 + 2mj. Over all k it is at least 1, its
    middle term, and at least s sqrt(pi), by Poisson's formula (whose terms are all positive).
    """
    with localcontext(Context(prec=_DIGITS)):
        s, m = Decimal(spread.numerator) / Decimal(spread.denominator), Decimal(least)
        series = (-((m / s) ** 2)).exp() / (1 - (-2 * m / s**2).exp())
        return Fraction(series / max(Decimal(1), s * _ROOT_OF_PI) * (1 + _MARGIN))


def _first(fits: Callable[[int], bool]) -> int:
    """The smallest whole number from 1 on that fits, where all larger ones do too."""
    high = 1
    while not fits(high):
        high *= 2
        if high > _MAX_REACH:
            raise InputError(
                "thresholds would be too large to be of use. Give more epsilon, or count fewer "
                "rows of a person."
            )
    low = high // 2  # does not fit, or is 0
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if fits(middle) else (middle, high)
    return high
