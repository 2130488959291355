"""Promises as exact, frozen values: pure, zero-concentrated, approximate and local DP.

Parameters are fractions, so ten spends of 0.1 fit into 1.0. A cost is the guarantee of one step;
a budget is the guarantee of everything together.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from typing import Any, ClassVar

from sfumato import check
from sfumato.errors import InputError

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
        exact = check.exact(delta=delta)
        if not 0 < exact < 1:
            raise InputError(f"delta must be above 0 and below 1, got {delta!r}")
        object.__setattr__(self, "delta", exact)

    def __str__(self) -> str:
        return f"epsilon={short(self.epsilon)}, delta={short(self.delta)}"


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

Guarantee = PureDP | ZCDP | ApproxDP | LocalDP

_KINDS: dict[str, Any] = {kind.kind: kind for kind in (PureDP, ZCDP, ApproxDP, LocalDP)}


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


def to_json(guarantee: Guarantee) -> dict[str, str]:
    """Kind and exact parameters, fractions as text: ``{"kind": "pure", "epsilon": "1/10"}``."""
    fields = [name for name in ("epsilon", "rho", "delta") if hasattr(guarantee, name)]
    return {"kind": guarantee.kind} | {name: str(getattr(guarantee, name)) for name in fields}


def from_json(value: Mapping[str, Any]) -> Guarantee:
    """The value that ``to_json`` wrote."""
    fields = {name: Fraction(number) for name, number in value.items() if name != "kind"}
    return _KINDS[value["kind"]](**fields)  # type: ignore[no-any-return]


def short(number: Fraction) -> str:
    """A fraction as people write it: 6 significant digits, rounded up.

    >>> short(Fraction(1, 10)), short(Fraction(1, 10**9))
    ('0.1', '1e-09')
    """
    context = Context(prec=6, rounding=ROUND_CEILING)
    exact = context.divide(Decimal(number.numerator), Decimal(number.denominator))
    return f"{float(exact):.6g}"


def _parameter(**named: check.Number) -> Fraction:
    ((name, value),) = named.items()
    exact = check.exact(**named)
    if not 0 < exact <= MAX_EPSILON:
        raise InputError(f"{name} must be above 0 and at most {MAX_EPSILON}, got {value!r}")
    return exact
