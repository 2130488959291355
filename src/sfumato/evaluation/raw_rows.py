"""A table's rows as values, not codes: numbers as they are written, other columns by their codes.

They are held in memory; of a very large table some rows, at random. Exact and sensitive.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sfumato.counting.exact_counts import count_marginals
from sfumato.evaluation.rows import PERMUTED, RESAMPLED
from sfumato.randomness import Rng
from sfumato.readers.source import RawTable
from sfumato.schema import Schema
from sfumato.schema.raw_values import NUMERIC

MOST_VALUES: Final = 30_000_000
"""Rows times columns that are held; of a larger table as many rows as that allows."""


@dataclass(frozen=True, kw_only=True, eq=False)
class RawRows:
    """Columns of one length. Internal: they are the table itself."""

    schema: Schema
    columns: Mapping[str, NDArray[Any]]
    """Floats for numbers, days and moments, with ``NaN`` for no value; else codes."""
    unfit: Mapping[str, int]
    """For each column, of how many values the schema has no place for."""
    of: int
    """How many rows the table has; these may be some of them, at random."""

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return len(next(iter(self.columns.values())))

    @property
    def numbers(self) -> tuple[str, ...]:
        """The columns of numbers, days and moments."""
        return tuple(column.name for column in self.schema if isinstance(column, NUMERIC))

    @property
    def groups(self) -> tuple[str, ...]:
        """The other columns."""
        return tuple(column.name for column in self.schema if not isinstance(column, NUMERIC))

    def at(self, order: Mapping[str, NDArray[np.int64]] | NDArray[np.int64]) -> "RawRows":
        """The rows at these indices, or for each column at its own."""
        own = order if isinstance(order, Mapping) else dict.fromkeys(self.columns, order)
        return replace(self, columns={n: each[own[n]] for n, each in self.columns.items()})


def read_raw(table: RawTable, *, rng: Rng) -> RawRows:
    """The rows of a table; of more than ``MOST_VALUES`` allows some, at random."""
    schema, names = table.schema, table.schema.names
    rows = int(count_marginals(table, [()])[()].sum())
    share = min(1.0, MOST_VALUES / max(1, rows * len(names)))
    read: dict[str, list[NDArray[Any]]] = {name: [] for name in names}
    unfit, of = dict.fromkeys(names, 0), 0
    for batch in table.raw_rows(names):
        size = len(batch[names[0]][0])
        some = slice(None) if share == 1 else rng.uniform(size) < share
        for name in names:
            values, odd = batch[name]
            read[name].append(values[some])
            unfit[name] += int(np.count_nonzero(odd[some]))
        of += size
    none: NDArray[Any] = np.empty(0)
    columns = {n: np.concatenate(parts) if parts else none for n, parts in read.items()}
    return RawRows(schema=schema, columns=_typed(schema, columns), unfit=unfit, of=of)


def raw_baselines(rows: RawRows, names: Sequence[str], *, rng: Rng) -> Iterator[RawRows]:
    """Rows with every column permuted, and rows drawn with replacement: one at a time."""
    n = rows.rows
    for name in names:
        if name == PERMUTED:
            yield rows.at({each: rng.permutation(n) for each in rows.columns})
        elif name == RESAMPLED:
            yield rows.at(rng.below(n, n))


def _typed(schema: Schema, columns: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Codes in as few bytes as they came, also of an empty table."""
    return {
        name: values if values.size or isinstance(schema[name], NUMERIC) else values.astype(int)
        for name, values in columns.items()
    }
