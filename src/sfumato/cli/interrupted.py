"""Ctrl-C and SIGTERM: one message and one exit code, also while commands are being imported.

An error or an interruption that comes after a charge carries notes of what was charged
(``jobs.resuming``); they are shown with it, and with the very command that goes on.
"""

import shlex
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

from sfumato.cli.logs import endings

EXIT_CODE = 130


class InterruptionError(Exception):
    """Ctrl-C with its notes: typer would swallow a ``KeyboardInterrupt``, and them with it."""


def stop(stopped: BaseException | None = None) -> NoReturn:
    """Say what an interruption leaves behind, and end."""
    endings.error("interrupted")
    notes = [] if stopped is None else lines_after(stopped)
    unknown = [
        "If anything was charged, it stays in the ledger (`sfumato ledger show`), and no half "
        "release was left behind."
    ]
    sys.stderr.write("sfumato: interrupted. " + "\n".join(notes or unknown) + "\n")
    sys.exit(EXIT_CODE)


@contextmanager
def watched() -> Iterator[None]:
    """Let an interruption keep its notes on its way out."""
    try:
        yield
    except KeyboardInterrupt as error:
        stopped = InterruptionError()
        for note in getattr(error, "__notes__", []):
            stopped.add_note(note)
        raise stopped from None


@contextmanager
def termination_too() -> Iterator[None]:
    """SIGTERM ends a command as Ctrl-C does: nothing half-written stays."""
    before = signal.signal(signal.SIGTERM, _interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def lines_after(error: BaseException) -> list[str]:
    """What an error or an interruption says after its message, with the command that goes on."""
    notes = list(getattr(error, "__notes__", []))
    if not notes:
        return []
    from sfumato.jobs.resuming import GO_ON

    return [*notes, f"  {resuming_command(sys.argv[1:])}"] if GO_ON in notes else notes


def resuming_command(arguments: Sequence[str]) -> str:
    """The same command line, with ``--resume``.

    >>> resuming_command(["publish", "my table.csv", "--no-resume"])
    "sfumato publish 'my table.csv' --resume"
    """
    kept = [one for one in arguments if one not in ("--resume", "--no-resume")]
    return shlex.join(["sfumato", *kept, "--resume"])


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt
