"""Bayesian networks: which attribute is drawn given which others.

A network is learned greedily, as in PrivBayes and DP2-Pub, from public scores of pairs. When a node
joins, only parent sets that contain it are new, so the best set of each remaining attribute is
stored and never computed again. Attributes are numbered 0, 1, ...

The sets of parents that a column may have are those whose noisy table would still say something.
Zhang, Cormode, Procopiuc, Srivastava, Xiao 2017, "PrivBayes: private data release via Bayesian
networks", TODS 42, sections 4.2 and 5.2. All of it is decided by public facts: the sizes of
columns, the number of rows, the noise that a budget brings, and what fits into memory.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, combinations
from math import prod

import numpy as np
from numpy.typing import NDArray

from sfumato import check
from sfumato.errors import InputError
from sfumato.randomness import Rng

Matrix = NDArray[np.float64]
Parents = tuple[int, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Network:
    """A directed acyclic graph: in ``order``, every attribute comes after its parents."""

    order: tuple[int, ...]
    parents: tuple[Parents, ...]
    """The parents of attribute 0, of attribute 1, ..."""

    def __post_init__(self) -> None:
        if not self.order or sorted(self.order) != list(range(len(self.parents))):
            raise InputError(
                "order must name each attribute 0, 1, ... once, and parents must have an entry "
                f"for each, got {len(self.order)} and {len(self.parents)} of them"
            )
        before: set[int] = set()
        for attribute in self.order:
            own = self.parents[attribute]
            if len(set(own)) < len(own) or not before.issuperset(own):
                raise InputError(
                    f"the parents of attribute {attribute}, {own}, must be different and must "
                    "come before it in the order: a network has no cycles"
                )
            before.add(attribute)

    @property
    def edges(self) -> tuple[tuple[int, int], ...]:
        """Every (parent, child), by child in order."""
        return tuple((parent, child) for child in self.order for parent in self.parents[child])

    def children(self, attribute: int) -> tuple[int, ...]:
        """The attributes that have this one as a parent, in order."""
        return tuple(child for child in self.order if attribute in self.parents[child])

    def markov_blanket(self, attribute: int) -> tuple[int, ...]:
        """Parents, children and the children's other parents, rising.

        Given those, the attribute is independent of all others. Pearl 1988, "Probabilistic
        reasoning in intelligent systems", chapter 3.
        """
        check.whole(at_least=0, at_most=len(self.order) - 1, attribute=attribute)
        children = self.children(attribute)
        blanket = {*self.parents[attribute], *children}
        blanket.update(*(self.parents[child] for child in children))
        return tuple(sorted(blanket - {attribute}))


@dataclass(frozen=True, kw_only=True, slots=True)
class LearnedNetwork:
    """A network and how it was learned."""

    network: Network
    information: tuple[float, ...]
    """The score, in nats, of attribute 0, 1, ... with its parents; 0 for the root."""
    evaluations: int
    """How many scores of an attribute with a parent set were computed."""


def greedy_network_from_scores(scores: Matrix, *, degree: int, rng: Rng) -> LearnedNetwork:
    """From a random root on, always the attribute and parents with the most mutual information.

    With V the attributes that are in, a candidate is one of the others with min(degree, |V|)
    parents from V. Ties go to the lowest attribute, then to the parents that come first in
    lexicographic order. Zhang et al. 2014, "PrivBayes", algorithm 2, without noise: the scores must
    be public already, as those of debiased tables are.

    The score of x with parents P is sum I(x; p) - T(P), and at least max I(x; p), where T(P) is
    the weight of the maximum spanning tree of P. For I(x; P) = sum I(x; p) - TC(P) + TC(P | x),
    with TC the total correlation: T(P) is the most of TC(P) that pairs can show (Chow, Liu 1968),
    and exactly TC(P) for two parents; TC(P | x) = 0 where the parents are independent given x; and
    more parents never tell less. A plain sum would take the same parent twice under two names.
    With degree 1 this is a maximum spanning tree.

    Args:
        scores: Mutual information of every two attributes, symmetric; the diagonal is not read.
        degree: The most parents of an attribute.
        rng: Chooses the root.
    """
    pairs = _checked_scores(scores)
    check.whole(at_least=1, degree=degree)
    root = int(rng.below(len(pairs), 1)[0])
    order, left = [root], [attribute for attribute in range(len(pairs)) if attribute != root]
    parents: list[Parents] = [()] * len(pairs)
    information, evaluations = [0.0] * len(pairs), 0
    best: dict[int, tuple[float, Parents]] = {}  # minus the score and the parents: the least wins
    while left:
        if len(order) <= degree:
            best.clear()  # parent sets have grown: smaller ones are no candidates any more
        size = min(degree, len(order))
        new_sets = combinations(sorted(order[:-1]), size - 1)
        sets = np.array([sorted((order[-1], *rest)) for rest in new_sets])
        relevance = [pairs[np.ix_(np.array(left), sets[:, index])] for index in range(size)]
        joint = np.sum(relevance, axis=0) - _tree_weights(pairs, sets)
        values = np.maximum(np.max(relevance, axis=0), joint)
        evaluations += values.size
        for row, (child, first) in enumerate(zip(left, values.argmax(axis=1), strict=True)):
            rank = (-values[row, first].item(), tuple(sets[first].tolist()))
            best[child] = min(best.get(child, rank), rank)
        chosen = min(left, key=lambda child: (best[child][0], child))
        minus_score, parents[chosen] = best.pop(chosen)
        information[chosen] = -minus_score
        order.append(chosen)
        left.remove(chosen)
    network = Network(order=tuple(order), parents=tuple(parents))
    return LearnedNetwork(network=network, information=tuple(information), evaluations=evaluations)


def _tree_weights(pairs: Matrix, sets: NDArray[np.int64]) -> Matrix:
    """The weight of the maximum spanning tree of each set: Prim 1957, on all sets at once."""
    rows = np.arange(len(sets))
    among = pairs[sets[:, :, None], sets[:, None, :]]
    outside = np.ones(sets.shape, dtype=np.bool_)
    outside[:, 0] = False
    near, weights = among[:, 0], np.zeros(len(sets))
    for _ in range(1, sets.shape[1]):
        joins = np.where(outside, near, -np.inf).argmax(axis=1)
        weights += near[rows, joins]
        outside[rows, joins] = False
        near = np.maximum(near, among[rows, joins])
    return weights


def _checked_scores(scores: Matrix) -> Matrix:
    pairs = np.array(scores, dtype=np.float64)
    if pairs.ndim != 2 or not 1 <= len(pairs) == pairs.shape[1]:
        raise InputError(f"scores must be a square matrix, got shape {pairs.shape}")
    np.fill_diagonal(pairs, 0.0)
    if not np.isfinite(pairs).all() or not np.array_equal(pairs, pairs.T):
        raise InputError("scores must be finite and symmetric: a pair has one score")
    return pairs


def largest_useful_table(
    sizes: Sequence[int],
    *,
    rows: int,
    theta: float,
    degree: int,
    most: int,
    noise_counts: Callable[[int], float],
) -> int:
    """The most cells m that a table may have and still be theta-useful: n / (m E|noise|) >= theta.

    Usefulness is the mean count of a cell over the mean size of its noise. With Laplace noise of
    scale 2 d / epsilon on each of d tables, as rows are replaced, it is n epsilon / (2 d m):
    definition 4.7 and lemma 4.8.

    Columns whose joint table is small enough all become parents of each other, in a chain, and
    one table covers them all: of d columns, if even the m largest fit together, at most
    d - m + 1 tables are measured. For columns of two values these are the d - k of the paper. The
    fewest tables that go together with the limit they allow are taken.

    Args:
        sizes: How many values each column has.
        rows: Of the table.
        theta: The least usefulness.
        degree: The most parents of a column.
        most: The most cells of a table, however useful.
        noise_counts: The mean size of the noise of one cell, by the number of tables measured.
    """
    falling = sorted(sizes, reverse=True)[: degree + 1]
    for tables in range(1, len(sizes) + 1):
        limit = int(min(rows / noise_counts(tables) / theta, most))
        together = sum(cells <= limit for cells in accumulate(falling, lambda a, b: a * b))
        if len(sizes) - max(together, 1) + 1 <= tables:
            break
    return limit


def affordable(
    sizes: Sequence[int], *, limit: int, degree: int, most_sets: int, most_cells: int
) -> tuple[int, int]:
    """The degree and the limit of cells up to which all tables can be counted.

    First the degree falls, to 1 if need be. Pairs are counted however many there are; if their
    cells are too many, the limit falls too.

    Args:
        sizes: How many values each column has.
        limit: The most cells of a table.
        degree: The most parents of a column.
        most_sets: The most tables of more than two columns that may be counted.
        most_cells: The most cells of all tables together.
    """
    counts = _sets_by_cells(sizes, limit=limit, longest=degree + 1)
    cells = np.arange(limit + 1)
    for most in range(degree, 0, -1):
        each = counts[2 : most + 2].sum(axis=0)
        few = most == 1 or each.sum() <= most_sets
        if few and each @ cells <= most_cells:
            return most, limit
    fitting = np.flatnonzero(np.cumsum(counts[2] * cells) <= most_cells)
    return 1, int(fitting[-1])


def maximal_parent_sets(
    sizes: Mapping[str, int], *, room: int, degree: int
) -> list[tuple[str, ...]]:
    """All sets of columns of at most ``room`` cells to which no other column can be added.

    Algorithm 5 of the paper without its generalized columns; a set of ``degree`` columns is
    complete too. The empty set is one only if nothing fits.

    >>> maximal_parent_sets({"a": 4, "b": 2, "c": 2}, room=8, degree=3)
    [('a', 'b'), ('a', 'c'), ('b', 'c')]
    """
    names = sorted(sizes, key=lambda name: -sizes[name])
    order = [sizes[name] for name in names]
    beyond = [prod(order[index:]) for index in range(len(order) + 1)]
    result = _grow_sets(order, beyond, room, degree, 0, (), 1, room + 1)
    return [tuple(names[index] for index in own) for own in result]


def _grow_sets(
    sizes: Sequence[int],
    beyond: Sequence[int],
    room: int,
    degree: int,
    column: int,
    chosen: tuple[int, ...],
    cells: int,
    least: int,
) -> Iterator[tuple[int, ...]]:
    """With and without each column; ``least`` is the smallest that was left out so far.

    A branch ends where that one could be added even to all columns that are still to come.
    """
    if len(chosen) == degree:
        yield chosen
        return
    enough = len(chosen) + len(sizes) - column >= degree
    if not enough and cells * beyond[column] * least <= room:
        return
    if column == len(sizes):
        yield chosen
        return
    size = sizes[column]
    rest = (sizes, beyond, room, degree, column + 1)
    if cells * size <= room:
        yield from _grow_sets(*rest, (*chosen, column), cells * size, least)
    yield from _grow_sets(*rest, chosen, cells, min(least, size))


def _sets_by_cells(
    sizes: Sequence[int], *, limit: int, longest: int
) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """The number of sets of columns by their number of columns and of cells.

    Column by column: a set with the new one has its size times the cells of a set without it.
    """
    longest = min(longest, len(sizes))
    counts = np.zeros((longest + 1, limit + 1))
    counts[0, 1 : limit + 1][:1] = 1
    for size in sizes:
        fits = limit // size + 1
        grown = counts[:-1, :fits].copy()
        counts[1:, : fits * size : size] += grown
    return counts
