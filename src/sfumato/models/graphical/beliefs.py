"""Belief propagation: the tables of a junction tree's cliques, kept in agreement.

Hugin's scheme in probabilities: each clique holds its own marginal, each separator what its two
cliques agreed on last. A change of a clique travels along the tree as the ratio of the new to the
old marginal of the separator; where nothing changed, nothing is computed.
"""

from functools import lru_cache
from math import log

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InternalError
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
        for place in range(1, len(tables)):
            made.separators[place] = made.marginal(place, tree.separators[place])
        return made

    def copy_from(self, other: "Beliefs") -> None:
        """Take over the numbers of calibrated beliefs of the same tree."""
        for mine, theirs in zip(self.tables, other.tables, strict=True):
            mine[:] = theirs
        self.separators = list(other.separators)
        self._changed = [False] * len(self.tables)

    def marginal(self, place: int, columns: Clique) -> Floats:
        """The marginal of some columns of one clique, flat, in rising order of columns."""
        return project(self.tables[place], self.tree.sizes, self.tree.cliques[place], columns)

    def multiply(self, place: int, columns: Clique, factor: Floats) -> None:
        """Multiply a clique by a factor over some of its columns; ``calibrate`` spreads it."""
        scale(self.tables[place], self.tree.sizes, self.tree.cliques[place], columns, factor)
        self.touch(place)

    def touch(self, place: int) -> None:
        """Say that the table of a clique was changed."""
        self._changed[place] = True

    def calibrate(self) -> float:
        """Bring all cliques to agreement and to a sum of 1: towards the root, and back.

        Returns:
            The logarithm of the sum before.
        """
        log_total = 0.0
        for place in range(len(self.tables) - 1, 0, -1):
            if self._changed[place]:
                log_total += self._tell(place, self.tree.parents[place], place)
        if self._changed[0]:
            total = _mass(self.tables[0])
            self.tables[0] *= 1 / total
            log_total += log(total)
        for place in range(1, len(self.tables)):
            parent = self.tree.parents[place]
            if self._changed[parent] or self._changed[place]:
                self._tell(parent, place, place)
        self._changed = [False] * len(self.tables)
        return log_total

    def _tell(self, speaker: int, hearer: int, separator: int) -> float:
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
    blocks, kept = _blocks(sizes, clique, columns)
    if blocks.size == 1:
        return table.copy() if kept else table.sum(keepdims=True)
    from sfumato.models.graphical.belief_kernels import (
        add_marginal,  # numba loads when a model is fitted
    )

    out = np.zeros(cells(sizes, columns))
    add_marginal(table, blocks, kept, out)
    return out


def scale(
    table: Floats, sizes: tuple[int, ...], clique: Clique, columns: Clique, factor: Floats
) -> None:
    """Multiply a table of a clique by a factor over some of its columns, in place."""
    from sfumato.models.graphical.belief_kernels import multiply

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
        kept = column in columns
        if kept != flags[-1]:
            lengths.append(1)
            flags.append(kept)
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
