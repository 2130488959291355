"""Bayesian networks: which attribute is drawn given which others.

A network is learned greedily, as in PrivBayes and DP2-Pub, from a block of codes that may be
public (answers, synthetic rows) or from scores of pairs. When a node joins, only parent sets that
contain it are new, so the best set of each remaining attribute is kept and never found again.
Attributes are numbered by their place: 0, 1, ...

The sets of parents that a column may have are those whose noisy table would still say something.
Zhang, Cormode, Procopiuc, Srivastava, Xiao 2017, "PrivBayes: private data release via Bayesian
networks", TODS 42, sections 4.2 and 5.2. All of it is decided by public facts: the sizes of
columns, the number of rows, the noise that a budget brings, and what fits into memory.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import accumulate, combinations
from math import ceil, log, log2, prod
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sfumato import check
from sfumato.errors import InputError
from sfumato.models.information import score_sets
from sfumato.randomness import Rng

Matrix = NDArray[np.float64]
Parents = tuple[int, ...]

LARGEST_SIZE: Final = 2**16
"""The most values of one attribute of a block."""

_THREADS: Final = 2
"""Threads that score parent sets; one for each core of a small machine."""
_LOWEST: Final = -(2**63)
"""The smallest number of 64 bits: any score is larger."""


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
    """A network and how it was found."""

    network: Network
    information: tuple[float, ...]
    """The score, in nats, of attribute 0, 1, ... with its parents; 0 for the root. A corrected
    score is what is left after the subtraction, so it may be below 0."""
    evaluations: int
    """How many scores of an attribute with a parent set were computed."""


def greedy_network(
    block: NDArray[Any],
    sizes: Sequence[int],
    *,
    degree: int,
    rng: Rng,
    correct: bool = False,
) -> LearnedNetwork:
    """From a random root on, always the attribute and parents with the most mutual information.

    With V the attributes that are in, a candidate is one of the others with min(degree, |V|)
    parents from V. Ties go to the lowest attribute, then to the parents that come first in
    lexicographic order. Zhang et al. 2014, "PrivBayes", algorithm 2, without noise: the block must
    be public already. Scores are sums of whole numbers (c log c in fixed point), so the result
    depends on the block and the root alone.

    Information grows with the number of values of the parents even if all are independent:
    with a million possible parents' values for ten thousand records, every record has its own and
    "explains" the attribute completely. ``correct`` subtracts from each score the mean over
    all pairings of the attribute's column with the parents' column (``chance_information`` of the
    counts as observed), which leaves 0 on average where nothing but chance is.

    Args:
        block: Codes, a row for each attribute and a column for each record.
        sizes: How many values each attribute has.
        degree: The most parents of an attribute.
        rng: Chooses the root.
        correct: Whether to subtract what chance explains.
    """
    codes = _checked_block(block, sizes)
    check.whole(at_least=1, degree=degree)
    with ThreadPoolExecutor(_THREADS, thread_name_prefix="sfumato-network") as pool:
        scores = _BlockScores(codes, pool, correct=correct)
        return _grow(len(codes), degree, rng, scores.best, one_nat=scores.one_nat)


def greedy_network_from_scores(scores: Matrix, *, degree: int, rng: Rng) -> LearnedNetwork:
    """The same greedy choice where only scores of pairs are known, as from debiased tables.

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

    def best(newcomer: int, others: Sequence[int], size: int, children: Sequence[int]) -> _Best:
        sets = np.array([sorted((newcomer, *rest)) for rest in combinations(others, size - 1)])
        relevance = [pairs[np.ix_(np.array(children), sets[:, index])] for index in range(size)]
        joint = np.sum(relevance, axis=0) - _tree_weights(pairs, sets)
        values = np.maximum(np.max(relevance, axis=0), joint)
        firsts = values.argmax(axis=1)
        ranks = [
            (-values[row, first].item(), tuple(sets[first].tolist()))
            for row, first in enumerate(firsts)
        ]
        return ranks, values.size

    return _grow(len(pairs), degree, rng, best, one_nat=1.0)


def maximum_spanning_tree(scores: Matrix) -> tuple[tuple[int, int], ...]:
    """The tree over all attributes with the largest sum of scores: its edges (low, high).

    Largest score first, ties to the edge that comes first in lexicographic order; an edge that
    would close a cycle is left out. Kruskal 1956; with mutual information as the score, the tree
    distribution nearest to the truth: Chow, Liu 1968, "Approximating discrete probability
    distributions with dependence trees".

    >>> maximum_spanning_tree(np.array([[0, 3, 1], [3, 0, 2], [1, 2, 0]]))
    ((0, 1), (1, 2))
    """
    pairs = _checked_scores(scores)
    component = list(range(len(pairs)))
    edges: list[tuple[int, int]] = []
    candidates = combinations(range(len(pairs)), 2)
    for low, high in sorted(candidates, key=lambda edge: (-pairs[edge], edge)):
        here, there = component[low], component[high]
        if here != there:
            edges.append((low, high))
            component = [here if own == there else own for own in component]
    return tuple(edges)


_Rank = tuple[float, Parents]
"""A candidate of one attribute: minus its score and its parents. The least is the best."""

_Best = tuple[list[_Rank], int]
"""The best rank of each child, and how many candidates were scored."""


def _grow(
    attributes: int,
    degree: int,
    rng: Rng,
    best_new: Callable[[int, Sequence[int], int, Sequence[int]], _Best],
    *,
    one_nat: float,
) -> LearnedNetwork:
    """The greedy choice; ``best_new`` scores parent sets of one size that hold the newcomer."""
    root = int(rng.below(attributes, 1)[0])
    order, left = [root], [attribute for attribute in range(attributes) if attribute != root]
    parents: list[Parents] = [()] * attributes
    information, evaluations = [0.0] * attributes, 0
    best: dict[int, _Rank] = {}
    while left:
        if len(order) <= degree:
            best.clear()  # parent sets have grown: smaller ones are no candidates any more
        new, scored = best_new(order[-1], sorted(order[:-1]), min(degree, len(order)), left)
        evaluations += scored
        for child, rank in zip(left, new, strict=True):
            best[child] = min(best.get(child, rank), rank)
        chosen = min(left, key=lambda child: (best[child][0], child))
        minus_score, parents[chosen] = best.pop(chosen)
        information[chosen] = -minus_score / one_nat
        order.append(chosen)
        left.remove(chosen)
    network = Network(order=tuple(order), parents=tuple(parents))
    return LearnedNetwork(network=network, information=tuple(information), evaluations=evaluations)


class _BlockScores:
    """Scores from counts of a block, in fixed point, several parent sets at a time."""

    def __init__(self, codes: NDArray[np.uint16], pool: ThreadPoolExecutor, *, correct: bool):
        self._codes, self._pool = codes, pool
        records, width = codes.shape[1], int(codes.max()) + 1
        counts = np.arange(records + 1)
        nats = counts * np.log(np.maximum(counts, 1))
        # A power of two that leaves sums, at most n log n, below 2^61.
        self._unit: float = 2.0 ** (60 - ceil(log2(max(records * log(records), 1.0))))
        self._weights = np.rint(nats * self._unit).astype(np.int64)
        self._margins = np.array([np.bincount(row, minlength=width) for row in codes])
        largest = int(self._margins.max())
        # What chance explains of an attribute in a group of some size: found when first needed.
        known = np.full((len(codes), largest + 1 if correct else 0), -1, dtype=np.int64)
        self._chance = known
        alone = self._weights[-1] - self._weights[self._margins].sum(axis=1)
        self._entropies = np.zeros_like(alone) if correct else alone

    @property
    def one_nat(self) -> float:
        """What a score of one nat is."""
        return self._unit * float(self._codes.shape[1])

    def best(
        self, newcomer: int, others: Sequence[int], size: int, children: Sequence[int]
    ) -> _Best:
        """The best of each child; one task for each parent that follows the newcomer."""
        names, wanted = np.array(others, dtype=np.int64), np.array(children)
        starts = range(len(others) - size + 2 if size > 1 else 1)
        tasks = [
            self._pool.submit(self._score, newcomer, names, first, size, wanted) for first in starts
        ]
        results = [task.result() for task in tasks]
        scores = np.array([result[0] for result in results])
        firsts, ranks = scores.argmax(axis=0), []
        for index, (child, first) in enumerate(zip(children, firsts.tolist(), strict=True)):
            score = scores[first, index].item() + self._entropies[child].item()
            own = names[results[first][1][index]].tolist()
            ranks.append((-score, tuple(sorted((newcomer, *own)))))
        return ranks, sum(result[2] for result in results)

    def _score(
        self,
        newcomer: int,
        others: NDArray[np.int64],
        first: int,
        size: int,
        children: NDArray[np.int64],
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
        best = np.full(children.size, _LOWEST, dtype=np.int64)
        picks = np.zeros((children.size, size - 1), dtype=np.int64)
        evaluations = score_sets(
            self._codes,
            newcomer,
            others,
            first,
            size,
            children,
            self._margins,
            self._weights,
            self._chance,
            self._unit,
            best,
            picks,
        )
        return best, picks, evaluations


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


def _checked_block(block: NDArray[Any], sizes: Sequence[int]) -> NDArray[np.uint16]:
    codes = np.asarray(block)
    if codes.ndim != 2 or not codes.size or codes.dtype.kind not in "iu":
        raise InputError(
            "block must hold whole codes, a row for each attribute and a column for each record, "
            f"and at least one of both; got {codes.dtype} of shape {codes.shape}"
        )
    if len(sizes) != len(codes):
        raise InputError(f"sizes must have {len(codes)} entries, as the block, got {len(sizes)}")
    if codes.shape[1] >= 2**31:
        raise InputError("block must have less than 2^31 records; learn from a sample of them")
    for attribute, (row, size) in enumerate(zip(codes, sizes, strict=True)):
        check.whole(at_least=1, at_most=LARGEST_SIZE, sizes=size)
        if row.min() < 0 or row.max() >= size:
            raise InputError(f"attribute {attribute} has codes outside 0 to {size - 1}")
    return np.ascontiguousarray(codes, dtype=np.uint16)


def usefulness(*, rows: int, cells: int, noise_counts: float) -> float:
    """The mean count of a cell over the mean size of its noise: n / (m E|noise|).

    With Laplace noise of scale 2 d / epsilon on each of d tables, as rows are replaced, this is
    n epsilon / (2 d m): definition 4.7 and lemma 4.8.

    >>> usefulness(rows=20_000, cells=2**8, noise_counts=2 * 10 / 1)  # 10 tables, epsilon 1
    3.90625
    """
    return rows / (cells * noise_counts)


def largest_useful_table(
    sizes: Sequence[int],
    *,
    rows: int,
    theta: float,
    degree: int,
    most: int,
    noise_counts: Callable[[int], float],
) -> int:
    """The most cells that a table may have and still be theta-useful.

    Columns whose joint table is small enough all become parents of each other, in a chain, and
    one table tells of them all: of d columns, if even the m largest fit together, at most
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
        useful = usefulness(rows=rows, cells=1, noise_counts=noise_counts(tables)) / theta
        limit = int(min(useful, most))
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
        most_sets: So many tables of more than two columns may be counted.
        most_cells: So many cells may all tables have together.
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
    place: int,
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
    enough = len(chosen) + len(sizes) - place >= degree
    if not enough and cells * beyond[place] * least <= room:
        return
    if place == len(sizes):
        yield chosen
        return
    size = sizes[place]
    rest = (sizes, beyond, room, degree, place + 1)
    if cells * size <= room:
        yield from _grow_sets(*rest, (*chosen, place), cells * size, least)
    yield from _grow_sets(*rest, chosen, cells, min(least, size))


def _sets_by_cells(
    sizes: Sequence[int], *, limit: int, longest: int
) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """How many sets of so many columns have so many cells, by both numbers.

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
