"""Trees of columns: marginals against brute force, drawn rows, raking, and fits to noisy tables."""

import time
from collections import Counter
from itertools import chain, combinations, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import InputError, SchemaError
from sfumato.models.answers.pair_tables import NoisyTable, even_bins
from sfumato.models.answers.tree import draw_given, fit_tree, rake
from sfumato.models.graphical.model import GraphicalModel
from sfumato.randomness import simulation_rng
from sfumato.schema import Boolean, Category, Integer, Schema

SCHEMA = Schema(
    columns=(
        Category(name="a", values=("x", "y", "z")),
        Boolean(name="b"),
        Integer(name="c", low=1, high=4),
        Boolean(name="d"),
        Boolean(name="e", missing=True),
    )
)
EDGES = (("c", "a"), ("c", "b"), ("b", "e"))  # d is alone; c is not the root


def shares(rng, size):
    raw = rng.uniform(size) + 0.02
    return raw / raw.sum()


def tables_of(seed=1, schema=SCHEMA, edges=EDGES):
    """Shares of each column, and of the pairs of each edge."""
    rng = simulation_rng(seed)
    own = {column.name: shares(rng, column.size) for column in schema}
    pairs = {}
    for one, other in edges:
        start = rng.uniform(own[one].size * own[other].size) ** 4
        start = start.reshape(own[one].size, own[other].size)
        pairs[one, other] = rake(start / start.sum(), own[one], own[other], rounds=100)
    return own, pairs


def a_tree(seed=1, schema=SCHEMA, edges=EDGES, total=80.0):
    own, pairs = tables_of(seed, schema, edges)
    tables = {(name,): share for name, share in own.items()} | pairs
    return GraphicalModel.of_tables(schema, total=total, tables=tables)


def joint(own, pairs, total):
    """Every cell: the edges' tables over the shares of what they have in common."""
    names = SCHEMA.names
    out = np.empty(SCHEMA.shape(names))
    degree = {name: sum(name in edge for edge in pairs) for name in names}
    for cell in np.ndindex(out.shape):
        code = dict(zip(names, cell, strict=True))
        value = total
        for (one, other), table in pairs.items():
            value *= table[code[one], code[other]]
        for name in names:
            value *= own[name][code[name]] ** (1 - degree[name])
        out[cell] = value
    return out


def brute(cells, names):
    out = np.zeros(SCHEMA.shape(names))
    for cell in np.ndindex(cells.shape):
        out[tuple(cell[SCHEMA.names.index(name)] for name in names)] += cells[cell]
    return out


def test_a_marginal_is_the_sum_of_its_cells_for_every_subset_in_every_order():
    model = a_tree()
    cells = joint(*tables_of(), total=80.0)
    subsets = chain.from_iterable(combinations(SCHEMA.names, k) for k in range(6))
    for names in chain.from_iterable(permutations(subset) for subset in subsets):
        found = model.marginal(names)
        assert found.shape == SCHEMA.shape(names)
        np.testing.assert_allclose(found, brute(cells, names), rtol=1e-9, atol=1e-12)


def test_a_column_that_holds_no_share_of_some_code_does_no_harm():
    own = {"a": np.array([0.5, 0.0, 0.5]), "b": np.array([1.0, 0.0])}
    schema = SCHEMA.pick(("a", "b"))
    tables = {("a", "b"): np.outer(own["a"], own["b"])}
    model = GraphicalModel.of_tables(schema, total=10.0, tables=tables)
    assert model.marginal(("b", "a")).tolist() == [[5, 0, 5], [0, 0, 0]]
    rows = model.draw(10, rng=simulation_rng(1))
    assert np.bincount(rows["a"], minlength=3).tolist() == [5, 0, 5]


@given(seed=st.integers(0, 30), n=st.integers(0, 400))
def test_rows_hold_each_pair_of_an_edge_within_one_of_its_share_given_what_is_drawn(seed, n):
    model = a_tree(seed)
    own, pairs = tables_of(seed)
    rows = model.draw(n, rng=simulation_rng(seed))
    assert list(rows) == list(SCHEMA.names)
    assert all(codes.shape == (n,) for codes in rows.values())
    counts = np.bincount(rows["d"], minlength=2)
    assert np.abs(counts - n * own["d"]).max() < 1 + 1e-9
    counts = counted(rows, "c", "a")  # the largest edge is drawn first
    assert np.abs(counts - n * pairs["c", "a"]).max() < 1 + 1e-9
    blocks = counted(rows, "c", "b").sum(axis=1, keepdims=True) * pairs["c", "b"]
    blocks /= pairs["c", "b"].sum(axis=1, keepdims=True)
    assert np.abs(counted(rows, "c", "b") - blocks).max() < 1 + 1e-9


def counted(rows, one, other):
    counts = np.zeros(SCHEMA.shape((one, other)))
    np.add.at(counts, (rows[one], rows[other]), 1)
    return counts


def test_rows_follow_the_model_in_every_pair_with_no_more_than_sampling_error():
    """Squared error under 2 where independent draws have 1 for each free cell, on average."""
    model, n = a_tree(3, total=1.0), 20_000
    rows = model.draw(n, rng=simulation_rng(3))
    for one, other in combinations(SCHEMA.names, 2):
        counts = counted(rows, one, other)
        expected = n * model.marginal((one, other))
        chi_square = ((counts - expected) ** 2 / expected).sum()
        assert chi_square < 2 * expected.size


def test_rows_of_another_model_fail_that_test():
    model, other = a_tree(3, total=1.0), a_tree(4, total=1.0)
    counts = counted(other.draw(20_000, rng=simulation_rng(3)), "c", "a")
    expected = 20_000 * model.marginal(("c", "a"))
    assert ((counts - expected) ** 2 / expected).sum() > 2 * expected.size


def test_a_saved_tree_is_the_same_after_loading():
    model = a_tree()
    again = GraphicalModel.from_arrays(SCHEMA, model.arrays())
    assert again.total == model.total
    assert again.cliques == model.cliques
    for names in (("a", "e"), ("d",)):
        assert again.marginal(names).tolist() == model.marginal(names).tolist()


def noisy(pairs):
    return {e: NoisyTable(frequencies=table, variance=1e-12) for e, table in pairs.items()}


def test_a_circle_is_refused():
    own, pairs = tables_of()
    circle = noisy(pairs | {("a", "e"): np.outer(own["a"], own["e"])})
    with pytest.raises(InputError, match="closes a circle"):
        fit_tree(SCHEMA, total=1.0, shares=own, pairs=circle)


def test_an_edge_of_an_unknown_column_is_refused():
    own, _ = tables_of()
    with pytest.raises(SchemaError, match="no column 'q'"):
        fit_tree(SCHEMA, total=1.0, shares=own, pairs=noisy({("a", "q"): np.ones(1)}))


@given(
    seed=st.integers(0, 1000),
    shape=st.tuples(st.integers(1, 6), st.integers(1, 6)),
    power=st.sampled_from([1, 5, 40]),
    rounds=st.sampled_from([1, 30]),
)
def test_a_raked_table_has_exactly_the_wanted_sums(seed, shape, power, rounds):
    rng = simulation_rng(seed)
    table = rng.uniform(shape[0] * shape[1]).reshape(shape) ** power
    rows, columns = shares(rng, shape[0]), shares(rng, shape[1])
    found = rake(table, rows, columns, rounds=rounds)
    assert found.min() >= 0
    np.testing.assert_allclose(found.sum(axis=1), rows, rtol=0, atol=1e-12)
    np.testing.assert_allclose(found.sum(axis=0), columns, rtol=0, atol=1e-12)


def test_raking_keeps_the_odds_ratios_of_the_table():
    table = np.array([[0.4, 0.1], [0.2, 0.3]])
    found = rake(table, np.array([0.3, 0.7]), np.array([0.6, 0.4]), rounds=200)
    odds = found[0, 0] * found[1, 1] / found[0, 1] / found[1, 0]
    assert odds == pytest.approx(6, rel=1e-4)


def test_raking_an_empty_table_gives_the_product():
    rows, columns = np.array([0.3, 0.7]), np.array([0.6, 0.0, 0.4])
    found = rake(np.zeros((2, 3)), rows, columns)
    np.testing.assert_allclose(found, np.outer(rows, columns), atol=1e-12)


def test_a_fit_to_exact_tables_is_the_tree_itself():
    model, (own, pairs) = a_tree(total=1.0), tables_of()
    found = fit_tree(SCHEMA, total=1.0, shares=own, pairs=noisy(pairs))
    for names in combinations(SCHEMA.names, 2):
        np.testing.assert_allclose(found.marginal(names), model.marginal(names), atol=1e-5)


def test_a_fit_to_pure_noise_is_the_product_and_a_fit_by_bins_keeps_all_shares():
    own, _ = tables_of()
    noise = simulation_rng(5).uniform(4) - 0.5
    table = np.full((2, 2), 0.25) + 0.01 * noise.reshape(2, 2)
    bins = {"a": even_bins(3, most=2), "c": even_bins(4, most=2)}
    pairs = {("a", "c"): NoisyTable(frequencies=table, variance=0.5)}
    found = fit_tree(SCHEMA, total=1.0, shares=own, pairs=pairs, bins=bins)
    product = np.outer(own["a"], own["c"])
    np.testing.assert_allclose(found.marginal(("a", "c")), product, atol=1e-9)
    strong = {("a", "c"): NoisyTable(frequencies=np.diag([0.5, 0.5]), variance=1e-6)}
    found = fit_tree(SCHEMA, total=1.0, shares=own, pairs=strong, bins=bins)
    assert np.abs(found.marginal(("a", "c")) - product).max() > 0.05
    for name in SCHEMA.names:
        np.testing.assert_allclose(found.marginal((name,)), own[name], atol=1e-12)


def test_fifty_columns_of_a_hundred_values_take_seconds():
    names = [f"c{i}" for i in range(50)]
    schema = Schema(columns=tuple(Integer(name=name, low=1, high=100) for name in names))
    edges = [(names[i // 2], names[i]) for i in range(1, 50)]
    start = time.process_time()
    model = a_tree(schema=schema, edges=edges)
    rows = model.draw(20_000, rng=simulation_rng(1))
    ends = [model.marginal((names[0], name)) for name in names[1:]]
    three = model.marginal((names[31], names[40], names[47]))
    assert time.process_time() - start < 10
    assert rows["c49"].max() < 100
    assert all(table.sum() == pytest.approx(80) for table in (*ends, three))


def test_codes_of_one_parent_are_dealt_in_every_order_equally_often():
    """Two of each of two codes over four rows have six orders; 3,000 deals, each order within
    4.5 standard errors of 500: a false alarm in 25,000 runs. Rows in order would all be one."""
    parents, given = np.repeat([0, 1], [4, 500]), np.array([[0.5, 0.5], [0.2, 0.8]])
    rng, seen = simulation_rng(8), Counter()
    for _ in range(3_000):
        rows = draw_given(parents, given, rng=rng)
        seen[tuple(rows[:4].tolist())] += 1
        assert rows[4:].sum() == 400
    assert len(seen) == 6
    assert max(abs(count - 500) for count in seen.values()) < 4.5 * np.sqrt(500 * 5 / 6)
