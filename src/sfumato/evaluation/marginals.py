"""Marginals of tables side by side: which are compared, how, and how many at a time."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from math import comb, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.counting.exact_counts import count_marginals
from sfumato.counting.table import Table
from sfumato.errors import InputError
from sfumato.models.model import Counts, check_same_shape, total_variation
from sfumato.randomness import Rng
from sfumato.schema import Marginal, Schema

MOST_MARGINALS = 1_000
"""Of more marginals than this a random thousand is compared."""
MOST_CELLS = 5_000_000
"""A marginal with more cells than this is not compared."""
MOST_CELLS_TOGETHER = 200_000_000
"""Of marginals with more cells than this together, a random part with fewer is compared."""

Judge = Callable[[NDArray[np.int64], NDArray[np.int64]], float]
"""How far the published counts of one marginal are from the real ones."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Distances:
    """Total variation over the marginals of one degree. Internal: it is not private."""

    mean: float
    min: float
    max: float
    worst: Marginal
    """The marginal with the largest distance."""
    compared: int
    """How many marginals; if fewer than ``of``, they were taken at random."""
    of: int
    """How many marginals of this degree there are."""

    def to_dict(self) -> dict[str, Any]:
        """For ``--json``."""
        return asdict(self) | {"worst": list(self.worst)}


def comparable_degrees(schema: Schema, *, at_most: int = 3) -> range:
    """The degrees at which some marginal is small enough to be compared."""
    sizes = sorted(column.size for column in schema)[:at_most]
    return range(1, 1 + sum(prod(sizes[:d]) <= MOST_CELLS for d in range(1, len(sizes) + 1)))


def compare_distances(
    real: Table, others: Sequence[Table], marginals: Sequence[Marginal]
) -> list[Distances]:
    """The total variation of marginals of one degree between a table and each other one."""
    results = []
    for row in _per_marginal(real, others, marginals, distance):
        worst = int(np.argmax(row))
        results.append(
            Distances(
                mean=float(np.mean(row)),
                min=float(np.min(row)),
                max=float(row[worst]),
                worst=marginals[worst],
                compared=len(marginals),
                of=comb(len(real.schema), len(marginals[0])),
            )
        )
    return results


def compare_counts(
    real: Table, others: Sequence[Table], marginals: Sequence[Marginal]
) -> list[float]:
    """The mean over marginals of the mean squared error of counts, for each other table."""
    rows = _per_marginal(real, others, marginals, mean_squared_error)
    return [float(np.mean(row)) for row in rows]


def mean_squared_error(real: Counts, published: Counts) -> float:
    """The mean over cells of the squared difference of counts."""
    check_same_shape(real, published)
    return float(np.mean((np.asarray(real, float) - published) ** 2))


def distance(real: NDArray[np.int64], published: NDArray[np.int64]) -> float:
    """Total variation; 1 where so little was published that no row is left to compare."""
    return total_variation(real, published) if published.any() else 1.0


def marginals_of(
    schema: Schema, degree: int, rng: Rng, *, most: int = MOST_MARGINALS
) -> list[Marginal]:
    """Those of a degree that are small enough to be compared; of very many, some at random."""
    drawn = _drawn(len(schema), degree, most, rng)
    every = [tuple(schema.names[index] for index in indices) for indices in drawn]
    small = [marginal for marginal in every if schema.cells(marginal) <= MOST_CELLS]
    if not small:
        raise InputError(f"no marginal of {degree} columns has at most {MOST_CELLS:,} cells")
    if sum(map(schema.cells, small)) <= MOST_CELLS_TOGETHER:
        return small
    shuffled = rng.permutation(len(small))
    together = np.cumsum([schema.cells(small[index]) for index in shuffled])
    few = shuffled[: np.searchsorted(together, MOST_CELLS_TOGETHER, side="right")]
    return [small[index] for index in np.sort(few)]


def in_batches(schema: Schema, marginals: Sequence[Marginal]) -> list[list[Marginal]]:
    """Lists of marginals that are counted together: the cells of each list fit into memory."""
    batches: list[list[Marginal]] = [[]]
    cells = 0
    for marginal in marginals:
        if batches[-1] and cells + schema.cells(marginal) > MOST_CELLS:
            batches.append([])
            cells = 0
        batches[-1].append(marginal)
        cells += schema.cells(marginal)
    return batches


def _per_marginal(
    real: Table, others: Sequence[Table], marginals: Sequence[Marginal], judge: Judge
) -> NDArray[np.float64]:
    """The value of ``judge`` for each other table (row) and marginal (column)."""
    results: list[list[float]] = []
    for part in in_batches(real.schema, marginals):
        truth = count_marginals(real, part)
        counts = [count_marginals(table, part) for table in others]
        results += [[judge(truth[m], each[m]) for each in counts] for m in part]
    return np.array(results).T


def _drawn(columns: int, degree: int, most: int, rng: Rng) -> list[tuple[int, ...]]:
    """All ways to choose columns; of more than ``most``, that many different ones at random."""
    if comb(columns, degree) <= most:
        return list(combinations(range(columns), degree))
    chosen: set[tuple[int, ...]] = set()
    while len(chosen) < most:
        chosen.add(tuple(sorted(rng.permutation(columns)[:degree].tolist())))
    return sorted(chosen)
