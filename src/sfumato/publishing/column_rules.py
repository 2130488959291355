"""The rules by which a column is declared from what is known of it, exactly or with noise.

A draft knows the values themselves (``commands.schema_draft``), an inference only noisy counts of
public classes (``publishing.inference``); limits, bins, steps, categories and decimals follow from
either by the rules here. Limits and edges are round, 1, 2 or 5 times a power of ten and their
multiples, in decimals so that 0.3 is written as 0.3: a person would have written them so.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from itertools import pairwise
from typing import Any, Final

from sfumato.schema.columns import Boolean, Number
from sfumato.schema.text_shapes import LARGEST, PAIRS

BINS: Final = 20
"""The most bins of a number, and the most steps of a wide whole number: enough to show a
distribution, few enough that the noise of each stays small."""
MOST_VALUES: Final = 50
"""The most values of a category; the others count as ``(other)``."""

_DIGITS: Final = (1, 2, 5)
"""The first digits of round numbers."""
_FINEST_POWER: Final = -12
"""Edges closer than this power of ten, against the largest of them, could not be told apart as
floats."""
_MOST_DECIMALS: Final = 6
"""Numbers with more digits after the point are published as floats, without a grid."""


@dataclass(frozen=True, kw_only=True)
class LeftOut:
    """A column that should not be published."""

    name: str
    why: str


def boolean(pair: tuple[str, str] | None, **common: Any) -> Boolean:
    """A column of two texts; false and true need no declaration."""
    return Boolean(texts=None if pair == PAIRS[0] else pair, **common)


def number(edges: tuple[float, ...], *, digits: int | None, **common: Any) -> Number:
    """Bins between the edges, and decimals where they are known and every bin has room for them."""
    narrowest = min(right - left for left, right in pairwise(edges))
    if digits is not None and (
        digits > _MOST_DECIMALS
        or narrowest < 10.0**-digits
        or max(map(abs, edges)) * 10.0**digits >= LARGEST
    ):
        digits = None
    return Number(edges=edges, decimals=digits, **common)


def whole_years(low: date, high: date) -> tuple[date, date]:
    """The first day of the first year and the last day of the last one."""
    return date(low.year, 1, 1), date(high.year, 12, 31)


def frequent(counts: Mapping[str, int]) -> tuple[str, ...]:
    """The most frequent texts, sorted."""
    return tuple(sorted(sorted(counts, key=lambda text: (-counts[text], text))[:MOST_VALUES]))


def round_unit(span: Decimal, *, most: int) -> Decimal:
    """The smallest of 1, 2, 5 times a power of ten that fits into ``span`` at most ``most`` times.

    >>> str(round_unit(Decimal(73), most=20)), str(round_unit(Decimal("0.9"), most=10))
    ('5', '0.1')
    """
    if span <= 0:
        return Decimal(1)
    power = (span / most).adjusted()
    units = (Decimal(digit).scaleb(power + more) for more in (0, 1) for digit in _DIGITS)
    return next(unit for unit in units if unit * most >= span)


def even_edges(low: float, high: float, *, most: int = BINS) -> tuple[float, ...]:
    """Edges at equal, round distances around two numbers: 2 to ``most`` + 2 of them.

    >>> even_edges(17.5, 90.25, most=10)
    (10, 20, 30, 40, 50, 60, 70, 80, 90, 100)
    """
    least, largest = Decimal(str(low)), Decimal(str(high))
    finest = max(abs(least), abs(largest)).scaleb(_FINEST_POWER)
    unit = max(round_unit(largest - least, most=most), round_unit(finest, most=1))
    first = int((least / unit).to_integral_value(ROUND_FLOOR))
    last = int((largest / unit).to_integral_value(ROUND_CEILING))
    return plain_edges(index * unit for index in range(first, max(last, first + 1) + 1))


def plain_edges(edges: Iterable[Decimal | float]) -> tuple[float, ...]:
    """As a person would write them: without a point where all are whole and not too long."""
    given = list(edges)
    whole = all(edge == int(edge) and abs(int(edge)) < LARGEST for edge in given)
    return tuple(int(edge) if whole else float(edge) for edge in given)
