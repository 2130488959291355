"""The servers that tests start: every test has its own database, and none outlives the tests."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from servers import Database, Postgres, _programs, started

HOLD = """
import sys, time
sys.path.insert(0, {tests!r})
import servers
with servers.started() as server:
    print(server.folder, flush=True)
    time.sleep(120)
"""


def is_running(number: int) -> bool:
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] != "Z"


def test_a_database_is_empty_and_its_own(postgres: Postgres, database: Database) -> None:
    database.run("CREATE TABLE t (x int)")
    with postgres.fresh() as other:
        other.run("CREATE TABLE t (x int)")
        assert other.name != database.name


def test_a_server_is_stopped_and_its_folder_removed(postgres: Postgres) -> None:
    with started() as server:
        number = int((server.folder / "data" / "postmaster.pid").read_text().split()[0])
        assert is_running(number)
    assert not is_running(number)
    assert not server.folder.exists()


@pytest.mark.skipif(shutil.which("setpriv") is None, reason="needs setpriv of util-linux")
def test_a_server_dies_with_the_tests_that_are_killed(postgres: Postgres) -> None:
    assert _programs() == postgres.programs
    script = HOLD.format(tests=str(Path(__file__).parents[1]))
    held = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    folder = Path(held.stdout.readline().strip())
    try:
        number = int((folder / "data" / "postmaster.pid").read_text().split()[0])
        held.send_signal(signal.SIGKILL)
        held.wait()
        until = time.monotonic() + 30
        while is_running(number):
            assert time.monotonic() < until, "the server is still running"
            time.sleep(0.05)
    finally:
        held.kill()
        shutil.rmtree(folder, ignore_errors=True)
