"""All pairs of a table by numpy, DuckDB or Polars: CPU-seconds and memory, one line of JSON.

Runs in the peers' own environment and imports nothing of sfumato:
``counting_peers.py numpy|duckdb|polars memory|parquet FILE``. In memory, columns are bytes and
loading them is not timed. All threads count.
"""

import json
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from itertools import combinations
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

RUNS = 1


def codes_of(path: str) -> dict[str, np.ndarray]:
    names = pq.read_schema(path).names
    return {
        name: pq.read_table(path, columns=[name]).column(name).to_numpy().astype(np.uint8)
        for name in names
    }


def with_numpy(path: str, way: str) -> Callable[[], int]:
    """One number for each combination of two values, then bincount."""
    held = codes_of(path) if way == "memory" else None

    def count() -> int:
        codes = held if held is not None else codes_of(path)
        sizes = {name: int(code.max()) + 1 for name, code in codes.items()}
        wide = {name: code.astype(np.int64) for name, code in codes.items()}
        total = 0
        for left, right in combinations(codes, 2):
            joined = wide[left] * sizes[right] + wide[right]
            counts = np.bincount(joined, minlength=sizes[left] * sizes[right])
            total += int(counts.sum())
        return total

    return count


def with_duckdb(path: str, way: str) -> Callable[[], int]:
    """A GROUP BY for each pair."""
    import duckdb

    connection = duckdb.connect()
    source = f"read_parquet('{path}')"
    if way == "memory":
        small = ", ".join(f"{n}::UTINYINT AS {n}" for n in pq.read_schema(path).names)
        connection.execute(f"CREATE TABLE held AS SELECT {small} FROM {source}")
        source = "held"
    pairs = list(combinations(pq.read_schema(path).names, 2))

    def count() -> int:
        total = 0
        for left, right in pairs:
            query = f"SELECT {left}, {right}, count(*) FROM {source} GROUP BY ALL"
            total += sum(row[2] for row in connection.execute(query).fetchall())
        return total

    return count


def with_polars(path: str, way: str) -> Callable[[], int]:
    """All pairs as one lazy plan, so that it may share what it reads."""
    import polars as pl

    held = pl.from_arrow(pa.table(codes_of(path))).lazy() if way == "memory" else None
    pairs = list(combinations(pq.read_schema(path).names, 2))

    def count() -> int:
        source = held if held is not None else pl.scan_parquet(path)
        plans = [source.group_by(*pair).agg(pl.len()) for pair in pairs]
        return sum(int(found["len"].sum()) for found in pl.collect_all(plans))

    return count


def main() -> None:
    peer, way, path = sys.argv[1:4]
    count = {"numpy": with_numpy, "duckdb": with_duckdb, "polars": with_polars}[peer](path, way)
    expected = pq.ParquetFile(path).metadata.num_rows
    expected *= len(list(combinations(pq.read_schema(path).names, 2)))
    taken = []
    for _ in range(RUNS):
        start = time.process_time()
        counted = count()
        taken.append(time.process_time() - start)
        assert counted == expected, "every row is in every pair once"
    status = Path("/proc/self/status").read_text()
    peak = int(status.partition("VmHWM:")[2].split()[0]) / 1024
    told = {"cpu_s": min(taken), "memory_mb": peak}
    print(json.dumps({"peer": peer, "version": version(peer), **told}))


if __name__ == "__main__":
    main()
