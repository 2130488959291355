"""Answers of a dense histogram to many targets at once, against one target at a time."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.models.dense import model as dense
from sfumato.models.dense.model import DenseAnswers, cover_marginals
from sfumato.randomness import simulation_rng
from sfumato.schema import Boolean, Integer, Range, Schema, random_ranges
from sfumato.schema.workload import layout


def _schema(*sizes):
    columns = (Integer(name=f"c{i}", low=1, high=size) for i, size in enumerate(sizes))
    return Schema(columns=tuple(columns))


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
