"""Noise and selection, drawn exactly: frozen specs that state their guarantee as a value.

Each spec is made within a cost (``noise_for``, ``selection_for``) and has an ``rng`` keyword where
it draws. Noise is whole numbers, never floats: a float Laplace count can give the input away
(Mironov 2012, "On significance of the least significant bits").
"""

from sfumato.noise.discrete_noise import DiscreteGaussian, DiscreteLaplace, Noise, noise_for
from sfumato.noise.selection import ExponentialMechanism, PermuteAndFlip, Selection, selection_for

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
