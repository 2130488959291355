"""Feeds kernels that take a fixed number of words for each answer, chunk by chunk."""

from collections.abc import Iterator
from functools import cache
from types import ModuleType
from typing import Final

import numpy as np

from sfumato.randomness import Rng, Words

_CHUNK_WORDS: Final = 2**15 + 2
"""256 KiB, which stay in the second-level cache, and the slack that the cipher asks for."""


def chunks(n: int, *, rng: Rng, words_each: int = 1) -> Iterator[tuple[slice, Words]]:
    """Slices that cover ``n`` answers, each with ``words_each`` fresh words for every answer."""
    rows = max(1, _CHUNK_WORDS // words_each)
    words = np.empty(min(rows, n) * words_each, dtype=np.uint64)
    for start in range(0, n, rows):
        end = min(start + rows, n)
        fresh = words[: (end - start) * words_each]
        rng.fill(fresh)
        yield slice(start, end), fresh
    words.fill(0)  # used words do not linger in memory


@cache
def kernels() -> ModuleType:
    """The compiled code of direct responses; it loads numba, so only for many answers."""
    from sfumato.local import kernels as compiled

    return compiled
