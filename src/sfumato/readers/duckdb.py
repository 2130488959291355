"""DuckDB as a reader: JSON files and relations.

No extension is ever downloaded: the JSON reader is part of the library. DuckDB's error texts
quote the data, so they are never passed on. Private rows never spill to a temporary file.
"""

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, ClassVar, Final, Literal

import duckdb
import pyarrow as pa

from sfumato.counting.row_store import connect
from sfumato.counting.table import BATCH_ROWS
from sfumato.errors import SfumatoError, TableError
from sfumato.readers.locations import check_complete, opened
from sfumato.schema import Marginal

_LONGEST_LINE: Final = 16 * 2**20
"""DuckDB reads no larger object."""
_AS_GIVEN: Final = "hive_partitioning = false, filename = false, union_by_name = false"
"""What a file says, whatever the folders above it are called: DuckDB reads id=7 as a column."""


@dataclass(frozen=True, eq=False)
class JsonFile:
    """A list of objects, or one object a line; also compressed with gzip or zstd.

    Values are read as the text they stand for: 1 and 1.0 are "1", true is "true", an absent key
    is missing.
    """

    path: Path

    def names(self) -> tuple[str, ...]:
        """All keys of all objects."""
        return self._names

    def shared_names(self) -> tuple[str, ...]:
        """The keys that every object has, if none has others; in the order of the alphabet.

        Objects have no order of their own, and that of one of them would reveal its row.
        """
        return self._shared_names

    def batches(self, columns: Marginal) -> Iterator[pa.RecordBatch]:
        """The named keys as text."""
        chosen = ", ".join(
            f"CASE json_type({key}) WHEN 'DOUBLE' THEN regexp_replace({key} ->> '$', '\\.0+$', '') "
            f"ELSE {key} ->> '$' END"
            for key in map(quoted, columns)
        )
        with self._connected() as connection:
            yield from self._selected(connection, chosen, columns).to_arrow_reader(BATCH_ROWS)

    def has_inexact(self, column: str) -> bool:
        """Whether a value is a double other than a whole number up to 2^53, an object or a list."""
        value = quoted(column)
        text = f"({value} ->> '$')"
        whole = (  # of more digits than 64 bits hold, the reader keeps all
            f"(regexp_full_match({text}, '-?[0-9]+') OR (regexp_full_match({text}, "
            f"'-?[0-9]+\\.0') AND abs(TRY_CAST({text} AS DOUBLE)) <= {2**53}))"
        )
        inexact = (
            f"CASE json_type({value}) WHEN 'DOUBLE' THEN NOT coalesce({whole}, false) "
            "WHEN 'OBJECT' THEN true WHEN 'ARRAY' THEN true ELSE false END"
        )
        with self._connected() as connection:
            selected = self._selected(connection, f"bool_or({inexact})", (column,))
            return bool(selected.fetchall()[0][0])

    def describe(self) -> str:
        """The path."""
        return str(self.path)

    def _selected(
        self, connection: duckdb.DuckDBPyConnection, chosen: str, columns: Marginal
    ) -> duckdb.DuckDBPyRelation:
        """Expressions of the named keys, which are there as JSON."""
        query = (
            f"SELECT {chosen} FROM read_json($path, columns = $columns, records = true, "
            f"{_AS_GIVEN})"
        )
        types = dict.fromkeys(columns, "JSON")
        return connection.sql(query, params={"path": self._pattern, "columns": types})

    @cached_property
    def _names(self) -> tuple[str, ...]:
        query = (
            "SELECT column_name FROM (DESCRIBE SELECT * FROM "
            "read_json($path, records = true, sample_size = -1, "
            "maximum_depth = 1, map_inference_threshold = -1, field_appearance_threshold = 0, "
            f"{_AS_GIVEN}))"
        )
        check_complete(self.path)
        with self._connected() as connection:
            rows = connection.sql(query, params={"path": self._pattern}).fetchall()
            names = tuple(name for (name,) in rows)
            if _perhaps_renamed(names):
                self._refuse_alike(connection)
        return names

    @cached_property
    def _shared_names(self) -> tuple[str, ...]:
        names = sorted(self.names())
        query = (
            f"SELECT 1 FROM read_json_objects($path, {_AS_GIVEN}) "
            "WHERE list_sort(json_keys(json)) IS DISTINCT FROM list_sort($names) LIMIT 1"
        )
        with self._connected() as connection:
            others = connection.sql(query, params={"path": self._pattern, "names": names})
            differ = bool(others.fetchall())
        if differ:
            raise TableError(
                f"{self.path}: its objects do not all have the same keys, each once. Without a "
                "schema the keys are taken as the names of the columns and published, so a key "
                "that few rows have would tell of them. Write the keys that are missing as null, "
                "or list the columns in a schema of your own (--schema)."
            )
        return tuple(names)

    def _refuse_alike(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Refuse keys that differ in case only: the reader takes one and drops the other."""
        query = (
            "SELECT count(DISTINCT key) > count(DISTINCT lower(key)) FROM (SELECT "
            f"unnest(json_keys(json)) AS key FROM read_json_objects($path, {_AS_GIVEN}))"
        )
        ((alike,),) = connection.sql(query, params={"path": self._pattern}).fetchall()
        if alike:
            raise TableError(
                f"{self.path}: keys of its objects differ in upper and lower case only, and one "
                "would be lost. Rename one of them."
            )

    @contextmanager
    def _connected(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """A connection; what DuckDB says of the file may quote it, and is not passed on."""
        with connect() as connection:
            try:
                yield connection
            except (duckdb.Error, pa.ArrowException):
                raise self._malformed() from None

    @property
    def _pattern(self) -> str:
        """The path as a pattern that only this file fits."""
        return re.sub(r"[*?\[]", r"[\g<0>]", str(self.path))

    def _malformed(self) -> TableError:
        if _is_empty(self.path):
            return TableError(f"{self.path}: there are no rows; there is nothing to publish.")
        line = first_bad_line(self.path)
        where = f", line {line}" if line else ""
        return TableError(
            f"{self.path}{where}: this is not JSON that can be read: a list of objects, or one "
            "object a line, in UTF-8, each key once."
        )


@dataclass(frozen=True, eq=False)
class Relation:
    """A DuckDB relation, run again by each pass."""

    relation: duckdb.DuckDBPyRelation
    types_follow_rows: ClassVar[Literal[True]] = True

    def names(self) -> tuple[str, ...]:
        """The relation's columns."""
        return tuple(self.relation.columns)

    def batches(self, columns: Marginal) -> Iterator[pa.RecordBatch]:
        """The named columns as the relation has them."""
        try:
            chosen = self.relation.project(", ".join(map(quoted, columns)))
            yield from chosen.to_arrow_reader(BATCH_ROWS)
        except (duckdb.Error, pa.ArrowException) as error:
            raise TableError(
                f"DuckDB can't run the relation ({type(error).__name__}); its own message may "
                "quote data and is not shown. Try relation.limit(10) yourself."
            ) from None

    def describe(self) -> str:
        """What kind of thing it is."""
        return "DuckDB relation"


def as_relation(value: Any) -> Relation | None:
    """The source that a DuckDB relation is; None if the value is none."""
    return Relation(value) if isinstance(value, duckdb.DuckDBPyRelation) else None


def quoted(name: str) -> str:
    """A column name as an SQL identifier.

    >>> quoted('a"b')
    '"a""b"'
    """
    return '"' + name.replace('"', '""') + '"'


def _perhaps_renamed(names: Sequence[str]) -> bool:
    """Whether a name may be the reader's own for a key like another one: ``A_1`` beside ``a``."""
    lower = {name.lower() for name in names}
    return any(re.sub(r"_[0-9]+$", "", name) in lower - {name} for name in lower)


def _is_empty(path: Path) -> bool:
    """Whether a JSON file holds no row: nothing at all, or an empty list."""
    try:
        with opened(path) as file:
            return b"".join(file.read(64).split()) in (b"", b"[]") and not file.read(1)
    except SfumatoError:
        return False


def first_bad_line(path: Path) -> int | None:
    """The first line that holds no object, in a file of one object a line; only after an error."""
    if not {".jsonl", ".ndjson"} & {suffix.lower() for suffix in path.suffixes}:
        return None
    try:
        with opened(path) as file:
            lines = iter(partial(file.readline, _LONGEST_LINE), b"")
            return next((n for n, line in enumerate(lines, 1) if not _is_object(line)), None)
    except SfumatoError:
        return None


def _is_object(line: bytes) -> bool:
    """Whether a line is blank or one object that has each key once."""
    try:
        value = json.loads(line, object_pairs_hook=_unrepeated) if line.strip() else {}
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict)


def _unrepeated(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        raise ValueError("a key stands twice")
    return value
