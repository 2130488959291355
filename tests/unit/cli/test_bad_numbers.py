"""Numbers without bins that are declared wrongly: one message, exit code 2, nothing spent."""

import re
from pathlib import Path
from typing import Any

import pytest

from bad import Case, assert_one_message, refuse, schema, table

TOWN = {"name": "town", "kind": "category", "values": ["A", "B", "C"]}
DAY = {"name": "day", "kind": "date", "low": "2020-01-01", "high": "2020-12-31"}


def number(
    kind: str, says: str, *others: dict[str, Any], head: Any = None, **declared: Any
) -> Case:
    """A schema in which the age is declared anew, beside others, with rules or combinations."""
    column = {"name": "age", "kind": kind, **declared}
    return Case(prepare=schema(column, *(others or (TOWN,)), **(head or {})), says=says)


def whole(says: str, **declared: Any) -> Case:
    return number("integer", says, **{"low": 0, "high": 9_999, **declared})


def real(says: str, **declared: Any) -> Case:
    return number("number", says, **{"low": 0, "high": 9_999, "resolution": 0.5, **declared})


def ruled(says: str, *rules: Any, **head: Any) -> Case:
    """Rules between an age of 0 to 9,999, a later number and a day."""
    late = {"name": "late", "kind": "integer", "low": 20_000, "high": 90_000}
    head = {"rules": list(rules), **head}
    return number("integer", says, late, DAY, TOWN, head=head, low=0, high=9_999)


CASES = {
    "a resolution of 0": whole("age.*resolution must be.*got 0", resolution=0),
    "a negative resolution": whole("age.*resolution must be.*got -1", resolution=-1),
    "a fraction of a whole number": whole("age.*resolution must be.*got 0.5", resolution=0.5),
    "a resolution that is text": whole("age.*resolution must be.*got 'x'", resolution="x"),
    "a real resolution of 0": real("age.*resolution must be above 0", resolution=0),
    "a negative real resolution": real("age.*resolution must be above 0", resolution=-0.5),
    "no resolution": real("age.*needs low, high and resolution.*no resolution", resolution=None),
    "a resolution of nothing": real("more than 15 digits.*coarser", resolution=1e-30),
    "an infinite limit": real("age.*high must be a finite number", high=1e999),
    "no number for a limit": real("age.*low must be a finite number", low=float("nan")),
    "low above high": whole("age.*low 9999 is above high 0", low=9_999, high=0),
    "real low above high": real("age.*low 9.5 is above high 0", low=9.5, high=0),
    "a day after its limit": Case(
        prepare=schema({**DAY, "high": "2019-01-01"}, TOWN), says="day.*is after high"
    ),
    "more than a billion whole numbers": whole(
        "1,000,000,001 possible values.*at most 1,000,000,000.*coarser", high=10**9
    ),
    "more than a billion cents": real(
        "10,000,000,001 possible values.*coarser", high=10**8, resolution=0.01
    ),
    "more than a billion moments": Case(
        prepare=schema(
            {
                "name": "at",
                "kind": "datetime",
                "low": "2020-01-01T00:00:00",
                "high": "2021-01-01T00:00:00",
                "precision": "microsecond",
            },
            TOWN,
        ),
        says="possible values.*coarser",
    ),
    "a special code above the limits": whole("10000 in alone is no value", alone=[10_000]),
    "a special code below the limits": whole("-1 in alone is no value", alone=[-1]),
    "a special code between two values": whole(
        "5 in alone is no value.*in steps of 10", resolution=10, alone=[5]
    ),
    "a real special code between two values": real("0.3 in alone is no value", alone=[0.3]),
    "a special code that is text": whole("alone must be.*list.*of numbers", alone=["99"]),
    "a special code twice": whole("alone must be", alone=[99, 99]),
    "special codes that are none": whole("alone must be", alone=99),
    "special codes in a list": whole("alone must be", alone=[[99]]),
    "special codes with steps": whole("step shares codes", step=10, alone=[99]),
    "special codes with edges": number(
        "number", "declared with low, high and resolution", edges=[0, 10], alone=[5]
    ),
    "edges and limits": real("low, high and resolution, or edges, not both", edges=[0, 10]),
    "bins, which only releases have": whole("bins", bins=[5, 10]),
    "days as whole numbers": whole("age.*low must be", low="2020-01-01", high="2020-12-31"),
    "days as numbers": real("age.*low must be", low="2020-01-01", high="2020-12-31"),
    "numbers as days": number("date", "age.*must be dates", low=0, high=9_999),
    "a rule of an unknown column": ruled("no column 'billed'", "age <= billed"),
    "a rule of a column without order": ruled("'town' is of kind category", "age <= town"),
    "a rule of a number and a day": ruled("can't be compared", "age <= day"),
    "a rule of one column": ruled("compares a column with itself", "age < age"),
    "a rule with a constant": ruled("is a constant", "age < 100"),
    "a rule that excludes everything": ruled("late <= age.*", "late <= age"),
    "rules that exclude everything together": ruled("rule", "age < late", "late < age"),
    "rules that are one text": ruled("rules must be a list", rules="age <= late"),
    "a rule that is no text": ruled("rule", 7),
    "a rule that is no comparison": ruled("rule", "age"),
    "impossible combinations of too many values": number(
        "integer",
        "more than the 1,000,000",
        TOWN,
        head={"impossible": [{"age": [0, 5], "town": ["A"]}]},
        low=0,
        high=10**8,
    ),
    "impossible combinations that exclude everything": number(
        "integer",
        "exclude every row",
        TOWN,
        head={"impossible": [{"age": [0, 9_999], "town": ["A", "B", "C"]}]},
        low=0,
        high=9_999,
    ),
    "a public total of a number without bins": Case(
        prepare=lambda world: {
            "schema": world.write_schema(
                {"name": "age", "kind": "integer", "low": 0, "high": 300}, TOWN
            ),
            "totals": world.write(
                "totals.json",
                '{"totals": [{"columns": ["age"], "counts": ['
                + ",".join(f"[{age}, 1]" for age in range(301))
                + "]}]}",
            ),
        },
        options={"method": "independent"},
        says="needs bins of 'age'.*Declare a step, or edges",
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_number_that_is_declared_wrongly_is_refused_in_one_message(
    case: Case, world: Any
) -> None:
    refuse(case, world)


@pytest.mark.parametrize("kind", ["integer", "number"])
def test_days_in_a_table_that_are_declared_as_numbers_are_refused_where_reading_is_strict(
    kind: str, world: Any
) -> None:
    limits = {"low": 0, "high": 9_999} | ({"resolution": 1} if kind == "number" else {})
    made = schema({"name": "age", "kind": kind, **limits}, TOWN)(world)
    made |= table("age,town\n2020-01-31,A\n2020-02-01,B\n")(world)
    refuse(
        Case(options=made, more=("--strict",), says="age.*row 1: the value is not a.* number"),
        world,
    )


def test_a_number_that_is_declared_right_is_published(world: Any) -> None:
    """So that the refusals above are about what they change."""
    made = schema(
        {"name": "age", "kind": "integer", "low": 0, "high": 9_999, "alone": [9_999]}, TOWN
    )(world)
    outcome = world.publish(**made)
    assert outcome.code == 0, outcome
    assert Path(world.out, "release.json").exists()
    assert len(world.spends()) >= 1


def test_a_method_that_needs_a_delta_or_a_public_number_of_rows_is_refused_before_trees(
    world: Any,
) -> None:
    made = schema({"name": "age", "kind": "integer", "low": 0, "high": 9_999}, TOWN)(world)
    for method in ("privbayes", "dp2pub"):
        outcome = world.publish("--method", method, **made)
        assert outcome.code == 2
        assert_one_message(outcome.err, "protects one row that is replaced")
        assert len(re.findall(r"Nothing was spent\.", outcome.err)) == 1
        assert world.spends() == []
