"""Databases to drill on."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from servers import started
from service import loads, processes
from service.conftest import Made, Running
from service.loads import Target
from service.processes import Process


@dataclass(frozen=True, kw_only=True)
class Place:
    """A database and the server processes on it."""

    name: str
    database: str
    servers: list[Process]

    @property
    def addresses(self) -> list[str]:
        return [running(server).address for server in self.servers]

    def survey(self) -> tuple[Made, Target]:
        """A new open one, with an invitation for many answers."""
        made = loads.opened(running(self.servers[0]))
        return made, loads.target(made, made.invite(uses=1_000_000))


def running(server: Process) -> Running:
    assert server.running is not None
    return server.running


@contextmanager
def sqlite(folder: Path, *options: str) -> Iterator[Place]:
    """One server on a SQLite file."""
    database = str(folder / "survey.db")
    with processes.process(database, folder, *options) as server:
        yield Place(name="SQLite", database=database, servers=[server])


@contextmanager
def postgres(folder: Path, servers: int = 1) -> Iterator[Place]:
    """Servers on PostgreSQL, which writes to the disk as it does where people use it."""
    with ExitStack() as stack:
        made = stack.enter_context(started(durable=True))
        database = stack.enter_context(made.fresh()).address
        found: list[Process] = []
        for number in range(servers):
            own = folder / str(number)
            own.mkdir()
            process = Process(database=database, folder=own)
            stack.callback(process.kill)
            process.start(token=running(found[0]).token if found else None)
            found.append(process)
        yield Place(name=f"PostgreSQL x{servers}", database=database, servers=found)


def both(folder: Path) -> Iterator[Place]:
    """One server on SQLite, then two on PostgreSQL; each ends before the next begins."""
    for name in ("sqlite", "postgres"):
        (folder / name).mkdir()
    with sqlite(folder / "sqlite") as place:
        yield place
    with postgres(folder / "postgres", servers=2) as place:
        yield place
