"""Data frames in memory: pandas, Polars, pyarrow, and whatever else speaks Arrow.

They come in through ``__arrow_c_stream__``, the protocol they share; only the requested columns
are converted, and batches are views of the frame where it is in Arrow's form already.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Literal

import pyarrow as pa

from sfumato.counting.table import BATCH_ROWS
from sfumato.errors import InputError, TableError
from sfumato.readers.source_table import require_unique
from sfumato.readers.value_texts import by_value, is_absent
from sfumato.schema import Marginal

_OBJECTS: Final = ("object", "Object", "Int128", "UInt128")
"""Types of columns whose values Arrow has no common type for."""


@dataclass(frozen=True, eq=False)
class Frame:
    """A frame whose columns can be read more than once."""

    frame: Any
    types_follow_rows: ClassVar[Literal[True]] = True

    def names(self) -> tuple[str, ...]:
        """The columns, each once; names that are not text can't be in a schema."""
        frame = self.frame
        names = frame.schema.names if _is_arrow(frame) else list(frame.columns)
        require_unique(sorted(map(str, names)), where=self.describe())
        return tuple(name for name in names if isinstance(name, str))

    def batches(self, columns: Marginal) -> Iterator[pa.RecordBatch]:
        """The named columns as Arrow has them; of Python objects each value by itself."""
        objects = {name: values for name in columns if (values := self._objects(name)) is not None}
        plain = [name for name in columns if name not in objects]
        first = 0
        try:
            for batch in self._plain_batches(plain):
                rows = slice(first, first + batch.num_rows)
                arrays = dict(zip(plain, batch.columns, strict=True))
                arrays |= {name: by_value(values[rows]) for name, values in objects.items()}
                yield pa.RecordBatch.from_arrays([arrays[c] for c in columns], list(columns))
                first += batch.num_rows
        except UnicodeError:  # its message quotes values, as those below do
            raise TableError(
                f"{self.describe()}: a text holds half of a character (a lone surrogate) and is "
                "no UTF-8. Replace it, for example with .encode('utf-8', 'replace')."
            ) from None
        except (pa.ArrowException, TypeError, OverflowError):
            raise TableError(
                f"{self.describe()}: a column holds values of several types that Arrow can't hold "
                "together. Convert it to text first."
            ) from None

    def _plain_batches(self, columns: list[str]) -> Iterator[pa.RecordBatch]:
        """Columns that have a type; without any, batches that have rows only."""
        if columns:
            frame = self.frame
            chosen = frame.select(columns) if _is_arrow(frame) else frame[columns]
            for batch in pa.RecordBatchReader.from_stream(chosen):
                for start in range(0, batch.num_rows, BATCH_ROWS):
                    yield batch.slice(start, BATCH_ROWS).select(columns)
            return
        for start in range(0, len(self.frame), BATCH_ROWS):
            rows = min(BATCH_ROWS, len(self.frame) - start)
            yield pa.RecordBatch.from_struct_array(pa.array([{}] * rows, pa.struct([])))

    def _objects(self, name: str) -> list[Any] | None:
        """The values of a column of Python objects, or of categories that are; else None.

        Of texts alone None as well: Arrow reads each of them as it stands.
        """
        column: Any = None if _is_arrow(self.frame) else self.frame[name]
        entries = _entries(column)
        if str(getattr(entries, "dtype", "")) not in _OBJECTS:
            return None
        if all(type(value) is str or is_absent(value) for value in entries):
            return None
        return list(column)

    def describe(self) -> str:
        """Which kind of frame it is."""
        kind = type(self.frame)
        return f"{kind.__module__.split('.')[0]} {kind.__name__}"


def as_frame(value: Any) -> Frame:
    """The source that a data frame is, or an error that says what can be opened."""
    if isinstance(value, pa.RecordBatchReader):
        raise InputError(
            "a stream of batches can be read only once, but a table is read several times. Pass "
            "reader.read_all(), or write it to a Parquet file first."
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
            f"this {type(value).__name__} is no table of named columns that Arrow can hold. Pass "
            "a data frame."
        ) from None


def _entries(column: Any) -> Any:
    """A column's values, or the categories that they are of: Arrow gives those one type too."""
    categories = getattr(getattr(column, "dtype", None), "categories", None)
    return column if categories is None else categories


def _is_arrow(value: Any) -> bool:
    return isinstance(value, pa.Table)
