"""Tables without a schema: their values as text, counted by shape and by text.

What is counted here is exact and sensitive, and only the gate asks for it (``gate.scout``).
"""

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato import check
from sfumato.counting.table import BATCH_ROWS, TextCounts
from sfumato.errors import TableError
from sfumato.readers.source import Source, public_names
from sfumato.readers.source_table import require_exact
from sfumato.readers.value_texts import as_texts, decoded, has_text, is_bytes, person_texts
from sfumato.schema import Marginal
from sfumato.schema.text_shapes import LONG, SHAPES, shape_codes

if TYPE_CHECKING:
    from sfumato.counting.row_store import RowStore

_MERGE_AT: Final = 2**20
"""Counts of single batches that are stored, at most, before those of equal texts are added up."""


class UndeclaredTable:
    """A source whose columns are known by name only."""

    def __init__(self, source: Source) -> None:
        self._source = source

    @property
    def names(self) -> Marginal:
        """The columns that have a name: public, as file names are."""
        return public_names(self._source)

    def describe(self) -> str:
        """Where the rows come from, for messages."""
        return self._source.describe()

    def bounded(self, column: str, max_rows: int) -> "UndeclaredTable":
        """At most ``max_rows`` rows of each person, chosen by that person's rows alone."""
        if column not in self.names:
            raise TableError(
                f"{self.describe()}: there is no column {column!r} that could name people."
            )
        return UndeclaredTable(_BoundedSource(self._source, self.names, column, max_rows))

    def validate(self) -> None:
        """Read every row once; raise what is wrong with the file, and refuse one without rows.

        What is read after the charge can then no longer fail because of the type of a column.
        """
        rows, tried = 0, set()
        for batch in self._source.batches(self.names):
            rows += batch.num_rows
            self._require_sound(batch)
            for name, values in zip(self.names, batch.columns, strict=True):
                if (name, values.type) not in tried:
                    self._require_text(name, values.type)
                    tried.add((name, values.type))
        if not rows:
            raise TableError(f"{self.describe()}: there are no rows; there is nothing to publish.")

    def _require_sound(self, batch: pa.RecordBatch) -> None:
        try:
            batch.validate(full=True)
        except pa.ArrowException:  # its message quotes values
            raise TableError(
                f"{self.describe()}: the table is damaged: text that is not UTF-8, or entries "
                "that are not there."
            ) from None

    def _require_text(self, name: str, kind: pa.DataType) -> None:
        if pa.types.is_union(kind):
            return  # of Python objects each value has a type that can be read
        try:
            for values in (pa.nulls(0, kind), pa.nulls(1, kind)):
                _values_and_rows(values)
                as_texts(values)
        except pa.ArrowException:
            raise TableError(
                f"{self.describe()}: column {name!r} has a type that can't be read: "
                f"{str(kind)[:60]}. Turn it into text or numbers, or leave it out."
            ) from None

    def shapes(self, columns: Marginal) -> dict[str, NDArray[np.int64]]:
        """For each column, how many rows are of each shape (``schema.text_shapes``)."""
        counts = {name: np.zeros(len(SHAPES), dtype=np.int64) for name in columns}
        for batch in self._source.batches(columns):
            for index, name in enumerate(columns):
                values, rows = _values_and_rows(batch.column(index))
                added = np.bincount(shape_codes(values), weights=rows, minlength=len(SHAPES))
                counts[name] += added.astype(np.int64)  # exact: batches are far below 2^53 rows
        return counts

    def texts(self, columns: Marginal) -> dict[str, TextCounts]:
        """For each column, how many rows have each of its texts of at most ``LONG`` characters."""
        counters = {name: _TextCounter() for name in columns}
        for batch in self._source.batches(columns):
            for index, name in enumerate(columns):
                counters[name].add(*_values_and_rows(batch.column(index)))
        return {name: counter.counts() for name, counter in counters.items()}


class _TextCounter:
    """Adds up counts of texts, batch by batch."""

    def __init__(self) -> None:
        self._parts: list[pa.Table] = []
        self._rows = 0

    def add(self, values: pa.Array, rows: NDArray[np.int64]) -> None:
        short = pc.and_(pc.is_valid(values), pc.less_equal(pc.utf8_length(values), LONG))
        part = pa.table({"text": values, "rows": rows}).filter(short)
        self._parts.append(part)
        self._rows += part.num_rows
        if self._rows > _MERGE_AT:
            self._parts = [self._merged()]
            self._rows = 0

    def counts(self) -> dict[str, int]:
        if not self._parts:
            return {}
        merged = self._merged()
        return dict(zip(*(merged[name].to_pylist() for name in ("text", "rows")), strict=True))

    def _merged(self) -> pa.Table:
        whole = pa.concat_tables(self._parts).group_by("text").aggregate([("rows", "sum")])
        return pa.table({"text": whole["text"], "rows": whole["rows_sum"]})


class _BoundedSource:
    """Texts of all columns, of each person some rows: chosen once and kept in memory.

    As ``table.BoundedTable`` does: by a fixed hash of the person and the row.
    """

    def __init__(self, whole: Source, columns: Marginal, person: str, max_rows: int) -> None:
        self._whole = whole
        self._columns = columns
        self._person = person
        self._max_rows = check.whole(at_least=1, max_rows=max_rows)

    def names(self) -> tuple[str, ...]:
        return self._columns

    def describe(self) -> str:
        return f"{self._whole.describe()}, at most {self._max_rows} rows per {self._person!r}"

    def batches(self, columns: Marginal) -> Iterator[pa.RecordBatch]:
        indices = [self._columns.index(name) for name in columns]
        for batch in self._rows.batches(indices, rows=BATCH_ROWS):
            yield pa.RecordBatch.from_arrays(batch.columns, names=list(columns))

    @cached_property
    def _rows(self) -> "RowStore":
        from sfumato.counting.row_store import RowStore

        require_exact(self._whole, self._person)
        store = RowStore()
        for batch in self._whole.batches(self._columns):
            people = self._people(batch.column(self._columns.index(self._person)))
            named = people.is_valid()  # a row without a person is not counted
            texts = [as_texts(values).filter(named) for values in batch.columns]
            store.add(texts, people.filter(named))
        store.bound(self._max_rows)
        return store

    def _people(self, values: pa.Array) -> pa.Array:
        try:
            return person_texts(values, trim=True)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            raise TableError(
                f"{self._whole.describe()}: column {self._person!r} is neither text nor whole "
                "numbers up to 2^53, so rows can't be bounded."
            ) from None


def _values_and_rows(values: pa.Array) -> tuple[pa.Array, NDArray[np.int64]]:
    """Texts of a batch, and how many rows have each; the same text may stand more than once.

    Each different value is made into text once: many rows share few of them.
    """
    values = decoded(values)
    values = as_texts(values) if is_bytes(values.type) else values
    if not has_text(values.type):
        return pa.nulls(1, pa.string()), np.array([len(values)])
    counted = pc.value_counts(values)
    rows = np.asarray(np.from_dlpack(counted.field("counts")), dtype=np.int64)
    return as_texts(counted.field("values")), rows
