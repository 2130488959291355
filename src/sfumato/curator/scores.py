"""The closed list of scores that a selection may use, each with its sensitivity.

A score is made of public arrays; the curator puts the exact counts in. Whoever needs another one
adds it here, with its sensitivity and a property test, and nowhere else.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError
from sfumato.privacy import sensitivity
from sfumato.privacy.protection import Protection
from sfumato.schema.workload import Target

_LARGEST = 2.0**53
"""Whole numbers up to here are exact as floats."""
_LARGEST_SUM = 2.0**61
"""A score below this can't leave 64 bits, whatever the counts: a sum that wraps around would move
by far more than its sensitivity."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class L1Error:
    """How far a public model's answer to each target is from the exact one, in counts.

    For a range |q(A) - q(B)|, for a marginal the sum of that over its cells, less a public
    penalty. The model's answers are rounded to whole counts first, so that scores are integers
    and the sensitivity is exact: that of the counts (``privacy.sensitivity``).
    """

    answers: NDArray[np.float64]
    """The model's answers to all targets in one flat vector (``schema.workload.layout``)."""
    penalties: NDArray[np.float64] | None = None
    """Public numbers taken off each score, for example the noise a measurement would bring."""

    def check(self, offsets: NDArray[np.int64]) -> None:
        """Raise unless the public numbers fit the targets; before anything is charged."""
        _check_numbers("answers", self.answers, int(offsets[-1]))
        if self.penalties is not None:
            _check_numbers("penalties", self.penalties, offsets.size - 1)
        if np.add.reduceat(np.abs(self.answers), offsets[:-1]).max() >= _LARGEST_SUM:
            raise InputError("answers to one target sum to too much. Nothing was looked at.")

    def of(self, exact: NDArray[np.int64], offsets: NDArray[np.int64]) -> NDArray[np.int64]:
        """Whole scores, one a target. Only the curator holds what this needs."""
        gaps = np.abs(np.rint(self.answers).astype(np.int64) - exact)
        scores = gaps if offsets.size == exact.size + 1 else np.add.reduceat(gaps, offsets[:-1])
        if self.penalties is None:
            return scores
        return scores - np.rint(self.penalties).astype(np.int64)

    @staticmethod
    def sensitivity(targets: Sequence[Target], protect: Protection) -> int:
        """The most that one protected unit can change any of the scores."""
        if any(isinstance(target, tuple) for target in targets):
            return max(sensitivity.l1_error(protect), sensitivity.range_query(protect))
        return sensitivity.range_query(protect)


Score = L1Error
"""All scores there are."""


def _check_numbers(name: str, numbers: NDArray[np.float64], size: int) -> None:
    if numbers.shape != (size,) or not (np.abs(numbers) < _LARGEST).all():
        raise InputError(
            f"{name} must be {size} finite numbers, one for each value asked for. "
            "Nothing was looked at."
        )
