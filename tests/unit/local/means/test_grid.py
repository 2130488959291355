"""The public grid: unbiased, exact rounding that refuses what it can't round."""

from fractions import Fraction
from math import floor, inf, nan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from sfumato.errors import InputError
from sfumato.local.means.grid import Grid, discretize
from sfumato.randomness import simulation_rng

FALSE_ALARM = 1e-6


class Scripted:
    """Stands for a generator whose words are known beforehand."""

    def __init__(self, *words: int) -> None:
        self.left = list(words)

    def words(self, n: int) -> np.ndarray:
        taken, self.left = self.left[:n], self.left[n:]
        return np.array(taken, dtype=np.uint64)

    def fill(self, out: np.ndarray) -> None:
        out[:] = self.words(out.size)


def exact_position(grid: Grid, value: float) -> Fraction:
    low, high = Fraction(grid.low), Fraction(grid.high)
    return (Fraction(value) - low) / (high - low) * (grid.points - 1)


def test_points_are_never_moved():
    for points in (2, 3, 5, 1025):
        grid = Grid(low=-8, high=8, points=points)
        codes = grid.round(grid.values, rng=simulation_rng(1))
        assert codes.tolist() == list(range(points))


def test_the_ends_keep_their_codes_for_every_word():
    grid = Grid(low=-0.3, high=0.7)
    for word in (0, 1, 2**63, 2**64 - 1):
        for value, code in ((-0.3, 0), (0.7, 1023)):
            assert grid.round_one(value, rng=Scripted(word)) == code
            assert grid.round([value], rng=Scripted(word)).tolist() == [code]


def test_a_value_goes_to_its_two_neighbors_in_the_right_shares():
    # Two-sided binomial limits: false alarms once in a million runs of each.
    grid, n = Grid(low=0, high=10, points=11), 100_000
    codes = grid.round(np.full(n, 3.3), rng=simulation_rng(2))
    ups = int((codes == 4).sum())
    assert set(codes.tolist()) == {3, 4}
    assert binom.ppf(FALSE_ALARM, n, 0.3) <= ups <= binom.isf(FALSE_ALARM, n, 0.3)
    assert not binom.ppf(FALSE_ALARM, n, 0.36) <= ups <= binom.isf(FALSE_ALARM, n, 0.36)


@given(
    points=st.integers(2, 2**16),
    low=st.floats(-1e6, 1e6),
    width=st.floats(1e-3, 1e9),
    part=st.floats(0, 1),
    word=st.integers(0, 2**64 - 1),
)
def test_one_and_many_are_the_exact_floor_of_position_and_word(points, low, width, part, word):
    grid = Grid(low=low, high=low + width, points=points)
    value = min(max(low + part * width, grid.low), grid.high)
    # No more words are wanted unless 2^64 equal parts are too coarse: then the next one is 0.
    expected = floor(exact_position(grid, value) + Fraction(word, 2**64))
    assert grid.round_one(value, rng=Scripted(word, 0)) == expected
    assert grid.round([value], rng=Scripted(word, 0)).tolist() == [expected]


def test_more_words_are_drawn_where_one_does_not_decide():
    grid = Grid(low=0, high=3, points=2)  # a third is no whole number of 2^-64
    value, edge = 1.0, 2**64 - 2**64 // 3 - 1  # the word in which 1 - x = 2/3 lies
    for more, code in ((0, 0), (2**64 - 1, 1)):
        rng = Scripted(edge, more)
        assert grid.round_one(value, rng=rng) == code
        assert rng.left == []
        assert grid.round([value], rng=Scripted(edge, more)).tolist() == [code]


def test_one_by_one_and_in_bulk_the_same_words_give_the_same_codes():
    grid, values = Grid(low=-1, high=1), simulation_rng(3).uniform(500) * 2 - 1
    first, second = simulation_rng(4), simulation_rng(4)
    singles = [grid.round_one(float(value), rng=second) for value in values]
    assert grid.round(values, rng=first).tolist() == singles


def test_discretizing_is_a_grid_of_two_ends():
    rng = simulation_rng(5)
    codes = discretize(np.full(50_000, 0.5), low=-1, high=1, rng=rng)
    assert binom.ppf(FALSE_ALARM, 50_000, 0.75) <= codes.sum()
    assert codes.sum() <= binom.isf(FALSE_ALARM, 50_000, 0.75)
    assert discretize([-1.0, 1.0], low=-1, high=1, rng=rng).tolist() == [0, 1]


@pytest.mark.parametrize("bad", [nan, inf, -inf, 1.0000000000000002, -0.1])
def test_values_off_the_grid_are_refused_without_being_repeated(bad):
    grid = Grid(low=0, high=1)
    with pytest.raises(InputError, match="value 1 is not") as refusal:
        grid.round([0.5, bad], rng=simulation_rng(0))
    assert repr(bad) not in str(refusal.value)
    with pytest.raises(InputError, match="from 0 to 1"):
        grid.round_one(bad, rng=simulation_rng(0))


@pytest.mark.parametrize("bad", [["a"], [[0.5]], 0.5, [None], [True]])
def test_what_is_no_list_of_numbers_is_refused(bad):
    with pytest.raises(InputError, match="list of numbers"):
        Grid(low=0, high=1).round(bad, rng=simulation_rng(0))


def test_rounding_leaves_the_callers_values_alone():
    values = np.array([0.25, 0.5])
    values.flags.writeable = False
    Grid(low=0, high=1).round(values, rng=simulation_rng(0))
    assert values.tolist() == [0.25, 0.5]


def test_no_values_give_no_codes():
    assert Grid(low=0, high=1).round([], rng=simulation_rng(0)).size == 0


@pytest.mark.parametrize(
    ("low", "high", "points"),
    [
        (1, 1, 8),
        (2, 1, 8),
        (nan, 1, 8),
        (0, inf, 8),
        (-1.7e308, 1.7e308, 8),
        (0, 1, 1),
        (0, "1", 8),
    ],
)
def test_a_grid_that_is_none_is_refused(low, high, points):
    with pytest.raises(InputError):
        Grid(low=low, high=high, points=points)


def test_means_come_back_to_the_scale_of_the_values():
    grid = Grid(low=10, high=20)
    assert (grid.from_unit(-1), grid.from_unit(0), grid.from_unit(1)) == (10, 15, 20)
    assert grid.unit == 5
