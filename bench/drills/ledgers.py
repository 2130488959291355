"""The ledger in a file and in PostgreSQL: killed, raced for, asked twice, and the clock moved."""

import itertools
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from functools import partial
from pathlib import Path

from drills import forks, stores
from drills.rows import Row
from privacy import ledger_worker as worker
from sfumato.errors import BudgetError
from sfumato.ledger import Ledger, entries
from sfumato.privacy import OneRow, PureDP
from sfumato.randomness import simulation_rng

PROCESSES = 8
UNITS = 1_000
UNIT, CAP = PureDP("0.01"), PureDP(10)
SERVED = 3
"""Requests of a process that is killed during the last one."""
LONGEST_S = 0.2
CALLERS, THREADS = 10, 10
TEN_YEARS = timedelta(days=3652)


def races(folder: Path, rounds: int) -> Iterator[Row]:
    """Eight processes take units of a new ledger until none is left."""
    for store in stores.both(folder):
        granted, begun = Counter[int](), time.perf_counter()
        for _ in range(rounds):
            with store.fresh() as address:
                granted[_raced(address)] += 1
        yield Row(
            drill=f"{PROCESSES} processes race",
            database=store.name,
            holds=set(granted) == {UNITS},
            found={
                "rounds": rounds,
                "units": UNITS,
                "granted least": min(granted),
                "most": max(granted),
                "spends a second": UNITS * rounds / (time.perf_counter() - begun),
            },
        )


def _raced(address: str) -> int:
    """How many units were granted; -1 if the ledger or the processes disagree."""
    ended = forks.together([partial(_take, address)] * PROCESSES)
    seqs = [int(seq) for each in ended for seq in each.said if seq]
    with Ledger.open(address, dataset="race") as ledger:
        whole = ledger.spent.pure_epsilon == Fraction(len(seqs), 100)
        ledger.verify()
    sound = whole and len(seqs) == len(set(seqs)) and all(each.code == 0 for each in ended)
    return len(seqs) if sound else -1


def _take(address: str) -> None:
    taken: list[int] = []
    with Ledger.open(address, dataset="race", cap=CAP) as ledger:
        try:
            while True:
                taken.append(ledger.spend(UNIT, label="unit", protect=OneRow()).seq)
        except BudgetError:
            print("\n".join(map(str, taken)))


def kills(folder: Path, times: int) -> Iterator[Row]:
    """Killed at each named point so often, and restarted by itself."""
    for store in stores.both(folder):
        lost = twice = unlike = 0
        for point in worker.POINTS:
            with store.fresh() as address:
                for number in range(times):
                    found = _served_and_killed(address, point, SERVED * number)
                    lost, twice, unlike = lost + found[0], twice + found[1], unlike + found[2]
        yield Row(
            drill="kill -9 at named points",
            database=store.name,
            holds=lost == twice == unlike == 0,
            found={
                "points": len(worker.POINTS),
                "kills": times * len(worker.POINTS),
                "acknowledged spends lost": lost,
                "paid twice": twice,
                "released and drawn anew": unlike,
            },
        )


def _served_and_killed(address: str, point: str, first: int) -> tuple[int, int, int]:
    """Acknowledged spends that are gone, spends paid twice, and outcomes that changed."""
    last = str(first + SERVED)
    killed = forks.done(partial(worker.serve, address, point, str(first), last))
    assert killed.killed, (point, killed)
    paid = _paid(address)
    again = forks.done(partial(worker.serve, address, "", str(first), last))
    assert again.code == 0, again
    after = _paid(address)
    released = {line for line in killed.said if line.startswith("released")}
    return (
        len({line.split()[1] for line in killed.said} - set(paid)),
        len(after) - len(set(after)) + abs(len(after) - first - SERVED),
        len(released - set(again.said)),
    )


def _paid(address: str) -> list[str]:
    """The requests in a ledger, which says of itself that it is whole."""
    with Ledger.open(address, dataset="adult", cap=worker.CAP) as ledger:
        found = [str(entry.request) for entry in ledger.entries() if entry.event == "spend"]
        assert ledger.spent.pure_epsilon == len(found) * worker.UNIT.epsilon
        ledger.verify()
    return found


def kills_at_any_moment(folder: Path, times: int) -> Iterator[Row]:
    """Killed while spending as fast as it can."""
    for store in stores.both(folder):
        rng, said = simulation_rng(80), set[str]()
        with store.fresh() as address:
            Ledger.open(address, dataset="adult", cap=PureDP(1_000)).close()
            for moment in rng.uniform(times).tolist():
                child = forks.started(partial(worker.forever, address))
                said.add(child.line().split()[1])
                time.sleep(LONGEST_S * moment)
                child.send(signal.SIGKILL)
                said |= {line.split()[1] for line in child.ended().said}
            with Ledger.open(address, dataset="adult") as ledger:
                paid = [str(entry.request) for entry in ledger.entries() if entry.event == "spend"]
                ledger.verify()
        yield Row(
            drill="kill -9 at any moment",
            database=store.name,
            holds=said <= set(paid) and len(paid) == len(set(paid)),
            found={
                "kills": times,
                "acknowledged": len(said),
                "lost": len(said - set(paid)),
                "twice": len(paid) - len(set(paid)),
            },
        )


def same_request(folder: Path, times: int) -> Iterator[Row]:
    """A hundred callers, in ten processes, pay and journal one request at once."""
    for store in stores.both(folder):
        answers, wrong = 0, 0
        for _ in range(times):
            with store.fresh() as address:
                ended = forks.together([partial(_ask_ten_times, address)] * CALLERS)
                said = [line for each in ended for line in each.said]
                with Ledger.open(address, dataset="adult") as ledger:
                    once = ledger.composed() == UNIT
                answers += len(said)
                wrong += not (once and len(said) == CALLERS * THREADS and len(set(said)) == 1)
        yield Row(
            drill="one request 100 times",
            database=store.name,
            holds=wrong == 0,
            found={
                "rounds": times,
                "answers": answers,
                "rounds with a second spend or draw": wrong,
            },
        )


def _ask_ten_times(address: str) -> None:
    ledger = Ledger.open(address, dataset="adult", cap=CAP)

    def ask(number: int) -> None:
        entry = ledger.spend(UNIT, label="age", protect=OneRow(), request="r1")
        kept = ledger.journal("r1", f"{os.getpid()} {number}".encode())
        worker.say(f"{entry.hash} {kept.decode()}")

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def clocks(folder: Path, times: int) -> Iterator[Row]:
    """Processes whose clock is ten years ahead, ten years behind, and right, in turn."""
    for store in stores.both(folder):
        with store.fresh() as address:
            for number in range(times):
                ended = forks.done(
                    partial(_spend_at, address, number, (number % 3 - 1) * TEN_YEARS)
                )
                assert ended.code == 0, ended
            with Ledger.open(address, dataset="adult") as ledger:
                spends = [entry for entry in ledger.entries() if entry.event == "spend"]
                labels = [entry.label for entry in spends]
                total, rightly = ledger.spent.pure_epsilon, times * UNIT.epsilon
                ledger.verify()
        backwards = sum(a.time > b.time for a, b in itertools.pairwise(spends))
        yield Row(
            drill="clock 10 years off",
            database=store.name,
            holds=total == rightly and labels == [str(number) for number in range(times)],
            found={"spends": times, "times that ran backwards": backwards, "epsilon": float(total)},
        )


def _spend_at(address: str, number: int, off: timedelta) -> None:
    moved = (datetime.now(UTC) + off).date().isoformat()
    entries.today = lambda: moved  # in this process only, which ends here
    with Ledger.open(address, dataset="adult", cap=PureDP(100)) as ledger:
        ledger.spend(UNIT, label=str(number), protect=OneRow(), request=f"r{number}")
        ledger.spend(UNIT, label=str(number), protect=OneRow(), request=f"r{number}")
