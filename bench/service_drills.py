"""Drills of the survey service and of the ledger: kill it, crowd it, copy to it, and count.

``python bench/service_drills.py`` runs every drill at full size on real server processes, SQLite
and PostgreSQL with ``fsync``, and prints a table: what was done, what was found, and whether the
promise holds. ``--only`` names some, ``--times`` makes them smaller, ``--json`` is for programs.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from drills import copies, crashes, floods, ledgers
from drills.rows import Row

Drill = Callable[[Path, int], Iterator[Row]]
DRILLS: dict[str, tuple[Drill, int]] = {
    "kill-sqlite": (crashes.kills_on_sqlite, 50),
    "kill-postgres": (crashes.kills_on_postgres, 50),
    "crash-postgres": (crashes.crashes_of_postgres, 10),
    "large": (crashes.large, 1_000_000),
    "copies": (copies.copies, 10_000),
    "invitations": (copies.invitations, 200),
    "closing": (copies.closing, 20),
    "overload": (floods.overload, 5),
    "rate": (floods.rate, 2_000),
    "ledger-race": (ledgers.races, 20),
    "ledger-kill": (ledgers.kills, 50),
}
"""Each with how often it is done, or how large it is."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", choices=DRILLS, default=list(DRILLS))
    parser.add_argument("--ledger", action="store_true", help="only the drills of the ledger")
    parser.add_argument("--times", type=int, help="instead of the usual size")
    parser.add_argument("--folder", type=Path, help="on the disk to be tried")
    parser.add_argument("--json", action="store_true")
    wanted = parser.parse_args()
    chosen = [name for name in DRILLS if "ledger" in name] if wanted.ledger else wanted.only
    rows: list[Row] = []
    for name in chosen:
        drill, usual = DRILLS[name]
        begun = time.perf_counter()
        with tempfile.TemporaryDirectory(dir=wanted.folder) as folder:
            for row in drill(Path(folder), wanted.times or usual):
                rows.append(row)
                if not wanted.json:
                    print(row.line(time.perf_counter() - begun), flush=True)
    if wanted.json:
        print(json.dumps([row.to_dict() for row in rows], indent=1))
    sys.exit(not all(row.holds for row in rows))


if __name__ == "__main__":
    main()
