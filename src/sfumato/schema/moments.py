"""Columns of days and of moments, counted by periods of the calendar."""

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import cached_property
from typing import Any, ClassVar, Final, Literal

from sfumato import check
from sfumato.errors import SchemaError
from sfumato.schema import formats, periods
from sfumato.schema.base import BaseColumn
from sfumato.schema.periods import DayStep, Precision, TimeStep
from sfumato.schema.zones import check_zone

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
        check.one_of(periods.DAY_STEPS, step=self.step)
        if self.low > self.high:
            raise SchemaError(f"low {self.low} is after high {self.high}")
        if self.format is not None:
            formats.check_day_format(self.format)

    @cached_property
    def starts(self) -> tuple[date, ...]:
        """The first day of each code."""
        moments = periods.starts(self.step, _midnight(self.low), _midnight(self.high))
        return tuple(moment.date() for moment in moments)

    def _regular_size(self) -> int:
        first, last = (periods.period_of(self.step, _midnight(d)) for d in (self.low, self.high))
        return last - first + 1

    def _regular_labels(self) -> tuple[str, ...]:
        return tuple(start.strftime(periods.LABELS[self.step]) for start in self.starts)


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
        check.one_of(periods.TIME_STEPS, step=self.step)
        check.one_of(periods.PRECISIONS, precision=self.precision)
        check.one_of(UNITS, unit=self.unit)
        if self.zone is not None:
            check_zone(self.zone)
        self._check_limits()
        if self.format is not None:
            formats.check_time_format(self.format, with_zone=self.zone is not None)

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
        return timedelta(microseconds=periods.PRECISIONS[self.precision])

    @cached_property
    def starts(self) -> tuple[datetime, ...]:
        """The first moment of each code, without offset."""
        return periods.starts(self.step, *self.limits)

    def _regular_size(self) -> int:
        first, last = (periods.period_of(self.step, limit) for limit in self.limits)
        return last - first + 1

    def _regular_labels(self) -> tuple[str, ...]:
        return tuple(start.strftime(periods.LABELS[self.step]) for start in self.starts)


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
