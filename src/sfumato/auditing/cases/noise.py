"""Noise and selection on a server that holds the data, as cases."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from functools import partial
from math import exp
from typing import Final

import numpy as np

from sfumato.auditing import planted_bugs
from sfumato.auditing.case import Case, Planted, largest_ratio, with_larger
from sfumato.auditing.checks import Outputs
from sfumato.noise import DiscreteGaussian, DiscreteLaplace, ExponentialMechanism, PermuteAndFlip
from sfumato.privacy.guarantees import ZCDP, PureDP
from sfumato.randomness import Rng

ONE: Final = Fraction(1)

WIDE: Final = 3_000_000
"""Difference of neighboring sums where the noise is wide."""
_BINS: Final = 4  # of wide noise, in the difference of neighbors


def discrete_laplace(larger: Fraction) -> Case:
    """A count with two-sided geometric noise."""
    claimed, honest = PureDP(1), _laplace(ONE, 1)
    bugs = (
        planted_bugs.smaller_scale(honest, DiscreteLaplace.for_cost(claimed, 1)),
        planted_bugs.repeated_noise(honest, DiscreteLaplace.for_cost(claimed, 1)),
        planted_bugs.float_laplace(claimed),
    )
    return with_larger(lambda factor: _laplace(factor, 1), larger, *bugs)


def discrete_gaussian(larger: Fraction) -> Case:
    """A count with discrete Gaussian noise, in the rho of zCDP; 1.2 times in 1 / sigma."""
    noise, honest = DiscreteGaussian.for_cost(ZCDP(Fraction(1, 2)), 1), _gaussian(ONE, 1)
    bugs = (
        planted_bugs.smaller_scale(honest, noise),
        planted_bugs.repeated_noise(honest, noise),
    )
    return with_larger(lambda factor: _gaussian(factor, 1), larger, *bugs)


def _wide(make: Callable[[Fraction, int], Case], larger: Fraction) -> Case:
    """The same for a sum that one row moves by millions."""
    return with_larger(lambda factor: make(factor, WIDE), larger)


def _laplace(factor: Fraction, apart: int) -> Case:
    claimed = PureDP(1)
    noise = DiscreteLaplace.for_cost(PureDP(claimed.epsilon * factor), apart)
    return _noisy_count("DiscreteLaplace", noise, claimed, apart / float(noise.scale), apart)


def _gaussian(factor: Fraction, apart: int) -> Case:
    claimed = ZCDP(Fraction(1, 2))
    noise = DiscreteGaussian.for_cost(ZCDP(claimed.rho * factor**2), apart**2)
    loss = float((apart / noise.spread) ** 2)  # the divergence of order 1 too, by symmetry
    return _noisy_count("DiscreteGaussian", noise, claimed, loss, apart)


def _noisy_count(
    name: str,
    noise: DiscreteLaplace | DiscreteGaussian,
    claimed: PureDP | ZCDP,
    loss: float,
    apart: int,
) -> Case:
    """Of wide noise, which hardly comes twice, the output is a bin, which loses little."""
    wide = apart > 1
    bin_ = max(1, apart // _BINS)

    def draw(count: int, n: int, *, rng: Rng) -> Outputs:
        return (count + noise.sample(n, rng=rng)) // bin_

    def one_by_one(count: int, n: int, *, rng: Rng) -> Outputs:
        return np.array([count + noise.sample(1, rng=rng)[0] for _ in range(n)]) // bin_

    return Case(
        name=name + "Wide" * wide,
        guarantee=claimed,
        inputs=(0, apart),
        draw=draw,
        ratio=lambda: exp(loss),
        device=one_by_one,
        note=f"a sum that a row moves by {apart:,}" if wide else "one count, a row more or less",
    )


def _selection(
    kind: type[PermuteAndFlip] | type[ExponentialMechanism],
    neighbors: tuple[tuple[int, ...], ...],
    runs: int,
    larger: Fraction,
) -> Case:
    """A choice between two candidates with neighboring scores: one rises, the other falls."""
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
            ratio=lambda: largest_ratio(
                np.stack([spec.probabilities(np.array(s)) for s in neighbors])
            ),
            runs=runs,
            note=" against ".join(f"scores {scores}" for scores in neighbors),
        )

    doubled = replace(make(2 * ONE), planted=())
    bug = Planted(bug="the factor 2 for scores that rise and fall left out", case=doubled)
    return with_larger(make, larger, bug)


CASES: Final[Mapping[str, Callable[[Fraction], Case]]] = {
    "DiscreteLaplace": discrete_laplace,
    "DiscreteGaussian": discrete_gaussian,
    "DiscreteLaplaceWide": partial(_wide, _laplace),
    "DiscreteGaussianWide": partial(_wide, _gaussian),
    "ExponentialMechanism": partial(_selection, ExponentialMechanism, ((0, 4), (1, 3)), 100_000),
    "PermuteAndFlip": partial(_selection, PermuteAndFlip, ((0, 2), (1, 1)), 50_000),
}
"""By the names of the mechanisms, in the order of the table."""
