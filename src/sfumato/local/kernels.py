"""Compiled randomized response and counting: one word for each answer.

All compiled code of these protocols stands in this one file, but for ``multiply_high``: numba's
disk cache does not see a change in an imported file.
"""

from typing import Any, Final

import numpy as np
from numba import njit
from numpy.typing import NDArray

from sfumato.noise.kernels import multiply_high
from sfumato.randomness import Words

_TWO: Final = np.uint64(2)

BANKED_CELLS: Final = 4_096
"""Small tallies are counted in four banks, so that equal neighbors do not wait for each other."""


@njit(cache=True, nogil=True, error_model="numpy")
def respond(
    words: Words,
    codes: NDArray[Any],
    out: NDArray[Any],
    keep: np.uint64,
    reciprocal: np.uint64,
    shift: np.uint64,
) -> None:
    """Generalized randomized response, exactly.

    A word below ``keep`` keeps the code; the rest is divided among the other codes, by the
    reciprocal of their share (``ResponseWeights.reciprocal``: exact for every word).
    """
    for i in range(codes.size):
        word, code = words[i], np.uint64(codes[i])
        other = multiply_high((word - keep) >> _TWO, reciprocal) >> shift
        other += np.uint64(other >= code)
        out[i] = code if word < keep else other


@njit(cache=True, nogil=True, error_model="numpy")
def add_histogram(answers: NDArray[Any], counts: NDArray[np.int64]) -> None:
    """Add one to the counter of each answer."""
    if counts.size > BANKED_CELLS or answers.size < 4 * counts.size:
        for i in range(answers.size):
            counts[answers[i]] += 1
        return
    banks = np.zeros((4, counts.size), np.int64)
    whole = answers.size - answers.size % 4
    for i in range(0, whole, 4):
        banks[0, answers[i]] += 1
        banks[1, answers[i + 1]] += 1
        banks[2, answers[i + 2]] += 1
        banks[3, answers[i + 3]] += 1
    for i in range(whole, answers.size):
        banks[0, answers[i]] += 1
    for cell in range(counts.size):
        counts[cell] += banks[0, cell] + banks[1, cell] + banks[2, cell] + banks[3, cell]
