"""Which marks the numbers of a file are written with, from the texts themselves.

2,6 can only have a decimal comma, and 1,234.5 only a thousands comma; 1,234 alone may mean either.
Then the other columns decide, since a file has one decimal mark; then whether the file has
semicolons between its fields, as files with decimal commas do.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, TypeVar

from sfumato.schema.number_texts import DECIMALS, THOUSANDS


@dataclass(frozen=True, kw_only=True)
class Marks:
    """How numbers may be written: a decimal mark and a thousands separator, as in a column."""

    decimal: str = "."
    thousands: str = ""


PLAIN: Final = Marks()
ALL_MARKS: Final = tuple(
    Marks(decimal=decimal, thousands=thousands)
    for thousands in THOUSANDS
    for decimal in DECIMALS
    if decimal != thousands
)
"""All that a column may declare; those without a separator first, and the point first."""

_Read = TypeVar("_Read")
Readings = Mapping[Marks, _Read]
"""For each way of writing that fits all texts of a column, what they are then."""


@dataclass(frozen=True, kw_only=True)
class Habit:
    """What is known of a whole file: how it writes numbers where a column does not say it."""

    decimal: str | None = None
    """The decimal mark of the columns that allow no other; None if there are none, or both."""
    semicolons: bool = False
    """Whether fields are separated by semicolons."""


def habit_of(columns: Iterable[Readings[object]], delimiter: str | None) -> Habit:
    """How a file writes numbers, from the columns that can be read in one way only."""
    sure = [{marks.decimal for marks in column} for column in columns if column]
    decimals = {next(iter(each)) for each in sure if len(each) == 1}
    return Habit(
        decimal=decimals.pop() if len(decimals) == 1 else None, semicolons=delimiter == ";"
    )


def chosen(readings: Readings[object], habit: Habit) -> Marks:
    """The way that is meant, of those that fit all texts of a column that has marks.

    >>> either = {Marks(decimal=","): 1, Marks(thousands=","): 1}  # 1,234
    >>> chosen(either, Habit()), chosen(either, Habit(decimal=","))
    (Marks(decimal='.', thousands=','), Marks(decimal=',', thousands=''))
    """
    fits = [marks for marks in ALL_MARKS if marks in readings]
    decimal = habit.decimal or ("," if habit.semicolons and PLAIN not in readings else ".")
    return next((marks for marks in fits if marks.decimal == decimal), fits[0])


def doubtful(readings: Readings[object]) -> bool:
    """Whether a mark may be the decimal one as well as the separator: 1,234."""
    separators = {marks.thousands for marks in readings}
    return any(mark in separators for mark in {marks.decimal for marks in readings})
