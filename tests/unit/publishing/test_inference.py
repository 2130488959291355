"""From noisy counts to columns: rules that need no data to be tested."""

from datetime import date, datetime

import numpy as np
import pyarrow as pa
import pytest

from sfumato.publishing.column_rules import LeftOut
from sfumato.publishing.inference import (
    SURE,
    NoisyColumn,
    category,
    declared,
    finer_bins,
    finer_limits,
    from_shapes,
)
from sfumato.schema.columns import Boolean, Category, Date, DateTime, Integer, Number
from sfumato.schema.measurement import Measurement
from sfumato.schema.text_shapes import SHAPES, shape_codes

SIGMA = 10.0


def counts(rows, sigma=SIGMA):
    """The exact counts of texts as if the noise had been 0."""
    values = np.zeros(len(SHAPES))
    for text, number in rows.items():
        values[shape_codes(pa.array([text], pa.string()))[0]] += number
    return Measurement(target=("a",), values=values, sigma_counts=sigma)


def noisy(rows, sigma=SIGMA) -> NoisyColumn:
    found = from_shapes("a", counts(rows, sigma))
    assert isinstance(found, NoisyColumn)
    return found


@pytest.mark.parametrize(
    ("rows", "column"),
    [
        (
            {"25": 500, "60": 300, "15": 100},
            Integer(name="a", low=10, high=99, step=1, missing=True),
        ),
        ({"0": 500, "1": 400}, Integer(name="a", low=0, high=1, step=1, missing=True)),
        ({"0": 900}, Integer(name="a", low=0, high=1, step=1, missing=True)),
        (
            {"1500": 300, "30000": 300},
            Integer(name="a", low=0, high=49_999, step=5_000, missing=True),
        ),
        (
            {"0": 900, "3000": 60, "7000": 60},
            Number(name="a", edges=(0, 1, 2000, 5000, 10_000), decimals=0, missing=True),
        ),
        (
            {"36.5": 400, "38.2": 400, "37": 100},
            Number(name="a", edges=tuple(range(20, 52, 2)), decimals=1, missing=True),
        ),
        (
            {"25": 500, "-999": 100},
            Integer(name="a", low=20, high=49, step=1, missing=True, missing_texts=("-999",)),
        ),
        (
            {"no": 300, "yes": 300, "?": 40},
            Boolean(name="a", texts=("no", "yes"), missing=True),
        ),
        ({"true": 300, "FALSE": 300}, Boolean(name="a", missing=True)),
        (
            {"1985-03-01": 200, "2003-03-01": 200},
            Date(
                name="a", low=date(1980, 1, 1), high=date(2009, 12, 31), step="year", missing=True
            ),
        ),
        (
            {"13/04/2020": 200, "03/04/2020": 900},
            Date(
                name="a", low=date(2020, 1, 1), high=date(2029, 12, 31), step="quarter",
                format="%d/%m/%Y", missing=True,
            ),
        ),
        (
            {"2020-01-01 10:00": 200},
            DateTime(
                name="a", low=datetime(2020, 1, 1), high=datetime(2029, 12, 31, 23, 59, 59),
                step="quarter", missing=True,
            ),
        ),
    ],
)  # fmt: skip
def test_shapes_become_columns(rows, column):
    assert declared(noisy(rows)) == column


def test_instants_are_those_of_utc():
    column = declared(noisy({"2020-01-01T10:00Z": 200}))
    assert isinstance(column, DateTime)
    assert column.zone == "UTC"


def test_negative_numbers_lie_between_their_limits():
    column = declared(noisy({"-30": 500, "3": 400}))
    assert column.low == -50  # from -49 outward to a whole step
    assert column.high in range(4, 10)


def test_classes_below_the_noise_are_not_noisy():
    found = noisy({"25": 500, "10000000": SURE * SIGMA * 0.99})
    assert (found.low, found.high) == (20, 49)
    found = noisy({"25": 500, "10000000": SURE * SIGMA * 1.01})
    assert found.high == 19_999_999


def test_neighbors_that_are_sure_together_count_too():
    """Two classes of 3 standard deviations each, beside one that was seen; alone none is."""
    alone, together = {"25": 500, "60": 30}, {"25": 500, "60": 30, "150": 30}
    assert noisy(alone).high == 49
    assert noisy(together).high == 199
    assert noisy({"25": 500, "100000": 45}).high == 49  # too far away to be looked at together


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        ({}, "too few rows to be seen"),
        ({None: 900, "?": 100}, "too few rows to be seen"),
        ({"25": 3 * SIGMA}, "too few rows to be seen"),
        ({"x" * 80: 500, "Rome": 100}, "free text"),
    ],
)
def test_what_can_not_be_told_is_left_out(rows, why):
    found = from_shapes("a", counts(rows))
    assert isinstance(found, LeftOut)
    assert why in found.why


def test_a_mixture_is_a_column_of_texts():
    assert noisy({"25": 500, "Rome": 500}).kind == "text"
    assert noisy({"25": 950, "Rome": 60}).kind == "number"
    assert noisy({"007": 500}).kind == "text"


def test_a_second_look_is_taken_at_narrow_limits_only_unless_nothing_else_needs_it():
    years, ages = noisy({"1999": 500, "2020": 500}), noisy({"25": 500, "60": 300, "7": 100})
    assert years.narrow
    assert years.needs_finer_limits(texts=True)
    assert not ages.needs_finer_limits(texts=True)
    assert ages.needs_finer_limits(texts=False)
    assert not noisy({"0": 500, "1": 500}).needs_finer_limits(texts=False)
    assert not noisy({"Rome": 500}).needs_finer_limits(texts=False)


def looked_again(found: NoisyColumn, places, rows=400.0, sigma=SIGMA):
    asked = finer_bins(found, sigma=sigma)
    values = np.zeros(asked.size)
    values[list(places)] = rows
    return finer_limits(found, asked, Measurement(target=("a",), values=values, sigma_counts=sigma))


def test_limits_are_drawn_closer_by_a_second_look():
    years = noisy({"1999": 500, "2020": 500})
    asked = finer_bins(years, sigma=SIGMA)
    assert isinstance(asked, Integer)
    assert (asked.low, asked.high, asked.step) == (1000, 4999, 500)
    closer = looked_again(years, [1, 2], rows=500)
    assert (closer.low, closer.high) == (1500, 2499)
    real = noisy({"36.5": 400, "38.2": 400})
    closer = looked_again(real, [3, 4])
    edges = finer_bins(real, sigma=SIGMA).edges
    assert (closer.low, closer.high) == (edges[3], edges[5])
    days = noisy({"1999-03-01": 500})
    closer = looked_again(days, [4, 5], rows=250)
    column = declared(closer)
    assert (column.low, column.high) == (date(1994, 1, 1), date(1995, 12, 31))
    assert column.step == "month"


def test_a_second_look_that_is_too_noisy_changes_nothing():
    years = noisy({"1999": 500, "2020": 500})
    assert looked_again(years, [2], rows=600) == years
    assert looked_again(years, []) == years


def test_fewer_bins_are_asked_for_where_the_noise_is_large():
    real = noisy({"36.5": 400, "38.2": 400})
    fine, coarse = finer_bins(real, sigma=1.0), finer_bins(real, sigma=50.0)
    assert fine.size > 2 * coarse.size
    assert coarse.size >= 4


def test_texts_that_are_shared_become_a_category():
    found = noisy({"Rome": 1000})
    column = category(found, {"Rome": 400, "Oslo": 300, "?": 50, "(other)": 60})
    assert column == Category(
        name="a", values=("Oslo", "Rome"), other=True, missing=True, missing_texts=("?",)
    )


def test_only_the_most_frequent_texts_are_declared():
    shown = {f"t{n:03}": 100 + n for n in range(80)}
    column = category(noisy({"Rome": 1000}), shown)
    assert isinstance(column, Category)
    assert column.values == tuple(f"t{n:03}" for n in range(30, 80))


@pytest.mark.parametrize("shown", [{}, {"Rome": 100}, {"?": 900}])
def test_a_column_whose_texts_hardly_anyone_shares_is_left_out(shown):
    found = category(noisy({"Rome": 1000}), shown)
    assert isinstance(found, LeftOut)
    assert "no text is shared by enough people" in found.why
