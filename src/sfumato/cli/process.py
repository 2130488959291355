"""The process around a command: its standard streams, Ctrl-C and SIGTERM, its log, its progress.

What a command made or paid for is never lost because it could not be printed: streams may be
closed, full, or read by nobody. An interruption is one message and one exit code, also while
commands are being imported. An error or an interruption that comes after a charge carries notes of
what was charged (``commands.publication``), which are shown with it.

Progress is shown on standard error: by bars where a person watches, by few plain lines otherwise.
No escape code is ever written unless standard error is a terminal that can take one, and never
with ``NO_COLOR`` or ``TERM=dumb``.
"""

import logging
import os
import re
import shlex
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from traceback import walk_tb
from types import FrameType
from typing import IO, TYPE_CHECKING, Any, Final, NoReturn, cast

from sfumato.errors import InputError, StorageError

if TYPE_CHECKING:
    from sfumato.commands.request import ProgressCall

INTERRUPTED: Final = 130
"""The exit code after Ctrl-C."""
UNREAD: Final = 128 + 13
"""The exit code of a program whose output nobody reads any more: that of the signal SIGPIPE."""
LEVELS: Final = ("debug", "info", "warning", "error")

_STREAMS: Final = (("stdin", "r"), ("stdout", "w"), ("stderr", "w"))
_WITH_VALUE: Final = ("--log", "--log-level")
"""Options that stand before a command's name, with a value after them."""
_RESUMABLE: Final = ("publish", "dp2pub", "run")
"""Commands with --resume: the demo pays and keeps a journal too, but is made anew."""
_LINE: Final = "%(asctime)s.%(msecs)03dZ %(levelname)s %(name)s %(message)s"
_TIME: Final = "%Y-%m-%dT%H:%M:%S"
_HEAD: Final = 64
"""Bytes of a file that show whether it is a log."""
_BEGINS: Final = re.compile(rb"\Z|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z [A-Z]+ sfumato\b")

endings = logging.getLogger("sfumato.endings")
"""How a command ended: in the log alone, since standard error has the message already."""
endings.addHandler(logging.NullHandler())
endings.propagate = False


# Standard streams


def open_closed_streams() -> None:
    """Give streams that were closed (``2>&-``) a target that stores nothing.

    Otherwise the next file that is opened would get their number, and with it what is meant for
    them.
    """
    for name, mode in _STREAMS:
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115


def complain(text: str) -> None:
    """Write to standard error, if that can be done."""
    Stderr().write(text)


def stream_of(error: OSError) -> str | None:
    """The stream that an error came from, if ``typer.echo`` was writing to one."""
    for frame, _ in walk_tb(error.__traceback__):
        if frame.f_code.co_name == "echo":
            return f"standard {'error' if frame.f_locals.get('err') else 'output'}"
    return None


def settle_streams() -> None:
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
        self._stream = sys.stderr  # as it is now: progress bars replace it
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


# Interruptions


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
    complain("sfumato: interrupted. " + "\n".join(notes or unknown) + "\n")
    sys.exit(INTERRUPTED)


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
    from sfumato.commands.publication import GO_ON

    if GO_ON not in notes:
        return notes
    given = sys.argv[1:]
    if given[_command_index(given)] not in _RESUMABLE:
        return [note for note in notes if note != GO_ON]
    return [*notes, f"  {resuming_command(given)}"]


def resuming_command(arguments: Sequence[str]) -> str:
    """The same command line, with ``--resume`` after the command's name: no ``--`` is before it.

    Passwords are left out.

    >>> resuming_command(["publish", "--save-run", "a.toml", "--no-resume", "--", "my table.csv"])
    "sfumato publish --resume -- 'my table.csv'"
    """
    end = arguments.index("--") if "--" in arguments else len(arguments)
    options = [one for one in arguments[:end] if one not in ("--resume", "--no-resume")]
    if "--save-run" in options:  # it is written
        index = options.index("--save-run")
        del options[index : index + 2]
    options = [one for one in options if not one.startswith("--save-run=")]
    name = _command_index(options)
    before, after = options[: name + 1], options[name + 1 :]
    words = [*before, "--resume", *after, *arguments[end:]]
    return shlex.join(["sfumato", *map(_without_password, words)])


def _without_password(word: str) -> str:
    """A word of a command line; an address with a password only says where it leads."""
    from sfumato.readers.locations import has_password, shown

    name, equals, value = word.partition("=") if word.startswith("--") else ("", "", word)
    return f"{name}{equals}{shown(value)}" if has_password(value) else word


def _command_index(arguments: Sequence[str]) -> int:
    """The index of the command's name: after options of the program and their values."""
    index = 0
    while index < len(arguments) and arguments[index].startswith("-"):
        index += 2 if arguments[index] in _WITH_VALUE else 1
    return index


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt


# The log: ``--log FILE``, in plain lines; no value of a table, no secret


class OneLine(logging.Formatter):
    """A record as one line: whatever breaks lines or moves the cursor is written as ``?``."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        line = super().format(record)
        return "".join(sign if sign.isprintable() else "?" for sign in line)


def begin_log(file: Path | None, level: str) -> None:
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
        to_file = logging.FileHandler(file, encoding="utf-8")
    except OSError as error:
        raise StorageError(f"can't write the log {file}: {error.strerror}.") from None
    lines = OneLine(_LINE, _TIME)
    lines.converter = time.gmtime
    to_file.setFormatter(lines)
    to_console = logging.StreamHandler(sys.stderr)
    to_console.setLevel(logging.WARNING)
    ours = logging.getLogger("sfumato")
    ours.setLevel(level.upper())
    ours.handlers[:] = [to_file, to_console]
    endings.handlers[:] = [to_file]


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
        return True  # reported when it is opened


log = logging.getLogger(__name__)

EVERY_S: Final = 5.0
"""Between two plain lines of one phase."""
_MINUTE_S: Final = 60
"""Seconds of a minute."""
_HOUR_S: Final = 3_600
"""Seconds of an hour."""


@contextmanager
def shown_progress(*, quiet: bool) -> Iterator["ProgressCall"]:
    """A callback for jobs; an interruption on the way leaves with what was charged."""
    with watched():
        if quiet:
            yield ProgressLines(write=lambda line: None)
        elif not _can_draw():
            yield ProgressLines(write=lambda line: complain(line + "\n"))
        else:
            with _bars() as tell:
                yield tell


class ProgressLines:
    """The beginning of every phase as a line, and where it takes long how far it is."""

    def __init__(
        self, *, write: Callable[[str], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._write = write
        self._clock = clock
        self._began: dict[str, float] = {}
        self._shown_at = 0.0

    def __call__(self, what: str, done: int, of: int) -> None:
        """Say it, if there is something new to say."""
        now = self._clock()
        if what not in self._began:
            self._began[what] = self._shown_at = now
            log.info("%s", what)
            self._write(f"{what} ...")
        elif now - self._shown_at >= EVERY_S:
            self._shown_at = now
            passed = now - self._began[what]
            if done and of:
                left = spoken(passed * (of - done) / done)
                self._write(f"{what}: {done:,} of {of:,}, about {left} left")
            else:
                self._write(f"{what}: {spoken(passed)} so far")


def spoken(seconds: float) -> str:
    """A span of time as people say it.

    >>> spoken(4.2), spoken(95), spoken(8000)
    ('5 s', '2 min', '2 h 13 min')
    """
    if seconds < _MINUTE_S:
        return f"{int(seconds) + 1} s"
    minutes = round(seconds / _MINUTE_S)
    if seconds < _HOUR_S:
        return f"{minutes} min"
    return f"{minutes // 60} h {minutes % 60} min"


def _can_draw() -> bool:
    """Whether somebody watches who wants escape codes."""
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") in ("dumb", "unknown")
    return Stderr().isatty() and not plain


@contextmanager
def _bars() -> Iterator["ProgressCall"]:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        SpinnerColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    shown = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    console = Console(file=cast(IO[str], Stderr()))
    with Progress(*shown, console=console, transient=True) as bars:
        tasks: dict[str, Any] = {}

        def tell(what: str, done: int, of: int) -> None:
            if what not in tasks:
                log.info("%s", what)
                tasks[what] = bars.add_task(what, total=of or None)
            for name, task in tasks.items():
                bars.update(task, visible=name == what)
            bars.update(tasks[what], completed=done, total=of or None)

        yield tell
