"""What models share: rounding to whole rows, projection, distances, rows that are possible."""

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import InputError, InternalError
from sfumato.models.answers.tree import fit_tree
from sfumato.models.dense.model import DenseModel
from sfumato.models.dense.multiplicative_weights import WeightedHistogram
from sfumato.models.graphical.model import GraphicalModel
from sfumato.models.model import (
    MOST_ROUNDS,
    PublishedRows,
    draw_possible,
    estimated_total,
    project,
    repaired,
    round_counts,
    total_variation,
)
from sfumato.randomness import simulation_rng
from sfumato.schema import Boolean, Category, Measurement, Range, Schema
from sfumato.schema.schema import possible, possible_rows

counts = st.lists(st.one_of(st.just(0.0), st.floats(1e-6, 1e6)), min_size=1, max_size=30)


@given(counts.filter(any).map(np.array), st.integers(0, 10_000), st.integers(0, 99))
def test_rounded_counts_sum_to_n_and_lie_within_one_of_their_share(given_counts, n, seed):
    rounded = round_counts(given_counts, n, rng=simulation_rng(seed))
    share = given_counts / given_counts.sum() * n
    assert rounded.sum() == n
    assert (rounded >= np.floor(share - 1e-6)).all()
    assert (rounded <= np.ceil(share + 1e-6)).all()
    assert (rounded[given_counts == 0] == 0).all()


def test_counts_that_are_whole_already_stay():
    whole = np.array([[3.0, 0.0, 1.0], [2.0, 4.0, 0.0]])
    for seed in range(20):
        rounded = round_counts(whole, 10, rng=simulation_rng(seed))
        assert rounded.tolist() == whole.tolist()
        assert rounded.dtype == np.int64


def _chi_of_means(shares, seed):
    """Sum over cells of squared standard scores of the mean of 4,000 roundings of one row."""
    rng = simulation_rng(seed)
    mean = np.mean([round_counts(shares, 1, rng=rng) for _ in range(4000)], axis=0)
    truth = np.array([0.05, 0.15, 0.3, 0.5])
    return float(((mean - truth) ** 2 / (truth / 4000)).sum())


def test_rounding_is_right_on_average_and_the_test_sees_a_wrong_share():
    """A chi-square with 3 degrees of freedom exceeds 30 with probability 1.4e-6."""
    assert _chi_of_means(np.array([0.05, 0.15, 0.3, 0.5]) * 70, seed=3) < 30
    assert _chi_of_means(np.array([0.07, 0.15, 0.3, 0.48]) * 70, seed=3) > 30


def test_counts_that_say_nothing_become_equal_shares():
    assert round_counts(np.zeros(4), 8, rng=simulation_rng(0)).tolist() == [2, 2, 2, 2]
    assert round_counts(np.zeros((2, 3)), 0, rng=simulation_rng(0)).tolist() == [[0] * 3] * 2


def test_an_empty_cell_at_the_end_gets_no_row_by_rounding_errors():
    for seed in range(200):
        thirds = np.array([0.1, 0.2, 0.3, 0.7, 0.0])
        assert round_counts(thirds, 10**15 + 7, rng=simulation_rng(seed))[-1] == 0


def test_the_smallest_counts_can_be_rounded_too():
    assert round_counts(np.array([5e-324, 5e-324]), 10, rng=simulation_rng(0)).tolist() == [5, 5]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -1.0])
def test_counts_that_can_not_be_fail_closed(bad):
    with pytest.raises(InternalError, match="finite and not negative"):
        round_counts(np.array([3.0, bad, 1.0]), 5, rng=simulation_rng(0))


tables = st.lists(st.integers(0, 10**6), min_size=3, max_size=3).filter(any).map(np.array)


def test_total_variation_is_half_the_difference_of_shares():
    real, published = np.array([[1, 3], [0, 4]]), np.array([[2.0, 2.0], [2.0, 2.0]])
    assert total_variation(real, published) == (1 / 8 + 1 / 8 + 1 / 4 + 1 / 4) / 2


@given(tables, tables)
def test_total_variation_is_symmetric_and_between_zero_and_one(a, b):
    distance = total_variation(a, b)
    assert distance == pytest.approx(total_variation(b, a), abs=1e-12)
    assert -1e-12 <= distance <= 1 + 1e-12
    assert distance == pytest.approx(
        max(
            (a / a.sum())[list(event)].sum() - (b / b.sum())[list(event)].sum()
            for event in ([], [0], [1], [2], [0, 1], [0, 2], [1, 2])
        ),
        abs=1e-9,
    )


@given(tables, tables, tables)
def test_total_variation_obeys_the_triangle_inequality(a, b, c):
    assert total_variation(a, c) <= total_variation(a, b) + total_variation(b, c) + 1e-12


@given(tables, st.integers(1, 50))
def test_tables_of_equal_shares_have_no_distance(a, times):
    assert total_variation(a, a * times) == pytest.approx(0, abs=1e-12)


def test_disjoint_tables_are_as_far_as_can_be():
    assert total_variation(np.array([5, 0]), np.array([0.0, 2.0])) == 1


@pytest.mark.parametrize(("real", "published"), [([0, 0], [1, 1]), ([1, 1], [0, 0])])
def test_a_table_without_rows_has_no_shares(real, published):
    with pytest.raises(InputError, match="a sum above zero"):
        total_variation(np.array(real), np.array(published))


noisy_counts = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=12).map(np.array)
totals = st.floats(0, 1e6)


@given(noisy_counts, totals)
def test_a_projection_is_not_negative_and_has_the_total(noisy, total):
    found = project(noisy, total)
    assert found.min() >= 0
    assert found.sum() == pytest.approx(total, rel=1e-9, abs=1e-9)


@given(noisy_counts, totals)
def test_a_projection_subtracts_one_number_from_all_that_stays_above_zero(noisy, total):
    """The conditions of Karush, Kuhn and Tucker: they hold for the nearest point alone."""
    found = project(noisy, total)
    slack = 1e-6 * (1 + np.abs(noisy).max() + total)
    shifts = noisy[found > slack] - found[found > slack]
    if shifts.size:
        assert np.ptp(shifts) <= slack
        assert (noisy[found == 0] - shifts.mean() <= slack).all()


@given(
    st.lists(st.integers(-4, 4), min_size=2, max_size=4).map(lambda x: np.array(x, float)),
    st.integers(0, 4),
)
def test_no_point_of_a_grid_is_nearer_than_the_projection(noisy, total):
    best = np.sum((project(noisy, total) - noisy) ** 2)
    for grid in product(np.arange(0, total + 0.25, 0.5), repeat=noisy.size):
        if sum(grid) == total:
            assert np.sum((np.array(grid) - noisy) ** 2) >= best - 1e-9


@given(noisy_counts, totals)
def test_projecting_again_changes_nothing(noisy, total):
    once = project(noisy, total)
    assert project(once, total) == pytest.approx(once, rel=1e-9, abs=1e-9 * (1 + total))


def test_the_shape_is_kept():
    assert project(np.array([[1.0, -1.0], [3.0, 1.0]]), 3.0).shape == (2, 2)


def test_a_total_of_zero_leaves_nothing():
    assert project(np.array([3.0, 1.0, -2.0]), 0.0).tolist() == [0, 0, 0]


@pytest.mark.parametrize("size", [1e17, 1e300])
def test_noise_that_is_huge_against_the_total_does_not_change_the_total(size):
    assert project(np.array([size, 1.0, 2.0]), 1.0).tolist() == [1, 0, 0]
    assert project(np.array([-size, -size, -size]), 3.0).tolist() == [1, 1, 1]


@pytest.mark.parametrize(
    ("noisy", "total"),
    [([np.nan, 1], 1), ([np.inf, 1], 1), ([1, 1], -1), ([1, 1], np.nan), ([1, 1], np.inf)],
)
def test_numerical_trouble_fails_closed(noisy, total):
    with pytest.raises(InternalError):
        project(np.array(noisy, dtype=float), total)


def test_the_estimated_total_is_the_sum_or_zero():
    assert estimated_total(np.array([[1.5, -3.0], [4.0, 0.0]])) == 2.5
    assert estimated_total(np.array([1.0, -3.0])) == 0.0


SCHEMA = Schema(
    columns=(
        Category(name="sex", values=("f", "m")),
        Boolean(name="pregnant"),
        Category(name="town", values=("a", "b", "c")),
    )
).excluding([{"sex": ["m"], "pregnant": [True]}])


def couples(pregnant: float, men: float = 0.5) -> GraphicalModel:
    shares = {
        "sex": np.array([1 - men, men]),
        "pregnant": np.array([1 - pregnant, pregnant]),
        "town": np.array([0.2, 0.3, 0.5]),
    }
    return fit_tree(SCHEMA, total=1000.0, shares=shares, pairs={})


def counted(rows: Any) -> np.ndarray[Any, Any]:
    return PublishedRows(schema=SCHEMA, codes=rows).marginal(("sex", "pregnant"))


def test_rows_drawn_again_follow_the_model_given_that_they_are_possible() -> None:
    """P(f, pregnant | possible) = .25 / .75; five standard errors: false alarms below 1e-6."""
    n = 30_000
    found = counted(draw_possible(couples(0.5), n, rng=simulation_rng(1)))
    assert found[1, 1] == 0
    assert np.abs(found / n - [[1 / 3, 1 / 3], [1 / 3, 0]]).max() < 5 * np.sqrt(2 / 9 / n)
    naive = counted(couples(0.5).draw(n, rng=simulation_rng(1)))
    assert np.abs(naive / n - [[1 / 3, 1 / 3], [1 / 3, 0]]).max() > 5 * np.sqrt(2 / 9 / n)


def test_columns_that_no_declaration_names_keep_their_shares() -> None:
    rows = draw_possible(couples(0.9), 10_000, rng=simulation_rng(2))
    towns = np.bincount(rows["town"], minlength=3)
    assert np.abs(towns - [2_000, 3_000, 5_000]).max() < 6 * np.sqrt(2_500)


@pytest.mark.parametrize("men", [0.999, 1.0])
def test_a_model_that_is_hardly_ever_possible_still_gives_possible_rows(men: float) -> None:
    """With only pregnant men in it, drawing again would never end."""
    rows = draw_possible(couples(1.0, men), 500, rng=simulation_rng(3))
    assert counted(rows)[1, 1] == 0
    assert counted(rows).sum() == 500


def test_a_histogram_of_nothing_is_drawn_from_possible_cells_only() -> None:
    empty = DenseModel(schema=SCHEMA, counts=np.zeros((2, 2, 3)))
    assert possible_rows(SCHEMA, draw_possible(empty, 300, rng=simulation_rng(4))).all()


def test_published_rows_borrow_from_possible_ones_and_keep_the_rest() -> None:
    rng = simulation_rng(5)
    rows = {"sex": rng.below(2, 900), "pregnant": rng.below(2, 900), "town": rng.below(3, 900)}
    good = possible_rows(SCHEMA, rows)
    fixed = repaired(SCHEMA, rows, rng=rng)
    assert 0 < good.sum() < 900
    assert possible_rows(SCHEMA, fixed).all()
    assert np.array_equal(fixed["town"], rows["town"])
    for name in rows:
        assert np.array_equal(fixed[name][good], rows[name][good])
    assert len(set(zip(fixed["sex"][~good], fixed["pregnant"][~good], strict=True))) == 3


def test_rows_that_are_all_impossible_take_values_from_the_declaration() -> None:
    rows = {name: np.ones(4, dtype=np.int64) for name in SCHEMA.names}
    fixed = repaired(SCHEMA, rows, rng=simulation_rng(6))
    assert possible_rows(SCHEMA, fixed).all()
    assert fixed["town"].tolist() == [1, 1, 1, 1]
    assert rows["pregnant"].tolist() == [1, 1, 1, 1]  # what was given stays


def test_without_a_declaration_nothing_is_drawn_twice() -> None:
    plain = Schema(columns=SCHEMA.columns)
    model = GraphicalModel.from_arrays(plain, couples(0.5).arrays())
    one = draw_possible(model, 50, rng=simulation_rng(7))
    two = model.draw(50, rng=simulation_rng(7))
    assert all(np.array_equal(one[name], two[name]) for name in plain.names)


def test_the_stated_part_of_impossible_rows_is_left_after_all_rounds() -> None:
    left = 0.9**MOST_ROUNDS
    assert left == pytest.approx(1 / 850, rel=0.01)


def test_a_weighted_histogram_starts_and_stays_without_impossible_cells() -> None:
    held = possible(SCHEMA, SCHEMA.names)
    fit = WeightedHistogram(schema=SCHEMA, total=900.0, capacity=2)
    start = fit.cells.reshape(held.shape)
    assert (start[~held] == 0).all()
    assert start[held] == pytest.approx(100)
    noisy = np.array([[500.0, 100.0], [290.0, 60.0]])  # 60 of noise where nobody can be
    fit.add(Measurement(target=("sex", "pregnant"), values=noisy, sigma_counts=1.0))
    whole = Range((("sex", 1, 1), ("pregnant", 1, 1)))
    fit.add(Measurement(target=whole, values=np.array(50.0), sigma_counts=100.0))
    fit.fit(repetitions=50, rng=simulation_rng(8))
    fitted = fit.cells.reshape(held.shape)
    assert (fitted[~held] == 0).all()
    wanted = np.array([[500.0, 100.0], [290.0, 0.0]]) + np.array([[1, 1], [1, 0]]) * 10 / 3
    assert fitted.sum(axis=2) == pytest.approx(wanted, abs=0.1)
