"""Parquet files that the tasks of Spark read themselves, with the reader of the embedded engine.

Spark turns columns into rows, and rows into Arrow again, before Python sees them: several times the
cost of counting. Where every machine sees the files, a task gets the names of its groups of rows
instead. Only values that need no interpretation are read so; for all else Spark reads.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.parquet as pq

from sfumato.readers.parquet import ParquetFile
from sfumato.readers.spark.tasks import Batches, Work
from sfumato.schema import Marginal

_MOST_FILES: Final = 4_096
"""The driver reads the end of each file: of more, Spark reads all."""
_MOST_BYTES: Final = 2**27
"""Of one task, as unpacked: more at once would take too much memory."""
_LEAST_BYTES: Final = 2**22
"""Of one task, as unpacked: a smaller task costs more to start than to run."""


@dataclass(frozen=True)
class FilePart:
    """Some groups of rows of a file."""

    path: str
    groups: tuple[int, ...]


Share = tuple[FilePart, ...]
"""What one task reads."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Reading:
    """Work on rows that the task reads from files itself; what comes are the indices of shares."""

    shares: tuple[Share, ...]
    columns: Marginal
    work: Work

    def run(self, batches: Batches, task: int) -> Batches:
        """What the work makes of the rows."""
        return self.work.run(self._rows(batches), task)

    def _rows(self, batches: Batches) -> Batches:
        for batch in batches:
            for index in batch.column(0).to_pylist():
                for part in self.shares[index]:
                    file = ParquetFile(Path(part.path), groups=part.groups)
                    yield from file.batches(self.columns)


@dataclass(frozen=True)
class ParquetFiles:
    """Files of one form on a file system that every machine sees."""

    schema: pa.Schema
    groups: tuple[tuple[str, int, int], ...]
    """Path, index in the file and unpacked bytes of each group of rows."""

    @classmethod
    def at(cls, addresses: Sequence[str], names: Marginal) -> "ParquetFiles | None":
        """The files that Spark lists; None if Spark had better read them itself.

        That is so if they lie elsewhere, differ from each other, are too many, can't be read, or
        have parts of rows in the names of folders.
        """
        paths = [_local(address) for address in sorted(addresses)]
        if not paths or None in paths or len(paths) > _MOST_FILES:
            return None
        try:
            footers = [(path, pq.read_metadata(path)) for path in paths if path]
            forms = [footer.schema.to_arrow_schema() for _, footer in footers]
        except (pa.ArrowException, OSError, UnicodeDecodeError):
            return None
        alike = all(form.equals(forms[0]) for form in forms)
        if not alike or tuple(forms[0].names) != names:
            return None
        groups = tuple(group for path, footer in footers for group in _groups(path, footer))
        return cls(forms[0], groups)

    def plain(self, columns: Marginal) -> bool:
        """Whether any reader takes the values of these columns for the same."""
        return all(_plain(self.schema.field(name).type) for name in columns)

    def shares(self, at_once: int) -> tuple[Share, ...]:
        """The groups of rows in their order, in shares of about equal bytes."""
        total = sum(bytes_ for _, _, bytes_ in self.groups)
        size = max(_LEAST_BYTES, min(_MOST_BYTES, -(-total // at_once)))
        shares: list[list[tuple[str, int]]] = []
        filled = size
        for path, index, bytes_ in self.groups:
            if filled >= size:
                shares.append([])
                filled = 0
            shares[-1].append((path, index))
            filled += bytes_
        return tuple(map(_by_file, shares))


def folder_keys(addresses: Sequence[str], name: str) -> set[str]:
    """Keys of folders like ``id=7`` between a path and its files, in lower case.

    >>> folder_keys(["file:/data/id=7/b=1/t.parquet"], "/data/id=7")
    {'b'}
    """
    given = _keys(urlsplit(name).path if "://" in name else str(Path(name).absolute()))
    inner = [_keys(unquote(urlsplit(address).path).rpartition("/")[0]) for address in addresses]
    return {key for keys in inner for key in keys - given}


def _keys(path: str) -> Counter[str]:
    """How many folders of a path name each key."""
    return Counter(part.partition("=")[0].lower() for part in path.split("/") if "=" in part)


def _local(address: str) -> str | None:
    """The path of a file; None if it is no plain one."""
    url = urlsplit(address)
    path = unquote(url.path)
    by_folder = any("=" in part for part in Path(path).parts[:-1])
    return None if url.scheme != "file" or url.netloc or by_folder else path


def _groups(path: str, footer: Any) -> Iterator[tuple[str, int, int]]:
    for index in range(footer.num_row_groups):
        yield path, index, footer.row_group(index).total_byte_size


def _by_file(groups: Sequence[tuple[str, int]]) -> Share:
    indices: dict[str, list[int]] = {}
    for path, index in groups:
        indices.setdefault(path, []).append(index)
    return tuple(FilePart(path, tuple(own)) for path, own in indices.items())


def _plain(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return any(
        test(kind)
        for test in (
            pa.types.is_boolean,
            pa.types.is_integer,
            pa.types.is_floating,
            pa.types.is_string,
            pa.types.is_large_string,
            pa.types.is_binary,
            pa.types.is_fixed_size_binary,
            pa.types.is_date32,
        )
    )
