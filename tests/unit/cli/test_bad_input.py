"""Whatever is wrong: one message, the right exit code, nothing spent, nothing written.

Each case changes one thing in a publication that works. SECRET123 stands in the tables: it may
not stand in a message.
"""

from typing import Any

import pytest

from bad import (
    BUDGET,
    INPUT,
    INTEGER,
    IO,
    Case,
    assert_one_message,
    refuse,
    schema,
    schema_text,
    wide,
    workload,
)
from sfumato.ledger import Ledger
from sfumato.privacy import OneRow, PureDP


def existing_out(world: Any) -> None:
    world.out.mkdir()
    (world.out / "notes.txt").write_text("SECRET123")


def out_is_a_file(world: Any) -> None:
    world.out.write_text("SECRET123")


def out_below_a_file(world: Any) -> dict[str, Any]:
    return {"out": world.write("file", "SECRET123") / "out"}


def out_holds_the_table(world: Any) -> dict[str, Any]:
    world.out.mkdir()
    (world.out / "release.json").write_text("{}")
    return {"table": world.write("out/data.csv", "age,town\n1,A\n")}


def out_holds_the_ledger(world: Any) -> dict[str, Any]:
    world.out.mkdir()
    (world.out / "release.json").write_text("{}")
    return {"ledger": world.write("out/study.ledger", "")}


def out_holds_more(world: Any) -> None:
    existing_out(world)
    (world.out / "release.json").write_text("{}")


def out_is_a_link(world: Any) -> None:
    world.out.symlink_to(world.folder / "nowhere")


def internal_is_a_file(world: Any) -> None:
    world.internal.write_text("SECRET123")


def a_cap_that_stands(world: Any) -> None:
    Ledger.open(world.ledger, dataset="towns", cap=PureDP("0.5")).close()


def an_earlier_release(world: Any) -> None:
    book = Ledger.open(world.ledger, dataset="towns")
    book.spend(PureDP(1), label="earlier", protect=OneRow())
    book.close()


def foreign_ledger(world: Any) -> None:
    world.ledger.write_bytes(b"SECRET123 is no ledger")


def empty_ledger(world: Any) -> None:
    world.ledger.write_bytes(b"")


def damaged_ledger(world: Any) -> None:
    book = Ledger.open(world.ledger, dataset="towns")
    book.look("first")
    book.close()
    content = bytearray(world.ledger.read_bytes())
    place = content.index(b'"first"') + 1
    content[place : place + 5] = b"worst"
    world.ledger.write_bytes(bytes(content))


def million_categories(world: Any) -> dict[str, Any]:
    values = [str(value) for value in range(1_000_001)]
    return schema({"name": "age", "kind": "category", "values": values}, INTEGER)(world)


BUDGETS = {
    **{
        f"epsilon {text!r}": Case(options={"epsilon": text}, says="epsilon must be")
        for text in (
            *("0", "-1", "nan", "inf", "1e400", "1e-400", "１", "one", "", "1e9", "1/0", "0x1"),
        )
    },
    **{
        f"delta {text!r}": Case(options={"delta": text}, says="delta must be")
        for text in ("0", "1", "2", "-1e-9", "nan", "1e-400", "")
    },
    "a cap of text": Case(options={"cap": "much"}, says="--cap.*epsilon must be"),
    "an empty cap": Case(options={"cap": ""}, says="--cap.*epsilon must be"),
    "a cap with a bad delta": Case(options={"cap": "1,2"}, says="--cap.*delta must be"),
    "a cap that is too small": Case(
        options={"cap": "0.99"}, code=BUDGET, says="only epsilon=0.99 is left of the cap"
    ),
    "a second cap": Case(
        prepare=a_cap_that_stands, options={"cap": "3"}, says="has the cap epsilon=0.5, not"
    ),
    "a cap from before": Case(
        prepare=a_cap_that_stands, code=BUDGET, says="only epsilon=0.5 is left of the cap"
    ),
    "Gaussian noise under a pure cap": Case(
        prepare=workload(
            {"ranges": [{"age": [n % 10, 9], "town": ["ABC"[n // 10]] * 2} for n in range(30)]}
        ),
        options={"cap": "5,0", "method": "mwem", "delta": "1e-9"},
        more=("--set", "rounds=30"),
        code=BUDGET,
        says="only pure costs fit the cap",
    ),
    "other neighbors than before": Case(
        prepare=an_earlier_release,
        options={"neighbors": "replace"},
        code=BUDGET,
        says="the ledger protects one row added or removed",
    ),
    "a person without a bound": Case(options={"person": "age"}, says="--person.*--max-rows"),
    "a bound without a person": Case(options={"max_rows": "3"}, says="--person.*--max-rows"),
    "a bound of no rows": Case(
        options={"person": "age", "max_rows": "0"}, says="max_rows must be a whole number >= 1"
    ),
    "an unknown person": Case(
        options={"person": "agee", "max_rows": "2"}, says=r"'agee' \(did you mean 'age'\?\)"
    ),
    "unknown neighbors": Case(
        options={"neighbors": "bogus"}, says="neighbors must be one of 'add-remove', 'replace'"
    ),
    "no data set": Case(prepare=schema(dataset=None), says="--dataset NAME"),
    "a blank data set": Case(options={"dataset": "  "}, says="--dataset NAME"),
    "a foreign ledger": Case(prepare=foreign_ledger, code=IO, says="study.ledger"),
    "an empty ledger": Case(prepare=empty_ledger, code=IO, says="study.ledger"),
    "a damaged ledger": Case(prepare=damaged_ledger, code=IO, says="hash"),
    "a ledger in no folder": Case(
        prepare=lambda world: {"ledger": world.folder / "none" / "x.ledger"},
        code=IO,
        says="x.ledger",
    ),
}

METHODS = {
    "an unknown method": Case(options={"method": "magic"}, says="method must be one of auto"),
    "an unknown option": Case(
        options={"method": "mwem"}, more=("--set", "round=3"), says="mwem has no option 'round'"
    ),
    "an option of another method": Case(
        options={"method": "histogram"}, more=("--set", "rounds=3"), says="its options: none"
    ),
    "an option without a value": Case(more=("--set", "rounds"), says="--set takes name=value"),
    "an option without a name": Case(more=("--set", "=3"), says="--set takes name=value"),
    "an option twice": Case(
        options={"method": "mwem"},
        more=("--set", "rounds=1", "--set", "rounds=2"),
        says="--set names rounds twice",
    ),
    "no rounds": Case(
        options={"method": "mwem"}, more=("--set", "rounds=0"), says="rounds must be a whole number"
    ),
    "rounds of text": Case(
        options={"method": "mwem"}, more=("--set", "rounds=x"), says="rounds must be a whole number"
    ),
    "more rounds than targets": Case(
        options={"method": "mwem", "workload": "1-way"},
        more=("--set", "rounds=3"),
        says="rounds must be at most the 2 targets",
    ),
    "neither true nor false": Case(
        options={"method": "mwem"}, more=("--set", "average=maybe"), says="must be true or false"
    ),
    "rows that are counted anyway": Case(
        options={"rows": "5", "neighbors": "replace"},
        says="with replace the number of rows is public and counted: leave --rows out",
    ),
    "no rows": Case(options={"rows": "0"}, says="rows must be a whole number between 1 and"),
    "a negative seed": Case(options={"seed": "-1"}, says="seed must be a whole number >= 0"),
    "2^80 cells in a histogram": Case(
        prepare=wide(80), options={"method": "histogram"}, says="1.21e.24 combin.*independent"
    ),
    "2^80 cells in MWEM": Case(
        prepare=wide(80),
        options={"method": "mwem"},
        more=("--set", "model=dense"),
        says="1.21e.24 combin.*independent",
    ),
    "an unknown workload": Case(
        options={"workload": "4-way"}, says="1-way, 2-way, 3-way or a file"
    ),
    "a workload that is not there": Case(
        options={"workload": "none.json"}, says="1-way, 2-way, 3-way or a file"
    ),
    "more ways than columns": Case(options={"workload": "3-way"}, says="between 1 and 2, got 3"),
    "a workload that is no JSON": Case(
        prepare=workload('{"marginals": ['), says=r"workload.json:1:\d+: not valid JSON"
    ),
    "a workload of something else": Case(prepare=workload([1]), says='has "marginals", "ranges"'),
    "an empty workload": Case(
        prepare=workload({"marginals": []}), says="needs at least one marginal or range"
    ),
    "a workload on an unknown column": Case(
        prepare=workload({"marginals": [["agee"]]}), says="no column 'agee'.*Did you mean 'age'"
    ),
    "a range the wrong way round": Case(
        prepare=workload({"ranges": [{"age": [7, 3]}]}), says="workload.json.*age"
    ),
    "a range twice": Case(
        prepare=workload({"ranges": [{"age": [1, 3]}, {"age": [1, 3]}]}), says="each range once"
    ),
    "a range over 2^80 cells": Case(
        prepare=lambda world: {
            **wide(80)(world),
            **workload({"ranges": [{f"c{n}": [False, True] for n in range(80)}]})(world),
        },
        says="workload",
    ),
}

SCHEMAS = {
    "no schema": Case(options={"schema": "none.json"}, code=IO, says="can't read none.json"),
    "a schema that is no JSON": Case(
        prepare=schema_text('{"sfumato": 1,\n oops'), says="schema.json:2:2: not valid JSON"
    ),
    "a schema that is a list": Case(prepare=schema_text("[]"), says="a schema is a JSON object"),
    "another version": Case(prepare=schema(sfumato=2), says='a schema says "sfumato": 1'),
    "no columns": Case(prepare=schema_text('{"sfumato": 1, "columns": []}'), says="one column"),
    "a column twice": Case(prepare=schema(INTEGER, INTEGER), says="stand twice in the schema"),
    "an unknown kind": Case(
        prepare=schema({"name": "age", "kind": "text"}), says="kind must be one of category"
    ),
    "not confirmed": Case(
        prepare=schema({**INTEGER, "unconfirmed": {"high": 9}}), says="nobody confirmed as public"
    ),
    "low above high": Case(prepare=schema({**INTEGER, "low": 10}), says="column 'age'.*above"),
    "a million categories": Case(
        prepare=million_categories, says="1,000,001 values.*wider bins, group the values, or leave"
    ),
}

OUTPUTS = {
    "a name for what may not be published": Case(
        prepare=lambda world: {"out": world.folder / "x-internal"},
        says="ends in -internal.*Choose another --out",
    ),
    "a folder that is there": Case(prepare=existing_out, says="out exists.*--force"),
    "a folder of somebody else": Case(
        prepare=existing_out, more=("--force",), says="--force replaces releases only"
    ),
    "a release with other files": Case(
        prepare=out_holds_more, more=("--force",), says="notes.txt.*--force replaces releases only"
    ),
    "a file": Case(prepare=out_is_a_file, says="out exists"),
    "a file, by force": Case(
        prepare=out_is_a_file, more=("--force",), says="--force replaces releases only"
    ),
    "a link to nowhere": Case(prepare=out_is_a_link, says="out exists"),
    "below a file": Case(prepare=out_below_a_file, code=IO, says="can't write into.*out: Not a"),
    "around the table": Case(
        prepare=out_holds_the_table, more=("--force",), says="out holds the input"
    ),
    "around the ledger": Case(
        prepare=out_holds_the_ledger, more=("--force",), says="out holds the ledger"
    ),
    "no name": Case(options={"out": "."}, says="out must name a folder"),
    "no name, for a simulation": Case(options={"out": ".", "seed": "1"}, says="out must name"),
    "an internal folder that is a file": Case(
        prepare=internal_is_a_file, more=("--evaluate",), code=IO, says="out-internal: Not a"
    ),
    "a simulation over other files": Case(
        prepare=lambda world: world.internal.mkdir(),
        options={"seed": "1"},
        more=("--force",),
        says="--force replaces releases only",
    ),
}

COMMANDS = {
    "an unknown command line option": Case(more=("--bogus",), says="No such option: --bogus"),
    "a table twice": Case(more=("other.csv",), says="one table is published at a time, got 2"),
    "no epsilon": Case(options={"epsilon": None}, says="Missing option '--epsilon'"),
    "no output": Case(options={"out": None}, says="Missing option '--out'"),
    "rows of text": Case(options={"rows": "many"}, says="'--rows'"),
    "a seed of text": Case(options={"seed": "x"}, says="'--seed'"),
}

PARTS = (BUDGETS, METHODS, SCHEMAS, OUTPUTS, COMMANDS)
CASES = {name: case for part in PARTS for name, case in part.items()}


@pytest.mark.parametrize("name", CASES)
def test_bad_input_meets_one_message_and_spends_nothing(name: str, world: Any) -> None:
    refuse(CASES[name], world)


def test_no_case_hides_another() -> None:
    assert sum(map(len, PARTS)) == len(CASES) >= 80


def test_the_publication_that_the_cases_change_works(world: Any) -> None:
    outcome = world.publish()
    assert outcome.code == 0
    assert len(world.spends()) >= 1
    assert world.out.is_dir()


@pytest.mark.parametrize(
    "command", [("nope",), ("ledger", "nope"), ("demo", "--bogus"), ("evaluate",)]
)
def test_a_command_line_that_can_not_be_parsed_is_bad_input(
    command: tuple[str, ...], run: Any
) -> None:
    outcome = run(*command)
    assert outcome.code == INPUT
    assert outcome.out == ""
    assert_one_message(outcome.err, "^sfumato: ")


@pytest.mark.parametrize("command", [(), ("ledger",), ("--help",), ("publish", "--help")])
def test_help_is_no_error(command: tuple[str, ...], run: Any) -> None:
    outcome = run(*command)
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.startswith("Usage: ")
