"""The commands of a survey against a real service, and the server as a process of its own."""

import json
import signal
import stat
import subprocess
import sys
import time
import urllib.request
from dataclasses import replace
from typing import Any, NamedTuple

import pytest

from bench.survey_simulator import Simulation, drive
from service.liar import TASK, lying
from sfumato.cli import main
from sfumato.survey.owner import SurveyKeys, SurveyOwner
from sfumato.survey.protocol.http_client import Patience

SCHEMA = {
    "sfumato": 1,
    "dataset": "health",
    "columns": [
        {"name": "smoker", "kind": "boolean"},
        {"name": "health", "kind": "ordinal", "values": ["poor", "fair", "good"]},
    ],
}


class Outcome(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def run(monkeypatch, capfd, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "schema.json").write_text(json.dumps(SCHEMA))
    (tmp_path / "me.json").write_text(json.dumps({"smoker": "yes", "health": "good"}))

    def call(*arguments: Any) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["sfumato", "survey", *map(str, arguments)])
        capfd.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        said = capfd.readouterr()
        return Outcome(int(ended.value.code or 0), said.out, said.err)

    return call


@pytest.fixture
def create(run, service, monkeypatch):
    monkeypatch.setenv("SFUMATO_SURVEY_TOKEN", service.token)

    def made(*more: Any, rehearsal: bool = True, epsilon: int = 2) -> Outcome:
        usual = ["--schema", "schema.json", "--epsilon", epsilon, "--title", "Health"]
        return run(
            "create", *usual, "--server", service.address, *["--rehearsal"] * rehearsal, *more
        )

    return made


def simulate(people, **more):
    """People who do not exist answer the open round of the survey in survey.keys.json."""
    (link,) = SurveyOwner(SurveyKeys.load("survey.keys.json")).invite(1, uses=people)
    return drive(link, Simulation(people=people, **more))


def refused(outcome, code, *words):
    assert outcome.code == code
    assert outcome.err.startswith("sfumato: ")
    assert outcome.err.count("\n") == 1
    for word in words:
        assert word in outcome.err


def test_a_survey_from_creation_to_the_exported_release(run, create, service, tmp_path):
    made = create("--minimum", 100, "--variant", "grouped")
    assert made.code == 0, made.err
    keys = SurveyKeys.load("survey.keys.json")
    assert stat.S_IMODE((tmp_path / "survey.keys.json").stat().st_mode) == 0o600
    assert keys.admin not in made.out
    opened = run("open", "survey.keys.json").out.splitlines()
    assert opened[0] == "state       open-1"
    assert opened[1].startswith("next        sfumato survey status survey.keys.json --watch")
    for number in (1, 2):
        kept = simulate(600, together=50).outcomes["kept"]
        assert 200 < kept < 400
        assert f"{kept} in round {number}" in run("status", "survey.keys.json").out
        closed = run("close", "survey.keys.json").out.splitlines()
        assert closed[0] == f"state       closed-{number}"
        assert closed[1].split()[3] == ("open" if number == 1 else "export")
        if number == 1:
            assert run("open", "survey.keys.json").out.startswith("state       open-2\n")
    done = run("export", "survey.keys.json", "--out", "out", "-q")
    assert done.code == 0, done.err
    assert "Do not publish it" in done.out  # seeded answers are in it
    assert not (tmp_path / "out").exists()
    release = json.loads((tmp_path / "out-internal" / "release.json").read_text())
    assert release["private"] is False
    assert run("status", "survey.keys.json", "--watch", 60).out.startswith("released: ")
    assert {"data.csv", "report.html", "survey.json"} <= {
        each.name for each in (tmp_path / "out-internal").iterdir()
    }
    again = run("export", "survey.keys.json", "--out", "out", "-q", "--force")
    assert again.code == 0, again.err


def test_a_release_is_verified_by_the_key_that_one_has(run, create, service, tmp_path):
    link = create("--variant", "single", "--minimum", 1).out.splitlines()[1].split()[1]
    run("open", "survey.keys.json")
    simulate(20)
    run("close", "survey.keys.json")
    run("export", "survey.keys.json", "--out", "out", "-q")
    alone = run("verify", "out-internal")
    assert "5 files, each as it was signed" in alone.out
    assert "compare it with an invitation's" in alone.out
    known = run("verify", "out-internal", "--link", link)
    assert known.code == 0, known.err
    assert "compare" not in known.out
    told = json.loads(run("verify", "out-internal", "--keys", "survey.keys.json", "--json").out)
    assert (told["ok"], told["key_known"]) == (True, True)
    assert set(told["files"]) == {
        "data.csv", "data.parquet", "model.npz", "release.json", "report.html"
    }  # fmt: skip
    create("--variant", "single", "-o", "other.json")
    refused(run("verify", "out-internal", "--keys", "other.json"), 2, "signature is not of the key")
    (tmp_path / "out-internal" / "data.csv").write_text("smoker,health\n")
    refused(run("verify", "out-internal"), 4, "'data.csv' is not the file that was signed")
    refused(run("verify", "nowhere"), 4, "can't read nowhere")
    refused(run("verify", "me.json"), 4, "not a whole zip file")
    both = ("--keys", "other.json", "--link", link)
    refused(run("verify", "out-internal", *both), 2, "Give one of them")
    bare = link.partition("&key")[0]
    refused(run("verify", "out-internal", "--link", bare), 2, "holds no key")


def test_a_command_sends_what_it_showed_and_nothing_else(run):
    with lying() as liar:
        path = f"/v1/surveys/{TASK}"
        status, opened = liar.replies[path]
        closed = status, {**opened, "state": "created"}
        liar.replies[path] = [closed, closed, (status, opened)]
        done = run("answer", liar.link, "--record", "me.json", "--state", "state.json")
        assert "leaves      nothing now" in done.out
        assert "nothing was sent" in done.out
        assert liar.posted == []
        sent = run("answer", liar.link, "--record", "me.json", "--state", "state.json")
        assert [f"leaves      {body.decode()}" in sent.out for body in liar.posted] == [True]


def test_a_person_is_warned_of_what_does_not_fit_and_the_server_is_not(run, tmp_path):
    (tmp_path / "odd.json").write_text(json.dumps({"smoker": "yes", "health": "secret"}))
    asked = []
    for record in ("me.json", "odd.json"):
        with lying() as liar:
            usual = ("answer", liar.link, "--record", record, "--state", f"state-{record}")
            shown, done = run(*usual, "--preview"), run(*usual)
            asked.append(liar.asked)
    assert asked[0] == asked[1]
    assert (done.code, done.out.count("the answer was sent")) == (0, 1)
    assert "WARNING     your 'health' is not one of the declared values" in done.err
    assert "secret" not in done.out + done.err + shown.out + shown.err
    assert "a corrected record needs a new --state" in shown.out


def test_a_person_answers_by_a_command_and_sees_what_leaves(run, create, service, tmp_path):
    create("--variant", "single", "--minimum", 1, rehearsal=False)
    run("open", "survey.keys.json")
    invited = run("invite", "survey.keys.json", "-n", 2, "-o", "links.csv")
    assert "2 links" in invited.out
    assert stat.S_IMODE((tmp_path / "links.csv").stat().st_mode) == 0o600
    head, link, _ = (tmp_path / "links.csv").read_text().splitlines()
    assert head == "link"
    shown = run("answer", link, "--record", "me.json", "--preview", "--json")
    done = run("answer", link, "--record", "me.json", "--json")
    leaves = json.loads(done.out)["leaves"]
    assert json.loads(shown.out) == {"leaves": leaves, "sent": False, "misfits": []}
    assert json.loads(done.out)["what"] == "answered"
    again = run("answer", link, "--record", "me.json")
    assert "nothing was sent" in again.out
    assert json.loads(run("status", "survey.keys.json", "--json").out)["answers"] == {"1": 1}
    run("close", "survey.keys.json")
    assert run("export", "survey.keys.json", "--out", "out", "-q").code == 0
    assert json.loads((tmp_path / "out" / "release.json").read_text())["private"] is True


def test_invitations_without_a_file_are_printed(run, create):
    create()
    lines = run("invite", "survey.keys.json", "-n", 3).out.splitlines()
    assert len(set(lines)) == 3
    assert all("/answer#survey=" in line and "&token=" in line for line in lines)


def test_the_servers_token_comes_from_a_file_too(run, create, service, monkeypatch, tmp_path):
    monkeypatch.delenv("SFUMATO_SURVEY_TOKEN")
    refused(create(), 2, "SFUMATO_SURVEY_TOKEN")
    (tmp_path / "token").write_text(service.token + "\n")
    assert create("--token-file", "token").code == 0
    refused(create("--token-file", "none", "-o", "b"), 4, "can't read none")


def test_keys_are_never_overwritten(create, tmp_path):
    assert create().code == 0
    before = (tmp_path / "survey.keys.json").read_text()
    refused(create(), 2, "exists")
    assert (tmp_path / "survey.keys.json").read_text() == before


def test_refusals_are_one_line_with_an_exit_code(run, create, monkeypatch, tmp_path):
    refused(create("--variant", "triple"), 2, "the server refused", "variant")
    refused(create("--minimum", 0), 2, "minimum")
    refused(create("-o", "nowhere/keys.json"), 4, "can't write into")
    assert create().code == 0
    refused(run("close", "survey.keys.json"), 2, "has no open round")
    refused(run("export", "survey.keys.json", "--out", "out", "-q"), 2, "last round is closed")
    refused(run("open", "schema.json"), 2, "not a file of survey keys")
    refused(run("open", "missing.json"), 4, "can't read")
    refused(run("answer", "https://x/#survey=1", "--record", "me.json"), 2, "no link")
    for seconds in (0, -1, "nan", "inf"):
        refused(run("status", "survey.keys.json", f"--watch={seconds}"), 2, "--watch")
    (tmp_path / "links.csv").write_text("older")
    refused(run("invite", "survey.keys.json", "-o", "links.csv"), 2, "exists")
    monkeypatch.setenv("SFUMATO_SURVEY_TOKEN", "f" * 48)
    refused(create("-o", "other"), 2, "server's token")


def test_a_server_that_is_not_there_is_told_soon(run, create, monkeypatch):
    tries = []
    monkeypatch.setattr(Patience, "wait_s", lambda *_: tries.append(1) or 0.0)
    create()
    keys = SurveyKeys.load("survey.keys.json")
    replace(keys, server="http://127.0.0.1:9").save("away.json")
    refused(run("status", "away.json"), 4, "can't be reached")
    assert len(tries) == 2  # after a first and a second try
    link = f"http://127.0.0.1:9/answer#survey={keys.task}"
    refused(run("answer", link, "--record", "me.json"), 4, "can't be reached")
    assert len(tries) == 2 + 3


def test_who_comes_too_late_is_told_so(run, create):
    create("--variant", "single", "--minimum", 1, "--anybody")
    link = str(SurveyKeys.load("survey.keys.json").link())
    early = run("answer", link, "--record", "me.json")
    assert "come again later" in early.out
    run("open", "survey.keys.json")
    simulate(5)
    run("close", "survey.keys.json")
    late = run("answer", link, "--record", "me.json", "--state", "late.json")
    assert "takes no answers any more; nothing was sent" in late.out
    assert "keep it" not in late.out


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM], ids=["SIGINT", "SIGTERM"])
def test_the_server_starts_with_nothing_configured_and_shows_its_token_once(how, own_home):
    tokens = []
    for _ in range(2):
        command = [sys.executable, "-m", "sfumato", "survey", "serve", "--port", "0"]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        with subprocess.Popen(command, **pipes) as process:
            try:
                said = dict(_facts(process.stdout))
                _wait_for(said["address"])
            finally:
                process.send_signal(how)
                _, errors = process.communicate(timeout=30)
        assert "Traceback" not in errors
        assert process.returncode == 0
        tokens.append([said["token"]] if "token" in said else [])
        assert len(said["page"].split()[-1]) == 64
    assert [len(each) for each in tokens] == [1, 0]
    database = own_home / "surveys.sqlite"
    assert said["database"] == str(database)
    assert stat.S_IMODE(database.stat().st_mode) == 0o600
    assert tokens[0][0].encode() not in database.read_bytes()


def test_the_token_can_go_into_a_file_instead(tmp_path):
    command = [sys.executable, "-m", "sfumato", "survey", "serve", "--port", "0"]
    more = ["--database", str(tmp_path / "s.db"), "--token-file", str(tmp_path / "token")]
    with subprocess.Popen([*command, *more], stdout=subprocess.PIPE, text=True) as process:
        try:
            said = dict(_facts(process.stdout))
            _wait_for(said["address"])
        finally:
            process.terminate()
    token = (tmp_path / "token").read_text().strip()
    assert len(token) == 48
    assert token not in said["token"]
    assert stat.S_IMODE((tmp_path / "token").stat().st_mode) == 0o600


def _facts(stream):
    """What the server prints before it serves, as far as it comes."""
    for line in stream:
        name, _, value = line.strip().partition(" ")
        yield name, value.strip()
        if name == "page":
            return


def _wait_for(address):
    for _ in range(600):
        try:
            with urllib.request.urlopen(address + "/healthz", timeout=5) as reply:
                assert reply.status == 200
                return
        except OSError:
            time.sleep(0.1)
    raise AssertionError("the server does not answer")


def test_a_port_that_is_taken_is_refused_before_anything_is_made(run, service, own_home):
    port = service.address.rpartition(":")[2]
    refused(run("serve", "--port", port), 4, "can't listen")
    assert not (own_home / "surveys.sqlite").exists()


def test_several_workers_need_postgresql(run):
    refused(run("serve", "--workers", 2, "--port", 0), 2, "PostgreSQL")


def test_two_workers_serve_one_database(run, database, monkeypatch):
    """Any worker takes any request; the plan of the second round is made by one of them."""
    command = [sys.executable, "-m", "sfumato", "survey", "serve", "--port", "0", "--rate", "0"]
    more = ["--workers", "2", "--database", database.address]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen([*command, *more], **pipes) as process:
        try:
            said = dict(_facts(process.stdout))
            _wait_for(said["address"])
            monkeypatch.setenv("SFUMATO_SURVEY_TOKEN", said["token"])
            usual = ["--schema", "schema.json", "--epsilon", "2", "--title", "Health"]
            made = run(
                "create", *usual, "--server", said["address"], "--minimum", 100, "--rehearsal"
            )
            assert made.code == 0, made.err
            for _ in range(2):
                run("open", "survey.keys.json")
                assert set(simulate(1_000).outcomes) == {"kept"}
                run("close", "survey.keys.json")
            done = run("export", "survey.keys.json", "--out", "out", "-q")
            assert done.code == 0, done.err
        finally:
            process.terminate()
            _, errors = process.communicate(timeout=30)
    assert process.returncode == 0
    assert "Traceback" not in errors
    assert "s3cret" not in errors + said["database"]


def test_a_command_answers_a_large_epsilon_only_if_it_is_told_to(run, create, service):
    created = create("--variant", "single", "--minimum", 1, "--anybody", epsilon=32)
    link = created.out.splitlines()[1].split()[1]
    run("open", "survey.keys.json")
    answer = ("answer", link, "--record", "me.json", "--state", "state.json")
    refused(run(*answer), 3, "epsilon 32", "answers up to 5", "allow it: --max-epsilon 32.")
    done = run(*answer, "--max-epsilon", 32)
    assert done.code == 0, done.err
    assert "WARNING     epsilon 32 is large. Whoever sees the answers" in done.err
    assert "rehearsal   this is no real survey" in done.out


def test_a_command_refuses_another_hash_than_the_published_one(run, create, service):
    created = create("--variant", "single", "--minimum", 1, "--anybody")
    link, shown = (created.out.splitlines()[place].split()[1] for place in (1, 2))
    assert f"&hash={shown}" in link
    assert shown in run("status", "survey.keys.json").out
    run("open", "survey.keys.json")
    bare = link.replace(f"&hash={shown}", "")
    answer = ("--record", "me.json", "--state", "state.json")
    words = ("--survey-hash", "a survey hash is 40 hexadecimal digits")
    refused(run("answer", link, *answer, "--survey-hash", "abc"), 2, *words)
    refused(run("answer", link, *answer, "--survey-hash", "0" * 40), 2, "another hash")
    refused(run("answer", bare, *answer, "--survey-hash", "0" * 40), 2, "another survey")
    assert run("answer", bare, "--record", "me.json", "--survey-hash", shown).code == 0
