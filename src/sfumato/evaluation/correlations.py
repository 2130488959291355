"""Dependence of pairs of columns: correlations and mutual information, from two-way counts."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import isqrt
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sfumato.counting.exact_counts import count_marginals
from sfumato.counting.table import Table
from sfumato.errors import InputError
from sfumato.evaluation.marginals import MOST_CELLS, in_batches
from sfumato.evaluation.rows import regular_values
from sfumato.models.information import mutual_information
from sfumato.randomness import Rng
from sfumato.schema import Marginal, Schema

Matrix = NDArray[np.float64]

MOST_VALUES: Final = isqrt(MOST_CELLS)
"""A column of more values is left out: the table of it and another could be too large."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Correlations:
    """The correlations of every two columns, real and published. Internal: it is not private.

    Of two ordered columns Spearman's rank correlation, from -1 to 1, of the rows where both have
    a regular value; of any other two Cramér's V, from 0 to 1, corrected for its bias.
    """

    columns: Marginal
    """Those compared; if fewer than ``of``, without those of very many values, or at random."""
    of: int
    """How many columns there are."""
    real: Matrix
    """A row and a column for each of ``columns``; 1 on the diagonal."""
    published: Matrix

    @property
    def error(self) -> float:
        """The mean over pairs of the absolute difference."""
        return float(np.mean(self._gaps))

    @property
    def worst(self) -> tuple[Marginal, float]:
        """The pair with the largest difference."""
        pairs = list(combinations(self.columns, 2))
        index = int(np.argmax(self._gaps))
        return pairs[index], float(self._gaps[index])

    @property
    def _gaps(self) -> Matrix:
        above = np.triu_indices(len(self.columns), 1)
        return np.abs(self.real - self.published)[above]

    def summary(self) -> dict[str, Any]:
        """The figures without the matrices."""
        pair, gap = self.worst
        return {"error": self.error, "worst": {"marginal": list(pair), "difference": gap}}

    def to_dict(self) -> dict[str, Any]:
        """For ``--json``."""
        return {
            **self.summary(),
            "columns": list(self.columns),
            "of": self.of,
            "real": np.round(self.real, 4).tolist(),
            "published": np.round(self.published, 4).tolist(),
        }


def cramers_v(counts: NDArray[Any]) -> float:
    """How strongly two columns without an order depend on each other: 0 not at all, 1 fully.

    V = sqrt(f / min(r' - 1, k' - 1)) with f = max(0, chi^2 / n - (r - 1) (k - 1) / (n - 1)),
    r' = r - (r - 1)^2 / (n - 1) and k' alike, for r rows and k columns that are not empty:
    Bergsma 2013, "A bias-correction for Cramér's V and Tschuprow's T". Without the correction
    independent columns of many values look dependent. 0 where one of them shows a single value.

    >>> cramers_v(np.array([[50, 0], [0, 50]])), cramers_v(np.array([[25, 25], [25, 25]]))
    (1.0, 0.0)
    """
    table = np.asarray(counts, float)
    table = table[table.sum(axis=1) > 0][:, table.sum(axis=0) > 0]
    n, (r, k) = table.sum(), table.shape
    if min(r, k) < 2 or n < 2:
        return 0.0
    product = np.outer(table.sum(axis=1), table.sum(axis=0)) / n
    phi = float(((table - product) ** 2 / product).sum() / n)
    excess = max(0.0, phi - (r - 1) * (k - 1) / (n - 1))
    least = min(r - (r - 1) ** 2 / (n - 1), k - (k - 1) ** 2 / (n - 1)) - 1
    return float(min(1.0, np.sqrt(excess / least))) if least > 0 else 0.0


def rank_correlation(counts: NDArray[Any]) -> float:
    """Spearman's rank correlation of two ordered columns, ties at their mean rank.

    Pearson's correlation of the ranks: Spearman 1904, "The proof and measurement of association
    between two things". 0 where one of the columns shows a single value.

    >>> rank_correlation(np.array([[0, 0, 5], [0, 5, 0], [5, 0, 0]]))
    -1.0
    """
    table = np.asarray(counts, float)
    if not table.any():
        return 0.0
    shares = table / table.sum()
    x, y = _centered_ranks(shares.sum(axis=1)), _centered_ranks(shares.sum(axis=0))
    spread = (shares.sum(axis=1) @ x**2) * (shares.sum(axis=0) @ y**2)
    if spread <= 0:
        return 0.0
    return float(np.clip(np.round(x @ shares @ y / np.sqrt(spread), 12), -1, 1))


def correlation(schema: Schema, pair: Marginal, counts: NDArray[Any]) -> float:
    """The correlation for a pair of columns: of ranks if both are ordered, else Cramér's V."""
    x, y = (schema[name] for name in pair)
    if x.ordered and y.ordered:
        return rank_correlation(counts[: regular_values(x), : regular_values(y)])
    return cramers_v(counts)


def comparable_columns(schema: Schema) -> Marginal:
    """The columns with so few values that any two can be compared.

    Raises:
        InputError: there are fewer than two.
    """
    small = tuple(column.name for column in schema if column.size <= MOST_VALUES)
    if len(small) < 2:
        raise InputError(
            f"correlations need two columns of at most {MOST_VALUES:,} values, this schema has "
            f"{len(small)}. Use wider bins."
        )
    return small


def chosen_columns(schema: Schema, *, most: int, rng: Rng) -> Marginal:
    """The columns that are compared: all that can be, or of more than ``most`` some at random."""
    small = comparable_columns(schema)
    if len(small) <= most:
        return small
    return tuple(small[index] for index in np.sort(rng.permutation(len(small))[:most]))


def compare_correlations(
    real: Table, others: Sequence[Table], columns: Marginal
) -> list[Correlations]:
    """The correlations of some columns in a table, beside those in each other one."""
    truth = _matrix(real, columns)
    return [
        Correlations(
            columns=columns, of=len(real.schema), real=truth, published=_matrix(table, columns)
        )
        for table in others
    ]


def compare_information(
    real: Table, others: Sequence[Table], pairs: Sequence[Marginal]
) -> list[float]:
    """The mean over pairs of columns of |I - I'|, their mutual information, in nats.

    One of the measures of Jiang et al. 2023, "DP2-Pub", arXiv 2208.11693. On independent uniform
    columns it is the sampling noise of n rows only, the same for every epsilon: use real data.
    A table without rows shows no dependence.
    """
    truth = _information(real, pairs)
    return [float(np.mean(np.abs(truth - _information(table, pairs)))) for table in others]


def _information(table: Table, pairs: Sequence[Marginal]) -> Matrix:
    nats: list[float] = []
    for part in in_batches(table.schema, pairs):
        counts = count_marginals(table, part)
        nats += [mutual_information(counts[p]) if counts[p].any() else 0.0 for p in part]
    return np.array(nats)


def _matrix(table: Table, columns: Marginal) -> Matrix:
    index = {name: at for at, name in enumerate(columns)}
    matrix = np.eye(len(columns))
    for part in in_batches(table.schema, list(combinations(columns, 2))):
        counts = count_marginals(table, part)
        for x, y in part:
            value = correlation(table.schema, (x, y), counts[x, y])
            matrix[index[x], index[y]] = matrix[index[y], index[x]] = value
    return matrix


def _centered_ranks(shares: Matrix) -> Matrix:
    """The mean rank of each value, as a share of all rows, less the mean rank of all."""
    return np.asarray(np.cumsum(shares) - shares / 2 - 0.5)
