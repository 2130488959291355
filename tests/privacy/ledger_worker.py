"""Run as a process by the ledger tests: ``ledger_worker.py JOB PATH ...``, one line per result."""

import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

from sfumato.errors import BudgetError
from sfumato.ledger import Ledger, stores
from sfumato.ledger import ledger as ledger_module
from sfumato.privacy import OneRow, PureDP

UNIT, CAP = PureDP("0.01"), PureDP(2)


def say(text: str) -> None:
    os.write(1, f"{text}\n".encode())


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def dies_after(owner: Any, method: str) -> None:
    original = getattr(owner, method)

    def patched(*args: Any) -> None:
        original(*args)
        die()

    setattr(owner, method, patched)


def dies_in(owner: Any, method: str) -> None:
    setattr(owner, method, lambda *_: die())


def dies_after_statement(method: str) -> None:
    for owner in (stores.SqliteTransaction, stores.PostgresTransaction):
        dies_after(owner, method)


POINTS = {
    "before the transaction": lambda: dies_in(Ledger, "_spend_bodies"),
    "row written, not committed": lambda: dies_after_statement("append"),
    "committed, not anchored": lambda: dies_in(ledger_module, "write_anchor"),
    "anchor written aside": lambda: dies_in(Path, "replace"),
    "anchored, not acknowledged": lambda: dies_after(ledger_module, "write_anchor"),
    "acknowledged, not journaled": lambda: dies_in(Ledger, "journal"),
    "outcome written, not committed": lambda: dies_after_statement("keep_outcome"),
    "journaled, not released": lambda: dies_after(Ledger, "journal"),
}


def serve(path: str, point: str, first: str, last: str) -> None:
    """Pay, draw and release requests ``first .. last - 1``; die during the last one."""
    ledger = Ledger.open(path, dataset="adult", cap=CAP)
    for n in range(int(first), int(last)):
        if point and n == int(last) - 1:
            POINTS[point]()
        ledger.spend(UNIT, label=f"step {n}", protect=OneRow(), request=f"r{n}")
        say(f"paid r{n}")
        payload = ledger.journal(f"r{n}", f"noise of process {os.getpid()}".encode())
        say(f"released r{n} {payload.decode()}")


def forever(path: str) -> None:
    """Acknowledge spends until killed."""
    ledger = Ledger.open(path, dataset="adult")
    for n in range(1_000_000):
        ledger.spend(PureDP("0.001"), label="x", protect=OneRow(), request=f"{os.getpid()}-{n}")
        say(f"paid {os.getpid()}-{n}")


def race(path: str, go: str) -> None:
    """Make the ledger if it is missing and take units until none is left."""
    wait_for(go)
    ledger = Ledger.open(path, dataset="adult", cap=CAP)
    try:
        while True:
            say(str(ledger.spend(UNIT, label="unit", protect=OneRow()).seq))
    except BudgetError:
        pass


def take_one(path: str, go: str) -> None:
    """Try once for half of the cap and a little."""
    ledger = Ledger.open(path, dataset="adult", cap=CAP)
    wait_for(go)
    try:
        ledger.spend(PureDP("1.5"), label="all", protect=OneRow())
        say("won")
    except BudgetError:
        say("lost")


def same_request(path: str, go: str) -> None:
    """Ten threads pay and journal the same request."""
    ledger = Ledger.open(path, dataset="adult", cap=CAP)
    wait_for(go)

    def work(n: int) -> None:
        entry = ledger.spend(UNIT, label="age", protect=OneRow(), request="r1")
        kept = ledger.journal("r1", f"{os.getpid()} {n}".encode())
        say(f"{entry.hash} {kept.decode()}")

    threads = [threading.Thread(target=work, args=(n,)) for n in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def wait_for(go: str) -> None:
    say("ready")
    while not Path(go).exists():
        time.sleep(0.001)


if __name__ == "__main__":
    jobs = {job.__name__: job for job in (serve, forever, race, take_one, same_request)}
    jobs[sys.argv[1]](*sys.argv[2:])
