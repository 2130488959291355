"""A public coin between the piecewise mechanism and Duchi's: less variance than either."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Final

import numpy as np

from sfumato.local.layout import Answers
from sfumato.local.means.duchi import Duchi, LinearWeights
from sfumato.local.means.mechanism import Floats, MeanMechanism
from sfumato.local.means.piecewise import Piecewise, WindowWeights
from sfumato.local.mechanism import Codes, kernels
from sfumato.local.probabilities import WORD, exp_below
from sfumato.noise.exact_draws import replay
from sfumato.randomness import Rng

LEAST_MIXED: Final = Fraction(61, 100)
"""Up to this epsilon the mixture with the least variance is Duchi's mechanism alone."""


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
