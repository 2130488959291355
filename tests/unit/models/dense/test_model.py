"""A dense histogram against brute force: groups of cells, answers to many targets, raking."""

from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.models.dense import model as dense
from sfumato.models.dense.model import DenseAnswers, DenseModel, cover_marginals, group, rake, sums
from sfumato.randomness import simulation_rng
from sfumato.schema import Boolean, Integer, Range, Schema, random_ranges
from sfumato.schema.measurement import PublicTotal
from sfumato.schema.schema import possible
from sfumato.schema.workload import layout


def _schema(*sizes):
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
    schema = _schema(*sizes)
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
    schema = _schema(*sizes)
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


def _brute(schema, target, cells):
    counts = cells.reshape(schema.shape(schema.names))
    if isinstance(target, Range):
        limits = {name: slice(low, high + 1) for name, low, high in target.bounds}
        return [counts[tuple(limits.get(name, slice(None)) for name in schema.names)].sum()]
    out = np.zeros(schema.shape(target))
    for cell in np.ndindex(counts.shape):
        out[tuple(cell[schema.names.index(name)] for name in target)] += counts[cell]
    return out.reshape(-1).tolist()


SMALL = _schema(3, 4, 2, 3)
PARTIAL = (Range((("c1", 1, 2),)), Range((("c0", 0, 0), ("c3", 1, 2))), Range(()))
MARGINALS = (("c0",), ("c2", "c1"), (), ("c3", "c0", "c2"), SMALL.names, ("c1", "c2"))
BOXES = random_ranges(SMALL, n=20, rng=simulation_rng(0)).ranges


@pytest.mark.parametrize("matrix_entries", [0, 4_000_000], ids=["box by box", "matrix"])
@pytest.mark.parametrize("levels", [(), (1,), (40, 10), (131_072, 2_048)])
def test_answers_are_those_of_adding_cell_by_cell(monkeypatch, matrix_entries, levels):
    monkeypatch.setattr(dense, "_MATRIX_ENTRIES", matrix_entries)
    monkeypatch.setattr(dense, "_LEVELS", levels)
    every = (*BOXES[:10], *MARGINALS[:3], *PARTIAL, *BOXES[10:], *MARGINALS[3:])
    cells = simulation_rng(1).uniform(72)
    for targets in (every, MARGINALS, (*BOXES, *PARTIAL)):
        found = DenseAnswers(SMALL, targets).of(cells)
        offsets = layout(SMALL, targets)
        assert found.size == offsets[-1]
        for place, target in enumerate(targets):
            part = found[offsets[place] : offsets[place + 1]]
            np.testing.assert_allclose(part, _brute(SMALL, target, cells), rtol=1e-9)


def test_the_matrix_is_made_only_where_it_is_small(monkeypatch):
    monkeypatch.setattr(dense, "_MATRIX_ENTRIES", 20 * 72)
    assert DenseAnswers(SMALL, BOXES)._matrix is not None
    monkeypatch.setattr(dense, "_MATRIX_ENTRIES", 20 * 72 - 1)
    assert DenseAnswers(SMALL, BOXES)._matrix is None


def test_a_few_covers_serve_all_pairs_of_twenty_binary_columns():
    schema = Schema(columns=tuple(Boolean(name=f"c{i}") for i in range(20)))
    pairs = list(combinations(schema.names, 2))
    covers = cover_marginals(schema, pairs, most_cells=2**14)
    assert sorted(pair for _, served in covers for pair in served) == sorted(pairs)
    assert len(covers) <= 5


@given(
    sizes=st.lists(st.integers(1, 40), min_size=1, max_size=6),
    degree=st.integers(1, 3),
    limit=st.sampled_from([1, 100, 5000]),
)
def test_covers_hold_every_marginal_once_and_stay_small(sizes, degree, limit):
    schema = _schema(*sizes)
    wanted = list(combinations(schema.names, min(degree, len(sizes))))
    covers = cover_marginals(schema, wanted, most_cells=limit)
    assert sorted(part for _, served in covers for part in served) == sorted(wanted)
    for cover, served in covers:
        assert all(set(part) <= set(cover) for part in served)
        assert schema.cells(cover) <= limit or served == [cover]


SIZES = {"a": 3, "b": 2, "c": 4}
SCHEMA = Schema(columns=tuple(Integer(name=n, low=0, high=s - 1) for n, s in SIZES.items()))


def made(schema: Schema = SCHEMA) -> DenseModel:
    counts = simulation_rng(1).uniform(24).reshape(3, 2, 4) * 10
    return DenseModel(schema=schema, counts=counts * possible(schema, schema.names))


def test_several_totals_hold_at_once() -> None:
    truth = DenseModel(schema=SCHEMA, counts=np.arange(24.0).reshape(3, 2, 4))
    totals = [
        PublicTotal(marginal=names, counts=truth.marginal(names))
        for names in [("a", "b"), ("b", "c"), ("c",)]
    ]
    found = rake(made(), totals)
    for each in totals:
        assert found.marginal(each.marginal) == pytest.approx(each.counts, abs=1e-6)
    assert found.total == pytest.approx(276)


def test_odds_within_a_total_stay() -> None:
    start = made()
    found = rake(start, [PublicTotal(marginal=("b",), counts=np.array([7, 70]))])
    ratio = found.counts / start.counts
    assert np.ptp(ratio, axis=(0, 2)) == pytest.approx(0, abs=1e-9)


def test_a_group_without_rows_gets_what_it_must_have_in_possible_cells_only() -> None:
    schema = SCHEMA.excluding([{"a": [0, 0], "b": [0, 0]}])
    start = made(schema)
    start.counts[0] = 0.0
    found = rake(start, [PublicTotal(marginal=("a",), counts=np.array([8, 1, 1]))])
    assert found.counts[0, 0].tolist() == [0, 0, 0, 0]
    assert found.counts[0, 1] == pytest.approx(2)


def test_nothing_to_agree_with_changes_nothing() -> None:
    start = made()
    assert rake(start, ()) is start
