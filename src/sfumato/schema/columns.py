"""Columns: what may stand in a table, declared in public before anyone looks.

Each column is a frozen value with a fixed number of codes (``size``) and a label for each. After
the regular values come, where declared, one code for every other value and one for missing.
"""

import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from math import isfinite
from typing import Any, ClassVar, Final, Literal

from sfumato import check
from sfumato.errors import InputError, SchemaError
from sfumato.schema import calendar
from sfumato.schema.calendar import DayStep, Precision, TimeStep, check_zone
from sfumato.schema.number_texts import PLAIN_MARKS, check_marks

MAX_SIZE = 1_000_000
"""More codes than this in one column can't be counted usefully: bin, group or leave it out."""
MAX_CELLS: Final = 10**9
"""The most values of a number that declares no bins, all of which fit into 32 bits."""
EVERY_VALUE: Final = 100
"""A number, or a day, of at most this many possible values has a code for each: all ages have. Of
more, methods find bins privately."""

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
        if self.size > MAX_SIZE and not self.adaptive:
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

    @property
    def adaptive(self) -> bool:
        """Whether methods have to find bins: it has too many possible values and declares none."""
        return False

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """One text for each code, in the order of the codes."""
        if self.size > MAX_SIZE:
            raise SchemaError(
                f"column {self.name!r} has {self.size:,} possible values and no bins, too many to "
                "list. A release finds bins for it; here declare a step or edges."
            )
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


@dataclass(frozen=True, kw_only=True)
class GridColumn(BaseColumn):
    """A column whose values may be declared by limits and a resolution, without bins.

    Its possible values are then cells, counted from ``low`` in steps of the resolution.
    """

    bins: tuple[int, ...] | None = None
    """Where a release divided the values: the first cell of each bin."""

    @property
    @abstractmethod
    def on_grid(self) -> bool:
        """Whether neither a step nor edges are declared."""

    @property
    @abstractmethod
    def cells(self) -> int:
        """The number of possible values, missing not counted."""

    @property
    def adaptive(self) -> bool:
        """Whether methods have to find bins: it has too many possible values and declares none."""
        return self.on_grid and self.bins is None and self.cells > EVERY_VALUE

    @cached_property
    def bin_ends(self) -> tuple[tuple[int, int], ...]:
        """The first and the last cell of each regular code of a column on a grid."""
        starts = range(self.cells) if self.bins is None else self.bins
        return tuple(
            zip(starts, (*(start - 1 for start in starts[1:]), self.cells - 1), strict=True)
        )

    def _check_grid(self) -> None:
        """Refuse a grid that is too large, and bins that do not divide it."""
        if self.on_grid and self.cells > MAX_CELLS:
            raise SchemaError(
                f"{self.cells:,} possible values lie between the limits; at most {MAX_CELLS:,} are "
                "allowed. Declare a coarser resolution or closer limits."
            )
        bins = self.bins
        if bins is None:
            return
        if not self.on_grid:
            raise SchemaError("bins divide the values of a column without step or edges")
        whole = isinstance(bins, tuple) and all(type(start) is int for start in bins)
        if not whole or not bins or bins[0] != 0 or bins[-1] >= self.cells:
            raise SchemaError(
                f"bins must be whole numbers from 0 to below {self.cells:,}, got {bins!r:.60}"
            )
        if any(left >= right for left, right in pairwise(bins)):
            raise SchemaError("bins must rise, each above the one before")

    def _bin_labels(self, text: Callable[[int], str]) -> tuple[str, ...]:
        """A text for each bin, from that of a cell: ``10``, ``10..19``."""
        return tuple(
            text(first) if first == last else f"{text(first)}..{text(last)}"
            for first, last in self.bin_ends
        )


Unit = Literal["ms", "us", "ns"]
UNITS: Final[tuple[Unit, ...]] = ("ms", "us", "ns")
_NANOSECONDS_FROM: Final = datetime(1678, 1, 1)
_NANOSECONDS_TO: Final = datetime(2262, 1, 1)


@dataclass(frozen=True, kw_only=True)
class Date(GridColumn):
    """A day between two public days; with a step, one code for each week, month, quarter or year.

    Weeks begin on Mondays. A day outside the limits counts as the nearest one inside.
    """

    low: date
    high: date
    step: DayStep | None = None
    """Days that share one code; without one, methods find bins privately."""
    format: str | None = None
    """How days are written in text, like ``%d.%m.%Y``; ISO without one."""

    kind: ClassVar[str] = "date"
    ordered: ClassVar[bool] = True

    def _check(self) -> None:
        if not _is_day(self.low) or not _is_day(self.high):
            given = f"{self.low!r} and {self.high!r}"
            raise SchemaError(f"low and high must be dates like 2020-01-31, got {given}")
        if self.step is not None:
            check.one_of(calendar.DAY_STEPS, step=self.step)
        if self.low > self.high:
            raise SchemaError(f"low {self.low} is after high {self.high}")
        self._check_grid()
        if self.format is not None:
            calendar.check_day_format(self.format)

    @property
    def on_grid(self) -> bool:
        """Whether no step is declared."""
        return self.step is None

    @property
    def cells(self) -> int:
        """The number of days."""
        return (self.high - self.low).days + 1

    @cached_property
    def starts(self) -> tuple[date, ...]:
        """The first day of each code."""
        if self.bins is not None:
            return tuple(self.low + timedelta(days=start) for start in self.bins)
        moments = calendar.starts(self.step or "day", _midnight(self.low), _midnight(self.high))
        return tuple(moment.date() for moment in moments)

    def _regular_size(self) -> int:
        if self.bins is not None:
            return len(self.bins)
        step = self.step or "day"
        first, last = (calendar.period_of(step, _midnight(d)) for d in (self.low, self.high))
        return last - first + 1

    def _regular_labels(self) -> tuple[str, ...]:
        if self.bins is not None:
            return self._bin_labels(lambda cell: (self.low + timedelta(days=cell)).isoformat())
        return tuple(start.strftime(calendar.LABELS[self.step or "day"]) for start in self.starts)


@dataclass(frozen=True, kw_only=True)
class DateTime(GridColumn):
    """A moment between two public ones; with a step, one code for each minute, hour, ... or year.

    Without a zone, times are what a clock on the wall shows, and have no offset. With one, they
    are instants: each has an offset, periods are those of UTC, and what is published is written
    in the zone. A moment outside the limits counts as the nearest one inside.
    """

    low: datetime
    high: datetime
    """The last moment, included."""
    step: TimeStep | None = None
    """Moments that share one code; without one, methods find bins privately."""
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
        if self.step is not None:
            check.one_of(calendar.TIME_STEPS, step=self.step)
        check.one_of(calendar.PRECISIONS, precision=self.precision)
        check.one_of(UNITS, unit=self.unit)
        if self.zone is not None:
            check_zone(self.zone)
        self._check_limits()
        if self.format is not None:
            calendar.check_time_format(self.format, with_zone=self.zone is not None)
        self._check_grid()

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

    @property
    def on_grid(self) -> bool:
        """Whether no step is declared."""
        return self.step is None

    @property
    def cells(self) -> int:
        """The number of moments of the declared precision."""
        low, high = self.limits
        return (high - low) // self.grain + 1

    @cached_property
    def starts(self) -> tuple[datetime, ...]:
        """The first moment of each code, without offset."""
        if self.step is not None:
            return calendar.starts(self.step, *self.limits)
        starts = range(self.cells) if self.bins is None else self.bins
        return tuple(self.limits[0] + start * self.grain for start in starts)

    def _regular_size(self) -> int:
        if self.bins is not None:
            return len(self.bins)
        if self.step is None:
            return self.cells
        first, last = (calendar.period_of(self.step, limit) for limit in self.limits)
        return last - first + 1

    def _regular_labels(self) -> tuple[str, ...]:
        if self.step is not None:
            return tuple(start.strftime(calendar.LABELS[self.step]) for start in self.starts)
        low = self.limits[0]
        return self._bin_labels(lambda cell: (low + cell * self.grain).isoformat(sep=" "))


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
class Integer(GridColumn):
    """A whole number between public limits.

    Without a step, methods find bins privately where there are many numbers; with one, every
    ``step`` numbers share a code. A number outside the limits counts as the nearest one inside.
    """

    low: int
    high: int
    resolution: int = 1
    """What numbers are published in multiples of, counted from ``low``."""
    step: int | None = None
    """Numbers that share one code."""
    alone: tuple[int, ...] = ()
    """Codes among the numbers, like -1 or 999: each is counted by itself."""
    decimal: str = "."
    """The decimal mark of numbers in text: a point or a comma."""
    thousands: str = ""
    """Between groups of three digits in text: a comma, point, space or apostrophe, or nothing."""

    kind: ClassVar[str] = "integer"
    ordered: ClassVar[bool] = True

    @property
    def has_plain_marks(self) -> bool:
        """Whether numbers are written as programs write them, like 1234.5."""
        return (self.decimal, self.thousands) == PLAIN_MARKS

    def _check(self) -> None:
        if not self.has_plain_marks:
            check_marks(self)
        limit = 2**61  # so that high - low stays well inside 64 bits
        check.keep_whole(self, at_least=-limit, at_most=limit, low=self.low)
        check.keep_whole(self, at_least=-limit, at_most=limit, high=self.high)
        check.keep_whole(self, at_least=1, at_most=limit, resolution=self.resolution)
        if self.low > self.high:
            raise SchemaError(f"low {self.low} is above high {self.high}")
        if self.step is not None:
            check.keep_whole(self, at_least=1, at_most=limit, step=self.step)
            if self.resolution != 1 or self.alone:
                raise SchemaError("step shares codes among all numbers: leave resolution and alone")
        self._check_grid()
        _check_alone(self, whole=True)

    @property
    def on_grid(self) -> bool:
        """Whether no step is declared."""
        return self.step is None

    @property
    def cells(self) -> int:
        """The number of possible values."""
        return (self.high - self.low) // self.resolution + 1

    def _regular_size(self) -> int:
        if self.bins is not None:
            return len(self.bins)
        return self.cells if self.step is None else (self.high - self.low) // self.step + 1

    def _regular_labels(self) -> tuple[str, ...]:
        if self.step is None:
            return self._bin_labels(lambda cell: str(self.low + cell * self.resolution))
        starts = range(self.low, self.high + 1, self.step)
        if self.step == 1:
            return tuple(str(start) for start in starts)
        return tuple(f"{start}..{min(start + self.step - 1, self.high)}" for start in starts)


@dataclass(frozen=True, kw_only=True)
class Number(GridColumn):
    """A real number: multiples of a resolution between public limits, or public bins.

    Without edges, methods find bins privately; a number counts as the nearest multiple, counted
    from ``low``, one outside the limits as the nearest inside. With edges, bins are [e0, e1),
    [e1, e2), ..., the last one closed, and a number outside counts in the nearest bin.
    """

    low: float | None = None
    high: float | None = None
    resolution: float | None = None
    """What numbers are published in multiples of, like 0.01."""
    edges: tuple[float, ...] | None = None
    decimals: int | None = None
    """With edges, the digits after the point of published numbers; without it, they are floats."""
    alone: tuple[float, ...] = ()
    """Codes among the numbers, like -1 or 99.9: each is counted by itself."""
    decimal: str = "."
    """The decimal mark of numbers in text: a point or a comma."""
    thousands: str = ""
    """Between groups of three digits in text: a comma, point, space or apostrophe, or nothing."""

    kind: ClassVar[str] = "number"
    ordered: ClassVar[bool] = True

    @property
    def has_plain_marks(self) -> bool:
        """Whether numbers are written as programs write them, like 1234.5."""
        return (self.decimal, self.thousands) == PLAIN_MARKS

    def _check(self) -> None:
        if not self.has_plain_marks:
            check_marks(self)
        if self.edges is None:
            self._check_limits()
        else:
            if any(each is not None for each in (self.low, self.high, self.resolution)):
                raise SchemaError("declare low, high and resolution, or edges, not both")
            self._check_edges(self.edges)
        self._check_grid()
        _check_alone(self, whole=False)

    def _check_limits(self) -> None:
        given = {"low": self.low, "high": self.high, "resolution": self.resolution}
        for name, value in given.items():
            if value is None:
                raise SchemaError(f"a number needs low, high and resolution, or edges; no {name}")
            if not _is_finite(value):
                raise SchemaError(f"{name} must be a finite number, got {value!r}")
        if self.decimals is not None:
            raise SchemaError("the resolution says how many decimals: leave decimals out")
        if float(self.resolution or 0) <= 0:
            raise SchemaError(f"resolution must be above 0, got {self.resolution!r}")
        if float(self.low or 0) > float(self.high or 0):
            raise SchemaError(f"low {self.low} is above high {self.high}")
        scale = self.scale
        largest = max(abs(scale.low), abs(scale.low + self.cells * scale.step))
        if scale.digits > _MOST_DECIMALS or largest > _MOST_GRID:
            raise SchemaError(
                f"limits in steps of {self.resolution} have more than 15 digits, or more than "
                f"{_MOST_DECIMALS} after the point; declare a coarser resolution"
            )

    def _check_edges(self, edges: tuple[float, ...]) -> None:
        if not isinstance(edges, tuple) or len(edges) < 2 or not all(map(_is_finite, edges)):
            raise SchemaError("edges must be two or more finite numbers")
        if any(float(left) >= float(right) for left, right in pairwise(edges)):
            raise SchemaError("edges must rise, each above the one before")
        if self.decimals is not None:
            check.keep_whole(self, at_least=0, at_most=_MOST_DECIMALS, decimals=self.decimals)
            self._check_between_edges()

    def _check_between_edges(self) -> None:
        firsts, lasts = zip(*self.grid, strict=True)
        if max(map(abs, (*firsts, *lasts))) > _MOST_GRID:
            raise SchemaError(f"edges with {self.decimals} decimals have more than 15 digits")
        if empty := [index for index, (first, last) in enumerate(self.grid) if first > last]:
            label = self._regular_labels()[empty[0]]
            raise SchemaError(
                f"the bin {label} holds no number of {self.decimals} decimals; declare wider bins "
                "or more decimals"
            )

    @property
    def on_grid(self) -> bool:
        """Whether no edges are declared."""
        return self.edges is None

    @property
    def cells(self) -> int:
        """The number of possible values."""
        if self.edges is not None:
            return len(self.edges) - 1
        low, high, step = (Decimal(str(each)) for each in (self.low, self.high, self.resolution))
        return int(((high - low) / step).to_integral_value(ROUND_FLOOR)) + 1

    @cached_property
    def scale(self) -> "Scale":
        """How cells are numbers, of a column without edges."""
        low, step = (Decimal(str(each)).normalize() for each in (self.low, self.resolution))
        exponents = (each.as_tuple().exponent for each in (low, step))
        digits = max(0, *(-each for each in exponents if isinstance(each, int)))
        return Scale(low=int(low.scaleb(digits)), step=int(step.scaleb(digits)), digits=digits)

    @property
    def limits(self) -> tuple[float, float]:
        """The least and the largest number that can be published, or the outermost edges."""
        if self.edges is not None:
            return float(self.edges[0]), float(self.edges[-1])
        return self.scale.number(0), self.scale.number(self.cells - 1)

    @property
    def digits(self) -> int | None:
        """The digits after the point of published numbers; None where they are any floats."""
        return self.decimals if self.edges is not None else self.scale.digits

    @cached_property
    def grid(self) -> tuple[tuple[int, int], ...]:
        """For each bin between edges the first and the last multiple of ``10**-decimals`` in it.

        Edges are taken as they are written, 0.1 as 1/10: Decimal knows no binary rounding.
        """
        edges = [Decimal(str(edge)).scaleb(self.decimals or 0) for edge in self.edges or ()]
        begins = [int(edge.to_integral_value(ROUND_CEILING)) for edge in edges]
        last = int(edges[-1].to_integral_value(ROUND_FLOOR))
        return tuple(zip(begins[:-1], (*(begin - 1 for begin in begins[1:-1]), last), strict=True))

    def _regular_size(self) -> int:
        return self.cells if self.bins is None else len(self.bins)

    def _regular_labels(self) -> tuple[str, ...]:
        if self.edges is None:
            return self._bin_labels(lambda cell: f"{self.scale.number(cell):.{self.digits}f}")
        texts = [f"{edge:g}" for edge in self.edges]
        if repeated(texts):  # six digits do not tell all edges apart: take all digits
            texts = [str(edge) for edge in self.edges]
        return tuple(f"{left}..{right}" for left, right in pairwise(texts))


@dataclass(frozen=True, kw_only=True, slots=True)
class Scale:
    """Numbers as whole multiples of a power of ten: (low + cell * step) / 10**digits."""

    low: int
    step: int
    digits: int

    def number(self, cell: int) -> float:
        """The float nearest to the number of a cell."""
        return float(Fraction(self.low + cell * self.step, 10**self.digits))


def _check_alone(column: "Integer | Number", *, whole: bool) -> None:
    """Refuse special codes that are no values of the column."""
    alone = column.alone
    kind = int if whole else (int, float)
    fine = isinstance(alone, tuple) and all(
        isinstance(each, kind) and not isinstance(each, bool) and _is_finite(each) for each in alone
    )
    if not fine or len(set(alone)) < len(alone):
        raise SchemaError(f"alone must be a tuple (in JSON a list) of numbers, got {alone!r:.60}")
    if alone and not column.on_grid:
        raise SchemaError("alone is declared with low, high and resolution, not with edges")
    for each in alone:
        low, step = Decimal(str(column.low)), Decimal(str(column.resolution))
        cell = (Decimal(str(each)) - low) / step
        if cell != int(cell) or not 0 <= cell < column.cells:
            raise SchemaError(
                f"{each} in alone is no value between {column.low} and {column.high} in steps of "
                f"{column.resolution}"
            )


Column = Category | Ordinal | Boolean | Integer | Number | Date | DateTime


def _is_finite(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        return isfinite(value)
    except OverflowError:  # a whole number beyond the largest float
        return False
