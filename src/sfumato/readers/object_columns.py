"""Columns of Python objects, each value in Arrow's type for it: a union of types.

Arrow itself gives a column one type, which all of its values decide: a text among numbers would
change how every other row reads, or be refused, which tells of that row as well.
"""

from collections.abc import Callable, Iterator, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

EXACT: Final = 2**53
"""Above it floats skip whole numbers, so a number reads as the float that pandas may make of it."""
_DIGITS: Final = 38
"""Of a decimal, before and after the point; one with more is no value that is read."""
_NULL, _BOOL, _INT, _FLOAT, _TEXT, _DECIMAL, _DAY, _TIME, _MOMENT, _UTC, _FINE, _FINE_UTC, _ODD = (
    range(13)
)
_TYPES: Final = (
    pa.null(),
    pa.bool_(),
    pa.int64(),
    pa.float64(),
    pa.string(),
    pa.decimal256(2 * _DIGITS, _DIGITS),
    pa.date32(),
    pa.time64("us"),
    pa.timestamp("us"),
    pa.timestamp("us", "UTC"),
    pa.timestamp("ns"),
    pa.timestamp("ns", "UTC"),
    pa.binary(),
)
_UNREADABLE: Final = b"\xff"
"""In the place of lists, bytes and whatever else no column holds: no text either."""


def by_value(values: Sequence[Any]) -> pa.Array:
    """The values as a union, each of the type that it has by itself.

    >>> [part.type for _, part in parts(by_value([1, "x", None]))]
    [DataType(null), DataType(int64), DataType(string)]
    """
    found = [_typed(value) for value in values]
    codes = np.array([code for code, _ in found], dtype=np.int8)
    offsets = np.zeros(codes.size, dtype=np.int32)
    children = []
    for code, kind in enumerate(_TYPES):
        mine = np.flatnonzero(codes == code)
        offsets[mine] = np.arange(mine.size)
        children.append(pa.array([found[place][1] for place in mine], kind))
    return pa.UnionArray.from_dense(pa.array(codes), pa.array(offsets), children)


def parts(values: pa.Array) -> Iterator[tuple[NDArray[np.int64], pa.Array]]:
    """The values by their types: their places, and the values there; of a plain array all."""
    if not pa.types.is_union(values.type):
        yield np.arange(len(values)), values
        return
    _, types, places = values.buffers()[:3]  # ``type_codes`` passes over the start of a slice
    mine = slice(values.offset, values.offset + len(values))
    codes = np.frombuffer(types, dtype=np.int8)[mine]
    offsets = np.frombuffer(places, dtype=np.int32)[mine]
    for code in np.unique(codes):
        chosen = np.flatnonzero(codes == code)
        yield chosen, values.field(int(code)).take(pa.array(offsets[chosen]))


def joined(values: pa.Array, read: Callable[[pa.Array], pa.Array]) -> pa.Array:
    """What a function makes of the values of each type, in the order of the values."""
    found = [(places, read(part)) for places, part in parts(values)]
    if not found:
        return read(pa.nulls(0))
    order = np.argsort(np.concatenate([places for places, _ in found]))
    return pa.concat_arrays([each for _, each in found]).take(pa.array(order))


def is_absent(value: Any) -> bool:
    """Whether a Python object stands for no value."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float | Decimal) and value != value


def _typed(value: Any) -> tuple[int, Any]:
    """The type of a value, and the value as that type takes it."""
    if isinstance(value, np.generic) and not isinstance(value, np.datetime64 | np.timedelta64):
        value = value.item()
    if is_absent(value):
        return _NULL, None
    if isinstance(value, datetime):  # before date, of which it is one
        return _typed_moment(value)
    if isinstance(value, bool):  # before int
        return _BOOL, value
    if isinstance(value, int):
        return (_INT, value) if abs(value) <= EXACT else (_FLOAT, _float(value))
    if isinstance(value, Decimal):
        exponent = value.as_tuple().exponent
        fits = isinstance(exponent, int) and exponent >= -_DIGITS and value.adjusted() < _DIGITS
        return (_DECIMAL, value) if fits else (_ODD, _UNREADABLE)
    for kind, code in ((str, _TEXT), (float, _FLOAT), (date, _DAY)):
        if isinstance(value, kind):
            return code, value
    if isinstance(value, time) and value.tzinfo is None:
        return _TIME, value
    return _ODD, _UNREADABLE


def _typed_moment(value: Any) -> tuple[int, Any]:
    fine = bool(getattr(value, "nanosecond", 0))
    if value.tzinfo is None:
        return (_FINE if fine else _MOMENT), value
    return (_FINE_UTC if fine else _UTC), value


def _float(value: int) -> float:
    try:
        return float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")
