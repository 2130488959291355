"""Answers of local hashing, taken apart: the seed, and what the answer supports under it."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.auditing.outputs import Outputs
from sfumato.local.frequency.local_hashing import FastOlh, LocalHashing

Words = NDArray[np.uint64]


def apart(mechanism: LocalHashing, answers: Outputs) -> tuple[Words, Words]:
    """The seeds and the responses."""
    seeds, values = np.divmod(answers.astype(np.uint64), np.uint64(mechanism.response.values))
    return seeds, values


def supports(mechanism: LocalHashing, seeds: Words, values: Words, code: int) -> NDArray[np.bool_]:
    """Whether each response is the hash of a code under its seed."""
    if isinstance(mechanism, FastOlh):  # bit i is the parity of the seed under a mask
        masks = mechanism.masks[code].astype(np.uint64)
        bits = np.bitwise_count(seeds[:, np.newaxis] & masks).astype(np.uint64) & np.uint64(1)
        hashed = bits @ (np.uint64(1) << np.arange(masks.size, dtype=np.uint64))
    else:
        plain: Any = mechanism.hashed  # its integer arithmetic holds for arrays too
        hashed = plain(seeds, np.uint64(code))
    return np.asarray(hashed == values)


def supported(mechanism: LocalHashing, answers: Outputs, inputs: tuple[int, ...]) -> Outputs:
    """Which inputs each answer supports: all that an answer tells about them, given its seed.

    The seeds are too many to come twice, so the attack does without; that they are independent
    of the code, and the response of them, is a check of its own.
    """
    parts = apart(mechanism, answers)
    bits = [supports(mechanism, *parts, code) for code in inputs]
    return np.packbits(np.stack(bits, axis=1), axis=1, bitorder="little")
