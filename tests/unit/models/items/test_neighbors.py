"""Neighbors against all similarities written down densely."""

import numpy as np
import pytest

from sfumato.errors import InputError
from sfumato.lab.ratings import made_ratings
from sfumato.models.items import neighbors
from sfumato.models.items.bias import item_means
from sfumato.models.items.neighbors import (
    adjusted_cosine_neighbors,
    cosine_neighbors,
    pearson_neighbors,
)
from sfumato.models.items.rating_rows import RatingRows
from sfumato.models.items.recommenders import History, NeighborModel
from sfumato.randomness import simulation_rng


@pytest.fixture(scope="module")
def rows():
    return made_ratings(120, items=60, ratings=1_500, rng=simulation_rng(0))


@pytest.fixture(scope="module")
def sparse_rows():
    """Most pairs of items have no common rater."""
    return made_ratings(300, items=2_000, ratings=900, rng=simulation_rng(1))


def dense(rows):
    table = np.zeros((rows.people, rows.catalogue))
    table[rows.persons, rows.items] = rows.ratings
    return table, table != 0


def cosine(table):
    norms = np.sqrt((table**2).sum(axis=0))
    norms[norms == 0] = 1
    return table.T @ table / norms / norms[:, None]


def best(similarities, k):
    """By similarity, then by code; only what is above zero."""
    similarities = similarities.copy()
    np.fill_diagonal(similarities, 0)
    order = np.argsort(-similarities.round(12), axis=1, kind="stable")[:, :k]
    weights = np.take_along_axis(similarities, order, axis=1)
    none = weights < 1e-12
    return np.where(none, -1, order), np.where(none, 0, weights)


def assert_same(found, similarities, k):
    codes, weights = best(similarities, k)
    np.testing.assert_allclose(found.weights, weights, atol=1e-12)
    np.testing.assert_array_equal(found.codes < 0, codes < 0)
    differ = found.codes != codes  # sums in another order: ties may be broken in the last bit
    rows, places = np.nonzero(differ)
    tied = similarities[rows, found.codes[rows, places]]
    np.testing.assert_allclose(tied, weights[rows, places], atol=1e-12)
    assert differ.mean() < 0.05


@pytest.mark.parametrize("k", [1, 7, 500])
@pytest.mark.parametrize("few", [10**9, 0], ids=["one thread", "two threads"])
def test_cosine_neighbors_are_the_best_of_the_whole_matrix(rows, k, few, monkeypatch):
    monkeypatch.setattr(neighbors, "_FEW_RATINGS", few)
    table, _ = dense(rows)
    assert_same(cosine_neighbors(rows, k), cosine(table), min(k, 59))


def test_rows_with_few_entries_are_found_the_same(sparse_rows):
    table, _ = dense(sparse_rows)
    assert_same(cosine_neighbors(sparse_rows, 5), cosine(table), 5)


def test_shrinkage_weighs_by_common_raters(rows):
    table, rated = dense(rows)
    common = rated.T.astype(float) @ rated
    expected = cosine(table) * common / (common + 10)
    assert_same(cosine_neighbors(rows, 6, shrink=10), expected, 6)


@pytest.mark.parametrize("shrink", [0.0, 5.0])
def test_adjusted_cosine_takes_off_the_persons_mean(rows, shrink):
    table, rated = dense(rows)
    means = table.sum(axis=1) / np.maximum(rated.sum(axis=1), 1)
    common = rated.T.astype(float) @ rated
    expected = cosine((table - means[:, None]) * rated) * common / np.maximum(common + shrink, 1)
    assert_same(adjusted_cosine_neighbors(rows, 6, shrink=shrink), expected, 6)


def test_pearson_is_numpys_correlation_over_common_raters(rows):
    table, rated = dense(rows)
    expected = np.zeros((60, 60))
    for i in range(60):
        for j in range(i):
            x, y = table[rated[:, i] & rated[:, j]][:, [i, j]].T
            if x.size and np.ptp(x) > 0 < np.ptp(y):
                expected[i, j] = expected[j, i] = np.corrcoef(x, y)[0, 1]
    assert_same(pearson_neighbors(rows, 8), expected, 8)


def test_predictions_are_those_of_the_textbook_rule(rows):
    """The 5 most similar of what a person rated, weighted deviations from item means."""
    table, rated = dense(rows)
    found = pearson_neighbors(rows, 60)
    similar = np.zeros((60, 60))
    for item, (codes, weights) in enumerate(zip(found.codes, found.weights, strict=True)):
        similar[item, codes[codes >= 0]] = weights[codes >= 0]
    means = item_means(rows, low=1, high=5)
    level = means.mean + means.item_bias
    model = NeighborModel(bias=means, neighbors=found.codes, weights=found.weights, most=5)
    for person in range(0, 120, 10):
        own = np.flatnonzero(rated[person])
        said = model.predict(History(own, table[person, own]))
        for item in range(60):
            nearest = sorted(own, key=lambda j, i=item: -similar[i, j])[:5]
            weights = similar[item, nearest]
            over = (weights * (table[person, nearest] - level[nearest])).sum()
            expected = level[item] + (over / weights.sum() if weights.sum() else 0)
            assert said[item] == pytest.approx(np.clip(expected, 1, 5))


def test_threads_change_nothing(rows, monkeypatch):
    alone = cosine_neighbors(rows, 9), pearson_neighbors(rows, 9)
    monkeypatch.setattr(neighbors, "_FEW_RATINGS", 0)
    for one, two in zip(
        alone, (cosine_neighbors(rows, 9), pearson_neighbors(rows, 9)), strict=True
    ):
        np.testing.assert_array_equal(one.codes, two.codes)
        np.testing.assert_array_equal(one.weights, two.weights)


def test_equal_similarities_go_to_the_smaller_code():
    same = RatingRows.of(
        np.repeat(np.arange(2), 6), np.tile(np.arange(6), 2), np.ones(12), people=2, catalogue=6
    )
    codes = cosine_neighbors(same, 3).codes
    assert codes.tolist() == [[1, 2, 3], [0, 2, 3], [0, 1, 3], [0, 1, 2], [0, 1, 2], [0, 1, 2]]


def test_neither_the_dissimilar_nor_the_unrated_are_neighbors():
    person, item = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])
    rows = RatingRows.of(person, item, np.array([5, 1, 1, 5]), people=2, catalogue=3)
    assert (pearson_neighbors(rows, 2).codes == -1).all()
    assert cosine_neighbors(rows, 2).codes.tolist() == [[1, -1], [0, -1], [-1, -1]]


def test_no_ratings_and_one_item_are_no_trouble():
    none = np.zeros(0, dtype=np.int64)
    empty = RatingRows.of(none, none, none.astype(float), people=2, catalogue=3)
    assert (cosine_neighbors(empty, 2).codes == -1).all()
    single = RatingRows.of(none, none, none.astype(float), people=0, catalogue=1)
    assert pearson_neighbors(single, 2).codes.tolist() == [[-1]]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda rows: cosine_neighbors(rows, 0), "k must be"),
        (lambda rows: cosine_neighbors(rows, 3, shrink=-1), "shrink must be >= 0"),
    ],
)
def test_what_can_not_be_asked_is_refused(rows, call, message):
    with pytest.raises(InputError, match=message):
        call(rows)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"starts": np.array([1, 3])}, "begin with 0"),
        ({"ratings": np.ones(2)}, "do not fit together"),
        ({"items": np.array([0, 1, 5], dtype=np.int32)}, "codes below 4"),
        ({"items": np.array([0, 2, 1], dtype=np.int32)}, "must ascend"),
        ({"items": np.array([0, 1, 1], dtype=np.int32)}, "each once"),
    ],
)
def test_rows_that_are_none_are_refused(changed, message):
    given = {
        "starts": np.array([0, 3]),
        "items": np.array([0, 1, 2], dtype=np.int32),
        "ratings": np.ones(3),
        "catalogue": 4,
    }
    with pytest.raises(InputError, match=message):
        RatingRows(**given | changed)


def test_made_ratings_are_as_many_as_asked_on_the_scale_and_the_same_for_a_seed(rows):
    again = made_ratings(120, items=60, ratings=1_500, rng=simulation_rng(0))
    np.testing.assert_array_equal(again.items, rows.items)
    np.testing.assert_array_equal(again.ratings, rows.ratings)
    assert rows.items.size == 1_500
    assert set(rows.ratings) == {1, 2, 3, 4, 5}
    with pytest.raises(InputError, match="more than a quarter"):
        made_ratings(10, items=10, ratings=26, rng=simulation_rng(0))
