"""The seal of a release: ``survey.json`` holds what people were shown, and the hash of every file.

All of it is signed with the key of the survey, which stands in every invitation. So whoever has a
release, from wherever, can see that no file was changed since the survey made it. Whoever runs the
server has the key: a seal does not show that the release was computed rightly.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from sfumato.errors import InputError, StorageError
from sfumato.survey.protocol.announcements import Announcement
from sfumato.survey.protocol.envelopes import Envelope, Signer
from sfumato.survey.protocol.messages import VERSION

SEAL: Final = "survey.json"
_KIND: Final = "release"
_LARGEST_SEAL: Final = 64 * 2**20
"""Bytes of ``survey.json`` that are read, at most; chosen by judgment."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Sealed:
    """A release whose files are those that the survey signed."""

    announcement: Announcement
    key: str
    """The public key that signed it."""
    files: Mapping[str, str]
    """SHA-256 of every other file, by name."""


def seal(
    files: Mapping[str, bytes], survey: Envelope, questions: list[Envelope], *, signer: Signer
) -> bytes:
    """The content of ``survey.json``.

    Args:
        files: All others of the release, by name.
        survey: The announcement, as people were shown it.
        questions: Of the rounds, as devices got them.
        signer: Of the survey.
    """
    manifest = {
        "sfumato": VERSION,
        "kind": _KIND,
        "announcement": survey.digest,
        "files": {name: _digest(content) for name, content in sorted(files.items())},
    }
    content = {
        "survey": survey.to_dict(),
        "key": signer.key,
        "plans": [question.to_dict() for question in questions],
        "release": signer.sign(manifest).to_dict(),
    }
    return json.dumps(content, indent=1).encode()


def check_seal(files: Mapping[str, bytes], *, key: str | None = None) -> Sealed:
    """What the seal of a release says, if all of it is signed and every file is as it was.

    Args:
        files: All of the release, by name.
        key: The public key that the survey is known by; None to take the one in the release, which
            shows only that the files belong together.

    Raises:
        InputError: If somebody else signed it.
        StorageError: If it holds no seal, or a file was changed, is missing or was added.
    """
    content = _content(files)
    known = key if key is not None else content["key"]
    signed = Envelope.from_dict(content["survey"])
    announced = Announcement.from_dict(_opened(signed, known))
    for question in content["plans"]:
        _opened(Envelope.from_dict(question), known)
    manifest = _opened(Envelope.from_dict(content["release"]), known)
    if not isinstance(manifest, dict) or manifest.get("kind") != _KIND:
        raise StorageError("the seal signs no release.")
    if manifest.get("announcement") != signed.digest:
        raise StorageError("the seal is of another survey.")
    digests = manifest.get("files")
    if not isinstance(digests, dict):
        raise StorageError("the seal names no files.")
    _compare(digests, files)
    return Sealed(announcement=announced, key=str(known), files=digests)


def read_folder(folder: Path) -> dict[str, bytes]:
    """The files of a release, by name."""
    try:
        return {each.name: each.read_bytes() for each in sorted(folder.iterdir())}
    except OSError as error:
        raise StorageError(f"can't read {error.filename}: {error.strerror}.") from None


def _compare(digests: Mapping[str, Any], files: Mapping[str, bytes]) -> None:
    for name, digest in digests.items():
        if name not in files:
            raise StorageError(f"{name!r:.60} was signed and is missing.")
        if _digest(files[name]) != digest:
            raise StorageError(f"{name!r:.60} is not the file that was signed: it was changed.")
    if added := sorted(set(files) - set(digests) - {SEAL}):
        raise StorageError(f"{added[0]!r:.60} was not signed: it was added.")


def _opened(signed: Envelope, key: str) -> Any:
    try:
        return signed.opened(key)
    except InputError:
        raise InputError(
            "the signature is not of the key that this survey is known by: somebody else made "
            "this, or survey.json was changed."
        ) from None


def _content(files: Mapping[str, bytes]) -> dict[str, Any]:
    """The content of the seal, of the right form."""
    content = files.get(SEAL, b"")
    try:
        fields = json.loads(content) if len(content) <= _LARGEST_SEAL else None
    except (ValueError, RecursionError):
        fields = None
    if (
        not isinstance(fields, dict)
        or set(fields) != {"survey", "key", "plans", "release"}
        or not isinstance(fields["key"], str)
        or not isinstance(fields["plans"], list)
    ):
        raise StorageError(f"there is no {SEAL} as a survey seals a release with.")
    return fields


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
