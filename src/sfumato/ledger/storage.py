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
from pathlib import Path
from typing import Final

from sfumato.durable import write_file
from sfumato.errors import InputError, StorageError
from sfumato.ledger import entries, stores
from sfumato.ledger.entries import Head, corrupt, genesis
from sfumato.randomness import secure_rng

_ADDRESS: Final = re.compile(r"postgres(?:ql)?:(/+)(.*)", re.IGNORECASE | re.DOTALL)


def opened(path: str | Path | None, *, create: bool) -> tuple[stores.Store, Path | str]:
    """A ledger's store, and where it is: a file, or the address of a database.

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
        stores.create(where, genesis(secure_rng().token(), entries.today()))
    return stores.SqliteStore(where), where


def _database(address: str, *, create: bool) -> tuple[stores.Store, str]:
    store = stores.PostgresStore(whole_address(address))
    with store.reading() as view:
        exists = view.exists()
    if not exists and not create:
        raise _missing(store.location)
    if not exists:
        with store.writing() as writing:
            if not writing.exists():  # somebody else may just have made it
                refuse_lost(anchors_directory(), store.location)
                writing.create(genesis(secure_rng().token(), entries.today()))
    return store, store.location


def is_address(text: str) -> bool:
    """Whether a ledger is in a database rather than in a file."""
    return _ADDRESS.fullmatch(text) is not None


def whole_address(text: str) -> str:
    """An address as the driver takes it, also if a path left one slash of two or three.

    >>> whole_address("postgresql:/ada@db.example/budgets"), whole_address("postgresql:/budgets")
    ('postgresql://ada@db.example/budgets', 'postgresql:///budgets')
    """
    match = _ADDRESS.fullmatch(text)
    if match is None:
        raise InputError("this is no address of a database.")
    slashes, rest = match.groups()
    if len(slashes) == 1:
        has_host = any(sign in rest.partition("?")[0] for sign in "/@:")
        slashes = "//" if has_host else "///"
    return f"postgresql:{slashes}{rest}"


def _missing(where: Path | str) -> StorageError:
    return StorageError(f"there is no ledger at {where}")


_log = logging.getLogger(__name__)

_MAX_ENTRIES: Final = 2**63
"""SQLite numbers rows below it; an anchor beyond can't be of a ledger."""


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
    """Where the heads of all ledgers of this user are stored."""
    return state_directory() / "anchors"


def read_anchor(directory: Path, ledger_id: str) -> Head | None:
    """The stored head; None if there is none (or an empty file: a power cut)."""
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
            case {"seq": int(seq), "hash": str(digest)} if 0 <= seq < _MAX_ENTRIES:
                return Head(seq, digest)
            case _:
                raise ValueError(text)
    except (ValueError, RecursionError):
        raise corrupt("anchor", f"{_file(directory, ledger_id)} can't be read") from None


def write_anchor(
    directory: Path, ledger_id: str, head: Head, ledger: Path | str | None = None
) -> None:
    """Move the anchor of a ledger forward to a head. Callers hold its write lock."""
    anchor = read_anchor(directory, ledger_id)
    if anchor and anchor.seq >= head.seq:
        return
    content: dict[str, str | int] = {"ledger": ledger_id, "seq": head.seq, "hash": head.hash}
    if ledger is not None:
        content["path"] = _path_in_anchor(ledger)
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
        ledger: A file, or the address of a database.
    """
    anchor = _anchor_naming(directory, ledger)
    exists = isinstance(ledger, Path) and ledger.exists()  # somebody else may just have made it
    if anchor is None or exists:
        return
    what = "file" if isinstance(ledger, Path) else "database"
    raise StorageError(
        f"there was a ledger at {ledger}, and what it spent still counts. Put the {what} back; "
        f"or, to start anew with all earlier releases uncounted, remove its anchor {anchor}"
    )


def _path_in_anchor(ledger: Path | str) -> str:
    """How an anchor names a ledger; Path.resolve fails on links in a circle."""
    return os.path.realpath(ledger) if isinstance(ledger, Path) else ledger


def _anchor_naming(directory: Path, ledger: Path | str) -> Path | None:
    path = _path_in_anchor(ledger)
    for anchor in sorted(directory.glob("*.json")):
        try:
            content = json.loads(anchor.read_text())
        except (OSError, ValueError):
            continue  # read_anchor complains about it to the ledger it belongs to
        if isinstance(content, dict) and content.get("path") == path:
            return anchor
    return None


def _file(directory: Path, ledger_id: str) -> Path:
    return directory / f"{ledger_id}.json"
