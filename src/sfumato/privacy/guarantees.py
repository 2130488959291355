"""Promises as exact, frozen values: pure, zero-concentrated, approximate and local DP; conversions.

Parameters are fractions, so ten spends of 0.1 fit into 1.0. A cost is the guarantee of one step;
a budget is the guarantee of everything together.

Each conversion from one kind to another has its source. Where a real number has to be rounded it
goes to the private side: an epsilon up, a budget down. The order of a Renyi divergence is searched
in floats, because any order gives a valid bound; the bound at that order is evaluated in 60-digit
decimals.
"""

import math
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar

from sfumato import check
from sfumato.errors import InputError, InternalError

MAX_EPSILON = 10_000
"""Beyond it a promise means nothing and arithmetic overflows: refused."""


@dataclass(frozen=True, slots=True)
class PureDP:
    """epsilon-DP: no output is more than e^epsilon times likelier under a neighbor.

    Dwork, McSherry, Nissim, Smith 2006, "Calibrating noise to sensitivity", definition 1.
    """

    epsilon: Fraction
    kind: ClassVar[str] = "pure"

    def __init__(self, epsilon: check.Number) -> None:
        object.__setattr__(self, "epsilon", _parameter(epsilon=epsilon))

    def __str__(self) -> str:
        return f"epsilon={short(self.epsilon)}"


@dataclass(frozen=True, slots=True)
class ZCDP:
    """rho-zCDP: the Renyi divergence of order a between neighbors is at most a * rho, a > 1.

    Bun, Steinke 2016, arXiv 1605.02065, definition 1.1.
    """

    rho: Fraction
    kind: ClassVar[str] = "zcdp"

    def __init__(self, rho: check.Number) -> None:
        object.__setattr__(self, "rho", _parameter(rho=rho))

    def __str__(self) -> str:
        return f"rho={short(self.rho)}"


@dataclass(frozen=True, slots=True)
class ApproxDP:
    """(epsilon, delta)-DP: pure DP but for an event of weight delta.

    Dwork, Kenthapadi, McSherry, Mironov, Naor 2006, "Our data, ourselves", definition 1.
    """

    epsilon: Fraction
    delta: Fraction
    kind: ClassVar[str] = "approximate"

    def __init__(self, epsilon: check.Number, delta: check.Number) -> None:
        object.__setattr__(self, "epsilon", _parameter(epsilon=epsilon))
        object.__setattr__(self, "delta", _delta(delta))

    def __str__(self) -> str:
        return f"epsilon={short(self.epsilon)}, delta={short(self.delta)}"


@dataclass(frozen=True, slots=True)
class ApproxZCDP:
    """delta-approximate rho-zCDP: rho-zCDP but for an event of weight delta.

    For neighbors there are events, each of probability at least 1 - delta, given which the outputs
    are as close as under rho-zCDP. Bun, Steinke 2016, arXiv 1605.02065, definition 8.1. What
    thresholds on Gaussian counts cost.
    """

    rho: Fraction
    delta: Fraction
    kind: ClassVar[str] = "approximate-zcdp"

    def __init__(self, rho: check.Number, delta: check.Number) -> None:
        object.__setattr__(self, "rho", _parameter(rho=rho))
        object.__setattr__(self, "delta", _delta(delta))

    def __str__(self) -> str:
        return f"rho={short(self.rho)}, delta={short(self.delta)}"


@dataclass(frozen=True, slots=True)
class LocalDP:
    """epsilon-local DP: the guarantee of one answer that leaves a person's device.

    Kasiviswanathan, Lee, Nissim, Raskhodnikova, Smith 2011, "What can we learn privately?".
    """

    epsilon: Fraction
    kind: ClassVar[str] = "local"

    def __init__(self, epsilon: check.Number) -> None:
        object.__setattr__(self, "epsilon", _parameter(epsilon=epsilon))

    def __str__(self) -> str:
        return f"epsilon={short(self.epsilon)} on the device"


Cost = PureDP | ZCDP
"""What one step may cost: the kinds whose adaptive sums are exact (see ``composition``)."""

Price = PureDP | ZCDP | ApproxDP | ApproxZCDP
"""What an entry of a ledger may cost: all of these add up as rho and delta."""

Guarantee = PureDP | ZCDP | ApproxDP | LocalDP

_KINDS: dict[str, Any] = {kind.kind: kind for kind in (PureDP, ZCDP, ApproxDP, ApproxZCDP, LocalDP)}


def portion(cost: Cost, share: Fraction) -> Cost:
    """A share of a cost of the same kind, exact.

    >>> str(portion(PureDP(1), Fraction(1, 4)))
    'epsilon=0.25'
    """
    if isinstance(cost, PureDP):
        return PureDP(cost.epsilon * share)
    return ZCDP(cost.rho * share)


def split(cost: Cost, weights: Sequence[float]) -> list[Cost]:
    """A cost in parts proportional to positive weights; the parts sum to it exactly.

    Shares are rounded down to multiples of 2^-40 and so stay short; the largest takes the rest.

    >>> [str(part) for part in split(PureDP(1), [1, 3])]
    ['epsilon=0.25', 'epsilon=0.75']
    """
    unit, whole = 2**40, sum(Fraction(weight) for weight in weights)
    shares = [Fraction(Fraction(weight) / whole * unit // 1, unit) for weight in weights]
    shares[max(range(len(shares)), key=shares.__getitem__)] += 1 - sum(shares)
    return [portion(cost, share) for share in shares]


def to_json(guarantee: Guarantee | ApproxZCDP) -> dict[str, str]:
    """Kind and exact parameters, fractions as text: ``{"kind": "pure", "epsilon": "1/10"}``."""
    fields = [name for name in ("epsilon", "rho", "delta") if hasattr(guarantee, name)]
    return {"kind": guarantee.kind} | {name: str(getattr(guarantee, name)) for name in fields}


def from_json(value: Mapping[str, Any]) -> Guarantee:
    """The guarantee that ``to_json`` wrote."""
    return _from_json(value, _KINDS.keys() - {ApproxZCDP.kind})  # type: ignore[no-any-return]


def price_from_json(value: Mapping[str, Any]) -> Price:
    """The cost of an entry that ``to_json`` wrote; a local guarantee can't be one."""
    return _from_json(value, _KINDS.keys() - {LocalDP.kind})  # type: ignore[no-any-return]


def _from_json(value: Mapping[str, Any], kinds: Set[str]) -> Any:
    if value["kind"] not in kinds:
        raise ValueError(f"not one of {sorted(kinds)}: {value['kind']!r:.60}")
    fields = {name: Fraction(number) for name, number in value.items() if name != "kind"}
    return _KINDS[value["kind"]](**fields)


def short(number: Fraction) -> str:
    """A fraction as people write it: 6 significant digits, rounded up.

    >>> short(Fraction(1, 10)), short(Fraction(1, 10**9))
    ('0.1', '1e-09')
    """
    context = Context(prec=6, rounding=ROUND_CEILING)
    exact = context.divide(Decimal(number.numerator), Decimal(number.denominator))
    return f"{float(exact):.6g}"


def _delta(given: check.Number) -> Fraction:
    exact = check.exact(delta=given)
    if not 0 < exact < 1:
        raise InputError(f"delta must be above 0 and below 1, got {given!r}")
    return exact


def _parameter(**named: check.Number) -> Fraction:
    ((name, value),) = named.items()
    exact = check.exact(**named)
    if not 0 < exact <= MAX_EPSILON:
        raise InputError(f"{name} must be above 0 and at most {MAX_EPSILON}, got {value!r}")
    return exact


_DIGITS = 60
"""Of the decimals in which a bound is evaluated."""
_MARGIN = Decimal("1e-40")
"""Relative allowance for about ten roundings to 60 digits: far more than they can add up to."""
_SMALLEST_EPSILON = Fraction(1, 10**30)
"""Stated where the formula gives less: a guarantee of epsilon 0 can't be written."""


def zcdp_from_pure(epsilon: Fraction) -> Fraction:
    """The rho of an epsilon-DP step: ``rho = epsilon^2 / 2``, exact.

    Bun, Steinke 2016, arXiv 1605.02065, proposition 1.4. Close to tight for small epsilon.

    >>> zcdp_from_pure(Fraction(1, 10))
    Fraction(1, 200)
    """
    return epsilon * epsilon / 2


def epsilon_from_zcdp(rho: Fraction, delta: Fraction) -> Fraction:
    """The smallest known epsilon such that rho-zCDP implies (epsilon, delta)-DP, rounded up.

    Canonne, Kamath, Steinke 2020, arXiv 2004.00010, corollary 13 (from proposition 12)::

        epsilon = min over a > 1 of  a rho + log(1 - 1/a) + (log(1/delta) - log a) / (a - 1)

    The derivative in ``a`` has the sign of ``rho (a-1)^2 + log a - log(1/delta)``, which grows
    with ``a``: one root, found by bisection. Tight among bounds that use the Renyi curve
    ``a -> a rho`` through proposition 12; the exact curve of a mechanism may give less.

    >>> float(epsilon_from_zcdp(Fraction(1, 2), Fraction(1, 10**6)))
    5.22153444453017
    """
    if rho < 0:
        raise InputError(f"rho must be at least 0, got {rho}")
    if not 0 < delta < 1:
        raise InputError(f"delta must be above 0 and below 1, got {delta}")
    if rho == 0:
        return _SMALLEST_EPSILON
    slope, tail = float(rho), -_log_of(delta)

    def past_the_minimum(order_less_1: float) -> bool:
        return slope * order_less_1**2 + math.log1p(order_less_1) > tail

    epsilon = _epsilon_at(_search(past_the_minimum), rho, delta)
    return max(_SMALLEST_EPSILON, Fraction(_rounded(epsilon, 15, ROUND_CEILING)))


@lru_cache(maxsize=256)
def zcdp_budget(cap: ApproxDP) -> ZCDP:
    """The largest rho whose conversion stays within (epsilon, delta), rounded down.

    For a fixed order ``a`` the bound of ``epsilon_from_zcdp`` is linear in rho. At the best order
    its derivative vanishes too, so ``rho = (log(1/delta) - log a) / (a - 1)^2`` and
    ``epsilon = (2a - 1) rho + log(1 - 1/a)``, which falls as ``a`` grows: one root again
    (from the same corollary). The result is converted
    back; if that does not hold, nothing is returned.

    >>> float(zcdp_budget(ApproxDP(1, "1e-9")).rho)
    0.0149730576734
    """
    target, tail = float(cap.epsilon), -_log_of(cap.delta)

    def past_the_root(order_less_1: float) -> bool:
        slack = tail - math.log1p(order_less_1)
        rho = slack / order_less_1**2
        log_share = math.log(order_less_1) - math.log1p(order_less_1)
        return (2 * order_less_1 + 1) * rho + log_share < target

    exact = _rho_at(_search(past_the_root), cap)
    rounded = _rounded(exact, 12, ROUND_FLOOR)
    last_digit = Decimal((0, (1,), rounded.adjusted() - 11))
    rho = Fraction(rounded) - Fraction(last_digit)
    if rho <= 0 or epsilon_from_zcdp(rho, cap.delta) > cap.epsilon:
        raise InternalError(
            f"no rho could be found for the cap {cap}. Use a larger epsilon, or report this"
        )
    return ZCDP(min(rho, Fraction(MAX_EPSILON)))


def as_epsilon_delta(guarantee: Guarantee, delta: Fraction) -> ApproxDP:
    """Any guarantee as (epsilon, delta)-DP at the given delta.

    epsilon-DP is (epsilon, delta)-DP for every delta; so is epsilon-local DP for one answer. An
    approximate guarantee can be stated at a larger delta, never at a smaller one.

    >>> str(as_epsilon_delta(ZCDP("0.5"), Fraction(1, 10**6)))
    'epsilon=5.22154, delta=1e-06'
    >>> str(as_epsilon_delta(ApproxDP(1, "1e-9"), Fraction(1, 10**6)))
    'epsilon=1, delta=1e-06'
    """
    if isinstance(guarantee, ZCDP):
        return ApproxDP(epsilon_from_zcdp(guarantee.rho, delta), delta)
    if isinstance(guarantee, ApproxDP) and guarantee.delta > delta:
        raise InputError(
            f"a guarantee with delta={guarantee.delta} can't be stated at the smaller "
            f"delta={delta}; give a delta of at least {guarantee.delta}"
        )
    return ApproxDP(guarantee.epsilon, delta)


def _epsilon_at(order_less_1: Decimal, rho: Fraction, delta: Fraction) -> Decimal:
    """An upper bound of the formula of ``epsilon_from_zcdp`` at one order."""
    with localcontext(Context(prec=_DIGITS, rounding=ROUND_CEILING)):
        order = 1 + order_less_1
        first = order * (Decimal(rho.numerator) / Decimal(rho.denominator))
        tail = Decimal(delta.denominator).ln() - Decimal(delta.numerator).ln()
        share, log_order = (order_less_1 / order).ln(), order.ln()
        size = first + abs(share) + (tail + log_order) / order_less_1
        return first + share + (tail - log_order) / order_less_1 + size * _MARGIN


def _rho_at(order_less_1: Decimal, cap: ApproxDP) -> Decimal:
    """A lower bound of the rho for which ``_epsilon_at`` gives the cap's epsilon."""
    with localcontext(Context(prec=_DIGITS, rounding=ROUND_FLOOR)):
        rest = _epsilon_at(order_less_1, Fraction(0), cap.delta)
        epsilon = Decimal(cap.epsilon.numerator) / Decimal(cap.epsilon.denominator)
        return (epsilon - rest) / (1 + order_less_1)


def _search(too_large: Callable[[float], bool]) -> Decimal:
    """``a - 1`` at the switch of a monotone test, with 8 digits: exact as a short decimal.

    The bounds are flat there, so 8 digits of the order give 15 of the bound; and a result that
    does not depend on the last bits of a logarithm is the same on every machine.
    """
    low, high = math.log(1e-12), math.log(1e30)
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (low, middle) if too_large(math.exp(middle)) else (middle, high)
    return Decimal(f"{math.exp(high):.7e}")


def _rounded(number: Decimal, digits: int, rounding: str) -> Decimal:
    return Context(prec=digits, rounding=rounding).plus(number)


def _log_of(delta: Fraction) -> float:
    return math.log(delta.numerator) - math.log(delta.denominator)
