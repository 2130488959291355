"""Confidence limits against scipy, against exact coverage, and on samples of known truth."""

import math

import numpy as np
import pytest
from scipy.stats import beta, binom, norm

from sfumato.auditing import clopper_pearson, epsilon_lower_bound, rho_lower_bound
from sfumato.auditing.statistics import event_rho_lower_bound, incomplete_beta, rho_of_bernoulli
from sfumato.errors import InputError
from sfumato.noise import DiscreteGaussian
from sfumato.privacy import ZCDP
from sfumato.randomness import simulation_rng

COUNTS = [(1, 2), (3, 10), (73_000, 100_000), (5, 1_000_000), (999_999, 1_000_000), (1, 100_000)]


@pytest.mark.parametrize("error", [0.5, 0.025, 5e-4, 1e-9])
@pytest.mark.parametrize(("hits", "runs"), COUNTS)
def test_the_limits_are_those_of_the_beta_distribution(hits, runs, error):
    low, high = clopper_pearson(hits, runs, error=error)
    assert low == pytest.approx(beta.ppf(error, hits, runs - hits + 1), rel=1e-8)
    assert high == pytest.approx(beta.isf(error, hits + 1, runs - hits), rel=1e-8)


def test_no_hits_and_only_hits_leave_one_side_open():
    assert clopper_pearson(0, 100, error=0.01) == (0.0, pytest.approx(1 - 0.01 ** (1 / 100)))
    assert clopper_pearson(100, 100, error=0.01) == (pytest.approx(0.01 ** (1 / 100)), 1.0)


@pytest.mark.parametrize("p", [0.01, 0.2, 0.5, 0.93])
def test_each_limit_is_wrong_no_more_often_than_it_says(p):
    runs, error = 60, 0.02
    chances = binom.pmf(np.arange(runs + 1), runs, p)
    limits = [clopper_pearson(hits, runs, error=error) for hits in range(runs + 1)]
    assert sum(c for c, (low, _) in zip(chances, limits, strict=True) if low > p) <= error
    assert sum(c for c, (_, high) in zip(chances, limits, strict=True) if high < p) <= error


def test_the_incomplete_beta_function_is_the_binomial_tail():
    for hits, runs, p in [(2, 4, 0.5), (10, 30, 0.2), (700, 1_000, 0.71)]:
        tail = incomplete_beta(p, hits, runs - hits + 1)
        assert tail == pytest.approx(binom.sf(hits - 1, runs, p), rel=1e-10)
    assert (incomplete_beta(0, 2, 3), incomplete_beta(1, 2, 3)) == (0, 1)


def test_the_bound_of_epsilon_is_the_logarithm_of_two_limits():
    bound = epsilon_lower_bound(731, 1_000, 269, 1_000, confidence=0.999)
    low, _ = clopper_pearson(731, 1_000, error=0.0005)
    _, high = clopper_pearson(269, 1_000, error=0.0005)
    assert bound == pytest.approx(math.log(low / high))
    assert 0.7 < bound < 1


def test_nothing_seen_shows_nothing():
    assert epsilon_lower_bound(0, 1_000, 500, 1_000, confidence=0.99) == 0
    assert epsilon_lower_bound(500, 1_000, 500, 1_000, confidence=0.99) == 0


def test_more_confidence_claims_less():
    bounds = [epsilon_lower_bound(80, 100, 20, 100, confidence=c) for c in (0.9, 0.99, 0.9999)]
    assert bounds == sorted(bounds, reverse=True)


def gaussian_scores(rho, n):
    """The logarithm of likelihoods of a count and its neighbor, cut to [-4, 4]."""
    noise = DiscreteGaussian.for_cost(ZCDP(rho), 1)
    rng = simulation_rng(3)
    counts = [1 + noise.sample(n, rng=rng), noise.sample(n, rng=rng)]
    return [np.clip((2 * k - 1) * float(1 / noise.spread**2), -4, 4) for k in counts]


@pytest.mark.parametrize("rho", ["0.125", "0.5", "1"])
def test_the_bound_of_rho_is_below_the_truth_and_would_see_a_smaller_claim(rho):
    """At this confidence a right bound exceeds rho once in 1,000,000."""
    on_x, on_y = gaussian_scores(rho, 200_000)
    bound = rho_lower_bound(on_x, on_y, width=8.0, confidence=1 - 1e-6)
    assert 0.7 * float(rho) < bound <= float(rho)


@pytest.mark.parametrize("rho", [0.05, 0.5, 2.0])
def test_no_event_of_a_gaussian_shows_more_than_its_rho(rho):
    mu = math.sqrt(2 * rho)
    found = [rho_of_bernoulli(norm.sf(cut - mu), norm.sf(cut)) for cut in np.linspace(-3, 5, 200)]
    assert 0.6 * rho < max(found) <= rho


def test_the_bound_of_rho_from_an_event_is_that_of_the_nearest_coins():
    low, _ = clopper_pearson(700, 1_000, error=5e-4)
    _, high = clopper_pearson(300, 1_000, error=5e-4)
    found = event_rho_lower_bound(700, 1_000, 300, 1_000, confidence=0.999)
    assert found == rho_of_bernoulli(low, high)
    assert 0.1 < found < rho_of_bernoulli(0.7, 0.3)
    assert event_rho_lower_bound(500, 1_000, 500, 1_000, confidence=0.999) == 0


def test_equal_samples_show_no_rho():
    same = np.zeros(1_000)
    assert rho_lower_bound(same, same, width=8.0, confidence=0.99) == 0


@pytest.mark.parametrize("confidence", [0, 0.4, 1, 1.5, math.nan])
def test_a_confidence_that_is_none_is_refused(confidence):
    with pytest.raises(InputError, match="confidence must be at least"):
        epsilon_lower_bound(1, 2, 1, 2, confidence=confidence)


def test_impossible_counts_are_refused():
    with pytest.raises(InputError, match="hits must be a whole number between 0 and 10, got 11"):
        clopper_pearson(11, 10, error=0.1)
    with pytest.raises(InputError, match="error must be above 0"):
        clopper_pearson(1, 10, error=0)
