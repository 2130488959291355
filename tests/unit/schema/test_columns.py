"""Columns: codes and labels of each kind, and one clear refusal for each wrong declaration."""

from datetime import date, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import SchemaError
from sfumato.schema import Boolean, Category, Date, Integer, Number, Ordinal


@pytest.mark.parametrize(
    ("column", "labels"),
    [
        (Category(name="c", values=("x", "y")), ("x", "y")),
        (Ordinal(name="c", values=("lo", "hi")), ("lo", "hi")),
        (Category(name="c", values=("x",), other=True), ("x", "(other)")),
        (
            Category(name="c", values=("x",), other=True, missing=True),
            ("x", "(other)", "(missing)"),
        ),
        (Boolean(name="c"), ("false", "true")),
        (Boolean(name="c", missing=True), ("false", "true", "(missing)")),
        (Integer(name="c", low=-1, high=1), ("-1", "0", "1")),
        (Integer(name="c", low=0, high=10, step=4), ("0..3", "4..7", "8..10")),
        (Number(name="c", edges=(0, 0.5, 10000)), ("0..0.5", "0.5..10000")),
        (
            Number(name="c", edges=(1_000_000, 1_000_001, 1_000_002)),
            ("1000000..1000001", "1000001..1000002"),
        ),
        (
            Date(name="c", low=date(2020, 2, 28), high=date(2020, 3, 1)),
            ("2020-02-28", "2020-02-29", "2020-03-01"),
        ),
        (
            Date(name="c", low=date(2019, 12, 24), high=date(2020, 2, 1), step="month"),
            ("2019-12", "2020-01", "2020-02"),
        ),
        (
            Date(name="c", low=date(2020, 2, 15), high=date(2020, 7, 1), step="quarter"),
            ("2020-02", "2020-04", "2020-07"),
        ),
        (
            Date(name="c", low=date(2019, 7, 1), high=date(2021, 1, 1), step="year"),
            ("2019", "2020", "2021"),
        ),
    ],
)
def test_each_kind_has_one_label_for_each_code(column, labels):
    assert column.labels == labels
    assert column.size == len(labels)


def test_missing_is_the_last_code_and_other_the_one_before():
    column = Category(name="c", values=("x", "y"), other=True, missing=True)
    assert (column.other_code, column.missing_code) == (2, 3)
    plain = Category(name="c", values=("x", "y"))
    assert (plain.other_code, plain.missing_code) == (None, None)


def test_only_kinds_with_an_order_say_so():
    assert [k.ordered for k in (Category, Boolean)] == [False, False]
    assert [k.ordered for k in (Ordinal, Integer, Number, Date)] == [True] * 4


@given(st.lists(st.floats(-1e12, 1e12), min_size=2, max_size=8, unique=True))
def test_labels_of_number_bins_are_all_different(edges):
    column = Number(name="c", edges=tuple(sorted(edges)))
    assert len(set(column.labels)) == column.size == len(edges) - 1


@given(
    st.dates(date(1990, 1, 1), date(2030, 1, 1)),
    st.integers(0, 800),
    st.sampled_from(["day", "week", "month", "quarter", "year"]),
)
def test_date_codes_begin_at_low_rise_and_begin_new_periods(low, days, step):
    high = date.fromordinal(low.toordinal() + days)
    starts = Date(name="c", low=low, high=high, step=step).starts
    assert starts[0] == low
    assert starts[-1] <= high
    assert list(starts) == sorted(set(starts))
    allowed = {"month": range(1, 13), "quarter": (1, 4, 7, 10), "year": (1,)}
    if step == "week":
        assert all(day.weekday() == 0 for day in starts[1:])
    elif step != "day":
        assert all(day.day == 1 and day.month in allowed[step] for day in starts[1:])
    assert len(starts) == Date(name="c", low=low, high=high, step=step).size


WRONG = {
    "values empty": (lambda: Category(name="c", values=()), "must not be empty"),
    "values not texts": (lambda: Category(name="c", values=(1, 2)), "texts"),
    "values one text": (lambda: Category(name="c", values="xy"), "texts"),
    "values half a letter": (lambda: Category(name="c", values=("\ud800",)), "texts"),
    "values twice": (lambda: Category(name="c", values=("x", "y", "x")), r"twice: \['x'\]"),
    "reserved other": (lambda: Category(name="c", values=("(other)",)), "reserved"),
    "reserved missing": (lambda: Ordinal(name="c", values=("(missing)",)), "reserved"),
    "other no bool": (lambda: Category(name="c", values=("x",), other="no"), "other must be true"),
    "missing no bool": (lambda: Boolean(name="c", missing=1), "missing must be true or false"),
    "low above high": (lambda: Integer(name="c", low=2, high=1), "low 2 is above high 1"),
    "low a bool": (lambda: Integer(name="c", low=True, high=1), "low must be a whole number"),
    "high a float": (lambda: Integer(name="c", low=0, high=1.0), "high must be a whole number"),
    "low text": (lambda: Integer(name="c", low="0", high=1), "low must be a whole number"),
    "low beyond": (lambda: Integer(name="c", low=-(2**62), high=0), "low must be a whole number"),
    "step zero": (lambda: Integer(name="c", low=0, high=1, step=0), "step must be a whole number"),
    "step beyond": (lambda: Integer(name="c", low=0, high=1, step=10**30), "step must be a whole"),
    "10^9 codes": (
        lambda: Integer(name="c", low=1, high=10**9, step=1),
        "1,000,000,000 values; at most",
    ),
    "more than 10^9 cells": (
        lambda: Integer(name="c", low=0, high=10**9),
        "1,000,000,001 possible values lie between the limits; at most 1,000,000,000 are allowed",
    ),
    "no resolution": (lambda: Number(name="c", low=0, high=1), "or edges; no resolution"),
    "nothing declared": (lambda: Number(name="c"), "low, high and resolution, or edges; no low"),
    "resolution zero": (
        lambda: Number(name="c", low=0, high=1, resolution=0),
        "resolution must be above 0, got 0",
    ),
    "resolution below zero": (
        lambda: Integer(name="c", low=0, high=1, resolution=-1),
        "resolution must be a whole number",
    ),
    "turned numbers": (
        lambda: Number(name="c", low=2, high=1, resolution=1),
        "low 2 is above high 1",
    ),
    "edges and limits": (
        lambda: Number(name="c", edges=(0, 1), low=0),
        "low, high and resolution, or edges, not both",
    ),
    "too many digits": (
        lambda: Number(name="c", low=0, high=10**8, resolution=1e-9),
        "have more than 15 digits",
    ),
    "fine far away": (
        lambda: Number(name="c", low=10**14, high=10**14 + 1, resolution=0.01),
        "have more than 15 digits",
    ),
    "alone outside": (
        lambda: Integer(name="c", low=0, high=9, alone=(99,)),
        "99 in alone is no value between 0 and 9",
    ),
    "alone off the grid": (
        lambda: Number(name="c", low=0, high=9, resolution=0.5, alone=(0.3,)),
        "0.3 in alone is no value between 0 and 9 in steps of 0.5",
    ),
    "alone twice": (
        lambda: Integer(name="c", low=0, high=9, alone=(3, 3)),
        "alone must be a tuple",
    ),
    "alone with a step": (
        lambda: Integer(name="c", low=0, high=9, step=2, alone=(3,)),
        "leave resolution and alone",
    ),
    "bins that fall": (
        lambda: Integer(name="c", low=0, high=9, bins=(0, 3, 2)),
        "bins must rise",
    ),
    "bins beyond": (
        lambda: Integer(name="c", low=0, high=9, bins=(0, 10)),
        "bins must be whole numbers from 0 to below 10",
    ),
    "bins and a step": (
        lambda: Integer(name="c", low=0, high=9, step=2, bins=(0, 2)),
        "bins divide the values of a column without step or edges",
    ),
    "one edge": (lambda: Number(name="c", edges=(1.0,)), "two or more finite numbers"),
    "edges no tuple": (lambda: Number(name="c", edges=3), "two or more finite numbers"),
    "edges equal": (lambda: Number(name="c", edges=(0, 1, 1)), "edges must rise"),
    "edges falling": (lambda: Number(name="c", edges=(0, 2, 1)), "edges must rise"),
    "edges one float": (lambda: Number(name="c", edges=(2**53, 2**53 + 1)), "edges must rise"),
    "edge NaN": (lambda: Number(name="c", edges=(0, float("nan"), 1)), "finite numbers"),
    "edge infinite": (lambda: Number(name="c", edges=(0, float("inf"))), "finite numbers"),
    "edge beyond floats": (lambda: Number(name="c", edges=(0, 10**400)), "finite numbers"),
    "edge bool": (lambda: Number(name="c", edges=(False, True)), "finite numbers"),
    "edge text": (lambda: Number(name="c", edges=("0", "1")), "finite numbers"),
    "date text": (lambda: Date(name="c", low="x", high="y"), "dates like 2020-01-31, got 'x'"),
    "date with hours": (
        lambda: Date(name="c", low=datetime(2020, 1, 1), high=date(2021, 1, 1)),
        "dates like 2020-01-31",
    ),
    "dates turned": (
        lambda: Date(name="c", low=date(2020, 1, 2), high=date(2020, 1, 1)),
        "low 2020-01-02 is after high 2020-01-01",
    ),
    "date step": (
        lambda: Date(name="c", low=date(2020, 1, 1), high=date(2020, 1, 2), step="hour"),
        "step must be one of",
    ),
    "too many days": (
        lambda: Date(name="c", low=date.min, high=date.max, step="day"),
        "3,652,059 values; at most",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_declaration_is_one_schema_error_that_names_the_column(case):
    build, message = WRONG[case]
    with pytest.raises(SchemaError, match=message) as refusal:
        build()
    assert str(refusal.value).startswith("column 'c'")
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("name", ["", "  ", None, 3, ("a",), "\udfff"])
def test_a_column_without_a_usable_name_is_refused(name):
    with pytest.raises(SchemaError, match="needs a name that is text"):
        Boolean(name=name)


def test_one_repeat_among_many_values_is_named():
    values = tuple(str(i) for i in range(200_000))
    with pytest.raises(SchemaError, match=r"twice: \['7'\]"):
        Category(name="c", values=(*values, "7"))


def test_too_many_codes_are_refused_before_any_is_made():
    with pytest.raises(SchemaError, match="at most 1,000,000 can be counted"):
        Integer(name="c", low=0, high=2**60, step=1)
