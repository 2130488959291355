"""Means of many attributes by sampling a few of them: exact for the whole record."""

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from scipy.stats import chisquare

from sfumato.errors import InputError
from sfumato.local.means.sampled import SampledMeans
from sfumato.local.probabilities import exp_below
from sfumato.randomness import simulation_rng

FALSE_ALARM = 1e-6


def tally(mechanism, answers):
    counts = np.zeros(mechanism.cells, dtype=np.int64)
    mechanism.add(mechanism.layout.checked_many(answers), counts)
    return counts


@pytest.mark.parametrize(
    ("epsilon", "dimensions", "sampled"),
    [(1, 5, 1), ("2.5", 5, 1), ("4.99", 5, 1), (5, 5, 2), (10, 3, 3), (10, 5, 4), (8, 1, 1)],
)
def test_the_number_of_attributes_is_that_of_the_paper(epsilon, dimensions, sampled):
    mechanism = SampledMeans(dimensions=dimensions, points=8, epsilon=epsilon)
    assert mechanism.sampled == sampled
    assert mechanism.mechanism.epsilon * sampled == mechanism.epsilon


@pytest.mark.parametrize("inner", ["hybrid", "piecewise", "duchi"])
@pytest.mark.parametrize(("epsilon", "dimensions"), [(1, 3), (5, 2), (5, 3)])
def test_the_whole_record_keeps_epsilon(inner, epsilon, dimensions):
    mechanism = SampledMeans(dimensions=dimensions, points=2, epsilon=epsilon, inner=inner)
    transition = mechanism.transition()
    assert transition.ratio <= exp_below(Fraction(epsilon))
    assert len({sum(row) for row in transition.weights}) == 1


@pytest.mark.parametrize("epsilon", [1, 5])
def test_single_and_bulk_answers_follow_the_matrix(epsilon):
    # Chi-square: a false alarm once in a million; an epsilon 20% too large is refused.
    mechanism = SampledMeans(dimensions=3, points=2, epsilon=epsilon, inner="duchi")
    record, rng = [1, 0, 1], simulation_rng(41)
    expected = mechanism.transition().probabilities()[0b101]
    other = SampledMeans(dimensions=3, points=2, epsilon=epsilon * Fraction(6, 5), inner="duchi")
    wrong = other.transition().probabilities()[0b101]
    bulk = mechanism.answer_many(np.array([record] * 100_000), rng=rng)
    singles = [mechanism.answer(record, rng=rng) for _ in range(8_000)]
    for answers in (bulk, singles):
        observed = np.bincount(np.asarray(answers, np.int64), minlength=expected.size)
        assert chisquare(observed, expected * observed.sum()).pvalue > FALSE_ALARM
    observed = np.bincount(bulk, minlength=expected.size)
    assert chisquare(observed, wrong * observed.sum()).pvalue < FALSE_ALARM


def test_every_set_of_attributes_has_one_rank():
    mechanism = SampledMeans(dimensions=6, points=2, epsilon="7.5", inner="duchi")
    sets = mechanism.attributes(np.arange(mechanism.sets)).tolist()
    assert sorted(sets) == [list(each) for each in combinations(range(6), 3)]


@pytest.mark.parametrize("inner", ["hybrid", "piecewise", "duchi", "laplace"])
@pytest.mark.parametrize("epsilon", [1, 6])
def test_means_are_recovered_within_their_errors(inner, epsilon):
    # 5 standard errors in each of 4 dimensions: a false alarm less than once in 100,000.
    mechanism = SampledMeans(dimensions=4, points=64, epsilon=epsilon, inner=inner)
    records = np.tile([0, 20, 40, 63], (40_000, 1))
    means = mechanism.means(
        tally(mechanism, mechanism.answer_many(records, rng=simulation_rng(42)))
    )
    for code, (mean, error) in zip(records[0], means, strict=True):
        assert abs(mean - (2 * code / 63 - 1)) < 5 * error
        assert error**2 * 40_000 < 1.3 * mechanism.worst_variance


def test_an_attribute_that_nobody_answered_is_not_estimable():
    mechanism = SampledMeans(dimensions=3, points=8, epsilon=1, inner="duchi")
    counts = tally(mechanism, np.array([2, 3, 3]))  # attribute 1 only
    first, second, third = mechanism.means(counts)
    assert (first, third) == (None, None)
    assert second.mean == pytest.approx(mechanism.mechanism.values.max() / 3)


def test_a_record_may_be_given_as_its_code():
    mechanism = SampledMeans(dimensions=2, points=8, epsilon=1)
    rows = mechanism.answer_many(np.array([[3, 5]] * 9), rng=simulation_rng(1))
    codes = mechanism.answer_many(np.array([3 + 8 * 5] * 9), rng=simulation_rng(1))
    assert rows.tolist() == codes.tolist()


def test_more_attributes_cost_in_proportion():
    one, ten = (SampledMeans(dimensions=d, epsilon=1) for d in (1, 10))
    assert ten.worst_variance == pytest.approx(10 * one.worst_variance)
    assert ten.variance(0.5) == pytest.approx(10 * one.variance(0.5))


def test_bad_input_is_refused():
    mechanism, rng = SampledMeans(dimensions=2, points=8, epsilon=1), simulation_rng(0)
    for code in ([1], [1, 8], 64, -1, 1.5, None, True):
        with pytest.raises(InputError):
            mechanism.answer(code, rng=rng)
    for codes in ([[1]], [[1, 8]], [64], [[0.5, 1]]):
        with pytest.raises(InputError):
            mechanism.answer_many(codes, rng=rng)
    with pytest.raises(InputError, match="tally"):
        mechanism.means(np.zeros(3, np.int64))
    with pytest.raises(InputError, match="inner"):
        SampledMeans(dimensions=2, epsilon=1, inner="gauss")
    with pytest.raises(InputError, match="bits"):
        SampledMeans(dimensions=40, epsilon=30)
    with pytest.raises(InputError, match="entries"):
        SampledMeans(dimensions=40, epsilon=1).transition()
