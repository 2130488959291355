"""Measures of recommenders, by hand and against a dense computation."""

import numpy as np
import pyarrow as pa
import pytest

from sfumato.errors import InputError
from sfumato.evaluation.rating_splits import RatingFormat, open_split, random_split
from sfumato.evaluation.recommender_errors import compare_recommender, list_gains
from sfumato.lab.ratings import made_ratings
from sfumato.ledger.ledger import Ledger
from sfumato.models.items.bias import fit_bias
from sfumato.models.items.recommenders import BiasModel, PopularityModel
from sfumato.randomness import simulation_rng
from sfumato.schema.ratings import RatingScale


def form(items):
    return RatingFormat(catalogue=range(items), scale=RatingScale(1, 5))


@pytest.fixture(scope="module")
def small():
    """Two people; item 0 to 4; the second one has nothing that is relevant."""
    train = pa.table({"user": [1, 1, 2], "item": [0, 1, 0], "rating": [5, 3, 2]})
    test = pa.table({"user": [1, 1, 2], "item": [2, 4, 3], "rating": [4, 5, 1]})
    return open_split(train, test, form=form(5))


MODEL = PopularityModel(
    popularity=np.array([9.0, 8.0, 7.0, 6.0, 5.0]),
    bias=BiasModel(low=1, high=5, mean=3, item_bias=np.zeros(5), strength=np.inf),
)


def test_every_measure_of_a_small_case_by_hand(small):
    found = compare_recommender(MODEL, small, ledger=None, k=2)
    # Lists: [2, 3] for the first, who wants 2 and 4; [1, 2] for the second.
    assert found.mae == pytest.approx((1 + 2 + 2) / 3)
    assert found.rmse == pytest.approx(np.sqrt((1 + 4 + 4) / 3))
    assert found.ndcg == pytest.approx(1 / (1 + 1 / np.log2(3)))
    assert found.recall == pytest.approx(1 / 2)
    assert found.coverage == pytest.approx(3 / 5)
    assert (found.k, found.ratings, found.people) == (2, 3, 1)
    assert found.to_dict()["internal"] is True


def test_what_counts_as_relevant_can_be_said(small):
    assert compare_recommender(MODEL, small, ledger=None, relevant=1).people == 2
    nobody = compare_recommender(MODEL, small, ledger=None, relevant=6)
    assert nobody.people == 0
    assert nobody.to_dict()["ndcg"] is None


def test_a_perfect_list_has_ndcg_one_and_rank_matters():
    wanted = np.array([3, 7])
    assert list_gains(np.array([7, 3, 1]), wanted, 3) == pytest.approx((1, 1))
    assert list_gains(np.array([1, 2, 4]), wanted, 3) == (0, 0)
    early, _ = list_gains(np.array([3, 1, 2]), wanted, 3)
    late, _ = list_gains(np.array([1, 2, 3]), wanted, 3)
    assert early > late > 0


def test_more_relevant_items_than_places_still_allow_ndcg_one_but_not_recall():
    assert list_gains(np.array([0, 1]), np.arange(5), 2) == pytest.approx((1, 0.4))


def test_a_list_shorter_than_k_is_no_trouble():
    assert list_gains(np.array([4]), np.array([4, 5]), 10)[1] == 0.5


def test_measures_agree_with_dense_matrices():
    rows = made_ratings(80, items=50, ratings=900, rng=simulation_rng(0))
    split = random_split(pa.table(rows.columns()), form=form(50), rng=simulation_rng(1))
    model = fit_bias(split.train, low=1, high=5)
    found = compare_recommender(model, split, ledger=None, k=5)
    train, test = np.zeros((80, 50)), np.zeros((80, 50))
    train[split.train.persons, split.train.items] = split.train.ratings
    test[split.test.persons, split.test.items] = split.test.ratings
    rated = train > 0
    left = ((train - model.mean - model.item_bias) * rated).sum(axis=1)
    base = model.mean + model.item_bias + (left / (rated.sum(axis=1) + model.strength))[:, None]
    gap = (np.clip(base, 1, 5) - test)[test > 0]
    assert found.mae == pytest.approx(np.abs(gap).mean())
    order = np.argsort(-np.where(rated, -np.inf, base), axis=1, kind="stable")[:, :5]
    wanted = test >= 4
    hits = np.take_along_axis(wanted, order, axis=1)[wanted.any(axis=1)]
    assert found.recall == pytest.approx(
        (hits.sum(axis=1) / wanted.sum(axis=1)[wanted.any(axis=1)]).mean()
    )


def test_a_model_that_says_nothing_is_not_counted_as_right():
    train = pa.table({"user": [1], "item": [0], "rating": [5]})
    test = pa.table({"user": [1, 2], "item": [1, 1], "rating": [4, 4]})
    split = open_split(train, test, form=form(3))
    found = compare_recommender(PopularityModel(popularity=np.ones(3)), split, ledger=None)
    assert (found.ratings, found.mae) == (1, 1)


def test_a_look_is_written_in_the_ledger(small):
    ledger = Ledger.open(dataset="ratings")
    before = len(list(ledger.entries()))
    compare_recommender(MODEL, small, ledger=ledger)
    assert len(list(ledger.entries())) == before + 1


def test_another_catalogue_is_refused(small):
    with pytest.raises(InputError, match="knows 2 items, the catalogue has 5"):
        compare_recommender(PopularityModel(popularity=np.ones(2)), small, ledger=None)
