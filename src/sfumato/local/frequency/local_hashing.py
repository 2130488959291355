"""Local hashing: the category is hashed to few values, and the hash value is answered about.

The seed of the hash is drawn on the device and sent along; it does not depend on the category.
With g near e^eps + 1 values the variance is that of unary encoding (OUE), the answer a few bytes.
Wang, Blocki, Li, Jha 2017, "Locally differentially private protocols for frequency estimation",
USENIX Security, section 4.4. ``Olh`` mixes integers; ``FastOlh`` hashes linearly, and exactly.
"""

from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import inf
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError
from sfumato.local.frequency.hadamard import walsh_hadamard
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
from sfumato.local.probabilities import exp_below
from sfumato.randomness import Rng

MAX_VALUE_BITS: Final = 16
"""Of a hash value of ``Olh``: more would help only beyond epsilon 11, which hides little."""

MAX_CELLS: Final = 2**26
"""The largest tally of ``FastOlh``: half a gigabyte, reached by a million categories at epsilon 4.

Beyond it there are fewer hash values than would be best, and ``variance`` says what that costs."""

MULTIPLIERS: Final = (0x9E3779B1, 0x7FEB352D, 0x846CA68B)
"""Of the category (2^32 over the golden ratio, odd) and of the two rounds of ``mixed``."""

POLYNOMIALS: Final = (
    *(0x3, 0x7, 0xB, 0x13, 0x25, 0x43, 0x83, 0x11B, 0x203, 0x409),
    *(0x805, 0x1009, 0x201B, 0x4021, 0x8003, 0x1002B, 0x20009, 0x40009, 0x80027, 0x100009),
)
"""The smallest irreducible polynomial over GF(2) of each degree from 1 to 20, as bits."""


@dataclass(frozen=True, kw_only=True)
class HashedResponse:
    """The integers of a randomized response among g = 2^``value_bits`` hash values.

    Of ``word_bits`` random bits the lowest give one of the g values, and the others, of which
    there are T = ``total`` values, decide: below ``truth`` the true value is reported, else the
    drawn one. So the true value has the weight g truth + T - truth, any other T - truth, of g T.
    With truth = floor(T (odds - 1) / (odds - 1 + g)) their ratio is at most ``odds``, exactly.
    """

    value_bits: int
    word_bits: int
    odds: Fraction

    @property
    def values(self) -> int:
        """The number g of hash values."""
        return 1 << self.value_bits

    @property
    def total(self) -> int:
        """The number of values that decide."""
        return 1 << (self.word_bits - self.value_bits)

    @cached_property
    def truth(self) -> int:
        """How many of them tell the truth."""
        excess = self.odds - 1
        return int(excess * self.total // (excess + self.values))

    @cached_property
    def p(self) -> Fraction:
        """The probability of the true value."""
        return Fraction(self.truth * (self.values - 1) + self.total, self.total * self.values)

    @property
    def variance(self) -> Fraction | float:
        """Of a rare category's frequency, times n, when hashes collide with probability 1/g."""
        q = Fraction(1, self.values)
        return q * (1 - q) / (self.p - q) ** 2 if self.truth else inf

    def draw(self, value: int, bits: int) -> int:
        """The response to a value that ``word_bits`` random bits make."""
        decision, drawn = divmod(bits, self.values)
        return value if decision < self.truth else drawn

    def row(self, value: int) -> list[int]:
        """The weights of every response to one value."""
        other = self.total - self.truth
        true = self.values * self.truth + other
        return [true if drawn == value else other for drawn in range(self.values)]


@dataclass(frozen=True, kw_only=True)
class LocalHashing(FrequencyMechanism):
    """An answer is a seed and a response to the hash of the category under that seed.

    The seed is the lowest ``seed_bits`` of one random word, the response comes from the others.
    Formal guarantee: epsilon-local DP, since the seed is independent of the category and for each
    seed the response's weights have a ratio of at most e^epsilon, whatever the hash.
    """

    @property
    @abstractmethod
    def seed_bits(self) -> int:
        """How many bits a seed has."""

    @property
    @abstractmethod
    def response(self) -> HashedResponse:
        """The one definition of the probabilities."""

    @abstractmethod
    def hashed(self, seed: int, code: int) -> int:
        """The hash value of a category, by plain integers."""

    @property
    def p(self) -> Fraction:
        """The probability that the true hash value is reported."""
        return self.response.p

    @property
    def q(self) -> Fraction:
        """1/g: the probability that two categories collide, by which the lie does not matter."""
        return Fraction(1, self.response.values)

    @cached_property
    def layout(self) -> IntegerLayout:
        """The seed times g, plus the response."""
        return IntegerLayout(below=1 << (self.seed_bits + self.response.value_bits))

    def answer(self, code: int, *, rng: Rng) -> Answer:
        """One answer, by plain integers."""
        code = self.checked_code(code)
        rest, seed = divmod(int(rng.words(1)[0]), 1 << self.seed_bits)
        value = self.response.draw(self.hashed(seed, code), rest)
        return seed * self.response.values + value

    def given_seed(self, seed: int) -> Transition:
        """The exact weights of the answers that have this seed."""
        first = seed * self.response.values
        rows = [self.response.row(self.hashed(seed, code)) for code in range(self.categories)]
        return transition_of(range(first, first + self.response.values), rows)

    def transition(self) -> Transition:
        """The weights of the answers of all seeds, one after another."""
        refuse_large(self, self.categories * self.layout.below, fewer="categories")
        parts = [self.given_seed(seed) for seed in range(1 << self.seed_bits)]
        rows = [
            [weight for part in parts for weight in part.weights[code]]
            for code in range(self.categories)
        ]
        return transition_of(range(self.layout.below), rows)


@dataclass(frozen=True, kw_only=True)
class Olh(LocalHashing):
    """Optimized local hashing with a 32-bit seed and an integer mixer.

    The response's weights are out of 2^32. ``q`` = 1/g is what an ideal hash has: here the
    seeds under which two categories collide are a 1/g part of all but for the mixer's bias, which
    changes no guarantee. An answer is below 2^48, so any JSON reader keeps it. Every answer is
    hashed with every category when it is counted; ``FastOlh`` does without.
    """

    @property
    def seed_bits(self) -> int:
        """32."""
        return 32

    @cached_property
    def response(self) -> HashedResponse:
        """The power of two of hash values, up to 2^16, that has the least variance."""
        sizes = [(bits, 32) for bits in range(1, MAX_VALUE_BITS + 1)]
        return best_response(sizes, odds=exp_below(self.epsilon))

    @property
    def cells(self) -> int:
        """One count of supporting answers for each category."""
        return self.categories

    def hashed(self, seed: int, code: int) -> int:
        """The top bits of the mixed seed and category."""
        return mixed(seed, code) >> (32 - self.response.value_bits)

    def answer_many(self, codes: Codes, *, rng: Rng) -> Answers:
        """One answer for each code."""
        codes = self.checked_codes(codes)
        out = self.layout.empty(codes.size)
        numbers = _MULTIPLIERS, np.uint64(self.response.value_bits), np.uint64(self.response.truth)
        for rows, words in chunks(codes.size, rng=rng):
            bit_kernels().respond_mixed(words, codes[rows], out[rows], *numbers)
        return out

    def add(self, answers: Answers, counts: Counts) -> None:
        """Count, for each category, the answers that support it."""
        bit_kernels().add_mixed(answers, counts, _MULTIPLIERS, np.uint64(self.response.value_bits))

    def transition(self) -> Transition:
        """Refused: there are 2^32 seeds."""
        raise InputError(
            f"the matrix of {self} has {self.layout.below:,} answers and is not written out. Ask "
            "given_seed(seed) for those of one seed: the seed does not depend on the category."
        )


@dataclass(frozen=True, kw_only=True)
class FastOlh(LocalHashing):
    """Local hashing with a linear family: exact, a short answer, and quick to count and decode.

    With 2^k >= m the seed a is an element of the field GF(2^k), and the hash of v is the top log2 g
    bits of the product a v. For u != v the product a (u - v) is uniform over the field, so the
    hashes collide with probability 1/g EXACTLY, and ``q`` is exact. (Carter, Wegman 1979,
    "Universal classes of hash functions".) Weights are out of 2^(64 - k).

    The tally is a histogram of all answers (a, y). Bit i of the hash is a parity of a under a mask
    R_i(v), so that the answers that support v are counted by one Walsh-Hadamard transform F of
    the tally: C_v = 1/g sum_s F[L_s(v), s], L_s being the sum of the masks in s. That an answer's
    seed can be as short as a category and decoded by a transform: Feldman, Nelson, Nguyen,
    Talwar 2022, "Private frequency estimation via projective geometry", arXiv 2203.00194, and
    Cormode, Maddock, Maple 2021, "Frequency estimation under local differential privacy", VLDB.
    """

    @cached_property
    def seed_bits(self) -> int:
        """The degree k of the field: for all categories and all hash values."""
        return 64 - self.response.word_bits

    @cached_property
    def response(self) -> HashedResponse:
        """The hash values of least variance among those whose tally has at most 2^26 cells."""
        least = (self.categories - 1).bit_length()
        degrees = [(bits, max(least, bits)) for bits in range(1, MAX_VALUE_BITS + 1)]
        sizes = [(bits, 64 - k) for bits, k in degrees if 1 << (k + bits) <= MAX_CELLS]
        return best_response(sizes, odds=exp_below(self.epsilon))

    @cached_property
    def masks(self) -> NDArray[np.uint32]:
        """R_i(v) in row v and column i: bit j is hash bit i of the product x^j v."""
        k, bits = self.seed_bits, self.response.value_bits
        polynomial = np.uint32(POLYNOMIALS[k - 1])
        product = np.arange(self.categories, dtype=np.uint32)
        masks = np.zeros((self.categories, bits), dtype=np.uint32)
        for j in range(k):
            for i in range(bits):
                masks[:, i] |= (product >> (k - bits + i) & 1) << j
            product <<= 1
            product ^= polynomial * (product >> k)
        return masks

    def hashed(self, seed: int, code: int) -> int:
        """The top bits of the product in the field."""
        return field_product(seed, code, self.seed_bits) >> (
            self.seed_bits - self.response.value_bits
        )

    def answer_many(self, codes: Codes, *, rng: Rng) -> Answers:
        """One answer for each code."""
        codes = self.checked_codes(codes)
        out = self.layout.empty(codes.size)
        numbers = self.masks, np.uint64(self.seed_bits), np.uint64(self.response.truth)
        for rows, words in chunks(codes.size, rng=rng):
            bit_kernels().respond_linear(words, codes[rows], out[rows], *numbers)
        return out

    def supports(self, counts: Counts) -> NDArray[np.float64]:
        """The answers that support each category, by one transform, in whole numbers."""
        out = np.empty(self.categories, dtype=np.int64)
        bit_kernels().gather_linear(walsh_hadamard(counts), self.masks, out)
        return (out // self.response.values).astype(np.float64)


def best_response(sizes: Iterable[tuple[int, int]], *, odds: Fraction) -> HashedResponse:
    """The response of least variance among (bits of a value, random bits)."""
    responses = [HashedResponse(value_bits=v, word_bits=w, odds=odds) for v, w in sizes]
    return min(responses, key=lambda response: response.variance)


def mixed(seed: int, code: int) -> int:
    """32 bits in which a 32-bit seed and a category are mixed.

    Each category has, over all seeds, each result exactly once. The rounds are those of Wellons
    2018, "Prospecting for hash functions", without the last, which leaves the top bits alone.
    """
    of_code, first, second = MULTIPLIERS
    x = seed ^ (code * of_code) & 0xFFFFFFFF
    x = (x ^ x >> 16) * first & 0xFFFFFFFF
    return (x ^ x >> 15) * second & 0xFFFFFFFF


def field_product(a: int, b: int, degree: int) -> int:
    """The product of two polynomials over GF(2), modulo the irreducible one of this degree.

    >>> field_product(0b110, 0b011, 3)  # (x^2 + x)(x + 1) = x^3 + x, and x^3 = x + 1
    1
    """
    polynomial, product = POLYNOMIALS[degree - 1], 0
    for _ in range(degree):  # as many steps for every b: a device multiplies by its secret code
        product ^= a * (b & 1)
        a <<= 1
        a ^= polynomial * (a >> degree)
        b >>= 1
    return product


_MULTIPLIERS: Final = tuple(np.uint32(multiplier) for multiplier in MULTIPLIERS)
