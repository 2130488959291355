"""Biases: shrunk means, and the point where neither items nor persons can do better."""

import numpy as np
import pytest

from sfumato.errors import InputError
from sfumato.lab.ratings import made_ratings
from sfumato.models.items.bias import fit_bias, item_means, own_mean, shrunk_means
from sfumato.models.items.rating_rows import RatingRows
from sfumato.models.items.recommenders import History
from sfumato.randomness import simulation_rng

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
    model = own_mean(**SCALE, items=3, strength=1)
    assert model.predict(History(np.array([1]), np.array([5.0]))) == pytest.approx([4, 4, 4])
    assert model.predict(History([], [])) == pytest.approx([3, 3, 3])


def test_without_ratings_everything_is_in_the_middle():
    none = np.zeros(0, dtype=np.int64)
    empty = RatingRows.of(none, none, none * 1.0, people=0, catalogue=2)
    assert fit_bias(empty, **SCALE).predict(History([], [])).tolist() == [3, 3]
    assert item_means(empty, **SCALE).predict(History([], [])).tolist() == [3, 3]
