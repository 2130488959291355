"""Multiplicative weights: the paper's step, raking, convergence, and numbers that stay numbers."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.models.dense.multiplicative_weights import WeightedHistogram
from sfumato.randomness import simulation_rng
from sfumato.schema import Integer, Measurement, Range, Schema, all_marginals, random_ranges

EXACT = 1e-9  # so small a sigma that a fit never stops early


def _schema(*sizes):
    columns = (Integer(name=f"c{i}", low=1, high=size) for i, size in enumerate(sizes))
    return Schema(columns=tuple(columns))


SMALL = _schema(3, 4, 2)
SHAPE = (3, 4, 2)
LARGE = _schema(8, 8, 8, 4)  # two columns in a block, two outside


def _seen(target, values, sigma=EXACT):
    return Measurement(target=target, values=np.array(values, dtype=float), sigma_counts=sigma)


def _fit(schema, total, measurements, *, repetitions, start=None, seed=0):
    model = WeightedHistogram(schema=schema, total=total, capacity=len(measurements))
    if start is not None:
        model.cells[:] = start
    for measurement in measurements:
        model.add(measurement)
    model.fit(repetitions=repetitions, rng=simulation_rng(seed))
    return model.cells


def _inside(schema, box):
    mask = np.zeros(schema.shape(schema.names))
    limits = {name: slice(low, high + 1) for name, low, high in box.bounds}
    mask[tuple(limits.get(name, slice(None)) for name in schema.names)] = 1
    return mask.reshape(-1)


def _truth(schema, seed, total):
    cells = simulation_rng(seed).uniform(schema.cells(schema.names)) ** 3 + 0.01
    return cells / cells.sum() * total


def _marginal(schema, cells, names):
    others = tuple(i for i, name in enumerate(schema.names) if name not in names)
    return cells.reshape(schema.shape(schema.names)).sum(axis=others)


def test_before_any_measurement_all_cells_are_equal():
    model = WeightedHistogram(schema=SMALL, total=48.0, capacity=3)
    assert model.cells.tolist() == [2.0] * 24
    model.fit(repetitions=2, rng=simulation_rng(0))
    assert model.cells.tolist() == [2.0] * 24


@pytest.mark.parametrize("schema", [SMALL, LARGE], ids=["one block", "many blocks"])
@given(seed=st.integers(0, 200), share=st.floats(0, 1), total=st.sampled_from([1.0, 90.0, 1e6]))
def test_one_step_on_a_range_is_the_formula_of_the_paper(schema, seed, share, total):
    """A(x) * exp(q(x) (m - q(A)) / 2n), brought back to n: Hardt et al. 2012, figure 1."""
    (box,) = random_ranges(schema, n=1, rng=simulation_rng(seed)).ranges
    start, m = _truth(schema, seed, total), share * total
    q = _inside(schema, box)
    moved = start * np.exp(q * (m - q @ start) / (2 * total))
    expected = moved * total / moved.sum()
    found = _fit(schema, total, [_seen(box, m)], repetitions=1, start=start)
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_a_measurement_that_could_not_be_counts_as_the_nearest_that_could():
    box, total = Range((("c0", 0, 1),)), 100.0
    for impossible, nearest in ((-30.0, 0.0), (1e9, total)):
        found = _fit(SMALL, total, [_seen(box, impossible)], repetitions=3)
        expected = _fit(SMALL, total, [_seen(box, nearest)], repetitions=3)
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("schema", [SMALL, LARGE], ids=["one block", "many blocks"])
@given(seed=st.integers(0, 100), total=st.floats(1, 1e6))
def test_a_measured_marginal_fits_after_one_pass_by_one_factor_a_group(schema, seed, total):
    names = all_marginals(schema, degree=2).marginals[seed % 3]
    wanted = _marginal(schema, _truth(schema, seed, total), names)
    start = _truth(schema, seed + 1, total)
    found = _fit(schema, total, [_seen(names, wanted)], repetitions=1, start=start)
    np.testing.assert_allclose(_marginal(schema, found, names), wanted, rtol=1e-9)
    factors = (found / start).reshape(schema.shape(schema.names))
    others = tuple(i for i, name in enumerate(schema.names) if name not in names)
    assert np.ptp(factors, axis=others) == pytest.approx(0, abs=1e-9 * factors.max())


@pytest.mark.parametrize("schema", [SMALL, LARGE], ids=["one block", "many blocks"])
def test_exact_marginals_are_met_by_many_passes(schema):
    truth = _truth(schema, 3, 1000.0)
    pairs = list(combinations(schema.names, 2))
    seen = [_seen(names, _marginal(schema, truth, names)) for names in pairs]
    found = _fit(schema, 1000.0, seen, repetitions=150)
    for names in pairs:
        np.testing.assert_allclose(
            _marginal(schema, found, names), _marginal(schema, truth, names), atol=0.01
        )


def test_exact_ranges_are_met_by_many_passes():
    schema = _schema(4, 3)
    truth = _truth(schema, 4, 1000.0)
    boxes = random_ranges(schema, n=60, rng=simulation_rng(0)).ranges
    answers = np.array([_inside(schema, box) @ truth for box in boxes])
    seen = [_seen(box, answer) for box, answer in zip(boxes, answers, strict=True)]
    far = _fit(schema, 1000.0, seen, repetitions=1)
    near = _fit(schema, 1000.0, seen, repetitions=600)
    errors = [
        max(abs(_inside(schema, box) @ cells - a) for box, a in zip(boxes, answers, strict=True))
        for cells in (far, near)
    ]
    assert errors[0] > 20
    assert errors[1] < 0.5


def test_marginals_and_ranges_are_fitted_together():
    truth = _truth(SMALL, 5, 500.0)
    box = Range((("c0", 0, 1), ("c1", 1, 2)))
    seen = [
        _seen(("c0", "c2"), _marginal(SMALL, truth, ("c0", "c2"))),
        _seen(box, _inside(SMALL, box) @ truth),
    ]
    found = _fit(SMALL, 500.0, seen, repetitions=400)
    assert _inside(SMALL, box) @ found == pytest.approx(_inside(SMALL, box) @ truth, abs=0.01)
    np.testing.assert_allclose(
        _marginal(SMALL, found, ("c0", "c2")), _marginal(SMALL, truth, ("c0", "c2")), atol=0.01
    )


def test_a_fit_stops_where_more_would_fit_the_noise():
    """With measurements met to 5% of their noise, a thousand passes change nothing more."""
    box, total = Range((("c0", 0, 1),)), 300.0
    uniform = np.full(24, total / 24)
    close = _seen(box, _inside(SMALL, box) @ uniform + 1, sigma=100.0)
    once = _fit(SMALL, total, [close], repetitions=1)
    np.testing.assert_array_equal(_fit(SMALL, total, [close], repetitions=1000), once)


def test_a_group_measured_as_empty_comes_back_when_a_later_measurement_finds_it():
    model = WeightedHistogram(schema=SMALL, total=100.0, capacity=2)
    model.add(_seen(("c0",), [0.0, 50.0, 50.0]))
    model.fit(repetitions=500, rng=simulation_rng(0))
    assert 0 < model.cells.reshape(SHAPE)[0].sum() < 1e-6
    later = np.zeros((3, 4))
    later[0, 0], later[1, 1] = 40.0, 60.0
    model.add(_seen(("c0", "c1"), later))
    model.fit(repetitions=1, rng=simulation_rng(0))
    assert model.cells.reshape(SHAPE)[0, 0].sum() > 0.01


_HARD = st.sampled_from([-1e300, -1e6, -1.0, 0.0, 1e-300, 0.5, 1.0, 7.0, 1e6, 1e15, 1e300])


@given(
    total=st.sampled_from([0.0, 1e-12, 0.5, 1.0, 1000.0, 1e9]),
    data=st.data(),
    repetitions=st.sampled_from([1, 3, 60]),
)
def test_cells_stay_finite_and_keep_the_total_whatever_was_measured(total, data, repetitions):
    seen = []
    for _ in range(data.draw(st.integers(1, 4))):
        if data.draw(st.booleans()):
            seed = data.draw(st.integers(0, 30))
            (box,) = random_ranges(SMALL, n=1, rng=simulation_rng(seed)).ranges
            seen.append(_seen(box, data.draw(_HARD), sigma=data.draw(st.sampled_from([0, 1e9]))))
        else:
            names = data.draw(st.sampled_from([("c0",), ("c1", "c2"), SMALL.names, ()]))
            cells = SMALL.cells(names)
            seen.append(_seen(names, data.draw(st.lists(_HARD, min_size=cells, max_size=cells))))
    found = _fit(SMALL, total, seen, repetitions=repetitions)
    assert np.isfinite(found).all()
    assert (found >= 0).all()
    assert found.sum() == pytest.approx(total, rel=1e-9, abs=1e-300)


def test_many_measurements_that_shrink_nearly_everything_keep_the_total():
    """A hundred ranges that hold nearly all rows and were measured empty, in one pass."""
    schema = _schema(40, 40)
    boxes = [Range((("c0", i % 10, 39), ("c1", i // 10, 39))) for i in range(100)]
    found = _fit(schema, 1.0, [_seen(box, 0.0) for box in boxes], repetitions=50)
    assert np.isfinite(found).all()
    assert found.sum() == pytest.approx(1.0)
    assert found.reshape(40, 40)[9:, 9:].sum() < 0.2
