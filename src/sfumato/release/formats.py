"""Published rows in other forms: text in the words of their schema, frames of pandas and Polars.

Parquet keeps types; a CSV file has only text, so that is written as the table came in: days,
moments and numbers in their format, truth values in their words, missing values as the declared
text. What Arrow does not know is taken from the schema: the declared values of a category and their
order, and that a whole number or a truth value may be missing.
"""

import json
from functools import singledispatch
from importlib import import_module
from types import ModuleType
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from sfumato.errors import InputError
from sfumato.schema import Boolean, Category, Column, Date, DateTime, Integer, Number, Schema
from sfumato.schema.arrow_values import marked_numbers

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
def _written_truth_values(column: Boolean, values: pa.ChunkedArray) -> pa.ChunkedArray:
    if column.texts is None:
        return values
    false, true = map(_safe_text, column.texts)
    return pc.if_else(values, true, false)


@_written.register(Integer)
def _written_whole_numbers(column: Integer, values: pa.ChunkedArray) -> pa.ChunkedArray:
    return _marked(column, values)


@_written.register(Number)
def _written_numbers(column: Number, values: pa.ChunkedArray) -> pa.ChunkedArray:
    numbers = _with_decimals(column, values)
    return _marked(column, _without_exponents(numbers) if (column.digits or 0) > 6 else numbers)


def _without_exponents(numbers: pa.ChunkedArray) -> pa.ChunkedArray:
    """Decimals as text in one way of writing: Arrow gives those below 0.000001 an exponent."""
    texts = [None if each is None else f"{each:f}" for each in numbers.to_pylist()]
    return pa.chunked_array([pa.array(texts, pa.string())])


def _marked(column: Integer | Number, numbers: pa.ChunkedArray) -> pa.ChunkedArray:
    """Numbers as text with the marks of their column; as they are where programs write them so."""
    return numbers if column.has_plain_marks else marked_numbers(column, numbers.cast(pa.string()))


def _with_decimals(column: Number, values: pa.ChunkedArray) -> pa.ChunkedArray:
    decimals = column.digits
    if decimals is None:
        return values
    most = max(abs(limit) for limit in column.limits) * 10**decimals
    digits = len(str(int(most) + 1))
    exact = pa.decimal128(max(digits, decimals) + 1, decimals)
    return pc.round(values, ndigits=decimals).cast(exact)


@_written.register(Date)
def _written_days(column: Date, values: pa.ChunkedArray) -> pa.ChunkedArray:
    return values if column.format is None else pc.strftime(values, format=column.format)


@_written.register(DateTime)
def _written_moments(column: DateTime, values: pa.ChunkedArray) -> pa.ChunkedArray:
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


_WITH_MISSING: Final = {Integer: "Int64", Boolean: "boolean"}
"""The types of pandas in which a value may be missing and the others stay what they are."""


def to_pandas(schema: Schema, rows: pa.Table) -> Any:
    """Rows as a ``pandas.DataFrame``.

    A category has all declared values, an ordinal their order; whole numbers and truth values
    that may be missing are ``Int64`` and ``boolean``, days and moments ``datetime64``.
    """
    _package("pandas")  # the message that Arrow would give does not say what to do
    columns = [_declared(schema[name], rows[name]) for name in rows.column_names]
    typed = pa.table(columns, names=rows.column_names)
    marked = typed.replace_schema_metadata({"pandas": _pandas_types(schema, rows)})
    return marked.to_pandas(date_as_object=False)


def to_polars(schema: Schema, rows: pa.Table) -> Any:
    """Rows as a ``polars.DataFrame``; a category or an ordinal is an ``Enum`` of its values."""
    polars = _package("polars")
    enums = {
        name: polars.Enum(list(_texts(schema[name])))
        for name in rows.column_names
        if isinstance(schema[name], Category)
    }
    return polars.from_arrow(rows).cast(enums)


def _texts(column: Column) -> tuple[str, ...]:
    """The declared values of a category, with ``(other)`` where that is one of them."""
    return tuple(text for code, text in enumerate(column.labels) if code != column.missing_code)


def _declared(column: Column, values: pa.ChunkedArray) -> pa.Array:
    """The values; those of a category as indices in the list of all that are declared."""
    if not isinstance(column, Category):
        return values
    texts = pa.array(_texts(column), pa.string())
    indices = pc.index_in(values.cast(pa.string()), value_set=texts).combine_chunks()
    return pa.DictionaryArray.from_arrays(indices, texts, ordered=column.ordered)


def _pandas_types(schema: Schema, rows: pa.Table) -> str:
    """The note in Arrow's metadata from which it knows the types that pandas shall have.

    https://pandas.pydata.org/docs/development/developer.html, "Storing pandas DataFrame objects".
    """
    noted = [
        {"name": name, "field_name": name, "numpy_type": kind, "pandas_type": "", "metadata": None}
        for name in rows.column_names
        if schema[name].missing and (kind := _WITH_MISSING.get(type(schema[name])))
    ]
    return json.dumps({"index_columns": [], "column_indexes": [], "columns": noted})


def _package(name: str) -> ModuleType:
    try:
        return import_module(name)
    except ImportError:
        raise InputError(
            f"{name} is not installed. Install it (pip install {name}), or use the Arrow table in "
            "release.data."
        ) from None
