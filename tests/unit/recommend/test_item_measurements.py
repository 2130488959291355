"""Decisions that follow from the known noise, and two answers taken as one."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from sfumato.models.items.bias import NoisySums
from sfumato.privacy import ZCDP, OnePerson, OneRow
from sfumato.recommend import item_measurements
from sfumato.recommend.item_measurements import ItemLook

COST = ZCDP("0.4")


def look(counts, *, sigma=1.0, c0=20):
    noisy = NoisySums(
        counts=np.asarray(counts, dtype=float),
        sums=np.zeros(len(counts)),
        sigma_counts=sigma,
        sigma_sums=2 * sigma,
        weight=1.0,
    )
    return ItemLook(noisy=noisy, center=3.0, liking=1.0, c0=c0, described=({"asked": "it"},))


def test_two_answers_are_weighted_by_their_noise():
    first, second = look([10.0, 0.0], sigma=1.0), look([20.0, 3.0], sigma=2.0)
    both = item_measurements.both_looks(first, second)
    assert both.noisy.counts.tolist() == pytest.approx([12.0, 0.6])
    assert both.noisy.sigma_counts == pytest.approx(np.sqrt(4 / 5))
    assert both.noisy.sigma_sums == pytest.approx(2 * np.sqrt(4 / 5))
    assert len(both.described) == 2


def test_two_halves_of_a_budget_together_have_the_noise_of_the_whole(gate):
    half = ZCDP(Fraction(1, 100))
    curator = gate()
    parts = [item_measurements.look_at_items(curator, cost=half, of="ratings") for _ in range(2)]
    whole = item_measurements.look_at_items(curator, cost=ZCDP(Fraction(2, 100)), of="ratings")
    together = item_measurements.both_looks(*parts).noisy.sigma_counts
    assert together == pytest.approx(whole.noisy.sigma_counts, rel=1e-4)


@pytest.mark.parametrize("protect", [OneRow(), OnePerson(max_rows=500)], ids=str)
def test_the_noise_of_pairs_is_known_before_they_are_looked_at(gate, protect):
    curator = gate(protect=protect)
    found, told = item_measurements.look_at_pairs(curator, np.arange(40), cost=COST)
    assert item_measurements.pair_noise(protect, COST) == pytest.approx(found.sigma, rel=1e-5)
    assert told["sigma"] == found.sigma


def test_more_budget_and_more_people_carry_more_items():
    some = look(np.linspace(1, 9, 500))
    more = look(10 * some.noisy.counts)
    sizes = [
        item_measurements.paired_items(each, OneRow(), ZCDP(rho)).size
        for each, rho in ((some, "0.001"), (some, "0.01"), (more, "0.01"))
    ]
    assert sizes[0] < sizes[1] < sizes[2] <= 500


def test_pairs_are_of_the_most_popular_items_and_within_limits():
    some = look(np.arange(500.0))
    few = item_measurements.paired_items(some, OneRow(), ZCDP("1e-12"))
    assert few.tolist() == list(range(500 - item_measurements.FEWEST_PAIRED_ITEMS, 500))
    assert item_measurements.paired_items(look(np.arange(9.0)), OneRow(), COST).tolist() == list(
        range(9)
    )
    many = look(np.full(10_000, 1e6))
    assert (
        item_measurements.paired_items(many, OneRow(), COST).size
        == item_measurements.MOST_PAIRED_ITEMS
    )


def test_people_are_told_by_the_sum_of_weights():
    """A typical person, 100 ratings, adds 100/sqrt(100) if c0 is 20, and 100/sqrt(400) if 400."""
    counts = np.full(10, 50.0)
    assert look(counts, c0=20).people(OneRow()) == pytest.approx(50)
    assert look(counts, c0=400).people(OneRow()) == pytest.approx(100)
    assert look(counts, c0=4).people(OnePerson(max_rows=4)) == pytest.approx(250)
    assert replace(look(-counts)).people(OneRow()) == 1


def test_no_weight_is_smaller_than_the_bound_on_ratings_makes_it(gate):
    found = item_measurements.look_at_items(
        gate(protect=OnePerson(max_rows=5)), cost=ZCDP("0.01"), of="pairs"
    )
    assert found.c0 == 5
    assert item_measurements.gram_c0(OnePerson(max_rows=3)) == 3
