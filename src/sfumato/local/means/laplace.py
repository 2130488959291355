"""Laplace noise on the device, for comparison: whole numbers, clamped to a public range."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Final

import numpy as np

from sfumato.errors import InputError
from sfumato.local.layout import Answers
from sfumato.local.means.mechanism import Floats, MeanMechanism
from sfumato.local.mechanism import Codes
from sfumato.noise.discrete_noise import DiscreteLaplace
from sfumato.privacy.guarantees import PureDP
from sfumato.randomness import Rng

MAX_ANSWERS: Final = 2**22
"""The largest range: a tally of 32 MiB."""

_REACH: Final = 32
"""Scales beyond either end of the grid. What is clamped there moves a mean, in [-1, 1], by at most
e^-32 / epsilon: less than 1.3e-10 for the smallest epsilon that an answer may have."""


@dataclass(frozen=True, kw_only=True)
class ClampedNoise:
    """Answer = code + noise + ``reach``, clamped to 0 .. ``answers`` - 1."""

    points: int
    noise: DiscreteLaplace

    @cached_property
    def reach(self) -> int:
        """How far answers go beyond the grid at either end."""
        return math.ceil(_REACH * self.noise.scale)

    @property
    def answers(self) -> int:
        """The grid and what lies beyond its ends."""
        return self.points + 2 * self.reach

    def row(self, code: int) -> list[int]:
        """Refused: the probabilities are powers of e^(-1/scale), which no whole numbers hold."""
        raise InputError(
            "Laplace noise has no whole-number weights: its probabilities are irrational. "
            "probabilities() has them as floats, noise.guarantee() the exact claim."
        )

    def probabilities(self) -> Floats:
        """All codes as floats; the two ends hold what was clamped: q^k / (1 + q) from k on."""
        positions = np.arange(self.answers) - self.reach
        matrix = self.noise.pmf(positions - np.arange(self.points)[:, None])
        ratio = math.exp(-1 / float(self.noise.scale))
        for end in (0, -1):
            distance = np.abs(positions[end] - np.arange(self.points))
            matrix[:, end] = ratio**distance / (1 + ratio)
        return matrix

    def values(self) -> Floats:
        """What each answer is decoded to."""
        doubled = 2 * (np.arange(self.answers) - self.reach) - (self.points - 1)
        return doubled / (self.points - 1)

    def second_moments(self) -> Floats:
        """The noise's variance and the squared value; what is clamped is below every digit."""
        noise = self.noise.variance * (2 / (self.points - 1)) ** 2
        return np.asarray(noise + np.linspace(-1, 1, self.points) ** 2)

    def draw(self, code: int, *, rng: Rng) -> int:
        """One answer, by plain integers."""
        noisy = code + self.reach + laplace(self.noise.scale, rng=rng)
        return min(max(noisy, 0), self.answers - 1)

    def draw_many(self, codes: Codes, out: Answers, *, rng: Rng) -> None:
        """An answer for each code, into ``out``."""
        noisy = self.noise.sample(codes.size, rng=rng)
        noisy += codes.astype(np.int64) + self.reach
        out[:] = np.clip(noisy, 0, self.answers - 1)


@dataclass(frozen=True, kw_only=True)
class LocalLaplace(MeanMechanism):
    """Discrete Laplace noise of scale (points - 1) / eps on the code, clamped to a public range.

    Formal guarantee: epsilon-local DP. Two codes differ by at most points - 1, so the noise keeps
    epsilon (see ``DiscreteLaplace``), and clamping is post-processing. The worst variance is
    8 / eps^2: ``Hybrid`` is better for every epsilon.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.response.answers > MAX_ANSWERS:
            raise InputError(
                f"{self} would have {self.response.answers:,} answers, at most {MAX_ANSWERS:,} "
                "are allowed. Use fewer points, or Hybrid, which is better and has a few."
            )

    @cached_property
    def response(self) -> ClampedNoise:
        """The least noise that keeps epsilon, and its range."""
        noise = DiscreteLaplace.for_cost(PureDP(self.epsilon), self.points - 1)
        return ClampedNoise(points=self.points, noise=noise)


def laplace(scale: Fraction, *, rng: Rng) -> int:
    """One draw of ``DiscreteLaplace``, by plain integers: what a device without kernels does.

    Canonne, Kamath, Steinke 2020, arXiv 2004.00010, algorithm 2.
    """
    t, s = scale.as_integer_ratio()
    while True:
        size = _below(t, rng=rng)
        if not _bernoulli_exp(size, t, rng=rng):
            continue
        while _bernoulli_exp(1, 1, rng=rng):
            size += t
        size //= s
        negative = _below(2, rng=rng) == 1
        if not (negative and size == 0):  # or 0 would count twice
            return -size if negative else size


def _bernoulli_exp(a: int, b: int, *, rng: Rng) -> bool:
    """Bernoulli(exp(-a/b)) for 0 <= a <= b: algorithm 1, first case."""
    k = 1
    while _below(b * k, rng=rng) < a:
        k += 1
    return k % 2 == 1


def _below(bound: int, *, rng: Rng) -> int:
    return int(rng.below(bound, 1)[0])
