"""Standard output and standard error where they are closed, full, or nobody reads them any more.

What a command made, or paid for, is never worth less because it could not be said.
"""

import os
import sys
from contextlib import suppress
from pathlib import Path
from traceback import walk_tb
from typing import Final

UNREAD: Final = 128 + 13
"""The exit code of a program whose output nobody reads any more: that of the signal SIGPIPE."""

_NAMES: Final = (("stdin", "r"), ("stdout", "w"), ("stderr", "w"))


def open_closed() -> None:
    """Give streams that were closed (``2>&-``) a place where nothing is kept.

    Otherwise the next file that is opened would get their number, and with it what is meant for
    them.
    """
    for name, mode in _NAMES:
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115


def complain(text: str) -> None:
    """Write to standard error, if that can be done."""
    Stderr().write(text)


def named(error: OSError) -> str | None:
    """The stream that an error came from, if ``typer.echo`` was writing to one."""
    for frame, _ in walk_tb(error.__traceback__):
        if frame.f_code.co_name == "echo":
            return f"standard {'error' if frame.f_locals.get('err') else 'output'}"
    return None


def settle() -> None:
    """Throw away what could not be written: the interpreter would end with a code of its own."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            with suppress(OSError, ValueError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


class Stderr:
    """Standard error as a file that never fails: progress is not worth a run that was paid."""

    def __init__(self) -> None:
        self._stream = sys.stderr  # as it is now: bars put themselves in its place
        self.encoding = getattr(self._stream, "encoding", None) or "utf-8"

    def write(self, text: str) -> int:
        """Write at once, or not at all."""
        with suppress(OSError, ValueError, AttributeError):  # full, unread, closed, none at all
            self._stream.write(text)
            self._stream.flush()
        return len(text)

    def flush(self) -> None:
        """Nothing is kept back."""

    def isatty(self) -> bool:
        """Whether somebody watches."""
        try:
            return self._stream.isatty()
        except ValueError:  # closed meanwhile
            return False

    def fileno(self) -> int:
        """The number of the stream."""
        return self._stream.fileno()
