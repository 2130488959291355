"""Frequencies from counted answers: without bias, and by maximum likelihood."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, chi2, norm

from sfumato.errors import InputError
from sfumato.models.answers import frequencies
from sfumato.models.answers.frequencies import (
    debias,
    expectation_maximization,
    norm_sub,
    smoothed,
)
from sfumato.models.model import project
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
            reach = scale * errors * norm.isf((1 - confidence) / 2)
            hits = np.sum(np.abs(found - 0.3) <= reach)
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


@given(st.lists(st.floats(-2, 2), min_size=1, max_size=9).map(np.array))
def test_normed_frequencies_could_exist(noisy):
    found = norm_sub(noisy)
    assert found.min() >= 0
    assert found.sum() == pytest.approx(1)


def window_matrix(points, width, odds):
    """Answers i .. i + width - 1 of input i are ``odds`` times likelier than the others."""
    matrix = np.ones((points, points + width - 1))
    for i in range(points):
        matrix[i, i : i + width] = odds
    return matrix / (width * odds + points - 1)


def response_matrix(codes, odds):
    return (np.ones((codes, codes)) + (odds - 1) * np.eye(codes)) / (odds + codes - 1)


def random_matrix(inputs, answers, seed):
    matrix = simulation_rng(seed).uniform(inputs * answers).reshape(inputs, answers) + 0.01
    return matrix / matrix.sum(axis=1, keepdims=True)


def draw_counts(probabilities, n, seed):
    ends = np.cumsum(probabilities)
    drawn = np.searchsorted(ends / ends[-1], simulation_rng(seed).uniform(n), side="right")
    return np.bincount(drawn, minlength=probabilities.size)


def log_likelihood(counts, matrix, frequencies):
    """The logarithm of the probability of these answers, but for a constant."""
    return float(counts @ np.log(frequencies @ matrix))


def total_variation(a, b):
    return np.abs(a - b).sum() / 2


MATRICES = [response_matrix(6, 3.0), window_matrix(40, 12, 4.0), random_matrix(5, 9, 1)]


@pytest.mark.parametrize("matrix", MATRICES)
def test_the_likelihood_never_falls(matrix):
    counts = draw_counts(np.linspace(1, 2, len(matrix)) @ matrix, 500, 2)
    fits = [
        expectation_maximization(counts, matrix, tolerance=0, max_rounds=rounds)
        for rounds in range(1, 40)
    ]
    likelihoods = [log_likelihood(counts, matrix, fit) for fit in fits]
    assert (np.diff(likelihoods) >= -1e-9).all()
    assert likelihoods[-1] > likelihoods[0]


@pytest.mark.parametrize("matrix", [MATRICES[0], MATRICES[2]])
def test_exact_expected_counts_give_the_true_frequencies(matrix):
    truth = np.arange(1.0, len(matrix) + 1) / np.arange(1, len(matrix) + 1).sum()
    found = expectation_maximization(
        1e6 * (truth @ matrix), matrix, tolerance=1e-12, max_rounds=100_000
    )
    assert found == pytest.approx(truth, abs=1e-4)


def test_a_known_distribution_is_recovered_from_many_answers():
    truth, matrix = np.array([0.5, 0.3, 0.1, 0.1, 0, 0]), response_matrix(6, 3.0)
    counts = draw_counts(truth @ matrix, 1_000_000, 3)
    found = expectation_maximization(counts, matrix, tolerance=1e-6)
    assert total_variation(found, truth) < 0.01
    assert found.sum() == pytest.approx(1)
    assert (found >= 0).all()


def test_it_beats_the_inverse_of_the_matrix_when_answers_are_few():
    truth, matrix = np.array([0.7, 0.3] + [0.0] * 14), response_matrix(16, 3.0)
    ours, inverse = [], []
    for seed in range(10):
        counts = draw_counts(truth @ matrix, 300, seed)
        linear = np.linalg.solve(matrix.T, counts / 300)
        inverse.append(total_variation(linear, truth))
        ours.append(total_variation(expectation_maximization(counts, matrix), truth))
        assert log_likelihood(counts, matrix, project(linear, 1.0) + 1e-12) <= log_likelihood(
            counts, matrix, expectation_maximization(counts, matrix, tolerance=1e-9)
        )
    assert np.mean(ours) < 0.6 * np.mean(inverse)


def test_smoothing_recovers_a_density_that_plain_fits_leave_ragged():
    points, n = 1024, 50_000
    truth = np.exp(-(((np.arange(points) / points - 0.4) / 0.15) ** 2))
    truth /= truth.sum()
    matrix = window_matrix(points, 524, np.e)  # the square wave's window for epsilon 1
    counts = draw_counts(truth @ matrix, n, 4)
    smooth, plain = (expectation_maximization(counts, matrix, smooth=s) for s in (True, False))
    # Wasserstein distances on [0, 1].
    assert np.abs(np.cumsum(smooth - truth)).mean() < 0.02
    assert total_variation(smooth, truth) < 0.2
    assert total_variation(plain, truth) > 2 * total_variation(smooth, truth)


def test_few_differences_between_rows_are_multiplied_as_the_whole_matrix_would_be():
    for matrix in (window_matrix(300, 70, 5.0), response_matrix(200, 3.0)):
        predict, explain = frequencies._products(matrix)
        f, x = np.linspace(0, 1, len(matrix)), np.linspace(3, 1, matrix.shape[1])
        assert predict.__name__ == "predict"
        assert predict(f) == pytest.approx(f @ matrix, rel=1e-12)
        assert explain(x) == pytest.approx(matrix @ x, rel=1e-12)


def test_entries_of_very_different_size_are_multiplied_whole():
    predict, _ = frequencies._products(window_matrix(300, 70, 1e12))
    f = np.zeros(300)
    f[-1] = 1.0
    assert predict(f) == pytest.approx(f @ window_matrix(300, 70, 1e12), rel=1e-12)


def test_smoothing_keeps_a_constant_and_spreads_a_peak():
    assert smoothed(np.ones(5)) == pytest.approx(np.ones(5))
    assert smoothed(np.array([0.0, 4, 0])) == pytest.approx([4 / 3, 2, 4 / 3])


def test_the_callers_arrays_are_left_alone():
    counts, matrix = np.array([3, 4, 5, 1, 1, 1]), response_matrix(6, 3.0)
    counts.flags.writeable = matrix.flags.writeable = False
    expectation_maximization(counts, matrix, smooth=True)
    assert counts.tolist() == [3, 4, 5, 1, 1, 1]


@pytest.mark.parametrize(
    ("counts", "matrix", "message"),
    [
        ([0, 0], np.eye(2), "not estimable"),
        ([1, -1], np.eye(2), ">= 0"),
        ([1, np.nan], np.eye(2), "finite"),
        ([1, 1, 1], np.eye(2), "2 answers"),
        (["a", "b"], np.eye(2), "2 answers"),
        ([1, 1], np.ones((2, 2)), "sum to 1"),
        ([1, 1], [[2.0, -1.0], [0.0, 1.0]], "probabilities"),
        ([1, 1], [1.0, 0.0], "matrix"),
        ([1, 1], [[1.0, 0.0], [1.0, 0.0]], "no input can give"),
    ],
)
def test_bad_input_is_refused(counts, matrix, message):
    with pytest.raises(InputError, match=message):
        expectation_maximization(counts, np.array(matrix))
