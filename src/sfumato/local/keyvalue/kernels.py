"""Compiled answers about key-value pairs, from a stream of words.

Every kernel takes (words, answers done) and returns (answers done, where the first unfinished one
began), as ``replay`` wants it. All compiled code of these protocols stands in this one file, but
for ``below``: numba's disk cache does not see a change in an imported file.
"""

from collections.abc import Callable
from typing import Any, Final, TypeVar, cast

import numpy as np
from numba import njit
from numpy.typing import NDArray

from sfumato.noise.kernels import OUT, below
from sfumato.randomness import Words

Function = TypeVar("Function", bound=Callable[..., Any])

_ONE: Final = np.uint64(1)
_HALF: Final = np.uint64(2**63)
_ALL: Final = np.uint64(2**64 - 1)
_SCALE: Final = 2.0**63


def _compiled(function: Function) -> Function:
    return cast(Function, njit(nogil=True, error_model="numpy")(function))


def _compiled_and_cached(function: Function) -> Function:
    return cast(Function, njit(nogil=True, error_model="numpy", cache=True)(function))


@_compiled
def _is_plus(word: Any, value: float) -> bool:
    """Round a value to +1 or -1 without bias: the same integers as ``pairs.plus_words``."""
    if value >= 1.0:
        return True  # 2^64 words do not fit into 64 bits
    below_it: bool = word < np.uint64(np.int64(np.floor(value * _SCALE))) + _HALF
    return below_it


@_compiled
def _find(key: NDArray[np.uint32], low: int, high: int, wanted: Any) -> int:
    """The place of a key in a person's rising list, -1 without it."""
    end = high
    while low < high:
        middle = (low + high) >> 1
        if key[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low if low < end and key[low] == wanted else -1


@_compiled_and_cached
def answer_about_a_key(
    words: Words,
    done: int,
    offsets: NDArray[np.int64],
    key: NDArray[np.uint32],
    value: NDArray[np.float64],
    fills: NDArray[np.float64],
    cuts: NDArray[np.uint64],
    keys: int,
    out: NDArray[Any],
) -> tuple[int, int]:
    """Sample one of all keys, then answer by the row of its state in the cumulative ``cuts``.

    Without the key the state is 0, or with ``fills`` the state of that key's fill.
    """
    start, n_cuts = 0, cuts.shape[1]
    while done < out.size:
        asked, at = below(words, start, np.uint64(keys))
        if at > words.size - 2:  # OUT too
            break
        place = _find(key, offsets[done], offsets[done + 1], asked)
        state = 0
        if place >= 0:
            state = 2 if _is_plus(words[at], value[place]) else 1
        elif fills.size > 0:
            state = 2 if _is_plus(words[at], fills[np.int64(asked)]) else 1
        cell = np.uint64(0)
        for j in range(n_cuts):
            cell += np.uint64(words[at + 1] >= cuts[state, j])
        out[done] = asked * np.uint64(n_cuts + 1) + cell
        done += 1
        start = at + 2
    return done, start


@_compiled_and_cached
def sample_pairs(
    words: Words,
    done: int,
    offsets: NDArray[np.int64],
    key: NDArray[np.uint32],
    value: NDArray[np.float64],
    keys: int,
    padding: int,
    out: NDArray[np.uint32],
) -> tuple[int, int]:
    """Sample one pair of a person's own, padded with dummies: 2 position + (value is +1)."""
    start = 0
    while done < out.size:
        first = offsets[done]
        own = offsets[done + 1] - first
        drawn, at = below(words, start, np.uint64(max(own, padding)))
        if at >= words.size:
            break
        place = np.int64(drawn)
        position, held = keys + place, 0.0
        if place < own:
            position, held = np.int64(key[first + place]), value[first + place]
        out[done] = 2 * position + _is_plus(words[at], held)
        done += 1
        start = at + 1
    return done, start


@_compiled
def _bernoulli_lanes(words: Words, at: int, undecided: Any, present: Any) -> tuple[Any, int]:
    """For every lane set in ``undecided`` a bit that is 1 with probability present / 2^64.

    Each lane compares a random number with ``present``, digit by digit from the top, and most
    are decided after two: a lane below at the first difference is 1.
    """
    ones = np.uint64(0)
    digit = np.uint64(63)
    while undecided != 0:
        if at >= words.size:
            return ones, OUT
        word = words[at]
        at += 1
        if (present >> digit) & _ONE:
            ones |= undecided & ~word
            undecided &= word
        else:
            undecided &= ~word
        if digit == 0:
            break  # equal in all digits is not below
        digit -= _ONE
    return ones, at


@_compiled
def _or_shifted(row: Words, bits: Any, shift: int) -> None:
    """Or 64 bits into a row of words, from bit ``shift`` on."""
    word, inside = shift >> 6, np.uint64(shift & 63)
    row[word] |= bits << inside
    if inside > 0 and word + 1 < row.size:
        row[word + 1] |= bits >> (np.uint64(64) - inside)


@_compiled
def _set(row: Words, bit: Any, on: bool) -> None:
    mask = _ONE << np.uint64(bit & 63)
    row[bit >> 6] = row[bit >> 6] | mask if on else row[bit >> 6] & ~mask


@_compiled
def _noise(words: Words, at: int, row: Words, positions: int, present: Any) -> int:
    """Every position absent, or present with probability present / 2^64 and a fair sign."""
    row[:] = 0
    for first in range(0, positions, 64):
        lanes = positions - first
        used = _ALL if lanes >= 64 else (_ONE << np.uint64(lanes)) - _ONE
        ones, at = _bernoulli_lanes(words, at, used, present)
        if at >= words.size:
            return OUT
        _or_shifted(row, ones, first)
        _or_shifted(row, ones & words[at], positions + first)
        at += 1
    return at


@_compiled_and_cached
def perturb_positions(
    words: Words,
    done: int,
    codes: NDArray[np.uint32],
    positions: int,
    present: Any,
    same: Any,
    row: Words,
    out: NDArray[np.uint8],
) -> tuple[int, int]:
    """PCKV-UE: all positions noise, but the sampled one, which is present with probability 1/2.

    Of 2^64 words ``same`` keep its sign, 2^63 - same turn it, and 2^63 make it absent.
    """
    start = 0
    while done < codes.size:
        at = _noise(words, start, row, positions, present)
        if at >= words.size:
            break
        position, plus = np.int64(codes[done] >> 1), codes[done] & 1 == 1
        word = words[at]
        here = word < _HALF
        _set(row, position, here)
        _set(row, positions + position, here and (plus == (word < same)))
        for i in range(out.shape[1]):
            out[done, i] = row[i >> 3] >> np.uint64(8 * (i & 7))
        done += 1
        start = at + 1
    return done, start


@_compiled_and_cached
def add_positions(
    answers: NDArray[np.uint8], positions: int, keys: int, counts: NDArray[np.int64]
) -> None:
    """Add to ``counts`` the minus and plus of every key, and the number of answers at the end."""
    for i in range(answers.shape[0]):
        for k in range(keys):
            s = positions + k
            here = (answers[i, k >> 3] >> np.uint8(k & 7)) & 1
            plus = (answers[i, s >> 3] >> np.uint8(s & 7)) & 1
            counts[2 * k] += here & (1 - plus)
            counts[2 * k + 1] += here & plus
    counts[counts.size - 1] += answers.shape[0]
