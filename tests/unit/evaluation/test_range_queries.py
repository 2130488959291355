"""Which ranges are asked, and that both ways to answer them agree with counting by hand."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.evaluation.marginals import mean_squared_error
from sfumato.evaluation.range_queries import (
    CELLS_A_RANGE,
    QueryErrors,
    RelativeErrors,
    answer,
    drawn_ranges,
)
from sfumato.lab.tables import integer_schema
from sfumato.randomness import simulation_rng
from sfumato.readers.array_table import ArrayTable
from sfumato.schema import Boolean, Category, Integer, Ordinal, Range, Schema

SCHEMA = Schema(
    columns=(
        Integer(name="age", low=0, high=99, missing=True),
        Ordinal(name="size", values=("S", "M", "L"), other=True, missing=True),
        Category(name="town", values=("A", "B", "C"), missing=True),
        Boolean(name="member"),
        Integer(name="zip", low=0, high=999),
    )
)


def test_random_ranges_limit_one_to_three_columns_in_a_way_that_makes_sense():
    found = drawn_ranges(SCHEMA, 400, most_columns=3, rng=simulation_rng(1))
    assert len(set(found)) == len(found) == 400
    assert {len(box.bounds) for box in found} == {1, 2, 3}
    assert all(box.marginal == SCHEMA.marginal(box.marginal) for box in found)
    for name, low, high in (limits for box in found for limits in box.bounds):
        if not SCHEMA[name].ordered:
            assert low == high
        assert 0 <= low <= high <= {"age": 99, "size": 2, "zip": 999}.get(name, 3)


def test_fewer_ranges_are_asked_where_so_few_exist():
    two = Schema(columns=(Boolean(name="a"), Boolean(name="b")))
    found = drawn_ranges(two, 100, most_columns=3, rng=simulation_rng(1))
    expected = {Range(((name, v, v),)) for name, v in product("ab", (0, 1))}
    expected |= {Range((("a", v, v), ("b", w, w))) for v, w in product((0, 1), repeat=2)}
    assert set(found) == expected


@pytest.mark.parametrize("repeats", [1, 30])
def test_ranges_are_counted_alike_from_cells_and_row_by_row(repeats):
    """One range over 100,000 cells is looked up row by row; thirty are summed from counts."""
    rng = simulation_rng(2)
    schema = integer_schema((100, 1_000, 3))
    codes = {name: rng.below(schema[name].size, 5_000) for name in schema.names}
    wanted = [Range((("0", 10 + n, 60), ("1", 100, 900 - n))) for n in range(repeats)]
    wanted.append(Range((("2", 1, 1),)))
    assert (schema.cells(("0", "1")) > repeats * CELLS_A_RANGE) == (repeats == 1)
    by_hand = [
        np.logical_and.reduce([(codes[c] >= low) & (codes[c] <= high) for c, low, high in b.bounds])
        for b in wanted
    ]
    found = answer(ArrayTable(schema, codes), wanted)
    assert found.tolist() == [int(inside.sum()) for inside in by_hand]


def test_relative_errors_have_a_floor_so_that_empty_ranges_do_not_count_infinitely():
    found = RelativeErrors.of(np.array([100, 0, 5]), np.array([90, 5, 5]), floor=10)
    assert (found.mean, found.median, found.max) == (pytest.approx(0.2), 0.1, 0.5)
    assert found.to_dict()["floor"] == 10


_answers = st.lists(
    st.tuples(st.integers(-(10**6), 10**6), st.floats(-1e6, 1e6)), min_size=1, max_size=20
)


@given(_answers)
def test_query_errors_are_those_of_numpy(pairs):
    real = np.array([a for a, _ in pairs])
    published = np.array([b for _, b in pairs])
    gaps = [abs(a - b) for a, b in pairs]
    errors = QueryErrors.of(real, published)
    assert errors.max == max(gaps)
    assert errors.min == min(gaps)
    assert errors.mean == pytest.approx(sum(gaps) / len(gaps))
    assert errors.mean_squared == pytest.approx(sum(gap**2 for gap in gaps) / len(gaps))
    assert errors.mean_squared == pytest.approx(mean_squared_error(real, published))
    assert set(errors.to_dict()) == {"max", "min", "mean_squared", "mean"}


def test_unsigned_answers_do_not_wrap_around():
    small, large = np.array([1], dtype=np.uint8), np.array([3], dtype=np.uint8)
    assert QueryErrors.of(small, large).max == 2
