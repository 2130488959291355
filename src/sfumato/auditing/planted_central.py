"""Mistakes that are made on a server which holds the data, built on purpose.

None of this is used anywhere else. Floats decide here, which no mechanism does.
"""

from dataclasses import replace
from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sfumato.auditing.case import Case, Planted
from sfumato.auditing.outputs import Outputs
from sfumato.noise import DiscreteGaussian, DiscreteLaplace
from sfumato.privacy.guarantees import PureDP
from sfumato.randomness import Rng, simulation_rng

Floats = NDArray[np.float64]

LESS: Final = Fraction(4, 5)
"""A scale that is a fifth too small."""

_UNIT: Final = 2.0**-53
_STEPS: Final = 4


def smaller_scale(honest: Case, noise: DiscreteLaplace | DiscreteGaussian) -> Planted:
    """The same count with noise of four fifths of the scale."""
    if isinstance(noise, DiscreteLaplace):
        less: DiscreteLaplace | DiscreteGaussian = DiscreteLaplace(scale=noise.scale * LESS)
    else:
        less = DiscreteGaussian(spread=noise.spread * LESS)

    def draw(count: int, n: int, *, rng: Rng) -> Outputs:
        return count + less.sample(n, rng=rng)

    case = replace(honest, draw=draw, ratio=lambda: None, device=None)
    return Planted(bug="a scale a fifth too small", case=case)


def repeated_noise(honest: Case, noise: DiscreteLaplace | DiscreteGaussian) -> Planted:
    """The same noise in every run: who replays the generator subtracts it."""

    def draw(count: int, n: int, *, rng: Rng) -> Outputs:
        return np.repeat(count + noise.sample(1, rng=simulation_rng(0)), n)

    case = replace(honest, draw=draw, ratio=lambda: None, device=None)
    return Planted(bug="a predictable generator", case=case)


def float_laplace(claimed: PureDP) -> Planted:
    """A count with float64 Laplace noise, by the logarithm of a uniform float.

    Not every float is such a logarithm, and adding 1 rounds it: the sum tells which counts could
    have given it at all, which is the output here. Mironov 2012, "On significance of the least
    significant bits for differential privacy".
    """
    scale = 1 / float(claimed.epsilon)

    def draw(count: int, n: int, *, rng: Rng) -> Outputs:
        uniform = (rng.below(2**53, n) + 1).astype(np.float64)
        sums = count + _noise(uniform, (2 * rng.below(2, n) - 1).astype(np.float64), scale)
        possible = [_is_possible(sums, other, scale) for other in (0, 1)]
        return np.packbits(np.stack(possible, axis=1), axis=1, bitorder="little")

    case = Case(
        name="Laplace, floats",
        guarantee=claimed,
        inputs=(0, 1),
        draw=draw,
        ratio=lambda: None,
    )
    return Planted(bug="floats: sums that some counts can't give", case=case)


def _noise(uniform: Floats, sign: Floats, scale: float) -> Floats:
    """From whole numbers 1 .. 2^53."""
    return np.asarray(-sign * scale * np.log(uniform * _UNIT))


def _is_possible(sums: Floats, count: int, scale: float) -> NDArray[np.bool_]:
    """Whether some uniform float near by gives exactly this sum on this count."""
    noise = sums - count
    sign = np.where(noise < 0, -1.0, 1.0)
    near = np.rint(np.exp(-np.abs(noise) / scale) / _UNIT)
    found = np.zeros(sums.shape, dtype=np.bool_)
    for step in range(-_STEPS, _STEPS + 1):
        uniform = np.clip(near + step, 1.0, 2.0**53)
        found |= count + _noise(uniform, sign, scale) == sums
    return found
