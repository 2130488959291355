"""Other libraries' synthetic tables: error, CPU seconds and memory, stored for the final table.

SFUMATO_DATA=... python bench/synthesis_peers.py [--peer opendp] [--table adult] [--epsilon 1]
    [--method mst] [--seed 0] [--again] [--show]

Each run is a fresh process in the peer's own environment under bench/.peers (made when missing),
one at a time, niced, on one core, ended at 400 CPU seconds. What was measured is kept in
bench/results/synthesis_peers.json and not run again without --again.
"""

import argparse
import json
import os
import re
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from environments import ENVIRONMENTS, HERE, peer_python, requirements
from synthesis_metric import TABLES, BenchTable, pairs_and_triples, read_table

RESULTS: Final = HERE / "results" / "synthesis_peers.json"
EARLIER: Final = HERE / "peers" / "synthesis_earlier.json"
EPSILONS: Final = (1.0, 0.1, 10.0)
DELTA: Final = 1e-9
LIMIT_CPU_S: Final = 400.0
LIMIT_TIMES_WALL: Final = 6
POLL_S: Final = 0.25
ONE_THREAD: Final = {
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "POLARS_MAX_THREADS": "1",
    "JAX_PLATFORMS": "cpu",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
}
KEY: Final = ("peer", "method", "table", "epsilon", "seed")

Row = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Peer:
    """A library with an environment of its own, and what is asked of it."""

    name: str
    package: str
    methods: dict[str, str]
    """Method, and the settings that are not the library's own."""

    @property
    def requirements(self) -> Path:
        return requirements(f"synthesis-{self.name}")

    @property
    def python(self) -> Path:
        return ENVIRONMENTS / f"synthesis-{self.name}" / "bin" / "python"

    @property
    def version(self) -> str:
        """As pinned."""
        pin = rf"^{re.escape(self.package)}(?:\[\w+\])?==(\S+)$"
        found = re.search(pin, self.requirements.read_text(), re.MULTILINE)
        assert found, f"{self.package} is not pinned in {self.requirements.name}"
        return found.group(1)


PEERS: Final = (
    Peer(
        name="opendp",
        package="opendp",
        methods={"mst": "rows sampled", "aim": "degree 2, 2 MB, 12 rounds, rows sampled"},
    ),
    Peer(
        name="smartnoise",
        package="smartnoise-synth",
        methods={"mst": "", "aim": "degree 2, 2 MB, 12 rounds"},
    ),
    Peer(name="datasynthesizer", package="DataSynthesizer", methods={"privbayes, k=1": "pure"}),
    Peer(
        name="dpmm",
        package="dpmm",
        methods={"mst": "", "privbayes": "", "aim": "degree 2, 2 MB"},
    ),
)


@dataclass(frozen=True, kw_only=True)
class Usage:
    """What a command took, with everything it started."""

    cpu_s: float
    memory_mb: float
    outcome: str
    """"done", "not finished in ...", or the last line of its error."""


def run_measured(command: list[str], *, limit_cpu_s: float = LIMIT_CPU_S) -> Usage:
    """Run a command in a session of its own, and end it at a limit of CPU seconds.

    CPU is user and system time of the process and all its descendants. Memory is the process's
    high-water mark, or while it has workers the sum of proportional set sizes (forked workers
    share pages) if that is larger, looked at every quarter of a second.
    """
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(
            command,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            start_new_session=True,
            env=os.environ | ONE_THREAD,
        )
        cpu_s, memory_mb, stopped, status = _watch(process.pid, limit_cpu_s)
        process.returncode = os.waitstatus_to_exitcode(status)
        errors.seek(0)
        lines = errors.read().strip().splitlines()
    if stopped:
        outcome = f"not finished in {limit_cpu_s:.0f} CPU-s"
    elif process.returncode:
        outcome = lines[-1][:200] if lines else f"ended with {process.returncode}"
    else:
        outcome = "done"
    return Usage(cpu_s=round(cpu_s, 1), memory_mb=round(memory_mb), outcome=outcome)


def _watch(pid: int, limit_cpu_s: float) -> tuple[float, float, bool, int]:
    """CPU seconds, peak memory, whether it had to be stopped, and its exit status."""
    cpu_s = memory_mb = 0.0
    stopped, start = False, time.monotonic()
    while True:
        ended, status, used = os.wait4(pid, 0 if stopped else os.WNOHANG)
        if ended:
            own = _kilobytes(os.getpid(), "status", "VmHWM:")  # inherited: says nothing below this
            last = used.ru_maxrss / 1024 if used.ru_maxrss > own else 0.0
            cpu_s = max(cpu_s, used.ru_utime + used.ru_stime)
            return cpu_s, max(memory_mb, last), stopped, status
        members = _session(pid)
        cpu_s = max(cpu_s, sum(_cpu_s(member) for member in members))
        kilobytes = [_kilobytes(pid, "status", "VmHWM:")]
        if len(members) > 1:  # not for one alone: the kernel walks all its pages for this sum
            kilobytes.append(sum(_kilobytes(one, "smaps_rollup", "Pss:") for one in members))
        memory_mb = max(memory_mb, max(kilobytes) / 1024)
        waited = time.monotonic() - start
        if cpu_s > limit_cpu_s or waited > LIMIT_TIMES_WALL * limit_cpu_s:
            os.killpg(pid, signal.SIGKILL)
            stopped = True
        else:
            time.sleep(POLL_S)


def _stat(pid: int) -> list[str]:
    """The fields of /proc/PID/stat after the name, which may hold spaces; none if it has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def _session(leader: int) -> list[int]:
    pids = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    return [pid for pid in pids if (fields := _stat(pid)) and int(fields[3]) == leader]


def _cpu_s(pid: int) -> float:
    """User and system time, own and of children that have ended."""
    return sum(int(ticks) for ticks in _stat(pid)[11:15]) / os.sysconf("SC_CLK_TCK")


def _kilobytes(pid: int, file: str, field: str) -> int:
    try:
        lines = Path(f"/proc/{pid}/{file}").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith(field)), 0)


def ask_peer(peer: Peer, method: str, table: BenchTable, *, epsilon: float, seed: int) -> Row:
    """One run of one method, compared with the real table."""
    given = ENVIRONMENTS / "tables" / f"{table.name}.npz"
    given.parent.mkdir(parents=True, exist_ok=True)
    np.savez(given, codes=table.codes, sizes=table.sizes)
    made = given.with_name("made.npy")
    made.unlink(missing_ok=True)
    paths = (peer.python, HERE / "peers" / "synthesis_peer.py", given, made)
    python, script, source, target = (str(path.relative_to(HERE.parent)) for path in paths)
    options = ["--epsilon", f"{epsilon:g}", "--delta", f"{DELTA:g}", "--seed", f"{seed}"]
    command = [python, script, peer.name, method, source, target, *options]
    usage = run_measured(command)
    tv2, tv3 = None, None
    if usage.outcome == "done":
        errors = pairs_and_triples(table.codes, np.load(made), table.sizes)
        tv2, tv3 = (round(error, 4) for error in errors)
    return {
        "peer": peer.name,
        "version": peer.version,
        "method": method,
        "settings": peer.methods[method],
        "table": table.name,
        "epsilon": epsilon,
        "delta": DELTA,
        "seed": seed,
        "tv2": tv2,
        "tv3": tv3,
        "cpu_s": usage.cpu_s,
        "memory_mb": usage.memory_mb,
        "outcome": usage.outcome,
        "command": " ".join(f"'{word}'" if " " in word else word for word in command),
    }


def stored_rows() -> list[Row]:
    """What this bench has measured, and what was measured before of peers it can't install."""
    files = [file for file in (RESULTS, EARLIER) if file.exists()]
    return [row for file in files for row in json.loads(file.read_text())]


def store(row: Row) -> None:
    """Keep a row in place of the one of the same run."""
    kept = json.loads(RESULTS.read_text()) if RESULTS.exists() else []
    key = [row[field] for field in KEY]
    kept = [one for one in kept if [one[field] for field in KEY] != key]
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    lines = ",\n".join(json.dumps(one) for one in [*kept, row])
    RESULTS.write_text(f"[\n{lines}\n]\n")


def line(row: Row) -> str:
    errors = f"{row['tv2']:.4f} / {row['tv3']:.4f}" if row["tv2"] is not None else row["outcome"]
    cpu_s, memory_mb = (
        "-" if row[field] is None else row[field] for field in ("cpu_s", "memory_mb")
    )
    took = f"{cpu_s:>7} CPU-s {memory_mb:>6} MB"
    who = f"{row['peer']} {row['version']} {row['method']}"
    return f"{row['table']:<8}{who:<40}{row['epsilon']:>5g}  {took}  {errors}"


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer", action="append", choices=[peer.name for peer in PEERS])
    parser.add_argument("--method", action="append")
    parser.add_argument("--table", action="append", choices=TABLES)
    parser.add_argument("--epsilon", action="append", type=float)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--again", action="store_true", help="also what is stored already")
    parser.add_argument("--show", action="store_true", help="only print what is stored")
    return parser.parse_args()


def run_all(asked: argparse.Namespace) -> None:
    done = {tuple(row[field] for field in KEY) for row in stored_rows()}
    for name in asked.table or TABLES:
        table = read_table(name)
        for epsilon in asked.epsilon or EPSILONS:
            for peer in PEERS:
                for method in peer.methods:
                    wanted = peer.name in (asked.peer or [peer.name])
                    wanted &= method in (asked.method or [method])
                    known = (peer.name, method, name, epsilon, asked.seed) in done
                    if not wanted or (known and not asked.again):
                        continue
                    peer_python(f"synthesis-{peer.name}")
                    row = ask_peer(peer, method, table, epsilon=epsilon, seed=asked.seed)
                    store(row)
                    print(line(row), flush=True)


def main() -> None:
    asked = options()
    if asked.show:
        order = ("table", "peer", "method", "epsilon")
        for row in sorted(stored_rows(), key=lambda row: [row[field] for field in order]):
            print(line(row))
        return
    os.chdir(HERE.parent)  # stored commands are relative to the project
    os.nice(10)
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    run_all(asked)


if __name__ == "__main__":
    main()
