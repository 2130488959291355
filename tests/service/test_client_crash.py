"""A device that is killed at any point answers once, with the bytes that it kept first."""

import signal
import subprocess
import sys

import pytest

from service.liar import lying

DEVICE = """
import os, signal, sys
import sfumato as sf
from sfumato.survey.protocol.http_client import Server
from sfumato.survey.device.device_state import StateFile

def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)

def after(owner, name, times):
    real, seen = getattr(owner, name), []
    def patched(*given, **named):
        found = real(*given, **named)
        seen.append(1)
        if len(seen) == times:
            die()
        return found
    setattr(owner, name, patched)

POINTS = {
    "": lambda: None,
    "the survey was read, not pinned": lambda: setattr(StateFile, "write", die),
    "pinned": lambda: after(StateFile, "write", 1),
    "the plan was read": lambda: after(Server, "call", 2),
    "drawn and kept, not sent": lambda: after(StateFile, "write", 2),
    "sent, no receipt kept": lambda: after(Server, "call", 3),
    "the receipt was kept": lambda: after(StateFile, "write", 3),
}
POINTS[sys.argv[3]]()
record = {"smoker": "yes", "health": "fair"}
client = sf.SurveyClient(sys.argv[1], record, state=sys.argv[2], rng=sf.secure_rng())
print(client.step().what)
"""
POINTS = [
    "the survey was read, not pinned",
    "pinned",
    "the plan was read",
    "drawn and kept, not sent",
    "sent, no receipt kept",
    "the receipt was kept",
]


@pytest.fixture
def liar():
    with lying() as made:
        yield made


def run(liar, tmp_path, point):
    command = [sys.executable, "-c", DEVICE, str(liar.link), str(tmp_path / "state"), point]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("point", POINTS)
def test_a_killed_device_sends_the_same_answer_or_had_sent_none(point, liar, tmp_path):
    assert run(liar, tmp_path, point).returncode == -signal.SIGKILL
    done = run(liar, tmp_path, "")
    assert done.stdout.strip() in ("answered", "known"), done.stderr
    assert 1 <= len(liar.posted) <= 2
    assert len(set(liar.posted)) == 1
    assert run(liar, tmp_path, "").stdout == "known\n"
