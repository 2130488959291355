"""Real values on a public grid: each is rounded to one of two neighboring points, without bias.

Mechanisms for numbers answer about these codes. In floating point the set of possible answers
would depend on the value and give it away (Mironov 2012, "On significance of the least significant
bits for differential privacy"); whole numbers can't.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato import check
from sfumato.errors import InputError
from sfumato.local.mechanism import Codes, chunks
from sfumato.local.probabilities import WORD
from sfumato.randomness import Rng

MAX_POINTS: Final = 2**16
"""Codes fit 16 bits, and a tally of all answers a few megabytes."""

_DOUBT: Final = 2.0**-30
"""A sum nearer to a whole number is decided exactly. Position and word together are wrong by at
most 8 roundings of a number below 2^16, that is 2^-34."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Grid:
    """``points`` evenly spaced values from ``low`` to ``high``, both public."""

    low: float
    high: float
    points: int = 1024
    """The distance of two points adds at most 1/4 of its square to the variance of a value."""

    def __post_init__(self) -> None:
        check.keep_whole(self, at_least=2, at_most=MAX_POINTS, points=self.points)
        for name in ("low", "high"):
            object.__setattr__(self, name, _finite(name, getattr(self, name)))
        if not 0 < self.high - self.low < math.inf:
            raise InputError(
                f"a grid needs low < high, and a finite way between; got {self.low} and {self.high}"
            )

    @property
    def values(self) -> NDArray[np.float64]:
        """The points themselves, ascending."""
        return np.linspace(self.low, self.high, self.points)

    def round_one(self, value: float, *, rng: Rng) -> int:
        """The code of one of the two points beside ``value``, whose expectation is ``value``.

        With x the exact position of the value, it is floor(x + U) for a uniform U in [0, 1): plain
        integers, and as many words of U as it takes to be sure.
        """
        real = isinstance(value, int | float | np.integer | np.floating)
        if not real or isinstance(value, bool) or not self.low <= value <= self.high:
            raise InputError(f"a value must be {self._allowed}.")
        return self._decide(float(value), int(rng.words(1)[0]), rng=rng)

    def round(self, values: ArrayLike, *, rng: Rng) -> Codes:
        """A code for each value, as ``round_one`` draws them, and as exact.

        Floats decide wherever they are sure; where the sum of position and U is within 2^-30 of a
        whole number, integers do.
        """
        reals = self._checked(values)
        codes: Codes = np.empty(reals.size, np.uint8 if self.points <= 2**8 else np.uint16)
        for rows, words in chunks(reals.size, rng=rng):
            sums = (reals[rows] - self.low) / (self.high - self.low) * (self.points - 1)
            sums += words * 2.0**-64
            codes[rows] = np.minimum(sums, self.points - 1)  # cut to a whole number
            for i in np.flatnonzero(np.abs(sums - np.rint(sums)) < _DOUBT).tolist():
                value = float(reals[rows][i])
                codes[rows][i] = self._decide(value, int(words[i]), rng=rng)
        return codes

    def from_unit(self, mean: float) -> float:
        """A mean in [-1, 1], as mechanisms estimate it, on the scale of the values."""
        return self.low + (mean + 1) / 2 * (self.high - self.low)

    @property
    def unit(self) -> float:
        """What 1 on the scale of [-1, 1] is on the scale of the values: for standard errors."""
        return (self.high - self.low) / 2

    def _decide(self, value: float, word: int, *, rng: Rng) -> int:
        """floor(x + U) where ``word`` is the beginning of U, with more words while in doubt."""
        low, high = Fraction(self.low), Fraction(self.high)
        x = (Fraction(value) - low) / (high - low) * (self.points - 1)
        size = WORD
        while (code := math.floor(x + Fraction(word, size))) + 1 < x + Fraction(word + 1, size):
            word, size = word * WORD + int(rng.words(1)[0]), size * WORD
        return code

    def _checked(self, values: ArrayLike) -> NDArray[np.float64]:
        array = np.asarray(values)
        if array.ndim != 1 or (array.size and array.dtype.kind not in "iuf"):
            raise InputError(
                f"values must be a list of numbers, got {array.dtype} of shape {array.shape}."
            )
        reals = array.astype(np.float64)
        misfits = ~((reals >= self.low) & (reals <= self.high))  # so that nan is one
        if misfits.any():
            raise InputError(
                f"values must be {self._allowed}; value {int(np.argmax(misfits))} is not. Clip "
                "them first: the limits are public, so that costs nothing."
            )
        return reals

    @property
    def _allowed(self) -> str:
        return f"finite numbers from {self.low:g} to {self.high:g}"


def discretize(values: ArrayLike, *, low: float, high: float, rng: Rng) -> Codes:
    """Each value as one of the two ends of its range, 0 or 1, without bias: a grid of 2 points."""
    return Grid(low=low, high=high, points=2).round(values, rng=rng)


def _finite(name: str, value: Any) -> float:
    number = isinstance(value, int | float | Fraction | np.number) and not isinstance(value, bool)
    if not number or not math.isfinite(value) or float(value) != value:
        raise InputError(f"{name} must be a finite number that a float can hold, got {value!r:.60}")
    return float(value)
