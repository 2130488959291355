"""Entropy and mutual information: identities, and undone randomized response."""

from math import exp, log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import InputError
from sfumato.local.frequency.grr import Grr
from sfumato.models.information import (
    debiased_information,
    debiased_joint,
    entropy,
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
