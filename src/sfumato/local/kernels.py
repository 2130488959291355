"""Compiled responses and counting of whole numbers: the bulk path of a device's draws.

A word is compared with cut points out of 2^64. They are computed from a mechanism's few integers
or, for key-value states, read from a table. A kernel of ``replay`` takes (words, answers done) and
returns (answers done, where the first unfinished one began); the others take one word an answer.
All compiled code of these mechanisms stands in this one file, but for ``below`` and
``multiply_high``: numba's disk cache does not see a change in an imported file.
"""

from typing import Any, Final

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic
from numpy.typing import NDArray

from sfumato.noise.kernels import OUT, below, multiply_high
from sfumato.randomness import Words

BANKED_CELLS: Final = 4_096
"""Small tallies are counted in four banks, so that equal neighbors do not wait for each other."""

Window = tuple[np.uint64, ...]
"""The integers of a window: see ``WindowWeights.numbers``."""

_ONE: Final = np.uint64(1)
_TWO: Final = np.uint64(2)
_HALF: Final = np.uint64(2**63)
_ALL: Final = np.uint64(2**64 - 1)


def _bit_count(typing: Any, word: Any) -> Any:
    """The number of set bits of a uint64, inside compiled code only: one machine instruction."""

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    return types.uint64(types.uint64), generate


bit_count: Any = intrinsic(_bit_count)


@njit(nogil=True, error_model="numpy", inline="always")
def _response(
    word: np.uint64, code: np.uint64, keep: np.uint64, reciprocal: np.uint64, shift: np.uint64
) -> np.uint64:
    """Randomized response: a word below ``keep`` keeps the code, the others share the rest.

    They share it by the reciprocal of their share (``ResponseWeights.reciprocal``: exact for
    every word).
    """
    other = multiply_high((word - keep) >> _TWO, reciprocal) >> shift
    other += np.uint64(other >= code)
    return code if word < keep else other


@njit(cache=True, nogil=True, error_model="numpy")
def respond(
    words: Words,
    codes: NDArray[Any],
    out: NDArray[Any],
    keep: np.uint64,
    reciprocal: np.uint64,
    shift: np.uint64,
) -> None:
    """Generalized randomized response, exactly."""
    for i in range(codes.size):
        out[i] = _response(words[i], np.uint64(codes[i]), keep, reciprocal, shift)


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


@njit(cache=True, nogil=True, error_model="numpy")
def respond_linearly(
    words: Words, codes: NDArray[Any], out: NDArray[Any], first: np.uint64, step: np.uint64
) -> None:
    """1 when the word is below first + code * step, else 0."""
    for i in range(codes.size):
        out[i] = words[i] < first + np.uint64(codes[i]) * step


@njit(nogil=True, error_model="numpy", inline="always")
def _in_window(word: np.uint64, code: np.uint64, numbers: Window) -> np.uint64:
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
    words: Words, codes: NDArray[Any], out: NDArray[Any], done: int, numbers: Window
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
    numbers: Window,
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
                differ += np.int64(bit_count(drawn ^ signs[done, part]))
            at += parts
            lies = (2 * differ < length) == same
        if not lies:
            break
        done += 1
        start = at
    return done, start


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

    Rows of ``responses`` are keep, reciprocal, shift, as in ``respond``.
    """
    start = 0
    for person in range(done, block.shape[1]):
        true, at = below(words, start, np.uint64(sizes.size))
        for i in range(sizes.size):
            if np.uint64(i) != true:
                answer, at = below(words, at, sizes[i])
            elif at < words.size:
                keep, reciprocal, shift = responses[i, 0], responses[i, 1], responses[i, 2]
                code = np.uint64(block[i, person])
                answer = _response(words[at], code, keep, reciprocal, shift)
                at += 1
            else:
                answer, at = np.uint64(0), OUT
            out[i, person] = answer
        if at == OUT:
            return person, start
        start = at
    return block.shape[1], start


@njit(nogil=True, error_model="numpy")
def _is_plus(word: Any, value: float) -> Any:
    """Round a value to +1 or -1 without bias: the same integers as ``pairs.plus_words``."""
    if value >= 1.0:
        return True  # 2^64 words do not fit into 64 bits
    return word < np.uint64(np.int64(np.floor(value * 2.0**63))) + _HALF


@njit(nogil=True, error_model="numpy")
def _find(key: NDArray[np.uint32], low: int, high: int, target: Any) -> int:
    """The index of a key in a person's ascending list, -1 without it."""
    end = high
    while low < high:
        middle = (low + high) >> 1
        if key[middle] < target:
            low = middle + 1
        else:
            high = middle
    return low if low < end and key[low] == target else -1


@njit(cache=True, nogil=True, error_model="numpy")
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
        sampled, at = below(words, start, np.uint64(keys))
        if at > words.size - 2:  # OUT too
            break
        index = _find(key, offsets[done], offsets[done + 1], sampled)
        state = 0
        if index >= 0:
            state = 2 if _is_plus(words[at], value[index]) else 1
        elif fills.size > 0:
            state = 2 if _is_plus(words[at], fills[np.int64(sampled)]) else 1
        cell = np.uint64(0)
        for j in range(n_cuts):
            cell += np.uint64(words[at + 1] >= cuts[state, j])
        out[done] = sampled * np.uint64(n_cuts + 1) + cell
        done += 1
        start = at + 2
    return done, start


@njit(cache=True, nogil=True, error_model="numpy")
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
        index = np.int64(drawn)
        position, number = keys + index, 0.0
        if index < own:
            position, number = np.int64(key[first + index]), value[first + index]
        out[done] = 2 * position + _is_plus(words[at], number)
        done += 1
        start = at + 1
    return done, start


@njit(nogil=True, error_model="numpy")
def _bernoulli_bits(words: Words, at: int, undecided: Any, present: Any) -> tuple[Any, int]:
    """For every bit set in ``undecided`` a bit that is 1 with probability present / 2^64.

    Each compares a random number with ``present``, digit by digit from the top, and most
    are decided after two: one that is below at the first difference is 1.
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


@njit(nogil=True, error_model="numpy")
def _or_shifted(row: Words, bits: Any, shift: int) -> None:
    """Or 64 bits into a row of words, from bit ``shift`` on."""
    word, inside = shift >> 6, np.uint64(shift & 63)
    row[word] |= bits << inside
    if inside > 0 and word + 1 < row.size:
        row[word + 1] |= bits >> (np.uint64(64) - inside)


@njit(nogil=True, error_model="numpy")
def _set(row: Words, bit: Any, on: bool) -> None:
    mask = _ONE << np.uint64(bit & 63)
    row[bit >> 6] = row[bit >> 6] | mask if on else row[bit >> 6] & ~mask


@njit(nogil=True, error_model="numpy")
def _noise(words: Words, at: int, row: Words, positions: int, present: Any) -> int:
    """Every position absent, or present with probability present / 2^64 and a fair sign."""
    row[:] = 0
    for first in range(0, positions, 64):
        rest = positions - first
        used = _ALL if rest >= 64 else (_ONE << np.uint64(rest)) - _ONE
        ones, at = _bernoulli_bits(words, at, used, present)
        if at >= words.size:
            return OUT
        _or_shifted(row, ones, first)
        _or_shifted(row, ones & words[at], positions + first)
        at += 1
    return at


@njit(cache=True, nogil=True, error_model="numpy")
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


@njit(cache=True, nogil=True, error_model="numpy")
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
