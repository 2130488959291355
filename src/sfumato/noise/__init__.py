"""Noise and selection, drawn exactly: frozen specs that state their guarantee as a value.

Each spec is made within a cost (``noise_for``, ``selection_for``) and has an ``rng`` keyword where
it draws. Noise is whole numbers, never floats: a float Laplace count can give the input away
(Mironov 2012, "On significance of the least significant bits").
"""

from sfumato.noise.discrete_gaussian import DiscreteGaussian
from sfumato.noise.discrete_laplace import DiscreteLaplace
from sfumato.noise.selection import ExponentialMechanism, PermuteAndFlip, Selection, selection_for
from sfumato.privacy.guarantees import Cost, PureDP

__all__ = [
    "DiscreteGaussian",
    "DiscreteLaplace",
    "ExponentialMechanism",
    "Noise",
    "PermuteAndFlip",
    "Selection",
    "noise_for",
    "selection_for",
]

Noise = DiscreteLaplace | DiscreteGaussian


def noise_for(cost: Cost, l1_sensitivity: int, l2_sensitivity_squared: int) -> Noise:
    """The least noise within ``cost``: discrete Laplace for pure DP, discrete Gaussian for zCDP.

    Args:
        cost: The guarantee to be kept.
        l1_sensitivity: How far neighbors can be apart in L1, whole.
        l2_sensitivity_squared: The square of how far they can be apart in L2, whole.
    """
    if isinstance(cost, PureDP):
        return DiscreteLaplace.for_cost(cost, l1_sensitivity)
    return DiscreteGaussian.for_cost(cost, l2_sensitivity_squared)
