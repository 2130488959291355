"""Junction trees: cliques of columns whose overlaps form a tree, and how large their tables are.

A joint distribution that factorizes over the cliques is known from the cliques' own tables. Which
cliques are needed for given marginals is found by eliminating one column after another.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import prod

from sfumato.errors import InputError

Clique = tuple[int, ...]
"""Numbers of columns, rising."""

BYTES_PER_CELL = 8
"""A cell is a float of 64 bits."""


@dataclass(frozen=True, kw_only=True)
class JunctionTree:
    """Cliques in an order in which each comes after its parent.

    The running intersection: what a clique shares with all earlier ones, it shares with its
    parent. Lauritzen, Spiegelhalter 1988, "Local computations with probabilities on graphical
    structures"; Koller, Friedman 2009, "Probabilistic graphical models", chapter 10.
    """

    sizes: tuple[int, ...]
    """The number of codes of each column."""
    cliques: tuple[Clique, ...]
    parents: tuple[int, ...]
    """The index of each clique's parent; -1 for the first."""

    @cached_property
    def separators(self) -> tuple[Clique, ...]:
        """What each clique shares with its parent; nothing for the first."""
        return tuple(
            tuple(sorted(set(clique) & set(self.cliques[parent]))) if parent >= 0 else ()
            for clique, parent in zip(self.cliques, self.parents, strict=True)
        )

    @property
    def cells(self) -> int:
        """Cells of all cliques together."""
        return sum(cells(self.sizes, clique) for clique in self.cliques)

    @property
    def megabytes(self) -> float:
        """What one copy of all tables takes."""
        return min(self.cells, 2**1000) * BYTES_PER_CELL / 2**20  # what a float can still say

    def home(self, marginal: Iterable[int]) -> int | None:
        """The smallest clique that holds these columns, if any."""
        columns = set(marginal)
        holding = [index for index, clique in enumerate(self.cliques) if columns <= set(clique)]
        return min(holding, key=lambda p: cells(self.sizes, self.cliques[p]), default=None)


def junction_tree(sizes: Sequence[int], sets: Iterable[Iterable[int]]) -> JunctionTree:
    """A junction tree in which each of ``sets`` lies in a clique and every column in one.

    Columns are eliminated one by one, the one whose neighborhood has the fewest cells first
    (Koller, Friedman 2009, section 9.4.3.2, "min-weight"); the neighborhoods are the cliques. A
    spanning tree with the largest overlaps joins them (Jensen, Jensen 1994).
    """
    neighbors: list[set[int]] = [set() for _ in sizes]
    for one in sets:
        for left, right in combinations(sorted(set(one)), 2):
            neighbors[left].add(right)
            neighbors[right].add(left)
    return tree_of(sizes, _eliminated(sizes, neighbors))


def tree_of(sizes: Sequence[int], cliques: Iterable[Clique]) -> JunctionTree:
    """Maximal cliques of a triangulated graph joined into a tree, the largest first."""
    maximal: list[Clique] = []
    for clique in sorted(set(cliques), key=len, reverse=True):
        if not any(set(clique) <= set(other) for other in maximal):
            maximal.append(clique)
    maximal.sort(key=lambda c: (-cells(sizes, c), c))
    order, parents = [0], [-1]
    best = {
        index: (len(set(maximal[index]) & set(maximal[0])), 0) for index in range(1, len(maximal))
    }
    while best:
        index = max(best, key=lambda p: (best[p][0], -p))
        _, parent = best.pop(index)
        parents.append(order.index(parent))
        order.append(index)
        for other, (shared, _) in best.items():
            more = len(set(maximal[other]) & set(maximal[index]))
            if more > shared:
                best[other] = (more, index)
    return JunctionTree(
        sizes=tuple(sizes), cliques=tuple(maximal[p] for p in order), parents=tuple(parents)
    )


def cells(sizes: Sequence[int], clique: Iterable[int]) -> int:
    """The number of cells of a table, as an exact integer."""
    return prod(sizes[column] for column in clique)


def check_fits(tree: JunctionTree, *, limit_mb: float) -> None:
    """Refuse a model that is too large, before anything of it is allocated."""
    if tree.megabytes > limit_mb:
        raise InputError(
            f"the model needs {tree.megabytes:,.1f} MB, and {limit_mb:g} MB are allowed. Allow "
            "more, ask for fewer or smaller marginals, or use wider bins."
        )


def _eliminated(sizes: Sequence[int], neighbors: list[set[int]]) -> list[Clique]:
    """The neighborhood of each column when its turn comes; changes ``neighbors``."""
    left, result = set(range(len(sizes))), []
    weight = {column: cells(sizes, neighbors[column] | {column}) for column in left}
    while left:
        column = min(left, key=lambda c: (weight[c], c))
        around = neighbors[column]
        result.append(tuple(sorted(around | {column})))
        for one in around:
            neighbors[one] |= around
            neighbors[one] -= {one, column}
        left.remove(column)
        for one in around:
            weight[one] = cells(sizes, neighbors[one] | {one})
    return result
