"""Hadamard response: one index of a Hadamard matrix, the shortest answer for many categories."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sfumato.local.layout import Answer, Answers, IntegerLayout
from sfumato.local.mechanism import (
    Codes,
    Counts,
    FrequencyMechanism,
    Transition,
    bit_kernels,
    chunks,
    refuse_large,
    transition_of,
)
from sfumato.local.probabilities import WORD, exp_below, split_below
from sfumato.randomness import Rng


@dataclass(frozen=True, kw_only=True)
class HadamardResponse(FrequencyMechanism):
    """An index j, likely one where row v + 1 of the Hadamard matrix has a plus.

    The matrix of order K has the sign (-1)^parity(i & j) in row i and column j. The row of a
    category has K/2 pluses; j is uniform on them with probability p = e^eps / (e^eps + 1), else
    uniform on the minuses. Two rows agree in sign in exactly half of the places, so q = 1/2.

    Formal guarantee: epsilon-local DP. All indices with a plus have the weight 2 ``keep``, all
    others 2 (2^(64 - log2 K) - ``keep``), and the ratio of the two is at most e^epsilon.
    Acharya, Sun, Zhang 2019, "Hadamard response", AISTATS, arXiv 1802.04705.
    """

    @cached_property
    def index_bits(self) -> int:
        """log2 K for the smallest power of two K above the number of categories."""
        return self.categories.bit_length()

    @cached_property
    def keep(self) -> int:
        """Of the 2^(64 - log2 K) values of a word's upper bits, those that tell the truth."""
        return split_below(exp_below(self.epsilon)) >> self.index_bits

    @property
    def p(self) -> Fraction:
        """The part of the upper bits that tells the truth."""
        return Fraction(self.keep << self.index_bits, WORD)

    @property
    def q(self) -> Fraction:
        """One half: the rows are orthogonal."""
        return Fraction(1, 2)

    @cached_property
    def layout(self) -> IntegerLayout:
        """The index."""
        return IntegerLayout(below=1 << self.index_bits)

    def answer(self, code: int, *, rng: Rng) -> Answer:
        """One answer, by plain integers: the low bits are the index, the others decide.

        A wrong sign is set right by the row's lowest bit, which maps one half onto the other.
        """
        row = self.checked_code(code) + 1
        decision, index = divmod(int(rng.words(1)[0]), 1 << self.index_bits)
        lie = decision >= self.keep
        wrong = odd(index & row) != lie
        return index ^ (row & -row) if wrong else index

    def answer_many(self, codes: Codes, *, rng: Rng) -> Answers:
        """One answer for each code."""
        codes = self.checked_codes(codes)
        out = self.layout.empty(codes.size)
        numbers = np.uint64(self.index_bits), np.int64(self.keep)
        for rows, words in chunks(codes.size, rng=rng):
            bit_kernels().respond_hadamard(words, codes[rows], out[rows], *numbers)
        return out

    def supports(self, counts: Counts) -> NDArray[np.float64]:
        """For each category the indices with a plus: (n + transform of the counts) / 2, exact."""
        transformed = walsh_hadamard(counts)
        plus: Counts = (transformed[0] + transformed[1 : self.categories + 1]) // 2
        return plus.astype(np.float64)

    def transition(self) -> Transition:
        """Two weights, by the sign."""
        refuse_large(self, self.categories * self.cells, fewer="categories")
        weights = 2 * self.keep, 2 * ((WORD >> self.index_bits) - self.keep)
        rows = [
            [weights[odd(index & row)] for index in range(self.cells)]
            for row in range(1, self.categories + 1)
        ]
        return transition_of(range(self.cells), rows)


def odd(bits: int) -> bool:
    """Whether an odd number of bits is set."""
    return bits.bit_count() % 2 == 1


def walsh_hadamard(values: Counts) -> Counts:
    """The sums of ``values[i] (-1)^parity(i & j)`` for each j, in whole numbers.

    Takes k 2^k additions for 2^k values.

    >>> walsh_hadamard(np.array([5, 1, 0, 2])).tolist()
    [8, 2, 4, 6]
    """
    out = np.array(values, dtype=np.int64)
    bit_kernels().walsh_hadamard(out)
    return out
