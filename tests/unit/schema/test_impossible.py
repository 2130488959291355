"""Structural zeros: how they are written, what they exclude, and that something is left."""

import json
from datetime import date
from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from sfumato.errors import SchemaError
from sfumato.schema import Boolean, Category, Date, Integer, Number, Ordinal, Schema
from sfumato.schema import impossible as declared
from sfumato.schema.impossible import Impossible, witness
from sfumato.schema.schema import possible, possible_codes, possible_rows

SCHEMA = Schema(
    columns=(
        Integer(name="age", low=4, high=17),
        Ordinal(name="grade", values=("low", "mid", "high"), missing=True),
        Boolean(name="member"),
        Number(name="income", edges=(0, 10, 20, 50)),
        Date(name="visit", low=date(2020, 1, 1), high=date(2020, 12, 31), step="month"),
        Integer(name="weeks", low=0, high=51, step=4, missing=True),
        Category(name="help", values=("1", "2"), other=True),
    ),
    dataset="study",
)


# ---------------------------------------------------------------- reading and writing


def test_values_become_codes_intervals_with_both_ends() -> None:
    entry = {"age": [4, 5], "grade": ["high", "low"], "income": [10, 20], "member": [True]}
    (found,) = SCHEMA.excluding([entry]).impossible
    assert dict(found.parts) == {"age": (0, 1), "grade": (0, 2), "income": (1,), "member": (1,)}


def test_missing_and_other_values_can_be_declared_too() -> None:
    entry = {"weeks": ["(missing)"], "help": ["(other)"], "grade": ["(missing)"]}
    (found,) = SCHEMA.excluding([entry]).impossible
    assert dict(found.parts) == {"weeks": (13,), "help": (2,), "grade": (3,)}


def test_days_are_whole_periods_and_an_end_beyond_the_limits_is_the_limit() -> None:
    entry = {"visit": ["2019-05-05", "2020-02-29"], "age": [16, 200]}
    (found,) = SCHEMA.excluding([entry]).impossible
    assert dict(found.parts) == {"visit": (0, 1), "age": (12, 13)}


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ({"aeg": [4, 5]}, "no column 'aeg' .* Did you mean 'age'?"),
        ({"grade": ["hihg"]}, "'grade' has no value 'hihg'; .* Did you mean 'high'?"),
        ({"help": [1]}, "'help' has no value 1; it has 1, 2"),
        ({"age": ["(missing)"]}, "'age' has no value '\\(missing\\)'"),
        ({"income": [5, 10]}, r"does not begin and end with its bins; .* is \[0, 10\]"),
        ({"weeks": [4, 5]}, r"does not begin and end with its bins; .* is \[4, 7\]"),
        ({"visit": ["2020-02-01", "2020-02-10"]}, r"is \['2020-02-01', '2020-02-29'\]"),
        ({"age": [18, 20]}, "lies outside the limits of 'age'"),
        ({"income": [20, 20]}, "does not begin and end with its bins"),
        ({"age": [9, 5]}, "ends before it begins"),
        ({"age": [4]}, r"are \[low, high\] or \['\(missing\)'\], got \[4\]"),
        ({"age": [4, "five"]}, "'five' can't be an end of an interval of 'age'"),
        ({"age": [4, True]}, "True can't be an end"),
        ({"age": "45"}, "impossible values of 'age' are a list"),
        ({"grade": []}, "impossible values of 'grade' are a list"),
        ({}, "an impossible combination is an object"),
        (["age"], "an impossible combination is an object"),
    ],
)
def test_what_can_not_be_meant_is_refused_with_its_place(entry: object, says: str) -> None:
    with pytest.raises(SchemaError, match=f"impossible combination 2: .*{says}"):
        SCHEMA.excluding([{"age": [4, 4], "member": [True]}, entry])  # type: ignore[list-item]


def test_codes_given_by_hand_must_be_those_of_the_column() -> None:
    with pytest.raises(SchemaError, match=r"'age' has the codes 0..13, got \(13, 14\)"):
        Schema(columns=SCHEMA.columns, impossible=(Impossible(parts=(("age", (13, 14)),)),))
    with pytest.raises(SchemaError, match="are one interval or missing, got the codes"):
        Schema(columns=SCHEMA.columns, impossible=(Impossible(parts=(("age", (1, 3)),)),))
    with pytest.raises(SchemaError, match="must rise"):
        Impossible(parts=(("age", (3, 1)),))
    with pytest.raises(SchemaError, match="each of them once"):
        Impossible(parts=(("age", (3,)), ("age", (1,))))


@given(data=st.data())
def test_a_schema_with_impossible_combinations_reads_back_as_itself(data, any_column) -> None:
    columns = data.draw(st.lists(any_column, min_size=2, max_size=4, unique_by=lambda c: c.name))
    found = []
    for column in columns:
        low = data.draw(st.integers(0, column.size - 1))
        high = data.draw(st.integers(low, column.size - 1))
        if high == column.missing_code and high > low:
            high -= 1
        found.append((column.name, tuple(range(low, high + 1))))
    assume(any(len(codes) < c.size for c, (_, codes) in zip(columns, found, strict=True)))
    schema = Schema(columns=tuple(columns), impossible=(Impossible(parts=tuple(found)),))
    assert Schema.from_dict(json.loads(json.dumps(schema.to_dict()))) == schema


def test_a_schema_without_any_is_written_as_before() -> None:
    assert "impossible" not in SCHEMA.to_dict()
    with pytest.raises(SchemaError, match="impossible must be a list"):
        Schema.from_dict(SCHEMA.to_dict() | {"impossible": {"age": [4, 5]}})


def test_a_domain_file_may_have_a_column_called_impossible() -> None:
    assert Schema.from_dict({"impossible": 3}).names == ("impossible",)


def test_picking_columns_keeps_what_speaks_of_them_alone() -> None:
    schema = SCHEMA.excluding(
        [{"age": [4, 5], "grade": ["high"]}, {"age": [4, 4], "member": [True]}]
    )
    assert schema.pick(["grade", "age"]).impossible == schema.impossible[:1]
    assert schema.pick(["age"]).impossible == ()


# ---------------------------------------------------------------- what is left


SIZES = {"a": 2, "b": 3, "c": 2}


@st.composite
def combinations(draw):
    names = draw(st.lists(st.sampled_from(list(SIZES)), min_size=1, max_size=3, unique=True))
    parts = []
    for name in names:
        codes = draw(st.sets(st.integers(0, SIZES[name] - 1), min_size=1))
        parts.append((name, tuple(sorted(codes))))
    return Impossible(parts=tuple(parts))


def holds(combination: Impossible, row: dict[str, int]) -> bool:
    return all(row[name] in codes for name, codes in combination.parts)


def all_rows() -> list[dict[str, int]]:
    return [dict(zip(SIZES, codes, strict=True)) for codes in product(*map(range, SIZES.values()))]


def categories(found: list[Impossible]) -> Schema:
    return Schema(
        columns=tuple(
            Category(name=name, values=tuple("xyz"[:size])) for name, size in SIZES.items()
        ),
        impossible=tuple(found),
    )


@given(found=st.lists(combinations(), max_size=8))
def test_a_possible_row_is_found_exactly_if_there_is_one(found: list[Impossible]) -> None:
    left = [row for row in all_rows() if not any(holds(each, row) for each in found)]
    seen = witness(SIZES, found)
    assert (seen is None) == (not left)
    if seen is not None:
        assert any(seen.items() <= row.items() for row in left)
        schema = categories(found)
        assert possible_codes(schema) == seen
        rows = {name: np.array([row[name] for row in all_rows()]) for name in SIZES}
        kept = possible_rows(schema, rows)
        assert [row for row, good in zip(all_rows(), kept, strict=True) if good] == left
    else:
        with pytest.raises(SchemaError, match="exclude every row: no values of"):
            categories(found)


@given(
    found=st.lists(combinations(), max_size=6),
    names=st.permutations(list(SIZES)).flatmap(
        lambda order: st.integers(0, 3).map(lambda n: tuple(order[:n]))
    ),
)
def test_possible_cells_are_those_that_brute_force_finds(
    found: list[Impossible], names: tuple[str, ...]
) -> None:
    found = [each for each in found if witness(SIZES, [each]) is not None]
    if witness(SIZES, found) is None:
        found = found[:1]
    cells = possible(categories(found), names)
    assert cells.shape == tuple(SIZES[name] for name in names)
    inside = [each for each in found if set(each.names) <= set(names)]
    for codes in np.ndindex(cells.shape):
        row = dict(zip(names, codes, strict=True))
        assert cells[codes] == (not any(holds(each, row) for each in inside))


def test_many_columns_and_combinations_are_decided_at_once() -> None:
    columns = tuple(Boolean(name=f"c{place}") for place in range(200))
    pairs = [{f"c{i}": [True], f"c{i + 1}": [True]} for i in range(199)]
    schema = Schema(columns=columns).excluding(pairs)
    assert set(possible_codes(schema).values()) == {0}


def test_a_declaration_too_hard_to_decide_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Six pigeons in five holes: unsatisfiable, and long to find out."""
    columns = tuple(Category(name=f"p{i}", values=tuple("abcde")) for i in range(6))
    pairs = [
        {f"p{i}": [hole], f"p{j}": [hole]} for i in range(6) for j in range(i) for hole in "abcde"
    ]
    with pytest.raises(SchemaError, match="the 75 combinations declared impossible exclude every"):
        Schema(columns=columns).excluding(pairs)
    monkeypatch.setattr(declared, "MOST_STEPS", 100)
    with pytest.raises(SchemaError, match="was not decided in 100 steps"):
        Schema(columns=columns).excluding(pairs)
