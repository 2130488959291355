"""Compiled Hadamard response and local hashing: one word for each answer.

All compiled code of these protocols stands in this one file: numba's disk cache does not see a
change in an imported file.
"""

from typing import Any, Final

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic
from numpy.typing import NDArray

from sfumato.randomness import Words

_ZERO: Final = np.uint64(0)
_ONE: Final = np.uint64(1)
_HALF: Final = np.uint64(32)
Multipliers = tuple[np.uint32, np.uint32, np.uint32]
"""Of the category, of the first and of the second round: ``local_hashing.MULTIPLIERS``."""
_BLOCK: Final = 2**20
"""Answers between two transfers of the 32-bit tally, which so never overflows."""


def _bit_count(typing: Any, x: Any) -> Any:
    """The number of set bits of a uint64, inside compiled code only: one machine instruction."""

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    return types.uint64(types.uint64), generate


bit_count: Any = intrinsic(_bit_count)


@njit(nogil=True, error_model="numpy")
def _parity(x: Any) -> Any:
    """The parity of the lowest 32 bits, in bit 0: shifts, which unlike a bit count vectorize."""
    x ^= x >> np.uint64(16)
    x ^= x >> np.uint64(8)
    x ^= x >> np.uint64(4)
    x ^= x >> np.uint64(2)
    x ^= x >> np.uint64(1)
    return x & _ONE


@njit(nogil=True, error_model="numpy")
def _mixed(x: Any, multipliers: Multipliers) -> Any:
    """The rounds of ``local_hashing.mixed``, after the category went in."""
    x = np.uint32(x ^ np.uint32(x >> np.uint32(16)))
    x = np.uint32(x * multipliers[1])
    x = np.uint32(x ^ np.uint32(x >> np.uint32(15)))
    return np.uint32(x * multipliers[2])


@njit(cache=True, nogil=True, error_model="numpy")
def respond_hadamard(
    words: Words, codes: NDArray[Any], out: NDArray[Any], bits: np.uint64, keep: np.int64
) -> None:
    """An index whose sign in row ``code + 1`` is plus if the word above ``bits`` is below ``keep``.

    That part of the word is below 2^62, so the signed comparison, which is faster, is right.
    """
    mask = (_ONE << bits) - _ONE
    for i in range(codes.size):
        word, row = words[i], np.uint64(codes[i]) + _ONE
        index = word & mask
        lie = np.uint64(np.int64(word >> bits) >= keep)
        wrong = _parity(index & row) ^ lie
        out[i] = index ^ ((_ZERO - wrong) & row & (_ZERO - row))


@njit(cache=True, nogil=True, error_model="numpy")
def walsh_hadamard(values: NDArray[np.int64]) -> None:
    """In place, the sums of ``values[i] (-1)^parity(i & j)`` for each j; a power of two long."""
    half = 1
    while half < values.size:
        for start in range(0, values.size, 2 * half):
            for i in range(start, start + half):
                a, b = values[i], values[i + half]
                values[i], values[i + half] = a + b, a - b
        half *= 2


@njit(cache=True, nogil=True, error_model="numpy")
def respond_mixed(
    words: Words,
    codes: NDArray[Any],
    out: NDArray[Any],
    multipliers: Multipliers,
    bits: np.uint64,
    truth: np.uint64,
) -> None:
    """Seeds from the lower halves of the words, responses from the upper ones."""
    mask, unused = (_ONE << bits) - _ONE, np.uint32(32 - bits)
    for i in range(codes.size):
        word = words[i]
        seed, rest = np.uint32(word), word >> _HALF
        key = np.uint32(np.uint32(codes[i]) * multipliers[0])
        value = np.uint64(_mixed(np.uint32(seed ^ key), multipliers) >> unused)
        chosen = value if (rest >> bits) < truth else rest & mask
        out[i] = (np.uint64(seed) << bits) | chosen


@njit(cache=True, nogil=True, error_model="numpy")
def add_mixed(
    answers: NDArray[Any], counts: NDArray[np.int64], multipliers: Multipliers, bits: np.uint64
) -> None:
    """Add one to each category whose hash is the response: all seeds times all categories.

    Four answers at a time share the loads of keys and tally; the inner loop has 32-bit lanes.
    """
    mask, unused = (_ONE << bits) - _ONE, np.uint32(32 - bits)
    keys = np.empty(counts.size, np.uint32)
    for code in range(counts.size):
        keys[code] = np.uint32(code) * multipliers[0]
    seeds, values = np.empty(4, np.uint32), np.empty(4, np.uint32)
    for block in range(0, answers.size, _BLOCK):
        tally = np.zeros(counts.size, np.uint32)
        end = min(block + _BLOCK, answers.size)
        for i in range(block, end, 4):
            for j in range(4):
                # a value that no hash takes stands where the answers have ended
                last = i + j >= end
                answer = np.uint64(answers[end - 1 if last else i + j])
                seeds[j] = np.uint32(answer >> bits)
                values[j] = np.uint32(mask + _ONE if last else answer & mask)
            _add_four(keys, tally, seeds, values, multipliers, unused)
        for code in range(counts.size):
            counts[code] += tally[code]


@njit(nogil=True, error_model="numpy")
def _add_four(
    keys: Any, tally: Any, seeds: Any, values: Any, multipliers: Multipliers, unused: Any
) -> None:
    a, b, c, d = seeds[0], seeds[1], seeds[2], seeds[3]
    at_a, at_b, at_c, at_d = values[0], values[1], values[2], values[3]
    for code in range(keys.size):
        key = keys[code]
        found = np.uint32(np.uint32(_mixed(np.uint32(key ^ a), multipliers) >> unused) == at_a)
        found += np.uint32(np.uint32(_mixed(np.uint32(key ^ b), multipliers) >> unused) == at_b)
        found += np.uint32(np.uint32(_mixed(np.uint32(key ^ c), multipliers) >> unused) == at_c)
        found += np.uint32(np.uint32(_mixed(np.uint32(key ^ d), multipliers) >> unused) == at_d)
        tally[code] += np.uint32(found)


@njit(nogil=True, error_model="numpy")
def _linear_hash(seed: Any, masks: Any, code: Any) -> Any:
    """Bit i of the hash is the parity of the seed under the code's mask i."""
    value = _ZERO
    for i in range(masks.shape[1]):
        value |= (bit_count(seed & np.uint64(masks[code, i])) & _ONE) << np.uint64(i)
    return value


@njit(cache=True, nogil=True, error_model="numpy")
def respond_linear(
    words: Words,
    codes: NDArray[Any],
    out: NDArray[Any],
    masks: NDArray[np.uint32],
    seed_bits: np.uint64,
    truth: np.uint64,
) -> None:
    """Seeds from the lowest bits of the words, responses from the others."""
    bits = np.uint64(masks.shape[1])
    seed_mask, mask = (_ONE << seed_bits) - _ONE, (_ONE << bits) - _ONE
    for i in range(codes.size):
        word = words[i]
        seed, rest = word & seed_mask, word >> seed_bits
        value = _linear_hash(seed, masks, codes[i])
        chosen = value if (rest >> bits) < truth else rest & mask
        out[i] = (seed << bits) | chosen


@njit(cache=True, nogil=True, error_model="numpy")
def gather_linear(
    transformed: NDArray[np.int64], masks: NDArray[np.uint32], out: NDArray[np.int64]
) -> None:
    """The sums over s of ``transformed[L_s(code), s]``, with s in the order of a Gray code.

    L_s is the sum of the masks that s selects; from one s to the next a single mask is added.
    """
    bits = masks.shape[1]
    for code in range(out.size):
        mask, s, total = np.int64(0), 0, transformed[0]
        for step in range(1, 1 << bits):
            bit = 0
            while not (step >> bit) & 1:
                bit += 1
            mask ^= np.int64(masks[code, bit])
            s ^= 1 << bit
            total += transformed[mask << bits | s]
        out[code] = total
