"""Columns: what may stand in a table, declared in public before anyone looks.

Each column is a frozen value with a fixed number of codes (``size``) and a label for each. After
the regular values come, where declared, one code for every other value and one for missing.
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import cached_property
from itertools import pairwise
from math import isfinite
from typing import Any, ClassVar, Literal

from sfumato import check
from sfumato.errors import InputError, SchemaError

MAX_SIZE = 1_000_000
"""More codes than this in one column can't be counted usefully: bin, group or leave it out."""

OTHER = "(other)"
MISSING = "(missing)"

Step = Literal["day", "month", "quarter", "year"]
STEPS: tuple[Step, ...] = ("day", "month", "quarter", "year")
_MONTHS = {"month": 1, "quarter": 3, "year": 12}


@dataclass(frozen=True, kw_only=True)
class _Column(ABC):
    """What all columns share: a name, and whether a value may be missing."""

    name: str
    missing: bool = False

    kind: ClassVar[str]
    ordered: ClassVar[bool]

    def __post_init__(self) -> None:
        if not _is_text(self.name) or not self.name.strip():
            raise SchemaError(f"a column needs a name that is text, got {self.name!r}")
        try:
            _true_or_false(missing=self.missing)
            self._check()
        except InputError as error:
            raise SchemaError(f"column {self.name!r}: {error}") from None
        if self.size > MAX_SIZE:
            raise SchemaError(
                f"column {self.name!r} has {self.size:,} values; at most {MAX_SIZE:,} can be "
                "counted. Use wider bins, group the values, or leave the column out."
            )

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """One text for each code, in the order of the codes."""
        return (*self._regular_labels(), *((MISSING,) if self.missing else ()))

    @property
    def size(self) -> int:
        """The number of codes, missing included."""
        return self._regular_size() + self.missing

    @property
    def missing_code(self) -> int | None:
        """The code of a missing value, always the last one."""
        return self.size - 1 if self.missing else None

    @abstractmethod
    def _check(self) -> None:
        """Raise an InputError where the declaration makes no sense; the caller names the column."""

    @abstractmethod
    def _regular_size(self) -> int:
        """The number of labels before missing, without making them."""

    @abstractmethod
    def _regular_labels(self) -> tuple[str, ...]:
        """The labels before missing."""


@dataclass(frozen=True, kw_only=True)
class Category(_Column):
    """One of some declared texts, without an order."""

    values: tuple[str, ...]
    other: bool = False
    """Whether a value that is not declared is counted as ``(other)``; else it is an error."""

    kind: ClassVar[str] = "category"
    ordered: ClassVar[bool] = False

    def _check(self) -> None:
        texts = self.values
        if not isinstance(texts, tuple) or not all(_is_text(text) for text in texts):
            raise SchemaError("values must be a tuple (in JSON a list) of texts")
        if not texts:
            raise SchemaError("values must not be empty")
        if twice := repeated(texts):
            raise SchemaError(f"these values stand twice: {twice}")
        if OTHER in texts or MISSING in texts:
            raise SchemaError(f"{OTHER!r} and {MISSING!r} are reserved")
        _true_or_false(other=self.other)

    @property
    def other_code(self) -> int | None:
        """The code of every value that is not declared."""
        return len(self.values) if self.other else None

    def _regular_size(self) -> int:
        return len(self.values) + self.other

    def _regular_labels(self) -> tuple[str, ...]:
        return (*self.values, *((OTHER,) if self.other else ()))


@dataclass(frozen=True, kw_only=True)
class Ordinal(Category):
    """One of some declared texts, from low to high."""

    kind: ClassVar[str] = "ordinal"
    ordered: ClassVar[bool] = True


@dataclass(frozen=True, kw_only=True)
class Boolean(_Column):
    """False or true, in any of their usual spellings."""

    kind: ClassVar[str] = "boolean"
    ordered: ClassVar[bool] = False

    def _check(self) -> None:
        """Nothing to declare, nothing to get wrong."""

    def _regular_size(self) -> int:
        return 2

    def _regular_labels(self) -> tuple[str, ...]:
        return ("false", "true")


@dataclass(frozen=True, kw_only=True)
class Integer(_Column):
    """A whole number between public limits, one code for every ``step`` numbers.

    A number outside the limits counts as the nearest one inside.
    """

    low: int
    high: int
    step: int = 1

    kind: ClassVar[str] = "integer"
    ordered: ClassVar[bool] = True

    def _check(self) -> None:
        limit = 2**61  # so that high - low stays well inside 64 bits
        check.whole(at_least=-limit, at_most=limit, low=self.low)
        check.whole(at_least=-limit, at_most=limit, high=self.high)
        check.whole(at_least=1, at_most=limit, step=self.step)
        if self.low > self.high:
            raise SchemaError(f"low {self.low} is above high {self.high}")

    def _regular_size(self) -> int:
        return (self.high - self.low) // self.step + 1

    def _regular_labels(self) -> tuple[str, ...]:
        starts = range(self.low, self.high + 1, self.step)
        if self.step == 1:
            return tuple(str(start) for start in starts)
        return tuple(f"{start}..{min(start + self.step - 1, self.high)}" for start in starts)


@dataclass(frozen=True, kw_only=True)
class Number(_Column):
    """A real number in public bins: [e0, e1), [e1, e2), ..., the last one closed.

    A number outside the edges counts in the nearest bin.
    """

    edges: tuple[float, ...]

    kind: ClassVar[str] = "number"
    ordered: ClassVar[bool] = True

    def _check(self) -> None:
        edges = self.edges
        if not isinstance(edges, tuple) or len(edges) < 2 or not all(map(_is_finite, edges)):
            raise SchemaError("edges must be two or more finite numbers")
        if any(float(left) >= float(right) for left, right in pairwise(edges)):
            raise SchemaError("edges must rise, each above the one before")

    def _regular_size(self) -> int:
        return len(self.edges) - 1

    def _regular_labels(self) -> tuple[str, ...]:
        texts = [f"{edge:g}" for edge in self.edges]
        if repeated(texts):  # six digits do not tell all edges apart: take all digits
            texts = [str(edge) for edge in self.edges]
        return tuple(f"{left}..{right}" for left, right in pairwise(texts))


@dataclass(frozen=True, kw_only=True)
class Date(_Column):
    """A day between two public days, one code for each day, month, quarter or year."""

    low: date
    high: date
    step: Step = "day"

    kind: ClassVar[str] = "date"
    ordered: ClassVar[bool] = True

    def _check(self) -> None:
        if not _is_day(self.low) or not _is_day(self.high):
            given = f"{self.low!r} and {self.high!r}"
            raise SchemaError(f"low and high must be dates like 2020-01-31, got {given}")
        check.one_of(STEPS, step=self.step)
        if self.low > self.high:
            raise SchemaError(f"low {self.low} is after high {self.high}")

    @cached_property
    def starts(self) -> tuple[date, ...]:
        """The first day of each code."""
        if self.step == "day":
            return tuple(self.low + timedelta(days=day) for day in range(self._regular_size()))
        months, first = _MONTHS[self.step], self._period(self.low)
        later = range(first + 1, first + self._regular_size())
        begins = (divmod(period * months, 12) for period in later)
        return (self.low, *(date(year, month + 1, 1) for year, month in begins))

    def _period(self, day: date) -> int:
        """Which month, quarter or year since the beginning of the calendar a day lies in."""
        return (day.year * 12 + day.month - 1) // _MONTHS[self.step]

    def _regular_size(self) -> int:
        if self.step == "day":
            return (self.high - self.low).days + 1
        return self._period(self.high) - self._period(self.low) + 1

    def _regular_labels(self) -> tuple[str, ...]:
        formats = {"day": "%Y-%m-%d", "month": "%Y-%m", "quarter": "%Y-%m", "year": "%Y"}
        return tuple(start.strftime(formats[self.step]) for start in self.starts)


Column = Category | Ordinal | Boolean | Integer | Number | Date


def repeated(texts: Iterable[str]) -> list[str]:
    """The texts that stand more than once, sorted."""
    return sorted(text for text, times in Counter(texts).items() if times > 1)


def _true_or_false(**named: Any) -> None:
    ((name, value),) = named.items()
    if not isinstance(value, bool):
        raise SchemaError(f"{name} must be true or false, got {value!r}")


def _is_text(value: Any) -> bool:
    """Whether a value is text that a file can hold: half a surrogate pair is not."""
    if not isinstance(value, str):
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_finite(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        return isfinite(value)
    except OverflowError:  # a whole number beyond the largest float
        return False


def _is_day(value: Any) -> bool:
    return isinstance(value, date) and not isinstance(value, datetime)
