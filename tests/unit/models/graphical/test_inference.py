"""Marginals of any columns, near or far apart in the tree: against the explicit joint."""

from itertools import chain as flat
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.errors import InputError
from sfumato.models.graphical import inference
from sfumato.models.graphical.beliefs import Beliefs
from sfumato.models.graphical.junction_tree import cells, junction_tree
from sfumato.randomness import simulation_rng


@st.composite
def trees(draw):
    """Junction trees of up to 6 columns: connected or not, with columns of a single value."""
    sizes = tuple(draw(st.lists(st.integers(1, 4), min_size=2, max_size=6)))
    sets = st.sets(st.integers(0, len(sizes) - 1), min_size=1, max_size=3)
    return junction_tree(sizes, draw(st.lists(sets, max_size=7)))


def random_beliefs(tree, seed, *, zeros=0.0):
    """Calibrated beliefs with random tables, some cells of which are impossible."""
    rng, beliefs = simulation_rng(seed), Beliefs(tree)
    for place, clique in enumerate(tree.cliques):
        factor = np.exp(3 * rng.uniform(cells(tree.sizes, clique)))
        factor[1:] *= rng.uniform(factor.size - 1) >= zeros
        beliefs.multiply(place, clique, factor)
    beliefs.calibrate()
    return beliefs


def joint(beliefs):
    """Cliques over separators, cell by cell."""
    tree, out = beliefs.tree, np.ones(beliefs.tree.sizes)
    for clique, table in zip(tree.cliques, beliefs.tables, strict=True):
        out = out * spread(tree, clique, table)
    for columns, table in zip(tree.separators[1:], beliefs.separators[1:], strict=True):
        below = np.broadcast_to(spread(tree, columns, table), tree.sizes)
        out = np.divide(out, below, out=np.zeros(tree.sizes), where=below > 0)
    return out


def spread(tree, columns, table):
    return table.reshape([n if column in columns else 1 for column, n in enumerate(tree.sizes)])


def summed(dense, columns):
    others = tuple(column for column in range(dense.ndim) if column not in columns)
    return dense.sum(axis=others).reshape(-1)


def every_query(columns):
    return list(flat.from_iterable(combinations(range(columns), k) for k in range(columns + 1)))


@settings(max_examples=40)
@given(tree=trees(), seed=st.integers(0, 999), zeros=st.sampled_from([0.0, 0.4]))
def test_every_marginal_is_that_of_the_explicit_joint(tree, seed, zeros):
    beliefs = random_beliefs(tree, seed, zeros=zeros)
    dense, queries = joint(beliefs), every_query(len(tree.sizes))
    found = inference.marginals(beliefs, queries)
    for query, own in zip(queries, found, strict=True):
        assert own == pytest.approx(summed(dense, query), abs=1e-12)


@given(tree=trees(), seed=st.integers(0, 999))
def test_what_queries_share_does_not_change_their_answers(tree, seed):
    beliefs = random_beliefs(tree, seed)
    queries = every_query(len(tree.sizes))
    together = inference.marginals(beliefs, queries[::-1])[::-1]
    for query, own in zip(queries, together, strict=True):
        assert own == pytest.approx(inference.marginals(beliefs, [query])[0], abs=1e-14)


def chain(columns, size=2):
    return junction_tree((size,) * columns, [(c, c + 1) for c in range(columns - 1)])


def test_the_ends_of_a_chain_of_a_thousand_columns_are_a_power_of_its_step():
    """p(last | first) = step^999; the way is too long to recurse on."""
    beliefs = Beliefs(chain(1000))
    step = np.array([0.9995, 0.0005, 0.0005, 0.9995])
    for place, clique in enumerate(beliefs.tree.cliques):
        beliefs.multiply(place, clique, step)
    beliefs.calibrate()
    (ends,) = inference.marginals(beliefs, [(0, 999)])
    same = (1 + (1 - 2 * 0.0005) ** 999) / 2
    assert ends == pytest.approx([same / 2, (1 - same) / 2, (1 - same) / 2, same / 2], abs=1e-9)


def test_all_pairs_of_a_hundred_columns_are_quick_and_right():
    """A chain of equal steps depends on the distance only."""
    beliefs = Beliefs(chain(100))
    for place, clique in enumerate(beliefs.tree.cliques):
        beliefs.multiply(place, clique, np.array([0.9, 0.1, 0.1, 0.9]))
    beliefs.calibrate()
    pairs = list(combinations(range(100), 2))
    for (left, right), found in zip(pairs, inference.marginals(beliefs, pairs), strict=True):
        assert found[0] == pytest.approx((1 + 0.8 ** (right - left)) / 4, abs=1e-9)


def test_a_query_of_twenty_columns_far_apart_is_answered():
    """More columns than a clique has, on both sides of the place that gathers them."""
    beliefs = random_beliefs(chain(40), 3)
    query = tuple(range(0, 40, 2))
    (found,) = inference.marginals(beliefs, [query])
    assert found.size == 2**20
    assert found.sum() == pytest.approx(1)
    (pair,) = inference.marginals(beliefs, [(0, 38)])
    assert found.reshape(2, -1, 2).sum(axis=1).reshape(-1) == pytest.approx(pair, abs=1e-12)


def test_seventy_columns_of_one_value_add_no_axes():
    """There are fewer letters for axes than columns here; and numpy has no more than 64."""
    sizes = (1,) * 70 + (2, 3)
    beliefs = random_beliefs(junction_tree(sizes, [(69, 70), (0, 71)]), 5)
    (found,) = inference.marginals(beliefs, [tuple(range(72))])
    left, right = inference.marginals(beliefs, [(70,), (71,)])
    assert found == pytest.approx(np.outer(left, right).reshape(-1), abs=1e-12)


def test_a_marginal_that_is_too_large_is_refused_before_it_is_computed():
    beliefs = Beliefs(chain(60))
    with pytest.raises(InputError, match=r"1,152,921,504,606,846,976 cells .* fewer columns"):
        inference.marginals(beliefs, [tuple(range(60))])


def test_a_table_on_the_way_counts_too(monkeypatch):
    """A wanted pair whose path leads through a wide separator."""
    monkeypatch.setattr(inference, "MOST_CELLS", 20)
    tree = junction_tree((4, 4, 4, 4), [(0, 1, 2), (1, 2, 3)])
    with pytest.raises(InputError, match="fewer columns"):
        inference.marginals(Beliefs(tree), [(0, 1, 3)])
    assert inference.marginals(Beliefs(tree), [(0, 3)])[0].size == 16


def test_a_separator_with_an_empty_cell_hands_on_nothing_for_it():
    beliefs = Beliefs(chain(3, size=3))
    for place in (0, 1):
        clique = beliefs.tree.cliques[place]
        beliefs.multiply(place, (1,), np.array([0.0, 1.0, 2.0]))
        beliefs.multiply(place, clique, np.arange(1.0, 10.0))
    beliefs.calibrate()
    (ends,) = inference.marginals(beliefs, [(0, 2)])
    assert np.isfinite(ends).all()
    assert ends == pytest.approx(summed(joint(beliefs), (0, 2)), abs=1e-14)
