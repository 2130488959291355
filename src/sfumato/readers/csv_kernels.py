"""The compiled part of the CSV reader: where fields begin and end, and their text.

Strict RFC 4180 with the liberties everyone takes: any line ending, spaces around a quoted field,
blank lines between records of several fields. A quote inside an unquoted field is text. What does
not fit is a status and a line number, never a value.
"""

from typing import Final

import numpy as np
from numba import njit
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
Indices = NDArray[np.int64]

GOOD: Final = 0  # the statuses of a text
RAGGED: Final = 1  # a record has more or fewer fields than the header
AFTER_QUOTE: Final = 2  # text follows a closing quote
UNCLOSED: Final = 3  # a quote is never closed
_CUT: Final = 4  # the text ends inside a record and more of the file is to come

_QUOTE: Final = 34  # these are codes of ASCII
_SPACE: Final = 32  # ASCII
_LF: Final = 10  # ASCII
_CR: Final = 13  # ASCII


@njit(cache=True, nogil=True)
def split_records(
    text: Bytes,
    final: bool,
    delimiter: int,
    n_fields: int,
    slots: Indices,
    begins: Indices,
    ends: Indices,
) -> tuple[int, int, int, int, int]:
    """Find the fields of as many whole records as there are and as fit.

    Args:
        text: bytes that begin at the start of a record.
        final: whether the file ends with ``text``; else its last record may be cut.
        delimiter: the byte between fields.
        n_fields: how many fields each record must have; 0 for any number.
        slots: for each field the row of ``begins`` and ``ends`` to write to, or -1.
        begins: (slot, record): where a field's text begins.
        ends: (slot, record): where it ends; as -1 - end where it holds doubled quotes.

    Returns:
        Status, number of records, their bytes, their lines, fields of the last record. After
        an error, all but the fields are about the records before it.
    """
    at = records = lines = fields = 0
    while records < begins.shape[1] and at < text.size:
        ending = _line_ending(text, at, final)
        if ending < 0:
            break
        if ending > 0 and n_fields != 1:  # a blank line; of one field it is a row without a value
            at, lines = at + ending, lines + 1
            continue
        status, end, fields, passed = _record(
            text, at, final, delimiter, slots, begins[:, records], ends[:, records]
        )
        if status == _CUT:
            break
        if status == GOOD and n_fields > 0 and fields != n_fields:
            status = RAGGED
        if status != GOOD:
            return status, records, at, lines, fields
        at, lines, records = end, lines + passed, records + 1
    return GOOD, records, at, lines, fields


@njit(cache=True, nogil=True)
def unquoted_size(begins: Indices, ends: Indices) -> int:
    """An upper bound of the bytes that ``copy_fields`` writes."""
    total = 0
    for record in range(begins.size):
        end = ends[record] if ends[record] >= 0 else -1 - ends[record]
        total += end - begins[record]
    return total


@njit(cache=True, nogil=True)
def copy_fields(
    text: Bytes, begins: Indices, ends: Indices, out: Bytes, offsets: NDArray[np.int32]
) -> None:
    """Write the text of one column's fields one after the other, doubled quotes made single."""
    written = 0
    offsets[0] = 0
    for record in range(begins.size):
        doubled = ends[record] < 0
        end = -1 - ends[record] if doubled else ends[record]
        at = begins[record]
        while at < end:
            out[written] = text[at]
            written += 1
            at += 2 if doubled and text[at] == _QUOTE else 1
        offsets[record + 1] = written


@njit(cache=True, nogil=True, inline="always")
def _record(
    text: Bytes,
    at: int,
    final: bool,
    delimiter: int,
    slots: Indices,
    begins: Indices,
    ends: Indices,
) -> tuple[int, int, int, int]:
    """The fields of the record at ``at``: status, where it ends, its fields and its lines."""
    fields = lines = 0
    while True:
        status, begin, end, at, passed = _field(text, at, final, delimiter)
        if status != GOOD:
            return status, at, fields, lines
        if fields < slots.size and slots[fields] >= 0:
            begins[slots[fields]] = begin
            ends[slots[fields]] = end
        fields, lines = fields + 1, lines + passed
        if at < text.size and text[at] == delimiter:
            at += 1
            continue
        ending = _line_ending(text, at, final)
        status = _CUT if ending < 0 else GOOD
        return status, at + ending, fields, lines + 1


@njit(cache=True, nogil=True, inline="always")
def _field(text: Bytes, at: int, final: bool, delimiter: int) -> tuple[int, int, int, int, int]:
    """One field: status, begin, end, the index after it, and the line ends in it."""
    size, begin = text.size, at
    while at < size and text[at] == _SPACE:
        at += 1
    if at < size and text[at] == _QUOTE:
        return _quoted_field(text, at + 1, final, delimiter)
    while at < size and text[at] != delimiter and text[at] != _LF and text[at] != _CR:
        at += 1
    status = GOOD if at < size or final else _CUT
    return status, begin, at, at, 0


@njit(cache=True, nogil=True)
def _quoted_field(
    text: Bytes, begin: int, final: bool, delimiter: int
) -> tuple[int, int, int, int, int]:
    """The rest of a field after its opening quote; as ``_field``."""
    size, at, lines, doubled = text.size, begin, 0, False
    while True:
        while at < size and text[at] != _QUOTE:
            # CR LF counts once, at the LF
            lines += text[at] == _LF or (
                text[at] == _CR and not (at + 1 < size and text[at + 1] == _LF)
            )
            at += 1
        if at == size:
            return (UNCLOSED if final else _CUT), begin, at, at, lines
        if at + 1 < size and text[at + 1] == _QUOTE:
            doubled = True
            at += 2
            continue
        end = -1 - at if doubled else at
        at += 1
        while at < size and text[at] == _SPACE:
            at += 1
        if at == size:
            return (GOOD if final else _CUT), begin, end, at, lines
        ended = text[at] == delimiter or text[at] == _LF or text[at] == _CR
        return (GOOD if ended else AFTER_QUOTE), begin, end, at, lines


@njit(cache=True, nogil=True, inline="always")
def _line_ending(text: Bytes, at: int, final: bool) -> int:
    """The bytes of the line ending at ``at``: 0 if there is none, -1 if it may be cut."""
    if at >= text.size:
        return 0 if final else -1
    if text[at] == _LF:
        return 1
    if text[at] != _CR:
        return 0
    if at + 1 == text.size:
        return 1 if final else -1
    return 2 if text[at + 1] == _LF else 1
