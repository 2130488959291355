"""Values as text, each by itself, in whatever type a column came.

A column of Python objects has each value in Arrow's type for it: a union of types. Arrow itself
gives a column one type, which all of its values decide: a text among numbers would change how every
other row reads, or be refused, which reveals that row as well.
"""

from collections.abc import Callable, Iterator, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.schema.arrow_values import extension, has_scale, plain, scaled_texts, without_zeros

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
"""Instead of lists, bytes and whatever else no column holds: no text either."""


def by_value(values: Sequence[Any]) -> pa.Array:
    """The values as a union, each of the type that it has by itself.

    >>> [part.type for _, part in parts(by_value([1, "x", None]))]
    [DataType(null), DataType(int64), DataType(string)]
    """
    typed = [_typed(value) for value in values]
    codes = np.array([code for code, _ in typed], dtype=np.int8)
    offsets = np.zeros(codes.size, dtype=np.int32)
    children = []
    for code, kind in enumerate(_TYPES):
        mine = np.flatnonzero(codes == code)
        offsets[mine] = np.arange(mine.size)
        children.append(pa.array([typed[index][1] for index in mine], kind))
    return pa.UnionArray.from_dense(pa.array(codes), pa.array(offsets), children)


def parts(values: pa.Array) -> Iterator[tuple[NDArray[np.int64], pa.Array]]:
    """The values by their types, each with its index; of a plain array all."""
    if not pa.types.is_union(values.type):
        yield np.arange(len(values)), values
        return
    _, types, starts = values.buffers()[:3]  # ``type_codes`` passes over the start of a slice
    mine = slice(values.offset, values.offset + len(values))
    codes = np.frombuffer(types, dtype=np.int8)[mine]
    offsets = np.frombuffer(starts, dtype=np.int32)[mine]
    for code in np.unique(codes):
        chosen = np.flatnonzero(codes == code)
        yield chosen, values.field(int(code)).take(pa.array(offsets[chosen]))


def joined(values: pa.Array, read: Callable[[pa.Array], pa.Array]) -> pa.Array:
    """What a function makes of the values of each type, in the order of the values."""
    results = [(indices, read(part)) for indices, part in parts(values)]
    if not results:
        return read(pa.nulls(0))
    order = np.argsort(np.concatenate([indices for indices, _ in results]))
    return pa.concat_arrays([each for _, each in results]).take(pa.array(order))


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


_HAVE_TEXT: Final = (
    pa.types.is_null,
    pa.types.is_boolean,
    pa.types.is_integer,
    pa.types.is_floating,
    pa.types.is_decimal,
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_date,
    pa.types.is_time,
    pa.types.is_timestamp,
)
"""Types that some kind of column holds; of any other, also of one to come, all values are null."""


def trimmed(values: pa.Array) -> pa.Array:
    """Texts without spaces around them, those of spaces alone missing; other values as they are.

    >>> trimmed(pa.array([" a", "b ", "  "])).to_pylist()
    ['a', 'b', None]
    """
    values = decoded(values)
    if not pa.types.is_string(values.type) and not pa.types.is_large_string(values.type):
        return values
    texts = pc.utf8_trim_whitespace(values)
    return pc.if_else(pc.equal(texts, ""), None, texts)


def as_if_mixed(values: pa.Array) -> pa.Array:
    """Whole numbers above 2^53 as the floats that pandas makes of them where one row has none.

    Bytes as texts, too: that is what they are where one row of a column of texts holds bytes.

    >>> as_if_mixed(pa.array([2**53 + 1])).to_pylist(), as_if_mixed(pa.array([7])).type
    ([9007199254740992.0], DataType(int64))
    """
    if pa.types.is_dictionary(values.type):
        entries = values.dictionary
        mixed = as_if_mixed(entries)
        same = mixed is entries
        return values if same else pa.DictionaryArray.from_arrays(values.indices, mixed)
    if is_bytes(values.type):
        odd = "\ufffd"
        texts = (None if v is None else _text_of(v) or odd for v in values.to_pylist())
        return pa.array(texts, pa.string())
    if not pa.types.is_int64(values.type) and not pa.types.is_uint64(values.type):
        return values
    limits = pc.min_max(values)
    low, high = (limits[end].as_py() or 0 for end in ("min", "max"))
    return values if low >= -EXACT and high <= EXACT else values.cast(pa.float64(), safe=False)


def decoded(values: pa.Array) -> pa.Array:
    """The same values in a plain type, each by itself; Python objects of several types as text.

    >>> decoded(pa.array(["a", "b", "a"]).dictionary_encode()).to_pylist()
    ['a', 'b', 'a']
    """
    if pa.types.is_union(values.type):
        return joined(values, as_texts)
    values = plain(values)
    in_dictionary = pa.types.is_dictionary(values.type) and extension(values.type) is None
    return values.dictionary_decode() if in_dictionary else values


def person_texts(values: pa.Array, *, trim: bool = False) -> pa.Array:
    """Names of people as text, each by itself: 7 and 7.0 are the same person.

    A fraction, and bytes that are no text, name nobody, as if they were missing. A number that is
    too large to be exact is refused (``pa.ArrowInvalid``): two of them may read the same.

    Args:
        values: Of any type; Python objects of several types by the rule of each.
        trim: Whether spaces around texts do not count; one of spaces alone names nobody.
    """
    if pa.types.is_union(values.type):
        return joined(values, lambda part: person_texts(part, trim=trim))
    values = trimmed(values) if trim else decoded(values)
    kind = values.type
    if extension(kind) is not None:
        raise pa.ArrowInvalid("values of this type name nobody")
    if is_bytes(kind):
        return pa.array(map(_text_of, values.to_pylist()), pa.string())
    if has_scale(kind):
        return scaled_texts(values)
    if pa.types.is_timestamp(kind):
        zone = None if kind.tz is None else "UTC"
        values = values.cast(pa.timestamp("us", zone), safe=False)
    if not pa.types.is_floating(kind):
        return values.cast(pa.string())
    values = pc.if_else(pc.is_nan(values), None, values)
    if pc.any(pc.greater(pc.abs(values), float(EXACT))).as_py():
        raise pa.ArrowInvalid("a person's number is too large to be exact")
    whole = pc.equal(pc.floor(values), values)
    return pc.if_else(whole, values, None).cast(pa.int64()).cast(pa.string())


def has_text(kind: pa.DataType) -> bool:
    """Whether some kind of column holds values of this type."""
    return any(test(kind) for test in _HAVE_TEXT)


def as_texts(values: pa.Array) -> pa.Array:
    """Each value as the text that a CSV file would hold, without spaces around it; or null.

    Value by value, whatever the others are and whatever type they gave to the column: 1 and 1.0
    are "1", and a number of 2^53 or more, which a float may not hold, is null. Of types that no
    kind of column holds all are null.

    >>> as_texts(pa.array([1.0, 2.5, None])).to_pylist()
    ['1', '2.5', None]
    >>> as_texts(pa.array([7, 2**53])).to_pylist(), as_texts(pa.array(["1.0", "1.50"])).to_pylist()
    (['7', None], ['1', '1.50'])
    """
    values = decoded(values)
    kind = values.type
    if is_bytes(kind):
        return as_texts(pa.array(map(_text_of, values.to_pylist()), pa.string()))
    if not has_text(kind):
        return pa.nulls(len(values), pa.string())
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        values = values.cast(pa.timestamp(kind.unit, "UTC"))
    elif pa.types.is_floating(kind):
        values = _whole_or_not(values.cast(pa.float64()))
    elif pa.types.is_int64(kind) or pa.types.is_uint64(kind) or pa.types.is_decimal(kind):
        exact = pc.less(pc.abs(values.cast(pa.float64(), safe=False)), float(EXACT))
        values = pc.if_else(exact, values, None)
    texts = trimmed(scaled_texts(values) if has_scale(kind) else values.cast(pa.string()))
    return without_zeros(texts)


def _whole_or_not(values: pa.Array) -> pa.Array:
    values = pc.if_else(pc.less(pc.abs(values), float(EXACT)), values, None)  # nor NaN
    whole = pc.equal(pc.floor(values), values)
    digits = pc.if_else(whole, values, 0.0).cast(pa.int64()).cast(pa.string())
    return pc.if_else(whole, digits, values.cast(pa.string()))


def _text_of(value: bytes | None) -> str | None:
    """Bytes as the text that they are, if any: beside one row of bytes Arrow makes texts such."""
    try:
        return None if value is None else value.decode()
    except UnicodeDecodeError:
        return None


def is_bytes(kind: pa.DataType) -> bool:
    """Whether values are bytes, which are read as the texts that they are."""
    types = pa.types
    return bool(types.is_binary(kind) or types.is_large_binary(kind) or types.is_binary_view(kind))
