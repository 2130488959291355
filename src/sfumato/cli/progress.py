"""Progress on standard error: bars where a person watches, few plain lines otherwise.

No escape code is ever written unless standard error is a terminal that can take one, and never
with ``NO_COLOR`` or ``TERM=dumb``.
"""

import logging
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any, Final, cast

from sfumato.cli import process

if TYPE_CHECKING:
    from sfumato.commands.request import ProgressCall

log = logging.getLogger(__name__)

EVERY_S: Final = 5.0
"""Between two plain lines of one phase."""
_MINUTE_S: Final = 60
"""Seconds of a minute."""
_HOUR_S: Final = 3_600
"""Seconds of an hour."""


@contextmanager
def shown(*, quiet: bool) -> Iterator["ProgressCall"]:
    """A callback for jobs; an interruption on the way leaves with what was charged."""
    with process.watched():
        if quiet:
            yield Lines(write=lambda line: None)
        elif not _can_draw():
            yield Lines(write=lambda line: process.complain(line + "\n"))
        else:
            with _bars() as tell:
                yield tell


class Lines:
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
    return process.Stderr().isatty() and not plain


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
    console = Console(file=cast(IO[str], process.Stderr()))
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
