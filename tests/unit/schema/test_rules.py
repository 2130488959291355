"""Rules between columns: how they are written, what is refused, and that some row keeps them."""

from datetime import UTC, date, datetime
from itertools import product

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import SchemaError
from sfumato.randomness import simulation_rng
from sfumato.schema import Boolean, Category, Date, DateTime, Integer, Number, Ordinal, Rule, Schema
from sfumato.schema.axes import axis_of, points_of, values_at
from sfumato.schema.codes import code_type, decode
from sfumato.schema.rules import possible_row

COLUMNS = (
    Integer(name="a", low=0, high=9, missing=True),
    Integer(name="b", low=0, high=9),
    Integer(name="far", low=20, high=30),
    Integer(name="huge", low=0, high=2**60, step=2**50),
    Number(name="cents", edges=(0, 5, 8), decimals=1),
    Number(name="weight", edges=(0, 5, 8)),
    Number(name="quarters", low=0, high=8, resolution=0.25),
    Integer(name="tens", low=5, high=98, resolution=10),
    Date(name="day", low=date(2020, 1, 1), high=date(2020, 12, 31)),
    DateTime(name="time", low=datetime(2019, 1, 1), high=datetime(2020, 2, 1)),
    DateTime(name="dmy", low=datetime(2019, 1, 1), high=datetime(2020, 2, 1), format="%d.%m.%Y"),
    DateTime(
        name="sent",
        low=datetime(2019, 1, 1, tzinfo=UTC),
        high=datetime(2020, 2, 1, tzinfo=UTC),
        zone="Europe/Rome",
    ),
    Ordinal(name="first", values=("x", "y", "z")),
    Ordinal(name="last", values=("x", "y", "z"), other=True),
    Ordinal(name="other order", values=("z", "y", "x")),
    Category(name="town", values=("x", "y", "z")),
    Boolean(name="member"),
)


def ruled(*texts: object) -> Schema:
    return Schema(columns=COLUMNS, rules=texts)  # type: ignore[arg-type]


# ---------------------------------------------------------------- reading and writing


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("a <= b", "a <= b"),
        (" b>=a ", "a <= b"),
        ("a<b", "a < b"),
        ("b > a", "a < b"),
        ('"a" <= "b"', "a <= b"),
        ("day < time", "day < time"),
        ("cents <= weight", "cents <= weight"),
        ("a < cents", "a < cents"),
        ("first <= last", "first <= last"),
    ],
)
def test_a_rule_is_read_once_and_prints_itself_in_one_way(text: str, canonical: str) -> None:
    schema = ruled(text)
    assert [str(rule) for rule in schema.rules] == [canonical]
    assert schema.rules == (Rule.parse(canonical),)
    assert schema.to_dict()["rules"] == [canonical]
    assert Schema.from_dict(schema.to_dict()) == schema


@given(
    st.text(min_size=1, max_size=8).filter(str.strip),
    st.text(min_size=1, max_size=8).filter(str.strip),
    st.booleans(),
)
def test_any_two_names_survive_being_written(left: str, right: str, strict: bool) -> None:
    if left != right:
        rule = Rule(left=left, right=right, strict=strict)
        assert Rule.parse(str(rule)) == rule


@pytest.mark.parametrize(
    ("texts", "says"),
    [
        (["a <= zzz"], "rule 'a <= zzz': no column 'zzz' in the schema"),
        (["a <= 5"], "5 is a constant, .* declare it as a limit of the column"),
        (["day <= 2020-01-01"], "2020-01-01 is a constant"),
        (["a <= a"], "compares a column with itself"),
        (["a = b"], "= is not a sign that rules have"),
        (["a =< b"], "=< is not a sign"),
        (["a < b < cents"], "several signs of comparison. Write a rule for each pair"),
        (["a b"], "no sign of comparison. A rule compares two columns, like"),
        (["a <="], "names no column on one side"),
        ([5], "a rule is a text, got 5"),
        (["a <= town"], "'town' is of kind category, which has no order"),
        (["a <= member"], "'member' is of kind boolean, which has no order"),
        (["a <= day"], "can't be compared .'a' is of kind integer and 'day' is of kind date"),
        (["time <= sent"], "both with a zone or both without"),
        (["first <= other order"], "ordinals of the same values in the same order"),
        (["day <= dmy"], "'dmy' is written as '%d.%m.%Y', which shows days"),
        (["huge <= cents"], "'huge' has whole numbers beyond 2.53"),
        (["a <= b", "b >= a"], "stand twice: .'a <= b'"),
        (["a < b", "b < a"], "contradict each other: no row keeps them"),
        (["a <= b", "b < cents", "cents <= a"], "contradict each other"),
        (["a <= b", "b <= a"], "allow equal values only. Publish one of these columns"),
        (["far <= a"], "keep 'far <= a': 'far' is at least 20 there, and 'a' at most 9"),
        (["a <= b", "far < b"], "keep .*'far < b': 'far' is at least 20 there"),
    ],
)
def test_what_no_row_can_keep_or_nobody_can_mean_is_refused(texts: list[object], says: str) -> None:
    with pytest.raises(SchemaError, match=says):
        ruled(*texts)


@pytest.mark.parametrize("given_rules", ["a <= b", {"a": "b"}, 5, None])
def test_rules_are_a_list(given_rules: object) -> None:
    with pytest.raises(SchemaError, match="rules must be a list"):
        Schema(columns=COLUMNS, rules=given_rules)  # type: ignore[arg-type]
    with pytest.raises(SchemaError, match="rules must be a list"):
        Schema.from_dict({**Schema(columns=COLUMNS).to_dict(), "rules": given_rules})


def test_a_strict_chain_needs_as_many_steps_as_it_has_rules() -> None:
    def chain(high: int) -> Schema:
        columns = tuple(Integer(name=name, low=0, high=high) for name in "abc")
        return Schema(columns=columns, rules=("a < b", "b < c"))  # type: ignore[arg-type]

    assert len(chain(2).rules) == 2
    with pytest.raises(SchemaError, match="'a < b', 'b < c': 'b' is at least 1 there, and 'c' at"):
        chain(1)


def test_picked_columns_keep_the_rules_between_them() -> None:
    schema = ruled("a <= b", "b <= cents")
    assert [str(rule) for rule in schema.pick(["b", "a", "town"]).rules] == ["a <= b"]
    assert schema.pick(["a", "town"]).rules == ()


def test_rules_and_impossible_combinations_that_exclude_every_row_together_are_refused() -> None:
    low = Integer(name="low", low=0, high=9)
    schema = Schema(columns=(low, COLUMNS[1]), rules=("low < b",))  # type: ignore[arg-type]
    assert schema.excluding([{"b": [1, 8]}])
    with pytest.raises(SchemaError, match=r"1 rules and the 1 combinations .* exclude every row"):
        schema.excluding([{"b": [1, 9]}])


def test_a_missing_value_keeps_a_rule_that_nothing_else_could_keep() -> None:
    assert ruled("a < b").excluding([{"b": [1, 9]}])  # a may be missing


def test_columns_of_hundreds_of_millions_of_values_are_compared_without_listing_them() -> None:
    columns = tuple(Integer(name=name, low=0, high=9 * 10**8, missing=True) for name in "ab")
    small = Integer(name="k", low=0, high=3)
    schema = Schema(columns=(*columns, small), rules=("a <= b", "k < b"))  # type: ignore[arg-type]
    assert schema.excluding([{"k": [1, 2]}])


combinations = st.lists(
    st.dictionaries(
        st.sampled_from("xyz"),
        st.tuples(st.integers(0, 3), st.integers(0, 3)).map(lambda ends: sorted(ends)),
        min_size=1,
    ),
    min_size=1,
    max_size=5,
)
orders = st.lists(
    st.sampled_from(["x <= y", "x < y", "y <= z", "y < z", "x < z"]),
    min_size=1,
    max_size=3,
    unique=True,
)


@given(combinations, orders)
def test_a_possible_row_is_found_exactly_where_there_is_one(
    excluded: list[dict[str, list[int]]], texts: list[str]
) -> None:
    columns = tuple(Integer(name=name, low=0, high=3) for name in "xyz")
    rules = tuple(Rule.parse(text) for text in texts)

    def keeps(row: dict[str, int]) -> bool:
        ordered = all(row[rule.left] < row[rule.right] + (not rule.strict) for rule in rules)
        holds = [
            all(low <= row[name] <= high for name, (low, high) in each.items()) for each in excluded
        ]
        return ordered and not any(holds)

    rows = [dict(zip("xyz", values, strict=True)) for values in product(range(4), repeat=3)]
    some = any(keeps(row) for row in rows)
    try:
        schema = Schema(columns=columns).excluding(excluded)
        found = possible_row({c.name: c for c in schema}, rules, schema.impossible)
    except SchemaError:  # the combinations alone exclude everything
        found = None
    assert (found is not None) == some
    if found is not None:
        codes, points = found
        assert keeps({"x": 0, "y": 0, "z": 0} | codes | {n: int(p) for n, p in points.items()})


# ---------------------------------------------------------------- values as points


@pytest.mark.parametrize(
    "column", [c for c in COLUMNS[:14] if c.name != "dmy"], ids=lambda column: column.name
)
def test_points_turn_back_into_the_values_that_were_published(column: Ordinal) -> None:
    codes = np.arange(min(column.size, 50))
    values = decode(column, codes.astype(code_type(column)), rng=simulation_rng(1))
    points, present = points_of(column, values)
    axis = axis_of(column)
    back = values_at(column, points, values.type)
    assert back.filter(pa.array(present)).equals(values.filter(pa.array(present)))
    own = points[present]
    assert (axis.at_least(own, strict=False) == own).all()
    assert (axis.at_most(own, strict=False) == own).all()
    above, below = axis.at_least(own, strict=True), axis.at_most(own, strict=True)
    assert (above > own).all()
    assert (below < own).all()
    inside = below >= axis.first
    assert (axis.at_least(below[inside], strict=True) == own[inside]).all()


@given(st.integers(0, 12), st.floats(-1e3, 1e3), st.booleans())
def test_the_next_decimal_is_the_nearest_float_of_one(
    decimals: int, point: float, strict: bool
) -> None:
    axis = axis_of(Number(name="x", edges=(-500, 500), decimals=decimals))
    (up,) = axis.at_least(np.array([point]), strict=strict).tolist()
    (down,) = axis.at_most(np.array([point]), strict=strict).tolist()
    step = 10.0**-decimals
    if -500 < point < 500:
        assert (down < point < up) if strict else (down <= point <= up)
        assert point - down <= step * 1.01 + 1e-12
        assert up - point <= step * 1.01 + 1e-12
        assert up == round(up, decimals)
        assert down == round(down, decimals)
