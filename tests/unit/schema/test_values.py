"""One value in plain Python and a column through Arrow get the same codes."""

from datetime import UTC, date, datetime

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import InputError, TableError
from sfumato.schema import Boolean, Category, Date, DateTime, Integer, Number
from sfumato.schema.codes import encode
from sfumato.schema.values import code_of, limits, number_of, numbers

COLUMNS = [
    Category(name="help", values=("1", "2", "none"), missing=True),
    Category(name="town", values=("a", "b"), other=True),
    Boolean(name="member", missing=True),
    Integer(name="age", low=4, high=17, step=3, missing=True),
    Number(name="income", edges=(0.0, 10.0, 20.5, 100.0), missing=True),
    Date(name="visit", low=date(2020, 1, 15), high=date(2021, 3, 1), step="month", missing=True),
    Boolean(name="paid", texts=("no", "yes"), missing=True, missing_texts=("?", "-3")),
    Integer(name="score", low=0, high=9, missing=True, missing_texts=("x", "-3", "7")),
    Date(name="birth", low=date(1990, 1, 1), high=date(2021, 1, 1), format="%d.%m.%Y"),
    DateTime(name="seen", low=datetime(2020, 1, 1), high=datetime(2021, 1, 1), step="week"),
    DateTime(
        name="sent",
        low=datetime(2020, 1, 1, tzinfo=UTC),
        high=datetime(2021, 1, 1, tzinfo=UTC),
        step="hour",
        zone="Asia/Tehran",
    ),
]

VALUES = st.one_of(
    st.none(),
    st.integers(-50, 200),
    st.floats(-50, 200),
    st.sampled_from(["1", "2", "none", "a", "b", "c", "yes", "NO", " t ", "0", "1.0", "12.50"]),
    st.sampled_from(["2020-01-15", "2020-02-01", "2021-03-01", "1999-01-01", " 7 ", "-3", "x", ""]),
    st.sampled_from(["1_0", "１", "\u0661", "5.", ".5", "+7", "1e1", "1E0001", "0x1", "inf"]),
    st.sampled_from([1e18, 1e19, 1e30, -1e30]),
    st.sampled_from(["?", "31.12.2020", "30.02.2020", "2020-02-01T10:30", "2020-02-01 10:30:00Z"]),
    st.datetimes(datetime(2019, 1, 1), datetime(2022, 1, 1)),
    st.datetimes(datetime(2019, 1, 1), datetime(2022, 1, 1), timezones=st.just(UTC)),
    st.dates(date(2019, 1, 1), date(2022, 1, 1)),
    st.booleans(),
)


@given(column=st.sampled_from(COLUMNS), value=VALUES)
def test_one_value_has_the_code_that_a_table_would_give_it(column, value):
    _check_same(column, value)


def _check_same(column, value):
    if isinstance(value, bool) and not isinstance(column, Boolean | Category):
        return  # Arrow reads a column of booleans as numbers; a device refuses one
    try:
        expected = int(encode(column, pa.array([value]))[0])
    except (TableError, pa.ArrowException):
        with pytest.raises(InputError):
            code_of(column, value)
        return
    assert code_of(column, value) == expected


def test_a_value_that_does_not_fit_is_refused_without_repeating_it():
    with pytest.raises(InputError, match="the value of 'help' is not one of the declared") as bad:
        code_of(COLUMNS[0], "a secret")
    assert "secret" not in str(bad.value)


@pytest.mark.parametrize("value", [2.0**53, 2.0**53 + 2, -1e18, 2.0**64, 1e30])
@pytest.mark.parametrize("column", COLUMNS[:5], ids=lambda column: column.name)
def test_a_large_float_is_the_same_on_a_device_and_in_a_table(column, value):
    _check_same(column, value)


def test_a_missing_value_needs_to_be_declared():
    with pytest.raises(InputError, match="missing is not one of them"):
        code_of(Boolean(name="member"), None)


def test_numbers_outside_the_limits_count_as_the_nearest_inside():
    column = Number(name="income", edges=(0.0, 10.0))
    assert number_of(column, 11) == 10.0
    assert number_of(column, " -3 ") == 0.0


@pytest.mark.parametrize(
    "value", ["x", None, float("nan"), float("inf"), True, 10**400, "1_0", "１", "\u0661", "inf"]
)
def test_what_is_no_finite_number_is_refused(value):
    with pytest.raises(InputError, match="not a finite number"):
        number_of(Number(name="income", edges=(0.0, 10.0)), value)


def test_every_code_has_the_number_in_the_middle_of_its_bin():
    assert numbers(Integer(name="age", low=4, high=8, step=2)) == [4.5, 6.5, 8.0]
    assert numbers(Number(name="income", edges=(0.0, 10.0, 30.0))) == [5.0, 20.0]


def test_only_numbers_have_limits():
    with pytest.raises(InputError, match="only integer and number columns have a mean"):
        limits(Boolean(name="member"))
