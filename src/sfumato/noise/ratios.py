"""Real parameters as ratios of integers that the kernels can hold, rounded to a stated side."""

import math
from fractions import Fraction
from typing import Final

from sfumato.errors import InputError

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
