"""What a careful statistician would declare of a column of numbers: limits, resolution, codes.

All rules are for a draft: they look at the exact values, and a person confirms what they say.
Limits are round and lie outward of the values, so that they look like something that could have
been known before; what is known of a value is how fine it is, never which bins would suit it.
Values are decimals, so that 0.1 is one tenth. All constants were chosen by judgment, on tables
that were made up (``tests/unit/publishing/test_number_rules.py``), none for a real file.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal, localcontext
from math import gcd
from typing import Final

FEW: Final = 24
"""Columns of at most 24 values ..."""
NEAR_EACH_OTHER: Final = 50
"""... that span at most 50 steps are counted value by value, so special codes need no word: round
limits around them leave at most 100 values."""
MOST_CELLS: Final = 10**9
"""Of the grid from the lower to the upper limit in steps of the resolution."""

_DIGITS_AFTER: Final = 12
"""After the point: what a column may declare (``schema.columns``)."""
_DIGITS: Final = 15
"""In all: what a float holds without rounding."""
_QUOTIENT_DIGITS: Final = 700
"""Of any number that a float holds over any step: both have fewer than 330 digits."""
_MOST_DIGITS: Final = 6
"""Digits after the point beyond which a number was computed rather than measured."""
_COMPUTED_CELLS: Final = 10**6
"""Cells of the grid of such a number."""
_CYCLES: Final = ((1, 7), (0, 6), (1, 12), (0, 11), (1, 24), (0, 23), (1, 31), (1, 52), (1, 53),
                  (0, 59), (1, 60), (1, 365), (1, 366))  # fmt: skip
"""Limits of days, months, hours and so on, which nobody would round."""
_EVEN: Final = 0.1
"""The last value of such a cycle has at least this part of the rows of a mean one: no tail has."""
_NAMED: Final = {
    "month": (1, 12), "day": (1, 31), "week": (1, 53), "hour": (0, 23), "minute": (0, 59),
    "second": (0, 59),
}  # fmt: skip
"""The cycle that a name says, as in hour or hour_of_day; values reach beyond a third of it."""
_COUNTED_FROM_1: Final = 100
"""A column counts from 1 where its lowest value is 1 and at least one row in 100 has it."""
_FIRST_YEAR, _LAST_YEAR = 1800, 2100
"""Whole numbers between these two are taken for years, and their limits for decades."""

_CHANCE: Final = 10**6
"""All values are multiples of a number by chance in less than one of a million tables."""
_MANY: Final = 8
"""Different values that are needed to say so."""

_CODE_ROWS: Final = 200
"""A special code has at least one row in 200 ..."""
_RARE: Final = 5
"""... and at least 5 rows: a value of fewer is somebody's."""
_MOST_CODES: Final = 3
"""Special codes at one end."""
_TOP_ROWS: Final = 1000
"""A top code has at least one row in 1,000, ..."""
_TOP_LEAST: Final = 20
"""... at least 20 rows, ..."""
_TOP_TIMES: Final = 5
"""... and 5 times the rows of each of the values just below it, ..."""
_BESIDE: Final = 5
"""... of which 5 are looked at."""

Rows = Mapping[Decimal, int]
"""The rows of each value."""


@dataclass(frozen=True, kw_only=True)
class NumberGrid:
    """What is proposed for a column of numbers."""

    low: Decimal
    high: Decimal
    resolution: Decimal
    alone: tuple[Decimal, ...] = ()
    rest: tuple[Decimal, Decimal]
    """The limits without the special codes."""
    rounded: bool = False
    """Whether the values have more digits than the resolution."""

    @property
    def can_be_declared(self) -> bool:
        """Whether floats tell its numbers apart."""
        digits = max(0, -min(_exponent(self.low), _exponent(self.resolution)))
        largest = max(abs(self.low), abs(self.high)).adjusted() + 1 + digits
        return digits <= _DIGITS_AFTER and largest <= _DIGITS


def grid(name: str, rows: Rows | None, low: Decimal, high: Decimal, *, digits: int) -> NumberGrid:
    """Limits, resolution and special codes.

    Args:
        name: Of the column.
        rows: Of each value; None where there are too many.
        low: The lowest value.
        high: The highest value.
        digits: The most digits after the point.

    >>> cents = grid("pay", {Decimal(n) / 100: 1 for n in range(3, 900)}, Decimal("0.03"),
    ...              Decimal("8.99"), digits=2)
    >>> str(cents.low), str(cents.high), str(cents.resolution)
    ('0', '10', '0.01')
    """
    with localcontext(prec=_QUOTIENT_DIGITS):
        return _grid(name, rows, low, high, digits=digits)


def _grid(name: str, rows: Rows | None, low: Decimal, high: Decimal, *, digits: int) -> NumberGrid:
    fine = resolution(rows, digits)
    codes = special_codes(rows or {}, step=fine)
    step, most = fine, _COMPUTED_CELLS if digits > _MOST_DIGITS else MOST_CELLS
    while True:
        on_grid = tuple(code for code in codes if not code % step)
        rest = {*(rows or (low, high))} - {*on_grid}  # a code off the grid is a value like others
        inner = _ends(name, rows, min(rest), max(rest), step)
        ends = around(inner, on_grid)
        cells = int((ends[1] - ends[0]) / step) + 1
        if cells <= most:
            break
        power = Decimal(1).scaleb(step.adjusted() + len(str(cells // most)) - 1)
        step = plain(power if power > step else power * 10)
    return NumberGrid(
        low=ends[0], high=ends[1], resolution=step, alone=on_grid, rest=inner, rounded=step > fine
    )


def _ends(
    name: str, rows: Rows | None, low: Decimal, high: Decimal, step: Decimal
) -> tuple[Decimal, Decimal]:
    """Limits around the values that are no codes."""
    if step == 1 and (known := known_limits(name, rows, int(low), int(high))) is not None:
        return Decimal(known[0]), Decimal(known[1])
    first, last = limits(low, high, resolution=step)
    return (Decimal(1) if step == 1 and first == 0 and counts_from_1(rows or {}) else first), last


def round_up(value: Decimal) -> Decimal:
    """The smallest of 1, 2, 5 times a power of ten that is not below a positive number.

    >>> [str(round_up(Decimal(text))) for text in ("90", "100", "0.7578", "2143")]
    ['100', '100', '1', '5000']
    """
    power = value.adjusted()
    steps = (Decimal(f"{digit}e{power + more}") for more in (0, 1) for digit in (1, 2, 5))
    return plain(next(step for step in steps if step >= value))


def limits(low: Decimal, high: Decimal, *, resolution: Decimal) -> tuple[Decimal, Decimal]:
    """Round limits around all values: from 0 where the values begin near it, else of round units.

    >>> [tuple(map(str, limits(Decimal(a), Decimal(b), resolution=Decimal(1))))
    ...  for a, b in ((17, 90), (-8019, 102127), (1500, 1620), (35, 41))]
    [('0', '100'), ('-10000', '200000'), ('1400', '1800'), ('30', '50')]
    """
    if low == high == 0:
        return low, resolution
    if low < 0 < high or low == high:
        return _from_0(min(low, Decimal(0)), resolution), _from_0(max(high, Decimal(0)), resolution)
    if high <= 0:
        first, last = limits(-high, -low, resolution=resolution)
        return -last or Decimal(0), -first or Decimal(0)
    if 2 * low <= high:
        return Decimal(0), _from_0(high, resolution)
    unit = round_up(max(high - low, resolution))
    first = (low / unit).to_integral_value(ROUND_FLOOR) * unit
    last = (high / unit).to_integral_value(ROUND_CEILING) * unit
    return plain(first), plain(last if last > first else first + unit)


def known_limits(name: str, rows: Rows | None, low: int, high: int) -> tuple[int, int] | None:
    """Limits of whole numbers that everybody knows: of a cycle, of years; None if there are none.

    >>> known_limits("built", None, 1987, 2012), known_limits("hour", None, 6, 22)
    ((1980, 2020), (0, 23))
    """
    word = re.match(r"([a-z]+)(?:[ _-]?of[ _-]|$)", name.strip().lower())
    first, last = _NAMED.get(word[1] if word else "", (1, 0))
    if first <= low and last / 3 < high <= last:
        return first, last
    if _FIRST_YEAR <= low <= high <= _LAST_YEAR:
        return low // 10 * 10, -(-high // 10) * 10 + (10 if low == high and high % 10 == 0 else 0)
    if rows is None or (low, high) not in _CYCLES or len(rows) <= high - low:
        return None
    last = rows[Decimal(high)]
    cycle = min(rows.values()) >= _RARE and last * len(rows) >= _EVEN * sum(rows.values())
    return (low, high) if cycle else None


def counts_from_1(rows: Rows) -> bool:
    """Whether the lowest of whole numbers is 1, and no rare value."""
    ones = rows.get(Decimal(1), 0)
    return (
        min(rows, default=0) == 1 and ones >= _RARE and ones * _COUNTED_FROM_1 >= sum(rows.values())
    )


def resolution(rows: Rows | None, digits: int) -> Decimal:
    """What all values are multiples of: a digit after the point, or 0.5, 100, ... of many values.

    >>> str(resolution(None, 2)), str(resolution({Decimal(n) * 500: 1 for n in range(30)}, 0))
    ('0.01', '500')
    """
    unit = Decimal(1).scaleb(-digits)
    counted = [abs(int(value / unit)) for value in rows or () if value]
    if len(counted) < _MANY or any(value % unit for value in rows or ()):
        return unit
    common = gcd(*counted)
    steps = sorted({first * 10**power for power in range(len(str(common))) for first in (1, 5)})
    sure = [each for each in steps if common % each == 0 and each ** len(counted) >= _CHANCE]
    return plain(unit * max(sure, default=1))


def special_codes(rows: Rows, *, step: Decimal = Decimal(1)) -> tuple[Decimal, ...]:
    """Values with many rows far from the rest, such as -200, 999 and 99999, and top codes.

    Args:
        rows: Of each value.
        step: The resolution of the column.

    >>> ages = {Decimal(age): 40 for age in range(18, 80)}
    >>> special_codes(ages), special_codes(ages | {Decimal(999): 90})
    ((), (Decimal('999'),))
    >>> special_codes({Decimal(score): 40 for score in (*range(11), -99)})
    (Decimal('-99'),)
    """
    values = sorted(rows)
    if len(values) <= 2 * _MOST_CODES:
        return ()
    if len(values) <= FEW and values[-1] - values[0] <= NEAR_EACH_OTHER * step:
        return ()
    total = sum(rows.values())
    heavy = [max(_RARE, total / _CODE_ROWS) <= rows[value] for value in values]
    below = next((n for n in range(1, _MOST_CODES + 1) if all(heavy[:n]) and _far(values, n)), 0)
    mirrored = [-value for value in reversed(values[below:])]
    above = next((n for n in range(1, _MOST_CODES + 1) if all(heavy[-n:]) and _far(mirrored, n)), 0)
    top = values[len(values) - above :] or [values[-1]] * _is_top_code(values, rows, total)
    return (*values[:below], *top)


def _far(values: Sequence[Decimal], number: int) -> bool:
    """Whether the first values lie far below the others: by as much as those spread, or by sign."""
    codes, rest = values[:number], values[number:]
    gap, spread = rest[0] - codes[-1], rest[-1] - rest[0]
    if gap >= spread or (2 * gap >= spread and all(map(_is_repeated, codes))):
        return True
    return codes[-1] < 0 <= rest[0] and all(map(_is_sign, codes))


def _is_repeated(value: Decimal) -> bool:
    """Whether a number is 99, 999, 888, ... or one of these with a sign."""
    text = str(abs(value))
    return len(text) > 1 and len({*text}) == 1 and text[0] in "789"


def _is_sign(value: Decimal) -> bool:
    """Whether a negative number is one that stands for something where the others are not."""
    return value == -1 or _is_repeated(value) or (value <= -100 and value % 100 == 0)


def _is_top_code(values: Sequence[Decimal], rows: Rows, total: int) -> bool:
    """Whether the highest value has the rows of all that would be above it."""
    top = rows[values[-1]]
    beside = max(rows[value] for value in values[-1 - _BESIDE : -1])
    return top >= max(_TOP_LEAST, total / _TOP_ROWS, _TOP_TIMES * beside)


def around(ends: tuple[Decimal, Decimal], codes: Sequence[Decimal]) -> tuple[Decimal, Decimal]:
    """Limits that hold the special codes too, moved outward to round numbers where needed.

    >>> [str(end) for end in around((Decimal(0), Decimal(50)), [Decimal(-200), Decimal(999)])]
    ['-200', '1000']
    """
    low, high = ends
    below, above = [code for code in codes if code < low], [code for code in codes if code > high]
    low = _from_0(min(*below, Decimal(0)), Decimal(0)) if below else low
    high = _from_0(max(*above, Decimal(0)), Decimal(0)) if above else high
    return low, high


def _from_0(value: Decimal, least: Decimal) -> Decimal:
    """A round number at least as far from 0 as the value and as ``least``, on the value's side."""
    if not value:
        return Decimal(0)
    return round_up(max(abs(value), least)).copy_sign(value)


def _exponent(value: Decimal) -> int:
    exponent = value.normalize().as_tuple().exponent
    return exponent if isinstance(exponent, int) else 0


def plain(value: Decimal) -> Decimal:
    """The same number without an exponent, as a person would write it."""
    return Decimal(f"{value.normalize():f}")
