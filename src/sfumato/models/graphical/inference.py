"""Any marginal of calibrated beliefs, also of columns that no clique holds together.

Each query is a walk over the part of the tree that lies between its columns: a clique hands on
the table of the wanted columns behind it, given what it shares with the next. What several
queries have in common is computed once.
"""

from collections.abc import Sequence
from math import prod
from string import ascii_letters

import numpy as np

from sfumato.errors import InputError
from sfumato.models.graphical.beliefs import Beliefs, Floats
from sfumato.models.graphical.junction_tree import Clique, cells

MOST_CELLS = 50_000_000
"""The largest table that a query may need on its way: 400 MB."""


def marginals(beliefs: Beliefs, wanted: Sequence[Clique]) -> list[Floats]:
    """The marginal of each query, flat, in rising order of columns."""
    walk = _Walk(beliefs)
    return [walk.marginal(query) for query in wanted]


class _Walk:
    """Messages between neighboring cliques, remembered over queries."""

    def __init__(self, beliefs: Beliefs) -> None:
        tree = beliefs.tree
        self._beliefs, self._sizes = beliefs, tree.sizes
        self._shared: dict[tuple[int, int], tuple[Clique, Floats]] = {}
        for place, parent in enumerate(tree.parents):
            if parent >= 0:
                held = (tree.separators[place], beliefs.separators[place])
                self._shared[place, parent] = self._shared[parent, place] = held
        self._neighbors: list[list[int]] = [[] for _ in tree.cliques]
        for one, other in self._shared:
            self._neighbors[one].append(other)
        self._below = [set(clique) for clique in tree.cliques]  # and all that hangs on it
        for place in range(len(tree.cliques) - 1, 0, -1):
            self._below[tree.parents[place]] |= self._below[place]
        self._told: dict[tuple[int, int, Clique], tuple[Clique, Floats]] = {}

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
        """The messages that a query needs and nobody asked for yet, each after who waits for it."""
        open_ends, found = [(root, -1, query)], []
        while open_ends:
            place, towards, wanted = open_ends.pop()
            for other in self._neighbors[place]:
                edge = other, place, self._behind(other, place, wanted)
                if other != towards and edge[-1] and edge not in self._told:
                    open_ends.append(edge)
                    found.append(edge)
        return found

    def _behind(self, place: int, towards: int, query: Clique) -> Clique:
        """The wanted columns that lie behind an edge and not in the clique that it leads to."""
        clique = self._beliefs.tree.cliques[towards]
        away = [column for column in query if column not in clique]
        if self._beliefs.tree.parents[place] == towards:
            return tuple(column for column in away if column in self._below[place])
        return tuple(column for column in away if column not in self._below[towards])

    def _gather(self, place: int, towards: int | None, query: Clique) -> tuple[Clique, Floats]:
        """The table of the wanted columns in and behind a clique, and of what it shares on.

        Given what it shares, if it hands on; columns in the order of the first result.
        """
        clique = self._beliefs.tree.cliques[place]
        shared = self._shared[place, towards][0] if towards is not None else ()
        mine = set(clique) & set(query) | set(shared)
        parts = []
        for other in self._neighbors[place]:
            if other != towards and (behind := self._behind(other, place, query)):
                parts.append(self._message(other, place, behind))
        needed = mine.union(*(set(self._own(columns, clique)) for columns, _ in parts))
        columns = tuple(sorted(needed))
        table = self._beliefs.marginal(place, columns)
        for far_columns, far in parts:
            keep = self._still_needed(columns, mine, parts, far_columns, clique)
            columns, table = self._joined(columns, table, far_columns, far, keep)
        return columns, table

    def _message(self, place: int, towards: int, behind: Clique) -> tuple[Clique, Floats]:
        """P(behind | shared): columns shared first."""
        key = place, towards, behind
        if key not in self._told:
            shared, mass = self._shared[place, towards]
            columns, table = self._gather(place, towards, behind)
            ordered = (*shared, *behind)
            table = _sorted(table, columns, ordered, self._sizes).reshape(mass.size, -1)
            known = np.divide(
                table, mass[:, None], out=np.zeros_like(table), where=mass[:, None] > 0
            )
            self._told[key] = ordered, known.reshape(-1)
        return self._told[key]

    def _joined(
        self, columns: Clique, table: Floats, far_columns: Clique, far: Floats, keep: Clique
    ) -> tuple[Clique, Floats]:
        """The product of a table and a message, summed over what nobody needs any more."""
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
        near, further, kept = ("".join(letter[c] for c in s) for s in (columns, far_columns, out))
        found = np.einsum(f"{near},{further}->{kept}", left, right, optimize=True)
        return out, np.ascontiguousarray(found).reshape(-1)

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
        """Columns to keep after a message: wanted ones, and what later messages hang on."""
        later = [far for far, _ in parts[[far for far, _ in parts].index(done) + 1 :]]
        waiting = {c for far in later for c in self._own(far, clique)}
        return tuple(c for c in columns if c in mine or c in waiting or c not in clique)


def _sorted(table: Floats, columns: Clique, order: Clique, sizes: tuple[int, ...]) -> Floats:
    """A flat table with its columns in another order."""
    shaped = table.reshape([sizes[column] for column in columns])
    moved = shaped.transpose([columns.index(column) for column in order])
    return np.ascontiguousarray(moved).reshape(-1)
