"""Correlations of two-way tables, against SciPy and tables whose answers are known."""

from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from sfumato.errors import InputError
from sfumato.evaluation.correlations import (
    chosen_columns,
    compare_correlations,
    compare_information,
    correlation,
    cramers_v,
    rank_correlation,
)
from sfumato.lab.tables import integer_schema
from sfumato.randomness import simulation_rng
from sfumato.readers.array_table import ArrayTable
from sfumato.schema import Boolean, Category, Integer, Ordinal, Schema


def counted(x, y, shape):
    return np.bincount(x * shape[1] + y, minlength=shape[0] * shape[1]).reshape(shape)


def drawn(seed, *, rows=2_000, shape=(5, 4)):
    rng = simulation_rng(seed)
    x = rng.below(shape[0], rows)
    return x, (x + rng.below(3, rows)) % shape[1]


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_rank_correlation_is_spearmans(seed):
    x, y = drawn(seed)
    by_hand = stats.spearmanr(x, y).statistic
    assert rank_correlation(counted(x, y, (5, 4))) == pytest.approx(by_hand, abs=1e-9)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_without_its_correction_cramers_v_is_scipys(seed):
    """The correction is undone by adding back what it takes off."""
    x, y = drawn(seed)
    table = counted(x, y, (5, 4))
    n, (r, k) = table.sum(), table.shape
    least = min(r - (r - 1) ** 2 / (n - 1), k - (k - 1) ** 2 / (n - 1)) - 1
    phi = cramers_v(table) ** 2 * least + (r - 1) * (k - 1) / (n - 1)
    plain = stats.contingency.association(table, method="cramer")
    assert np.sqrt(phi / (min(r, k) - 1)) == pytest.approx(plain)


def test_independent_columns_of_many_values_do_not_look_tied():
    """200 rows on 30 x 30 cells: the plain V is above .3 by chance; a false alarm below 1 in 10^3.

    The corrected one is the root of a difference around 0 with a deviation of .02 in V^2.
    """
    rng = simulation_rng(4)
    table = counted(rng.below(30, 200), rng.below(30, 200), (30, 30))
    seen = table[table.sum(axis=1) > 0][:, table.sum(axis=0) > 0]
    assert stats.contingency.association(seen, method="cramer") > 0.3
    assert cramers_v(table) < 0.25
    same = np.diag(table.sum(axis=1))
    assert cramers_v(same) == pytest.approx(1)


@pytest.mark.parametrize("judge", [cramers_v, rank_correlation])
@pytest.mark.parametrize(
    "table", [np.zeros((3, 3)), np.ones((1, 4)), [[5, 0], [0, 0]], [[1, 0], [0, 0]]]
)
def test_a_column_of_one_value_is_tied_to_nothing(judge, table):
    assert judge(np.asarray(table)) == 0


def test_order_counts_where_both_columns_have_one():
    schema = Schema(
        columns=(
            Integer(name="age", low=0, high=2),
            Ordinal(name="size", values=("S", "M", "L")),
            Category(name="town", values=("A", "B", "C")),
            Boolean(name="member"),
        )
    )
    falling = np.array([[0, 0, 9], [0, 9, 0], [9, 0, 0]])
    assert correlation(schema, ("age", "size"), falling) == -1
    assert correlation(schema, ("age", "town"), falling) == pytest.approx(1, abs=0.01)
    assert correlation(schema, ("town", "member"), falling[:, :2]) > 0.5


def test_missing_values_have_no_rank():
    schema = Schema(
        columns=(
            Integer(name="age", low=0, high=1, missing=True),
            Ordinal(name="size", values=("S", "L"), other=True, missing=True),
        )
    )
    table = np.array([[9, 0, 5, 0], [0, 9, 0, 0], [0, 7, 0, 3]])
    assert correlation(schema, ("age", "size"), table) == 1


def test_the_error_is_the_mean_over_pairs_and_the_worst_pair_is_named():
    schema = integer_schema((2, 2, 2))
    coin = simulation_rng(5).below(2, 1_000)
    other = simulation_rng(6).below(2, 1_000)
    real = ArrayTable(schema, dict(zip(schema.names, (coin, coin, other), strict=True)))
    published = ArrayTable(schema, dict(zip(schema.names, (coin, 1 - coin, other), strict=True)))
    (found,) = compare_correlations(real, [published], schema.names)
    assert found.worst == (("0", "1"), 2.0)
    aside = abs(found.real[1, 2] - found.published[1, 2])
    assert found.error == pytest.approx((2 + aside) / 3)
    assert found.to_dict()["real"][0][1] == 1
    assert np.array_equal(found.real, found.real.T)


def test_of_very_many_columns_some_are_chosen_at_random_and_in_order():
    schema = integer_schema((2,) * 100)
    chosen = chosen_columns(schema, most=40, rng=simulation_rng(0))
    assert len(set(chosen)) == 40
    assert list(chosen) == sorted(chosen, key=int)
    assert chosen != chosen_columns(schema, most=40, rng=simulation_rng(1))


def test_columns_of_too_many_values_are_left_out_or_refused():
    schema = integer_schema((2, 100_000, 3))
    assert chosen_columns(schema, most=40, rng=simulation_rng(0)) == ("0", "2")
    with pytest.raises(InputError, match="two columns of at most 2,236 values, this schema has 1"):
        chosen_columns(integer_schema((2, 100_000)), most=40, rng=simulation_rng(0))


def table(codes):
    schema = integer_schema((2,) * len(codes))
    return ArrayTable(schema, dict(zip(schema.names, codes, strict=True)))


def information_error(real, published):
    pairs = list(combinations(real.schema.names, 2))
    return compare_information(real, [published], pairs)[0]


def test_lost_dependence_is_measured_in_nats():
    """A copied fair coin has ln 2 in common with its copy; shuffled, nothing but chance."""
    rng = simulation_rng(3)
    coin, other = rng.below(2, 4_000), rng.below(2, 4_000)
    real, shuffled = table([coin, coin]), table([coin, coin[rng.permutation(4_000)]])
    assert information_error(real, real) == 0
    assert information_error(real, shuffled) == pytest.approx(np.log(2), abs=0.01)
    three, broken = table([coin, coin, other]), table([coin, other, coin])
    assert information_error(three, broken) == pytest.approx(2 * np.log(2) / 3, abs=0.01)
