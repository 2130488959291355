"""Counting where the rows are: a server groups equal rows, and only the groups come here.

A group is a combination of raw values and the number of rows that have it. ``encode`` reads it as
it reads each of those rows, so the counts are those of a whole read, bit for bit. What does not
fit, or more groups than were expected, is left to a whole read, which names the row. Whether the
server counts changes the time and nothing else; ``server_sets`` decides it from the schema alone.
"""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from math import prod
from typing import Final, Protocol, runtime_checkable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.counting.exact_counts import MarginalCounts
from sfumato.counting.table import CodeBatch, FoldKernel, RowCount
from sfumato.errors import InternalError, StorageError, TableError
from sfumato.readers.source import Source
from sfumato.readers.source_table import SourceTable
from sfumato.schema import Marginal, Schema
from sfumato.schema.columns import Column, Date, DateTime, Integer, Number

MOST_GROUPS: Final = 2**16
"""The most groups that a set of columns may have, by the schema, to be counted on the server.

Chosen by judgment: a hash table of that many groups fits into the server's ``work_mem``.
"""
_MORE_THAN_DECLARED: Final = 4
"""A set may have this many times ``MOST_GROUPS``, then the rows are read: values that are not
declared and several spellings of one make more groups. Chosen by judgment."""
_CACHE_BYTES: Final = 16 * 2**20
"""Memory for groups that later counts use again; chosen by judgment."""
_MASK_COLUMNS: Final = 31
"""The most arguments of PostgreSQL's ``GROUPING``, by its documentation."""

Counts = dict[Marginal, NDArray[np.int64]]
"""Exact counts, one flat array for each marginal: sensitive."""

_log = logging.getLogger(__name__)


@runtime_checkable
class GroupingSource(Source, Protocol):
    """Where rows come from, if it can also count equal ones by itself."""

    def grouped(self, sets: Sequence[Marginal]) -> Iterator[tuple[Marginal, pa.RecordBatch]]:
        """For each set of columns its different rows, and after them how many there are of each.

        Values are those of ``batches``, and two are one group only if ``encode`` gives them
        the same code. The groups of a set come in any number of batches and order; int64 counts.
        """


@dataclass(frozen=True)
class Grouping:
    """One query for the different rows of each set of columns, and the number of rows of each.

    The SQL is that which most warehouses share. Columns are called c0, c1, ... in it, so that no
    name of a table's column can do harm; a warehouse gives the expression of each column.
    """

    sets: tuple[Marginal, ...]

    def __post_init__(self) -> None:
        if len({frozenset(names) for names in self.sets}) < len(self.sets):
            raise InternalError("two sets of the same columns: rows of both would count for each")

    @cached_property
    def columns(self) -> Marginal:
        """All columns of the sets, each once."""
        return tuple(dict.fromkeys(name for names in self.sets for name in names))

    def sql(self, expressions: Mapping[str, str], table: str) -> str:
        """The query: all columns, the number of rows, then the masks that identify the sets.

        Args:
            expressions: what gives the values of a column, in the SQL of the warehouse.
            table: its name, quoted.

        >>> Grouping((("age",),)).sql({"age": '"age"'}, "people")
        'SELECT c0, count(*) FROM (SELECT "age" AS c0 FROM people) AS t GROUP BY c0'
        """
        named = (f"{expressions[name]} AS {self._short(name)}" for name in self.columns)
        masks = [f"GROUPING({self._list(names)})" for names in self._masked]
        selected = ", ".join([self._list(self.columns), "count(*)", *masks])
        sets = ", ".join(f"({self._list(names)})" for names in self.sets)
        by = f"GROUPING SETS ({sets})" if masks else self._list(self.columns)
        return f"SELECT {selected} FROM (SELECT {', '.join(named)} FROM {table}) AS t GROUP BY {by}"

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


class PushdownTable(SourceTable):
    """A table whose server counts a few small marginals, so that their columns are not read."""

    def __init__(self, schema: Schema, source: GroupingSource) -> None:
        super().__init__(schema, source)
        self._server = source
        self._groups: dict[Marginal, _Groups] = {}
        self._can_count = True
        self._unfit_groups: dict[str, int] = {}
        """For each column, how many values of the server's groups did not fit."""

    def unfit_values(self) -> dict[str, int]:
        """For each column, how many values did not fit, read or counted by the server."""
        return super().unfit_values() | self._unfit_groups

    def fold(self, kernel: FoldKernel) -> NDArray[np.int64]:
        """The sum of the kernel over all rows: exact, sensitive."""
        if not self._can_count or all(name in self._cached for name in kernel.columns):
            return super().fold(kernel)
        if isinstance(kernel, RowCount):
            return self._checked(kernel)
        if isinstance(kernel, MarginalCounts) and not kernel.groups:
            return self._counted(kernel)
        return super().fold(kernel)

    def _checked(self, kernel: RowCount) -> NDArray[np.int64]:
        """The rows, every value of the columns having been translated."""
        counts = self._on_server(tuple((name,) for name in kernel.columns))
        if not counts:
            return super().fold(kernel)
        if others := tuple(name for name in kernel.columns if (name,) not in counts):
            super().fold(RowCount(others))
        return np.array([_total(counts)])

    def _counted(self, kernel: MarginalCounts) -> NDArray[np.int64]:
        """The counts of the server and, of marginals that it does not count, those of a read."""
        counts = self._on_server(tuple(filter(None, kernel.marginals)) or (kernel.columns,))
        if not counts:
            return super().fold(kernel)
        if others := tuple(each for each in kernel.marginals if each and each not in counts):
            read = MarginalCounts(self.schema, others)
            counts |= read.parts(super().fold(read))
        state = kernel.zero()
        for marginal, cells in kernel.parts(state).items():
            cells[:] = counts[marginal] if marginal else _total(counts)
        return state

    def _on_server(self, marginals: Sequence[Marginal]) -> Counts:
        """The counts that the server makes; none where it counts nothing or fails."""
        missing = [each for each in marginals if not _superset(each, self._groups)]
        new = tuple(dict.fromkeys(map(self.schema.marginal, missing)))  # one order of columns each
        try:
            groups = {**self._groups, **self._grouped(server_sets(self.schema, new))}
        except (TableError, StorageError) as error:
            _log.debug("not counted on the server, reading all rows: %s", type(error).__name__)
            self._can_count = False
            return {}
        return {
            marginal: groups[names].counts(self.schema, marginal)
            for marginal in marginals
            if (names := _superset(marginal, groups)) is not None
        }

    def _grouped(self, sets: Sequence[Marginal]) -> dict[Marginal, "_Groups"]:
        """The groups of some sets of columns; stored while there is room."""
        parts: dict[Marginal, list[_Groups]] = {names: [] for names in sets}
        unfit: dict[tuple[Marginal, str], int] = {}
        for names, batch in self._server.grouped(sets) if sets else ():
            rows = np.asarray(np.from_dlpack(batch.column(len(names))), dtype=np.int64)
            codes, which = self._fitted(names, batch, first_row=1)
            for name, some in which.items():
                unfit[names, name] = unfit.get((names, name), 0) + int(rows[some].sum())
            parts[names].append(_Groups(codes, rows))
            if sum(part.rows.size for part in parts[names]) > _MORE_THAN_DECLARED * MOST_GROUPS:
                raise TableError(f"{self.describe()}: far more values than are declared")
        groups = {names: _Groups.joined(names, some) for names, some in parts.items()}
        if len({int(each.rows.sum()) for each in groups.values()}) > 1:
            raise InternalError("two sets of columns count different numbers of rows")
        self._unfit_groups |= {name: number for (_, name), number in unfit.items()}
        if sum(each.nbytes for each in (*self._groups.values(), *groups.values())) <= _CACHE_BYTES:
            self._groups |= groups
        return groups


@dataclass(frozen=True, eq=False, repr=False)
class _Groups:
    """Rows of codes, and how many rows of the table each stands for: sensitive, not shown."""

    codes: CodeBatch
    rows: NDArray[np.int64]

    @property
    def nbytes(self) -> int:
        return self.rows.nbytes + sum(codes.nbytes for codes in self.codes.values())

    def counts(self, schema: Schema, marginal: Marginal) -> NDArray[np.int64]:
        """The flat counts of a marginal of these columns."""
        counts = np.zeros(schema.cells(marginal), dtype=np.int64)
        codes = tuple(self.codes[name].astype(np.intp) for name in marginal)
        np.add.at(counts, np.ravel_multi_index(codes, schema.shape(marginal)), self.rows)
        return counts

    @classmethod
    def joined(cls, names: Marginal, parts: Sequence["_Groups"]) -> "_Groups":
        if not parts:  # no rows
            return cls({name: np.zeros(0, np.uint8) for name in names}, np.zeros(0, np.int64))
        codes = {name: np.concatenate([part.codes[name] for part in parts]) for name in names}
        return cls(codes, np.concatenate([part.rows for part in parts]))


def server_sets(schema: Schema, marginals: Sequence[Marginal]) -> tuple[Marginal, ...]:
    """The sets of columns that the server groups by, from public knowledge; none to read the rows.

    If all columns together have few combinations, they are the one set: its groups answer every
    later count too. Otherwise each small marginal is a set, unless there are more of them than
    columns that need not be read then: a set costs the server about what sending a column costs.
    """
    most = {column.name: most_values(column) for column in schema}
    if marginals and _most_groups(schema.names, most) <= MOST_GROUPS:
        return (schema.names,)
    small = tuple(names for names in marginals if _most_groups(names, most) <= MOST_GROUPS)
    read = {name for names in marginals if names not in small for name in names}
    saved = {name for names in small for name in names} - read
    return small if len(small) <= len(saved) else ()


def most_values(column: Column) -> float:
    """The most different values of a column as it is declared; infinite where nothing bounds them.

    >>> most_values(Integer(name="age", low=0, high=99, step=10))
    100.0
    """
    if isinstance(column, Number | DateTime):
        return float("inf")
    if isinstance(column, Integer):
        return float(column.high - column.low + 1 + column.missing)
    if isinstance(column, Date):
        return float((column.high - column.low).days + 1 + column.missing)
    return float(column.size)


def _most_groups(names: Marginal, most: Mapping[str, float]) -> float:
    return prod(most[name] for name in names)


def _superset(marginal: Marginal, sets: Iterable[Marginal]) -> Marginal | None:
    """The first of some sets that has all columns of a marginal."""
    return next((names for names in sets if {*marginal} <= {*names}), None)


def _total(counts: Counts) -> int:
    """The rows: every marginal counts all of them."""
    return int(next(iter(counts.values())).sum())
