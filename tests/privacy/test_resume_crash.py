"""kill -9 in the middle of a paid run: it goes on, with the same noise and without a new charge."""

import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sfumato.commands.publish import publish_table
from sfumato.errors import InputError
from sfumato.gate.budget import Journal
from sfumato.ledger import Ledger
from sfumato.release import TableRelease
from sfumato.schema import Boolean, Integer, Schema

NAMES = "abcdefg"
COLUMNS = [Integer(name=name, low=0, high=4) for name in NAMES]
SCHEMA = Schema(dataset="crash", columns=(*COLUMNS, Boolean(name="member")))

DIE = """
import os, signal, sys
from sfumato.ledger import Ledger
from sfumato.release import TableRelease
from sfumato.cli import main

def die(*arguments, **options):
    os.kill(os.getpid(), signal.SIGKILL)

keep, kept = Ledger.journal, []

def journal(self, request, payload, *, step=0):
    if point == "paid, not told":
        die()
    kept.append(keep(self, request, payload, step=step))
    if point == "told, not handed on" or (point == "between two steps" and len(kept) == 2):
        die()
    return kept[-1]

point = sys.argv.pop(1)
if point == "while writing":
    TableRelease.write_into = die
Ledger.journal = journal
main()
"""
POINTS = ["paid, not told", "told, not handed on", "between two steps", "while writing"]
ASKED: dict[str, dict[str, Any]] = {
    "auto": {"delta": "1e-6"},  # commits to all noise at once
    "mwem": {"options": {"rounds": "2"}},  # two charges, one of which pays for four steps
    "histogram": {},  # one step
}
CASES = [
    *(("auto", point) for point in POINTS[1:]),
    *(("mwem", point) for point in POINTS),
    *(("histogram", point) for point in (POINTS[0], POINTS[3])),
]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    rows = [",".join(str(n // step % 5) for step in range(1, 8)) + f",{n % 2}" for n in range(300)]
    path = tmp_path / "table.csv"
    path.write_text("\n".join([",".join([*NAMES, "member"]), *rows]) + "\n")
    SCHEMA.save(tmp_path / "schema.json")
    return path


def killed(point: str, table: Path, out: Path, method: str) -> None:
    """The command, which dies at a named point."""
    here, asked = table.parent, ASKED[method]
    more = [f"--delta={asked['delta']}"] if "delta" in asked else []
    more += [f"--set={name}={value}" for name, value in asked.get("options", {}).items()]
    arguments = [
        "publish", str(table), "--schema", str(here / "schema.json"), "--epsilon", "1",
        "--ledger", str(here / "ledger"), "--method", method, "--out", str(out), *more,
    ]  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", DIE, point, *arguments],
        env=os.environ.copy(), capture_output=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()[-500:]


def publish(table: Path, out: Path, method: str, resume: bool | None) -> TableRelease:
    return publish_table(
        table, schema=SCHEMA, epsilon=1, method=method, out=out, ledger=table.parent / "ledger",
        resume=resume, **ASKED[method],
    )  # fmt: skip


def outcomes(ledger: Path) -> dict[str, bytes]:
    with sqlite3.connect(ledger) as view:
        return dict(view.execute("SELECT request, payload FROM outcomes").fetchall())


def charges(ledger: Path) -> list[Any]:
    book = Ledger.open(ledger, dataset="crash", create=False)
    return [(entry.label, entry.charged) for entry in book.entries() if entry.charged]


@pytest.mark.parametrize(("method", "point"), CASES)
def test_a_killed_run_goes_on_with_what_it_was_told_and_is_charged_once(
    method: str, point: str, table: Path, tmp_path: Path
) -> None:
    out, ledger = tmp_path / "out", tmp_path / "ledger"
    killed(point, table, out, method)
    before, paid = outcomes(ledger), charges(ledger)
    assert not out.exists()
    assert paid
    assert bool(before) == (point != "paid, not told")
    with pytest.raises(InputError, match=r"did not finish: entry 2, .*resume=True .*resume=False"):
        publish(table, out, method, resume=None)
    release = publish(table, out, method, resume=True)
    after = outcomes(ledger)
    assert {key: after[key] for key in before} == before
    assert charges(ledger)[: len(paid)] == paid
    assert release.guarantee.epsilon == 1
    assert [entry["label"] for entry in release.ledger["entries"]] == [
        label for label, _ in charges(ledger)
    ]
    assert TableRelease.load(out).marginals().equals(release.marginals())
    with pytest.raises(InputError, match="nothing to resume"):
        publish(table, tmp_path / "again", method, resume=True)
    assert Ledger.open(ledger, dataset="crash").verify().rollback_excluded


def test_a_killed_run_can_be_left_and_paid_again(table: Path, tmp_path: Path) -> None:
    killed("while writing", table, tmp_path / "out", "histogram")
    book = Ledger.open(tmp_path / "ledger", dataset="crash")
    publish(table, tmp_path / "out", "histogram", resume=False)
    assert book.spent.pure_epsilon == 2
    publish(table, tmp_path / "second", "histogram", resume=None)  # the last one did finish
    assert book.spent.pure_epsilon == 3


def test_two_that_resume_one_run_publish_the_same_counts(
    table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second begins when the first has drawn, but not finished."""
    killed("paid, not told", table, tmp_path / "out", "auto")
    found: list[TableRelease] = []
    close = Journal.close

    def meanwhile(self: Journal, why: str) -> None:
        monkeypatch.setattr(Journal, "close", close)
        found.append(publish(table, tmp_path / "second", "auto", resume=True))
        close(self, why)

    monkeypatch.setattr(Journal, "close", meanwhile)
    found.append(publish(table, tmp_path / "out", "auto", resume=True))
    assert found[0].marginals().equals(found[1].marginals())
    assert len(charges(tmp_path / "ledger")) == 1
