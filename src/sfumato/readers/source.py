"""What a reader reads: a source of raw rows, and the table that is made of it."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.counting.table import Table
from sfumato.schema import Marginal

RawColumn = tuple[NDArray[Any], NDArray[np.bool_]]
"""Values as ``schema.raw_values`` reads them, and which of them do not fit the schema."""


class Source(Protocol):
    """Where rows come from: a file or a data frame, as Arrow batches of raw values."""

    def names(self) -> tuple[str, ...]:
        """The names of the columns that are there, each once."""

    def batches(self, columns: Marginal) -> Iterator[pa.RecordBatch]:
        """The named columns of all rows, in order; nothing else is read. Repeatable."""

    def describe(self) -> str:
        """Where the rows come from, for messages."""


@runtime_checkable
class NamedByRows(Protocol):
    """A source whose rows name its columns, as JSON objects do: such names may be private."""

    def shared_names(self) -> tuple[str, ...]:
        """The names of the columns if each row has all of them; else an error."""


@runtime_checkable
class RoundingSource(Protocol):
    """A source that makes texts of floats by itself, so that two may come out as the same."""

    def has_inexact(self, column: str) -> bool:
        """Whether a value is a float other than a whole number up to 2^53, or no single value."""


@runtime_checkable
class TypesFollowRows(Protocol):
    """A source whose types some tool may have chosen by all rows: floats where one has no value."""

    @property
    def types_follow_rows(self) -> Literal[True]:
        """Always; whole numbers that floats can't hold are read as if they were floats."""


def public_names(source: Source) -> tuple[str, ...]:
    """The columns that have a name, of a table of which nothing is declared.

    Whoever holds the table says them without looking at any row. Where rows say them, adding or
    removing a row must not change them, so they are taken only if no row differs.

    Raises:
        TableError: the names depend on the rows.
    """
    names = source.shared_names() if isinstance(source, NamedByRows) else source.names()
    return tuple(name for name in names if name.strip())


class OpenedTable(Table, Protocol):
    """A table as it was opened: what a job may ask of it before a curator takes it over."""

    def left_out(self) -> tuple[str, ...]:
        """Columns that the schema neither declares nor excludes: never read."""

    def watch(self, report: Callable[[int, int], None]) -> None:
        """While rows are read, report how many parts were and how many there are, 0 if unknown."""


@runtime_checkable
class RawTable(Table, Protocol):
    """A table that still has the values that its rows were written with, not only codes."""

    def raw_rows(self, columns: Marginal) -> Iterator[Mapping[str, RawColumn]]:
        """Batches of the named columns in the order of the rows: exact, sensitive."""
