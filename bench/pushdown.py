"""Counting on a PostgreSQL server against reading its rows: CPU on both sides, bytes between.

python bench/pushdown.py [--rows 1000000] [--kind integers|texts] [--tasks check,pair,...] [--json]

A server is started for the run, with the settings of the tests and its own defaults for the rest.
Both ways count the same marginals of the same 15 columns (2 to 30 values) and must agree; neither
keeps anything between tasks. Both ways are forced: the last column says what ``server_sets``
chooses by the schema. Bytes are counted by a proxy in a process of its own.
"""

import argparse
import json
import multiprocessing
import os
import socket
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from sfumato.counting.exact_counts import count_marginals
from sfumato.counting.table import Table
from sfumato.readers import pushdown
from sfumato.readers.open_table import source_of
from sfumato.readers.pushdown import PushdownTable, server_sets
from sfumato.readers.source_table import SourceTable
from sfumato.schema import Category, Integer, Schema

sys.path.append(str(Path(__file__).parents[1] / "tests"))
from servers import Database, Postgres, started

SIZES = tuple(range(2, 31, 2))
NAMES = tuple(f"c{place}" for place in range(len(SIZES)))
TASKS = {
    "check": [(name,) for name in NAMES],
    "pair": [("c7", "c14")],
    "5 pairs": [("c0", "c14"), ("c1", "c13"), ("c2", "c12"), ("c3", "c11"), ("c4", "c10")],
    "tree": [(left, right) for left, right in pairwise(NAMES)],
    "all pairs": list(combinations(NAMES, 2)),
    "6 columns": list(combinations(NAMES[:6], 3)),
}


@dataclass(frozen=True)
class Cost:
    """Of one way to count; seconds of a machine that others use too say little."""

    cpu_here_s: float
    cpu_server_s: float
    seconds: float
    megabytes: float


def main() -> None:
    options = _options()
    found = []
    with started() as server, server.fresh() as database:
        make(database, options.kind, options.rows)
        with proxy(server.port) as (port, passed):
            where = database.address.replace(f":{server.port}/", f":{port}/")
            compare(f"{where}::small", server, passed, options.kind, "pair")  # load and compile
            for task in options.tasks.split(","):
                read, asked, takes = compare(f"{where}::t", server, passed, options.kind, task)
                found.append({"task": task, "read": asdict(read), "server": asdict(asked)})
                found[-1] |= {"rows": options.rows, "kind": options.kind, "takes": takes}
                if not options.json:
                    show(task, read, asked, takes)
    if options.json:
        print(json.dumps(found, indent=1))


def make(database: Database, kind: str, rows: int) -> None:
    """Uniform values; ``small`` has the first thousand rows."""
    form = "'value ' || {}" if kind == "texts" else "({})::int"
    columns = ", ".join(
        f"{form.format(f'floor(random() * {size})::int')} AS {name}"
        for name, size in zip(NAMES, SIZES, strict=True)
    )
    for start in range(0, rows, 1_000_000):
        verb = "INSERT INTO t" if start else "CREATE UNLOGGED TABLE t AS"
        database.run(f"{verb} SELECT {columns} FROM generate_series(1, {min(rows, 1_000_000)})")
    database.run("CREATE TABLE small AS SELECT * FROM t LIMIT 1000; VACUUM ANALYZE t")


def compare(
    address: str, server: Postgres, passed: Any, kind: str, task: str
) -> tuple[Cost, Cost, str]:
    """Both ways, one after the other, and the one that the rule chooses."""
    marginals = TASKS[task]
    names = NAMES[:6] if task == "6 columns" else NAMES
    schema = Schema(columns=tuple(column(name, kind) for name in names))
    sets = server_sets(schema, marginals)
    costs, counts = [], []
    with (
        patch("sfumato.counting.table.CACHE_BYTES", -1),
        patch.object(pushdown, "server_sets", lambda *_: sets or tuple(marginals)),
    ):
        for table in (SourceTable, PushdownTable):
            opened = table(schema, source_of(address, names))
            opened.require(names)
            cost, found = measured(opened, marginals, server, passed)
            costs.append(cost)
            counts.append(found)
    assert all(np.array_equal(counts[0][m], counts[1][m]) for m in marginals), "they differ"
    return costs[0], costs[1], "server" if sets else "read"


def measured(table: Table, marginals: Sequence[Any], server: Postgres, passed: Any) -> Any:
    before, wall, here = cpu_s(server), time.perf_counter(), time.process_time()
    bytes_before = passed.value
    counts = count_marginals(table, marginals)
    here, wall = time.process_time() - here, time.perf_counter() - wall
    time.sleep(0.3)  # until the server has ended the connection's process
    cost = Cost(
        cpu_here_s=here,
        cpu_server_s=cpu_s(server) - before,
        seconds=wall,
        megabytes=(passed.value - bytes_before) / 1e6,
    )
    return cost, counts


def cpu_s(server: Postgres) -> float:
    """Of the server's first process, of those that it started, and of those that ended."""
    first = (server.folder / "data" / "postmaster.pid").read_text().split()[0]
    stats = [stat for path in Path("/proc").glob("[0-9]*/stat") if (stat := _stat(path))]
    tree = [stat for stat in stats if stat[0] == first or stat[2] == first]
    ticks = sum(int(stat[12]) + int(stat[13]) for stat in tree)
    ended = sum(int(stat[14]) + int(stat[15]) for stat in tree if stat[0] == first)
    return (ticks + ended) / os.sysconf("SC_CLK_TCK")


def _stat(path: Path) -> list[str]:
    """Number, state, parent, ... of a process; nothing if it is gone."""
    try:
        number, _, rest = path.read_text().partition(" ")
    except OSError:
        return []
    return [number, *rest.rpartition(")")[2].split()]


@contextmanager
def proxy(port: int) -> Iterator[tuple[int, Any]]:
    """Another port that leads to the same server, and the bytes that came back through it."""
    passed = multiprocessing.Value("q", 0)
    listening = socket.create_server(("127.0.0.1", 0))
    process = multiprocessing.get_context("fork").Process(
        target=_forward_all, args=(listening, port, passed), daemon=True
    )
    process.start()
    try:
        yield listening.getsockname()[1], passed
    finally:
        process.terminate()
        process.join()


def _forward_all(listening: socket.socket, port: int, passed: Any) -> None:
    while True:
        client, _ = listening.accept()
        behind = socket.create_connection(("127.0.0.1", port))
        for source, target, counts in ((client, behind, False), (behind, client, True)):
            args = (source, target, passed if counts else None)
            threading.Thread(target=_forward, args=args, daemon=True).start()


def _forward(source: socket.socket, target: socket.socket, passed: Any) -> None:
    buffer = bytearray(2**20)
    try:
        while size := source.recv_into(buffer):
            target.sendall(memoryview(buffer)[:size])
            if passed is not None:
                with passed.get_lock():
                    passed.value += size
        target.shutdown(socket.SHUT_WR)
    except OSError:  # one side has left
        target.close()


def column(name: str, kind: str) -> Integer | Category:
    size = SIZES[NAMES.index(name)]
    if kind == "integers":
        return Integer(name=name, low=0, high=size - 1)
    return Category(name=name, values=tuple(f"value {place}" for place in range(size)))


def show(task: str, read: Cost, asked: Cost, takes: str) -> None:
    for label, cost in (("read", read), ("server", asked)):
        print(
            f"{task:<10} {label:<7} {cost.cpu_here_s:7.2f} CPU-s here {cost.cpu_server_s:7.2f} "
            f"CPU-s server {cost.seconds:7.2f} s {cost.megabytes:9.2f} MB"
            + ("   <- chosen" if label == takes else ""),
            flush=True,
        )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--kind", choices=("integers", "texts"), default="integers")
    parser.add_argument("--tasks", default=",".join(TASKS))
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    main()
