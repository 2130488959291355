"""The ledger in one SQLite file: append-only by triggers, on the disk when a commit returns.

The file is created complete under its name, so two processes may create it at once. Nothing here
opens it but SQLite: closing any descriptor of a file drops all locks that the process has on it. A
rollback journal, unlike a write-ahead log, keeps every finished spend in the file itself and needs
no lock between transactions. A ledger in memory, for simulation and tests, is the same database.
"""

import sqlite3
import weakref
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Final

from sfumato.durable import write_file
from sfumato.errors import StorageError
from sfumato.ledger.entries import Row, corrupt
from sfumato.ledger.transactions import Store, Transaction

_APPLICATION_ID: Final = 0x5366756D
"""Names the program in the file's header: "Sfum"."""
_SCHEMA_VERSION: Final = 2
"""Of the tables below; a file of another version is refused."""
_BUSY_S: Final = 60.0
"""How long a transaction waits for those of other processes, which take milliseconds."""
_DAMAGED: Final = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_ERROR}

_DATASET: Final = "json_extract(body, '$.dataset')"
_REQUEST: Final = "json_extract(body, '$.request')"
_SCHEMA: Final = f"""
CREATE TABLE entries (
    seq INTEGER PRIMARY KEY, body TEXT NOT NULL, previous TEXT NOT NULL, hash TEXT NOT NULL);
CREATE INDEX by_dataset ON entries ({_DATASET}, seq);
CREATE UNIQUE INDEX by_request ON entries ({_DATASET}, {_REQUEST}) WHERE {_REQUEST} IS NOT NULL;
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
PRAGMA user_version = {_SCHEMA_VERSION};
"""


class SqliteTransaction(Transaction):
    """The rows and outcomes of one open transaction."""

    _dataset = _DATASET
    _request = _REQUEST

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
        with self.lock, _plain_errors(self._path):
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
    with _plain_errors(path), suppress(FileExistsError):
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
        connection.executescript(_SCHEMA)
        return connection.serialize()


def _connect(path: Path) -> sqlite3.Connection:
    if not path.stat().st_size:
        raise corrupt("file format", f"{path} is empty")
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode=rw",
        uri=True,
        timeout=_BUSY_S,
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
        if version != _SCHEMA_VERSION:
            raise corrupt(
                "format version", f"it is {version}, this version reads {_SCHEMA_VERSION}"
            )
    except BaseException:
        connection.close()
        raise
    return connection


@contextmanager
def _plain_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
        if code == sqlite3.SQLITE_NOTADB:
            raise corrupt("file format", f"{path} is not a SQLite file") from error
        if code in _DAMAGED or isinstance(error, sqlite3.IntegrityError):
            raise corrupt("database structure", str(error)) from error
        raise _unusable(path, str(error)) from error
    except UnicodeDecodeError as error:  # of SQLite's own words about it, too
        raise corrupt("database structure", "a text in it is not UTF-8") from error
    except OSError as error:
        raise _unusable(path, error.strerror or str(error)) from error


def _unusable(path: Path, problem: str) -> StorageError:
    return StorageError(
        f"the ledger {path} can't be used: {problem}. Make sure that its directory exists, can be "
        "written and has space, or name another ledger"
    )


_inherited: list[sqlite3.Connection | None] = []
"""Connections of a parent: never closed here."""
