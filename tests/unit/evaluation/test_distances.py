"""Distances between published and real counts, against their formulas."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.evaluation.distances import QueryErrors, mean_squared_error

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
