"""PNCF as published: each formula against a plain one, and that it can't pass for private."""

import ast
import inspect
from itertools import combinations

import numpy as np
import pyarrow as pa
import pytest

import sfumato.release
from sfumato.errors import InputError
from sfumato.evaluation.rating_splits import RatingFormat, random_split
from sfumato.evaluation.recommenders import compare_recommender
from sfumato.lab import pncf
from sfumato.lab.movielens import read_movielens
from sfumato.lab.pncf import (
    PairTable,
    Pncf,
    PncfModel,
    choose_neighbors,
    fit_pncf,
    laplace_step,
    single_raters,
    truncated,
    without,
)
from sfumato.lab.ratings import made_ratings
from sfumato.models.items.rating_rows import RatingRows
from sfumato.models.items.recommenders import KINDS, History, Recommender, from_arrays
from sfumato.privacy.guarantees import PureDP
from sfumato.privacy.sensitivity import OneRow
from sfumato.randomness import simulation_rng
from sfumato.release.recommender import RecommenderRelease
from sfumato.schema.ratings import Catalogue, RatingScale


@pytest.fixture(scope="module")
def rows():
    return made_ratings(60, items=25, ratings=300, rng=simulation_rng(0))


@pytest.fixture(scope="module")
def dense(rows):
    table = np.zeros((rows.people, rows.catalogue))
    table[rows.persons, rows.items] = rows.ratings
    return table


@pytest.fixture(scope="module")
def model(rows):
    return fit_pncf(rows, Pncf(epsilon=1.0, k=5), low=1, high=5, rng=simulation_rng(1))


def cosine(a, b):
    sizes = np.linalg.norm(a) * np.linalg.norm(b)
    return a @ b / sizes if sizes else 0.0


def published_sensitivity(a, b):
    """The two terms of the paper, person by person."""
    found = []
    for x in np.flatnonzero(a * b):
        less, less_too = np.delete(a, x), np.delete(b, x)
        left = np.linalg.norm(less) * np.linalg.norm(less_too)
        whole = np.linalg.norm(a) * np.linalg.norm(b)
        terms = (a[x] * b[x] / left, a @ b * (whole - left) / (whole * left)) if left else ()
        found.append(max(terms) if terms else cosine(a, b))
    return max(found)


def test_similarity_and_sensitivity_are_those_of_the_paper(rows, dense):
    table, met = PairTable(rows), 0
    for item in range(rows.catalogue):
        pairs = table.pairs(item)
        for place, other in enumerate(pairs.others):
            a, b = dense[:, item], dense[:, other]
            assert pairs.raters[place] == ((a > 0) & (b > 0)).sum()
            assert pairs.similarity[place] == pytest.approx(cosine(a, b))
            assert pairs.sensitivity[place] == pytest.approx(published_sensitivity(a, b))
        met += pairs.others.size
    expected = sum(
        ((dense[:, i] > 0) & (dense[:, j] > 0)).any() for i, j in combinations(range(25), 2)
    )
    assert met == 2 * expected


def test_pearson_is_the_correlation_over_common_raters(rows, dense):
    pairs = PairTable(rows).pairs(3, similarity="Pearson")
    for place, other in enumerate(pairs.others):
        both = (dense[:, 3] > 0) & (dense[:, other] > 0)
        a, b = dense[both, 3], dense[both, other]
        expected = np.corrcoef(a, b)[0, 1] if a.std() * b.std() > 0 else 0.0
        assert pairs.similarity[place] == pytest.approx(expected, abs=1e-9)


def changes(rated):
    """RS of two items, and by how much each person's absence changes their cosine."""
    table = RatingRows.of(
        *np.nonzero(rated), rated[np.nonzero(rated)], people=len(rated), catalogue=2
    )
    moved = [
        abs(cosine(*rated.T) - cosine(*np.delete(rated, person, axis=0).T))
        for person in range(len(rated))
    ]
    return PairTable(table).pairs(0).sensitivity[0], moved


def test_the_published_sensitivity_bounds_what_a_common_rater_changes():
    for seed in range(50):
        rated = simulation_rng(seed).below(5, 24).reshape(12, 2) + 1.0
        claimed, moved = changes(rated)
        assert max(moved) <= claimed


def test_it_does_not_bound_what_somebody_who_rated_one_of_both_changes():
    """They are in a norm, and the formula does not know them: ten times as much."""
    rated = np.ones((21, 2))
    rated[20] = 5, 0
    claimed, moved = changes(rated)
    assert max(moved[:20]) <= claimed
    assert moved[20] > 9 * claimed


def test_truncation_lifts_what_is_far_below_the_kth():
    spec = Pncf(epsilon=40.0, k=2, missing=0.5)
    similarity = np.array([0.9, 0.8, 0.5, 0.1])
    width = 4 * 2 * 0.01 / 40 * np.log(2 * 2 / 0.5)
    found = truncated(similarity, np.full(4, 0.01), spec)
    assert found.tolist() == pytest.approx([0.9, 0.8, 0.8 - width, 0.8 - width])
    assert truncated(similarity, np.full(4, 9.0), spec).tolist() == similarity.tolist()
    assert truncated(similarity[:2], np.full(2, 0.01), spec).tolist() == [0.9, 0.8]


def test_neighbors_are_drawn_in_proportion_to_their_weights(rows):
    """20,000 draws of one neighbor: 5 standard deviations for each of the candidates, one false
    alarm in about 70,000; weights without the 4 would be noticed.
    """
    pairs, rng, draws = PairTable(rows).pairs(2), simulation_rng(3), 20_000
    spec = Pncf(epsilon=4.0, k=1, beta=0.0, missing=0.5)
    order = np.argsort(-pairs.similarity, kind="stable")
    found = np.bincount(
        [choose_neighbors(pairs, spec, rng=rng)[0] for _ in range(draws)],
        minlength=pairs.others.size,
    )

    def misfit(divisor):
        lifted = np.empty(order.size)
        lifted[order] = truncated(pairs.similarity[order], pairs.sensitivity[order], spec)
        weights = np.exp(spec.epsilon * lifted / (divisor * pairs.sensitivity))
        chance = weights / weights.sum()
        return np.abs((found - draws * chance) / np.sqrt(draws * chance * (1 - chance))).max()

    assert misfit(4) < 5
    assert misfit(1) > 5


def test_the_noise_on_similarities_has_the_published_size(rows):
    """Mean |Lap(b)| is b, with a relative error of 1/sqrt(n): 4 of them, 1 in 16,000."""
    spec = Pncf(epsilon=2.0, k=40)
    table, gaps, scales = PairTable(rows), [], []
    for seed in range(40):
        fitted = fit_pncf(rows, spec, low=1, high=5, rng=simulation_rng(100 + seed))
        for item in (0, 5, 9):
            others = fitted.neighbors[item][fitted.neighbors[item] >= 0]
            centers, scale = laplace_step(table, item, others, spec)
            gaps.append(np.abs(fitted.similarity[item, : others.size] - centers) / scale)
            scales.append(scale)
    gap = np.concatenate(gaps)
    assert abs(gap.mean() - 1) < 4 / np.sqrt(gap.size)
    assert abs(1.3 * gap.mean() - 1) > 4 / np.sqrt(gap.size)  # a scale 30% off would be seen
    pairs = table.pairs(0)
    _, scale = laplace_step(table, 0, pairs.others, spec)
    assert np.allclose(scale, 2 * np.exp(-0.1) * pairs.sensitivity / 2.0)


def test_a_prediction_is_the_item_s_mean_and_what_neighbors_got_above_theirs(rows, model):
    history = History(np.array([1, 4, 7, 20]), np.array([5.0, 2.0, 4.0, 1.0]))
    means = rows.item_sums(rows.ratings) / np.maximum(rows.counts, 1)
    predicted = model.predict(history)
    for item in np.flatnonzero(rows.counts):
        rated = [n for n in range(5) if model.neighbors[item, n] in history.items]
        weights = model.similarity[item, rated]
        codes = model.neighbors[item, rated]
        given = history.ratings[np.searchsorted(history.items, codes)]
        above = weights @ (given - means[codes]) / np.abs(weights).sum() if rated else 0.0
        assert predicted[item] == pytest.approx(np.clip(means[item] + above, 1, 5))


def test_an_item_that_nobody_rated_has_no_neighbors_and_is_nobody_s():
    found = RatingRows.of(
        np.array([0, 0, 1]), np.array([0, 1, 1]), np.array([5.0, 3.0, 2.0]), people=2, catalogue=3
    )
    model = fit_pncf(found, Pncf(epsilon=1.0, k=2), low=1, high=5, rng=simulation_rng(0))
    assert model.neighbors[2].tolist() == [-1, -1]
    assert model.neighbors[:2, 0].tolist() == [1, 0]


def test_single_raters_are_counted_as_by_hand(rows, dense):
    both = (dense > 0).T.astype(int) @ (dense > 0).astype(int)
    upper = np.triu(both, 1)
    found = single_raters(rows)
    assert (found.pairs, found.single) == ((upper > 0).sum(), (upper == 1).sum())
    alone = {
        int(np.flatnonzero((dense[:, i] > 0) & (dense[:, j] > 0))[0])
        for i, j in zip(*np.nonzero(upper == 1), strict=True)
    }
    assert found.exposed == len(alone)
    assert found.people == (dense > 0).any(axis=1).sum()


def test_without_a_person_all_else_stays(rows, dense):
    less = without(rows, rows.persons == 7)
    assert less.people == rows.people
    assert less.items.size == rows.items.size - (dense[7] > 0).sum()
    assert not (less.persons == 7).any()


def test_it_recommends_but_has_no_guarantee_and_is_no_release(model):
    assert isinstance(model, Recommender)
    assert model.promise == "claims no guarantee"
    assert model.to_dict()["promise"] == "claims no guarantee"
    releases = tuple(
        kind
        for name, kind in vars(sfumato.release).items()
        if inspect.isclass(kind) and name.endswith("Release")
    )
    assert releases
    for value in (model, model.spec):
        assert not isinstance(value, releases)
        for verb in ("guarantee", "save", "publish", "write_into", "run"):
            assert not hasattr(value, verb)


def test_a_release_refuses_it(model):
    with pytest.raises(InputError, match="a release can't save"):
        RecommenderRelease(
            dataset="d",
            guarantee=PureDP(1),
            protect=OneRow(),
            private=True,
            method={},
            catalogue=Catalogue.of(range(25)),
            scale=RatingScale(1, 5),
            model=model,
            measurements=(),
            ledger={},
        )


def test_it_can_be_neither_stored_nor_read_so_no_release_can_hold_it(model):
    """A release stores ``arrays`` under a ``kind`` that it knows."""
    with pytest.raises(InputError, match="claims no guarantee and can't become a release"):
        model.arrays()
    assert PncfModel.kind not in KINDS
    with pytest.raises(InputError, match="kind must be one of"):
        from_arrays(PncfModel.kind, {})


def test_its_module_knows_nothing_that_makes_a_release():
    tree = ast.parse(inspect.getsource(pncf))
    imported = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    makers = ("release", "publishing", "gate", "recommend")
    for room in (*makers, "privacy", "ledger", "noise", "local"):
        assert not any(name.startswith(f"sfumato.{room}") for name in imported)


@pytest.mark.parametrize(
    "wrong",
    [
        {"epsilon": 0},
        {"k": 0},
        {"beta": -1.0},
        {"missing": 1.0},
        {"candidates": 0},
        {"similarity": "Jaccard"},
    ],
    ids=str,
)
def test_parameters_are_checked(wrong):
    with pytest.raises(InputError, match=f"{next(iter(wrong))} must be"):
        Pncf(**{"epsilon": 1.0, **wrong})


def test_more_epsilon_is_more_accurate_on_made_ratings():
    made = made_ratings(300, items=100, ratings=6_000, rng=simulation_rng(4))
    form = RatingFormat(catalogue=range(100), scale=RatingScale(1, 5))
    split = random_split(pa.table(made.columns()), form=form, rng=simulation_rng(5))
    mae = [
        compare_recommender(
            fit_pncf(split.train, Pncf(epsilon=e), low=1, high=5, rng=simulation_rng(6)),
            split,
            ledger=None,
        ).mae
        for e in (0.1, 100.0)
    ]
    assert mae[1] < mae[0]


def test_movielens_figures_are_near_those_of_a_prototype(real_data):
    """One split and seed; figures differ by about .002 between them."""
    lens = read_movielens(real_data / "movielens")
    split = random_split(lens.ratings, form=lens.form, rng=simulation_rng(100))
    for epsilon, prototype in ((1.0, 0.841), (10.0, 0.789)):
        model = fit_pncf(split.train, Pncf(epsilon=epsilon), low=1, high=5, rng=simulation_rng(1))
        errors = compare_recommender(model, split, ledger=None)
        assert errors.mae == pytest.approx(prototype, abs=0.015)
