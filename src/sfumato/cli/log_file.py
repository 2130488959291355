"""``--log FILE``: what a command did and when, in plain lines; no value of a table, no secret."""

import logging
import os
import re
import sys
import time
from pathlib import Path
from typing import Final

from sfumato.errors import InputError, StorageError

LEVELS: Final = ("debug", "info", "warning", "error")

_LINE: Final = "%(asctime)s.%(msecs)03dZ %(levelname)s %(name)s %(message)s"
_TIME: Final = "%Y-%m-%dT%H:%M:%S"
_HEAD: Final = 64
_BEGINS: Final = re.compile(rb"\Z|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z [A-Z]+ sfumato\b")


endings = logging.getLogger("sfumato.endings")
"""How a command ended: in the log alone, since standard error has the message already."""
endings.addHandler(logging.NullHandler())
endings.propagate = False


class OneLine(logging.Formatter):
    """A record as one line: whatever breaks lines or moves the cursor is written as ``?``."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        said = super().format(record)
        return "".join(sign if sign.isprintable() else "?" for sign in said)


def _is_log(file: Path) -> bool:
    """Whether a file is not there, empty, or begins as a log does: others are not appended to."""
    try:
        if not file.exists():
            return True
        if not file.is_file():
            return False
        with file.open("rb") as opened:
            return _BEGINS.match(opened.read(_HEAD)) is not None
    except OSError:
        return True  # said by who opens it


def begin(file: Path | None, level: str) -> None:
    """Append what loggers under ``sfumato`` say to a file that only its owner can read.

    Warnings go to standard error as ever.
    """
    if level not in LEVELS:
        raise InputError(f"--log-level must be one of {', '.join(LEVELS)}, got {level!r:.40}.")
    if file is None:
        return
    if not _is_log(file):
        raise InputError(f"{file} exists and is no log of sfumato. Name another file.")
    try:
        os.close(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600))
        kept = logging.FileHandler(file, encoding="utf-8")
    except OSError as error:
        raise StorageError(f"can't write the log {file}: {error.strerror}.") from None
    lines = OneLine(_LINE, _TIME)
    lines.converter = time.gmtime
    kept.setFormatter(lines)
    seen = logging.StreamHandler(sys.stderr)
    seen.setLevel(logging.WARNING)
    ours = logging.getLogger("sfumato")
    ours.setLevel(level.upper())
    ours.handlers[:] = [kept, seen]
    endings.handlers[:] = [kept]
