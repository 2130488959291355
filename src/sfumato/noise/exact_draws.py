"""What exact draws need: parameters as ratios of integers, and a stream of random words.

A real parameter becomes a ratio that the kernels can hold, rounded to a stated side. Every draw is
a function of the word stream: one that runs out of words is drawn again from the same words and
more of them. Dropping the words instead would make long draws rarer than they should be: the noise
would be biased.
"""

import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from types import ModuleType
from typing import Final

import numpy as np

from sfumato.errors import InputError, InternalError
from sfumato.randomness import Rng, Words

MAX_RATIO: Final = 2**31 - 1
"""Largest numerator and denominator of a scale or a rate: products of two stay below 2^62."""


def fits(ratio: Fraction) -> bool:
    """Whether numerator and denominator are at most ``MAX_RATIO``."""
    return 0 < ratio.numerator <= MAX_RATIO and ratio.denominator <= MAX_RATIO


def round_up(value: Fraction, *, name: str) -> Fraction:
    """A ratio that fits, at least ``value`` and at most 1e-9 of it larger.

    >>> round_up(Fraction(1, 10), name="scale")
    Fraction(1, 10)
    """
    if fits(value):
        return value
    if not Fraction(1, MAX_RATIO) <= value <= MAX_RATIO:
        raise InputError(
            f"{name} would be {float(value):.6g}; exact draws need {1 / MAX_RATIO:.3g} to "
            f"{MAX_RATIO:.3g}. Choose a privacy parameter or a sensitivity nearer to 1."
        )
    if value >= 1:
        denominator = math.floor(MAX_RATIO / value)
        return Fraction(math.ceil(value * denominator), denominator)
    numerator = math.floor(MAX_RATIO * value)
    return Fraction(numerator, math.floor(numerator / value))


def round_down(value: Fraction, *, name: str) -> Fraction:
    """A ratio that fits, at most ``value`` and at most 1e-9 of it smaller."""
    return 1 / round_up(1 / value, name=f"1/{name}")


def ceil_sqrt(square: Fraction) -> int:
    """The smallest whole number whose square is at least ``square > 0``.

    >>> ceil_sqrt(Fraction(4)), ceil_sqrt(Fraction(17, 4))
    (2, 3)
    """
    return math.isqrt(math.ceil(square) - 1) + 1


def floor_sqrt(square: Fraction) -> int:
    """The largest whole number whose square is at most ``square >= 0``."""
    return math.isqrt(math.floor(square))


Kernel = Callable[[Words, int], tuple[int, int]]
"""From words and draws done to draws done and where the first unfinished draw began."""

MAX_WORDS: Final = 2**15
"""No draw takes more words, but one that is expected to take a quarter of them or more.

Kernels rely on it where they shorten a long run of Bernoulli trials."""

_BUFFER_WORDS: Final = 2**14  # 128 KiB: stays in the second-level cache


def replay(kernel: Kernel, n: int, *, rng: Rng, words_each: int) -> None:
    """Call ``kernel`` with fresh words until ``n`` draws are done.

    Args:
        kernel: Takes words from their beginning on and keeps its own results.
        n: The number of draws.
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
