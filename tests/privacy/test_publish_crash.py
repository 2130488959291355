"""kill -9 between spend and release, and two processes that race for the last of a cap."""

import os
import signal
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from sfumato.commands.publish import publish_table
from sfumato.ledger import Ledger
from sfumato.privacy import PureDP
from sfumato.release import TableRelease
from sfumato.schema import Boolean, Integer, Schema

SCHEMA = Schema(
    dataset="crash", columns=(Integer(name="age", low=0, high=9), Boolean(name="member"))
)

DIE = """
import os, signal, sys
from pathlib import Path
from sfumato import release, report
from sfumato.gate import curator

def die(*arguments, **options):
    os.kill(os.getpid(), signal.SIGKILL)

owner, name = {
    "paid, not looked at": (curator, "count_marginals"),
    "drawn, not written": (release.TableRelease, "write_into"),
    "written without report": (report, "write"),
    "written, not named": (Path, "rename"),
}[sys.argv.pop(1)]
setattr(owner, name, die)
"""

WAIT = """
import sys, time
from pathlib import Path
from sfumato.commands import inferred_schema

publish, here = inferred_schema.released, Path(sys.argv.pop(1))

def publish_together(algorithm, curator):
    "Both have passed the check of the cap; now the spends decide."
    (here / f"ready-{sys.argv[-1].replace('/', '_')}").touch()
    deadline = time.monotonic() + 60
    while len(list(here.glob("ready-*"))) < 2 and time.monotonic() < deadline:
        time.sleep(0.001)
    return publish(algorithm, curator)

inferred_schema.released = publish_together
"""

RUN = "from sfumato.cli import main; main()"

POINTS = [
    "paid, not looked at",
    "drawn, not written",
    "written without report",
    "written, not named",
]


@pytest.fixture
def arguments(tmp_path: Path) -> list[str]:
    rows = [f"{n % 10},{n % 2}" for n in range(100)]
    (tmp_path / "table.csv").write_text("\n".join(["age,member", *rows]) + "\n")
    SCHEMA.save(tmp_path / "schema.json")
    return [
        "publish", str(tmp_path / "table.csv"), "--schema", str(tmp_path / "schema.json"),
        "--ledger", str(tmp_path / "ledger"), "--method", "histogram",
    ]  # fmt: skip


def start(code: str, *arguments: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", code, *arguments]
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, env=os.environ.copy(), **pipes)


@pytest.mark.parametrize("point", POINTS)
def test_a_killed_publication_has_paid_and_shows_no_release(
    point: str, arguments: list[str], tmp_path: Path
) -> None:
    out, ledger = tmp_path / "out", tmp_path / "ledger"
    killed = start(DIE + RUN, point, *arguments, "--epsilon", "0.5", "--out", str(out))
    killed.communicate(timeout=60)
    assert killed.returncode == -signal.SIGKILL
    book = Ledger.open(ledger, dataset="crash", create=False)
    assert book.spent.pure_epsilon == Fraction(1, 2)
    assert book.verify().rollback_excluded
    assert not out.exists()
    next_one = publish_table(
        tmp_path / "table.csv", schema=SCHEMA, epsilon="0.25", method="histogram", out=out,
        ledger=ledger,
    )  # fmt: skip
    assert TableRelease.load(out).data.equals(next_one.data)
    assert book.spent.pure_epsilon == Fraction(3, 4)


def test_of_two_processes_that_race_for_the_rest_of_a_cap_one_publishes(
    arguments: list[str], tmp_path: Path
) -> None:
    ledger = tmp_path / "ledger"
    Ledger.open(ledger, dataset="crash", cap=PureDP(1)).close()
    outs = [tmp_path / "first", tmp_path / "second"]
    racing = [
        start(WAIT + RUN, str(tmp_path), *arguments, "--epsilon", "0.6", "--out", str(out))
        for out in outs
    ]
    said = [process.communicate(timeout=60) for process in racing]
    codes = [process.returncode for process in racing]
    assert sorted(codes) == [0, 3], said
    assert [out.exists() for out in outs] == [code == 0 for code in codes]
    assert len(list(tmp_path.glob("ready-*"))) == 2
    assert Ledger.open(ledger, dataset="crash").spent.pure_epsilon == Fraction(3, 5)
    (_, refused) = said[codes.index(3)]
    assert "only epsilon=0.4 is left of the cap epsilon=1" in refused
