"""Files as they are or compressed: the end of the name says which."""

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final, cast

import pyarrow as pa

from sfumato.errors import StorageError, TableError

PACKED: Final = {".gz": "gzip", ".zst": "zstd"}


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
        TableError: it is not packed as its name says, or cut short.
    """
    packed = PACKED.get(path.suffix.lower())
    try:
        if packed == "gzip":
            with gzip.open(path, "rb") as file:
                yield cast(BinaryIO, file)
        elif packed == "zstd":
            with path.open("rb"), pa.input_stream(str(path), compression=packed) as stream:
                yield cast(BinaryIO, stream)
        else:
            with path.open("rb") as plain:
                yield plain
    except (EOFError, zlib.error, OSError) as error:
        if packed is None or (isinstance(error, OSError) and error.errno is not None):
            raise StorageError(f"can't read {path}: {getattr(error, 'strerror', None)}") from None
        raise TableError(
            f"{path} is not a complete {packed} file. Nothing was published and nothing was spent."
        ) from None
