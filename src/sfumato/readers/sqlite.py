"""SQLite files through the standard library, opened read-only, streamed as text.

SQLite has no column types, only values: each is read as the text it stands for by itself, so
that what a row says never depends on the rows beside it.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pyarrow as pa

from sfumato.counting.table import BATCH_ROWS
from sfumato.errors import TableError
from sfumato.schema import Marginal

_LONGEST_VALUE = 16 * 2**20
"""Bytes of one value: a longer one is damage or an attack."""


@dataclass(frozen=True)
class SqliteTable:
    """A table or view of a SQLite file; without a name, the only table."""

    path: Path
    name: str | None = None

    def names(self) -> tuple[str, ...]:
        """The columns of the table."""
        with self._connected() as connection:
            cursor = connection.execute(f"SELECT * FROM {_quoted(self._table)} LIMIT 0")
            return tuple(entry[0] for entry in cursor.description)

    def batches(self, columns: Marginal) -> Iterator[pa.RecordBatch]:
        """The named columns as text: 1 and 1.0 are "1".

        By an index SQLite would read the rows in its order, that of values: of a table with rowids
        none is used. A view or a table without them may have any order, another one in each read.
        """
        chosen = ", ".join(map(_as_text, columns))
        query = f"SELECT {chosen} FROM {_quoted(self._table)} NOT INDEXED"
        with self._connected() as connection:
            cursor = connection.execute(query)
            while rows := cursor.fetchmany(BATCH_ROWS):
                arrays = [pa.array(values, pa.string()) for values in zip(*rows, strict=True)]
                yield pa.RecordBatch.from_arrays(arrays, names=list(columns))

    def has_inexact(self, column: str) -> bool:
        """Whether a value is a real other than a whole number up to 2^53."""
        value = _quoted(column)
        query = (
            f"SELECT 1 FROM {_quoted(self._table)} WHERE typeof({value}) = 'real' AND "
            f"({value} <> CAST({value} AS INTEGER) OR abs({value}) > {2**53}) LIMIT 1"
        )
        with self._connected() as connection:
            return connection.execute(query).fetchone() is not None

    def describe(self) -> str:
        """The path and the table."""
        return f"{self.path}::{self._table}"

    @cached_property
    def _table(self) -> str:
        with self._connected() as connection:
            query = "SELECT name FROM sqlite_master WHERE type IN ('table', 'view')"
            tables = [
                name for (name,) in connection.execute(query) if not name.startswith("sqlite_")
            ]
        if self.name is None and len(tables) == 1:
            return str(tables[0])
        if self.name in tables:
            return str(self.name)
        listed = ", ".join(map(repr, sorted(tables))) or "none"
        raise TableError(
            f"{self.path}: say which table to read, as {self.path.name}::TABLE. The file has: "
            f"{listed}."
        )

    @contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        address = f"{self.path.resolve().as_uri()}?mode=ro"
        try:
            with closing(sqlite3.connect(address, uri=True)) as connection:
                connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST_VALUE)
                connection.execute("PRAGMA trusted_schema = OFF")  # a view runs nothing of ours
                yield connection
        except (sqlite3.Error, UnicodeDecodeError):  # its message may quote a value, or be no text
            raise TableError(
                f"{self.path} can't be read as a SQLite file: damaged, locked, of another format, "
                f"with text that is not UTF-8, or with a value of more than {_LONGEST_VALUE:,} "
                "bytes."
            ) from None


def _as_text(name: str) -> str:
    column = _quoted(name)
    whole = f"CAST({column} AS INTEGER)"
    return (
        f"CASE WHEN typeof({column}) = 'real' AND {whole} = {column} "
        f"THEN CAST({whole} AS TEXT) ELSE CAST({column} AS TEXT) END"
    )


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
