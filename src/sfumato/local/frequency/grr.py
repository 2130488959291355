"""Generalized randomized response: the true category or, less likely, any other one."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from sfumato.local.layout import Answer, Answers, IntegerLayout
from sfumato.local.mechanism import (
    Codes,
    FrequencyMechanism,
    Transition,
    chunks,
    kernels,
    refuse_large,
    transition_of,
)
from sfumato.local.probabilities import WORD, ceil_div, exp_below
from sfumato.randomness import Rng


@dataclass(frozen=True, kw_only=True)
class ResponseWeights:
    """The integers of a randomized response among m codes whose odds are at most ``odds``.

    Of 2^64 words each other code gets ``share`` and the true one what remains, ``keep``. With
    share at least 2^64 / (odds + m - 1) the ratio keep / share is at most odds, exactly.
    """

    codes: int
    odds: Fraction

    @cached_property
    def share(self) -> int:
        """Words for each other code: the least multiple of 4 that is enough."""
        return 4 * ceil_div(WORD // 4, self.odds + self.codes - 1)

    @cached_property
    def keep(self) -> int:
        """Words for the true code."""
        return WORD - (self.codes - 1) * self.share

    @cached_property
    def reciprocal(self) -> tuple[int, int]:
        """(M, k) with floor(r / share) = floor((r div 4) M / 2^(64 + k)) for every word r.

        With s = share / 4, 2^(k + 2) at least s and M = ceil(2^(64 + k) / s), M s is above
        2^(64 + k) by less than s, and (r div 4) s is below 2^62 2^(k + 2): the error of the product
        is less than the step of 1/s to the next quotient. Granlund, Montgomery 1994, theorem 4.2.
        """
        s = self.share // 4
        k = max(0, (s - 1).bit_length() - 2)
        return ceil_div(WORD << k, s), k

    def draw(self, code: int, *, rng: Rng) -> int:
        """One response, by plain integers."""
        word = int(rng.words(1)[0])
        if word < self.keep:
            return code
        other = (word - self.keep) // self.share
        return other + (other >= code)

    def draw_many(self, codes: Codes, out: Answers, *, rng: Rng) -> None:
        """A response for each code, into ``out``."""
        numbers = [np.uint64(x) for x in (self.keep, *self.reciprocal)]
        for rows, words in chunks(codes.size, rng=rng):
            kernels().respond(words, codes[rows], out[rows], *numbers)

    def row(self, code: int) -> list[int]:
        """The weights of every response to one code."""
        return [self.keep if other == code else self.share for other in range(self.codes)]


@dataclass(frozen=True, kw_only=True)
class Grr(FrequencyMechanism):
    """Keep the category with probability e^eps / (e^eps + m - 1), else any other alike.

    Formal guarantee: epsilon-local DP, the ratio of the integer weights being at most e^epsilon.
    Warner 1965; Kairouz, Bonawitz, Ramage 2016, "Discrete distribution estimation under local
    privacy", arXiv 1602.07387, section 3.
    """

    @cached_property
    def weights(self) -> ResponseWeights:
        """The one definition of the probabilities."""
        return ResponseWeights(codes=self.categories, odds=exp_below(self.epsilon))

    @property
    def p(self) -> Fraction:
        """The true code's part of 2^64 words."""
        return Fraction(self.weights.keep, WORD)

    @property
    def q(self) -> Fraction:
        """Another code's part of 2^64 words."""
        return Fraction(self.weights.share, WORD)

    @cached_property
    def layout(self) -> IntegerLayout:
        """The reported category."""
        return IntegerLayout(below=self.categories)

    def answer(self, code: int, *, rng: Rng) -> Answer:
        """One answer, by plain integers."""
        return self.weights.draw(self.checked_code(code), rng=rng)

    def answer_many(self, codes: Codes, *, rng: Rng) -> Answers:
        """One answer for each code."""
        codes = self.checked_codes(codes)
        out = self.layout.empty(codes.size)
        self.weights.draw_many(codes, out, rng=rng)
        return out

    def transition(self) -> Transition:
        """The larger weight on the diagonal, the smaller beside it."""
        refuse_large(self, self.categories**2, fewer="categories")
        rows = [self.weights.row(code) for code in range(self.categories)]
        return transition_of(range(self.categories), rows)
