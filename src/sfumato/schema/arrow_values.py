"""Values in the types that Arrow's functions take; days and moments put into periods.

A column of decimals, or of times, has one scale for all rows, and tools take it from the longest
value. What a row says must not depend on the others: the zeros that a scale adds are not read.
Moments are whole numbers of microseconds since 1970; a value of another unit is compared with the
beginnings of periods in its own unit, so nothing overflows and nothing is rounded across one.
"""

import re
from collections.abc import Callable, Mapping
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.randomness import Rng
from sfumato.schema.calendar import PRECISIONS, pattern
from sfumato.schema.columns import Date, DateTime
from sfumato.schema.number_texts import (
    PLAIN_MARKS,
    UNREADABLE,
    NumberColumn,
    number_pattern,
    separators,
)

_ZEROS: Final = r"(?:\.0+|(\.[0-9]*[1-9])0+)(Z|[+-][0-9:]+)?$"
"""At the end of a number or time, before its offset."""


def plain(values: pa.Array) -> pa.Array:
    """The same values without views, short decimals and extensions that stand for a plain type.

    >>> plain(pa.array(["a"], pa.string_view())).type
    DataType(string)
    """
    kind = values.type
    if pa.types.is_dictionary(kind):
        entries = values.dictionary
        plain_entries = plain(entries)
        return values if plain_entries is entries else _with_entries(values, plain_entries)
    if pa.types.is_string_view(kind):
        return values.cast(pa.string())
    if pa.types.is_decimal(kind) and kind.bit_width < 128:
        return values.cast(pa.decimal128(kind.precision, kind.scale))
    if isinstance(kind, pa.BaseExtensionType) and kind.extension_name in _STANDS_FOR:
        return plain(_STANDS_FOR[kind.extension_name](values))
    return values


def extension(kind: pa.DataType) -> str | None:
    """The name of the extension type that values, or the entries of a dictionary, have."""
    entries = kind.value_type if pa.types.is_dictionary(kind) else kind
    return entries.extension_name if isinstance(entries, pa.BaseExtensionType) else None


def has_scale(kind: pa.DataType) -> bool:
    """Whether Arrow writes all values of this type with the same number of digits."""
    return bool(pa.types.is_decimal(kind) or pa.types.is_timestamp(kind) or pa.types.is_time(kind))


def scaled_texts(values: pa.Array) -> pa.Array:
    """Values of a type that has a scale as text, each as if it were alone.

    >>> scaled_texts(pa.array([Decimal("1.50"), Decimal("2.25"), Decimal("3")])).to_pylist()
    ['1.5', '2.25', '3']
    """
    texts = values.cast(pa.string())
    if pa.types.is_decimal(values.type) and pc.any(pc.match_substring(texts, "E")).as_py():
        texts = pa.array(map(_without_exponent, texts.to_pylist()), pa.string())
    return shortened(texts)


def shortened(texts: pa.Array) -> pa.Array:
    """Texts of numbers and times without zeros at their end: 1.50 is 1.5, and 2.00 is 2."""
    return pc.replace_substring_regex(texts, pattern=_ZEROS, replacement=r"\1\2")


def without_zeros(texts: pa.Array) -> pa.Array:
    """Texts, those of whole numbers without a point: tools write 41.0 where others are missing.

    >>> without_zeros(pa.array(["41.0", "1.50", "v1.0"])).to_pylist()
    ['41', '1.50', 'v1.0']
    """
    return pc.replace_substring_regex(texts, pattern=r"^(-?[0-9]+)\.0+$", replacement=r"\1")


def plain_numbers(column: NumberColumn, values: pa.Array) -> pa.Array:
    """Texts of numbers as programs write them, each by itself; other values as they are.

    The rule is that of ``number_texts.plain_text``, each different text taken once.
    """
    entries = values.dictionary if pa.types.is_dictionary(values.type) else values
    if (column.decimal, column.thousands) == PLAIN_MARKS or not is_text(entries.type):
        return values
    if entries is values:
        values = values.dictionary_encode()
        entries = values.dictionary
    texts = pc.utf8_trim_whitespace(entries)
    fits = pc.match_substring_regex(texts, number_pattern(column.decimal, column.thousands))
    for mark in separators(column.thousands):
        texts = pc.replace_substring(texts, mark, "")
    texts = pc.replace_substring(texts, column.decimal, ".")
    return _with_entries(values, pc.if_else(fits, texts, UNREADABLE))


def marked_numbers(column: NumberColumn, texts: pa.ChunkedArray) -> pa.ChunkedArray:
    """Texts of numbers as programs write them, as the column writes them.

    >>> from sfumato.schema import Integer
    >>> pay = Integer(name="pay", low=0, high=999, thousands="'")
    >>> marked_numbers(pay, pa.chunked_array([["1234567", "-1000", "999"]])).to_pylist()
    ["1'234'567", "-1'000", '999']
    """
    texts = pc.replace_substring(texts, ".", column.decimal)
    groups = r"^([+-]?[0-9]+)([0-9]{3})"  # the last three digits that stand before any mark
    while column.thousands and pc.any(pc.match_substring_regex(texts, groups)).as_py():
        texts = pc.replace_substring_regex(texts, groups, rf"\1{column.thousands}\2")
    return texts


def _with_entries(values: pa.Array, entries: pa.Array) -> pa.Array:
    return pa.DictionaryArray.from_arrays(values.indices, entries)


def _without_exponent(text: str | None) -> str | None:
    return None if text is None else f"{Decimal(text):f}"


def _uuid_texts(values: Any) -> pa.Array:
    """As PostgreSQL and DuckDB write them."""
    texts = (None if each is None else str(UUID(bytes=each)) for each in values.storage.to_pylist())
    return pa.array(texts, pa.string())


_STANDS_FOR: Final[Mapping[str, Callable[[Any], pa.Array]]] = {
    "arrow.bool8": lambda values: values.storage.cast(pa.bool_()),
    "arrow.json": lambda values: values.storage,
    "arrow.uuid": _uuid_texts,
}


_DAY_ZERO: Final = date(1970, 1, 1)
_ZERO: Final = datetime(1970, 1, 1)
_MICROSECOND: Final = timedelta(microseconds=1)
_IN_MICROSECONDS: Final = {"s": 10**6, "ms": 1_000, "us": 1}
_WIDTHS: Final = {"Y": 4, "f": 6}
_TOO_FINE: Final = r"(\.[0-9]{6})[0-9]+"


def day_periods(column: Date, values: pa.Array) -> NDArray[np.int64]:
    """Which period each day lies in; nulls in any."""
    if is_text(values.type):
        values = _days_from_text(column, values)
    elif not pa.types.is_temporal(values.type) and not pa.types.is_null(values.type):
        raise pa.ArrowInvalid("a number is not a day, though Arrow would read it as one")
    days = pc.fill_null(values.cast(pa.date32(), safe=False), column.low).cast(pa.int32())
    if column.on_grid and column.bins is None:
        cells = np.from_dlpack(days).astype(np.int64) - (column.low - _DAY_ZERO).days
        return np.clip(cells, 0, column.cells - 1)
    return _period_indices(_first_days(column), np.from_dlpack(days))


def time_periods(column: DateTime, values: pa.Array) -> NDArray[np.int64]:
    """Which period each moment lies in; nulls in any."""
    kind = values.type
    if is_text(kind):
        values = moments_from_text(column, values)
    elif pa.types.is_date(kind) and column.zone is None:
        values = values.cast(pa.timestamp("ms"))
    elif pa.types.is_null(kind):
        values = values.cast(pa.timestamp("us"))
    elif not pa.types.is_timestamp(kind) or (kind.tz is None) != (column.zone is None):
        raise pa.ArrowInvalid("a moment has an offset exactly where the column has a zone")
    unit = values.type.unit
    ticks = pc.fill_null(values.cast(pa.int64()), 0)
    if column.on_grid and column.bins is None:
        return _cells_of(column, np.from_dlpack(ticks), unit)
    return _period_indices(_starts_in(column, unit), np.from_dlpack(ticks))


def _cells_of(column: DateTime, ticks: NDArray[Any], unit: str) -> NDArray[np.int64]:
    """The moments of the column's precision that ticks of a unit lie in."""
    micros = ticks // 1_000 if unit == "ns" else ticks
    low, high = ((limit - _ZERO) // _MICROSECOND for limit in column.limits)
    scale = _IN_MICROSECONDS.get(unit, 1)
    inside_limits = np.clip(micros, low // scale, -(-high // scale)) * scale
    cells = (np.clip(inside_limits, low, high) - low) // PRECISIONS[column.precision]
    return np.asarray(cells, dtype=np.int64)


def draw_days(column: Date, codes: NDArray[np.int64], absent: Any, rng: Rng) -> pa.Array:
    """A day of each period, every one as likely."""
    if column.on_grid and column.bins is None:
        days = codes + (column.low - _DAY_ZERO).days
        return pa.array(days.astype(np.int32), pa.int32(), mask=absent).cast(pa.date32())
    starts = _first_days(column)
    ends = np.append(starts[1:], (column.high - _DAY_ZERO).days + 1)
    drawn = inside(starts[codes], ends[codes], rng)
    return pa.array(drawn.astype(np.int32), pa.int32(), mask=absent).cast(pa.date32())


def draw_times(column: DateTime, codes: NDArray[np.int64], absent: Any, rng: Rng) -> pa.Array:
    """A moment of each period, every whole one of the column's precision as likely."""
    grain = PRECISIONS[column.precision]
    if column.on_grid and column.bins is None:
        drawn = codes * grain + (column.limits[0] - _ZERO) // _MICROSECOND
    else:
        starts = _first_moments(column)
        past = (column.limits[1] - _ZERO) // _MICROSECOND + 1
        begins = starts // grain
        ends = -(-np.append(starts[1:], past) // grain)
        drawn = inside(begins[codes], ends[codes], rng) * grain
    kind = pa.timestamp(column.unit, tz=column.zone)
    micros = pa.array(drawn, pa.int64(), mask=absent).cast(pa.timestamp("us", tz=column.zone))
    return micros.cast(kind, safe=False)


def written_days(texts: pa.Array, written: str) -> pa.Array:
    """Texts of a declared format as days; ``pa.ArrowInvalid`` if one is none.

    >>> written_days(pa.array(["1.2.2024"]), "%d.%m.%Y").to_pylist()
    [datetime.date(2024, 2, 1)]
    """
    parts = _parts(texts, written)
    return _joined("-", *(parts[name] for name in "Ymd")).cast(pa.date32())


def is_text(kind: pa.DataType) -> bool:
    """Whether Arrow holds text in one of the two forms that its functions take."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _period_indices(starts: NDArray[np.int64], values: NDArray[Any]) -> NDArray[np.int64]:
    indices: NDArray[np.int64] = np.searchsorted(starts, values, side="right") - 1
    indices[indices < 0] = 0
    return indices


def inside(begins: NDArray[np.int64], ends: NDArray[np.int64], rng: Rng) -> NDArray[np.int64]:
    """Whole numbers from ``begins`` to below ``ends``, uniform; post-processing, never noise."""
    widths = ends - begins
    steps = (rng.uniform(begins.size) * widths).astype(np.int64)
    drawn: NDArray[np.int64] = begins + np.minimum(steps, widths - 1)
    return drawn


def _days_from_text(column: Date, values: pa.Array) -> pa.Array:
    texts = pc.utf8_trim_whitespace(values)
    return texts.cast(pa.date32()) if column.format is None else written_days(texts, column.format)


def moments_from_text(column: DateTime, values: pa.Array) -> pa.Array:
    """Text by text, as ``calendar.iso_text`` reads one; Arrow knows the calendar and offsets."""
    texts = pc.utf8_trim_whitespace(values)
    iso = _iso(texts) if column.format is None else _as_iso(texts, column.format)
    return iso.cast(pa.timestamp("us", tz=None if column.zone is None else "UTC"))


def _iso(texts: pa.Array) -> pa.Array:
    """The same texts if all are ISO, digits beyond microseconds cut: faster than taking apart."""
    without_names = re.sub(r"\(\?P<.>", "(?:", pattern(None))
    if not pc.all(pc.match_substring_regex(texts, pattern=without_names), min_count=0).as_py():
        raise pa.ArrowInvalid("a text is not an ISO time")
    if pc.any(pc.match_substring_regex(texts, pattern=_TOO_FINE)).as_py():
        return pc.replace_substring_regex(texts, pattern=_TOO_FINE, replacement=r"\1")
    return texts


def _as_iso(texts: pa.Array, written: str) -> pa.Array:
    parts = _parts(texts, written)
    days = _joined("-", *(parts[name] for name in "Ymd"))
    clock = _joined(":", *(parts[name] for name in "HMS"))
    return _joined("", days, pa.scalar("T"), clock, pa.scalar("."), parts["f"], parts["z"])


def _parts(texts: pa.Array, written: str) -> dict[str, pa.Array]:
    """The digits of year, month, ... of each text, with zeros where there are none."""
    parts = pc.extract_regex(texts.cast(pa.string()), pattern=pattern(written))
    if parts.null_count > texts.null_count:
        raise pa.ArrowInvalid("a text is not written in the declared format")
    names = {parts.type.field(index).name for index in range(parts.type.num_fields)}
    out = {name: pc.struct_field(parts, name) for name in names}
    nothing = pc.if_else(texts.is_valid(), "", None)
    zeros = {name: out.get(name, nothing) for name in "YmdHMS"}
    padded = {n: pc.utf8_lpad(t, _WIDTHS.get(n, 2), "0") for n, t in zeros.items()}
    fraction = pc.utf8_rpad(out.get("f", nothing), _WIDTHS["f"], "0")
    return padded | {"f": fraction, "z": out.get("z", nothing)}


def _joined(mark: str, *texts: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise(*texts, mark)


@lru_cache(maxsize=1024)
def _first_days(column: Date) -> NDArray[np.int64]:
    return np.array([(start - _DAY_ZERO).days for start in column.starts], dtype=np.int64)


@lru_cache(maxsize=1024)
def _first_moments(column: DateTime) -> NDArray[np.int64]:
    starts = [(start - _ZERO) // _MICROSECOND for start in column.starts]
    return np.array(starts, dtype=np.int64)


@lru_cache(maxsize=1024)
def _starts_in(column: DateTime, unit: str) -> NDArray[np.int64]:
    """The first tick of a unit that is not before each beginning."""
    starts = _first_moments(column)
    if unit == "ns":
        furthest = np.iinfo(np.int64).max // 1_000
        return np.clip(starts, -furthest, furthest) * 1_000
    return -(-starts // _IN_MICROSECONDS[unit])
