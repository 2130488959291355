"""``sfumato schema draft`` and ``confirm``: what they write, say and refuse."""

import json
import os
import stat
import sys
from typing import Any

import pytest

from sfumato.ledger import Ledger


def draft(world: Any, *more: str, table: Any = None) -> Any:
    return world.run("schema", "draft", table or world.table, "-o", world.folder / "d.json", *more)


def test_draft_confirm_publish_evaluate_is_the_whole_way(world: Any) -> None:
    drafted = draft(world, "--dataset", "towns", "--ledger", world.ledger)
    assert drafted.code == 0
    assert "without any guarantee" in drafted.out
    assert "sfumato schema confirm" in drafted.out
    refused = world.publish(schema=world.folder / "d.json")
    assert refused.code == 2
    assert "nobody confirmed as public" in refused.err
    assert not world.spends()
    confirmed = world.run("schema", "confirm", world.folder / "d.json", "--yes")
    assert confirmed.code == 0
    assert "values (3: A, B, C)" in confirmed.out
    assert world.publish(schema=world.folder / "d.json").code == 0
    assert (
        world.run("evaluate", world.out, "--against", world.table, "--ledger", world.ledger).code
        == 0
    )


def test_the_look_is_shown_by_the_ledger(world: Any) -> None:
    draft(world, "--dataset", "towns", "--ledger", world.ledger)
    (entry,) = Ledger.open(world.ledger, dataset="towns").entries()
    assert entry.event == "look"
    shown = world.run("ledger", "show", "--ledger", world.ledger)
    assert "schema draft" in shown.out


def test_a_draft_as_json_is_what_the_file_holds_and_nothing_else_is_said(world: Any) -> None:
    outcome = draft(world, "--json")
    assert outcome.json == json.loads((world.folder / "d.json").read_text())
    assert outcome.err == ""
    assert outcome.json["columns"][0]["unconfirmed"] == ["low", "high"]


def test_a_draft_goes_to_schema_json_unless_told_otherwise(
    world: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.schema.unlink()
    monkeypatch.chdir(world.folder)
    assert world.run("schema", "draft", "table.csv").code == 0
    assert "unconfirmed" in world.schema.read_text()


def test_a_file_that_exists_is_refused_before_anything_is_read_or_noted(world: Any) -> None:
    (world.folder / "d.json").write_text("mine")
    outcome = draft(world, "--dataset", "towns", "--ledger", world.ledger)
    assert (outcome.code, world.ledger.exists()) == (2, False)
    assert "--force" in outcome.err
    assert draft(world, "--force").code == 2
    assert (world.folder / "d.json").read_text() == "mine"
    (world.folder / "d.json").write_bytes(world.schema.read_bytes())
    assert draft(world, "--force").code == 0
    assert "unconfirmed" in (world.folder / "d.json").read_text()


@pytest.mark.parametrize("name", ["table.csv", "./table.csv", "link.csv", "../world/table.csv"])
def test_a_draft_never_takes_the_place_of_its_table(
    name: str, world: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(world.folder)
    (world.folder / "link.csv").symlink_to("table.csv")
    before = world.files()
    outcome = world.run("schema", "draft", "table.csv", "-o", name, "--force", "-q")
    assert outcome.code == 2
    assert "holds the input" in outcome.err
    assert world.files() == before


def test_a_table_that_looks_like_a_schema_is_not_replaced_either(world: Any) -> None:
    table = world.write("table.json", '[{"age": 1, "town": "A"}, {"age": 2, "town": "B"}]')
    outcome = world.run("schema", "draft", table, "-o", table, "--force", "-q")
    assert outcome.code == 2
    assert "holds the input" in outcome.err
    assert table.read_text().startswith("[{")


@pytest.mark.parametrize("force", [[], ["--force"]])
def test_what_is_no_regular_file_is_never_replaced_by_a_draft(force: list[str], world: Any) -> None:
    place = world.folder / "pipe.json"
    os.mkfifo(place)
    outcome = world.run("schema", "draft", world.table, "-o", place, "-q", *force)
    assert outcome.code == 2
    assert stat.S_ISFIFO(place.lstat().st_mode)


def test_a_name_too_long_for_a_draft_is_refused_before_the_table_is_read(world: Any) -> None:
    place = world.folder / ("d" * 245 + ".json")
    told = ["--dataset", "towns", "--ledger", str(world.ledger)]
    outcome = world.run("schema", "draft", world.table, "-o", place, "-q", *told)
    assert outcome.code == 4
    assert "File name too long" in outcome.err
    assert not world.ledger.exists()


def test_a_file_without_a_header_is_drafted_with_names(world: Any) -> None:
    raw = world.write("raw.csv", "39, Rome\n27, Oslo\n" * 30)
    refused = draft(world, table=raw)
    assert refused.code == 2
    assert "--names" in refused.err
    assert "Rome" not in refused.err
    assert not (world.folder / "d.json").exists()
    assert draft(world, "--names", "age, town", "--json", table=raw).json["file"] == {
        "names": ["age", "town"],
        "trim": True,
    }
    assert draft(world, "--no-header", "--json", "--force", table=raw).json["file"]["names"] == [
        "c1",
        "c2",
    ]


@pytest.mark.parametrize(
    ("more", "code", "says"),
    [
        (("--names", "a,b,c"), 2, "has 2 fields, but 3 names"),
        (("--names", "a,a"), 2, "stand twice"),
        (("--names", "a,"), 2, "must not be empty"),
        (("--names", "a,b", "--header"), 2, "Give one of both"),
        (("--encoding", "klingon"), 2, "encoding must be"),
        (("--dataset", " "), 2, "dataset"),
    ],
)
def test_a_draft_that_can_not_be_made_is_one_message_and_no_file(
    more: tuple[str, ...], code: int, says: str, world: Any
) -> None:
    outcome = draft(world, *more)
    assert (outcome.code, outcome.out) == (code, "")
    assert says in outcome.err
    assert len(outcome.err.strip().splitlines()) == 1
    assert not (world.folder / "d.json").exists()


def test_a_table_that_is_not_there_is_no_draft(world: Any) -> None:
    assert draft(world, table=world.folder / "none.csv").code == 4


def test_without_somebody_to_ask_nothing_is_confirmed(
    world: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    draft(world)
    before = (world.folder / "d.json").read_text()
    monkeypatch.setattr(sys.stdin, "isatty", lambda: False, raising=False)
    outcome = world.run("schema", "confirm", world.folder / "d.json")
    assert outcome.code == 2
    assert "add --yes" in outcome.err
    assert "low 0, high 10" in outcome.out
    assert (world.folder / "d.json").read_text() == before


@pytest.mark.parametrize(("answer", "code"), [(True, 0), (False, 2)])
def test_a_person_at_a_terminal_is_asked(
    answer: bool, code: int, world: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    draft(world)
    before = (world.folder / "d.json").read_text()
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    monkeypatch.setattr("typer.confirm", lambda question: answer)
    assert world.run("schema", "confirm", world.folder / "d.json").code == code
    assert ((world.folder / "d.json").read_text() == before) is not answer


def test_some_columns_are_confirmed_and_the_others_are_named(world: Any) -> None:
    draft(world)
    outcome = world.run("schema", "confirm", world.folder / "d.json", "age", "--yes")
    assert "left        town" in outcome.out
    done = world.run("schema", "confirm", world.folder / "d.json", "--yes", "--json")
    assert done.json == {"confirmed": {"town": ["values"]}, "left": {}}


def test_an_unknown_column_is_not_confirmed(world: Any) -> None:
    draft(world)
    outcome = world.run("schema", "confirm", world.folder / "d.json", "agee", "--yes")
    assert outcome.code == 2
    assert "no column 'agee'" in outcome.err


def test_the_group_alone_prints_its_help(world: Any) -> None:
    outcome = world.run("schema")
    assert outcome.code == 0
    assert "confirm" in outcome.out


def test_names_are_read_as_a_line_of_csv(world: Any) -> None:
    table = world.folder / "raw.csv"
    table.write_text("".join(f"{n % 50},{'fm'[n % 2]}\n" for n in range(200)))
    asked = ("--names", '"age", "town, state"')
    assert draft(world, *asked, table=table).code == 0
    drafted = json.loads((world.folder / "d.json").read_text())
    assert drafted["file"]["names"] == ["age", "town, state"]
    refused = draft(world, "--names", 'a,"b', "--force", table=table)
    assert refused.code == 2
    assert "--names can't be read" in refused.err


def test_a_schema_remembers_encoding_and_delimiter(world: Any) -> None:
    table = world.folder / "towns.csv"
    rows = "".join(f"{('Köln', 'Rom')[n % 2]}:{n % 5}\n" for n in range(400))
    table.write_bytes(("ort:größe\n" + rows).encode("latin-1"))
    asked = ("--encoding", "latin-1", "--delimiter", ":", "--dataset", "towns")
    assert draft(world, *asked, "--ledger", world.ledger, table=table).code == 0
    schema = world.folder / "d.json"
    assert json.loads(schema.read_text())["file"] == {"encoding": "latin-1", "delimiter": ":"}
    assert world.run("schema", "confirm", schema, "--yes").code == 0
    given = ("--schema", schema, "--epsilon", "1", "--ledger", world.ledger, "--out", world.out)
    done = world.run("publish", table, *given)
    assert done.code == 0, done.err
    against = ("--against", table, "--ledger", world.ledger)
    assert world.run("evaluate", world.out, *against).code == 0
    wrong = world.run("publish", table, *given, "--encoding", "utf-16", "--force")
    assert wrong.code == 2
    assert "not utf-16" in wrong.err
