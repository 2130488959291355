"""Shapes: every text falls into one public class, whatever stands beside it."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.schema.text_shapes import (
    COMMA,
    EITHER,
    LARGEST,
    MOST_DECIMALS,
    NUMBER_MARKS,
    SENTINELS,
    SHAPES,
    Shape,
    shape_codes,
)


def shape(text: str | None) -> Shape:
    return SHAPES[shape_codes(pa.array([text], pa.string()))[0]]


@pytest.mark.parametrize(
    ("text", "low", "high", "decimals"),
    [
        ("0", 0, 0, 0),
        ("-0", 0, 0, 0),
        ("1", 1, 2, 0),
        ("12", 12, 13, 0),
        ("19", 17, 20, 0),
        ("20", 20, 24, 0),
        ("41.0", 32, 50, 0),
        ("-1.0", -2, -1, 0),
        ("-19", -20, -10, 0),
        ("-3", -5, -2, 0),
        ("0.5", 0.5, 1, 1),
        ("12.50", 12, 13, 2),
        ("-.125", -0.2, -0.1, 3),
        ("0.00001", 0, 0.001, MOST_DECIMALS + 1),
        ("2e3", 2000, 2050, MOST_DECIMALS + 1),
        ("999999999999999", 5e14, 1e15, 0),
    ],
)
def test_a_number_is_told_by_size_and_digits(text, low, high, decimals):
    found = shape(text)
    assert (found.kind, found.low, found.high, found.decimals) == ("number", low, high, decimals)


@pytest.mark.parametrize(
    ("text", "low", "decimals"),
    [("2,6", 2, 1), ("-0,7578", -1, MOST_DECIMALS + 1), ("360,0", 200, 0), (",5", 0.5, 1)],
)
def test_a_number_may_have_a_decimal_comma(text, low, decimals):
    found = shape(text)
    assert (found.kind, found.low, found.decimals, found.written) == (
        "number",
        low,
        decimals,
        COMMA,
    )


@pytest.mark.parametrize(
    "text", ["007", "-01", "1e400", "9" * 40, "1,2,3", "007,5", "١", "0x1F", "+1"]
)
def test_what_only_resembles_a_number_is_text(text):
    assert shape(text).kind == "text"


@pytest.mark.parametrize(
    ("text", "written", "decade"),
    [
        ("2024-01-31", "%Y-%m-%d", 2024),
        ("31.12.1999", "%d.%m.%Y", 1990),
        ("1.2.1877", "%d.%m.%Y", 1900),
        ("13/04/2020", "%d/%m/%Y", 2020),
        ("04/13/2020", "%m/%d/%Y", 2020),
        ("03/04/2020", EITHER, 2020),
        ("2150/01/02", "%Y/%m/%d", 2090),
        ("31-12-1999", "%d-%m-%Y", 1990),
    ],
)
def test_a_day_is_told_by_format_and_year(text, written, decade):
    found = shape(text)
    assert (found.kind, found.written, found.low) == ("day", written, decade)


@pytest.mark.parametrize(
    ("text", "offset"),
    [
        ("2024-01-31T10:00:00", None),
        ("2024-01-31 10:00", None),
        ("2024-01-31T10:00:00Z", "offset"),
        ("2024-01-31 10:00:00.000+01:00", "offset"),
    ],
)
def test_a_moment_is_told_by_its_offset(text, offset):
    found = shape(text)
    assert (found.kind, found.written, found.low) == ("moment", offset, 2024)


def test_marks_sentinels_and_texts_are_told_apart():
    assert {shape(word).kind for word in ("Yes", "FALSE", "t", "F", "M")} == {"text"}
    assert {shape(mark).kind for mark in NUMBER_MARKS} == {"mark"}
    assert [shape(text).written for text in SENTINELS] == list(SENTINELS)
    assert [shape(text).kind for text in (None, "", "Rome", "x" * 61)] == [
        "missing", "missing", "text", "long",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "text", ["1.234,50", "1,234.5", "1 234", "1\u202f234,5", "1'234.5", "1.234.567", "-12.345,00"]
)
def test_numbers_with_separators_of_thousands_are_a_class(text):
    assert shape(text).kind == "grouped"


@pytest.mark.parametrize("text", ["030 123", "1.23.45", "1234 567", "12,34,567"])
def test_what_has_no_groups_of_three_is_text(text):
    assert shape(text).kind == "text"


def test_every_class_stands_once_and_numbers_cover_the_line():
    assert len(set(SHAPES)) == len(SHAPES)
    numbers = [each for each in SHAPES if each.kind == "number"]
    whole = [each for each in numbers if not each.decimals and not each.written]
    ends = sorted({each.low for each in whole} | {each.high for each in whole})
    assert (ends[0], ends[-1]) == (-LARGEST, LARGEST)
    assert len(whole) == len(ends)  # one between any two ends, and zero


texts = st.one_of(
    st.none(),
    st.text(max_size=70),
    st.integers(-(10**16), 10**16).map(str),
    st.floats(allow_nan=False).map(str),
    st.dates().map(str),
    st.datetimes().map(str),
)


@given(st.lists(texts, max_size=20))
def test_the_class_of_a_text_does_not_depend_on_the_texts_beside_it(some):
    some = [text if text is None else text.encode("utf-8", "ignore").decode() for text in some]
    together = shape_codes(pa.array(some, pa.string()))
    alone = [int(shape_codes(pa.array([text], pa.string()))[0]) for text in some]
    assert together.tolist() == alone
    assert np.all((together >= 0) & (together < len(SHAPES)))


@given(st.integers(-(10**14), 10**14))
def test_a_whole_number_lies_inside_its_class(number):
    found = shape(str(number))
    if found.kind == "sentinel":
        return
    inside = found.low <= number < found.high if number > 0 else found.low < number <= found.high
    assert inside or number == found.low == found.high == 0
