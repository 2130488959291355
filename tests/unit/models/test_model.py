"""What models share: rounding to whole rows (the sum is kept, right on average), distances."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import InputError, InternalError
from sfumato.models.model import round_counts, total_variation
from sfumato.randomness import simulation_rng

counts = st.lists(st.one_of(st.just(0.0), st.floats(1e-6, 1e6)), min_size=1, max_size=30)


@given(counts.filter(any).map(np.array), st.integers(0, 10_000), st.integers(0, 99))
def test_rounded_counts_sum_to_n_and_lie_within_one_of_their_share(given_counts, n, seed):
    rounded = round_counts(given_counts, n, rng=simulation_rng(seed))
    share = given_counts / given_counts.sum() * n
    assert rounded.sum() == n
    assert (rounded >= np.floor(share - 1e-6)).all()
    assert (rounded <= np.ceil(share + 1e-6)).all()
    assert (rounded[given_counts == 0] == 0).all()


def test_counts_that_are_whole_already_stay():
    whole = np.array([[3.0, 0.0, 1.0], [2.0, 4.0, 0.0]])
    for seed in range(20):
        rounded = round_counts(whole, 10, rng=simulation_rng(seed))
        assert rounded.tolist() == whole.tolist()
        assert rounded.dtype == np.int64


def _chi_of_means(shares, seed):
    """Sum over cells of squared standard scores of the mean of 4,000 roundings of one row."""
    rng = simulation_rng(seed)
    mean = np.mean([round_counts(shares, 1, rng=rng) for _ in range(4000)], axis=0)
    truth = np.array([0.05, 0.15, 0.3, 0.5])
    return float(((mean - truth) ** 2 / (truth / 4000)).sum())


def test_rounding_is_right_on_average_and_the_test_sees_a_wrong_share():
    """A chi-square with 3 degrees of freedom exceeds 30 with probability 1.4e-6."""
    assert _chi_of_means(np.array([0.05, 0.15, 0.3, 0.5]) * 70, seed=3) < 30
    assert _chi_of_means(np.array([0.07, 0.15, 0.3, 0.48]) * 70, seed=3) > 30


def test_counts_that_say_nothing_become_equal_shares():
    assert round_counts(np.zeros(4), 8, rng=simulation_rng(0)).tolist() == [2, 2, 2, 2]
    assert round_counts(np.zeros((2, 3)), 0, rng=simulation_rng(0)).tolist() == [[0] * 3] * 2


def test_an_empty_cell_at_the_end_gets_no_row_by_rounding_errors():
    for seed in range(200):
        thirds = np.array([0.1, 0.2, 0.3, 0.7, 0.0])
        assert round_counts(thirds, 10**15 + 7, rng=simulation_rng(seed))[-1] == 0


def test_the_smallest_counts_can_be_rounded_too():
    assert round_counts(np.array([5e-324, 5e-324]), 10, rng=simulation_rng(0)).tolist() == [5, 5]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -1.0])
def test_counts_that_can_not_be_fail_closed(bad):
    with pytest.raises(InternalError, match="finite and not negative"):
        round_counts(np.array([3.0, bad, 1.0]), 5, rng=simulation_rng(0))


tables = st.lists(st.integers(0, 10**6), min_size=3, max_size=3).filter(any).map(np.array)


def test_total_variation_is_half_the_difference_of_shares():
    real, published = np.array([[1, 3], [0, 4]]), np.array([[2.0, 2.0], [2.0, 2.0]])
    assert total_variation(real, published) == (1 / 8 + 1 / 8 + 1 / 4 + 1 / 4) / 2


@given(tables, tables)
def test_total_variation_is_symmetric_and_between_zero_and_one(a, b):
    distance = total_variation(a, b)
    assert distance == pytest.approx(total_variation(b, a), abs=1e-12)
    assert -1e-12 <= distance <= 1 + 1e-12
    assert distance == pytest.approx(
        max(
            (a / a.sum())[list(event)].sum() - (b / b.sum())[list(event)].sum()
            for event in ([], [0], [1], [2], [0, 1], [0, 2], [1, 2])
        ),
        abs=1e-9,
    )


@given(tables, tables, tables)
def test_total_variation_obeys_the_triangle_inequality(a, b, c):
    assert total_variation(a, c) <= total_variation(a, b) + total_variation(b, c) + 1e-12


@given(tables, st.integers(1, 50))
def test_tables_of_equal_shares_have_no_distance(a, times):
    assert total_variation(a, a * times) == pytest.approx(0, abs=1e-12)


def test_disjoint_tables_are_as_far_as_can_be():
    assert total_variation(np.array([5, 0]), np.array([0.0, 2.0])) == 1


@pytest.mark.parametrize(("real", "published"), [([0, 0], [1, 1]), ([1, 1], [0, 0])])
def test_a_table_without_rows_has_no_shares(real, published):
    with pytest.raises(InputError, match="a sum above zero"):
        total_variation(np.array(real), np.array(published))
