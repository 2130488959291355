"""What commands write to: never over something else, and tried before anything is charged."""

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

LONGEST = 255


def words(world: Any, command: str, out: Path) -> list[str]:
    """A command that pays, and its output."""
    if command == "publish":
        return list(world.arguments("-q", out=out, method="histogram"))
    book = ["--ledger", str(world.ledger), "-q"]
    if command == "recommend fit":
        ratings = "user,item,rating\n" + "".join(f"u{n % 9},i{n % 4},3\n" for n in range(36))
        return [
            "recommend", "fit", str(world.write("r.csv", ratings)), "--catalogue",
            str(world.write("c.csv", "item\ni0\ni1\ni2\ni3\n")), "--scale", "1..5", "--epsilon",
            "5", "--unit", "rating", "--dataset", "towns", "--out", str(out), *book,
        ]  # fmt: skip
    table = [str(world.table), "--schema", str(world.schema), "--epsilon", "2", *book]
    if command == "dp2pub":
        return ["dp2pub", *table, "--trust", "semi-honest", "--out", str(out)]
    return ["answers", "simulate", *table, "--column", "town", "-o", f"{out}.jsonl"]


@pytest.mark.parametrize("command", ["publish", "dp2pub", "recommend fit", "answers simulate"])
def test_a_name_is_refused_before_the_charge_or_written(command: str, world: Any) -> None:
    room = LONGEST - len(".jsonl") * (command == "answers simulate")
    before = [path.name for path in world.folder.iterdir()]
    refused = world.run(*words(world, command, world.folder / ("y" * (room + 1))))
    assert (refused.code, world.spends()) == (4, [])
    assert "File name too long" in refused.err
    assert not {path.name for path in world.folder.iterdir()} - {*before, "r.csv", "c.csv"}
    made = world.run(*words(world, command, world.folder / ("y" * room)))
    assert made.code == 0, made.err
    assert world.spends()


def test_a_comparison_that_can_not_be_named_is_refused_before_the_charge(world: Any) -> None:
    out = world.folder / ("y" * (LONGEST - len("-internal") + 1))
    refused = world.publish("--evaluate", "-q", out=out)
    assert (refused.code, world.spends()) == (4, [])
    assert "-internal: File name too long. Nothing was spent." in refused.err


@pytest.mark.parametrize("rows", ["100000000000", "10000000001", "9" * 40])
def test_more_rows_than_can_be_written_are_refused_before_the_charge(rows: str, world: Any) -> None:
    refused = world.publish("-q", rows=rows)
    assert (refused.code, world.spends()) == (2, [])
    assert "rows must be" in refused.err
    assert "Nothing was spent" in refused.err


@pytest.mark.parametrize("share", ["1e-300", "0.99999999999999999999"])
def test_a_share_for_a_schema_that_buys_nothing_is_not_spent(share: str, world: Any) -> None:
    refused = world.publish("-q", schema=None, dataset="towns", infer_share=share)
    assert (refused.code, world.spends()) == (2, [])
    assert "leaves nothing but noise" in refused.err


def test_a_plan_for_next_to_no_epsilon_says_so(world: Any) -> None:
    told = world.run("plan", "--schema", world.schema, "--rows", "9", "--epsilon", "1e-300", "-q")
    assert told.code == 2
    assert "leaves nothing but noise" in told.err


ROWS = json.dumps([{"age": n % 10, "town": "ABC"[n % 3]} for n in range(60)])


@pytest.mark.parametrize("more", [["--evaluate"], ["--force"], ["--evaluate", "--force"]])
def test_a_comparison_never_takes_the_place_of_its_table(more: list[str], world: Any) -> None:
    world.internal.mkdir()
    table = world.write("out-internal/internal.json", ROWS)
    refused = world.publish("-q", *more, table=table)
    assert (refused.code, world.spends()) == (2, [])
    assert "holds the input" in refused.err
    assert table.read_text() == ROWS
    assert world.publish("-q").code == 0
    evaluated = world.run("evaluate", world.out, "--against", table, "--ledger", world.ledger, "-q")
    assert evaluated.code == 2
    assert table.read_text() == ROWS


@pytest.mark.parametrize("command", ["publish", "dp2pub"])
def test_a_release_that_holds_the_schema_is_not_replaced(command: str, world: Any) -> None:
    assert world.publish("-q").code == 0
    world.schema = world.schema.rename(world.out / "schema.json")
    paid = len(world.spends())
    refused = world.run(*words(world, command, world.out), "--force")
    assert (refused.code, len(world.spends())) == (2, paid)
    assert "holds the input" in refused.err
    assert world.schema.exists()


# Files


def test_a_table_of_estimates_replaces_only_its_like(world: Any) -> None:
    assert world.run(*words(world, "answers simulate", world.folder / "a")).code == 0
    estimate = ["answers", "estimate", str(world.folder / "a.jsonl"), "--csv"]
    pipe = world.folder / "pipe.csv"
    os.mkfifo(pipe)
    before = world.files()
    for path in (world.table, pipe):
        refused = world.run(*estimate, str(path), "--force")
        assert refused.code == 2
        assert "--force replaces such only" in refused.err
    assert world.files() == before
    assert stat.S_ISFIFO(pipe.lstat().st_mode)
    for more in ([], ["--force"]):
        assert world.run(*estimate, str(world.folder / "e.csv"), *more).code == 0


def test_answers_replace_no_pipe_and_not_their_table(world: Any) -> None:
    pipe = world.folder / "a.jsonl"
    os.mkfifo(pipe)
    refused = world.run(*words(world, "answers simulate", world.folder / "a"), "--force")
    assert (refused.code, world.spends()) == (2, [])
    assert stat.S_ISFIFO(pipe.lstat().st_mode)
    world.table = world.write("t.jsonl", ROWS[1:-1].replace("}, ", "}\n"))
    refused = world.run(*words(world, "answers simulate", world.folder / "t"), "--force")
    assert (refused.code, world.spends()) == (2, [])
    assert "holds the input" in refused.err


def test_a_log_is_appended_to_logs_only(world: Any) -> None:
    pipe = world.folder / "pipe.log"
    os.mkfifo(pipe)
    before = world.files()
    for path in (world.table, world.schema, pipe):
        refused = world.run("--log", path, *world.arguments("-q"))
        assert (refused.code, world.spends()) == (2, [])
        assert "no log of sfumato" in refused.err
    assert world.files() == before
    empty = world.write("new.log", "")
    for _ in range(2):
        assert world.run("--log", empty, "ledger", "cap", "x", "1", "--ledger", world.ledger)
    assert len(empty.read_text().splitlines()) >= 2


@pytest.mark.parametrize("name", ["survey.csv", "survey.schema.json"])
def test_a_demo_writes_over_nothing_without_force_and_never_through_a_link(
    name: str, world: Any
) -> None:
    world.internal.mkdir()
    mine = world.write(f"out-internal/{name}", "mine")
    before = world.files()
    refused = world.run("demo", "--out", world.out, "-q")
    assert refused.code == 2
    assert f"{name} exists" in refused.err
    assert world.files() == before
    other = mine.rename(world.folder / "other")
    mine.symlink_to(other)
    for more in ([], ["--force"]):
        refused = world.run("demo", "--out", world.out, "-q", *more)
        assert refused.code == 2
        assert "is a link" in refused.err
    assert other.read_text() == "mine"
    mine.unlink()
    os.mkfifo(mine)
    assert world.run("demo", "--out", world.out, "-q", "--force").code == 2
    mine.unlink()
    mine.write_text("mine")
    assert world.run("demo", "--out", world.out, "-q", "--force").code == 0


def test_a_demo_does_not_follow_a_link_to_a_folder(world: Any) -> None:
    (world.folder / "victim").mkdir()
    world.internal.symlink_to(world.folder / "victim")
    for more in ([], ["--force"]):
        assert world.run("demo", "--out", world.out, "-q", *more).code == 2
    assert list((world.folder / "victim").iterdir()) == []


# Releases that others hand on

DAMAGE: dict[str, Any] = {
    "a list for a ledger": lambda told: told.update(ledger=[]),
    "a number for a ledger": lambda told: told.update(ledger=3),
    "no head": lambda told: told["ledger"].pop("head"),
    "a head that is a list": lambda told: told["ledger"].update(head=[]),
    "a head without a number": lambda told: told["ledger"]["head"].update(seq="abc"),
    "a head with a share": lambda told: told["ledger"]["head"].update(seq=1.5),
    "a head that is true": lambda told: told["ledger"]["head"].update(seq=True),
    "a head without a hash": lambda told: told["ledger"]["head"].update(hash=None),
    "entries that are a number": lambda told: told["ledger"].update(entries=3),
    "entries that say nothing": lambda told: told["ledger"].update(entries=[{}]),
    "a cost beyond fractions": lambda told: told["ledger"]["entries"][0]["cost"].update(
        epsilon="1/0"
    ),
    "no method": lambda told: told.update(method=[]),
    "no versions": lambda told: told.update(versions=3),
    "measurements that are numbers": lambda told: told.update(measurements=[3]),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=list(DAMAGE))
def test_a_damaged_release_is_one_plain_message(damage: Any, world: Any) -> None:
    assert world.publish("-q", method="histogram").code == 0
    path = world.out / "release.json"
    told = json.loads(path.read_text())
    damage(told)
    path.write_text(json.dumps(told))
    check_both(world)


@pytest.mark.parametrize("text", ["[" * 5000 + "]" * 5000, '{"rows": ' + "9" * 5000 + "}", "[]"])
def test_a_release_of_odd_json_is_one_plain_message(text: str, world: Any) -> None:
    assert world.publish("-q", method="histogram").code == 0
    (world.out / "release.json").write_text(text)
    check_both(world)


def check_both(world: Any) -> None:
    book = ["--ledger", world.ledger]
    for command in (
        ["ledger", "verify", "--release", world.out, *book],
        ["evaluate", world.out, "--against", world.table, *book, "-q"],
    ):
        outcome = world.run(*command)
        assert (outcome.code, outcome.out) == (4, "")
        assert "as its release.json is damaged." in outcome.err
        assert len(outcome.err.splitlines()) == 1
    assert not world.internal.exists()
