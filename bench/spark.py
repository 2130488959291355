"""The same kernels on one machine and on Spark in local mode: all pairs of a wide table.

Run with ``python bench/spark.py [--rows 10000000] [--only speed|growth|releases]``. CPU seconds are
those of the whole tree of processes: this one, the Java machine and its Python workers. Prints the
ratio of Spark to the embedded engine (hold: at most 8), the exponent of the cost against the number
of equal partitions (hold: at most 1.1), and whether both engines publish the same rows under the
same seed for every counting method (hold: all). Runs take turns; the best of each is told.
"""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from counting import PAIRS, SCHEMA, write
from recording import OURS, record
from sfumato.commands.publish import publish_table
from sfumato.counting.exact_counts import ExactCounts, count_marginals
from sfumato.readers.open_table import open_table
from sfumato.schema import Schema

PARTS = 10
METHODS = {
    "independent": 15,
    "histogram": 4,  # of so many columns: it counts every cell
    "mwem": 4,
    "mst": 15,
    "cliquetree": 15,
    "privbayes": 6,
    "aim": 4,
}
RELEASE_ROWS = 100_000
TICKS = os.sysconf("SC_CLK_TCK")


def main() -> None:
    options = _options()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        spark = started(folder)
        write_parts(folder, options.rows)
        print(f"Spark {spark.version}, local[2]; {options.rows:,} rows in {PARTS} files")
        for part in (speed, growth, releases):
            if options.only in (None, part.__name__):
                part(folder, spark, options.repeat)
        spark.stop()


def started(folder: Path) -> SparkSession:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    settings = {
        "spark.local.dir": str(folder / "local"),
        "spark.log.level": "OFF",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "20000",
        "spark.sql.files.openCostInBytes": str(2**30),  # each file is a partition
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    builder = SparkSession.builder.master("local[2]")
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def write_parts(folder: Path, rows: int) -> None:
    """The whole table in one file, and the same rows in several."""
    write(rows, folder / "whole.parquet")
    (folder / "parts").mkdir()
    with pq.ParquetFile(folder / "whole.parquet") as file:
        for place, batch in enumerate(file.iter_batches(-(-rows // PARTS))):
            with pq.ParquetWriter(folder / "parts" / f"{place}.parquet", batch.schema) as writer:
                writer.write_batch(batch)


def speed(folder: Path, spark: SparkSession, repeat: int) -> None:
    """Files that tasks read themselves, and a DataFrame whose rows Spark hands to them."""
    ways = {
        "embedded engine": folder / "whole.parquet",
        "Spark, Parquet files": f"spark::{folder / 'parts'}",
        "Spark, DataFrame": spark.read.parquet(str(folder / "parts")),
    }
    exact = [_count(source) for source in ways.values()]
    same = all(np.array_equal(exact[0][pair], e[pair]) for e in exact for pair in PAIRS)
    print(f"all {len(PAIRS)} pairs are the same bit for bit: {same} (hold: True)", flush=True)
    _count(ways["Spark, DataFrame"])  # Java's second compiler is nearly done by now
    costs = dict.fromkeys(ways, (np.inf, np.inf))
    for _ in range(repeat):
        for way, source in ways.items():
            costs[way] = min(costs[way], timed(partial(_count, source)))
    embedded = costs["embedded engine"][0]
    for way, (cpu, wall) in costs.items():
        ratio = cpu / embedded
        print(f"{way:<22}{cpu:6.2f} CPU-s {wall:6.2f} s {ratio:6.2f}x CPU (hold: at most 8)")
        record(f"all 105 pairs, {way}", OURS, cpu, "CPU-s")
        if way != "embedded engine":
            record(f"{way}, against the embedded engine", OURS, ratio, "times the CPU")


def growth(folder: Path, spark: SparkSession, repeat: int) -> None:
    """The cost of 1, 2, 5 and 10 partitions of the same size."""
    numbers = (1, 2, 5, PARTS)
    sources = {n: _frame(folder, spark, n) for n in numbers}
    for number in numbers:
        assert sources[number].rdd.getNumPartitions() == number
    _count(sources[PARTS])
    costs: dict[int, float] = dict.fromkeys(numbers, np.inf)
    for _ in range(repeat):
        for number, frame in sources.items():
            costs[number] = min(costs[number], timed(lambda frame=frame: _count(frame))[0])
    for number, cost in costs.items():
        print(f"{number:3d} partitions {cost:6.2f} CPU-s {cost / number:6.2f} for each")
    slope = np.polyfit(np.log(numbers), np.log(list(costs.values())), 1)[0]
    print(f"exponent: {slope:.2f} (hold: at most 1.1)")
    record("Spark, CPU against the number of partitions", OURS, slope, "exponent")


def releases(folder: Path, spark: SparkSession, repeat: int) -> None:
    """Both engines publish the same rows, however the rows are spread."""
    with pq.ParquetFile(folder / "whole.parquet") as file:
        rows = pa.Table.from_batches([next(file.iter_batches(RELEASE_ROWS))])
    frame = spark.createDataFrame(rows).repartition(4).cache()
    for method, columns in METHODS.items():
        schema = Schema(columns=SCHEMA.columns[:columns], dataset="bench")
        asked: dict[str, Any] = {"schema": schema, "epsilon": 1, "method": method, "seed": 5}
        asked |= {"neighbors": "replace"} if method == "privbayes" else {}
        sources = rows.select(schema.names), frame.select(*schema.names)
        made = [publish_table(source, **asked).data for source in sources]
        print(
            f"{method:<12} {columns:2d} columns, same release: {made[0].equals(made[1])}",
            flush=True,
        )


def _count(source: Any) -> ExactCounts:
    return count_marginals(open_table(source, SCHEMA), PAIRS)


def _frame(folder: Path, spark: SparkSession, number: int) -> Any:
    return spark.read.parquet(*(str(folder / "parts" / f"{n}.parquet") for n in range(number)))


def timed(run: Callable[[], Any]) -> tuple[float, float]:
    """CPU seconds of all processes below this one, and wall seconds."""
    wall, cpu = time.perf_counter(), tree_cpu()
    run()
    return tree_cpu() - cpu, time.perf_counter() - wall


def tree_cpu() -> float:
    """CPU seconds of this process and all below it, also of those that have ended."""
    found = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            text = path.read_text()
        except OSError:
            continue
        fields = text[text.rindex(")") + 2 :].split()
        found[int(path.parent.name)] = int(fields[1]), sum(map(int, fields[11:15]))

    def below(process: int) -> int:
        children = [child for child, (parent, _) in found.items() if parent == process]
        return found[process][1] + sum(map(below, children))

    return below(os.getpid()) / TICKS


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--only", choices=["speed", "growth", "releases"])
    return parser.parse_args()


if __name__ == "__main__":
    main()
