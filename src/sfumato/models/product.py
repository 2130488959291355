"""Independent columns: the product of one-way tables."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.models.model import Rows, round_counts
from sfumato.randomness import Rng
from sfumato.schema.table import Marginal, Schema


@dataclass(frozen=True, kw_only=True, eq=False)
class ProductModel:
    """A share for each code of each column; columns are independent."""

    schema: Schema
    total: float
    shares: dict[str, NDArray[np.float64]]

    def marginal(self, names: Marginal) -> NDArray[np.float64]:
        """The outer product of the columns' shares, in counts."""
        counts = np.array(self.total)
        for name in names:
            counts = np.multiply.outer(counts, self.shares[name])
        return counts

    def draw(self, n_rows: int, *, rng: Rng) -> Rows:
        """Each column rounded by itself, then shuffled by itself: nothing else is tied."""
        rows = {}
        for column in self.schema:
            counts = round_counts(self.shares[column.name], n_rows, rng=rng)
            codes = np.repeat(np.arange(column.size), counts)
            rows[column.name] = codes[rng.permutation(n_rows)]
        return rows

    def arrays(self) -> dict[str, NDArray[np.float64]]:
        """The shares, one array a column, in the schema's order."""
        named = {
            f"column_{place}": self.shares[name] for place, name in enumerate(self.schema.names)
        }
        return {"total": np.array(self.total), **named}
