"""``sfumato audit``: what it prints, writes and refuses."""

import json

import pytest
import typer
from typer.testing import CliRunner

from audits.__main__ import app as all_audits
from audits.registry import EVERY_CASE
from sfumato import auditing
from sfumato.auditing import report
from sfumato.cli.main import callback
from sfumato.commands.audit import COMMAND
from sfumato.errors import InputError

app = typer.Typer()
app.command()(callback(COMMAND))


def run(*arguments):
    return CliRunner().invoke(app, list(arguments))


def test_a_table_on_standard_output_and_progress_beside_it():
    outcome = run("grr", "DiscreteLaplace", "--quick", "--jobs", "1")
    assert outcome.exit_code == 0
    head, *body = outcome.stdout.splitlines()
    assert head.startswith("mechanism")
    assert [line.split()[0] for line in body] == ["Grr", "DiscreteLaplace"]
    assert outcome.stderr == "1 of 2: Grr ...\n2 of 2: DiscreteLaplace ...\n"


def test_json_is_a_list_of_rows_and_nothing_else():
    outcome = run("Grr", "--runs", "2000", "--quick", "--json")
    (row,) = json.loads(outcome.stdout)
    assert (row["mechanism"], row["samples"], row["planted_bugs_caught"]) == ("Grr", 2_000, "6/6")
    assert outcome.stderr == ""


def test_the_list_names_every_mechanism():
    assert run("--list").stdout.split() == list(auditing.CASES)


def test_the_list_is_json_where_that_is_asked_for():
    assert json.loads(run("--list", "--json").stdout) == list(auditing.CASES)


def test_whole_runs_are_audited_by_the_same_command_over_a_longer_list(tmp_path):
    runner, page = CliRunner(), tmp_path / "audits.md"
    assert runner.invoke(all_audits, ["--list"]).stdout.split() == list(EVERY_CASE)
    names = ["grr", "ask-question", "--quick", "--jobs", "1", "--markdown", str(page)]
    outcome = runner.invoke(all_audits, names)
    assert outcome.exit_code == 0
    assert [line.split()[0] for line in outcome.stdout.splitlines()[1:]] == ["Grr", "AskQuestion"]
    assert "Made by `python -m audits Grr AskQuestion --quick`" in page.read_text()
    assert "rows are whole messages of devices" in page.read_text()


def test_a_mechanism_named_twice_is_audited_once():
    outcome = run("laplace", "LocalLaplace", "--runs", "1000", "--quick", "--json")
    assert [row["mechanism"] for row in json.loads(outcome.stdout)] == ["LocalLaplace"]


def test_a_page_that_can_not_be_written_is_refused_before_anything_is_audited(tmp_path):
    outcome = run("--markdown", str(tmp_path / "nowhere" / "page.md"))
    assert isinstance(outcome.exception, InputError)
    assert "can't be written" in str(outcome.exception)
    assert (outcome.stdout, outcome.stderr) == ("", "")


def test_a_page_is_written_and_replaced_but_nothing_else_is(tmp_path):
    page = tmp_path / "audits.md"
    arguments = ("DiscreteLaplace", "--quick", "--seed", "3", "--markdown", str(page))
    assert run(*arguments).exit_code == 0
    assert run(*arguments).exit_code == 0
    assert "`sfumato audit DiscreteLaplace --quick --seed 3`" in page.read_text()
    page.write_text("my own notes\n")
    refused = run(*arguments)
    assert isinstance(refused.exception, InputError)
    assert "is not a page of audits." in str(refused.exception)
    assert page.read_text() == "my own notes\n"


def test_an_unknown_mechanism_is_refused_before_anything_is_audited():
    outcome = run("Grr", "Duchy")
    assert isinstance(outcome.exception, InputError)
    assert "(did you mean Duchi?)" in str(outcome.exception)
    assert (outcome.stdout, outcome.exception.exit_code) == ("", 2)


@pytest.mark.parametrize(
    "arguments", [("--runs", "10"), ("--seed", "-1"), ("--runs", "many"), ("--jobs", "-1")]
)
def test_numbers_out_of_range_are_refused(arguments):
    assert run("Grr", *arguments).exit_code == 2


def test_a_claim_that_falls_is_one_message_and_exit_code_1(monkeypatch):
    monkeypatch.setattr(report, "_is_caught", lambda bug, runs, effort, rng: False)
    outcome = run("ExponentialMechanism", "--quick")
    assert outcome.exit_code == 1
    message = outcome.stderr.splitlines()[-1]
    assert message == (
        "sfumato: the audit failed. ExponentialMechanism: a planted bug was missed: epsilon x 2; "
        "ExponentialMechanism: a planted bug was missed: "
        "the factor 2 for scores that rise and fall left out."
    )
    assert "0/2" in outcome.stdout
