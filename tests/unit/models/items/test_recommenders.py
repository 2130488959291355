"""What recommenders say to one person, by hand; and that they come back from their arrays."""

import numpy as np
import pytest

from sfumato.errors import InputError
from sfumato.models.items.recommenders import (
    BiasModel,
    History,
    NeighborModel,
    PopularityModel,
    RatedRidgeModel,
    Recommender,
    RidgeModel,
    TasteModel,
    from_arrays,
    similarities,
    top_items,
)

NOBODY = History(np.zeros(0, dtype=np.int64), np.zeros(0))
SOMEBODY = History(np.array([2, 0]), np.array([5.0, 4.0]))
BIAS = BiasModel(low=1, high=5, mean=3, item_bias=np.array([0.5, -0.5, 1.0, 0.0]), strength=2)
NEIGHBORS = NeighborModel(
    bias=BIAS,
    neighbors=np.array([[1, 2], [2, 0], [-1, -1], [1, -1]], dtype=np.int32),
    weights=np.array([[0.9, 0.5], [0.6, 0.3], [0.0, 0.0], [0.7, 0.0]]),
)
RIDGE = RidgeModel(
    members=np.array([2, 1]),
    weights=np.array([[0.0, 0.25], [0.5, 0.0]], dtype=np.float32),
    popularity=np.array([7.0, 3.0, 2.0, 9.0]),
)
POPULARITY = PopularityModel(popularity=np.array([7.0, 3.0, 2.0, 9.0]))
POPULAR_NEIGHBORS = NeighborModel(
    bias=BIAS,
    neighbors=NEIGHBORS.neighbors,
    weights=NEIGHBORS.weights,
    popularity=np.array([1.0, 2.0, 3.0, 4.0]),
)
ALL = [
    POPULAR_NEIGHBORS,
    BIAS,
    POPULARITY,
    PopularityModel(popularity=np.ones(4), bias=BIAS),
    NEIGHBORS,
    RIDGE,
]


@pytest.mark.parametrize("model", ALL, ids=lambda model: model.kind)
@pytest.mark.parametrize("history", [NOBODY, SOMEBODY])
def test_every_model_is_a_recommender_and_comes_back_from_its_arrays(model, history):
    assert isinstance(model, Recommender)
    again = from_arrays(model.kind, model.arrays())
    assert type(again) is type(model)
    assert model.items == again.items == 4
    np.testing.assert_array_equal(again.scores(history), model.scores(history))
    np.testing.assert_array_equal(again.predict(history), model.predict(history))
    assert model.scores(history).shape == model.predict(history).shape == (4,)


@pytest.mark.parametrize("model", ALL, ids=lambda model: model.kind)
def test_an_item_outside_the_catalogue_is_refused(model):
    for code in (4, -1):
        with pytest.raises(InputError, match="not in the catalogue of 4"):
            model.scores(History(np.array([code]), np.array([3.0])))
        with pytest.raises(InputError, match="not in the catalogue of 4"):
            model.predict(History(np.array([code]), np.array([3.0])))


def test_a_person_with_biases_moves_every_prediction_by_their_shrunk_residual():
    own = ((5 - 3 - 1.0) + (4 - 3 - 0.5)) / (2 + 2)
    assert BIAS.predict(SOMEBODY) == pytest.approx(3 + BIAS.item_bias + own)
    assert BIAS.predict(NOBODY) == pytest.approx(3 + BIAS.item_bias)


def test_predictions_are_clipped_to_the_scale_and_scores_are_not():
    fan = History(np.arange(4), np.full(4, 5.0))
    model = BiasModel(low=1, high=5, mean=3, item_bias=np.array([0.5, 0, 3, 0]), strength=0)
    assert model.predict(fan).max() == 5
    assert model.scores(fan).max() > 5


def test_infinite_strength_leaves_the_person_out_and_no_strength_divides_by_nothing():
    items = BiasModel(low=1, high=5, mean=3, item_bias=np.array([0.5, -1]), strength=np.inf)
    assert items.predict(History(np.array([0]), np.array([1.0]))) == pytest.approx([3.5, 2])
    own = BiasModel(low=1, high=5, mean=3, item_bias=np.zeros(2), strength=0)
    assert own.predict(NOBODY) == pytest.approx([3, 3])
    assert own.predict(History(np.array([0]), np.array([1.0]))) == pytest.approx([1, 1])


def test_neighbors_move_the_base_by_their_weighted_residuals():
    base = BIAS.base(SOMEBODY)
    over = np.array([4.0, np.nan, 5.0, np.nan]) - base
    second = base[1] + (0.6 * over[2] + 0.3 * over[0]) / 0.9
    assert NEIGHBORS.predict(SOMEBODY) == pytest.approx([base[0] + over[2], second, *base[2:]])
    assert NEIGHBORS.scores(SOMEBODY) == pytest.approx([0.5, 0.9, 0, 0])


def test_at_most_so_many_neighbors_of_the_history_count_and_shrinkage_holds_back():
    one = NeighborModel(
        bias=BIAS, neighbors=NEIGHBORS.neighbors, weights=NEIGHBORS.weights, most=1, shrink=0.2
    )
    base = BIAS.base(SOMEBODY)
    expected = base[1] + 0.6 * (5 - base[2]) / (0.6 + 0.2)
    assert one.predict(SOMEBODY)[1] == pytest.approx(expected)
    assert one.scores(SOMEBODY)[1] == pytest.approx(0.6)


def test_items_without_a_neighbor_in_the_history_follow_by_popularity():
    scores = POPULAR_NEIGHBORS.scores(SOMEBODY)
    assert scores[:2] == pytest.approx([0.5, 0.9])
    assert np.argsort(-scores).tolist() == [1, 0, 3, 2]
    assert POPULAR_NEIGHBORS.scores(NOBODY).tolist() == [1, 2, 3, 4]


def test_negative_weights_push_away():
    model = NeighborModel(
        bias=BiasModel(low=1, high=5, mean=3, item_bias=np.zeros(2), strength=np.inf),
        neighbors=np.array([[1], [0]], dtype=np.int32),
        weights=np.array([[-0.5], [0.5]]),
    )
    assert model.predict(History(np.array([1]), np.array([4.0])))[0] == pytest.approx(2)


def test_ridge_adds_the_rows_of_the_history_and_the_rest_follows_by_popularity():
    scores = RIDGE.scores(History(np.array([2]), np.array([1.0])))
    assert scores[[2, 1]] == pytest.approx([0, 0.25])
    assert top_items(scores, 4, without=np.array([2])).tolist() == [1, 3, 0]
    unknown = RIDGE.scores(History(np.array([3]), np.array([5.0])))
    assert unknown.tolist() == RIDGE.popularity.tolist()


def test_what_knows_no_ratings_says_the_own_mean_and_nothing_to_a_new_person():
    assert POPULARITY.predict(SOMEBODY) == pytest.approx(np.full(4, 4.5))
    assert np.isnan(POPULARITY.predict(NOBODY)).all()
    assert PopularityModel(popularity=np.ones(4), bias=BIAS).predict(NOBODY)[2] == 4


def test_top_items_break_ties_by_code_and_leave_out_what_is_told():
    scores = np.array([1.0, 3.0, 3.0, 2.0, 3.0])
    assert top_items(scores, 2, without=np.array([], dtype=int)).tolist() == [1, 2]
    assert top_items(scores, 9, without=np.array([1, 4])).tolist() == [2, 3, 0]
    assert top_items(scores, 3, without=np.arange(5)).size == 0
    assert scores[1] == 3


@pytest.mark.parametrize(
    ("items", "ratings", "message"),
    [
        ([0, 0], [1.0, 2.0], "twice"),
        ([0], [1.0, 2.0], "a rating for each"),
        ([0.5], [1.0], "whole codes"),
        ([0], [np.nan], "not finite"),
        ([[0]], [[1.0]], "shape"),
    ],
)
def test_a_history_that_makes_no_sense_is_refused(items, ratings, message):
    with pytest.raises(InputError, match=message):
        History(np.array(items), np.array(ratings))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: BiasModel(low=1, high=5, mean=6, item_bias=np.zeros(2), strength=1),
            "mean must be on the scale",
        ),
        (
            lambda: BiasModel(low=1, high=5, mean=3, item_bias=np.zeros(2), strength=-1),
            "strength must be >= 0",
        ),
        (lambda: PopularityModel(popularity=np.array([np.nan])), "popularity must be finite"),
        (lambda: PopularityModel(popularity=np.ones(3), bias=BIAS), "has 4 items, not 3"),
        (
            lambda: NeighborModel(
                bias=BIAS, neighbors=np.full((4, 1), 4, dtype=np.int32), weights=np.ones((4, 1))
            ),
            "not in the catalogue",
        ),
        (
            lambda: NeighborModel(
                bias=BIAS, neighbors=np.zeros((3, 1), dtype=np.int32), weights=np.ones((3, 1))
            ),
            "do not fit together",
        ),
        (
            lambda: RidgeModel(
                members=np.array([0, 0]),
                weights=np.zeros((2, 2), dtype=np.float32),
                popularity=np.ones(2),
            ),
            "each once",
        ),
        (
            lambda: RidgeModel(
                members=np.array([0]),
                weights=np.zeros((2, 2), dtype=np.float32),
                popularity=np.ones(2),
            ),
            "a row and a column for each of 1",
        ),
        (lambda: from_arrays("guess", {}), "kind must be one of 'bias', 'popularity'"),
        (lambda: from_arrays("neighbors", {}), "has a bias model inside"),
    ],
)
def test_a_model_that_does_not_fit_together_is_not_made(make, message):
    with pytest.raises(InputError, match=message):
        make()


ITEMS = 4
FLAT_BIAS = BiasModel(low=1, high=5, mean=3.0, item_bias=np.array([0.5, 0, 0, -0.5]), strength=1)


def tastes(loadings=((1.0,), (-1.0,), (0.0,), (1.0,))):
    return TasteModel(
        bias=FLAT_BIAS,
        loadings=np.array(loadings),
        person_spread=0.4,
        noise=0.5,
        popularity=np.array([4.0, 3.0, 2.0, 1.0]),
    )


def rated():
    weights = np.array([[0, 0.5, -0.2], [0.5, 0, 0.1], [-0.2, 0.1, 0]], dtype=np.float32)
    ridge = RidgeModel(
        members=np.array([0, 1, 2]), weights=weights, popularity=np.arange(4.0), bias=FLAT_BIAS
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


def test_an_item_outside_the_catalogue_of_tastes_is_refused():
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
        similarities(FLAT_BIAS, 0)
