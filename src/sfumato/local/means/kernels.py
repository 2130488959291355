"""Compiled responses for means: integers out of 2^64, one or two words an answer.

All compiled code of these mechanisms stands in this one file, but for ``multiply_high``: numba's
disk cache does not see a change in an imported file.
"""

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from sfumato.noise.kernels import multiply_high
from sfumato.randomness import Words

Numbers = tuple[np.uint64, ...]
"""The integers of a window: see ``WindowWeights.numbers``."""


@njit(cache=True, nogil=True, error_model="numpy")
def respond_linearly(
    words: Words, codes: NDArray[Any], out: NDArray[Any], first: np.uint64, step: np.uint64
) -> None:
    """1 when the word is below first + code * step, else 0."""
    for i in range(codes.size):
        out[i] = words[i] < first + np.uint64(codes[i]) * step


@njit(nogil=True, error_model="numpy", inline="always")
def _in_window(word: np.uint64, code: np.uint64, numbers: Numbers) -> np.uint64:
    """The answer of a word: its part of the window's words, or of the others'.

    The quotient is taken with a reciprocal, which errs by at most one, and corrected.
    """
    inner, width, high, high_inverse, high_shift, low, low_inverse, low_shift, _ = numbers
    inside = word < inner
    rest = word if inside else word - inner
    share = high if inside else low
    part = multiply_high(rest, high_inverse if inside else low_inverse)
    part >>= high_shift if inside else low_shift
    part += np.uint64(rest - part * share >= share)
    beyond = np.uint64(0) if part < code else width
    return np.uint64(part + (code if inside else beyond))


@njit(cache=True, nogil=True, error_model="numpy")
def fill_windows(
    words: Words, codes: NDArray[Any], out: NDArray[Any], done: int, numbers: Numbers
) -> tuple[int, int]:
    """Answers of a window mechanism into ``out[done:]``; the few words over are skipped.

    Returns how many answers are done and how many words were used.
    """
    last, at = numbers[8], 0
    while done < codes.size and at < words.size:
        word = words[at]
        at += 1
        if word <= last:
            out[done] = _in_window(word, np.uint64(codes[done]), numbers)
            done += 1
    return done, at


@njit(cache=True, nogil=True, error_model="numpy")
def fill_hybrid(
    words: Words,
    codes: NDArray[Any],
    out: NDArray[Any],
    done: int,
    coin: np.uint64,
    answers: np.uint64,
    numbers: Numbers,
    first: np.uint64,
    step: np.uint64,
) -> tuple[int, int]:
    """A public coin, then a window answer or, after those, one of two linear ones."""
    last, start = numbers[8], 0
    while done < codes.size and start + 1 < words.size:
        at, code = start + 1, np.uint64(codes[done])
        if words[start] < coin:
            while at < words.size and words[at] > last:
                at += 1
            if at == words.size:
                break
            out[done] = _in_window(words[at], code, numbers)
        else:
            out[done] = answers + np.uint64(words[at] < first + code * step)
        done += 1
        start = at + 1
    return done, start


@njit(nogil=True, error_model="numpy", inline="always")
def _ones(word: np.uint64) -> np.uint64:
    """The number of bits set: sums of pairs, of fours, of bytes."""
    word -= (word >> np.uint64(1)) & np.uint64(0x5555555555555555)
    fours = np.uint64(0x3333333333333333)
    word = (word & fours) + ((word >> np.uint64(2)) & fours)
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return (word * np.uint64(0x0101010101010101)) >> np.uint64(56)


@njit(cache=True, nogil=True, error_model="numpy")
def fill_half_spaces(
    words: Words,
    signs: NDArray[np.uint64],
    out: NDArray[np.uint64],
    done: int,
    keep: np.uint64,
    length: int,
) -> tuple[int, int]:
    """Uniform signs on the same side as ``signs`` when a word is below ``keep``, else on the other.

    Random signs are drawn until they lie there; those at right angles lie on the other. Returns how
    many answers are done and where the first unfinished one began.
    """
    parts = signs.shape[1]
    unused = np.uint64(64 * parts - length)
    start = 0
    while done < signs.shape[0] and start < words.size:
        at, same, lies = start + 1, words[start] < keep, False
        while not lies and at + parts <= words.size:
            differ = np.int64(0)
            for part in range(parts):
                drawn = words[at + part]
                if part == parts - 1:
                    drawn >>= unused
                out[done, part] = drawn
                differ += np.int64(_ones(drawn ^ signs[done, part]))
            at += parts
            lies = (2 * differ < length) == same
        if not lies:
            break
        done += 1
        start = at
    return done, start
