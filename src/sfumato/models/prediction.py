"""Error before it is paid: what noise of a known size does to tables of counts. Pure mathematics.

Distances are expected total variations: shares of the rows that would have to move. Gaussian
noise is taken to be continuous: often a mean of many whole draws, and never far below one count.
"""

from collections.abc import Sequence
from itertools import combinations
from math import asinh, pi, prod, sqrt
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sfumato.models.model import project
from sfumato.randomness import Rng
from sfumato.schema.schema import Marginal, Schema

Floats = NDArray[np.float64]

_MOST_RUNS: Final = 100
"""The most simulated tables of one prediction; chosen by judgment."""


def unprojected_noise(
    *, cells: int, sigma_counts: float, rows: float, laplace: bool = False
) -> float:
    """Expected total variation of a measured table as it comes, before anything is cut.

    s E|x| / (2n) for s cells; it may exceed 1. For Gaussian noise E|x| = sigma sqrt(2/pi). For
    discrete Laplace noise of scale b it is 1 / sinh(1/b), and sigma^2 = 1 / (2 sinh^2(1/(2b))): so
    sigma^2 / sqrt(2 sigma^2 + 1), which is about b where b is large, and less below one count.

    >>> round(unprojected_noise(cells=100, sigma_counts=10.0, rows=1_000), 3)
    0.399
    """
    size = sigma_counts * sqrt(2 / pi)
    if laplace:
        size = sigma_counts**2 / sqrt(2 * sigma_counts**2 + 1)
    return cells * size / (2 * rows)


def projected_noise(
    counts: NDArray[np.int64] | Floats,
    *,
    sigma_counts: float,
    rng: Rng,
    laplace: bool = False,
    draws: int = 4_000,
) -> float:
    """Expected total variation of a measured table after projection to the simplex, simulated.

    Much less than before where most cells hold little: what falls below zero is cut, and a common
    amount is taken off the rest.

    Args:
        counts: A public or made-up table as the real one may be.
        sigma_counts: The standard deviation of the noise of each cell.
        rng: Of a simulation.
        laplace: Laplace noise instead of Gaussian.
        draws: Simulations are repeated until this many cells were drawn: enough for a mean.
    """
    flat = np.asarray(counts, dtype=np.float64).reshape(-1)
    total = float(flat.sum())
    runs = max(1, min(_MOST_RUNS, draws // flat.size))
    draw = _laplace if laplace else _gaussian
    noise = draw(runs * flat.size, sigma_counts, rng).reshape(runs, -1)
    moved = [np.abs(project(flat + one, total) - flat).sum() for one in noise]
    return float(np.mean(moved) / (2 * total))


def non_adaptive_optimum(schema: Schema, marginals: Sequence[Marginal]) -> dict[Marginal, float]:
    """The least noise that a fixed choice of linear queries can bring to a set of marginals.

    For each marginal the standard deviation of a cell in units of sigma, by the SVD bound, which
    one strategy attains, in closed form.
    Li, Miklau 2013, "Optimal error of query sets under the differentially-private matrix
    mechanism", arXiv 1202.3399. The workload's Gram matrix has an eigenvalue proportional to
    mu_A = sum of 1/n_C over the marginals C that contain A, on a space of d_A = prod (n_i - 1)
    dimensions for every set A of columns. With S = sum_A d_A sqrt(mu_A) and sigma^2 = 1/(2 rho)
    the summed squared error is at least sigma^2 S^2; noise shared out by sqrt(mu_A) attains it,
    and gives a cell of C the variance sigma^2 S / n_C^2 * sum over A within C of
    d_A / sqrt(mu_A). Methods that look at the data first may do better.

    >>> from sfumato.schema import Integer
    >>> schema = Schema(columns=(Integer(name="a", low=1, high=4),))
    >>> non_adaptive_optimum(schema, [("a",)])  # each cell by itself
    {('a',): 1.0}
    """
    weight: dict[Marginal, float] = {}
    for marginal in marginals:
        share = 1 / schema.cells(marginal)
        for part in _parts(marginal):
            weight[part] = weight.get(part, 0.0) + share
    freedom = {part: prod(size - 1 for size in schema.shape(part)) for part in weight}
    whole = sum(freedom[part] * sqrt(weight[part]) for part in weight)
    return {
        marginal: sqrt(whole * sum(freedom[part] / sqrt(weight[part]) for part in _parts(marginal)))
        / schema.cells(marginal)
        for marginal in marginals
    }


def _parts(marginal: Marginal) -> list[Marginal]:
    """All sets of its columns, the empty one too."""
    return [part for size in range(len(marginal) + 1) for part in combinations(marginal, size)]


def _gaussian(n: int, sigma: float, rng: Rng) -> Floats:
    """Normal numbers; Box, Muller 1958. For simulation only."""
    radius = sigma * np.sqrt(-2 * np.log1p(-rng.uniform(n)))
    return np.asarray(radius * np.cos(2 * pi * rng.uniform(n)))


def _laplace(n: int, sigma: float, rng: Rng) -> Floats:
    """Discrete Laplace numbers: the difference of two geometric ones. For simulation only."""
    if sigma == 0:
        return np.zeros(n)
    rate = 2 * asinh(1 / (sigma * sqrt(2)))
    one, other = (np.floor(-np.log1p(-rng.uniform(n)) / rate) for _ in range(2))
    return np.asarray(one - other)
