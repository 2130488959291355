"""Rows beside the person they belong to, in an embedded database: bounds the rows of each person.

No extension is ever downloaded and private rows never spill to a temporary file.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final

import duckdb
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.errors import InputError

_CONFIG: Final[dict[str, Any]] = {
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "python_enable_replacements": False,  # a table name never means a Python variable
    "temp_directory": "",
}


def connect() -> duckdb.DuckDBPyConnection:
    """A connection of our own, in memory, that fetches nothing and leaves no file behind."""
    return duckdb.connect(":memory:", config=_CONFIG)


class RowStore:
    """Rows of codes beside the person they belong to; bounds the rows of each person."""

    def __init__(self) -> None:
        self._connection = connect()
        self._width: int | None = None

    def add(self, codes: Sequence[NDArray[Any]], people: pa.Array) -> None:
        """Add a batch of rows."""
        names = [f"c{index}" for index in range(len(codes))]
        batch = pa.RecordBatch.from_arrays([*map(pa.array, codes), people], [*names, "person"])
        self._connection.register("batch", batch)
        verb = "INSERT INTO rows" if self._width is not None else "CREATE TABLE rows AS"
        self._run(f"{verb} SELECT * FROM batch")
        self._connection.unregister("batch")
        self._width = len(codes)

    def bound(self, max_rows: int) -> None:
        """Drop all but ``max_rows`` rows of each person; see ``BoundedTable`` for which."""
        if self._width is None:
            return
        row = ", ".join(f"c{index}" for index in range(self._width))
        self._run(
            f"CREATE TABLE bounded AS SELECT {row} FROM rows QUALIFY row_number() OVER "
            f"(PARTITION BY person ORDER BY hash(person, {row}), {row}) <= {int(max_rows)}"
        )
        self._run("DROP TABLE rows")

    def batches(self, columns: Sequence[int], *, rows: int) -> Iterator[pa.RecordBatch]:
        """Some columns of the rows that were not dropped, in batches of at most ``rows`` rows."""
        if self._width is None:
            return
        chosen = ", ".join(f"c{int(index)}" for index in columns)
        relation = self._connection.cursor().sql(f"SELECT {chosen} FROM bounded")
        yield from relation.to_arrow_reader(rows)

    def _run(self, statement: str) -> None:
        try:
            self._connection.execute(statement)
        except duckdb.OutOfMemoryException:
            raise InputError(
                "bounding the rows of each person needs more memory than there is. Bound the rows "
                "before, or use a larger machine."
            ) from None
