"""Where a ledger is stored: one SQLite file, a database in memory, or PostgreSQL for teams.

A ledger is two append-only tables. ``entries`` holds the rows of the hash chain; its indexes read
dataset and request from the body itself, so there is no second copy that could disagree.
``outcomes`` holds what was drawn for a request that was paid. Triggers keep both append-only.

SQLite: the file is created complete under its name, so two processes may create it at once. Nothing
here opens it but SQLite: closing any descriptor of a file drops all locks that the process has on
it. A rollback journal, unlike a write-ahead log, keeps every finished spend in the file itself and
needs no lock between transactions; it is on the disk when a commit returns.

PostgreSQL: writers queue up at an advisory lock, which ends with their transaction, however that
ends, and the owner of the tables gives the right to change any away. What the driver says may quote
values: it is never passed on. Passwords belong into PGPASSWORD or ~/.pgpass.
"""

import os
import sqlite3
import threading
import weakref
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

from sfumato.durable import write_file
from sfumato.errors import InputError, SfumatoError, StorageError
from sfumato.ledger.entries import Row, corrupt

if TYPE_CHECKING:
    from psycopg import Connection


class Transaction:
    """One consistent view of the ledger; in a writing one nobody else writes meanwhile."""

    _entries: ClassVar = "entries"
    _outcomes: ClassVar = "outcomes"
    _dataset: ClassVar[str]
    """The expression that reads the dataset from a body."""
    _request: ClassVar[str]

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def head(self) -> Row | None:
        """The last row."""
        return self._row("ORDER BY seq DESC LIMIT 1")

    def at(self, seq: int) -> Row | None:
        """The row with this number."""
        return self._row("WHERE seq = ?", seq)

    def latest(self, dataset: str) -> Row | None:
        """The last row of a dataset."""
        return self._row(f"WHERE {self._dataset} = ? ORDER BY seq DESC LIMIT 1", dataset)

    def with_request(self, dataset: str, request: str) -> Row | None:
        """The row that paid for a request."""
        return self._row(f"WHERE {self._dataset} = ? AND {self._request} = ?", dataset, request)

    def rows(self) -> Iterator[Row]:
        """All rows in order."""
        return (Row(*values) for values in self._select("ORDER BY seq"))

    def append(self, row: Row) -> None:
        """Add the next row."""
        sql = f"INSERT INTO {self._entries} (seq, body, previous, hash) VALUES (?, ?, ?, ?)"
        self.execute(sql, row.seq, row.body, row.previous, row.hash)

    def outcome(self, dataset: str, request: str) -> bytes | None:
        """What was drawn for a request."""
        sql = f"SELECT payload FROM {self._outcomes} WHERE dataset = ? AND request = ?"
        values = self.execute(sql, dataset, request).fetchone()
        return _bytes(values[0]) if values else None

    def outcomes(self) -> Iterator[tuple[str, str, bytes]]:
        """All outcomes: dataset, request and content."""
        for dataset, request, payload in self.execute(f"SELECT * FROM {self._outcomes}"):
            yield dataset, request, _bytes(payload)

    def keep_outcome(self, dataset: str, request: str, payload: bytes) -> None:
        """Store the outcome of a request that has none yet."""
        sql = f"INSERT INTO {self._outcomes} VALUES (?, ?, ?)"
        self.execute(sql, dataset, request, payload)

    def check_structure(self) -> None:
        """Refuse a store whose own structure (pages, indexes, version) is damaged."""
        raise NotImplementedError

    def execute(self, sql: str, *values: Any) -> Any:
        """Run one statement with ``?`` for values; a cursor over its result."""
        return self._connection.execute(sql, values)

    def _select(self, which: str, *values: Any) -> Any:
        return self.execute(
            f"SELECT seq, body, previous, hash FROM {self._entries} {which}", *values
        )

    def _row(self, which: str, *values: Any) -> Row | None:
        row = self._select(which, *values).fetchone()
        return Row(*row) if row else None


def _bytes(payload: Any) -> bytes:
    if not isinstance(payload, bytes):  # SQLite stores whatever it is given
        raise corrupt("outcomes", "one of them is of another type")
    return payload


class Store:
    """A ledger's store. One transaction at a time in a process, and none while it forks."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        _stores.add(self)

    def reading(self) -> AbstractContextManager[Transaction]:
        """A view for reading."""
        raise NotImplementedError

    def writing(self) -> AbstractContextManager[Transaction]:
        """A view for writing, alone; durable once left, undone if left by an error."""
        raise NotImplementedError

    def close(self) -> None:
        """Release the connection; it is made again when used."""
        raise NotImplementedError

    def before_fork(self) -> None:
        """With the lock held, in the parent."""

    def after_fork_in_child(self) -> None:
        """Never use, nor close, a connection of the parent."""
        raise NotImplementedError


_stores: "weakref.WeakSet[Store]" = weakref.WeakSet()
_inherited: list[Any] = []
"""Connections of a parent: never closed here."""


def _unusable(where: Path | str, problem: str, advice: str) -> StorageError:
    return StorageError(f"the ledger {where} can't be used: {problem}. Make sure that {advice}")


class _Forks:
    """No store is in the middle of a transaction while the process forks."""

    def __init__(self) -> None:
        self._one_at_a_time = threading.RLock()
        self._paused: list[Store] = []

    def before(self) -> None:
        self._one_at_a_time.acquire()
        self._paused = list(_stores)
        for store in self._paused:
            store.lock.acquire()
            store.before_fork()

    def after_in_parent(self) -> None:
        for store in self._paused:
            store.lock.release()
        self._paused = []
        self._one_at_a_time.release()

    def after_in_child(self) -> None:
        for store in list(_stores):
            store.lock = threading.RLock()  # one that another thread held would never open
            store.after_fork_in_child()
        self._one_at_a_time = threading.RLock()
        self._paused = []


if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
    _forks = _Forks()
    os.register_at_fork(
        before=_forks.before,
        after_in_parent=_forks.after_in_parent,
        after_in_child=_forks.after_in_child,
    )


_APPLICATION_ID: Final = 0x5366756D
"""Names the program in the file's header: "Sfum"."""
_SQLITE_VERSION: Final = 2
"""Of the tables below; a file of another version is refused."""
_SQLITE_BUSY_S: Final = 60.0
"""How long a transaction waits for those of other processes, which take milliseconds."""
_SQLITE_ADVICE: Final = "its directory exists, can be written and has space, or name another ledger"
_DAMAGED: Final = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_ERROR}

_SQLITE_DATASET: Final = "json_extract(body, '$.dataset')"
_SQLITE_REQUEST: Final = "json_extract(body, '$.request')"
_SQLITE_SCHEMA: Final = f"""
CREATE TABLE entries (
    seq INTEGER PRIMARY KEY, body TEXT NOT NULL, previous TEXT NOT NULL, hash TEXT NOT NULL);
CREATE INDEX by_dataset ON entries ({_SQLITE_DATASET}, seq);
CREATE UNIQUE INDEX by_request ON entries ({_SQLITE_DATASET}, {_SQLITE_REQUEST})
    WHERE {_SQLITE_REQUEST} IS NOT NULL;
CREATE TABLE outcomes (
    dataset TEXT NOT NULL, request TEXT NOT NULL, payload BLOB NOT NULL,
    PRIMARY KEY (dataset, request));
CREATE TRIGGER entries_stay BEFORE UPDATE ON entries BEGIN SELECT RAISE(ABORT, 'append-only'); END;
CREATE TRIGGER entries_last BEFORE DELETE ON entries BEGIN SELECT RAISE(ABORT, 'append-only'); END;
CREATE TRIGGER outcomes_stay BEFORE UPDATE ON outcomes
    BEGIN SELECT RAISE(ABORT, 'append-only'); END;
CREATE TRIGGER outcomes_last BEFORE DELETE ON outcomes
    BEGIN SELECT RAISE(ABORT, 'append-only'); END;
PRAGMA application_id = {_APPLICATION_ID};
PRAGMA user_version = {_SQLITE_VERSION};
"""


class SqliteTransaction(Transaction):
    """The rows and outcomes of one open transaction."""

    _dataset = _SQLITE_DATASET
    _request = _SQLITE_REQUEST

    def check_structure(self) -> None:
        """Refuse a file whose pages or indexes are damaged."""
        (answer,) = self.execute("PRAGMA integrity_check(1)").fetchone()
        if answer != "ok":
            raise corrupt("database structure", str(answer))


class SqliteStore(Store):
    """A ledger file, or a database in memory, of which a forked child has a copy."""

    def __init__(self, path: Path, memory: sqlite3.Connection | None = None) -> None:
        self._path, self._inode = path, (0, 0)
        self._connection: sqlite3.Connection | None = None
        self._finalizer: weakref.finalize[[], SqliteStore] | None = None
        self._memory = memory
        if memory is not None:
            weakref.finalize(self, memory.close)
        super().__init__()

    @staticmethod
    def in_memory(first: Row) -> "SqliteStore":
        """A new ledger that is gone with the process."""
        return SqliteStore(Path(":memory:"), _new_database(first))

    def reading(self) -> AbstractContextManager[Transaction]:
        """A view for reading."""
        return self._transaction("BEGIN", "ROLLBACK")

    def writing(self) -> AbstractContextManager[Transaction]:
        """A view for writing, alone; durable once left, undone if left by an error."""
        return self._transaction("BEGIN IMMEDIATE", "COMMIT")

    def close(self) -> None:
        """Release the file; it is opened again when used."""
        with self.lock:
            if self._finalizer:
                self._finalizer()
                self._connection, self._finalizer = None, None

    def before_fork(self) -> None:
        """Parent and child each open the file again; locks are not inherited."""
        if self._connection is not None and not self._connection.in_transaction:
            self.close()

    def after_fork_in_child(self) -> None:
        """Never use, nor close, a connection of the parent to a file."""
        if self._finalizer:
            self._finalizer.detach()
            _inherited.append(self._connection)
            self._connection, self._finalizer = None, None

    @contextmanager
    def _transaction(self, begin: str, end: str) -> Iterator[Transaction]:
        with self.lock, _plain_sqlite_errors(self._path):
            connection = self._connected()
            try:  # an interrupt may come as soon as a lock is had
                connection.execute(begin)
                yield SqliteTransaction(connection)
                connection.execute(end)
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")

    def _connected(self) -> sqlite3.Connection:
        """The connection; a spend must not go astray into a file that lost its name."""
        if self._memory is not None:
            return self._memory
        status = self._path.stat()
        inode = status.st_dev, status.st_ino
        if self._connection is None:
            self._connection, self._inode = _connect(self._path), inode
            self._finalizer = weakref.finalize(self, self._connection.close)
        if self._inode != inode:
            raise corrupt("file", "another one took its name while the ledger was open")
        return self._connection


def create(path: Path, first: Row) -> None:
    """Make a ledger file with its first row; if somebody else just did, theirs stands."""
    with closing(_new_database(first)) as database:
        content = database.serialize()
    with _plain_sqlite_errors(path), suppress(FileExistsError):
        write_file(path, content, mode=0o600, new=True)


def _new_database(first: Row) -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    connection.deserialize(_empty_database())
    SqliteTransaction(connection).append(first)
    return connection


@cache
def _empty_database() -> bytes:
    """Making the tables takes a millisecond, which rehearsals would pay again and again."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(_SQLITE_SCHEMA)
        return connection.serialize()


def _connect(path: Path) -> sqlite3.Connection:
    if not path.stat().st_size:
        raise corrupt("file format", f"{path} is empty")
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode=rw",
        uri=True,
        timeout=_SQLITE_BUSY_S,
        isolation_level=None,
        check_same_thread=False,
    )
    try:
        connection.execute("PRAGMA synchronous = EXTRA")  # the journal's removal reaches the disk
        connection.execute("PRAGMA fullfsync = 1")  # macOS: a plain fsync stops at the drive
        (owner,) = connection.execute("PRAGMA application_id").fetchone()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if owner != _APPLICATION_ID:
            raise corrupt("file format", f"{path} is a SQLite file of another program")
        if version != _SQLITE_VERSION:
            raise corrupt(
                "format version", f"it is {version}, this version reads {_SQLITE_VERSION}"
            )
    except BaseException:
        connection.close()
        raise
    return connection


@contextmanager
def _plain_sqlite_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
        if code == sqlite3.SQLITE_NOTADB:
            raise corrupt("file format", f"{path} is not a SQLite file") from error
        if code in _DAMAGED or isinstance(error, sqlite3.IntegrityError):
            raise corrupt("database structure", str(error)) from error
        raise _unusable(path, str(error), _SQLITE_ADVICE) from error
    except UnicodeDecodeError as error:  # of SQLite's own words about it, too
        raise corrupt("database structure", "a text in it is not UTF-8") from error
    except OSError as error:
        raise _unusable(path, error.strerror or str(error), _SQLITE_ADVICE) from error


_POSTGRES_VERSION: Final = 2
"""Of the tables below; those of another version are refused."""
_LOCK: Final = 0x5366756D6C656467
"""The number of the advisory lock: "Sfumledg"."""
_POSTGRES_BUSY: Final = "60s"
"""How long a writer waits for others, who take milliseconds."""
_POSTGRES_ADVICE: Final = (
    "the server runs, that the database exists and that the user may connect and create in it"
)
_LINE: Final[dict[str, Any]] = {
    "connect_timeout": 10,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,  # milliseconds: a server that is gone without a word
    "fallback_application_name": "sfumato ledger",
}

_POSTGRES_DATASET: Final = "(body::json ->> 'dataset')"
_POSTGRES_REQUEST: Final = "(body::json ->> 'request')"
_ENTRIES: Final = "sfumato_ledger.entries"
_OUTCOMES: Final = "sfumato_ledger.outcomes"
_POSTGRES_SCHEMA: Final = f"""
CREATE SCHEMA sfumato_ledger;
CREATE TABLE sfumato_ledger.about (version integer NOT NULL);
INSERT INTO sfumato_ledger.about VALUES ({_POSTGRES_VERSION});
CREATE TABLE {_ENTRIES} (
    seq bigint PRIMARY KEY, body text NOT NULL, previous text NOT NULL, hash text NOT NULL);
CREATE INDEX by_dataset ON {_ENTRIES} ({_POSTGRES_DATASET}, seq);
CREATE UNIQUE INDEX by_request ON {_ENTRIES} ({_POSTGRES_DATASET}, {_POSTGRES_REQUEST})
    WHERE {_POSTGRES_REQUEST} IS NOT NULL;
CREATE TABLE {_OUTCOMES} (
    dataset text NOT NULL, request text NOT NULL, payload bytea NOT NULL,
    PRIMARY KEY (dataset, request));
CREATE FUNCTION sfumato_ledger.refuse() RETURNS trigger LANGUAGE plpgsql
    AS $$ BEGIN RAISE EXCEPTION 'append-only'; END $$;
CREATE TRIGGER entries_stay BEFORE UPDATE OR DELETE OR TRUNCATE ON {_ENTRIES}
    EXECUTE FUNCTION sfumato_ledger.refuse();
CREATE TRIGGER outcomes_stay BEFORE UPDATE OR DELETE OR TRUNCATE ON {_OUTCOMES}
    EXECUTE FUNCTION sfumato_ledger.refuse();
REVOKE UPDATE, DELETE, TRUNCATE ON {_ENTRIES}, {_OUTCOMES} FROM PUBLIC, CURRENT_USER;
"""


class PostgresTransaction(Transaction):
    """The rows and outcomes of one open transaction."""

    _entries = _ENTRIES
    _outcomes = _OUTCOMES
    _dataset = _POSTGRES_DATASET
    _request = _POSTGRES_REQUEST

    def check_structure(self) -> None:
        """Refuse tables of another version; the server itself watches over its pages."""
        versions = self.execute("SELECT version FROM sfumato_ledger.about").fetchall()
        if versions != [(_POSTGRES_VERSION,)]:
            raise corrupt(
                "format version", f"it is not {_POSTGRES_VERSION}, which this version reads"
            )

    def exists(self) -> bool:
        """Whether there is a ledger in the database, by the catalog, which is never stale."""
        named = "schemaname || '.' || tablename"
        sql = f"SELECT EXISTS (SELECT FROM pg_catalog.pg_tables WHERE {named} = ?)"
        (exists,) = self.execute(sql, _ENTRIES).fetchone()
        return bool(exists)

    def create(self, first: Row) -> None:
        """Make the tables, with their first row."""
        self.execute(_POSTGRES_SCHEMA)
        self.append(first)

    def execute(self, sql: str, *values: Any) -> Any:
        """Run one statement with ``?`` for values; a cursor over its result."""
        return self._connection.execute(sql.replace("?", "%s").encode(), values or None)


class PostgresStore(Store):
    """A ledger in a database.

    Args:
        address: Like postgresql://user@host/database, without a password.
    """

    def __init__(self, address: str) -> None:
        self._address, self.location = address, _location(address)
        self._connection: Connection[Any] | None = None
        super().__init__()

    def reading(self) -> AbstractContextManager[PostgresTransaction]:
        """A view for reading."""
        return self._transaction("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")

    def writing(self) -> AbstractContextManager[PostgresTransaction]:
        """A view for writing, alone; durable once left, undone if left by an error."""
        return self._transaction(
            f"BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL lock_timeout = '{_POSTGRES_BUSY}'; "
            "SET LOCAL synchronous_commit = on",
            f"SELECT pg_advisory_xact_lock({_LOCK})",
        )

    def close(self) -> None:
        """Release the connection; it is made again when used."""
        with self.lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def after_fork_in_child(self) -> None:
        """Never use, nor close, a connection of the parent."""
        _inherited.append(self._connection)
        self._connection = None

    @contextmanager
    def _transaction(self, *begin: str) -> Iterator[PostgresTransaction]:
        with self.lock, _plain_postgres_errors(self.location):
            try:  # an interrupt may come as soon as a lock is had
                connection = self._begun(*begin)
                yield PostgresTransaction(connection)
                if connection.execute("COMMIT").statusmessage != "COMMIT":
                    raise _unusable(self.location, "the transaction was undone", _POSTGRES_ADVICE)
            except BaseException:
                with suppress(Exception):  # a lost connection has rolled back already
                    if self._connection is not None:
                        self._connection.execute("ROLLBACK")
                raise

    def _begun(self, *begin: str) -> "Connection[Any]":
        """A connection in a new transaction; one that was lost meanwhile is made again."""
        import psycopg

        if self._connection is not None and not self._connection.closed:
            try:
                return self._run_all(self._connection, begin)
            except psycopg.OperationalError:
                if self._connection is None:  # busy, not lost
                    raise
        self._connection = psycopg.connect(
            self._address,
            autocommit=True,
            prepare_threshold=None,  # a pooler may hand every transaction to another session
            **_LINE,
        )
        return self._run_all(self._connection, begin)

    def _run_all(
        self, connection: "Connection[Any]", statements: tuple[str, ...]
    ) -> "Connection[Any]":
        """Begin; a connection that lives and could not begin is given up, being half begun."""
        try:
            for statement in statements:
                connection.execute(statement.encode())
        except BaseException:
            if not connection.closed:
                self.close()
            raise
        return connection


def _location(address: str) -> str:
    """Where an address leads, for messages and anchors."""
    try:
        from psycopg import Error, conninfo
    except ModuleNotFoundError:
        raise InputError(
            "a ledger in PostgreSQL needs psycopg, which is not installed. Install "
            "sfumato[postgres]."
        ) from None
    try:
        parts = conninfo.conninfo_to_dict(address)
    except Error:
        raise InputError(
            "the ledger's address can't be read; it looks like postgresql://user@host/database, "
            "with %40 for @ in names."
        ) from None
    if {"password", "sslpassword"} & set(parts):
        raise InputError(
            "a password does not belong into the ledger's address, which reports and lists of "
            "processes show. Set PGPASSWORD or write it into ~/.pgpass."
        )
    host, port = parts.get("host") or "", parts.get("port")
    server = f"{host}:{port}" if port else f"{host}"
    return f"postgresql://{server}/{parts.get('dbname') or ''}"


@contextmanager
def _plain_postgres_errors(location: str) -> Iterator[None]:
    import psycopg

    try:
        yield
    except SfumatoError:
        raise
    except psycopg.IntegrityError:
        raise corrupt("database structure", "an entry is there already") from None
    except psycopg.errors.UndefinedTable:
        raise corrupt("database structure", "its tables are gone") from None
    except psycopg.errors.LockNotAvailable:
        raise _unusable(
            location, f"others were writing for {_POSTGRES_BUSY}", _POSTGRES_ADVICE
        ) from None
    except psycopg.Error as error:
        kind = type(error).__name__
        state = f" {error.sqlstate}" if error.sqlstate else ""
        raise _unusable(location, f"{kind}{state}", _POSTGRES_ADVICE) from None
