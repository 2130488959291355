"""Subset selection: a set of categories that holds the true one more often than chance.

The answer is the set as packed bits and nothing else. A list would carry an order, and with the
true category in the first slot an answer of epsilon 1 is found out as one of 4.83.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from math import comb

import numpy as np

from sfumato.local.layout import Answer, Answers, BitLayout, packed
from sfumato.local.mechanism import (
    Codes,
    FrequencyMechanism,
    Transition,
    bit_kernels,
    chunks,
    refuse_large,
    transition_of,
)
from sfumato.local.probabilities import WORD, exp_below, split_below
from sfumato.noise.discrete_noise import replay
from sfumato.randomness import Rng, Words


@dataclass(frozen=True, kw_only=True)
class SubsetSelection(FrequencyMechanism):
    """A uniform set of ``size`` categories, with the true one in it with probability p.

    With E = e^eps the size is w = max(1, round(m / (E + 1))) and p = w E / (w E + m - w).
    Formal guarantee: epsilon-local DP. A set with the true category has probability
    p / binom(m-1, w-1), one without (1-p) / binom(m-1, w): ratio p (m-w) / ((1-p) w), at most
    e^epsilon. Wang et al. 2016, "Mutual information optimally local private discrete distribution
    estimation", arXiv 1607.08025; Ye, Barg 2018, arXiv 1702.00610, section III.
    """

    @cached_property
    def size(self) -> int:
        """The number of categories in an answer; at most half of them."""
        return max(1, round(self.categories / (exp_below(self.epsilon) + 1)))

    @cached_property
    def keep(self) -> int:
        """Of 2^64 words, those that put the true category into the set."""
        odds = exp_below(self.epsilon) * self.size / (self.categories - self.size)
        return split_below(odds)

    @property
    def p(self) -> Fraction:
        """The true category's part of 2^64 words."""
        return Fraction(self.keep, WORD)

    @property
    def q(self) -> Fraction:
        """Another category's chance: w - 1 or w of the m - 1 others are in the set."""
        return (self.size - self.p) / (self.categories - 1)

    @cached_property
    def layout(self) -> BitLayout:
        """The set: one bit for each category, ``size`` of them set."""
        return BitLayout(length=self.categories, ones=self.size)

    def answer(self, code: int, *, rng: Rng) -> Answer:
        """One answer: the others with the smallest of distinct random words join."""
        code = self.checked_code(code)
        true = int(rng.words(1)[0]) < self.keep
        words = _distinct_words(self.categories - 1, rng=rng)
        others = np.argsort(words)[: self.size - true]
        bits = np.zeros(self.categories, dtype=np.bool_)
        bits[others + (others >= code)] = True
        bits[code] = true
        return packed(bits)

    def answer_many(self, codes: Codes, *, rng: Rng) -> Answers:
        """One answer for each code.

        Independent bits come near the size and a few flips make it exact; see ``balance``.
        """
        codes = self.checked_codes(codes)
        rows, words = self.layout.empty_words(codes.size)
        self._toss(words, rng=rng)
        self.layout.clear_unused(rows)
        self._decide(rows, codes, rng=rng)
        self._balance(rows, codes, rng=rng)
        return rows

    def transition(self) -> Transition:
        """Two weights, for the sets with and without the true category."""
        m, w = self.categories, self.size
        sets_at_least = comb(m, min(w, 22))  # more than 22 of m are too many already
        refuse_large(self, m * sets_at_least, fewer="categories")
        with_it, without = self.keep * (m - w), (WORD - self.keep) * w
        sets = [frozenset(chosen) for chosen in combinations(range(m), w)]
        answers = [
            sum(1 << i for i in chosen).to_bytes(self.layout.width, "little") for chosen in sets
        ]
        rows = [[with_it if code in chosen else without for chosen in sets] for code in range(m)]
        return transition_of(answers, rows)

    def _start(self) -> tuple[int, int]:
        """(a, k): bits are first set with probability a / 2^k, just below w / m.

        Below, because a missing element is drawn sooner than a superfluous one. 2^k is about the
        square root of m: the error is then as large as the spread, whatever the set.
        """
        planes = (self.categories.bit_length() + 1) // 2 + 1
        numerator = (self.size << planes) // self.categories
        while planes and numerator % 2 == 0:
            numerator, planes = numerator // 2, planes - 1
        return numerator, planes

    def _toss(self, bits: Words, *, rng: Rng) -> None:
        numerator, planes = self._start()
        if not planes:
            return  # no bit is set at first
        for part, words in chunks(bits.size, rng=rng, words_each=planes):
            bit_kernels().toss_planes(words, bits[part], numerator, planes)

    def _decide(self, rows: Answers, codes: Codes, *, rng: Rng) -> None:
        keep = np.uint64(self.keep)
        for part, words in chunks(codes.size, rng=rng):
            bit_kernels().decide_codes(words, codes[part], rows[part], keep)

    def _balance(self, rows: Answers, codes: Codes, *, rng: Rng) -> None:
        wide = rows.view(np.uint64) if rows.shape[1] % 8 == 0 else rows

        def kernel(words: Words, done: int) -> tuple[int, int]:
            done = bit_kernels().balance(words, codes, wide, done, self.size, self.categories)
            return done, words.size

        replay(kernel, codes.size, rng=rng, words_each=2)


def _distinct_words(n: int, *, rng: Rng) -> Words:
    """Uniform words without a tie, so that every order of them is equally likely."""
    while np.unique(words := rng.words(n)).size < n:
        pass
    return words
