"""Processes forked from one that has imported everything.

A real process with a life, a death and locks of its own, for a few milliseconds: a new interpreter
that imports the package takes a second, and a drill kills thousands. Nobody forks with a ledger's
connection in use: the ledger itself closes or forgets it (tests hold that).
"""

import os
import signal
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Job = Callable[[], Any]
_OWN_ERROR = 70


@dataclass(frozen=True, kw_only=True)
class Ended:
    """A process that is gone."""

    code: int
    """As of a command; minus the signal if one killed it."""
    said: list[str]

    @property
    def killed(self) -> bool:
        """Whether ``kill -9`` ended it."""
        return self.code == -signal.SIGKILL


@dataclass(frozen=True, kw_only=True)
class Child:
    """A process that runs."""

    pid: int
    _heard: int

    def send(self, number: int) -> None:
        """A signal; a process that just ended does not mind."""
        os.kill(self.pid, number)

    def line(self) -> str:
        """The next thing it says."""
        said = b""
        while not said.endswith(b"\n"):
            letter = os.read(self._heard, 1)
            if not letter:
                break
            said += letter
        return said.decode().rstrip("\n")

    def ended(self) -> Ended:
        """Wait for its end."""
        with os.fdopen(self._heard, "rb") as heard:
            said = heard.read().decode(errors="replace")
        _, status = os.waitpid(self.pid, 0)
        return Ended(code=os.waitstatus_to_exitcode(status), said=said.splitlines())


def started(job: Job) -> Child:
    """A process that does a job; what it prints, errors too, goes to whoever waits for it."""
    sys.stdout.flush()
    heard, speaks = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(heard)
        os.dup2(speaks, 1)
        os.dup2(speaks, 2)
        sys.stdout, sys.stderr = os.fdopen(1, "w", closefd=False), os.fdopen(2, "w", closefd=False)
        _do_and_leave(job)
    os.close(speaks)
    return Child(pid=pid, _heard=heard)


def done(job: Job) -> Ended:
    """A process that did a job."""
    return started(job).ended()


def together(jobs: list[Job]) -> list[Ended]:
    """Processes that all wait for one moment, and then run at once."""
    waits, opens = os.pipe()

    def held(job: Job) -> Job:
        def run() -> None:
            os.close(opens)
            os.read(waits, 1)  # ends when the last one who could write has closed
            job()

        return run

    children = [started(held(job)) for job in jobs]
    os.close(waits)
    os.close(opens)
    return [child.ended() for child in children]


def _do_and_leave(job: Job) -> None:
    code = _OWN_ERROR
    try:
        job()
        code = 0
    except SystemExit as left:
        code = left.code if isinstance(left.code, int) else int(left.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
