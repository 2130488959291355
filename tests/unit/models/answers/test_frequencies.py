"""Debiased frequencies: the formula, its standard error measured, and intervals that cover."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, chi2

from sfumato.errors import InputError
from sfumato.models.answers.frequencies import debias, interval, norm_sub
from sfumato.randomness import simulation_rng

FALSE_ALARM = 1e-6
P, Q = Fraction(1, 2), Fraction(1, 5)


def supports(true, n, runs, *, seed):
    """Counts of support for a category that ``true`` of n people have."""
    coins = simulation_rng(seed).uniform(runs * n).reshape(runs, n)
    return (coins[:, :true] < float(P)).sum(axis=1) + (coins[:, true:] < float(Q)).sum(axis=1)


@given(
    f=st.fractions(0, 1), q=st.fractions(0, Fraction(9, 10)), gap=st.fractions(Fraction(1, 10), 1)
)
def test_expected_counts_give_the_frequency_back(f, q, gap):
    p = q + gap * (1 - q)
    found, _ = debias(np.array([float(f * p + (1 - f) * q) * 10**6]), 10**6, p, q)
    assert found[0] == pytest.approx(float(f), abs=1e-9)


@pytest.mark.parametrize("true", [0, 300, 1_000])
def test_estimates_are_unbiased_with_the_stated_error(true):
    """False-alarm rate 1e-6 each; a scale that is 30% off would be seen."""
    n, runs = 1_000, 400
    found, errors = debias(supports(true, n, runs, seed=true), n, P, Q)
    f = true / n
    variance = (float(P * (1 - P)) * f + float(Q * (1 - Q)) * (1 - f)) / float(P - Q) ** 2 / n
    z = (found - f) / np.sqrt(variance)
    low, high = chi2.ppf(FALSE_ALARM / 2, runs), chi2.isf(FALSE_ALARM / 2, runs)
    assert abs(z.mean()) < 4.9 / np.sqrt(runs)
    assert low <= np.sum(z**2) <= high
    assert np.sum((1.3 * z) ** 2) > high
    assert np.sum((z / 1.3) ** 2) < low
    assert errors == pytest.approx(np.sqrt(variance), rel=0.05)


def test_intervals_cover_as_often_as_they_say():
    """False-alarm rate 1e-6 each; errors that are 30% too small would be seen."""
    n, runs = 1_000, 1_000
    found, errors = debias(supports(300, n, runs, seed=1), n, P, Q)
    for confidence in (0.8, 0.95):
        for scale, holds in [(1, True), (0.7, False)]:
            low, high = interval(found, scale * errors, confidence)
            hits = np.sum((low <= 0.3) & (high >= 0.3))
            assert (hits >= binom.ppf(FALSE_ALARM, runs, confidence)) == holds


def test_a_table_keeps_its_shape_and_the_counts_are_left_alone():
    counts = np.array([[5, 1], [0, 4]])
    found, errors = debias(counts, 10, P, Q)
    assert found.shape == errors.shape == (2, 2)
    assert counts.tolist() == [[5, 1], [0, 4]]
    assert found.min() < 0  # an unbiased estimate of a rare category may be


def test_answers_without_noise_have_no_error():
    found, errors = debias(np.array([3, 7]), 10, 1, 0)
    assert found.tolist() == [0.3, 0.7]
    assert errors.tolist() == [0, 0]


def test_no_answers_are_a_clear_error():
    with pytest.raises(InputError, match="there are no answers"):
        debias(np.array([0, 0]), 0, P, Q)


@pytest.mark.parametrize("n", [-1, 1.5, None])
def test_a_number_of_answers_is_whole(n):
    with pytest.raises(InputError, match="n must be a whole number"):
        debias(np.array([0, 0]), n, P, Q)


@pytest.mark.parametrize(("p", "q"), [(0.5, 0.5), (0.2, 0.5), (1.5, 0.5), (0.5, -0.1)])
def test_probabilities_that_say_nothing_are_refused(p, q):
    with pytest.raises(InputError, match="q < p"):
        debias(np.array([1, 2]), 3, p, q)


@pytest.mark.parametrize("confidence", [0, 1, -0.5, 95])
def test_a_confidence_is_between_zero_and_one(confidence):
    with pytest.raises(InputError, match="confidence must be above 0 and below 1"):
        interval(np.array([0.5]), np.array([0.1]), confidence)


@given(st.lists(st.floats(-2, 2), min_size=1, max_size=9).map(np.array))
def test_normed_frequencies_could_exist(noisy):
    found = norm_sub(noisy)
    assert found.min() >= 0
    assert found.sum() == pytest.approx(1)
