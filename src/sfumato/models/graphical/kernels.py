"""Compiled loops of the graphical model: marginals and products of tables, elimination, sampling.

Shapes are data here, so nothing is compiled for a new one. For one marginal, neighboring axes
that both stay or are both summed are joined into blocks, which alternate. For many marginals at
once the table is a matrix, leading axes by trailing ones, of which each row is read once. All in
one file that other modules import when they need it, since numba takes long to load.
"""

from typing import Any

import numba
import numpy as np
from numba import njit
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@njit(cache=True, nogil=True, fastmath={"reassoc"})
def add_marginal(table: Floats, blocks: NDArray[np.int64], last_stays: bool, out: Floats) -> None:
    """Add the marginal of ``table`` to ``out``.

    Args:
        table: All cells in row-major order.
        blocks: Lengths of the joined axes; those that stay and those that are summed take turns.
        last_stays: Whether the last block is not summed.
        out: The cells of the marginal in row-major order.
    """
    inner = blocks[-1]
    strides = _strides(blocks, last_stays)
    index = np.zeros(blocks.size, np.int64)
    base = 0
    for start in range(0, table.size, inner):
        if last_stays:
            for cell in range(inner):
                out[base + cell] += table[start + cell]
        else:
            run_sum = 0.0
            for cell in range(inner):
                run_sum += table[start + cell]
            out[base] += run_sum
        base = _advance(index, blocks, strides, base)


@njit(cache=True, nogil=True)
def multiply(table: Floats, blocks: NDArray[np.int64], last_stays: bool, factor: Floats) -> None:
    """Multiply each cell of ``table`` by the entry of ``factor`` that it falls on.

    The arguments are those of ``add_marginal``.
    """
    inner = blocks[-1]
    strides = _strides(blocks, last_stays)
    index = np.zeros(blocks.size, np.int64)
    base = 0
    for start in range(0, table.size, inner):
        if last_stays:
            for cell in range(inner):
                table[start + cell] *= factor[base + cell]
        else:
            by = factor[base]
            for cell in range(inner):
                table[start + cell] *= by
        base = _advance(index, blocks, strides, base)


@njit(cache=True, nogil=True)
def multiply_rows(
    table: Floats,
    by_row: Floats,
    by_cell: Floats,
    mixed: Floats,
    starts: NDArray[np.int64],
    rows_of: NDArray[np.int32],
) -> None:
    """Multiply a matrix by factors of its rows, of its columns, and of both.

    Args:
        table: The matrix, row-major and flat.
        by_row: A factor for each row.
        by_cell: A factor for each position in a row.
        mixed: Tables whose rows have the length of a row, one after the other.
        starts: Where each of these tables begins.
        rows_of: (table, row): the row of that table that a row of the matrix falls on.
    """
    inner = by_cell.size
    factor = np.empty(inner)
    for row in range(by_row.size):
        for cell in range(inner):
            factor[cell] = by_row[row] * by_cell[cell]
        for part in range(starts.size):
            base = starts[part] + rows_of[part, row] * inner
            for cell in range(inner):
                factor[cell] *= mixed[base + cell]
        start = row * inner
        for cell in range(inner):
            table[start + cell] *= factor[cell]


@njit(cache=True, nogil=True, fastmath={"reassoc"})
def sum_rows(
    table: Floats,
    row_sums: Floats,
    cell_sums: Floats,
    mixed: Floats,
    starts: NDArray[np.int64],
    rows_of: NDArray[np.int32],
) -> None:
    """Sums of a matrix over its columns, over its rows, and by the rows of some tables.

    The arguments are those of ``multiply_rows``; the sums are added to what they hold.
    """
    inner = cell_sums.size
    for row in range(row_sums.size):
        start = row * inner
        run_sum = 0.0
        for cell in range(inner):
            run_sum += table[start + cell]
        row_sums[row] += run_sum
        for cell in range(inner):
            cell_sums[cell] += table[start + cell]
        for part in range(starts.size):
            base = starts[part] + rows_of[part, row] * inner
            for cell in range(inner):
                mixed[base + cell] += table[start + cell]


@njit(cache=True, nogil=True)
def _strides(blocks: NDArray[np.int64], last_stays: bool) -> NDArray[np.int64]:
    """How far a step along each block moves among the marginal's cells; 0 for a summed block."""
    strides = np.zeros(blocks.size, np.int64)
    width = 1
    for axis in range(blocks.size - 1, -1, -1):
        if last_stays == ((blocks.size - 1 - axis) % 2 == 0):
            strides[axis] = width
            width *= blocks[axis]
    return strides


@njit(cache=True, nogil=True)
def _advance(position: Any, blocks: Any, strides: Any, base: int) -> int:
    """The marginal's cell for the next run of the last block: an odometer over the others."""
    for axis in range(blocks.size - 2, -1, -1):
        position[axis] += 1
        base += strides[axis]
        if position[axis] < blocks[axis]:
            return base
        base -= strides[axis] * blocks[axis]
        position[axis] = 0
    return base


@njit(cache=True, nogil=True)
def fill(
    edges: NDArray[np.bool_], sizes: NDArray[np.float64], filled: NDArray[np.bool_]
) -> tuple[float, float]:
    """Eliminate by least cells and write the triangulated graph into ``filled``.

    The same rule as ``junction_tree.junction_tree``, and ties go to the first column there too.

    Returns:
        The cells of the largest clique and an upper bound on those of all, as floats: a table
        beyond any memory is infinite, not wrapped around.
    """
    columns = sizes.size
    left = edges.copy()
    filled[:] = edges
    alive = np.ones(columns, np.bool_)
    weight = np.empty(columns)
    for column in range(columns):
        weight[column] = _cells(left, sizes, column)
    largest, total = 0.0, 0.0
    for _ in range(columns):
        first = -1
        for column in range(columns):
            if alive[column] and (first < 0 or weight[column] < weight[first]):
                first = column
        largest = max(largest, weight[first])
        total += weight[first]
        alive[first] = False
        around = np.flatnonzero(left[first])
        for one in around:
            left[one, first] = False
            for other in around:
                if one != other:
                    left[one, other] = True
                    filled[one, other] = True
        left[first, :] = False
        for one in around:
            weight[one] = _cells(left, sizes, int(one))
    return largest, total


@njit(cache=True, nogil=True)
def _cells(left: NDArray[np.bool_], sizes: NDArray[np.float64], column: int) -> float:
    cells = sizes[column]
    for other in range(sizes.size):
        if left[column, other]:
            cells *= sizes[other]
    return float(cells)


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

    The g rows of a block are shuffled (Fisher, Yates) and take the positions (k + offset) / g of
    the block's cumulated weights, which one walk over the block finds.

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
        index = (k + offset) / rows.size * total
        while cell < last and reached <= index:
            cell += 1
            reached += 1.0 if even else weights[cell]
        out[rows[k]] = cell
