"""Many processes at one ledger: exactly what the cap allows is granted."""

import json
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest

from sfumato.ledger import Head, Ledger
from sfumato.privacy import PureDP
from together import at_once

WORKER = Path(__file__).with_name("ledger_worker.py")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SFUMATO_HOME", str(tmp_path / "home"))


def test_four_processes_create_one_ledger_and_get_exactly_its_200_units(tmp_path: Path) -> None:
    said = at_once(WORKER, "race", 4, str(tmp_path / "ledger"), tmp_path)
    granted = [int(seq) for lines in said for seq in lines]
    assert len(granted) == len(set(granted)) == 200
    ledger = Ledger.open(tmp_path / "ledger", dataset="adult", create=False)
    assert ledger.spent.pure_epsilon == 2
    assert ledger.verify().rollback_excluded
    (anchor,) = (tmp_path / "home" / "anchors").glob("*.json")
    kept = json.loads(anchor.read_text())
    assert Head(kept["seq"], kept["hash"]) == ledger.head
    assert [path.name for path in tmp_path.glob(".ledger*")] == []


def test_of_six_processes_that_want_the_last_unit_one_wins(tmp_path: Path) -> None:
    said = at_once(WORKER, "take_one", 6, str(tmp_path / "ledger"), tmp_path)
    assert sorted(line for lines in said for line in lines) == ["lost"] * 5 + ["won"]
    ledger = Ledger.open(tmp_path / "ledger", dataset="adult")
    assert ledger.spent.pure_epsilon == Fraction(3, 2)


def test_forty_callers_of_one_request_pay_once_and_see_the_same_bytes(tmp_path: Path) -> None:
    said = at_once(WORKER, "same_request", 4, str(tmp_path / "ledger"), tmp_path)
    answers = [line for lines in said for line in lines]
    assert len(answers) == 40
    assert len(set(answers)) == 1
    ledger = Ledger.open(tmp_path / "ledger", dataset="adult")
    assert ledger.composed() == PureDP("0.01")


INTERRUPTED = """
import signal, sqlite3, sys, threading
from sfumato.ledger import Ledger
from sfumato.privacy import OneRow, PureDP

def stop(*_):
    raise KeyboardInterrupt

ledger = Ledger.open(sys.argv[1], dataset="adult")
ledger.spend(PureDP(1), label="first", protect=OneRow())
other = sqlite3.connect(sys.argv[1], isolation_level=None, check_same_thread=False)
other.execute("BEGIN IMMEDIATE")
threading.Timer(0.5, lambda: other.execute("ROLLBACK")).start()
signal.signal(signal.SIGALRM, stop)
signal.setitimer(signal.ITIMER_REAL, 0.2)  # handled as soon as the waiting statement returns
try:
    ledger.spend(PureDP(1), label="stopped", protect=OneRow())
except KeyboardInterrupt:
    print("stopped")
print(ledger.spend(PureDP(1), label="later", protect=OneRow()).seq)
Ledger.open(sys.argv[1], dataset="adult").spend(PureDP(1), label="another's", protect=OneRow())
print(ledger.spent.pure_epsilon)
"""


def test_an_interrupt_while_the_ledger_is_busy_leaves_no_lock_behind(tmp_path: Path) -> None:
    command = [sys.executable, "-c", INTERRUPTED, str(tmp_path / "ledger")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout.split(), done.returncode) == (["stopped", "3", "3"], 0), done.stderr
