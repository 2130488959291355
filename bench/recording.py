"""What every benchmark records: rows for the page, and the machine, load and cost around them.

A bench calls ``record`` for each figure. Alone it only prints; under ``bench/run.py`` the figures
also go to the file that the variable SFUMATO_BENCH_ROWS names. Only the standard library is
loaded here: a child's peak memory is never below what its parent had in memory when it forked.
"""

import json
import os
import platform
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import IO, Any, Final

ROWS_VARIABLE: Final = "SFUMATO_BENCH_ROWS"
OURS: Final = "sfumato"
LIMIT: Final = "limit"
"""Whose figure no program can pass: one pass over the bytes, or the random bytes alone."""
VERSIONS_OF: Final = ("sfumato", "numpy", "numba", "pyarrow", "duckdb", "scipy")


@dataclass(frozen=True, kw_only=True)
class Row:
    """One figure of one program on one case."""

    case: str
    who: str
    value: float
    unit: str
    """Ends in "/s" where more is better; of everything else less is better."""
    version: str = ""
    note: str = ""

    @property
    def more_is_better(self) -> bool:
        return self.unit.endswith("/s")


def record(
    case: str, who: str, value: float, unit: str, *, version: str = "", note: str = ""
) -> None:
    """Keep a figure, rounded to four digits, where the runner asked for it."""
    rounded = float(f"{value:.4g}")
    row = Row(case=case, who=who, value=rounded, unit=unit, version=version, note=note)
    if ROWS_VARIABLE in os.environ:
        with Path(os.environ[ROWS_VARIABLE]).open("a") as file:
            file.write(json.dumps(asdict(row)) + "\n")


def advantage(ours: Row, other: Row) -> float:
    """How many times better ours is: above 1 is ahead, below 1 is behind.

    >>> fast = Row(case="", who="sfumato", value=20, unit="people/s")
    >>> advantage(fast, Row(case="", who="peer", value=5, unit="people/s"))
    4.0
    """
    pair = (ours.value, other.value) if ours.more_is_better else (other.value, ours.value)
    return pair[0] / pair[1] if pair[1] else float("inf")


def machine() -> dict[str, Any]:
    """Processor, cores and memory; nothing that names the machine."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return {
        "processor": models[0] if models else platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gb": round(pages / 2**30),
        "system": platform.system(),
        "python": platform.python_version(),
    }


def versions() -> dict[str, str]:
    """Of ourselves and of what our kernels stand on."""
    found = {}
    for name in VERSIONS_OF:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


@dataclass(frozen=True, kw_only=True)
class Usage:
    """What a command took, with everything it started and waited for."""

    outcome: str
    """ "done", "stopped after ... s" or "ended with code ..."."""
    seconds: float
    cpu_s: float
    memory_mb: float
    """The largest resident set of any one process."""


def run_measured(
    command: Sequence[str], *, out: IO[str], timeout_s: float, variables: dict[str, str]
) -> Usage:
    """Run a command in a session of its own; at the timeout the whole session is ended."""
    start = time.monotonic()
    process = subprocess.Popen(
        command,
        stdout=out,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        start_new_session=True,
        env=os.environ | variables,
    )
    stopped, ended = False, 0
    try:
        while not ended:
            ended, status, used = os.wait4(process.pid, os.WNOHANG)
            if not (ended or stopped) and time.monotonic() - start > timeout_s:
                os.killpg(process.pid, signal.SIGKILL)
                stopped = True
            time.sleep(0.05)
    except BaseException:  # interrupted: nothing of it goes on behind the person's back
        os.killpg(process.pid, signal.SIGKILL)
        raise
    process.returncode = os.waitstatus_to_exitcode(status)
    failed = f"ended with code {process.returncode}" if process.returncode else "done"
    return Usage(
        outcome=f"stopped after {timeout_s:.0f} s" if stopped else failed,
        seconds=round(time.monotonic() - start, 1),
        cpu_s=round(used.ru_utime + used.ru_stime, 1),
        memory_mb=round(used.ru_maxrss / 1024),
    )
