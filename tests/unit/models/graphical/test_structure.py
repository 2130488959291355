"""Growing a graph that a junction tree can hold: sizes as the tree's own, limits never broken."""

from itertools import combinations
from math import prod
from time import process_time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.models.graphical import structure
from sfumato.models.graphical.fit import fit_graphical
from sfumato.models.graphical.junction_tree import cells, junction_tree
from sfumato.models.graphical.kernels import fill
from sfumato.models.graphical.model import Numbering
from sfumato.models.graphical.structure import (
    Growth,
    Limits,
    components,
    downward_closure,
    fits,
    holds,
    joining,
    overlaps,
    spanning_forest,
    supported,
    write_answers,
)
from sfumato.randomness import simulation_rng
from sfumato.schema import Measurement, Schema
from sfumato.schema.measurement import Coarse
from sfumato.schema.workload import layout


@st.composite
def graphs(draw):
    """Sizes of up to eight columns and some sets of them."""
    sizes = draw(st.lists(st.integers(1, 9), min_size=1, max_size=8))
    subsets = st.sets(st.integers(0, len(sizes) - 1), min_size=1, max_size=min(3, len(sizes)))
    sets = draw(st.lists(subsets.map(lambda one: tuple(sorted(one))), max_size=10))
    return sizes, sets


def within(clique, all_cells=None):
    return Limits(clique_cells=clique, all_cells=clique * 100 if all_cells is None else all_cells)


def edges_of(sizes, sets):
    edges = np.zeros((len(sizes), len(sizes)), dtype=np.bool_)
    for one in sets:
        for left, right in combinations(one, 2):
            edges[left, right] = edges[right, left] = True
    return edges


def eliminated(sizes, sets):
    edges = edges_of(sizes, sets)
    filled = np.empty_like(edges)
    largest, total = fill(edges, np.array(sizes, dtype=np.float64), filled)
    return filled, largest, total


@given(graphs())
def test_compiled_elimination_has_the_cliques_of_the_junction_tree(graph):
    sizes, sets = graph
    filled, largest, total = eliminated(sizes, sets)
    tree = junction_tree(sizes, sets)
    assert largest == max(prod(sizes[c] for c in clique) for clique in tree.cliques)
    assert total >= tree.cells
    assert np.array_equal(filled, edges_of(sizes, tree.cliques))


def test_the_total_is_exact_where_no_clique_lies_in_another():
    sizes = [3, 4, 5]
    assert eliminated(sizes, [])[1:] == (5, 12)
    assert eliminated(sizes, [(0, 1), (1, 2)])[1:] == (20, 12 + 20 + 5)  # 5 of the last alone


def test_a_table_beyond_any_memory_is_infinite_and_does_not_fit():
    sizes = [10**6] * 60
    everything = tuple(range(60))
    assert eliminated(sizes, [everything])[1] == np.inf
    assert not fits(sizes, [everything], limits=within(1e300))


@given(graphs(), st.integers(9, 2_000))
def test_what_is_supported_is_triangulated_and_within_the_limits(graph, most):
    sizes, ranked = graph
    limits = Limits(clique_cells=most, all_cells=4 * most + 72)
    filled = supported(sizes, ranked, limits=limits)
    places = [c for k in (1, 2) for c in combinations(range(len(sizes)), k) if holds(filled, c)]
    again, largest, total = eliminated(sizes, places)
    assert np.array_equal(again, filled)  # eliminating it once more joins nothing
    assert np.array_equal(filled, filled.T)
    assert largest <= limits.clique_cells
    assert total <= limits.all_cells


@given(graphs())
def test_without_limits_everything_is_supported(graph):
    sizes, ranked = graph
    filled = supported(sizes, ranked, limits=within(np.inf))
    assert all(holds(filled, one) for one in ranked)
    assert fits(sizes, ranked, limits=within(np.inf))


@given(graphs(), st.integers(0, 9))
def test_what_must_be_held_is_held_even_beyond_the_limits_but_nothing_else_is_then(graph, first):
    sizes, sets = graph
    held, ranked = sets[:first], sets[first:]
    tiny = within(0.0)
    filled = supported(sizes, ranked, limits=tiny, required=held)
    least, largest, total = eliminated(sizes, held)
    assert all(holds(filled, one) for one in held)
    _, now, in_all = eliminated(sizes, [c for c in ranked + held if holds(filled, c)])
    assert now <= largest
    assert in_all <= total
    assert fits(sizes, [], limits=tiny, required=held)
    assert not fits(sizes, [], limits=tiny)
    assert (filled | ~least).all()


def test_what_comes_first_is_taken_first():
    """Each pair alone fits; both together need all three columns in one clique or 200 cells."""
    sizes, pairs = [10, 10, 10], [(0, 1), (0, 2), (1, 2)]
    limits = Limits(clique_cells=100, all_cells=250)
    first = supported(sizes, pairs, limits=limits)
    last = supported(sizes, pairs[::-1], limits=limits)
    assert [holds(first, pair) for pair in pairs] == [True, True, False]
    assert [holds(last, pair) for pair in pairs] == [False, True, True]


def test_a_marginal_that_is_too_large_does_not_keep_smaller_ones_out():
    filled = supported([50, 50, 2], [(0, 1), (1, 2)], limits=within(1_000))
    assert not holds(filled, (0, 1))
    assert holds(filled, (1, 2))


def test_a_pair_that_triangulation_joined_is_not_tried_again():
    """A square is triangulated with a diagonal: that pair comes with it."""
    square = [(0, 1), (1, 2), (2, 3), (0, 3)]
    filled = supported([2, 2, 2, 2], square, limits=within(8))
    assert holds(filled, (0, 2)) or holds(filled, (1, 3))
    assert not (holds(filled, (0, 2)) and holds(filled, (1, 3)))


def test_after_so_many_refusals_in_a_row_it_gives_up(monkeypatch):
    sizes = [50, 50, 50, 50, 2]
    refused = list(combinations(range(4), 2))
    ranked = [*refused, (0, 4)]
    monkeypatch.setattr(structure, "_PATIENCE", len(refused))
    assert holds(supported(sizes, ranked, limits=within(100)), (0, 4))
    monkeypatch.setattr(structure, "_PATIENCE", len(refused) - 1)
    assert not holds(supported(sizes, ranked, limits=within(100)), (0, 4))


def test_a_single_column_is_always_held_and_a_triple_only_with_all_its_pairs():
    filled = edges_of([2] * 3, [(0, 1), (1, 2)])
    assert holds(filled, (0,))
    assert holds(filled, ())
    assert not holds(filled, (0, 1, 2))
    filled[0, 2] = filled[2, 0] = True
    assert holds(filled, (0, 1, 2))


@pytest.mark.parametrize("room", [1e3, 1e5])
def test_all_pairs_of_a_hundred_columns_are_tried_in_seconds(room):
    """About 0.5 s; the bound is what a slow and busy machine may take."""
    pairs = list(combinations(range(100), 2))
    order = simulation_rng(1).permutation(len(pairs))
    supported([6] * 5, [(0, 1)], limits=within(100))  # compiled before the clock starts
    start = process_time()
    filled = supported([6] * 100, [pairs[place] for place in order], limits=within(room))
    assert process_time() - start < 20
    assert filled.sum() >= 2 * 99


SCHEMA = Schema.from_dict({"a": 4, "b": 3, "c": 5, "d": 2, "e": 6})


def test_the_closure_has_every_part_up_to_the_degree_and_nothing_else():
    found = downward_closure([("a", "b", "c", "d")], degree=3)
    assert len(found) == 4 + 6 + 4
    assert ("a", "b", "c", "d") not in found
    assert not any("e" in part for part in found)


def test_weights_count_shared_columns_times_importance():
    worth = overlaps([("a", "b", "c")], [("a", "b"), ("c",), ("d",)], np.array([1.0, 10.0, 100.0]))
    assert worth.tolist() == [12.0]


def fitting(held, most):
    candidates = tuple(combinations(SCHEMA.names, 2)) + tuple(combinations(SCHEMA.names, 3))
    growth = Growth(Numbering(SCHEMA), candidates)
    growth.hold(held)
    found = growth.fitting(Limits(clique_cells=most, all_cells=1e9))
    return {candidate for candidate, fits in zip(candidates, found, strict=True) if fits}


def test_a_candidate_fits_exactly_if_the_largest_clique_of_its_tree_does():
    held, numbering = [("a", "b"), ("b", "c"), ("c", "d")], Numbering(SCHEMA)
    found = fitting(held, 40)
    for candidate in combinations(SCHEMA.names, 2):
        sets = [numbering.clique(one) for one in [*held, candidate]]
        tree = junction_tree(numbering.sizes, sets)
        largest = max(cells(tree.sizes, clique) for clique in tree.cliques)
        assert (candidate in found) == (largest <= 40 or candidate in held)


def test_what_the_model_holds_already_is_offered_whatever_the_limit():
    assert fitting([("a", "b", "c")], 1) == {("a", "b", "c"), ("a", "b"), ("a", "c"), ("b", "c")}


def test_only_wanted_answers_are_written():
    counts = np.array([10.0, 20.0, 30.0, 40.0])
    seen = Measurement(target=("a",), values=counts, sigma_counts=0.0)
    model = fit_graphical(Coarse(fine=SCHEMA, groups={}), [seen], total=100.0)
    targets = (("a",), ("d",))
    answers = np.full(int(layout(SCHEMA, targets)[-1]), -1.0)
    write_answers(answers, model, targets, np.array([True, False]))
    assert answers.tolist() == pytest.approx([*counts, -1.0, -1.0])


PAIRS = np.array(list(combinations(range(5), 2)))


def is_forest(places):
    left = components(5, [PAIRS[place] for place in places])
    return len(set(left.tolist())) == 5 - len(places)


def test_it_is_the_best_of_all_forests():
    for seed in range(5):
        gains = simulation_rng(seed).uniform(len(PAIRS)) - 0.3
        found = spanning_forest(PAIRS, gains, columns=5)
        subsets = (places for size in range(5) for places in combinations(range(10), size))
        best = max(gains[list(places)].sum() for places in subsets if is_forest(places))
        assert is_forest(found)
        assert np.isclose(gains[found].sum(), best)


def test_a_pair_without_gain_is_left_out():
    assert spanning_forest(PAIRS, np.full(10, -1.0), columns=5) == []
    assert spanning_forest(np.zeros((0, 2), dtype=np.int64), np.zeros(0), columns=1) == []


def test_a_pair_within_a_tie_may_join_but_none_may_close_a_circle_with_it():
    ties = [(0, 1, 2)]
    first = {
        tuple(PAIRS[place]) for place in np.flatnonzero(joining(PAIRS, [], columns=5, ties=ties))
    }
    assert {(0, 1), (0, 2), (1, 2)} <= first
    chosen = [int(np.flatnonzero((PAIRS == [0, 3]).all(axis=1))[0])]
    after = joining(PAIRS, chosen, columns=5, ties=ties)
    assert not after[np.flatnonzero((PAIRS == [1, 3]).all(axis=1))[0]]
    assert after[np.flatnonzero((PAIRS == [1, 2]).all(axis=1))[0]]
