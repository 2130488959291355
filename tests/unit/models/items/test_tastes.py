"""Recommenders that listen to how much was liked."""

import numpy as np
import pytest

from sfumato.errors import InputError
from sfumato.models.items.recommenders import BiasModel, History, RidgeModel
from sfumato.models.items.similarity import similarities
from sfumato.models.items.tastes import RatedRidgeModel, TasteModel

ITEMS = 4
NOBODY = History(np.zeros(0, dtype=np.int64), np.zeros(0))
BIAS = BiasModel(low=1, high=5, mean=3.0, item_bias=np.array([0.5, 0, 0, -0.5]), strength=1)


def tastes(loadings=((1.0,), (-1.0,), (0.0,), (1.0,))):
    return TasteModel(
        bias=BIAS,
        loadings=np.array(loadings),
        person_spread=0.4,
        noise=0.5,
        popularity=np.array([4.0, 3.0, 2.0, 1.0]),
    )


def rated():
    weights = np.array([[0, 0.5, -0.2], [0.5, 0, 0.1], [-0.2, 0.1, 0]], dtype=np.float32)
    ridge = RidgeModel(
        members=np.array([0, 1, 2]), weights=weights, popularity=np.arange(4.0), bias=BIAS
    )
    return RatedRidgeModel(ridge=ridge, zero=0.0, full=4.0)


def test_a_liked_item_speaks_louder_than_a_disliked_one():
    weights = rated().ridge.weights
    scores = rated().scores(History(np.array([0, 1]), np.array([5.0, 1.0])))
    assert scores[2] == pytest.approx(weights[0, 2] + 0.25 * weights[1, 2])
    assert scores[3] < scores[:3].min()


@pytest.mark.parametrize("history", [NOBODY, History(np.array([3]), np.array([5.0]))])
def test_without_a_known_item_the_order_is_that_of_popularity(history):
    assert rated().scores(history).tolist() == [0, 1, 2, 3]


def test_tastes_are_what_the_history_makes_of_them():
    """By hand: z = (F'F + noise I)^-1 F' e with F = [[.4, 1], [.4, -1]] and e = (1.5, -1)."""
    history = History(np.array([0, 1]), np.array([5.0, 2.0]))
    own = np.array([[0.4, 1.0], [0.4, -1.0]])
    z = np.linalg.solve(own.T @ own + 0.5 * np.eye(2), own.T @ np.array([1.5, -1.0]))
    assert tastes().base(history)[3] == pytest.approx(2.5 + 0.4 * z[0] + z[1])
    assert tastes().base(history)[2] == pytest.approx(3.0 + 0.4 * z[0])
    assert tastes().predict(history).max() <= 5


def test_without_a_history_everybody_is_told_the_items_means():
    assert tastes().predict(NOBODY).tolist() == [3.5, 3.0, 3.0, 2.5]


@pytest.mark.parametrize("model", [tastes(), rated()], ids=["tastes", "ridge"])
def test_arrays_make_the_same_model_again(model):
    again = type(model).from_arrays(model.arrays())
    history = History(np.array([0, 2]), np.array([5.0, 2.0]))
    assert again.scores(history).tolist() == model.scores(history).tolist()
    assert again.predict(history).tolist() == model.predict(history).tolist()


@pytest.mark.parametrize("loadings", [((1.0,),), ((np.nan,),) * ITEMS])
def test_loadings_that_do_not_fit_are_refused(loadings):
    with pytest.raises(InputError, match="loadings"):
        tastes(loadings)


def test_an_item_outside_the_catalogue_is_refused():
    far = History(np.array([9]), np.array([5.0]))
    for model in (tastes(), rated()):
        with pytest.raises(InputError, match="not in the catalogue"):
            model.scores(far)


def test_similar_items_appeal_to_the_same_tastes():
    assert similarities(tastes(), 0).tolist() == [-np.inf, -1.0, -np.inf, 1.0]
    assert similarities(tastes(), 2).tolist() == [-np.inf] * 4
    assert similarities(rated(), 0)[1] == pytest.approx(0.5)
    assert similarities(rated(), 3).tolist() == [-np.inf] * 4
    with pytest.raises(InputError, match="one by one"):
        similarities(BIAS, 0)
