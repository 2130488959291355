"""Central synthesis on real tables: error, CPU seconds and memory, beside other libraries.

SFUMATO_DATA=... python bench/synthesis.py [--table adult] [--method auto] [--epsilon 1]
    [--seeds 5] [--beside nltcs] [--markdown] [--compilation]

Each line is a fresh process that publishes a table five times with seeded noise and draws as many
rows as the real one has: mean total variation over all pairs and over 64 triples (the metric of
``synthesis_metric``). CPU seconds are of one run, compiled code loaded from disk; --compilation
adds a run with an empty cache. Other libraries' figures are those that ``synthesis_peers`` stored;
--beside runs them again, now, on one table.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from environments import peer_python
from recording import OURS, record
from synthesis_metric import TABLES, pairs_and_triples, read_table
from synthesis_peers import PEERS, ask_peer, store, stored_rows
from synthesis_peers import line as peer_line

HERE: Final = Path(__file__).resolve().parent
METHODS: Final = ("auto", "independent", "mst", "aim", "privbayes")
EPSILONS: Final = (0.1, 1.0, 10.0)
DELTA: Final = "1e-9"
TARGETS: Final = {
    ("adult", 0.1): (0.108, None),
    ("adult", 1.0): (0.0395, 0.086),
    ("adult", 10.0): (0.023, None),
}
"""Mean total variation of pairs and of triples that the automatic choice has to reach."""
REPLACE_ONLY: Final = ("privbayes",)


def main() -> None:
    """Parse, run, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--table", choices=TABLES, action="append")
    parser.add_argument("--method", action="append")
    parser.add_argument("--epsilon", type=float, action="append")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("--compilation", action="store_true")
    parser.add_argument("--beside", choices=TABLES, help="run every peer on it too, at epsilon 1")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        print(json.dumps(one(**json.loads(given.one))))
        return
    if given.beside:
        peers_beside(given.beside)
    rows = []
    for table in given.table or TABLES:
        for method in given.method or METHODS:
            for epsilon in given.epsilon or EPSILONS:
                row = in_a_process(table=table, method=method, epsilon=epsilon, seeds=given.seeds)
                rows.append(row)
                print(line(row), flush=True)
    record_rows(rows)
    if given.compilation:
        print(f"compilation of all kernels: {compilation():.1f} CPU-s, once per machine")
    if given.markdown:
        print(markdown(rows))
    missed = [row for row in rows if row["method"] == "auto" and not reached(row)]
    print(f"{len(missed)} of the figures to reach were missed")


def peers_beside(table: str) -> None:
    """The first method of every peer, in this run: stored in the place of an older figure."""
    real = read_table(table)
    for peer in PEERS:
        peer_python(f"synthesis-{peer.name}")
        row = ask_peer(peer, next(iter(peer.methods)), real, epsilon=1.0, seed=0)
        store(row)
        print(peer_line(row), flush=True)


def record_rows(rows: list[dict[str, Any]]) -> None:
    """Ours, and of the peers what is stored for the same tables and epsilons."""
    settings = {(row["table"], row["epsilon"]) for row in rows}
    stored = [row for row in stored_rows() if row["tv2"] is not None]
    theirs = [row for row in stored if (row["table"], row["epsilon"]) in settings]
    for row in [*rows, *theirs]:
        who, told = (
            f"{row.get('peer', OURS)} {row['method']}",
            {"version": row.get("version", "")},
        )
        case = f"{row['table']}, epsilon {row['epsilon']:g}"
        record(f"{case}: error of pairs", who, row["tv2"], "total variation", **told)
        for field, unit in (("cpu_s", "CPU-s"), ("memory_mb", "MB")):
            if row[field] is not None:
                record(f"{case}: {unit}", who, row[field], unit, **told)
        if row["method"] == "mst":  # the same algorithm by all
            whose, alone = row.get("peer", OURS), f"{case}, trees alone"
            record(f"{alone}: error of pairs", whose, row["tv2"], "total variation", **told)
            if row["cpu_s"] is not None:
                record(f"{alone}: CPU-s", whose, row["cpu_s"], "CPU-s", **told)


def one(table: str, method: str, epsilon: float, seeds: int) -> dict[str, Any]:
    """Publish one table several times in this process."""
    import pyarrow as pa

    import sfumato as sf
    from sfumato.publishing.methods import algorithm_named, budget_for

    real = read_table(table)
    schema = replace(
        sf.Schema.from_dict(dict(zip(real.columns, real.sizes, strict=True))), dataset=table
    )
    source = sf.open_table(pa.table(dict(zip(real.columns, real.codes.T, strict=True))), schema)
    workload = sf.all_marginals(schema, degree=2)
    algorithm = algorithm_named(method, workload=workload, rows=None, options={})
    budget = budget_for(algorithm, schema, epsilon=str(epsilon), delta=DELTA)
    neighbors = "replace" if method in REPLACE_ONLY else "add-remove"
    errors, seconds, measured = [], [], []
    for seed in range(seeds):
        before = time.process_time()
        curator = sf.Curator(
            source,
            protect=sf.OneRow(neighbors=neighbors),
            budget=budget,
            rng=sf.simulation_rng(seed),
        )
        release = sf.publish(algorithm, curator)
        drawn = release.model.draw(len(real.codes), rng=sf.simulation_rng(1_000 + seed))
        seconds.append(time.process_time() - before)
        codes = np.stack([drawn[name] for name in real.columns], axis=1)
        errors.append(pairs_and_triples(real.codes, codes, real.sizes))
        measured.append(len(release.measurements))
    tv2, tv3 = np.mean(errors, axis=0)
    return {
        "table": table,
        "method": method,
        "epsilon": epsilon,
        "budget": str(budget),
        "tv2": float(tv2),
        "tv3": float(tv3),
        "sd2": float(np.std([pair for pair, _ in errors], ddof=1)) if seeds > 1 else 0.0,
        "cpu_s": float(np.mean(seconds)),
        "first_cpu_s": seconds[0],
        "memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "measured": float(np.mean(measured)),
    }


def in_a_process(cache: str | None = None, **asked: Any) -> dict[str, Any]:
    """The same in a fresh one, on one thread."""
    threads = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    caching = {"NUMBA_CACHE_DIR": cache} if cache else {}
    done = subprocess.run(
        [sys.executable, str(HERE / "synthesis.py"), "--one", json.dumps(asked)],
        env=os.environ | threads | caching,
        check=True,
        capture_output=True,
        text=True,
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def compilation() -> float:
    """CPU seconds that an empty cache adds to a first run."""
    asked = {"table": "nltcs", "method": "auto", "epsilon": 1.0, "seeds": 1}
    with tempfile.TemporaryDirectory() as cache:
        cold = in_a_process(cache, **asked)["first_cpu_s"]
        return float(cold - in_a_process(cache, **asked)["first_cpu_s"])


def reached(row: dict[str, Any]) -> bool:
    """Whether a line of the automatic choice is within what was to be reached."""
    pairs, triples = TARGETS.get((row["table"], row["epsilon"]), (None, None))
    return (pairs is None or row["tv2"] <= pairs) and (triples is None or row["tv3"] <= triples)


def line(row: dict[str, Any]) -> str:
    """One result as text."""
    return (
        f"{row['table']:7} {row['method']:12} eps {row['epsilon']:<5g} "
        f"pairs {row['tv2']:.4f} (sd {row['sd2']:.4f})  triples {row['tv3']:.4f}  "
        f"{row['cpu_s']:6.2f} CPU-s (first {row['first_cpu_s']:.2f})  {row['memory_mb']:4.0f} MB  "
        f"{row['measured']:.0f} measured"
    )


def markdown(rows: list[dict[str, Any]]) -> str:
    """Ours and the stored figures of others, by table and epsilon."""
    peers = stored_rows()
    lines = ["| table | method | " + " | ".join(f"eps {e:g}" for e in EPSILONS) + " | CPU-s | MB |"]
    lines.append("|---" * (len(EPSILONS) + 4) + "|")
    ours = [row | {"who": f"**sfumato {row['method']}**"} for row in rows]
    theirs = [
        row | {"who": f"{row['peer']} {row['version']} {row['method']}"}
        for row in peers
        if row["outcome"] == "done"
    ]
    for table in TABLES:
        for who in dict.fromkeys(r["who"] for r in [*ours, *theirs] if r["table"] == table):
            lines.append(_table_line(table, who, [*ours, *theirs]))
    return "\n".join(lines)


def _table_line(table: str, who: str, rows: list[dict[str, Any]]) -> str:
    mine = [row for row in rows if row["table"] == table and row["who"] == who]
    cells = []
    for epsilon in EPSILONS:
        found = [row for row in mine if row["epsilon"] == epsilon]
        pairs, triples = (np.mean([row[key] for row in found]) for key in ("tv2", "tv3"))
        cells.append(f"{pairs:.4f} / {triples:.4f}" if found else "")
    seconds = [row["cpu_s"] for row in mine if row["cpu_s"] is not None]
    memory = [row["memory_mb"] for row in mine if row["memory_mb"] is not None]
    spent = f"{min(seconds):.3g} to {max(seconds):.3g}" if seconds else ""
    most = f"{max(memory):.0f}" if memory else ""
    return f"| {table} | {who} | {' | '.join(cells)} | {spent} | {most} |"


if __name__ == "__main__":
    main()
