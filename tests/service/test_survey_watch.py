"""``survey status --watch``: tells what changes, and ends cleanly."""

import signal
import subprocess
import sys
from contextlib import contextmanager

import pytest

from bench.survey_simulator import Simulation, drive
from sfumato.cli import main
from sfumato.errors import StorageError
from sfumato.survey.owner import SurveyKeys, SurveyOwner
from sfumato.survey.protocol.announcements import SurveyLink

COLUMNS = [{"name": "smoker", "kind": "boolean"}]


@pytest.fixture
def made(service, tmp_path):
    """A survey whose keys are in a file."""
    survey = service.create(COLUMNS, invited=False, minimum=1, rehearsal=True)
    SurveyKeys(
        server=service.address,
        task=survey.task,
        key=survey.key,
        admin=survey.admin,
        reader=survey.reader,
    ).save(tmp_path / "keys.json")
    return survey


@contextmanager
def watching(folder, *more):
    """The command as a process of its own, which does not outlive the test."""
    command = [sys.executable, "-m", "sfumato", "survey", "status", "keys.json", "--watch", "0.1"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "cwd": folder}
    with subprocess.Popen([*command, *more], **pipes) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM], ids=["SIGINT", "SIGTERM"])
def test_a_watch_tells_what_changes_and_ends_cleanly(made, tmp_path, how):
    with watching(tmp_path) as process:
        line = process.stdout.readline
        assert line() == "created: answers 0 in round 1 (no estimate from fewer than 1)\n"
        assert line().startswith("hash ")
        assert line().startswith("round 1 ")
        made.act("open")
        assert line().startswith("open-1: answers 0 ")
        drive(SurveyLink.read(made.link()), Simulation(people=7))
        assert line().startswith("open-1: answers 7 ")
        process.send_signal(how)
        assert process.communicate(timeout=60) == ("", "")
        assert process.returncode == 0


def test_a_watch_ends_by_itself_when_the_survey_is_over(made, tmp_path):
    made.act("open")
    with watching(tmp_path, "--json") as process:
        made.act("close", {"abandon": True})
        out, err = process.communicate(timeout=60)
        assert (process.returncode, err) == (0, "")
        assert '"state": "abandoned"' in out


def test_a_watch_waits_for_a_server_that_is_away(made, tmp_path, monkeypatch, capsys):
    """Away three times, back, and interrupted: one message, and the state once more."""
    real = SurveyOwner.status
    looks = iter([real, _away, _away, _away, real, real, _interrupted])
    monkeypatch.setattr(SurveyOwner, "status", lambda owner: next(looks)(owner))
    command = ["sfumato", "survey", "status", str(tmp_path / "keys.json"), "--watch", "0.01"]
    monkeypatch.setattr(sys, "argv", command)
    with pytest.raises(SystemExit) as ended:
        main()
    assert not ended.value.code
    said = capsys.readouterr()
    assert said.out.count("created: ") == 2
    assert said.err == "the server is away. Looking again.\n"


def _away(_owner):
    raise StorageError("the server is away.")


def _interrupted(_owner):
    raise KeyboardInterrupt
