"""Independent columns: the product of one-way tables."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.models.graphical.model import draw_given
from sfumato.models.model import Rows
from sfumato.randomness import Rng
from sfumato.schema.schema import Marginal, Schema


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
        """Each column rounded by itself, in a random order of its own: nothing else is tied."""
        together = np.zeros(n_rows, dtype=np.int64)
        return {
            name: draw_given(self.shares[name][None, :], together, rng=rng, rounded=True)
            for name in self.schema.names
        }

    def arrays(self) -> dict[str, NDArray[np.float64]]:
        """The shares, one array a column, in the schema's order."""
        named = {
            f"column_{index}": self.shares[name] for index, name in enumerate(self.schema.names)
        }
        return {"total": np.array(self.total), **named}

    @staticmethod
    def from_arrays(schema: Schema, arrays: Mapping[str, NDArray[np.float64]]) -> "ProductModel":
        """What ``arrays`` gave."""
        shares = {name: arrays[f"column_{index}"] for index, name in enumerate(schema.names)}
        return ProductModel(schema=schema, total=float(arrays["total"]), shares=shares)
