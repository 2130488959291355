"""Dependence without bias and as likely as it says, shrinking that helps, spanning trees."""

from itertools import combinations, product
from math import inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.models.answers.dependence import (
    column_distance,
    dependence,
    distance_left,
    interaction_noise,
    mean_dependence,
    shrink,
    spanning_tree,
)
from sfumato.models.answers.pair_tables import NoisyTable, PairAnswers
from sfumato.randomness import simulation_rng

ROWS, COLUMNS = np.array([0.5, 0.3, 0.2]), np.array([0.4, 0.3, 0.2, 0.1])
BEND = np.array([[1, -1, 0, 0], [-1, 1, 0, 0], [0, 0, 0, 0]]) * 0.05


def normal(rng, shape):
    """Nearly normal draws: twelve uniform ones summed."""
    return rng.uniform(12 * int(np.prod(shape))).reshape(12, *shape).sum(axis=0) - 6


def noisy_tables(bend, sigma, runs, seed):
    rng = simulation_rng(seed)
    for _ in range(runs):
        noise = sigma * normal(rng, (3, 4))
        table = np.outer(ROWS, COLUMNS) + bend + noise - noise.mean()  # as shares, they sum to 1
        yield NoisyTable(frequencies=table, variance=sigma**2 * 11 / 12)


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


def pilot(bend, seed, *, p=0.4, n=60, d=6):
    """Randomized answers of n people about each pair in a circle of columns of unequal shares."""
    rng, shares = simulation_rng(seed), np.array([0.7, 0.3])
    truth = np.outer(shares, shares) + bend * np.array([[1, -1], [-1, 1]])
    q = (1 - p) / 3
    pairs = {}
    for one in range(d):
        drawn = np.searchsorted(np.cumsum(q + (p - q) * truth), rng.uniform(n), side="right")
        counts = np.bincount(np.minimum(drawn, 3), minlength=4).reshape(2, 2)
        edge = f"c{one}", f"c{(one + 1) % d}"
        pairs[edge] = PairAnswers(columns=edge, counts=counts, p=p, q=q).table()
    error = 0.02
    columns = {
        f"c{i}": NoisyTable(
            frequencies=shares + error * normal(rng, (1,)) * np.array([1, -1]), variance=error**2
        )
        for i in range(d)
    }
    return mean_dependence(pairs, columns)


@pytest.mark.parametrize("bend", [0.0, 0.1])
def test_mean_dependence_is_the_squared_total_variation_without_bias(bend):
    """In units of m D/(2 pi). Mean of 1,500 within 4.5 standard errors: a false alarm in 150,000
    runs; noise that was not subtracted would be seen."""
    found = np.array([pilot(bend, seed).squared for seed in range(1_500)])
    error = found.std() / np.sqrt(found.size)
    assert abs(found.mean() - 4 * 4 * bend**2 / (2 * np.pi)) < 4.5 * error
    noise = pilot(bend, 0).error * np.sqrt(6 / 2)  # of one mean square of 6
    assert noise > 10 * error


def test_the_chance_of_a_dependence_is_how_often_noise_shows_as_much():
    """Of 1,500 pilots without dependence 20% have a chance below 0.2, 5% below 0.05: each within
    4.5 standard errors. By a normal tail more than that would be below 0.01."""
    found = np.array([pilot(0.0, seed).chance() for seed in range(1_500)])
    for level in (0.2, 0.05):
        error = np.sqrt(level * (1 - level) / found.size)
        assert abs((found < level).mean() - level) < 4.5 * error + 0.01
    assert pilot(0.2, 1).chance() < 0.01


def test_noise_of_shares_that_sum_to_one_is_in_one_dimension_less():
    """Four equal shares of n answers: the interaction is a mean of n signs, of variance 1/n."""
    assert interaction_noise((2, 2), 0.25 * 0.75 / 100) == pytest.approx(4 * (1 / 100) / 16)


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
    from sfumato.models.model import project

    exact, rng = np.arange(1, 11) / 55, simulation_rng(4)
    found = [
        np.abs(project(exact + 0.01 * normal(rng, (10,)), 1.0) - exact).sum() / 2
        for _ in range(300)
    ]
    assert column_distance(exact, 0.01**2) == pytest.approx(np.mean(found), rel=0.25)
