"""How dates and times are written: ISO, or a declared format of digits like ``%d.%m.%Y``.

Only directives of digits are known, so that a text means the same in every language and on every
machine. Reading is one regular expression, which Arrow's functions and Python's both understand;
what it finds is put together as ISO text, whose reader knows the calendar.
"""

import re
from collections.abc import Mapping
from datetime import MAXYEAR, datetime, timedelta
from functools import lru_cache
from typing import Final, Literal
from zoneinfo import ZoneInfo

from sfumato.errors import SchemaError


def check_zone(name: str) -> None:
    """Raise unless the name is one of a time zone."""
    if name == "UTC" or (isinstance(name, str) and re.fullmatch(r"[+-][0-9]{2}:[0-9]{2}", name)):
        return
    try:
        ZoneInfo(name)
    except (OSError, ValueError, TypeError, AttributeError, LookupError):
        raise SchemaError(
            f"zone must be a time zone like UTC, Europe/Rome or +02:00, got {name!r}"
        ) from None


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


_GROUPS: Final = {
    "Y": r"(?P<Y>[0-9]{4})",
    "m": r"(?P<m>[0-9]{1,2})",
    "d": r"(?P<d>[0-9]{1,2})",
    "H": r"(?P<H>[0-9]{1,2})",
    "M": r"(?P<M>[0-9]{1,2})",
    "S": r"(?P<S>[0-9]{1,2})",
    "f": r"(?P<f>[0-9]{1,6})[0-9]{0,3}",
    "z": r"(?P<z>Z|[+-][0-9]{2}:?[0-9]{2})",
    "%": "%",
}
_DAY: Final = "Ymd"
_KNOWN: Final = "%Y, %m, %d, %H, %M, %S, %S.%f, %z and %%"
_ISO_TIME: Final = (
    r"^(?P<Y>[0-9]{4})-(?P<m>[0-9]{2})-(?P<d>[0-9]{2})"
    r"(?:[T ](?P<H>[0-9]{2}):(?P<M>[0-9]{2})"
    r"(?::(?P<S>[0-9]{2})(?:\.(?P<f>[0-9]{1,6})[0-9]{0,3})?)?)?(?P<z>Z|[+-][0-9]{2}:?[0-9]{2})?$"
)


def check_day_format(text: str) -> None:
    """Raise unless the format writes a day completely, and no time."""
    letters = _directives(text)
    if sorted(letters) != sorted(_DAY):
        raise SchemaError(
            f"format of a date must have %Y, %m and %d once each and no time, got {text!r}"
        )


def check_time_format(text: str, *, with_zone: bool) -> None:
    """Raise unless the format writes a moment completely: what it leaves out counts as 0."""
    letters = _directives(text)
    twice = len(set(letters)) < len(letters)
    gaps = ("M" in letters and "H" not in letters) or ("S" in letters and "M" not in letters)
    if not set(_DAY) <= set(letters) or twice or gaps:
        raise SchemaError(
            "format of a datetime must have %Y, %m and %d, and %H before %M before %S, each once; "
            f"got {text!r}"
        )
    if "f" in letters and "%S.%f" not in text:
        raise SchemaError(f"%f may only stand in %S.%f, got {text!r}")
    if ("z" in letters) != with_zone:
        needed = "needs %z, because a zone" if with_zone else "can't have %z, because no zone"
        raise SchemaError(f"format {needed} is declared; got {text!r}")


@lru_cache(maxsize=256)
def pattern(text: str | None) -> str:
    r"""The regular expression of a format; without one, of ISO dates and times.

    >>> pattern("%d.%m.%Y")
    '^(?P<d>[0-9]{1,2})\\.(?P<m>[0-9]{1,2})\\.(?P<Y>[0-9]{4})$'
    """
    if text is None:
        return _ISO_TIME
    parts = re.split(r"(%.)", text, flags=re.DOTALL)
    return f"^{''.join(_GROUPS[p[1]] if p.startswith('%') else re.escape(p) for p in parts)}$"


def iso_text(text: str | None, value: str) -> str | None:
    """A written moment as full ISO text; None if it is not written in the format.

    >>> iso_text("%d.%m.%Y %H:%M", "1.2.2024 07:30")
    '2024-02-01T07:30:00.000000'
    """
    match = re.match(pattern(text), value.strip())
    return None if match is None else _joined(match.groupdict())


def _joined(parts: Mapping[str, str | None]) -> str:
    year, month, day, hour, minute, second = (
        (parts.get(name) or "").zfill(2 if name != "Y" else 4) for name in "YmdHMS"
    )
    fraction = (parts.get("f") or "").ljust(6, "0")
    zone = parts.get("z") or ""
    return f"{year}-{month}-{day}T{hour}:{minute}:{second}.{fraction}{zone}"


def _directives(text: str) -> list[str]:
    if not isinstance(text, str) or "\n" in text:
        raise SchemaError(f"format must be text like '%d.%m.%Y', got {text!r}")
    letters = re.findall(r"%(.?)", text)
    if unknown := sorted(set(letters) - set(_GROUPS)):
        listed = ", ".join(f"%{letter}" for letter in unknown)
        raise SchemaError(f"format has {listed}; known are {_KNOWN}, the ones of digits")
    return [letter for letter in letters if letter != "%"]
