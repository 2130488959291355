"""Document 000's experiment: 50 uniform columns of 100 to 150 values, randomized and compared.

The figures are those of sampling noise, TVD = sqrt(k (1 - p)/(pi n)) and MSE = 2 n (1 - p)/k with p
the chance that an answer is true, which is near 0 here: they do not depend on epsilon.
"""

from fractions import Fraction
from math import pi

import numpy as np
import pytest

from sfumato.evaluation.marginals import compare_counts, compare_distances, marginals_of
from sfumato.lab.tables import independent_table, integer_schema
from sfumato.local.frequency.grr import Grr
from sfumato.randomness import simulation_rng
from sfumato.readers.array_table import ArrayTable

COLUMNS, SIZES = 50, (100, 150)
SEEDS = range(3)

LIMITS = {10_000: ((0.0626, 0.0008), (160.8, 3.9)), 1_000: ((0.197, 0.003), (16.1, 0.4))}
"""By the number of rows: TVD and MSE, each with the standard deviation of one experiment."""

DOCUMENT = {10_000: (0.0617, 155.7), 1_000: (0.195, 16.2)}


def experiment(rows, epsilon, seed):
    """The sizes, TVD and MSE of one table and its answers, all from one seed."""
    rng = simulation_rng(seed)
    sizes, block = independent_table(COLUMNS, sizes_between=SIZES, rows=rows, rng=rng)
    schema = integer_schema(sizes)
    answers = [
        Grr(categories=size, epsilon=Fraction(epsilon, COLUMNS)).answer_many(column, rng=rng)
        for size, column in zip(sizes, block, strict=True)
    ]
    real, published = (
        ArrayTable(schema, dict(zip(schema.names, codes, strict=True)))
        for codes in (block, answers)
    )
    columns = marginals_of(schema, 1, rng)
    tvd = compare_distances(real, [published], columns)[0].mean
    return np.array(sizes), tvd, compare_counts(real, [published], columns)[0]


@pytest.mark.parametrize("rows", LIMITS)
@pytest.mark.parametrize("epsilon", [1, 10])
@pytest.mark.parametrize("seed", SEEDS)
def test_both_measures_are_what_uniform_columns_give(rows, epsilon, seed):
    """Within 3 standard deviations of one experiment: a false alarm in 370 for each measure."""
    _, tvd, mse = experiment(rows, epsilon, seed)
    (tvd_mean, tvd_sd), (mse_mean, mse_sd) = LIMITS[rows]
    assert tvd == pytest.approx(tvd_mean, abs=3 * tvd_sd)
    assert mse == pytest.approx(mse_mean, abs=3 * mse_sd)


@pytest.mark.parametrize("rows", LIMITS)
def test_the_documents_own_figures_are_within_the_same_limits(rows):
    for found, (mean, sd) in zip(DOCUMENT[rows], LIMITS[rows], strict=True):
        assert found == pytest.approx(mean, abs=3 * sd)


@pytest.mark.parametrize(("epsilon", "kept"), [(1, 0.008), (10, 0.01), (150, 0.14)])
def test_the_figures_follow_from_sizes_rows_and_kept_answers(epsilon, kept):
    """Means of 4 runs; 2% and 4% are 4 standard deviations: sqrt(.57/k) and sqrt(2/k) a column."""
    ratios = []
    for seed in range(10, 14):
        sizes, tvd, mse = experiment(rows := 10_000, epsilon, seed)
        odds = np.exp(epsilon / COLUMNS)
        p = odds / (odds + sizes - 1)
        assert p.mean() == pytest.approx(kept, rel=0.4)
        expected_tvd = np.sqrt(sizes * (1 - p) / (pi * rows)).mean()
        ratios.append((tvd / expected_tvd, mse / (2 * rows * (1 - p) / sizes).mean()))
    tvd_ratio, mse_ratio = np.mean(ratios, axis=0)
    assert tvd_ratio == pytest.approx(1, abs=0.02)
    assert mse_ratio == pytest.approx(1, abs=0.04)


def test_the_limits_reject_answers_that_keep_a_tenth_of_the_values():
    """At epsilon 150 an answer is true with p = .14: the one thing these measures could see."""
    _, tvd, mse = experiment(10_000, 150, seed=0)
    (tvd_mean, tvd_sd), (mse_mean, mse_sd) = LIMITS[10_000]
    assert tvd < tvd_mean - 3 * tvd_sd
    assert mse < mse_mean - 3 * mse_sd
