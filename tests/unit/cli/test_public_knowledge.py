"""What the public knows, given to ``sfumato publish``: it is used, or refused at no cost."""

import json
import re
from typing import Any

import pyarrow.parquet as pq
import pytest

INPUT, IO = 2, 4
TOWNS = {"columns": ["town"], "counts": [["A", 100], ["B", 80], ["C", 60]]}
AGES = {"columns": ["age"], "counts": [[age, 1] for age in range(10)]}
BOTH = {
    "columns": ["age", "town"],
    "counts": [[age, town, 8] for age in range(10) for town in "ABC"],
}


def write_totals(world: Any, *entries: Any) -> Any:
    return world.write("totals.json", json.dumps({"totals": entries}))


def test_a_release_agrees_with_public_totals(world: Any) -> None:
    """The ten cells of a town are rounded to whole rows, each by less than one."""
    outcome = world.publish(method="histogram", totals=write_totals(world, TOWNS))
    assert outcome.code == 0, outcome.err
    towns = pq.read_table(world.out / "data.parquet")["town"].to_pylist()
    assert [towns.count(town) for town in "ABC"] == pytest.approx([100, 80, 60], abs=10)
    assert len(towns) == 240


def test_no_impossible_row_is_published(world: Any) -> None:
    excluded = [{"age": [0, 4], "town": ["A"]}, {"age": [9, 9]}]
    outcome = world.publish(schema=world.write_schema(impossible=excluded), method="independent")
    assert outcome.code == 0, outcome.err
    rows = pq.read_table(world.out / "data.parquet").to_pylist()
    assert rows
    assert not [row for row in rows if row["age"] == 9 or (row["age"] < 5 and row["town"] == "A")]


@pytest.mark.parametrize(
    ("excluded", "says"),
    [
        ([{"agee": [0, 1]}], "impossible combination 1: no column 'agee'.*mean 'age'"),
        ([{"age": [0, 1], "town": ["X"]}], "'town' has no value 'X'; it has A, B, C"),
        ([{"age": [0, 5]}, {"age": [6, 9]}], "exclude every row: no values of age are left"),
    ],
)
def test_a_bad_declaration_meets_one_message_and_spends_nothing(
    excluded: Any, says: str, world: Any
) -> None:
    refused(world, INPUT, says, schema=world.write_schema(impossible=excluded))


@pytest.mark.parametrize(
    ("rules", "says"),
    [
        (["age <= agee"], "rule 'age <= agee': no column 'agee'.*mean 'age'"),
        (["age <= 5"], "5 is a constant, and a comparison with a constant is not a rule"),
        (["age < town"], "'town' is of kind category, which has no order"),
        ("age < town", "rules must be a list of texts"),
        ([["age", "town"]], "a rule is a text"),
    ],
)
def test_a_bad_rule_meets_one_message_and_spends_nothing(rules: Any, says: str, world: Any) -> None:
    refused(world, INPUT, says, schema=world.write_schema(rules=rules))


@pytest.mark.parametrize(
    ("entries", "options", "says"),
    [
        ([{"columns": ["town"]}], {}, 'an object with "columns" and "counts"'),
        ([{"columns": ["town"], "counts": [["X", 5]]}], {}, "'town' has no value 'X'"),
        ([TOWNS, AGES], {}, "the totals of town and of age differ in the rows in all"),
        ([TOWNS], {"rows": "5"}, "are of 240 rows, but rows is 5"),
        ([BOTH], {"method": "independent"}, "can't keep the public total of age × town"),
        ([TOWNS], {"method": "dp2pub", "neighbors": "replace"}, "dp2pub can't use public totals"),
    ],
)
def test_totals_that_can_not_be_used_meet_one_message_and_spend_nothing(
    entries: Any, options: Any, says: str, world: Any
) -> None:
    given = {"method": "histogram", "totals": write_totals(world, *entries), **options}
    refused(world, INPUT, says, **given)


def test_a_file_of_totals_that_is_not_there_is_named(world: Any) -> None:
    refused(world, IO, "can't read none.json", method="histogram", totals="none.json")


def refused(world: Any, code: int, says: str, **options: Any) -> None:
    outcome = world.publish(**options)
    assert outcome.code == code, outcome
    assert outcome.err.count("sfumato: ") == 1
    assert re.search(says, " ".join(outcome.err.splitlines())), outcome.err
    assert world.spends() == []
    assert not world.out.exists()
