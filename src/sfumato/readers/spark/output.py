"""Rows that executors draw and write to Parquet themselves, past the driver, in a random order.

A task may run twice, and then draws anew. So what is drawn is written first, by Spark's rule that
one attempt of each task is committed, and put in order afterwards: if rows were shuffled while they
are drawn, a lost machine could bring out two answers of one row.
"""

from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from typing import Final

import numpy as np
import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as sf

from sfumato.counting.table import MapKernel
from sfumato.errors import InputError, InternalError
from sfumato.randomness import Rng
from sfumato.readers.spark import tasks
from sfumato.readers.spark.frames import failing, over_tasks, session
from sfumato.readers.spark.tasks import Batches, Opening
from sfumato.schema import Schema
from sfumato.schema.codes import code_type

FILE_ROWS: Final = 2**20
"""Rows in each file but the last: a fixed number, so that files reveal only their total."""
_WHOLE_FILES: Final = {"maxRecordsPerFile": "0"}
"""Whatever the session is set to, a partition is one file."""
_PILE, _KEY, _ROW = "pile", "key", "row"
_DRAWN: Final = "_drawn"
"""Inside the folder; Spark and Arrow pass over names that begin so."""
_ABOUT: Final = "_about"
_WRITABLE: Final = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
}


@dataclass(frozen=True, kw_only=True, eq=False)
class Writing:
    """The kernel's batches instead of rows, in types that Spark has.

    Each row gets two random numbers, which decide its position among all rows.
    """

    opening: Opening
    kernel: MapKernel

    def form(self, schema: Schema) -> pa.Schema:
        """The types of what will be written, from a batch without rows."""
        nothing = {c: np.zeros(0, dtype=code_type(schema[c])) for c in self.kernel.columns}
        return _keyed(self.kernel.apply(nothing), rng=self._rng()).schema

    def run(self, batches: Batches, task: int) -> Batches:
        """In the order of the rows."""
        drawn = self.opening.table(batches, task).map(self.kernel)
        return map(partial(_keyed, rng=self._rng()), drawn)

    def _rng(self) -> Rng:
        if (rng := tasks.generator_in(self.kernel)) is None:
            raise InternalError("only what a kernel draws is written past the driver")
        return rng


def write_drawn(frame: DataFrame, work: tasks.Work, *, form: pa.Schema, folder: str) -> int:
    """Let tasks draw and write, then put all rows in a random order; returns how many there are.

    Every order is equally likely, and the files depend on the number of rows alone: each has
    ``FILE_ROWS`` of them but the last, however the frame is divided. The folder must not exist.
    """
    check_new(folder)
    with failing(folder, doing="write"):
        do = partial(tasks.run_writing, tasks.shipped(work))
        path = f"{folder}/{_DRAWN}"
        over_tasks(frame, do, form).write.parquet(path)
        spark = frame.sparkSession
        drawn = spark.read.parquet(path)
        rows = drawn.count()
        in_files = _in_files(drawn, files=max(1, -(-rows // FILE_ROWS)))
        in_files.write.mode("append").options(**_WHOLE_FILES).parquet(folder)
        spark.createDataFrame([], drawn.schema).write.mode("overwrite").parquet(path)
        return rows


def _in_files(drawn: DataFrame, *, files: int) -> DataFrame:
    """The rows in the order of their random numbers, one partition for each file."""
    piles = drawn.withColumn(_PILE, sf.pmod(_PILE, sf.lit(files)))
    sizes: dict[int, int] = dict(piles.groupBy(_PILE).count().collect())
    before = list(accumulate((sizes.get(pile, 0) for pile in range(files)), initial=0))
    window = Window.partitionBy(_PILE).orderBy(_KEY)
    row = _looked_up(before, sf.col(_PILE)) + sf.row_number().over(window) - 1
    ordered = piles.withColumn(_ROW, row).drop(_PILE, _KEY)
    file = (sf.col(_ROW) / FILE_ROWS).cast("long")  # exact: far below 2^53 rows
    key = _looked_up(_partition_keys(drawn.sparkSession, files), file)
    return ordered.repartition(files, key).sortWithinPartitions(_ROW).drop(_ROW)


def _looked_up(numbers: list[int], index: Column) -> Column:
    return sf.array(*(sf.lit(number).cast("long") for number in numbers))[index]


def _partition_keys(spark: SparkSession, partitions: int) -> list[int]:
    """For each partition a number that Spark's own hash puts there."""
    tried = spark.range(64 * partitions).withColumn(
        _PILE, sf.pmod(sf.hash("id"), sf.lit(partitions))
    )
    keys: dict[int, int] = dict(tried.groupBy(_PILE).agg(sf.min("id")).collect())
    return [keys[partition] for partition in range(partitions)]


def check_new(folder: str) -> None:
    """Refuse a folder that exists."""
    if _exists(folder):
        raise InputError(f"{folder} exists. Choose another name.")


def write_about(folder: str, text: str) -> None:
    """Keep a text beside the rows in a folder."""
    with failing(folder, doing="write"):
        spark = session()
        row = spark.createDataFrame([(text,)], "value string").coalesce(1)
        row.write.text(f"{folder}/{_ABOUT}")


def read_about(folder: str) -> str | None:
    """The text that is stored beside the rows of a folder; None if there is none."""
    path = f"{folder}/{_ABOUT}"
    if not _exists(path):
        return None
    with failing(folder):
        return "\n".join(row["value"] for row in session().read.text(path).collect())


def writable(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The same values in types that Spark has: unsigned numbers in wider ones, plain bytes.

    >>> writable(pa.record_batch({"a": pa.array([255], pa.uint8())})).schema.types
    [DataType(int16)]
    """
    arrays = [column.cast(_WRITABLE.get(column.type, column.type)) for column in batch.columns]
    plain = [
        array.cast(pa.binary()) if pa.types.is_fixed_size_binary(array.type) else array
        for array in arrays
    ]
    return pa.RecordBatch.from_arrays(plain, names=batch.schema.names)


def _keyed(batch: pa.RecordBatch, *, rng: Rng) -> pa.RecordBatch:
    """The rows in types that Spark has, with two random numbers of 64 bits each."""
    plain = writable(batch)
    numbers = rng.words(2 * batch.num_rows).view(np.int64).reshape(2, -1)
    arrays = [*plain.columns, *(pa.array(column) for column in numbers)]
    return pa.RecordBatch.from_arrays(arrays, names=[*plain.schema.names, _PILE, _KEY])


def _exists(path: str) -> bool:
    """Whether there is anything at a path, on whatever Spark can reach."""
    with failing(path):
        try:
            session().read.format("binaryFile").load(path)
        except AnalysisException as error:
            if "PATH_NOT_FOUND" in str(error):
                return False
            raise
    return True
