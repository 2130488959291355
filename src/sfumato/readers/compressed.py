"""Files as they are or compressed: the end of the name says which.

A packed file that unpacks to much more than any table does is refused on the way: a bomb of some
kilobytes would keep the reader busy for days.
"""

import gzip
import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Final, cast

import pyarrow as pa

from sfumato.errors import StorageError, TableError

PACKED: Final = {".gz": "gzip", ".zst": "zstd"}
MOST_TIMES: Final = 250
"""A table unpacks to at most so many times its packed bytes; rows of one text reach 1,000."""
ALWAYS_BYTES: Final = 2**30
"""What is unpacked however small the file is."""
_BUFFER_BYTES: Final = 2**20


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
        found = self._stream.read(len(buffer))
        buffer[: len(found)] = found
        self._left -= len(found)
        if self._left < 0:
            raise TableError(
                f"{self._path} unpacks to more than {MOST_TIMES} times its size and "
                f"{ALWAYS_BYTES:,} bytes. If it is a table all the same, unpack it yourself."
            )
        return len(found)
