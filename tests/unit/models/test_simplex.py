"""Projection to counts that could exist: the nearest point, shown by its optimality conditions."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import InternalError
from sfumato.models.model import estimated_total, project

counts = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=12).map(np.array)
totals = st.floats(0, 1e6)


@given(counts, totals)
def test_a_projection_is_not_negative_and_has_the_total(noisy, total):
    found = project(noisy, total)
    assert found.min() >= 0
    assert found.sum() == pytest.approx(total, rel=1e-9, abs=1e-9)


@given(counts, totals)
def test_a_projection_subtracts_one_number_from_all_that_stays_above_zero(noisy, total):
    """The conditions of Karush, Kuhn and Tucker: they hold for the nearest point alone."""
    found = project(noisy, total)
    slack = 1e-6 * (1 + np.abs(noisy).max() + total)
    shifts = noisy[found > slack] - found[found > slack]
    if shifts.size:
        assert np.ptp(shifts) <= slack
        assert (noisy[found == 0] - shifts.mean() <= slack).all()


@given(
    st.lists(st.integers(-4, 4), min_size=2, max_size=4).map(lambda x: np.array(x, float)),
    st.integers(0, 4),
)
def test_no_point_of_a_grid_is_nearer_than_the_projection(noisy, total):
    best = np.sum((project(noisy, total) - noisy) ** 2)
    for grid in product(np.arange(0, total + 0.25, 0.5), repeat=noisy.size):
        if sum(grid) == total:
            assert np.sum((np.array(grid) - noisy) ** 2) >= best - 1e-9


@given(counts, totals)
def test_projecting_again_changes_nothing(noisy, total):
    once = project(noisy, total)
    assert project(once, total) == pytest.approx(once, rel=1e-9, abs=1e-9 * (1 + total))


def test_the_shape_is_kept():
    assert project(np.array([[1.0, -1.0], [3.0, 1.0]]), 3.0).shape == (2, 2)


def test_a_total_of_zero_leaves_nothing():
    assert project(np.array([3.0, 1.0, -2.0]), 0.0).tolist() == [0, 0, 0]


@pytest.mark.parametrize("size", [1e17, 1e300])
def test_noise_that_is_huge_against_the_total_does_not_change_the_total(size):
    assert project(np.array([size, 1.0, 2.0]), 1.0).tolist() == [1, 0, 0]
    assert project(np.array([-size, -size, -size]), 3.0).tolist() == [1, 1, 1]


@pytest.mark.parametrize(
    ("noisy", "total"),
    [([np.nan, 1], 1), ([np.inf, 1], 1), ([1, 1], -1), ([1, 1], np.nan), ([1, 1], np.inf)],
)
def test_numerical_trouble_fails_closed(noisy, total):
    with pytest.raises(InternalError):
        project(np.array(noisy, dtype=float), total)


def test_the_estimated_total_is_the_sum_or_zero():
    assert estimated_total(np.array([[1.5, -3.0], [4.0, 0.0]])) == 2.5
    assert estimated_total(np.array([1.0, -3.0])) == 0.0
