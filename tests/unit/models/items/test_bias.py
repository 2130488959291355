"""Noisy counts and sums, judged by their noise."""

import numpy as np
import pytest

from sfumato.errors import InputError
from sfumato.lab.ratings import made_ratings
from sfumato.models.items.bias import (
    NoisySums,
    Spread,
    best_counts,
    fit_bias,
    item_biases,
    item_means,
    likely_counts,
    mean_residual,
    own_mean,
    shrunk_means,
)
from sfumato.models.items.rating_rows import RatingRows
from sfumato.models.items.recommenders import History
from sfumato.randomness import simulation_rng

SPREAD = Spread(items=0.2, ratings=1.0)
COUNTS = np.array([400.0, 200.0, 100.0, 50.0])
BIASES = np.array([0.5, -0.3, 0.2, -0.4])


def seen(*, sigma, mean=0.5, sums=None):
    exact = COUNTS * (mean + BIASES) if sums is None else sums
    return NoisySums(
        counts=COUNTS, sums=exact, sigma_counts=sigma, sigma_sums=2 * sigma, weight=1.0
    )


def test_without_noise_biases_are_nearly_the_means():
    found = item_biases(seen(sigma=1e-6), mean=0.5, spread=SPREAD)
    assert found == pytest.approx(BIASES, abs=0.06)


def test_with_all_noise_no_item_differs_from_another():
    found = item_biases(seen(sigma=1e9), mean=0.5, spread=SPREAD)
    assert found == pytest.approx(np.zeros(4), abs=1e-3)


@pytest.mark.parametrize("sigma", [1.0, 30.0, 300.0])
def test_more_noise_moves_biases_nearer_to_zero(sigma):
    near, far = (item_biases(seen(sigma=s), mean=0.5, spread=SPREAD) for s in (sigma, 3 * sigma))
    assert np.abs(far).sum() < np.abs(near).sum()


def test_unpopular_items_are_told_by_what_unpopular_items_get():
    """Popular ones are liked; of the last nothing is known but that it is rare."""
    counts = np.geomspace(400, 1, 60)
    level = 0.1 * np.log(counts / counts.mean())
    noisy = NoisySums(
        counts=counts, sums=counts * level, sigma_counts=2.0, sigma_sums=2.0, weight=1.0
    )
    found = item_biases(noisy, mean=0.0, spread=SPREAD)
    assert found[-1] < found[0] - 0.15


def test_the_mean_is_the_guess_where_noise_is_all_and_the_ratio_where_there_is_none():
    assert mean_residual(seen(sigma=1e9), guess=0.2, variance=0.1) == pytest.approx(0.2, abs=1e-6)
    ratio = COUNTS @ (0.5 + BIASES) / COUNTS.sum()
    assert mean_residual(seen(sigma=1e-6), guess=0.2, variance=0.1) == pytest.approx(ratio)
    empty = NoisySums(counts=-COUNTS, sums=COUNTS, sigma_counts=1.0, sigma_sums=1.0, weight=1.0)
    assert mean_residual(empty, guess=0.2, variance=0.1) == 0.2


def test_counts_lean_on_sums_and_their_noise_leaves_liking_alone():
    """Errors e of counts and f of sums: cov(best count, sum - mean count) must vanish."""
    mean, sigma_counts, sigma_sums = 3.5, 1.0, 5.0
    parts = []
    for e, f in ((1.0, 0.0), (0.0, 1.0)):
        noisy = NoisySums(
            counts=np.array([e]),
            sums=np.array([f]),
            sigma_counts=sigma_counts,
            sigma_sums=sigma_sums,
            weight=1.0,
        )
        counts, sigma = best_counts(noisy, mean)
        parts.append(float(counts[0]))
    covariance = -mean * parts[0] * sigma_counts**2 + parts[1] * sigma_sums**2
    assert covariance == pytest.approx(0)
    assert sigma == pytest.approx(np.hypot(parts[0] * sigma_counts, parts[1] * sigma_sums))
    assert sigma < sigma_counts


def test_likely_counts_keep_exact_ones_and_are_never_negative():
    assert likely_counts(COUNTS, 0.0).tolist() == COUNTS.tolist()
    assert (likely_counts(np.array([-50.0, 1.0, 90.0]), 10.0) > 0).all()


SCALE = {"low": 1.0, "high": 5.0}


@pytest.fixture(scope="module")
def rows():
    return made_ratings(150, items=50, ratings=1_500, rng=simulation_rng(0))


def test_shrunk_means_minimize_the_penalized_squares():
    values, strength = np.array([1.0, 2.0, 6.0]), 2.0
    (found,) = shrunk_means(np.array([values.sum()]), np.array([3.0]), strength=strength)

    def loss(b):
        return ((values - b) ** 2).sum() + strength * b**2

    assert loss(found) < min(loss(found - 1e-3), loss(found + 1e-3))


def test_noisy_counts_below_zero_and_unknown_items_do_no_harm():
    found = shrunk_means(np.array([3.0, 1.0, 0.0]), np.array([-5.0, 0.0, 0.0]), strength=2)
    assert found.tolist() == [1.5, 0.5, 0]
    assert shrunk_means(np.zeros(1), np.zeros(1), strength=0).tolist() == [0]
    with pytest.raises(InputError, match="strength must be >= 0"):
        shrunk_means(np.zeros(1), np.zeros(1), strength=-1)


def test_turns_end_where_the_gradient_is_zero(rows):
    model = fit_bias(rows, **SCALE, item_strength=3, person_strength=4, rounds=200)
    left = rows.ratings - model.mean - model.item_bias[rows.items]
    of_person = rows.person_sums(left) / (4 + np.diff(rows.starts))
    gradient = rows.item_sums(left - of_person[rows.persons]) - 3 * model.item_bias
    assert np.abs(gradient).max() < 1e-8


def test_one_round_is_the_closed_form_from_sums_and_counts(rows):
    model = fit_bias(rows, **SCALE, item_strength=3, rounds=1)
    sums = rows.item_sums(rows.ratings - rows.ratings.mean())
    assert model.item_bias == pytest.approx(sums / (rows.counts + 3))


def test_the_model_gives_people_their_own_bias_at_call_time(rows):
    model = fit_bias(rows, **SCALE)
    own = slice(rows.starts[3], rows.starts[4])
    history = History(rows.items[own], rows.ratings[own])
    left = rows.ratings[own] - model.mean - model.item_bias[rows.items[own]]
    expected = model.mean + model.item_bias + left.sum() / (left.size + model.strength)
    assert model.base(history) == pytest.approx(expected)


def test_item_means_are_the_same_for_everybody_and_the_mean_where_nobody_rated():
    person, item, rating = np.array([[0, 1, 1], [0, 0, 1], [2, 4, 5]])
    rows = RatingRows.of(person, item, rating * 1.0, people=2, catalogue=3)
    model = item_means(rows, **SCALE)
    for history in (History(np.array([2]), np.array([1.0])), History([], [])):
        assert model.predict(history) == pytest.approx([3, 5, 11 / 3])


def test_the_own_mean_knows_nobodys_ratings():
    model = own_mean(**SCALE, items=3)
    assert model.predict(History(np.array([1]), np.array([5.0]))) == pytest.approx([5, 5, 5])
    assert model.predict(History([], [])) == pytest.approx([3, 3, 3])


def test_without_ratings_everything_is_in_the_middle():
    none = np.zeros(0, dtype=np.int64)
    empty = RatingRows.of(none, none, none * 1.0, people=0, catalogue=2)
    assert fit_bias(empty, **SCALE).predict(History([], [])).tolist() == [3, 3]
    assert item_means(empty, **SCALE).predict(History([], [])).tolist() == [3, 3]
