"""The ledger in a PostgreSQL database, for teams: append-only, one writer at a time, durable.

Writers queue up at an advisory lock, which ends with their transaction, however that ends. Triggers
refuse changes, and the owner of the tables gives the right to make any away. What the driver says
may quote values: it is never passed on. Passwords belong into PGPASSWORD or ~/.pgpass.
"""

import os
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

from sfumato.errors import InputError, SfumatoError, StorageError
from sfumato.ledger.entries import Row, corrupt

if TYPE_CHECKING:
    from psycopg import Connection

"""With one slash, too: that is what a path makes of an address."""
_VERSION: Final = 2
_LOCK: Final = 0x5366756D6C656467  # "Sfumledg"
_BUSY: Final = "60s"
_LINE: Final[dict[str, Any]] = {
    "connect_timeout": 10,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,  # milliseconds: a server that is gone without a word
    "fallback_application_name": "sfumato ledger",
}

# The indexes read dataset and request from the body itself: there is no second copy to disagree.
_DATASET: Final = "(body::json ->> 'dataset')"
_REQUEST: Final = "(body::json ->> 'request')"
_ENTRIES: Final = "sfumato_ledger.entries"
_OUTCOMES: Final = "sfumato_ledger.outcomes"
_ROW: Final = f"SELECT seq, body, previous, hash FROM {_ENTRIES}"
_SCHEMA: Final = f"""
CREATE SCHEMA sfumato_ledger;
CREATE TABLE sfumato_ledger.about (version integer NOT NULL);
INSERT INTO sfumato_ledger.about VALUES ({_VERSION});
CREATE TABLE {_ENTRIES} (
    seq bigint PRIMARY KEY, body text NOT NULL, previous text NOT NULL, hash text NOT NULL);
CREATE INDEX by_dataset ON {_ENTRIES} ({_DATASET}, seq);
CREATE UNIQUE INDEX by_request ON {_ENTRIES} ({_DATASET}, {_REQUEST})
    WHERE {_REQUEST} IS NOT NULL;
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


class PostgresTransaction:
    """The rows and outcomes of one open transaction."""

    def __init__(self, connection: "Connection[Any]") -> None:
        self._connection = connection

    def head(self) -> Row | None:
        """The last row."""
        return self._row(f"{_ROW} ORDER BY seq DESC LIMIT 1")

    def at(self, seq: int) -> Row | None:
        """The row with this number."""
        return self._row(f"{_ROW} WHERE seq = %s", seq)

    def latest(self, dataset: str) -> Row | None:
        """The last row of a dataset."""
        return self._row(f"{_ROW} WHERE {_DATASET} = %s ORDER BY seq DESC LIMIT 1", dataset)

    def with_request(self, dataset: str, request: str) -> Row | None:
        """The row that paid for a request."""
        return self._row(f"{_ROW} WHERE {_DATASET} = %s AND {_REQUEST} = %s", dataset, request)

    def rows(self) -> Iterator[Row]:
        """All rows in order."""
        for found in self._run(f"{_ROW} ORDER BY seq"):
            yield Row(*found)

    def append(self, row: Row) -> None:
        """Add the next row."""
        values = row.seq, row.body, row.previous, row.hash
        self._run(f"INSERT INTO {_ENTRIES} VALUES (%s, %s, %s, %s)", *values)

    def outcome(self, dataset: str, request: str) -> bytes | None:
        """What was kept for a request."""
        sql = f"SELECT payload FROM {_OUTCOMES} WHERE dataset = %s AND request = %s"
        found = self._run(sql, dataset, request).fetchone()
        return None if found is None else bytes(found[0])

    def outcomes(self) -> Iterator[tuple[str, str, bytes]]:
        """All that was kept: dataset, request and content."""
        for dataset, request, payload in self._run(f"SELECT * FROM {_OUTCOMES}"):
            yield dataset, request, bytes(payload)

    def keep_outcome(self, dataset: str, request: str, payload: bytes) -> None:
        """Keep an outcome; there is none yet."""
        self._run(f"INSERT INTO {_OUTCOMES} VALUES (%s, %s, %s)", dataset, request, payload)

    def check_structure(self) -> None:
        """Refuse tables of another version; the server itself watches over its pages."""
        found = self._run("SELECT version FROM sfumato_ledger.about").fetchall()
        if found != [(_VERSION,)]:
            raise corrupt("format version", f"it is not {_VERSION}, which this version reads")

    def exists(self) -> bool:
        """Whether there is a ledger in the database; asked of the catalog, which is never stale."""
        named = "schemaname || '.' || tablename"
        sql = f"SELECT EXISTS (SELECT FROM pg_catalog.pg_tables WHERE {named} = %s)"
        (found,) = self._run(sql, _ENTRIES).fetchone()
        return bool(found)

    def create(self, first: Row) -> None:
        """Make the tables, with their first row."""
        self._run(_SCHEMA)
        self.append(first)

    def _row(self, sql: str, *values: Any) -> Row | None:
        found = self._run(sql, *values).fetchone()
        return Row(*found) if found else None

    def _run(self, sql: str, *values: Any) -> Any:
        return self._connection.execute(sql.encode(), values or None)


class PostgresStorage:
    """A ledger in a database.

    Args:
        address: Like postgresql://user@host/database, without a password.
    """

    _connection: "Connection[Any] | None"

    def __init__(self, address: str) -> None:
        self._address, self.place = _taken_apart(address)
        self._begin_anew()
        _storages.add(self)

    @contextmanager
    def reading(self) -> Iterator[PostgresTransaction]:
        """A view for reading."""
        with self._transaction("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY") as view:
            yield view

    @contextmanager
    def writing(self) -> Iterator[PostgresTransaction]:
        """A view for writing, alone; durable once left, undone if left by an error."""
        with self._transaction(
            f"BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL lock_timeout = '{_BUSY}'; "
            "SET LOCAL synchronous_commit = on",
            f"SELECT pg_advisory_xact_lock({_LOCK})",
        ) as view:
            yield view

    def close(self) -> None:
        """Let go of the connection; it is made again when used."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def begin_anew_in_child(self) -> None:
        """After a fork, in the child: never use, nor close, what belongs to the parent."""
        _inherited.append(self._connection)
        self._begin_anew()

    def _begin_anew(self) -> None:
        self._lock = threading.RLock()
        self._connection = None

    @contextmanager
    def _transaction(self, *begin: str) -> Iterator[PostgresTransaction]:
        with self._lock, _plain_errors(self.place):
            try:  # an interrupt may come as soon as a lock is had
                connection = self._begun(*begin)
                yield PostgresTransaction(connection)
                if connection.execute("COMMIT").statusmessage != "COMMIT":
                    raise _unusable(self.place, "the transaction was undone")
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


def _taken_apart(address: str) -> tuple[str, str]:
    """The address for the driver, and where it leads, for messages and anchors."""
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
    where = f"{host}:{port}" if port else f"{host}"
    return address, f"postgresql://{where}/{parts.get('dbname') or ''}"


@contextmanager
def _plain_errors(place: str) -> Iterator[None]:
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
        raise _unusable(place, f"others were writing for {_BUSY}") from None
    except psycopg.Error as error:
        kind = type(error).__name__
        state = f" {error.sqlstate}" if error.sqlstate else ""
        raise _unusable(place, f"{kind}{state}") from None


def _unusable(place: str, problem: str) -> StorageError:
    return StorageError(
        f"the ledger {place} can't be used: {problem}. Make sure that the server runs, that the "
        "database exists and that the user may connect and create in it"
    )


_storages: "weakref.WeakSet[PostgresStorage]" = weakref.WeakSet()
_inherited: "list[Connection[Any] | None]" = []


def _after_fork() -> None:
    for storage in list(_storages):
        storage.begin_anew_in_child()


if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
    os.register_at_fork(after_in_child=_after_fork)
