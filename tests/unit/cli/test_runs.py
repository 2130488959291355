"""Runs on the command line: stopped and resumed, saved as a file and given again."""

import json
import shlex
import shutil
import stat
import sys
import tomllib
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sfumato.cli import process, run_files
from sfumato.commands.publish import publish_table
from sfumato.commands.registry import every_command
from sfumato.errors import InputError, StorageError
from sfumato.gate.budget import Journal


def stop_at(monkeypatch: pytest.MonkeyPatch, error: BaseException, *, step: int = 1) -> None:
    """Raise in the middle of a run, when so many steps were told."""
    honest, told = Journal.outcome, {"steps": 0}

    def outcome(self: Journal, question: str, draw: Any) -> Any:
        if told["steps"] == step:
            raise error
        told["steps"] += 1
        return honest(self, question, draw)

    monkeypatch.setattr(Journal, "outcome", outcome)


def test_ctrl_c_says_what_was_charged_and_the_command_that_goes_on(
    world: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        stop_at(patched, KeyboardInterrupt(), step=0)
        stopped = world.publish("--method", "histogram", "-q")
    assert stopped.code == 130
    first, second, command = stopped.err.splitlines()
    assert first.startswith(
        "sfumato: interrupted. Charged, and recorded in the ledger of 'towns': entry 2, 'measure "
    )
    assert second.startswith("Nothing half-written is left. To go on without a new charge,")
    assert command == process.resuming_command(sys.argv[1:]).join(["  ", ""])
    assert not world.out.exists()
    resumed = world.publish("--method", "histogram", "--resume")
    assert resumed.code == 0, resumed.err
    assert len(world.spends()) == 1


@pytest.mark.parametrize(
    "error", [OSError(28, "No space left on device"), KeyError("bug"), StorageError("lost")]
)
def test_an_error_after_a_charge_says_how_to_go_on(
    error: Exception, world: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        stop_at(patched, error, step=0)
        stopped = world.publish("-q")
    assert stopped.code in (4, 70)
    assert stopped.err.splitlines()[0].startswith("sfumato: ")
    assert "Charged, and recorded in the ledger of 'towns': entry 2" in stopped.err
    assert "Nothing was spent" not in stopped.err
    assert stopped.err.splitlines()[-1].startswith("  sfumato publish --resume ")


def test_the_same_command_again_is_refused_until_it_says_what_it_wants(
    world: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        stop_at(patched, KeyboardInterrupt(), step=0)
        world.publish()
    refused = world.publish("-q")
    assert refused.code == 2
    assert "did not finish: entry 2," in refused.err
    assert "--resume" in refused.err
    assert "--no-resume" in refused.err
    assert world.publish(epsilon="2", out=world.folder / "other").code == 0  # another command
    paid = len(world.spends())
    assert world.publish("--no-resume").code == 0
    assert len(world.spends()) > paid


def test_a_run_that_python_began_is_resumed_on_the_command_line(
    world: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    options: Any = {"rounds": np.int64(2), "average": True}
    strict: Any = 1
    with monkeypatch.context() as patched:
        stop_at(patched, StorageError("lost"))
        with pytest.raises(StorageError, match="lost"):
            publish_table(
                world.table, schema=world.schema, epsilon=1, method="mwem", workload="1-way",
                options=options, rows=np.int64(240), strict=strict, ledger=world.ledger,
            )  # fmt: skip
    paid = world.spends()
    assert paid
    typed = ["--set", "average=true", "--set", "rounds=2", "--strict", "--rows", "240", "-q"]
    resumed = world.publish(*typed, "--resume", method="mwem", workload="1-way")
    assert resumed.code == 0, resumed.err
    assert world.spends() == paid


def test_a_resumed_run_that_is_stopped_again_tells_what_was_charged_before(
    world: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop_at(monkeypatch, StorageError("lost"), step=0)
    assert world.publish("-q").code == 4
    paid = world.spends()
    stopped = world.publish("--resume", "-q")
    assert stopped.err.splitlines()[0] == "sfumato: lost"
    assert "Charged, and recorded in the ledger of 'towns': entry 2" in stopped.err
    assert world.spends() == paid


def test_resume_with_nothing_to_resume_spends_nothing(world: Any) -> None:
    outcome = world.publish("--resume", "-q")
    assert outcome.code == 2
    assert "nothing to resume" in outcome.err
    assert "Nothing was spent." in outcome.err
    assert world.spends() == []


def test_a_simulation_can_not_be_resumed(world: Any) -> None:
    outcome = world.publish("--resume", seed="1")
    assert outcome.code == 2
    assert "keeps no journal" in outcome.err


def test_rows_that_were_asked_can_not_be_asked_again_and_ctrl_c_says_so(
    world: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = [
        "dp2pub", str(world.table), "--schema", str(world.schema), "--epsilon", "2", "--trust",
        "semi-honest", "--out", str(world.out), "--ledger", str(world.ledger), "-q",
    ]  # fmt: skip

    def stopped(*arguments: Any, **options: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("sfumato.gate.row_answers.responses", stopped)
        outcome = world.run(*arguments)
    assert outcome.code == 130
    assert "This run can't be resumed" in outcome.err
    assert "--resume" not in outcome.err
    assert "nothing to resume" in world.run(*arguments, "--resume").err
    assert world.run(*arguments).code == 0  # a new charge, as was said


# Run files


def saved(world: Any, *more: str, **options: Any) -> Path:
    path: Path = world.folder / "run.toml"
    outcome = world.publish("--save-run", str(path), "-q", *more, **options)
    assert outcome.code == 0, outcome.err
    return path


def test_a_run_file_gives_the_same_command_again_from_another_place(
    world: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(world.folder)
    path = saved(
        world, "--csv", "--set", "rounds=1", table="table.csv", schema="schema.json", out="out",
        ledger="study.ledger", method="mwem",
    )  # fmt: skip
    assert tomllib.loads(path.read_text()) == {
        "sfumato": 1, "command": "publish", "table": "table.csv", "schema": "schema.json",
        "epsilon": "1", "out": "out", "method": "mwem", "set": "rounds=1",
        "ledger": "study.ledger", "csv": True,
    }  # fmt: skip
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    elsewhere = world.folder / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    paid = len(world.spends())
    again = world.run("run", "../run.toml", "--out", "second", "-q")
    assert again.code == 0, again.err
    assert len(world.spends()) == 2 * paid
    first, second = (
        json.loads((folder / "release.json").read_text())
        for folder in (world.out, elsewhere / "second")
    )
    assert first["command"] == second["command"]
    assert first["command"]["set"] == {"rounds": "1"}
    assert (elsewhere / "second" / "data.csv").exists()


def test_a_stopped_run_file_is_resumed_by_its_file(
    world: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = world.folder / "run.toml"
    with monkeypatch.context() as patched:
        stop_at(patched, KeyboardInterrupt(), step=0)
        world.publish("--save-run", str(path), method="histogram")
    assert world.run("run", str(path)).code == 2
    assert world.run("run", str(path), "--resume").code == 0
    assert len(world.spends()) == 1


def test_release_json_tells_the_public_options_and_no_path(world: Any) -> None:
    saved(world, rows="240")
    told = json.loads((world.out / "release.json").read_text())["command"]
    assert told == {
        "command": "publish", "epsilon": "1", "method": "auto", "rows": 240,
        "neighbors": "add-remove",
    }  # fmt: skip
    assert str(world.folder) not in (world.out / "release.json").read_text()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("sfumato = 2", "is no run file"),
        ('sfumato = 1\ncommand = "ledger show"', "command must be one of publish"),
        ('sfumato = 1\ncommand = "publish"\nepsilno = 1', "unknown key 'epsilno'"),
        ('sfumato = 1\ncommand = "publish"\nforce = true', "unknown key 'force'"),
        ('sfumato = 1\ncommand = "publish"\nrows = "many"', "rows must be a whole number"),
        ('sfumato = 1\ncommand = "publish"\nrows = true', "rows must be a whole number"),
        ('sfumato = 1\ncommand = "publish"\ncsv = "yes"', "csv must be true or false"),
        ('sfumato = 1\ncommand = "publish"\nschema = 3', "schema must be a text"),
        ('sfumato = 1\ncommand = "publish"\nset = {a = 1}', "set must be a list of texts"),
        ("sfumato = [", "is not TOML"),
        ('sfumato = 1\ncommand = "publish"\nepsilon = 1', "Missing"),
        ('sfumato = 1\ncommand = "publish"\nrows = ' + "9" * 5000, "is no run file"),
        ('sfumato = 1\ncommand = "publish"\ntable = ' + "[" * 5000 + "]" * 5000, "is no run file"),
        ('sfumato = 1\ncommand = "publish"\ntable = "\\u0000"', "table holds U+0000"),
        ('sfumato = 1\ncommand = "publish"\nledger = "a\\u0000b"', "ledger holds U+0000"),
        ('sfumato = 1\ncommand = "publish"\nset = ["a=1", "\\u0000"]', "set holds U+0000"),
    ],
)
def test_a_run_file_that_says_something_else_is_refused_by_its_key(
    text: str, reason: str, world: Any
) -> None:
    outcome = world.run("run", str(world.write("run.toml", text)))
    assert outcome.code == 2
    assert reason in outcome.err
    assert outcome.err.startswith("sfumato: ")
    assert len(outcome.err.splitlines()) == 1
    assert world.spends() == []


def test_a_run_file_is_never_in_the_publishable_folder_nor_over_something_else(world: Any) -> None:
    inside = world.publish("--save-run", str(world.out / "run.toml"))
    assert (inside.code, world.spends()) == (2, [])
    assert "may be published" in inside.err
    assert world.publish().code == 0
    paid = world.spends()
    for place in (world.out / "run.toml", world.out / "deeper" / "run.toml"):
        another = world.publish("--save-run", str(place), out=world.folder / "another")
        assert another.code == 2
        assert "a run file does not belong there" in another.err
    assert world.spends() == paid
    shutil.rmtree(world.out)
    world.ledger.unlink()
    other = world.publish("--save-run", str(world.table), "--force")
    assert (other.code, world.spends()) == (2, [])
    assert "is no run file" in other.err


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://me:hunter2@db/x::t",
        "postgresql://db/x?password=hunter2::t",
        "postgresql:/me:hunter2@db/x::t",
        "Postgres:/x?password=hunter2::t",
    ],
)
def test_a_password_is_never_saved(address: str, world: Any) -> None:
    path = world.folder / "run.toml"
    outcome = world.publish("--save-run", str(path), table=address)
    assert outcome.code == 2
    assert "holds a password" in outcome.err
    assert "hunter2" not in outcome.err
    assert not path.exists()


@pytest.mark.parametrize("option", ["ledger", "workload", "totals", "out"])
def test_a_password_in_an_address_with_one_slash_is_never_saved(option: str, world: Any) -> None:
    path = world.folder / "run.toml"
    address = "postgresql:/ada:hunter2@127.0.0.1:1/b?connect_timeout=1"
    outcome = world.publish("--save-run", str(path), "-q", **{option: address})
    assert outcome.code == 2
    assert f"{option} holds a password" in outcome.err
    assert "hunter2" not in outcome.err
    assert not path.exists()


@pytest.mark.parametrize(
    ("given", "kept", "again"),
    [
        ("spark::people", "spark::people", "spark::people"),
        ("spark::shop.people", "spark::shop.people", "spark::shop.people"),
        ("spark::./people", "spark::../people", "spark::runs/../people"),
        ("spark::runs/people", "spark::./people", "spark::runs/people"),
        ("spark::people.parquet", "spark::../people.parquet", "spark::runs/../people.parquet"),
        ("spark::/data/people", "spark::/data/people", "spark::/data/people"),
        ("spark::s3a://shop/people", "spark::s3a://shop/people", "spark::s3a://shop/people"),
        ("spark::hdfs:/shop/people", "spark::hdfs:/shop/people", "spark::hdfs:/shop/people"),
        ("postgresql:/ada@db/b::t", "postgresql:/ada@db/b::t", "postgresql:/ada@db/b::t"),
        ("people.db::t", "../people.db::t", "runs/../people.db::t"),
    ],
)
def test_of_a_table_only_a_path_is_moved(
    given: str, kept: str, again: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = Path("runs/run.toml")
    path.parent.mkdir()
    run_files.save(path, "publish", {"table": given}, force=False)
    words, loaded = run_files.load(path)
    assert loaded == {"table": kept}
    assert run_files.arguments(path, loaded, every_command()[words]) == ["--", again]


def test_a_folder_that_spark_reads_stays_a_folder_beside_its_run_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = Path("run.toml")
    run_files.save(path, "publish", {"table": "spark::./people"}, force=False)
    words, loaded = run_files.load(path)
    assert run_files.arguments(path, loaded, every_command()[words]) == ["--", "spark::./people"]


def test_texts_come_back_from_toml_as_they_went_in(tmp_path: Path) -> None:
    path = tmp_path / "run.toml"
    odd = 'a "quoted" \\ back\nline\x7f  \N{GREEK SMALL LETTER EPSILON}'
    run_files.save(path, "publish", {"dataset": odd, "set": ["a=1", "b=2"]}, force=False)
    assert run_files.load(path) == ("publish", {"dataset": odd, "set": ["a=1", "b=2"]})


# Several tables


def test_several_tables_are_refused_with_what_to_do(world: Any) -> None:
    arguments = world.arguments()
    outcome = world.run(arguments[0], str(world.table), *arguments[1:])
    assert outcome.code == 2
    told = "Nothing was spent."
    for part in ("one table", "join them", "--person", "SAME --dataset", "--cap", told):
        assert part in outcome.err
    assert world.spends() == []


@pytest.mark.parametrize("kind", [list, tuple, dict, "folder"])
def test_several_tables_are_refused_in_python_too(kind: Any, tmp_path: Path) -> None:
    from sfumato.commands.publish import publish_table

    given: Any = tmp_path if kind == "folder" else kind({"a.csv": 1, "b.csv": 2})
    with pytest.raises(InputError, match="one table is published at a time"):
        publish_table(given, schema={"age": 3}, epsilon=1, dataset="x")


def test_one_row_is_one_person_unless_a_person_is_named(world: Any) -> None:
    assert "one row = one person" in world.publish().out
    named = world.publish(
        "--person", "town", "--max-rows", "3", "--force", ledger=world.folder / "other.ledger"
    )
    assert named.code == 0, named.err
    assert "one row = one person" not in named.out


def test_resuming_keeps_every_other_word_of_the_command() -> None:
    given = ["publish", "a b.csv", "--resume", "--epsilon", "1"]
    assert process.resuming_command(given) == ("sfumato publish --resume 'a b.csv' --epsilon 1")


@pytest.mark.parametrize(
    ("given", "command"),
    [
        ("publish --epsilon 1 -- t.csv", "publish --resume --epsilon 1 -- t.csv"),
        ("publish --no-resume -- --resume", "publish --resume -- --resume"),
        ("--log publish --log-level info publish t", "--log publish --log-level info publish "
         "--resume t"),
        ("--log=x run FILE -q", "--log=x run --resume FILE -q"),
    ],
)  # fmt: skip
def test_the_command_that_goes_on_has_its_option_after_its_name(given: str, command: str) -> None:
    assert process.resuming_command(given.split()) == f"sfumato {command}"


@pytest.mark.parametrize("scheme", ["postgresql://", "postgresql:/"])
@pytest.mark.parametrize("before", ["", "--epsilon 1 ", "-- ", "--ledger="])
def test_the_command_that_goes_on_does_not_repeat_a_password(scheme: str, before: str) -> None:
    told = process.resuming_command(f"publish {before}{scheme}ada:hunter2@db/x::t".split())
    assert told == f"sfumato publish --resume {before}postgresql://db/x::t"
    kept = process.resuming_command(f"publish {before}{scheme}ada@db/x::t".split())
    assert kept == f"sfumato publish --resume {before}{scheme}ada@db/x::t"


def test_a_command_that_can_not_spend_does_not_say_that_nothing_was_spent(world: Any) -> None:
    assert world.publish("-q").code == 0
    text = 'sfumato = 1\ncommand = "{}"\nagainst = "none.csv"\nfolder = "out"'
    evaluated = world.run("run", str(world.write("run.toml", text.format("evaluate"))))
    assert evaluated.code == 4
    assert "none.csv" in evaluated.err
    assert "spent" not in evaluated.err
    unknown = world.run("run", str(world.write("run.toml", text.format("evaluat"))))
    assert "Nothing was spent." in unknown.err


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--epsilon", "2"), "--epsilon is given 2 times"),
        (("--method=aim", "--method", "mst"), "--method is given 2 times"),
        (("--resume", "--no-resume"), "--resume is given 2 times"),
    ],
)
def test_an_option_with_one_value_is_given_once(
    more: tuple[str, ...], said: str, world: Any
) -> None:
    refused = world.publish(*more)
    assert refused.code == 2
    assert said in refused.err
    assert "Nothing was done." in refused.err
    assert world.spends() == []


def test_flags_and_lists_may_be_repeated(world: Any) -> None:
    more = ("-q", "--quiet", "--set", "rounds=1", "--set", "average=true")
    assert world.publish(*more, method="mwem").code == 0


def test_a_table_after_two_dashes_is_resumed_by_the_command_that_was_told(
    world: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    command, table, *options = world.arguments("--method", "histogram", "-q")
    with monkeypatch.context() as patched:
        stop_at(patched, KeyboardInterrupt(), step=0)
        stopped = world.run(command, *options, "--", table)
    told = shlex.split(stopped.err.splitlines()[-1])
    assert world.run(*told[1:]).code == 0
    assert len(world.spends()) == 1


def test_a_demo_is_not_told_to_resume_which_it_can_not(
    world: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop_at(monkeypatch, KeyboardInterrupt(), step=0)
    stopped = world.run("demo", "--out", world.out, "-q")
    assert stopped.code == 130
    assert "Charged, and recorded in the ledger of 'demo-survey'" in stopped.err
    assert "resume" not in stopped.err


@pytest.mark.parametrize(
    ("module", "name"),
    [("sfumato.cli.main", "_value"), ("sfumato.commands.lines", "running_total")],
)
def test_a_run_file_that_is_interrupted_ends_like_its_command(
    module: str, name: str, world: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = saved(world, "--csv", table=world.table)

    def interrupt(*arguments: Any, **options: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(import_module(module), name, interrupt)
    for words in (["run", str(path), "--force", "-q"], world.arguments("--force", "-q")):
        outcome = world.run(*words)
        assert (outcome.code, outcome.out) == (130, "")
        assert outcome.err.startswith("sfumato: interrupted. ")
