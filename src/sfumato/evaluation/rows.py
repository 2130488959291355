"""A table's rows as arrays of codes, and tables made of them to compare a release with.

Columns permuted independently keep every column and no dependence: a release that is no better
learned nothing about pairs. Real rows resampled with replacement differ from the real table by
chance alone: a release as close as that is as good as a fresh sample. Neither is private.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.counting.binned_table import BinnedTable
from sfumato.counting.table import CodeBatch, Table
from sfumato.errors import InputError
from sfumato.randomness import Rng
from sfumato.readers.array_table import ArrayTable
from sfumato.readers.source_table import SourceTable
from sfumato.schema import Category, Marginal, Schema
from sfumato.schema.columns import Column, GridColumn

PERMUTED: Final = "permuted columns"
RESAMPLED: Final = "resampled rows"
MOST_BASELINE_CODES: Final = 200_000_000
"""Rows times columns up to which baselines are made: they are held in memory."""

Rows = Mapping[str, NDArray[Any]]
"""Codes by column, all of one length."""


def read_rows(table: Table) -> Rows:
    """All rows, in memory: exact, sensitive."""
    batches = list(table.map(_AllCodes(table.schema.names)))
    if not any(batch.num_rows for batch in batches):
        return {name: np.empty(0, dtype=np.int64) for name in table.schema.names}
    whole = pa.Table.from_batches(batches)
    return {name: whole[name].to_numpy() for name in table.schema.names}


def row_count(rows: Rows) -> int:
    """How many rows there are."""
    return len(next(iter(rows.values())))


def take(schema: Schema, rows: Rows, indices: NDArray[np.int64]) -> ArrayTable:
    """The rows with these indices, as a table."""
    return ArrayTable(schema, {name: rows[name][indices] for name in schema.names})


def regular_values(column: Column) -> int:
    """How many codes come before those of other and missing values."""
    return len(column.values) if isinstance(column, Category) else column.size - column.missing


def baseline_tables(table: Table, *, rng: Rng) -> dict[str, Table]:
    """Two tables of as many rows as the real one, the floor and the ceiling."""
    rows = read_rows(table)
    return {
        PERMUTED: permuted_columns(table.schema, rows, rng=rng),
        RESAMPLED: take(table.schema, rows, rng.below(row_count(rows), row_count(rows))),
    }


def permuted_columns(schema: Schema, rows: Rows, *, rng: Rng) -> ArrayTable:
    """Every column in an order of its own."""
    n = row_count(rows)
    return ArrayTable(schema, {name: rows[name][rng.permutation(n)] for name in schema.names})


@dataclass(frozen=True)
class _AllCodes:
    """The map kernel that leaves codes as they are."""

    columns: Marginal

    def apply(self, codes: CodeBatch) -> pa.RecordBatch:
        """The same codes, as Arrow."""
        return pa.RecordBatch.from_pydict({name: pa.array(codes[name]) for name in self.columns})


def on_bins(table: Table, schema: Schema) -> Table:
    """A table by the bins that a release found for its columns, where it declares none.

    Raises:
        InputError: It has other columns than the release.
    """
    if table.schema.columns == schema.columns:
        return table
    bins = {
        column.name: column.bins
        for column in schema
        if isinstance(column, GridColumn)
        and column.bins is not None
        and column.name in table.schema.names
        and table.schema[column.name].adaptive
    }
    if table.schema.with_bins(bins).columns != schema.columns:
        raise InputError("the table to compare with has another schema than the release")
    return table.on(schema) if isinstance(table, SourceTable) else BinnedTable(table, bins)
