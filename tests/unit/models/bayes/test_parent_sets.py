"""Which parents a column may have: usefulness by hand, maximal sets by brute force."""

from itertools import chain, combinations
from math import comb, prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.models.bayes.parent_sets import (
    affordable,
    largest_useful_table,
    maximal_parent_sets,
    usefulness,
)


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


def test_usefulness_is_a_cells_mean_count_over_its_mean_noise():
    # Definition 4.7 by hand: 8 cells of 1,000 rows hold 125 each, the noise is 2 * 5 / 0.5 = 20.
    assert usefulness(rows=1_000, cells=8, noise_counts=20.0) == 125 / 20


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
