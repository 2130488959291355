"""One value to its code, in plain Python: what a device does that has no Arrow.

The rules are those of ``codes.encode``; a test holds both to the same codes.
"""

import re
from bisect import bisect_right
from dataclasses import replace
from datetime import date, datetime, time
from functools import lru_cache, singledispatch
from itertools import pairwise
from math import isfinite
from typing import Any, Final

from sfumato.errors import InputError
from sfumato.schema.calendar import iso_text
from sfumato.schema.columns import (
    Boolean,
    Category,
    Column,
    Date,
    DateTime,
    Integer,
    Number,
    day_of,
    without_offset,
)
from sfumato.schema.number_texts import plain_text


def expected(column: Column) -> str:
    """The end of "the value is not ...".

    >>> expected(Boolean(name="member", texts=("no", "yes")))
    "'no' or 'yes'"
    """
    if isinstance(column, Boolean):
        false, true = column.texts or (None, None)
        return "true or false (also yes/no, 1/0)" if false is None else f"{false!r} or {true!r}"
    if isinstance(column, Integer):
        return f"a whole number, written like 1{column.thousands}400"
    if isinstance(column, Number):
        written = f", written like 1{column.thousands}400{column.decimal}5"
        return "a finite number" + ("" if column.has_plain_marks else written)
    if isinstance(column, Date):
        return "a date like 2020-01-31" if column.format is None else f"a date as {column.format}"
    if isinstance(column, DateTime):
        return _expected_moment(column)
    return "one of the declared values"


def _expected_moment(column: DateTime) -> str:
    example = "2020-01-31T23:59:59" + ("" if column.zone is None else "Z")
    written = f"like {example}" if column.format is None else f"as {column.format}"
    offset = "an offset, because a" if column.zone is not None else "no offset, because no"
    return f"a time written {written}, with {offset} zone is declared"


TRUE: Final = ("true", "t", "yes", "y", "1")
FALSE: Final = ("false", "f", "no", "n", "0")
NUMBER: Final = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
"""A number as text: digits of ASCII only, and no mark between them."""


def code_of(column: Column, value: Any) -> int:
    """The code of one value; None is a missing one.

    >>> code_of(Boolean(name="smoker"), "yes")
    1
    """
    if value is None or value != value or _is_missing_text(column, value):
        if column.missing_code is None:
            raise _refused(column, "an answer, and missing is not one of them")
        return column.missing_code
    return _code(column, value)


def number_of(column: Column, value: Any) -> float:
    """A number within the column's public limits; one outside counts as the nearest inside."""
    low, high = limits(column)
    if isinstance(value, str):
        value = plain_text(column, value) if isinstance(column, Integer | Number) else value
        value = value.strip() if re.match(NUMBER, value.strip()) else None
    try:
        number = float("nan") if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = float("nan")
    if not isfinite(number):
        raise _refused(column, "a finite number")
    return min(max(number, low), high) + 0.0  # -0.0 is 0.0: one value, one answer


def with_plain_numbers(column: Column) -> Column:
    """The column for numbers in requests: 1.5, however the table writes them."""
    if not isinstance(column, Integer | Number) or column.has_plain_marks:
        return column
    return replace(column, decimal=".", thousands="")


def limits(column: Column) -> tuple[float, float]:
    """The public limits of a column of numbers; only such a column has a mean."""
    if isinstance(column, Integer):
        return float(column.low), float(column.high)
    if isinstance(column, Number):
        return column.limits
    raise InputError(
        f"column {column.name!r} is of kind {column.kind}; only integer and number columns have a "
        "mean. Ask for its frequencies instead."
    )


def numbers(column: Column) -> list[float]:
    """The number that stands for each regular code: the middle of its bin."""
    if isinstance(column, Integer) and column.step is not None:
        starts = range(column.low, column.high + 1, column.step)
        return [(start + min(start + column.step - 1, column.high)) / 2 for start in starts]
    limits(column)
    if isinstance(column, Integer):
        ends = column.bin_ends
        return [column.low + (first + last) / 2 * column.resolution for first, last in ends]
    if isinstance(column, Number) and column.edges is None:
        number = column.scale.number
        return [(number(first) + number(last)) / 2 for first, last in column.bin_ends]
    edges = column.edges or () if isinstance(column, Number) else ()
    return [left / 2 + right / 2 for left, right in pairwise(edges)]


@singledispatch
def _code(column: Any, value: Any) -> int:
    raise TypeError(f"not a column: {column!r}")


@_code.register
def _category_code(column: Category, value: Any) -> int:
    if isinstance(value, float) and 2.0**53 < abs(value) <= 2.0**64:
        raise _refused(column, "exact: so large a float may be another number")
    whole = isinstance(value, float) and value.is_integer() and abs(value) <= 2.0**53
    text = str(int(value)) if whole else str(value)
    if isinstance(value, bool):
        text = text.lower()
    code = _indices(column.values).get(text, column.other_code)
    if code is None:
        raise _refused(column, expected(column))
    return code


@lru_cache
def _indices(texts: tuple[str, ...]) -> dict[str, int]:
    """The index of each text, in constant time."""
    return {text: index for index, text in enumerate(texts)}


@_code.register
def _boolean_code(column: Boolean, value: Any) -> int:
    if isinstance(value, bool):
        return int(value)
    text = str(value).strip()
    false, true = (FALSE, TRUE) if column.texts is None else ((t,) for t in column.texts)
    text = text.lower() if column.texts is None else text
    if text not in (*false, *true):
        raise _refused(column, expected(column))
    return int(text in true)


@_code.register
def _integer_code(column: Integer, value: Any) -> int:
    number_of(column, value)
    exact = value if isinstance(value, int) else None
    if exact is None and isinstance(value, str):
        text = plain_text(column, value).strip().partition(".")
        exact = int(text[0]) if not text[2].strip("0") and _is_whole(text[0]) else None
    if exact is None and isinstance(value, float) and value.is_integer():
        exact = int(value) if abs(value) < 2.0**63 else None
    if exact is None:
        raise _refused(column, expected(column))
    above_low = min(max(exact, column.low), column.high) - column.low
    if column.step is not None:
        return above_low // column.step
    cell = (above_low + column.resolution // 2) // column.resolution
    return _bin_of(column, min(cell, column.cells - 1))


@_code.register
def _number_code(column: Number, value: Any) -> int:
    number = number_of(column, value)
    if column.edges is not None:
        return bisect_right(column.edges[1:-1], number)
    low, step = column.scale.number(0), column.scale.step / 10**column.scale.digits
    return _bin_of(column, round((number - low) / step))


def _bin_of(column: Integer | Number, cell: int) -> int:
    return cell if column.bins is None else bisect_right(column.bins, cell) - 1


@_code.register
def _date_code(column: Date, value: Any) -> int:
    day = value.date() if isinstance(value, datetime) else value
    if isinstance(day, str):
        day = _day(day.strip(), column.format)
    if not isinstance(day, date):
        raise _refused(column, expected(column))
    if column.on_grid and column.bins is None:
        return min(max((day - column.low).days, 0), column.cells - 1)
    return max(0, bisect_right(column.starts, day) - 1)


@_code.register
def _datetime_code(column: DateTime, value: Any) -> int:
    moment = _moment(value, column.format) if isinstance(value, str) else value
    if isinstance(moment, date) and not isinstance(moment, datetime):
        moment = datetime.combine(moment, time())
    if not isinstance(moment, datetime) or (moment.tzinfo is None) != (column.zone is None):
        raise _refused(column, expected(column))
    if column.on_grid and column.bins is None:
        low, high = column.limits
        return (min(max(without_offset(moment), low), high) - low) // column.grain
    return max(0, bisect_right(column.starts, without_offset(moment)) - 1)


def _day(text: str, written: str | None) -> date | None:
    if written is None:
        try:
            return day_of(text)
        except ValueError:
            return None
    moment = _moment(text, written)
    return None if moment is None else moment.date()


def _moment(text: str, written: str | None) -> datetime | None:
    iso = iso_text(written, text)
    try:
        return None if iso is None else datetime.fromisoformat(iso)
    except ValueError:  # no day of the calendar
        return None


def _is_missing_text(column: Column, value: Any) -> bool:
    if not column.missing_texts or isinstance(value, bool):
        return False
    whole = isinstance(value, float) and value.is_integer()
    return (str(int(value)) if whole else str(value)).strip() in column.missing_texts


def _is_whole(text: str) -> bool:
    return text.removeprefix("-").isascii() and text.removeprefix("-").isdigit()


def _refused(column: Column, expected: str) -> InputError:
    """Never with the value in it: messages may be logged."""
    return InputError(f"the value of {column.name!r} is not {expected}.")
