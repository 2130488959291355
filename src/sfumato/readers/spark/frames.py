"""Sessions, frames and failures of Spark: how its tables are named, opened and sent to tasks.

What Spark says about a failure may quote the data, so it is never passed on. Classic sessions and
Spark Connect share the few calls that are used here; the former are tested.
"""

import os
import re
import shutil
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark import TaskContext
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession, is_remote
from pyspark.sql.pandas.types import from_arrow_schema

from sfumato.errors import InputError, StorageError, TableError
from sfumato.readers.locations import SPARK, is_spark_path
from sfumato.readers.source_table import require_unique
from sfumato.readers.spark import tasks
from sfumato.readers.spark.files import ParquetFiles, Reading, folder_keys
from sfumato.schema import Marginal

_MISSING: Final = re.compile(r"No module named '?([A-Za-z0-9_]+)")


@dataclass(frozen=True, eq=False)
class SparkFrame:
    """A Spark DataFrame, and what to call it."""

    frame: DataFrame
    where: str
    is_files: bool = False
    """Whether it is no more than Parquet files."""

    @cached_property
    def _names(self) -> tuple[str, ...]:
        with failing(self.where):
            return tuple(self.frame.columns)

    def names(self) -> tuple[str, ...]:
        """The columns, each once."""
        require_unique(self._names, where=self.where)
        return self._names

    def sending(self, columns: Marginal, work: tasks.Work) -> tuple[DataFrame, tasks.Work]:
        """The frame to send, and the work on it that does the given one on the named columns.

        Where tasks can read the files themselves, the frame only says which of them.
        """
        if self._files is None or not self._files.plain(columns):
            return self.select(columns), work
        spark = self.frame.sparkSession
        shares = self._files.shares(spark.sparkContext.defaultParallelism)
        reading = Reading(shares=shares, columns=columns, work=work)
        return spark.range(0, len(shares), 1, max(1, len(shares))), reading

    @cached_property
    def _files(self) -> ParquetFiles | None:
        if not self.is_files or is_remote():
            return None
        with failing(self.where):
            return ParquetFiles.at(self.frame.inputFiles(), self.names())

    def select(self, columns: Marginal) -> DataFrame:
        """The named columns, under names that need no quotes: Spark ignores case and reads dots."""
        names = self.names()
        with failing(self.where):
            plain = self.frame.toDF(*(f"c{index}" for index in range(len(names))))
            return plain.select(*(f"c{names.index(name)}" for name in columns))


def spark_frame(source: Any) -> SparkFrame:
    """A DataFrame, or the path or table that is named after ``spark::``; no row is read."""
    if isinstance(source, DataFrame):
        if source.isStreaming:
            raise InputError(
                "a stream never ends, and a table is read several times. Write the stream to a "
                "table first."
            )
        return SparkFrame(source, "Spark DataFrame")
    if not isinstance(source, str):
        raise InputError(
            f"Spark tables are opened from a pyspark.sql.DataFrame, got {type(source).__name__}. "
            "A pandas-on-Spark frame has one: frame.to_spark()."
        )
    name = source.removeprefix(SPARK)
    with failing(source):
        spark = session()
        is_path = is_spark_path(name)
        frame = spark.read.parquet(name) if is_path else spark.table(name)
        if is_path:
            _refuse_folders_for_columns(frame, name)
        return SparkFrame(frame, source, is_files=is_path)


def _refuse_folders_for_columns(frame: DataFrame, name: str) -> None:
    """Refuse files whose own column Spark would replace by a part of a folder's name.

    All rows of ``id=7`` would be of one person, whatever the files say.
    """
    keys = folder_keys(frame.inputFiles(), name)
    if not keys:
        return
    by_file = frame.sparkSession.read.option("recursiveFileLookup", "true").parquet(name)
    if twice := sorted(keys & {column.lower() for column in by_file.columns}):
        raise TableError(
            f"{SPARK}{name}: these columns are in the files, and in the names of folders, which "
            f"Spark would read instead: {', '.join(map(repr, twice[:12]))}. Rename the folders, "
            "or give the path of one of them."
        )


def session() -> SparkSession:
    """The session of this process, or a new one as Spark's own settings say."""
    if (active := SparkSession.getActiveSession()) is not None:
        return active
    if "SPARK_REMOTE" not in os.environ and not _java():
        raise InputError(
            "Spark needs Java 17 or newer, and there is none: neither JAVA_HOME nor the command "
            "java leads to one. On Debian: apt-get install default-jre-headless"
        )
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # else executors take any python3
    made = SparkSession.builder.appName("sfumato")
    for name, value in _SETTINGS.items():
        made = made.config(name, value)
    return made.getOrCreate()


@contextmanager
def failing(where: str, *, doing: str = "read") -> Iterator[None]:
    """Our own words for what Spark says, which may quote the data."""
    try:
        yield
    except (PySparkException, Py4JError) as error:
        raise _failure(where, str(error), doing) from None


def over_tasks(
    frame: DataFrame, do: Callable[[tasks.Batches, int], tasks.Batches], form: pa.Schema
) -> DataFrame:
    """What a function of a task's batches and its number makes of a frame; nothing runs yet."""

    def task(batches: tasks.Batches) -> tasks.Batches:
        context = TaskContext.get()
        return do(batches, context.partitionId() if context else 0)

    with warnings.catch_warnings():  # on pandas, which is not used here
        warnings.simplefilter("ignore", FutureWarning)
        return frame.mapInArrow(task, from_arrow_schema(form))


def _failure(where: str, message: str, doing: str) -> InputError | StorageError:
    if missing := _MISSING.search(message):
        return InputError(
            f"{where}: the Python of the executors has no {missing[1]}. Install 'sfumato[spark]' "
            "there, and let PYSPARK_PYTHON name that Python."
        )
    if advice := next((ours for theirs, ours in _ADVICE.items() if theirs in message), None):
        return InputError(f"{where}: {advice}.")
    return StorageError(
        f"{where}: Spark could not {doing} all of it. What it says may quote data and is not "
        "shown; the log of its executors has it. If it was short of memory, use more partitions."
    )


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
