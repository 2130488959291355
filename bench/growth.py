"""What every main job costs as tables grow: rows, columns, cells, epsilon, ratings.

``python bench/growth.py [--only NAME ...] [--smallest N] [--largest N] [--list]``. Every point is
run in a process of its own, after a small run that loads and compiles; CPU-seconds of all threads,
seconds and peak memory go to bench/results/growth.json after each point, and docs/make_growth.py
writes docs/growth.md from it. A point that fails, takes too long or too much memory is told as
that, and the others go on. Holds: no exponent in rows above 1.05.
"""

import argparse
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from environments import HERE
from growth_curves import CURVES, DONE, MOST_EXPONENT, Curve, Point, broken, fitted, size_text
from recording import machine, versions
from run import ONE_THREAD, RESULTS, keep

NAME: Final = "growth"
PREPARE_S: Final = 600.0
LEAST_LEFT_MB: Final = 2_500
"""What a point leaves of the machine's memory; above it, it is stopped."""
FREE_DISK_GB: Final = 12
START_S, MAKING_S = 4.0, 7e-7
"""What a point takes beside the job, and a row of an input."""
GROWING: Final = ("rows", "ratings")
"""Along these each size has an input of its own."""
MOST_WORDS: Final = 160
"""Letters of an error that are kept."""
BY_NAME: Final = {curve.name: curve for curve in CURVES}


def main() -> int:
    """Run what was asked and say what does not hold."""
    asked = _options()
    if asked.one:
        return one(BY_NAME[asked.one], asked.size, Path(asked.folder), prepare=asked.prepare)
    unknown = sorted(set(asked.only or ()) - set(BY_NAME))
    if unknown:
        print(f"no curve {', '.join(unknown)}; there are {', '.join(BY_NAME)}", file=sys.stderr)
        return 2
    chosen = [curve for curve in CURVES if not asked.only or curve.name in asked.only]
    file = Path(asked.results) / f"{NAME}.json"
    found = stored(file)
    plan = [
        (curve, size)
        for curve in chosen
        for size in curve.sizes
        if asked.smallest <= size <= asked.largest
    ]
    print(
        f"{len(plan)} points, about {estimate(plan, found['points']) / 60:.0f} minutes", flush=True
    )
    if asked.list:
        return 0
    start = time.monotonic()
    with tempfile.TemporaryDirectory(dir=asked.folder) as name:
        run_all(plan, found, file, Path(name))
    print(f"{len(plan)} points in {(time.monotonic() - start) / 60:.1f} minutes")
    return 1 if tell(chosen, found["points"]) else 0


def run_all(plan: list[tuple[Curve, float]], found: dict[str, Any], file: Path, root: Path) -> None:
    """Every point, kept as soon as it is known."""
    free = shutil.disk_usage(root).free / 2**30
    if free < FREE_DISK_GB:
        print(f"only {free:.0f} GB are free in {root}; large points may fail", file=sys.stderr)
    stopped: dict[str, str] = {}
    for curve, size in plan:
        if curve.name in stopped:
            outcome = f"not run: {stopped[curve.name]}"
            point: Point = {"curve": curve.name, "size": size, "outcome": outcome}
        else:
            point = measured(curve, size, root)
        if point["outcome"].startswith("stopped"):
            stopped[curve.name] = f"{size_text(curve.axis, size)} was {point['outcome']}"
        print(line(curve, point), flush=True)
        others = [p for p in found["points"] if (p["curve"], p["size"]) != (curve.name, size)]
        found["points"] = sorted([*others, point], key=_place)
        found |= {
            "date": datetime.now(UTC).date().isoformat(),
            "machine": machine(),
            "versions": versions(),
        }
        keep(found, folder=file.parent)


def measured(curve: Curve, size: float, root: Path) -> Point:
    """One point: its input made, then the job, each in a process of its own."""
    point: Point = {"curve": curve.name, "size": size, "load": round(os.getloadavg()[0], 1)}
    out = root / "out"
    for folder in (root / "inputs", out):
        folder.mkdir(exist_ok=True)
    words = [sys.executable, str(HERE / f"{NAME}.py"), "--one", curve.name, "--size", repr(size)]
    words += ["--folder", str(root)]
    try:
        made = root / f"made-{curve.input}-{size if curve.axis in GROWING else ''}"
        if not made.exists():
            outcome, _ = watched([*words, "--prepare"], root, PREPARE_S)
            if outcome != DONE:
                return point | {"outcome": f"its input was not made: {outcome}"}
            made.touch()
        outcome, printed = watched(words, root, curve.timeout_s)
        figures = json.loads(printed.splitlines()[-1]) if outcome == DONE else {}
    except Exception as error:  # whatever it is, the other points go on
        return point | {"outcome": f"failed: {type(error).__name__}: {error}"}
    finally:
        shutil.rmtree(out, ignore_errors=True)
    return point | {"outcome": outcome} | figures


def watched(command: list[str], root: Path, timeout_s: float) -> tuple[str, str]:
    """How a command ended and what it printed; one that is too slow or too large is killed."""
    variables = ONE_THREAD | {"SFUMATO_HOME": str(root / "out" / "home")}
    said, errors = root / "said.txt", root / "errors.txt"
    with said.open("w") as out, errors.open("w") as wrong:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=wrong,
            env=os.environ | variables,
            start_new_session=True,
        )
        outcome, end = "", time.monotonic() + timeout_s
        try:
            while process.poll() is None and not outcome:
                time.sleep(0.05)
                if time.monotonic() > end:
                    outcome = f"stopped after {timeout_s:.0f} s"
                elif _available_mb() < LEAST_LEFT_MB:
                    outcome = f"stopped with {_resident_mb(process.pid):,.0f} MB in memory"
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
    if not outcome and process.returncode:
        last = errors.read_text().splitlines()[-1:] or [""]
        why = last[0].replace(str(root), "...")[:MOST_WORDS]
        outcome = f"failed with code {process.returncode}: {why}"
    return outcome or DONE, said.read_text()


def one(curve: Curve, size: float, root: Path, *, prepare: bool) -> int:
    """In a process of its own: make the inputs, or run the job and print what it took."""
    from growth_jobs import INPUTS, JOBS, WARM, WARM_ROWS

    sizes = {"warm": WARM.get(curve.axis, WARM_ROWS), "measured": size}
    paths = {name: INPUTS[curve.input](root / "inputs", each) for name, each in sizes.items()}
    if prepare:
        return 0
    for name, each in sizes.items():
        out = root / "out" / name
        out.mkdir(parents=True)
        watch, wall, cpu = _Memory(), time.perf_counter(), _cpu_s()
        JOBS[curve.job](curve, paths[name], each, out)
        took = {
            "cpu_s": round(_cpu_s() - cpu, 3),
            "seconds": round(time.perf_counter() - wall, 3),
            "memory_mb": round(watch.stop()),
            "before_mb": round(watch.before),
            "input_bytes": paths[name].stat().st_size,
            "output_bytes": sum(file.stat().st_size for file in out.rglob("*.parquet")),
        }
    print(json.dumps(took))
    return 0


def tell(curves: Iterable[Curve], points: list[Point]) -> int:
    """Exponents, and how many curves do not hold what they were to."""
    wrong = 0
    for curve in curves:
        mine = [point for point in points if point["curve"] == curve.name]
        power, told = fitted(curve, mine), broken(curve, mine)
        hold = f" (hold: at most {MOST_EXPONENT})" if curve.axis == "rows" else ""
        slope = f"exponent {power[0]:.2f} from {power[1]} points{hold}" if power else "no exponent"
        print(f"{curve.name:<20}{slope}{'; ' if told else ''}{'; '.join(told)}")
        wrong += bool(told)
    return wrong


def line(curve: Curve, point: Point) -> str:
    """One point as a line."""
    head = f"{curve.name:<20}{size_text(curve.axis, point['size']):<18}"
    if point["outcome"] != DONE:
        return head + point["outcome"]
    return (
        f"{head}{point['cpu_s']:9.2f} CPU-s {point['seconds']:9.2f} s {point['memory_mb']:8,.0f} MB"
    )


def estimate(plan: Iterable[tuple[Curve, float]], points: list[Point]) -> float:
    """Seconds that points will take on a quiet machine, from the CPU that they took before.

    Where a size was not run, in proportion to the next smaller one: only to know how long to
    wait; no figure is made from it.
    """
    known = {(p["curve"], p["size"]): p["cpu_s"] for p in points if p["outcome"] == DONE}
    total = 0.0
    for curve, size in plan:
        mine = {s: cpu_s for (name, s), cpu_s in known.items() if name == curve.name}
        near = max((s for s in mine if s <= size), default=None)
        run = 5.0 if near is None else mine[near] * size / near
        total += START_S + min(run, curve.timeout_s)
    made = {(curve.input, size) for curve, size in plan if curve.axis in GROWING}
    return total + sum(MAKING_S * size for _, size in made)


def stored(file: Path) -> dict[str, Any]:
    """What former runs left."""
    if file.exists():
        found: dict[str, Any] = json.loads(file.read_text())
        return found
    return {"task": NAME, "command": f"python bench/{NAME}.py", "points": []}


def _place(point: Point) -> tuple[int, float]:
    names = [*BY_NAME]
    return names.index(point["curve"]), point["size"]


def _cpu_s() -> float:
    """Of this process and those it waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


class _Memory(threading.Thread):
    """Looks 20 times a second at what this process alone holds in memory.

    Pages of files, which the system takes back when it needs them, are not counted: a published
    table that is larger than half a gigabyte lies in one.
    """

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.before = self._most = _status_mb("RssAnon", os.getpid())
        self._over = threading.Event()
        self.start()

    def run(self) -> None:
        while not self._over.wait(0.05):
            self._most = max(self._most, _status_mb("RssAnon", os.getpid()))

    def stop(self) -> float:
        """The most that was seen."""
        self._over.set()
        self.join()
        return max(self._most, _status_mb("RssAnon", os.getpid()))


def _resident_mb(process: int) -> float:
    try:
        return _status_mb("VmRSS", process)
    except (OSError, IndexError):  # it just ended
        return 0.0


def _status_mb(field: str, process: int) -> float:
    status = Path(f"/proc/{process}/status").read_text()
    return int(status.partition(f"{field}:")[2].split()[0]) / 1024


def _available_mb() -> float:
    known = Path("/proc/meminfo").read_text()
    return int(known.partition("MemAvailable:")[2].split()[0]) / 1024


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", nargs="+", metavar="NAME", help="only these curves")
    parser.add_argument("--largest", type=float, default=1e9, help="no size above this")
    parser.add_argument("--smallest", type=float, default=0, help="no size below this")
    parser.add_argument("--list", action="store_true", help="say how long it takes, run nothing")
    parser.add_argument("--results", default=RESULTS, help="folder of growth.json")
    parser.add_argument("--folder", help="where temporary files go")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--size", type=float, help=argparse.SUPPRESS)
    parser.add_argument("--prepare", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # a point ends with its runner
    sys.exit(main())
