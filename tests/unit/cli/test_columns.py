"""Columns of every kind from the command line: options, messages, nothing spent on bad input."""

import subprocess
import sys
from datetime import datetime
from typing import Any

import pyarrow.parquet as pq
import pytest

VISIT = {
    "name": "visit", "kind": "datetime", "low": "2024-01-01", "high": "2024-12-31",
    "step": "month", "precision": "minute", "format": "%d.%m.%Y %H:%M", "missing": True,
}  # fmt: skip
PAID = {"name": "paid", "kind": "boolean", "texts": ["nein", "ja"]}
ROWS = "".join(f"{1 + row % 28:02}.{1 + row % 12:02}.2024 10:30^ja\n" for row in range(200))


def test_a_delimiter_can_be_declared_for_publishing_and_comparing(world: Any) -> None:
    world.write_schema(VISIT, PAID)
    table = world.write("table.csv", "visit^paid\n" + ROWS)
    made = world.publish("--csv", table=table, delimiter="^", epsilon="100")
    assert made.code == 0, made.err
    days = pq.read_table(world.out / "data.parquet")["visit"].to_pylist()
    assert {day.month for day in days if day is not None} == set(range(1, 13))
    first = (world.out / "data.csv").read_text().splitlines()[1].replace('"', "").split(",")
    assert datetime.strptime(first[0], "%d.%m.%Y %H:%M").year == 2024
    against = ["--against", str(table), "--ledger", str(world.ledger)]
    compared = world.run("evaluate", str(world.out), *against, "--delimiter", "^")
    assert compared.code == 0, compared.err


@pytest.mark.parametrize("spelling", ["tab", "\\t", "\t"])
def test_a_tab_can_be_spelled(spelling: str, world: Any) -> None:
    table = world.write("table.csv", world.table.read_text().replace(",", "\t"))
    assert world.publish(table=table, delimiter=spelling).code == 0


def test_a_delimiter_of_two_characters_is_refused_and_costs_nothing(world: Any) -> None:
    outcome = world.publish(delimiter="||")
    assert outcome.code == 2
    assert "delimiter must be one character" in outcome.err
    assert world.spends() == []


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("2024-01-31T10:30^ja", r"row 201: the value is not a time written as %d.%m.%Y %H:%M"),
        ("SECRET123^ja", r"row 201: the value is not a time written as %d.%m.%Y %H:%M"),
        ("31.02.2024 10:30^ja", r"row 201: the value is not a time written as %d.%m.%Y %H:%M"),
        ("31.01.2024 10:30^SECRET123", "row 201: the value is not 'nein' or 'ja'"),
        ("31.01.2024 10:30^", "row 201: the value is missing"),
    ],
)
def test_a_value_of_another_format_is_refused_without_its_text(
    row: str, message: str, world: Any
) -> None:
    world.write_schema(VISIT, PAID)
    table = world.write("table.csv", f"visit^paid\n{ROWS}{row}\n")
    outcome = world.publish("--strict", table=table, delimiter="^")
    assert outcome.code == 2
    assert message in outcome.err
    assert "SECRET123" not in outcome.err
    assert "2024-01-31" not in outcome.err
    assert world.spends() == []


def test_free_text_is_refused_by_its_kind_and_left_out_by_its_name(world: Any) -> None:
    world.write_schema(PAID, {"name": "remarks", "kind": "text"})
    table = world.write("table.csv", "paid,remarks,key\n" + "ja,SECRET123,7\n" * 50)
    refused = world.publish(table=table)
    assert refused.code == 2
    assert "keys and free text" in refused.err
    world.write_schema(PAID, exclude=["remarks"])
    made = subprocess.run(  # a process of its own: pytest takes what is logged
        [sys.executable, "-m", "sfumato", *world.arguments(table=table)],
        capture_output=True,
        text=True,
    )
    assert made.returncode == 0
    assert "not read and not published: 'key'" in made.stderr
    assert "remarks" not in made.stderr
    assert "SECRET123" not in made.stdout + made.stderr
    assert pq.read_table(world.out / "data.parquet").column_names == ["paid"]
