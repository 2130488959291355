"""Spark, and nothing else in sfumato knows it: the same kernels beyond one machine.

The driver sends kernels and adds up what comes back: it never collects the rows of a table to
count them. What Spark says about a failure may quote the data, so it is never passed on. Classic
sessions and Spark Connect share the few calls that are used here; the former are tested.
"""

import os
import re
import shutil
import sys
import warnings
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from py4j.protocol import Py4JError
from pyspark import TaskContext
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from sfumato import check
from sfumato.engine import spark_tasks as tasks
from sfumato.engine.addresses import SPARK
from sfumato.engine.counting import RowCount
from sfumato.engine.mixing import mixed
from sfumato.engine.source import require_columns, undeclared
from sfumato.engine.table import FoldKernel, MapKernel
from sfumato.errors import InputError, StorageError, TableError
from sfumato.schema import Marginal, Schema
from sfumato.schema.base import repeated

Parcels = DataFrame
"""A frame whose rows are parcels (``spark_tasks``)."""

_NOTHING_DONE: Final = "Nothing was published and nothing was spent."
_REDUCE_BYTES: Final = 2**18
"""Larger states are added up in the executors before they come to the driver."""
_COLLECT_BYTES: Final = 2**28
"""Larger results come to the driver part by part."""
_MISSING: Final = re.compile(r"No module named '?([A-Za-z0-9_]+)")


@dataclass(frozen=True, eq=False)
class SparkFrame:
    """A Spark DataFrame, and what to call it."""

    frame: DataFrame
    where: str

    @cached_property
    def _names(self) -> tuple[str, ...]:
        with failing(self.where):
            return tuple(self.frame.columns)

    def names(self) -> tuple[str, ...]:
        """The columns, each once."""
        if twice := repeated(self._names):
            raise TableError(
                f"{self.where}: these column names stand twice: {', '.join(twice[:12])}. Rename "
                f"one of each. {_NOTHING_DONE}"
            )
        return self._names

    def select(self, columns: Marginal) -> DataFrame:
        """The named columns, under names that need no quotes: Spark ignores case and reads dots."""
        found = self.names()
        with failing(self.where):
            plain = self.frame.toDF(*(f"c{place}" for place in range(len(found))))
            return plain.select(*(f"c{found.index(name)}" for name in columns))


class SparkTable:
    """The rows of a Spark DataFrame as a table of codes; encoded in the executors."""

    def __init__(self, schema: Schema, frame: SparkFrame) -> None:
        self._schema = schema
        self._frame = frame

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
        return added(self._frame.select(kernel.columns), work, kernel.zero(), self.describe())

    def map(self, kernel: MapKernel) -> Iterator[pa.RecordBatch]:
        """The kernel on each batch, partition by partition; what it draws, in a random order."""
        work = tasks.Applying(opening=self._opening(kernel.columns), kernel=kernel)
        return mapped(self._frame.select(kernel.columns), work, self.describe())

    def map_to_parquet(self, kernel: MapKernel, folder: str) -> None:
        """The kernel on each batch, written to Parquet files by the executors, past the driver.

        A task that Spark runs twice draws anew; what it wrote is part of the folder only once, as
        Spark commits one attempt of each task. Files follow partitions, so the place of a row in
        them may tell what it says: for whoever may know where rows lie. ``folder`` must not exist.
        """
        work = tasks.Writing(opening=self._opening(kernel.columns), kernel=kernel)
        with failing(self.describe()):
            do = partial(tasks.run_writing, tasks.shipped(work))
            rows = _mapped(self._frame.select(kernel.columns), do, work.form(self.schema))
            rows.write.mode("errorifexists").parquet(folder)

    def bounded(self, column: str, max_rows: int) -> "BoundedSparkTable":
        """At most ``max_rows`` rows of each person, chosen by that person's rows alone."""
        check.whole(at_least=1, max_rows=max_rows)
        names = self.schema.names
        require_columns(self._frame.names(), (*names, column), where=self.describe())
        columns = names if column in names else (*names, column)
        work = tasks.Naming(opening=self._opening(columns), column=column)
        rows = sent(self._frame.select(columns), work)
        return BoundedSparkTable(self.schema, rows, column, max_rows, where=self.describe())

    def validate(self) -> None:
        """Read every column once; raise the first thing that does not fit."""
        refuse_no_rows(self.fold(RowCount(self.schema.names))[0], self.describe())

    def describe(self) -> str:
        """What was opened."""
        return self._frame.where

    def left_out(self) -> tuple[str, ...]:
        """Columns that the schema neither declares nor excludes: never read."""
        return undeclared(self._frame.names(), self.schema)

    def watch(self, tell: Callable[[int, int], None]) -> None:
        """Nobody is told: Spark shows the progress of its tasks itself."""

    def _opening(self, columns: Marginal) -> tasks.RawRows:
        return tasks.RawRows(schema=self.schema, columns=columns, where=self.describe())


class BoundedSparkTable:
    """At most some rows of each person: shuffled and chosen once, kept in the executors.

    The rule is that of ``coded.BoundedTable``, run by its own code where a person's rows have
    come together, so both engines keep the same rows.
    """

    def __init__(
        self, schema: Schema, rows: Parcels, column: str, max_rows: int, *, where: str
    ) -> None:
        self._schema = schema
        self._column = column
        self._max_rows = max_rows
        self._where = where
        keeping = tasks.Keeping(schema=schema, column=column, max_rows=max_rows)
        self._rows = gathered(self, rows, keeping)

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
        work = tasks.Folding(opening=tasks.KeptRows(schema=self.schema), kernel=kernel)
        return added(self._rows, work, kernel.zero(), self._where)

    def map(self, kernel: MapKernel) -> Iterator[pa.RecordBatch]:
        """The kernel on each batch."""
        work = tasks.Applying(opening=tasks.KeptRows(schema=self.schema), kernel=kernel)
        return mapped(self._rows, work, self._where)

    def bounded(self, column: str, max_rows: int) -> "BoundedSparkTable":
        """Refused: the people were let go once their rows were chosen."""
        raise InputError(f"the table is already bounded by {self._column!r}; bound it once")

    def validate(self) -> None:
        """Read every column once; raise the first thing that does not fit."""
        refuse_no_rows(self.fold(RowCount(self.schema.names))[0], self._where)

    def describe(self) -> str:
        """The whole table's description and the bound."""
        return f"{self._where}, at most {self._max_rows} rows per {self._column!r}"


def spark_frame(source: Any) -> SparkFrame:
    """A DataFrame, or the path or table that is named after ``spark::``; no row is read."""
    if isinstance(source, DataFrame):
        if source.isStreaming:
            raise InputError(
                "a stream never ends, and a table is read several times. Nothing was read. Write "
                "the stream to a table first."
            )
        return SparkFrame(source, "Spark DataFrame")
    if not isinstance(source, str):
        raise InputError(
            f"Spark tables are opened from a pyspark.sql.DataFrame, got {type(source).__name__}. "
            "Nothing was read. A pandas-on-Spark frame has one: frame.to_spark()."
        )
    name = source.removeprefix(SPARK)
    with failing(source):
        spark = session()
        is_path = "/" in name or name.endswith((".parquet", ".pq"))
        return SparkFrame(spark.read.parquet(name) if is_path else spark.table(name), source)


def session() -> SparkSession:
    """The session of this process, or a new one as Spark's own settings say."""
    if (found := SparkSession.getActiveSession()) is not None:
        return found
    if "SPARK_REMOTE" not in os.environ and not _java():
        raise InputError(
            "Spark needs Java 17 or newer, and there is none: neither JAVA_HOME nor the command "
            "java leads to one. Nothing was read. On Debian: apt-get install default-jre-headless"
        )
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # else executors take any python3
    made = SparkSession.builder.appName("sfumato")
    for name, value in _SETTINGS.items():
        made = made.config(name, value)
    return made.getOrCreate()


def sent(frame: DataFrame, work: tasks.Work) -> Parcels:
    """The parcels that the work makes of a frame; nothing runs yet."""
    return _mapped(frame, partial(tasks.run, tasks.shipped(work)), tasks.PARCEL)


def gathered(owner: object, rows: Parcels, work: tasks.Work) -> Parcels:
    """Rows by person, all of a person in one task, then the work's parcels: kept by Spark.

    They are kept in the executors as long as the owner lives.
    """
    number = int(rows.sparkSession.conf.get("spark.sql.shuffle.partitions") or 200)
    kept = sent(rows.repartition(number, "person"), work).persist()
    weakref.finalize(owner, _let_go, kept).atexit = False
    return kept


def added(
    frame: DataFrame, work: tasks.Work, state: NDArray[np.int64], where: str
) -> NDArray[np.int64]:
    """The sum of the states that the work makes in each task.

    Small ones are added here, one for each task. Large ones are cut into pieces and added in the
    executors first: then one comes here, whatever the number of tasks.
    """
    with failing(where):
        found = sent(frame, work)
        if state.nbytes > _REDUCE_BYTES:
            number = int(frame.sparkSession.conf.get("spark.sql.shuffle.partitions") or 200)
            number = min(number, -(-state.size // tasks.PIECE_CELLS))
            found = sent(found.repartition(number, "place"), tasks.Adding())
        large = state.nbytes > _COLLECT_BYTES
        parcels = _streamed(found) if large else iter(found.toArrow().to_batches())
        tasks.add_pieces(state, tasks.contents(parcels))
    return state


def mapped(frame: DataFrame, work: tasks.Applying, where: str) -> Iterator[pa.RecordBatch]:
    """The batches that the work makes, partition by partition; two are under way at a time.

    Where Spark puts a row may depend on what it says (a table laid out by a column, rows sorted
    before they are spread). So what a kernel drew for the rows, which may be published one by one,
    comes in a random order.
    """
    rng = tasks.generator_in(work.kernel)
    found = _unpacked(frame, work, where)
    return found if rng is None else mixed(found, rng=rng)


def refuse_no_rows(rows: int, where: str) -> None:
    """Raise if there are none."""
    if not rows:
        raise TableError(f"{where}: there are no rows; there is nothing to publish.")


@contextmanager
def failing(where: str) -> Iterator[None]:
    """Our own words for what Spark says, which may quote the data."""
    try:
        yield
    except (PySparkException, Py4JError) as error:
        raise _failure(where, str(error)) from None


def _mapped(
    frame: DataFrame, do: Callable[[tasks.Batches, int], tasks.Batches], form: pa.Schema
) -> DataFrame:
    """What a function of a task's batches and its number makes of a frame; nothing runs yet."""

    def task(batches: tasks.Batches) -> tasks.Batches:
        context = TaskContext.get()
        return do(batches, context.partitionId() if context else 0)

    with warnings.catch_warnings():  # on pandas, which is not used here
        warnings.simplefilter("ignore", FutureWarning)
        return frame.mapInArrow(task, from_arrow_schema(form))


def _failure(where: str, said: str) -> InputError | StorageError:
    if missing := _MISSING.search(said):
        return InputError(
            f"{where}: the Python of the executors has no {missing[1]}. {_NOTHING_DONE} Install "
            "'sfumato[spark]' there, and let PYSPARK_PYTHON name that Python."
        )
    if found := next((ours for theirs, ours in _ADVICE.items() if theirs in said), None):
        return InputError(f"{where}: {found}. {_NOTHING_DONE}")
    return StorageError(
        f"{where}: Spark could not read all of it. What it says may quote data and is not shown; "
        "the log of its executors has it. Nothing was published. If it was short of memory, use "
        "more partitions."
    )


def _let_go(kept: Parcels) -> None:
    with suppress(Exception):  # where the session has ended, so have they
        kept.unpersist()


def _unpacked(frame: DataFrame, work: tasks.Work, where: str) -> Iterator[pa.RecordBatch]:
    with failing(where):
        for _, data in tasks.contents(_streamed(sent(frame, work))):
            yield from tasks.unpacked(data)


def _streamed(frame: Parcels) -> Iterator[pa.RecordBatch]:
    """Parcels one by one, in order, with the next partition under way."""
    for row in frame.toLocalIterator(prefetchPartitions=True):
        one = {"place": row["place"], "data": _bytes(row["data"]), "error": row["error"]}
        yield pa.RecordBatch.from_pylist([one], schema=tasks.PARCEL)


def _bytes(value: bytearray | None) -> bytes | None:
    return None if value is None else bytes(value)


def _java() -> bool:
    home = os.environ.get("JAVA_HOME")
    return shutil.which(f"{home}/bin/java" if home else "java") is not None


_SETTINGS: Final = {
    "spark.sql.execution.arrow.maxRecordsPerBatch": "20000",  # 10,000 are counted slower
    "spark.log.level": "ERROR",
    "spark.ui.showConsoleProgress": str(sys.stderr.isatty()).lower(),
}
_ADVICE: Final = {
    "TABLE_OR_VIEW_NOT_FOUND": "Spark knows no such table or view",
    "PATH_NOT_FOUND": "there is no such path",
    "PACKAGE_NOT_INSTALLED": "a package is missing here: pip install 'sfumato[spark]'",
    "PYTHON_VERSION_MISMATCH": "driver and executors have different versions of Python",
    "UNSUPPORTED_DATATYPE": "a column has a type that Arrow does not hold; leave it out",
    "UNSUPPORTED_DATA_TYPE": "a column has a type that Arrow does not hold; leave it out",
    "UNABLE_TO_INFER_SCHEMA": "there is no Parquet file",
    "JAVA_GATEWAY_EXITED": "Java did not start: Spark needs version 17 or newer",
    "PARSE_SYNTAX_ERROR": "that is no name of a table, nor a path with a slash in it",
}
"""What is in Spark's messages, and what we say instead; the first that fits."""
