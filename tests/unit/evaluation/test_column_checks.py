"""Rules between columns: how they are read, which rows break them, and what is refused."""

from datetime import date, datetime

import numpy as np
import pytest

from sfumato.errors import InputError
from sfumato.evaluation.column_checks import ColumnCheck
from sfumato.schema import Category, Date, DateTime, Integer, Number, Schema

SCHEMA = Schema(
    columns=(
        *(Integer(name=name, low=0, high=99) for name in ("a", "b", "age", "hours-per-week")),
        Number(name="c", edges=(0.0, 9.0)),
        Integer(name="sum <= 5", low=0, high=9),
        Date(name="in", low=date(2020, 1, 1), high=date(2021, 1, 1)),
        Date(name="out", low=date(2020, 1, 1), high=date(2021, 1, 1)),
        DateTime(name="at", low=datetime(2020, 1, 1), high=datetime(2021, 1, 1)),
        Category(name="town", values=("A", "B")),
    )
)
NAN = float("nan")
ROWS = {
    "a": np.array([1.0, 2.0, 3.0, NAN]),
    "b": np.array([1.0, 1.0, 4.0, 1.0]),
    "c": np.array([2.0, 3.0 + 1e-12, 8.0, 2.0]),
    "age": np.array([10.0, 20.0, 30.0, 40.0]),
    "hours-per-week": np.array([40.0, 99.0, 61.0, 60.0]),
    "sum <= 5": np.array([1.0, 6.0, 5.0, 5.0]),
    "in": np.array([3.0, 4.0, 5.0, 6.0]),
    "out": np.array([3.0, 3.0, 40.0, NAN]),
}


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("a <= b", [True, False, True]),
        ("a<b", [False, False, True]),
        ("b >= a", [True, False, True]),
        ("a > b", [False, True, False]),
        ("a = b", [True, False, False]),
        ("a == b", [True, False, False]),
        ("a != b", [False, True, True]),
        ("a ≤ b", [True, False, True]),
        ("a + b = c", [True, True, False]),
        ("c - a - b = 0", [True, True, False]),
        ("-a + 2.5 > 0", [True, True, False]),
        ("hours-per-week <= 60", [True, False, False, True]),
        ('"hours-per-week" - `age` > 30', [False, True, True, False]),
        ("in <= out", [True, False, True]),
        ("out - in <= 30", [True, True, False]),
        ('"sum <= 5" <= 5', [True, False, True, True]),
        ("sum <= 5 <= 5", [True, False, True, True]),
    ],
)
def test_a_rule_is_judged_row_by_row_where_all_values_are_there(
    text: str, kept: list[bool]
) -> None:
    assert ColumnCheck.of(text, SCHEMA).holds_in(ROWS).tolist() == kept


def test_a_sum_of_decimals_is_equal_in_spite_of_binary_rounding() -> None:
    rows = {"a": np.array([0.1]), "b": np.array([0.2]), "c": np.array([0.3])}
    assert ColumnCheck.of("a + b = c", SCHEMA).holds_in(rows).tolist() == [True]
    assert ColumnCheck.of("a + b > c", SCHEMA).holds_in(rows).tolist() == [False]
    assert ColumnCheck.of("a + b < c", SCHEMA).holds_in(rows).tolist() == [False]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a", "0 comparisons"),
        ("a < b < c", "2 comparisons"),
        ("a <= ", "one side"),
        ("<= b", "one side"),
        ("1 <= 2", "names no column"),
        ("a <= d", "names 'd', which is no column of the release. Its columns: a, b, age"),
        ("ages <= a", "names 'ages'"),
        ('"x y" <= a', "names 'x y'"),
        ("a b <= c", "can't be read at 'b"),
        ("a * b <= c", r"can't be read at '\* b"),
        ("town <= a", "of kind category"),
        ("in <= a", "mixes date with number"),
        ("in <= at", "mixes date with datetime"),
        ("__import__('os') <= a", "no column"),
    ],
)
def test_what_is_no_rule_is_refused_with_what_one_looks_like(text: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        ColumnCheck.of(text, SCHEMA)


def test_a_rule_is_text() -> None:
    with pytest.raises(InputError, match="a check must be text, got 7"):
        ColumnCheck.of(7, SCHEMA)  # type: ignore[arg-type]
