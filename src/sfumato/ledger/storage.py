"""Finding a ledger, or making it where there was none, in a file or in a database; its anchor.

An anchor is the head of a ledger, kept outside its file, in the state directory of this user, so
that a truncated file or an older backup is noticed. It only moves forward. It is replaced in one
step but not forced to the disk: after a power cut it may be one entry late, which weakens the check
and never raises a false alarm. It also keeps where the ledger was, so that a lost file is not
silently replaced by a new budget.
"""

import json
import logging
import os
import re
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final, Protocol

from sfumato.durable import write_file
from sfumato.errors import InputError, StorageError
from sfumato.ledger import rules, sqlite_store
from sfumato.ledger.entries import Head, Row, corrupt, genesis
from sfumato.randomness import secure_rng

_ADDRESS: Final = re.compile(r"postgres(?:ql)?:(/+)(.*)", re.IGNORECASE | re.DOTALL)


class Transaction(Protocol):
    """One consistent view of the ledger; in a writing one nobody else writes meanwhile."""

    def head(self) -> Row | None:
        """The last row."""

    def at(self, seq: int) -> Row | None:
        """The row with this number."""

    def latest(self, dataset: str) -> Row | None:
        """The last row of a dataset."""

    def with_request(self, dataset: str, request: str) -> Row | None:
        """The row that paid for a request."""

    def rows(self) -> Iterator[Row]:
        """All rows in order."""

    def append(self, row: Row) -> None:
        """Add the next row."""

    def outcome(self, dataset: str, request: str) -> bytes | None:
        """What was kept for a request."""

    def outcomes(self) -> Iterator[tuple[str, str, bytes]]:
        """All that was kept: dataset, request and content."""

    def keep_outcome(self, dataset: str, request: str, payload: bytes) -> None:
        """Keep an outcome; there is none yet."""

    def check_structure(self) -> None:
        """Refuse a store whose own structure (pages, indexes) is damaged."""


class Storage(Protocol):
    """A ledger's store: one file, later also a database server."""

    def reading(self) -> AbstractContextManager[Transaction]:
        """A view for reading."""

    def writing(self) -> AbstractContextManager[Transaction]:
        """A view for writing, alone; durable once left, undone if left by an error."""

    def close(self) -> None:
        """Let go of the store; it opens itself again when used."""


def opened(path: str | Path | None, *, create: bool) -> tuple[Storage, Path | str]:
    """A ledger's store, and where it is: a file, or the place of a database.

    Args:
        path: A file, None for the default one, or postgresql://user@host/database.
        create: Whether a missing ledger is made; one that was lost is not.
    """
    if path is not None and is_address(str(path)):
        return _database(str(path), create=create)
    where = Path(path) if path is not None else default_path()
    if path is None and create:
        make_directory(where.parent)
    if not where.exists():
        if not create:
            raise _missing(where)
        refuse_lost(anchors_directory(), where)
        sqlite_store.create(where, genesis(secure_rng().token(), rules.today()))
    return sqlite_store.SqliteStorage(where), where


def _database(address: str, *, create: bool) -> tuple[Storage, str]:
    from sfumato.ledger.postgres_store import PostgresStorage

    storage = PostgresStorage(whole_address(address))
    with storage.reading() as view:
        there = view.exists()
    if not there and not create:
        raise _missing(storage.place)
    if not there:
        with storage.writing() as writing:
            if not writing.exists():  # somebody else may just have made it
                refuse_lost(anchors_directory(), storage.place)
                writing.create(genesis(secure_rng().token(), rules.today()))
    return storage, storage.place


def is_address(text: str) -> bool:
    """Whether a ledger is in a database rather than in a file."""
    return _ADDRESS.fullmatch(text) is not None


def whole_address(text: str) -> str:
    """An address as the driver takes it, also if a path left one slash of two or three.

    >>> whole_address("postgresql:/ada@db.example/budgets"), whole_address("postgresql:/budgets")
    ('postgresql://ada@db.example/budgets', 'postgresql:///budgets')
    """
    found = _ADDRESS.fullmatch(text)
    if found is None:
        raise InputError("this is no address of a database.")
    slashes, rest = found.groups()
    if len(slashes) == 1:
        has_host = any(sign in rest.partition("?")[0] for sign in "/@:")
        slashes = "//" if has_host else "///"
    return f"postgresql:{slashes}{rest}"


def _missing(where: Path | str) -> StorageError:
    return StorageError(f"there is no ledger at {where}")


_log = logging.getLogger(__name__)

_MOST = 2**63


def state_directory() -> Path:
    """``$SFUMATO_HOME``, else ``$XDG_STATE_HOME/sfumato``, else ``~/.local/state/sfumato``."""
    if home := os.environ.get("SFUMATO_HOME"):
        return Path(home)
    state = os.environ.get("XDG_STATE_HOME")
    return (Path(state) if state else Path.home() / ".local" / "state") / "sfumato"


def default_path() -> Path:
    """Where the ledger is if nobody says otherwise."""
    return state_directory() / "ledger.sqlite"


def anchors_directory() -> Path:
    """Where the heads of all ledgers of this user are kept."""
    return state_directory() / "anchors"


def read_anchor(directory: Path, ledger_id: str) -> Head | None:
    """The kept head; None if there is none (or an empty file: a power cut)."""
    try:
        text = _file(directory, ledger_id).read_text(errors="replace")
    except FileNotFoundError:
        return None
    except OSError as error:
        _log.warning("The ledger's anchor can't be read (%s): no check for rollback.", error)
        return None
    if not text.strip("\0 \n"):
        return None
    try:
        match json.loads(text):
            case {"seq": int(seq), "hash": str(kept)} if 0 <= seq < _MOST:
                return Head(seq, kept)
            case _:
                raise ValueError(text)
    except (ValueError, RecursionError):
        raise corrupt("anchor", f"{_file(directory, ledger_id)} can't be read") from None


def write_anchor(
    directory: Path, ledger_id: str, head: Head, ledger: Path | str | None = None
) -> None:
    """Move the anchor of a ledger forward to a head. Callers hold its write lock."""
    kept = read_anchor(directory, ledger_id)
    if kept and kept.seq >= head.seq:
        return
    content: dict[str, str | int] = {"ledger": ledger_id, "seq": head.seq, "hash": head.hash}
    if ledger is not None:
        content["path"] = _kept_place(ledger)
    try:
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_file(_file(directory, ledger_id), json.dumps(content).encode(), sync=False)
    except OSError as error:  # the spend is durable; failing it now would only hide that
        _log.warning("The ledger's anchor can't be written (%s): no check for rollback.", error)


def make_directory(directory: Path) -> None:
    """Make the state directory, for this user alone."""
    try:
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise StorageError(
            f"the directory {directory} can't be made: {error.strerror}. Name a ledger file, or "
            "set SFUMATO_HOME"
        ) from error


def refuse_lost(directory: Path, ledger: Path | str) -> None:
    """Refuse to begin a ledger where an anchor says that there was one.

    Args:
        directory: Of the anchors.
        ledger: A file, or the place of a database.
    """
    anchor = _anchor_naming(directory, ledger)
    there = isinstance(ledger, Path) and ledger.exists()  # somebody else may just have made it
    if anchor is None or there:
        return
    what = "file" if isinstance(ledger, Path) else "database"
    raise StorageError(
        f"there was a ledger at {ledger}, and what it spent still counts. Put the {what} back; "
        f"or, to start anew with all earlier releases uncounted, remove its anchor {anchor}"
    )


def _kept_place(ledger: Path | str) -> str:
    """How an anchor names a ledger; Path.resolve fails on links in a circle."""
    return os.path.realpath(ledger) if isinstance(ledger, Path) else ledger


def _anchor_naming(directory: Path, ledger: Path | str) -> Path | None:
    wanted = _kept_place(ledger)
    for anchor in sorted(directory.glob("*.json")):
        try:
            kept = json.loads(anchor.read_text())
        except (OSError, ValueError):
            continue  # read_anchor complains about it to the ledger it belongs to
        if isinstance(kept, dict) and kept.get("path") == wanted:
            return anchor
    return None


def _file(directory: Path, ledger_id: str) -> Path:
    return directory / f"{ledger_id}.json"
