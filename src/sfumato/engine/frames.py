"""Data frames in memory: pandas, Polars, pyarrow, and whatever else speaks Arrow.

They come in through ``__arrow_c_stream__``, the protocol they share; only the columns asked for
are converted, and batches are views of the frame where it is in Arrow's form already.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

import pyarrow as pa

from sfumato.errors import InputError, TableError
from sfumato.schema import Marginal

_SIMPLE = (str, bool, int, float, date, datetime)
_NOTHING_DONE = "Nothing was published and nothing was spent."


@dataclass(frozen=True, eq=False)
class Frame:
    """A frame that can be asked for its columns and read more than once."""

    frame: Any

    def names(self) -> tuple[str, ...]:
        """The columns, each once; names that are not text can't be in a schema."""
        frame = self.frame
        names = frame.schema.names if _is_arrow(frame) else list(frame.columns)
        twice = sorted({str(name) for name in names if names.count(name) > 1})
        if twice:
            raise TableError(
                f"{self.describe()}: these column names stand twice: {', '.join(twice)}. "
                f"Rename one of each. {_NOTHING_DONE}"
            )
        return tuple(name for name in names if isinstance(name, str))

    def batches(self, columns: Marginal) -> Iterator[pa.RecordBatch]:
        """The named columns as Arrow has them."""
        wanted = list(columns)
        chosen = self.frame.select(wanted) if _is_arrow(self.frame) else self.frame[wanted]
        for name in wanted:
            self._require_one_kind(name)
        try:
            yield from pa.RecordBatchReader.from_stream(chosen)
        except UnicodeError:  # its message quotes values, as those below do
            raise TableError(
                f"{self.describe()}: a text holds half of a character (a lone surrogate) and is no "
                f"UTF-8. Replace it, for example with .encode('utf-8', 'replace'). {_NOTHING_DONE}"
            ) from None
        except (pa.ArrowException, TypeError, OverflowError):
            raise TableError(
                f"{self.describe()}: a column holds values of several types that Arrow can't "
                f"hold together. Convert it to text first. {_NOTHING_DONE}"
            ) from None

    def _require_one_kind(self, name: str) -> None:
        """Refuse a column of Python objects of several kinds, or of a kind with a hidden scale.

        Arrow would choose one type for all of them, so that one row could change how every other
        row reads, and no sensitivity would hold.
        """
        values: Any = None if _is_arrow(self.frame) else _entries(self.frame[name])
        if str(getattr(values, "dtype", "")) != "object":
            return
        kinds = {type(value) for value in values if not _is_absent(value)}
        if len(kinds) > 1 or not kinds <= set(_SIMPLE) or _has_zones(values, kinds):
            raise TableError(
                f"{self.describe()}: column {name!r} holds Python objects of several kinds, or of "
                f"a kind that is not plain text, number, truth value or date. Convert it to one "
                f"kind, for example with .astype(str). {_NOTHING_DONE}"
            )

    def describe(self) -> str:
        """Which kind of frame it is."""
        kind = type(self.frame)
        return f"{kind.__module__.split('.')[0]} {kind.__name__}"


def as_frame(value: Any) -> Frame:
    """The source that a data frame is, or an error that says what can be opened."""
    if isinstance(value, pa.RecordBatchReader):
        raise InputError(
            "a stream of batches can be read only once, but a table is read several times. "
            "Nothing was read. Pass reader.read_all(), or write it to a Parquet file first."
        )
    if not hasattr(value, "__arrow_c_stream__") and not isinstance(value, pa.RecordBatch):
        raise InputError(
            "a table is a path, a pandas, Polars or pyarrow data frame or a DuckDB relation, "
            f"got {type(value).__name__}"
        )
    if isinstance(value, pa.RecordBatch):
        value = pa.Table.from_batches([value])
    if not _is_arrow(value) and not (hasattr(value, "columns") and hasattr(value, "__getitem__")):
        value = _as_arrow(value)
    return Frame(value)


def _as_arrow(value: Any) -> pa.Table:
    try:
        return pa.table(value)
    except pa.ArrowException:  # one column without a name, or a type that Arrow lacks
        raise InputError(
            f"this {type(value).__name__} is no table of named columns that Arrow can hold. "
            "Nothing was read. Pass a data frame."
        ) from None


def _entries(column: Any) -> Any:
    """A column's values, or the categories that they are of: Arrow gives those one type too."""
    categories = getattr(getattr(column, "dtype", None), "categories", None)
    return column if categories is None else categories


def _is_absent(value: Any) -> bool:
    return value is None or (isinstance(value, float) and value != value) or _is_not_a_time(value)


def _is_not_a_time(value: Any) -> bool:
    return type(value).__name__ in ("NAType", "NaTType")


def _has_zones(column: Any, kinds: set[type]) -> bool:
    """Whether some of a column's times carry a time zone."""
    return datetime in kinds and any(
        value.tzinfo is not None for value in column if isinstance(value, datetime)
    )


def _is_arrow(value: Any) -> bool:
    return isinstance(value, pa.Table)
