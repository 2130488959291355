"""Properties at full size: the ledger against its model, bad inputs, damaged files."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from drills import stores
from drills.rows import Row
from privacy.test_ledger_model import LedgerMachine
from sfumato.ledger import Ledger
from sfumato.privacy import Cap

ROOT = Path(__file__).parents[2]
STEPS = 40
"""Of one machine."""
SHARE_OF_POSTGRES = 5
"""One step in a database for so many in files."""
BAD = ("test_bad_commands.py", "test_bad_input.py", "test_bad_tables.py")
CSV = 52
"""Percent of the damaged files that are CSV, compressed or not."""
_PASSED = re.compile(r"(\d+) passed")


def model(folder: Path, steps: int) -> Iterator[Row]:
    """Rules in any order against a model in plain words: never more spent than the cap."""
    yield _against("SQLite", _InFiles, steps)
    with stores.postgres(folder) as store, store.fresh() as address:
        yield _against(store.name, _in_database(address), steps // SHARE_OF_POSTGRES)


class _InFiles(LedgerMachine):
    """A file for each machine."""

    steps = 0


def _in_database(address: str) -> type[LedgerMachine]:
    """A data set for each machine, in one ledger, as a team has it."""
    numbers = count()

    class InDatabase(LedgerMachine):
        steps = 0

        def opened(self, cap: Cap | None) -> Ledger:
            return Ledger.open(address, dataset=f"set {next(numbers)}", cap=cap)

        def forget(self) -> None:
            pass

    return InDatabase


def _against(database: str, machine: type[LedgerMachine], steps: int) -> Row:
    """Machines until they made so many steps; hypothesis makes some shorter than asked."""
    begun = time.perf_counter()
    while machine.steps < steps:
        run_state_machine_as_test(
            machine,
            settings=settings(
                deadline=None,
                database=None,
                max_examples=max(1, (steps - machine.steps) // STEPS),
                stateful_step_count=STEPS,
                suppress_health_check=list(HealthCheck),
            ),
        )
    return Row(
        drill="against a model",
        database=database,
        holds=True,  # a step that differs ends the drill with hypothesis' shortest example
        found={
            "steps": machine.steps,
            "steps a second": machine.steps / (time.perf_counter() - begun),
        },
    )


def inputs(_folder: Path, _times: int) -> Iterator[Row]:
    """The table of bad commands, bad tables and bad values: no traceback, nothing spent."""
    yield _tests("bad inputs", *(f"tests/unit/cli/{name}" for name in BAD))


def files(_folder: Path, times: int) -> Iterator[Row]:
    """Damaged CSV files: refused in one message or read, no traceback, no value echoed."""
    os.environ["SFUMATO_FUZZ"] = str(times)
    try:
        yield _tests(
            "damaged files", "tests/privacy/test_fuzz.py", files=times, csv=times * CSV // 100
        )
    finally:
        del os.environ["SFUMATO_FUZZ"]


def _tests(drill: str, *paths: str, **more: int) -> Row:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *paths]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    passed = _PASSED.search(done.stdout)
    return Row(
        drill=drill,
        database="none",
        holds=done.returncode == 0 and passed is not None,
        found={**more, "cases": int(passed[1]) if passed else 0},
    )
