"""Columns as text: our JSON form, private-pgm's domain JSON, PrivBayes' ``.domain`` lines."""

import json
from collections.abc import Mapping
from dataclasses import MISSING, fields
from datetime import date
from pathlib import Path
from typing import Any

from sfumato.errors import SchemaError, StorageError
from sfumato.schema.columns import (
    Boolean,
    Category,
    Column,
    Date,
    Integer,
    Number,
    Ordinal,
    repeated,
)

VERSION = 1

_KINDS: dict[str, Any] = {
    kind.kind: kind for kind in (Category, Ordinal, Boolean, Integer, Number, Date)
}


def read(path: Path) -> Any:
    """The value of a JSON file; keys that stand twice, bad text and bad JSON are errors."""
    text = read_text(path)
    try:
        return json.loads(text, object_pairs_hook=_no_repeats)
    except json.JSONDecodeError as error:
        place = f"{path}:{error.lineno}:{error.colno}"
        raise SchemaError(f"{place}: not valid JSON: {error.msg}") from None
    except RecursionError:
        raise SchemaError(f"{path}: nested too deeply") from None
    except SchemaError as error:
        raise SchemaError(f"{path}: {error}") from None
    except ValueError:  # Python reads no whole number of more than 4,300 digits
        raise SchemaError(f"{path}: a number in it is too long to read") from None


def read_text(path: Path) -> str:
    """The text of a public file."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise StorageError(f"can't read {path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise SchemaError(f"{path} is not UTF-8 text (byte {error.start})") from None


def parts(value: Any) -> tuple[tuple[Column, ...], str | None, list[Any]]:
    """Columns, data set name and impossible combinations, from our JSON form or a domain file."""
    if not isinstance(value, Mapping):
        raise SchemaError(f"a schema is a JSON object, got {type(value).__name__}")
    if "columns" not in value:
        return _from_domain(value), None, []
    if value.get("sfumato") != VERSION:
        found = value.get("sfumato")
        raise SchemaError(f'a schema says "sfumato": {VERSION}; this one says {found!r}')
    unknown = sorted(set(value) - {"sfumato", "dataset", "columns", "impossible"})
    if unknown:
        raise SchemaError(f"unknown entries in the schema: {unknown}")
    dataset = value.get("dataset")
    if dataset is not None and (not isinstance(dataset, str) or not dataset.strip()):
        raise SchemaError(f"dataset must be a name, got {dataset!r}")
    if not isinstance(value["columns"], list):
        raise SchemaError("columns must be a list")
    if not isinstance(excluded := value.get("impossible", []), list):
        raise SchemaError("impossible must be a list of combinations")
    return tuple(column_from_dict(entry) for entry in value["columns"]), dataset, excluded


def column_from_dict(entry: Any) -> Column:
    """The column that its JSON form describes; ``column_to_dict`` writes it."""
    if not isinstance(entry, Mapping):
        raise SchemaError(f"each column is a JSON object, got {entry!r}")
    name, kind = entry.get("name"), entry.get("kind")
    if not isinstance(kind, str) or kind not in _KINDS:
        listed = ", ".join(_KINDS)
        raise SchemaError(f"column {name!r}: kind must be one of {listed}; got {kind!r}")
    if "unconfirmed" in entry:
        raise SchemaError(
            f"column {name!r} holds values taken from the data that nobody confirmed as public. "
            'Read them, move what is public out of "unconfirmed", and delete that entry.'
        )
    allowed = {field.name for field in fields(_KINDS[kind])} | {"kind"}
    unknown = sorted(set(entry) - allowed)
    if unknown:
        raise SchemaError(
            f"column {name!r}: kind {kind} has no {unknown}; it has {sorted(allowed)}"
        )
    needed = [field.name for field in fields(_KINDS[kind]) if field.default is MISSING]
    if not entry.keys() >= set(needed):
        raise SchemaError(f"column {name!r}: kind {kind} needs {', '.join(needed)}")
    options = {key: _value(kind, key, value) for key, value in entry.items() if key != "kind"}
    return _KINDS[kind](**options)  # type: ignore[no-any-return]


def _value(kind: str, key: str, value: Any) -> Any:
    """What JSON can't say by itself: a tuple, a day. What is neither, the column refuses."""
    if isinstance(value, list):
        return tuple(value)
    if kind == Date.kind and key in ("low", "high") and isinstance(value, str):
        try:
            return date.fromisoformat(value)
        except ValueError:
            return value
    return value


def column_to_dict(column: Column) -> dict[str, Any]:
    """The JSON form of a column; what equals its default is left out."""
    out: dict[str, Any] = {"name": column.name, "kind": column.kind}
    for field in fields(column):
        value = getattr(column, field.name)
        if field.name == "name" or value == field.default:
            continue
        if isinstance(value, date):
            value = value.isoformat()
        out[field.name] = list(value) if isinstance(value, tuple) else value
    return out


def _from_domain(value: Mapping[str, Any]) -> tuple[Column, ...]:
    """``{"age": 85}`` or ``{"age": {"type": "discrete", "domain": 85}}``: codes 0 .. 84."""
    sizes: dict[str, Any] = {
        name: entry.get("domain") if isinstance(entry, Mapping) else entry
        for name, entry in value.items()
    }
    for name, size in sizes.items():
        if not isinstance(size, int) or isinstance(size, bool) or size < 1:
            raise SchemaError(
                f'{name!r} is neither a schema (it has no "columns") nor a domain file, whose '
                f"sizes are whole numbers above 0: got {size!r}"
            )
    return tuple(Integer(name=name, low=0, high=size - 1) for name, size in sizes.items())


def from_domain_lines(text: str, path: Path) -> tuple[Column, ...]:
    """PrivBayes' form, a line a column: ``D value value ...`` or ``C low high``."""
    columns: list[Column] = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            columns.append(_domain_column(str(len(columns)), *line.split()))
        except ValueError as error:
            message = f"{path}:{number}: a line is 'D value ...' or 'C low high' ({error})"
            raise SchemaError(message) from None
    if not columns:
        raise SchemaError(f"{path}: no line describes a column")
    return tuple(columns)


def _domain_column(name: str, kind: str, *values: str) -> Column:
    if kind == "D":
        return Category(name=name, values=values)
    if kind != "C":
        raise ValueError(f"it begins with {kind!r}")
    low, high = (float(value) for value in values)
    return Number(name=name, edges=tuple(low + (high - low) * part / 16 for part in range(17)))


def _no_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if twice := repeated(key for key, _ in pairs):
        raise SchemaError(f"these entries stand twice in one object: {twice}")
    return dict(pairs)
