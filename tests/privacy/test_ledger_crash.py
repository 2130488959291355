"""kill -9 at any point: no acknowledged spend is lost, and a restart needs no help."""

import runpy
import signal
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest

from sfumato.ledger import Ledger

WORKER = Path(__file__).with_name("ledger_worker.py")
POINTS = list(runpy.run_path(str(WORKER))["POINTS"])


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SFUMATO_HOME", str(tmp_path / "home"))


def serve(path: Path, point: str, first: int, last: int) -> tuple[int, list[str]]:
    command = [sys.executable, str(WORKER), "serve", str(path), point, str(first), str(last)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=60, check=False)
    return done.returncode, done.stdout.split("\n")[:-1]


@pytest.mark.parametrize("point", POINTS)
def test_a_killed_process_loses_no_spend_and_its_successor_pays_nothing_twice(
    point: str, tmp_path: Path
) -> None:
    path = tmp_path / "ledger"
    released: list[str] = []
    for last in (3, 6):
        code, said = serve(path, point, 0, last)
        assert code == -signal.SIGKILL
        released += [line for line in said if line.startswith("released")]
        ledger = Ledger.open(path, dataset="adult")
        paid = {entry.request for entry in ledger.entries() if entry.event == "spend"}
        assert {line.split()[1] for line in said} <= paid <= {f"r{n}" for n in range(last)}
        assert ledger.spent.pure_epsilon == Fraction(len(paid), 100)
        assert ledger.verify().anchor is not None
    code, said = serve(path, "", 0, 6)
    assert code == 0
    assert Ledger.open(path, dataset="adult").spent.pure_epsilon == Fraction(6, 100)
    assert set(released) <= set(said)  # what ever left a process is what stands


@pytest.mark.parametrize("acknowledged", [1, 7, 20, 33])
def test_a_process_killed_while_spending_loses_nothing(acknowledged: int, tmp_path: Path) -> None:
    command = [sys.executable, str(WORKER), "forever", str(tmp_path / "ledger")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    said = [process.stdout.readline() for _ in range(acknowledged)]
    process.kill()
    said += process.stdout.readlines()
    process.wait()
    process.stdout.close()
    ledger = Ledger.open(tmp_path / "ledger", dataset="adult")
    paid = [entry.request for entry in ledger.entries() if entry.event == "spend"]
    assert {line.split()[1] for line in said} <= set(paid)
    assert len(paid) <= len(said) + 1
    assert ledger.verify().head == ledger.head
