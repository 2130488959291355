"""Where a ledger can be: a file, or a PostgreSQL database that waits for its disk."""

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from importlib import import_module
from itertools import count
from pathlib import Path

from servers import PASSWORD, Postgres, started


@dataclass(frozen=True, kw_only=True)
class Store:
    """A kind of place, and fresh ones of it."""

    name: str
    fresh: Callable[[], AbstractContextManager[str]]
    """The address of a ledger that is not there yet."""
    server: Postgres | None = None


@contextmanager
def sqlite(folder: Path) -> Iterator[Store]:
    """Files in a folder; the anchors lie beside them."""
    os.environ["SFUMATO_HOME"] = str(folder / "home")
    numbers = count()

    @contextmanager
    def fresh() -> Iterator[str]:
        yield str(folder / f"ledger{next(numbers)}")

    yield Store(name="SQLite", fresh=fresh)


@contextmanager
def postgres(folder: Path) -> Iterator[Store]:
    """Databases of a server with the settings that it has where people use it."""
    os.environ["SFUMATO_HOME"] = str(folder / "home")
    os.environ["PGPASSWORD"] = PASSWORD
    import_module("psycopg")  # the ledger does so when it connects, which each fork would repeat
    with started(durable=True) as server:

        @contextmanager
        def fresh() -> Iterator[str]:
            with server.fresh() as database:
                yield server.address(database.name, password=None)

        yield Store(name="PostgreSQL", fresh=fresh, server=server)


def both(folder: Path) -> Iterator[Store]:
    """One after the other."""
    for place in (sqlite, postgres):
        own = folder / place.__name__
        own.mkdir()
        with place(own) as store:
            yield store


def outcomes(ledger: Path) -> dict[str, bytes]:
    """What a ledger file keeps of paid requests, read past the ledger."""
    with sqlite3.connect(ledger) as view:
        found = dict(view.execute("SELECT request, payload FROM outcomes").fetchall())
    view.close()
    return found
