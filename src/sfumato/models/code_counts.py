"""Counts of a block of codes that is public already, without widening it.

A block has a row for each attribute and a column for each record. Compiled code is made for three
types only, so ``narrow`` brings every other one down to these.

Codes come as small unsigned integers, a row of the block for each attribute. Pairs are counted two
at a time: their counters share the first attribute's reads, stay in the second-level cache, and an
addition to one does not wait for the last addition to the other. All compiled functions are
in one file, because numba's cache on disk does not see a change in another one.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from math import prod
from typing import Any, Final

import numba
import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError

Codes = NDArray[Any]
Pair = tuple[int, int]

_THREADS: Final = 2
"""Threads that count pairs; one for each core of a small machine."""
_MOST_RECORDS: Final = 2**32 - 1  # pairs are counted in 32 bits


def narrow(codes: Codes, size: int) -> Codes:
    """Codes below ``size`` as 8, 16 or 32 bits without a sign: no copy of what already is.

    >>> narrow(np.array([3, 299]), 300).dtype
    dtype('uint16')
    """
    fits = codes.dtype.kind == "u" and codes.dtype.itemsize <= 4
    return np.ascontiguousarray(codes, dtype=codes.dtype if fits else np.min_scalar_type(size - 1))


def cell_counts(block: Codes, sizes: Sequence[int]) -> NDArray[np.int64]:
    """How many records are in each cell, an axis for each attribute of a ``narrow`` block.

    >>> cell_counts(np.array([[0, 1, 1], [2, 0, 2]], dtype=np.uint8), (2, 3)).tolist()
    [[0, 0, 1], [1, 0, 1]]
    """
    counts = np.zeros(prod(sizes), dtype=np.int64)
    count_cells(block, np.array(sizes, dtype=np.uint64), counts)
    return counts.reshape(tuple(sizes))


def map_pairs(
    score: Callable[[Pair, NDArray[np.uint32]], float], block: Codes, sizes: Sequence[int]
) -> dict[Pair, float]:
    """A number from the table of counts of every two attributes, by two threads.

    Tables are made two at a time and dropped when used, so memory holds a few of them for any
    number of pairs. The result does not depend on the threads.

    Args:
        score: From a pair (i, j), i < j, and its table, values of i by values of j, to a number.
        block: Codes, each below the size of its attribute.
        sizes: How many values each attribute has.
    """
    codes = _checked(block, sizes)

    def one(left: int, rights: Sequence[int]) -> dict[Pair, float]:
        tables = [np.zeros((sizes[left], sizes[right]), dtype=np.uint32) for right in rights]
        columns = [codes[right] for right in rights]
        if len(rights) == 2:
            count_two_pairs(codes[left], *columns, *tables)
        else:
            count_pair(codes[left], *columns, *tables)
        named = zip(rights, tables, strict=True)
        return {(left, right): score((left, right), table) for right, table in named}

    result: dict[Pair, float] = {}
    with ThreadPoolExecutor(_THREADS, thread_name_prefix="sfumato-pairs") as pool:
        tasks: list[Future[dict[Pair, float]]] = [
            pool.submit(one, left, rights) for left, rights in _tasks(len(codes))
        ]
        for task in tasks:
            result |= task.result()
    return result


def _tasks(attributes: int) -> Iterator[tuple[int, list[int]]]:
    """Each attribute with the later ones, two at a time."""
    for left in range(attributes):
        later = iter(range(left + 1, attributes))
        while rights := list(islice(later, 2)):
            yield left, rights


def _checked(block: Codes, sizes: Sequence[int]) -> Codes:
    codes = np.asarray(block)
    if codes.ndim != 2 or len(codes) != len(sizes) or codes.dtype.kind not in "iu":
        raise InputError(
            f"block must hold whole codes, a row for each of {len(sizes)} attributes, got "
            f"{codes.dtype} of shape {codes.shape}."
        )
    if not 0 < codes.shape[1] <= _MOST_RECORDS:
        raise InputError(f"block must have 1 to {_MOST_RECORDS:,} records, got {codes.shape[1]:,}.")
    for attribute, (row, size) in enumerate(zip(codes, sizes, strict=True)):
        if row.min() < 0 or row.max() >= size:
            raise InputError(f"attribute {attribute} has codes outside 0 to {size - 1}")
    return narrow(codes, max(sizes))


Floats = NDArray[np.float64]
Whole = NDArray[np.int64]
Words = NDArray[np.uint64]

FULL = 2**46
"""The weight that one column of an alias row holds."""

_ALIAS_BITS, _ALIAS_MASK = np.uint64(16), np.uint64(2**16 - 1)
_HALF, _LOW = np.uint64(32), np.uint64(2**32 - 1)
_UP, _DOWN = np.uint64(14), np.uint64(18)  # 32 bits and the top 14 of 32: a fraction of 46 bits
_ONE = np.uint32(1)


@numba.njit(cache=True, nogil=True)
def count_cells(block: Codes, sizes: NDArray[np.uint64], counts: Whole) -> None:
    """Add one to the counter of each record's cell, in row-major order of all attributes."""
    for record in range(block.shape[1]):
        cell = np.uint64(block[0, record])
        for axis in range(1, block.shape[0]):
            cell = cell * sizes[axis] + np.uint64(block[axis, record])
        counts[cell] += 1


@numba.njit(cache=True, nogil=True)
def count_pair(left: Codes, right: Codes, counts: NDArray[np.uint32]) -> None:
    """Add the records of two columns to their table."""
    flat, size = counts.reshape(-1), np.uint32(counts.shape[1])
    for record in range(left.size):
        flat[np.uint32(left[record]) * size + np.uint32(right[record])] += _ONE


@numba.njit(cache=True, nogil=True)
def count_two_pairs(
    left: Codes,
    right: Codes,
    other: Codes,
    counts: NDArray[np.uint32],
    other_counts: NDArray[np.uint32],
) -> None:
    """Add the records of (left, right) and of (left, other) to their tables."""
    flat, size = counts.reshape(-1), np.uint32(counts.shape[1])
    other_flat, other_size = other_counts.reshape(-1), np.uint32(other_counts.shape[1])
    for record in range(left.size):
        first = np.uint32(left[record])
        flat[first * size + np.uint32(right[record])] += _ONE
        other_flat[first * other_size + np.uint32(other[record])] += _ONE


@numba.njit(cache=True, nogil=True)
def fill_alias_rows(rows: Floats, packed: Words) -> None:
    """Tables to draw from each row by one word: Walker 1977, Vose 1991, in whole numbers.

    A row's k probabilities become whole weights with the sum k FULL, off by half of one or less
    but for the largest, which takes the rest. Column c holds as much of its own code as its
    weight says, the upper 48 bits of an entry, and is filled up by the code in the lower 16. A
    weight of 0 stays one: such a code fills nothing and is never drawn.
    """
    width = rows.shape[1]
    weights = np.empty(width, dtype=np.int64)
    small, large = np.empty(width, dtype=np.int64), np.empty(width, dtype=np.int64)
    for row in range(rows.shape[0]):
        scale = width * float(FULL) / rows[row].sum()
        for code in range(width):
            weights[code] = np.int64(np.rint(rows[row, code] * scale))
        weights[rows[row].argmax()] += width * FULL - weights.sum()
        few, many = 0, 0
        for code in range(width):
            if weights[code] < FULL:
                small[few] = code
                few += 1
            else:
                large[many] = code
                many += 1
        while few:  # what is left has FULL on average, so there is a large one too
            few -= 1
            code, giver = small[few], large[many - 1]
            packed[row, code] = (np.uint64(weights[code]) << _ALIAS_BITS) | np.uint64(giver)
            weights[giver] -= FULL - weights[code]
            if weights[giver] < FULL:
                many -= 1
                small[few] = giver
                few += 1
        for index in range(many):
            packed[row, large[index]] = np.uint64(large[index])  # all of it by its own alias


@numba.njit(cache=True, nogil=True)
def draw_from_rows(answers: Codes, words: Words, packed: Words, codes: Codes) -> None:
    """Replace each answer by a draw from its row of alias tables.

    The word times k, 80 bits, is the column (above 2^64) and the fraction inside it: each boundary
    is met to one word of 2^64.
    """
    width = np.uint64(packed.shape[1])
    for record in range(answers.size):
        low = (words[record] & _LOW) * width
        high = (words[record] >> _HALF) * width + (low >> _HALF)
        column = high >> _HALF
        fraction = ((high & _LOW) << _UP) | ((low & _LOW) >> _DOWN)
        entry = packed[answers[record], column]
        own = fraction < entry >> _ALIAS_BITS
        codes[record] = column if own else entry & _ALIAS_MASK


@numba.njit(cache=True, nogil=True)
def draw_axis(
    answers: Codes,
    axis: int,
    sizes: NDArray[np.uint64],
    table: Floats,
    totals: Floats,
    likelihoods: Floats,
    uniform: Floats,
    drawn: NDArray[np.uint64],
    codes: Codes,
) -> None:
    """Draw one attribute of some people, given those drawn before and the answers to the rest.

    Args:
        answers: Of all attributes, (attribute, person).
        axis: The attribute.
        sizes: The number of codes of each.
        table: (codes drawn before, later answers, code): the weight of a code.
        totals: (codes drawn before, this answer, later answers): what all codes weigh together.
        likelihoods: (answer, code), the channel transposed.
        uniform: A number in [0, 1) for each person.
        drawn: The number of the codes drawn before; is brought up to date.
        codes: Where to write.
    """
    size, later_cells = sizes[axis], np.uint64(table.shape[1])
    flat = totals.reshape(-1)
    for person in range(answers.shape[1]):
        later, answer = np.uint64(0), np.uint64(answers[axis, person])
        for index in range(axis + 1, answers.shape[0]):
            later = later * sizes[index] + np.uint64(answers[index, person])
        known, likely = table[drawn[person], later], likelihoods[answer]
        left = uniform[person] * flat[(drawn[person] * size + answer) * later_cells + later]
        result = _walk(known, likely, left)
        codes[axis, person] = result
        drawn[person] = drawn[person] * size + np.uint64(result)


@numba.njit(cache=True, nogil=True)
def _walk(known: Floats, likely: Floats, left: float) -> int:
    """The code at which the running sum of the weights exceeds ``left``, four at a stride.

    Rounding may leave a rest at the end: the last code that has a weight takes it.
    """
    code = 0
    while code + 4 <= known.size:
        stride = (known[code] * likely[code] + known[code + 1] * likely[code + 1]) + (
            known[code + 2] * likely[code + 2] + known[code + 3] * likely[code + 3]
        )
        if left < stride:
            break
        left -= stride
        code += 4
    while code < known.size:
        left -= known[code] * likely[code]
        if left < 0:
            return code
        code += 1
    code -= 1
    while code > 0 and known[code] * likely[code] == 0:
        code -= 1
    return code
