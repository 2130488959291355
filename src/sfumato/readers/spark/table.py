"""Tables that Spark holds: the same kernels beyond one machine.

The driver sends kernels and adds up what comes back: it never collects the rows of a table to
count them.
"""

import weakref
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import DataFrame

from sfumato import check
from sfumato.counting.shuffle import mixed
from sfumato.counting.table import FoldKernel, MapKernel, RowCount
from sfumato.errors import InputError, TableError
from sfumato.readers.source_table import misfit_sentences, require_columns, undeclared
from sfumato.readers.spark import tasks
from sfumato.readers.spark.frames import SparkFrame, failing, over_tasks
from sfumato.readers.spark.output import Writing, check_new, write_drawn
from sfumato.schema import Marginal, Schema

Parcels = DataFrame
"""A frame whose rows are parcels (``tasks``)."""

_REDUCE_BYTES: Final = 2**18
"""Larger states are added up in the executors before they come to the driver."""
_COLLECT_BYTES: Final = 2**28
"""Larger results come to the driver part by part."""


class SparkTable:
    """The rows of a Spark DataFrame as a table of codes; encoded in the executors."""

    def __init__(self, schema: Schema, frame: SparkFrame) -> None:
        self._schema = schema
        self._frame = frame
        self._unfit: dict[str, int] = {}
        self._rows = 0

    @property
    def schema(self) -> Schema:
        """The public description of the columns."""
        return self._schema

    @property
    def max_rows(self) -> None:
        """The rows are not bounded by person."""
        return

    def fold(self, kernel: FoldKernel) -> NDArray[np.int64]:
        """The sum of the kernel over all rows: exact, sensitive."""
        work = tasks.Folding(opening=self._opening(kernel.columns), kernel=kernel)
        sending = self._frame.sending(kernel.columns, work)
        return added(*sending, kernel.zero(), self.describe())

    def map(self, kernel: MapKernel) -> Iterator[pa.RecordBatch]:
        """The kernel on each batch, partition by partition; what it draws, in a random order."""
        work = tasks.Applying(opening=self._opening(kernel.columns), kernel=kernel)
        sending = self._frame.sending(kernel.columns, work)
        return mapped(*sending, self.describe(), kernel=kernel)

    def check_folder(self, folder: str) -> None:
        """Refuse a folder that exists."""
        check_new(folder)

    def map_to_parquet(self, kernel: MapKernel, folder: str) -> int:
        """The kernel on each batch, written to Parquet by the executors; how many rows."""
        work = Writing(opening=self._opening(kernel.columns), kernel=kernel)
        sending = self._frame.sending(kernel.columns, work)
        return write_drawn(*sending, form=work.form(self.schema), folder=folder)

    def bounded(self, column: str, max_rows: int) -> "BoundedSparkTable":
        """At most ``max_rows`` rows of each person, chosen by that person's rows alone."""
        check.whole(at_least=1, max_rows=max_rows)
        names = self.schema.names
        require_columns(self._frame.names(), (*names, column), where=self.describe())
        columns = names if column in names else (*names, column)
        work = tasks.Naming(opening=self._opening(columns), column=column)
        rows = sent(*self._frame.sending(columns, work))
        return BoundedSparkTable(self.schema, rows, column, max_rows, where=self.describe())

    def validate(self) -> None:
        """Read every column once; raise what is wrong with the table before anything is spent."""
        names = self.schema.names
        work = tasks.Checking(opening=self._opening(names))
        state = np.zeros(1 + len(names), dtype=np.int64)
        rows, *unfit = added(*self._frame.sending(names, work), state, self.describe()).tolist()
        refuse_no_rows(rows, self.describe())
        self._rows = rows
        self._unfit = {name: number for name, number in zip(names, unfit, strict=True) if number}

    def misfits(self) -> tuple[str, ...]:
        """What did not fit, if ``validate`` read it: exact, and internal."""
        return misfit_sentences(self.schema, self._unfit, self._rows)

    def describe(self) -> str:
        """What was opened."""
        return self._frame.where

    def left_out(self) -> tuple[str, ...]:
        """Columns that the schema neither declares nor excludes: never read."""
        return undeclared(self._frame.names(), self.schema)

    def watch(self, tell: Callable[[int, int], None]) -> None:
        """Does nothing: Spark shows the progress of its tasks itself."""

    def _opening(self, columns: Marginal) -> tasks.RawRows:
        return tasks.RawRows(schema=self.schema, columns=columns, where=self.describe())


class BoundedSparkTable:
    """At most some rows of each person: shuffled and chosen once, stored in the executors.

    The rule is that of ``table.BoundedTable``, run by its own code where a person's rows have
    come together, so both engines keep the same rows.
    """

    def __init__(
        self, schema: Schema, rows: Parcels, column: str, max_rows: int, *, where: str
    ) -> None:
        self._schema = schema
        self._column = column
        self._max_rows = max_rows
        self._where = where
        bounding = tasks.Bounding(schema=schema, column=column, max_rows=max_rows)
        self._rows = gathered(self, rows, bounding)

    @property
    def schema(self) -> Schema:
        """The public description of the columns."""
        return self._schema

    @property
    def max_rows(self) -> int:
        """The most rows of one person that are left."""
        return self._max_rows

    def fold(self, kernel: FoldKernel) -> NDArray[np.int64]:
        """The sum of the kernel over all rows: exact, sensitive."""
        work = tasks.Folding(opening=tasks.CodedRows(schema=self.schema), kernel=kernel)
        return added(self._rows, work, kernel.zero(), self._where)

    def map(self, kernel: MapKernel) -> Iterator[pa.RecordBatch]:
        """The kernel on each batch."""
        work = tasks.Applying(opening=tasks.CodedRows(schema=self.schema), kernel=kernel)
        return mapped(self._rows, work, self._where, kernel=kernel)

    def bounded(self, column: str, max_rows: int) -> "BoundedSparkTable":
        """Refused: people are not stored once their rows were chosen."""
        raise InputError(f"the table is already bounded by {self._column!r}; bound it once")

    def validate(self) -> None:
        """Read every row once; that none of them names a person is no refusal."""
        self.fold(RowCount(self.schema.names))

    def misfits(self) -> tuple[str, ...]:
        """Not counted: rows are encoded on their way to the person."""
        return ()

    def describe(self) -> str:
        """The whole table's description and the bound."""
        return f"{self._where}, at most {self._max_rows} rows per {self._column!r}"


def sent(frame: DataFrame, work: tasks.Work) -> Parcels:
    """The parcels that the work makes of a frame; nothing runs yet."""
    return over_tasks(frame, partial(tasks.run, tasks.shipped(work)), tasks.PARCEL)


def gathered(owner: object, rows: Parcels, work: tasks.Work) -> Parcels:
    """Rows by person, all of a person in one task, then the work's parcels: stored by Spark.

    They are stored in the executors as long as the owner lives.
    """
    number = int(rows.sparkSession.conf.get("spark.sql.shuffle.partitions") or 200)
    parcels = sent(rows.repartition(number, "person"), work).persist()
    weakref.finalize(owner, _release, parcels).atexit = False
    return parcels


def added(
    frame: DataFrame, work: tasks.Work, state: NDArray[np.int64], where: str
) -> NDArray[np.int64]:
    """The sum of the states that the work makes in each task.

    Small ones are added here, one for each task. Large ones are cut into pieces and added in the
    executors first: then one comes here, whatever the number of tasks.
    """
    with failing(where):
        parcels = sent(frame, work)
        if state.nbytes > _REDUCE_BYTES:
            number = int(frame.sparkSession.conf.get("spark.sql.shuffle.partitions") or 200)
            number = min(number, -(-state.size // tasks.PIECE_CELLS))
            parcels = sent(parcels.repartition(number, "index"), tasks.Adding())
        large = state.nbytes > _COLLECT_BYTES
        batches = _streamed(parcels) if large else iter(parcels.toArrow().to_batches())
        tasks.add_pieces(state, tasks.contents(batches))
    return state


def mapped(
    frame: DataFrame, work: tasks.Work, where: str, *, kernel: MapKernel
) -> Iterator[pa.RecordBatch]:
    """The batches that the work makes, partition by partition; two are under way at a time.

    Where Spark puts a row may depend on what it says (a table laid out by a column, rows sorted
    before they are spread). So what a kernel drew for the rows, which may be published one by one,
    comes in a random order.
    """
    rng = tasks.generator_in(kernel)
    batches = _unpacked(frame, work, where)
    return batches if rng is None else mixed(batches, rng=rng)


def refuse_no_rows(rows: int, where: str) -> None:
    """Raise if there are none."""
    if not rows:
        raise TableError(f"{where}: there are no rows; there is nothing to publish.")


def _release(parcels: Parcels) -> None:
    with suppress(Exception):  # where the session has ended, so have they
        parcels.unpersist()


def _unpacked(frame: DataFrame, work: tasks.Work, where: str) -> Iterator[pa.RecordBatch]:
    with failing(where):
        for _, data in tasks.contents(_streamed(sent(frame, work))):
            yield from tasks.unpacked(data)


def _streamed(frame: Parcels) -> Iterator[pa.RecordBatch]:
    """Parcels one by one, in order, with the next partition under way."""
    for row in frame.toLocalIterator(prefetchPartitions=True):
        one = {"index": row["index"], "data": _bytes(row["data"]), "error": row["error"]}
        yield pa.RecordBatch.from_pylist([one], schema=tasks.PARCEL)


def _bytes(value: bytearray | None) -> bytes | None:
    return None if value is None else bytes(value)
