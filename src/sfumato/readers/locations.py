"""Where a table is: a file, plain or compressed, or the address of a database.

``postgresql://user@host/database::schema.table`` or ``spark::name``. An address may carry a
password. What is shown of one is only where it leads; nothing here repeats a text that it could not
take apart. The end of a file's name says whether it is packed; one that unpacks to much more than
any table does is refused on the way: a bomb of some kilobytes would keep the reader busy for days.
"""

import gzip
import io
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Final, cast
from urllib.parse import unquote

import pyarrow as pa

from sfumato.errors import InputError, StorageError, TableError

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
    location: str
    """The server and the database, without user, password and most parameters."""
    table: str | None
    """As it was given; None where none was."""
    parameters: frozenset[str]
    """Names of the parameters after the question mark."""
    has_password: bool

    @property
    def shown(self) -> str:
        """The address as it may stand in a message."""
        return self.location if self.table is None else f"{self.location}::{self.table}"


def is_address(text: str) -> bool:
    """Whether a text is meant as the address of a database rather than as a path.

    As for a ledger, one slash is enough: that is what a path makes of an address.
    """
    from sfumato.ledger.storage import is_address as is_database  # loads SQLite

    return is_database(text)


def is_spark_path(name: str) -> bool:
    """Whether what stands after ``spark::`` is a path rather than the name of a table."""
    return "/" in name or name.endswith((".parquet", ".pq"))


def parse(text: str) -> Address:
    """The parts of an address; the name of the table is what follows the first ``::``.

    >>> parse("postgresql://ada:geheim@db.example:5433/clinic::visits").shown
    'postgresql://db.example:5433/clinic::visits'
    """
    if not is_address(text) or not text.isprintable():
        raise _refused("it is none")
    from sfumato.ledger.storage import whole_address  # loads SQLite

    body = whole_address(text).partition("://")[2]
    authority, rest = _cut(body, "/?")
    path_and_query, mark, table = rest.partition("::")
    path, query = _cut(path_and_query, "?")
    login, _, host = authority.rpartition("@")
    if "@" in login + path_and_query or not _HOSTS.fullmatch(host):
        raise _refused("the host is not clear. Percent-encode names and passwords (%40 for @)")
    given = dict(part.partition("=")[::2] for part in unquote(query[1:]).split("&") if part)
    if mark and not table:
        raise _refused("no table stands after the two colons")
    if any(name in given for name in _SECRETS):
        raise _refused("a secret stands among its parameters. Set PGPASSWORD or use ~/.pgpass")
    public = "&".join(f"{name}={given[name]}" for name in _SHOWN if name in given)
    return Address(
        server=f"postgresql://{authority}{path_and_query}",
        location=f"postgresql://{host}{path or '/'}" + (f"?{public}" if public else ""),
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
    end = min((text.index(mark) for mark in marks if mark in text), default=len(text))
    return text[:end], text[end:]


def _refused(why: str) -> InputError:
    return InputError(
        f"a database address looks like {_FORM}; the given one is not repeated here: {why}."
    )


PACKED: Final = {".gz": "gzip", ".zst": "zstd"}
MOST_TIMES: Final = 250
"""A table unpacks to at most this many times its packed bytes; rows of one text reach 1,000."""
ALWAYS_BYTES: Final = 2**30
"""What is unpacked however small the file is."""
_BUFFER_BYTES: Final = 2**20  # unpacked at once


def check_complete(path: Path) -> None:
    """Unpack a packed file once, for readers that take a cut one for a shorter table."""
    if path.suffix.lower() in PACKED:
        with opened(path) as file:
            while file.read(2**20):
                pass


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """The content of a file, unpacked where its name says that it is packed.

    Raises:
        StorageError: it can't be read.
        TableError: it is not packed as its name says, cut short, or a bomb.
    """
    packed = PACKED.get(path.suffix.lower())
    try:
        if packed is None:
            with path.open("rb") as plain:
                yield plain
        else:
            with path.open("rb"), _stream(path, packed) as stream:  # ours says why it can't
                yield cast(BinaryIO, io.BufferedReader(_Capped(stream, path), _BUFFER_BYTES))
    except (EOFError, zlib.error, OSError) as error:
        if packed is None or (isinstance(error, OSError) and error.errno is not None):
            raise StorageError(f"can't read {path}: {getattr(error, 'strerror', None)}") from None
        raise TableError(f"{path} is not a complete {packed} file.") from None


def _stream(path: Path, packed: str) -> Any:
    return gzip.open(path, "rb") if packed == "gzip" else pa.input_stream(str(path), packed)


class _Capped(io.RawIOBase):
    """The unpacked bytes of a file, until they are too many to be a table."""

    def __init__(self, stream: Any, path: Path) -> None:
        super().__init__()
        self._stream = stream
        self._path = path
        self._left = max(ALWAYS_BYTES, MOST_TIMES * path.stat().st_size)

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: Any) -> int:
        """The next bytes."""
        read = self._stream.read(len(buffer))
        buffer[: len(read)] = read
        self._left -= len(read)
        if self._left < 0:
            raise TableError(
                f"{self._path} unpacks to more than {MOST_TIMES} times its size and "
                f"{ALWAYS_BYTES:,} bytes. If it is a table all the same, unpack it yourself."
            )
        return len(read)
