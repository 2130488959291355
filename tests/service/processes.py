"""Server processes and databases that can be killed, for drills that need real deaths.

``process`` is ``sfumato survey serve`` in a process of its own; ``crashing`` is a PostgreSQL server
that stops as by a crash and starts again.
"""

import asyncio
import os
import signal
import subprocess
import sys
import time
import urllib.error
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from servers import Postgres, _as, _unprivileged, started
from service.conftest import Running
from service.loads import Target, books, pour, poured_until, report_ids, shuffled
from sfumato.randomness import Rng

START_S = 60.0


@dataclass(kw_only=True)
class Process:
    """``sfumato survey serve`` in a process of its own."""

    database: str
    folder: Path
    """Where its output goes."""
    options: tuple[str, ...] = ()
    running: Running | None = None
    began: float = 0.0
    _process: "subprocess.Popen[bytes] | None" = None

    def start(self, token: str | None = None) -> float:
        """Start, or start again at the same address; how many seconds until it answered.

        The token is needed for a database that another server has made.
        """
        port = "0" if self.running is None else self.running.address.rpartition(":")[2]
        command = [sys.executable, "-m", "sfumato", "survey", "serve", "--rate", "0"]
        more = ["--port", port, "--database", self.database, *self.options]
        self.began = time.monotonic()
        with (self.folder / "out").open("wb") as out, (self.folder / "err").open("ab") as err:
            self._process = subprocess.Popen(
                _as(None, [*command, *more]), stdout=out, stderr=err, start_new_session=True
            )
        said = self._said()
        known = token if self.running is None else self.running.token
        self.running = Running(address=said["address"], token=known or said["token"], service=None)
        self._wait()
        return time.monotonic() - self.began

    @property
    def group(self) -> int:
        """The process and all its workers."""
        assert self._process is not None
        return self._process.pid

    def kill(self) -> None:
        """``kill -9``, the workers too."""
        with suppress(ProcessLookupError):
            os.killpg(self.group, signal.SIGKILL)
        assert self._process is not None
        self._process.wait(timeout=START_S)

    def stop(self) -> int:
        """``kill``, as a service manager does; the exit code."""
        assert self._process is not None
        self._process.terminate()
        return self._process.wait(timeout=START_S)

    def workers(self) -> list[int]:
        """The processes that serve, where there are several."""
        children = Path(f"/proc/{self.group}/task/{self.group}/children").read_text()
        return [pid for pid in map(int, children.split()) if serves(pid)]

    def cpu_s(self) -> float:
        """The CPU-seconds of its main process so far."""
        fields = Path(f"/proc/{self.group}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def resident_mib(self) -> float:
        """The memory of its main process now."""
        for line in Path(f"/proc/{self.group}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) / 1024
        raise AssertionError("no such process")

    def _said(self) -> dict[str, str]:
        until = time.monotonic() + START_S
        while time.monotonic() < until:
            lines = (self.folder / "out").read_text().splitlines()
            said = dict(line.split(maxsplit=1) for line in lines if len(line.split()) > 1)
            if "page" in said:
                return {name: text.split()[0] for name, text in said.items()}
            assert self._process is not None
            assert self._process.poll() is None, (self.folder / "err").read_text()
            time.sleep(0.01)
        raise AssertionError("the server did not start")

    def _wait(self) -> None:
        assert self.running is not None
        until = time.monotonic() + START_S
        while time.monotonic() < until:
            with suppress(urllib.error.URLError, ConnectionError):
                if self.running.call("/healthz")[0] == 200:
                    return
            time.sleep(0.01)
        raise AssertionError("the server does not answer")


def serves(pid: int) -> bool:
    """Whether a child is a worker, and not one that keeps track of what is shared."""
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
    return b"spawn_main" in command


@contextmanager
def process(database: str, folder: Path, *options: str) -> Iterator[Process]:
    """A server in a process of its own, dead at the end of the block."""
    made = Process(database=database, folder=folder, options=options)
    made.start()
    try:
        yield made
    finally:
        made.kill()


@dataclass(frozen=True, kw_only=True)
class Kill:
    """What one kill under load did."""

    acknowledged: int
    missing: int
    """Acknowledged and not in the database."""
    twice: int
    """In the database, or counted, more than once."""
    serving_s: float
    starting_cpu_s: float
    """Of which the server itself worked so long."""


def kill_under_load(
    server: Process, to: Target, *, rng: Rng, posts: int = 4_000, after_s: float
) -> Kill:
    """Upload, kill at some moment, start again, and hold the database against the receipts.

    What was not acknowledged is sent again, as devices do; then all of it is there once.
    """
    assert server.running is not None
    before = books(server.database)
    reports = report_ids(2 * posts, rng=rng)
    sent = shuffled(to.mixed(reports), rng=rng)
    address = server.running.address
    heard = asyncio.run(poured_until(server.kill, after_s, address, sent))
    serving_s, starting_cpu_s = server.start(), server.cpu_s()
    after = books(server.database)
    missing = len((heard.acknowledged | before.reports) - after.reports)
    left = [post for post in sent if not heard.acknowledged.issuperset(post.reports)]
    again = left[:200]
    pour([address], again)
    final = books(server.database)
    resent = {report for post in again for report in post.reports}
    missing += len(resent - final.reports)
    twice = sum(
        abs(own.rows - len(own.reports)) + abs(own.arrived - own.rows) for own in (after, final)
    ) + abs(final.taken - final.rows)
    return Kill(
        acknowledged=len(heard.acknowledged),
        missing=missing,
        twice=twice,
        serving_s=serving_s,
        starting_cpu_s=starting_cpu_s,
    )


@dataclass(frozen=True, kw_only=True)
class Crashing:
    """A PostgreSQL server that can be stopped as by a crash, and started again."""

    server: Postgres

    def stop(self) -> None:
        """``pg_ctl stop -m immediate``: at once, nothing is written out."""
        self._control("stop", "-m", "immediate")

    def start(self) -> None:
        """Start again, with recovery from the log, at the same address."""
        where = f"-k {self.server.folder} -h 127.0.0.1 -p {self.server.port}"
        self._control("start", "-w", "-l", str(self.server.folder / "again"), "-o", where)

    def _control(self, *what: str) -> None:
        server = self.server
        command = [server.programs / "pg_ctl", "-s", "-D", server.folder / "data", *what]
        subprocess.run(_as(_unprivileged(), command), check=True, timeout=START_S, cwd="/")


@contextmanager
def crashing(*, durable: bool = False) -> Iterator[Crashing]:
    """A server of its own for those who crash it."""
    with started(durable=durable) as server:
        made = Crashing(server=server)
        try:
            yield made
        finally:
            with suppress(subprocess.CalledProcessError):  # it may be down
                made.stop()
