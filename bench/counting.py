"""All pairs of a wide table: the kernel on arrays in memory against the whole Parquet path.

Run with ``python bench/counting.py [--rows 10000000]``. Prints CPU and wall seconds, the ratio of
the Parquet path to the kernel alone (hold: at most 2), the peak memory of the Parquet path in a
process of its own (hold: below 600 MB), DuckDB's GROUP BY on three pairs, and the limit: one pass
over the bytes of the codes.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from sfumato.engine import ArrayTable, count_marginals, open_table
from sfumato.randomness import simulation_rng
from sfumato.schema import Integer, Schema

SIZES = tuple(range(2, 31, 2))
SCHEMA = Schema(
    columns=tuple(Integer(name=f"c{place}", low=0, high=n - 1) for place, n in enumerate(SIZES))
)
PAIRS = tuple(combinations(SCHEMA.names, 2))


def main() -> None:
    options = _options()
    if options.parquet:
        count_parquet(options.parquet)
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.parquet"
        codes = make(options.rows, path)
        table = ArrayTable(SCHEMA, codes)
        count_marginals(ArrayTable(SCHEMA, {n: c[:1000] for n, c in codes.items()}), PAIRS)
        print(f"{options.rows:,} rows x {len(SIZES)} columns, all {len(PAIRS)} pairs")
        limit = timed("one pass over the codes", lambda: [c.sum() for c in codes.values()])
        alone = timed("kernel, arrays in memory", lambda: count_marginals(table, PAIRS))
        whole = timed(
            "kernel, Parquet file", lambda: count_marginals(open_table(path, SCHEMA), PAIRS)
        )
        decoding = timed("pyarrow's decoding alone", lambda: decode(path))
        print(f"Parquet / memory: {whole / alone:.2f}x CPU (hold: at most 2)")
        print(f"Parquet / (memory + decoding): {whole / (alone + decoding):.2f}x CPU")
        print(f"memory / one pass: {alone / limit:.0f}x CPU")
        print(f"peak memory of the Parquet run: {peak_mb(path):.0f} MB (hold: below 600)")
        group_by(path)


def make(rows: int, path: Path) -> dict[str, np.ndarray]:
    """Uniform codes, written as 64-bit integers as most tools do."""
    rng = simulation_rng(0)
    codes = {c.name: rng.below(c.size, rows).astype(np.uint8) for c in SCHEMA}
    with pq.ParquetWriter(path, pa.schema([(name, pa.int64()) for name in codes])) as writer:
        for start in range(0, rows, 1_000_000):
            part = {n: c[start : start + 1_000_000].astype(np.int64) for n, c in codes.items()}
            writer.write_table(pa.table(part))
    return codes


def timed(label: str, run: Callable[[], Any], repeat: int = 3) -> float:
    """The best CPU seconds of some runs, printed with their wall seconds."""
    best = (float("inf"), float("inf"))
    for _ in range(repeat):
        wall, cpu = time.perf_counter(), time.process_time()
        run()
        best = min(best, (time.process_time() - cpu, time.perf_counter() - wall))
    print(f"{label:<28} {best[0]:7.2f} CPU-s {best[1]:7.2f} s")
    return best[0]


def decode(path: Path) -> None:
    """What the Parquet path can't be faster than, beside the kernel."""
    with pq.ParquetFile(path, pre_buffer=False) as file:
        for _ in file.iter_batches(65_536, use_threads=False):
            pass


def group_by(path: Path) -> None:
    """DuckDB's own counting of three pairs, for comparison; not extrapolated."""
    import duckdb  # here, so that the memory of the other runs is their own

    with duckdb.connect() as connection:
        for left, right in (PAIRS[0], PAIRS[len(PAIRS) // 2], PAIRS[-1]):
            query = f"SELECT {left}, {right}, count(*) FROM read_parquet(?) GROUP BY ALL"
            timed(
                f"DuckDB GROUP BY {left}, {right}",
                lambda query=query: connection.execute(query, [str(path)]).fetchall(),
                repeat=1,
            )


def peak_mb(path: Path) -> float:
    command = [sys.executable, __file__, "--parquet", str(path)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def count_parquet(path: Path) -> None:
    count_marginals(open_table(path, SCHEMA), PAIRS)
    # not getrusage: its maximum survives exec, so it would be this process's parent's
    status = Path("/proc/self/status").read_text()
    print(int(status.partition("VmHWM:")[2].split()[0]) / 1024)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--parquet", type=Path, help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    main()
