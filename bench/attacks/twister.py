"""The state of numpy's Mersenne twister from noise that was published, and all noise after it.

Laplace noise on counts that are known (cells that must be empty) gives the uniform numbers back
bit by bit: 27 and 26 bits of two words. Every bit of every word is a sum, modulo 2, of unknown bits
of the first 624 words, so what is missing follows from a linear system. Matsumoto, Nishimura 1998,
"Mersenne twister", for the recurrence. No seed is guessed: seeding it from the system helps nobody.
"""

from typing import Final

import numpy as np

from attacks.floats import places_of

WORDS: Final = 624
_MIDDLE: Final = 397
_TWIST: Final = 0x9908B0DF
_BITS: Final = 32


def words_of(shown: np.ndarray, scale: float) -> list[tuple[int, int] | None]:
    """The 53 bits of each draw as two words whose lowest 5 and 6 bits are unknown."""
    found: list[tuple[int, int] | None] = []
    for value in shown.tolist():
        places = places_of(value, count=0.0, scale=scale)
        if len(places) != 1:
            found.append(None)  # rounding left more than one: nothing is used of it
            continue
        found.append((places[0] >> 26 << 5, (places[0] & (2**26 - 1)) << 6))
    return found


def recovered(draws: list[tuple[int, int] | None]) -> np.random.RandomState | None:
    """A generator that goes on where the first 624 words ended; None if too little is known."""
    known = [
        (word, 5 + half) if pair is not None else (0, _BITS)
        for pair in draws
        for half, word in enumerate(pair or (0, 0))
    ]
    hidden = [(k, bit) for k, (_, low) in enumerate(known[:WORDS]) for bit in range(low)]
    symbols = np.zeros((len(known), _BITS, len(hidden) // 64 + 1), dtype=np.uint64)
    for k, (word, _) in enumerate(known[:WORDS]):
        symbols[k, :, -1] = _bits(word).astype(np.uint64) << np.uint64(63)
    for place, (k, bit) in enumerate(hidden):
        symbols[k, bit, place // 64] ^= np.uint64(1 << (place % 64))
    untemper = _inverse(_tempering())
    for k in range(WORDS):
        symbols[k] = _combined(untemper, symbols[k])
    for k in range(WORDS, len(known)):
        symbols[k] = _next(symbols[k - WORDS], symbols[k - WORDS + 1], symbols[k - WORDS + _MIDDLE])
    rows = _equations(known, symbols)
    solved = _solved(rows, len(hidden))
    return None if solved is None else _generator(symbols[:WORDS], solved)


def _equations(known: list[tuple[int, int]], symbols: np.ndarray) -> np.ndarray:
    """What was seen of each later word: rows that must add up to zero."""
    temper, rows = _tempering(), []
    for k in range(WORDS, len(known)):
        word, low = known[k]
        seen = _combined(temper, symbols[k])
        seen[:, -1] ^= _bits(word).astype(np.uint64) << np.uint64(63)
        rows.append(seen[low:])
    return np.concatenate(rows)


def _solved(rows: np.ndarray, unknown: int) -> np.ndarray | None:
    """The unknown bits, by elimination modulo 2; those that appear nowhere are 0."""
    rows, pivots, used = rows.copy(), [], 0
    for place in range(unknown):
        word, bit = place // 64, np.uint64(place % 64)
        holds = np.flatnonzero(rows[:, word] >> bit & np.uint64(1))
        below = holds[holds >= used]
        if not below.size:
            continue
        rows[[used, below[0]]] = rows[[below[0], used]]
        holds = np.flatnonzero(rows[:, word] >> bit & np.uint64(1))
        rows[holds[holds != used]] ^= rows[used]
        pivots.append(place)
        used += 1
    constants = rows[:, -1] >> np.uint64(63)
    if constants[used:].any() or unknown - used > _BITS:
        return None
    bits = np.zeros(unknown, dtype=np.uint64)
    bits[pivots] = constants[:used]
    return bits


def _generator(symbols: np.ndarray, solved: np.ndarray) -> np.random.RandomState:
    packed = np.zeros(symbols.shape[2], dtype=np.uint64)
    for place in np.flatnonzero(solved).tolist():
        packed[place // 64] |= np.uint64(1 << (place % 64))
    packed[-1] |= np.uint64(1 << 63)
    parity = np.bitwise_count(symbols & packed).sum(axis=2) % 2
    words = (parity.astype(np.uint64) << np.arange(_BITS, dtype=np.uint64)).sum(axis=1)
    generator = np.random.RandomState()
    generator.set_state(("MT19937", words.astype(np.uint32), WORDS))
    return generator


def _next(first: np.ndarray, second: np.ndarray, middle: np.ndarray) -> np.ndarray:
    """x[k+624] = x[k+397] ^ (y >> 1) ^ (y odd) A, y the top bit of x[k] and the rest of x[k+1]."""
    y = np.concatenate([second[:-1], first[-1:]])
    out = middle.copy()
    out[:-1] ^= y[1:]
    for bit in range(_BITS):
        if _TWIST >> bit & 1:
            out[bit] ^= y[0]
    return out


def _tempering() -> np.ndarray:
    """The matrix, modulo 2, from a word of the state to the word that comes out."""
    columns = [_bits(_tempered(1 << bit)) for bit in range(_BITS)]
    return np.stack(columns, axis=1)


def _tempered(word: int) -> int:
    word ^= word >> 11
    word ^= word << 7 & 0x9D2C5680
    word ^= word << 15 & 0xEFC60000
    return word ^ word >> 18


def _inverse(matrix: np.ndarray) -> np.ndarray:
    both = np.concatenate([matrix, np.eye(_BITS, dtype=matrix.dtype)], axis=1)
    for place in range(_BITS):
        pivot = place + int(np.argmax(both[place:, place]))
        both[[place, pivot]] = both[[pivot, place]]
        others = np.flatnonzero(both[:, place])
        both[others[others != place]] ^= both[place]
    return both[:, _BITS:]


def _combined(matrix: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Sums modulo 2 of rows."""
    out = np.zeros_like(rows)
    for place, row in enumerate(matrix):
        out[place] = np.bitwise_xor.reduce(rows[np.flatnonzero(row)], axis=0)
    return out


def _bits(word: int) -> np.ndarray:
    return np.array([word >> bit & 1 for bit in range(_BITS)], dtype=np.uint8)
