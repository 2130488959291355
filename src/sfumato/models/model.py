"""The seam between fitting and publishing: a model gives marginals in counts and draws rows."""

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InternalError
from sfumato.randomness import Rng
from sfumato.schema.schema import Marginal, Schema
from sfumato.schema.workload import Range, sum_ranges

Rows = Mapping[str, NDArray[np.int64]]
"""Codes by column name, all of one length."""


class Model(Protocol):
    """A distribution over the cells of a schema with a total, fitted to measurements."""

    @property
    def schema(self) -> Schema:
        """The columns it speaks of."""

    @property
    def total(self) -> float:
        """The number of rows it stands for."""

    def marginal(self, names: Marginal) -> NDArray[np.float64]:
        """Counts of a marginal, in the order of the given names."""

    def draw(self, n_rows: int, *, rng: Rng) -> Rows:
        """Rows in random order whose counts follow the model."""

    def arrays(self) -> dict[str, NDArray[np.float64]]:
        """What a release saves of it."""


def answer_ranges(model: Model, ranges: Sequence[Range]) -> NDArray[np.float64]:
    """The model's counts inside ranges, each marginal computed once."""
    return sum_ranges(model.schema, ranges, model.marginal)


def round_counts(counts: NDArray[np.float64], n: int, *, rng: Rng) -> NDArray[np.int64]:
    """Whole counts that sum to ``n``, each within one of its share, right on average.

    Systematic sampling: one uniform offset, then every n-th part of the mass. Less variance than
    n independent draws and no bias. Madow 1949, "On the theory of systematic sampling, II".
    """
    mass = np.cumsum(counts.reshape(-1))
    if not counts.min() >= 0 or not mass[-1] < np.inf:
        raise InternalError("counts to draw from must be finite and not negative")
    if mass[-1] == 0:
        mass = np.arange(1.0, counts.size + 1)  # nothing is known: uniform
    offset = float(rng.uniform(1)[0])
    share = mass / mass[-1]  # exactly 1 from the last cell that holds anything on
    reached = np.minimum(np.floor(share * n + offset).astype(np.int64), n)
    return np.asarray(np.diff(reached, prepend=0)).reshape(counts.shape)
