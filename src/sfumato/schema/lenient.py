"""Values that can't be read as their column's kind, found so that they can be counted apart.

Each value is judged by itself: what one row says never depends on the rows beside it.
"""

import re
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.schema.columns import Column, Date, DateTime, Integer, Number
from sfumato.schema.formats import pattern
from sfumato.schema.times import is_text
from sfumato.schema.values import NUMBER

Read = Callable[[pa.Array], NDArray[np.bool_] | None]
"""Which of some values can be read, None for all; or an Arrow error, if one of them can't."""

_WHOLE: Final = r"^-?[0-9]{1,19}(\.0*)?$"
_LARGEST: Final = 2.0**62


def readable(column: Column, values: pa.Array, read: Read) -> pa.Array:
    """The same values, null where one can't be read.

    Args:
        column: What they should be.
        values: Of any type; of texts each different one is tried once.
        read: Tries values, all at once.
    """
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    if not is_text(values.type):
        return _without(values, _fits(column, values, read))
    entries = values.dictionary_encode()
    fits = _fits(column, entries.dictionary, read)
    if fits.all():
        return values
    kept = pc.fill_null(pa.array(fits).take(entries.indices), False)
    return pc.if_else(kept, values, pa.scalar(None, values.type))


def _without(values: pa.Array, fits: NDArray[np.bool_]) -> pa.Array:
    if not fits.any():
        return pa.nulls(len(values))  # of a type that every kind of column reads
    return values if fits.all() else pc.if_else(pa.array(fits), values, None)


def _fits(column: Column, values: pa.Array, read: Read) -> NDArray[np.bool_]:
    """Which values can be read: those that look so are tried, in halves where one fails."""
    looks = _looks(column, values)
    if looks is None:
        return _tried(values, read)
    places = np.flatnonzero(looks)
    fits = np.zeros(len(values), dtype=np.bool_)
    fits[places] = _tried(values.take(pa.array(places)), read)
    return fits


def _tried(values: pa.Array, read: Read) -> NDArray[np.bool_]:
    try:
        known = read(values)
    except pa.ArrowNotImplementedError:  # for no value of this type
        return np.zeros(len(values), dtype=np.bool_)
    except pa.ArrowInvalid:
        if len(values) < 2:
            return np.zeros(len(values), dtype=np.bool_)
        middle = len(values) // 2
        return np.concatenate([_tried(values[:middle], read), _tried(values[middle:], read)])
    return np.ones(len(values), dtype=np.bool_) if known is None else known


def _looks(column: Column, values: pa.Array) -> NDArray[np.bool_] | None:
    """Which values look as if they could be read; None where that is not told in advance."""
    written = _pattern(column)
    if is_text(values.type) and written is not None:
        found: Any = pc.match_substring_regex(pc.utf8_trim_whitespace(values), written)
    elif pa.types.is_floating(values.type) and isinstance(column, Integer):
        whole = pc.equal(pc.floor(values), values)
        found = pc.and_(whole, pc.less(pc.abs(values), _LARGEST))
    else:
        return None
    return np.from_dlpack(pc.fill_null(found, True).cast(pa.uint8())).view(np.bool_)


def _pattern(column: Column) -> str | None:
    if isinstance(column, Integer):
        return _WHOLE
    if isinstance(column, Number):
        return NUMBER
    if isinstance(column, Date):
        return _plain(pattern(column.format or "%Y-%m-%d"))
    if isinstance(column, DateTime) and column.format is not None:
        return _plain(pattern(column.format))
    if isinstance(column, DateTime):
        begin, offset = _plain(pattern(None)).removesuffix("?$").rsplit("(?:", 1)
        return f"{begin}$" if column.zone is None else f"{begin}(?:{offset}$"
    return None


def _plain(named: str) -> str:
    """The same pattern without names of its groups."""
    return re.sub(r"\(\?P<.>", "(?:", named)
