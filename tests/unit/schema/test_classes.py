"""Public classes of numbers: every possible value is in one; the declaration decides them."""

import inspect
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import SchemaError
from sfumato.schema import Boolean, Date, DateTime, Integer, Number
from sfumato.schema.classes import (
    GROWING_FROM,
    PIECES,
    alone_cells,
    first_classes,
    growing_classes,
    round_pieces,
    with_steps,
)
from sfumato.schema.columns import MAX_CELLS

AGE = Integer(name="age", low=0, high=150)
PAID = Integer(name="paid", low=0, high=1_000_000, alone=(999_999,))
BALANCE = Integer(name="balance", low=-20_000, high=50_000)
PRICE = Number(name="price", low=0.0, high=99.99, resolution=0.01, alone=(99.9,))
HEIGHT = Number(name="height", low=140.0, high=210.0, resolution=0.5)
DAY = Date(name="day", low=date(2019, 5, 17), high=date(2022, 2, 3))
MOMENT = DateTime(
    name="at", low=datetime(2021, 3, 4, 5), high=datetime(2023, 1, 1), precision="hour"
)
HUGE = Integer(name="huge", low=-(10**6), high=MAX_CELLS - 10**6 - 1)
ALL = [AGE, PAID, BALANCE, PRICE, HEIGHT, DAY, MOMENT, HUGE]
over_all = pytest.mark.parametrize("column", ALL, ids=lambda column: column.name)


@st.composite
def integers(draw):
    """Whole numbers between limits anywhere, of any resolution, up to the largest grid."""
    step = draw(st.sampled_from([1, 2, 3, 5, 7, 10, 25, 1_000]))
    cells = draw(st.one_of(st.integers(1, 500), st.integers(1, MAX_CELLS)))
    low = draw(st.one_of(st.integers(-2_000, 2_000), st.integers(-(2**40), 2**40)))
    high = low + (cells - 1) * step + draw(st.integers(0, step - 1))
    codes = draw(st.lists(st.integers(0, cells - 1), max_size=3, unique=True))
    alone = tuple(low + code * step for code in codes)
    return Integer(name="x", low=low, high=high, resolution=step, alone=alone)


@st.composite
def numbers(draw):
    """Decimals of up to four digits after the point."""
    digits = draw(st.integers(0, 4))
    step = draw(st.sampled_from([1, 2, 5, 25]))
    cells = draw(st.one_of(st.integers(1, 500), st.integers(1, 10**8)))
    low = draw(st.integers(-(10**6), 10**6)) * step
    codes = draw(st.lists(st.integers(0, cells - 1), max_size=3, unique=True))
    low, high, resolution = (each / 10**digits for each in (low, low + (cells - 1) * step, step))
    plain = Number(name="x", low=low, high=high, resolution=resolution)
    alone = tuple(plain.scale.number(code) for code in codes)
    return Number(name="x", low=low, high=high, resolution=resolution, alone=alone)


@st.composite
def dates(draw):
    low, high = sorted((draw(st.dates()), draw(st.dates())))
    return Date(name="x", low=low, high=high)


@st.composite
def moments(draw):
    precision = draw(st.sampled_from(["millisecond", "second", "minute", "hour"]))
    grain = DateTime(
        name="x", low=datetime(2000, 1, 1), high=datetime(2000, 1, 1), precision=precision
    ).grain
    low = datetime(1, 1, 1) + draw(st.integers(0, 3 * 10**6)) * timedelta(days=1)
    most = min(MAX_CELLS, (datetime.max - low) // grain + 1)
    cells = draw(st.one_of(st.integers(1, min(500, most)), st.integers(1, most)))
    return DateTime(name="x", low=low, high=low + (cells - 1) * grain, precision=precision)


columns = st.one_of(integers(), numbers(), dates(), moments())


@given(columns)
def test_classes_begin_at_the_first_value_and_rise_to_no_more_than_the_last(column):
    classes = first_classes(column)
    assert classes[0] == 0
    assert all(
        one < other for one, other in zip(classes, (*classes[1:], column.cells), strict=True)
    )
    assert all(type(start) is int for start in classes)


@given(columns)
def test_a_column_without_special_codes_has_few_classes(column):
    """A billion values around zero have 27 sizes on each side; others have 20 pieces at most."""
    alone = len(alone_cells(column))
    growing = bool(growing_classes(column)) and column.cells > GROWING_FROM
    assert len(first_classes(column)) <= (2 * 27 + 3 if growing else PIECES) + 2 * alone


@given(columns)
def test_a_special_code_is_alone_in_its_class(column):
    starts = {*first_classes(column), column.cells}
    for cell in alone_cells(column):
        assert {cell, cell + 1} <= starts


@given(integers())
def test_the_cell_of_a_special_code_holds_that_very_number(column):
    cells = alone_cells(column)
    assert [column.low + cell * column.resolution for cell in cells] == sorted(column.alone)


@given(numbers())
def test_the_cell_of_a_special_decimal_holds_that_very_number(column):
    assert [column.scale.number(cell) for cell in alone_cells(column)] == sorted(column.alone)


@given(columns, st.data())
def test_pieces_divide_any_interval_once_into_at_most_twenty(column, data):
    first = data.draw(st.integers(0, column.cells - 1))
    last = data.draw(st.integers(first, column.cells - 1))
    pieces = round_pieces(column, first, last)
    assert pieces[0] == first
    assert pieces[-1] <= last
    assert all(one < other for one, other in pairwise(pieces))
    assert len(pieces) <= PIECES
    if last > first:
        assert len(pieces) > 1


@given(columns, st.data())
def test_pieces_of_pieces_end_at_single_values_after_few_levels(column, data):
    """From a billion values seven levels are enough: each has a twentieth or so of the one before.

    A round unit may leave only five pieces, or two where one boundary lies inside.
    """
    cell = data.draw(st.integers(0, column.cells - 1))
    first, last, levels = 0, column.cells - 1, 0
    while last > first:
        starts = round_pieces(column, first, last)
        ends = (*(start - 1 for start in starts[1:]), last)
        first, last = next(
            (begin, end) for begin, end in zip(starts, ends, strict=True) if begin <= cell <= end
        )
        levels += 1
    assert levels <= 20


def test_growing_classes_are_one_two_five_on_both_sides_of_zero_and_zero_is_alone():
    column = Integer(name="x", low=-1_000, high=2_000)
    values = [column.low + cell for cell in first_classes(column)]
    assert values == [
        -1000, -999, -499, -199, -99, -49, -19, -9, -4, -1,
        0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000,
    ]  # fmt: skip


def test_classes_of_amounts_grow_in_units_of_the_resolution():
    cents = [round(PRICE.scale.number(cell), 2) for cell in first_classes(PRICE)]
    assert cents == [0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 99.9, 99.91]


def test_pieces_away_from_zero_begin_at_round_numbers():
    assert [140 + cell / 2 for cell in first_classes(HEIGHT)] == [*range(140, 211, 5)]
    inside = round_pieces(Integer(name="x", low=3, high=10**6), 1_234, 9_999)
    assert [cell + 3 for cell in inside[1:]] == [*range(1_500, 10_001, 500)]


def test_zero_between_two_multiples_of_the_resolution_has_no_growing_classes():
    odd = Integer(name="x", low=-7, high=3_000, resolution=2)
    assert growing_classes(odd) == ()
    assert growing_classes(DAY) == growing_classes(MOMENT) == growing_classes(HEIGHT) == ()


def test_classes_of_days_begin_with_periods_of_the_calendar():
    days = [DAY.low + timedelta(days=cell) for cell in first_classes(DAY)]
    assert all(day.day == 1 and day.month in (1, 4, 7, 10) for day in days[1:])
    weeks = round_pieces(DAY, 100, 199)
    assert {(DAY.low + timedelta(days=cell)).weekday() for cell in weeks[1:]} == {0}


def test_classes_of_long_times_begin_with_round_years():
    column = Date(name="x", low=date(1, 1, 1), high=date(9999, 12, 31))
    years = [(column.low + timedelta(days=cell)).year for cell in first_classes(column)[1:]]
    assert years == [*range(500, 10_000, 500)]
    century = Date(name="x", low=date(1900, 7, 1), high=date(2000, 1, 1))
    starts = [century.low + timedelta(days=cell) for cell in first_classes(century)[1:]]
    assert starts == [date(year, 1, 1) for year in range(1910, 2001, 10)]


def test_moments_of_a_zone_have_classes_in_utc():
    column = DateTime(
        name="x",
        low=datetime(2021, 1, 1, tzinfo=UTC),
        high=datetime(2021, 1, 1, 23, 59, 59, tzinfo=UTC),
        zone="Europe/Rome",
    )
    assert first_classes(column) == tuple(range(0, 86_400, 7_200))


@over_all
def test_classes_follow_from_the_declaration_and_nothing_else(column):
    """There is nothing to pass a table in by, and a column declared again has the same."""
    assert list(inspect.signature(first_classes).parameters) == ["column"]
    assert list(inspect.signature(round_pieces).parameters) == ["column", "first", "last"]
    assert first_classes(replace(column, name="another")) == first_classes(column)


@over_all
def test_whether_values_may_be_missing_changes_no_class(column):
    assert first_classes(replace(column, missing=True)) == first_classes(column)


def test_a_device_knows_a_number_by_its_classes_and_days_by_themselves():
    price = with_steps(Number(name="price", low=0.0, high=99.99, resolution=0.01))
    assert price.edges == (
        0, .01, .02, .05, .1, .2, .5, 1, 2, 5, 10, 20, 50, 99.99
    )  # fmt: skip
    assert with_steps(DAY) == DAY
    assert with_steps(MOMENT).step == "day"
    assert with_steps(Boolean(name="x")) == Boolean(name="x")
    with pytest.raises(SchemaError, match="no resolution and no special codes"):
        with_steps(PAID)
