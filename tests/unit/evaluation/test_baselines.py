"""Baselines without a guarantee: they reach known figures, say what they are, and stay inside."""

import ast
import inspect

import numpy as np
import pyarrow as pa
import pytest

import sfumato.release
from sfumato.errors import InputError
from sfumato.evaluation import baselines
from sfumato.evaluation.baselines import BASELINES, fit_baseline, run_baselines
from sfumato.evaluation.rating_splits import RatingFormat, fold_split, random_split
from sfumato.evaluation.recommender_errors import compare_recommender
from sfumato.lab.movielens import read_movielens
from sfumato.lab.ratings import made_ratings
from sfumato.ledger.ledger import Ledger
from sfumato.models.items.recommenders import Recommender
from sfumato.randomness import simulation_rng
from sfumato.schema.ratings import RatingScale


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
    tree = ast.parse(inspect.getsource(baselines))
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
