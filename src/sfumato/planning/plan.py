"""The plan: each method's predicted error, before anything is spent. Public numbers only.

Values and how they are shown; the rehearsals that find the numbers are in ``planning.rehearsal``.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Final

import numpy as np

from sfumato.charts import MAX_LINES, Line, cards, line_chart
from sfumato.errors import InputError
from sfumato.privacy.sensitivity import Protection
from sfumato.schema import Marginal, Schema

LARGEST_NOISE: Final = 0.25
"""Total variation of a single column, as a mean, above which there are too few rows."""
TYPICAL_DEPENDENCE: Final = 0.08
"""What taking columns as independent costs, in total variation of pairs, on the made-up table
that stands in where no public one is given. On real ones we know: BR2000 .051, Adult .076, NLTCS
.161."""
MOST_DEPENDENCE: Final = 0.17
"""So far goes the range of the model part then; it begins at 0, for columns not tied at all."""
WITHIN: Final = 1.5
"""The factor within which the noise part is promised."""
_SAME: Final = 1e-9
"""Logarithms of sizes with less variance are of one size."""
OPTIMUM: Final = "non-adaptive optimum"


@dataclass(frozen=True, kw_only=True, slots=True)
class PlannedMeasurement:
    """Something that a method would measure, and what its noise does."""

    columns: Marginal
    box: str = ""
    """Of a range, its limits."""
    cells: int
    sigma_counts: float
    noise: float
    """Expected total variation as measured, before anything is cut; it may exceed 1."""
    projected: float
    """Expected total variation after projection to counts that could exist."""

    def to_dict(self) -> dict[str, Any]:
        """For ``--json``."""
        return {
            "target": self.box or list(self.columns),
            "cells": self.cells,
            "sigma_counts": self.sigma_counts,
            "noise": self.noise,
            "projected": self.projected,
        }


@dataclass(frozen=True, kw_only=True, slots=True)
class Prediction:
    """What one method would do at one epsilon."""

    method: str
    epsilon: Fraction
    predicted: float
    """Mean error over the workload as a share of the rows: of marginals, total variation."""
    noise: float
    """The part of it that noise brings."""
    model_low: float
    model_high: float
    """The rest: what the model leaves out, and drawing rows. A range where no public table was
    given, since it depends on the data."""
    optimum: float | None
    """Of marginals, the same error if a fixed choice of linear queries were measured with the
    least noise, each marginal projected by itself. Methods that look first may beat it."""
    verdict: str = ""
    measured: tuple[PlannedMeasurement, ...] = ()

    @property
    def low(self) -> float:
        """The least that is expected: the noise part may be smaller by a factor of 1.5."""
        return self.noise / WITHIN + self.model_low

    @property
    def high(self) -> float:
        """The most that is expected: the noise part may be larger by a factor of 1.5."""
        return min(1.0, self.noise * WITHIN + self.model_high)

    def noise_at(self, *, cells: int, columns: int) -> float | None:
        """The noise, before anything is cut, of a table of some size if it is measured.

        Which tables an adaptive method measures depends on the data. How much noise one gets
        follows its size: a line through the logarithms of those with as many columns in the
        rehearsal, by least squares. None if there was none.
        """
        alike = [one for one in self.measured if len(one.columns) == columns and one.noise > 0]
        if not alike:
            return None
        sizes = np.log([one.cells for one in alike])
        noises = np.log([one.noise for one in alike])
        spread = float(sizes.var())
        slope = float(((sizes - sizes.mean()) * noises).mean()) / spread if spread > _SAME else 1.0
        return float(np.exp(noises.mean() + slope * (np.log(cells) - sizes.mean())))

    def to_dict(self) -> dict[str, Any]:
        """For ``--json``."""
        return {
            "method": self.method,
            "epsilon": float(self.epsilon),
            "predicted": self.predicted,
            "low": self.low,
            "high": self.high,
            "noise": self.noise,
            "model_low": self.model_low,
            "model_high": self.model_high,
            "optimum": self.optimum,
            "verdict": self.verdict,
            "measured": [each.to_dict() for each in self.measured],
        }


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Predicted errors of the methods that can be used, at and around one epsilon.

    It was made from the schema, the number of rows and a public or a made-up table; no private
    table was opened and nothing was spent.
    """

    schema: Schema
    n_rows: int
    epsilon: Fraction
    delta: Fraction | None
    """None where none was given; then methods with Gaussian noise have that of ``publish``."""
    protect: Protection
    like: str | None
    """The public table that was rehearsed on; None for a made-up one."""
    predictions: tuple[Prediction, ...]
    refused: Mapping[str, str]
    """Methods that can't be used here, and why."""
    auto: str
    """The method that the automatic choice would begin with: it may look at paid scores then."""
    column_noise: float
    """Expected total variation of a single column, as a mean, if only columns were measured."""
    enough: tuple[int, Fraction] | None = None
    """Where that is too much: about how many rows, or which epsilon, would do."""
    seconds: float = 0.0
    """How long the rehearsals took."""

    @property
    def at_epsilon(self) -> tuple[Prediction, ...]:
        """What is predicted at the requested epsilon, the best first."""
        here = [each for each in self.predictions if each.epsilon == self.epsilon]
        return tuple(sorted(here, key=lambda each: each.predicted))

    @property
    def epsilons(self) -> tuple[Fraction, ...]:
        """All that were rehearsed, rising."""
        return tuple(sorted({each.epsilon for each in self.predictions}))

    @property
    def recommended(self) -> str:
        """The method with the least predicted error."""
        return self.at_epsilon[0].method

    @property
    def verdict(self) -> str:
        """In one sentence."""
        best = self.at_epsilon[0]
        if self.enough is not None:
            rows, epsilon = self.enough
            return (
                f"too few rows for this: noise alone would move {self.column_noise:.0%} of a "
                f"single column's rows, on average. About {rows:,} rows or epsilon "
                f"{float(epsilon):.2g} would do."
            )
        sentence = f"{best.method} is predicted to be nearest: {best.predicted:.4f}."
        if self.auto == best.method:
            return f"{sentence} It is also what auto begins with."
        begins = {each.method: each.predicted for each in self.at_epsilon}.get(self.auto)
        figure = "" if begins is None else f", predicted {begins:.4f}"
        return (
            f"{sentence} auto begins with {self.auto}{figure}, by public facts alone, and then "
            f"lets paid scores decide: choose {best.method} by its name to have that one."
        )

    def of(self, method: str, epsilon: Fraction | None = None) -> Prediction:
        """What is predicted for a method, by default at the requested epsilon."""
        requested = self.epsilon if epsilon is None else epsilon
        for each in self.predictions:
            if each.method == method and each.epsilon == requested:
                return each
        reason = self.refused.get(method, "it was not rehearsed at this epsilon")
        raise InputError(f"nothing is predicted for {method!r}: {reason}")

    def to_dict(self) -> dict[str, Any]:
        """For programs; ``rows`` is what ``sfumato plan --json`` prints."""
        return {
            "n_rows": self.n_rows,
            "epsilon": float(self.epsilon),
            "delta": None if self.delta is None else float(self.delta),
            "protect": str(self.protect),
            "like": self.like,
            "recommended": self.recommended,
            "auto": self.auto,
            "verdict": self.verdict,
            "column_noise": self.column_noise,
            "refused": dict(self.refused),
            "rows": [each.to_dict() for each in self.predictions],
        }

    def chart(self) -> str:
        """Predicted error against epsilon as SVG: the best methods and the optimum."""
        epsilons = self.epsilons
        lines = [
            Line(name=method, values=[curve[epsilon].predicted for epsilon in epsilons])
            for method, curve in self._curves.items()
        ]
        least = {e.epsilon: e.optimum for e in self.predictions if e.optimum is not None}
        if len(least) == len(epsilons):
            lines.append(Line(name=OPTIMUM, values=[least[epsilon] for epsilon in epsilons]))
        return line_chart(
            lines,
            x_labels=[f"{float(epsilon):g}" for epsilon in epsilons],
            x_values=[float(epsilon) for epsilon in epsilons],
            log_x=True,
            title="predicted error against epsilon",
            width=760,
        )

    @cached_property
    def _curves(self) -> dict[str, dict[Fraction, Prediction]]:
        """By method, those known at every epsilon, the best first, as many as can be drawn."""
        curves = {
            best.method: {e.epsilon: e for e in self.predictions if e.method == best.method}
            for best in self.at_epsilon
        }
        whole = {name: curve for name, curve in curves.items() if len(curve) == len(self.epsilons)}
        return dict(list(whole.items())[: MAX_LINES - 1])

    def _repr_html_(self) -> str:
        """A table and the chart, for notebooks."""
        rows = [
            (
                each.method,
                f"{each.predicted:.4f}",
                f"{each.low:.4f}",
                f"{each.high:.4f}",
                each.verdict,
            )
            for each in self.at_epsilon
        ]
        table = cards.rows_table(("method", "predicted", "from", "to", ""), rows)
        return cards.card(self.verdict, table, cards.charts([self.chart()]))
