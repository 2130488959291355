"""Numbers as people write them are read by the declared marks, on every path and row by row."""

import json

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import InputError, SchemaError, TableError
from sfumato.randomness import simulation_rng
from sfumato.readers.open_table import open_table
from sfumato.release.formats import as_written
from sfumato.schema import Integer, Number, Schema
from sfumato.schema.codes import decode, encode, fit
from sfumato.schema.number_texts import DECIMALS, THOUSANDS
from sfumato.schema.values import code_of, number_of
from sfumato.schema.workload import Range, ranges

MARKS = [(d, t) for d in DECIMALS for t in THOUSANDS if d != t]
EDGES = (-2_000.0, -1.5, 0.0, 0.25, 1.5, 234.0, 1_000.0, 1_234.5, 1_000_000.0)

marks = st.sampled_from(MARKS)
plain_numbers = st.decimals(-3_000_000, 3_000_000, places=2)
messy = st.text(st.sampled_from("0123456789.,' -+e\u00a0\u202f\u2019\u0661"), max_size=12)


def number(decimal, thousands, **more):
    return Number(name="c", edges=EDGES, decimal=decimal, thousands=thousands, **more)


def whole(decimal, thousands, **more):
    return Integer(name="c", low=-2_000, high=10_000, decimal=decimal, thousands=thousands, **more)


def written(value, decimal, thousands):
    return f"{value:,.2f}".replace(",", "t").replace(".", decimal).replace("t", thousands)


@given(value=plain_numbers, marks=marks, grouped=st.booleans())
def test_a_number_is_read_as_it_is_declared_to_be_written(value, marks, grouped):
    decimal, thousands = marks
    column = number(decimal, thousands)
    text = written(value, decimal, thousands if grouped else "")
    expected = code_of(number(".", ""), float(value))
    assert code_of(column, text) == expected
    assert encode(column, pa.array([text])).tolist() == [expected]
    assert number_of(column, text) == pytest.approx(min(max(float(value), EDGES[0]), EDGES[-1]))


@pytest.mark.parametrize(
    ("decimal", "thousands", "text", "value"),
    [
        (",", "", "2,6", 2.6),
        (",", "", " -200 ", -200),
        (",", "", ",5", 0.5),
        (",", "", "1,5e2", 150),
        (",", "", "2.6", None),  # a point is not what is declared
        (",", ".", "1.234,5", 1_234.5),
        (",", ".", "1234,5", 1_234.5),
        (",", ".", "1.234.567", 1_000_000),
        (",", ".", "12.34", None),  # not grouped by threes
        (",", ".", "1.2345", None),
        (",", ".", "1234.567", None),
        (",", ".", "0.234", None),  # no group begins with 0
        (",", ".", "1..234", None),
        (",", ".", "1,234.5", None),
        (".", ",", "1,234.5", 1_234.5),
        (".", ",", "1,234,56", None),
        (".", " ", "1 234.5", 1_234.5),
        (".", " ", "1\u00a0234.5", 1_234.5),
        (".", " ", "1\u202f234.5", 1_234.5),
        (".", " ", "1 23", None),
        (".", "'", "1'234", 1_234),
        (".", "'", "1\u2019234", 1_234),
        (".", "", "1'234", None),
        (".", "", "1,5", None),
        (",", "", "\u0661,5", None),
        (",", "", "", None),
    ],
)
def test_which_texts_are_numbers(decimal, thousands, text, value):
    column = number(decimal, thousands, missing=True)
    codes, unfit = fit(column, pa.array([text, "1", None]))
    if value is None:
        assert unfit.tolist() == [True, False, False]
        assert codes.tolist()[0] == column.unfit_code
        with pytest.raises(InputError, match="the value of 'c' is not a finite number"):
            code_of(column, text)
        with pytest.raises(TableError, match="row 1: the value is not a finite number"):
            encode(column, pa.array([text]))
        return
    assert unfit is None
    assert codes.tolist()[0] == code_of(column, text) == code_of(column, value)


def test_whole_numbers_may_have_zeros_behind_their_decimal_mark():
    column = whole(",", ".")
    texts = ["1.400,0", "1.400", "1400,", "-1.400"]
    assert encode(column, pa.array(texts)).tolist() == [3_400, 3_400, 3_400, 600]
    assert [code_of(column, text) for text in texts] == [3_400, 3_400, 3_400, 600]
    for text in ("1,4", "1.4", "1.400.0"):
        with pytest.raises(InputError, match=r"is not a (finite|whole) number"):
            code_of(column, text)


@given(texts=st.lists(messy, min_size=1, max_size=8), marks=marks, is_whole=st.booleans())
def test_each_row_is_read_by_itself_and_as_a_device_reads_it(texts, marks, is_whole):
    column = (whole if is_whole else number)(*marks, missing=True)
    codes, unfit = fit(column, pa.array(texts))
    unfit = [False] * len(texts) if unfit is None else unfit.tolist()
    for text, code, misfit in zip(texts, codes.tolist(), unfit, strict=True):
        alone, alone_unfit = fit(column, pa.array([text]))
        assert (alone.tolist(), alone_unfit is not None) == ([code], misfit)
        entries = pa.array([text, text]).dictionary_encode()
        assert fit(column, entries)[0].tolist() == [code, code]
        assert fit(column, pa.array([text], pa.large_string()))[0].tolist() == [code]
        try:
            assert code_of(column, text) == code
        except InputError:
            assert misfit or code in (0, column.size - 2)  # beyond what 64 bits or a float hold


@given(
    numbers=st.lists(st.floats(-2_000, 1_000_000), min_size=1, max_size=20),
    marks=marks,
    decimals=st.sampled_from([None, 0, 2]),
)
def test_published_text_is_read_back_as_it_was(numbers, marks, decimals):
    edges = (-2_000.0, 0.0, 3.0, 1_000.0, 1_000_000.0)
    decimal, thousands = marks
    column = Number(name="c", edges=edges, decimals=decimals, decimal=decimal, thousands=thousands)
    schema = Schema(columns=(column,))
    values = decode(column, encode(column, pa.array(numbers)), rng=simulation_rng(1))
    table = pa.table({"c": values})
    back = as_written(schema, table)["c"].combine_chunks()
    assert encode(column, back.cast(pa.string())).tolist() == encode(column, values).tolist()


def test_release_text_has_the_marks_that_are_declared():
    pay = Number(name="pay", edges=(-2_000, 2_000_000), decimals=1, decimal=",", thousands=".")
    rows = Integer(name="rows", low=0, high=999, thousands=" ")
    plain = Integer(name="plain", low=0, high=999)
    raw = {"pay": [1234567.5, -1000.0, 3.0], "rows": [1234567, 999, 1000], "plain": [1234567] * 3}
    table = as_written(Schema(columns=(pay, rows, plain)), pa.table(raw))
    assert table["pay"].to_pylist() == ["1.234.567,5", "-1.000,0", "3,0"]
    assert table["rows"].to_pylist() == ["1 234 567", "999", "1 000"]
    assert table["plain"].to_pylist() == [1234567] * 3


def test_numbers_that_are_no_text_are_read_as_they_are():
    column = number(",", ".")
    assert encode(column, pa.array([1.5, 234.0])).tolist() == [4, 5]
    assert [code_of(column, value) for value in (1.5, 234)] == [4, 5]
    assert encode(whole(",", "."), pa.array([-2_000, 1_400])).tolist() == [0, 3_400]


def test_missing_texts_are_compared_as_they_stand():
    column = number(",", "", missing=True, missing_texts=("-200", "n,a"))
    assert encode(column, pa.array(["-200", "n,a", "-200,0"])).tolist() == [8, 8, 0]


def test_a_csv_file_with_decimal_commas_is_read_and_counted(tmp_path):
    path = tmp_path / "air.csv"
    path.write_text("co;rows\n2,6;1.360\n2;1.292\n2.2;999\n", encoding="utf-8")
    schema = Schema.from_dict(
        {
            "sfumato": 1,
            "columns": [
                {"name": "co", "kind": "number", "edges": [0, 2.1, 5], "decimal": ",",
                 "missing": True},
                {"name": "rows", "kind": "integer", "low": 0, "high": 2000, "thousands": ".",
                 "decimal": ","},
            ],
        }
    )  # fmt: skip
    table = open_table(path, schema)
    table.validate()
    assert table.unfit_values() == {"co": 1}
    assert Schema.from_dict(schema.to_dict()) == schema
    assert json.loads(json.dumps(schema.to_dict()))["columns"][1]["thousands"] == "."


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"decimal": ";"}, "decimal must be one of"),
        ({"decimal": ""}, "decimal must be one of"),
        ({"decimal": 1}, "decimal must be one of"),
        ({"thousands": "_"}, "thousands must be one of"),
        ({"thousands": None}, "thousands must be one of"),
        ({"thousands": [","]}, "thousands must be one of"),
        ({"decimal": ",", "thousands": ","}, "decimal and thousands must differ, got ',' for both"),
        ({"thousands": "."}, "decimal and thousands must differ, got '.' for both"),
    ],
)
@pytest.mark.parametrize("kind", [{"kind": "integer", "low": 0, "high": 9},
                                  {"kind": "number", "edges": [0, 9]}])  # fmt: skip
def test_marks_that_can_not_be_are_refused_with_one_message(kind, given, message):
    entry = {"name": "c", **kind, **given}
    with pytest.raises(SchemaError, match=message) as refused:
        Schema.from_dict({"sfumato": 1, "columns": [entry]})
    assert "column 'c'" in str(refused.value)


def test_a_no_break_space_is_declared_as_a_space():
    for mark in ("\u00a0", "\u202f"):
        assert whole(".", mark) == whole(".", " ")
    assert whole(".", "\u2019").thousands == "'"


def test_requests_write_numbers_with_a_point_whatever_the_table_does():
    column = number(",", ".")
    schema = Schema(columns=(column,))
    assert ranges(schema, [{"c": ["1.5", "234"]}]).targets == (Range((("c", 4, 4),)),)
    entry = {"name": "d", "kind": "number", "edges": [0, 1.5, 9], "decimal": ","}
    excluded = {"sfumato": 1, "columns": [entry], "impossible": [{"d": ["0", "1.5"]}]}
    assert Schema.from_dict(excluded).impossible
