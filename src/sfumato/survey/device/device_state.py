"""What a device keeps between its starts: what was agreed, what it drew, what it sent.

The file is replaced in one step, forced to the disk, and readable by its owner alone. It does not
hold the record. One device at a time uses it: two that draw at once would answer twice.
"""

import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from sfumato.durable import write_file
from sfumato.errors import InputError, StorageError
from sfumato.survey.protocol.envelopes import Envelope
from sfumato.survey.protocol.messages import VERSION

if sys.platform == "win32":
    import msvcrt

    def _hold(descriptor: int) -> None:
        msvcrt.locking(descriptor, msvcrt.LK_LOCK, 1)
else:
    import fcntl

    def _hold(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX)


_FIELDS: Final = {"sfumato", "kind", "task", "key", "survey", "client", "uploads", "receipts"}
_ROUNDS: Final = {"1", "2"}


@dataclass(frozen=True, kw_only=True)
class DeviceState:
    """The state of one device in one survey."""

    task: str
    key: str
    """The public key that the survey is known by."""
    survey: Envelope
    """The announcement, as it was shown first."""
    client: Mapping[str, Any] | None = None
    """``Client.to_dict()``; None before the first question was seen."""
    uploads: Mapping[int, str] = field(default_factory=dict)
    """By round, the very text that is sent."""
    receipts: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)
    """By round, what the server said of it."""

    def to_dict(self) -> dict[str, Any]:
        """The content of the file."""
        return {
            "sfumato": VERSION,
            "kind": "device",
            "task": self.task,
            "key": self.key,
            "survey": self.survey.to_dict(),
            "client": self.client,
            "uploads": {str(number): text for number, text in self.uploads.items()},
            "receipts": {str(number): dict(receipt) for number, receipt in self.receipts.items()},
        }

    @staticmethod
    def from_dict(content: Any) -> "DeviceState":
        """The state in a file; anything else is refused."""
        if not isinstance(content, dict) or set(content) != _FIELDS:
            raise InputError("no state of a device")
        uploads, receipts = content["uploads"], content["receipts"]
        fits = content["sfumato"] == VERSION and content["kind"] == "device"
        if not fits or not _by_round(uploads, str) or not _by_round(receipts, dict):
            raise InputError("no state of a device")
        return DeviceState(
            task=str(content["task"]),
            key=str(content["key"]),
            survey=Envelope.from_dict(content["survey"]),
            client=content["client"],
            uploads={int(number): text for number, text in uploads.items()},
            receipts={int(number): receipt for number, receipt in receipts.items()},
        )


@dataclass(frozen=True)
class StateFile:
    """The file of one device in one survey; a link is followed, and stays one."""

    path: Path

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", Path(os.path.realpath(self.path)))

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Nobody else uses the file meanwhile; the lock ends with the process, however it ends."""
        lock = self.path.with_name(f".{self.path.name}.lock")
        with self._plain_errors():
            descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            with self._plain_errors():
                _hold(descriptor)
            yield
        finally:
            os.close(descriptor)

    def read(self) -> DeviceState | None:
        """What was kept; None if there is no file yet. One that can't be trusted is refused."""
        with self._plain_errors():
            try:
                text = self.path.read_bytes()
            except FileNotFoundError:
                return None
        try:
            return DeviceState.from_dict(json.loads(text))
        except (ValueError, RecursionError):
            raise StorageError(
                f"{self.path} is not the whole state of a device. Put back a copy; without it the "
                "device would answer once more, at the cost of epsilon again."
            ) from None

    def write(self, state: DeviceState) -> None:
        """Keep a state: on the disk when this returns, and never half of it."""
        with self._plain_errors():
            write_file(self.path, json.dumps(state.to_dict(), indent=1).encode(), mode=0o600)

    @contextmanager
    def _plain_errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise StorageError(
                f"can't keep the device's state in {self.path}: {error.strerror or error}. Name a "
                "file in a folder that can be written."
            ) from None


def _by_round(rounds: Any, kind: type) -> bool:
    return (
        isinstance(rounds, dict)
        and set(rounds) <= _ROUNDS
        and all(isinstance(each, kind) for each in rounds.values())
    )
