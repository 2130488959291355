"""Compiled answers for whole records: one true response among uniform ones.

All compiled code of this protocol stands in this one file, but for ``below`` and
``multiply_high``: numba's disk cache does not see a change in an imported file.
"""

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from sfumato.noise.kernels import OUT, below, multiply_high
from sfumato.randomness import Words


@njit(cache=True, nogil=True, error_model="numpy")
def hide_among_uniform(
    words: Words,
    block: NDArray[Any],
    out: NDArray[Any],
    done: int,
    sizes: NDArray[np.uint64],
    responses: NDArray[np.uint64],
) -> tuple[int, int]:
    """For each record a response about one attribute, uniform codes for all the others.

    Rows of ``responses`` are keep, reciprocal, shift, as in ``local.kernels.respond``. Returns
    how many records are done and where the first unfinished one began.
    """
    start = 0
    for person in range(done, block.shape[1]):
        true, at = below(words, start, np.uint64(sizes.size))
        for i in range(sizes.size):
            if np.uint64(i) != true:
                answer, at = below(words, at, sizes[i])
            elif at < words.size:
                word, code = words[at], np.uint64(block[i, person])
                at += 1
                rest = (word - responses[i, 0]) >> np.uint64(2)
                answer = multiply_high(rest, responses[i, 1]) >> responses[i, 2]
                answer += np.uint64(answer >= code)
                answer = code if word < responses[i, 0] else answer
            else:
                answer, at = np.uint64(0), OUT
            out[i, person] = answer
        if at == OUT:
            return person, start
        start = at
    return block.shape[1], start
