"""Many processes at one ledger: exactly what the cap allows is granted."""

import json
from fractions import Fraction
from pathlib import Path

import pytest

from sfumato.privacy import Head, Ledger, PureDP
from together import at_once

WORKER = Path(__file__).with_name("ledger_worker.py")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SFUMATO_HOME", str(tmp_path / "home"))


def test_four_processes_create_one_ledger_and_get_exactly_its_200_units(tmp_path: Path) -> None:
    said = at_once(WORKER, "race", 4, str(tmp_path / "ledger"), tmp_path)
    granted = [int(seq) for lines in said for seq in lines]
    assert len(granted) == len(set(granted)) == 200
    ledger = Ledger.open(tmp_path / "ledger", dataset="adult", create=False)
    assert ledger.spent.pure_epsilon == 2
    assert ledger.verify().rollback_excluded
    (anchor,) = (tmp_path / "home" / "anchors").glob("*.json")
    kept = json.loads(anchor.read_text())
    assert Head(kept["seq"], kept["hash"]) == ledger.head
    assert [path.name for path in tmp_path.glob(".ledger*")] == []


def test_of_six_processes_that_want_the_last_unit_one_wins(tmp_path: Path) -> None:
    said = at_once(WORKER, "take_one", 6, str(tmp_path / "ledger"), tmp_path)
    assert sorted(line for lines in said for line in lines) == ["lost"] * 5 + ["won"]
    ledger = Ledger.open(tmp_path / "ledger", dataset="adult")
    assert ledger.spent.pure_epsilon == Fraction(3, 2)


def test_forty_callers_of_one_request_pay_once_and_see_the_same_bytes(tmp_path: Path) -> None:
    said = at_once(WORKER, "same_request", 4, str(tmp_path / "ledger"), tmp_path)
    answers = [line for lines in said for line in lines]
    assert len(answers) == 40
    assert len(set(answers)) == 1
    ledger = Ledger.open(tmp_path / "ledger", dataset="adult")
    assert ledger.composed() == PureDP("0.01")
