"""The ledger in a PostgreSQL database, for teams: append-only, one writer at a time, durable.

Writers queue up at an advisory lock, which ends with their transaction, however that ends. Triggers
refuse changes, and the owner of the tables gives the right to make any away. What the driver says
may quote values: it is never passed on. Passwords belong into PGPASSWORD or ~/.pgpass.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

from sfumato.errors import InputError, SfumatoError, StorageError
from sfumato.ledger.entries import Row, corrupt
from sfumato.ledger.transactions import Store, Transaction

if TYPE_CHECKING:
    from psycopg import Connection

_VERSION: Final = 2
"""Of the tables below; those of another version are refused."""
_LOCK: Final = 0x5366756D6C656467
"""The number of the advisory lock: "Sfumledg"."""
_BUSY: Final = "60s"
"""How long a writer waits for others, who take milliseconds."""
_LINE: Final[dict[str, Any]] = {
    "connect_timeout": 10,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,  # milliseconds: a server that is gone without a word
    "fallback_application_name": "sfumato ledger",
}

_DATASET: Final = "(body::json ->> 'dataset')"
_REQUEST: Final = "(body::json ->> 'request')"
_ENTRIES: Final = "sfumato_ledger.entries"
_OUTCOMES: Final = "sfumato_ledger.outcomes"
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


class PostgresTransaction(Transaction):
    """The rows and outcomes of one open transaction."""

    _entries = _ENTRIES
    _outcomes = _OUTCOMES
    _dataset = _DATASET
    _request = _REQUEST

    def check_structure(self) -> None:
        """Refuse tables of another version; the server itself watches over its pages."""
        versions = self.execute("SELECT version FROM sfumato_ledger.about").fetchall()
        if versions != [(_VERSION,)]:
            raise corrupt("format version", f"it is not {_VERSION}, which this version reads")

    def exists(self) -> bool:
        """Whether there is a ledger in the database, by the catalog, which is never stale."""
        named = "schemaname || '.' || tablename"
        sql = f"SELECT EXISTS (SELECT FROM pg_catalog.pg_tables WHERE {named} = ?)"
        (exists,) = self.execute(sql, _ENTRIES).fetchone()
        return bool(exists)

    def create(self, first: Row) -> None:
        """Make the tables, with their first row."""
        self.execute(_SCHEMA)
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
            f"BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL lock_timeout = '{_BUSY}'; "
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
        with self.lock, _plain_errors(self.location):
            try:  # an interrupt may come as soon as a lock is had
                connection = self._begun(*begin)
                yield PostgresTransaction(connection)
                if connection.execute("COMMIT").statusmessage != "COMMIT":
                    raise _unusable(self.location, "the transaction was undone")
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
def _plain_errors(location: str) -> Iterator[None]:
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
        raise _unusable(location, f"others were writing for {_BUSY}") from None
    except psycopg.Error as error:
        kind = type(error).__name__
        state = f" {error.sqlstate}" if error.sqlstate else ""
        raise _unusable(location, f"{kind}{state}") from None


def _unusable(location: str, problem: str) -> StorageError:
    return StorageError(
        f"the ledger {location} can't be used: {problem}. Make sure that the server runs, that the "
        "database exists and that the user may connect and create in it"
    )


_inherited: "list[Connection[Any] | None]" = []
"""Connections of a parent: never closed here."""
