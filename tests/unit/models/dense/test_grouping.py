"""Grouped sums of a dense domain, smaller and larger than one block of cells."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.models.dense.model import group, sums
from sfumato.randomness import simulation_rng
from sfumato.schema import Integer, Range, Schema


def _schema(sizes):
    columns = (Integer(name=f"c{i}", low=1, high=size) for i, size in enumerate(sizes))
    return Schema(columns=tuple(columns))


DOMAINS = {
    "one cell": (1,),
    "one column": (7,),
    "one block": (3, 4, 5),
    "exactly one block": (2,) * 10,
    "two blocks": (2,) * 11,
    "many blocks": (3, 5, 7, 4, 11, 2),
    "a wide first column": (2000, 2),
    "a wide last column": (2, 2000),
}


def _cells(schema):
    return simulation_rng(1).uniform(schema.cells(schema.names)) + 0.1


def _some_marginals(names):
    pairs = [order for order in permutations(names[:3] + names[-2:], 2) if len(set(order)) == 2]
    return list(dict.fromkeys([(), *((name,) for name in names), *pairs, names, names[::-1]]))


@pytest.mark.parametrize("sizes", DOMAINS.values(), ids=DOMAINS)
def test_sums_by_marginal_are_those_of_numpy(sizes):
    schema = _schema(sizes)
    cells = _cells(schema)
    for names in _some_marginals(schema.names):
        grouping = group(schema, names)
        axes = [schema.names.index(name) for name in names]
        others = tuple(axis for axis in range(len(sizes)) if axis not in axes)
        kept = cells.reshape(sizes).sum(axis=others)
        expected = np.transpose(kept, np.argsort(np.argsort(axes)))
        np.testing.assert_allclose(sums(cells, grouping), expected.reshape(-1), rtol=1e-10)
        assert grouping.groups == schema.cells(names)


@given(sizes=st.sampled_from(list(DOMAINS.values())), data=st.data())
def test_the_one_group_of_a_range_is_the_sum_inside_it(sizes, data):
    schema = _schema(sizes)
    cells = _cells(schema)
    bounds, inside = [], [slice(None)] * len(sizes)
    for axis, size in enumerate(sizes):
        if data.draw(st.booleans()):
            low = data.draw(st.integers(0, size - 1))
            high = data.draw(st.integers(low, size - 1))
            bounds.append((f"c{axis}", low, high))
            inside[axis] = slice(low, high + 1)
    grouping = group(schema, Range(tuple(bounds)))
    expected = cells.reshape(sizes)[tuple(inside)].sum()
    assert sums(cells, grouping).tolist() == [pytest.approx(expected)]
