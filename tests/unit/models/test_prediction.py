"""What noise does to tables of counts, told in advance: against draws and against closed forms."""

from fractions import Fraction
from itertools import combinations
from math import prod, sqrt

import numpy as np
import pytest

from sfumato.models.model import project
from sfumato.models.prediction import non_adaptive_optimum, projected_noise, unprojected_noise
from sfumato.noise import DiscreteGaussian, DiscreteLaplace
from sfumato.randomness import simulation_rng
from sfumato.schema import Integer, Schema

ROWS = 10_000
SKEWED = ROWS / np.arange(1.0, 201.0) ** 2


def integers(*sizes: int) -> Schema:
    columns = (Integer(name=f"c{n}", low=1, high=size) for n, size in enumerate(sizes))
    return Schema(columns=tuple(columns))


@pytest.mark.parametrize("laplace", [False, True])
def test_unprojected_noise_is_the_mean_of_exact_draws(laplace: bool) -> None:
    """400 draws of 200 cells: the mean is within 1% of its own, far less than the 5% allowed."""
    noise = (
        DiscreteLaplace(scale=Fraction(20)) if laplace else DiscreteGaussian(spread=Fraction(40))
    )
    drawn = noise.sample(80_000, rng=simulation_rng(1)).reshape(400, 200)
    found = np.abs(drawn).sum(axis=1).mean() / (2 * ROWS)
    told = unprojected_noise(cells=200, sigma_counts=noise.sigma_counts, rows=ROWS, laplace=laplace)
    wrong = unprojected_noise(
        cells=200, sigma_counts=1.3 * noise.sigma_counts, rows=ROWS, laplace=laplace
    )
    assert found == pytest.approx(told, rel=0.05)
    assert found != pytest.approx(wrong, rel=0.05)


@pytest.mark.parametrize("laplace", [False, True])
def test_projected_noise_is_the_mean_of_projected_exact_draws(laplace: bool) -> None:
    noise = (
        DiscreteLaplace(scale=Fraction(20)) if laplace else DiscreteGaussian(spread=Fraction(40))
    )
    total = float(SKEWED.sum())
    moved = [
        np.abs(project(SKEWED + noise.sample(200, rng=simulation_rng(seed)), total) - SKEWED).sum()
        for seed in range(100)
    ]
    found = float(np.mean(moved)) / (2 * total)
    told = projected_noise(
        SKEWED,
        sigma_counts=noise.sigma_counts,
        rng=simulation_rng(0),
        laplace=laplace,
        draws=20_000,
    )
    assert found == pytest.approx(told, rel=0.1)
    assert told < 0.7 * unprojected_noise(
        cells=200, sigma_counts=noise.sigma_counts, rows=total, laplace=laplace
    )


def test_without_noise_nothing_moves() -> None:
    assert projected_noise(SKEWED, sigma_counts=0.0, rng=simulation_rng(0)) < 1e-12


def test_the_optimum_attains_the_singular_value_bound_of_the_workload() -> None:
    """Brute force: the singular values of all queries of the workload, written as a matrix."""
    schema = integers(3, 2, 4)
    marginals = [*combinations(schema.names, 2), ("c2",)]
    shape = schema.shape(schema.names)
    cells = np.indices(shape).reshape(len(shape), -1)
    rows = []
    for marginal in marginals:
        places = [schema.names.index(name) for name in marginal]
        own = np.ravel_multi_index([cells[place] for place in places], schema.shape(marginal))
        rows.append(own == np.arange(schema.cells(marginal))[:, None])
    queries = np.vstack(rows).astype(float)
    bound = np.linalg.svd(queries, compute_uv=False).sum() / sqrt(prod(shape))
    least = non_adaptive_optimum(schema, marginals)
    squared = sum(schema.cells(m) * least[m] ** 2 for m in marginals)
    assert squared == pytest.approx(bound**2)


def test_the_optimum_beats_sharing_the_budget_evenly() -> None:
    schema = integers(5, 5, 5, 5)
    pairs = list(combinations(schema.names, 2))
    least = non_adaptive_optimum(schema, pairs)
    assert max(least.values()) < sqrt(len(pairs))
    assert min(least.values()) > 1
