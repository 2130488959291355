"""Periods of the calendar: which minute, week or quarter a moment lies in, and when one begins.

Periods are numbered from the beginning of the year 1, a Monday; the calendar has no time zone.
"""

from datetime import MAXYEAR, datetime, timedelta
from typing import Final, Literal

DayStep = Literal["day", "week", "month", "quarter", "year"]
TimeStep = Literal["minute", "hour", "day", "week", "month", "quarter", "year"]
Precision = Literal["microsecond", "millisecond", "second", "minute", "hour"]

DAY_STEPS: Final[tuple[DayStep, ...]] = ("day", "week", "month", "quarter", "year")
TIME_STEPS: Final[tuple[TimeStep, ...]] = ("minute", "hour", *DAY_STEPS)
PRECISIONS: Final[dict[Precision, int]] = {
    "microsecond": 1,
    "millisecond": 1_000,
    "second": 10**6,
    "minute": 60 * 10**6,
    "hour": 3600 * 10**6,
}
"""What the moments of a column are multiples of, in microseconds."""

LABELS: Final[dict[TimeStep, str]] = {
    "minute": "%Y-%m-%d %H:%M",
    "hour": "%Y-%m-%d %H:00",
    "day": "%Y-%m-%d",
    "week": "%Y-%m-%d",
    "month": "%Y-%m",
    "quarter": "%Y-%m",
    "year": "%Y",
}

_MONTHS: Final = {"month": 1, "quarter": 3, "year": 12}
_LENGTHS: Final = {
    "minute": timedelta(minutes=1),
    "hour": timedelta(hours=1),
    "day": timedelta(days=1),
    "week": timedelta(weeks=1),
}


def period_of(step: TimeStep, moment: datetime) -> int:
    """The number of the period that a moment lies in.

    >>> period_of("week", datetime(2024, 1, 7)) - period_of("week", datetime(2024, 1, 1))
    0
    """
    if step in _LENGTHS:
        return (moment - datetime.min) // _LENGTHS[step]
    return ((moment.year - 1) * 12 + moment.month - 1) // _MONTHS[step]


def period_start(step: TimeStep, period: int) -> datetime:
    """The first moment of a period.

    >>> period_start("quarter", period_of("quarter", datetime(2024, 6, 30)))
    datetime.datetime(2024, 4, 1, 0, 0)
    """
    if step in _LENGTHS:
        return datetime.min + period * _LENGTHS[step]
    years, months = divmod(period * _MONTHS[step], 12)
    return datetime(min(years + 1, MAXYEAR), months + 1, 1)


def starts(step: TimeStep, low: datetime, high: datetime) -> tuple[datetime, ...]:
    """Where each period from ``low`` to ``high`` begins; the first one begins with ``low``."""
    first, last = period_of(step, low), period_of(step, high)
    return (low, *(period_start(step, period) for period in range(first + 1, last + 1)))
