"""Tables that agree: exactly, as the nearest ones, and with less error than before."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import InputError
from sfumato.models.answers.consistency import consistent
from sfumato.randomness import simulation_rng

SIZES = {"a": 2, "b": 3, "c": 4, "d": 5}


def normal(rng, shape):
    """Nearly normal draws: twelve uniform ones summed."""
    draws = rng.uniform(12 * int(np.prod(shape))).reshape(12, *shape)
    return draws.sum(axis=0) - 6


def truth(rng):
    """All one- and two-way tables of one random joint distribution."""
    joint = rng.uniform(int(np.prod(list(SIZES.values())))).reshape(*SIZES.values()) ** 3
    joint /= joint.sum()
    axes = {name: i for i, name in enumerate(SIZES)}
    keys = [key for degree in (1, 2) for key in combinations(SIZES, degree)]
    return {
        key: joint.sum(axis=tuple(i for name, i in axes.items() if name not in key)) for key in keys
    }


def noisy(tables, variances, rng):
    return {
        key: table + np.sqrt(variances[key]) * normal(rng, table.shape)
        for key, table in tables.items()
    }


def variances_of(tables):
    return {key: 1e-4 * (1 + i % 3) for i, key in enumerate(tables)}


def disagreement(tables):
    """The largest difference between what two tables say about an attribute."""
    said: dict[str, list[np.ndarray]] = {}
    for key, table in tables.items():
        for axis, name in enumerate(key):
            said.setdefault(name, []).append(table.sum(axis=tuple({*range(len(key))} - {axis})))
    return max(np.ptp(own, axis=0).max() for own in said.values())


def sums_to_one(tables):
    return all(abs(table.sum() - 1) < 1e-12 for table in tables.values())


def squared_error(tables, exact):
    return sum(np.sum((tables[key] - exact[key]) ** 2) for key in exact)


@given(seed=st.integers(0, 10**6))
def test_all_tables_agree_exactly_and_sum_to_one(seed):
    rng = simulation_rng(seed)
    exact = truth(rng)
    given_tables = noisy(exact, variances_of(exact), rng)
    assert disagreement(given_tables) > 1e-3
    found = consistent(given_tables, variances_of(exact))
    assert disagreement(found) < 1e-12
    assert sums_to_one(found)
    assert list(found) == list(given_tables)


def test_tables_that_agree_stay_as_they_are():
    exact = truth(simulation_rng(1))
    for non_negative in (False, True):
        found = consistent(exact, variances_of(exact), non_negative=non_negative)
        for key, table in exact.items():
            np.testing.assert_allclose(found[key], table, rtol=0, atol=1e-14)


def test_the_agreed_tables_are_the_nearest_in_weighted_squares():
    """What was changed is orthogonal to every change that keeps agreement."""
    rng = simulation_rng(2)
    exact = truth(rng)
    variances = variances_of(exact)
    given_tables = noisy(exact, variances, rng)
    found = consistent(given_tables, variances)
    for _ in range(20):
        other = truth(rng)
        inner = [
            np.sum((given_tables[key] - found[key]) * (other[key] - found[key])) / variances[key]
            for key in exact
        ]
        assert abs(sum(inner)) < 1e-9 * sum(map(abs, inner))


def test_a_table_that_is_surer_counts_more_and_summed_cells_count_less():
    """A vector of variance 1 against a matrix of 4 columns with variance 1: weights 4 and 1."""
    tables = {("a",): np.array([0.7, 0.3]), ("a", "c"): np.full((2, 4), 0.125)}
    found = consistent(tables, {("a",): 1.0, ("a", "c"): 1.0})
    assert found[("a",)] == pytest.approx([0.66, 0.34])
    found = consistent(tables, {("a",): 4.0, ("a", "c"): 1.0})
    assert found[("a",)] == pytest.approx([0.6, 0.4])


@pytest.mark.parametrize("non_negative", [False, True])
def test_the_error_of_noisy_tables_falls(non_negative):
    """Over 40 runs, in each of them; by a quarter or more in the mean."""
    rng, before, after = simulation_rng(3), [], []
    for _ in range(40):
        exact = truth(rng)
        variances = variances_of(exact)
        given_tables = noisy(exact, variances, rng)
        found = consistent(given_tables, variances, non_negative=non_negative)
        before.append(squared_error(given_tables, exact))
        after.append(squared_error(found, exact))
    assert np.all(np.array(after) < np.array(before))
    assert np.mean(after) < 0.75 * np.mean(before)


@given(seed=st.integers(0, 10**6), scale=st.sampled_from([1, 10, 1_000]))
def test_not_negative_and_in_agreement_at_once(seed, scale):
    rng = simulation_rng(seed)
    exact = truth(rng)
    variances = {key: scale * v for key, v in variances_of(exact).items()}
    found = consistent(noisy(exact, variances, rng), variances, non_negative=True)
    assert min(table.min() for table in found.values()) >= 0
    assert disagreement(found) < 1e-12
    assert sums_to_one(found)


def test_one_table_alone_only_gets_its_sum():
    found = consistent({("a",): np.array([0.5, 0.1])}, {("a",): 1.0})
    assert found[("a",)] == pytest.approx([0.7, 0.3])
    assert consistent({}, {}) == {}
    assert consistent({}, {}, non_negative=True) == {}


def test_the_given_tables_are_left_alone():
    tables = {("a",): np.array([0.5, 0.1]), ("a", "b"): np.ones((2, 3))}
    consistent(tables, {("a",): 1.0, ("a", "b"): 1.0}, non_negative=True)
    assert tables[("a",)].tolist() == [0.5, 0.1]
    assert (tables[("a", "b")] == 1).all()


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ({("a",): np.ones((2, 2))}, "as many axes"),
        ({("a", "b", "c"): np.ones((2, 2, 2))}, "one or two different names"),
        ({("a", "a"): np.ones((2, 2))}, "one or two different names"),
        ({(): np.array(1.0)}, "one or two different names"),
        ({("a", "b"): np.ones((2, 3)), ("b", "a"): np.ones((3, 2))}, "in both orders"),
        ({("a",): np.ones(2), ("a", "b"): np.ones((3, 2))}, "2 categories in one table and 3"),
        ({("a",): np.array([np.nan, 1])}, "finite cells"),
        ({("a",): np.array([])}, "finite cells"),
    ],
)
def test_tables_that_can_not_agree_are_refused(tables, message):
    with pytest.raises(InputError, match=message):
        consistent(tables, dict.fromkeys(tables, 1.0))


@pytest.mark.parametrize("variance", [None, 0.0, -1.0, np.inf, np.nan])
def test_a_table_needs_a_variance(variance):
    with pytest.raises(InputError, match="finite cell variance above 0"):
        consistent({("a",): np.ones(2)}, {("a",): variance})
