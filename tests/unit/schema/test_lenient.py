"""With ``"unreadable": "missing"`` no value stops a run, and no value changes another's code."""

from datetime import UTC, date, datetime

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.engine import count_marginals, open_table
from sfumato.errors import SchemaError, TableError
from sfumato.schema import Schema
from sfumato.schema.codes import encode
from sfumato.schema.columns import Boolean, Category, Date, DateTime, Integer, Number
from sfumato.schema.forms import FileForm

LENIENT = FileForm(trim=True, unreadable="missing")
WHOLE = Integer(name="a", low=0, high=9, missing=True)
REAL = Number(name="a", edges=(0, 1, 2), missing=True)
DAY = Date(name="a", low=date(2020, 1, 1), high=date(2021, 12, 31), step="year", missing=True)
GERMAN = Date(name="a", low=DAY.low, high=DAY.high, step="year", missing=True, format="%d.%m.%Y")
CLOCK = DateTime(
    name="a", low=datetime(2020, 1, 1), high=datetime(2021, 12, 31), step="year", missing=True
)
INSTANT = DateTime(
    name="a",
    low=datetime(2020, 1, 1, tzinfo=UTC),
    high=datetime(2021, 12, 31, tzinfo=UTC),
    step="year",
    zone="UTC",
    missing=True,
)


def codes(column, values):
    return encode(column, pa.array(values), unreadable="missing").tolist()


@pytest.mark.parametrize(
    ("column", "values", "expected"),
    [
        (WHOLE, ["1", "x", "3.0", None, "4.5", "99"], [1, 10, 3, 10, 10, 9]),
        (WHOLE, [1.0, 2.5, None, 1e30], [1, 10, 10, 10]),
        (WHOLE, [date(2020, 1, 1)], [10]),
        (REAL, ["1e0000", "1e0005"], [1, 1]),
        (REAL, ["1", "x", "inf", "1e400", None], [1, 2, 2, 2, 2]),
        (REAL, [0.5, float("inf"), float("nan")], [0, 2, 2]),
        (DAY, ["2020-01-01", "2020-02-31", "soon", "2021-01-01"], [0, 2, 2, 1]),
        (GERMAN, ["1.1.2020", "31.2.2020", "2020-01-01", "01.01.2021"], [0, 2, 2, 1]),
        (CLOCK, ["2020-01-01T10:00", "2020-01-01T10:00Z", "2021-05-01 00:00:00"], [0, 2, 1]),
        (INSTANT, ["2020-01-01T10:00", "2020-01-01T10:00Z", "x"], [2, 0, 2]),
        (Boolean(name="a", texts=("no", "yes"), missing=True), ["no", "maybe", "yes"], [0, 2, 1]),
        (Category(name="a", values=("x",), missing=True), ["x", "y", None], [0, 1, 1]),
        (Category(name="a", values=("x",), other=True, missing=True), ["x", "y", None], [0, 1, 2]),
    ],
)
def test_what_can_not_be_read_counts_as_missing(column, values, expected):
    assert codes(column, values) == expected


@given(st.lists(st.one_of(st.integers(-5, 15).map(str), st.text(max_size=5)), max_size=30))
def test_no_value_changes_what_another_reads_as(values):
    values = [text.encode("utf-8", "ignore").decode() for text in values]
    assert codes(WHOLE, values) == [codes(WHOLE, [text])[0] for text in values]


def test_a_file_says_so_in_its_form_and_is_read_so(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("a,b\n1,x\nfour,y\n3,z\n")
    schema = Schema(columns=(WHOLE,), file=LENIENT)
    found = count_marginals(open_table(path, schema), [("a",)])[("a",)]
    assert found.tolist() == [0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 1]
    with pytest.raises(TableError, match="row 2"):
        open_table(path, Schema(columns=(WHOLE,))).validate()


def test_the_form_is_written_and_read_back():
    schema = Schema(columns=(WHOLE,), file=LENIENT)
    assert schema.to_dict()["file"] == {"trim": True, "unreadable": "missing"}
    assert Schema.from_dict(schema.to_dict()) == schema


def test_a_column_that_can_not_be_missing_is_refused():
    strict = Integer(name="a", low=0, high=9)
    with pytest.raises(SchemaError, match='needs "missing": true'):
        Schema(columns=(strict,), file=LENIENT)
    open_ended = Category(name="a", values=("x",), other=True)
    assert Schema(columns=(open_ended,), file=LENIENT)


@pytest.mark.parametrize("given_value", ["drop", 1, True, None])
def test_no_other_way_is_known(given_value):
    with pytest.raises(SchemaError, match="unreadable must be"):
        FileForm.from_dict({"unreadable": given_value})
