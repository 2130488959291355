"""Belief propagation: the calibrated tables of a junction tree's cliques, and any marginal of them.

Hugin's scheme in probabilities: each clique holds its own marginal, each separator what its two
cliques agreed on last. A change of a clique travels along the tree as the ratio of the new to the
old marginal of the separator; where nothing changed, nothing is computed. Many marginals of one
clique are read or multiplied in one pass over its table (``CliqueWork``); a marginal of columns
that no clique holds together is computed along the path between their cliques (``marginals``).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import log, prod
from string import ascii_letters

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError, InternalError
from sfumato.models.graphical.junction_tree import Clique, JunctionTree, cells

Floats = NDArray[np.float64]

_SAME = 1e-14
"""A separator of which every cell moved by less, relatively, has not changed. Cells near 0 count
as well: a later message may raise them."""
_NOTHING = 1e-200
"""A separator's cell with less is empty: one over it could leave the range of floats."""


class Beliefs:
    """The calibrated tables of a junction tree, as probabilities. Mutable; uniform at first.

    Jensen, Lauritzen, Olesen 1990, "Bayesian updating in causal probabilistic networks by local
    computations".
    """

    def __init__(self, tree: JunctionTree, tables: list[Floats] | None = None) -> None:
        self.tree = tree
        self.tables = tables or [_uniform(cells(tree.sizes, clique)) for clique in tree.cliques]
        self.separators = [_uniform(cells(tree.sizes, one)) for one in tree.separators]
        self._changed = [False] * len(self.tables)

    @staticmethod
    def of(tree: JunctionTree, tables: list[Floats]) -> "Beliefs":
        """Tables that agree already, for example averages of calibrated ones."""
        made = Beliefs(tree, tables)
        for index in range(1, len(tables)):
            made.separators[index] = made.marginal(index, tree.separators[index])
        return made

    def copy_from(self, other: "Beliefs") -> None:
        """Take over the numbers of calibrated beliefs of the same tree."""
        for mine, theirs in zip(self.tables, other.tables, strict=True):
            mine[:] = theirs
        self.separators = list(other.separators)
        self._changed = [False] * len(self.tables)

    def marginal(self, index: int, columns: Clique) -> Floats:
        """The marginal of some columns of one clique, flat, in rising order of columns."""
        return project(self.tables[index], self.tree.sizes, self.tree.cliques[index], columns)

    def multiply(self, index: int, columns: Clique, factor: Floats) -> None:
        """Multiply a clique by a factor over some of its columns; ``calibrate`` spreads it."""
        scale(self.tables[index], self.tree.sizes, self.tree.cliques[index], columns, factor)
        self.touch(index)

    def touch(self, index: int) -> None:
        """Say that the table of a clique was changed."""
        self._changed[index] = True

    def calibrate(self) -> float:
        """Bring all cliques to agreement and to a sum of 1: towards the root, and back.

        Returns:
            The logarithm of the sum before.
        """
        log_total = 0.0
        for index in range(len(self.tables) - 1, 0, -1):
            if self._changed[index]:
                log_total += self._send(index, self.tree.parents[index], index)
        if self._changed[0]:
            total = _mass(self.tables[0])
            self.tables[0] *= 1 / total
            log_total += log(total)
        for index in range(1, len(self.tables)):
            parent = self.tree.parents[index]
            if self._changed[parent] or self._changed[index]:
                self._send(parent, index, index)
        self._changed = [False] * len(self.tables)
        return log_total

    def _send(self, speaker: int, hearer: int, separator: int) -> float:
        """One message along the edge above the clique ``separator``, as shares.

        The speaker's sum stays behind, so that the sums of many cliques do not multiply up and
        out of the range of floats.

        Returns:
            The logarithm of that sum.
        """
        columns, old = self.tree.separators[separator], self.separators[separator]
        new = self.marginal(speaker, columns)
        mass = _mass(new)
        expected = old * mass
        if (np.abs(new - expected) > _SAME * expected).any():
            ratio = np.divide(new, expected, out=np.zeros_like(new), where=expected > _NOTHING)
            self.multiply(hearer, columns, ratio)
            self.separators[separator] = new
        elif abs(mass - 1) > _SAME:
            self.separators[separator] = new
        return log(mass)


def project(table: Floats, sizes: tuple[int, ...], clique: Clique, columns: Clique) -> Floats:
    """Sum a table of a clique over all columns but some, which must be among its own."""
    blocks, keep = _blocks(sizes, clique, columns)
    if blocks.size == 1:
        return table.copy() if keep else table.sum(keepdims=True)
    from sfumato.models.graphical.kernels import (
        add_marginal,  # numba loads when a model is fitted
    )

    out = np.zeros(cells(sizes, columns))
    add_marginal(table, blocks, keep, out)
    return out


def scale(
    table: Floats, sizes: tuple[int, ...], clique: Clique, columns: Clique, factor: Floats
) -> None:
    """Multiply a table of a clique by a factor over some of its columns, in place."""
    from sfumato.models.graphical.kernels import multiply

    multiply(table, *_blocks(sizes, clique, columns), factor)


@lru_cache(maxsize=16_384)
def _blocks(
    sizes: tuple[int, ...], clique: Clique, columns: Clique
) -> tuple[NDArray[np.int64], bool]:
    """Neighboring axes with the same fate joined: their lengths, and whether the last is kept."""
    if not set(columns) <= set(clique):
        raise InternalError(f"columns {columns} are not all in {clique}")
    lengths, flags = [1], [bool(clique) and clique[0] in columns]
    for column in clique:
        keep = column in columns
        if keep != flags[-1]:
            lengths.append(1)
            flags.append(keep)
        lengths[-1] *= sizes[column]
    return np.array(lengths, dtype=np.int64), flags[-1]


def _uniform(size: int) -> Floats:
    return np.full(size, 1 / size)


def _mass(table: Floats) -> float:
    """The sum of a table that has one; numerical trouble fails here, before it spreads."""
    mass = float(table.sum())
    if not 0 < mass < np.inf:
        raise InternalError("a model has no probability left.")
    return mass


_ROW_CELLS = 64
"""The least cells of a row of the matrix, where the clique has them; chosen by judgment."""


@dataclass(frozen=True, kw_only=True, eq=False)
class _Part:
    """One marginal as the matrix has it: rows by positions in a row."""

    outer: int
    inner: int
    """Cells of the marginal's leading and trailing columns."""
    rows: NDArray[np.int32] | None
    """For each row of the matrix its cell among the leading columns."""
    positions: NDArray[np.int64] | None
    """For each position in a row its cell among the trailing columns; None if they are the same."""


class CliqueWork:
    """The marginals of one clique that every step of a fit needs."""

    def __init__(self, sizes: tuple[int, ...], clique: Clique, marginals: Sequence[Clique]) -> None:
        cut = _cut(sizes, clique)
        self._leading, self._trailing = clique[:cut], clique[cut:]
        self._rows, self._inner = cells(sizes, self._leading), cells(sizes, self._trailing)
        self._parts = [self._part(sizes, marginal) for marginal in marginals]
        across = [part for part in self._parts if part.rows is not None and part.inner > 1]
        self._starts = np.cumsum([0, *(part.outer * self._inner for part in across)])
        empty = np.zeros((0, self._rows), dtype=np.int32)
        self._rows_of = (
            np.stack([p.rows for p in across if p.rows is not None]) if across else empty
        )

    def marginals(self, table: Floats) -> list[Floats]:
        """Each marginal of the table, flat."""
        from sfumato.models.graphical.kernels import sum_rows

        by_row, by_cell = np.zeros(self._rows), np.zeros(self._inner)
        mixed = np.zeros(int(self._starts[-1]))
        sum_rows(table, by_row, by_cell, mixed, self._starts[:-1], self._rows_of)
        result, across = [], 0
        for part in self._parts:
            if part.rows is None:
                result.append(_within(by_cell[None], part)[0])
            elif part.inner == 1:
                result.append(np.bincount(part.rows, weights=by_row, minlength=part.outer))
            else:
                row_sums = mixed[self._starts[across] : self._starts[across + 1]]
                result.append(_within(row_sums.reshape(part.outer, -1), part).reshape(-1))
                across += 1
        return result

    def multiply(self, table: Floats, factors: Sequence[Floats]) -> None:
        """Multiply the table by a factor for each marginal, in place."""
        from sfumato.models.graphical.kernels import multiply_rows

        by_row, by_cell = np.ones(self._rows), np.ones(self._inner)
        mixed = np.empty(int(self._starts[-1]))
        across = 0
        for part, factor in zip(self._parts, factors, strict=True):
            if part.rows is None:
                by_cell *= factor if part.positions is None else factor[part.positions]
            elif part.inner == 1:
                by_row *= factor[part.rows]
            else:
                wide = factor.reshape(part.outer, part.inner)
                wide = wide if part.positions is None else wide[:, part.positions]
                mixed[self._starts[across] : self._starts[across + 1]] = wide.reshape(-1)
                across += 1
        multiply_rows(table, by_row, by_cell, mixed, self._starts[:-1], self._rows_of)

    def _part(self, sizes: tuple[int, ...], marginal: Clique) -> _Part:
        leading = tuple(c for c in marginal if c in self._leading)
        trailing = tuple(c for c in marginal if c in self._trailing)
        rows = _numbers(sizes, self._leading, leading).astype(np.int32) if leading else None
        whole = trailing == self._trailing
        indices = None if whole else _numbers(sizes, self._trailing, trailing)
        return _Part(
            outer=cells(sizes, leading), inner=cells(sizes, trailing), rows=rows, positions=indices
        )


def _within(rows: Floats, part: _Part) -> Floats:
    """Rows of positions summed to the cells of the trailing columns."""
    if part.positions is None:
        return rows
    cell = part.positions + np.arange(len(rows))[:, None] * part.inner
    size = len(rows) * part.inner
    flat = np.bincount(cell.reshape(-1), weights=rows.reshape(-1), minlength=size)
    return np.asarray(flat.reshape(len(rows), part.inner), dtype=np.float64)


def _numbers(sizes: tuple[int, ...], columns: Clique, left: Clique) -> NDArray[np.int64]:
    """For each cell of some columns, the cell of those that are left that it falls on."""
    shape = [sizes[column] if column in left else 1 for column in columns]
    numbers = np.arange(cells(sizes, left)).reshape(shape)
    return np.broadcast_to(numbers, [sizes[column] for column in columns]).reshape(-1)


def _cut(sizes: tuple[int, ...], clique: Clique) -> int:
    """How many leading columns make the rows."""
    cut = len(clique)
    while cut > 0 and cells(sizes, clique[cut:]) < _ROW_CELLS:
        cut -= 1
    return cut


MOST_CELLS = 50_000_000
"""The largest table that a query may need on its way: 400 MB."""


def marginals(beliefs: Beliefs, queries: Sequence[Clique]) -> list[Floats]:
    """The marginal of each query, flat, in rising order of columns."""
    walk = _Walk(beliefs)
    return [walk.marginal(query) for query in queries]


class _Walk:
    """Messages between neighboring cliques, remembered over queries."""

    def __init__(self, beliefs: Beliefs) -> None:
        tree = beliefs.tree
        self._beliefs, self._sizes = beliefs, tree.sizes
        self._shared: dict[tuple[int, int], tuple[Clique, Floats]] = {}
        for index, parent in enumerate(tree.parents):
            if parent >= 0:
                separator = (tree.separators[index], beliefs.separators[index])
                self._shared[index, parent] = self._shared[parent, index] = separator
        self._neighbors: list[list[int]] = [[] for _ in tree.cliques]
        for one, other in self._shared:
            self._neighbors[one].append(other)
        self._below = [set(clique) for clique in tree.cliques]  # and all that hangs on it
        for index in range(len(tree.cliques) - 1, 0, -1):
            self._below[tree.parents[index]] |= self._below[index]
        self._messages: dict[tuple[int, int, Clique], tuple[Clique, Floats]] = {}

    def marginal(self, query: Clique) -> Floats:
        """One query, rooted at the clique that holds most of it.

        Messages are computed from the farthest on, so no chain of cliques is too long to recurse.
        """
        cliques = self._beliefs.tree.cliques
        query = tuple(c for c in query if self._sizes[c] > 1)  # the others change no flat table
        home = self._beliefs.tree.home(query)
        if home is not None:
            return self._beliefs.marginal(home, query)
        if cells(self._sizes, query) > MOST_CELLS:
            raise InputError(
                f"a marginal of {cells(self._sizes, query):,} cells was asked for; at most "
                f"{MOST_CELLS:,} can be computed. Ask for fewer columns."
            )
        root = max(range(len(cliques)), key=lambda p: (len(set(query) & set(cliques[p])), -p))
        for edge in reversed(self._edges(root, query)):
            self._message(*edge)
        columns, table = self._gather(root, None, query)
        return table if columns == query else _sorted(table, columns, query, self._sizes)

    def _edges(self, root: int, query: Clique) -> list[tuple[int, int, Clique]]:
        """The messages that a query needs and that are not known yet, each before what it needs."""
        open_ends, result = [(root, -1, query)], []
        while open_ends:
            index, towards, requested = open_ends.pop()
            for other in self._neighbors[index]:
                edge = other, index, self._behind(other, index, requested)
                if other != towards and edge[-1] and edge not in self._messages:
                    open_ends.append(edge)
                    result.append(edge)
        return result

    def _behind(self, index: int, towards: int, query: Clique) -> Clique:
        """The requested columns that lie behind an edge and not in the clique that it leads to."""
        clique = self._beliefs.tree.cliques[towards]
        away = [column for column in query if column not in clique]
        if self._beliefs.tree.parents[index] == towards:
            return tuple(column for column in away if column in self._below[index])
        return tuple(column for column in away if column not in self._below[towards])

    def _gather(self, index: int, towards: int | None, query: Clique) -> tuple[Clique, Floats]:
        """The table of the requested columns in and behind a clique, and of what it shares on.

        Given what it shares, if it hands on; columns in the order of the first result.
        """
        clique = self._beliefs.tree.cliques[index]
        shared = self._shared[index, towards][0] if towards is not None else ()
        mine = set(clique) & set(query) | set(shared)
        parts = []
        for other in self._neighbors[index]:
            if other != towards and (behind := self._behind(other, index, query)):
                parts.append(self._message(other, index, behind))
        needed = mine.union(*(set(self._own(columns, clique)) for columns, _ in parts))
        columns = tuple(sorted(needed))
        table = self._beliefs.marginal(index, columns)
        for far_columns, far in parts:
            keep = self._still_needed(columns, mine, parts, far_columns, clique)
            columns, table = self._joined(columns, table, far_columns, far, keep)
        return columns, table

    def _message(self, index: int, towards: int, behind: Clique) -> tuple[Clique, Floats]:
        """P(behind | shared): columns shared first."""
        key = index, towards, behind
        if key not in self._messages:
            shared, mass = self._shared[index, towards]
            columns, table = self._gather(index, towards, behind)
            ordered = (*shared, *behind)
            table = _sorted(table, columns, ordered, self._sizes).reshape(mass.size, -1)
            known = np.divide(
                table, mass[:, None], out=np.zeros_like(table), where=mass[:, None] > 0
            )
            self._messages[key] = ordered, known.reshape(-1)
        return self._messages[key]

    def _joined(
        self, columns: Clique, table: Floats, far_columns: Clique, far: Floats, keep: Clique
    ) -> tuple[Clique, Floats]:
        """The product of a table and a message, summed over what no later message needs."""
        out = (*keep, *(c for c in far_columns if c not in columns))
        size = prod(self._sizes[c] for c in out)
        if size > MOST_CELLS:
            raise InputError(
                f"a marginal needs a table of {size:,} cells on the way; at most {MOST_CELLS:,} "
                "can be held. Ask for fewer columns."
            )
        left = table.reshape([self._sizes[c] for c in columns])
        right = far.reshape([self._sizes[c] for c in far_columns])
        letter = dict(zip({*columns, *far_columns}, ascii_letters, strict=False))
        near, further, out_letters = (
            "".join(letter[c] for c in s) for s in (columns, far_columns, out)
        )
        result = np.einsum(f"{near},{further}->{out_letters}", left, right, optimize=True)
        return out, np.ascontiguousarray(result).reshape(-1)

    @staticmethod
    def _own(columns: Clique, clique: Clique) -> Clique:
        return tuple(c for c in columns if c in clique)

    def _still_needed(
        self,
        columns: Clique,
        mine: set[int],
        parts: Sequence[tuple[Clique, Floats]],
        done: Clique,
        clique: Clique,
    ) -> Clique:
        """Columns to keep after a message: requested ones, and what later messages hang on."""
        later = [far for far, _ in parts[[far for far, _ in parts].index(done) + 1 :]]
        waiting = {c for far in later for c in self._own(far, clique)}
        return tuple(c for c in columns if c in mine or c in waiting or c not in clique)


def _sorted(table: Floats, columns: Clique, order: Clique, sizes: tuple[int, ...]) -> Floats:
    """A flat table with its columns in another order."""
    shaped = table.reshape([sizes[column] for column in columns])
    moved = shaped.transpose([columns.index(column) for column in order])
    return np.ascontiguousarray(moved).reshape(-1)
