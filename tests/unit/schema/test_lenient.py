"""Unless a schema is strict no value stops a run, and no value changes another's code."""

from datetime import UTC, date, datetime

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.counting.exact_counts import count_marginals
from sfumato.errors import SchemaError, TableError
from sfumato.readers.open_table import open_table
from sfumato.schema import Schema
from sfumato.schema.codes import encode, fit
from sfumato.schema.columns import Boolean, Category, Date, DateTime, Integer, Number
from sfumato.schema.files import FileForm

LENIENT = FileForm(trim=True)
STRICT = FileForm(trim=True, strict=True)
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
    return fit(column, pa.array(values))[0].tolist()


@pytest.mark.parametrize(
    ("column", "values", "expected"),
    [
        (WHOLE, ["1", "x", "3.0", None, "4.5", "99"], [1, 10, 3, 10, 10, 9]),
        (WHOLE, [1.0, 2.5, None, 1e30], [1, 10, 10, 9]),
        (WHOLE, [2.0**62, -(2.0**63), 2.5], [9, 0, 10]),
        (WHOLE, ["9" * 30, "-" + "9" * 30, "1e30"], [9, 0, 10]),
        (WHOLE, [date(2020, 1, 1)], [10]),
        (REAL, ["1e0000", "1e0005"], [1, 1]),
        (REAL, ["1", "x", "inf", "1e400", "-1e400", None], [1, 2, 2, 1, 0, 2]),
        (REAL, [0.5, float("inf"), float("nan")], [0, 1, 2]),
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


TEXTS = st.one_of(
    st.integers(-5, 15).map(str),
    st.from_regex(r"[ +-]?[0-9]{0,22}\.?[0-9]{0,3}([eE][+-]?[0-9]{1,4})?[ x]?", fullmatch=True),
    st.from_regex(
        r" ?[0-9]{1,4}[-./][0-9]{1,2}[-./][0-9]{1,4}"
        r"([T ][0-9]{1,2}(:[0-9]{2}){0,2}(\.[0-9]{0,9})?)?"
        r"(Z|[+-][0-9]{2}(:?[0-9]{2})?)?",
        fullmatch=True,
    ),
    st.sampled_from(
        ["nan", "inf", "-Infinity", "0x1F", "true", "yes", "Y", "", " ", "1,5", "\u0661"]
    ),
    st.text(max_size=5).map(lambda text: text.encode("utf-8", "ignore").decode()),
)
KINDS = (
    WHOLE,
    REAL,
    DAY,
    GERMAN,
    CLOCK,
    INSTANT,
    Boolean(name="a"),
    Category(name="a", values=("x", "1")),
)


@pytest.mark.parametrize("column", KINDS, ids=lambda column: f"{column.kind}-{column.missing}")
@given(text=TEXTS)
def test_a_value_fits_exactly_where_a_strict_reading_takes_it(column, text):
    """Else one value that does not fit would change how the others of its batch are read."""
    (code,), unfit = fit(column, pa.array([text]))
    try:
        strictly = encode(column, pa.array([text])).tolist()
    except TableError:
        if unfit is None:  # a number that is too large to be held counts as the nearest limit
            assert isinstance(column, Integer | Number)
            assert code == (0 if text.strip().startswith("-") else column.size - 2)
        else:
            assert unfit.all()
            assert code == column.unfit_code
    else:
        assert unfit is None
        assert [code] == strictly


@pytest.mark.parametrize("column", KINDS, ids=lambda column: f"{column.kind}-{column.missing}")
@given(texts=st.lists(st.one_of(st.none(), TEXTS), max_size=12))
def test_every_value_has_its_code_by_itself(column, texts):
    alone = [fit(column, pa.array([text], pa.string())) for text in texts]
    found, unfit = fit(column, pa.array(texts, pa.string()))
    assert found.tolist() == [code for (code,), _ in alone]
    which = [False] * len(texts) if unfit is None else unfit.tolist()
    assert which == [one is not None and bool(one.all()) for _, one in alone]


@pytest.mark.parametrize(
    ("column", "unknown", "absent"),
    [
        (Category(name="a", values=("x", "y"), other=True, missing=True), 2, 3),
        (Category(name="a", values=("x", "y"), other=True), 2, 2),
        (Category(name="a", values=("x", "y"), missing=True), 2, 2),
        (Category(name="a", values=("x", "y")), 0, 0),
        (WHOLE, 10, 10),
        (Integer(name="a", low=0, high=9), 0, 0),
        (Boolean(name="a"), 0, 0),
    ],
)
def test_what_has_no_code_counts_as_a_public_one(column, unknown, absent):
    assert codes(column, ["soon", None]) == [unknown, absent]


def test_a_table_is_read_whatever_a_row_says_unless_it_is_strict(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("a,b\n1,x\nfour,y\n3,z\n,x\n")
    closed = Integer(name="a", low=0, high=9)
    table = open_table(path, Schema(columns=(closed, Category(name="b", values=("x", "y")))))
    table.validate()
    assert table.unfit_values() == {"a": 2, "b": 1}
    assert count_marginals(table, [("a",)])[("a",)].tolist() == [2, 1, 0, 1, 0, 0, 0, 0, 0, 0]
    assert table.unfit_values() == {"a": 2, "b": 1}  # also when it is read again
    with pytest.raises(TableError, match="row 2"):
        open_table(path, Schema(columns=(WHOLE,), file=STRICT)).validate()


def test_the_form_is_written_and_read_back():
    schema = Schema(columns=(WHOLE,), file=STRICT)
    assert schema.to_dict()["file"] == {"trim": True, "strict": True}
    assert Schema.from_dict(schema.to_dict()) == schema
    assert not Schema(columns=(WHOLE,)).file.strict


@pytest.mark.parametrize("given_value", ["drop", 1, None])
def test_no_other_way_is_known(given_value):
    with pytest.raises(SchemaError, match="strict must be"):
        FileForm.from_dict({"strict": given_value})


@pytest.mark.parametrize("values", [[2.0**62] * 3, [-(2.0**63)] * 3, [2**62] * 3, [1e300] * 3])
def test_large_numbers_count_as_the_limit_whatever_else_stands_in_the_column(values):
    alone, _ = fit(WHOLE, pa.array(values))
    beside, _ = fit(WHOLE, pa.array([*map(float, values), 2.5]))
    assert beside.tolist()[:3] == alone.tolist()


def test_a_day_is_that_of_utc_whatever_zone_a_column_has():
    """Where one row of another kind makes Python objects of a column, no zone is left."""
    kind = pa.timestamp("us", "Europe/Berlin")
    late = datetime(2020, 12, 31, 23, 30, tzinfo=UTC)  # in Berlin it is 2021
    for column in (DAY, Category(name="a", values=("2020-12-31 23:30:00Z",))):
        zoned, plain = (
            fit(column, pa.array([late], k))[0] for k in (kind, pa.timestamp("us", "UTC"))
        )
        assert zoned.tolist() == plain.tolist()


@pytest.mark.parametrize("alone", [True, False])
def test_a_value_that_has_no_code_is_other_and_one_that_is_not_there_is_missing(alone):
    """Also where one value of a batch can't be told from another whole number."""
    column = Category(name="a", values=("1", "2"), other=True, missing=True)
    large = float(2**53)
    assert column.other_code != column.missing_code
    values = [large] if alone else [1.0, large, None, 7.0]
    expected = [column.other_code]
    if not alone:
        expected = [0, column.other_code, column.missing_code, column.other_code]
    assert codes(column, values) == expected
