"""Compiled randomized response, subset selection and counting on packed bits.

Rows of packed bits lie one after the other, so 64 bits of them are a word whatever a row's width:
drawing and counting work on whole words and ask only at the end which bit was whose. All compiled
code of these protocols stands in this one file: numba's disk cache does not see a change in an
imported file. Words of bits are little-endian.
"""

from typing import Any, Final

import numpy as np
from numba import njit, types
from numba.extending import intrinsic
from numpy.typing import NDArray

from sfumato.randomness import Words

PLANES: Final = 8
"""Binary digits that are compared for all lanes; a lane in 2^8 is then still open."""

_ZERO: Final = np.uint64(0)
_ONE: Final = np.uint64(1)

_GROUP: Final = 8  # words that one round of carry-save adders takes
_COUNTER_BITS: Final = 11
_ROUNDS: Final = (2**_COUNTER_BITS - 1) // _GROUP  # as many as the counters can hold


def _ones_in(typing: Any, word: Any) -> Any:
    """The number of set bits of a uint64, inside compiled code only."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    return types.uint64(types.uint64), generate


ones_in: Any = intrinsic(_ones_in)


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
    """In every lane, whether a uniform number of ``PLANES`` digits is below the lane's threshold.

    The threshold is p where the bit is set and q where it is not. The first digit that differs
    decides, so the digits are walked from the lowest up and each overrules those before it.
    ``undecided`` marks the lanes where none differs.
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
    """Decide each open lane by one word against the rest of its threshold; answers into ``bits``.

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
            lane = tie & (_ZERO - tie)
            rest = p_rest if bit & lane else q_rest
            if words[at] < rest:
                less |= lane
            at += 1
            tie ^= lane
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
        byte, lane = code >> np.uint64(3), code & np.uint64(7)
        rest = np.uint64(rows[i, byte]) & ~(_ONE << lane)
        rows[i, byte] = rest | (np.uint64(words[i] < keep) << lane)


@njit(cache=True, nogil=True, error_model="numpy")
def balance(
    words: Words, codes: NDArray[Any], rows: NDArray[Any], done: int, ones: int, categories: int
) -> int:
    """Give every row from ``done`` on exactly ``ones`` set bits, leaving its code's as it is.

    Bits at uniform places other than the code are flipped the way that is missing until the number
    is right. The other bits were exchangeable before and every step treats their places alike, so
    the set of them is uniform among those of its size. Returns the first row left when the words
    run out: its flips so far stand, and go on with more words.
    """
    shift, lanes = np.uint64(3 if rows.itemsize == 1 else 6), np.uint64(8 * rows.itemsize)
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
            place = word & ((_ONE << digits) - _ONE)  # a few fresh bits of the word
            word >>= digits
            left -= 1
            if place < np.uint64(categories):
                element, lane = place >> shift, place & (lanes - _ONE)
                old = np.uint64(row[element])
                flip = np.uint64(place != code) & ((old >> lane) ^ present ^ _ONE) & _ONE
                row[element] = old ^ (flip << lane)
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
        ones += np.int64(ones_in(np.uint64(row[j])))
    return ones


@njit(nogil=True, error_model="numpy")
def _add3(a: Any, b: Any, c: Any) -> tuple[Any, Any]:
    """Carry-save adder: in each lane the sum of three bits, as a low and a high bit."""
    half = a ^ b
    return half ^ c, (a & b) | (half & c)


@njit(cache=True, nogil=True, error_model="numpy")
def add_words(words: Words, period: int, width: int, counts: NDArray[np.int64]) -> None:
    """Add set bits to the counter of their place; word i holds the places of word i + period.

    The words of one column are added lane by lane in bit-sliced counters: eight words by seven
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
    for lane in range(64):
        place = 8 * ((8 * column + lane // 8) % width) + lane % 8
        if place < counts.size:
            for digit in range(sliced.size):
                counts[place] += np.int64((sliced[digit] >> np.uint64(lane)) & _ONE) << digit


@njit(cache=True, nogil=True, error_model="numpy")
def add_rows(rows: NDArray[np.uint8], counts: NDArray[np.int64]) -> None:
    """Add set bits to the counter of their place, bit by bit: for a few rows."""
    for i in range(rows.shape[0]):
        for place in range(counts.size):
            counts[place] += (rows[i, place >> 3] >> (place & 7)) & 1
