"""A published table as text: in the words and formats that its schema declares.

Parquet keeps types; a CSV file has only text, so that is written as the table came in: days and
moments in their format, truth values in their words, missing values as the declared text.
"""

from functools import singledispatch
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from sfumato.schema import Boolean, Column, Date, DateTime, Number, Schema

FORMULA_STARTS: Final = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
_MOMENTS: Final = {"hour": "%Y-%m-%dT%H:%M", "minute": "%Y-%m-%dT%H:%M"}
_SECONDS: Final = "%Y-%m-%dT%H:%M:%S"
_UNITS: Final = {"millisecond": "ms", "microsecond": "us"}


def as_written(schema: Schema, table: pa.Table) -> pa.Table:
    """The table with each column as its schema writes it, safe for a spreadsheet."""
    columns = [_column(schema[name], table.column(name)) for name in table.column_names]
    return pa.table(columns, names=_safe_names(table))


def without_formulas(table: pa.Table) -> pa.Table:
    """Text that a spreadsheet would run, names of columns too, gets a quote in front."""
    columns = [_safe(column) for column in table.columns]
    return pa.table(columns, names=_safe_names(table))


def _column(column: Column, values: pa.ChunkedArray) -> pa.ChunkedArray:
    written = _written(column, values)
    if not column.missing_texts or not values.null_count:
        return written
    return pc.fill_null(written.cast(pa.string()), _safe_text(column.missing_texts[0]))


@singledispatch
def _written(column: Any, values: pa.ChunkedArray) -> pa.ChunkedArray:
    """The values as text where the column says how; else as they are, made safe."""
    return _safe(values)


@_written.register(Boolean)
def _(column: Boolean, values: pa.ChunkedArray) -> pa.ChunkedArray:
    if column.texts is None:
        return values
    false, true = map(_safe_text, column.texts)
    return pc.if_else(values, true, false)


@_written.register(Number)
def _(column: Number, values: pa.ChunkedArray) -> pa.ChunkedArray:
    if column.decimals is None:
        return values
    digits = len(str(max(abs(edge) for pair in column.grid for edge in pair)))
    exact = pa.decimal128(max(digits, column.decimals) + 1, column.decimals)
    return pc.round(values, ndigits=column.decimals).cast(exact)


@_written.register(Date)
def _(column: Date, values: pa.ChunkedArray) -> pa.ChunkedArray:
    return values if column.format is None else pc.strftime(values, format=column.format)


@_written.register(DateTime)
def _(column: DateTime, values: pa.ChunkedArray) -> pa.ChunkedArray:
    plain = _MOMENTS.get(column.precision, _SECONDS) + ("%z" if column.zone else "")
    shown = column.format or plain
    finer = _UNITS.get(column.precision, "s")
    if column.format is not None and "%f" not in column.format:
        finer = "s"
    moments = values.cast(pa.timestamp(finer, tz=column.zone), safe=False)
    return pc.strftime(moments, format=shown.replace("%S.%f", "%S"))


def _safe(values: pa.ChunkedArray) -> pa.ChunkedArray:
    if pa.types.is_dictionary(values.type):
        values = values.cast(pa.string())
    if not pa.types.is_string(values.type):
        return values
    risky = pc.is_in(pc.utf8_slice_codeunits(values, 0, 1), value_set=pa.array(FORMULA_STARTS))
    return pc.if_else(risky, pc.binary_join_element_wise("'", values, ""), values)


def _safe_names(table: pa.Table) -> list[str]:
    names = table.column_names
    return [f"'{name}" if name.startswith(FORMULA_STARTS) else name for name in names]


def _safe_text(text: str) -> str:
    return f"'{text}" if text.startswith(FORMULA_STARTS) and not _is_plain(text) else text


def _is_plain(text: str) -> bool:
    """Whether a text is dashes or a number, which no spreadsheet runs."""
    return not text.strip("-") or text.removeprefix("-").isdecimal()
