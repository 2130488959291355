"""A schema as text: our JSON form, private-pgm's domain JSON, PrivBayes' ``.domain`` lines.

And how a table's file writes its rows, where it differs from plain CSV: public like the schema.
"""

import json
import stat
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from datetime import date
from pathlib import Path
from typing import Any, Final

from sfumato.errors import SchemaError, StorageError
from sfumato.schema.columns import (
    Boolean,
    Category,
    Column,
    Date,
    DateTime,
    Integer,
    Number,
    Ordinal,
    is_text,
    moment_of,
    repeated,
)

_KEYS: Final = {"names", "trim", "encoding", "delimiter", "strict"}


@dataclass(frozen=True, kw_only=True)
class FileForm:
    """What a reader must know before it can read a file."""

    names: tuple[str, ...] = ()
    """All fields of a CSV file without a header, in order; empty where it has one."""
    trim: bool = False
    """Whether spaces around a text do not count; a field of spaces alone is then missing."""
    encoding: str = "utf-8"
    """Of a CSV file, where a command names no other."""
    delimiter: str | None = None
    """Of a CSV file, where a command names none; None takes it from the header."""
    strict: bool = False
    """Whether a value that its column has no code for is an error; else it counts as a public code
    (``BaseColumn.unfit_code``), so that no single row decides whether there is a release."""

    def __post_init__(self) -> None:
        names = self.names
        if not isinstance(names, tuple) or not all(isinstance(name, str) for name in names):
            raise SchemaError("names of a file must be a tuple (in JSON a list) of texts")
        if not all(name.strip() for name in names):
            raise SchemaError("names of a file must not be empty")
        if twice := repeated(names):
            raise SchemaError(f"these column names stand twice in 'file': {twice}")
        if not isinstance(self.trim, bool):
            raise SchemaError(f"trim must be true or false, got {self.trim!r}")
        if not isinstance(self.strict, bool):
            raise SchemaError(f"strict must be true or false, got {self.strict!r}")
        if not _is_encoding(self.encoding):
            raise SchemaError(
                f"encoding must be one like utf-8 or latin-1, got {self.encoding!r:.60}"
            )
        if self.delimiter is not None and not (
            isinstance(self.delimiter, str) and len(self.delimiter) == 1
        ):
            raise SchemaError(f"delimiter must be one character, got {self.delimiter!r:.60}")

    def to_dict(self) -> dict[str, Any]:
        """The JSON form; what equals its default is left out."""
        names: dict[str, Any] = {"names": list(self.names)} if self.names else {}
        names |= {"trim": True} if self.trim else {}
        names |= {"encoding": self.encoding} if self.encoding != "utf-8" else {}
        names |= {"delimiter": self.delimiter} if self.delimiter is not None else {}
        return names | ({"strict": True} if self.strict else {})

    @staticmethod
    def from_dict(value: Any) -> "FileForm":
        """The form that its JSON form describes."""
        if not isinstance(value, Mapping) or set(value) - _KEYS:
            listed = ", ".join(f'"{key}"' for key in sorted(_KEYS))
            raise SchemaError(f"file is an object with some of {listed}")
        names = value.get("names", [])
        if not isinstance(names, list):
            raise SchemaError("names of a file must be a list of texts")
        return FileForm(
            names=tuple(names),
            trim=value.get("trim", False),
            strict=value.get("strict", False),
            encoding=value.get("encoding", "utf-8"),
            delimiter=value.get("delimiter"),
        )

    def check(self, columns: tuple[Column, ...]) -> None:
        """Refuse columns that no row of such a file could fill."""
        if self.names:
            for column in columns:
                if column.name not in self.names:
                    raise SchemaError(f"column {column.name!r} is none of the names of the file")
        if not self.trim:
            return
        for column in columns:
            texts = column.values if isinstance(column, Category) else ()
            if any(text != text.strip() for text in texts):
                raise SchemaError(
                    f"column {column.name!r} declares a text with spaces around it, but the file "
                    'is read without them ("trim": true). Remove the spaces from the text.'
                )


def _is_encoding(name: Any) -> bool:
    """Whether Python knows a text encoding of that name."""
    try:
        return isinstance(name, str) and "".encode(name) is not None
    except (LookupError, ValueError):
        return False


PLAIN = FileForm()
"""A header, and texts as they stand."""


VERSION: Final = 1
"""Of the JSON form."""
MAX_BYTES: Final = 256 * 2**20
"""A million values of 200 bytes fit; what is larger was not written by a person."""

_ENTRIES: Final = frozenset(
    {"sfumato", "dataset", "columns", "file", "impossible", "rules", "draft", "exclude"}
)
_KINDS: dict[str, Any] = {
    kind.kind: kind for kind in (Category, Ordinal, Boolean, Integer, Number, Date, DateTime)
}
_NEVER_INVENTED = ("text", "string", "key", "id", "exclude")
"""Kinds that people try for what has no public list of values."""


def read(path: Path) -> Any:
    """The value of a JSON file; keys that stand twice, bad text and bad JSON are errors."""
    text = read_text(path)
    try:
        return json.loads(text, object_pairs_hook=_no_repeats)
    except json.JSONDecodeError as error:
        position = f"{path}:{error.lineno}:{error.colno}"
        raise SchemaError(f"{position}: not valid JSON: {error.msg}") from None
    except RecursionError:
        raise SchemaError(f"{path}: nested too deeply") from None
    except SchemaError as error:
        raise SchemaError(f"{path}: {error}") from None
    except ValueError:  # Python reads no whole number of more than 4,300 digits
        raise SchemaError(f"{path}: a number in it is too long to read") from None


def read_text(path: Path) -> str:
    """The text of a public file."""
    if require_file(path) > MAX_BYTES:
        raise SchemaError(f"{path} is larger than {MAX_BYTES:,} bytes, too large to describe data")
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise StorageError(f"can't read {path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise SchemaError(f"{path} is not UTF-8 text (byte {error.start})") from None


def require_file(path: Path) -> int:
    """The bytes of a file that can be read, again and again: no folder, no pipe, no device."""
    if not is_text(str(path)):
        raise StorageError(f"{str(path)!r}: a name that is not UTF-8 text can't be read; rename it")
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            what = "a folder" if path.is_dir() else "a pipe, a socket or a device"
            raise StorageError(f"{path} is {what}, not a file; name a file on a disk")
        with path.open("rb"):
            return status.st_size
    except (OSError, ValueError) as error:  # a name with NUL is a ValueError
        raise StorageError(f"can't read {path}: {getattr(error, 'strerror', error)}") from None


@dataclass(frozen=True, kw_only=True)
class Parts:
    """What a schema file says."""

    columns: tuple[Column, ...]
    dataset: str | None = None
    file: FileForm = PLAIN
    exclude: tuple[str, ...] = ()
    impossible: list[Any] = field(default_factory=list)
    rules: list[Any] = field(default_factory=list)


def parts(value: Any) -> Parts:
    """The parts of a schema, from our JSON form or a domain file."""
    if not isinstance(value, Mapping):
        raise SchemaError(f"a schema is a JSON object, got {type(value).__name__}")
    if "columns" not in value:
        return Parts(columns=_from_domain(value))
    if value.get("sfumato") != VERSION or value["sfumato"] is True:  # JSON's true equals 1
        version = value.get("sfumato")
        raise SchemaError(f'a schema says "sfumato": {VERSION}; this one says {version!r}')
    if unknown := sorted(set(value) - _ENTRIES):
        raise SchemaError(f"unknown entries in the schema: {unknown}")
    dataset = value.get("dataset")
    if dataset is not None and (not isinstance(dataset, str) or not dataset.strip()):
        raise SchemaError(f"dataset must be a name, got {dataset!r}")
    if not isinstance(value["columns"], list):
        raise SchemaError("columns must be a list")
    if not isinstance(excluded := value.get("impossible", []), list):
        raise SchemaError("impossible must be a list of combinations")
    if not isinstance(compared := value.get("rules", []), list):
        raise SchemaError("rules must be a list of texts like 'jail_in <= jail_out'")
    if not isinstance(left_out := value.get("exclude", []), list):
        raise SchemaError("exclude must be a list of column names")
    check_confirmed(value["columns"])
    return Parts(
        columns=tuple(column_from_dict(entry) for entry in value["columns"]),
        dataset=dataset,
        file=FileForm.from_dict(value.get("file", {})),
        exclude=tuple(left_out),
        impossible=excluded,
        rules=compared,
    )


def unconfirmed(entries: Iterable[Any]) -> dict[str, tuple[str, ...]]:
    """For each column with marks, the names of what was taken from the data."""
    marked = [each for each in entries if isinstance(each, Mapping) and each.get("unconfirmed")]
    return {str(each.get("name")): _marks(each["unconfirmed"]) for each in marked}


def check_confirmed(entries: Iterable[Any]) -> None:
    """Refuse columns whose values somebody read from the data and nobody confirmed."""
    if not (marked := unconfirmed(entries)):
        return
    shown = [f"column {name!r} ({', '.join(marks)})" for name, marks in marked.items()]
    raise SchemaError(
        f"{'; '.join(shown)}: taken from the data by a draft that nobody confirmed as public. "
        'Read them, write what anybody would expect in their place, and delete "unconfirmed" from '
        "each column, or run sfumato schema confirm on the file."
    )


def _marks(given: Any) -> tuple[str, ...]:
    listed = given if isinstance(given, list | tuple | Mapping) else [given]
    return tuple(map(str, listed))


def column_from_dict(entry: Any) -> Column:
    """The column that its JSON form describes; ``column_to_dict`` writes it."""
    if not isinstance(entry, Mapping):
        raise SchemaError(f"each column is a JSON object, got {entry!r}")
    name, kind = entry.get("name"), entry.get("kind")
    if not isinstance(kind, str) or kind not in _KINDS:
        raise _unknown_kind(name, kind)
    check_confirmed([entry])
    entry = {key: value for key, value in entry.items() if key != "unconfirmed"}
    allowed = {each.name for each in fields(_KINDS[kind])} | {"kind"}
    unknown = sorted(set(entry) - allowed)
    if unknown:
        raise SchemaError(
            f"column {name!r}: kind {kind} has no {unknown}; it has {sorted(allowed)}"
        )
    needed = [each.name for each in fields(_KINDS[kind]) if each.default is MISSING]
    if not entry.keys() >= set(needed):
        raise SchemaError(f"column {name!r}: kind {kind} needs {', '.join(needed)}")
    options = {key: _value(entry, key) for key in entry if key != "kind"}
    column: Column = _KINDS[kind](**options)
    if isinstance(column, Integer | Number) and column.on_grid:
        low, high = column.low, column.high
        if low != high and column.cells == 1 and column.bins is None:
            raise SchemaError(
                f"column {name!r}: in steps of {column.resolution} there is one value from low "
                f"{low} to high {high}, and every row would be published as that. Declare a finer "
                "resolution"
            )
    return column


def _unknown_kind(name: Any, kind: Any) -> SchemaError:
    message = f"column {name!r}: kind must be one of {', '.join(_KINDS)}; got {kind!r}"
    if kind in _NEVER_INVENTED:
        message += (
            ": keys and free text have no public list of values and are never invented. Name the "
            'column under "exclude", or declare some values and "other": true'
        )
    return SchemaError(message)


def _value(entry: Mapping[str, Any], key: str) -> Any:
    """What JSON can't say by itself: a tuple, a day, a moment. Else the column refuses it."""
    value, kind = entry[key], entry["kind"]
    if isinstance(value, list):
        return tuple(value)
    if key not in ("low", "high") or not isinstance(value, str):
        return value
    try:
        if kind == DateTime.kind:
            zoned = entry.get("zone") is not None
            return moment_of(value, last=key == "high", with_zone=zoned)
        return date.fromisoformat(value) if kind == Date.kind else value
    except ValueError:
        return value


def column_to_dict(column: Column) -> dict[str, Any]:
    """The JSON form of a column; what equals its default is left out."""
    out: dict[str, Any] = {"name": column.name, "kind": column.kind}
    for each in fields(column):
        value = getattr(column, each.name)
        if each.name == "name" or value == each.default:
            continue
        if isinstance(value, date):
            value = value.isoformat()
        out[each.name] = list(value) if isinstance(value, tuple) else value
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
    return tuple(Integer(name=name, low=0, high=size - 1, step=1) for name, size in sizes.items())


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
