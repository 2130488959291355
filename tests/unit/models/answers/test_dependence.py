"""Dependence that is worth its noise, and how many people answer about pairs."""

from itertools import combinations, product
from math import inf, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.models.answers.dependence import (
    HARM,
    NO_PAIRS,
    Dependence,
    Population,
    Questions,
    choose_pairs,
    choose_pilot,
    column_distance,
    column_shares,
    dependence,
    distance_left,
    interaction_noise,
    mean_dependence,
    pilot_edges,
    pilot_loss,
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


def response(epsilon):
    """A cell's variance under k-ary response, sample included, times the answers."""
    odds = np.exp(epsilon)
    return lambda cells: (1 / cells) * (1 - 1 / cells) * ((odds + cells - 1) / (odds - 1)) ** 2


def people(sizes, epsilon):
    named = {f"c{i}": size for i, size in enumerate(sizes)}
    noise = response(epsilon)
    return Population(
        sizes=named,
        alone={name: noise(size) for name, size in named.items()},
        noise=noise,
        shares=column_shares(named, noise=noise),
    )


def after_first(population, n):
    """Uniform columns as exact as n people asked about one column each make them."""
    return {
        name: NoisyTable(
            frequencies=np.full(size, 1 / size),
            variance=population.alone[name] / (population.shares[name] * n),
        )
        for name, size in population.sizes.items()
    }


def seen(squared, error, freedom=50.0):
    return Dependence(squared=squared, error=error, freedom=freedom)


@given(
    sizes=st.lists(st.sampled_from([2, 3, 5, 12, 16, 40, 100]), min_size=2, max_size=8),
    epsilon=st.sampled_from([0.1, 0.5, 1.0, 2.0, 4.0, 8.0]),
)
def test_a_pilot_never_costs_any_column_more_than_the_harm_allowed(sizes, epsilon):
    """The formula of the bound, by hand: no column keeps less than 1/(1 + HARM)^2 of the
    precision that two rounds about single columns would have."""
    population = people(sizes, epsilon)
    questions = choose_pilot(population)
    alone, first = population.precision(NO_PAIRS), population.precision(questions)
    for name in population.sizes:
        assert alone[name] + first[name] >= 2 * alone[name] / (1 + HARM) ** 2 - 1e-12
    assert pilot_loss(population, questions) <= HARM


def test_a_column_whose_codes_bins_hide_loses_as_the_people_it_loses():
    """A part s of all people of the first round: 1/sqrt(1 - s/2) - 1 more error; so much is
    allowed, and four times as much is not."""
    population = people([100] * 5, 1.0)
    questions = choose_pilot(population)
    assert set(questions.bins.values()) == {2}
    assert pilot_loss(population, questions) == pytest.approx(1 / sqrt(1 - questions.share / 2) - 1)
    more = Questions(bins=questions.bins, share=4 * questions.share, edges=questions.edges)
    assert pilot_loss(population, more) > HARM


def test_where_pairs_tell_more_than_columns_all_people_are_asked_about_them():
    """A response about four cells is worth 1/(2v) for each of two columns: by hand at epsilon 4."""
    population = people([2] * 10, 4.0)
    questions = choose_pilot(population)
    assert questions.share == 1
    assert set(questions.edges) == set(combinations(population.sizes, 2))
    gain = 2 * ((np.exp(4) - 1) / (np.exp(4) + 3)) ** 2 / ((np.exp(4) - 1) / (np.exp(4) + 1)) ** 2
    assert gain > 1
    assert pilot_loss(population, questions) == pytest.approx(sqrt(2 / (1 + gain)) - 1)


def test_wide_columns_lose_nobody_to_pairs_of_narrow_ones():
    population = people([2, 2, 3, 100, 100], 4.0)
    questions = choose_pilot(population)
    assert set(questions.bins) == {"c0", "c1", "c2"}
    alone, first = population.precision(NO_PAIRS), population.precision(questions)
    assert first["c3"] == alone["c3"]
    assert questions.share * sum(population.shares[n] for n in questions.bins) == pytest.approx(
        population.each(questions) * len(questions.edges)
    )


def test_a_small_pilot_asks_about_neighbors_in_a_circle():
    assert pilot_edges("abcd", 0.25) == (("a", "b"), ("a", "d"), ("b", "c"), ("c", "d"))
    assert len(pilot_edges("abcd", 1.0)) == 6
    assert pilot_edges("ab", 0.25) == (("a", "b"),)


def test_one_column_has_no_pairs():
    population = people([5], 2.0)
    assert choose_pilot(population) == NO_PAIRS
    known = after_first(population, 100)
    found = choose_pairs(population, known, left=100, observed=None)
    assert found.questions == NO_PAIRS
    assert found.predicted > 0


def test_dependence_that_was_clearly_seen_is_asked_about():
    population = people([2] * 16, 1.0)
    known = after_first(population, 10_000)
    found = choose_pairs(population, known, left=10_000, observed=seen(0.03, 0.002))
    assert found.questions.share > 0
    alone = choose_pairs(population, known, left=10_000, observed=seen(0.03, 0.002), shares=())
    assert found.predicted < 0.6 * alone.predicted


@pytest.mark.parametrize("sizes", [[2] * 16, [100] * 8, [2, 3, 20, 60]])
@pytest.mark.parametrize("nothing", [None, seen(0.0, 0.002), seen(-0.01, 0.002), seen(0.01, 0.1)])
def test_without_a_sign_of_dependence_no_column_loses_more_than_the_harm_allowed(sizes, nothing):
    population, n = people(sizes, 1.0), 20_000
    known = after_first(population, n)
    questions = choose_pairs(population, known, left=n, observed=nothing).questions
    alone, second = population.precision(NO_PAIRS), population.precision(questions)
    chance = 1.0 if nothing is None else nothing.chance()
    for name in population.sizes:
        loss = sqrt(2 * alone[name] / (alone[name] + second[name])) - 1
        assert chance * loss <= HARM + 1e-12


def test_the_false_alarms_of_a_second_round_cost_less_than_the_harm_allowed():
    """The chance is uniform without dependence: the mean loss over its values, by the plan made
    at each, is at most HARM. A rule that weighs each question by its own loss would lose
    HARM (1 + log(L/HARM)), three times as much."""
    population, n = people([2] * 16, 0.5), 20_000
    known, losses = after_first(population, n), []
    alone = population.precision(NO_PAIRS)["c0"]
    for place in range(200):
        score = (place + 0.5) / 200 * 8 - 4
        found = seen(score * 0.02, 0.02, freedom=1e4)
        second = population.precision(
            choose_pairs(population, known, left=n, observed=found).questions
        )
        weight = np.exp(-(score**2) / 2) * 8 / 200 / np.sqrt(2 * np.pi)
        losses.append(weight * max(sqrt(2 * alone / (alone + second["c0"])) - 1, 0))
    assert 0 < sum(losses) <= 1.03 * HARM  # and what the sum over a grid adds


def test_with_nobody_left_nothing_is_asked_about_pairs():
    population = people([2, 2], 1.0)
    found = choose_pairs(population, after_first(population, 10), left=0, observed=seen(0.5, 0.01))
    assert found.questions == NO_PAIRS


def test_columns_asked_about_code_by_code_are_so_again():
    population, n = people([9, 9, 9, 60], 4.0), 2_000
    known = after_first(population, n)
    options = {"left": n, "observed": seen(0.2, 0.001)}
    free = choose_pairs(population, known, **options).questions.bins
    kept = choose_pairs(population, known, whole=("c0", "c1", "c2"), **options).questions.bins
    assert max(free.values()) < 9
    assert {kept["c0"], kept["c1"], kept["c2"]} == {9}


def test_larger_columns_get_more_people_and_a_constant_one_nobody():
    found = column_shares({"a": 2, "b": 100, "c": 1, "d": 2}, noise=response(1))
    assert sum(found.values()) == pytest.approx(1)
    assert found["c"] == 0
    assert found["b"] > found["a"] == found["d"] > 0
    assert column_shares({"c": 1}, noise=response(1)) == {"c": 0}
