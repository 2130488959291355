"""The database of the service: an embedded SQLite file, or PostgreSQL for teams.

SQLite runs with a write-ahead log and ``synchronous=FULL``: a commit that returned is on the disk.
A transaction that writes is alone in SQLite; in PostgreSQL rows are locked where it matters, and a
commit is durable there too, whatever the server does by default. Those who read have connections of
their own, so that however many read, answers are written.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from sqlalchemy import Connection, Engine, create_engine, event, func, insert, select
from sqlalchemy.exc import SQLAlchemyError

from sfumato.errors import StorageError
from sfumato.randomness import secure_rng
from sfumato.server.storage import tables

_BUSY_MS: Final = 60_000
"""Milliseconds for which a writer waits for another one."""
_POOL: Final = {"pool_size": 4, "max_overflow": 4, "pool_timeout": 10, "hide_parameters": True}
"""Connections that are kept, and more for a while; seconds to wait for one; no values in logs."""
_ADDRESSES: Final = ("postgresql://", "postgres://")
_ISOLATION: Final = ("REPEATABLE READ", "READ COMMITTED")
"""Of those who read, who see one moment, and of those who write, whose locks are explicit."""
_SCRUB_MS: Final = 5_000
"""Answers wait while a log is emptied, and that waits for those who read."""
_CREATING: Final = 0x5366756D73757276  # "Sfumsurv"
_LINE: Final = {
    "connect_timeout": 10,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,  # milliseconds: a server that is gone without a word
    "fallback_application_name": "sfumato survey",
    "prepare_threshold": None,  # a plan made while a table was small would be kept too long
}
_DURABLE: Final = "SET LOCAL synchronous_commit = on; SET LOCAL lock_timeout = '10s'"
"""Said in every transaction that writes, because a pooler may hand each to another session.

A lock that somebody holds for long is an error, after which devices come again. Statements have no
time limit: counting a large survey takes as long as it takes, and a dead line ends by itself.
"""


class Storage:
    """One database, opened; safe to use from several threads and processes.

    Args:
        where: A path of a SQLite file, which is made if missing, or the address of a PostgreSQL
            database.
    """

    def __init__(self, where: str | Path) -> None:
        self._where = str(where)
        self._readers, self._writers = _engines(self._where)
        self._create()

    @property
    def name(self) -> str:
        """What messages call the database: never its password."""
        if not self.is_postgres:
            return self._where
        url = self._writers.url
        return f"postgresql://{url.host or 'localhost'}/{url.database or ''}"

    @property
    def is_postgres(self) -> bool:
        """Whether several servers may use it at once."""
        return self._writers.dialect.name == "postgresql"

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A view for reading: all that is read in it is of one moment."""
        with self._plain_errors(), self._readers.connect() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction: durable once left, undone if left by an error."""
        with self._plain_errors(), self._writers.begin() as connection:
            if self.is_postgres:
                driver: Any = connection.connection.driver_connection
                driver.execute(_DURABLE)
            yield connection

    def scrub(self) -> None:
        """Remove what the database itself holds of earlier states; not within a transaction.

        SQLite's log holds its latest commits one by one, and PostgreSQL's tables hold rows that
        were deleted: both tell what came together. Left undone while others read for long, or if
        the database fails: what was committed before stays committed.
        """
        with suppress(StorageError), self._plain_errors():
            if self.is_postgres:
                self._vacuum()
            else:
                self._empty_log()

    def close(self) -> None:
        """Let go of the database."""
        self._readers.dispose()
        self._writers.dispose()

    @contextmanager
    def _plain_errors(self) -> Iterator[None]:
        """Errors of a database without its SQL, values and addresses.

        Statements that matter for speed go to the driver itself, so its own errors come here too.
        """
        driver: Any = self._writers.dialect.loaded_dbapi
        try:
            yield
        except (SQLAlchemyError, driver.Error) as error:
            kind = type(getattr(error, "orig", None) or error).__name__
            raise StorageError(f"the database {self.name} failed ({kind})") from None

    def _empty_log(self) -> None:
        connection = self._writers.raw_connection()
        driver: Any = connection.driver_connection
        try:
            driver.execute(f"PRAGMA busy_timeout={_SCRUB_MS}")
            driver.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        finally:
            driver.execute(f"PRAGMA busy_timeout={_BUSY_MS}")
            connection.close()

    def _vacuum(self) -> None:
        with self._writers.connect() as connection:
            connection.execution_options(isolation_level="AUTOCOMMIT")
            connection.exec_driver_sql("VACUUM invitations, blocks")

    def _create(self) -> None:
        with self.writing() as connection:
            if self.is_postgres:  # another server may start at the same moment
                connection.execute(select(func.pg_advisory_xact_lock(_CREATING)))
            tables.METADATA.create_all(connection)
            versions = connection.execute(select(tables.about.c.version)).scalars().all()
            if not versions:
                row = {"version": tables.VERSION, "instance": secure_rng().token()}
                connection.execute(insert(tables.about), row)
            elif versions != [tables.VERSION]:
                raise StorageError(
                    f"{self.name} was made by another version of sfumato (tables {versions}, this "
                    f"one has {tables.VERSION}). See docs/deploy.md."
                )


def _engines(where: str) -> tuple[Engine, Engine]:
    """For those who read, and for those who write."""
    if where.startswith(_ADDRESSES):
        address = "postgresql+psycopg://" + where.partition("://")[2]
        reads, writes = (
            create_engine(
                address, pool_pre_ping=True, connect_args=_LINE, isolation_level=level, **_POOL
            )
            for level in _ISOLATION
        )
        return reads, writes
    path = Path(where)
    if not path.exists():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))
        except OSError as error:
            raise StorageError(f"can't make {path}: {error.strerror}") from None
    reads, writes = (create_engine(f"sqlite:///{path.absolute()}", **_POOL) for _ in range(2))
    for engine, begin in ((reads, "BEGIN"), (writes, "BEGIN IMMEDIATE")):
        event.listen(engine, "connect", _prepare_sqlite)
        event.listen(engine, "begin", _beginning(begin))
    return reads, writes


def _prepare_sqlite(connection: Any, _record: Any) -> None:
    connection.isolation_level = None  # transactions are begun below, not by the driver
    pragmas = ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", "secure_delete=ON")
    for pragma in (*pragmas, f"busy_timeout={_BUSY_MS}"):
        connection.execute(f"PRAGMA {pragma}")


def _beginning(statement: str) -> Callable[[Connection], None]:
    """Writers queue up at the beginning; readers see the last commit and wait for nobody."""

    def begin(connection: Connection) -> None:
        connection.exec_driver_sql(statement)

    return begin
