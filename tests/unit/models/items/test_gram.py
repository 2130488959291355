"""What stands out of noise of known size."""

import numpy as np
import pytest

from sfumato.errors import InputError
from sfumato.lab.ratings import made_ratings
from sfumato.models.items.gram import (
    beyond_popularity,
    gram_matrix,
    inverse_definite,
    item_ridge,
    nearest,
    rank_one_scale,
    spikes,
)
from sfumato.randomness import simulation_rng

SIZE, SIGMA = 200, 1.0


def noise(seed, sigma=SIGMA):
    """Symmetric, standard deviation sigma beside the diagonal, by Box and Muller."""
    rng = simulation_rng(seed)
    u, v = rng.uniform(SIZE**2), rng.uniform(SIZE**2)
    whole = (np.sqrt(-2 * np.log1p(-u)) * np.cos(2 * np.pi * v)).reshape(SIZE, SIZE) * sigma
    return np.triu(whole) + np.triu(whole, 1).T


def direction(seed):
    found = simulation_rng(seed).uniform(SIZE) - 0.5
    return found / np.linalg.norm(found)


def test_noise_alone_has_hardly_a_spike():
    """The largest eigenvalue passes the edge by chance; by more than 5% of it in 1 of 10^4."""
    for seed in range(5):
        assert spikes(noise(seed), sigma=1.05 * SIGMA).values.size == 0


def test_noise_taken_for_smaller_than_it_is_would_be_seen_as_spikes():
    assert spikes(noise(0), sigma=0.7 * SIGMA).values.size > 10


@pytest.mark.parametrize("times", [2.0, 4.0])
def test_a_planted_spike_is_found_with_the_value_that_is_nearest_to_it(times):
    """Of the true value l the best multiple of the direction seen is l cos^2; 5% are 4 sigma."""
    truth = times * np.sqrt(SIZE) * SIGMA
    v = direction(9)
    found = spikes(truth * np.outer(v, v) + noise(1), sigma=SIGMA)
    best = truth * (found.vectors[:, 0] @ v) ** 2
    assert found.values[0] == pytest.approx(best, rel=0.05)


def test_the_filtered_matrix_is_nearer_to_the_truth_than_the_noisy_one():
    v = direction(9)
    truth = 3 * np.sqrt(SIZE) * np.outer(v, v)
    noisy = truth + noise(1)
    kept = spikes(noisy, sigma=SIGMA).matrix
    assert np.linalg.norm(kept - truth) < 0.3 * np.linalg.norm(noisy - truth)


def test_a_negative_sigma_is_refused():
    with pytest.raises(InputError, match="sigma must be >= 0"):
        spikes(np.eye(3), sigma=-1.0)


def test_the_scale_of_a_rank_one_matrix_is_found_whatever_the_diagonal():
    d = np.array([1.0, 3.0, 2.0])
    matrix = 0.5 * np.outer(d, d)
    np.fill_diagonal(matrix, [9.0, -4.0, 7.0])
    assert rank_one_scale(matrix, d) == pytest.approx(0.5)
    assert rank_one_scale(-matrix, d) == 0
    assert rank_one_scale(matrix, np.zeros(3)) == 0


def test_with_noise_only_the_ridge_of_the_filtered_matrix_follows_popularity():
    popularity = np.linspace(1, 3, SIZE)
    gram = 0.01 * np.outer(popularity, popularity) + noise(2)
    matrix, kept = beyond_popularity(gram, popularity, sigma=1.1 * SIGMA)
    assert kept == 0
    weights = item_ridge(matrix, 5.0)
    assert (np.diff(weights[0, 1:]) > 0).all()


def test_neighbors_are_the_largest_positive_cosines():
    v = np.array([[1.0, 0.0], [2.0, 0.2], [0.0, 3.0], [-1.0, 0.1]])
    places, cosines = nearest(v @ v.T, 2)
    assert places.tolist() == [[1, -1], [0, 2], [1, 3], [2, -1]]
    assert cosines[0, 0] == pytest.approx(2 / np.hypot(2, 0.2))
    assert (cosines[places < 0] == 0).all()


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
