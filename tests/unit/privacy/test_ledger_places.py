"""Where a ledger lives, who may share it, and what happens when the place gives out."""

import os
import sqlite3
import threading
from fractions import Fraction
from pathlib import Path

import pytest

from sfumato.errors import BudgetError, InputError, StorageError
from sfumato.privacy import Ledger, OneRow, PureDP, default_path

ROW = OneRow()


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger.open(tmp_path / "study.ledger", dataset="adult", cap=PureDP(1))


def test_the_default_ledger_is_in_the_state_directory(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert default_path() == home / "ledger.sqlite"
    Ledger.open(dataset="adult").spend(PureDP(1), label="x", protect=ROW)
    assert default_path().exists()
    monkeypatch.delenv("SFUMATO_HOME")
    monkeypatch.setenv("XDG_STATE_HOME", "/var/state")
    assert default_path() == Path("/var/state/sfumato/ledger.sqlite")
    monkeypatch.delenv("XDG_STATE_HOME")
    assert default_path() == Path.home() / ".local/state/sfumato/ledger.sqlite"


def test_a_missing_directory_is_a_storage_error(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="Make sure that its directory exists"):
        Ledger.open(tmp_path / "nowhere" / "l", dataset="adult")


def test_a_directory_that_can_not_be_written_is_a_storage_error() -> None:
    with pytest.raises(StorageError, match="can't be used"):
        Ledger.open("/proc/sfumato.ledger", dataset="adult")


def test_a_missing_ledger_is_not_made_unasked(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="there is no ledger"):
        Ledger.open(tmp_path / "l", dataset="adult", create=False)
    assert not (tmp_path / "l").exists()


def test_a_ledger_that_disappears_is_not_made_again(ledger: Ledger, tmp_path: Path) -> None:
    (tmp_path / "study.ledger").unlink()
    with pytest.raises(StorageError, match="No such file"):
        ledger.spend(PureDP("0.1"), label="x", protect=ROW)


def test_a_full_disk_is_a_storage_error_and_spends_nothing(ledger: Ledger) -> None:
    ledger.spend(PureDP("0.1"), label="x", protect=ROW)
    connection = ledger._storage._connected()  # type: ignore[attr-defined]
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    connection.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(StorageError, match="full"):
        _ = [ledger.look(f"{n} " + "x" * 1900) for n in range(100)]
    ledger.close()
    assert ledger.spent.pure_epsilon == Fraction(1, 10)
    assert ledger.verify().rollback_excluded


def test_an_anchor_that_can_not_be_written_does_not_undo_a_spend(
    ledger: Ledger, home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for anchor in (home / "anchors").iterdir():
        anchor.unlink()
    (home / "anchors").rmdir()
    (home / "anchors").write_text("a file where a directory should be")
    assert ledger.spend(PureDP("0.1"), label="x", protect=ROW).seq == 3
    assert "anchor can't be written" in caplog.text
    assert not ledger.verify().rollback_excluded


def test_an_in_memory_ledger_writes_nothing(home: Path) -> None:
    ledger = Ledger.in_memory(dataset="adult")
    ledger.spend(PureDP(1), label="x", protect=ROW)
    ledger.close()
    assert ledger.spent.pure_epsilon == 1
    assert not home.exists()
    assert "can't be excluded" in str(ledger.verify())


@pytest.mark.parametrize("name", ["", " adult", "adult\n", "x" * 201, "a\x00b"])
def test_a_dataset_needs_a_plain_name(name: str) -> None:
    with pytest.raises(InputError, match="dataset must"):
        Ledger.in_memory(dataset=name)


def test_a_label_is_required(ledger: Ledger) -> None:
    with pytest.raises(InputError, match="label must"):
        ledger.spend(PureDP("0.1"), label="", protect=ROW)


def test_threads_share_a_ledger(ledger: Ledger) -> None:
    granted: list[int] = []

    def work() -> None:
        for _ in range(4):
            try:
                granted.append(ledger.spend(PureDP("0.1"), label="x", protect=ROW).seq)
            except BudgetError:
                return

    threads = [threading.Thread(target=work) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(granted)) == len(granted) == 10


def test_a_forked_child_spends_from_the_same_budget(ledger: Ledger) -> None:
    ledger.spend(PureDP("0.4"), label="parent", protect=ROW)
    if (child := os.fork()) == 0:
        ledger.spend(PureDP("0.4"), label="child", protect=ROW)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert ledger.spent.pure_epsilon == Fraction(4, 5)
    with pytest.raises(BudgetError):
        ledger.spend(PureDP("0.4"), label="parent", protect=ROW)


def test_the_file_itself_refuses_updates_and_deletions(ledger: Ledger, tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "study.ledger") as connection:
        for statement in ("UPDATE entries SET body = '{}'", "DELETE FROM entries"):
            with pytest.raises(sqlite3.IntegrityError, match="append-only"):
                connection.execute(statement)
    connection.close()
    assert ledger.verify().rollback_excluded
