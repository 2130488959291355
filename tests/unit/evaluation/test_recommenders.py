"""Errors of recommenders, by hand and against dense matrices; baselines reach known figures."""

import ast
import inspect

import numpy as np
import pyarrow as pa
import pytest

import sfumato.release
from sfumato.errors import InputError
from sfumato.evaluation import recommenders
from sfumato.evaluation.rating_splits import RatingFormat, fold_split, open_split, random_split
from sfumato.evaluation.recommenders import (
    BASELINES,
    compare_recommender,
    fit_baseline,
    list_gains,
    run_baselines,
)
from sfumato.lab.movielens import read_movielens
from sfumato.lab.ratings import made_ratings
from sfumato.ledger.ledger import Ledger
from sfumato.models.items.bias import fit_bias
from sfumato.models.items.recommenders import BiasModel, PopularityModel, Recommender
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


@pytest.fixture(scope="module")
def split():
    rows = made_ratings(400, items=150, ratings=9_000, rng=simulation_rng(0))
    form = RatingFormat(catalogue=range(150), scale=RatingScale(1, 5))
    return random_split(pa.table(rows.columns()), form=form, rng=simulation_rng(1))


@pytest.fixture(scope="module")
def found(split):
    return run_baselines(split, ledger=None)


def test_every_baseline_says_that_it_has_no_guarantee(found):
    assert list(found) == list(BASELINES)
    for name, result in found.items():
        assert result.promise == "no guarantee"
        assert result.to_dict()["name"] == name
        assert result.to_dict()["promise"] == "no guarantee"
        assert result.to_dict()["internal"] is True
        assert isinstance(result.model, Recommender)


def test_no_baseline_is_or_becomes_a_release(found):
    releases = tuple(
        kind
        for name, kind in vars(sfumato.release).items()
        if inspect.isclass(kind) and name.endswith("Release")
    )
    assert releases
    for result in found.values():
        for value in (result, result.model, result.errors):
            assert not isinstance(value, releases)
            assert not any(hasattr(value, verb) for verb in ("save", "publish", "guarantee"))
    tree = ast.parse(inspect.getsource(recommenders))
    imported = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    for room in ("release", "publishing", "gate", "recommend"):
        assert not any(name.startswith(f"sfumato.{room}") for name in imported)


def test_what_is_there_to_learn_is_learned(found):
    mae = {name: result.errors.mae for name, result in found.items()}
    assert mae["adjusted cosine neighbors"] < mae["bias"] < mae["own mean"]
    assert mae["bias"] < mae["item mean"]
    ndcg = {name: result.errors.ndcg for name, result in found.items()}
    assert min(ndcg["item ridge"], ndcg["cosine neighbors"]) > 1.1 * ndcg["popularity"]


def test_shuffled_items_leave_nothing_to_learn(split):
    """The companion: with everybody's items drawn anew the ridge is no better than popularity."""
    rows = made_ratings(400, items=150, ratings=9_000, rng=simulation_rng(0))
    order = simulation_rng(2).permutation(9_000)
    item = rows.items[order].astype(np.int64)
    _, kept = np.unique(rows.persons * 150 + item, return_index=True)
    table = {"user": rows.persons[kept], "item": item[kept], "rating": rows.ratings[kept]}
    form = RatingFormat(catalogue=range(150), scale=RatingScale(1, 5))
    mixed = random_split(pa.table(table), form=form, rng=simulation_rng(1))
    chosen = run_baselines(mixed, ledger=None, names=["popularity", "item ridge"])
    assert chosen["item ridge"].errors.ndcg < 1.1 * chosen["popularity"].errors.ndcg


def test_some_can_be_chosen_and_an_unknown_one_is_refused(split):
    assert list(run_baselines(split, ledger=None, names=["bias"])) == ["bias"]
    with pytest.raises(InputError, match="name must be one of 'own mean'"):
        run_baselines(split, ledger=None, names=["magic"])


def test_each_look_is_written_in_the_ledger(split):
    ledger = Ledger.open(dataset="ratings")
    run_baselines(split, ledger=ledger, names=["own mean", "popularity"])
    looks = [entry.label for entry in ledger.entries() if entry.event == "look"]
    assert len(looks) == 2
    assert all("without a guarantee" in label for label in looks)


def test_movielens_figures_are_reached(real_data):
    """One split; three standard deviations over splits, each about .004 (NDCG: .008)."""
    lens = read_movielens(real_data / "movielens")
    one = random_split(lens.ratings, form=lens.form, rng=simulation_rng(100))
    found = {name: result.errors for name, result in run_baselines(one, ledger=None).items()}
    for name, mae, rmse in (
        ("adjusted cosine neighbors", 0.715, 0.910),
        ("bias", 0.748, 0.944),
        ("own mean", 0.840, 1.043),
    ):
        assert found[name].mae == pytest.approx(mae, abs=0.012)
        assert found[name].rmse == pytest.approx(rmse, abs=0.016)
    for name, ndcg in (("item ridge", 0.366), ("cosine neighbors", 0.308), ("popularity", 0.174)):
        assert found[name].ndcg == pytest.approx(ndcg, abs=0.024)


def test_the_item_mean_on_an_official_fold_is_the_known_one(real_data):
    """u1 to u5 have .817 and 1.025 on average; no chance is involved."""
    lens = read_movielens(real_data / "movielens")
    errors = []
    for number in range(1, 6):
        fold = fold_split(lens.ratings, lens.fold(number), form=lens.form)
        model = fit_baseline("item mean", fold)
        errors.append(compare_recommender(model, fold, ledger=None))
    assert np.mean([one.mae for one in errors]) == pytest.approx(0.817, abs=0.001)
    assert np.mean([one.rmse for one in errors]) == pytest.approx(1.025, abs=0.001)
