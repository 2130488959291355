"""The ledger in PostgreSQL: processes that race for units, and processes that are killed."""

import json
import os
import runpy
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path

from drills import taking
from drills.rows import Row
from drills.taking import UNITS
from servers import PASSWORD, Database, started
from sfumato.privacy import Ledger, PureDP
from sfumato.randomness import simulation_rng

PROCESSES = 8
WORKER = Path(__file__).parents[2] / "tests" / "privacy" / "ledger_worker.py"
POINTS = list(runpy.run_path(str(WORKER))["POINTS"])
LONGEST_S = 0.5


def races(folder: Path, rounds: int) -> Iterator[Row]:
    """Eight processes take units of a new ledger until none is left."""
    granted: list[int] = []
    begun, waited = time.perf_counter(), 0.0
    with _server(folder) as server:
        for number in range(rounds):
            with server() as database:
                address = _address(database)
                go = folder / f"go{number}"
                command = [sys.executable, taking.__file__, address, str(go)]
                running = [_started(command) for _ in range(PROCESSES)]
                for process in running:
                    assert process.stdout is not None
                    process.stdout.readline()
                go.touch()
                began = time.perf_counter()
                seqs = [seq for each in running for seq in json.loads(each.communicate()[0])]
                waited += time.perf_counter() - began
                with Ledger.open(address, dataset="race") as ledger:
                    whole = ledger.spent.pure_epsilon == Fraction(UNITS, 100)
                granted.append(len(set(seqs)) if whole and len(seqs) == len(set(seqs)) else -1)
    yield Row(
        drill=f"{PROCESSES} processes race",
        database="PostgreSQL",
        holds=set(granted) == {UNITS},
        found={
            "rounds": rounds,
            "units": UNITS,
            "granted least": min(granted),
            "most": max(granted),
            "spends a second": UNITS * rounds / waited,
            "minutes": (time.perf_counter() - begun) / 60,
        },
    )


def kills(folder: Path, times: int) -> Iterator[Row]:
    """Killed at each named point so often, and as often at any moment."""
    with _server(folder) as server, server() as database:
        address = _address(database)
        lost = twice = 0
        for number in range(times * len(POINTS)):
            one, other = _served_and_killed(address, folder, POINTS[number % len(POINTS)], number)
            lost, twice = lost + one, twice + other
        yield Row(
            drill="kill -9 at named points",
            database="PostgreSQL",
            holds=lost == twice == 0,
            found={
                "points": len(POINTS),
                "kills": times * len(POINTS),
                "lost": lost,
                "twice": twice,
            },
        )
    with _server(folder) as server, server() as database:
        yield _killed_anywhere(_address(database), times)


def _served_and_killed(address: str, folder: Path, point: str, number: int) -> tuple[int, int]:
    """Acknowledged spends that are gone, and spends that were paid twice."""
    first = 3 * number
    command = [sys.executable, str(WORKER), "serve", address]
    span = [str(first), str(first + 3)]
    killed = subprocess.run([*command, point, *span], stdout=subprocess.PIPE, text=True, timeout=60)
    assert killed.returncode == -signal.SIGKILL
    said = {line.split()[1] for line in killed.stdout.splitlines()}
    with Ledger.open(address, dataset="adult") as ledger:
        paid = [entry.request for entry in ledger.entries() if entry.event == "spend"]
    subprocess.run([*command, "", *span], stdout=subprocess.PIPE, timeout=60, check=True)
    with Ledger.open(address, dataset="adult") as ledger:
        whole = ledger.spent.pure_epsilon == Fraction(first + 3, 100)
    return len(said - set(paid)), int(not whole) + len(paid) - len(set(paid))


def _killed_anywhere(address: str, times: int) -> Row:
    rng, said = simulation_rng(80), set[str]()
    Ledger.open(address, dataset="adult", cap=PureDP(1_000)).close()
    for moment in rng.uniform(times).tolist():
        process = _started([sys.executable, str(WORKER), "forever", address])
        assert process.stdout is not None
        said.add(process.stdout.readline().split()[1])
        time.sleep(LONGEST_S * moment)
        process.kill()
        rest = process.communicate()[0].splitlines()
        said |= {line.split()[1] for line in rest if line.startswith("paid ")}
    with Ledger.open(address, dataset="adult") as ledger:
        paid = [str(entry.request) for entry in ledger.entries() if entry.event == "spend"]
        ledger.verify()
    lost, twice = len(said - set(paid)), len(paid) - len(set(paid))
    return Row(
        drill="kill -9 at any moment",
        database="PostgreSQL",
        holds=lost == twice == 0,
        found={"kills": times, "acknowledged": len(said), "lost": lost, "twice": twice},
    )


def _started(command: list[str]) -> "subprocess.Popen[str]":
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


@contextmanager
def _server(folder: Path) -> Iterator[object]:
    os.environ["PGPASSWORD"], os.environ["SFUMATO_HOME"] = PASSWORD, str(folder / "home")
    with started(durable=True) as server:
        yield server.fresh


def _address(database: Database) -> str:
    return database.server.address(database.name, password=None)
