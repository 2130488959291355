"""Compiled passes over the table of a clique: marginals, and products with factors.

Shapes are data here, so nothing is compiled for a new one. For one marginal, neighboring axes
with the same fate are joined into blocks that are kept or summed in turn. For many marginals at
once the table is a matrix, leading axes by trailing ones, of which each row is read once.
"""

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@njit(cache=True, nogil=True, fastmath={"reassoc"})
def add_marginal(table: Floats, blocks: NDArray[np.int64], kept: bool, out: Floats) -> None:
    """Add the marginal of ``table`` to ``out``.

    Args:
        table: All cells in row-major order.
        blocks: Lengths of the joined axes; kept and summed ones take turns.
        kept: Whether the last block is kept.
        out: The kept cells in row-major order.
    """
    inner = blocks[-1]
    strides = _kept_strides(blocks, kept)
    place = np.zeros(blocks.size, np.int64)
    base = 0
    for start in range(0, table.size, inner):
        if kept:
            for cell in range(inner):
                out[base + cell] += table[start + cell]
        else:
            held = 0.0
            for cell in range(inner):
                held += table[start + cell]
            out[base] += held
        base = _advance(place, blocks, strides, base)


@njit(cache=True, nogil=True)
def multiply(table: Floats, blocks: NDArray[np.int64], kept: bool, factor: Floats) -> None:
    """Multiply each cell of ``table`` by the entry of ``factor`` that it falls on.

    The arguments are those of ``add_marginal``.
    """
    inner = blocks[-1]
    strides = _kept_strides(blocks, kept)
    place = np.zeros(blocks.size, np.int64)
    base = 0
    for start in range(0, table.size, inner):
        if kept:
            for cell in range(inner):
                table[start + cell] *= factor[base + cell]
        else:
            by = factor[base]
            for cell in range(inner):
                table[start + cell] *= by
        base = _advance(place, blocks, strides, base)


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
        by_cell: A factor for each place in a row.
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
        held = 0.0
        for cell in range(inner):
            held += table[start + cell]
        row_sums[row] += held
        for cell in range(inner):
            cell_sums[cell] += table[start + cell]
        for part in range(starts.size):
            base = starts[part] + rows_of[part, row] * inner
            for cell in range(inner):
                mixed[base + cell] += table[start + cell]


@njit(cache=True, nogil=True)
def _kept_strides(blocks: NDArray[np.int64], kept: bool) -> NDArray[np.int64]:
    """How far one step along each block moves among the kept cells; 0 for a summed one."""
    strides = np.zeros(blocks.size, np.int64)
    width = 1
    for axis in range(blocks.size - 1, -1, -1):
        if kept == ((blocks.size - 1 - axis) % 2 == 0):
            strides[axis] = width
            width *= blocks[axis]
    return strides


@njit(cache=True, nogil=True)
def _advance(place: Any, blocks: Any, strides: Any, base: int) -> int:
    """The kept cell of the next run along the last block: an odometer over the other blocks."""
    for axis in range(blocks.size - 2, -1, -1):
        place[axis] += 1
        base += strides[axis]
        if place[axis] < blocks[axis]:
            return base
        base -= strides[axis] * blocks[axis]
        place[axis] = 0
    return base
