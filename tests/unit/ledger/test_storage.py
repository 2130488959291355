"""Finding a ledger or making one, and the anchors that notice a lost or older file."""

import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest

from sfumato.errors import BudgetError, InputError, LedgerCorruptError, StorageError
from sfumato.ledger import Ledger, default_path, stores
from sfumato.ledger.entries import Row, genesis, linked
from sfumato.ledger.stores import Store
from sfumato.privacy import OneRow, PureDP

FIRST = genesis("0" * 32, "now")
ONE = linked({"dataset": "adult", "request": "a"}, FIRST.head)
TWO = linked({"dataset": "census"}, ONE.head)


def in_file(folder: Path) -> Store:
    stores.create(folder / "study.ledger", FIRST)
    return stores.SqliteStore(folder / "study.ledger")


STORES = {"file": in_file, "memory": lambda _: stores.SqliteStore.in_memory(FIRST)}


@pytest.fixture(params=STORES.values(), ids=STORES)
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    make: Callable[[Path], Store] = request.param
    return make(tmp_path)


def keep(storage: Store, *rows: Row) -> None:
    with storage.writing() as view:
        for row in rows:
            view.append(row)


def test_rows_are_found_by_place_dataset_and_request(storage: Store) -> None:
    keep(storage, ONE, TWO)
    with storage.reading() as view:
        view.check_structure()
        assert list(view.rows()) == [FIRST, ONE, TWO]
        assert view.head() == TWO
        assert [view.at(seq) for seq in (0, 2, 3, -1)] == [FIRST, TWO, None, None]
        assert view.latest("adult") == ONE
        assert view.latest("nobody") is None
        assert view.with_request("adult", "a") == ONE
        assert view.with_request("census", "a") is None


def test_what_an_error_interrupts_is_undone(storage: Store) -> None:
    keep(storage, ONE)

    def interrupted() -> None:
        with storage.writing() as view:
            view.append(TWO)
            view.keep_outcome("adult", "a", b"never told")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    with storage.reading() as view:
        assert view.head() == ONE
        assert view.latest("census") is None
        assert view.outcome("adult", "a") is None
    keep(storage, TWO)


@pytest.mark.parametrize("again", [ONE, linked({"dataset": "adult", "request": "a"}, TWO.head)])
def test_neither_a_place_nor_a_request_is_taken_twice(storage: Store, again: Row) -> None:
    keep(storage, ONE, TWO)
    with pytest.raises(LedgerCorruptError):
        keep(storage, again)
    with storage.reading() as view:
        assert view.head() == TWO


def test_an_outcome_is_kept_once(storage: Store) -> None:
    keep(storage, ONE)
    with storage.writing() as view:
        view.keep_outcome("adult", "a", b"first")
    with pytest.raises(LedgerCorruptError), storage.writing() as view:
        view.keep_outcome("adult", "a", b"second")
    storage.close()
    with storage.reading() as view:
        assert view.outcome("adult", "a") == b"first"
        assert [*view.outcomes()] == [("adult", "a", b"first")]


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
    connection = ledger._store._connected()  # type: ignore[attr-defined]
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


def forked(work: Callable[[], object]) -> int:
    """The id of a child that does some work and ends, whatever happens."""
    if child := os.fork():
        return child
    signal.alarm(20)
    try:
        work()
        os._exit(0)
    finally:
        os._exit(1)


def test_a_forked_child_spends_from_the_same_budget(ledger: Ledger) -> None:
    ledger.spend(PureDP("0.4"), label="parent", protect=ROW)
    child = forked(lambda: ledger.spend(PureDP("0.4"), label="child", protect=ROW))
    assert os.waitpid(child, 0)[1] == 0
    assert ledger.spent.pure_epsilon == Fraction(4, 5)
    with pytest.raises(BudgetError):
        ledger.spend(PureDP("0.4"), label="parent", protect=ROW)


def use_write_ahead_log(path: Path) -> None:
    """What an older version made: a file whose locks last as long as its connections."""
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA journal_mode = WAL").fetchone() == ("wal",)
    connection.close()


@pytest.mark.parametrize("older", [False, True])
def test_a_parent_that_closes_first_loses_no_spend_of_its_child(
    ledger: Ledger, tmp_path: Path, older: bool
) -> None:
    if older:
        ledger.close()
        use_write_ahead_log(tmp_path / "study.ledger")
    ledger.spend(PureDP("0.1"), label="parent", protect=ROW)
    here, there = socket.socketpair()

    def spend_twice() -> None:
        here.close()
        for n in range(2):
            ledger.spend(PureDP("0.1"), label=f"child {n}", protect=ROW)
            there.send(b"x")
            there.recv(1)

    child = forked(spend_twice)
    there.close()
    with here:
        assert here.recv(1) == b"x"
        ledger.close()
        here.send(b"x")
        assert here.recv(1) == b"x"
        with Ledger.open(tmp_path / "study.ledger", dataset="adult", create=False) as again:
            assert again.spent.pure_epsilon == Fraction(3, 10)
            assert again.verify().rollback_excluded
    assert os.waitpid(child, 0)[1] == 0


def test_a_fork_waits_for_the_transactions_of_other_threads(ledger: Ledger) -> None:
    started, finish, after_fork = threading.Event(), threading.Event(), threading.Event()

    waited: list[bool] = []

    def hold() -> None:
        with ledger._store.writing():
            started.set()
            finish.wait(10)
            waited.append(not after_fork.is_set())

    def let_go() -> None:
        after_fork.wait(0.2)  # gives a fork that does not wait the time to be seen
        finish.set()

    threads = [threading.Thread(target=work) for work in (hold, let_go)]
    threads[0].start()
    started.wait(10)
    threads[1].start()
    child = forked(lambda: ledger.spend(PureDP("0.1"), label="child", protect=ROW))
    after_fork.set()
    assert os.waitpid(child, 0)[1] == 0
    for thread in threads:
        thread.join()
    assert waited == [True]
    assert ledger.spend(PureDP("0.1"), label="parent", protect=ROW).seq == 4


def in_another_process(code: str, path: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


LOCK = """
import sqlite3, sys
try:
    sqlite3.connect(sys.argv[1], timeout=0).execute("BEGIN IMMEDIATE")
    print("free")
except sqlite3.OperationalError as error:
    print(error)
"""

SPEND = """
import sys
from sfumato.ledger import Ledger
from sfumato.privacy import OneRow, PureDP
with Ledger.open(sys.argv[1], dataset="adult") as ledger:
    ledger.spend(PureDP("0.1"), label="other", protect=OneRow())
    print(ledger.spent)
"""


def test_a_second_ledger_object_leaves_the_lock_of_the_first_alone(
    ledger: Ledger, tmp_path: Path
) -> None:
    path = tmp_path / "study.ledger"
    assert in_another_process(LOCK, path) == "free"
    with ledger._store.writing():
        Ledger.open(path, dataset="census")
        assert in_another_process(LOCK, path) == "database is locked"


@pytest.mark.parametrize("older", [False, True])
def test_two_ledger_objects_and_another_process_lose_no_spend(tmp_path: Path, older: bool) -> None:
    path = tmp_path / "shared.ledger"
    first = Ledger.open(path, dataset="adult", cap=PureDP(1))
    if older:
        first.close()
        use_write_ahead_log(path)
    first.spend(PureDP("0.1"), label="first", protect=ROW)
    second = Ledger.open(path, dataset="adult")
    assert in_another_process(SPEND, path) == "epsilon=0.2"
    first.spend(PureDP("0.5"), label="first again", protect=ROW)
    assert in_another_process(SPEND, path) == "epsilon=0.8"
    assert first.spent == second.spent
    assert first.verify().rollback_excluded


def test_a_ledger_is_for_its_owner_alone(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        Ledger.open(tmp_path / "mine", dataset="adult").look("x")
    finally:
        os.umask(before)
    assert (tmp_path / "mine").stat().st_mode & 0o777 == 0o600


def test_a_lost_ledger_is_not_replaced_by_a_new_budget(ledger: Ledger, home: Path) -> None:
    path = home.parent / "study.ledger"
    content = path.read_bytes()
    ledger.close()
    path.unlink()
    (anchor,) = (home / "anchors").iterdir()
    with pytest.raises(StorageError, match=f"there was a ledger at {path}.*anchor {anchor}"):
        Ledger.open(path, dataset="adult")
    with pytest.raises(StorageError, match="there was a ledger"):
        Ledger.open(home / ".." / path.name, dataset="adult")
    assert not path.exists()
    path.write_bytes(content)
    assert Ledger.open(path, dataset="adult").cap == PureDP(1)
    path.unlink()
    anchor.unlink()
    assert Ledger.open(path, dataset="adult").cap is None


def test_a_moved_ledger_leaves_its_old_place_with_its_next_entry(
    ledger: Ledger, tmp_path: Path
) -> None:
    path = tmp_path / "study.ledger"
    ledger.close()
    path.rename(tmp_path / "moved.ledger")
    Ledger.open(tmp_path / "moved.ledger", dataset="adult").look("x")
    assert Ledger.open(path, dataset="adult").cap is None


def test_an_anchor_without_a_place_still_anchors(ledger: Ledger, home: Path) -> None:
    (anchor,) = (home / "anchors").iterdir()
    kept = json.loads(anchor.read_text())
    del kept["path"]
    anchor.write_text(json.dumps(kept))
    (home / "anchors" / "garbled.json").write_text("[")
    assert ledger.verify().rollback_excluded
    Ledger.open(home.parent / "another", dataset="adult")


def test_the_file_itself_refuses_updates_and_deletions(ledger: Ledger, tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "study.ledger") as connection:
        for statement in ("UPDATE entries SET body = '{}'", "DELETE FROM entries"):
            with pytest.raises(sqlite3.IntegrityError, match="append-only"):
                connection.execute(statement)
    connection.close()
    assert ledger.verify().rollback_excluded
