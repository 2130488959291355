"""Marginals of two tables side by side: which are compared, how, and how many at a time."""

from itertools import combinations
from math import comb, prod

import numpy as np
from numpy.typing import NDArray

from sfumato.engine import Table, count_marginals
from sfumato.errors import InputError
from sfumato.evaluation.distances import mean_squared_error, total_variation
from sfumato.randomness import Rng
from sfumato.schema import Marginal, Schema

MOST_MARGINALS = 1_000
"""Of more marginals than this a random thousand is compared."""
MOST_CELLS = 5_000_000
"""A marginal with more cells than this is not compared."""


def comparable_degrees(schema: Schema, *, at_most: int = 3) -> range:
    """The degrees at which some marginal is small enough to be compared."""
    sizes = sorted(column.size for column in schema)[:at_most]
    return range(1, 1 + sum(prod(sizes[:d]) <= MOST_CELLS for d in range(1, len(sizes) + 1)))


def compare_marginals(
    real: Table, published: Table, degree: int, rng: Rng
) -> tuple[float, tuple[Marginal, float], float]:
    """Over the marginals of a degree: mean total variation, the worst one, mean squared error."""
    chosen = marginals_of(real.schema, degree, rng)
    distances, squares = [], []
    for part in in_batches(real.schema, chosen):
        a, b = count_marginals(real, part), count_marginals(published, part)
        distances += [distance(a[m], b[m]) for m in part]
        squares += [mean_squared_error(a[m], b[m]) for m in part]
    worst = int(np.argmax(distances))
    return float(np.mean(distances)), (chosen[worst], distances[worst]), float(np.mean(squares))


def distance(real: NDArray[np.int64], published: NDArray[np.int64]) -> float:
    """Total variation; 1 where so little was published that no row is left to compare."""
    return total_variation(real, published) if published.any() else 1.0


def marginals_of(schema: Schema, degree: int, rng: Rng) -> list[Marginal]:
    """Those of a degree that are small enough to be compared; of very many, some at random."""
    if comb(len(schema), degree) > MOST_MARGINALS:
        drawn = {
            tuple(sorted(rng.permutation(len(schema))[:degree].tolist()))
            for _ in range(MOST_MARGINALS)
        }
        every = [tuple(schema.names[place] for place in places) for places in sorted(drawn)]
    else:
        every = list(combinations(schema.names, degree))
    kept = [marginal for marginal in every if schema.cells(marginal) <= MOST_CELLS]
    if not kept:
        raise InputError(f"no marginal of {degree} columns has at most {MOST_CELLS:,} cells")
    return kept


def in_batches(schema: Schema, marginals: list[Marginal]) -> list[list[Marginal]]:
    """Marginals counted together, so many at a time that their cells fit into memory."""
    batches: list[list[Marginal]] = [[]]
    cells = 0
    for marginal in marginals:
        if batches[-1] and cells + schema.cells(marginal) > MOST_CELLS:
            batches.append([])
            cells = 0
        batches[-1].append(marginal)
        cells += schema.cells(marginal)
    return batches
