"""Ctrl-C and SIGTERM: one message and one exit code, also while commands are being imported.

An error or an interruption that comes after a charge carries notes of what was charged
(``commands.resume``); they are shown with it, and with the very command that goes on.
"""

import shlex
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Final, NoReturn

from sfumato.cli import streams
from sfumato.cli.log_file import endings

EXIT_CODE = 130

_WITH_VALUE: Final = ("--log", "--log-level")
"""Options that stand before a command's name, with a value after them."""
_RESUMABLE: Final = ("publish", "dp2pub", "run")
"""Commands with --resume: the demo pays and keeps a journal too, but is made anew."""


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
    streams.complain("sfumato: interrupted. " + "\n".join(notes or unknown) + "\n")
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
    from sfumato.commands.resume import GO_ON

    if GO_ON not in notes:
        return notes
    given = sys.argv[1:]
    if given[_place_of_name(given)] not in _RESUMABLE:
        return [note for note in notes if note != GO_ON]
    return [*notes, f"  {resuming_command(given)}"]


def resuming_command(arguments: Sequence[str]) -> str:
    """The same command line, with ``--resume`` after the command's name: no ``--`` is before it.

    >>> resuming_command(["publish", "--no-resume", "--", "my table.csv"])
    "sfumato publish --resume -- 'my table.csv'"
    """
    end = arguments.index("--") if "--" in arguments else len(arguments)
    options = [one for one in arguments[:end] if one not in ("--resume", "--no-resume")]
    name = _place_of_name(options)
    before, after = options[: name + 1], options[name + 1 :]
    return shlex.join(["sfumato", *before, "--resume", *after, *arguments[end:]])


def _place_of_name(arguments: Sequence[str]) -> int:
    """Where the name of the command stands: after options of the program and their values."""
    place = 0
    while place < len(arguments) and arguments[place].startswith("-"):
        place += 2 if arguments[place] in _WITH_VALUE else 1
    return place


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt
