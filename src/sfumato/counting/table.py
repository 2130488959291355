"""The seam between exact data and everything else: a table and its two verbs.

``fold`` adds batches into a small array, ``map`` turns batches into batches. A kernel is a small
frozen object that names the columns it needs; only those are read. What a fold returns is exact
and sensitive: only the curator may call it.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.schema import Marginal, Schema
from sfumato.schema.codes import Codes

BATCH_ROWS = 65_536
"""Rows in a batch: 15 columns of one-byte codes are a megabyte, within the second-level cache."""

CodeBatch = Mapping[str, Codes]
"""Columns of codes by name, all of one length, each code below the size of its column."""


TextCounts = Mapping[str, int]
"""How many rows have each text that occurs in a column."""


class FoldKernel(Protocol):
    """Adds batches of codes into an array of integers."""

    @property
    def columns(self) -> Marginal:
        """The columns that ``add`` looks at; at least one."""

    def zero(self) -> NDArray[np.int64]:
        """The state before any row, all zeros: partial states are added."""

    def add(self, state: NDArray[np.int64], codes: CodeBatch) -> None:
        """Add one batch to ``state``, in place."""


class MapKernel(Protocol):
    """Turns a batch of codes into a batch of values."""

    @property
    def columns(self) -> Marginal:
        """The columns that ``apply`` looks at; at least one."""

    def apply(self, codes: CodeBatch) -> pa.RecordBatch:
        """The batch that takes the place of these rows."""


class Table(Protocol):
    """Rows of codes that can be read again and again. Only the curator holds one."""

    @property
    def schema(self) -> Schema:
        """The public description of the columns."""

    @property
    def max_rows(self) -> int | None:
        """The most rows of one person that are left, if they were bounded."""

    def fold(self, kernel: FoldKernel) -> NDArray[np.int64]:
        """The sum of the kernel over all rows: exact, sensitive."""

    def map(self, kernel: MapKernel) -> Iterator[pa.RecordBatch]:
        """The kernel on each batch, in the order of the rows."""

    def bounded(self, column: str, max_rows: int) -> "Table":
        """At most ``max_rows`` rows of each person named in ``column``.

        Which rows stay depends on that person's rows alone, so adding or removing a person
        changes nobody else's.
        """

    def validate(self) -> None:
        """Read everything once and raise what is wrong with it, before anything is spent."""

    def describe(self) -> str:
        """Where the rows come from, for messages; never what they say."""

    def misfits(self) -> tuple[str, ...]:
        """What did not fit of the rows that were read so far, and what it counted as.

        With exact numbers: for whoever holds the table, never to be published.
        """


@runtime_checkable
class WritingTable(Protocol):
    """A table on many machines, which can write what a kernel draws without bringing it here."""

    def check_folder(self, folder: str) -> None:
        """Refuse, before anything is spent, a folder that can't be written."""

    def map_to_parquet(self, kernel: MapKernel, folder: str) -> int:
        """The kernel on each batch, as Parquet files in a random order; how many rows."""


class OpenedTable(Table, Protocol):
    """A table as it was opened: what a job may ask of it before a curator takes it over."""

    def left_out(self) -> tuple[str, ...]:
        """Columns that the schema neither declares nor excludes: never read."""

    def watch(self, tell: Callable[[int, int], None]) -> None:
        """While rows are read, tell how many parts were, and how many there are; 0 if unknown."""


class TextTable(Protocol):
    """A table of which nothing is declared but the names of its columns: values are texts."""

    @property
    def names(self) -> Marginal:
        """The columns that have a name: public, as file names are."""

    def describe(self) -> str:
        """Where the rows come from, for messages."""

    def bounded(self, column: str, max_rows: int) -> "TextTable":
        """At most ``max_rows`` rows of each person, chosen by that person's rows alone."""

    def validate(self) -> None:
        """Read every row once and raise what is wrong with the file."""

    def coded(self, schema: Schema) -> Table:
        """The table read by a public schema of some of its columns."""

    def shapes(self, columns: Marginal) -> dict[str, NDArray[np.int64]]:
        """For each column, how many rows are of each shape: exact, sensitive."""

    def texts(self, columns: Marginal) -> dict[str, TextCounts]:
        """For each column, how many rows have each of its short texts: exact, sensitive."""


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


def batch_rows(codes: Mapping[str, NDArray[Any]]) -> int:
    """The number of rows of a batch of one or more columns."""
    return int(next(iter(codes.values())).size)
