"""Exact Bernoulli and categorical draws from random words, with whole numbers only."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sfumato import check
from sfumato.errors import InputError
from sfumato.randomness import Rng

_WORD = 2**64
"""How many values a random word has."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Bernoulli:
    """True with exactly the stated probability, whatever the fraction."""

    probability: Fraction
    """From 0 to 1; numbers and texts are taken exactly (0.1 is 1/10)."""

    def __post_init__(self) -> None:
        probability = check.exact(probability=self.probability)
        if not 0 <= probability <= 1:
            raise InputError(f"probability must be between 0 and 1, got {self.probability!r}")
        object.__setattr__(self, "probability", probability)

    def sample(self, n: int, *, rng: Rng) -> NDArray[np.bool_]:
        """``n`` independent draws.

        A uniform number, whose digits to the base 2^64 are random words, is compared with the
        probability; the next digit is drawn only for those that are equal so far.
        """
        check.whole(at_least=0, n=n)
        if self.probability == 1:
            return np.ones(n, dtype=np.bool_)
        out = np.zeros(n, dtype=np.bool_)
        undecided, rest = np.arange(n), self.probability
        while undecided.size and rest > 0:
            digit, rest = divmod(rest * _WORD, 1)
            words = rng.words(undecided.size)
            out[undecided] = words < np.uint64(digit)
            undecided = undecided[words == np.uint64(digit)]
        return out


@dataclass(frozen=True, kw_only=True, slots=True)
class Categorical:
    """Category i with exactly the probability ``weights[i] / sum(weights)``."""

    weights: Sequence[int]
    """Whole numbers from 0 on with a sum from 1 to 2^62 - 1; a copy is kept."""

    def __post_init__(self) -> None:
        weights = tuple(check.whole(at_least=0, weight=weight) for weight in self.weights)
        if not 0 < sum(weights) < 2**62:
            raise InputError(
                f"the sum of the weights must be from 1 to 2^62 - 1, got {sum(weights)}. "
                "Weights are whole numbers, not probabilities: scale them."
            )
        object.__setattr__(self, "weights", weights)

    def sample(self, n: int, *, rng: Rng) -> NDArray[np.int64]:
        """``n`` categories: a uniform number below the sum falls into one category's part."""
        check.whole(at_least=0, n=n)
        ends = np.cumsum(np.array(self.weights, dtype=np.int64))
        drawn = rng.below(int(ends[-1]), n)
        return np.searchsorted(ends, drawn, side="right").astype(np.int64, copy=False)
