"""Dependence without bias, shrinking that helps, spanning trees, and the plan of the pairs."""

from itertools import combinations, product
from math import inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.models.pairs import NoisyTable
from sfumato.models.structure import (
    HARM,
    column_distance,
    column_shares,
    dependence,
    distance_left,
    interaction_noise,
    plan_pairs,
    shrink,
    spanning_tree,
)
from sfumato.randomness import simulation_rng

ROWS, COLUMNS = np.array([0.5, 0.3, 0.2]), np.array([0.4, 0.3, 0.2, 0.1])
BEND = np.array([[1, -1, 0, 0], [-1, 1, 0, 0], [0, 0, 0, 0]]) * 0.05


def normal(rng, shape):
    """Nearly normal draws: twelve uniform ones summed."""
    return rng.uniform(12 * int(np.prod(shape))).reshape(12, *shape).sum(axis=0) - 6


def noisy_tables(bend, sigma, runs, seed):
    rng = simulation_rng(seed)
    for _ in range(runs):
        table = np.outer(ROWS, COLUMNS) + bend + sigma * normal(rng, (3, 4))
        yield NoisyTable(frequencies=table, variance=sigma**2)


@pytest.mark.parametrize("bend", [0 * BEND, BEND])
def test_dependence_has_no_bias_and_the_error_it_says(bend):
    """Mean of 3,000 within 4.5 standard errors: one false alarm in 150,000. Without taking the
    noise off, the mean would be 16 and more of them too large."""
    sigma, exact = 0.03, (bend**2).sum()
    found = [dependence(t, ROWS, COLUMNS) for t in noisy_tables(bend, sigma, 3_000, seed=1)]
    squared = np.array([each.squared for each in found])
    error = squared.std() / np.sqrt(squared.size)
    assert abs(squared.mean() - exact) < 4.5 * error
    assert interaction_noise((3, 4), sigma**2) > 16 * error
    said = np.sqrt(np.mean([each.error**2 for each in found]))
    assert 0.9 < said / squared.std() < 1.3  # too large near zero, where D > 0 half of the time


def test_errors_of_one_way_tables_are_no_dependence():
    table = np.outer(ROWS, COLUMNS) + np.array([0.1, -0.1, 0])[:, None] * 0.3
    found = dependence(NoisyTable(frequencies=table, variance=1e-9), ROWS, COLUMNS)
    assert found.squared == pytest.approx(0, abs=1e-7)


@given(seed=st.integers(0, 500), scale=st.sampled_from([1e-4, 0.01, 1.0]))
def test_a_shrunk_table_lies_between_the_product_and_the_table(seed, scale):
    rng = simulation_rng(seed)
    base = np.outer(ROWS, COLUMNS)
    table = base + scale * normal(rng, (3, 4))
    found = shrink(table, base, 0.01**2)
    part = np.abs(found - base).sum() / np.abs(table - base).sum()
    assert 0 <= part <= 1
    np.testing.assert_allclose(found, base + part * (table - base), atol=1e-12)


def test_what_noise_explains_is_shrunk_away_and_what_it_does_not_stays():
    base = np.outer(ROWS, COLUMNS)
    assert shrink(base + BEND, base, 1.0).tolist() == base.tolist()
    np.testing.assert_allclose(shrink(base + BEND, base, 1e-12), base + BEND, atol=1e-9)
    assert shrink(base, base, 0.1).tolist() == base.tolist()


@pytest.mark.parametrize("bend", [0.3, 1.0, 3.0])
def test_a_shrunk_table_is_nearer_on_average_than_the_noisy_one(bend):
    """Over 1,000 tables with agreed one-way tables; where dependence is strong also nearer than
    the product, where it is weak not much farther."""
    base, sigma, errors = np.outer(ROWS, COLUMNS), 0.03, []
    exact = base + bend * BEND
    for noisy in noisy_tables(bend * BEND, sigma, 1_000, seed=2):
        gap = noisy.frequencies - base
        gap = gap - gap.mean(axis=0) - gap.mean(axis=1, keepdims=True) + gap.mean()
        tables = (base + gap, base, shrink(base + gap, base, sigma**2))
        errors.append([((table - exact) ** 2).sum() for table in tables])
    by_table, by_product, by_shrunk = np.mean(errors, axis=0)
    assert by_shrunk < by_table
    assert by_shrunk < by_product + 0.3 * interaction_noise((3, 4), sigma**2)
    assert bend < 3 or by_shrunk < by_product


def _heaviest(weights, names):
    """The largest weight of any set of edges without a circle, by trying all."""
    best = 0.0
    for used in product((False, True), repeat=len(weights)):
        group = {name: name for name in names}
        fits, total = True, 0.0
        for ((one, other), weight), take in zip(weights.items(), used, strict=True):
            if take:
                fits = fits and group[one] != group[other]
                group = {n: group[one] if g == group[other] else g for n, g in group.items()}
                total += weight
        best = max(best, total) if fits else best
    return best


@given(seed=st.integers(0, 200))
def test_a_spanning_tree_is_the_heaviest_of_all(seed):
    draws = simulation_rng(seed).uniform(10) - 0.3
    weights = dict(zip(combinations("abcde", 2), draws.tolist(), strict=True))
    edges = spanning_tree(weights)
    assert all(weights[edge] > 0 for edge in edges)
    assert sum(weights[edge] for edge in edges) == pytest.approx(_heaviest(weights, "abcde"))


def test_no_dependence_no_edges():
    assert spanning_tree({("a", "b"): 0.0, ("b", "c"): -1.0}) == ()
    assert spanning_tree({}) == ()


def test_more_noise_leaves_more_distance_up_to_that_of_the_product():
    left = [distance_left(0.04, noise, 4) for noise in (1e-9, 1e-3, 1e-1, 1e3, inf)]
    assert left == sorted(left)
    assert left[-2] == pytest.approx(left[-1], rel=1e-3)
    assert left[0] < 1e-4


def test_the_predicted_distance_of_a_column_is_about_the_real_one():
    """Mean over 300 noisy tables of 10 codes, projected, within a quarter of the prediction."""
    from sfumato.models.simplex import project

    exact, rng = np.arange(1, 11) / 55, simulation_rng(4)
    found = [
        np.abs(project(exact + 0.01 * normal(rng, (10,)), 1.0) - exact).sum() / 2
        for _ in range(300)
    ]
    assert column_distance(exact, 0.01**2) == pytest.approx(np.mean(found), rel=0.25)


def columns_of(sizes, variance):
    return {
        f"c{i}": NoisyTable(frequencies=np.full(k, 1 / k), variance=variance)
        for i, k in enumerate(sizes)
    }


def response(epsilon):
    """A cell's variance under k-ary response, sample included, times the answers."""
    odds = np.exp(epsilon)

    def noise(cells):
        rare = (odds + cells - 2) / (odds - 1) ** 2
        return rare + ((cells - 2) / (odds - 1) + 1 - 1 / cells) / cells

    return noise


def test_binary_columns_and_many_people_are_asked_about_pairs():
    found = plan_pairs(columns_of([2] * 16, 1e-3), answered=10_000, left=10_000, noise=response(2))
    assert found.share > 0
    assert found.predicted < 0.06


def test_wide_columns_and_much_noise_are_asked_about_columns_only():
    found = plan_pairs(
        columns_of([100] * 14, 2e-3), answered=20_000, left=20_000, noise=response(0.5)
    )
    assert found.share == 0


def test_pairs_never_cost_more_than_is_bearable_should_columns_be_independent():
    """Wide columns learn nothing from pairs: however strong the assumed dependence is, so many
    people go on answering about columns that errors, as 1/sqrt(n), grow by at most HARM."""
    found = plan_pairs(
        columns_of([100] * 8, 1e-6), answered=500_000, left=500_000, noise=response(4), assumed=0.5
    )
    assert 0 < found.share < 1
    assert (2 / (2 - found.share)) ** 0.5 <= HARM


def test_with_nobody_left_or_one_column_nothing_is_asked_about_pairs():
    few = columns_of([2, 2], 1e-3)
    assert plan_pairs(few, answered=10, left=0, noise=response(1)).share == 0
    assert plan_pairs(columns_of([3], 1.0), answered=10, left=10, noise=response(1)).share == 0


def test_a_column_of_one_code_changes_no_plan():
    def noise(cells):
        assert cells >= 4
        return response(2)(cells)

    some = columns_of([2, 3, 2], 1e-3)
    with_constant = columns_of([2, 3, 2, 1], 1e-3)
    plans = [plan_pairs(c, answered=5_000, left=5_000, noise=noise) for c in (some, with_constant)]
    assert plans[0] == plans[1]
    assert plans[0].share > 0


def test_larger_columns_get_more_people_and_a_constant_one_nobody():
    found = column_shares({"a": 2, "b": 100, "c": 1, "d": 2}, noise=response(1))
    assert sum(found.values()) == pytest.approx(1)
    assert found["c"] == 0
    assert found["b"] > found["a"] == found["d"] > 0
    assert column_shares({"c": 1}, noise=response(1)) == {"c": 0}
