"""Entropy and mutual information: identities, undone randomized response, and chance."""

from itertools import permutations
from math import exp, log, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import InputError
from sfumato.local.frequency.grr import Grr
from sfumato.models.information import (
    chance_information,
    debiased_information,
    debiased_joint,
    entropy,
    expected_noise_information,
    information_error,
    information_matrix,
    mutual_information,
)
from sfumato.randomness import simulation_rng


def random_joint(shape, seed):
    table = simulation_rng(seed).uniform(int(np.prod(shape))).reshape(shape) ** 3
    return table / table.sum()


def response(size, epsilon):
    """p and q of a k-ary response, and its matrix."""
    q = 1 / (exp(epsilon) + size - 1)
    matrix = np.full((size, size), q)
    np.fill_diagonal(matrix, 1 - (size - 1) * q)
    return (1 - (size - 1) * q, q), matrix


def paired(left, right, shape):
    return np.bincount(left * shape[1] + right, minlength=shape[0] * shape[1]).reshape(shape)


def test_entropy_is_the_logarithm_of_the_number_of_equal_cells_and_ignores_empty_ones():
    assert entropy(np.array([5, 5, 0, 5, 5])) == pytest.approx(log(4), abs=1e-15)
    assert entropy(np.array([0, 7])) == 0


def test_entropy_does_not_depend_on_scale_or_shape():
    table = random_joint((3, 4), 0)
    assert entropy(table) == pytest.approx(entropy(1_000 * table.reshape(-1)), rel=1e-14)


@given(st.integers(0, 10_000), st.integers(1, 5), st.integers(1, 6))
def test_mutual_information_is_the_two_entropies_less_the_joint_one(seed, a, b):
    joint = random_joint((a, b), seed)
    expected = entropy(joint.sum(axis=1)) + entropy(joint.sum(axis=0)) - entropy(joint)
    assert mutual_information(joint) == pytest.approx(expected, abs=1e-12)
    assert mutual_information(joint) == pytest.approx(mutual_information(joint.T), abs=1e-14)


def test_mutual_information_is_zero_for_a_product_and_the_entropy_for_a_copy():
    shares = np.array([0.5, 0.3, 0.2])
    assert mutual_information(np.outer(shares, [0.25, 0.75])) == pytest.approx(0, abs=1e-15)
    assert mutual_information(np.diag(shares)) == pytest.approx(entropy(shares), abs=1e-15)


@pytest.mark.parametrize("table", [np.zeros(3), [1.0, -1.0], [np.nan, 1.0], [np.inf, 1.0], []])
def test_a_table_that_is_no_distribution_has_no_entropy(table):
    with pytest.raises(InputError, match="finite cells >= 0 with a sum above 0"):
        entropy(np.array(table))


def test_mutual_information_needs_two_axes():
    with pytest.raises(InputError, match="2 axes, got 1"):
        mutual_information(np.ones(4))


@given(st.integers(0, 10_000), st.integers(2, 5), st.integers(2, 6), st.floats(0.2, 5))
def test_debiasing_the_expected_answers_gives_the_truth(seed, a, b, epsilon):
    joint = random_joint((a, b), seed)
    (left, left_matrix), (right, right_matrix) = response(a, epsilon), response(b, 2 * epsilon)
    answers = 10_000 * left_matrix.T @ joint @ right_matrix
    closed = debiased_joint(answers, left, right)
    assert closed == pytest.approx(joint, abs=1e-9)
    assert closed == pytest.approx(debiased_joint(answers, left_matrix, right_matrix), abs=1e-9)
    assert closed == pytest.approx(debiased_joint(answers, left, right_matrix), abs=1e-9)


def test_rows_and_columns_are_undone_each_with_their_own_matrix_even_if_it_is_not_symmetric():
    joint = random_joint((3, 2), 5)
    left = np.array([[0.8, 0.1, 0.1], [0.3, 0.6, 0.1], [0.0, 0.2, 0.8]])
    right = np.array([[0.9, 0.1], [0.4, 0.6]])
    assert debiased_joint(left.T @ joint @ right, left, right) == pytest.approx(joint, abs=1e-12)


def test_a_debiased_table_has_no_negative_cell_and_sums_to_one():
    weak, _ = response(4, 0.1)
    found = debiased_joint(
        paired(*simulation_rng(1).below(4, 200).reshape(2, 100), (4, 4)), weak, weak
    )
    assert found.min() == 0
    assert found.sum() == pytest.approx(1, abs=1e-12)


def test_debiasing_recovers_the_information_that_randomized_response_hid():
    n, rng = 200_000, simulation_rng(2)
    left = rng.below(4, n)
    right = np.where(rng.uniform(n) < 0.7, left, rng.below(4, n))
    grr = Grr(categories=4, epsilon=2)
    answers = paired(grr.answer_many(left, rng=rng), grr.answer_many(right, rng=rng), (4, 4))
    truth = mutual_information(paired(left, right, (4, 4)))
    assert mutual_information(answers) < truth / 3
    debiased = debiased_joint(answers, (grr.p, grr.q), (grr.p, grr.q))
    assert mutual_information(debiased) == pytest.approx(truth, rel=0.05)


def test_the_information_of_all_pairs_is_that_of_each_debiased_table():
    rng, sizes = simulation_rng(3), (3, 2, 5, 4)
    block = np.array([rng.below(size, 500) for size in sizes])
    responses = [response(size, 1 + place)[place % 2] for place, size in enumerate(sizes)]
    found = debiased_information(block, sizes, responses)
    assert np.array_equal(found, found.T)
    assert not found.diagonal().any()
    for i in range(4):
        for j in range(i):
            counts = paired(block[j], block[i], (sizes[j], sizes[i]))
            table = debiased_joint(counts, responses[j], responses[i])
            assert found[i, j] == pytest.approx(mutual_information(table), abs=1e-12)


def test_every_attribute_needs_its_own_response():
    with pytest.raises(InputError, match="each of the 2 attributes, got 1"):
        debiased_information(np.zeros((2, 3), dtype=int), (2, 2), [(1.0, 0.0)])


@pytest.mark.parametrize(
    ("left", "message"),
    [
        ((0.5, 0.5), "left must be .p, q."),
        ((0.7, 0.2), r"p \+ 1 q = 1"),
        ((0.2, 0.8), "0 <= q < p"),
        (np.eye(3), "2 inputs by 2 answers"),
        (np.ones((2, 2)), "rows sum to 1"),
        (np.full((2, 2), 0.5), "can't be inverted"),
    ],
)
def test_a_response_that_does_not_fit_the_table_is_refused(left, message):
    with pytest.raises(InputError, match=message):
        debiased_joint(np.ones((2, 2)), left, (1.0, 0.0))


def test_independent_values_show_the_expected_information_and_not_one_that_is_wrong_by_30_percent():
    """Mean of 1,000 tables; 2n I is chi-squared with 12 degrees of freedom, deviation sqrt(24).

    False alarm of the band of four standard errors: 6e-5 for a fresh seed.
    """
    n, runs, sizes, rng = 2_000, 1_000, (4, 5), simulation_rng(3)
    left, right = rng.below(4, n * runs).reshape(runs, n), rng.below(5, n * runs).reshape(runs, n)
    tables = (paired(*both, sizes) for both in zip(left, right, strict=True))
    found = np.array([mutual_information(table) for table in tables])
    band = 4 * sqrt(24) / (2 * n) / sqrt(runs)
    expected = expected_noise_information(sizes, n)
    assert abs(found.mean() - expected) < band
    assert abs(found.mean() - 1.3 * expected) > band
    assert abs(found.mean() - 0.7 * expected) > band


@pytest.mark.parametrize(
    ("left", "right"),
    [([0, 0, 0, 1, 1, 1], [0, 0, 1, 1, 2, 2]), ([0, 0, 0, 0, 1, 2], [0, 1, 1, 1, 1, 2])],
)
def test_chance_information_is_the_mean_over_all_pairings(left, right):
    pairings = [
        mutual_information(paired(np.array(left), np.array(shuffled), (3, 3)))
        for shuffled in permutations(right)
    ]
    found = chance_information(np.bincount(left), np.bincount(right))
    assert found == pytest.approx(np.mean(pairings), abs=1e-14)


def test_chance_information_is_the_first_order_formula_where_values_are_frequent():
    left, right = np.array([30_000, 50_000, 20_000]), np.array([60_000, 40_000])
    first_order = expected_noise_information((3, 2), 100_000)
    assert chance_information(left, right) == pytest.approx(first_order, rel=1e-4)


def test_chance_information_is_the_whole_entropy_where_every_value_is_unique():
    margin, unique = np.array([50, 30, 20]), np.ones(100, dtype=np.int64)
    assert chance_information(margin, unique) == pytest.approx(entropy(margin), abs=1e-14)
    assert chance_information(unique, margin) == pytest.approx(entropy(margin), abs=1e-14)


@pytest.mark.parametrize("left", [[1, 2], [1.0, 2.0], [-1, 4], [0, 0], [[1, 2]]])
def test_margins_that_do_not_count_the_same_records_are_refused(left):
    with pytest.raises(InputError):
        chance_information(np.array(left), np.array([2, 2]))


def test_an_information_matrix_takes_a_pair_in_either_order():
    ab, cb, ac = (random_joint(shape, seed) for seed, shape in enumerate([(2, 3), (4, 3), (2, 4)]))
    found = information_matrix({("a", "b"): ab, ("c", "b"): cb, ("a", "c"): ac}, ["a", "b", "c"])
    assert np.array_equal(found, found.T)
    assert np.array_equal(np.diag(found), np.zeros(3))
    assert found[0, 1] == mutual_information(ab)
    assert found[1, 2] == mutual_information(cb)


def test_an_information_matrix_says_which_pair_is_missing():
    with pytest.raises(InputError, match="no table of 'a' and 'c'"):
        information_matrix({("a", "b"): np.ones((2, 2))}, ["a", "b", "c"])


def test_the_error_of_a_matrix_counts_each_pair_once_and_no_diagonal():
    exact = np.zeros((3, 3))
    found = np.array([[9.0, 1.0, -2.0], [1.0, 9.0, 3.0], [-2.0, 3.0, 9.0]])
    assert information_error(found, exact) == 2


@pytest.mark.parametrize("shape", [(2, 3), (1, 1), (3,)])
def test_matrices_of_other_shapes_are_not_compared(shape):
    with pytest.raises(InputError, match="2 or more attributes"):
        information_error(np.zeros(shape), np.zeros(shape))
