"""From values to codes and back: the only translation between a table and its counts.

``encode`` takes an Arrow array as it was read and gives small unsigned integers; ``decode`` draws
values for codes by the public rule of the column (uniform inside a bin). An error names the
column and the row, never the value.
"""

import re
from collections.abc import Callable
from functools import lru_cache, singledispatch
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.errors import TableError
from sfumato.randomness import Rng
from sfumato.schema import arrow_values
from sfumato.schema.arrow_values import (
    extension,
    has_scale,
    is_text,
    plain,
    plain_numbers,
    scaled_texts,
    shortened,
    without_zeros,
)
from sfumato.schema.calendar import pattern
from sfumato.schema.columns import OTHER, Boolean, Category, Column, Date, DateTime, Integer, Number
from sfumato.schema.values import FALSE, NUMBER, TRUE, expected

Read = Callable[[pa.Array], NDArray[np.bool_] | None]
"""Which of some values can be read, None for all; or an Arrow error, if one of them can't."""

_READABLE_WHOLE: Final = r"^-?[0-9]{1,19}(\.0*)?$"
"""A whole number as text that 64 bits may hold."""


def readable(column: Column, values: pa.Array, read: Read) -> pa.Array:
    """The same values, null where one can't be read.

    Args:
        column: What they should be.
        values: Of any type; of texts each different one is tried once.
        read: Tries values, all at once.
    """
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    if not is_text(values.type):
        return _without(values, _fits(column, values, read))
    entries = values.dictionary_encode()
    fits = _fits(column, entries.dictionary, read)
    if fits.all():
        return values
    rows = pc.fill_null(pa.array(fits).take(entries.indices), False)
    return pc.if_else(rows, values, pa.scalar(None, values.type))


def _without(values: pa.Array, fits: NDArray[np.bool_]) -> pa.Array:
    if not fits.any():
        return pa.nulls(len(values))  # of a type that every kind of column reads
    return values if fits.all() else pc.if_else(pa.array(fits), values, None)


def _fits(column: Column, values: pa.Array, read: Read) -> NDArray[np.bool_]:
    """Which values can be read: those that look so are tried, in halves where one fails."""
    looks = _looks(column, values)
    if looks is None:
        return _tried(values, read)
    indices = np.flatnonzero(looks)
    fits = np.zeros(len(values), dtype=np.bool_)
    fits[indices] = _tried(values.take(pa.array(indices)), read)
    return fits


def _tried(values: pa.Array, read: Read) -> NDArray[np.bool_]:
    try:
        known = read(values)
    except pa.ArrowNotImplementedError:  # for no value of this type
        return np.zeros(len(values), dtype=np.bool_)
    except pa.ArrowInvalid:
        if len(values) < 2:
            return np.zeros(len(values), dtype=np.bool_)
        middle = len(values) // 2
        return np.concatenate([_tried(values[:middle], read), _tried(values[middle:], read)])
    return np.ones(len(values), dtype=np.bool_) if known is None else known


def _looks(column: Column, values: pa.Array) -> NDArray[np.bool_] | None:
    """Which values a pattern lets pass as readable; None for types without a pattern."""
    written = _pattern(column)
    if is_text(values.type) and written is not None:
        looks: Any = pc.match_substring_regex(pc.utf8_trim_whitespace(values), written)
    elif pa.types.is_floating(values.type) and isinstance(column, Integer):
        whole = pc.equal(pc.floor(values), values)
        looks = pc.and_(whole, pc.less(pc.abs(values), _LARGE))
    else:
        return None
    return np.from_dlpack(pc.fill_null(looks, True).cast(pa.uint8())).view(np.bool_)


def _pattern(column: Column) -> str | None:
    if isinstance(column, Integer):
        return _READABLE_WHOLE
    if isinstance(column, Number):
        return NUMBER
    if isinstance(column, Date):
        return _plain(pattern(column.format or "%Y-%m-%d"))
    if isinstance(column, DateTime) and column.format is not None:
        return _plain(pattern(column.format))
    if isinstance(column, DateTime):
        begin, offset = _plain(pattern(None)).removesuffix("?$").rsplit("(?:", 1)
        return f"{begin}$" if column.zone is None else f"{begin}(?:{offset}$"
    return None


def _plain(named: str) -> str:
    """The same pattern without names of its groups."""
    return re.sub(r"\(\?P<.>", "(?:", named)


Codes = NDArray[np.unsignedinteger[Any]]

_WHOLE = r"^-?[0-9]+(\.0*)?$"
"""A whole number as text, of whatever length."""
_LARGE = 2.0**62
"""Whole numbers from here on lie beyond every limit of a column."""


def code_type(column: Column) -> type[np.unsignedinteger[Any]]:
    """The smallest unsigned integer type that holds the column's codes."""
    if column.size <= 2**8:
        return np.uint8
    return np.uint16 if column.size <= 2**16 else np.uint32


def encode(column: Column, values: pa.Array, *, first_row: int = 1) -> Codes:
    """The codes of one column's values; a value without a code is an error.

    Args:
        column: What they are declared to be.
        values: As they were read.
        first_row: The number of the first one, for messages.
    """
    values = prepared(column, values)
    if (odd := extension(values.type)) is not None:
        raise unknown_type(column, odd)
    by_entry = _codes_by_entry(column, values)
    codes, known = _checked_codes(column, values, first_row) if by_entry is None else by_entry
    if known is not None and not known.all():
        raise _misfit(column, values, int(np.argmin(known)), first_row)
    if values.null_count:
        absent = _numpy(values.is_null())
        if column.missing_code is None:
            raise _missing(column, int(np.argmax(absent)), first_row)
        codes[absent] = column.missing_code
    return codes


def fit(column: Column, values: pa.Array) -> tuple[Codes, NDArray[np.bool_] | None]:
    """The codes of one column's values, and which of them did not fit; None if all did.

    Every value has a code, by a public rule and by itself, whatever the others are: one that can't
    be read, or is not declared, counts as other, else as missing, else as the first code; one that
    is not there as missing, else as other, else as the first code.
    """
    values = prepared(column, values)
    if extension(values.type) is not None:
        values = pa.nulls(len(values))
    codes, unfit = _fitted(column, values)
    if values.null_count:
        absent = _numpy(values.is_null())
        codes[absent] = column.absent_code
        if column.missing_code is None:
            unfit = absent if unfit is None else unfit | absent
    return codes, unfit


def _fitted(column: Column, values: pa.Array) -> tuple[Codes, NDArray[np.bool_] | None]:
    """The codes of the values that are there, and which of them have none of their own."""
    by_entry = _codes_by_entry(column, values)
    if by_entry is not None:
        return by_entry
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    try:
        codes, known = _regular_codes(column, values)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        known = None
    else:
        if known is None or known.all():
            return codes, None
    usable = readable(column, values, lambda some: _regular_codes(column, some)[1])
    unfit = _numpy(pc.and_(usable.is_null(), values.is_valid())).copy()
    codes, _ = _regular_codes(column, usable)
    codes[unfit] = column.unfit_code
    if isinstance(column, Integer | Number) and unfit.any():
        indices = np.flatnonzero(unfit)
        side = side_of_limits(column, values.take(pa.array(indices)))
        codes[indices[side < 0]] = 0
        codes[indices[side > 0]] = column.size - column.missing - 1
        unfit[indices[side != 0]] = False
    return codes, unfit if unfit.any() else None


def side_of_limits(column: Integer | Number, values: pa.Array) -> NDArray[np.int64]:
    """-1 for numbers below all that fit, 1 for those above, 0 for other values."""
    if is_text(values.type):
        texts = pc.utf8_trim_whitespace(values)
        known = pc.match_substring_regex(texts, NUMBER if isinstance(column, Number) else _WHOLE)
        sign = np.where(_numpy(pc.starts_with(texts, "-")), -1, 1)
        return np.where(_numpy(known), sign, 0)
    types = pa.types
    if not any(
        test(values.type) for test in (types.is_floating, types.is_integer, types.is_decimal)
    ):
        return np.zeros(len(values), dtype=np.int64)
    numbers = _numpy(floats(values))
    beyond = np.isinf(numbers) | (
        isinstance(column, Integer) & (np.abs(numbers) >= _LARGE) & (np.floor(numbers) == numbers)
    )
    return np.where(beyond, np.sign(numbers), 0).astype(np.int64)


def prepared(column: Column, values: pa.Array) -> pa.Array:
    """The values in a form that can be read, null where they are declared to be none."""
    values = _readable(values)
    if extension(values.type) is not None:
        return values
    values = _without_missing_texts(column, values)
    return plain_numbers(column, values) if isinstance(column, Integer | Number) else values


def _readable(values: pa.Array) -> pa.Array:
    """The same values in one of the forms that Arrow's functions take, NaN as missing."""
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    values = plain(values)
    if extension(values.type) is not None:
        return values
    if pa.types.is_dictionary(values.type) and not _is_plain(values.dictionary):
        values = values.dictionary_decode()
    if pa.types.is_float16(values.type):
        values = values.cast(pa.float32())
    if pa.types.is_floating(values.type):
        values = pc.if_else(pc.is_nan(values), None, values)
    if pa.types.is_timestamp(values.type) and values.type.tz is not None:
        values = values.cast(
            pa.timestamp(values.type.unit, "UTC")
        )  # one row may take the zone away
    return values


def _without_missing_texts(column: Column, values: pa.Array) -> pa.Array:
    """The same values, null where the column declares that a text, or a number, is none."""
    if not column.missing_texts:
        return values
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    kind = values.type
    numeric = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
    if not is_text(kind) and not any(test(kind) for test in numeric):
        return values
    texts = pc.utf8_trim_whitespace(_as_text(values))
    absent = _indices(texts, _declared_for(kind, column.missing_texts)).is_valid()
    return pc.if_else(absent, pa.scalar(None, kind), values)


def _checked_codes(
    column: Column, values: pa.Array, first_row: int
) -> tuple[Codes, NDArray[np.bool_] | None]:
    """The codes of each value by itself; the first that can't be read is named."""
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    try:
        return _regular_codes(column, values)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise _misfit(column, values, _first_misfit(column, values), first_row) from None


def _codes_by_entry(column: Column, values: pa.Array) -> tuple[Codes, None] | None:
    """Each different value translated once; None where that saves nothing or one does not fit."""
    costly = pa.types.is_integer if isinstance(column, Category) else is_text
    if costly(values.type):
        values = values.dictionary_encode()
    if not pa.types.is_dictionary(values.type) or not 0 < len(values.dictionary) <= len(values):
        return None
    try:
        entries, known = _regular_codes(column, values.dictionary)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None
    if known is not None and not known.all():
        return None
    indices = pc.fill_null(values.indices, 0) if values.null_count else values.indices
    return entries[_numpy(indices)], None


def decode(column: Column, codes: Codes, *, rng: Rng) -> pa.Array:
    """Values for codes: the declared text or number, or a uniform draw inside the bin."""
    missing = column.missing_code
    absent = None if missing is None else codes == missing
    inside = codes if absent is None else np.where(absent, 0, codes)
    return _values(column, inside.astype(np.int64), absent, rng)


@singledispatch
def _regular_codes(column: Any, values: pa.Array) -> tuple[Codes, NDArray[np.bool_] | None]:
    """Codes of the values that are there, and which of them fit (None: all). Nulls: any code."""
    raise TypeError(f"not a column: {column!r}")


@_regular_codes.register
def _category_codes(column: Category, values: pa.Array) -> tuple[Codes, NDArray[np.bool_] | None]:
    indices = _indices(_as_text(values), _declared_for(values.type, column.values))
    large = _inexact(values)
    if not indices.null_count and large is None:
        return _numpy(indices).astype(code_type(column)), None
    other = column.other_code
    codes = _numpy(pc.fill_null(indices, 0 if other is None else other)).astype(code_type(column))
    known = None
    if other is None:
        known = _numpy(pc.or_(indices.is_valid(), values.is_null()))
    if large is not None:
        known = ~large if known is None else known & ~large
    return codes, known


@_regular_codes.register
def _boolean_codes(column: Boolean, values: pa.Array) -> tuple[Codes, NDArray[np.bool_] | None]:
    if pa.types.is_boolean(values.type):
        codes = _numpy(pc.fill_null(values.cast(pa.uint8()), 0))
        return codes.astype(code_type(column)), None
    text = pc.utf8_trim_whitespace(_as_text(values))
    false, true = (FALSE, TRUE) if column.texts is None else ((t,) for t in column.texts)
    text = pc.utf8_lower(text) if column.texts is None else text
    indices = _indices(text, _declared_for(values.type, (*false, *true)))
    known = _numpy(pc.or_(indices.is_valid(), values.is_null()))
    codes = _numpy(pc.fill_null(indices, 0)) >= len(false)
    return codes.astype(code_type(column)), known


@_regular_codes.register
def _integer_codes(column: Integer, values: pa.Array) -> tuple[Codes, NDArray[np.bool_] | None]:
    if pa.types.is_temporal(values.type):
        raise pa.ArrowInvalid("a time is not a number, though Arrow would read it as one")
    if is_text(values.type):
        values = _whole_numbers(values)
    if not pa.types.is_integer(values.type) or pa.types.is_uint64(values.type):
        values = values.cast(pa.int64())
    if values.null_count:
        values = pc.fill_null(
            values, pa.scalar(column.low, pa.int64()).cast(values.type, safe=False)
        )
    numbers = _numpy(values)
    if numbers.size and (numbers.min() < column.low or numbers.max() > column.high):
        numbers = np.clip(numbers.astype(np.int64), column.low, column.high)
    if column.low:
        numbers = numbers.astype(np.int64) - column.low
    if column.step is None:
        return _binned(column, _nearest_cell(column, numbers)).astype(code_type(column)), None
    if column.step > 1:
        numbers = numbers.astype(np.int64) // column.step
    return numbers.astype(code_type(column)), None


def _nearest_cell(column: Integer, above_low: NDArray[Any]) -> NDArray[Any]:
    """The cells of whole numbers; halfway between two, the upper one."""
    if column.resolution == 1:
        return above_low
    cells = (above_low.astype(np.int64) + column.resolution // 2) // column.resolution
    return np.minimum(cells, column.cells - 1)


def _binned(column: Integer | Number, cells: NDArray[Any]) -> NDArray[Any]:
    """The bins of cells, where there are bins."""
    if column.bins is None:
        return cells
    return np.searchsorted(np.array(column.bins), cells, side="right") - 1


@_regular_codes.register
def _number_codes(column: Number, values: pa.Array) -> tuple[Codes, NDArray[np.bool_] | None]:
    if is_text(values.type):
        values = pc.utf8_trim_whitespace(values)
    numbers = _numpy(pc.fill_null(floats(values), column.limits[0]))
    if not np.isfinite(numbers).all():
        return np.zeros(numbers.size, dtype=code_type(column)), np.isfinite(numbers)
    if column.edges is None:
        scale = column.scale
        low, step = scale.number(0), scale.step / 10**scale.digits
        cells = np.rint((np.clip(numbers, *column.limits) - low) / step)
        return _binned(column, cells.astype(np.int64)).astype(code_type(column)), None
    inner = np.array(column.edges[1:-1], dtype=np.float64)
    bins = np.searchsorted(inner, numbers, side="right")
    return bins.astype(code_type(column)), None


@_regular_codes.register
def _date_codes(column: Date, values: pa.Array) -> tuple[Codes, NDArray[np.bool_] | None]:
    return arrow_values.day_periods(column, values).astype(code_type(column)), None


@_regular_codes.register
def _datetime_codes(column: DateTime, values: pa.Array) -> tuple[Codes, NDArray[np.bool_] | None]:
    return arrow_values.time_periods(column, values).astype(code_type(column)), None


@singledispatch
def _values(column: Any, codes: NDArray[np.int64], absent: Any, rng: Rng) -> pa.Array:
    """Values for regular codes; ``absent`` masks what becomes null."""
    raise TypeError(f"not a column: {column!r}")


@_values.register
def _category_values(column: Category, codes: NDArray[np.int64], absent: Any, rng: Rng) -> pa.Array:
    texts = pa.array([*column.values, *([OTHER] if column.other else [])], pa.string())
    return texts.take(pa.array(codes, mask=absent))


@_values.register
def _boolean_values(column: Boolean, codes: NDArray[np.int64], absent: Any, rng: Rng) -> pa.Array:
    return pa.array(codes == 1, mask=absent)


@_values.register
def _integer_values(column: Integer, codes: NDArray[np.int64], absent: Any, rng: Rng) -> pa.Array:
    if column.step is None:
        cells = _drawn_cells(column, codes, rng)
        return pa.array(column.low + cells * column.resolution, mask=absent)
    starts = column.low + codes * column.step
    if column.step > 1:
        widths = np.minimum(column.step, column.high - starts + 1)
        starts = starts + (rng.uniform(codes.size) * widths).astype(np.int64)
    return pa.array(starts, mask=absent)


@_values.register
def _number_values(column: Number, codes: NDArray[np.int64], absent: Any, rng: Rng) -> pa.Array:
    if column.edges is None:
        scale = column.scale
        whole = scale.low + _drawn_cells(column, codes, rng) * scale.step
        return pa.array(whole / 10.0**scale.digits, mask=absent)
    if column.decimals is not None:
        firsts, lasts = np.array(column.grid, dtype=np.int64).T
        whole = arrow_values.inside(firsts[codes], lasts[codes] + 1, rng)
        return pa.array(whole / 10.0**column.decimals, mask=absent)
    edges = np.array(column.edges, dtype=np.float64)
    left, right = edges[codes], edges[codes + 1]
    part = rng.uniform(codes.size)
    drawn = (1 - part) * left + part * right  # not left + part * (right - left): may overflow
    return pa.array(np.clip(drawn, left, np.nextafter(right, left)), mask=absent)


def _drawn_cells(column: Integer | Number, codes: NDArray[np.int64], rng: Rng) -> NDArray[np.int64]:
    """A cell of each bin, every one as likely."""
    if column.bins is None:
        return codes
    firsts, lasts = np.array(column.bin_ends, dtype=np.int64).T
    return arrow_values.inside(firsts[codes], lasts[codes] + 1, rng)


@_values.register
def _date_values(column: Date, codes: NDArray[np.int64], absent: Any, rng: Rng) -> pa.Array:
    return arrow_values.draw_days(column, codes, absent, rng)


@_values.register
def _datetime_values(column: DateTime, codes: NDArray[np.int64], absent: Any, rng: Rng) -> pa.Array:
    return arrow_values.draw_times(column, codes, absent, rng)


def _as_text(values: pa.Array) -> pa.Array:
    """Values as the text a person would write: 1.0 read for a column of 1, 2, 3 is "1"."""
    if pa.types.is_floating(values.type):
        whole = values.cast(pa.int64(), safe=False)
        same = pc.equal(whole.cast(values.type, safe=False), values)
        # value by value: what one row reads as must not depend on the other rows
        return pc.if_else(same, whole.cast(pa.string()), values.cast(pa.string()))
    if has_scale(values.type):
        return scaled_texts(values)
    return values if pa.types.is_string(values.type) else values.cast(pa.string())


def _indices(texts: pa.Array, declared: pa.Array) -> pa.Array:
    """The index of each text among the declared ones; else of what is the same whole number.

    Tools write 1.0 for 1 where another row has no value: what a row reads as is its own.
    """
    indices = pc.index_in(texts, value_set=declared)
    if indices.null_count == texts.null_count:
        return indices
    return pc.coalesce(
        indices, pc.index_in(without_zeros(texts), value_set=without_zeros(declared))
    )


def _inexact(values: pa.Array) -> NDArray[np.bool_] | None:
    """Which floats stand for whole numbers that they can't hold exactly; None if none does.

    What is above 64 bits was never stored as a whole number: it is a text like any other.
    """
    if not pa.types.is_floating(values.type):
        return None
    most = 2.0**24 if pa.types.is_float32(values.type) else 2.0**53
    size = pc.abs(values)
    large = pc.and_(pc.greater(size, most), pc.less_equal(size, 2.0**64))
    return _numpy(pc.fill_null(large, False)) if pc.any(large).as_py() else None


def floats(values: pa.Array) -> pa.Array:
    """Numbers, or texts of numbers, as floats: each the nearest one, whatever the others are."""
    if pa.types.is_decimal(values.type):  # Arrow's own way rounds by the scale of the column
        values = scaled_texts(values)
    return values.cast(pa.float64(), safe=not pa.types.is_integer(values.type))


def _numpy(values: pa.Array) -> NDArray[Any]:
    """Values without nulls as they are in memory (``to_numpy`` would load pandas, if installed)."""
    if pa.types.is_boolean(values.type):
        return np.from_dlpack(values.cast(pa.uint8())).view(np.bool_)
    return np.from_dlpack(values)


def _is_plain(entries: pa.Array) -> bool:
    """Whether a dictionary holds no missing value, as null or as NaN."""
    return not entries.null_count and not pa.types.is_floating(entries.type)


def _whole_numbers(texts: pa.Array) -> pa.Array:
    """Text as whole numbers; 41.0, which tools write when others are missing, is 41."""
    texts = pc.utf8_trim_whitespace(texts)
    if pc.any(pc.match_substring(texts, "x", ignore_case=True)).as_py():
        raise pa.ArrowInvalid("Arrow would read 0x1F as 31, and nobody else does")
    try:
        return texts.cast(pa.int64())
    except pa.ArrowInvalid:  # text by text, so that no value's reading depends on another
        return pc.replace_substring_regex(texts, pattern=r"\.0*$", replacement="").cast(pa.int64())


def _declared_for(kind: pa.DataType, values: tuple[str, ...]) -> pa.Array:
    """Declared texts as values of a type are compared with: 1.50 means the decimal 1.5."""
    return _declared(values, has_scale(kind))


@lru_cache(maxsize=1024)
def _declared(values: tuple[str, ...], short: bool) -> pa.Array:
    texts = pa.array(values, pa.string())
    return shortened(texts) if short else texts


def _first_misfit(column: Column, values: pa.Array) -> int:
    """The first value that can't be read, by bisection: only after an error."""
    low, high = 0, len(values)
    while high - low > 1:
        middle = (low + high) // 2
        try:
            _, known = _regular_codes(column, values[low:middle])
            fits = known is None or bool(known.all())
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            fits = False
        low, high = (middle, high) if fits else (low, middle)
    return low


def _misfit(column: Column, values: pa.Array, row: int, first_row: int) -> TableError:
    what = expected(column)
    if isinstance(column, Category):
        if _inexact(values[row : row + 1]) is not None:
            what = (
                "exact: a float of this size may stand for several whole numbers. Read it as text"
            )
        else:
            what += '. Declare it, or add "other": true'
    return TableError(f"column {column.name!r}, row {first_row + row}: the value is not {what}.")


def unknown_type(column: Column, name: str) -> TableError:
    """The refusal of a type that no kind of column holds."""
    return TableError(
        f"column {column.name!r}: no kind of column holds values of the type {name[:60]}. Turn "
        "them into text, numbers or dates first, or leave the column out."
    )


def _missing(column: Column, row: int, first_row: int) -> TableError:
    return TableError(
        f"column {column.name!r}, row {first_row + row}: the value is missing, but the schema "
        f'declares none missing. Add "missing": true to {column.name!r}.'
    )
