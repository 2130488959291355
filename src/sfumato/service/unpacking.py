"""A release that comes from a server, unpacked: only files that belong to one, and only if signed.

The archive is a stranger's: names, sizes and contents are checked before a folder is made. Whoever
runs the server made the release; the signature shows that it is of the survey that was pinned.
"""

import io
import json
import zipfile
from pathlib import Path
from typing import Any, Final

from sfumato.collection.announcements import Announcement
from sfumato.collection.envelopes import Envelope
from sfumato.errors import StorageError
from sfumato.jobs import internal_folder, publishable
from sfumato.release import TableRelease, check_free, new_folder

LARGEST: Final = 4 * 2**30
"""Bytes of all files together, unpacked."""
FILES: Final = frozenset(
    {
        *("data.parquet", "data.csv", "marginals.parquet", "marginals.csv", "model.npz"),
        *("release.json", "report.html", "survey.json"),
    }
)
_NEEDED: Final = frozenset({"data.parquet", "model.npz", "release.json", "survey.json"})


def unpack(archive: bytes, *, task: str, key: str, out: Path, force: bool = False) -> Path:
    """Write a release into a folder, and return it: one beside ``out`` if it may not be published.

    Args:
        archive: What the server sent.
        task: The survey that it must be of.
        key: The public key that the survey is known by.
        out: The folder that may be published.
        force: Replace an older release.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(archive)) as packed:
            _check_names(packed)
            found = {name: packed.read(name) for name in packed.namelist()}
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, OSError):
        raise _no_release("it is not a whole zip file") from None
    private = _check_signed(found, task, key)
    folder = publishable(out) if private else internal_folder(publishable(out))
    check_free(folder, force=force)
    with new_folder(folder, force=force) as inside:
        for name, content in found.items():
            (inside / name).write_bytes(content)
        TableRelease.load(inside)  # it is whole, or the folder is not made
    return folder


def _check_names(packed: zipfile.ZipFile) -> None:
    entries = packed.infolist()
    names = [entry.filename for entry in entries]
    if len(set(names)) < len(names) or not _NEEDED <= set(names) <= FILES:
        raise _no_release("it holds other files than a release")
    if sum(entry.file_size for entry in entries) > LARGEST:
        raise _no_release(f"unpacked it is larger than {LARGEST // 2**30} GiB")


def _check_signed(found: dict[str, bytes], task: str, key: str) -> bool:
    """Whether the release may be published, if it is of the survey that the key signs for."""
    told, release = _object(found, "survey.json"), _object(found, "release.json")
    signed = Envelope.from_dict(told.get("survey"))
    announced = Announcement.from_dict(signed.opened(key))
    plans = told.get("plans")
    for plan in plans if isinstance(plans, list) else ():
        Envelope.from_dict(plan).opened(key)
    method = release.get("method")
    named = method.get("announcement") if isinstance(method, dict) else None
    if announced.task != task or named != signed.digest:
        raise _no_release("it is of another survey")
    return release.get("private") is True


def _object(found: dict[str, bytes], name: str) -> dict[str, Any]:
    try:
        value = json.loads(found[name])
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise _no_release(f"{name} can't be read")
    return value


def _no_release(why: str) -> StorageError:
    return StorageError(f"what the server sent is no release: {why}. Nothing was written.")
