"""Columns: what may stand in a table, declared in public before anyone looks.

Each column is a frozen value with a fixed number of codes (``size``) and a label for each. After
the regular values come, where declared, one code for every other value and one for missing.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cached_property
from itertools import pairwise
from math import isfinite
from typing import ClassVar, Literal

from sfumato import check
from sfumato.errors import SchemaError

MAX_SIZE = 1_000_000
"""More codes than this in one column can't be counted usefully: bin, group or leave it out."""

OTHER = "(other)"
MISSING = "(missing)"

Step = Literal["day", "month", "quarter", "year"]
STEPS: tuple[Step, ...] = ("day", "month", "quarter", "year")


@dataclass(frozen=True, kw_only=True)
class _Column(ABC):
    """What all columns share: a name, and whether a value may be missing."""

    name: str
    missing: bool = False

    kind: ClassVar[str]
    ordered: ClassVar[bool]

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.strip():
            raise SchemaError(f"a column needs a name that is text, got {self.name!r}")
        if not isinstance(self.missing, bool):
            raise SchemaError(f"column {self.name!r}: missing must be true or false")
        self._check()
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

    def _regular_size(self) -> int:
        return len(self._regular_labels())

    @abstractmethod
    def _check(self) -> None:
        """Raise a SchemaError where the declaration makes no sense."""

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
        if not isinstance(texts, tuple) or not all(isinstance(text, str) for text in texts):
            raise SchemaError(f"column {self.name!r}: values must be a list of texts")
        if not texts:
            raise SchemaError(f"column {self.name!r}: values must not be empty")
        twice = sorted({text for text in texts if texts.count(text) > 1}) if _repeats(texts) else []
        if twice:
            raise SchemaError(f"column {self.name!r}: these values stand twice: {twice}")
        if OTHER in texts or MISSING in texts:
            raise SchemaError(f"column {self.name!r}: {OTHER!r} and {MISSING!r} are reserved")

    @property
    def other_code(self) -> int | None:
        """The code of every value that is not declared."""
        return len(self.values) if self.other else None

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
        limit = 2**62
        check.whole(at_least=-limit, at_most=limit, low=self.low)
        check.whole(at_least=-limit, at_most=limit, high=self.high)
        check.whole(at_least=1, step=self.step)
        if self.low > self.high:
            raise SchemaError(f"column {self.name!r}: low {self.low} is above high {self.high}")

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
        numbers = isinstance(edges, tuple) and all(
            isinstance(edge, int | float) and not isinstance(edge, bool) and isfinite(edge)
            for edge in edges
        )
        if not numbers or len(edges) < 2:
            raise SchemaError(f"column {self.name!r}: edges must be two or more finite numbers")
        if any(left >= right for left, right in pairwise(edges)):
            raise SchemaError(f"column {self.name!r}: edges must rise, each above the one before")

    def _regular_size(self) -> int:
        return len(self.edges) - 1

    def _regular_labels(self) -> tuple[str, ...]:
        return tuple(f"{left:g}..{right:g}" for left, right in pairwise(self.edges))


@dataclass(frozen=True, kw_only=True)
class Date(_Column):
    """A day between two public days, one code for each day, month, quarter or year."""

    low: date
    high: date
    step: Step = "day"

    kind: ClassVar[str] = "date"
    ordered: ClassVar[bool] = True

    def _check(self) -> None:
        if not isinstance(self.low, date) or not isinstance(self.high, date):
            raise SchemaError(f"column {self.name!r}: low and high must be dates like 2020-01-31")
        check.one_of(STEPS, step=self.step)
        if self.low > self.high:
            raise SchemaError(f"column {self.name!r}: low {self.low} is after high {self.high}")

    @cached_property
    def starts(self) -> tuple[date, ...]:
        """The first day of each code."""
        if self.step == "day":
            days = (self.high - self.low).days + 1
            return tuple(self.low + timedelta(days=day) for day in range(days))
        months = {"month": 1, "quarter": 3, "year": 12}[self.step]
        first = (self.low.year * 12 + self.low.month - 1) // months
        last = (self.high.year * 12 + self.high.month - 1) // months
        begins = [divmod(part * months, 12) for part in range(first, last + 1)]
        return (self.low, *(date(year, month + 1, 1) for year, month in begins[1:]))

    def _regular_size(self) -> int:
        return len(self.starts)

    def _regular_labels(self) -> tuple[str, ...]:
        formats = {"day": "%Y-%m-%d", "month": "%Y-%m", "quarter": "%Y-%m", "year": "%Y"}
        return tuple(start.strftime(formats[self.step]) for start in self.starts)


Column = Category | Ordinal | Boolean | Integer | Number | Date


def _repeats(texts: tuple[str, ...]) -> bool:
    return len(set(texts)) < len(texts)
