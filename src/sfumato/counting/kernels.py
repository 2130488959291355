"""The compiled counting kernel: the same on one machine and on a cluster.

A batch is a block of codes, a row of the block for each column, of one unsigned type: three
types, three compilations. A marginal of several columns turns them into cell numbers first (this
part is vectorized). Small tables are counted in four interleaved banks, because a counter that
was written a moment ago stalls the next addition to it, large ones in place.
"""

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

BANKED_CELLS = 2_048
"""Four banks of 32-bit counters up to this size stay in the first-level cache."""

CHUNK_ROWS = 65_536
"""Rows that all marginals are counted on before the next: they stay in the second-level cache."""


@njit(cache=True, nogil=True)
def add_counts(
    block: NDArray[Any],
    members: NDArray[np.int64],
    starts: NDArray[np.int64],
    sizes: NDArray[np.int64],
    offsets: NDArray[np.int64],
    state: NDArray[np.int64],
) -> None:
    """Add the counts of every marginal of a block of codes to ``state``.

    Args:
        block: codes, (column, row); each below the size of its column.
        members: the columns of all marginals, one marginal after the other.
        starts: where each marginal begins in ``members``, and the end of the last.
        sizes: the number of codes of each column of the block.
        offsets: where each marginal begins in ``state``, and the end of the last.
        state: the counts of all marginals, each in row-major order.
    """
    cell = np.empty(min(block.shape[1], CHUNK_ROWS), np.uint32)
    banks = np.empty((4, BANKED_CELLS), np.uint32)
    for start in range(0, block.shape[1], CHUNK_ROWS):
        end = min(start + CHUNK_ROWS, block.shape[1])
        for marginal in range(starts.size - 1):
            columns = members[starts[marginal] : starts[marginal + 1]]
            counts = state[offsets[marginal] : offsets[marginal + 1]]
            if columns.size == 0:
                counts[0] += end - start
            elif columns.size == 1:
                _count(block[columns[0], start:end], banks, counts)
            else:
                _number_cells(block, columns, sizes, start, cell[: end - start])
                _count(cell[: end - start], banks, counts)


@njit(cache=True, nogil=True)
def _number_cells(
    block: NDArray[Any],
    columns: NDArray[np.int64],
    sizes: NDArray[np.int64],
    start: int,
    cell: NDArray[np.uint32],
) -> None:
    """The row-major cell number of each row: ((a * size_b) + b) * size_c + c ..."""
    end = start + cell.size
    first, second = block[columns[0], start:end], block[columns[1], start:end]
    size = np.uint32(sizes[columns[1]])
    for row in range(cell.size):  # the first two together: nearly all marginals are pairs
        cell[row] = np.uint32(first[row]) * size + np.uint32(second[row])
    for column in columns[2:]:
        following, size = block[column, start:end], np.uint32(sizes[column])
        for row in range(cell.size):
            cell[row] = cell[row] * size + np.uint32(following[row])


@njit(cache=True, nogil=True)
def _count(cell: NDArray[Any], banks: NDArray[np.uint32], counts: NDArray[np.int64]) -> None:
    """Add one to the counter of each row's cell."""
    if counts.size <= BANKED_CELLS:
        _count_in_banks(cell, banks, counts)
    else:
        for row in range(cell.size):
            counts[cell[row]] += 1


@njit(cache=True, nogil=True)
def _count_in_banks(
    cell: NDArray[Any], banks: NDArray[np.uint32], counts: NDArray[np.int64]
) -> None:
    """Count cells in four banks that take turns, then add the banks to ``counts``."""
    for bank in range(4):
        for number in range(counts.size):
            banks[bank, number] = 0
    whole = cell.size - cell.size % 4
    for row in range(0, whole, 4):
        banks[0, cell[row]] += np.uint32(1)
        banks[1, cell[row + 1]] += np.uint32(1)
        banks[2, cell[row + 2]] += np.uint32(1)
        banks[3, cell[row + 3]] += np.uint32(1)
    for row in range(whole, cell.size):
        banks[0, cell[row]] += np.uint32(1)
    for number in range(counts.size):
        counts[number] += (
            np.int64(banks[0, number])
            + np.int64(banks[1, number])
            + np.int64(banks[2, number])
            + np.int64(banks[3, number])
        )


Ints = NDArray[np.int64]


@njit(cache=True, nogil=True)
def mark_least(starts: Ints, keys: NDArray[np.uint64], most: int, stays: NDArray[np.bool_]) -> None:
    """Mark of each person's ratings those with the least keys; of equal ones the earlier."""
    for person in range(starts.size - 1):
        first, end = starts[person], starts[person + 1]
        if end - first <= most:
            stays[first:end] = True
        else:
            for index in np.argsort(keys[first:end], kind="mergesort")[:most]:
                stays[first + index] = True


@njit(cache=True, nogil=True)
def add_people(
    starts: Ints,
    items: NDArray[np.int32],
    codes: NDArray[np.uint16],
    values: NDArray[np.float64],
    offsets: NDArray[np.float64],
    bound: float,
    positions: Ints,
    c0: int,
    grid: float,
    products: bool,
    state: Ints,
) -> None:
    """Add sums, or products, of every person's ratings to ``state``, rounded to the grid.

    Sums: w 1 (first row) and w x (second row). Products: w^2 x x', upper triangle. Only items with
    a position (not -1) count, also for the weight. A bound of 0 means that x is 1 for every item.
    """
    longest = 0
    for person in range(starts.size - 1):
        longest = max(longest, starts[person + 1] - starts[person])
    own = np.empty(longest, dtype=np.int64)
    x = np.empty(longest, dtype=np.float64)
    for person in range(starts.size - 1):
        c = 0
        for index in range(starts[person], starts[person + 1]):
            item = items[index]
            if positions[item] >= 0:
                own[c] = positions[item]
                x[c] = 1.0
                if bound != 0.0:
                    x[c] = min(1.0, max(-1.0, (values[codes[index]] - offsets[item]) / bound))
                c += 1
        if products:
            scale = grid / max(c, c0)
            for i in range(c):
                row, left = own[i], scale * x[i]
                for j in range(i, c):
                    entry = np.int64(np.rint(left * x[j]))
                    if own[j] >= row:
                        state[row, own[j]] += entry
                    else:
                        state[own[j], row] += entry
        else:
            scale = grid / np.sqrt(max(c, c0))
            for i in range(c):
                state[0, own[i]] += np.int64(np.rint(scale))
                state[1, own[i]] += np.int64(np.rint(scale * x[i]))
