"""Published rows as data frames of pandas and Polars, each column in the type its schema means.

Arrow carries the values; what it can't know is the schema's: the declared values of a category
and their order, and that a whole number or a truth value may be missing.
"""

import json
from importlib import import_module
from types import ModuleType
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from sfumato.errors import InputError
from sfumato.schema import Boolean, Category, Column, Integer, Schema

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
    """The values; those of a category as places in the list of all that are declared."""
    if not isinstance(column, Category):
        return values
    texts = pa.array(_texts(column), pa.string())
    places = pc.index_in(values.cast(pa.string()), value_set=texts).combine_chunks()
    return pa.DictionaryArray.from_arrays(places, texts, ordered=column.ordered)


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
