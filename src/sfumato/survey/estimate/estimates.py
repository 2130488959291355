"""What the server infers from answers, each number with its standard error.

A standard error of a frequency is of the answers' noise: how far the estimate is from the people
who answered. How far these are from everybody is the survey's own question. That of a mean contains
the spread of the people's values too, and so is a little too large for those who answered.
"""

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from io import StringIO
from statistics import NormalDist
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sfumato import charts
from sfumato.charts import cards
from sfumato.errors import InputError
from sfumato.models.model import project
from sfumato.privacy import guarantees
from sfumato.privacy.guarantees import LocalDP

Vector = NDArray[np.float64]

_SHOWN: Final = 6
"""Values that one line shows."""


@dataclass(frozen=True, kw_only=True, eq=False)
class _Estimate:
    """What all estimates say of their answers."""

    column: str
    protocol: str
    answers: int
    guarantee: LocalDP
    """The promise to each person, from one answer."""
    private: bool
    """False when seeded randomness made the answers: then there is no promise at all."""

    def _head(self) -> dict[str, Any]:
        promise = guarantees.to_json(self.guarantee) if self.private else None
        return {
            "column": self.column,
            "protocol": self.protocol,
            "answers": self.answers,
            "private": self.private,
            "guarantee": promise,
        }

    def _facts(self) -> dict[str, str]:
        """What a notebook says of any estimate."""
        return {
            "protocol": self.protocol,
            "answers": f"{self.answers:,}",
            "promise": promise_text(self.guarantee, private=self.private),
        }


@dataclass(frozen=True, kw_only=True, eq=False)
class FrequencyEstimate(_Estimate):
    """The share of people with each value."""

    labels: Sequence[str]
    frequencies: Vector
    """Without bias, so a rare value may come out below zero; ``adjusted`` is never so."""
    standard_errors: Vector

    @cached_property
    def adjusted(self) -> Vector:
        """The nearest frequencies that could exist: none below zero, their sum one (norm-sub)."""
        return project(self.frequencies, 1.0)

    def interval(self, confidence: float = 0.95) -> tuple[Vector, Vector]:
        """Two ends around each frequency that hold it with this probability."""
        reach = z_of(confidence) * self.standard_errors
        return self.frequencies - reach, self.frequencies + reach

    def to_dict(self, confidence: float = 0.95) -> dict[str, Any]:
        """The JSON form."""
        low, high = self.interval(confidence)
        return {
            **self._head(),
            "labels": list(self.labels),
            "frequencies": self.frequencies.tolist(),
            "standard_errors": self.standard_errors.tolist(),
            "confidence": confidence,
            "intervals": np.stack([low, high], axis=1).tolist(),
            "adjusted": self.adjusted.tolist(),
        }

    def to_csv(self, confidence: float = 0.95) -> str:
        """The table as CSV text, a row for each value."""
        text = StringIO()
        rows = csv.writer(text, lineterminator="\n")
        rows.writerow(("label", "frequency", "standard_error", "low", "high", "adjusted"))
        figures = (
            self.frequencies,
            self.standard_errors,
            *self.interval(confidence),
            self.adjusted,
        )
        labels = [_no_formula(label) for label in self.labels]
        rows.writerows(zip(labels, *(column.tolist() for column in figures), strict=True))
        return text.getvalue()

    def chart(self, confidence: float = 0.95) -> str:
        """Bars with whiskers that hold the truth with this probability, as SVG."""
        return charts.histogram_chart(
            self.labels,
            (100 * self.frequencies).tolist(),
            title=f"{self.column}: percent, from {self.answers:,} answers",
            names=("estimate", f"{confidence:.0%} interval"),
            errors=(100 * z_of(confidence) * self.standard_errors).tolist(),
            width=640,
        )

    def __repr__(self) -> str:
        """One line, with the first values."""
        shown = list(zip(self.labels, self.frequencies, self.standard_errors, strict=True))
        text = ", ".join(f"{label} {f:.3f} ± {e:.3f}" for label, f, e in shown[:_SHOWN])
        more = f", {len(shown) - _SHOWN} more" if len(shown) > _SHOWN else ""
        return f"<FrequencyEstimate {self.column!r} from {self.answers:,} answers: {text}{more}>"

    def _repr_html_(self) -> str:
        """For notebooks: the chart and what it rests on."""
        facts = cards.facts(self._facts())
        return cards.card(self.column, facts, cards.charts([self.chart()]))


@dataclass(frozen=True, kw_only=True, eq=False)
class MeanEstimate(_Estimate):
    """The mean of a number."""

    mean: float
    standard_error: float
    limits: tuple[float, float]
    """The public limits that the numbers lie within."""

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Two ends around the mean that hold it with this probability, within the limits."""
        reach = z_of(confidence) * self.standard_error
        low, high = (float(np.clip(self.mean + side, *self.limits)) for side in (-reach, reach))
        return low, high

    def to_dict(self, confidence: float = 0.95) -> dict[str, Any]:
        """The JSON form."""
        figures = {"mean": self.mean, "standard_error": self.standard_error}
        sure = {"confidence": confidence, "interval": list(self.interval(confidence))}
        return {**self._head(), **figures, **sure, "limits": list(self.limits)}

    def __repr__(self) -> str:
        """One line."""
        text = f"{self.mean:.5g} ± {self.standard_error:.2g}"
        return f"<MeanEstimate {self.column!r} from {self.answers:,} answers: {text}>"

    def _repr_html_(self) -> str:
        """For notebooks: the mean, its interval and what they rest on."""
        low, high = self.interval()
        figures = {
            "mean": f"{self.mean:.5g}",
            "standard error": f"{self.standard_error:.2g}",
            "95% interval": f"{low:.5g} to {high:.5g}",
        }
        return cards.card(self.column, cards.facts({**figures, **self._facts()}))


def promise_text(guarantee: LocalDP, *, private: bool) -> str:
    """The promise to each person in a line; what seeded randomness made has none."""
    return str(guarantee) if private else "none: the answers were simulated"


def _no_formula(label: str) -> str:
    """A label that a spreadsheet shows and does not run."""
    return f"'{label}" if label[:1] in "=+-@\t\r" and label else label


def z_of(confidence: float) -> float:
    """How many standard errors reach this two-sided confidence.

    >>> round(z_of(0.95), 3)
    1.96
    """
    if not 0 < confidence < 1:
        raise InputError(f"confidence must be above 0 and below 1, got {confidence!r}")
    return NormalDist().inv_cdf((1 + confidence) / 2)
