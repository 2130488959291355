"""Independent columns: one noisy table each, and their product.

The least that a release can say, and at small epsilon often the best: it pays for no pair.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import sqrt
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError
from sfumato.gate import Curator
from sfumato.models.graphical.model import GraphicalModel
from sfumato.models.model import project
from sfumato.models.numbers import improved
from sfumato.privacy.guarantees import Cost, PureDP, portion, split
from sfumato.schema import Marginal, Measurement, Schema
from sfumato.schema.measurement import (
    PublicTotal,
    as_measurements,
    check_totals,
    described,
    rows_of,
)
from sfumato.schema.schema import possible
from sfumato.synthesis.algorithm import TOTAL_SHARE, Fit, total_and_rest

_LEAST_SIGMA: Final = 1e-6
"""In counts. Laplace noise at an epsilon of hundreds is so small that floats can't square it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Independent:
    """Measure every column by itself; larger columns get more of the budget."""

    rows: int | None = None
    """The number of rows, if it is public knowledge or was paid for."""
    totals: tuple[PublicTotal, ...] = ()
    """Counts of single columns that are public knowledge: those columns are not measured."""

    name: ClassVar[str] = "independent"
    takes_many_bins: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "rows", rows_of(self.totals, self.rows))

    def check(self, schema: Schema) -> None:
        """Works on every schema; public totals must be of single columns."""
        check_totals(schema, self.totals)
        for total in self.totals:
            if len(total.marginal) > 1:
                raise InputError(
                    f"independent columns can't keep the public total of {total}: it ties them. "
                    "Give totals of single columns, or choose another method."
                )

    def run(self, curator: Curator) -> Fit:
        """All columns in one look."""
        schema = curator.schema
        total, budget = self._total(curator)
        shares = {known.marginal: known.counts / known.rows for known in self.totals}
        requested: list[Marginal] = [(n,) for n in schema.names if (n,) not in shares]
        measurements = measure_columns(curator, requested, budget)  # MEASURE
        if total is None:
            total = agreed_total(measurements)
        measurements = improved(schema, measurements, known=curator.numbers, total=total)
        for measured in measurements:  # FIT
            (name,) = measured.target
            shares[name,] = _shares(measured, total, possible_codes=possible(schema, (name,)))
        model = GraphicalModel.of_tables(schema, total=total, tables=shares)
        return Fit(model=model, measurements=(*as_measurements(self.totals), *measurements))

    def describe(self) -> dict[str, Any]:
        """The public totals, if there are any."""
        return described(self.totals)

    def _total(self, curator: Curator) -> tuple[float | None, Cost]:
        """The number of rows, or None where the columns' own sums tell it more closely."""
        if curator.knows_rows or self.rows is not None:
            return total_and_rest(curator, rows=self.rows)
        sizes = column_sizes(curator, [(name,) for name in curator.schema.names])
        costs = shares_by_cells(curator.left, sizes)
        noise = [
            curator.sigma_of((n,), c) for n, c in zip(curator.schema.names, costs, strict=True)
        ]
        agreed = 1 / sqrt(sum(_precision(s, n) for s, n in zip(sizes, noise, strict=True)))
        counted = curator.sigma_of((), portion(curator.left, TOTAL_SHARE))
        return (None, curator.left) if agreed <= counted else total_and_rest(curator, rows=None)


def column_sizes(curator: Curator, columns: Sequence[Marginal]) -> list[int]:
    """How many counts each column is measured by: of numbers with bins, their parts."""
    schema = curator.schema if curator.numbers is None else curator.numbers.parts.schema
    return [schema.cells(column) for column in columns]


def measure_columns(curator: Curator, columns: Sequence[Marginal], cost: Cost) -> list[Measurement]:
    """Single columns in one look, larger ones for more; nothing where all are public."""
    if not columns:
        return []
    return measure_parts(curator, columns, shares_by_cells(cost, column_sizes(curator, columns)))


def measure_parts(
    curator: Curator, columns: Sequence[Marginal], costs: Sequence[Cost]
) -> list[Measurement]:
    """Single columns, of numbers with bins their parts."""
    if curator.numbers is None:
        return curator.measure(columns, costs=costs)
    parts = curator.numbers.parts
    measured = curator.measure(columns, costs=costs, merged=parts)
    return [
        one if set(one.target) & set(parts.groups) else replace(one, merged=None)
        for one in measured
    ]


def shares_by_cells(cost: Cost, sizes: list[int]) -> list[Cost]:
    """The split of a cost that makes the summed absolute error of several tables least.

    A table of s cells with Gaussian noise has error proportional to s / sqrt(rho), least in sum
    when rho is proportional to s^(2/3); with Laplace noise s / epsilon, so s^(1/2) (Lagrange).
    """
    power = 1 / 2 if isinstance(cost, PureDP) else 2 / 3
    return split(cost, [size**power for size in sizes])


def agreed_total(measurements: list[Measurement]) -> float:
    """The columns' noisy sums averaged by precision; each estimates the same number of rows."""
    sums = np.array([m.values.sum() for m in measurements])
    precision = np.array([_precision(m.values.size, m.sigma_counts) for m in measurements])
    return max(0.0, float(sums @ precision / precision.sum()))


def _precision(cells: int, sigma_counts: float) -> float:
    """Of the sum of a table's noisy cells."""
    return 1 / (cells * max(sigma_counts, _LEAST_SIGMA) ** 2)


def _shares(
    measurement: Measurement, total: float, *, possible_codes: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """The shares of a column's possible codes: nearest to its counts, even where it has no rows."""
    if total <= 0:
        return np.asarray(possible_codes / possible_codes.sum())
    shares = np.zeros(possible_codes.size)
    shares[possible_codes] = project(measurement.values[possible_codes], total) / total
    return shares
