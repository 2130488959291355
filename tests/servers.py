"""Fixtures that start real servers: PostgreSQL from Debian's packages, one for each process.

``postgres`` is the server, ``database`` an empty database of it for one test. The server lives in
a temporary folder, listens on a socket there and on a free port of this machine, and dies with
the tests however they end.
"""

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from urllib.parse import quote

import pytest

from absent import absent

OWNER = "sfumato"
PASSWORD = "s3cret w/ %:@"
START_S = 30
SETTINGS = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "autovacuum": "off",
    "shared_buffers": "16MB",
    "max_connections": "50",
    "timezone": "Asia/Tehran",  # readers that forget about zones shall be found out
}


@dataclass(frozen=True, kw_only=True)
class Postgres:
    """A running server."""

    programs: Path
    folder: Path
    """Its socket is here, and ``log``."""
    port: int
    _numbers: Iterator[int] = field(default_factory=lambda: count(1), repr=False)

    def address(self, database: str, *, user: str = OWNER, password: str | None = PASSWORD) -> str:
        """``postgresql://user:password@127.0.0.1:port/database``."""
        secret = "" if password is None else f":{quote(password, safe='')}"
        return f"postgresql://{quote(user)}{secret}@127.0.0.1:{self.port}/{quote(database)}"

    def run(self, sql: str, *, database: str = "postgres") -> str:
        """Run statements as the owner, each committed by itself; rows come as lines of text."""
        command = [self.programs / "psql", "-XqAt", "-v", "ON_ERROR_STOP=1", "-f", "-"]
        where = {
            "PGHOST": str(self.folder),
            "PGPORT": str(self.port),
            "PGUSER": OWNER,
            "PGPASSWORD": PASSWORD,
            "PGDATABASE": database,
            "PGCLIENTENCODING": "UTF8",
        }
        done = subprocess.run(
            command, input=sql, capture_output=True, text=True, timeout=60, env=os.environ | where
        )
        if done.returncode:
            raise AssertionError(f"psql: {done.stderr}")
        return done.stdout

    @contextmanager
    def fresh(self, options: str = "") -> Iterator["Database"]:
        """An empty database, dropped at the end also if somebody is still connected."""
        name = f"test{next(self._numbers)}"
        self.run(f"CREATE DATABASE {name} {options}")
        try:
            yield Database(server=self, name=name)
        finally:
            self.run(f"DROP DATABASE {name} WITH (FORCE)")


@dataclass(frozen=True, kw_only=True)
class Database:
    """A database of a running server."""

    server: Postgres
    name: str

    @property
    def address(self) -> str:
        """Its address, with the owner's password."""
        return self.server.address(self.name)

    def run(self, sql: str) -> str:
        """Run statements as the owner, each committed by itself; rows come as lines of text."""
        return self.server.run(sql, database=self.name)

    def fill(self, table: str, columns: Mapping[str, Sequence[str | None]]) -> None:
        """Make a table of texts; None is missing."""
        escapes = str.maketrans({"\\": r"\\", "\t": r"\t", "\n": r"\n", "\r": r"\r"})
        rows = zip(*columns.values(), strict=True)
        lines = (
            "\t".join(r"\N" if value is None else value.translate(escapes) for value in row)
            for row in rows
        )
        names = ", ".join('"' + name.replace('"', '""') + '" text' for name in columns)
        body = "".join(f"{line}\n" for line in lines)
        self.run(f"CREATE TABLE {table} ({names});\nCOPY {table} FROM STDIN;\n{body}\\.\n")


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """A PostgreSQL server, started when the first test asks for it."""
    with started() as server:
        yield server


@pytest.fixture
def database(postgres: Postgres) -> Iterator[Database]:
    """An empty database."""
    with postgres.fresh() as made:
        yield made


@contextmanager
def started(*, durable: bool = False) -> Iterator[Postgres]:
    """A server with a folder of its own; ``durable`` with the settings it has where people use it.

    Tests that end with the server don't wait for disks; a measurement must.
    """
    programs = _programs()
    if programs is None:
        absent("PostgreSQL server")
    settings = [] if durable else [f"-c{name}={value}" for name, value in SETTINGS.items()]
    folder = Path(tempfile.mkdtemp(prefix="sfumato-postgres-"))
    user = _unprivileged()
    try:
        if user is not None:
            shutil.chown(folder, user)
        _make(programs, folder, user)
        with _listening(programs, folder, user, settings) as port:
            yield Postgres(programs=programs, folder=folder, port=port)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _make(programs: Path, folder: Path, user: str | None) -> None:
    secret = folder / "password"
    secret.write_text(PASSWORD)
    secret.chmod(0o644)
    options = ("--auth=scram-sha-256", f"--pwfile={secret}", "--no-sync", "--encoding=UTF8")
    command = [programs / "initdb", "-D", folder / "data", "-U", OWNER, "--locale=C", *options]
    done = subprocess.run(_as(user, command), capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    secret.unlink()


@contextmanager
def _listening(
    programs: Path, folder: Path, user: str | None, settings: Sequence[str]
) -> Iterator[int]:
    """The server's process; another port if somebody was faster to take it."""
    for _ in range(5):
        port = _free_port()
        where = ["-D", folder / "data", "-k", folder, "-h", "127.0.0.1", "-p", str(port)]
        with (folder / "log").open("wb") as log:
            command = _as(user, [programs / "postgres", *where, *settings])
            process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
        try:
            if _is_ready(programs, folder, port, process):
                yield port
                return
        finally:
            process.send_signal(signal.SIGQUIT)  # at once, whoever is connected
            process.wait(timeout=START_S)
    raise AssertionError(f"PostgreSQL did not start:\n{(folder / 'log').read_text()}")


def _is_ready(programs: Path, folder: Path, port: int, process: subprocess.Popen[bytes]) -> bool:
    """Wait until the server answers; false if it ended instead."""
    ask = [programs / "pg_isready", "-q", "-h", folder, "-p", str(port)]
    until = time.monotonic() + START_S
    while process.poll() is None and time.monotonic() < until:
        if subprocess.run(ask, capture_output=True).returncode == 0:
            return True
        time.sleep(0.05)
    return False


def _programs() -> Path | None:
    """The folder of the newest server's programs."""
    if found := shutil.which("postgres"):
        return Path(found).resolve().parent
    known = Path("/usr/lib/postgresql").glob("*/bin/postgres")
    return max(
        (path.parent for path in known), key=lambda path: int(path.parent.name), default=None
    )


def _unprivileged() -> str | None:
    """Whom to run the server as: PostgreSQL refuses to be root."""
    if os.geteuid() != 0:
        return None
    names = {entry.pw_name for entry in pwd.getpwall()}
    return "postgres" if "postgres" in names else "nobody"


def _as(user: str | None, command: list[str | Path]) -> list[str | Path]:
    """The command as a user, killed by the kernel when its parent dies, where that can be asked."""
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        return command if user is None else ["runuser", "-u", user, "--", *command]
    entry = pwd.getpwnam(user) if user else None
    ids = [f"--reuid={entry.pw_uid}", f"--regid={entry.pw_gid}", "--clear-groups"] if entry else []
    return [setpriv, *ids, "--pdeathsig=QUIT", *command]


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])
