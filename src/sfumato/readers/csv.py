"""CSV files, read as text: no sniffing of types, an empty field is missing, ``NA`` is text.

A reader of our own because the promises are stricter than any library's: a row that is too long
by one empty field shifts no column silently, a name like ``data*.csv`` is one file, and an error
gives the line or the byte and never the text beside it.
"""

import codecs
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.counting.table import BATCH_ROWS
from sfumato.errors import InputError, TableError
from sfumato.readers.locations import opened
from sfumato.schema import Marginal
from sfumato.schema.columns import repeated

DELIMITERS: Final = (",", ";", "\t", "|")
MAX_RECORD_BYTES: Final = 16 * 2**20
"""A longer row is a broken quote or an attack."""

_NO_FILES: Final = ("idna", "punycode", "unicode-escape", "raw-unicode-escape", "undefined")
"""Encodings of Python that no file of a table has."""
_MOST_NAMED: Final = 12  # columns in one message
_BATCH_FIELDS: Final = 2**23
"""Fields in a batch: a table of very many columns is read in fewer rows at a time."""
_CHUNK_BYTES: Final = 2 * 2**20  # of the file, read at once
_BOM: Final = "\ufeff".encode()
Bytes = NDArray[np.uint8]


@dataclass(frozen=True, kw_only=True)
class CsvFile:
    """A text file of rows; also compressed with gzip or zstd."""

    path: Path
    expected: Marginal
    """Public names that help to recognize the delimiter of the header."""
    encoding: str = "utf-8"
    delimiter: str | None = None
    """One character; None takes it from the header: comma, semicolon, tab or bar.

    Without a header it is the comma, or the tab of .tsv and .tab: a first row is private, and
    must not say how all others are read.
    """
    fields: Marginal = ()
    """The names of all fields, where the file has no header."""

    def __post_init__(self) -> None:
        if not _is_encoding(self.encoding):
            raise InputError(
                "encoding must be a text encoding like utf-8, latin-1 or utf-16, got "
                f"{self.encoding!r:.60}"
            )
        mark = self.delimiter
        if mark is not None and (len(mark) != 1 or not mark.isascii() or mark in '" \r\n\0'):
            raise InputError(f"delimiter must be one character like ',' or ';', got {mark!r}")

    def names(self) -> tuple[str, ...]:
        """The header, each name once."""
        names = self._header.names
        if twice := repeated(name for name in names if name):
            raise TableError(
                f"{self.path}, line {self._header.lines}: these column names stand twice: "
                f"{_shown(twice, names, self.expected)}. Rename one of each. If this line holds "
                "values, the file has no header: give its names."
            )
        return names

    def first_row(self) -> tuple[str, ...]:
        """The fields of the first row, whether they are names or values: not to be shown."""
        return self._header.names

    def used_delimiter(self) -> str:
        """The delimiter that is given, or that the header has."""
        return chr(self._header.delimiter)

    def batches(self, columns: Marginal) -> Iterator[pa.RecordBatch]:
        """The named columns as text."""
        from sfumato.readers.csv_kernels import GOOD, split_records

        names, header = self.names(), self._header
        slots = np.full(len(names), -1, dtype=np.int64)
        field_of = {name: field for field, name in enumerate(names)}
        slots[[field_of[name] for name in columns]] = np.arange(len(columns))
        most = min(BATCH_ROWS, max(1, _BATCH_FIELDS // len(columns)))
        begins = np.empty((len(columns), most), dtype=np.int64)
        ends = np.empty_like(begins)
        lines, skip = header.lines, header.bytes
        rest = b""
        for chunk, final in self._chunks():
            text, skip = np.frombuffer(rest + chunk, dtype=np.uint8)[skip:], 0
            while True:
                status, records, used, passed, fields = split_records(
                    text, final, header.delimiter, len(names), slots, begins, ends
                )
                lines += passed
                if records:
                    yield _as_batch(columns, text, begins[:, :records], ends[:, :records])
                if status != GOOD:
                    raise self._malformed(status, lines + 1, fields)
                text = text[used:]
                if records < most:
                    break
            rest = text.tobytes()
            if len(rest) > MAX_RECORD_BYTES:
                raise self._too_long(lines + 1)

    def describe(self) -> str:
        """The path."""
        return str(self.path)

    @cached_property
    def _header(self) -> "_Header":
        """The first record that is not blank, by the delimiter that explains it best."""
        start, final = next(self._chunks(), (b"", True))
        if not start.removeprefix(_BOM).strip():
            raise TableError(f"{self.path}: the file is empty; there is nothing to publish.")
        headers = [each for mark in self._marks() if (each := _read_header(start, final, mark))]
        if not headers:
            raise TableError(
                f"{self.path}, line 1: the header can't be read: a quote is not closed, or the "
                f"line is longer than {_CHUNK_BYTES:,} bytes."
            )
        if self.fields:
            return self._without_header(headers[0])
        expected = set(self.expected)
        return max(headers, key=lambda header: (len(expected & {*header.names}), len(header.names)))

    def _marks(self) -> tuple[str, ...]:
        """The delimiters that may be: several only where a header, which is public, can decide."""
        if self.delimiter is not None:
            return (self.delimiter,)
        if not self.fields:
            return DELIMITERS
        tabs = {suffix.lower() for suffix in self.path.suffixes} & {".tsv", ".tab"}
        return ("\t",) if tabs else (",",)

    def _without_header(self, first: "_Header") -> "_Header":
        """The declared names, where the first row has as many fields."""
        if len(first.names) != len(self.fields):
            mark = "tab" if first.delimiter == ord("\t") else repr(chr(first.delimiter))
            raise TableError(
                f"{self.path}, line 1: this row has {len(first.names)} fields, but "
                f"{len(self.fields)} names are given for a file without a header. It was read "
                f"with the delimiter {mark}: name another one with --delimiter."
            )
        return _Header(self.fields, first.delimiter, first.mark, lines=0)

    def _chunks(self) -> Iterator[tuple[bytes, bool]]:
        """The file as UTF-8, checked, in pieces; the last one is marked."""
        decoder = codecs.getincrementaldecoder(self.encoding)()
        plain = codecs.lookup(self.encoding).name == "utf-8"
        position = 0  # bytes of the file before this piece
        for chunk, final in self._raw_chunks():
            pending = len(decoder.getstate()[0])  # bytes of a character that is not complete
            try:
                text = decoder.decode(chunk, final)
                piece = chunk if plain else text.encode()  # UTF-7 may write half a character
            except UnicodeError as error:
                start = getattr(error, "start", 0)
                raise self._not_decodable(position - pending + start + 1) from None
            if (nul := text.find("\0")) >= 0:
                raise self._not_text(position + len(text[:nul].encode(self.encoding)) + 1)
            position += len(chunk)
            yield piece, final

    def _raw_chunks(self) -> Iterator[tuple[bytes, bool]]:
        with opened(self.path) as file:
            chunk = file.read(_CHUNK_BYTES)
            while chunk:
                following = file.read(_CHUNK_BYTES)
                yield chunk, not following
                chunk = following

    def _not_decodable(self, byte: int) -> TableError:
        return TableError(
            f"{self.path}, byte {byte}: not {self.encoding} text. Say which encoding the file "
            "has, for example --encoding cp1252 (Excel on Windows), --encoding latin-1 or "
            "--encoding utf-16."
        )

    def _not_text(self, byte: int) -> TableError:
        return TableError(
            f"{self.path}, byte {byte}: a NUL character. This is not a text file, or its encoding "
            f"is not {self.encoding} (try --encoding utf-16)."
        )

    def _malformed(self, status: int, line: int, fields: int) -> TableError:
        from sfumato.readers import csv_kernels

        what = {
            csv_kernels.RAGGED: f"this row has {fields} fields, but the header has "
            f"{len(self._header.names)}. Quote fields that hold the delimiter",
            csv_kernels.AFTER_QUOTE: "text follows a closing quote. Double the quotes inside a "
            "field",
            csv_kernels.UNCLOSED: "a quoted field that begins in this row is never closed",
        }[status]
        return TableError(f"{self.path}, line {line}: {what}.")

    def _too_long(self, line: int) -> TableError:
        return TableError(
            f"{self.path}, line {line}: this row is longer than {MAX_RECORD_BYTES:,} bytes. A "
            "quote may be left open."
        )


@dataclass(frozen=True)
class _Header:
    names: tuple[str, ...]
    delimiter: int
    bytes: int
    lines: int
    mark: int = 0
    """Bytes of the mark that some writers put before the first line."""


def _is_encoding(name: str) -> bool:
    """Whether a text encoding has that name."""
    try:
        "".encode(name)
        return codecs.lookup(name).name not in _NO_FILES
    except (LookupError, ValueError):
        return False


def _shown(twice: list[str], names: tuple[str, ...], known: Marginal) -> str:
    """Repeated names by their fields: if the file has no header, they are values of a person."""
    fields: dict[str, list[int]] = {name: [] for name in twice[:_MOST_NAMED]}
    for field, name in enumerate(names, 1):
        if name in fields:
            fields[name].append(field)
    texts = [
        (f"{name} " if name in known else "") + f"(fields {own[0]} and {own[1]})"
        for name, own in fields.items()
    ]
    return ", ".join(texts) + (", ..." if len(twice) > _MOST_NAMED else "")


def _read_header(start: bytes, final: bool, delimiter: str) -> _Header | None:
    """The header by one delimiter; None if no whole record can be read with it."""
    from sfumato.readers.csv_kernels import GOOD, split_records

    bom = len(_BOM) if start.startswith(_BOM) else 0
    text = np.frombuffer(start, dtype=np.uint8)[bom:]
    most = start.count(delimiter.encode()) + 1
    begins = np.zeros((most, 1), dtype=np.int64)
    ends = np.zeros_like(begins)
    status, records, used, lines, fields = split_records(
        text, final, ord(delimiter), 0, np.arange(most), begins, ends
    )
    if status != GOOD or not records:
        return None
    names = _texts(text, begins[:fields].ravel(), ends[:fields].ravel()).to_pylist()
    return _Header(tuple(name or "" for name in names), ord(delimiter), bom + used, lines, bom)


def _as_batch(
    columns: Marginal, text: Bytes, begins: NDArray[np.int64], ends: NDArray[np.int64]
) -> pa.RecordBatch:
    arrays = [_texts(text, begins[slot], ends[slot]) for slot in range(len(columns))]
    return pa.RecordBatch.from_arrays(arrays, names=list(columns))


def _texts(text: Bytes, begins: NDArray[np.int64], ends: NDArray[np.int64]) -> pa.Array:
    """Fields as an Arrow array of text, the empty ones missing."""
    from sfumato.readers.csv_kernels import copy_fields, unquoted_size

    out = np.empty(unquoted_size(begins, ends), dtype=np.uint8)
    offsets = np.empty(begins.size + 1, dtype=np.int32)
    copy_fields(text, begins, ends, out, offsets)
    present = np.packbits(offsets[1:] > offsets[:-1], bitorder="little")
    buffers = (pa.py_buffer(offsets), pa.py_buffer(out), pa.py_buffer(present))
    return pa.StringArray.from_buffers(begins.size, *buffers)
