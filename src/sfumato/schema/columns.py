"""Columns: what may stand in a table, declared in public before anyone looks.

Each column is a frozen value with a fixed number of codes (``size``) and a label for each. After
the regular values come, where declared, one code for every other value and one for missing.
"""

import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from functools import cached_property
from itertools import pairwise
from math import isfinite
from typing import Any, ClassVar, Final, Literal

from sfumato import check
from sfumato.errors import InputError, SchemaError
from sfumato.schema import calendar
from sfumato.schema.calendar import DayStep, Precision, TimeStep, check_zone
from sfumato.schema.number_texts import check_marks

MAX_SIZE = 1_000_000
"""More codes than this in one column can't be counted usefully: bin, group or leave it out."""

OTHER = "(other)"
MISSING = "(missing)"


@dataclass(frozen=True, kw_only=True)
class BaseColumn(ABC):
    """What all columns share: a name, and whether a value may be missing."""

    name: str
    missing: bool = False
    missing_texts: tuple[str, ...] = ()
    """Texts that stand for a missing value beside the empty one; CSV files get the first."""

    kind: ClassVar[str]
    ordered: ClassVar[bool]

    def __post_init__(self) -> None:
        if not is_text(self.name) or not self.name.strip():
            raise SchemaError(f"a column needs a name that is text, got {self.name!r}")
        try:
            true_or_false(missing=self.missing)
            self._check()
            self._check_missing_texts()
        except InputError as error:
            raise SchemaError(f"column {self.name!r}: {error}") from None
        if self.size > MAX_SIZE:
            raise SchemaError(
                f"column {self.name!r} has {self.size:,} values; at most {MAX_SIZE:,} can be "
                "counted. Use wider bins, group the values, or leave the column out."
            )

    def _check_missing_texts(self) -> None:
        """Refuse texts for missing values that could also be a value, or are of no use."""
        texts = self.missing_texts
        if not isinstance(texts, tuple) or not all(is_text(text) for text in texts):
            raise SchemaError("missing_texts must be a tuple (in JSON a list) of texts")
        if texts and not self.missing:
            raise SchemaError('missing_texts need "missing": true')
        if any(not text or text != text.strip() for text in texts) or repeated(texts):
            raise SchemaError("missing_texts must differ, and have no spaces around them")
        if both := sorted({*texts} & {value.strip() for value in self._declared_texts()}):
            raise SchemaError(f"these texts are declared as values and as missing: {both}")

    def _declared_texts(self) -> tuple[str, ...]:
        """The texts that are values of this column, where it declares texts."""
        return ()

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

    @property
    def other_code(self) -> int | None:
        """The code of every value that is not declared; only a category may have one."""
        return None

    @property
    def unfit_code(self) -> int:
        """What a value counts as that the column has no code for: other, missing or the first."""
        codes = (self.other_code, self.missing_code)
        return next((code for code in codes if code is not None), 0)

    @property
    def absent_code(self) -> int:
        """What a value counts as that is not there: missing, other or the first."""
        codes = (self.missing_code, self.other_code)
        return next((code for code in codes if code is not None), 0)

    @abstractmethod
    def _check(self) -> None:
        """Raise an InputError where the declaration makes no sense; the caller names the column."""

    @abstractmethod
    def _regular_size(self) -> int:
        """The number of labels before missing, without making them."""

    @abstractmethod
    def _regular_labels(self) -> tuple[str, ...]:
        """The labels before missing."""


def repeated(texts: Iterable[str]) -> list[str]:
    """The texts that stand more than once, sorted."""
    return sorted(text for text, times in Counter(texts).items() if times > 1)


def true_or_false(**named: Any) -> None:
    """Raise unless the one keyword is a truth value."""
    ((name, value),) = named.items()
    if not isinstance(value, bool):
        raise SchemaError(f"{name} must be true or false, got {value!r}")


def is_text(value: Any) -> bool:
    """Whether a value is text that a file can hold: half a surrogate pair is not."""
    if not isinstance(value, str):
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


Unit = Literal["ms", "us", "ns"]
UNITS: Final[tuple[Unit, ...]] = ("ms", "us", "ns")
_NANOSECONDS_FROM: Final = datetime(1678, 1, 1)
_NANOSECONDS_TO: Final = datetime(2262, 1, 1)


@dataclass(frozen=True, kw_only=True)
class Date(BaseColumn):
    """A day between two public days, one code for each day, week, month, quarter or year.

    Weeks begin on Mondays. A day outside the limits counts as the nearest one inside.
    """

    low: date
    high: date
    step: DayStep = "day"
    format: str | None = None
    """How days are written in text, like ``%d.%m.%Y``; ISO without one."""

    kind: ClassVar[str] = "date"
    ordered: ClassVar[bool] = True

    def _check(self) -> None:
        if not _is_day(self.low) or not _is_day(self.high):
            given = f"{self.low!r} and {self.high!r}"
            raise SchemaError(f"low and high must be dates like 2020-01-31, got {given}")
        check.one_of(calendar.DAY_STEPS, step=self.step)
        if self.low > self.high:
            raise SchemaError(f"low {self.low} is after high {self.high}")
        if self.format is not None:
            calendar.check_day_format(self.format)

    @cached_property
    def starts(self) -> tuple[date, ...]:
        """The first day of each code."""
        moments = calendar.starts(self.step, _midnight(self.low), _midnight(self.high))
        return tuple(moment.date() for moment in moments)

    def _regular_size(self) -> int:
        first, last = (calendar.period_of(self.step, _midnight(d)) for d in (self.low, self.high))
        return last - first + 1

    def _regular_labels(self) -> tuple[str, ...]:
        return tuple(start.strftime(calendar.LABELS[self.step]) for start in self.starts)


@dataclass(frozen=True, kw_only=True)
class DateTime(BaseColumn):
    """A moment between two public ones, one code for each minute, hour, day, ... or year.

    Without a zone, times are what a clock on the wall shows, and have no offset. With one, they
    are instants: each has an offset, periods are those of UTC, and what is published is written
    in the zone. A moment outside the limits counts as the nearest one inside.
    """

    low: datetime
    high: datetime
    """The last moment, included."""
    step: TimeStep = "day"
    precision: Precision = "second"
    """What published moments are whole multiples of."""
    zone: str | None = None
    """A time zone like ``Europe/Rome``, where values are instants."""
    format: str | None = None
    """How moments are written in text, like ``%d.%m.%Y %H:%M``; ISO without one."""
    unit: Unit = "us"
    """Of the published Arrow timestamps."""

    kind: ClassVar[str] = "datetime"
    ordered: ClassVar[bool] = True

    def _check(self) -> None:
        if not isinstance(self.low, datetime) or not isinstance(self.high, datetime):
            given = f"{self.low!r} and {self.high!r}"
            raise SchemaError(f"low and high must be like 2020-01-31T23:59:59, got {given}")
        check.one_of(calendar.TIME_STEPS, step=self.step)
        check.one_of(calendar.PRECISIONS, precision=self.precision)
        check.one_of(UNITS, unit=self.unit)
        if self.zone is not None:
            check_zone(self.zone)
        self._check_limits()
        if self.format is not None:
            calendar.check_time_format(self.format, with_zone=self.zone is not None)

    def _check_limits(self) -> None:
        if any((limit.tzinfo is None) != (self.zone is None) for limit in (self.low, self.high)):
            raise SchemaError(
                "low and high have an offset, like 2020-01-31T23:59:59Z, exactly where a zone is "
                "declared"
            )
        low, high = self.limits
        if low > high:
            raise SchemaError(f"low {self.low} is after high {self.high}")
        if self.step == "minute" and self.precision == "hour":
            raise SchemaError("precision can't be coarser than step")
        if (low - datetime.min) % self.grain:
            raise SchemaError(f"low {self.low} must be a whole {self.precision}, as precision says")
        if self.unit == "ns" and not _NANOSECONDS_FROM <= low <= high < _NANOSECONDS_TO:
            raise SchemaError("unit ns reaches from 1678 to 2261 only; take us")

    @property
    def limits(self) -> tuple[datetime, datetime]:
        """Low and high without offset, in UTC where there is a zone."""
        return without_offset(self.low), without_offset(self.high)

    @property
    def grain(self) -> timedelta:
        """The time between two moments that can be published."""
        return timedelta(microseconds=calendar.PRECISIONS[self.precision])

    @cached_property
    def starts(self) -> tuple[datetime, ...]:
        """The first moment of each code, without offset."""
        return calendar.starts(self.step, *self.limits)

    def _regular_size(self) -> int:
        first, last = (calendar.period_of(self.step, limit) for limit in self.limits)
        return last - first + 1

    def _regular_labels(self) -> tuple[str, ...]:
        return tuple(start.strftime(calendar.LABELS[self.step]) for start in self.starts)


def day_of(text: str) -> date:
    """A day written like 2020-01-31, and in no other way of ISO 8601, or a ValueError."""
    if re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text.strip()) is None:
        raise ValueError("not a day")
    return date.fromisoformat(text.strip())


def moment_of(text: str, *, last: bool, with_zone: bool) -> datetime:
    """A limit as it is written; a day alone stands for its first or its last moment, in UTC.

    Raises:
        ValueError: it is neither a moment nor a day.
    """
    if len(text.strip()) == len("2020-01-31"):
        day = datetime.combine(day_of(text), time.max if last else time.min)
        return day.replace(tzinfo=UTC) if with_zone else day
    return datetime.fromisoformat(text.strip())


def without_offset(moment: datetime) -> datetime:
    """A moment of UTC without saying so; one without an offset as it is."""
    return moment if moment.tzinfo is None else moment.astimezone(UTC).replace(tzinfo=None)


def _is_day(value: Any) -> bool:
    return isinstance(value, date) and not isinstance(value, datetime)


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time())


__all__ = [
    "MISSING",
    "OTHER",
    "Boolean",
    "Category",
    "Column",
    "Date",
    "DateTime",
    "Integer",
    "Number",
    "Ordinal",
    "repeated",
]

_MOST_DECIMALS: Final = 12
"""Digits after the point; a limit against mistakes."""
_MOST_GRID: Final = 10**15
"""Floats represent decimal numbers of up to 15 digits without confusing two of them."""


@dataclass(frozen=True, kw_only=True)
class Category(BaseColumn):
    """One of some declared texts, without an order."""

    values: tuple[str, ...]
    other: bool = False
    """Whether a value that is not declared is counted as ``(other)``; else it is an error."""

    kind: ClassVar[str] = "category"
    ordered: ClassVar[bool] = False

    def _check(self) -> None:
        texts = self.values
        if not isinstance(texts, tuple) or not all(is_text(text) for text in texts):
            raise SchemaError("values must be a tuple (in JSON a list) of texts")
        if not texts:
            raise SchemaError("values must not be empty")
        if twice := repeated(texts):
            raise SchemaError(f"these values stand twice: {twice}")
        if OTHER in texts or MISSING in texts:
            raise SchemaError(f"{OTHER!r} and {MISSING!r} are reserved texts: use others")
        true_or_false(other=self.other)

    def _declared_texts(self) -> tuple[str, ...]:
        return self.values

    @property
    def other_code(self) -> int | None:
        """The code of every value that is not declared, if it is counted."""
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
class Boolean(BaseColumn):
    """False or true, in any of their usual spellings or in two declared ones."""

    texts: tuple[str, str] | None = None
    """What false and true are called, as in ``("no", "yes")``; then nothing else is."""

    kind: ClassVar[str] = "boolean"
    ordered: ClassVar[bool] = False

    def _check(self) -> None:
        texts = self.texts
        if texts is None:
            return
        if not isinstance(texts, tuple) or len(texts) != 2 or not all(map(is_text, texts)):
            raise SchemaError(f"texts must be two, for false and for true, got {texts!r}")
        if texts[0] == texts[1] or any(not text or text != text.strip() for text in texts):
            raise SchemaError("texts must differ, and have no spaces around them")
        if OTHER in texts or MISSING in texts:
            raise SchemaError(f"{OTHER!r} and {MISSING!r} are reserved texts: use others")

    def _declared_texts(self) -> tuple[str, ...]:
        return self.texts or ()

    def _regular_size(self) -> int:
        return 2

    def _regular_labels(self) -> tuple[str, ...]:
        return self.texts or ("false", "true")


@dataclass(frozen=True, kw_only=True)
class Integer(BaseColumn):
    """A whole number between public limits, one code for every ``step`` numbers.

    A number outside the limits counts as the nearest one inside.
    """

    low: int
    high: int
    step: int = 1
    """Numbers that share one code."""
    decimal: str = "."
    """The decimal mark of numbers in text: a point or a comma."""
    thousands: str = ""
    """Between groups of three digits in text: a comma, point, space or apostrophe, or nothing."""

    kind: ClassVar[str] = "integer"
    ordered: ClassVar[bool] = True

    def _check(self) -> None:
        check_marks(self)
        limit = 2**61  # so that high - low stays well inside 64 bits
        check.keep_whole(self, at_least=-limit, at_most=limit, low=self.low)
        check.keep_whole(self, at_least=-limit, at_most=limit, high=self.high)
        check.keep_whole(self, at_least=1, at_most=limit, step=self.step)
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
class Number(BaseColumn):
    """A real number in public bins: [e0, e1), [e1, e2), ..., the last one closed.

    A number outside the edges counts in the nearest bin.
    """

    edges: tuple[float, ...]
    decimals: int | None = None
    """Digits after the point of published numbers: multiples of ``10**-decimals`` are drawn."""
    decimal: str = "."
    """The decimal mark of numbers in text: a point or a comma."""
    thousands: str = ""
    """Between groups of three digits in text: a comma, point, space or apostrophe, or nothing."""

    kind: ClassVar[str] = "number"
    ordered: ClassVar[bool] = True

    def _check(self) -> None:
        check_marks(self)
        edges = self.edges
        if not isinstance(edges, tuple) or len(edges) < 2 or not all(map(_is_finite, edges)):
            raise SchemaError("edges must be two or more finite numbers")
        if any(float(left) >= float(right) for left, right in pairwise(edges)):
            raise SchemaError("edges must rise, each above the one before")
        if self.decimals is not None:
            check.keep_whole(self, at_least=0, at_most=_MOST_DECIMALS, decimals=self.decimals)
            self._check_grid()

    def _check_grid(self) -> None:
        firsts, lasts = zip(*self.grid, strict=True)
        if max(map(abs, (*firsts, *lasts))) > _MOST_GRID:
            raise SchemaError(f"edges with {self.decimals} decimals have more than 15 digits")
        if empty := [index for index, (first, last) in enumerate(self.grid) if first > last]:
            label = self._regular_labels()[empty[0]]
            raise SchemaError(
                f"the bin {label} holds no number of {self.decimals} decimals; declare wider bins "
                "or more decimals"
            )

    @cached_property
    def grid(self) -> tuple[tuple[int, int], ...]:
        """For each bin the first and the last multiple of ``10**-decimals`` inside it.

        Edges are taken as they are written, 0.1 as 1/10: Decimal knows no binary rounding.
        """
        edges = [Decimal(str(edge)).scaleb(self.decimals or 0) for edge in self.edges]
        begins = [int(edge.to_integral_value(ROUND_CEILING)) for edge in edges]
        last = int(edges[-1].to_integral_value(ROUND_FLOOR))
        return tuple(zip(begins[:-1], (*(begin - 1 for begin in begins[1:-1]), last), strict=True))

    def _regular_size(self) -> int:
        return len(self.edges) - 1

    def _regular_labels(self) -> tuple[str, ...]:
        texts = [f"{edge:g}" for edge in self.edges]
        if repeated(texts):  # six digits do not tell all edges apart: take all digits
            texts = [str(edge) for edge in self.edges]
        return tuple(f"{left}..{right}" for left, right in pairwise(texts))


Column = Category | Ordinal | Boolean | Integer | Number | Date | DateTime


def _is_finite(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        return isfinite(value)
    except OverflowError:  # a whole number beyond the largest float
        return False
