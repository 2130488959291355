"""The release of a survey, fetched or received: only files that belong to one, and only if signed.

The archive is a stranger's: names, sizes and contents are checked before a folder is made. Whoever
runs the server made the release; the signature shows that it is of the survey that was pinned.
"""

import io
import json
import zipfile
from pathlib import Path
from typing import Final

from sfumato.commands.internal_folder import internal_folder, publishable
from sfumato.errors import StorageError
from sfumato.release import TableRelease, check_free, new_folder
from sfumato.survey.protocol.seal import SEAL, Sealed, check_seal, read_folder

LARGEST: Final = 4 * 2**30
"""Bytes of all files together, unpacked."""
FILES: Final = frozenset(
    {
        *("data.parquet", "data.csv", "marginals.parquet", "marginals.csv", "model.npz"),
        *("release.json", "report.html", SEAL),
    }
)
_NEEDED: Final = frozenset({"data.parquet", "model.npz", "release.json", SEAL})


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
        files = _unzipped(archive)
        if check_seal(files, key=key).announcement.task != task:
            raise StorageError("it is of another survey.")
        private = _is_private(files["release.json"])
    except StorageError as error:
        raise StorageError(f"what the server sent is no release: {error}") from None
    folder = publishable(out) if private else internal_folder(publishable(out))
    check_free(folder, force=force)
    with new_folder(folder, force=force) as inside:
        for name, content in files.items():
            (inside / name).write_bytes(content)
        TableRelease.load(inside)  # it is whole, or the folder is not made
    return folder


def verify(path: Path, *, key: str | None = None) -> Sealed:
    """The seal of a release in a folder or a zip file, if every file is as the survey signed it.

    Args:
        path: The folder, or what the server packed.
        key: The public key that the survey is known by; None to take the release's own.
    """
    try:
        if path.is_dir():
            return check_seal(read_folder(path), key=key)
        with path.open("rb") as file:
            return check_seal(_unzipped(file.read(LARGEST)), key=key)
    except OSError as error:
        raise StorageError(f"can't read {path}: {error.strerror}.") from None
    except StorageError as error:
        raise StorageError(f"{path}: {error} Do not rely on it.") from None


def _unzipped(archive: bytes) -> dict[str, bytes]:
    try:
        with zipfile.ZipFile(io.BytesIO(archive)) as packed:
            _check_names(packed)
            return {name: packed.read(name) for name in packed.namelist()}
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, OSError):
        raise StorageError("it is not a whole zip file.") from None


def _check_names(packed: zipfile.ZipFile) -> None:
    entries = packed.infolist()
    names = [entry.filename for entry in entries]
    if len(set(names)) < len(names) or not _NEEDED <= set(names) <= FILES:
        raise StorageError("it holds other files than a release.")
    if sum(entry.file_size for entry in entries) > LARGEST:
        raise StorageError(f"unpacked it is larger than {LARGEST // 2**30} GiB.")


def _is_private(text: bytes) -> bool:
    """Whether the release may be published; what does not say so may not."""
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        raise StorageError("release.json can't be read.") from None
    return isinstance(content, dict) and content.get("private") is True
