"""Round, public pieces of a number's values: what methods begin with to find bins privately.

All of it follows from what a column declares. Around zero, classes grow as 1, 2, 5, 10, ... times
the resolution, so that amounts of any size have a class; elsewhere pieces are even and round, of
days and moments whole periods of the calendar.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import date, datetime, time, timedelta
from itertools import count
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InternalError, SchemaError
from sfumato.schema import calendar
from sfumato.schema.calendar import TimeStep
from sfumato.schema.columns import Column, Date, DateTime, GridColumn, Integer, Number

PIECES: Final = 20
"""The most round pieces that an interval is divided into: branching near 16 is best for trees of
counts (Qardaji, Yang, Li 2013, "Understanding hierarchical methods", VLDB), and round pieces come
in 2 to 20."""
GROWING_FROM: Final = 2 * 100
"""With more possible values than this, around zero, classes grow with their distance from zero."""

DAY_ZERO: Final = date(1970, 1, 1)
MOMENT_ZERO: Final = datetime(1970, 1, 1)
"""From where days and moments are counted, as Arrow counts them."""

_LENGTHS: Final = (
    tuple(timedelta(microseconds=digit * 10**power) for power in range(6) for digit in (1, 2, 5))
    + tuple(
        timedelta(seconds=seconds)
        for minutes in (1, 60)
        for seconds in (minutes, 2 * minutes, 5 * minutes, 10 * minutes, 15 * minutes, 30 * minutes)
    )
    + tuple(timedelta(hours=hours) for hours in (1, 2, 3, 6, 12, 24, 48, 7 * 24))
)
"""Parts of a day, days and weeks: lengths that divide time evenly, shortest first."""
_STEPS: Final[tuple[TimeStep, ...]] = ("month", "quarter", "year")
_YEARS: Final = (2, 5, 10, 20, 50, 100, 200, 500, 1_000)
"""Lengths of classes of dates, in years."""


def first_classes(column: GridColumn) -> tuple[int, ...]:
    """The first cell of each public class of a column on a grid, special codes alone.

    >>> first_classes(Integer(name="paid", low=0, high=1000))
    (0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
    >>> first_classes(Integer(name="age", low=0, high=120, alone=(99,)))
    (0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 99, 100, 110, 120)
    """
    growing = growing_classes(column) if column.cells > GROWING_FROM else ()
    starts = {*(growing or round_pieces(column, 0, column.cells - 1))}
    for cell in alone_cells(column):
        starts |= {cell, cell + 1}
    return tuple(sorted(start for start in starts if start < column.cells))


def growing_classes(column: GridColumn) -> tuple[int, ...]:
    """The first cells of classes that grow with their distance from zero; none without a zero.

    Numbers that begin with one, as counts do, have their zero just below.

    >>> growing_classes(Integer(name="calls", low=0, high=9))
    (0, 1, 2, 5)
    >>> growing_classes(Integer(name="calls", low=1, high=9))
    (0, 1, 4)
    """
    zero = _zero(column)
    if zero is None:
        return ()
    below = (zero + 1 - size for size in _one_two_five(zero + 1))
    starts = {0, max(zero, 0), *(zero + size for size in _one_two_five(column.cells - zero))}
    return tuple(sorted(starts | {start for start in below if start > 0}))


def alone_cells(column: GridColumn) -> tuple[int, ...]:
    """The cells of special codes."""
    if isinstance(column, Integer):
        return tuple((code - column.low) // column.resolution for code in sorted(column.alone))
    if isinstance(column, Number) and column.edges is None:
        low, step = column.scale.number(0), column.scale.step / 10**column.scale.digits
        return tuple(round((code - low) / step) for code in sorted(column.alone))
    return ()


def round_pieces(column: GridColumn, first: int, last: int) -> tuple[int, ...]:
    """The first cells of at most ``PIECES`` round pieces of an interval of cells.

    >>> round_pieces(Integer(name="paid", low=0, high=10_000), 1_000, 1_999)[:4]
    (1000, 1050, 1100, 1150)
    >>> from datetime import date
    >>> round_pieces(Date(name="day", low=date(2020, 1, 15), high=date(2021, 3, 1)), 0, 411)[:3]
    (0, 17, 46)
    """
    if last - first < PIECES:
        return tuple(range(first, last + 1))
    if isinstance(column, Date | DateTime):
        inner = _calendar_cuts(column, first, last)
    elif isinstance(column, Integer | Number):
        inner = _decimal_cuts(column, first, last)
    return (first, *(cell for cell in inner if first < cell <= last))


def with_steps(column: Column) -> Column:
    """A column as devices know it: with a step, or edges, in one spelling.

    Devices answer about codes and find no bins: a number between limits gets its public classes
    for bins, a moment days. What devices can't read is an error.
    """
    if isinstance(column, GridColumn) and column.bins is not None:
        return column
    if isinstance(column, Integer):
        if column.resolution != 1 or column.alone:
            raise SchemaError(
                f"column {column.name!r}: devices know no resolution and no special codes of whole "
                "numbers. Declare a step, or an ordinal of the values."
            )
        return replace(column, step=None if column.step == 1 else column.step)
    if isinstance(column, Number) and column.edges is None:
        scale = column.scale
        starts = [start for start in first_classes(column) if start < column.cells - 1]
        return Number(
            name=column.name,
            missing=column.missing,
            missing_texts=column.missing_texts,
            edges=tuple(scale.number(cell) for cell in (*starts, column.cells - 1)),
            decimals=scale.digits if scale.step == 1 else None,
        )
    if isinstance(column, Date):
        return replace(column, step=None if column.step == "day" else column.step)
    if isinstance(column, DateTime):
        return replace(column, step=column.step or "day")
    return column


def in_classes(column: Column, counts: NDArray[Any]) -> tuple[tuple[str, ...], NDArray[Any]]:
    """Labels and counts of the public classes of a column with privately found bins, for people.

    Bins are narrow where many rows are, so bars of bins would have another shape than the values.

    >>> paid = Integer(name="paid", low=0, high=300, bins=(0, 1, 5, 6, 100))
    >>> in_classes(paid, np.array([9, 0, 3, 2, 1]))
    (('0', '1..4', '5..99', '100..300'), array([9., 0., 5., 1.]))
    """
    if not isinstance(column, GridColumn) or column.bins is None:
        return column.labels, counts
    missing = [column.cells] * column.missing
    classes = replace(column, bins=tuple(c for c in first_classes(column) if c in {*column.bins}))
    starts = np.array([*column.bins, *missing])
    own = np.searchsorted(np.array([*(classes.bins or ()), *missing]), starts, side="right") - 1
    return classes.labels, np.bincount(own, counts, classes.size)


def middles(column: Column) -> NDArray[np.float64] | None:
    """The middle of each regular code: numbers, days or seconds since 1970; None for texts.

    >>> middles(Integer(name="age", low=0, high=9, step=5))
    array([2., 7.])
    """
    if isinstance(column, Number) and column.edges is not None:
        edges = np.array(column.edges, dtype=np.float64)
        return np.asarray((edges[:-1] + edges[1:]) / 2)
    if not isinstance(column, GridColumn):
        return None
    low, high = raw_limits(column)
    if column.on_grid:
        cells = np.array(column.bin_ends, dtype=np.float64).mean(axis=1)
        return np.asarray(low + cells * ((high - low) / max(column.cells - 1, 1)))
    starts = _step_starts(column)
    return np.asarray((starts + np.append(starts[1:] - 1, high)) / 2)


def raw_limits(column: Integer | Number | Date | DateTime) -> tuple[float, float]:
    """The declared limits: numbers, days or seconds since 1970."""
    if isinstance(column, Date):
        return float((column.low - DAY_ZERO).days), float((column.high - DAY_ZERO).days)
    if isinstance(column, DateTime):
        low, high = (limit - MOMENT_ZERO for limit in column.limits)
        return low.total_seconds(), high.total_seconds()
    return column.limits if isinstance(column, Number) else (float(column.low), float(column.high))


def _step_starts(column: Integer | Number | Date | DateTime) -> NDArray[np.float64]:
    """The first value of each code of a column with a step."""
    if isinstance(column, Integer):
        return np.arange(column.low, column.high + 1, column.step or 1, dtype=np.float64)
    if isinstance(column, Date):
        return np.array([(max(day, column.low) - DAY_ZERO).days for day in column.starts], float)
    if isinstance(column, DateTime):
        moments = [max(moment, column.limits[0]) - MOMENT_ZERO for moment in column.starts]
        return np.array([moment.total_seconds() for moment in moments])
    raise InternalError(f"column {column.name!r} has no steps")


def _zero(column: GridColumn) -> int | None:
    """The cell of the number zero, where there is one; -1 if it is just below the first."""
    if isinstance(column, Integer):
        low, step = column.low, column.resolution
    elif isinstance(column, Number):
        low, step = column.scale.low, column.scale.step
    else:
        return None
    return -low // step if low % step == 0 and -1 <= -low // step < column.cells else None


def _one_two_five(end: int) -> Iterator[int]:
    """1, 2, 5, 10, ... below an end."""
    for power in count():
        for digit in (1, 2, 5):
            if (size := digit * 10**power) >= end:
                return
            yield size


def _decimal_cuts(column: Integer | Number, first: int, last: int) -> Iterator[int]:
    """Where multiples of a round unit begin: the smallest that makes few enough pieces."""
    if isinstance(column, Integer):
        low, step = column.low, column.resolution
    else:
        low, step = column.scale.low, column.scale.step
    begin, end = low + first * step, low + last * step
    units = (digit * 10**power for power in count() for digit in (1, 2, 5))
    unit = next(each for each in units if end // each - begin // each < PIECES)
    for multiple in range(begin // unit + 1, end // unit + 1):
        yield -((low - multiple * unit) // step)  # the first cell that is not below it


def _calendar_cuts(column: Date | DateTime, first: int, last: int) -> Iterator[int]:
    """Where periods of the calendar begin: of the shortest kind that makes few enough."""
    grain = timedelta(days=1) if isinstance(column, Date) else column.grain
    low = column.limits[0] if isinstance(column, DateTime) else datetime.combine(column.low, time())
    begin, end = low + first * grain, low + last * grain
    for moment in _period_starts(begin, end):
        yield -((low - moment) // grain)


def _period_starts(begin: datetime, end: datetime) -> Sequence[datetime]:
    """The first moments of the periods that begin after ``begin``, until ``end``."""
    for length in _LENGTHS:
        first, past = ((each - datetime.min) // length for each in (begin, end))
        if past - first < PIECES:
            return [datetime.min + number * length for number in range(first + 1, past + 1)]
    for step in _STEPS:
        first, past = (calendar.period_of(step, each) for each in (begin, end))
        if past - first < PIECES:
            return [calendar.period_start(step, number) for number in range(first + 1, past + 1)]
    years = next(each for each in _YEARS if end.year // each - begin.year // each < PIECES)
    return [
        datetime(n * years, 1, 1) for n in range(begin.year // years + 1, end.year // years + 1)
    ]
