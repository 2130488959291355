"""Independent columns and dense models: marginals against brute force, and drawn rows."""

from itertools import chain, combinations, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import InputError
from sfumato.models.answers.tree import fit_tree
from sfumato.models.dense.model import DenseModel, check_size
from sfumato.models.graphical.model import GraphicalModel
from sfumato.models.model import answer_ranges
from sfumato.randomness import simulation_rng
from sfumato.schema import Boolean, Category, Integer, Schema, random_ranges

SCHEMA = Schema(
    columns=(
        Category(name="a", values=("x", "y", "z")),
        Boolean(name="b", missing=True),
        Integer(name="c", low=1, high=4),
        Boolean(name="d"),
    )
)
SHAPE = SCHEMA.shape(SCHEMA.names)


def _every_order(names):
    subsets = chain.from_iterable(combinations(names, k) for k in range(len(names) + 1))
    return [order for subset in subsets for order in permutations(subset)]


def _brute(counts, names):
    """Sum cell by cell into the marginal, in the order of the names."""
    out = np.zeros(SCHEMA.shape(names))
    for cell in np.ndindex(counts.shape):
        out[tuple(cell[SCHEMA.names.index(name)] for name in names)] += counts[cell]
    return out


def _dense(seed=1):
    counts = simulation_rng(seed).uniform(int(np.prod(SHAPE))).reshape(SHAPE) * 100
    return DenseModel(schema=SCHEMA, counts=counts)


def _shares(seed=1):
    rng = simulation_rng(seed)
    raw = {column.name: rng.uniform(column.size) + 0.05 for column in SCHEMA}
    return {name: share / share.sum() for name, share in raw.items()}


def _independent(seed=1):
    return fit_tree(SCHEMA, total=50.0, shares=_shares(seed), pairs={})


def _joint(seed=1):
    """All cells of independent columns, one multiplication at a time."""
    out, shares = np.full(SHAPE, 50.0), _shares(seed)
    for cell in np.ndindex(SHAPE):
        for name, code in zip(SCHEMA.names, cell, strict=True):
            out[cell] *= shares[name][code]
    return out


def test_a_dense_marginal_is_the_sum_of_its_cells_for_every_subset_in_every_order():
    model = _dense()
    for names in _every_order(SCHEMA.names):
        found = model.marginal(names)
        assert found.shape == SCHEMA.shape(names)
        np.testing.assert_allclose(found, _brute(model.counts, names), rtol=1e-12)
    assert model.total == pytest.approx(float(model.marginal(())))


def test_a_marginal_of_independent_columns_is_the_sum_of_its_cells_in_every_order():
    model, joint = _independent(), _joint()
    for names in _every_order(SCHEMA.names):
        np.testing.assert_allclose(model.marginal(names), _brute(joint, names), rtol=1e-12)


@given(seed=st.integers(0, 50), n=st.integers(0, 300))
def test_rows_of_a_dense_model_hold_each_cell_within_one_of_its_share(seed, n):
    model = _dense(seed)
    rows = model.draw(n, rng=simulation_rng(seed))
    assert tuple(rows) == SCHEMA.names
    assert {codes.size for codes in rows.values()} == {n}
    drawn = np.zeros(SHAPE)
    np.add.at(drawn, tuple(rows[name] for name in SCHEMA.names), 1)
    assert (np.abs(drawn - model.counts / model.total * n) < 1 + 1e-9).all()


@given(seed=st.integers(0, 50), n=st.integers(0, 300))
def test_rows_of_independent_columns_hold_each_code_within_one_of_its_share(seed, n):
    model, shares = _independent(seed), _shares(seed)
    rows = model.draw(n, rng=simulation_rng(seed))
    for column in SCHEMA:
        drawn = np.bincount(rows[column.name], minlength=column.size)
        assert drawn.size == column.size
        assert (np.abs(drawn - shares[column.name] * n) < 1 + 1e-9).all()


def _dependence(rows, first, second):
    """Pearson's chi-square of two columns."""
    shape = (SCHEMA[first].size, SCHEMA[second].size)
    table = np.zeros(shape)
    np.add.at(table, (rows[first], rows[second]), 1)
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / table.sum()
    return float(((table - expected) ** 2 / expected).sum())


def test_columns_without_edges_are_drawn_independently_and_a_tie_would_be_seen():
    """Six pairs with at most 6 degrees of freedom; one exceeds 40 with probability 5e-7."""
    rows = dict(_independent().draw(80_000, rng=simulation_rng(4)))
    for first, second in combinations(SCHEMA.names, 2):
        assert _dependence(rows, first, second) < 40
    tied = np.where(simulation_rng(5).uniform(80_000) < 0.05, rows["a"] > 0, rows["d"])
    assert _dependence({**rows, "d": tied.astype(np.int64)}, "a", "d") > 40


def test_rows_come_in_random_order():
    """A fixed order would put all rows of a code beside each other."""
    codes = _dense().draw(500, rng=simulation_rng(0))["a"]
    assert np.count_nonzero(np.diff(codes)) > 100


def test_draws_follow_the_generator():
    for model in (_dense(), _independent()):
        first, again, other = (model.draw(40, rng=simulation_rng(s)) for s in (1, 1, 2))
        assert all((first[name] == again[name]).all() for name in SCHEMA.names)
        assert any((first[name] != other[name]).any() for name in SCHEMA.names)


def test_ranges_are_answered_from_marginals():
    wanted = random_ranges(SCHEMA, n=40, rng=simulation_rng(2)).ranges
    for model, joint in ((_dense(), _dense().counts), (_independent(), _joint())):
        found = answer_ranges(model, wanted)
        for answer, box in zip(found, wanted, strict=True):
            inside = joint[tuple(slice(low, high + 1) for _, low, high in box.bounds)]
            assert answer == pytest.approx(inside.sum())


def test_what_a_release_saves_is_the_numbers_of_the_model():
    dense, shares = _dense(), _shares()
    assert (dense.arrays()["counts"] == dense.counts).all()
    saved = _independent().arrays()
    assert saved["total"] == 50.0
    tables = {int(saved[f"clique_{i}"][0]): saved[f"table_{i}"] for i in range(4)}
    assert all((tables[i] == shares[name]).all() for i, name in enumerate(SCHEMA.names))
    assert len(saved) == 9
    loaded = GraphicalModel.from_arrays(SCHEMA, saved)
    assert (loaded.marginal(("c", "a")) == _independent().marginal(("c", "a"))).all()


def test_a_domain_that_fits_no_memory_is_refused_before_anything_is_made():
    schema = Schema(columns=tuple(Boolean(name=f"c{i}") for i in range(80)))
    with pytest.raises(InputError, match="mwem keeps every combination"):
        check_size(schema, method="mwem")
    check_size(SCHEMA, method="mwem")
