"""Unary encodings: the category as a one-hot vector, each of whose bits is answered for itself.

A code, not a vector, is taken from the caller: a vector with two ones would cost twice as much.
"""

from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import isqrt

import numpy as np

from sfumato.local.frequency.bit_response import BitResponse
from sfumato.local.layout import Answer, Answers, BitLayout
from sfumato.local.mechanism import Codes, FrequencyMechanism, Transition, bit_kernels, refuse_large
from sfumato.local.probabilities import WORD, ceil_div, exp_below, split_below
from sfumato.randomness import Rng


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


def _one_hot_response(length: int, from_one: int, from_zero: int) -> BitResponse:
    p, q = Fraction(from_one, WORD), Fraction(from_zero, WORD)
    return BitResponse(length=length, p=p, q=q, ones=1)


def _root_below(square: Fraction) -> Fraction:
    """A fraction whose square is at most ``square``, by less than one part in 10^38."""
    return Fraction(isqrt(int(square * 2**256)), 2**128)
