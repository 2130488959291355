"""Ledgers changed behind their back: every byte, rows, whole files, older backups."""

import os
import re
import shutil
import sqlite3
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from drills import stores
from drills.rows import Row
from drills.stores import Store
from servers import OWNER, PASSWORD
from sfumato.errors import LedgerCorruptError, SfumatoError
from sfumato.ledger import Ledger
from sfumato.privacy import OneRow, PureDP

HEADER = 100
"""Bytes of a SQLite file of which every bit is tried; of the others one, in turn."""
_CHECK = re.compile(r"check of its ([\w ]+?) failed")
_TRIGGERS = ("entries_stay", "entries_last", "outcomes_stay", "outcomes_last")
_E, _O = "sfumato_ledger.entries", "sfumato_ledger.outcomes"
_PAST_TRIGGERS = "".join(
    f"ALTER TABLE {table} DISABLE TRIGGER ALL; GRANT ALL ON {table} TO CURRENT_USER; "
    for table in (_E, _O)
)

FILE_EDITS = {
    "edited row": "UPDATE entries SET body = replace(body, 'step 1', 'step 9') WHERE seq = 4",
    "smaller cost": "UPDATE entries SET body = replace(body, '3/10', '1/10') WHERE seq = 5",
    "deleted row": "DELETE FROM entries WHERE seq = 3",
    "deleted tail": "DELETE FROM entries WHERE seq > 3",
    "deleted last": "DELETE FROM entries WHERE seq = 6",
    "lost outcome": "DELETE FROM outcomes",
    "another outcome": "UPDATE outcomes SET payload = x'00'",
    "emptied": "DELETE FROM entries",
    "dropped": "DROP TABLE entries",
    "another link": "UPDATE entries SET previous = substr(previous, 2) || '0' WHERE seq = 2",
    "other version": "PRAGMA user_version = 7",
    "other program": "PRAGMA application_id = 7",
}
DATABASE_EDITS = {
    "edited row": f"UPDATE {_E} SET body = replace(body, 'step 1', 'step 9') WHERE seq = 4",
    "smaller cost": f"UPDATE {_E} SET body = replace(body, '3/10', '1/10') WHERE seq = 5",
    "deleted row": f"DELETE FROM {_E} WHERE seq = 3",
    "deleted tail": f"DELETE FROM {_E} WHERE seq > 3",
    "deleted last": f"DELETE FROM {_E} WHERE seq = 6",
    "lost outcome": f"DELETE FROM {_O}",
    "another outcome": f"UPDATE {_O} SET payload = ''",
    "emptied": f"DELETE FROM {_E}",
    "dropped": "DROP SCHEMA sfumato_ledger CASCADE",
    "another link": f"UPDATE {_E} SET previous = repeat('0', 64) WHERE seq = 2",
    "other version": "UPDATE sfumato_ledger.about SET version = 9",
}


def flips(folder: Path, times: int) -> Iterator[Row]:
    """One bit of every byte of a ledger file (or of so many, evenly), all bits of its header."""
    with stores.sqlite(_in_memory(folder)), _memory_folder(folder) as here:
        path = _made(here / "ledger")
        whole, truth = path.read_bytes(), _told(str(path))
        anchors = {file: file.read_bytes() for file in (here / "home" / "anchors").iterdir()}
        outcomes, strange = Counter[str](), list[str]()
        for place, bit in _bits(len(whole), times):
            changed = bytearray(whole)
            changed[place] ^= 1 << bit
            _put(path, bytes(changed), anchors)
            found = _judged(path, truth)
            outcomes[found] += 1
            if found.startswith("WRONG"):
                strange.append(f"{place}:{bit} {found}")
        yield Row(
            drill="a flipped bit",
            database="SQLite",
            holds=not strange,
            found={
                "bits": sum(outcomes.values()),
                **dict(outcomes.most_common()),
                **_first(strange),
            },
        )


def _bits(size: int, times: int) -> Iterator[tuple[int, int]]:
    step = max(1, size // times)
    for place in range(0, size, step):
        for bit in range(8) if place < HEADER else (place % 8,):
            yield place, bit


def _judged(path: Path, truth: Any) -> str:
    """Whether a changed file was refused, or still says and does exactly what it did."""
    before = path.read_bytes()
    try:
        if _told(str(path)) != truth:
            return "WRONG: believed"
    except SfumatoError as error:
        same = path.read_bytes() == before
        return _named(error) if same else "WRONG: refused and changed"
    except Exception as error:
        return f"WRONG: {type(error).__name__}"
    try:
        with Ledger.open(path, dataset="adult") as ledger:
            ledger.spend(PureDP("0.1"), label="more", protect=OneRow(), request="r9")
            exact = ledger.spent.pure_epsilon * 10 == 4
        return "unused byte, all exact" if exact else "WRONG: sum"
    except SfumatoError as error:
        return f"read, then refused: {_named(error)}"
    except Exception as error:
        return f"WRONG: {type(error).__name__}"


def edits(folder: Path, _times: int) -> Iterator[Row]:
    """Rows edited and deleted, tables dropped; files cut, emptied and replaced."""
    for store in stores.both(folder):
        known = FILE_EDITS if store.server is None else DATABASE_EDITS
        refused = {}
        for name, sql in known.items():
            with store.fresh() as address:
                _made(address)
                _edit(store, address, sql)
                refused[name] = _refusal(address)
        if store.server is None:
            refused |= _files(folder)
        yield _refusals("edited behind its back", store, refused)


def backups(folder: Path, times: int) -> Iterator[Row]:
    """An older copy put back, after one more spend, or one more outcome, each time."""
    for store in stores.both(folder):
        refused = {}
        for number in range(times):
            with store.fresh() as address:
                _made(address)
                kept = _backup(store, address, folder)
                with Ledger.open(address, dataset="adult") as ledger:
                    if number % 2:
                        ledger.journal("r1", b"drawn")
                    else:
                        ledger.spend(PureDP("0.7"), label="the rest", protect=OneRow())
                _restore(store, address, kept)
                refused[f"backup {number}"] = _refusal(address)
        yield _refusals("an older backup", store, refused)


def _refusals(drill: str, store: Store, refused: dict[str, str | None]) -> Row:
    open_ways = [name for name, check in refused.items() if check is None]
    return Row(
        drill=drill,
        database=store.name,
        holds=not open_ways,
        found={
            "ways": len(refused),
            "refused": len(refused) - len(open_ways),
            "failed check": dict(Counter(str(check) for check in refused.values())),
            **({"BELIEVED": ", ".join(open_ways)} if open_ways else {}),
        },
    )


def _files(folder: Path) -> dict[str, str | None]:
    """Files that are cut, empty, foreign, or another ledger's copy."""
    refused: dict[str, str | None] = {}
    path = _made(folder / "sqlite" / "cut")
    whole = path.read_bytes()
    for size in range(0, len(whole), 2_048):
        path.write_bytes(whole[:size])
        refused[f"cut at {size}"] = _refusal(str(path))
    for name, content in {"text": b"epsilon,delta\n1,0\n", "zeros": b"\0" * 4_096}.items():
        path.write_bytes(content)
        refused[name] = _refusal(str(path))
        assert path.read_bytes() == content
    path.unlink()
    refused["lost"] = _refusal(str(path), create=True)
    return refused


def _made(address: str | Path) -> Path:
    """A ledger with a cap, three spends and an outcome: entries 0 to 6."""
    with Ledger.open(address, dataset="adult", cap=PureDP(1)) as ledger:
        for n in range(3):
            ledger.spend(PureDP("0.1"), label=f"step {n}", protect=OneRow(), request=f"r{n}")
        ledger.journal("r0", b"outcome")
    return Path(address)


def _told(address: str) -> Any:
    """Everything that a ledger says."""
    with Ledger.open(address, dataset="adult", create=False) as ledger:
        kept = [ledger.outcome(f"r{n}") for n in range(3)]
        return ledger.verify().head, ledger.spent, ledger.cap, ledger.entries(), kept


def _refusal(address: str, *, create: bool = True) -> str | None:
    """The check that failed; None if the ledger opened and verified."""
    try:
        with Ledger.open(address, dataset="adult", create=create) as ledger:
            ledger.verify()
    except SfumatoError as error:
        return _named(error)
    return None


def _named(error: SfumatoError) -> str:
    found = _CHECK.search(str(error))
    if isinstance(error, LedgerCorruptError) and found:
        return found[1]
    return "there was a ledger" if "there was a ledger" in str(error) else type(error).__name__


def _edit(store: Store, address: str, sql: str) -> None:
    if store.server is not None:
        past = "" if sql.startswith("DROP") else _PAST_TRIGGERS
        store.server.run(past + sql, database=_database(address))
        return
    connection = sqlite3.connect(address)
    for trigger in _TRIGGERS:
        connection.execute(f"DROP TRIGGER IF EXISTS {trigger}")
    connection.execute(sql)
    connection.commit()
    connection.close()


def _backup(store: Store, address: str, folder: Path) -> Path:
    kept = folder / "backup"
    if store.server is None:
        shutil.copy(address, kept)
    else:
        _client(store, "pg_dump", "--format=custom", f"--file={kept}", _database(address))
    return kept


def _restore(store: Store, address: str, kept: Path) -> None:
    if store.server is None:
        shutil.copy(kept, address)
        return
    store.server.run("DROP SCHEMA sfumato_ledger CASCADE", database=_database(address))
    _client(store, "pg_restore", f"--dbname={_database(address)}", str(kept))


def _client(store: Store, program: str, *words: str) -> None:
    assert store.server is not None
    where = {"PGHOST": str(store.server.folder), "PGPORT": str(store.server.port)}
    login = {"PGUSER": OWNER, "PGPASSWORD": PASSWORD}
    command = [str(store.server.programs / program), *words]
    done = subprocess.run(command, env=os.environ | where | login, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def _database(address: str) -> str:
    return address.rpartition("/")[2]


def _in_memory(folder: Path) -> Path:
    """Damage needs no disk, and memory is a hundred times faster."""
    fast = Path("/dev/shm")
    return fast / f"sfumato-{folder.name}" if os.access(fast, os.W_OK) else folder / "here"


@contextmanager
def _memory_folder(folder: Path) -> Iterator[Path]:
    here = _in_memory(folder)
    here.mkdir(parents=True)
    try:
        yield here
    finally:
        shutil.rmtree(here, ignore_errors=True)


def _put(path: Path, content: bytes, anchors: dict[Path, bytes]) -> None:
    for leftover in path.parent.glob(f"{path.name}-*"):
        leftover.unlink()
    path.write_bytes(content)
    for file, kept in anchors.items():
        file.write_bytes(kept)


def _first(strange: list[str]) -> dict[str, str]:
    return {"first": strange[0]} if strange else {}
