"""One value to its code, in plain Python: what a device does that has no Arrow.

The rules are those of ``codes.encode``; a test holds both to the same codes.
"""

from bisect import bisect_right
from datetime import date, datetime
from functools import singledispatch
from itertools import pairwise
from math import isfinite
from typing import Any

from sfumato.errors import InputError
from sfumato.schema.columns import Boolean, Category, Column, Date, Integer, Number

TRUE = ("true", "t", "yes", "y", "1")
FALSE = ("false", "f", "no", "n", "0")


def code_of(column: Column, value: Any) -> int:
    """The code of one value; None is a missing one.

    >>> code_of(Boolean(name="smoker"), "yes")
    1
    """
    if value is None or value != value:
        if column.missing_code is None:
            raise _refused(column, "an answer, and missing is not one of them")
        return column.missing_code
    return _code(column, value)


def number_of(column: Column, value: Any) -> float:
    """A number within the column's public limits; one outside counts as the nearest inside."""
    low, high = limits(column)
    if isinstance(value, str):
        value = value.strip()
    try:
        number = float("nan") if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = float("nan")
    if not isfinite(number):
        raise _refused(column, "a finite number")
    return min(max(number, low), high) + 0.0  # -0.0 is 0.0: one value, one answer


def limits(column: Column) -> tuple[float, float]:
    """The public limits of a column of numbers; only such a column has a mean."""
    if isinstance(column, Integer):
        return float(column.low), float(column.high)
    if isinstance(column, Number):
        return float(column.edges[0]), float(column.edges[-1])
    raise InputError(
        f"column {column.name!r} is of kind {column.kind}; only integer and number columns have a "
        "mean. Ask for its frequencies instead. Nothing was answered."
    )


def numbers(column: Column) -> list[float]:
    """The number that stands for each regular code: the middle of its bin."""
    if isinstance(column, Integer):
        starts = range(column.low, column.high + 1, column.step)
        return [(start + min(start + column.step - 1, column.high)) / 2 for start in starts]
    limits(column)
    edges = column.edges if isinstance(column, Number) else ()
    return [left / 2 + right / 2 for left, right in pairwise(edges)]


@singledispatch
def _code(column: Any, value: Any) -> int:
    raise TypeError(f"not a column: {column!r}")


@_code.register(Category)
def _(column: Category, value: Any) -> int:
    whole = isinstance(value, float) and value.is_integer()
    text = str(int(value)) if whole else str(value)
    if isinstance(value, bool):
        text = text.lower()
    if text in column.values:
        return column.values.index(text)
    if column.other_code is None:
        raise _refused(column, "one of the declared values")
    return column.other_code


@_code.register(Boolean)
def _(column: Boolean, value: Any) -> int:
    text = str(int(value)) if isinstance(value, bool) else str(value).strip().lower()
    if text not in TRUE + FALSE:
        raise _refused(column, "true or false (also yes/no, 1/0)")
    return int(text in TRUE)


@_code.register(Integer)
def _(column: Integer, value: Any) -> int:
    number_of(column, value)
    exact = value if isinstance(value, int) else None
    if exact is None and isinstance(value, str):
        text = value.strip().partition(".")
        exact = int(text[0]) if not text[2].strip("0") and _is_whole(text[0]) else None
    if exact is None and isinstance(value, float) and value.is_integer():
        exact = int(value)
    if exact is None:
        raise _refused(column, "a whole number, written like 1400")
    return (min(max(exact, column.low), column.high) - column.low) // column.step


@_code.register(Number)
def _(column: Number, value: Any) -> int:
    return bisect_right(column.edges[1:-1], number_of(column, value))


@_code.register(Date)
def _(column: Date, value: Any) -> int:
    day = value.date() if isinstance(value, datetime) else value
    if isinstance(day, str):
        try:
            day = date.fromisoformat(day.strip())
        except ValueError:
            day = None
    if not isinstance(day, date):
        raise _refused(column, "a date like 2020-01-31")
    return max(0, bisect_right(column.starts, day) - 1)


def _is_whole(text: str) -> bool:
    return text.removeprefix("-").isascii() and text.removeprefix("-").isdigit()


def _refused(column: Column, expected: str) -> InputError:
    """Never with the value in it: messages may be logged."""
    return InputError(f"the value of {column.name!r} is not {expected}. Nothing was answered.")
