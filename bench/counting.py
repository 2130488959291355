"""All pairs of a wide table: our kernel beside numpy, DuckDB and Polars, memory and Parquet.

``python bench/counting.py [--rows 10000000] [--quick] [--no-peers]``. Every program counts all 105
pairs in a process of its own, ours again after each peer; the least CPU-seconds are told, all
threads together, and the peak memory of the process. The limit is one pass over the codes. Holds:
Parquet at most 2x the kernel in memory, and below 600 MB.
"""

import argparse
import json
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

from environments import HERE, ask, peer_python
from recording import LIMIT, OURS, record
from sfumato.counting.exact_counts import count_marginals
from sfumato.randomness import simulation_rng
from sfumato.readers.array_table import ArrayTable
from sfumato.readers.open_table import open_table
from sfumato.schema import Integer, Schema

SIZES = tuple(range(2, 31, 2))
SCHEMA = Schema(
    columns=tuple(Integer(name=f"c{place}", low=0, high=n - 1) for place, n in enumerate(SIZES))
)
PAIRS = tuple(combinations(SCHEMA.names, 2))
ROWS, QUICK_ROWS = 10_000_000, 50_000
PEERS = ("numpy", "duckdb", "polars")
MEMORY, PARQUET = "all 105 pairs, codes in memory", "all 105 pairs, from Parquet"
CASES = {"memory": MEMORY, "parquet": PARQUET}


def main() -> None:
    options = _options()
    if options.one:
        print(json.dumps(one(options.one, options.file)))
        return
    rows = QUICK_ROWS if options.quick else options.rows
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.parquet"
        write(rows, path)
        print(f"{rows:,} rows x {len(SIZES)} columns, all {len(PAIRS)} pairs", flush=True)
        found = ours(path)
        for peer in () if options.no_peers else PEERS:
            for way in CASES:
                theirs(peer, way, path)
            found = least(found, ours(path))
        tell(found)


def ours(path: Path) -> dict[str, dict[str, Any]]:
    """Every way of ours, each in a process of its own."""
    command = [sys.executable, __file__, "--file", str(path), "--one"]
    return {way: ask([*command, way])[0] for way in ("pass", "decode", *CASES)}


def least(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    """Of two rounds the better, way by way."""
    return {way: min(first[way], second[way], key=lambda found: found["cpu_s"]) for way in first}


def theirs(peer: str, way: str, path: Path) -> None:
    script = HERE / "peers" / "counting_peers.py"
    command = [str(peer_python("counting")), str(script), peer, way, str(path)]
    try:
        found = ask(command)[0]
    except subprocess.CalledProcessError as error:
        print(f"{peer:<10}{CASES[way]:<34} failed with code {error.returncode}", flush=True)
        return
    _tell(peer, CASES[way], found, version=found["version"])


def tell(found: dict[str, dict[str, Any]]) -> None:
    """Ours, the limits, and the two holds."""
    passed, decoded, alone, whole = (found[way] for way in ("pass", "decode", *CASES))
    _tell(OURS, MEMORY, alone)
    _tell(OURS, PARQUET, whole)
    record(MEMORY, LIMIT, passed["cpu_s"], "CPU-s", note="one pass over the codes")
    record(PARQUET, LIMIT, decoded["cpu_s"], "CPU-s", note="pyarrow's decoding alone")
    ratio = whole["cpu_s"] / alone["cpu_s"]
    print(f"one pass over the codes {passed['cpu_s']:.2f}, decoding {decoded['cpu_s']:.2f} CPU-s")
    print(f"Parquet / memory: {ratio:.2f}x CPU (hold: at most 2)")
    print(f"peak memory of the Parquet run: {whole['memory_mb']:.0f} MB (hold: below 600)")
    record("Parquet against memory", OURS, ratio, "times the CPU")


def _tell(who: str, case: str, found: dict[str, Any], version: str = "") -> None:
    print(
        f"{who:<10}{case:<34}{found['cpu_s']:8.2f} CPU-s {found['memory_mb']:8,.0f} MB", flush=True
    )
    record(case, who, found["cpu_s"], "CPU-s", version=version)
    record(f"{case}: memory of the process", who, found["memory_mb"], "MB", version=version)


def write(rows: int, path: Path) -> None:
    """Uniform codes, written as 64-bit integers as most tools do."""
    rng = simulation_rng(0)
    codes = {c.name: rng.below(c.size, rows).astype(np.uint8) for c in SCHEMA}
    with pq.ParquetWriter(path, pa.schema([(name, pa.int64()) for name in codes])) as writer:
        for start in range(0, rows, 1_000_000):
            part = {n: c[start : start + 1_000_000].astype(np.int64) for n, c in codes.items()}
            writer.write_table(pa.table(part))


def one(way: str, path: Path) -> dict[str, float]:
    """In a process of its own: compiled first, then the best of three."""
    few = {c.name: np.zeros(1000, dtype=np.uint8) for c in SCHEMA}
    count_marginals(ArrayTable(SCHEMA, few), PAIRS)
    if way in ("memory", "pass"):
        codes = read_codes(path)
        table = ArrayTable(SCHEMA, codes)
        runs: dict[str, Callable[[], Any]] = {
            "memory": lambda: count_marginals(table, PAIRS),
            "pass": lambda: [code.sum() for code in codes.values()],
        }
    else:
        runs = {
            "parquet": lambda: count_marginals(open_table(path, SCHEMA), PAIRS),
            "decode": lambda: decode(path),
        }
    taken = []
    for _ in range(3):
        start = time.process_time()
        runs[way]()
        taken.append(time.process_time() - start)
    # not getrusage: its maximum survives exec, so it would be this process's parent's
    status = Path("/proc/self/status").read_text()
    peak = int(status.partition("VmHWM:")[2].split()[0]) / 1024
    return {"cpu_s": max(min(taken), 1e-4), "memory_mb": peak}


def read_codes(path: Path) -> dict[str, np.ndarray]:
    """Column by column, as bytes: what a table in memory is for us and for every peer."""
    return {
        name: pq.read_table(path, columns=[name]).column(name).to_numpy().astype(np.uint8)
        for name in SCHEMA.names
    }


def decode(path: Path) -> None:
    """What the Parquet path can't be faster than, beside the kernel."""
    with pq.ParquetFile(path, pre_buffer=False) as file:
        for _ in file.iter_batches(65_536, use_threads=False):
            pass


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--quick", action="store_true", help="few rows")
    parser.add_argument("--no-peers", action="store_true")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--file", type=Path, help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    main()
