"""One query that groups a table by several sets of columns, in the SQL that most warehouses share.

Columns are called c0, c1, ... in it, so that no name of a table's column stands in a place where
it could do harm; what a column is, a warehouse says by an expression of its own.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from sfumato.schema import Marginal

_MASK_COLUMNS: Final = 31
"""PostgreSQL's ``GROUPING`` takes no more."""


@dataclass(frozen=True)
class Grouping:
    """The different rows of each set of columns, and how many rows of the table are like each."""

    sets: tuple[Marginal, ...]

    @cached_property
    def columns(self) -> Marginal:
        """All columns of the sets, each once."""
        return tuple(dict.fromkeys(name for names in self.sets for name in names))

    def sql(self, expressions: Mapping[str, str], table: str) -> str:
        """The query: all columns, the number of rows, then the masks that tell the sets apart.

        Args:
            expressions: what gives the values of a column, in the SQL of the warehouse.
            table: its name, quoted.

        >>> Grouping((("age",),)).sql({"age": '"age"'}, "people")
        'SELECT c0, count(*) FROM (SELECT "age" AS c0 FROM people) AS t GROUP BY c0'
        """
        named = (f"{expressions[name]} AS {self._short(name)}" for name in self.columns)
        masks = [f"GROUPING({self._list(names)})" for names in self._masked]
        chosen = ", ".join([self._list(self.columns), "count(*)", *masks])
        sets = ", ".join(f"({self._list(names)})" for names in self.sets)
        by = f"GROUPING SETS ({sets})" if masks else self._list(self.columns)
        return f"SELECT {chosen} FROM (SELECT {', '.join(named)} FROM {table}) AS t GROUP BY {by}"

    def split(self, batch: pa.RecordBatch) -> Iterator[tuple[Marginal, pa.RecordBatch]]:
        """The rows of an answer by their set: its columns and the number of rows."""
        rows = batch.column(len(self.columns))
        masks = batch.columns[len(self.columns) + 1 :]
        for names in self.sets:
            values = [batch.column(self.columns.index(name)) for name in names]
            part = pa.RecordBatch.from_arrays([*values, rows], names=[*names, ""])
            if masks:
                same = map(pc.equal, masks, self._masks(names))
                part = part.filter(reduce(pc.and_, same))
            if part.num_rows:
                yield names, part

    @property
    def _masked(self) -> Sequence[Marginal]:
        """The columns of each mask: none where one set needs none."""
        if len(self.sets) == 1:
            return ()
        starts = range(0, len(self.columns), _MASK_COLUMNS)
        return [self.columns[start : start + _MASK_COLUMNS] for start in starts]

    def _masks(self, names: Marginal) -> list[int]:
        """A bit for each column, the last one the lowest: 1 where the set lacks it."""
        return [
            int("".join("01"[name not in names] for name in masked), 2) for masked in self._masked
        ]

    def _list(self, names: Marginal) -> str:
        return ", ".join(map(self._short, names))

    def _short(self, name: str) -> str:
        return f"c{self.columns.index(name)}"
