"""The database of the service: an embedded SQLite file, or PostgreSQL for teams.

SQLite runs with a write-ahead log and ``synchronous=FULL``: a commit that returned is on the disk.
A transaction that writes is alone in SQLite; in PostgreSQL rows are locked where it matters.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from sqlalchemy import Connection, Engine, create_engine, event, insert, select
from sqlalchemy.exc import SQLAlchemyError

from sfumato.errors import StorageError
from sfumato.randomness import secure_rng
from sfumato.service import tables

_BUSY_MS: Final = 60_000
_ADDRESSES: Final = ("postgresql://", "postgres://")


class Storage:
    """One database, opened; safe to use from several threads and processes.

    Args:
        where: A path of a SQLite file, which is made if missing, or the address of a PostgreSQL
            database.
    """

    def __init__(self, where: str | Path) -> None:
        self._where = str(where)
        self._engine = _engine(self._where)
        with plain_errors(self.name):
            self._create()

    @property
    def name(self) -> str:
        """What messages call the database: never its password."""
        if not self.is_postgres:
            return self._where
        url = self._engine.url
        return f"postgresql://{url.host or 'localhost'}/{url.database or ''}"

    @property
    def is_postgres(self) -> bool:
        """Whether several servers may use it at once."""
        return self._engine.dialect.name == "postgresql"

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A view for reading."""
        with plain_errors(self.name), self._engine.connect() as connection:
            yield connection.execution_options(reading=True)

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction: durable once left, undone if left by an error."""
        with plain_errors(self.name), self._engine.begin() as connection:
            yield connection

    def close(self) -> None:
        """Let go of the database."""
        self._engine.dispose()

    def _create(self) -> None:
        tables.METADATA.create_all(self._engine)
        with self._engine.begin() as connection:
            versions = connection.execute(select(tables.about.c.version)).scalars().all()
            if not versions:
                row = {"version": tables.VERSION, "instance": secure_rng().token()}
                connection.execute(insert(tables.about), row)
            elif versions != [tables.VERSION]:
                raise StorageError(
                    f"{self.name} was made by another version of sfumato (tables {versions}, this "
                    f"one has {tables.VERSION}). Nothing was changed. See docs/deploy.md."
                )


@contextmanager
def plain_errors(name: str) -> Iterator[None]:
    """Errors of a database without its SQL, values and addresses."""
    try:
        yield
    except SQLAlchemyError as error:
        kind = type(getattr(error, "orig", None) or error).__name__
        raise StorageError(f"the database {name} failed ({kind}). Nothing was stored") from None


def _engine(where: str) -> Engine:
    if where.startswith(_ADDRESSES):
        address = "postgresql+psycopg://" + where.partition("://")[2]
        return create_engine(address, pool_size=4, max_overflow=4, pool_pre_ping=True)
    path = Path(where)
    if not path.exists():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))
        except OSError as error:
            raise StorageError(f"can't make {path}: {error.strerror}. Nothing was stored") from None
    engine = create_engine(f"sqlite:///{path.absolute()}", pool_size=4, max_overflow=8)
    event.listen(engine, "connect", _prepare_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def _prepare_sqlite(connection: Any, _record: Any) -> None:
    connection.isolation_level = None  # transactions are begun below, not by the driver
    pragmas = ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", "cache_size=-65536")
    for pragma in (*pragmas, f"busy_timeout={_BUSY_MS}"):
        connection.execute(f"PRAGMA {pragma}")


def _begin_sqlite(connection: Connection) -> None:
    """Writers queue up at the beginning; readers see the last commit and wait for nobody."""
    reading = connection.get_execution_options().get("reading", False)
    connection.exec_driver_sql("BEGIN" if reading else "BEGIN IMMEDIATE")
