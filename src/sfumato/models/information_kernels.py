"""The compiled part of structure search: mutual information by refining partitions of the records.

Records with equal values in all parents form a group. One more parent splits the groups, and a
group of one record is dropped: it adds 1 log 1 = 0 to every sum, now and after each further split.
Sums of c log c are kept as whole numbers, so neither the order nor the number of threads can
change a score. All in one file, because numba's cache on disk does not see changes in another.
"""

import numba
import numpy as np
from numpy.typing import NDArray

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
