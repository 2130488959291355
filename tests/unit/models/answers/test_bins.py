"""Bins: what they keep, how many noise allows, and stretches that find the steps of a table."""

from datetime import date
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import InputError
from sfumato.models.answers.bins import (
    MOST_BINS,
    Bins,
    bins_allowed,
    bins_by_mass,
    even_bins,
    ordered_codes,
    smoothed,
    stretches,
    whole,
)
from sfumato.randomness import simulation_rng
from sfumato.schema import Boolean, Category, Date, Integer, Ordinal


def normal(rng, size):
    """Nearly normal draws: twelve uniform ones summed."""
    return rng.uniform(12 * size).reshape(12, size).sum(axis=0) - 6


def shares(rng, size, power=3):
    raw = rng.uniform(size) ** power
    return raw / raw.sum()


@pytest.mark.parametrize("of", [[], [1, 2], [0, 2], [-1, 0], [[0, 1]]])
def test_bins_are_numbered_from_zero_and_none_is_empty(of):
    with pytest.raises(InputError, match="numbered from 0"):
        Bins(of=np.array(of, dtype=np.int64))


def test_bins_do_not_change_when_the_callers_array_does():
    of = np.array([0, 0, 1])
    bins = Bins(of=of)
    of[0] = 1
    assert bins.of.tolist() == [0, 0, 1]
    with pytest.raises(ValueError, match="read-only"):
        bins.of[0] = 1


@given(seed=st.integers(0, 1000), codes=st.integers(1, 20), most=st.integers(1, 8))
def test_an_expanded_table_sums_back_to_its_bins_and_follows_the_frequencies_inside(
    seed, codes, most
):
    rng = simulation_rng(seed)
    own, bins = shares(rng, codes), even_bins(codes, most=most)
    table = rng.uniform(3 * bins.count).reshape(3, bins.count)
    wide = bins.expand(table, own, axis=1)
    assert wide.shape == (3, codes)
    np.testing.assert_allclose(bins.sums(wide, axis=1), table, rtol=1e-12)
    np.testing.assert_allclose(bins.expand(bins.sums(own), own, axis=0), own, rtol=1e-12)
    np.testing.assert_allclose(bins.expand(table.T, own, axis=0).T, wide, rtol=1e-12)


def test_an_empty_bin_is_shared_out_evenly():
    bins = Bins(of=np.array([0, 1, 1]))
    assert bins.inside(np.array([1.0, 0.0, 0.0])).tolist() == [1.0, 0.5, 0.5]


@given(codes=st.integers(1, 200), most=st.integers(1, 20))
def test_even_bins_are_neighbors_and_differ_by_at_most_one_code(codes, most):
    bins = even_bins(codes, most=most)
    sizes = np.bincount(bins.of)
    assert bins.count == min(codes, most)
    assert sizes.max() - sizes.min() <= 1
    assert (np.diff(bins.of) >= 0).all()


@given(
    seed=st.integers(0, 1000),
    codes=st.integers(1, 60),
    most=st.integers(1, 10),
    part=st.floats(0, 1),
)
def test_bins_by_mass_are_few_and_none_but_a_single_code_holds_much_more_than_its_part(
    seed, codes, most, part
):
    own, ordered = shares(simulation_rng(seed), codes), int(part * codes)
    bins = bins_by_mass(own, most=most, ordered=ordered)
    held, sizes = bins.sums(own), np.bincount(bins.of)
    assert bins.count <= max(most, 1) or codes <= most
    assert (np.diff(bins.of[:ordered]) >= 0).all()
    if codes > most:
        assert (held[sizes > 1] <= 2 / most + own.max()).all()


def test_rare_values_without_an_order_end_up_together():
    own = np.array([0.01, 0.4, 0.01, 0.3, 0.01, 0.27])
    assert bins_by_mass(own, most=4).of.tolist() == [3, 0, 3, 1, 3, 2]


def test_the_number_of_bins_is_the_largest_whose_average_cell_is_above_its_noise():
    def noise(cells):
        return 0.02 + 1 / cells

    for answers in (30, 300, 3_000, 30_000):
        count = bins_allowed(answers, noise, fraction=0.5)

        def error(bins, n=answers):
            return np.sqrt(noise(bins**2) / n) * bins**2

        assert count == 2 or error(count) <= 0.5
        assert count == MOST_BINS or error(count + 1) > 0.5
    assert bins_allowed(1, noise) == 2
    assert bins_allowed(1e9, noise) == MOST_BINS


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (Integer(name="a", low=0, high=9), 10),
        (Integer(name="a", low=0, high=9, missing=True), 10),
        (Ordinal(name="a", values=("x", "y"), other=True, missing=True), 2),
        (Category(name="a", values=("x", "y"), other=True), 0),
        (Boolean(name="a"), 0),
        (Date(name="a", low=date(2020, 1, 1), high=date(2020, 1, 3)), 3),
    ],
)
def test_other_and_missing_have_no_neighbors(column, expected):
    assert ordered_codes(column) == expected


def _best_by_trying(values, variance):
    """The least residuals + penalty over all cuts."""
    codes, best = values.size, np.inf
    for count in range(1, codes + 1):
        penalty = variance * count * (2 * np.log(codes / count) + 2)
        for cuts in combinations(range(1, codes), count - 1):
            parts = np.split(values, cuts)
            best = min(best, sum(((p - p.mean()) ** 2).sum() for p in parts) + penalty)
    return best


@given(seed=st.integers(0, 1000), codes=st.integers(1, 9), scale=st.sampled_from([0.01, 0.1, 1]))
def test_stretches_are_the_best_of_all_cuts(seed, codes, scale):
    values, variance = simulation_rng(seed).uniform(codes), scale**2
    bins = stretches(values, variance)
    means = (bins.sums(values) / np.bincount(bins.of))[bins.of]
    penalty = variance * bins.count * (2 * np.log(codes / bins.count) + 2)
    found = ((values - means) ** 2).sum() + penalty
    assert found == pytest.approx(_best_by_trying(values, variance), abs=1e-9)


def test_stretches_find_the_steps_and_the_single_spike():
    steps = np.repeat([0.01, 0.03, 0.005], [20, 15, 25])
    steps[40] = 0.4
    bins = stretches(steps, 1e-8)
    assert np.flatnonzero(np.diff(bins.of)).tolist() == [19, 34, 39, 40]
    assert stretches(np.full(50, 0.02), 1e-4).count == 1


def test_smoothing_lowers_the_error_of_a_smooth_table_and_keeps_a_spike():
    """In each of 20 runs by half or more; the spike stays within 4 standard errors."""
    codes = np.arange(100)
    exact = np.exp(-(((codes - 35) / 18) ** 2))
    exact /= exact.sum() / 0.6
    exact[40] += 0.4
    for seed in range(20):
        noisy = exact + 0.02 * normal(simulation_rng(seed), 100)
        found, variance = smoothed(noisy, 0.02**2, ordered=100)
        assert ((found - exact) ** 2).sum() < 0.5 * ((noisy - exact) ** 2).sum()
        assert abs(found[40] - exact[40]) < 4 * 0.02
        assert variance < 0.02**2


def test_codes_without_neighbors_are_not_smoothed():
    noisy = simulation_rng(1).uniform(40)
    found, _ = smoothed(noisy, 1.0, ordered=38)
    assert found[38:].tolist() == noisy[38:].tolist()
    assert np.ptp(found[:38]) == pytest.approx(0, abs=1e-12)
    assert smoothed(noisy, 1.0, ordered=0) == (noisy, 1.0)


def test_very_many_codes_are_smoothed_in_blocks():
    found, _ = smoothed(simulation_rng(2).uniform(100_000), 1.0, ordered=100_000)
    assert found.shape == (100_000,)
    assert np.unique(found).size < 100


def test_every_code_may_be_a_bin():
    assert whole(3).of.tolist() == [0, 1, 2]
    with pytest.raises(InputError, match="codes must be"):
        whole(0)
