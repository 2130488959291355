"""Independent columns: one noisy table each, and their product.

The least that a release can say, and at small epsilon often the best: it pays for no pair.
"""

from dataclasses import dataclass
from math import sqrt
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sfumato import check
from sfumato.curator import Curator
from sfumato.models import simplex
from sfumato.models.product import ProductModel
from sfumato.privacy.guarantees import Cost, PureDP, portion, split
from sfumato.schema import Measurement, Schema
from sfumato.synthesis.algorithm import TOTAL_SHARE, Fit, total_and_rest


@dataclass(frozen=True, kw_only=True, slots=True)
class Independent:
    """Measure every column by itself; larger columns get more of the budget."""

    rows: int | None = None
    """The number of rows, if it is public knowledge or was paid for."""

    name: ClassVar[str] = "independent"

    def __post_init__(self) -> None:
        if self.rows is not None:
            check.whole(at_least=1, rows=self.rows)

    def check(self, schema: Schema) -> None:
        """Works on every schema."""

    def run(self, curator: Curator) -> Fit:
        """All columns in one look."""
        schema = curator.schema
        total, budget = self._total(curator)
        costs = shares_by_cells(budget, [column.size for column in schema])
        seen = curator.measure([(name,) for name in schema.names], costs=costs)  # MEASURE
        if total is None:
            total = _agreed_total(seen)
        shares = dict(zip(schema.names, (_shares(m, total) for m in seen), strict=True))  # FIT
        model = ProductModel(schema=schema, total=total, shares=shares)
        return Fit(model=model, measurements=tuple(seen))

    def describe(self) -> dict[str, Any]:
        """No options."""
        return {}

    def _total(self, curator: Curator) -> tuple[float | None, Cost]:
        """The number of rows, or None where the columns' own sums tell it more closely."""
        if curator.knows_rows or self.rows is not None:
            return total_and_rest(curator, rows=self.rows)
        sizes = [column.size for column in curator.schema]
        costs = shares_by_cells(curator.left, sizes)
        noise = [
            curator.sigma_of((n,), c) for n, c in zip(curator.schema.names, costs, strict=True)
        ]
        agreed = 1 / sqrt(sum(1 / (s * sigma**2) for s, sigma in zip(sizes, noise, strict=True)))
        counted = curator.sigma_of((), portion(curator.left, TOTAL_SHARE))
        return (None, curator.left) if agreed <= counted else total_and_rest(curator, rows=None)


def shares_by_cells(cost: Cost, sizes: list[int]) -> list[Cost]:
    """The split of a cost that makes the summed absolute error of several tables least.

    A table of s cells with Gaussian noise has error proportional to s / sqrt(rho), least in sum
    when rho is proportional to s^(2/3); with Laplace noise s / epsilon, so s^(1/2) (Lagrange).
    """
    power = 1 / 2 if isinstance(cost, PureDP) else 2 / 3
    return split(cost, [size**power for size in sizes])


def _agreed_total(seen: list[Measurement]) -> float:
    """The columns' noisy sums averaged by precision; each estimates the same number of rows."""
    sums = np.array([m.values.sum() for m in seen])
    precision = np.array([1 / (m.values.size * m.sigma_counts**2) for m in seen])
    return max(0.0, float(sums @ precision / precision.sum()))


def _shares(measurement: Measurement, total: float) -> NDArray[np.float64]:
    if total <= 0:
        return np.full(measurement.values.size, 1 / measurement.values.size)
    return simplex.project(measurement.values, total) / total
