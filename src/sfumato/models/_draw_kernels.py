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
