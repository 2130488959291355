"""Compiled elimination: how large the cliques get when columns are eliminated one by one."""

import numpy as np
from numba import njit
from numpy.typing import NDArray


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
