"""Where each main job spends its time: CPU seconds, memory, and the slowest places.

python bench/profile_jobs.py [--only NAME ...] [--rows 1000000] [--places 3] [--beside SRC]

Each job is a command of the command line in a process of its own, on made-up tables, with compiled
code in its cache. First it runs plainly and is measured, then once more under cProfile, whose
seconds are of the processor, in each thread of Python. A place is a function of sfumato without
what it calls (the compiled loops it enters count as its own), or one library call that it makes.
``--beside`` names the ``src`` of another version and measures both, taking turns.
"""

import argparse
import cProfile
import json
import os
import pstats
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from importlib import import_module
from pathlib import Path

from profiled import JOBS

PACKAGE = "/sfumato/"
IMPORTS = "imports"
OTHERS = "threads of libraries (Arrow, DuckDB), and the end of the process"
LOADING = "numba: compiled code loaded"


def child(profile: str, argv: list[str]) -> None:
    """In a process of its own: run the command line under a profile of every thread."""
    before = _load(heavy=argv != ["--help"])
    profiles: list[cProfile.Profile] = []

    def begin(*_: object) -> None:
        profiles.append(cProfile.Profile(time.thread_time))
        profiles[-1].enable()

    threading.setprofile(begin)
    begin()
    try:
        from sfumato.cli import main

        sys.argv = ["sfumato", *argv]
        main()
    except SystemExit as end:
        if end.code:
            raise
    finally:
        profiles[0].disable()
        threading.setprofile(None)
        stats = pstats.Stats(*profiles)
        found = Counter(dict(places(stats))) + before
        seen = stats.total_tt + before.total()  # type: ignore[attr-defined]
        found[OTHERS] = time.process_time() - seen
        Path(profile).write_text(json.dumps(found.most_common()))


def _load(*, heavy: bool) -> Counter[str]:
    """What every command loads, before the profile begins: under it imports take thrice as long."""
    found: Counter[str] = Counter()
    start = time.process_time()
    import_module("sfumato.cli")
    if heavy:
        import_module("sfumato.commands")
    found[IMPORTS] = time.process_time() - start
    if heavy:
        import numpy as np

        from sfumato.counting.kernels import add_counts

        start = time.process_time()
        one = np.ones(1, np.int64)
        ends = np.array([0, 1])
        add_counts(np.zeros((1, 1), np.uint8), 0 * one, ends, one, ends, 0 * one)
        found[LOADING] = time.process_time() - start
    return found


def places(stats: pstats.Stats) -> list[tuple[str, float]]:
    """Seconds of each place, the most first."""
    found: Counter[str] = Counter()
    table = stats.stats  # type: ignore[attr-defined]
    back = _calls_back(table)
    for function, (_, _, own, total, callers) in table.items():
        name = _library_step(function)
        if name:
            found[name] += total
        elif _ours(function):
            found[_shown(function)] += own
        else:
            for caller, (_, _, own_here, total_here) in callers.items():
                if _ours(caller):
                    seconds = own_here if function in back else total_here
                    found[f"{_shown(caller)}: {_shown(function)}"] += seconds
    return [(name, seconds) for name, seconds in found.most_common(40) if seconds > 0.001]


def _library_step(function: tuple[str, int, str]) -> str:
    """The name of what many functions set off: loading modules, and compiled code."""
    if function[2] == "_find_and_load" and "importlib" in function[0]:
        return IMPORTS
    return LOADING if function[2] == "_compile_for_args" else ""


def _ours(function: tuple[str, int, str]) -> bool:
    return PACKAGE in function[0] and "/site-packages/" not in function[0]


def _shown(function: tuple[str, int, str]) -> str:
    path, _, name = function
    if _ours(function):
        return f"{path.rpartition(PACKAGE)[2]} {name}"
    if path == "~":
        return name.replace("<built-in method ", "").replace("<method ", "").strip("<>")
    return f"{'/'.join(Path(path).parts[-2:])} {name}"


def _calls_back(table: dict) -> set:
    """Functions of libraries under which ours are called again, and what loads modules."""
    back: set = set()
    todo = [f for f in table if _ours(f) or _library_step(f)]
    while todo:
        for caller in table.get(todo.pop(), (0, 0, 0, 0, {}))[4]:
            if caller not in back and not _ours(caller):
                back.add(caller)
                todo.append(caller)
    return back | {f for f in table if _library_step(f)}


def run(argv: list[str], folder: Path, *, source: str = "", profile: Path | None = None) -> dict:
    """One command in a new process: seconds, CPU seconds, peak memory."""
    variables = os.environ | {"OPENBLAS_NUM_THREADS": "1", "SFUMATO_HOME": str(folder / "home")}
    variables.pop("PYTHONDONTWRITEBYTECODE", None)  # else what was edited is compiled every time
    if source:
        variables["PYTHONPATH"] = source
    program = [sys.executable, "-m", "sfumato", *argv]
    if argv[0] == "-c":
        program = [sys.executable, *argv]
    elif profile:
        program = [sys.executable, __file__, "--child", str(profile), *argv]
    start = time.monotonic()
    with (folder / "said.txt").open("w+") as said:
        process = subprocess.Popen(program, cwd=folder, env=variables, stdout=said, stderr=said)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        said.seek(0)
        message = said.read().strip() if process.returncode else ""
        if message and not source:
            raise SystemExit(f"{' '.join(argv)}:\n{message}")
    return {
        "seconds": time.monotonic() - start,
        "cpu": used.ru_utime + used.ru_stime,
        "memory": used.ru_maxrss / 1024,
        "failed": message,
    }


def measure(name: str, tables: Path, small: Path, asked: argparse.Namespace) -> None:
    sources = ["", asked.beside] if asked.beside else [""]
    with tempfile.TemporaryDirectory() as work:
        numbers = iter(range(1_000))

        def once(given: Path, **options: object) -> dict:
            folder = Path(work) / str(next(numbers))
            folder.mkdir()
            for before in JOBS[name].before:
                run(before(given), folder, source=str(options.get("source", "")))
            return run(JOBS[name].command(given), folder, **options)  # type: ignore[arg-type]

        for source in sources:
            once(small, source=source)  # compiled code is kept in its cache
        taken = {source: [] for source in sources}
        for _ in range(asked.times):
            for source in sources:
                taken[source].append(once(tables, source=source))
        for source in reversed(sources):
            best = min(taken[source], key=lambda each: each["cpu"])
            label = name + (", earlier" if source else "")
            print(
                f"{label:<40}{best['cpu']:8.2f} CPU-s{best['seconds']:8.2f} s"
                f"{best['memory']:8.0f} MB"
                + (f"   failed: {best['failed'][:90]}" if best["failed"] else ""),
                flush=True,
            )
        if asked.places and JOBS[name].profiled:
            report = Path(work) / "profile.json"
            once(tables, profile=report)
            found = json.loads(report.read_text())
            for place, seconds in found[: asked.places]:
                print(f"    {seconds:8.2f} s  {place}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", default=list(JOBS), choices=list(JOBS))
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--places", type=int, default=3)
    parser.add_argument("--times", type=int, default=1)
    parser.add_argument("--beside", default="", help="the src folder of another version")
    parser.add_argument("--tables", type=Path, help="keep the made-up tables here")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        tables = asked.tables or Path(folder)
        for size, rows in (("large", asked.rows), ("small", min(20_000, asked.rows))):
            script = Path(__file__).with_name("profile_tables.py")
            subprocess.run([sys.executable, script, tables / size, str(rows)], check=True)
        for name in asked.only:
            measure(name, tables / "large", tables / "small", asked)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(sys.argv[2], sys.argv[3:])
    else:
        main()
