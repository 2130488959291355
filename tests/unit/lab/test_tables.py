"""Tables about nobody: what is uniform is uniform, and what is tied is tied."""

import numpy as np
import pytest

from sfumato.errors import InputError
from sfumato.lab.tables import independent_table, integer_schema, tree_table
from sfumato.models.information import mutual_information
from sfumato.randomness import simulation_rng


def information(codes, sizes, i, j):
    cells = codes[i].astype(np.intp) * sizes[j] + codes[j]
    counts = np.bincount(cells, minlength=sizes[i] * sizes[j]).reshape(sizes[i], sizes[j])
    return mutual_information(counts)


def test_sizes_span_their_range_ends_included():
    sizes, codes = independent_table(300, sizes_between=(3, 6), rows=200, rng=simulation_rng(0))
    assert set(sizes) == {3, 4, 5, 6}
    assert codes.shape == (300, 200)
    assert (codes.max(axis=1) == np.array(sizes) - 1).all()


def test_independent_columns_are_uniform():
    """Chi-squared with 99 degrees of freedom: above 170 once in 75,000 seeds.

    The companion: half of one percent of the rows moved to one code is rejected.
    """
    _, codes = independent_table(1, sizes_between=(100, 100), rows=100_000, rng=simulation_rng(1))
    counts = np.bincount(codes[0], minlength=100)
    assert ((counts - 1000) ** 2 / 1000).sum() < 170
    counts = counts * 0.995
    counts[0] += 500
    assert ((counts - 1000) ** 2 / 1000).sum() > 170


def test_independent_columns_share_no_information():
    """2 n I is chi-squared with 9 degrees of freedom: above 40 once in 100,000 pairs."""
    sizes, codes = independent_table(4, sizes_between=(4, 4), rows=5_000, rng=simulation_rng(2))
    found = [2 * 5_000 * information(codes, sizes, i, j) for i in range(4) for j in range(i)]
    assert max(found) < 40


@pytest.mark.parametrize("high", [2, 256, 257, 2**16])
def test_codes_have_the_smallest_type_that_holds_them(high):
    _, codes = independent_table(1, sizes_between=(high, high), rows=10, rng=simulation_rng(3))
    assert codes.dtype == (np.uint8 if high <= 256 else np.uint16)


def test_every_column_of_a_tree_knows_its_parent_best():
    sizes, codes, parents = tree_table(
        10, sizes_between=(4, 4), rows=20_000, strength=0.7, rng=simulation_rng(4)
    )
    assert parents[0] is None
    for child in range(1, 10):
        assert 0 <= parents[child] < child
        by_earlier = [information(codes, sizes, child, other) for other in range(child)]
        assert int(np.argmax(by_earlier)) == parents[child]
        shares = np.array([0.7 + 0.3 / 4, 0.1 * 3 / 4, 0.1 * 3 / 4, 0.1 * 3 / 4])
        expected = np.log(4) + float(shares @ np.log(shares))
        assert max(by_earlier) == pytest.approx(expected, rel=0.1)


def test_strength_one_copies_and_strength_none_ties_nothing():
    arguments = {"sizes_between": (3, 3), "rows": 2_000}
    sizes, codes, parents = tree_table(4, strength=1, rng=simulation_rng(5), **arguments)
    assert information(codes, sizes, 1, parents[1]) == pytest.approx(np.log(3), abs=0.01)
    sizes, codes, parents = tree_table(4, strength=0, rng=simulation_rng(5), **arguments)
    assert information(codes, sizes, 1, parents[1]) < 0.01


def test_the_schema_has_a_column_of_each_size():
    schema = integer_schema((3, 200), dataset="made")
    assert schema.names == ("0", "1")
    assert schema.shape(schema.names) == (3, 200)
    assert schema["1"].labels[0] == "1"


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"columns": 0}, "columns must be"),
        ({"rows": 0}, "rows must be"),
        ({"sizes_between": (5, 3)}, "largest_size must be a whole number between 5"),
        ({"sizes_between": (0, 3)}, "smallest_size must be"),
        ({"strength": 1.1}, "strength must be between 0 and 1, got 1.1"),
    ],
)
def test_what_can_not_be_made_is_refused(changed, message):
    arguments = {"columns": 2, "sizes_between": (2, 3), "rows": 5, "strength": 0.5} | changed
    with pytest.raises(InputError, match=message):
        tree_table(arguments.pop("columns"), rng=simulation_rng(0), **arguments)
