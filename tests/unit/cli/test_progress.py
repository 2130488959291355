"""Progress, quiet, logs and plain output: nothing moves a cursor where nobody watches."""

import json
import os
import pty
import re
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import typer

from sfumato.cli import process
from sfumato.cli.main import program
from sfumato.cli.process import ProgressLines
from sfumato.commands.publication import reading

ESCAPE = "\x1b"


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class AsTheyAre:
    """A kernel that hands on what it gets."""

    columns = ("a",)

    def apply(self, codes: Any) -> pa.RecordBatch:
        return pa.record_batch({"a": codes["a"]})


def commands() -> list[list[str]]:
    """Every command with its words, from the program itself."""
    found: list[list[str]] = [[]]
    root = typer.main.get_command(program())
    groups: list[tuple[list[str], Any]] = [([], root)]
    while groups:
        words, group = groups.pop()
        for name, command in getattr(group, "commands", {}).items():
            found.append([*words, name])
            groups.append(([*words, name], command))
    return found


def test_a_phase_is_named_once_and_told_again_every_few_seconds_with_the_time_left() -> None:
    said: list[str] = []
    clock = Clock()
    tell = ProgressLines(write=said.append, clock=clock)
    for done in range(50):
        tell("measuring", done, 50)
        clock.now += 1.0
    assert said[0] == "measuring ..."
    assert said[1] == "measuring: 5 of 50, about 46 s left"
    assert len(said) == 10
    tell("writing", 0, 0)
    tell("measuring", 50, 50)
    assert said[10] == "writing ..."
    assert said.count("measuring ...") == 1


def test_reading_is_told_in_percent_only_where_it_takes_long() -> None:
    said: list[tuple[str, int, int]] = []
    clock = Clock()
    watch = reading(lambda what, done, of: said.append((what, done, of)), clock)
    for done in (100, 200):
        watch(done, 0)
    assert said == []
    clock.now += 3
    watch(300, 0)
    for done in (100, 200):
        clock.now += 3
        watch(done, 300)
    assert said == [("reading the table", 0, 0), ("reading the table, percent", 66, 100)]


def test_a_table_tells_how_far_it_is_read(tmp_path: Path) -> None:
    from sfumato import Schema, open_table

    (tmp_path / "t.csv").write_text("a\n" + "1\n" * 1000)
    table = open_table(tmp_path / "t.csv", Schema.from_dict({"a": 3}))
    told: list[tuple[int, int]] = []
    table.watch(lambda done, of: told.append((done, of)))
    for _ in range(2):
        assert sum(batch.num_rows for batch in table.map(AsTheyAre())) == 1000
    assert told == [(1000, 0), (1000, 1000)]


def test_quiet_shows_results_and_errors_but_no_progress(world: Any) -> None:
    done = world.publish("--quiet")
    assert (done.code, done.err) == (0, "")
    assert "guarantee" in done.out
    failed = world.publish("-q")
    assert failed.code == 2
    assert failed.err.startswith("sfumato: ")
    loud = world.publish("--force")
    assert "checking the table ..." in loud.err.splitlines()


@pytest.mark.parametrize("words", commands(), ids=" ".join)
def test_no_help_has_an_escape_code_whatever_the_environment_says(
    words: list[str], run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.delenv("NO_COLOR", raising=False)
    said = run(*words, "--help")
    assert said.code == 0
    assert ESCAPE not in said.out + said.err
    assert "Usage" in said.out


def on_a_terminal(arguments: list[str], **environment: str) -> str:
    """What a command writes to a terminal that is its standard error."""
    ours, theirs = pty.openpty()
    kept = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    process = subprocess.Popen(
        [sys.executable, "-m", "sfumato", *arguments], stdout=subprocess.DEVNULL, stderr=theirs,
        env={**kept, "TERM": "xterm", **environment},
    )  # fmt: skip
    os.close(theirs)
    said = b""
    while True:
        try:
            part = os.read(ours, 4096)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        said += part
    process.wait(timeout=60)
    os.close(ours)
    assert process.returncode == 0, said
    return said.decode()


def test_a_terminal_gets_bars_unless_it_wants_none(world: Any) -> None:
    bars = on_a_terminal(world.arguments())
    assert ESCAPE in bars
    for number, plain in enumerate(({"NO_COLOR": "1"}, {"TERM": "dumb"})):
        out = world.folder / f"out{number}"
        said = on_a_terminal(world.arguments(out=out), **plain)
        assert ESCAPE not in said
        assert "checking the table ..." in said


def test_a_pipe_gets_no_escape_code_even_if_color_is_forced(
    world: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    done = world.publish()
    assert done.code == 0
    assert ESCAPE not in done.out + done.err


def test_the_log_says_what_was_done_and_when_but_no_value_and_no_path(world: Any) -> None:
    log = world.folder / "run.log"
    arguments = world.arguments("-q")
    assert world.run("--log", str(log), *arguments).code == 0
    assert world.run("--log", str(log), *arguments).code == 2  # the folder exists
    lines = log.read_text().splitlines()
    assert all(re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z [A-Z]+ sfumato", x) for x in lines)
    text = "\n".join(lines)
    assert "charged " in text
    assert "checking the table" in text
    assert "ERROR sfumato.endings" in text
    assert stat.S_IMODE(log.stat().st_mode) == 0o600
    rows = [entry for line in lines[:-1] for entry in line.split() if entry == "240"]
    assert rows == []


def test_a_record_of_a_log_is_one_line_whatever_it_quotes(tmp_path: Path) -> None:
    import logging

    from sfumato.cli.process import OneLine

    record = logging.makeLogRecord({"msg": "a\nfalse entry\x1b[2J", "levelname": "INFO"})
    assert OneLine("%(levelname)s %(message)s").format(record) == "INFO a?false entry?[2J"


@pytest.mark.parametrize("wrong", [["--log-level", "loud"], ["--log", "/nowhere/x.log"]])
def test_a_log_that_can_not_be_is_refused_before_anything_is_done(
    wrong: list[str], world: Any
) -> None:
    outcome = world.run(*wrong, *world.arguments())
    assert outcome.code in (2, 4)
    assert "log" in outcome.err
    assert world.spends() == []


def test_every_json_answer_is_one_document_on_standard_output(world: Any, tmp_path: Path) -> None:
    draft = tmp_path / "draft.json"
    answers = tmp_path / "answers.jsonl"
    book = ["--ledger", str(world.ledger)]
    asked = [
        [*world.arguments()],
        ["plan", "--schema", str(world.schema), "--rows", "240", "--epsilon", "1", "--method",
         "independent"],
        ["evaluate", str(world.out), "--against", str(world.table), *book],
        ["schema", "draft", str(world.table), "-o", str(draft)],
        ["schema", "confirm", str(draft), "--yes"],
        ["dp2pub", str(world.table), "--schema", str(world.schema), "--epsilon", "2", "--trust",
         "semi-honest", "--out", str(tmp_path / "d"), "--ledger", str(tmp_path / "l"),
         "--dataset", "other"],
        ["answers", "simulate", str(world.table), "--schema", str(world.schema), "--column",
         "town", "--epsilon", "1", "-o", str(answers), "--dataset", "others", *book],
        ["answers", "estimate", str(answers)],
        ["answers", "advise", "--epsilon", "1", "--people", "100", "--categories", "3"],
        ["ledger", "show", *book],
        ["ledger", "verify", *book],
        ["audit", "--list"],
        ["demo", "--out", str(tmp_path / "demo")],
    ]  # fmt: skip
    for words in asked:
        said = world.run(*words, "--json")
        assert said.code == 0, (words, said.err)
        json.loads(said.out)
        assert ESCAPE not in said.out + said.err


def test_times_are_spoken_as_people_do() -> None:
    assert [process.spoken(s) for s in (0.2, 59, 61, 3599, 4000)] == [
        "1 s", "60 s", "1 min", "60 min", "1 h 7 min",
    ]  # fmt: skip
