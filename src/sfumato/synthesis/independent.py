"""Independent columns: one noisy table each, and their product.

The least that a release can say, and at small epsilon often the best: it pays for no pair.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from sfumato.curator import Curator
from sfumato.models import simplex
from sfumato.models.product import ProductModel
from sfumato.privacy.guarantees import Cost, PureDP, split
from sfumato.schema import Measurement, Schema
from sfumato.synthesis.algorithm import Fit


@dataclass(frozen=True, kw_only=True, slots=True)
class Independent:
    """Measure every column by itself; larger columns get more of the budget."""

    name: ClassVar[str] = "independent"

    def check(self, schema: Schema) -> None:
        """Works on every schema."""

    def run(self, curator: Curator) -> Fit:
        """All columns in one look."""
        schema = curator.schema
        targets = [(name,) for name in schema.names]
        costs = shares_by_cells(curator.left, [column.size for column in schema])
        seen = curator.measure(targets, costs=costs)  # MEASURE
        known = float(curator.total().values) if curator.knows_rows else None
        total = _agreed_total(seen) if known is None else known
        shares = dict(zip(schema.names, (_shares(m, total) for m in seen), strict=True))  # FIT
        model = ProductModel(schema=schema, total=total, shares=shares)
        return Fit(model=model, measurements=tuple(seen))

    def describe(self) -> dict[str, Any]:
        """No options."""
        return {}


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


def _shares(measurement: Measurement, total: float) -> np.ndarray:
    if total <= 0:
        return np.full(measurement.values.size, 1 / measurement.values.size)
    return simplex.project(measurement.values, total) / total
