"""Drills: kill it, race it, fill its disk, damage its files, and count what was lost.

    python bench/drill.py [--only NAME ...] [--times N] [--smoke] [--write] [--list]

Real processes, a real full disk, SQLite and PostgreSQL with ``fsync``. Every drill reads ledgers
and outputs itself, prints a line (what was done, what was found, whether the promise holds), and
the exit code is 1 if one does not. ``ledger``, ``batch`` and ``service`` name whole groups.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from drills import pages
from drills.rows import Row

Run = Callable[[Path, int], Iterator[Row]]


@dataclass(frozen=True, kw_only=True)
class Drill:
    """What is done, how often, and how long that takes on two cores."""

    group: str
    where: str
    """``module.function``: only what is asked for is imported."""
    times: int
    smoke: int
    minutes: float

    def run(self) -> Run:
        """The drill itself."""
        module, _, name = self.where.partition(".")
        found: Run = getattr(__import__(f"drills.{module}", fromlist=[name]), name)
        return found


def _drill(group: str, where: str, times: int, smoke: int, minutes: float) -> Drill:
    return Drill(group=group, where=where, times=times, smoke=smoke, minutes=minutes)


DRILLS = {
    "ledger-race": _drill("ledger", "ledgers.races", 20, 1, 8),
    "ledger-kill": _drill("ledger", "ledgers.kills", 50, 1, 4),
    "ledger-kill-any": _drill("ledger", "ledgers.kills_at_any_moment", 50, 2, 0.5),
    "ledger-same": _drill("ledger", "ledgers.same_request", 20, 1, 1.5),
    "ledger-clock": _drill("ledger", "ledgers.clocks", 60, 6, 0.3),
    "ledger-flip": _drill("ledger", "damage.flips", 100_000, 200, 3),
    "ledger-edit": _drill("ledger", "damage.edits", 1, 1, 0.3),
    "ledger-backup": _drill("ledger", "damage.backups", 10, 1, 0.5),
    "ledger-disk": _drill("ledger", "disks.ledgers", 24, 1, 1),
    "ledger-model": _drill("ledger", "models.model", 10_000, 200, 2),
    "bad-inputs": _drill("batch", "models.inputs", 1, 1, 1),
    "bad-files": _drill("batch", "models.files", 20_000, 200, 3),
    "publish-kill": _drill("batch", "batches.kills", 10, 1, 3),
    "publish-kill-any": _drill("batch", "batches.kills_at_any_moment", 50, 1, 4),
    "publish-race": _drill("batch", "batches.races", 10, 1, 2),
    "publish-storm": _drill("batch", "batches.storms", 10, 1, 2.5),
    "publish-resume": _drill("batch", "batches.resumed_together", 10, 1, 1.5),
    "publish-refused": _drill("batch", "batches.refused", 1, 1, 0.3),
    "publish-disk": _drill("batch", "disks.releases", 24, 2, 1),
    "kill-sqlite": _drill("service", "crashes.kills_on_sqlite", 50, 2, 3),
    "kill-postgres": _drill("service", "crashes.kills_on_postgres", 50, 2, 3),
    "crash-postgres": _drill("service", "crashes.crashes_of_postgres", 10, 1, 1),
    "large": _drill("service", "crashes.large", 1_000_000, 10_000, 1),
    "copies": _drill("service", "copies.copies", 10_000, 1_000, 1),
    "invitations": _drill("service", "copies.invitations", 200, 20, 1),
    "closing": _drill("service", "copies.closing", 20, 1, 1),
    "overload": _drill("service", "floods.overload", 5, 2, 1),
    "rate": _drill("service", "floods.rate", 2_000, 200, 1),
}


def main(arguments: list[str] | None = None) -> None:
    """Run what was asked for."""
    wanted = _asked(arguments)
    # Started in the background of a script it would ignore Ctrl-C, and so would what it drills.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    chosen = {
        name: drill
        for name, drill in DRILLS.items()
        if name in wanted.only or drill.group in wanted.only
    }
    if wanted.list:
        for name, drill in chosen.items():
            print(f"{name:18} {drill.group:8} {drill.times:>9,} times  ~{drill.minutes:g} min")
        return
    if wanted.json or len(chosen) == 1:
        rows = [row for drill in chosen.values() for row in _ran(drill, wanted)]
    else:
        rows = _all(chosen, wanted)
    if wanted.write:
        pages.PAGE.write_text(pages.with_table(pages.PAGE.read_text(), pages.keep(rows)))
    if wanted.json:
        print(json.dumps([row.to_dict() for row in rows], indent=1))
    else:
        print(f"{sum(row.holds for row in rows)} of {len(rows)} hold")
    sys.exit(not all(row.holds for row in rows))


def _ran(drill: Drill, wanted: argparse.Namespace) -> list[Row]:
    """The rows of a drill, in this process."""
    times = wanted.times or (drill.smoke if wanted.smoke else drill.times)
    begun, rows = time.perf_counter(), []
    with tempfile.TemporaryDirectory(dir=wanted.folder) as folder:
        for found in drill.run()(Path(folder), times):
            row = replace(found, seconds=time.perf_counter() - begun)
            rows.append(row)
            if not wanted.json:
                print(row.line(), flush=True)
            begun = time.perf_counter()
    return rows


def _all(chosen: dict[str, Drill], wanted: argparse.Namespace) -> list[Row]:
    """Each drill in a process of its own, two at a time: they wait for disks more than they work.

    Drills of the service measure delays, so each of them has the machine for itself.
    """
    if not (wanted.smoke or wanted.times):
        alone = sum(each.minutes for each in chosen.values() if each.group == "service")
        others = sum(each.minutes for each in chosen.values()) - alone
        print(f"about {others / wanted.jobs + alone:.0f} minutes", flush=True)
    rows: list[Row] = []
    for together in (True, False):
        names = [name for name in chosen if (chosen[name].group != "service") == together]
        with ThreadPoolExecutor(wanted.jobs if together else 1) as pool:
            for found in pool.map(lambda name: _in_process(name, wanted), names):
                rows += found
    return rows


def _in_process(name: str, wanted: argparse.Namespace) -> list[Row]:
    options = ["--only", name, "--json", *(["--smoke"] if wanted.smoke else [])]
    options += [f"--times={wanted.times}"] if wanted.times else []
    options += [f"--folder={wanted.folder}"] if wanted.folder else []
    done = subprocess.run([sys.executable, __file__, *options], capture_output=True, text=True)
    try:
        rows = [Row.from_dict(found) for found in json.loads(done.stdout)]
    except ValueError:  # it broke off, which is no way to hold a promise
        said = done.stderr.strip().splitlines()[-1:]
        rows = [Row(drill=name, database="-", holds=False, found={"ended": " ".join(said)})]
    for row in rows:
        print(row.line(), flush=True)
    return rows


def _asked(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    groups = sorted({drill.group for drill in DRILLS.values()})
    names = [*groups, *DRILLS]
    parser.add_argument("--only", nargs="+", choices=names, default=groups, metavar="NAME")
    parser.add_argument("--times", type=int, help="instead of the usual size, of every drill")
    parser.add_argument("--smoke", action="store_true", help="everything once, small")
    parser.add_argument("--jobs", type=int, default=2, help="drills at a time")
    parser.add_argument("--folder", type=Path, help="on the disk to be tried")
    parser.add_argument("--write", action="store_true", help="the figures into docs/drills.md")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--list", action="store_true", help="names, sizes and minutes")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
