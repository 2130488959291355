"""Dependence in nats: entropy and mutual information of tables, and what noise does to them.

Tables that went through randomized response look less dependent than they were and, being noisy,
more dependent than nothing: the first is undone by ``debiased_joint``, the second is what the
two functions of chance are for.

Records with equal values in all parents form a group. One more parent splits the groups, and a
group of one record is dropped: it adds 1 log 1 = 0 to every sum, now and after each further split.
Sums of c log c are kept as whole numbers, so neither the order nor the number of threads can
change a score. All compiled functions are in one file, because
numba's cache on disk does not see changes in another.
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import log
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from sfumato import check
from sfumato.errors import InputError
from sfumato.models.model import project

Table = NDArray[np.float64]
Pair = tuple[str, str]

Response = tuple[float | Fraction, float | Fraction] | Table
"""How answers came about: (p, q) of a k-ary response, which gives the true code with probability
p and every other one with q; or a transition matrix, inputs by answers."""


def entropy(table: NDArray[Any]) -> float:
    """H = - sum p log p of a table of counts or frequencies, with 0 log 0 = 0.

    Shannon 1948, "A mathematical theory of communication", section 6.

    >>> round(entropy(np.array([2, 1, 1, 0])), 6)
    1.039721
    """
    shares = _shares(table)
    positive = shares[shares > 0]
    return max(0.0, -float(positive @ np.log(positive)))


def tie_strength(table: NDArray[np.float64]) -> float:
    """The total variation between a two-way table of shares and the product of its one-ways.

    >>> tie_strength(np.array([[0.5, 0.0], [0.0, 0.5]]))
    0.5
    """
    product = np.outer(table.sum(axis=1), table.sum(axis=0))
    return float(np.abs(table - product).sum()) / 2


def mutual_information(joint: NDArray[Any]) -> float:
    """I = sum p_ab log(p_ab / (p_a p_b)) of a two-way table of counts or frequencies.

    >>> round(mutual_information(np.array([[2, 0], [1, 1]])), 6)
    0.215762
    """
    shares = _shares(joint)
    if shares.ndim != 2:
        raise InputError(f"mutual information needs a table of 2 axes, got {shares.ndim}")
    independent = np.multiply.outer(shares.sum(axis=1), shares.sum(axis=0))
    positive = shares > 0
    ratios = shares[positive] / independent[positive]
    return max(0.0, float(shares[positive] @ np.log(ratios)))


def debiased_joint(counts: NDArray[Any], left: Response, right: Response) -> Table:
    """The joint frequencies behind two attributes whose answers were randomized independently.

    The expected table of answers is n L^T F R, with the transition matrices of both attributes.
    F = L^-T C R^-1 / n is unbiased; its nearest table without negative cells is returned (see
    ``project``). For a k-ary response the inverse along an axis is
    (x - q * sum x) / (p - q): Warner 1965, "Randomized response"; Kairouz, Bonawitz, Ramage 2016,
    arXiv 1602.07387.

    >>> debiased_joint(np.array([[5, 3], [3, 5]]), (0.75, 0.25), (1.0, 0.0)).tolist()
    [[0.375, 0.125], [0.125, 0.375]]

    Args:
        counts: How often each pair of answers was given.
        left: What the first attribute's answers (rows) went through.
        right: What the second attribute's answers (columns) went through.
    """
    shares = _shares(counts)
    if shares.ndim != 2:
        raise InputError(f"a joint table has 2 axes, got {shares.ndim}.")
    undone = _undone(_undone(shares, left, "left").T, right, "right").T
    return project(undone, 1.0)


def debiased_information(
    block: NDArray[Any], sizes: Sequence[int], responses: Sequence[Response]
) -> Table:
    """The mutual information of every two attributes, each of its debiased table; diagonal 0.

    Args:
        block: Answers, a row for each attribute and a column for each record.
        sizes: How many values each attribute has.
        responses: What the answers about each attribute went through.
    """
    from sfumato.models.code_counts import map_pairs  # loads numba: only when asked for

    if len(responses) != len(sizes):
        raise InputError(
            f"responses must have an entry for each of the {len(sizes)} attributes, got "
            f"{len(responses)}."
        )

    def judge(pair: tuple[int, int], counts: NDArray[Any]) -> float:
        left, right = (responses[attribute] for attribute in pair)
        return mutual_information(debiased_joint(counts, left, right))

    result = np.zeros((len(sizes), len(sizes)))
    for (i, j), nats in map_pairs(judge, block, sizes).items():
        result[i, j] = result[j, i] = nats
    return result


def expected_noise_information(sizes: tuple[int, int], n: int) -> float:
    """The mutual information that n pairs of independent values show on average: by chance alone.

    (a - 1)(b - 1) / (2n) to first order in 1/n, where every value is frequent: 2n I is then
    chi-squared with (a - 1)(b - 1) degrees of freedom. Miller 1955, "Note on the bias of
    information estimates". It holds for the answers as they came; a debiased table is noisier.

    >>> expected_noise_information((3, 5), 1_000)
    0.004
    """
    left, right = (check.whole(at_least=1, sizes=size) for size in sizes)
    return (left - 1) * (right - 1) / (2 * check.whole(at_least=1, n=n))


def chance_information(left: NDArray[np.int64], right: NDArray[np.int64]) -> float:
    """The mean mutual information of all pairings of two columns with these counts of values.

    Exact at any size: each cell is hypergeometric. Vinh, Epps, Bailey 2010, "Information
    theoretic measures for clusterings comparison", JMLR 11. With many rare values
    it tends to the smaller entropy, far below ``expected_noise_information``.

    >>> round(chance_information(np.array([3, 3]), np.array([1, 1, 1, 1, 1, 1])), 6)
    0.693147
    """
    from sfumato.models.information import chance_sum  # loads numba: only when asked for

    margins = [_margin(left), _margin(right)]
    n = int(margins[0].sum())
    if n != margins[1].sum():
        raise InputError("both margins must count the same records, so their sums must be equal")
    times, group_sizes = np.unique(margins[1], return_counts=True)[::-1]
    sums = [chance_sum(margins[0], size, n) for size in group_sizes.tolist()]
    return entropy(margins[0]) + entropy(margins[1]) - log(n) + float(times @ np.array(sums)) / n


def information_matrix(tables: Mapping[Pair, NDArray[Any]], names: Sequence[str]) -> Table:
    """The mutual information of every two attributes; the diagonal is 0.

    Args:
        tables: A two-way table for every pair of names, in either order.
        names: The attributes in the order of rows and columns.
    """
    result = np.zeros((len(names), len(names)))
    for j, second in enumerate(names):
        for i, first in enumerate(names[:j]):
            table = tables.get((first, second), tables.get((second, first)))
            if table is None:
                raise InputError(
                    f"there is no table of {first!r} and {second!r}; a matrix needs all pairs"
                )
            result[i, j] = result[j, i] = mutual_information(table)
    return result


def information_error(found: Table, exact: Table) -> float:
    """The mean absolute difference of two mutual-information matrices over all pairs.

    Jiang et al. 2023, "DP2-Pub", arXiv 2208.11693. Diagonals are left out.
    """
    if found.shape != exact.shape or found.ndim != 2 or not 2 <= len(found) == found.shape[1]:
        raise InputError(
            "two matrices of the same 2 or more attributes are needed, got shapes "
            f"{found.shape} and {exact.shape}"
        )
    above = np.triu_indices(len(found), 1)
    return float(np.abs(found[above] - exact[above]).mean())


def _undone(shares: Table, response: Response, name: str) -> Table:
    """The expected shares of the inputs along the first axis."""
    size = len(shares)
    if not isinstance(response, tuple):
        matrix = np.asarray(response, dtype=np.float64)
        if matrix.shape != (size, size) or not np.allclose(matrix.sum(axis=1), 1, atol=1e-6):
            raise InputError(
                f"{name} must be a matrix of {size} inputs by {size} answers whose rows sum to 1, "
                f"got shape {matrix.shape}."
            )
        if np.linalg.matrix_rank(matrix) < size:
            raise InputError(f"{name} can't be inverted: some inputs answer alike.")
        return np.asarray(np.linalg.solve(matrix.T, shares))
    p, q = (float(probability) for probability in response)
    if not 0 <= q < p <= 1 or abs(p + (size - 1) * q - 1) > 1e-6:
        raise InputError(
            f"{name} must be (p, q) with 0 <= q < p and p + {size - 1} q = 1 for its {size} "
            f"codes, got ({p!r}, {q!r})."
        )
    return np.asarray((shares - q * shares.sum(axis=0)) / (p - q))


def _shares(table: NDArray[Any]) -> Table:
    cells = np.asarray(table, dtype=np.float64)
    total = cells.sum()
    if not (np.isfinite(cells) & (cells >= 0)).all() or not 0 < total < np.inf:
        raise InputError("a table needs finite cells >= 0 with a sum above 0")
    return np.asarray(cells / total)


def _margin(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    margin = np.asarray(counts)
    if margin.ndim != 1 or margin.dtype.kind not in "iu" or (margin < 0).any() or not margin.any():
        raise InputError("a margin must be a vector of whole counts >= 0 with a sum above 0")
    return margin.astype(np.int64)


Codes = NDArray[np.uint16]
Count = int | np.int64
Whole = NDArray[np.int64]
Places = NDArray[np.uint32]
Stamps = NDArray[np.uint64]

_ZERO, _ONE = np.uint64(0), np.uint64(1)  # unsigned indices need no check for "from the end"

_NEGLIGIBLE = 1e-18
"""A probability this small against the largest one adds nothing to a double-precision sum."""


@numba.njit(cache=True, nogil=True)
def score_sets(
    block: Codes,
    newcomer: int,
    others: Whole,
    first: int,
    size: int,
    children: Whole,
    margins: Whole,
    weights: Whole,
    chance: Whole,
    unit: float,
    best: Whole,
    best_picks: Whole,
) -> int:
    """Score every child with every parent set that holds the newcomer and ``others[first]``.

    ``others`` rises; the other ``size - 2`` parents come after ``first``, in lexicographic order,
    and only a larger score replaces an earlier one. Writes each child's best score and the places
    in ``others`` of its set; returns the number of evaluations.
    """
    records, width = block.shape[1], margins.shape[1]
    members = np.empty((size + 1, records), dtype=np.uint32)
    ends = np.empty((size + 1, max(records // 2, 1)), dtype=np.uint32)
    groups = np.ones(size + 1, dtype=np.int64)
    members[0], ends[0, 0] = np.arange(records), records
    counts, slots = np.zeros(width + 1, dtype=np.uint64), np.zeros(width, dtype=np.int64)
    _refine(block[newcomer], members, ends, groups, 1, counts, slots)
    picks = first - 1 + np.arange(size)  # place 0 stands for the newcomer
    changed, evaluations = 1, 0
    while True:
        for depth in range(changed, size):
            parent = block[others[picks[depth]]]
            _refine(parent, members, ends, groups, depth + 1, counts, slots)
        set_members, set_ends = members[size], ends[size, : groups[size]]
        for index in range(children.size):
            codes, margin = block[children[index]], margins[children[index]]
            expected = chance[children[index]]
            score = _score(codes, set_members, set_ends, margin, weights, expected, unit, counts)
            if score > best[index]:
                best[index] = score
                best_picks[index] = picks[1:]
        evaluations += children.size
        changed = size - 1
        while changed > 1 and picks[changed] == others.size - size + changed:
            changed -= 1
        if changed <= 1:
            return evaluations
        picks[changed:] = picks[changed] + 1 + np.arange(size - changed)


@numba.njit(cache=True, nogil=True)
def _refine(
    codes: Codes,
    members: Places,
    ends: Places,
    groups: Whole,
    level: int,
    counts: Stamps,
    slots: Whole,
) -> None:
    """Split each group of the level above by the records' codes; groups of one are dropped.

    Counts stand above a base, the last entry, that moves on with each group: nothing is cleared.
    """
    above, below = members[level - 1], members[level]
    touched = np.empty(slots.size, dtype=np.uint16)
    base, start, written, result = counts[-1], np.uint32(0), np.int64(0), 0
    for end in ends[level - 1, : groups[level - 1]]:
        seen = 0
        for i in range(start, end):
            code = codes[above[i]]
            count = counts[code]
            if count <= base:
                count = base
                touched[seen] = code
                seen += 1
            counts[code] = count + _ONE
        if seen < end - start:  # in most small groups all differ, and nothing is left of them
            for code in touched[:seen]:
                count = np.int64(counts[code] - base)
                slots[code] = written if count > 1 else -1
                if count > 1:
                    written += count
                    ends[level, result] = written
                    result += 1
            _move(codes, above[start:end], below, slots)
        base += np.uint64(end - start)
        start = end
    counts[-1], groups[level] = base, result


@numba.njit(cache=True, nogil=True)
def _move(codes: Codes, group: Places, below: Places, slots: Whole) -> None:
    """Each record of a group to the next slot of its code; a code without one is dropped."""
    for record in group:
        code = codes[record]
        slot = slots[code]
        if slot >= 0:
            below[slot] = record
            slots[code] = slot + 1


@numba.njit(cache=True, nogil=True)
def _score(
    codes: Codes,
    members: Places,
    ends: Places,
    margin: Whole,
    weights: Whole,
    chance: Whole,
    unit: float,
    counts: Stamps,
) -> np.int64:
    """The sum of c log c over child and parents, less what the parents have or chance expects."""
    base, total, start = counts[-1], np.int64(0), np.uint32(0)
    for end in ends:
        for i in range(start, end):
            code = codes[members[i]]
            count = max(counts[code], base)
            counts[code] = count + _ONE
            total += weights[count - base + _ONE] - weights[count - base]
        size = np.uint64(end - start)
        if chance.size == 0:
            total -= weights[size]
        else:
            if chance[size] < 0:  # two threads may both find it: they write the same number
                chance[size] = np.int64(
                    np.rint(unit * chance_sum(margin, np.int64(size), codes.size))
                )
            total -= chance[size]
        base += size
        start = end
    counts[-1] = base
    return total


@numba.njit(cache=True, nogil=True)
def chance_sum(margin: Whole, group: Count, records: int) -> float:
    """What sum over i of c_i log c_i a group of this size expects if it is drawn at random.

    c_i is then hypergeometric: how many of ``group`` records drawn without replacement have the
    value i, which ``margin[i]`` of all the records have.
    """
    total = 0.0
    for value in range(margin.size):
        total += _mean_of_c_log_c(margin[value], group, records)
    return total


@numba.njit(cache=True, nogil=True)
def _mean_of_c_log_c(marked: int, drawn: Count, records: int) -> float:
    """E[c log c] of the marked ones among the drawn: ratios of neighbors, from the mode outward."""
    least, most = max(0, marked + drawn - records), min(marked, drawn)
    mode = (marked + 1) * (drawn + 1) // (records + 2)
    mass, total = 1.0, _c_log_c(mode)
    weight, c = 1.0, mode
    while c < most and weight > _NEGLIGIBLE:
        weight *= (marked - c) * (drawn - c) / ((c + 1) * (records - marked - drawn + c + 1))
        c += 1
        mass, total = mass + weight, total + weight * _c_log_c(c)
    weight, c = 1.0, mode
    while c > least and weight > _NEGLIGIBLE:
        weight *= c * (records - marked - drawn + c) / ((marked - c + 1) * (drawn - c + 1))
        c -= 1
        mass, total = mass + weight, total + weight * _c_log_c(c)
    return total / mass


@numba.njit(cache=True, nogil=True)
def _c_log_c(c: Count) -> float:
    return c * np.log(c) if c > 1 else 0.0
