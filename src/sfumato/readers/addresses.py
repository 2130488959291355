"""Addresses of tables as text: ``postgresql://user@host/database::schema.table``, ``spark::name``.

An address may carry a password. What is shown of one is only where it leads; nothing here repeats
a text that it could not take apart.
"""

import re
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import unquote

from sfumato.errors import InputError

SCHEMES: Final = ("postgresql://", "postgres://")
SPARK: Final = "spark::"
"""Before the name of a table, or the path of Parquet files, that Spark is to read."""
_FORM: Final = "postgresql://user@host:5432/database::schema.table"
_SECRETS: Final = ("password", "sslpassword", "oauth_client_secret")
_SHOWN: Final = ("host", "port", "service")
"""Parameters that say where the server is."""
_HOST: Final = r"(\[[\w.:%]+\]|[\w.%-]*)(:[0-9]*)?"
_HOSTS: Final = re.compile(rf"{_HOST}(,{_HOST})*")


@dataclass(frozen=True, kw_only=True)
class Address:
    """Where a table is, and how to get there."""

    server: str = field(repr=False)
    """What the database library takes; secret."""
    place: str
    """The server and the database, without user, password and most parameters."""
    table: str | None
    """As it was given; None where none was."""
    parameters: frozenset[str]
    """Names of the parameters after the question mark."""
    has_password: bool

    @property
    def shown(self) -> str:
        """The address as it may stand in a message."""
        return self.place if self.table is None else f"{self.place}::{self.table}"


def is_address(text: str) -> bool:
    """Whether a text is meant as the address of a database rather than as a path."""
    return text.lower().startswith(SCHEMES)


def parse(text: str) -> Address:
    """The parts of an address; the name of the table is what follows the first ``::``.

    >>> parse("postgresql://ada:geheim@db.example:5433/clinic::visits").shown
    'postgresql://db.example:5433/clinic::visits'
    """
    body = text.partition("://")[2]
    authority, rest = _cut(body, "/?")
    path_and_query, mark, table = rest.partition("::")
    path, query = _cut(path_and_query, "?")
    login, _, host = authority.rpartition("@")
    if not is_address(text) or not text.isprintable():
        raise _refused("it is none")
    if "@" in login + path_and_query or not _HOSTS.fullmatch(host):
        raise _refused("the host can't be told. Percent-encode names and passwords (%40 for @)")
    given = dict(part.partition("=")[::2] for part in unquote(query[1:]).split("&") if part)
    if mark and not table:
        raise _refused("no table stands after the two colons")
    if any(name in given for name in _SECRETS):
        raise _refused("a secret stands among its parameters. Set PGPASSWORD or use ~/.pgpass")
    kept = "&".join(f"{name}={given[name]}" for name in _SHOWN if name in given)
    return Address(
        server=f"postgresql://{authority}{path_and_query}",
        place=f"postgresql://{host}{path or '/'}" + (f"?{kept}" if kept else ""),
        table=table if mark else None,
        parameters=frozenset(given),
        has_password=":" in login,
    )


def has_password(text: str) -> bool:
    """Whether a text is an address that carries a secret, or one that can't be read safely."""
    if not is_address(text):
        return False
    try:
        return parse(text).has_password
    except InputError:
        return True


def shown(text: str) -> str:
    """A path or address as it may stand in a message: of an address, only where it leads."""
    if not is_address(text):
        return text
    try:
        return parse(text).shown
    except InputError:
        return "postgresql://..."


def _cut(text: str, marks: str) -> tuple[str, str]:
    """A text before the first of some characters, and the rest from it on."""
    places = [text.index(mark) for mark in marks if mark in text]
    place = min(places, default=len(text))
    return text[:place], text[place:]


def _refused(why: str) -> InputError:
    return InputError(
        f"a database address looks like {_FORM}; the given one is not repeated here: {why}."
    )
