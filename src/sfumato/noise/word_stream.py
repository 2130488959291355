"""Feeds kernels with random words so that every draw is a function of the word stream.

A draw that runs out of words is drawn again from the same words and more of them. Dropping the
words instead would make long draws rarer than they should be: the noise would be biased.
"""

from collections.abc import Callable
from functools import cache
from types import ModuleType
from typing import Final

import numpy as np

from sfumato.errors import InternalError
from sfumato.randomness import Rng, Words

Kernel = Callable[[Words, int], tuple[int, int]]
"""From words and draws done to draws done and where the first unfinished draw began."""

MAX_WORDS: Final = 2**15
"""No draw takes more words, but one that is expected to take a quarter of them or more.

Kernels rely on it where they cut a long run of coins."""

_BUFFER_WORDS: Final = 2**14  # 128 KiB: stays in the second-level cache


def replay(kernel: Kernel, n: int, *, rng: Rng, words_each: int) -> None:
    """Call ``kernel`` with fresh words until ``n`` draws are done.

    Args:
        kernel: Takes words from their beginning on and keeps its own results.
        n: The number of draws wanted.
        rng: Where the words come from.
        words_each: About how many words a draw takes. It sets the size of the buffer, and how
            many words are too many for a draw: four times as many, or ``MAX_WORDS`` if more.
    """
    size, most = max(_BUFFER_WORDS, 2 * words_each), max(MAX_WORDS, 4 * words_each)
    words = np.empty(min(size, 32 + words_each * n), dtype=np.uint64)
    fresh, done = words, 0
    while done < n:
        rng.fill(fresh)
        done, used = kernel(words, done)
        if done < n:
            words, fresh = _make_room(words, used, most)
    words.fill(0)  # used words do not linger in memory


@cache
def kernels() -> ModuleType:
    """The compiled code; it loads numba, and so only when something is drawn."""
    from sfumato.noise import kernels as _kernels

    return _kernels


def _make_room(words: Words, used: int, most: int) -> tuple[Words, Words]:
    """The words with the unfinished draw at the front, and the part to be filled afresh."""
    tail = words[used:].copy()
    if used == 0:
        words = np.empty(_more(words.size, most), dtype=np.uint64)
    words[: tail.size] = tail
    return words, words[tail.size :]


def _more(size: int, most: int) -> int:
    """Room for a draw that ``size`` words are not enough for."""
    if size >= most:
        raise InternalError(
            f"one draw took more than {most} random words, which uniform words do with a "
            "probability below e^-1000. The generator must be broken."
        )
    return min(2 * size, most)
