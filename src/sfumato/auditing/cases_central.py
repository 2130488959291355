"""Noise and selection on a server that holds the data, as cases."""

from fractions import Fraction
from math import exp
from typing import Final

import numpy as np

from sfumato.auditing.case import Case, largest_ratio, with_larger
from sfumato.auditing.finding import Ratio
from sfumato.auditing.outputs import Outputs
from sfumato.mechanisms import (
    DiscreteGaussian,
    DiscreteLaplace,
    ExponentialMechanism,
    PermuteAndFlip,
)
from sfumato.privacy.guarantees import ZCDP, PureDP
from sfumato.randomness import Rng

COUNTS: Final = (0, 1)
"""Neighboring counts."""

Selection = PermuteAndFlip | ExponentialMechanism


def discrete_laplace(larger: Fraction) -> Case:
    """A count with two-sided geometric noise."""
    claimed = PureDP(1)

    def make(factor: Fraction) -> Case:
        noise = DiscreteLaplace.for_cost(PureDP(claimed.epsilon * factor), 1)
        loss = float(noise.guarantee(1).epsilon)
        return _noisy_count("DiscreteLaplace", noise, claimed, loss)

    return with_larger(make, larger)


def discrete_gaussian(larger: Fraction) -> Case:
    """A count with discrete Gaussian noise, in the rho of zCDP; 1.2 times in 1 / sigma."""
    claimed = ZCDP(Fraction(1, 2))

    def make(factor: Fraction) -> Case:
        noise = DiscreteGaussian.for_cost(ZCDP(claimed.rho * factor**2), 1)
        loss = float(1 / noise.spread**2)  # the divergence of order 1 too, by symmetry
        return _noisy_count("DiscreteGaussian", noise, claimed, loss)

    return with_larger(make, larger)


def exponential_mechanism(larger: Fraction) -> Case:
    """A choice between two candidates, in proportion to exp(rate * score)."""
    return _selection(ExponentialMechanism, ((0, 4), (1, 3)), larger, runs=100_000)


def permute_and_flip(larger: Fraction) -> Case:
    """A choice between two candidates, in random order."""
    return _selection(PermuteAndFlip, ((0, 2), (1, 1)), larger, runs=50_000)


def _noisy_count(
    name: str, noise: DiscreteLaplace | DiscreteGaussian, claimed: PureDP | ZCDP, loss: float
) -> Case:
    def draw(count: int, n: int, *, rng: Rng) -> Outputs:
        return count + noise.sample(n, rng=rng)

    return Case(
        name=name,
        guarantee=claimed,
        inputs=COUNTS,
        draw=draw,
        ratio=lambda: exp(loss),
        note="one count, a row more or less",
    )


def _selection(
    kind: type[PermuteAndFlip] | type[ExponentialMechanism],
    neighbors: tuple[tuple[int, ...], ...],
    larger: Fraction,
    *,
    runs: int,
) -> Case:
    """Between neighboring scores of two candidates, one rising while the other falls."""
    claimed = PureDP(1)

    def make(factor: Fraction) -> Case:
        spec = kind(epsilon=claimed.epsilon * factor)

        def draw(scores: tuple[int, ...], n: int, *, rng: Rng) -> Outputs:
            given = np.array(scores, dtype=np.int64)
            return np.array([spec.select(given, rng=rng) for _ in range(n)], dtype=np.uint8)

        return Case(
            name=kind.__name__,
            guarantee=claimed,
            inputs=neighbors,
            draw=draw,
            ratio=lambda: _largest_ratio(spec, neighbors),
            runs=runs,
            note=" against ".join(f"scores {scores}" for scores in neighbors),
        )

    return with_larger(make, larger)


def _largest_ratio(spec: Selection, neighbors: tuple[tuple[int, ...], ...]) -> Ratio:
    chances = [spec.probabilities(np.array(scores, dtype=np.int64)) for scores in neighbors]
    return largest_ratio(np.stack(chances))
