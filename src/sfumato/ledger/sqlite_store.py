"""The ledger in one SQLite file: append-only by triggers, on the disk when a commit returns.

The file is born complete (written aside, then linked to its name), so two processes may create
it at once. Nothing here opens it but SQLite: closing any descriptor of a file drops all locks
that the process has on it. A rollback journal, unlike a write-ahead log, keeps every finished
spend in the file itself and needs no lock between transactions.
"""

import os
import sqlite3
import threading
import weakref
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from sfumato.durable import write_file
from sfumato.errors import StorageError
from sfumato.ledger.entries import Row, corrupt

_APPLICATION_ID = 0x5366756D  # "Sfum"
_SCHEMA_VERSION = 2
_BUSY_S = 60.0
_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_ERROR}

# The indexes read dataset and request from the body itself: there is no second copy to disagree.
_DATASET = "json_extract(body, '$.dataset')"
_REQUEST = "json_extract(body, '$.request')"
_ROW = "SELECT seq, body, previous, hash FROM entries"
_SCHEMA = f"""
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


class SqliteTransaction:
    """The rows and outcomes of one open transaction."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def head(self) -> Row | None:
        """The last row."""
        return self._row(f"{_ROW} ORDER BY seq DESC LIMIT 1")

    def at(self, seq: int) -> Row | None:
        """The row with this number."""
        return self._row(f"{_ROW} WHERE seq = ?", seq)

    def latest(self, dataset: str) -> Row | None:
        """The last row of a dataset."""
        return self._row(f"{_ROW} WHERE {_DATASET} = ? ORDER BY seq DESC LIMIT 1", dataset)

    def with_request(self, dataset: str, request: str) -> Row | None:
        """The row that paid for a request."""
        return self._row(f"{_ROW} WHERE {_DATASET} = ? AND {_REQUEST} = ?", dataset, request)

    def rows(self) -> Iterator[Row]:
        """All rows in order."""
        for found in self._connection.execute(f"{_ROW} ORDER BY seq"):
            yield Row(*found)

    def append(self, row: Row) -> None:
        """Add the next row."""
        self._connection.execute(
            "INSERT INTO entries (seq, body, previous, hash) VALUES (?, ?, ?, ?)",
            (row.seq, row.body, row.previous, row.hash),
        )

    def outcome(self, dataset: str, request: str) -> bytes | None:
        """What was kept for a request."""
        sql = "SELECT payload FROM outcomes WHERE dataset = ? AND request = ?"
        found = self._connection.execute(sql, (dataset, request)).fetchone()
        return None if found is None else _bytes(found[0])

    def outcomes(self) -> Iterator[tuple[str, str, bytes]]:
        """All that was kept: dataset, request and content."""
        for *key, payload in self._connection.execute("SELECT * FROM outcomes"):
            yield (*key, _bytes(payload))

    def keep_outcome(self, dataset: str, request: str, payload: bytes) -> None:
        """Keep an outcome; there is none yet."""
        values = (dataset, request, payload)
        self._connection.execute("INSERT INTO outcomes VALUES (?, ?, ?)", values)

    def check_structure(self) -> None:
        """Refuse a file whose pages or indexes are damaged."""
        (answer,) = self._connection.execute("PRAGMA integrity_check(1)").fetchone()
        if answer != "ok":
            raise corrupt("database structure", str(answer))

    def _row(self, sql: str, *values: Any) -> Row | None:
        found = self._connection.execute(sql, values).fetchone()
        return Row(*found) if found else None


class SqliteStorage:
    """A ledger file."""

    _connection: sqlite3.Connection | None
    _finalizer: "weakref.finalize[[], SqliteStorage] | None"

    def __init__(self, path: Path) -> None:
        self._path = path
        self._begin_anew()
        _storages.add(self)

    @contextmanager
    def reading(self) -> Iterator[SqliteTransaction]:
        """A view for reading."""
        with self._lock, _plain_errors(self._path):
            connection = self._connected()
            try:  # an interrupt may come as soon as a lock is had
                connection.execute("BEGIN")
                yield SqliteTransaction(connection)
            finally:
                _roll_back(connection)

    @contextmanager
    def writing(self) -> Iterator[SqliteTransaction]:
        """A view for writing, alone; durable once left, undone if left by an error."""
        with self._lock, _plain_errors(self._path):
            connection = self._connected()
            try:
                connection.execute("BEGIN IMMEDIATE")
                yield SqliteTransaction(connection)
                connection.execute("COMMIT")
            finally:
                _roll_back(connection)

    def close(self) -> None:
        """Let go of the file; it opens itself again when used."""
        with self._lock:
            if self._finalizer:
                self._finalizer()
                self._connection, self._finalizer = None, None

    def pause(self) -> None:
        """Before a fork: parent and child each open the file again; locks are not inherited."""
        self._lock.acquire()
        if self._connection is not None and not self._connection.in_transaction:
            self.close()

    def resume(self) -> None:
        """After a fork, in the parent."""
        self._lock.release()

    def begin_anew_in_child(self) -> None:
        """After a fork, in the child: never use, nor close, what belongs to the parent."""
        if self._finalizer:
            self._finalizer.detach()
            _inherited.append(self._connection)
        self._begin_anew()

    def _begin_anew(self) -> None:
        self._lock = threading.RLock()
        self._connection, self._finalizer = None, None
        self._inode = (0, 0)

    def _connected(self) -> sqlite3.Connection:
        """The connection; a spend must not go astray into a file that lost its name."""
        inode = _inode(self._path)
        if self._connection is None:
            self._connection, self._inode = _connect(self._path), inode
            self._finalizer = weakref.finalize(self, self._connection.close)
        if self._inode != inode:
            raise corrupt("file", "another one took its name while the ledger was open")
        return self._connection


def create(path: Path, first: Row) -> None:
    """Make a ledger file with its first row; if somebody else just did, theirs stands."""
    with _plain_errors(path), closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(_SCHEMA)
        SqliteTransaction(connection).append(first)
        connection.commit()
        with suppress(FileExistsError):
            write_file(path, connection.serialize(), mode=0o600, new=True)


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


def _bytes(payload: Any) -> bytes:
    if not isinstance(payload, bytes):
        raise corrupt("outcomes", "one of them is of another type")
    return payload


def _roll_back(connection: sqlite3.Connection) -> None:
    if connection.in_transaction:
        connection.execute("ROLLBACK")


def _inode(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_dev, found.st_ino


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


_storages: "weakref.WeakSet[SqliteStorage]" = weakref.WeakSet()
_inherited: list[sqlite3.Connection | None] = []


class _Forks:
    """Nobody is in the middle of a transaction, or has the file open, while a process forks."""

    def __init__(self) -> None:
        self._begin_anew()

    def _begin_anew(self) -> None:
        self._one_at_a_time = threading.RLock()
        self._paused: list[SqliteStorage] = []

    def before(self) -> None:
        self._one_at_a_time.acquire()
        self._paused = list(_storages)
        for storage in self._paused:
            storage.pause()

    def after_in_parent(self) -> None:
        for storage in self._paused:
            storage.resume()
        self._paused = []
        self._one_at_a_time.release()

    def after_in_child(self) -> None:
        for storage in list(_storages):
            storage.begin_anew_in_child()
        self._begin_anew()


if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
    _forks = _Forks()
    os.register_at_fork(
        before=_forks.before,
        after_in_parent=_forks.after_in_parent,
        after_in_child=_forks.after_in_child,
    )
