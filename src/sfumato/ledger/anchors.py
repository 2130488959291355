"""The state directory: the default ledger, and the anchors of every ledger.

An anchor is the head of a ledger, kept outside its file, so that a truncated file or an older
backup is noticed. It only moves forward. It is replaced in one step but not forced to the disk:
after a power cut it may be one entry late, which weakens the check and never raises a false alarm.
It also keeps where the ledger was, so that a lost file is not silently replaced by a new budget.
"""

import json
import logging
import os
from pathlib import Path

from sfumato.errors import StorageError
from sfumato.ledger.entries import Head, corrupt

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
    target = _file(directory, ledger_id)
    fresh = target.with_suffix(f".{os.getpid()}.tmp")
    content: dict[str, str | int] = {"ledger": ledger_id, "seq": head.seq, "hash": head.hash}
    if ledger is not None:
        content["path"] = _kept_place(ledger)
    try:
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        fresh.write_text(json.dumps(content))
        fresh.replace(target)
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
