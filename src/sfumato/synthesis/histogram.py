"""The noisy histogram: every cell of the domain is counted once, with noise.

Hard to beat while the domain is small against n * epsilon: one count a row, no composition.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

from sfumato.curator import Curator
from sfumato.models import simplex
from sfumato.models.dense import DenseModel, check_size
from sfumato.schema import Schema
from sfumato.synthesis.algorithm import Fit


@dataclass(frozen=True, kw_only=True, slots=True)
class Histogram:
    """Measure the whole table, then take the nearest counts that could exist."""

    name: ClassVar[str] = "histogram"

    def check(self, schema: Schema) -> None:
        """The domain must fit into memory."""
        check_size(schema, method=self.name)

    def run(self, curator: Curator) -> Fit:
        """One measurement with all of the budget."""
        self.check(curator.schema)
        (seen,) = curator.measure([curator.schema.names], costs=[curator.left])  # MEASURE
        known = float(curator.total().values) if curator.knows_rows else None
        total = simplex.estimated_total(seen.values) if known is None else known
        counts = simplex.project(seen.values, total)  # FIT
        return Fit(model=DenseModel(schema=curator.schema, counts=counts), measurements=(seen,))

    def describe(self) -> dict[str, Any]:
        """No options."""
        return {}
