"""Answers near the value are likely, others unlikely: piecewise mechanism, square wave, hybrid.

The first two are one window that moves with the code, so that the expected answer is linear in it.
Piecewise chooses the window's width for a small variance of the mean, the square wave for a large
mutual information: the one for a mean, the other for a whole distribution (with ``models``). The
hybrid mixes windows with Duchi's two answers: its mean has less variance than either.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Final

import numpy as np

from sfumato.local.layout import Answers
from sfumato.local.means.duchi import Duchi, LinearWeights
from sfumato.local.means.mechanism import Floats, MeanMechanism
from sfumato.local.mechanism import Codes, kernels
from sfumato.local.probabilities import WORD, ceil_div, exp_below
from sfumato.noise.discrete_noise import replay
from sfumato.randomness import Rng

LEAST_MIXED: Final = Fraction(61, 100)
"""Up to this epsilon the mixture with the least variance is Duchi's mechanism alone."""


@dataclass(frozen=True, kw_only=True)
class WindowWeights:
    """The integers of a window: code i gives answers i .. i + width - 1 ``high`` words each.

    All other answers get ``low`` words each. With B answers, L the width and
    low = ceil(2^64 / (L odds + B - L)), high = floor((2^64 - (B - L) low) / L), high / low is at
    most odds. Fewer than L words are left over and drawn again, whatever the code.
    """

    points: int
    width: int
    odds: Fraction

    @property
    def answers(self) -> int:
        """The last window ends with the last answer."""
        return self.width + self.points - 1

    @cached_property
    def low(self) -> int:
        """Words for each answer outside the window; there are always points - 1 of them."""
        return ceil_div(WORD, self.width * self.odds + self.points - 1)

    @cached_property
    def high(self) -> int:
        """Words for each answer inside."""
        return (WORD - (self.points - 1) * self.low) // self.width

    @cached_property
    def total(self) -> int:
        """All words that are used."""
        return self.width * self.high + (self.points - 1) * self.low

    @cached_property
    def scale(self) -> Fraction:
        """With a' = 2 answer - (B - 1), the decoded value is a' times this.

        Seen from their middles a' is i' = 2 i - (points - 1) on average over the window and 0 over
        all, so E[a'] = L (high - low) / total * i', while the value is i' / (points - 1).
        """
        return Fraction(self.total, self.width * (self.high - self.low) * (self.points - 1))

    def row(self, code: int) -> list[int]:
        """The weights of every answer to one code."""
        before, after = [self.low] * code, [self.low] * (self.points - 1 - code)
        return before + [self.high] * self.width + after

    def probabilities(self) -> Floats:
        """The same for all codes, as floats."""
        matrix = np.full((self.points, self.answers), float(Fraction(self.low, self.total)))
        for code in range(self.points):
            matrix[code, code : code + self.width] = float(Fraction(self.high, self.total))
        return matrix

    def values(self) -> Floats:
        """What each answer is decoded to."""
        return np.arange(1 - self.answers, self.answers, 2, dtype=np.float64) * float(self.scale)

    def second_moments(self) -> Floats:
        """The expected square, exact until the last rounding.

        The sum of a'^2 over m answers around the middle c is m c^2 + m (m^2 - 1) / 3.
        """
        everywhere = self.low * _squares(self.answers)
        more = self.high - self.low
        middles = (2 * code - (self.points - 1) for code in range(self.points))
        sums = (everywhere + more * (self.width * c * c + _squares(self.width)) for c in middles)
        return np.array([float(self.scale**2 * Fraction(s, self.total)) for s in sums])

    def draw(self, code: int, *, rng: Rng) -> int:
        """One answer, by plain integers."""
        word = int(rng.words(1)[0])
        while word >= self.total:
            word = int(rng.words(1)[0])
        if word < self.width * self.high:
            return code + word // self.high
        other = (word - self.width * self.high) // self.low
        return other if other < code else other + self.width

    def draw_many(self, codes: Codes, out: Answers, *, rng: Rng) -> None:
        """An answer for each code, into ``out``."""
        fill, numbers = kernels().fill_windows, self.numbers
        replay(
            lambda words, done: fill(words, codes, out, done, numbers),
            codes.size,
            rng=rng,
            words_each=1,
        )

    @cached_property
    def numbers(self) -> tuple[np.uint64, ...]:
        """For the kernels: words inside, width, divisions by high and by low, the last word."""
        inside = (self.width * self.high, self.width)
        divisions = (self.high, *_reciprocal(self.high), self.low, *_reciprocal(self.low))
        return tuple(np.uint64(x) for x in (*inside, *divisions, self.total - 1))


@dataclass(frozen=True, kw_only=True)
class Piecewise(MeanMechanism):
    """A window of about (points - 1) / e^(eps/2) answers: the mean's variance is nearly the least.

    Formal guarantee: epsilon-local DP, high / low being at most e^epsilon. The grid form of Wang
    et al. 2019, "Collecting and analyzing multidimensional data with local differential privacy",
    arXiv 1907.00782, algorithm 2.
    """

    @cached_property
    def response(self) -> WindowWeights:
        """The window; its width is public and needs no rounding to a side."""
        width = max(1, round((self.points - 1) / exp_below(self.epsilon / 2)))
        return WindowWeights(points=self.points, width=width, odds=exp_below(self.epsilon))


@dataclass(frozen=True, kw_only=True)
class SquareWave(MeanMechanism):
    """A window of 2b (points - 1) answers, b = (eps E - E + 1) / (2 E (E - 1 - eps)), E = e^eps.

    That b maximizes the mutual information of value and answer. Formal guarantee: epsilon-local
    DP, high / low being at most e^epsilon. The grid form of Li et al. 2020, "Estimating numerical
    distributions under local differential privacy", arXiv 1912.01047, section 5.
    """

    @cached_property
    def response(self) -> WindowWeights:
        """The window; its width is public and needs no rounding to a side."""
        epsilon, odds = self.epsilon, exp_below(self.epsilon)
        twice_b = (epsilon * odds - odds + 1) / (odds * (odds - 1 - epsilon))
        width = max(1, round(twice_b * (self.points - 1)))
        return WindowWeights(points=self.points, width=width, odds=odds)


@dataclass(frozen=True, kw_only=True)
class MixedWeights:
    """``coin`` of 2^64 words answer with the window, the others with the two linear answers.

    The window's answers come first, the linear ones last: an answer shows which it was, and is
    decoded as such. The coin does not depend on the value, so the odds are those of the parts.
    """

    coin: int
    window: WindowWeights
    linear: LinearWeights

    @property
    def answers(self) -> int:
        """The answers of both."""
        return self.window.answers + self.linear.answers

    def row(self, code: int) -> list[int]:
        """The weights of every answer to one code, over 2^64 * 2^64 * the window's total."""
        near = [self.coin * WORD * weight for weight in self.window.row(code)]
        other = (WORD - self.coin) * self.window.total
        return near + [other * weight for weight in self.linear.row(code)]

    def probabilities(self) -> Floats:
        """The same for all codes, as floats."""
        share = self.coin / WORD
        parts = (share * self.window.probabilities(), (1 - share) * self.linear.probabilities())
        return np.hstack(parts)

    def values(self) -> Floats:
        """What each answer is decoded to."""
        return np.concatenate([self.window.values(), self.linear.values()])

    def second_moments(self) -> Floats:
        """The mean of the parts' squares."""
        share = self.coin / WORD
        window, linear = self.window.second_moments(), self.linear.second_moments()
        return np.asarray(share * window + (1 - share) * linear)

    def draw(self, code: int, *, rng: Rng) -> int:
        """One answer, by plain integers."""
        if int(rng.words(1)[0]) < self.coin:
            return self.window.draw(code, rng=rng)
        return self.window.answers + self.linear.draw(code, rng=rng)

    def draw_many(self, codes: Codes, out: Answers, *, rng: Rng) -> None:
        """An answer for each code, into ``out``."""
        fill, coin, answers = kernels().fill_hybrid, self.coin, self.window.answers
        numbers = (np.uint64(coin), np.uint64(answers), self.window.numbers, *self.linear.numbers)
        replay(
            lambda words, done: fill(words, codes, out, done, *numbers),
            codes.size,
            rng=rng,
            words_each=2,
        )


@dataclass(frozen=True, kw_only=True)
class Hybrid(MeanMechanism):
    """Piecewise with probability 1 - e^(-eps/2) when eps > 0.61, otherwise Duchi's mechanism.

    Formal guarantee: epsilon-local DP, since a public coin chooses between two mechanisms that
    have it. Wang et al. 2019, arXiv 1907.00782, section 3.3.
    """

    @cached_property
    def response(self) -> MixedWeights | LinearWeights:
        """Duchi's two answers alone, or the mixture; the coin is public, so any rounding is."""
        linear = Duchi(points=self.points, epsilon=self.epsilon).response
        if self.epsilon <= LEAST_MIXED:
            return linear
        coin = int(WORD * (1 - 1 / exp_below(self.epsilon / 2)))
        window = Piecewise(points=self.points, epsilon=self.epsilon).response
        return MixedWeights(coin=coin, window=window, linear=linear)


def _squares(n: int) -> int:
    """The sum of (2 j - (n - 1))^2 over j = 0 .. n - 1."""
    return n * (n * n - 1) // 3


def _reciprocal(share: int) -> tuple[int, int]:
    """(M, k) with floor(r M / 2^(64 + k)) at most one below floor(r / share)."""
    k = share.bit_length() - 1
    return min(WORD - 1, (WORD << k) // share), k
