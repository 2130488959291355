"""The choice between independence, a tree and a mixture: each where it belongs."""

from itertools import combinations, pairwise

import numpy as np
import pytest

from sfumato.errors import InputError
from sfumato.models.answers.group_fit import (
    by_bins,
    fit_grouped,
    likely_edges,
    log_likelihood,
    mutual_information,
)
from sfumato.models.answers.mixture import MixtureModel
from sfumato.models.answers.pair_tables import NoisyTable, PairAnswers, even_bins, whole
from sfumato.models.answers.tree import fit_tree
from sfumato.models.dense.model import DenseModel
from sfumato.models.graphical.model import GraphicalModel
from sfumato.randomness import simulation_rng
from sfumato.schema import Integer, Schema

NAMES = ("a", "b", "c", "d", "e", "f")
SCHEMA = Schema(columns=tuple(Integer(name=name, low=0, high=3) for name in NAMES))
BINS = {name: whole(4) for name in NAMES}
STAY = 0.7 * np.eye(4) + 0.3 / 4  # the next column's code for each code


def a_chain(order=NAMES):
    """Each column is like the one before it."""
    pairs = dict.fromkeys(pairwise(order), STAY / 4)
    shares = {name: np.full(4, 0.25) for name in NAMES}
    tables = {(name,): share for name, share in shares.items()} | pairs
    return GraphicalModel.of_tables(SCHEMA, total=1.0, tables=tables)


def two_kinds():
    low, high = np.array([0.6, 0.2, 0.1, 0.1]), np.array([0.05, 0.15, 0.2, 0.6])
    shares = dict.fromkeys(NAMES, np.array([low, high]))
    return MixtureModel(schema=SCHEMA, total=1.0, weights=np.array([0.5, 0.5]), shares=shares)


def independent():
    own = np.array([0.4, 0.3, 0.2, 0.1])
    return fit_tree(SCHEMA, total=1.0, shares=dict.fromkeys(NAMES, own), pairs={})


def ask(model, n, *, seed, bins=BINS, p=0.5):
    """Noisy one-way tables, and randomized answers of n people about each pair."""
    rng, answers = simulation_rng(seed), []
    for edge in combinations(NAMES, 2):
        table = bins[edge[1]].sums(bins[edge[0]].sums(model.marginal(edge)), axis=1)
        q = (1 - p) / (table.size - 1)
        drawn = np.searchsorted(np.cumsum(q + (p - q) * table), rng.uniform(n), side="right")
        counts = np.bincount(np.minimum(drawn, table.size - 1), minlength=table.size)
        answers.append(PairAnswers(columns=edge, counts=counts.reshape(table.shape), p=p, q=q))
    one_ways = {
        name: NoisyTable(
            frequencies=model.marginal((name,)) + 0.02 * (rng.uniform(4) - 0.5), variance=3e-5
        )
        for name in NAMES
    }
    return {"one_ways": one_ways, "answers": answers, "bins": bins}


def fit(model, n, *, seed=1, **options):
    asked = ask(model, n, seed=seed, **options)
    return fit_grouped(SCHEMA, total=100.0, rng=simulation_rng(seed), **asked)


def error(found, model):
    """Mean total variation of two-way tables."""
    return np.mean(
        [
            np.abs(found.marginal(edge) / found.total - model.marginal(edge)).sum() / 2
            for edge in combinations(NAMES, 2)
        ]
    )


def test_independent_columns_stay_independent():
    for seed in range(5):
        found = fit(independent(), 400, seed=seed)
        assert found.kind == "none"
        assert found.worth["none"] == 0 >= max(found.worth.values())
        assert found.model.total == 100


def test_a_chain_is_found_to_be_a_tree_with_its_own_edges():
    order = ("c", "a", "f", "b", "e", "d")
    model = a_chain(order)
    found = fit(model, 2_000)
    assert found.kind == "tree"
    wanted = {frozenset(edge) for edge in pairwise(order)}
    assert {frozenset(edge) for edge in found.model.cliques} == wanted
    assert error(found.model, model) < 0.5 * error(independent_of(model), model)


def test_two_kinds_of_people_are_found_to_be_a_mixture():
    model = two_kinds()
    found = fit(model, 2_000)
    assert found.kind == "pairs"
    assert error(found.model, model) < 0.5 * error(independent_of(model), model)


def independent_of(model):
    shares = {name: model.marginal((name,)) / model.total for name in NAMES}
    return fit_tree(SCHEMA, total=1.0, shares=shares, pairs={})


@pytest.mark.parametrize("make", [independent, a_chain, two_kinds])
@pytest.mark.parametrize("n", [20, 200])
def test_few_answers_make_no_model_worse_than_independence(make, n):
    """Mean over 10 runs, and at most 2% more than independent columns with the same tables."""
    model, ratios = make(), []
    for seed in range(10):
        asked = ask(model, n, seed=seed)
        found = fit_grouped(SCHEMA, total=1.0, rng=simulation_rng(seed), **asked)
        alone = fit_grouped(SCHEMA, total=1.0, rng=simulation_rng(seed), **asked | {"answers": []})
        ratios.append([error(found.model, model), error(alone.model, model)])
    ours, base = np.mean(ratios, axis=0)
    assert ours < 1.02 * base


def test_all_structures_have_the_same_one_way_tables():
    """They come from all the answers, whatever they say of dependence."""
    model = two_kinds()
    asked = ask(model, 2_000, seed=3)
    found = fit_grouped(SCHEMA, total=1.0, rng=simulation_rng(3), **asked)
    for name in NAMES:
        own = np.abs(found.model.marginal((name,)) - model.marginal((name,))).sum()
        given = np.abs(asked["one_ways"][name].frequencies - model.marginal((name,))).sum()
        assert own < given + 0.01


def test_without_answers_about_pairs_columns_are_independent():
    asked = ask(independent(), 10, seed=1)
    silent = [
        PairAnswers(columns=a.columns, counts=0 * a.counts, p=a.p, q=a.q) for a in asked["answers"]
    ]
    for answers in ([], silent):
        options = asked | {"answers": answers}
        found = fit_grouped(SCHEMA, total=5.0, rng=simulation_rng(1), **options)
        assert found.kind == "none"


def test_a_pair_that_stands_twice_is_refused():
    asked = ask(independent(), 10, seed=1)
    twice = asked | {"answers": asked["answers"] * 2}
    with pytest.raises(InputError, match="stands twice"):
        fit_grouped(SCHEMA, total=5.0, rng=simulation_rng(1), **twice)


def test_the_likelihood_is_that_of_randomized_cells():
    schema = SCHEMA.pick(("a", "b"))
    cells = simulation_rng(2).uniform(16).reshape(4, 4)
    counts, p, q = np.arange(16).reshape(4, 4), 0.4, 0.04
    expected = 0.0
    for cell in np.ndindex(4, 4):
        expected += counts[cell] * np.log(q + (p - q) * cells[cell] / cells.sum())
    answers = PairAnswers(columns=("a", "b"), counts=counts, p=p, q=q)
    found = log_likelihood(DenseModel(schema=schema, counts=cells), [answers])
    assert found == pytest.approx(expected)


@pytest.mark.parametrize("make", [independent, a_chain, two_kinds])
def test_a_model_of_bins_has_the_marginals_of_the_model_summed(make):
    bins = BINS | {"b": even_bins(4, most=2), "e": even_bins(4, most=3)}
    asked = ask(make(), 2_000, seed=4, bins=bins)
    model = fit_grouped(SCHEMA, total=7.0, rng=simulation_rng(4), **asked).model
    coarse = by_bins(model, bins)
    for one, other in combinations(NAMES, 2):
        summed = bins[other].sums(bins[one].sums(model.marginal((one, other))), axis=1)
        np.testing.assert_allclose(coarse.marginal((one, other)), summed, rtol=0, atol=1e-5)


def test_pure_noise_has_no_likely_edges():
    shares = {name: np.full(4, 0.25) for name in NAMES}
    noise = np.full((4, 4), 1 / 16) + 1e-3 * np.outer([1, -1, 0, 0], [1, -1, 0, 0])
    pairs = {("a", "b"): NoisyTable(frequencies=noise, variance=1.0)}
    assert likely_edges(pairs, shares, BINS) == ()


def test_mutual_information_of_a_product_is_zero():
    assert mutual_information(np.outer([0.2, 0.8], [0.5, 0.3, 0.2])) == 0
