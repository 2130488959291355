"""A table whose columns on a grid are divided into public bins: a change of each row by itself."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NoReturn

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.counting.exact_counts import MarginalCounts
from sfumato.counting.table import CodeBatch, FoldKernel, MapKernel, Table
from sfumato.errors import InputError
from sfumato.schema import Marginal, Schema
from sfumato.schema.codes import code_type
from sfumato.schema.columns import Column, GridColumn

LISTED_CELLS: Final = 2**20
"""The most cells of which the bin of each is listed, which stays in the second-level cache; in
more, bins are searched."""
FINE_CELLS: Final = 2**24
"""The most cells of all divided columns that are counted at once, by single values: 128 MB."""


class BinnedTable:
    """Another table's rows with some columns divided into bins.

    What one row says depends on that row alone, so neighboring tables stay neighbors.
    """

    def __init__(self, whole: Table, bins: Mapping[str, tuple[int, ...]]) -> None:
        self._whole = whole
        self._schema = whole.schema.with_bins(bins)
        self._divisions = {
            name: _division(whole.schema[name], self._schema[name], own)
            for name, own in bins.items()
        }

    @property
    def schema(self) -> Schema:
        """The columns with their bins."""
        return self._schema

    @property
    def max_rows(self) -> int | None:
        """The most rows of one person that are left, if they were bounded."""
        return self._whole.max_rows

    def fold(self, kernel: FoldKernel) -> NDArray[np.int64]:
        """The sum of the kernel over all rows: exact, sensitive."""
        divisions = self._for(kernel.columns)
        return self._whole.fold(_Folded(kernel, divisions) if divisions else kernel)

    def map(self, kernel: MapKernel) -> Iterator[pa.RecordBatch]:
        """The kernel on each batch, in the order of the rows."""
        divisions = self._for(kernel.columns)
        return self._whole.map(_Mapped(kernel, divisions) if divisions else kernel)

    def bounded(self, column: str, max_rows: int) -> NoReturn:
        """Refused: rows of a person are chosen before values are divided."""
        raise InputError("bound the rows of each person before columns are divided into bins")

    def validate(self) -> None:
        """Read everything once."""
        self._whole.validate()

    def describe(self) -> str:
        """Where the rows come from, for messages."""
        return self._whole.describe()

    def misfits(self) -> tuple[str, ...]:
        """What did not fit of the rows that were read so far."""
        return self._whole.misfits()

    def _for(self, columns: Marginal) -> dict[str, "Division"]:
        return {name: self._divisions[name] for name in columns if name in self._divisions}


@dataclass(frozen=True, eq=False)
class Division:
    """The bin of each code of a column."""

    starts: NDArray[np.int64]
    """The first cell of each bin, and the code of a missing value, which stays by itself."""
    kind: Any
    """The type of the bins' codes."""
    listed: NDArray[Any] | None = field(default=None)
    """The bin of each code, where they are few."""

    def apply(self, codes: NDArray[Any]) -> NDArray[Any]:
        """Codes of cells as codes of bins."""
        if self.listed is not None:
            return np.asarray(self.listed[codes])
        return (np.searchsorted(self.starts, codes, side="right") - 1).astype(self.kind)


def _division(column: Column, divided: Column, bins: tuple[int, ...]) -> Division:
    missing = [] if column.missing_code is None else [column.missing_code]
    starts = np.array([*bins, *missing], dtype=np.int64)
    kind = code_type(divided)
    if column.size > LISTED_CELLS:
        return Division(starts, kind)
    listed = np.searchsorted(starts, np.arange(column.size), side="right") - 1
    return Division(starts, kind, listed.astype(kind))


@dataclass(frozen=True, eq=False)
class _Folded:
    """A fold kernel that sees bins."""

    kernel: FoldKernel
    divisions: Mapping[str, Division]

    @property
    def columns(self) -> Marginal:
        """Those of the kernel."""
        return self.kernel.columns

    def zero(self) -> NDArray[np.int64]:
        """That of the kernel."""
        return self.kernel.zero()

    def add(self, state: NDArray[np.int64], codes: CodeBatch) -> None:
        """Add one batch, with bins in the place of cells."""
        self.kernel.add(state, _divided(codes, self.divisions))


@dataclass(frozen=True, eq=False)
class _Mapped:
    """A map kernel that sees bins."""

    kernel: MapKernel
    divisions: Mapping[str, Division]

    @property
    def columns(self) -> Marginal:
        """Those of the kernel."""
        return self.kernel.columns

    def apply(self, codes: CodeBatch) -> pa.RecordBatch:
        """The kernel on a batch with bins in the place of cells."""
        return self.kernel.apply(_divided(codes, self.divisions))


def _divided(codes: CodeBatch, divisions: Mapping[str, Division]) -> dict[str, NDArray[Any]]:
    return {
        name: divisions[name].apply(column) if name in divisions else column
        for name, column in codes.items()
    }


class FineCounts:
    """Exact counts of single columns by single values, from one pass: every division is a sum.

    Sensitive, like all exact counts; made when one of them is first needed, after a charge.
    """

    __slots__ = ("_counts", "_kernel", "_table")

    def __init__(self, table: Table) -> None:
        self._table = table
        adaptive = sorted((c for c in table.schema if c.adaptive), key=lambda column: column.size)
        sizes = np.cumsum([column.size for column in adaptive])
        fitting = [c.name for c, size in zip(adaptive, sizes, strict=True) if size <= FINE_CELLS]
        self._kernel = MarginalCounts(table.schema, tuple((name,) for name in fitting))
        self._counts: dict[Marginal, NDArray[np.int64]] | None = None

    def of(self, column: GridColumn) -> NDArray[np.int64] | None:
        """The counts of a column's bins; None where its cells are too many to be counted."""
        if (column.name,) not in self._kernel.marginals or column.bins is None:
            return None
        if self._counts is None:
            self._counts = self._kernel.parts(self._table.fold(self._kernel))
        return np.add.reduceat(
            self._counts[(column.name,)], [*column.bins, *([column.cells] * column.missing)]
        )
