"""Exact counts: many marginals in one pass, held in a type that does not show its numbers."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple, NoReturn

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.counting.table import CodeBatch, RowCount, Table, batch_rows
from sfumato.errors import InputError, InternalError
from sfumato.schema import Marginal, Schema
from sfumato.schema.codes import Codes, code_type
from sfumato.schema.measurement import Coarse

MAX_CELLS = 200_000_000
"""Cells counted in one pass, all marginals together: 1.6 GB of counters."""


class ExactCounts:
    """Exact counts of some marginals: sensitive. Only the curator may look inside.

    It prints no number, turns into no array and can be neither pickled nor written as JSON.
    """

    __slots__ = ("_by_marginal",)

    def __init__(self, by_marginal: dict[Marginal, NDArray[np.int64]]) -> None:
        self._by_marginal = by_marginal

    def __getitem__(self, marginal: Marginal) -> NDArray[np.int64]:
        """The counts of one marginal, in its shape, read-only; the empty one has a single cell."""
        return self._by_marginal[marginal]

    @property
    def marginals(self) -> tuple[Marginal, ...]:
        """What was counted."""
        return tuple(self._by_marginal)

    def __repr__(self) -> str:
        return f"<exact counts of {len(self._by_marginal)} marginals: sensitive, not shown>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("exact counts are sensitive and stay in this process")


@dataclass(frozen=True, eq=False)
class MarginalCounts:
    """The fold kernel that counts marginals, of single codes or of groups of codes.

    Each code becomes its group before it is counted: the full table of two columns with very many
    values would not fit in memory.
    """

    schema: Schema
    """Of what is counted: that of the groups, for columns that have them."""
    marginals: tuple[Marginal, ...]
    groups: Mapping[str, Codes] = field(default_factory=dict)
    """By column, the group of each of the table's codes."""

    @staticmethod
    def of_view(view: Coarse, marginals: tuple[Marginal, ...]) -> "MarginalCounts":
        """Marginals of a coarser view; groups in the smallest type, as codes are."""
        types = {name: code_type(view.schema[name]) for name in view.groups}
        groups = {name: view.groups[name].astype(kind) for name, kind in types.items()}
        return MarginalCounts(view.schema, marginals, groups)

    @cached_property
    def columns(self) -> Marginal:
        """All columns of the marginals; the total alone still needs rows, so any column."""
        used = {name for marginal in self.marginals for name in marginal}
        return self.schema.marginal(used) if used else self.schema.names[:1]

    def zero(self) -> NDArray[np.int64]:
        """A counter for each cell, one marginal after the other."""
        return np.zeros(int(self._layout.offsets[-1]), dtype=np.int64)

    def add(self, state: NDArray[np.int64], codes: CodeBatch) -> None:
        """Count one batch."""
        if not self._layout.members.size:  # the total alone
            state += batch_rows(codes)
            return
        from sfumato.counting.kernels import add_counts  # numba loads when something is counted

        columns = [
            self.groups[name][codes[name]] if name in self.groups else codes[name]
            for name in self.columns
        ]
        block = as_block(columns, self._layout.sizes)
        add_counts(block, *self._layout, state)

    def split(self, state: NDArray[np.int64]) -> ExactCounts:
        """The counts of each marginal, in its shape."""
        by_marginal = {}
        for marginal, flat in self.parts(state).items():
            counts = flat.reshape(self.schema.shape(marginal))
            counts.flags.writeable = False
            by_marginal[marginal] = counts
        return ExactCounts(by_marginal)

    def parts(self, state: NDArray[np.int64]) -> dict[Marginal, NDArray[np.int64]]:
        """The counters of each marginal in a state: flat, and not copied."""
        bounds = zip(self.marginals, pairwise(self._layout.offsets), strict=True)
        return {marginal: state[start:end] for marginal, (start, end) in bounds}

    @cached_property
    def _layout(self) -> "_Layout":
        position = {name: index for index, name in enumerate(self.columns)}
        lengths = [len(marginal) for marginal in self.marginals]
        cells = [self.schema.cells(marginal) for marginal in self.marginals]
        members = [position[name] for marginal in self.marginals for name in marginal]
        starts, offsets = np.cumsum([0, *lengths]), np.cumsum([0, *cells])
        sizes = self.schema.shape(self.columns)
        return _Layout(*(np.array(each, np.int64) for each in (members, starts, sizes, offsets)))


class _Layout(NamedTuple):
    """Where the columns of each marginal are in a block, and its counters in the state."""

    members: NDArray[np.int64]
    starts: NDArray[np.int64]
    sizes: NDArray[np.int64]
    offsets: NDArray[np.int64]


def count_marginals(
    table: Table, marginals: Iterable[Marginal], view: Coarse | None = None
) -> ExactCounts:
    """Every marginal counted exactly, in one pass over the table.

    Args:
        table: Where the rows are.
        marginals: Tuples of column names in any order; ``()`` is the total.
        view: Counts codes together as this coarser view has them.

    Raises:
        InputError: More cells than fit in memory; nothing was read.
    """
    distinct = tuple(dict.fromkeys(map(tuple, marginals)))
    for marginal in distinct:
        table.schema.marginal(marginal)  # refuses a column that the table does not have
    refuse_too_many_cells(table.schema if view is None else view.schema, distinct)
    if view is None:
        kernel = MarginalCounts(table.schema, distinct)
    else:
        kernel = MarginalCounts.of_view(view, distinct)
    return kernel.split(table.fold(kernel))


def rows(table: Table) -> int:
    """The number of rows: exact, sensitive."""
    return int(table.fold(RowCount(table.schema.names[:1]))[0])


def exact_codes(table: Table, columns: Marginal) -> Mapping[str, NDArray[Any]]:
    """The exact codes of all rows, in their order: sensitive."""
    batches = list(table.map(_Codes(columns=columns, schema=table.schema)))
    whole = pa.Table.from_batches(batches).combine_chunks()
    return {name: whole[name].to_numpy() for name in columns}


@dataclass(frozen=True, kw_only=True, eq=False)
class _Codes:
    """Rows as they are."""

    columns: Marginal
    schema: Schema

    def apply(self, codes: CodeBatch) -> pa.RecordBatch:
        """The codes of a batch."""
        types = {name: code_type(self.schema[name]) for name in self.columns}
        return pa.RecordBatch.from_pydict({name: codes[name].astype(types[name]) for name in types})


def as_block(columns: Sequence[NDArray[Any]], sizes: NDArray[np.int64]) -> NDArray[Any]:
    """Columns of codes as one array of their widest type, each code checked to be in range.

    The compiled kernel does not check again: a code out of range would write past its counters.
    """
    if len(columns) == 1 and columns[0].flags.writeable:  # read-only would be compiled anew
        block = columns[0].reshape(1, -1)
    else:
        block = np.stack(columns, dtype=np.result_type(*columns))
    if block.size and (block.max(axis=1) >= sizes).any():
        raise InternalError("a batch has a code that its column does not have")
    return block


def refuse_too_many_cells(schema: Schema, marginals: Sequence[Marginal]) -> None:
    """Raise if these marginals together have more cells than can be held; no row is read."""
    cells = sum(schema.cells(marginal) for marginal in marginals)  # Python integers: 2^80 is 2^80
    if cells > MAX_CELLS:
        largest = max(marginals, key=schema.cells)
        number = f"{cells:,}" if cells < 10**12 else f"about 10^{len(str(cells)) - 1}"
        raise InputError(
            f"counting these {len(marginals)} marginals needs {number} cells; at most "
            f"{MAX_CELLS:,} can be held (the largest is {', '.join(largest)}). Use wider bins, "
            "fewer columns, or a method that works on small marginals."
        )
