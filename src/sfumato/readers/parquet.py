"""Parquet files through pyarrow, which decodes plain columns at a fifth of DuckDB's cost."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from sfumato.counting.table import BATCH_ROWS
from sfumato.errors import StorageError, TableError
from sfumato.readers.locations import ALWAYS_BYTES, MOST_TIMES
from sfumato.readers.source_table import require_unique
from sfumato.schema import Marginal

_READ_BYTES = 256 * 2**10
"""Read from the disk at once."""


@dataclass(frozen=True)
class ParquetFile:
    """A Parquet file; text comes as dictionaries, so that each value is translated once."""

    path: Path
    groups: tuple[int, ...] | None = None
    """The groups of rows to read, if not all."""
    types_follow_rows: ClassVar[Literal[True]] = True

    def names(self) -> tuple[str, ...]:
        """The columns, each once."""
        names = tuple(self._fields.names)
        require_unique(names, where=str(self.path))
        return names

    def batches(self, columns: Marginal) -> Iterator[pa.RecordBatch]:
        """The named columns as the file has them."""
        texts = [name for name in columns if _is_text(self._fields.field(name).type)]
        with self._errors(), self._open(texts) as file:
            self._refuse_bomb(_unpacked_bytes(file.metadata))
            # one thread: others encode and count what this one decodes
            chosen = {"columns": list(columns), "row_groups": self.groups, "use_threads": False}
            for batch in file.iter_batches(BATCH_ROWS, **chosen):
                batch.validate(full=True)  # a damaged page may point beside its dictionary
                self._refuse_bomb(max(map(_text_bytes, batch.columns)))
                yield batch.select(columns)

    def describe(self) -> str:
        """The path."""
        return str(self.path)

    @cached_property
    def _fields(self) -> pa.Schema:
        with self._errors(), self._open([]) as file:
            return file.schema_arrow

    def _open(self, dictionaries: list[str]) -> pq.ParquetFile:
        return pq.ParquetFile(
            self.path,
            read_dictionary=dictionaries,
            pre_buffer=False,  # it would hold the whole file
            buffer_size=_READ_BYTES,
        )

    def _refuse_bomb(self, unpacked: int) -> None:
        """Refuse to unpack far more bytes than the file has: one text may stand for all rows."""
        if unpacked > max(ALWAYS_BYTES, MOST_TIMES * self.path.stat().st_size):
            raise TableError(
                f"{self.path} unpacks to more than {MOST_TIMES} times its size and "
                f"{ALWAYS_BYTES:,} bytes. If it is a table all the same, write it without "
                "compression, or leave the long texts out."
            )

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """What pyarrow says may quote data: only that it failed is passed on."""
        try:
            yield
        except (pa.ArrowException, UnicodeDecodeError):  # names that are not text
            message = (
                f"{self.path} is not a Parquet file that can be read: damaged, encrypted or of "
                "another format."
            )
            raise TableError(message) from None
        except OSError as error:
            reason = error.strerror or "the file is damaged"
            raise StorageError(f"can't read {self.path}: {reason}") from None


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _unpacked_bytes(metadata: Any) -> int:
    """The bytes of the largest group of rows, as the file itself declares them."""
    groups = (metadata.row_group(index) for index in range(metadata.num_row_groups))
    return max((group.total_byte_size for group in groups), default=0)


def _text_bytes(values: pa.Array) -> int:
    """The bytes of a column's texts if each row had its own; 0 for what is no dictionary."""
    if not pa.types.is_dictionary(values.type) or not _is_text(values.type.value_type):
        return 0
    lengths = pc.binary_length(values.dictionary)
    longest = pc.max(lengths).as_py() or 0
    if longest * len(values) <= ALWAYS_BYTES:
        return longest * len(values)
    return pc.sum(lengths.take(values.indices)).as_py() or 0
