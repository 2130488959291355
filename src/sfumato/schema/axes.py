"""The values that a column can be published with, as points of one line: what rules compare.

Whole numbers, days, moments and the texts of an ordinal are whole points, decimals and floats are
points of the float that is published. ``at_least`` and ``at_most`` find the next value that the
column can have, so that what is moved stays on the grid and inside the public limits.
"""

import re
from collections.abc import Hashable
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import SchemaError
from sfumato.schema.calendar import PRECISIONS
from sfumato.schema.columns import Column, Date, DateTime, Integer, Number, Ordinal, without_offset

if TYPE_CHECKING:
    import pyarrow as pa

Points = NDArray[Any]
"""Whole numbers of 64 bits, or floats where one of the columns that are compared has floats."""

EXACT: Final = 2**53
"""Whole numbers up to here are floats without rounding."""
_DAY: Final = 86_400 * 10**6
"""In microseconds."""
_MICROSECOND: Final = timedelta(microseconds=1)
_ZERO: Final = datetime(1970, 1, 1)
_COARSE_UNITS: Final = {"ms": 1_000}
"""Microseconds of the units that are coarser than one."""
_WRITTEN: Final = (("%f", 1), ("%S", 10**6), ("%M", 60 * 10**6), ("%H", 3600 * 10**6))
"""What a format with a directive still tells apart, in microseconds; without any, days."""
_CORRECTIONS: Final = 4
"""Steps that the float nearest to a decimal may be off."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Axis:
    """The possible values of a column: low, low + step, ..., high, each divided by 10**digits."""

    scale: Hashable
    """Columns of one scale can be compared."""
    low: float
    high: float
    step: int = 1
    """0 where every float from low to high is possible; else all are whole."""
    digits: int = 0
    """Decimal digits of the values."""
    floats: bool = False
    """Whether points are floats."""

    def as_floats(self) -> "Axis":
        """The same values, compared as floats."""
        return replace(self, floats=True)

    @property
    def first(self) -> Any:
        """The point of the least value."""
        return self._points(np.array([self.low]))[0] if self.step else self.low

    @property
    def last(self) -> Any:
        """The point of the largest value."""
        return self._points(np.array([self.high]))[0] if self.step else self.high

    def at_least(self, points: Points, *, strict: bool) -> Points:
        """For each point the least value of the column not below it; with ``strict``, above it.

        Where there is none, a point above ``last``.

        >>> Axis(scale="numbers", low=0, high=9, step=3).at_least(np.array([-5, 3, 4]), strict=True)
        array([0, 6, 6])
        """
        if self.step == 0:
            above = np.nextafter(points, np.inf) if strict else points
            return np.asarray(np.maximum(above, self.low))
        low = int(self.low)
        whole = self._rounded_up(points, strict=strict)
        return self._points(np.maximum(low - (low - whole) // self.step * self.step, low))

    def at_most(self, points: Points, *, strict: bool) -> Points:
        """For each point the largest value not above it; with ``strict``, below it.

        Where there is none, a point below ``first``.
        """
        if self.step == 0:
            below = np.nextafter(points, -np.inf) if strict else points
            return np.asarray(np.minimum(below, self.high))
        low, high = int(self.low), int(self.high)
        whole = self._rounded_down(points, strict=strict)
        return self._points(np.minimum(low + (whole - low) // self.step * self.step, high))

    def _points(self, whole: NDArray[Any]) -> Points:
        if self.floats or self.digits:
            return np.asarray(whole / 10.0**self.digits)  # as ``codes.decode`` makes them
        return whole.astype(np.int64)

    def _rounded_up(self, points: Points, *, strict: bool) -> NDArray[np.int64]:
        if points.dtype.kind == "i":
            return np.asarray(points + strict)
        points, whole = self._near(points, -1)
        for _ in range(_CORRECTIONS):
            values = whole / 10.0**self.digits
            whole = whole + ((values <= points) if strict else (values < points))
        return whole

    def _rounded_down(self, points: Points, *, strict: bool) -> NDArray[np.int64]:
        if points.dtype.kind == "i":
            return np.asarray(points - strict)
        points, whole = self._near(points, 2)
        for _ in range(_CORRECTIONS):
            values = whole / 10.0**self.digits
            whole = whole - ((values >= points) if strict else (values > points))
        return whole

    def _near(self, points: Points, shift: int) -> tuple[Points, NDArray[np.int64]]:
        """Points no farther out than just beyond the limits, and a whole number beside each."""
        scale = 10.0**self.digits
        points = np.clip(points, (self.low - 2) / scale, (self.high + 2) / scale)
        return points, np.floor(points * scale).astype(np.int64) + shift


def axis_of(column: Column) -> Axis:
    """The line on which the values of a column lie; one without an order has none."""
    if isinstance(column, Integer):
        return _grid("numbers", column.low, column.high, column.resolution)
    if isinstance(column, Number):
        return _number_axis(column)
    if isinstance(column, Date):
        return _grid("times", _micros(column.low), _micros(column.high), _DAY)
    if isinstance(column, DateTime):
        return _time_axis(column)
    if isinstance(column, Ordinal):
        return _grid(("texts", column.values), 0, len(column.values) - 1, 1)
    raise SchemaError(
        f"column {column.name!r} is of kind {column.kind}, which has no order. A rule compares "
        "numbers with numbers, dates and datetimes with each other, or ordinals of the same values"
    )


def points_of(column: Column, values: "pa.Array") -> tuple[Points, NDArray[np.bool_]]:
    """The points of published values, and which rows have one: missing and other values do not."""
    import pyarrow as pa  # only here, so that a device can know a schema without Arrow
    import pyarrow.compute as pc

    if isinstance(column, Ordinal):
        values = pc.index_in(values.cast(pa.string()), value_set=pa.array(column.values))
    elif isinstance(column, Date):
        values = values.cast(pa.int32())
    elif isinstance(column, DateTime):
        values = values.cast(pa.timestamp("us", tz=column.zone), safe=False)
    kind = pa.float64() if isinstance(column, Number) else pa.int64()
    present = np.from_dlpack(values.is_valid().cast(pa.uint8())).view(np.bool_)
    points = np.from_dlpack(pc.fill_null(values.cast(kind), pa.scalar(0, kind)))
    return (points * _DAY if isinstance(column, Date) else points), present


def values_at(column: Column, points: Points, kind: "pa.DataType") -> "pa.Array":
    """The published values of points, in the type in which the column is published."""
    import pyarrow as pa

    if isinstance(column, Number):
        return pa.array(points.astype(np.float64)).cast(kind)
    whole = points.astype(np.int64)
    if isinstance(column, Ordinal):
        return pa.array(column.values, pa.string()).take(pa.array(whole)).cast(kind)
    if isinstance(column, Date):
        return pa.array((whole // _DAY).astype(np.int32)).cast(kind)
    if isinstance(column, DateTime):
        return pa.array(whole).cast(pa.timestamp("us", tz=column.zone)).cast(kind, safe=False)
    return pa.array(whole).cast(kind)


def point_of(value: Any) -> float:
    """The point of a single number, day or moment."""
    return _micros(value) if isinstance(value, date) else value


def point_text(column: Column, point: Any) -> str:
    """A point as a person writes the value."""
    if isinstance(column, Ordinal):
        return repr(column.values[int(point)])
    if isinstance(column, Date):
        return (_ZERO + int(point) * _MICROSECOND).date().isoformat()
    if isinstance(column, DateTime):
        moment = _ZERO + int(point) * _MICROSECOND
        return (moment.replace(tzinfo=UTC) if column.zone is not None else moment).isoformat()
    return f"{point:.15g}" if isinstance(point, float) else str(point)


def _grid(scale: Hashable, low: int, high: int, step: int, digits: int = 0) -> Axis:
    last = low + (high - low) // step * step
    return Axis(scale=scale, low=low, high=last, step=step, digits=digits, floats=digits > 0)


def _number_axis(column: Number) -> Axis:
    if column.edges is None:
        scale = column.scale
        high = scale.low + (column.cells - 1) * scale.step
        return _grid("numbers", scale.low, high, scale.step, scale.digits).as_floats()
    if column.decimals is not None:
        low, high = column.grid[0][0], column.grid[-1][1]
        return _grid("numbers", low, high, 1, column.decimals).as_floats()
    low_edge, high_edge = float(column.edges[0]), float(column.edges[-1])
    return Axis(scale="numbers", low=low_edge, high=high_edge, step=0, floats=True)


def _time_axis(column: DateTime) -> Axis:
    step = max(PRECISIONS[column.precision], _COARSE_UNITS.get(column.unit, 1))
    if column.format is not None and step < (written := _written(column.format)):
        coarse = "days" if written == _DAY else f"no part finer than {written // 10**6} s"
        raise SchemaError(
            f"column {column.name!r} is written as {column.format!r}, which shows {coarse}, but "
            f"its precision is a {column.precision}: what is written could break a rule. Declare "
            "a format that shows all of it, a coarser precision, or a date"
        )
    low, high = (_micros(limit) // step * step for limit in column.limits)
    return _grid("times" if column.zone is None else "instants", low, high, step)


def _written(text: str) -> int:
    """The shortest time, in microseconds, that a format tells apart."""
    known = set(re.findall(r"%.", text))
    return next((micros for directive, micros in _WRITTEN if directive in known), _DAY)


def _micros(day: date) -> int:
    """Microseconds since 1970 of a moment, or of the first moment of a day."""
    moment = day if isinstance(day, datetime) else datetime(day.year, day.month, day.day)
    return (without_offset(moment) - _ZERO) // _MICROSECOND
