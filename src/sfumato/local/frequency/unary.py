"""Randomized response on vectors of bits, each bit for itself; unary encodings are made of it.

What a vector costs depends on which vectors may be answered about: with a fixed number of ones two
of them differ in few bits, otherwise in all. So the number is declared, checked, and the guarantee
computed from it. Unary encodings take a code, not a vector: one with two ones would cost double.
"""

import math
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sfumato import check
from sfumato.errors import InputError
from sfumato.local.layout import Answer, Answers, BitLayout, packed
from sfumato.local.mechanism import (
    Codes,
    Counts,
    FrequencyMechanism,
    Transition,
    add_bits,
    bit_kernels,
    refuse_large,
    transition_of,
)
from sfumato.local.probabilities import WORD, ceil_div, exp_below, split_below
from sfumato.privacy.guarantees import LocalDP
from sfumato.randomness import Rng, Words

Bits = NDArray[np.bool_]

MAX_LENGTH: Final = 1_000_000
"""A limit against abuse: an answer of 125 kB."""

_CHUNK: Final = 7_800
"""Words of bits that are drawn at a time: they take 2^16 random words, half a megabyte."""

_DIGITS: Final = Context(prec=80, rounding=ROUND_CEILING)
_SHORT: Final = Context(prec=30, rounding=ROUND_CEILING)


@dataclass(frozen=True, kw_only=True)
class BitWeights:
    """The integers of one bit's response: of 2^64 words, how many answer one."""

    from_one: int
    """Words that keep a one."""
    from_zero: int
    """Words that turn a zero into a one."""

    def draw(self, bits: Bits, *, rng: Rng) -> bytes:
        """One response to a vector: a word for each bit, compared with its threshold."""
        thresholds = np.where(bits, np.uint64(self.from_one), np.uint64(self.from_zero))
        return packed(rng.words(bits.size) < thresholds)

    def draw_many(self, bits: Words, *, rng: Rng) -> None:
        """A response to every bit of the words, in their place."""
        size = min(bits.size, _CHUNK)
        words = np.empty(_words_for(size), dtype=np.uint64)
        scratch = np.empty((2, size), dtype=np.uint64)
        for start in range(0, bits.size, _CHUNK):
            part = bits[start : start + size]
            fresh = words[: _words_for(part.size)]
            rng.fill(fresh)
            self._draw_part(part, fresh, scratch[:, : part.size], rng=rng)
        words.fill(0)  # used words do not linger in memory
        scratch.fill(0)

    def _draw_part(self, bits: Words, words: Words, scratch: Words, *, rng: Rng) -> None:
        kernels = bit_kernels()
        numbers = [np.uint64(x) for x in (self.from_one, self.from_zero)]
        rests = [np.uint64((int(x) << kernels.PLANES) % WORD) for x in numbers]
        spare = words[kernels.PLANES * bits.size :]
        kernels.compare_planes(words, bits, *scratch, *numbers)
        done = kernels.decide_rest(spare, bits, *scratch, 0, *rests)
        while done < bits.size:
            rng.fill(spare)
            done = kernels.decide_rest(spare, bits, *scratch, done, *rests)

    def row(self, bits: int, length: int) -> list[int]:
        """The weights of all 2^length answers to the vector whose bit i is bit i of ``bits``."""
        weights = [1]
        for i in range(length):
            one = self.from_one if bits >> i & 1 else self.from_zero
            weights = [w * (WORD - one) for w in weights] + [w * one for w in weights]
        return weights


@dataclass(frozen=True, kw_only=True)
class BitEstimate:
    """How many people have each bit set."""

    counts: NDArray[np.float64]
    standard_errors: NDArray[np.float64]
    """From the noise of the answers alone."""


@dataclass(frozen=True, kw_only=True)
class BitResponse:
    """Answer one with probability p for a one and q for a zero, each bit for itself.

    Formal guarantee: ``epsilon``-local DP between any two vectors that may be answered about.
    With any number of ones that is length * max(|ln(p/q)|, |ln((1-p)/(1-q))|); with k ones two
    vectors differ in at most min(k, length - k) ones and as many zeros, each pair of which costs
    |ln(p(1-q) / (q(1-p)))|. Both are attained. Warner 1965; Erlingsson, Pihur, Korolova 2014,
    "RAPPOR", arXiv 1407.6981, theorem 1.

    >>> BitResponse(length=128, p="0.75", q="0.25", ones=1).guarantee.epsilon > 2.197
    True
    """

    length: int
    p: Fraction
    """P(1 -> 1); rounded towards q to a multiple of 2^-64."""
    q: Fraction
    """P(0 -> 1); rounded towards p to a multiple of 2^-64."""
    ones: int | None = None
    """The number of ones of every vector, 1 for a one-hot vector; None for any number."""

    def __post_init__(self) -> None:
        check.keep_whole(self, at_least=1, at_most=MAX_LENGTH, length=self.length)
        if self.ones is not None:
            check.keep_whole(self, at_least=1, at_most=self.length - 1, ones=self.ones)
        p, q = _rounded(_probability(p=self.p), _probability(q=self.q))
        object.__setattr__(self, "p", p)
        object.__setattr__(self, "q", q)
        LocalDP(self.epsilon)  # refuses a loss that no promise can have

    @cached_property
    def weights(self) -> BitWeights:
        """The one definition of the probabilities."""
        return BitWeights(from_one=int(self.p * WORD), from_zero=int(self.q * WORD))

    @cached_property
    def epsilon(self) -> Fraction:
        """The loss, rounded up at its 30th digit."""
        one, zero = self.p / self.q, (1 - self.p) / (1 - self.q)
        if self.ones is None:
            worst = max(one, 1 / one, zero, 1 / zero)
            return self.length * log_above(worst)
        pair = max(one / zero, zero / one)
        return min(self.ones, self.length - self.ones) * log_above(pair)

    @cached_property
    def guarantee(self) -> LocalDP:
        """The promise to the person who answers."""
        return LocalDP(self.epsilon)

    @property
    def inputs(self) -> int:
        """The number of vectors that can be answered about."""
        return 2**self.length if self.ones is None else math.comb(self.length, self.ones)

    @cached_property
    def layout(self) -> BitLayout:
        """The drawn bits."""
        return BitLayout(length=self.length)

    @property
    def cells(self) -> int:
        """One count for each bit."""
        return self.length

    def answer(self, bits: Any, *, rng: Rng) -> bytes:
        """One answer to a vector of zeros and ones."""
        (vector,) = self._checked([bits])
        return self.weights.draw(vector, rng=rng)

    def answer_many(self, bits: Any, *, rng: Rng) -> Answers:
        """One answer to each row of zeros and ones."""
        vectors = self._checked(bits)
        rows, words = self.layout.empty_words(len(vectors))
        rows[:] = np.packbits(vectors, axis=1, bitorder="little")
        self.weights.draw_many(words, rng=rng)
        self.layout.clear_unused(rows)
        return rows

    def add(self, answers: Answers, counts: Counts) -> None:
        """Count the ones of each bit."""
        add_bits(answers, counts)

    def estimate(self, counts: Counts, n: int) -> BitEstimate:
        """From the ones among n answers: (c - n q) / (p - q) for each bit, without bias.

        The variance is (t p(1-p) + (n-t) q(1-q)) / (p-q)^2 with t people who have the bit.
        """
        n = check.whole(at_least=1, n=n)
        tally = np.asarray(counts)
        if tally.shape != (self.length,) or tally.min() < 0 or tally.max() > n:
            raise InputError(
                f"counts must be {self.length} whole numbers from 0 to n = {n}, got shape "
                f"{tally.shape} or others."
            )
        p, q = float(self.p), float(self.q)
        true: NDArray[np.float64] = (tally - n * q) / np.float64(self.p - self.q)
        ones = np.clip(true, 0, n)
        noise = ones * p * float(1 - self.p) + (n - ones) * q * float(1 - self.q)
        return BitEstimate(
            counts=true, standard_errors=np.sqrt(noise) / abs(float(self.p - self.q))
        )

    def transition(self) -> Transition:
        """Products of the bits' weights; inputs and answers ordered as binary numbers."""
        refuse_large(self, 2 ** min(self.length, 64), fewer="bits")  # before inputs are counted
        refuse_large(self, self.inputs << self.length, fewer="bits")
        answers = [value.to_bytes(self.layout.width, "little") for value in range(2**self.length)]
        rows = [self.weights.row(vector, self.length) for vector in self._vectors()]
        return transition_of(answers, rows)

    def _vectors(self) -> Iterator[int]:
        every = range(2**self.length)
        return (v for v in every if self.ones is None or v.bit_count() == self.ones)

    def _checked(self, bits: Any) -> Bits:
        """Vectors as booleans, or an error before anything is drawn."""
        try:
            vectors = np.asarray(bits)
        except ValueError:
            raise InputError("vectors must all have one length.") from None
        if vectors.ndim != 2 or vectors.shape[1] != self.length or vectors.dtype.kind not in "biu":
            raise InputError(
                f"a vector must be {self.length} whole numbers 0 or 1, got {vectors.dtype} of "
                f"shape {vectors.shape[1:]}."
            )
        if vectors.dtype.kind != "b" and ((vectors != 0) & (vectors != 1)).any():
            raise InputError("a vector must hold 0 and 1 only; some do not.")
        if self.ones is not None and (np.count_nonzero(vectors, axis=1) != self.ones).any():
            raise InputError(
                f"a vector must have exactly {self.ones} of {self.length} bits set, as declared: "
                "the guarantee rests on it."
            )
        return vectors.astype(np.bool_)


@dataclass(frozen=True, kw_only=True)
class Unary(FrequencyMechanism):
    """One bit for each category, of which the true one is set, each answered for itself."""

    @property
    @abstractmethod
    def response(self) -> BitResponse:
        """The one definition of the probabilities."""

    @property
    def p(self) -> Fraction:
        """The probability that the true category's bit is set."""
        return self.response.p

    @property
    def q(self) -> Fraction:
        """The probability that another category's bit is set."""
        return self.response.q

    @property
    def layout(self) -> BitLayout:
        """One bit for each category."""
        return self.response.layout

    def answer(self, code: int, *, rng: Rng) -> Answer:
        """One answer, by plain integers."""
        bits = np.zeros(self.categories, dtype=np.bool_)
        bits[self.checked_code(code)] = True
        return self.response.weights.draw(bits, rng=rng)

    def answer_many(self, codes: Codes, *, rng: Rng) -> Answers:
        """One answer for each code."""
        codes = self.checked_codes(codes)
        rows, words = self.layout.empty_words(codes.size)
        bit_kernels().set_codes(codes, rows)
        self.response.weights.draw_many(words, rng=rng)
        self.layout.clear_unused(rows)
        return rows

    def transition(self) -> Transition:
        """Products of the bits' weights, over all 2^m answers."""
        refuse_large(self, self.categories << min(self.categories, 64), fewer="categories")
        return self.response.transition()


@dataclass(frozen=True, kw_only=True)
class Sue(Unary):
    """Symmetric unary encoding: every bit is kept with probability z / (z + 1), z = e^(eps/2).

    Formal guarantee: epsilon-local DP. Two categories differ in two bits, each of ratio at most
    p / (1 - p), whose square is at most e^epsilon. Erlingsson, Pihur, Korolova 2014, "RAPPOR",
    arXiv 1407.6981; the name from Wang, Blocki, Li, Jha 2017, USENIX Security, section 4.2.
    """

    @cached_property
    def response(self) -> BitResponse:
        """The one definition of the probabilities."""
        keep = split_below(_root_below(exp_below(self.epsilon)))
        return _one_hot_response(self.categories, keep, WORD - keep)


@dataclass(frozen=True, kw_only=True)
class Oue(Unary):
    """Optimized unary encoding: a one is kept half the time, a zero lifted with 1 / (e^eps + 1).

    Formal guarantee: epsilon-local DP. Two categories differ in two bits; with p = 1/2 their
    ratios multiply to (1 - q) / q, at most e^epsilon. Of all p and q of that ratio these have the
    smallest variance for a rare category. Wang, Blocki, Li, Jha 2017, "Locally differentially
    private protocols for frequency estimation", USENIX Security, section 4.2.
    """

    @cached_property
    def response(self) -> BitResponse:
        """The one definition of the probabilities."""
        lift = ceil_div(WORD, exp_below(self.epsilon) + 1)
        return _one_hot_response(self.categories, WORD // 2, lift)


def log_above(ratio: Fraction) -> Fraction:
    """A short fraction above ln(ratio) for ratio > 1, by at most two parts in 10^29.

    ``Decimal.ln`` is correctly rounded; its argument, the shortening and the next larger number
    all go up, so that e to the result is above the ratio even after ``exp_below``.

    >>> float(log_above(Fraction(3))) == math.log(3)
    True
    """
    up = _DIGITS.divide(Decimal(ratio.numerator), Decimal(ratio.denominator))
    return Fraction(_SHORT.next_plus(_SHORT.plus(_DIGITS.next_plus(_DIGITS.ln(up)))))


def _words_for(size: int) -> int:
    """Words that ``size`` words of bits take: their planes, and one for each open lane.

    A fifth more than stay open on average, 64 size / 2^planes; beyond that more are drawn.
    """
    planes: int = bit_kernels().PLANES
    return planes * size + (77 * size >> planes) + 32


def _probability(**named: Any) -> Fraction:
    ((name, value),) = named.items()
    exact = check.exact(**named)
    if not 0 < exact < 1:
        raise InputError(
            f"{name} must be above 0 and below 1, got {value!r:.60}. With 0 or 1 an answer "
            "could exclude a value for certain."
        )
    return exact


def _rounded(p: Fraction, q: Fraction) -> tuple[Fraction, Fraction]:
    """Both as multiples of 2^-64, each rounded towards the other: neither ratio grows."""
    if p > q:
        low, high = ceil_div(q * WORD, 1), int(p * WORD)
    else:
        low, high = ceil_div(p * WORD, 1), int(q * WORD)
    if p == q or low >= high:
        raise InputError(
            "p and q must differ by 2^-63 or more: nothing could be estimated from the answers. "
            f"Got p = {float(p):.6g} and q = {float(q):.6g}."
        )
    ends = Fraction(low, WORD), Fraction(high, WORD)
    return (ends[1], ends[0]) if p > q else ends


def _one_hot_response(length: int, from_one: int, from_zero: int) -> BitResponse:
    p, q = Fraction(from_one, WORD), Fraction(from_zero, WORD)
    return BitResponse(length=length, p=p, q=q, ones=1)


def _root_below(square: Fraction) -> Fraction:
    """A fraction whose square is at most ``square``, by less than one part in 10^38."""
    return Fraction(math.isqrt(int(square * 2**256)), 2**128)
