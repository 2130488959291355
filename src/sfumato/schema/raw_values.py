"""Values as they were read, without codes: a number is a number, whatever its column's bins.

For comparisons with the real table, which are internal: codes of one schema on both sides can't
show what bins and limits do to values. What counts as readable is what ``codes.fit`` reads.
"""

from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.schema.arrow_values import extension, is_text, moments_from_text, written_days
from sfumato.schema.codes import fit, floats, prepared, readable, side_of_limits
from sfumato.schema.columns import Column, Date, DateTime, Integer, Number

NUMERIC: Final = (Integer, Number, Date, DateTime)
"""Kinds of columns whose values are numbers, or points in time."""
_WHOLE: Final = r"^-?[0-9]+(\.0*)?$"
_PER_SECOND: Final = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def raw_values(column: Column, values: pa.Array) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """The values of a column, and which of them the schema has no place for.

    Of integers and numbers floats, of days the days since 1970, of moments the seconds since 1970
    (in UTC where there is a zone): NaN where there is none, infinite where it is beyond all floats.
    Of other columns codes, which are their values. No limit and no bin is applied.

    >>> raw_values(Integer(name="age", low=0, high=9), pa.array(["7", "120", "x"]))[0].tolist()
    [7.0, 120.0, nan]
    """
    if not isinstance(column, NUMERIC):
        codes, unfit = fit(column, values)
        return codes, np.zeros(len(values), dtype=np.bool_) if unfit is None else unfit
    values = prepared(column, values)
    if extension(values.type) is not None:
        values = pa.nulls(len(values))
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    usable = _usable(column, values)
    numbers = _numbers(column, usable)
    unfit = _array(pc.and_(usable.is_null(), values.is_valid())).copy()
    if isinstance(column, Integer | Number) and unfit.any():
        indices = np.flatnonzero(unfit)
        side = side_of_limits(column, values.take(pa.array(indices)))
        numbers[indices[side != 0]] = side[side != 0] * np.inf
        unfit[indices[side != 0]] = False
    if column.missing_code is None:
        unfit |= _array(values.is_null())
    return numbers, unfit


def raw_codes(column: Column, values: NDArray[Any]) -> NDArray[Any]:
    """The codes of values that ``raw_values`` read."""
    if not isinstance(column, NUMERIC):
        return values
    absent = np.isnan(values)
    if isinstance(column, Integer | Number):
        return fit(column, pa.array(values, mask=absent))[0]
    whole = np.where(absent, 0, values)
    if isinstance(column, Date):
        days = pa.array(whole.astype(np.int32), pa.int32(), mask=absent).cast(pa.date32())
        return fit(column, days)[0]
    micros = pa.array(np.rint(whole * 1e6).astype(np.int64), pa.int64(), mask=absent)
    zone = None if column.zone is None else "UTC"
    return fit(column, micros.cast(pa.timestamp("us", zone)))[0]


def _usable(column: Integer | Number | Date | DateTime, values: pa.Array) -> pa.Array:
    """The same values, null where one can't be read."""
    try:
        known = _known(column, values)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        known = np.zeros(1, dtype=np.bool_)
    if known is None or known.all():
        return values
    return readable(column, values, lambda some: _known(column, some))


def _known(
    column: Integer | Number | Date | DateTime, values: pa.Array
) -> NDArray[np.bool_] | None:
    """Which values are there and are numbers; None if all are. An Arrow error if one is none."""
    numbers = _numbers(column, values)
    known = np.isfinite(numbers) | _array(values.is_null())
    return None if known.all() else known


def _numbers(column: Integer | Number | Date | DateTime, values: pa.Array) -> NDArray[np.float64]:
    """Values that can all be read as floats, NaN for nulls."""
    if isinstance(column, Integer):
        read = _whole(values)
    elif isinstance(column, Number):
        read = floats(pc.utf8_trim_whitespace(values) if is_text(values.type) else values)
    elif isinstance(column, Date):
        read = _days(column, values).cast(pa.int32()).cast(pa.float64())
    else:
        moments = _moments(column, values)
        per_second = _PER_SECOND[moments.type.unit]
        read = pc.divide(moments.cast(pa.int64()).cast(pa.float64(), safe=False), per_second)
    return _array(pc.fill_null(read, np.nan)).copy()


def _whole(values: pa.Array) -> pa.Array:
    if pa.types.is_temporal(values.type):
        raise pa.ArrowInvalid("a time is not a number, though Arrow would read it as one")
    if is_text(values.type):
        values = pc.utf8_trim_whitespace(values)
        if not pc.all(pc.match_substring_regex(values, _WHOLE), min_count=0).as_py():
            raise pa.ArrowInvalid("a text is not a whole number")
        return values.cast(pa.float64())
    if not pa.types.is_integer(values.type):
        values = values.cast(pa.int64())
    return values.cast(pa.float64(), safe=False)


def _days(column: Date, values: pa.Array) -> pa.Array:
    if is_text(values.type):
        texts = pc.utf8_trim_whitespace(values)
        iso = column.format is None
        return texts.cast(pa.date32()) if iso else written_days(texts, column.format or "")
    if not pa.types.is_temporal(values.type) and not pa.types.is_null(values.type):
        raise pa.ArrowInvalid("a number is not a day, though Arrow would read it as one")
    return values.cast(pa.date32(), safe=False)


def _moments(column: DateTime, values: pa.Array) -> pa.Array:
    kind = values.type
    if is_text(kind):
        return moments_from_text(column, values)
    if pa.types.is_date(kind) and column.zone is None:
        return values.cast(pa.timestamp("ms"))
    if pa.types.is_null(kind):
        return values.cast(pa.timestamp("us"))
    if not pa.types.is_timestamp(kind) or (kind.tz is None) != (column.zone is None):
        raise pa.ArrowInvalid("a moment has an offset exactly where the column has a zone")
    return values


def _array(values: pa.Array) -> NDArray[Any]:
    if pa.types.is_boolean(values.type):
        return np.from_dlpack(values.cast(pa.uint8())).view(np.bool_)
    return np.from_dlpack(values)
