"""Types of PostgreSQL as the other readers give them: what SQL to ask for, what can't be read.

Each value is turned by itself, so that what a row says never depends on the rows beside it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

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
