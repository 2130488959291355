"""PostgreSQL tables and views through ADBC: Arrow batches of one snapshot, read-only.

The first look exports a snapshot; each read joins it on a connection of its own, so that all of a
run sees the same rows. What the driver says may quote values or passwords: it is never passed on.
"""

import os
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from typing import Any, Final

import pyarrow as pa

from sfumato.errors import InputError, StorageError, TableError
from sfumato.readers.locations import Address
from sfumato.readers.pushdown import Grouping
from sfumato.schema import Marginal

COLUMNS: Final = """
    SELECT a.attname::text, format_type(a.atttypid, NULL), quote_ident(a.attname),
           CASE WHEN b.typtype = 'e' OR b.typcategory = 'S' THEN 'text'
                WHEN b.typnamespace = 'pg_catalog'::regnamespace THEN b.typname::text END
    FROM pg_catalog.pg_attribute a
    CROSS JOIN LATERAL (
        WITH RECURSIVE up AS (
            SELECT t.* FROM pg_catalog.pg_type t WHERE t.oid = a.atttypid
            UNION ALL
            SELECT t.* FROM pg_catalog.pg_type t JOIN up ON t.oid = up.typbasetype
            WHERE up.typtype = 'd')
        SELECT * FROM up WHERE typtype <> 'd') b
    WHERE a.attrelid = {oid} AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
"""
"""Name, type as it is written, quoted name and base type of each column; domains looked through."""

_AS_IS: Final = "{0}"
_TEXT: Final = '{0}::text COLLATE "C"'
"""By its bytes: a collation may call texts equal that differ."""
_WITHIN: Final = (
    "CASE WHEN {{0}} > '{high}' THEN '{high}'::{type} "
    "WHEN {{0}} < '{low}' THEN '{low}'::{type} ELSE {{0}}::{type} END"
)
"""Infinity, and years that a calendar of four digits lacks, count as its first or last moment."""
_FIRST: Final = "0001-01-01"
_LAST: Final = "9999-12-31"

_SQL: Final[Mapping[str, str]] = {
    **dict.fromkeys(("bool", "int2", "int4", "int8", "float4", "float8"), _AS_IS),
    **dict.fromkeys(("text", "char", "uuid", "time"), _TEXT),
    "numeric": _TEXT.format("NULLIF({0}, 'NaN')"),
    "date": _WITHIN.format(type="date", low=_FIRST, high=_LAST),
    "timestamp": _WITHIN.format(type="timestamp", low=_FIRST, high=f"{_LAST} 23:59:59.999999"),
    "timestamptz": _WITHIN.format(
        type="timestamptz", low=f"{_FIRST} 00:00+00", high=f"{_LAST} 23:59:59.999999+00"
    ),
}


@dataclass(frozen=True, kw_only=True)
class PgColumn:
    """A column of a table, and how to ask for it."""

    name: str
    type: str
    """As PostgreSQL writes it."""
    sql: str
    """The expression that gives its values; null throughout where they can't be read."""
    readable: bool

    @classmethod
    def of(cls, name: str, written: str, quoted: str, base: str | None) -> "PgColumn":
        """A column by the type that it has, or that its domain stands for."""
        form = _SQL.get(base or "")
        sql = "NULL::text" if form is None else form.format(quoted)
        return cls(name=name, type=written, sql=sql, readable=form is not None)


_BATCH_BYTES: Final = 4 * 2**20  # of an answer, that come together
_MOST_LISTED: Final = 20  # tables in a message
_DEFAULTS: Final = {
    "connect_timeout": "10",
    "keepalives_idle": "30",  # a network that is gone is noticed in a minute, not in two hours
    "keepalives_interval": "10",
    "keepalives_count": "3",
    "fallback_application_name": "sfumato",
}
_ISOLATED: Final = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY"
_SESSION: Final = (
    "SET LOCAL client_encoding = 'UTF8'",
    "SET LOCAL idle_in_transaction_session_timeout = 0",  # the snapshot outlives long fits
)
_READING: Final = (  # rows in the same order at every read
    "SET LOCAL synchronize_seqscans = off",
    "SET LOCAL max_parallel_workers_per_gather = 0",
)
_GROUPING: Final = ("SET LOCAL work_mem = '64MB'",)  # with less it sorts all rows instead
_TABLES: Final = """
    SELECT c.oid::int8, n.nspname::text, c.relname::text, pg_table_is_visible(c.oid),
           c.relispartition, quote_ident(n.nspname) || '.' || quote_ident(c.relname)
    FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND n.nspname <> 'information_schema'
      AND n.nspname NOT LIKE 'pg\\_%' ORDER BY 2, 3
"""
_ADVICE: Final = {
    "password authentication failed": "the user or the password is not right",
    "no password supplied": "a password is needed: set PGPASSWORD or write it into ~/.pgpass",
    "could not translate host name": "there is no such host",
    "Connection refused": "no server listens there",
    "No such file or directory": "no server listens there",
    "timeout expired": "the server does not answer",
    "no pg_hba.conf entry": "the server does not let this user in from here",
    "too many clients": "the server has no connection left",
    "role ": "there is no such user, or it may not connect",
    "database ": "there is no such database, or this user may not connect to it",
    "service ": "there is no such service in the service file",
    "certificate": "the connection is not trusted: see sslmode and sslrootcert",
    "SSL": "the server and this side do not agree on encryption: see sslmode",
}
"""What the library says when it can't connect, and what we say instead; the first that fits."""


@dataclass(frozen=True, eq=False)
class PostgresTable:
    """A table or view of a PostgreSQL server; without a name, the only one."""

    address: Address

    def names(self) -> tuple[str, ...]:
        """The columns of the table."""
        return tuple(self._columns)

    def batches(self, columns: Marginal) -> Iterator[pa.RecordBatch]:
        """The named columns by their types; exact decimals, enums and names as text."""
        chosen = [self._columns[name] for name in columns]
        query = f"SELECT {', '.join(column.sql for column in chosen)} FROM {self._relation.sql}"
        for batch in self._answers(query, _READING):
            arrays = map(_or_unread, chosen, batch.columns)
            yield pa.RecordBatch.from_arrays(list(arrays), names=list(columns))

    def grouped(self, sets: Sequence[Marginal]) -> Iterator[tuple[Marginal, pa.RecordBatch]]:
        """For each set of columns its different rows, and how many there are of each."""
        grouping = Grouping(tuple(sets))
        expressions = {name: self._columns[name].sql for name in grouping.columns}
        query = grouping.sql(expressions, self._relation.sql)
        for batch in self._answers(query, _GROUPING):
            yield from grouping.split(batch)

    def describe(self) -> str:
        """The server, the database and the table; neither user nor password."""
        return f"{self.address.location}::{self._relation.sql}"

    def require_readable(self, columns: Marginal) -> None:
        """Raise if a named column, where it exists, has a type that no kind of column holds."""
        own = [self._columns[name] for name in columns if name in self._columns]
        if odd := [column for column in own if not column.readable]:
            listed = ", ".join(f"{column.name!r} ({column.type})" for column in odd)
            raise TableError(
                f"{self.describe()}: these columns have types that can't be read: {listed}. Leave "
                "them out, or make a view that turns them into text or numbers."
            )

    @cached_property
    def _relation(self) -> "_Relation":
        tables = [_Relation(*row) for row in self._ask(_TABLES)]
        listed = [each for each in tables if not each.is_partition]
        if self.address.table is None and len(listed) == 1:
            return listed[0]
        fitting = [each for each in tables if self.address.table in each.spellings]
        if len(fitting) == 1:
            return fitting[0]
        raise self._which(fitting or listed)

    @cached_property
    def _columns(self) -> Mapping[str, PgColumn]:
        rows = self._ask(COLUMNS.format(oid=self._relation.oid))
        return {column.name: column for column in (PgColumn.of(*row) for row in rows)}

    @cached_property
    def _holder(self) -> Any:
        """The connection that keeps the snapshot alive, as long as this table is."""
        driver = _driver()
        try:
            connection = driver.connect(_with_defaults(self.address))
        except driver.Error as error:
            why = _advice(str(error))
            raise StorageError(f"can't connect to {self.address.location}: {why}.") from None
        weakref.finalize(self, connection.close)
        with self._errors():
            _run(connection, _ISOLATED, *_SESSION)
        return connection

    @cached_property
    def _snapshot(self) -> str:
        return str(self._ask("SELECT quote_literal(pg_export_snapshot())")[0][0])

    def _answers(self, query: str, settings: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """What the server answers in the snapshot, on a connection of its own."""
        with self._joined() as connection:
            try:
                _run(connection, *settings)
                yield from _stream(connection, query)
            except (pa.ArrowException, OSError):  # they say no more than a text
                raise (self._broken() if _is_there(connection) else self._lost()) from None

    def _ask(self, query: str) -> list[tuple[Any, ...]]:
        """The rows that the server answers, in the snapshot."""
        with self._errors(), closing(self._holder.cursor()) as cursor:
            cursor.execute(query)
            return list(cursor.fetchall())

    @contextmanager
    def _joined(self) -> Iterator[Any]:
        """A connection that sees the snapshot; a clone knows the server's types already."""
        with self._errors(), closing(self._holder.adbc_clone()) as connection:
            _run(connection, _ISOLATED)
            try:
                _run(connection, f"SET TRANSACTION SNAPSHOT {self._snapshot}", *_SESSION)
            except _driver().Error:  # the snapshot is gone with its connection
                raise self._lost() from None
            yield connection

    @contextmanager
    def _errors(self) -> Iterator[None]:
        driver = _driver()
        try:
            yield
        except driver.Error as error:
            raise self._failed(error.sqlstate) from None

    def _failed(self, state: str | None) -> StorageError | TableError:
        """Our own words for a code of the server; none means that it did not answer."""
        if state == "42501":
            return TableError(
                f"{self.address.shown}: this user may not read it. Ask for SELECT on it."
            )
        lost = state is None or state[:2] in ("08", "40", "57")
        return self._lost() if lost else self._broken()

    def _lost(self) -> StorageError:
        return StorageError(
            f"{self.address.shown}: the connection was lost or the server ended the read, so the "
            "same rows can't be seen again. Try again."
        )

    def _broken(self) -> TableError:
        return TableError(
            f"{self.address.shown}: the server can't read all of it. Ask it for all rows with "
            "psql to see why: a view that fails or writes, text that is not UTF-8, a time limit."
        )

    def _which(self, candidates: list["_Relation"]) -> TableError:
        given, names = self.address.table, [each.sql for each in candidates]
        close = get_close_matches(given or "", [text.replace('"', "") for text in names], n=3)
        near = [text for text in names if text.replace('"', "") in close]
        listed = ", ".join(near or names[:_MOST_LISTED]) or "none that you may see"
        more = f" and {len(names) - _MOST_LISTED} more" if len(names) > _MOST_LISTED else ""
        start = "say which table to read." if given is None else f"which table is {given!r}?"
        has = "Close to it are" if near else "There are"
        return TableError(
            f"{self.address.location}: {start} Give it as DATABASE::SCHEMA.TABLE, in the same "
            f"case. {has}: {listed}{'' if near else more}."
        )


@dataclass(frozen=True)
class _Relation:
    oid: int
    schema: str
    name: str
    is_visible: bool
    is_partition: bool
    sql: str
    """Schema and name, quoted where needed."""

    @property
    def spellings(self) -> set[str]:
        """What a person may call it."""
        short = {self.name, self.sql.removeprefix(f"{self.schema}.")} if self.is_visible else set()
        return {f"{self.schema}.{self.name}", self.sql, *short}


def _driver() -> Any:
    try:
        from adbc_driver_postgresql import dbapi
    except ImportError:
        raise InputError(
            "reading PostgreSQL tables needs a driver that is not installed. Install it with: pip "
            "install 'sfumato[postgres]'"
        ) from None
    return dbapi


def _run(connection: Any, *statements: str) -> None:
    with closing(connection.cursor()) as cursor:
        for statement in statements:
            cursor.execute(statement)


def _stream(connection: Any, query: str) -> Iterator[pa.RecordBatch]:
    with closing(connection.cursor()) as cursor:
        size = {"adbc.postgresql.batch_size_hint_bytes": str(_BATCH_BYTES)}
        cursor.adbc_statement.set_options(**size)
        cursor.execute(query)
        yield from cursor.fetch_record_batch()


def _or_unread(column: PgColumn, values: pa.Array) -> pa.Array:
    """The values, or nulls of a type that names what can't be read."""
    if column.readable:
        return values
    return pa.nulls(len(values), pa.struct({column.type: pa.null()}))


def _is_there(connection: Any) -> bool:
    """Whether the server is still there after an error."""
    try:
        connection.rollback()
        _run(connection, "SELECT 1")
    except _driver().Error:
        return False
    return True


def _with_defaults(address: Address) -> str:
    given = {
        *address.parameters,
        *(["connect_timeout"] if "PGCONNECT_TIMEOUT" in os.environ else []),
    }
    added = "&".join(f"{name}={value}" for name, value in _DEFAULTS.items() if name not in given)
    return f"{address.server}{'&' if '?' in address.server else '?'}{added}"


def _advice(message: str) -> str:
    """Words of our own for the reason, as far as it is known."""
    advice = (ours for theirs, ours in _ADVICE.items() if theirs in message)
    return next(advice, "check host, port, database, user and password")
