"""Distances between published and real counts, against their formulas."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import InputError
from sfumato.evaluation.distances import QueryErrors, mean_squared_error, total_variation

_counts = st.lists(st.integers(0, 10**6), min_size=3, max_size=3).filter(any).map(np.array)


def test_total_variation_is_half_the_difference_of_shares():
    real, published = np.array([[1, 3], [0, 4]]), np.array([[2.0, 2.0], [2.0, 2.0]])
    assert total_variation(real, published) == (1 / 8 + 1 / 8 + 1 / 4 + 1 / 4) / 2


@given(_counts, _counts)
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


@given(_counts, _counts, _counts)
def test_total_variation_obeys_the_triangle_inequality(a, b, c):
    assert total_variation(a, c) <= total_variation(a, b) + total_variation(b, c) + 1e-12


@given(_counts, st.integers(1, 50))
def test_tables_of_equal_shares_have_no_distance(a, times):
    assert total_variation(a, a * times) == pytest.approx(0, abs=1e-12)


def test_disjoint_tables_are_as_far_as_can_be():
    assert total_variation(np.array([5, 0]), np.array([0.0, 2.0])) == 1


@pytest.mark.parametrize(("real", "published"), [([0, 0], [1, 1]), ([1, 1], [0, 0])])
def test_a_table_without_rows_has_no_shares(real, published):
    with pytest.raises(InputError, match="a sum above zero"):
        total_variation(np.array(real), np.array(published))


_answers = st.lists(
    st.tuples(st.integers(-(10**6), 10**6), st.floats(-1e6, 1e6)), min_size=1, max_size=20
)


@given(_answers)
def test_query_errors_are_those_of_numpy(pairs):
    real = np.array([a for a, _ in pairs])
    published = np.array([b for _, b in pairs])
    gaps = [abs(a - b) for a, b in pairs]
    found = QueryErrors.of(real, published)
    assert found.max == max(gaps)
    assert found.min == min(gaps)
    assert found.mean == pytest.approx(sum(gaps) / len(gaps))
    assert found.mean_squared == pytest.approx(sum(gap**2 for gap in gaps) / len(gaps))
    assert found.mean_squared == pytest.approx(mean_squared_error(real, published))
    assert set(found.to_dict()) == {"max", "min", "mean_squared", "mean"}


def test_the_mean_squared_error_is_the_mean_over_all_cells():
    assert mean_squared_error(np.array([[1, 2], [3, 4]]), np.array([[1, 4], [3, 3]])) == 5 / 4


def test_unsigned_counts_do_not_wrap_around():
    small, large = np.array([1], dtype=np.uint8), np.array([3], dtype=np.uint8)
    assert mean_squared_error(small, large) == 4
    assert QueryErrors.of(small, large).max == 2
