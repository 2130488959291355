"""What all mechanisms for a mean share: codes of a grid in, unbiased decoding out.

A ``Response`` holds the integers of one mechanism. The expected value of its answers is linear in
the code, exactly, so decoding is one multiplication and no bias is left to correct. Means are in
[-1, 1]: code 0 is -1, the last code is 1; ``Grid.from_unit`` brings them back.
"""

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from sfumato import check
from sfumato.errors import InputError
from sfumato.local.layout import Answer, Answers, IntegerLayout
from sfumato.local.means.grid import MAX_POINTS
from sfumato.local.mechanism import (
    Codes,
    Counts,
    LocalMechanism,
    Transition,
    checked_tally,
    refuse_large,
    transition_of,
    whole_code,
)
from sfumato.randomness import Rng

Floats = NDArray[np.float64]

MAX_MATRIX: Final = 2**25
"""Entries of the largest matrix of floats that ``probabilities`` returns: 256 MiB."""


class MeanEstimate(NamedTuple):
    """A mean in [-1, 1] coordinates, not clipped, and its standard error."""

    mean: float
    standard_error: float


class Response(Protocol):
    """The integers of one mechanism: answers 0 .. ``answers`` - 1 about codes of a grid."""

    @property
    def answers(self) -> int:
        """How many answers there are."""

    def row(self, code: int) -> list[int]:
        """The exact weights of every answer to one code."""

    def probabilities(self) -> Floats:
        """The same for all codes, as floats: rows sum to 1."""

    def values(self) -> Floats:
        """What each answer is decoded to: its expectation under a code is the code's value."""

    def second_moments(self) -> Floats:
        """For each code the expected square of the decoded value."""

    def draw(self, code: int, *, rng: Rng) -> int:
        """One answer, by plain integers."""

    def draw_many(self, codes: Codes, out: Answers, *, rng: Rng) -> None:
        """An answer for each code, into ``out``."""


@dataclass(frozen=True, kw_only=True)
class MeanMechanism(LocalMechanism):
    """A mechanism for the mean of numbers on a grid of ``points``; a response defines it."""

    points: int = 1024
    """Points of the grid: rounding to them then adds little to the variance of any mechanism."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check.keep_whole(self, at_least=2, at_most=MAX_POINTS, points=self.points)

    @property
    @abstractmethod
    def response(self) -> Response:
        """The one definition of the probabilities."""

    @property
    def inputs(self) -> int:
        """One code for each point."""
        return self.points

    @cached_property
    def layout(self) -> IntegerLayout:
        """The number of the answer."""
        return IntegerLayout(below=self.response.answers)

    def answer(self, code: int, *, rng: Rng) -> Answer:
        """One answer, by plain integers."""
        return self.response.draw(self.checked_code(code), rng=rng)

    def answer_many(self, codes: Codes, *, rng: Rng) -> Answers:
        """One answer for each code."""
        codes = self.checked_codes(codes)
        out = self.layout.empty(codes.size)
        self.response.draw_many(codes, out, rng=rng)
        return out

    def transition(self) -> Transition:
        """The exact weights of every answer under every code."""
        answers = self.response.answers
        refuse_large(self, self.points * answers, fewer="points")
        return transition_of(range(answers), [self.response.row(i) for i in range(self.points)])

    def probabilities(self) -> Floats:
        """The matrix (points, answers) as floats: what deconvolution needs."""
        if self.points * self.response.answers > MAX_MATRIX:
            raise InputError(
                f"the matrix of {self} would have {self.points * self.response.answers:,} "
                f"entries, at most {MAX_MATRIX:,} are written out. Ask for fewer points."
            )
        return self.response.probabilities()

    @cached_property
    def values(self) -> Floats:
        """What each answer is decoded to, in [-1, 1] coordinates; most lie outside."""
        return self.response.values()

    def mean(self, counts: Counts) -> MeanEstimate:
        """The mean of the decoded answers in a tally, without bias, and its standard error.

        The variance of one decoded answer is the tally's mean square less the squared mean. It
        contains the noise and, as if people were drawn from many, the spread of their values; it
        is taken as no less than the noise alone would be at this mean.
        """
        counts = checked_tally(counts, self.cells)
        n = int(counts.sum())
        if n == 0:
            raise InputError("a mean can't be estimated without answers. Collect at least one.")
        mean = float(counts @ self.values) / n
        likely = min(1.0, max(-1.0, mean))
        square = float(counts @ self.values**2) / n if n > 1 else 0.0
        return MeanEstimate(
            mean, math.sqrt(max(square - likely**2, self.variance(likely), 0.0) / n)
        )

    def variance(self, value: float = 0.0) -> float:
        """The variance of one decoded answer about ``value`` in [-1, 1], rounding included.

        The mean of n answers has this over n.
        """
        if not -1 <= value <= 1:
            raise InputError(f"value must be between -1 and 1, got {value!r}")
        position = (value + 1) / 2 * (self.points - 1)
        i = min(int(position), self.points - 2)
        left, right = self._second_moments[i : i + 2]
        return float(left + (position - i) * (right - left) - value**2)

    @cached_property
    def worst_variance(self) -> float:
        """The largest ``variance`` of any value.

        Between two points it is a parabola that opens downwards: the top, or the nearer end.
        """
        moments, step = self._second_moments, 2 / (self.points - 1)
        start, rise = np.linspace(-1, 1, self.points)[:-1], np.diff(moments)
        part = np.clip((rise / (2 * step) - start) / step, 0, 1)
        return float(np.max(moments[:-1] + part * rise - (start + part * step) ** 2))

    @cached_property
    def _second_moments(self) -> Floats:
        return self.response.second_moments()


def record_of(code: int | Sequence[int], *, base: int, length: int) -> list[int]:
    """The numbers of a record: themselves, or the digits of one code, the first one lowest.

    >>> record_of(6, base=2, length=3), record_of([0, 1, 1], base=2, length=3)
    ([0, 1, 1], [0, 1, 1])
    """
    if isinstance(code, int | np.integer):
        if isinstance(code, bool) or not 0 <= code < base**length:
            raise InputError(
                f"the code of a record must be a whole number from 0 to {base}^{length} - 1."
            )
        digits, rest = [], int(code)
        for _ in range(length):
            rest, digit = divmod(rest, base)
            digits.append(digit)
        return digits
    if not isinstance(code, Sequence | np.ndarray) or len(code) != length:
        raise InputError(f"a record must have {length} whole numbers.")
    return [whole_code(number, below=base) for number in code]


def records_of(codes: Any, *, base: int, length: int) -> Codes:
    """Records as rows (n, length), or from codes (n,) where those fit 63 bits."""
    array = np.asarray(codes)
    if array.size and array.dtype.kind not in "iu":
        raise InputError(f"codes must be whole numbers, got {array.dtype}.")
    if array.ndim == 1 and base**length <= 2**63:
        _refuse_outside(array, base**length)
        wide = array.astype(np.uint64)  # narrower types may not hold the powers of the base
        digits = [wide // base**digit % base for digit in range(length)]
        return np.stack(digits, axis=1).astype(np.uint16)
    if array.ndim != 2 or array.shape[1] != length:
        raise InputError(f"records must be rows of {length} codes, got the shape {array.shape}.")
    _refuse_outside(array, base)
    return np.ascontiguousarray(array, dtype=np.uint16)


def _refuse_outside(array: NDArray[Any], below: int) -> None:
    if array.size and (array.min() < 0 or array.max() >= below):
        raise InputError(f"codes must be from 0 to {below - 1}; some are not.")
