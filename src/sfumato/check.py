"""Argument checks that take the argument's name from the keyword.

``check.positive(rounds=0)`` says ``rounds must be > 0, got 0``. Each takes one keyword beside its
limits and returns the value.
"""

import math
from collections.abc import Iterable
from fractions import Fraction
from numbers import Integral, Rational
from typing import Any, TypeVar

from sfumato.errors import InputError

T = TypeVar("T")
Number = int | float | str | Fraction

_LONGEST_NUMBER = 60
"""Characters of a number as text: a limit against abuse."""


def positive(**named: Any) -> Any:
    """A finite number above zero."""
    name, value = _one(named)
    if not _is_finite_number(value) or not value > 0:
        raise InputError(f"{name} must be > 0, got {value!r}")
    return value


def whole(*, at_least: int, at_most: int | None = None, **named: Any) -> int:
    """An integer (never a bool or a float) between two limits."""
    name, value = _one(named)
    allowed = f">= {at_least}" if at_most is None else f"between {at_least} and {at_most}"
    integral = isinstance(value, Integral) and not isinstance(value, bool)
    if not integral or value < at_least or (at_most is not None and value > at_most):
        raise InputError(f"{name} must be a whole number {allowed}, got {value!r}")
    return int(value)


def keep_whole(spec: object, *, at_least: int, at_most: int | None = None, **named: Any) -> None:
    """Check a field of a frozen spec and keep it as a plain int: narrow ones of numpy wrap."""
    name, _ = _one(named)
    object.__setattr__(spec, name, whole(at_least=at_least, at_most=at_most, **named))


def one_of(allowed: Iterable[T], **named: Any) -> T:
    """One of a few values."""
    name, value = _one(named)
    options = list(allowed)
    if value not in options:
        listed = ", ".join(repr(option) for option in options)
        raise InputError(f"{name} must be one of {listed}, got {value!r}")
    return value  # type: ignore[no-any-return]


def exact(**named: Any) -> Fraction:
    """A number as the exact fraction its decimal text says: 0.1 is 1/10.

    >>> exact(epsilon=0.1)
    Fraction(1, 10)
    """
    name, value = _one(named)
    if isinstance(value, Rational) and not isinstance(value, bool):
        return Fraction(int(value.numerator), int(value.denominator))
    text = repr(float(value)) if isinstance(value, float) else value
    if not isinstance(text, str) or not text.isascii() or len(text) > _LONGEST_NUMBER:
        raise InputError(f"{name} must be a number, got {value!r:.60}")
    try:
        near = float(text)
        vanished = near == 0 and any(digit in "123456789" for digit in text.lower().split("e")[0])
        if not math.isfinite(near) or vanished:
            raise ValueError  # 1e400 and 1e-400 are as far from a usable number as nan
        return Fraction(text)
    except ValueError:
        raise InputError(f"{name} must be a finite number, got {value!r}") from None


def _one(named: dict[str, Any]) -> tuple[str, Any]:
    ((name, value),) = named.items()
    return name, value


def _is_finite_number(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float | Rational):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # beyond the largest float
        return False
