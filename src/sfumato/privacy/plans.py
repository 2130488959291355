"""Gaussian plans: a list of discrete Gaussian draws that is fixed before the first look.

What such a list costs follows from the composed distribution of its privacy losses, which allows
more rho than the sum does: 10% more at epsilon 1 and delta 1e-9. Which number each draw is
for may still be chosen on the way (``_losses``); how many there are and how noisy, may not.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final

from sfumato import check
from sfumato.errors import InputError
from sfumato.privacy._losses import SMALLEST_DELTA, Draws, Losses
from sfumato.privacy.conversions import epsilon_from_zcdp, zcdp_budget
from sfumato.privacy.guarantees import MAX_EPSILON, ZCDP, ApproxDP, short

MOST_PARTS: Final = 2
"""So many classes of draws can be composed without rounding their losses to a common grid."""
MOST_COORDINATES: Final = 2**20
LARGEST_SHIFT: Final = 2**10

_SPREAD_BITS: Final = 24
_SMALLEST_SPREAD: Final = Fraction(1, 10)
_LARGEST_SPREAD: Final = 2**26
"""Between these, draws are exact (``mechanisms.DiscreteGaussian``)."""
_MARGIN: Final = Fraction(1, 10**6)
"""What ``largest_plan`` leaves of epsilon: on another machine floats may end in other digits, and
a plan that was admitted there must be admitted here."""
_CLOSE: Final = 2**-13
_STEP: Final = 1.25


@dataclass(frozen=True, kw_only=True, slots=True)
class GaussianPart:
    """Draws of one size: P(k) proportional to exp(-(k / spread)^2), spread = sqrt(2) sigma."""

    spread: Fraction
    """As of ``mechanisms.DiscreteGaussian``."""
    coordinates: int
    """How many of the noisy numbers can differ between neighbors."""
    shift: int = 1
    """By how much each of them can, whole."""

    def __post_init__(self) -> None:
        draws = check.whole(at_least=1, at_most=MOST_COORDINATES, coordinates=self.coordinates)
        moved = check.whole(at_least=1, at_most=LARGEST_SHIFT, shift=self.shift)
        object.__setattr__(self, "coordinates", draws)  # plain ints: those of numpy wrap around
        object.__setattr__(self, "shift", moved)
        if not isinstance(self.spread, Fraction) or not 0 < self.spread <= _LARGEST_SPREAD:
            raise InputError(
                f"spread must be a fraction above 0 and at most {_LARGEST_SPREAD}, got "
                f"{self.spread!r}"
            )

    @property
    def rho(self) -> Fraction:
        """What these draws cost as zCDP: coordinates (shift / spread)^2, exact.

        Canonne, Kamath, Steinke 2020, arXiv 2004.00010, theorem 4.
        """
        return self.coordinates * (self.shift / self.spread) ** 2


@dataclass(frozen=True, kw_only=True, slots=True)
class GaussianPlan:
    """All the noise there will be, fixed in advance.

    Formal guarantee: whatever is measured with these draws, each given to numbers that move by at
    most its shift and chosen in view of earlier results or not, satisfies (epsilon(delta), delta)
    for every delta at once, and rho-zCDP.
    """

    parts: tuple[GaussianPart, ...]
    """One or two classes."""

    def __post_init__(self) -> None:
        if not isinstance(self.parts, tuple) or not 1 <= len(self.parts) <= MOST_PARTS:
            raise InputError(f"a plan has one or two parts in a tuple, got {self.parts!r:.80}")
        if self.rho > MAX_EPSILON:
            raise InputError(f"a plan's rho is at most {MAX_EPSILON}, got {float(self.rho):.6g}")

    @property
    def rho(self) -> Fraction:
        """The sum over all draws, exact."""
        return sum((part.rho for part in self.parts), Fraction(0))

    @property
    def cost(self) -> ZCDP:
        """What it counts as where costs are added."""
        return ZCDP(self.rho)

    def epsilon(self, delta: Fraction) -> Fraction:
        """The composed epsilon at ``delta``, rounded up; never more than that of its rho.

        >>> part = GaussianPart(spread=Fraction(176), coordinates=512)
        >>> plan = GaussianPlan(parts=(part,))
        >>> round(float(plan.epsilon(Fraction(1, 10**9))), 3)
        0.999
        >>> round(float(epsilon_from_zcdp(plan.rho, Fraction(1, 10**9))), 3)
        1.053
        """
        return _epsilon(self, check.exact(delta=delta))

    def __str__(self) -> str:
        draws = sum(part.coordinates for part in self.parts)
        return f"rho={short(self.rho)} in {draws:,} draws fixed in advance"


@dataclass(frozen=True, kw_only=True, slots=True)
class Share:
    """A part of a plan to be made: what is known of it, and its share of the rho."""

    coordinates: int
    shift: int = 1
    share: Fraction = Fraction(1)


def largest_plan(cap: ApproxDP, shares: Sequence[Share]) -> GaussianPlan | None:
    """The plan with the least noise whose composed epsilon stays within a cap.

    None where the sum of rho allows as much, or the tables would be too large. Bisection on the
    total rho to 2^-13 of it; spreads are rounded up.

    >>> plan = largest_plan(ApproxDP(1, "1e-9"), [Share(coordinates=512)])
    >>> round(float(plan.rho), 5), round(float(zcdp_budget(ApproxDP(1, "1e-9")).rho), 5)
    (0.01656, 0.01497)
    """
    if sum(share.share for share in shares) != 1 or any(share.share <= 0 for share in shares):
        raise InputError("the shares of a plan are above 0 and sum to 1")
    return _largest_plan(cap, tuple(shares))


@lru_cache(maxsize=64)
def _largest_plan(cap: ApproxDP, shares: tuple[Share, ...]) -> GaussianPlan | None:
    """A function of public values alone, asked for again by every run of a simulation."""
    target, delta = float(cap.epsilon * (1 - _MARGIN)), float(cap.delta)

    def fits(rho: float) -> bool:
        losses = _losses(_plan_of(Fraction(rho), shares), cap.delta)
        return losses is not None and losses.delta(target) <= delta

    by_sum = zcdp_budget(cap).rho
    low, squares = float(by_sum), [_square(by_sum, share) for share in shares]
    if max(squares) > _LARGEST_SPREAD**2 or by_sum > MAX_EPSILON / 4 or not fits(low):
        return None
    high = low * _STEP
    while fits(high):
        low, high = high, high * _STEP
    while high - low > low * _CLOSE:
        middle = (low + high) / 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    plan = _plan_of(Fraction(low), shares)
    if min(part.spread for part in plan.parts) < _SMALLEST_SPREAD or plan.rho <= by_sum:
        return None
    return plan if plan.epsilon(cap.delta) <= cap.epsilon else None


def to_json(plan: GaussianPlan) -> list[dict[str, Any]]:
    """The parts, spreads as text, as they stand in the ledger."""
    return [
        {"spread": str(part.spread), "coordinates": part.coordinates, "shift": part.shift}
        for part in plan.parts
    ]


def from_json(value: Sequence[Mapping[str, Any]]) -> GaussianPlan:
    """The value that ``to_json`` wrote."""
    parts = (
        GaussianPart(
            spread=Fraction(part["spread"]), coordinates=part["coordinates"], shift=part["shift"]
        )
        for part in value
    )
    return GaussianPlan(parts=tuple(parts))


@lru_cache(maxsize=256)
def _epsilon(plan: GaussianPlan, delta: Fraction) -> Fraction:
    by_sum = epsilon_from_zcdp(plan.rho, delta)
    losses = _losses(plan, delta)
    if losses is None:
        return by_sum
    found = losses.epsilon(delta=float(delta), at_most=float(by_sum))
    if not math.isfinite(found):
        return by_sum
    return min(by_sum, Fraction(math.ceil(found * 10**12) + 1, 10**12))  # up: one unit for floats


def _losses(plan: GaussianPlan, delta: Fraction) -> Losses | None:
    """The tables of a plan."""
    if delta < SMALLEST_DELTA:
        return None
    return Losses.of(
        [
            Draws(sigma=float(part.spread) / math.sqrt(2), n=part.coordinates, shift=part.shift)
            for part in plan.parts
        ],
        delta=float(delta),
    )


def _plan_of(rho: Fraction, shares: Sequence[Share]) -> GaussianPlan:
    """The least noise that costs at most ``rho`` in these shares."""
    return GaussianPlan(
        parts=tuple(
            GaussianPart(
                spread=_root_up(_square(rho, share)),
                coordinates=share.coordinates,
                shift=share.shift,
            )
            for share in shares
        )
    )


def _square(rho: Fraction, share: Share) -> Fraction:
    """The square of the spread with which a share costs that part of ``rho``."""
    return share.coordinates * share.shift**2 / (rho * share.share)


def _root_up(square: Fraction) -> Fraction:
    """A spread of at least the square root, by at most 2^-23 of it: u / v, u of 24 bits.

    v is a power of two, as exact draws need it (``mechanisms.DiscreteGaussian``).

    >>> _root_up(Fraction(4)), float(_root_up(Fraction(2)))
    (Fraction(2, 1), 1.414213657379...)
    """
    bits = math.isqrt(math.floor(square * 4**_SPREAD_BITS)).bit_length()  # of the root * 2^24
    v = 2 ** max(0, 2 * _SPREAD_BITS - bits)
    return Fraction(math.isqrt(math.ceil(square * v * v) - 1) + 1, v)
