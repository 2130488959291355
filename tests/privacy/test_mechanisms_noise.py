"""Drawn noise has the stated probabilities, and the tests would see other ones.

Every test of frequencies has a false-alarm rate of 1e-6 and a companion in which the same test
rejects a scale that is 10% wrong. OpenDP is the oracle that shares no code with us.
"""

import math
from fractions import Fraction

import numpy as np
import opendp.prelude as dp
import pytest
from scipy.stats import binomtest, chi2_contingency, chisquare

from sfumato.noise import DiscreteGaussian, DiscreteLaplace
from sfumato.randomness import simulation_rng

FALSE_ALARM = 1e-6
DRAWS = 200_000
ORACLE_DRAWS = 40_000
SCALES = [Fraction(1, 3), Fraction(1), Fraction(60), Fraction(2001, 2)]
SIGMAS = [Fraction(3, 10), Fraction(1), Fraction(73, 10), Fraction(10_000)]
EVERY_NOISE = [(DiscreteLaplace, scale) for scale in SCALES]
EVERY_NOISE += [(DiscreteGaussian, sigma) for sigma in SIGMAS]


def make(kind, width):
    if kind is DiscreteLaplace:
        return DiscreteLaplace(scale=width)
    return DiscreteGaussian.for_sigma(width)


def edges_and_shares(noise, bins=40):
    """Whole-number bins of about equal probability, each with at least 1e-3, and their shares."""
    reach = math.ceil(45 * noise.sigma_counts) + 2
    k = np.arange(-reach, reach + 1)
    cumulative = np.cumsum(noise.pmf(k))
    at_least = np.maximum(np.arange(1, bins) / bins, 1e-3)
    last = np.unique(np.searchsorted(cumulative, at_least))
    last = last[(cumulative[last] < 1 - 1e-3) & (np.diff(cumulative[last], prepend=0) > 1e-3)]
    return k[last], np.diff(cumulative[last], prepend=0, append=1)


def counts(drawn, edges):
    return np.bincount(np.searchsorted(edges, drawn), minlength=edges.size + 1)


def fits(drawn, noise):
    edges, shares = edges_and_shares(noise)
    return chisquare(counts(drawn, edges), shares * drawn.size).pvalue >= FALSE_ALARM


@pytest.mark.parametrize(("kind", "width"), EVERY_NOISE)
def test_draws_have_the_stated_probabilities_and_a_wrong_scale_is_rejected(kind, width):
    noise = make(kind, width)
    drawn = noise.sample(DRAWS, rng=simulation_rng(1))
    assert fits(drawn, noise)
    for wrong in (Fraction(7, 10), Fraction(9, 10), Fraction(11, 10), Fraction(13, 10)):
        assert not fits(drawn, make(kind, width * wrong))


def tail(noise, cut):
    """P(|draw| >= cut)."""
    return 1 - noise.pmf(np.arange(1 - cut, cut)).sum()


@pytest.mark.parametrize(("kind", "width"), EVERY_NOISE)
def test_rare_values_are_as_rare_as_stated_and_a_wrong_scale_is_rejected(kind, width):
    """Both tails near a probability of 1e-3, where bins of equal weight see little."""
    noise = make(kind, width)
    k = np.arange(math.ceil(8 * noise.sigma_counts) + 2)
    cut = max(1, int(np.searchsorted(2 * np.cumsum(noise.pmf(k)) - noise.pmf(0), 1 - 1e-3)))
    seen = int((np.abs(noise.sample(DRAWS, rng=simulation_rng(2))) >= cut).sum())
    assert binomtest(seen, DRAWS, tail(noise, cut)).pvalue >= FALSE_ALARM
    for wrong in (Fraction(7, 10), Fraction(13, 10)):
        claimed = tail(make(kind, width * wrong), cut)
        assert binomtest(seen, DRAWS, claimed).pvalue < FALSE_ALARM


def oracle(kind, width):
    """OpenDP's noise on a row of zeros."""
    dp.enable_features("contrib")
    rows = dp.vector_domain(dp.atom_domain(T=int))
    if kind is DiscreteLaplace:
        draw = dp.m.make_laplace(rows, dp.l1_distance(T=int), scale=float(width))
    else:
        draw = dp.m.make_gaussian(rows, dp.l2_distance(T=float), scale=float(width))
    return np.array(draw([0] * ORACLE_DRAWS))


def look_alike(ours, theirs, noise):
    edges, _ = edges_and_shares(noise, bins=20)
    table = np.array([counts(ours, edges), counts(theirs, edges)])
    return chi2_contingency(table).pvalue >= FALSE_ALARM


@pytest.mark.parametrize(("kind", "width"), [EVERY_NOISE[i] for i in (1, 3, 5, 6)])
def test_draws_look_like_those_of_opendp_and_a_wrong_scale_does_not(kind, width):
    """OpenDP draws from the operating system: this one may fail, once in a million runs."""
    theirs = oracle(kind, width)
    right, wrong = make(kind, width), make(kind, width * Fraction(13, 10))
    assert look_alike(right.sample(DRAWS, rng=simulation_rng(3)), theirs, right)
    assert not look_alike(wrong.sample(DRAWS, rng=simulation_rng(3)), theirs, right)


@pytest.mark.parametrize(("kind", "width"), [EVERY_NOISE[i] for i in (2, 6)])
def test_successive_draws_are_uncorrelated(kind, width):
    drawn = make(kind, width).sample(DRAWS, rng=simulation_rng(4)).astype(float)
    correlation = np.corrcoef(drawn[1:], drawn[:-1])[0, 1]
    assert abs(correlation) < 5 / math.sqrt(DRAWS)  # alarm: 6e-7
