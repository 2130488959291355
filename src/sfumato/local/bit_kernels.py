"""Compiled code on single bits: packed vectors of them, Hadamard signs and hash functions.

Rows of packed bits lie one after the other, so 64 bits of them are a word whatever a row's width:
drawing and counting work on whole words and ask only at the end which bit was whose. Words of bits
are little-endian. All compiled code of these protocols stands in this one file, but for
``bit_count``: numba's disk cache does not see a change in an imported file.
"""

from typing import Any, Final

import numpy as np
from numba import njit
from numpy.typing import NDArray

from sfumato.local.kernels import bit_count
from sfumato.randomness import Words

PLANES: Final = 8
"""Binary digits that are compared for all bits; one bit in 2^8 is then still undecided."""

Multipliers = tuple[np.uint32, np.uint32, np.uint32]
"""Of the category, of the first and of the second round: ``local_hashing.MULTIPLIERS``."""

_ZERO: Final = np.uint64(0)
_ONE: Final = np.uint64(1)
_HALF: Final = np.uint64(32)
"""Bits of half a word."""

_GROUP: Final = 8
"""Words that one round of carry-save adders takes."""
_COUNTER_BITS: Final = 11
"""Digits of a bit-sliced counter: it holds sums up to 2,047."""
_ROUNDS: Final = (2**_COUNTER_BITS - 1) // _GROUP
"""Groups that are added before the counters are transferred, lest they overflow."""
_BLOCK: Final = 2**20
"""Answers between two transfers of the 32-bit tally, which so never overflows."""


@njit(cache=True, nogil=True, error_model="numpy")
def set_codes(codes: NDArray[Any], rows: NDArray[np.uint8]) -> None:
    """One-hot rows: bit ``codes[i]`` of row i."""
    rows[:] = 0
    for i in range(codes.size):
        code = np.uint64(codes[i])
        rows[i, code >> np.uint64(3)] = _ONE << (code & np.uint64(7))


@njit(cache=True, nogil=True, error_model="numpy")
def compare_planes(
    words: Words, bits: Words, below: Words, undecided: Words, p: np.uint64, q: np.uint64
) -> None:
    """For every bit, whether a uniform number of ``PLANES`` digits is below the bit's threshold.

    The threshold is p where the bit is set and q where it is not. The first digit that differs
    decides, so the digits are walked from the lowest up and each overrules those before it.
    ``undecided`` marks the bits where none differs.
    """
    size = bits.size
    for j in range(size):
        bit, less, tie = bits[j], _ZERO, ~_ZERO
        for i in range(PLANES):
            k = PLANES - 1 - i
            p_digit = _ZERO - ((p >> np.uint64(63 - k)) & _ONE)
            q_digit = _ZERO - ((q >> np.uint64(63 - k)) & _ONE)
            digit = q_digit ^ (bit & (p_digit ^ q_digit))
            differs = digit ^ words[k * size + j]
            less ^= differs & (less ^ digit)
            tie &= ~differs
        below[j], undecided[j] = less, tie


@njit(cache=True, nogil=True, error_model="numpy")
def decide_rest(
    words: Words,
    bits: Words,
    below: Words,
    undecided: Words,
    start: int,
    p_rest: np.uint64,
    q_rest: np.uint64,
) -> int:
    """Decide each open bit by one word against the rest of its threshold; answers into ``bits``.

    Returns where the words ran out, to go on from there with more of them, or the number of bits'
    words when all is decided.
    """
    at = 0
    for j in range(start, bits.size):
        bit, less, tie = bits[j], below[j], undecided[j]
        while tie != _ZERO:
            if at == words.size:
                below[j], undecided[j] = less, tie
                return j
            lowest = tie & (_ZERO - tie)
            rest = p_rest if bit & lowest else q_rest
            if words[at] < rest:
                less |= lowest
            at += 1
            tie ^= lowest
        bits[j] = less
    return bits.size


@njit(cache=True, nogil=True, error_model="numpy")
def toss_planes(words: Words, bits: Words, numerator: int, planes: int) -> None:
    """Independent bits, each set with probability ``numerator / 2^planes``, exactly.

    From the lowest digit up: a one is "or" with a fair bit, a zero is "and".
    """
    bits[:] = 0
    for k in range(planes):
        fair = words[k * bits.size : (k + 1) * bits.size]
        if (numerator >> k) & 1:
            for j in range(bits.size):
                bits[j] |= fair[j]
        else:
            for j in range(bits.size):
                bits[j] &= fair[j]


@njit(cache=True, nogil=True, error_model="numpy")
def decide_codes(
    words: Words, codes: NDArray[Any], rows: NDArray[np.uint8], keep: np.uint64
) -> None:
    """Set the bit ``codes[i]`` of row i if its word is below ``keep``, otherwise clear it."""
    for i in range(codes.size):
        code = np.uint64(codes[i])
        byte, offset = code >> np.uint64(3), code & np.uint64(7)
        rest = np.uint64(rows[i, byte]) & ~(_ONE << offset)
        rows[i, byte] = rest | (np.uint64(words[i] < keep) << offset)


@njit(cache=True, nogil=True, error_model="numpy")
def balance(
    words: Words, codes: NDArray[Any], rows: NDArray[Any], done: int, ones: int, categories: int
) -> int:
    """Give every row from ``done`` on exactly ``ones`` set bits, leaving its code's as it is.

    Bits at uniform positions other than the code are flipped in the missing direction until the
    number is right. The other bits were exchangeable before and every step treats them alike, so
    the set of them is uniform among those of its size. Returns the first row left when the words
    run out: its flips so far stand, and go on with more words.
    """
    shift, width = np.uint64(3 if rows.itemsize == 1 else 6), np.uint64(8 * rows.itemsize)
    digits = _digits(np.uint64(categories))
    at, left, word = 0, np.int64(0), _ZERO
    for i in range(done, codes.size):
        row, code = rows[i], np.uint64(codes[i])
        missing = ones - _ones_of(row)
        present = np.uint64(missing < 0)
        missing = abs(missing)
        while missing > 0:
            if left == 0:
                if at == words.size:
                    return i
                word, left = words[at], 64 // np.int64(digits)
                at += 1
            drawn = word & ((_ONE << digits) - _ONE)  # a few fresh bits of the word
            word >>= digits
            left -= 1
            if drawn < np.uint64(categories):
                element, offset = drawn >> shift, drawn & (width - _ONE)
                old = np.uint64(row[element])
                flip = np.uint64(drawn != code) & ((old >> offset) ^ present ^ _ONE) & _ONE
                row[element] = old ^ (flip << offset)
                missing -= np.int64(flip)
    return codes.size


@njit(nogil=True, error_model="numpy")
def _digits(bound: np.uint64) -> np.uint64:
    """Binary digits that numbers below ``bound`` need."""
    digits = _ONE
    while (_ONE << digits) < bound:
        digits += _ONE
    return digits


@njit(nogil=True, error_model="numpy")
def _ones_of(row: NDArray[Any]) -> np.int64:
    ones = np.int64(0)
    for j in range(row.size):
        ones += np.int64(bit_count(np.uint64(row[j])))
    return ones


@njit(nogil=True, error_model="numpy")
def _add3(a: Any, b: Any, c: Any) -> tuple[Any, Any]:
    """Carry-save adder: at each position the sum of three bits, as a low and a high bit."""
    half = a ^ b
    return half ^ c, (a & b) | (half & c)


@njit(cache=True, nogil=True, error_model="numpy")
def add_words(words: Words, period: int, width: int, counts: NDArray[np.int64]) -> None:
    """Add set bits to the counter of their position, which repeats after ``period`` words.

    The words of one column are added bit by bit in bit-sliced counters: eight words by seven
    carry-save adders, whose carry then ripples. Positional popcount; Klarqvist, Mula, Lemire 2019,
    "Efficient computation of positional population counts", arXiv 1911.02696.
    Whole groups of 8 periods only.
    """
    groups = words.size // (period * _GROUP)
    sliced = np.zeros(_COUNTER_BITS, np.uint64)
    for first in range(0, groups, _ROUNDS):
        last = min(first + _ROUNDS, groups)
        for column in range(period):
            one, two, four = _ZERO, _ZERO, _ZERO
            sliced[:] = 0
            for group in range(first, last):
                i = group * _GROUP * period + column
                one, a = _add3(one, words[i], words[i + period])
                one, b = _add3(one, words[i + 2 * period], words[i + 3 * period])
                two, c = _add3(two, a, b)
                one, a = _add3(one, words[i + 4 * period], words[i + 5 * period])
                one, b = _add3(one, words[i + 6 * period], words[i + 7 * period])
                two, a = _add3(two, a, b)
                four, carry = _add3(four, c, a)
                for digit in range(3, _COUNTER_BITS):
                    old = sliced[digit]
                    sliced[digit] = old ^ carry
                    carry &= old
            sliced[0], sliced[1], sliced[2] = one, two, four
            _flush(sliced, column, width, counts)


@njit(nogil=True, error_model="numpy")
def _flush(sliced: Words, column: int, width: int, counts: NDArray[np.int64]) -> None:
    for bit in range(64):
        position = 8 * ((8 * column + bit // 8) % width) + bit % 8
        if position < counts.size:
            for digit in range(sliced.size):
                counts[position] += np.int64((sliced[digit] >> np.uint64(bit)) & _ONE) << digit


@njit(cache=True, nogil=True, error_model="numpy")
def add_rows(rows: NDArray[np.uint8], counts: NDArray[np.int64]) -> None:
    """Add set bits to the counter of their position, bit by bit: for a few rows."""
    for i in range(rows.shape[0]):
        for position in range(counts.size):
            counts[position] += (rows[i, position >> 3] >> (position & 7)) & 1


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

    Four answers at a time share the loads of keys and tally; the inner loop has 32-bit vectors.
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
        matches = np.uint32(np.uint32(_mixed(np.uint32(key ^ a), multipliers) >> unused) == at_a)
        matches += np.uint32(np.uint32(_mixed(np.uint32(key ^ b), multipliers) >> unused) == at_b)
        matches += np.uint32(np.uint32(_mixed(np.uint32(key ^ c), multipliers) >> unused) == at_c)
        matches += np.uint32(np.uint32(_mixed(np.uint32(key ^ d), multipliers) >> unused) == at_d)
        tally[code] += np.uint32(matches)


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
