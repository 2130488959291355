"""One true response among uniform codes: exact over whole records; the published bug refuted."""

from fractions import Fraction
from functools import cached_property
from math import log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, chi2, chisquare, norm

from sfumato.errors import InputError
from sfumato.local.frequency.grr import Grr, ResponseWeights
from sfumato.local.probabilities import WORD, exp_below
from sfumato.local.records.rsfd import RsFd
from sfumato.privacy.guarantees import LocalDP
from sfumato.randomness import simulation_rng

FALSE_ALARM = 1e-6


class Amplified(RsFd):
    """The planted bug: the published response, amplified as if one attribute could change."""

    @cached_property
    def responses(self):
        odds = len(self.sizes) * (exp_below(self.epsilon) - 1) + 1
        return tuple(ResponseWeights(codes=size, odds=odds) for size in self.sizes)


def population(sizes, n, *, seed=0):
    rng = simulation_rng(seed)
    return np.stack([np.minimum(rng.below(m, n), rng.below(m, n)) for m in sizes])


def estimates(mechanism, block, *, runs, seed):
    """Frequencies and standard errors of the first attribute's first category."""
    rng, found = simulation_rng(seed), []
    for _ in range(runs):
        state = mechanism.zero()
        mechanism.add(mechanism.answer_many(block, rng=rng), state)
        first = mechanism.estimate(state)[0]
        found.append((first.frequencies[0], first.standard_errors[0]))
    return np.array(found).T


def in_band(squares, alpha=FALSE_ALARM):
    total, n = np.sum(squares), len(squares)
    return chi2.ppf(alpha / 2, n) <= total <= chi2.isf(alpha / 2, n)


@pytest.mark.parametrize("sizes", [(2,), (2, 2), (3, 3), (2, 2, 2), (4, 4, 4)])
@pytest.mark.parametrize("epsilon", ["0.1", "1", "3"])
def test_the_loss_of_a_whole_record_is_exactly_that_of_the_response_within(sizes, epsilon):
    mechanism = RsFd(sizes=sizes, epsilon=epsilon)
    inner = Grr(categories=sizes[0], epsilon=epsilon).transition()
    assert mechanism.transition().ratio == inner.ratio
    assert inner.ratio <= exp_below(Fraction(epsilon))
    assert mechanism.guarantee == LocalDP(epsilon)


@given(
    sizes=st.lists(st.integers(2, 4), min_size=2, max_size=3),
    epsilon=st.fractions(Fraction(1, 100), 8, max_denominator=1_000),
)
def test_attributes_of_any_sizes_never_lose_more_than_epsilon(sizes, epsilon):
    mechanism = RsFd(sizes=sizes, epsilon=epsilon)
    keep = sum(r.codes * r.keep for r in mechanism.responses)
    share = sum(r.codes * r.share for r in mechanism.responses)
    ratio = mechanism.transition().ratio
    assert ratio == Fraction(keep, share)
    assert ratio <= exp_below(epsilon)


@pytest.mark.parametrize(("sizes", "loss"), [((2, 2), 1.490), ((4, 4), 1.490), ((3, 3, 3), 1.817)])
def test_the_exact_ratio_refutes_the_published_amplification(sizes, loss):
    transition = Amplified(sizes=sizes, epsilon=1).transition()
    assert transition.ratio > exp_below(Fraction(1))
    assert transition.loss == pytest.approx(loss, abs=5e-4)
    assert transition.loss == pytest.approx(log(len(sizes) * (np.e - 1) + 1))


def test_the_amplification_holds_if_one_attribute_changes_which_is_not_our_promise():
    rows = Amplified(sizes=(2, 2), epsilon=1).transition().weights
    for one, other in [(0, 1), (0, 2), (3, 1), (3, 2)]:
        ratios = [Fraction(a, b) for a, b in zip(rows[one], rows[other], strict=True)]
        assert max(*ratios, *(1 / ratio for ratio in ratios)) <= exp_below(Fraction(1))


def test_the_weights_are_the_likelihood_in_the_docstring():
    mechanism = RsFd(sizes=(2, 3), epsilon=1)
    transition = mechanism.transition()
    assert {sum(row) for row in transition.weights} == {2 * 6 * WORD}
    chosen = mechanism.responses[0].row(1)[0] * 2 + mechanism.responses[1].row(2)[2] * 3
    assert transition.weights[1 * 3 + 2][0 * 3 + 2] == chosen


@pytest.mark.parametrize("record", [(0, 0), (1, 2)])
def test_single_and_bulk_answers_have_the_exact_distribution(record):
    """Chi-square of whole answers; false-alarm rate 1e-6 each, and it sees the amplification."""
    mechanism, rng = RsFd(sizes=(2, 3), epsilon=1), simulation_rng(1)
    place = record[0] * 3 + record[1]
    exact = mechanism.transition().probabilities()[place]
    wrong = Amplified(sizes=(2, 3), epsilon=1).transition().probabilities()[place]
    single = mechanism.gather(mechanism.answer(record, rng=rng) for _ in range(6_000))
    bulk = mechanism.answer_many(np.array([record] * 300_000).T, rng=rng)
    for answers in (single, bulk):
        counts = np.bincount(answers[0].astype(int) * 3 + answers[1], minlength=6)
        assert chisquare(counts, exact * counts.sum()).pvalue >= FALSE_ALARM
        assert chisquare(counts, wrong * counts.sum()).pvalue < FALSE_ALARM


@pytest.mark.parametrize("sizes", [(300, 2), (70_000, 2)])
def test_wide_attributes_are_answered_over_their_whole_range(sizes):
    answers = RsFd(sizes=sizes, epsilon=1).answer_many(
        np.array([[sizes[0] - 1] * 20_000, [0] * 20_000]), rng=simulation_rng(2)
    )
    parts = np.bincount(answers[0].astype(np.int64) * 8 // sizes[0], minlength=8)
    assert parts.size == 8
    assert parts[:7].min() > 0.8 * parts[:7].max()
    assert set(np.unique(answers[1])) == {0, 1}


def test_estimates_are_unbiased_with_the_stated_variance():
    """False-alarm rate 1e-6 each; a scale that is 30% off would be seen."""
    mechanism, n, runs = RsFd(sizes=(3, 4, 2), epsilon=1), 3_000, 400
    block = population(mechanism.sizes, n)
    truth = np.mean(block[0] == 0)
    found, _ = estimates(mechanism, block, runs=runs, seed=3)
    z = (found - truth) / np.sqrt(mechanism.variance(0, truth) / n)
    assert abs(z.mean()) < 4.9 / np.sqrt(runs)
    assert in_band(z**2)
    assert not in_band((1.3 * z) ** 2)
    assert not in_band((z / 1.3) ** 2)


def test_intervals_cover_the_truth():
    """False-alarm rate 1e-6; errors that are 30% too small would be seen."""
    mechanism, block, runs = RsFd(sizes=(3, 4), epsilon=1), population((3, 4), 3_000), 800
    truth = np.mean(block[0] == 0)
    found, errors = estimates(mechanism, block, runs=runs, seed=4)
    fewest = binom.ppf(FALSE_ALARM, runs, 0.95)
    for scale, holds in [(1, True), (0.7, False)]:
        covered = np.abs(found - truth) <= norm.isf(0.025) * scale * errors
        assert (np.sum(covered) >= fewest) == holds


def test_the_estimate_is_the_published_formula():
    mechanism = RsFd(sizes=(4, 3), epsilon=1)
    state = [np.array([100, 40, 30, 20, 10]), np.array([100, 50, 25, 25])]
    p, q = (Grr(categories=4, epsilon=1).p, Grr(categories=4, epsilon=1).q)
    expected = [(2 * c / 100 - 1 / 4 - float(q)) / float(p - q) for c in (40, 30, 20, 10)]
    assert mechanism.estimate(state)[0].frequencies == pytest.approx(expected)


def test_tallies_of_two_crowds_sum_to_that_of_both():
    mechanism = RsFd(sizes=(3, 4), epsilon=1)
    answers = mechanism.answer_many(population((3, 4), 1_000), rng=simulation_rng(5))
    whole, first, second = (mechanism.zero() for _ in range(3))
    for state, part in ((whole, answers), (first, answers[:, :300]), (second, answers[:, 300:])):
        mechanism.add(part, state)
    for all_of_it, one, two in zip(whole, first, second, strict=True):
        np.testing.assert_array_equal(all_of_it, one + two)
        assert all_of_it[0] == all_of_it[1:].sum() == 1_000


def test_nothing_of_the_caller_is_changed():
    mechanism, block = RsFd(sizes=(3, 4), epsilon=1), population((3, 4), 500).astype(np.uint8)
    before = block.copy()
    answers = mechanism.answer_many(block, rng=simulation_rng(6))
    kept = answers.copy()
    mechanism.add(answers, mechanism.zero())
    np.testing.assert_array_equal(block, before)
    np.testing.assert_array_equal(answers, kept)


@pytest.mark.parametrize("record", [(0,), (0, 0, 0), (3, 0), (0, -1), (0, 1.5), (True, 0)])
def test_a_record_that_does_not_fit_is_refused(record):
    with pytest.raises(InputError, match=r"a record has 2|code must be a whole number"):
        RsFd(sizes=(3, 4), epsilon=1).answer(record, rng=simulation_rng(0))


@pytest.mark.parametrize("answers", [[[0, 1]], [[0], [4]], [[-1], [0]], [[0.5], [0]], [0, 1]])
def test_answers_of_a_wrong_layout_leave_the_tally_as_it_was(answers):
    mechanism = RsFd(sizes=(3, 4), epsilon=1)
    state = mechanism.zero()
    with pytest.raises(InputError, match="answer"):
        mechanism.add(np.array(answers), state)
    assert not any(tally.any() for tally in state)


def test_nobody_at_all_gives_no_estimate():
    mechanism = RsFd(sizes=(3, 4), epsilon=1)
    state = mechanism.zero()
    mechanism.add(mechanism.answer_many(np.zeros((2, 0), int), rng=simulation_rng(0)), state)
    mechanism.add(mechanism.gather([]), state)
    with pytest.raises(InputError, match="nobody answered"):
        mechanism.estimate(state)


def test_bad_sizes_and_matrices_beyond_reading_are_refused():
    with pytest.raises(InputError, match="sizes must list"):
        RsFd(sizes=(), epsilon=1)
    with pytest.raises(InputError, match="entries"):
        RsFd(sizes=(60, 60), epsilon=1).transition()
