"""Frequencies behind randomized answers: likelihood, recovery, smoothing."""

import numpy as np
import pytest

from sfumato.errors import InputError
from sfumato.models.answers import deconvolution
from sfumato.models.answers.deconvolution import (
    expectation_maximization,
    log_likelihood,
    smoothed,
)
from sfumato.models.model import project
from sfumato.randomness import simulation_rng


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
        predict, explain = deconvolution._products(matrix)
        f, x = np.linspace(0, 1, len(matrix)), np.linspace(3, 1, matrix.shape[1])
        assert predict.__name__ == "predict"
        assert predict(f) == pytest.approx(f @ matrix, rel=1e-12)
        assert explain(x) == pytest.approx(matrix @ x, rel=1e-12)


def test_entries_of_very_different_size_are_multiplied_whole():
    predict, _ = deconvolution._products(window_matrix(300, 70, 1e12))
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
