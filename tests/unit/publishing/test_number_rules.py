"""What is proposed for numbers, on made-up tables: round limits outward, resolution, codes."""

from decimal import Decimal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sfumato.publishing.number_rules import (
    MOST_CELLS,
    grid,
    known_limits,
    limits,
    resolution,
    round_up,
    special_codes,
)

decimals = st.decimals(-(10**6), 10**6, places=2)


def rows(values, times=1):
    return {Decimal(str(value)): times for value in values}


def proposed(counts, *, digits=0, name="c"):
    found = grid(name, counts, min(counts), max(counts), digits=digits)
    numbers = (found.low, found.high, found.resolution, *found.alone)
    return tuple(float(each) for each in numbers)


@given(
    low=st.integers(-(10**6), 10**6),
    high=st.integers(-(10**6), 10**6),
    step=st.sampled_from(["0.01", "0.5", "1", "100"]),
)
def test_limits_enclose_the_values_and_are_whole_multiples_of_the_resolution(low, high, step):
    step = Decimal(step)
    low, high = sorted((low * step, high * step))
    first, last = limits(low, high, resolution=step)
    assert first <= low
    assert high <= last
    assert first < last
    assert first % step == last % step == 0


@given(value=decimals.filter(lambda value: value > 0))
def test_a_round_number_is_1_2_or_5_times_a_power_of_ten(value):
    above = round_up(value)
    assert value <= above < Decimal("2.5") * value
    assert above.normalize().as_tuple().digits in ((1,), (2,), (5,))


@given(low=st.integers(-5_000, 5_000), span=st.integers(1, 5_000))
def test_no_limit_is_an_extreme_of_the_data_unless_it_is_a_round_number(low, span):
    high = low + span
    for limit, extreme in zip(
        limits(Decimal(low), Decimal(high), resolution=Decimal(1)), (low, high), strict=True
    ):
        unit = 10 ** max(len(str(span)) - 1, 0)  # of the size of what the values spread over
        assert limit != extreme or limit % unit == 0 or len(str(abs(limit)).rstrip("0")) <= 1


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (17, 90, (0, 100)),
        (0, 2143, (0, 5000)),
        (80, 80, (0, 100)),
        (-80, -80, (-100, 0)),
        (-8019, 102127, (-10000, 200000)),
        (-40, -3, (-50, 0)),
        (15, 22, (10, 30)),
        (60601, 60699, (60600, 60700)),
        ("40.4998", "40.9131", (40, 41)),
        ("-74.2444", "-73.7130", (-75, -73)),
        ("35.1", "41.2", (30, 50)),
        ("0.0001", "0.7578", (0, 1)),
    ],
)
def test_limits_are_those_that_somebody_would_write_without_the_data(low, high, expected):
    assert limits(Decimal(low), Decimal(high), resolution=Decimal("0.0001")) == expected


@pytest.mark.parametrize(
    ("name", "counts", "expected"),
    [
        ("c", rows(range(17, 91), 9), (0, 100, 1)),
        ("c", rows(range(1, 6), 9), (1, 5, 1)),
        ("c", rows(range(6), 9), (0, 5, 1)),
        ("c", {**rows(range(2, 60), 9), Decimal(1): 1}, (0, 100, 1)),  # one person's 1
        ("c", rows(range(1, 13), 9), (1, 12, 1)),
        ("c", rows(range(1, 32), 9), (1, 31, 1)),
        ("c", {Decimal(n): 7 * 3 ** (8 - n) for n in range(1, 8)}, (1, 10, 1)),  # rooms: a tail
        ("day", rows(range(2, 30), 9), (1, 31, 1)),
        ("hour of day", rows(range(5, 23), 9), (0, 23, 1)),
        ("pay_per_hour", rows(range(8, 23), 9), (0, 50, 1)),
        ("c", rows(range(1987, 2013)), (1980, 2020, 1)),
        ("c", rows([2012]), (2010, 2020, 1)),
        ("c", rows(range(30_000, 90_000, 500)), (0, 100_000, 500)),
        ("c", rows(range(100, 600, 100)), (0, 500, 1)),  # five values say nothing
        ("c", rows([3, 10**10]), (0, 10**10, 100)),
    ],
)
def test_whole_numbers_get_limits_and_a_resolution(name, counts, expected):
    assert proposed(counts, name=name) == expected


@pytest.mark.parametrize(
    ("counts", "digits", "expected"),
    [
        (rows(["0.5", "1", "1.5", "2", "2.5", "3", "3.5", "4", "4.5", "5"]), 1, (0, 5, 0.5)),
        (rows(["0.5", "1.5"]), 1, (0, 2, 0.1)),
        (rows([n / 100 for n in range(3, 900, 7)]), 2, (0, 10, 0.01)),
        (rows([n / 10 for n in range(-19, 447)]), 1, (-2, 50, 0.1)),
        (rows(["0.333333333333", "0.666666666667", "2"]), 12, (0, 2, 0.00001)),
    ],
)
def test_the_resolution_of_decimals_is_what_is_seen(counts, digits, expected):
    assert proposed(counts, digits=digits) == expected


AGES = rows(range(18, 80), 40)
PRICES = rows([n * 13 % 7919 for n in range(400)], 5)


@pytest.mark.parametrize(
    ("counts", "codes", "expected"),
    [
        (AGES, {}, (0, 100, 1)),
        (AGES, {-200: 90}, (-200, 100, 1, -200)),
        (AGES, {999: 90}, (0, 1000, 1, 999)),
        (AGES, {998: 90, 999: 90}, (0, 1000, 1, 998, 999)),
        (AGES, {-99: 90, 999: 90}, (-100, 1000, 1, -99, 999)),
        (AGES, {-1: 90}, (-1, 100, 1, -1)),
        (AGES, {99_999: 40}, (0, 100_000, 1, 99_999)),
        (AGES, {999: 3}, (0, 1000, 1)),  # three rows are somebody's
        (AGES, {-7: 3}, (-10, 100, 1)),
        (PRICES, {99_999: 200}, (0, 100_000, 1, 99_999)),
        (rows(range(52), 20), {52: 150}, (0, 100, 1, 52)),  # a top code
        (rows(range(52), 20), {52: 30}, (0, 100, 1)),
        (rows(range(-30, 31), 40), {-1: 90}, (-50, 50, 1)),
        (rows(range(9), 40), {999: 90}, (0, 1000, 1, 999)),
        (rows(range(9), 40), {-9: 90}, (-10, 10, 1)),  # few values are counted one by one
    ],
)
def test_codes_with_many_rows_apart_from_the_rest_are_proposed_alone(counts, codes, expected):
    counts = counts | {Decimal(code): times for code, times in codes.items()}
    assert proposed(counts) == expected


@given(
    values=st.dictionaries(
        st.decimals(-(10**9), 10**9, places=3), st.integers(1, 500), min_size=1, max_size=60
    )
)
@example(values=rows([n / 1000 for n in range(40)]) | {Decimal("-500000.001"): 5})
def test_what_is_proposed_holds_all_values_and_can_be_declared(values):
    found = grid("c", values, min(values), max(values), digits=3)
    assert found.low <= min(values)
    assert max(values) <= found.high
    assert (found.high - found.low) / found.resolution < MOST_CELLS
    assert all(not (code - found.low) % found.resolution for code in found.alone)
    assert found.can_be_declared
    assert found.rounded or not any(value % found.resolution for value in values)


@given(counts=st.dictionaries(st.integers(-2_000, 2_000).map(Decimal), st.integers(1, 4)))
def test_a_value_of_fewer_than_five_rows_is_never_a_code(counts):
    assert special_codes(counts) == ()


def test_a_resolution_is_not_guessed_from_few_values_or_unseen_ones():
    assert resolution(None, 2) == Decimal("0.01")
    assert resolution(rows(range(0, 140, 20)), 0) == 1
    assert resolution(rows(range(0, 200, 20)), 0) == 10
    assert known_limits("c", None, 1, 12) is None


def test_numbers_of_three_hundred_digits_are_divided_by_steps_of_one():
    """More digits than a quotient of decimals has by default."""
    huge = rows([*range(40), 10**308, -(10**308)])
    found = grid("c", huge, min(huge), max(huge), digits=0)
    assert found.low <= -(10**308)
    assert found.high >= 10**308


@pytest.mark.parametrize(
    ("values", "codes"),
    [
        ((*range(11), -99, -9), (-99,)),  # counted by itself: there are more than 100 values
        ((*range(8), 9999), (9999,)),
        ((*range(11), -9), ()),  # 20 values: each is counted
        ((0, 1000, 50_000), ()),
    ],
)
def test_few_values_far_apart_have_special_codes_too(values, codes):
    assert special_codes(rows(values, 40)) == tuple(map(Decimal, codes))
