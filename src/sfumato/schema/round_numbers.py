"""Round numbers: limits and edges that a person would have written without any data.

They are 1, 2 or 5 times a power of ten and their multiples, computed in decimals so that 0.3 is
written as 0.3.
"""

from collections.abc import Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Final

_DIGITS: Final = (1, 2, 5)
_LONG: Final = 10**15


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


def even_edges(low: float, high: float, *, most: int = 20) -> tuple[float, ...]:
    """Edges at equal, round distances around two numbers: 2 to ``most`` + 2 of them.

    >>> even_edges(17.5, 90.25, most=10)
    (10, 20, 30, 40, 50, 60, 70, 80, 90, 100)
    """
    least, largest = Decimal(str(low)), Decimal(str(high))
    finest = max(abs(least), abs(largest)).scaleb(-12)  # so that floats tell the edges apart
    unit = max(round_unit(largest - least, most=most), round_unit(finest, most=1))
    first = int((least / unit).to_integral_value(ROUND_FLOOR))
    last = int((largest / unit).to_integral_value(ROUND_CEILING))
    return _written([place * unit for place in range(first, max(last, first + 1) + 1)])


def rising_edges(high: float, *, powers: int = 4) -> tuple[float, ...]:
    """0 and then 1, 2, 5, 10, ... up to at least ``high``, over so many powers of ten.

    >>> rising_edges(700, powers=2)
    (0, 10, 20, 50, 100, 200, 500, 1000)
    """
    largest = Decimal(str(high))
    top = largest.adjusted() + 1
    steps = (Decimal(d).scaleb(p) for p in range(top - powers, top + 1) for d in _DIGITS)
    edges = [Decimal(0), *steps]
    needed = next(place for place, edge in enumerate(edges) if edge >= largest)
    return _written(edges[: needed + 1])


def outward(low: int, high: int, unit: int) -> tuple[int, int]:
    """Two whole numbers moved apart so that whole blocks of ``unit`` begin and end there.

    >>> outward(17, 90, 10)
    (10, 99)
    """
    return low // unit * unit, high // unit * unit + unit - 1


def _written(edges: Sequence[Decimal]) -> tuple[float, ...]:
    """As a person would write them: without a point where all are whole and not too long."""
    whole = all(edge == edge.to_integral_value() and abs(edge) < _LONG for edge in edges)
    return tuple(int(edge) if whole else float(edge) for edge in edges)
