"""The seam between exact data and everything else: a table and its two verbs.

``fold`` adds batches into a small array, ``map`` turns batches into batches. A kernel is a small
frozen object that names the columns it needs; only those are read. What a fold returns is exact
and sensitive: only the curator may call it.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Protocol, runtime_checkable

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


def batch_rows(codes: Mapping[str, NDArray[Any]]) -> int:
    """The number of rows of a batch of one or more columns."""
    return int(next(iter(codes.values())).size)
