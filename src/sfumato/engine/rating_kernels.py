"""Weighted sums over the ratings of each person, compiled: whole numbers on a public grid."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

Ints = NDArray[np.int64]


@njit(cache=True, nogil=True)
def keep_least(starts: Ints, keys: NDArray[np.uint64], most: int, kept: NDArray[np.bool_]) -> None:
    """Mark of each person's ratings those with the least keys; of equal ones the earlier."""
    for person in range(starts.size - 1):
        first, end = starts[person], starts[person + 1]
        if end - first <= most:
            kept[first:end] = True
        else:
            for place in np.argsort(keys[first:end], kind="mergesort")[:most]:
                kept[first + place] = True


@njit(cache=True, nogil=True)
def _residual(value: float, offset: float, bound: float) -> float:
    return min(1.0, max(-1.0, (value - offset) / bound))


@njit(cache=True, nogil=True)
def add_sums(
    starts: Ints,
    items: NDArray[np.int32],
    codes: NDArray[np.uint16],
    values: NDArray[np.float64],
    offsets: NDArray[np.float64],
    bound: float,
    places: Ints,
    c0: int,
    grid: float,
    found: Ints,
) -> None:
    """Add w 1 (first row) and w x (second row) of every person, each rounded to the grid.

    Only items with a place (not -1) count, also for the weight.
    """
    for person in range(starts.size - 1):
        c = 0
        for at in range(starts[person], starts[person + 1]):
            c += places[items[at]] >= 0
        scale = grid / np.sqrt(max(c, c0))
        one = np.int64(np.rint(scale))
        for at in range(starts[person], starts[person + 1]):
            place = places[items[at]]
            if place >= 0:
                x = _residual(values[codes[at]], offsets[items[at]], bound)
                found[0, place] += one
                found[1, place] += np.int64(np.rint(scale * x))


@njit(cache=True, nogil=True)
def add_gram(
    starts: Ints,
    items: NDArray[np.int32],
    codes: NDArray[np.uint16],
    values: NDArray[np.float64],
    offsets: NDArray[np.float64],
    bound: float,
    places: Ints,
    c0: int,
    grid: float,
    gram: NDArray[np.int64],
) -> None:
    """Add w^2 x x' of every person, upper triangle, each entry rounded to the grid.

    Only items with a place (not -1) count, also for the weight. A bound of 0 means that x is 1
    for every rated item.
    """
    longest = 0
    for person in range(starts.size - 1):
        longest = max(longest, starts[person + 1] - starts[person])
    own = np.empty(longest, dtype=np.int64)
    x = np.empty(longest, dtype=np.float64)
    for person in range(starts.size - 1):
        c = 0
        for place in range(starts[person], starts[person + 1]):
            item = items[place]
            if places[item] >= 0:
                own[c] = places[item]
                x[c] = (
                    1.0 if bound == 0.0 else _residual(values[codes[place]], offsets[item], bound)
                )
                c += 1
        scale = grid / max(c, c0)
        for i in range(c):
            row, left = own[i], scale * x[i]
            for j in range(i, c):
                entry = np.int64(np.rint(left * x[j]))
                if own[j] >= row:
                    gram[row, own[j]] += entry
                else:
                    gram[own[j], row] += entry
