"""Structure of Bayesian networks, and the sets of parents that a budget allows."""

from itertools import chain, combinations, product
from math import comb, prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import InputError
from sfumato.models.answers.dependence import spanning_tree
from sfumato.models.bayes.network import (
    Network,
    affordable,
    greedy_network_from_scores,
    largest_useful_table,
    maximal_parent_sets,
)
from sfumato.models.information import mutual_information
from sfumato.randomness import simulation_rng

DIAMOND = Network(order=(2, 0, 1, 3, 4), parents=((2,), (2,), (), (0, 1), (3,)))


def brute_force(attributes, degree, root, score):
    """Every candidate at every step: (order, parents, scores, evaluations)."""
    order, parents, scores, evaluations = [root], [()] * attributes, [0.0] * attributes, 0
    while len(order) < attributes:
        left = [a for a in range(attributes) if a not in order]
        sets = list(combinations(sorted(order), min(degree, len(order))))
        ranked = [(-score(child, own), child, own) for child, own in product(left, sets)]
        evaluations += len(ranked)
        minus, child, own = min(ranked)
        order.append(child)
        parents[child], scores[child] = own, -minus
    return tuple(order), tuple(parents), tuple(scores), evaluations


def symmetric(attributes, seed, whole=None):
    rng = simulation_rng(seed)
    values = rng.uniform(attributes**2) if whole is None else rng.below(whole, attributes**2)
    upper = np.triu(values.reshape(attributes, attributes), 1)
    return upper + upper.T


def root_of(seed, attributes):
    return int(simulation_rng(seed).below(attributes, 1)[0])


def test_a_markov_blanket_is_parents_children_and_their_other_parents():
    assert DIAMOND.markov_blanket(0) == (1, 2, 3)
    assert DIAMOND.markov_blanket(2) == (0, 1)
    assert DIAMOND.markov_blanket(4) == (3,)
    assert Network(order=(0,), parents=((),)).markov_blanket(0) == ()


def test_markov_blankets_are_mutual():
    for one, other in product(range(5), repeat=2):
        assert (one in DIAMOND.markov_blanket(other)) == (other in DIAMOND.markov_blanket(one))


def test_edges_point_from_parent_to_child_in_order():
    assert DIAMOND.edges == ((2, 0), (2, 1), (0, 3), (1, 3), (3, 4))
    assert DIAMOND.children(2) == (0, 1)


@pytest.mark.parametrize(
    ("order", "parents"),
    [
        ((0, 1), ((1,), ())),  # the parent comes later
        ((0, 1), ((), (1,))),  # its own parent
        ((0, 1), ((), (0, 0))),
        ((0, 1), ((), (5,))),
        ((0, 0), ((), ())),
        ((0, 1), ((),)),
        ((), ()),
    ],
)
def test_a_network_with_a_cycle_or_a_gap_can_not_be_made(order, parents):
    with pytest.raises(InputError):
        Network(order=order, parents=parents)


def test_fifty_attributes_of_degree_three_take_230_397_evaluations_instead_of_2_349_157():
    learned = greedy_network_from_scores(symmetric(50, 6), degree=3, rng=simulation_rng(6))
    assert learned.evaluations == 230_397
    assert evaluations_of_new_sets(50, 3) == 230_397
    assert evaluations_of_all_sets(50, 3) == 2_349_157


def evaluations_of_all_sets(attributes, degree):
    inside = range(1, attributes)
    return sum((attributes - v) * comb(v, min(degree, v)) for v in inside)


def evaluations_of_new_sets(attributes, degree):
    inside = range(1, attributes)
    return sum((attributes - v) * comb(v - 1, min(degree, v) - 1) for v in inside)


@pytest.mark.parametrize("seed", range(5))
def test_ties_go_to_the_lowest_attribute_and_the_first_parents(seed):
    scores = np.ones((5, 5))  # five copies of one attribute: every score is equal
    found = greedy_network_from_scores(scores, degree=2, rng=simulation_rng(seed)).network
    root = root_of(seed, 5)
    assert found.order == (root, *(a for a in range(5) if a != root))
    for place, attribute in enumerate(found.order):
        assert found.parents[attribute] == tuple(sorted(found.order[:place])[:2])


def test_a_degree_below_one_is_refused():
    with pytest.raises(InputError, match="degree"):
        greedy_network_from_scores(np.zeros((2, 2)), degree=0, rng=simulation_rng(0))


def tree_weight(scores, edges):
    return sum(scores[edge] for edge in edges)


def all_trees(attributes):
    """Every set of edges that spans without a cycle."""
    edges = list(combinations(range(attributes), 2))
    for tree in combinations(edges, attributes - 1):
        reached = {0}
        for _ in tree:
            reached |= {end for edge in tree if reached & {*edge} for end in edge}
        if len(reached) == attributes:
            yield tree


def score_of_set(scores, child, own):
    relevance = [scores[child, parent] for parent in own]
    trees = all_trees(len(own)) if len(own) > 1 else [()]
    redundancy = max(tree_weight(scores, [(own[i], own[j]) for i, j in tree]) for tree in trees)
    return max(max(relevance), sum(relevance) - redundancy)


@given(st.integers(1, 6), st.integers(1, 4), st.integers(0, 10_000))
def test_the_greedy_choice_from_scores_is_that_of_brute_force(attributes, degree, seed):
    scores = symmetric(attributes, seed, whole=6).astype(float)  # whole: sums are exact, ties many
    found = greedy_network_from_scores(scores, degree=degree, rng=simulation_rng(seed))
    order, parents, information, _ = brute_force(
        attributes, degree, root_of(seed, attributes), lambda *one: score_of_set(scores, *one)
    )
    assert (found.network.order, found.network.parents) == (order, parents)
    assert found.information == information


def test_the_score_from_pairs_is_exact_for_two_parents_that_are_independent_given_the_child():
    child = np.array([0.3, 0.3, 0.4])
    left = np.array([[0.9, 0.1], [0.2, 0.8], [0.1, 0.9]])
    right = np.array([[0.1, 0.9], [0.1, 0.9], [0.8, 0.2]])
    joint = np.einsum("x,xa,xb->xab", child, left, right)
    tables = {(0, 1): joint.sum(2), (0, 2): joint.sum(1), (1, 2): joint.sum(0)}
    scores = symmetric_of({pair: mutual_information(table) for pair, table in tables.items()}, 3)
    exact = mutual_information(joint.reshape(3, 4))
    assert exact > max(scores[0])
    assert score_of_set(scores, 0, (1, 2)) == pytest.approx(exact, abs=1e-14)


def symmetric_of(pairs, attributes):
    scores = np.zeros((attributes, attributes))
    for (i, j), value in pairs.items():
        scores[i, j] = scores[j, i] = value
    return scores


def test_a_second_name_of_the_same_parent_is_not_taken_for_a_second_parent():
    """0 and 1 are copies of each other; 2 is another, weaker cause of 3; 4 brings 2 in early."""
    copies = {(0, 1): 0.69, (0, 3): 0.3, (1, 3): 0.3, (0, 4): 0.4, (1, 4): 0.4}
    scores = symmetric_of({**copies, (2, 4): 0.5, (2, 3): 0.1}, 5)
    seed = next(seed for seed in range(50) if root_of(seed, 5) == 0)
    found = greedy_network_from_scores(scores, degree=2, rng=simulation_rng(seed))
    assert found.network.order == (0, 1, 4, 2, 3)
    assert found.network.parents[3] == (0, 2)
    assert found.information[3] == pytest.approx(0.4)


@pytest.mark.parametrize("seed", range(5))
def test_degree_one_from_scores_is_the_spanning_tree_whatever_the_root(seed):
    scores = symmetric(9, 11)
    found = greedy_network_from_scores(scores, degree=1, rng=simulation_rng(seed))
    edges = {tuple(sorted(edge)) for edge in found.network.edges}
    assert edges == set(spanning_tree(dict(np.ndenumerate(np.triu(scores)))))


@pytest.mark.parametrize(
    "scores", [np.zeros((2, 3)), np.zeros(3), np.array([[0, 1], [2, 0]]), np.full((2, 2), np.nan)]
)
def test_scores_must_be_a_finite_symmetric_matrix(scores):
    with pytest.raises(InputError, match="scores must be"):
        greedy_network_from_scores(scores, degree=1, rng=simulation_rng(0))


def laplace(epsilon):
    """The mean size of Laplace noise where a row is replaced: 2 tables / epsilon."""
    return lambda tables: 2 * tables / epsilon


def useful(sizes, *, rows, epsilon, theta=4.0, degree=16, most=10**9):
    return largest_useful_table(
        sizes, rows=rows, theta=theta, degree=degree, most=most, noise_counts=laplace(epsilon)
    )


def paper_degree(columns, *, rows, epsilon, theta=4.0):
    """The largest k with n epsilon / ((d - k) 2^(k + 2)) >= theta, for columns of two values."""
    fitting = [
        k for k in range(1, columns) if rows * epsilon / ((columns - k) * 2 ** (k + 2)) >= theta
    ]
    return max(fitting, default=0)


@pytest.mark.parametrize("epsilon", [0.01, 0.07, 0.35, 0.7, 1.12, 7.0])
@pytest.mark.parametrize(("columns", "rows"), [(16, 21_574), (8, 1_000), (23, 47_461)])
def test_for_two_values_each_it_is_the_degree_of_the_paper(columns, rows, epsilon):
    limit = useful([2] * columns, rows=rows, epsilon=epsilon)
    k = paper_degree(columns, rows=rows, epsilon=epsilon)
    parents = limit.bit_length() - 2  # 2^(k + 1) cells fit
    assert min(max(parents, 0), columns - 1) == k


def test_nltcs_at_epsilon_1_6_has_seven_parents():
    # n eps2 / theta = 21,574 * 1.12 / 4 = 6,040.7: 9 tables * 2^9 = 4,608 fit, 8 * 2^10 do not.
    limit = useful([2] * 16, rows=21_574, epsilon=1.12)
    assert 2**8 <= limit < 2**9


def test_columns_of_any_size_count_as_many_tables_as_there_are_columns():
    # Adult at epsilon 1: no two of the largest fit together, so n eps2 / (2 d theta) = 305.2.
    sizes = [85, 9, 100, 16, 16, 7, 15, 6, 5, 2, 100, 100, 99, 42]
    assert useful(sizes, rows=48_842, epsilon=0.7) == 305


def test_fewer_parents_or_smaller_tables_mean_more_tables_and_more_noise():
    free = useful([2] * 10, rows=10_000, epsilon=1.0)
    assert useful([2] * 10, rows=10_000, epsilon=1.0, degree=1) == 10_000 // (4 * 2 * 9) < free
    assert useful([2] * 10, rows=10_000, epsilon=1.0, most=8) == 8


def brute(sizes, room, degree):
    names = list(sizes)
    every = chain.from_iterable(combinations(names, k) for k in range(degree + 1))
    fitting = {frozenset(own) for own in every if prod(sizes[name] for name in own) <= room}
    return {own for own in fitting if not any(own < other for other in fitting)}


@given(
    sizes=st.lists(st.integers(2, 7), max_size=7),
    room=st.integers(1, 400),
    degree=st.integers(1, 5),
)
def test_maximal_sets_are_all_that_nothing_can_be_added_to(sizes, room, degree):
    named = {f"c{place}": size for place, size in enumerate(sizes)}
    found = maximal_parent_sets(named, room=room, degree=degree)
    assert {frozenset(own) for own in found} == brute(named, room, degree)
    assert len(found) == len({frozenset(own) for own in found})


def test_where_all_columns_fit_there_is_one_set():
    assert maximal_parent_sets(dict.fromkeys("abc", 2), room=8, degree=9) == [("a", "b", "c")]


@given(
    sizes=st.lists(st.integers(2, 6), min_size=2, max_size=7),
    limit=st.integers(1, 300),
    most_sets=st.integers(0, 60),
    most_cells=st.integers(4, 4_000),
)
def test_all_tables_within_the_limits_can_be_counted(sizes, limit, most_sets, most_cells):
    degree, cells = affordable(
        sizes, limit=limit, degree=4, most_sets=most_sets, most_cells=most_cells
    )
    subsets = chain.from_iterable(combinations(sizes, k) for k in range(2, degree + 2))
    counted = [prod(own) for own in subsets if prod(own) <= cells]
    assert sum(counted) <= most_cells
    assert degree == 1 or len(counted) <= most_sets
    assert cells == limit or degree == 1


def test_the_degree_falls_until_the_sets_are_few_enough():
    wide = {"limit": 1_000, "degree": 9, "most_cells": 10**9}
    sets = comb(30, 2) + comb(30, 3)
    assert affordable([2] * 30, **wide, most_sets=sets) == (2, 1_000)
    assert affordable([2] * 30, **wide, most_sets=sets - 1) == (1, 1_000)
