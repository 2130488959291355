"""Questions about pairs: free or nearly so before anything is seen, more where it pays."""

from itertools import combinations
from math import sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.models.answers.dependence import Dependence
from sfumato.models.answers.pair_allocation import (
    HARM,
    NO_PAIRS,
    Population,
    Questions,
    column_shares,
    pilot_edges,
    pilot_loss,
    plan_pairs,
    plan_pilot,
)
from sfumato.models.answers.pair_tables import NoisyTable


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
    questions = plan_pilot(population)
    alone, first = population.precision(NO_PAIRS), population.precision(questions)
    for name in population.sizes:
        assert alone[name] + first[name] >= 2 * alone[name] / (1 + HARM) ** 2 - 1e-12
    assert pilot_loss(population, questions) <= HARM


def test_a_column_whose_codes_bins_hide_loses_as_the_people_it_loses():
    """A part s of all people of the first round: 1/sqrt(1 - s/2) - 1 more error; so much is
    allowed, and four times as much is not."""
    population = people([100] * 5, 1.0)
    questions = plan_pilot(population)
    assert set(questions.bins.values()) == {2}
    assert pilot_loss(population, questions) == pytest.approx(1 / sqrt(1 - questions.share / 2) - 1)
    more = Questions(bins=questions.bins, share=4 * questions.share, edges=questions.edges)
    assert pilot_loss(population, more) > HARM


def test_where_pairs_tell_more_than_columns_all_people_are_asked_about_them():
    """A response about four cells is worth 1/(2v) for each of two columns: by hand at epsilon 4."""
    population = people([2] * 10, 4.0)
    questions = plan_pilot(population)
    assert questions.share == 1
    assert set(questions.edges) == set(combinations(population.sizes, 2))
    gain = 2 * ((np.exp(4) - 1) / (np.exp(4) + 3)) ** 2 / ((np.exp(4) - 1) / (np.exp(4) + 1)) ** 2
    assert gain > 1
    assert pilot_loss(population, questions) == pytest.approx(sqrt(2 / (1 + gain)) - 1)


def test_wide_columns_lose_nobody_to_pairs_of_narrow_ones():
    population = people([2, 2, 3, 100, 100], 4.0)
    questions = plan_pilot(population)
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
    assert plan_pilot(population) == NO_PAIRS
    known = after_first(population, 100)
    found = plan_pairs(population, known, left=100, seen=None)
    assert found.questions == NO_PAIRS
    assert found.predicted > 0


def test_dependence_that_was_clearly_seen_is_asked_about():
    population = people([2] * 16, 1.0)
    known = after_first(population, 10_000)
    found = plan_pairs(population, known, left=10_000, seen=seen(0.03, 0.002))
    assert found.questions.share > 0
    alone = plan_pairs(population, known, left=10_000, seen=seen(0.03, 0.002), shares=())
    assert found.predicted < 0.6 * alone.predicted


@pytest.mark.parametrize("sizes", [[2] * 16, [100] * 8, [2, 3, 20, 60]])
@pytest.mark.parametrize("nothing", [None, seen(0.0, 0.002), seen(-0.01, 0.002), seen(0.01, 0.1)])
def test_without_a_sign_of_dependence_no_column_loses_more_than_the_harm_allowed(sizes, nothing):
    population, n = people(sizes, 1.0), 20_000
    known = after_first(population, n)
    questions = plan_pairs(population, known, left=n, seen=nothing).questions
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
        second = population.precision(plan_pairs(population, known, left=n, seen=found).questions)
        weight = np.exp(-(score**2) / 2) * 8 / 200 / np.sqrt(2 * np.pi)
        losses.append(weight * max(sqrt(2 * alone / (alone + second["c0"])) - 1, 0))
    assert 0 < sum(losses) <= 1.03 * HARM  # and what the sum over a grid adds


def test_with_nobody_left_nothing_is_asked_about_pairs():
    population = people([2, 2], 1.0)
    found = plan_pairs(population, after_first(population, 10), left=0, seen=seen(0.5, 0.01))
    assert found.questions == NO_PAIRS


def test_columns_asked_about_code_by_code_are_so_again():
    population, n = people([9, 9, 9, 60], 4.0), 2_000
    known = after_first(population, n)
    options = {"left": n, "seen": seen(0.2, 0.001)}
    free = plan_pairs(population, known, **options).questions.bins
    kept = plan_pairs(population, known, whole=("c0", "c1", "c2"), **options).questions.bins
    assert max(free.values()) < 9
    assert {kept["c0"], kept["c1"], kept["c2"]} == {9}


def test_larger_columns_get_more_people_and_a_constant_one_nobody():
    found = column_shares({"a": 2, "b": 100, "c": 1, "d": 2}, noise=response(1))
    assert sum(found.values()) == pytest.approx(1)
    assert found["c"] == 0
    assert found["b"] > found["a"] == found["d"] > 0
    assert column_shares({"c": 1}, noise=response(1)) == {"c": 0}
