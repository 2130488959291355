"""Marginals side by side: distances against their formulas, and which marginals are compared."""

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from sfumato.evaluation import marginals
from sfumato.evaluation.marginals import (
    compare_counts,
    compare_distances,
    marginals_of,
    mean_squared_error,
)
from sfumato.lab.tables import independent_table, integer_schema
from sfumato.local.frequency.grr import Grr
from sfumato.randomness import simulation_rng
from sfumato.readers.array_table import ArrayTable


def table(sizes, codes):
    schema = integer_schema(tuple(sizes))
    return ArrayTable(schema, dict(zip(schema.names, codes, strict=True)))


def made(seed, *, rows):
    rng = simulation_rng(seed)
    return np.array([rng.below(size, rows) for size in SIZES])


def compared(real, published, degree, rng):
    """Mean total variation and mean squared error over the marginals of a degree."""
    chosen = marginals_of(real.schema, degree, rng)
    distances = compare_distances(real, [published], chosen)[0]
    return distances.mean, compare_counts(real, [published], chosen)[0]


SIZES = (3, 2, 4)
REAL, PUBLISHED = made(1, rows=50), made(2, rows=80)


@pytest.mark.parametrize("degree", [1, 2, 3])
def test_total_variation_is_the_mean_over_all_marginals(degree):
    distances = []
    for chosen in combinations(range(3), degree):
        shape = tuple(SIZES[index] for index in chosen)
        real, published = (
            np.bincount(np.ravel_multi_index(tuple(x[list(chosen)]), shape), minlength=24)
            / x.shape[1]
            for x in (REAL, PUBLISHED)
        )
        distances.append(np.abs(real - published).sum() / 2)
    tables = table(SIZES, REAL), table(SIZES, PUBLISHED)
    mean, _ = compared(*tables, degree, simulation_rng(0))
    assert mean == pytest.approx(np.mean(distances))


def test_the_count_error_is_a_mean_over_codes_then_columns_without_the_rows():
    real, published = table((2, 4), [[0, 0, 1], [0, 1, 2]]), table((2, 4), [[0, 1, 1], [3, 3, 3]])
    _, error = compared(real, published, 1, simulation_rng(0))
    assert error == (1 + (1 + 1 + 1 + 9) / 4) / 2


@pytest.mark.parametrize(
    ("columns", "rows", "distance", "error"),
    [(50, 10_000, (0.0626, 0.0008), (160.8, 3.9)), (50, 1_000, (0.197, 0.003), (16.1, 0.4))],
)
def test_the_documents_experiment_has_its_known_values_at_every_epsilon(
    columns, rows, distance, error
):
    """d columns of 100 to 150 codes, i.i.d. uniform: only the sampling noise of n rows is seen.

    Published at eps/d per column: sqrt(k / (pi n)) and 2 n / k, whatever epsilon is. Each
    figure lies within 3 standard deviations, a false alarm of 0.3%.
    """
    rng = simulation_rng(rows)
    sizes, codes = independent_table(columns, sizes_between=(100, 150), rows=rows, rng=rng)
    real = table(sizes, codes)
    for epsilon in (1, 10):
        answers = [
            Grr(categories=size, epsilon=Fraction(epsilon, columns)).answer_many(column, rng=rng)
            for size, column in zip(sizes, codes, strict=True)
        ]
        published = table(sizes, answers)
        tv, mse = compared(real, published, 1, rng)
        assert abs(tv - distance[0]) < 3 * distance[1]
        assert abs(mse - error[0]) < 3 * error[1]


def test_the_mean_squared_error_is_the_mean_over_all_cells():
    assert mean_squared_error(np.array([[1, 2], [3, 4]]), np.array([[1, 4], [3, 3]])) == 5 / 4


def test_unsigned_counts_do_not_wrap_around():
    small, large = np.array([1], dtype=np.uint8), np.array([3], dtype=np.uint8)
    assert mean_squared_error(small, large) == 4


def test_as_many_different_marginals_as_requested_are_drawn():
    schema = integer_schema((2,) * 20)
    chosen = marginals_of(schema, 3, simulation_rng(0), most=64)
    assert len(set(chosen)) == 64
    assert all(len(set(marginal)) == 3 for marginal in chosen)
    assert chosen != marginals_of(schema, 3, simulation_rng(1), most=64)


def test_marginals_that_are_too_large_together_are_cut_to_a_random_part(monkeypatch):
    schema = integer_schema((10,) * 8)
    monkeypatch.setattr(marginals, "MOST_CELLS_TOGETHER", 1_000)
    chosen = marginals_of(schema, 2, simulation_rng(0))
    assert len(set(chosen)) == 10
    assert chosen != marginals_of(schema, 2, simulation_rng(1))


def test_distances_say_how_many_of_all_marginals_were_compared():
    codes = {str(n): np.arange(2_000) % 2 for n in range(6)}
    table = ArrayTable(integer_schema((2,) * 6), codes)
    chosen = marginals_of(table.schema, 2, simulation_rng(0), most=5)
    (result,) = compare_distances(table, [table], chosen)
    assert (result.compared, result.of, result.max) == (5, 15, 0)
    assert result.to_dict()["worst"] == list(result.worst)
