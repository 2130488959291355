"""Item ridge: the formula, its zero diagonal, and that it is the minimizer it claims to be."""

import numpy as np
import pytest

from sfumato.errors import InputError
from sfumato.lab.ratings import made_ratings
from sfumato.models.items.ridge import gram_matrix, inverse_definite, item_ridge
from sfumato.randomness import simulation_rng


def matrix(people, items, seed):
    return (simulation_rng(seed).uniform(people * items) < 0.3).reshape(people, items) * 1.0


def test_each_column_is_the_ridge_regression_of_an_item_on_the_others():
    x, strength = matrix(80, 12, 0), 3.0
    weights = item_ridge(x.T @ x, strength)
    for item in range(12):
        others = np.delete(np.arange(12), item)
        left = x[:, others].T @ x[:, others] + strength * np.eye(11)
        expected = np.linalg.solve(left, x[:, others].T @ x[:, item])
        assert weights[others, item] == pytest.approx(expected, abs=1e-6)
    assert (np.diag(weights) == 0).all()


def test_the_last_bits_of_a_filtered_matrix_may_differ():
    x = matrix(80, 12, 3)
    values, vectors = np.linalg.eigh(x.T @ x)
    filtered = vectors * np.maximum(values, 1) @ vectors.T
    assert not np.array_equal(filtered, filtered.T)
    assert item_ridge(filtered, 1.0) == pytest.approx(item_ridge(filtered.T, 1.0), abs=1e-6)


@pytest.mark.parametrize("size", [1, 2, 192, 193, 401])
def test_the_inverse_by_halves_is_the_inverse(size):
    x = matrix(size + 30, size, 1)
    given = x.T @ x + 2 * np.eye(size)
    np.testing.assert_allclose(inverse_definite(given), np.linalg.inv(given), atol=1e-10)


@pytest.mark.parametrize("size", [2, 400])
def test_a_noisy_matrix_that_is_not_positive_definite_is_refused(size):
    noisy = np.eye(size)
    noisy[-1, -1] = -3
    with pytest.raises(InputError, match=r"plus 2 on its diagonal is not positive definite"):
        item_ridge(noisy, 2.0)
    assert item_ridge(noisy, 3.5).shape == (size, size)


def test_the_gram_matrix_counts_who_rated_both_in_any_number_of_blocks():
    rows = made_ratings(90, items=40, ratings=700, rng=simulation_rng(2))
    x = np.zeros((90, 40))
    x[rows.persons, rows.items] = 1
    np.testing.assert_array_equal(gram_matrix(rows.starts, rows.items, 40), x.T @ x)
    wide = gram_matrix(rows.starts, rows.items, 3_000)  # 5,592 people at a time
    np.testing.assert_array_equal(wide[:40, :40], x.T @ x)
    assert wide[40:].sum() == 0


@pytest.mark.parametrize(
    ("gram", "strength", "message"),
    [
        (np.ones((2, 3)), 1.0, "square and symmetric"),
        (np.array([[1.0, 2.0], [0.0, 1.0]]), 1.0, "square and symmetric"),
        (np.eye(2), 0.0, "strength must be > 0"),
    ],
)
def test_what_is_no_gram_matrix_is_refused(gram, strength, message):
    with pytest.raises(InputError, match=message):
        item_ridge(gram, strength)
