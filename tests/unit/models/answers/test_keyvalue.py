from fractions import Fraction
from itertools import product
from math import e, exp

import numpy as np
import pytest

from sfumato.errors import InputError
from sfumato.local.keyvalue.pairs import Pairs
from sfumato.local.keyvalue.pckv import PckvGrr, PckvUe
from sfumato.local.keyvalue.privkvm import PrivKvm, ValueBit
from sfumato.local.keyvalue.sampled_key import F2M, BiSample, PrivKv, StateEncoding
from sfumato.models.answers.keyvalue import corrected_rounds, estimate, estimate_table
from sfumato.randomness import simulation_rng

FREQUENCIES = np.array([0.8, 0.4])
MEANS = np.array([0.5, -0.6])
LARGE = 10**15


def protocols(epsilon):
    return [
        PrivKv(keys=2, epsilon=epsilon),
        StateEncoding(keys=2, epsilon=epsilon),
        F2M(keys=2, epsilon=epsilon),
        F2M(keys=2, epsilon=epsilon, share="0.6", fill="0.5"),
        BiSample(keys=2, epsilon=epsilon),
        PckvUe(keys=2, epsilon=epsilon, padding=2),
        PckvGrr(keys=2, epsilon=epsilon, padding=2),
    ]


def name(mechanism):
    return type(mechanism).__name__


def people(n, rng):
    """People of a population with known frequencies and means, values spread by 0.3."""
    held = rng.uniform(2 * n).reshape(n, 2) < FREQUENCIES
    values = MEANS + 0.6 * (rng.uniform(2 * n).reshape(n, 2) - 0.5)
    return Pairs.from_dense(np.where(held, values, np.nan))


def tally(mechanism, pairs, rng):
    counts = np.zeros(mechanism.cells, dtype=np.int64)
    mechanism.add(mechanism.answer_many(pairs, rng=rng), counts)
    return counts


def expected_tally(mechanism):
    """What very many people of the population are expected to answer, from the matrix."""
    chances = [
        (1 - f, f * (1 - m) / 2, f * (1 + m) / 2) for f, m in zip(FREQUENCIES, MEANS, strict=True)
    ]
    weights = np.array([np.prod(chance) for chance in product(*chances)])
    table = mechanism.transition()
    shares = np.rint(LARGE * (weights @ table.probabilities())).astype(np.int64)
    counts = np.zeros(mechanism.cells, dtype=np.int64)
    if not isinstance(mechanism, PckvUe):
        counts[: shares.size] = shares
        return counts
    for answer, share in zip(table.answers, shares, strict=True):
        one = np.zeros_like(counts)
        mechanism.add(mechanism.layout.one(answer), one)
        counts += share * one
    return counts


@pytest.mark.parametrize("epsilon", ["0.1", "1", "6"])
@pytest.mark.parametrize("place", range(7))
def test_the_expected_tally_gives_back_frequencies_and_means(place, epsilon):
    mechanism = protocols(epsilon)[place]
    found = estimate(mechanism, expected_tally(mechanism))
    assert found.frequencies == pytest.approx(FREQUENCIES, abs=1e-9)
    assert found.means == pytest.approx(MEANS, abs=1e-9)


@pytest.mark.parametrize("mechanism", protocols(2), ids=name)
def test_estimates_of_simulated_people_are_within_their_errors(mechanism):
    """Four estimates within 5 standard errors: false alarms below 3 in a million."""
    rng = simulation_rng(1)
    found = estimate(mechanism, tally(mechanism, people(100_000, rng), rng))
    assert (np.abs(found.frequencies - FREQUENCIES) < 5 * found.frequency_errors).all()
    assert (np.abs(found.means - MEANS) < 5 * found.mean_errors).all()
    assert (found.mean_errors < 0.1).all()


@pytest.mark.parametrize("place", range(7))
def test_the_same_answers_read_with_an_epsilon_one_fifth_too_large_are_far_off(place):
    rng = simulation_rng(1)
    counts = tally(protocols(2)[place], people(100_000, rng), rng)
    wrong = estimate(protocols("2.4")[place], counts)
    off = np.abs(wrong.frequencies - FREQUENCIES) / wrong.frequency_errors
    assert off.max() > 5


def covered(estimates, truth, errors):
    return float(np.mean(np.abs(estimates - truth) < 1.96 * errors))


@pytest.mark.parametrize("mechanism", protocols(2), ids=name)
def test_intervals_of_95_percent_cover_90_to_99_percent(mechanism):
    """200 runs, 400 intervals: 95% +- 1.1%, so an honest error leaves the band below 1e-3."""
    rng = simulation_rng(2)
    found = [estimate(mechanism, tally(mechanism, people(3_000, rng), rng)) for _ in range(200)]
    frequencies = np.array([one.frequencies for one in found])
    frequency_errors = np.array([one.frequency_errors for one in found])
    means = np.array([one.means for one in found])
    mean_errors = np.array([one.mean_errors for one in found])
    assert all(one.estimable.all() for one in found)
    assert 0.90 <= covered(frequencies, FREQUENCIES, frequency_errors) <= 0.99
    assert 0.90 <= covered(means, MEANS, mean_errors) <= 0.99
    assert covered(frequencies, FREQUENCIES, frequency_errors / 1.5) < 0.90
    assert covered(means, MEANS, mean_errors / 1.5) < 0.90


def test_the_naive_mean_of_privkv_has_the_published_bias():
    mechanism = PrivKv(keys=2, epsilon=1)
    p = 1 / (1 + exp(-0.5))
    claimed = FREQUENCIES * p + (1 - FREQUENCIES) * (1 - p)
    biased = mechanism.naive_mean(expected_tally(mechanism))
    assert biased == pytest.approx(FREQUENCIES * p * MEANS / claimed, abs=1e-9)
    assert (np.abs(biased) < np.abs(MEANS) - 0.05).all()


def test_privkv_reads_frequencies_by_the_published_formula():
    mechanism, counts = PrivKv(keys=1, epsilon=1), np.array([60, 25, 35])
    p = 1 / (1 + exp(-0.5))
    assert estimate(mechanism, counts).frequencies[0] == pytest.approx((0.5 + p - 1) / (2 * p - 1))


def test_state_encoding_reads_by_the_published_formula():
    counts, p = np.array([20, 30, 70]), e / (e + 2)
    _, minus, plus = (2 * counts - 120 * (1 - p)) / (3 * p - 1)
    found = estimate(StateEncoding(keys=1, epsilon=1), counts)
    assert found.frequencies[0] == pytest.approx((plus + minus) / 120)
    assert found.means[0] == pytest.approx((plus - minus) / (plus + minus))


def test_bisample_reads_by_the_published_formula():
    no_minus, yes_minus, no_plus, yes_plus = counts = np.array([400, 300, 200, 500])
    p, pos = e / (e + 1), yes_plus / (yes_plus + no_plus)
    neg = yes_minus / (yes_minus + no_minus)
    found = estimate(BiSample(keys=1, epsilon=1), counts)
    assert found.frequencies[0] == pytest.approx((2 * p - 2 + pos + neg) / (2 * p - 1))
    assert found.means[0] == pytest.approx((pos - neg) / (pos + neg + 2 * p - 2))


def test_f2m_reads_by_the_published_formula():
    counts, fill = np.array([100, 200, 300, 400]), 0.25
    p = 1 / (1 + exp(-0.5))
    f = (0.7 - (1 - p)) / (2 * p - 1)
    m_all = (600 - 400) / 1000 / (2 * p - 1)
    found = estimate(F2M(keys=1, epsilon=1, fill=fill), counts)
    assert found.frequencies[0] == pytest.approx(f)
    assert found.means[0] == pytest.approx((m_all - (1 - f) * fill) / f)


def test_pckv_reads_by_the_published_formulas():
    mechanism, n1, n2, n = PckvUe(keys=1, epsilon=1, padding=2), 350, 150, 1000
    found = estimate(mechanism, np.array([n2, n1, n]))
    a, b, p = 1 / 2, 2 / (e + 3), e / (e + 1)
    assert found.frequencies[0] == pytest.approx(2 * ((n1 + n2) / n - b) / (a - b))
    matrix = [[a * p - b / 2, a * (1 - p) - b / 2], [a * (1 - p) - b / 2, a * p - b / 2]]
    plus, minus = np.linalg.solve(matrix, [n1 / n - b / 2, n2 / n - b / 2])
    assert found.means[0] == pytest.approx((plus - minus) / (plus + minus))


def test_lists_longer_than_the_padding_make_frequencies_too_low():
    mechanism, rng = PckvGrr(keys=2, epsilon=2, padding=1), simulation_rng(3)
    found = estimate(mechanism, tally(mechanism, people(100_000, rng), rng))
    both = FREQUENCIES.prod()
    assert found.frequencies == pytest.approx(FREQUENCIES - both / 2, abs=0.03)


@pytest.mark.parametrize("mechanism", protocols(1), ids=name)
@pytest.mark.parametrize("n", [0, 1, 2])
def test_few_answers_are_not_estimable_and_no_nan_is_silent(mechanism, n):
    rng = simulation_rng(4)
    pairs = Pairs.from_dicts([{0: 1.0, 1: 1.0}] * n, keys=2)
    with np.errstate(all="raise"):
        found = estimate(mechanism, tally(mechanism, pairs, rng))
    assert not found.estimable.any()
    assert np.isnan(found.means).all()
    assert np.isinf(found.mean_errors).all()
    unheard = found.answers == 0
    assert (np.isnan(found.frequencies) == unheard).all()
    assert (np.isinf(found.frequency_errors) == unheard).all()
    assert (found.frequency_errors > 0.3).all()
    for key in range(2):
        assert found.mean_of(key) is None
        assert (found.frequency_of(key) is None) == unheard[key]
        assert "not estimable" in found.describe(key)


def test_a_frequency_of_zero_has_no_mean():
    found = estimate(StateEncoding(keys=1, epsilon=1), np.array([5760, 2120, 2120]))
    assert abs(found.frequencies[0]) < 0.01
    assert found.mean_of(0) is None


def test_clipping_is_offered_and_not_done_by_itself():
    found = estimate(StateEncoding(keys=1, epsilon=1), np.array([100, 0, 900]))
    assert found.frequencies[0] > 1
    assert found.means[0] > 1
    assert (found.clipped.frequencies[0], found.clipped.means[0]) == (1, 1)
    assert len(found) == 1
    assert "mean" in found.describe(0)


@pytest.mark.parametrize("table", [[1, 2, 3], [[0.5, 1, 2]], [[-1, 1, 2]]])
def test_a_table_that_holds_no_counts_is_refused(table):
    with pytest.raises(InputError, match="rows of counts"):
        estimate_table(table, np.ones((2, 3)))


def test_every_round_of_privkvm_shrinks_the_bias_by_one_minus_f():
    protocol = PrivKvm(keys=2, epsilon=4, rounds=4)
    last = protocol.first().naive_mean(expected_tally(protocol.first()))
    for _ in range(3):
        mechanism = protocol.next(last)
        means = mechanism.iterate(expected_tally(mechanism))
        assert means == pytest.approx(FREQUENCIES * MEANS + (1 - FREQUENCIES) * last, abs=1e-9)
        assert means - MEANS == pytest.approx((1 - FREQUENCIES) * (last - MEANS), abs=1e-9)
        last = means


def test_the_corrected_mean_after_a_round_has_no_bias():
    protocol = PrivKvm(keys=2, epsilon=4, rounds=2)
    first = estimate(protocol.first(), expected_tally(protocol.first()))
    mechanism = protocol.next([0.9, -0.2])
    found = corrected_rounds(first, mechanism, expected_tally(mechanism))
    assert found.means == pytest.approx(MEANS, abs=1e-9)
    assert found.frequencies == pytest.approx(FREQUENCIES, abs=1e-9)


def test_corrected_means_of_privkvm_are_covered_and_the_iterate_is_nearer_than_the_first():
    """200 runs, 400 intervals of 95%: an honest error leaves the band below 1e-3."""
    protocol, rng = PrivKvm(keys=2, epsilon=6, rounds=3), simulation_rng(5)
    means, errors, iterates, firsts = [], [], [], []
    for _ in range(200):
        run = protocol.simulate(people(3_000, rng), rng=rng)
        first = estimate(run.first, run.first_counts)
        found = corrected_rounds(first, *run.later[-1])
        means.append(found.means)
        errors.append(found.mean_errors)
        firsts.append(run.means[0])
        iterates.append(run.means[-1])
    assert 0.90 <= covered(np.array(means), MEANS, np.array(errors)) <= 0.99
    assert covered(np.array(means), MEANS, np.array(errors) / 1.5) < 0.90
    bias = np.abs(np.mean(iterates, axis=0) - MEANS)
    assert (bias < np.abs(np.mean(firsts, axis=0) - MEANS)).all()


@pytest.mark.parametrize("n", [0, 1, 2])
def test_few_answers_to_privkvm_are_not_estimable(n):
    rng = simulation_rng(6)
    pairs = Pairs.from_dicts([{0: 1.0}] * n, keys=2)
    with np.errstate(all="raise"):
        run = PrivKvm(keys=2, epsilon=1, rounds=3).simulate(pairs, rng=rng)
        found = corrected_rounds(estimate(run.first, run.first_counts), *run.later[-1])
    assert not found.estimable.any()
    assert np.isfinite(run.means).all()
    assert all(found.mean_of(key) is None for key in range(2))


def test_signs_alone_estimate_no_frequency():
    mechanism = ValueBit(keys=1, epsilon=Fraction(1), fills=[0.0])
    with pytest.raises(InputError, match="corrected_rounds"):
        estimate(mechanism, np.array([1, 2]))
