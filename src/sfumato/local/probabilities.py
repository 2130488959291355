"""Real probabilities as integers out of 2^64, rounded to the private side.

A random word is compared with an integer, so a protocol's probabilities are exact fractions with
the denominator ``WORD``. Client, server, guarantee and tests all read those same integers.
"""

from decimal import ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Final

from sfumato import check
from sfumato.errors import InputError

WORD: Final = 2**64
"""The number of values of a random word."""

MIN_EPSILON: Final = Fraction(1, 10_000)
"""Below it, more people than live would be needed for an estimate."""

MAX_EPSILON: Final = Fraction(32)
"""Above it, an answer hides nothing."""

_DIGITS: Final = Context(prec=60, rounding=ROUND_FLOOR)


def local_epsilon(epsilon: check.Number) -> Fraction:
    """An epsilon that one answer may have, exact."""
    exact = check.exact(epsilon=epsilon)
    if not MIN_EPSILON <= exact <= MAX_EPSILON:
        raise InputError(
            f"epsilon of an answer must be between {float(MIN_EPSILON):g} and {MAX_EPSILON}, got "
            f"{float(exact):g}. Most surveys use 0.5 to 4."
        )
    return exact


@lru_cache(maxsize=1024)
def exp_below(exponent: Fraction) -> Fraction:
    """A fraction at most e^exponent, and less than one part in 10^57 below it.

    ``Decimal.exp`` is correctly rounded to the nearest, the exponent itself is rounded down, and
    the next smaller number is taken: each step errs to the private side only.

    >>> float(exp_below(Fraction(1)))
    2.718281828459045
    """
    down = _DIGITS.divide(Decimal(exponent.numerator), Decimal(exponent.denominator))
    return Fraction(_DIGITS.next_minus(_DIGITS.exp(down)))


def split_below(ratio: Fraction) -> int:
    """The largest T with T / (WORD - T) <= ratio: the words that tell the truth.

    >>> split_below(Fraction(3)) == 3 * 2**62
    True
    """
    return int(ratio * WORD // (1 + ratio))


def ceil_div(numerator: Fraction | int, denominator: Fraction | int) -> int:
    """The quotient rounded up."""
    return int(-(-Fraction(numerator) // Fraction(denominator)))
