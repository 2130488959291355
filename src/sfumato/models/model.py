"""The seam between fitting and publishing: a model gives marginals in counts and draws rows.

With it what all models use: counts that could exist (whole, or not negative with a given sum), how
far two tables of counts are apart, and rows without those that the schema declares impossible.
Where a model knows nothing of such a declaration, rows that contradict it are drawn again. That is
the model given that the row is possible: it moves the marginals of the columns concerned a little.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.errors import InputError, InternalError
from sfumato.randomness import Rng
from sfumato.schema.codes import encode
from sfumato.schema.schema import Marginal, Schema, possible_codes, possible_rows
from sfumato.schema.workload import Range, sum_ranges

Rows = Mapping[str, NDArray[np.int64]]
"""Codes by column name, all of one length."""
Counts = NDArray[np.float64] | NDArray[np.int64]


class Model(Protocol):
    """A distribution over the cells of a schema with a total, fitted to measurements."""

    @property
    def schema(self) -> Schema:
        """Its columns."""

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


def project(counts: NDArray[np.float64], total: float) -> NDArray[np.float64]:
    """The nearest counts in Euclidean distance that are >= 0 and sum to ``total``.

    Subtract one number from all and cut at zero; it is computed from the sorted counts. Also
    known as norm-sub. Held, Wolfe, Crowder 1974, "Validation of subgradient optimization"; Wang
    et al. 2020, arXiv 1905.08320, section 4.

    >>> project(np.array([3.0, 1.0, -2.0]), 3.0).tolist()
    [2.5, 0.5, 0.0]
    """
    if not np.isfinite(counts).all() or not 0 <= total < np.inf:
        raise InternalError("noisy counts must be finite and their total must not be negative")
    # Relative to the largest count, and no farther down than the total: all that lies below becomes
    # zero, and so counts that are huge against the total lose no digits.
    below = np.maximum(counts.reshape(-1) - counts.max(), -total)
    falling = np.sort(below)[::-1]
    excess = (np.cumsum(falling) - total) / np.arange(1, below.size + 1)
    positive = np.flatnonzero(falling > excess)
    shift = excess[positive[-1]] if positive.size else 0.0  # none is positive for a total of zero
    return np.asarray(np.maximum(below - shift, 0.0)).reshape(counts.shape)


def estimated_total(counts: NDArray[np.float64]) -> float:
    """The sum of noisy counts, never below zero: the total where none was declared."""
    return max(0.0, float(counts.sum()))


MOST_ROUNDS: Final = 64
"""How often impossible rows are drawn again: of a model that is possible in one row of ten, one
impossible row in 850 is left, which then borrows from a possible one."""


def draw_possible(model: Model, n_rows: int, *, rng: Rng) -> Rows:
    """Rows of the model, none of which is impossible."""
    rows = dict(model.draw(n_rows, rng=rng))
    if not model.schema.impossible:
        return rows
    wrong = np.flatnonzero(~possible_rows(model.schema, rows))
    for _ in range(MOST_ROUNDS):
        if not wrong.size:
            break
        fresh = model.draw(wrong.size, rng=rng)
        good = possible_rows(model.schema, fresh)
        for name in rows:
            rows[name][wrong[good]] = fresh[name][good]
        wrong = wrong[~good]
    return repaired(model.schema, rows, rng=rng) if wrong.size else rows


def repaired(schema: Schema, rows: Rows, *, rng: Rng) -> Rows:
    """Rows in which each impossible one borrows the columns concerned from a possible one.

    The columns that no declaration names stay as they are. Where no row is possible, all take the
    same values, computed from the declaration alone.
    """
    good = possible_rows(schema, rows)
    wrong, donors = np.flatnonzero(~good), np.flatnonzero(good)
    if not wrong.size:
        return rows
    out = {name: np.array(codes) for name, codes in rows.items()}
    for name, code in possible_codes(schema).items():
        out[name][wrong] = code
    if donors.size:
        chosen = donors[rng.below(donors.size, wrong.size)]
        for name in {name for each in schema.impossible for name in each.names}:
            out[name][wrong] = rows[name][chosen]
    return out


def total_variation(real: Counts, published: Counts) -> float:
    """Half the summed absolute difference of the shares of the cells: 0 equal, 1 disjoint.

    >>> total_variation(np.array([1.0, 3.0]), np.array([1.0, 1.0]))
    0.25
    """
    check_same_shape(real, published)
    if not real.sum() > 0 or not published.sum() > 0:
        raise InputError("total variation needs counts with a sum above zero")
    return float(np.abs(real / real.sum() - published / published.sum()).sum() / 2)


def check_same_shape(real: Counts, published: Counts) -> None:
    """Refuse tables that can't be compared cell by cell."""
    if real.shape != published.shape or not real.size:
        raise InputError(
            f"counts to compare need one shape and at least one cell, got {real.shape} and "
            f"{published.shape}"
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class PublishedRows:
    """What stands instead of a model where there is none: the rows themselves, as codes.

    Answers that were redrawn one by one are such rows. They can be counted, and some of them
    taken, but there is nothing to draw more of them from.
    """

    schema: Schema
    codes: Rows

    @property
    def total(self) -> float:
        """How many rows there are: public, as they are."""
        return float(self._rows)

    def marginal(self, names: Marginal) -> NDArray[np.float64]:
        """The rows in each cell, counted."""
        shape = self.schema.shape(names)
        cells = np.ravel_multi_index([self.codes[name].astype(np.intp) for name in names], shape)
        counts = np.bincount(cells, minlength=self.schema.cells(names))
        return counts.reshape(shape).astype(np.float64)

    def draw(self, n_rows: int, *, rng: Rng) -> Rows:
        """Some or all of the rows, in random order; never more than there are."""
        if n_rows > self._rows:
            raise InputError(
                f"n_rows is {n_rows:,}, but this release holds {self._rows:,} rows and no model "
                "to draw others from. Ask for no more than that."
            )
        chosen = rng.permutation(self._rows)[:n_rows]
        return {name: column[chosen].astype(np.int64) for name, column in self.codes.items()}

    def arrays(self) -> dict[str, NDArray[np.float64]]:
        """Nothing: the rows are in the table beside."""
        return {}

    @staticmethod
    def of(schema: Schema, data: pa.Table) -> "PublishedRows":
        """The codes of published values."""
        codes = {c.name: encode(c, data[c.name].combine_chunks()).astype(int) for c in schema}
        return PublishedRows(schema=schema, codes=codes)

    @property
    def _rows(self) -> int:
        return len(self.codes[self.schema.names[0]])
