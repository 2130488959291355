"""Measured against predicted error of an estimate, over many simulated collections."""

from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt
from typing import Final

import numpy as np

from sfumato.local.means.mechanism import MeanMechanism
from sfumato.local.mechanism import Codes, Counts, FrequencyMechanism, LocalMechanism
from sfumato.randomness import Rng

DEVIATIONS: Final = 3.29
"""Half the width of the band in standard errors: a right formula misses it once in 1,000."""

PEOPLE: Final = 1_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Accuracy:
    """n times the mean squared error of one estimate: by formula, and as measured.

    Over R collections the sum of squared errors of a nearly normal estimate is chi-square with R
    degrees of freedom, so the measured value is within DEVIATIONS * sqrt(2 / R) of the formula.
    """

    formula: float
    measured: float
    collections: int

    @property
    def band(self) -> tuple[float, float]:
        """Where the measured value lies if the formula is right, but for once in 1,000."""
        part = DEVIATIONS * sqrt(2 / self.collections)
        return self.formula * (1 - part), self.formula * (1 + part)

    @property
    def inside(self) -> bool:
        """Whether the measured value is within the band."""
        low, high = self.band
        return low <= self.measured <= high


Measure = Callable[[int, Rng], Accuracy]
"""Measures over a number of collections."""


def repeated(
    estimate: Callable[[Rng], float], *, formula: float, truth: float = 0.0, people: int = PEOPLE
) -> Measure:
    """Measures an estimate that each collection makes once.

    Args:
        estimate: Simulates one collection and estimates from it.
        formula: What n times the mean squared error should be.
        truth: What is estimated.
        people: In one collection, n.
    """

    def measure(collections: int, rng: Rng) -> Accuracy:
        errors = np.array([estimate(rng) for _ in range(collections)]) - truth
        measured = people * float(np.mean(np.square(errors)))
        return Accuracy(formula=formula, measured=measured, collections=collections)

    return measure


def of_rare_category(mechanism: FrequencyMechanism) -> Measure:
    """The error of the frequency of a category that nobody has; everybody has the first."""
    codes = np.zeros(PEOPLE, dtype=np.uint32)
    p, q = float(mechanism.p), float(mechanism.q)

    def estimate(rng: Rng) -> float:
        share = float(mechanism.supports(counted(mechanism, codes, rng))[-1]) / PEOPLE
        return (share - q) / (p - q)

    return repeated(estimate, formula=mechanism.variance(0.0))


def of_worst_mean(mechanism: MeanMechanism) -> Measure:
    """The error of the mean when everybody has the value with the largest variance."""
    grid = np.linspace(-1, 1, mechanism.points).tolist()
    code, truth = max(enumerate(grid), key=lambda place: mechanism.variance(place[1]))
    codes = np.full(PEOPLE, code, dtype=np.uint32)
    return repeated(
        lambda rng: mechanism.mean(counted(mechanism, codes, rng)).mean,
        formula=mechanism.variance(truth),
        truth=truth,
    )


def counted(mechanism: LocalMechanism, codes: Codes, rng: Rng) -> Counts:
    """The tally of one simulated collection."""
    counts = np.zeros(mechanism.cells, dtype=np.int64)
    mechanism.add(mechanism.answer_many(codes, rng=rng), counts)
    return counts
