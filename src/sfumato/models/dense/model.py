"""A histogram over every cell of a small domain."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError
from sfumato.models.dense.grouping import group, sums
from sfumato.models.model import Rows, round_counts
from sfumato.randomness import Rng
from sfumato.schema.schema import Marginal, Schema

CELL_LIMIT = 10_000_000
"""The most cells a dense histogram may have: 80 MB a copy."""


@dataclass(frozen=True, kw_only=True, eq=False)
class DenseModel:
    """A count for each cell, in the shape of the schema."""

    schema: Schema
    counts: NDArray[np.float64]

    @property
    def total(self) -> float:
        """The sum of all cells."""
        return float(self.counts.sum())

    def marginal(self, names: Marginal) -> NDArray[np.float64]:
        """Counts of a marginal, in the order of the given names."""
        found = sums(self.counts.reshape(-1), group(self.schema, names))
        return found.reshape(self.schema.shape(names))

    def draw(self, n_rows: int, *, rng: Rng) -> Rows:
        """Cells rounded together, so that every cell keeps its share, then shuffled."""
        counts = round_counts(self.counts, n_rows, rng=rng).reshape(-1)
        cells = np.repeat(np.arange(counts.size), counts)[rng.permutation(n_rows)]
        codes = np.unravel_index(cells, self.counts.shape)
        return dict(zip(self.schema.names, codes, strict=True))

    def arrays(self) -> dict[str, NDArray[np.float64]]:
        """The counts."""
        return {"counts": self.counts}

    @staticmethod
    def from_arrays(schema: Schema, arrays: Mapping[str, NDArray[np.float64]]) -> "DenseModel":
        """What ``arrays`` gave."""
        return DenseModel(schema=schema, counts=arrays["counts"])


def check_size(schema: Schema, *, method: str) -> None:
    """Refuse a domain that no dense histogram can hold, before anything is allocated."""
    cells = schema.cells(schema.names)
    if cells > CELL_LIMIT:
        raise InputError(
            f"{method} keeps every combination of values, and this schema has {cells:.3g} "
            f"combinations; at most {CELL_LIMIT:,} fit. Use --method independent, coarser bins, "
            "or fewer columns."
        )
