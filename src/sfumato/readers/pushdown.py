"""Counting where the rows are: a server groups equal rows, and only the groups come here.

A group is a combination of raw values and the number of rows that have it. ``encode`` reads it as
it reads each of those rows, so the counts are those of a whole read, bit for bit. What does not
fit, or more groups than were expected, is left to a whole read, which names the row. Which way is
taken changes the time and nothing else; ``plan`` decides it from the schema alone.
"""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Final, Protocol, runtime_checkable

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.counting import coded_table
from sfumato.counting.exact_counts import MarginalCounts, RowCount
from sfumato.counting.table import CodeBatch, FoldKernel, Source
from sfumato.errors import StorageError, TableError
from sfumato.readers.source_table import SourceTable
from sfumato.schema import Marginal, Schema
from sfumato.schema.codes import code_type
from sfumato.schema.columns import Column, Date, DateTime, Integer, Number

MOST_GROUPS: Final = 2**16
"""Groups that a set of columns may have, by the schema, to be counted on the server."""
_MERGED_GROUPS: Final = 2**12
"""Groups that merged marginals may have: the server's tables of larger ones leave its caches."""
_MORE_THAN_DECLARED: Final = 4
"""So many times as many are still taken: undeclared values, several spellings of one."""
_MOST_COLUMNS: Final = 1.5
"""To group by a column costs about 0.6 of reading it, both sides together: bench/pushdown.py."""
_KEPT_BYTES: Final = 16 * 2**20
_MOST_LEFT_CELLS: Final = 2**23
"""A larger state of what is read beside is not held twice."""

Counts = Mapping[Marginal, NDArray[np.int64]]
"""Exact counts, one flat array for each marginal: sensitive."""

_log = logging.getLogger(__name__)


@runtime_checkable
class GroupingSource(Source, Protocol):
    """Where rows come from, if it can also count equal ones by itself."""

    def estimated_rows(self) -> int:
        """About how many rows there are, told without reading them; it decides about time only."""

    def grouped(self, sets: Sequence[Marginal]) -> Iterator[tuple[Marginal, pa.RecordBatch]]:
        """For each set of columns its different rows, and after them how many there are of each.

        Values are those of ``batches``, and two are one group only if ``encode`` can't tell them
        apart. The groups of a set come in any number of batches, in any order; int64 counts.
        """


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What the server groups by, and what is read row by row beside it."""

    sets: tuple[Marginal, ...]
    """Each marginal that is not left is a part of one of them."""
    left: tuple[Marginal, ...]


class PushdownTable(SourceTable):
    """A table of a server that counts for us where that is cheaper than sending all rows."""

    def __init__(self, schema: Schema, source: GroupingSource) -> None:
        super().__init__(schema, source)
        self._server = source
        self._groups: dict[Marginal, _Groups] = {}
        self._asks = True
        self._unfit_groups: dict[str, int] = {}
        """For each column, how many values of the server's groups did not fit."""

    def unfit_values(self) -> dict[str, int]:
        """For each column, how many values did not fit, read or counted by the server."""
        return super().unfit_values() | self._unfit_groups

    def fold(self, kernel: FoldKernel) -> NDArray[np.int64]:
        """The sum of the kernel over all rows: exact, sensitive."""
        if not self._asks or all(name in self._kept for name in kernel.columns):
            return super().fold(kernel)
        if isinstance(kernel, RowCount):
            return self._checked(kernel)
        if isinstance(kernel, MarginalCounts):
            return self._counted(kernel)
        return super().fold(kernel)

    def _checked(self, kernel: RowCount) -> NDArray[np.int64]:
        """The rows, every value of the columns having been translated."""
        found = self._on_server(tuple((name,) for name in kernel.columns))
        if found is None:
            return super().fold(kernel)
        if left := tuple(name for name in kernel.columns if (name,) not in found):
            super().fold(RowCount(left))
        return np.array([_total(found)])

    def _counted(self, kernel: MarginalCounts) -> NDArray[np.int64]:
        """The counts of the server and, of what it was not asked for, those of a read."""
        found = self._on_server(tuple(filter(None, kernel.marginals)) or (kernel.columns,))
        if found is None:
            return super().fold(kernel)
        state = kernel.zero()
        parts = kernel.parts(state)
        left = tuple(each for each in kernel.marginals if each and each not in found)
        if left:
            beside = MarginalCounts(self.schema, left)
            found = {**found, **beside.parts(super().fold(beside))}
        for marginal, counts in parts.items():
            counts[:] = found[marginal] if marginal else _total(found)
        return state

    def _on_server(self, marginals: Sequence[Marginal]) -> Counts | None:
        """The counts that the server is asked for; None where it is not asked or can't say."""
        new = tuple(marginal for marginal in marginals if not _home(marginal, self._groups))
        chosen = self._chosen(new)
        if len(chosen.left) == len(marginals) or self._cells(chosen.left) > _MOST_LEFT_CELLS:
            return None
        try:
            groups = {**self._groups, **self._grouped(chosen.sets)}
        except (TableError, StorageError) as error:
            _log.debug("not counted on the server, reading all rows: %s", type(error).__name__)
            self._asks = False
            return None
        homes = {marginal: _home(marginal, groups) for marginal in marginals}
        return {
            marginal: groups[home].counts(self.schema, marginal)
            for marginal, home in homes.items()
            if home is not None
        }

    def _chosen(self, marginals: Sequence[Marginal]) -> Plan:
        """The plan, unless the columns fit in memory: then one read makes all later ones free."""
        found = plan(self.schema, marginals)
        if not found.sets or found.sets == (self.schema.names,):
            return found  # the groups of all columns make all later reads free as well
        names = {name for marginal in marginals for name in marginal}
        row_bytes = sum(np.dtype(code_type(self.schema[name])).itemsize for name in names)
        if self._server.estimated_rows() * row_bytes <= coded_table.CACHE_BYTES:
            return Plan(sets=(), left=tuple(marginals))
        return found

    def _cells(self, marginals: Sequence[Marginal]) -> int:
        return sum(map(self.schema.cells, marginals))

    def _grouped(self, sets: Sequence[Marginal]) -> dict[Marginal, "_Groups"]:
        """The groups of some sets; kept while there is room."""
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
        found = {names: _Groups.joined(names, some) for names, some in parts.items()}
        self._unfit_groups |= {name: number for (_, name), number in unfit.items()}
        held = sum(groups.nbytes for groups in (*self._groups.values(), *found.values()))
        if held <= _KEPT_BYTES:
            self._groups |= found
        return found


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


def plan(schema: Schema, marginals: Sequence[Marginal]) -> Plan:
    """The sets of columns to group by, from public knowledge; none where reading costs less.

    One set of all columns is best: with its groups everything is known. Otherwise marginals that
    share a column are merged while the declared values allow few groups. Grouping pays if the
    sets have together at most one and a half times as many columns as need not be read.
    """
    most = {column.name: most_values(column) for column in schema}
    if marginals and _most_groups(schema.names, most) <= MOST_GROUPS:
        return Plan(sets=(schema.names,), left=())
    small = [names for names in marginals if _most_groups(names, most) <= MOST_GROUPS]
    left = [names for names in marginals if _most_groups(names, most) > MOST_GROUPS]
    read = {name for names in left for name in names}
    saved = {name for names in small for name in names} - read
    sets = _merged(small, most, at_most=_MOST_COLUMNS * len(saved))
    if sets is None:
        return Plan(sets=(), left=tuple(marginals))
    return Plan(sets=tuple(map(schema.marginal, sets)), left=tuple(left))


def most_values(column: Column) -> float:
    """The most different values of a column as it is declared; infinite where nothing tells.

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


def _merged(
    marginals: Sequence[Marginal], most: Mapping[str, float], *, at_most: float
) -> list[frozenset[str]] | None:
    """Sets with few columns that hold all marginals, greedily; None if they have too many."""
    sets: list[frozenset[str]] = []
    for names in map(frozenset, sorted(marginals, key=len, reverse=True)):
        fitting = [
            place
            for place, each in enumerate(sets)
            if each & names and _most_groups(each | names, most) <= _MERGED_GROUPS
        ]
        if fitting:
            place = min(fitting, key=lambda place: len(names - sets[place]))
            sets[place] |= names
        else:
            sets.append(names)
        if sum(map(len, sets)) > at_most:
            return None
    return sets


def _most_groups(names: Sequence[str] | frozenset[str], most: Mapping[str, float]) -> float:
    return prod(most[name] for name in names)


def _home(marginal: Marginal, sets: Iterable[Marginal]) -> Marginal | None:
    """The first of some sets that has all columns of a marginal."""
    return next((names for names in sets if {*marginal} <= {*names}), None)


def _total(counts: Counts) -> int:
    """The rows: every marginal counts all of them."""
    return int(next(iter(counts.values())).sum())
