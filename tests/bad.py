"""What the tests of bad input share: a case, files that make one, and what a refusal must be."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

INTEGER = {"name": "age", "kind": "integer", "low": 0, "high": 9}
INPUT, BUDGET, IO = 2, 3, 4
SECRET = "SECRET123"
"""Stands in the tables; it may not stand in a message."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """What is changed, the exit code, and what the message must say."""

    says: str
    code: int = INPUT
    options: dict[str, Any] = field(default_factory=dict)
    more: tuple[str, ...] = ()
    prepare: Callable[[Any], dict[str, Any] | None] | None = None
    """Makes files; what it returns are further options."""


def table(content: str | bytes, name: str = "table.csv") -> Callable[[Any], dict[str, Any]]:
    return lambda world: {"table": world.write(name, content)}


def schema(*columns: dict[str, Any], **head: Any) -> Callable[[Any], dict[str, Any]]:
    return lambda world: {"schema": world.write_schema(*columns, **head)}


def schema_text(content: str) -> Callable[[Any], dict[str, Any]]:
    return lambda world: {"schema": world.write("schema.json", content)}


def workload(value: Any) -> Callable[[Any], dict[str, Any]]:
    text = value if isinstance(value, str) else json.dumps(value)
    return lambda world: {"workload": world.write("workload.json", text)}


def misfit(column: dict[str, Any], *, value: str = "SECRET123") -> Callable[[Any], dict[str, Any]]:
    """A table of one column whose second row does not fit."""

    def prepare(world: Any) -> dict[str, Any]:
        first = {"date": "2020-01-31", "category": "A", "ordinal": "A"}.get(column["kind"], "1")
        rows = f"x,kept\n{first},0\n{value},1\n"
        other = {"name": "kept", "kind": "boolean"}
        return {
            "table": world.write("table.csv", rows),
            "schema": world.write_schema({"name": "x", **column}, other),
        }

    return prepare


def wide(columns: int) -> Callable[[Any], dict[str, Any]]:
    """A table of booleans."""

    def prepare(world: Any) -> dict[str, Any]:
        names = [f"c{place}" for place in range(columns)]
        rows = ",".join(names) + "\n" + ",".join("1" * columns) + "\n"
        declared = [{"name": name, "kind": "boolean"} for name in names]
        return {
            "table": world.write("table.csv", rows), "schema": world.write_schema(*declared),
        }  # fmt: skip

    return prepare


def refuse(case: Case, world: Any) -> None:
    """A publication with one thing changed: one message, nothing spent, nothing written."""
    made = (case.prepare(world) if case.prepare else None) or {}
    before = world.files()
    paid = world.ledger_state()
    outcome = world.publish(*case.more, **{**case.options, **made})
    assert outcome.code == case.code, outcome
    assert outcome.out == ""
    assert_one_message(outcome.err, case.says)
    assert len(re.findall(r"Nothing was (?:spent|done)\.", outcome.err)) == 1, outcome.err
    assert world.ledger_state() == paid
    assert world.files() == before


def assert_one_message(err: str, says: str) -> None:
    """One plain line after the progress, which says what it must and shows no value."""
    lines = [line for line in err.splitlines() if not line.endswith(" ...")]
    told = [line for line in lines if line.startswith("sfumato: ")]
    assert len(told) == 1, err
    assert lines[-1] == told[0], err
    assert told[0].isprintable()
    assert re.search(says, told[0]), told[0]
    assert "Traceback" not in err
    assert SECRET not in err
