"""A question with both its halves: the device's and the server's, for Python users."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError
from sfumato.local.layout import IntegerLayout
from sfumato.local.means.grid import Grid
from sfumato.local.means.mechanism import MeanMechanism
from sfumato.local.mechanism import FrequencyMechanism
from sfumato.models.answers.frequencies import debias, expectation_maximization
from sfumato.randomness import Rng, check_rng, simulation_rng
from sfumato.schema.columns import Column, Integer, Number
from sfumato.schema.values import code_of, limits, numbers
from sfumato.survey.device.form import Form
from sfumato.survey.estimate.estimates import FrequencyEstimate, MeanEstimate, Vector
from sfumato.survey.estimate.tally import AnswerBatch, Collected, Tally
from sfumato.survey.protocol import mechanism_choice
from sfumato.survey.protocol.mechanism_choice import SQUARE_WAVE

Estimate = FrequencyEstimate | MeanEstimate
_FITS: Final = 20
"""Fits for the standard errors, which are then themselves good to about 16%."""


@dataclass(frozen=True, kw_only=True)
class Question(Form):
    """Asks for the frequencies, the mean or the distribution of one column.

    ``Question(column=schema["smoker"], epsilon=1)`` takes the protocol of least variance;
    ``protocol="grr"`` insists, ``protocol="hybrid"`` asks for a mean, ``"square-wave"`` for the
    distribution of a number.
    """

    def codes(self, values: Iterable[Any]) -> NDArray[np.int64]:
        """The column's codes of people's values, as ``answer_many`` takes them."""
        return np.array([code_of(self.column, value) for value in values], dtype=np.int64)

    def answer_many(self, codes: Any, *, rng: Rng) -> AnswerBatch:
        """One answer for each of many people, in one array.

        ``codes`` are the column's: 0 for its first label. ``codes(values)`` makes them.
        """
        check_rng(rng)
        prepared = self.prepared(codes, rng=rng)
        values = self.mechanism.answer_many(prepared, rng=rng)
        return AnswerBatch(question=self.id, values=values, simulated=not rng.secure)

    def prepared(self, codes: Any, *, rng: Rng) -> Any:
        """The mechanism's codes: the column's own, or its numbers rounded to the grid."""
        if self.grid is None:
            return codes
        values = np.array(numbers(self.column))
        array = np.asarray(codes)
        if array.ndim != 1 or array.dtype.kind not in "iu":
            raise InputError(
                "codes must be a list of whole numbers, the column's codes; "
                "question.codes(values) makes them."
            )
        if array.size and (array.min() < 0 or array.max() >= values.size):
            raise InputError(f"codes must be from 0 to {values.size - 1}; some are not.")
        return self.grid.round(values[array], rng=rng)

    def tally(self) -> Tally:
        """An empty count of answers; add batches, merge parts, then ``estimate`` it."""
        return Tally(form=self)

    def estimate(self, answers: Tally | Collected | Iterable[Collected]) -> Estimate:
        """What the answers say, with standard errors."""
        tally = self._counted(answers)
        if isinstance(self.mechanism, FrequencyMechanism):
            supports = self.mechanism.supports(tally.counts)
            p, q = float(self.mechanism.p), float(self.mechanism.q)
            return self._frequencies(tally, *debias(supports, tally.answers, p, q))
        mechanism, grid = mechanism_choice.number_mechanism(
            self.column, self.epsilon, self.protocol
        )
        if self.protocol == SQUARE_WAVE:
            return self._frequencies(
                tally, *distribution(self.column, grid, mechanism, tally.counts)
            )
        mean, error = mechanism.mean(tally.counts)
        return MeanEstimate(
            column=self.column.name,
            protocol=self.protocol,
            answers=tally.answers,
            guarantee=self.guarantee,
            private=not tally.simulated,
            mean=grid.from_unit(mean),
            standard_error=grid.unit * error,
            limits=(grid.low, grid.high),
        )

    def likeliest(self, answers: Tally | Collected | Iterable[Collected]) -> Vector:
        """The frequencies that make the answers likeliest: expectation maximization.

        For protocols whose tally counts whole answers (grr, hadamard, fast-olh).
        """
        layout, mechanism = self.mechanism.layout, self.mechanism
        if not isinstance(layout, IntegerLayout) or mechanism.cells != layout.below:
            raise InputError(
                f"{self.protocol} counts supports, not whole answers, so the likeliest "
                "frequencies can't be had from them. Use the estimate's adjusted ones."
            )
        tally = self._counted(answers)
        return expectation_maximization(tally.counts, mechanism.transition().probabilities())

    def _counted(self, answers: Tally | Collected | Iterable[Collected]) -> Tally:
        """A tally of answers to this question, at least one."""
        tally = answers if isinstance(answers, Tally) else self.tally()
        if not isinstance(answers, Tally):
            tally.add(answers)
        if tally.form.id != self.id:
            raise InputError("these answers were counted for another question.")
        if not tally.answers:
            raise InputError("there are no answers: nothing can be estimated.")
        return tally

    def _frequencies(self, tally: Tally, frequencies: Vector, errors: Vector) -> FrequencyEstimate:
        return FrequencyEstimate(
            column=self.column.name,
            protocol=self.protocol,
            answers=tally.answers,
            guarantee=self.guarantee,
            private=not tally.simulated,
            labels=self.column.labels,
            frequencies=frequencies,
            standard_errors=errors,
        )


def distribution(
    column: Column, grid: Grid, mechanism: MeanMechanism, counts: NDArray[np.int64]
) -> tuple[Vector, Vector]:
    """The frequency of each code with its standard error, from square-wave answers.

    Expectation maximization with smoothing. Its errors have no formula, so they are measured: the
    counted answers are perturbed as chance would have done, and fitted again.
    """
    matrix = mechanism.probabilities()
    bins = bins_of(column, grid)
    in_codes = (bins == np.arange(column.size)[:, None]).astype(np.float64)
    fits = [
        in_codes @ expectation_maximization(drawn, matrix, smooth=True)
        for drawn in (counts.astype(np.float64), *_resampled(counts))
    ]
    return fits[0], np.asarray(np.std(fits[1:], axis=0, ddof=1))


def bins_of(column: Column, grid: Grid) -> NDArray[np.int64]:
    """The code that each point of the grid lies in."""
    if isinstance(column, Integer):
        nearest = np.rint(grid.values).astype(np.int64)
        return (nearest - column.low) // (column.step or 1)
    edges = column.edges or () if isinstance(column, Number) else limits(column)
    inner = np.array(edges[1:-1], dtype=np.float64)
    return np.searchsorted(inner, grid.values, side="right").astype(np.int64)


def _resampled(counts: NDArray[np.int64]) -> list[Vector]:
    """Counts with the randomness of independent answers: normal, with their variance.

    Post-processing of what is public already, so a fixed seed is right: the same answers give the
    same errors.
    """
    rng = simulation_rng(0)
    drawn = []
    for _ in range(_FITS):
        radius = np.sqrt(-2 * np.log1p(-rng.uniform(counts.size)))
        normal = radius * np.cos(2 * np.pi * rng.uniform(counts.size))
        drawn.append(np.maximum(0.0, counts + np.sqrt(counts) * normal))
    return drawn
