"""The compiled part of drawing rows: codes dealt out in random order, so many of each."""

from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray


@numba.njit(cache=True, nogil=True, error_model="numpy")
def deal(
    parents: NDArray[np.int64],
    words: NDArray[np.uint64],
    left: NDArray[np.int64],
    out: NDArray[Any],
) -> None:
    """A code for each row, drawn without replacement from those left for its parent's code.

    Every arrangement of a parent's codes over its rows is equally likely.

    Args:
        parents: The parent's code of each row.
        words: A random word for each row.
        left: A row for each code of the parent: how often each code is to be dealt; used up.
        out: The codes.
    """
    totals = left.sum(axis=1)
    for row in range(parents.size):
        parent = parents[row]
        pick = int(np.float64(words[row] >> np.uint64(11)) * 2.0**-53 * totals[parent])
        code = 0
        while pick >= left[parent, code]:
            pick -= left[parent, code]
            code += 1
        left[parent, code] -= 1
        totals[parent] -= 1
        out[row] = code


@numba.njit(cache=True, nogil=True, error_model="numpy")
def deal_evenly(
    given: NDArray[np.int64],
    words: NDArray[np.uint64],
    weights: NDArray[np.float64],
    begins: NDArray[np.int64],
    offsets: NDArray[np.float64],
    out: NDArray[np.int64],
) -> None:
    """For each row a cell of its block, the counts of a block as near to its weights as can be.

    The g rows of a block are shuffled (Fisher, Yates) and take the places (k + offset) / g of the
    block's cumulated weights, which one walk over the block finds.

    Args:
        given: The block of each row.
        words: A random word for each row.
        weights: Of the cells, block after block, none negative; a block without weight is taken
            as even.
        begins: Where each block begins in ``weights``, and the end of the last.
        offsets: For each block a number in [0, 1).
        out: The cells.
    """
    starts = np.zeros(begins.size, np.int64)
    for row in range(given.size):
        starts[given[row] + 1] += 1
    for block in range(begins.size - 1):
        starts[block + 1] += starts[block]
    order, free = np.empty(given.size, np.int64), starts[:-1].copy()
    for row in range(given.size):
        order[free[given[row]]] = row
        free[given[row]] += 1
    for block in range(begins.size - 1):
        rows = order[starts[block] : starts[block + 1]]
        _shuffle(rows, words[starts[block] : starts[block + 1]])
        _walk(rows, weights[begins[block] : begins[block + 1]], offsets[block], out)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _shuffle(rows: NDArray[np.int64], words: NDArray[np.uint64]) -> None:
    for last in range(rows.size - 1, 0, -1):
        other = int(np.float64(words[last] >> np.uint64(11)) * 2.0**-53 * (last + 1))
        rows[last], rows[other] = rows[other], rows[last]


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _walk(
    rows: NDArray[np.int64],
    weights: NDArray[np.float64],
    offset: float,
    out: NDArray[np.int64],
) -> None:
    total, last = 0.0, weights.size - 1
    for cell in range(weights.size):
        total += weights[cell]
        if weights[cell] > 0:
            last = cell
    even = total == 0.0
    if even:
        total, last = float(weights.size), weights.size - 1
    cell, reached = 0, 1.0 if even else weights[0]
    for k in range(rows.size):
        place = (k + offset) / rows.size * total
        while cell < last and reached <= place:
            cell += 1
            reached += 1.0 if even else weights[cell]
        out[rows[k]] = cell
