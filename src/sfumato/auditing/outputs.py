"""Whole outputs as values that sort and compare, and which inputs to take of many."""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Outputs = NDArray[Any]
"""Whole outputs, one for each entry of the first axis, as they leave the device."""

MOST_INPUTS: Final = 8
"""Of more inputs some are taken, evenly spaced, the ends among them."""


def whole(outputs: Outputs) -> NDArray[Any]:
    """Each output as one value that sorts and compares: all its bytes, nothing left out.

    Up to 8 bytes become one integer, more a byte string; as all outputs have the same length,
    the zeros that numpy does not show at the end of a string keep two different ones different.
    """
    rows = np.ascontiguousarray(outputs)
    n = rows.shape[0]
    raw = rows.view(np.uint8).reshape(n, -1) if rows.ndim == 1 else rows.reshape(n, -1)
    raw = np.ascontiguousarray(raw).view(np.uint8)
    if raw.shape[1] > 8:
        return raw.view(f"S{raw.shape[1]}").reshape(n)
    padded = np.zeros((n, 8), dtype=np.uint8)
    padded[:, : raw.shape[1]] = raw
    return padded.view(np.uint64).reshape(n)


def spread(inputs: int) -> tuple[int, ...]:
    """All codes, or ``MOST_INPUTS`` of them from end to end.

    >>> spread(3), spread(1_000)[-2:]
    ((0, 1, 2), (856, 999))
    """
    if inputs <= MOST_INPUTS:
        return tuple(range(inputs))
    return tuple((inputs - 1) * i // (MOST_INPUTS - 1) for i in range(MOST_INPUTS))
