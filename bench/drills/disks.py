"""A disk that is full: a small one is mounted, and filled until a write fails for want of space.

Mounting needs root; without it the drill says that it was left out.
"""

import os
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from drills import commands, stores
from drills.rows import Row
from servers import Postgres, _unprivileged
from sfumato.errors import SfumatoError, StorageError
from sfumato.ledger import Ledger
from sfumato.privacy import OneRow, PureDP
from sfumato.randomness import simulation_rng

UNIT = PureDP("0.001")
KIB = 1024
PAYLOAD = 3 * KIB
"""Bytes of an outcome: the disk fills sooner, and at more places."""
MOST = 2_000


@dataclass(frozen=True, kw_only=True)
class Disk:
    """A small disk."""

    folder: Path

    def fill(self, leave: int) -> None:
        """Take all space but some."""
        free = shutil.disk_usage(self.folder).free
        with (self.folder / "filler").open("wb") as filler:
            filler.write(b"\1" * max(0, free - leave))

    def free(self) -> None:
        """Give the space back."""
        (self.folder / "filler").unlink()


@contextmanager
def small_disk(folder: Path, size: int) -> Iterator[Disk | None]:
    """A disk of so many bytes; None where this user may not mount one."""
    folder.mkdir(parents=True)
    asked = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    if os.name != "posix" or subprocess.run(asked, capture_output=True).returncode:
        yield None
        return
    try:
        yield Disk(folder=folder)
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def ledgers(folder: Path, times: int) -> Iterator[Row]:
    """Spends and outcomes until the disk is full; with a page more of space each time."""
    with stores.sqlite(folder):
        found = Counter[str]()
        for number in range(times):
            with small_disk(folder / f"disk{number}", 512 * KIB) as disk:
                if disk is None:
                    yield _left_out("a full disk at commit", "SQLite")
                    return
                anchors_too = number % 2 == 0
                os.environ["SFUMATO_HOME"] = str((disk if anchors_too else _Whole(folder)).folder)
                address = str(disk.folder / "ledger")
                _begun(address, number)
                disk.fill(leave=4 * KIB * (number % 24))
                found.update(_filled(address, disk, number))
        yield _full("SQLite", times, found)
    with stores.postgres(folder) as store:
        assert store.server is not None
        yield from _in_tablespace(store.server, folder, times)


def _in_tablespace(server: Postgres, folder: Path, times: int) -> Iterator[Row]:
    """The tables on the small disk, the server's own log on the large one."""
    found = Counter[str]()
    with small_disk(server.folder / "small", 24 * KIB * KIB) as disk:
        if disk is None:
            yield _left_out("a full disk at commit", "PostgreSQL")
            return
        if user := _unprivileged():
            shutil.chown(disk.folder, user)
        (disk.folder / "space").mkdir()
        if user:
            shutil.chown(disk.folder / "space", user)
        server.run(f"CREATE TABLESPACE small LOCATION '{disk.folder / 'space'}'")
        for number in range(times):
            with server.fresh("TABLESPACE small") as database:
                address = server.address(database.name, password=None)
                _begun(address, number)
                disk.fill(leave=8 * KIB * (number % 24))
                found.update(_filled(address, disk, number))
        server.run("DROP TABLESPACE small")
    yield _full("PostgreSQL", times, found)


@dataclass(frozen=True)
class _Whole:
    folder: Path


def _begun(address: str, number: int) -> None:
    with Ledger.open(address, dataset="full", cap=PureDP(10)) as ledger:
        ledger.spend(UNIT, label="first", protect=OneRow(), request=f"first{number}")


def _filled(address: str, disk: Disk, number: int) -> Counter[str]:
    """Spend and journal until that fails; then what is in the ledger, without the filler."""
    rng, paid, kept = simulation_rng(number), 1, dict[str, bytes]()
    found = Counter[str]()
    with Ledger.open(address, dataset="full") as ledger:
        try:
            for n in range(MOST):
                ledger.spend(UNIT, label="step", protect=OneRow(), request=f"r{n}")
                paid += 1
                told = rng.words(PAYLOAD // 8).tobytes()
                kept[f"r{n}"] = ledger.journal(f"r{n}", told)
            found["never full"] += 1
        except StorageError as error:
            found["plain errors"] += "can't be used" in str(error)
        except (SfumatoError, OSError):
            found["other errors"] += 1
    found["acknowledged"] = paid
    disk.free()
    with Ledger.open(address, dataset="full") as ledger:
        spends = [entry for entry in ledger.entries() if entry.event == "spend"]
        found["lost"] = max(0, paid - len(spends))
        found["unasked"] = max(0, len(spends) - paid - 1)  # one may be durable, and its error late
        found["outcomes lost"] = sum(ledger.outcome(name) != told for name, told in kept.items())
        ledger.spend(UNIT, label="afterwards", protect=OneRow())
        found["goes on"] = int(ledger.verify().rollback_excluded)
    return found


def _full(database: str, times: int, found: Counter[str]) -> Row:
    wrong = sum(found[name] for name in ("lost", "unasked", "outcomes lost", "other errors"))
    every = found["plain errors"] == found["goes on"] == times
    return Row(
        drill="a full disk at commit",
        database=database,
        holds=every and wrong == 0,
        found={"times": times, **found},
    )


def releases(folder: Path, times: int) -> Iterator[Row]:
    """Publications into a disk that fills: no half release, the charge kept, and resumed free."""
    bench = commands.Bench.made(folder)
    found = Counter[str]()
    for number in range(times):
        with small_disk(folder / f"disk{number}", 512 * KIB) as disk:
            if disk is None:
                yield _left_out("a full disk at release", "SQLite")
                return
            asked = bench.publication(disk.folder / "out", dataset=f"full{number}")
            disk.fill(leave=4 * KIB * (number % 24))
            ended = asked.done()
            spent = asked.spent()
            seen = commands.visible(disk.folder) - {"filler"}
            found["exit " + str(ended.code)] += 1
            found["half releases"] += bool(seen) and ended.code != 0
            found["tracebacks"] += "Traceback" in "\n".join(ended.said)
            disk.free()
            if ended.code:
                again = asked.done(*(["--resume"] if spent else []))
                found["went on"] += again.code == 0
                found["charged twice"] += asked.spent() != asked.epsilon
            found["complete"] += asked.complete()
    codes = {name for name in found if name.startswith("exit ")}
    wrong = found["half releases"] + found["tracebacks"] + found["charged twice"]
    yield Row(
        drill="a full disk at release",
        database="SQLite",
        holds=codes <= {"exit 0", "exit 4"} and wrong == 0 and found["complete"] == times,
        found={"times": times, **found},
    )


def _left_out(drill: str, database: str) -> Row:
    return Row(drill=drill, database=database, holds=True, found={"LEFT OUT": "mounts need root"})
