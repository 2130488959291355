"""Mechanisms for numbers on a grid, as cases."""

from fractions import Fraction
from typing import Final

import numpy as np

from sfumato.auditing import planted_local
from sfumato.auditing.accuracy import PEOPLE, Measure, counted, of_worst_mean, repeated
from sfumato.auditing.case import RUNS, Case, Planted, local_case
from sfumato.local.means.duchi import Duchi, DuchiVector
from sfumato.local.means.hybrid import Hybrid
from sfumato.local.means.laplace import LocalLaplace
from sfumato.local.means.mechanism import MeanMechanism
from sfumato.local.means.piecewise import Piecewise, SquareWave
from sfumato.local.means.sampled import SampledMeans
from sfumato.randomness import Rng

ONE: Final = Fraction(1)


def duchi(larger: Fraction) -> Case:
    """Two answers about a number."""
    return _mean(Duchi, larger, planted_local.value_and_square(epsilon=ONE), points=5)


def piecewise(larger: Fraction) -> Case:
    """A window around a number."""
    return _mean(Piecewise, larger, planted_local.float_piecewise(epsilon=ONE), points=9)


def hybrid(larger: Fraction) -> Case:
    """One of the two above, by a coin."""
    return _mean(Hybrid, larger, points=9, runs=400_000)


def local_laplace(larger: Fraction) -> Case:
    """Discrete Laplace noise on a number."""
    return _mean(LocalLaplace, larger, points=5)


def square_wave(larger: Fraction) -> Case:
    """A window for a whole distribution."""
    return _mean(SquareWave, larger, points=9)


def duchi_vector(larger: Fraction) -> Case:
    """Several signs at once."""
    mechanism = DuchiVector(dimensions=3, epsilon=ONE)
    return local_case(
        lambda epsilon: DuchiVector(dimensions=3, epsilon=epsilon),
        larger,
        note="3 signs",
        accuracy=_first_of_several(mechanism, truth=-1.0),
    )


def sampled_means(larger: Fraction) -> Case:
    """Several numbers, of which one is answered."""
    mechanism = SampledMeans(dimensions=3, points=3, inner="duchi", epsilon=ONE)
    return local_case(
        lambda epsilon: SampledMeans(dimensions=3, points=3, inner="duchi", epsilon=epsilon),
        larger,
        note="1 of 3 numbers on 3 points, by Duchi",
        accuracy=_first_of_several(mechanism, truth=-1.0),
    )


def _mean(
    kind: type[MeanMechanism], larger: Fraction, *more: Planted, points: int, runs: int = RUNS
) -> Case:
    return local_case(
        lambda epsilon: kind(points=points, epsilon=epsilon),
        larger,
        *more,
        note=f"{points} points",
        accuracy=of_worst_mean(kind(points=points, epsilon=ONE)),
        runs=runs,
    )


def _first_of_several(mechanism: DuchiVector | SampledMeans, *, truth: float) -> Measure:
    """The error of the first mean when everybody has -1 everywhere, code 0."""
    codes = np.zeros(PEOPLE, dtype=np.uint32)

    def estimate(rng: Rng) -> float:
        first = mechanism.means(counted(mechanism, codes, rng))[0]
        return truth if first is None else first.mean

    return repeated(estimate, formula=mechanism.variance(truth), truth=truth)
