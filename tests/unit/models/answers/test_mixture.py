"""Mixtures: marginals and rows against brute force; fits that find classes where there are some."""

from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import InputError
from sfumato.models.answers.mixture import MixtureModel, fit_mixture
from sfumato.models.answers.pair_tables import PairAnswers, even_bins, whole
from sfumato.randomness import simulation_rng
from sfumato.schema import Boolean, Category, Integer, Schema

SCHEMA = Schema(
    columns=(
        Category(name="a", values=("x", "y", "z")),
        Boolean(name="b"),
        Integer(name="c", low=1, high=12),
        Boolean(name="d"),
    )
)
BINS = {"a": whole(3), "b": whole(2), "c": even_bins(12, most=3), "d": whole(2)}


def a_mixture(seed=1, classes=3, total=50.0, schema=SCHEMA):
    rng = simulation_rng(seed)

    def rows(count, size):
        raw = rng.uniform(count * size).reshape(count, size) ** 3 + 0.01
        return raw / raw.sum(axis=1, keepdims=True)

    shares = {column.name: rows(classes, column.size) for column in schema}
    return MixtureModel(schema=schema, total=total, weights=rows(1, classes)[0], shares=shares)


def one_ways(model):
    return {name: model.marginal((name,)) / model.total for name in model.schema.names}


def by_bins(model, edge, bins):
    table = model.marginal(edge) / model.total
    return bins[edge[1]].sums(bins[edge[0]].sums(table), axis=1)


def ask(model, n, *, bins=BINS, p=0.6, rng=None):
    """Answers of n people about each pair; without a generator exactly as often as expected."""
    answers = []
    for edge in combinations(model.schema.names, 2):
        table = by_bins(model, edge, bins)
        q = (1 - p) / (table.size - 1)
        chances = q + (p - q) * table
        counts = np.round(n * chances).astype(np.int64)
        if rng is not None:
            drawn = np.searchsorted(np.cumsum(chances), rng.uniform(n), side="right")
            drawn = np.minimum(drawn, table.size - 1)
            counts = np.bincount(drawn, minlength=table.size).reshape(table.shape)
        answers.append(PairAnswers(columns=edge, counts=counts, p=p, q=q))
    return answers


def fit(model, answers, *, bins=BINS, seed=1):
    return fit_mixture(
        model.schema,
        total=model.total,
        one_ways=one_ways(model),
        answers=answers,
        bins=bins,
        rng=simulation_rng(seed),
    )


def test_a_marginal_is_the_sum_over_classes_of_products_in_every_order():
    model = a_mixture()
    for names in permutations(SCHEMA.names, 3):
        expected = np.zeros(SCHEMA.shape(names))
        for cell in np.ndindex(expected.shape):
            for k, weight in enumerate(model.weights):
                shares = [model.shares[n][k, c] for n, c in zip(names, cell, strict=True)]
                expected[cell] += model.total * weight * np.prod(shares)
        np.testing.assert_allclose(model.marginal(names), expected, rtol=1e-12)
    assert float(model.marginal(())) == pytest.approx(50)


@given(seed=st.integers(0, 30), n=st.integers(0, 300))
def test_rows_hold_each_share_within_one_for_each_class(seed, n):
    model = a_mixture(seed, total=1.0)
    rows = model.draw(n, rng=simulation_rng(seed))
    for name in SCHEMA.names:
        counts = np.bincount(rows[name], minlength=SCHEMA[name].size)
        assert counts.sum() == n
        assert np.abs(counts - n * model.marginal((name,))).max() < 2 * 3 + 1e-9


def test_rows_follow_the_model_in_every_pair_and_in_some_not_the_product():
    """Squared error under 2 where independent draws have 1 for each free cell, on average."""
    model, n = a_mixture(2, total=1.0), 20_000
    rows, product_fits = model.draw(n, rng=simulation_rng(3)), []
    for edge in combinations(SCHEMA.names, 2):
        counts = np.zeros(SCHEMA.shape(edge))
        np.add.at(counts, tuple(rows[name] for name in edge), 1)
        own = [model.marginal((name,)) for name in edge]
        gaps = [
            ((counts - n * t) ** 2 / (n * t)).sum() for t in (model.marginal(edge), np.outer(*own))
        ]
        assert gaps[0] < 2 * counts.size
        product_fits.append(gaps[1] < 2 * counts.size)
    assert not all(product_fits)


def test_a_saved_mixture_is_the_same_after_loading():
    model = a_mixture()
    again = MixtureModel.from_arrays(SCHEMA, model.arrays())
    assert again.total == model.total
    assert again.marginal(("a", "c")).tolist() == model.marginal(("a", "c")).tolist()


def test_a_fit_has_exactly_the_one_way_tables_it_was_given():
    model = a_mixture(total=1.0)
    found = fit(model, ask(model, 3_000, rng=simulation_rng(4))).model
    assert found.weights.size > 1
    for name, shares in one_ways(model).items():
        np.testing.assert_allclose(found.marginal((name,)), shares, rtol=0, atol=1e-6)


def test_a_fit_to_many_answers_finds_the_two_way_tables():
    """Within a fifth of the product's distance, in the mean over pairs of bins."""
    model = a_mixture(5, classes=2, total=1.0)
    found, ours, of_product = fit(model, ask(model, 100_000)).model, 0.0, 0.0
    for edge in combinations(SCHEMA.names, 2):
        exact = by_bins(model, edge, BINS)
        ours += np.abs(by_bins(found, edge, BINS) - exact).sum()
        of_product += np.abs(np.outer(exact.sum(axis=1), exact.sum(axis=0)) - exact).sum()
    assert ours < of_product / 5


def test_inside_a_bin_codes_follow_the_one_way_table_whatever_the_other_column():
    model = a_mixture(5, classes=2, total=1.0)
    found = fit(model, ask(model, 100_000)).model.marginal(("a", "c"))
    own = one_ways(model)["c"]
    for row in found:
        inside = BINS["c"].inside(row)
        np.testing.assert_allclose(inside, BINS["c"].inside(own), atol=1e-6)


def test_independent_columns_stay_one_class():
    """In 12 runs: a class too many is taken by chance in some runs, but never without cost."""
    model = a_mixture(6, classes=1, total=1.0)
    sizes = []
    for seed in range(12):
        rng = simulation_rng(seed)
        found = fit(model, ask(model, 1_000, rng=rng), seed=seed)
        sizes.append(found.model.weights.size)
        assert (found.parameters == 0) == (sizes[-1] == 1)
    assert sizes.count(1) >= 10


def test_a_fit_is_nearer_than_the_product_where_columns_depend():
    """In the mean over pairs, in each of 10 runs, from answers that are noise for the most part."""
    names = [f"q{i}" for i in range(10)]
    schema = Schema(columns=tuple(Boolean(name=name) for name in names))
    bins = dict.fromkeys(names, whole(2))
    low, high = np.array([0.8, 0.2]), np.array([0.3, 0.7])
    shares = dict.fromkeys(names, np.array([low, high]))
    model = MixtureModel(schema=schema, total=1.0, weights=np.array([0.6, 0.4]), shares=shares)
    for seed in range(10):
        answers = ask(model, 300, bins=bins, p=0.47, rng=simulation_rng(seed))
        found = fit(model, answers, bins=bins, seed=seed).model
        edges = list(combinations(names, 2))
        gaps = [np.abs(found.marginal(e) - model.marginal(e)).sum() for e in edges]
        own = np.outer(model.marginal(names[:1]), model.marginal(names[1:2]))
        assert np.mean(gaps) < 0.6 * np.abs(own - model.marginal(edges[0])).sum()


def test_no_answers_are_independence_and_other_bins_are_refused():
    model = a_mixture(total=1.0)
    found = fit(model, [])
    assert found.parameters == 0
    assert found.model.marginal(("b",)) == pytest.approx(model.marginal(("b",)))
    with pytest.raises(InputError, match="other bins"):
        fit(model, ask(model, 100), bins=BINS | {"c": whole(12)})


def test_a_code_without_any_share_stays_without():
    shares = {"b": np.array([1.0, 0.0]), "d": np.array([0.5, 0.5])}
    schema, counts = SCHEMA.pick(("b", "d")), np.array([[40, 5], [30, 25]])
    answers = [PairAnswers(columns=("b", "d"), counts=counts, p=0.6, q=0.4 / 3)]
    found = fit_mixture(
        schema, total=1.0, one_ways=shares, answers=answers, bins=BINS, rng=simulation_rng(1)
    )
    assert np.isfinite(found.model.marginal(("b", "d"))).all()
    assert found.model.marginal(("b",)) == pytest.approx([1.0, 0.0], abs=1e-9)
