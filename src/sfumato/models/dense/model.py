"""A histogram over every cell of a small domain, which can be made to agree with public totals."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError
from sfumato.models.dense.grouping import group, sums
from sfumato.models.model import Rows, round_counts
from sfumato.randomness import Rng
from sfumato.schema.measurement import PublicTotal
from sfumato.schema.schema import Marginal, Schema, possible

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


MOST_ROUNDS: Final = 200
CLOSE: Final = 1e-9
"""Raking stops when no cell of a total is off by more than this part of all rows."""
_LIFT: Final = 1e-6
"""Rows that a cell gets where a total wants some and the histogram has none."""


def rake(model: DenseModel, totals: Sequence[PublicTotal]) -> DenseModel:
    """The histogram scaled along each total in turn until all agree.

    Iterative proportional fitting (Deming, Stephan 1940): what the histogram says beyond the
    totals, its odds ratios, stays. A group of cells without any rows can't be scaled; where a
    total wants some, its possible cells share them evenly.

    >>> schema = Schema.from_dict({"a": 2, "b": 2})
    >>> made = DenseModel(schema=schema, counts=np.array([[2.0, 2.0], [1.0, 3.0]]))
    >>> rake(made, [PublicTotal(marginal=("a",), counts=np.array([8, 2]))]).counts.tolist()
    [[4.0, 4.0], [0.5, 1.5]]
    """
    if not totals:
        return model
    schema, counts = model.schema, np.array(model.counts)
    lifted = possible(schema, schema.names) * _LIFT
    for _ in range(MOST_ROUNDS):
        worst = 0.0
        for total in totals:
            others = _others(schema, total)
            held, wanted = counts.sum(axis=others, keepdims=True), _spread(schema, total)
            worst = max(worst, float(np.abs(held - wanted).max()))
            if ((held <= 0) & (wanted > 0)).any():
                counts += np.where((held <= 0) & (wanted > 0), lifted, 0.0)
                held = counts.sum(axis=others, keepdims=True)
            counts *= np.divide(wanted, held, out=np.zeros_like(held), where=held > 0)
        if worst <= CLOSE * totals[0].rows:
            break
    return DenseModel(schema=schema, counts=counts)


def _others(schema: Schema, total: PublicTotal) -> tuple[int, ...]:
    return tuple(a for a, name in enumerate(schema.names) if name not in total.marginal)


def _spread(schema: Schema, total: PublicTotal) -> NDArray[np.float64]:
    """A total with an axis of length 1 for each column that it does not name."""
    return np.expand_dims(total.counts, _others(schema, total))
