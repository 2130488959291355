"""The ledger in PostgreSQL: the same promises as in a file, held by the same tests."""

import json
import os
import runpy
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

import psycopg
import pytest

from servers import OWNER, PASSWORD, Database
from sfumato.errors import BudgetError, InputError, LedgerCorruptError, SfumatoError, StorageError
from sfumato.ledger import Head, Ledger, stores, verify_export
from sfumato.privacy import OneRow, PureDP
from together import at_once

WORKER = Path(__file__).with_name("ledger_worker.py")
POINTS = list(runpy.run_path(str(WORKER))["POINTS"])
UNIT = PureDP("0.01")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SFUMATO_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    return tmp_path / "home"


@pytest.fixture
def address(database: Database) -> str:
    return database.server.address(database.name, password=None)


@pytest.fixture
def ledger(address: str) -> Iterator[Ledger]:
    """With a cap and three spends: entries 0 to 5."""
    with Ledger.open(address, dataset="adult", cap=PureDP(1)) as made:
        for n in range(3):
            made.spend(PureDP("0.1"), label=f"step {n}", protect=OneRow(), request=f"r{n}")
        made.journal("r0", b"outcome")
        yield made


def reopened(address: str) -> Ledger:
    return Ledger.open(address, dataset="adult")


def past_its_triggers(database: Database, sql: str) -> None:
    tables = "sfumato_ledger.entries", "sfumato_ledger.outcomes"
    off = "".join(f"ALTER TABLE {table} DISABLE TRIGGER ALL;\n" for table in tables)
    grant = "".join(f"GRANT ALL ON {table} TO CURRENT_USER;\n" for table in tables)
    database.run(off + grant + sql)


def test_it_keeps_what_a_file_keeps(ledger: Ledger, address: str) -> None:
    again = reopened(address)
    assert again.spent.pure_epsilon == Fraction(3, 10)
    assert again.cap == PureDP(1)
    assert again.outcome("r0") == b"outcome"
    assert again.journal("r0", b"another") == b"outcome"
    assert again.head == ledger.head
    assert "the head is anchored" in str(again.verify())
    assert verify_export(again.export()).head == ledger.head
    assert Ledger.open(address, dataset="other").spent.nothing
    assert again.datasets() == ("adult",)


def test_a_refused_spend_changes_nothing(ledger: Ledger) -> None:
    before = ledger.head
    with pytest.raises(BudgetError):
        ledger.spend(PureDP("0.8"), label="too much", protect=OneRow())
    assert ledger.head == before
    assert ledger.spend(PureDP("0.1"), label="step 1", protect=OneRow(), request="r1").seq == 4
    assert ledger.head == before


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE sfumato_ledger.entries SET body = body",
        "DELETE FROM sfumato_ledger.entries",
        "TRUNCATE sfumato_ledger.entries",
        "UPDATE sfumato_ledger.outcomes SET payload = ''",
        "DELETE FROM sfumato_ledger.outcomes",
    ],
)
def test_the_tables_are_append_only_for_their_owner_too(
    change: str, ledger: Ledger, database: Database
) -> None:
    with pytest.raises(AssertionError, match=r"append-only|permission denied"):
        database.run(change)
    tables = "sfumato_ledger.entries, sfumato_ledger.outcomes"
    with pytest.raises(AssertionError, match="append-only"):
        database.run(f"GRANT ALL ON {tables} TO CURRENT_USER;\n{change}")


CORRUPTED = {
    "UPDATE {e} SET body = replace(body, 'step 1', 'step 9') WHERE seq = 4": "hashes",
    "DELETE FROM {e} WHERE seq = 3": "sequence",
    "DELETE FROM {e} WHERE seq > 3": "anchor",
    "DELETE FROM {e}": "first entry",
    "UPDATE {e} SET previous = repeat('0', 64) WHERE seq = 2": "chain",
    "UPDATE sfumato_ledger.about SET version = 9": "format version",
}


@pytest.mark.parametrize("sql", CORRUPTED, ids=CORRUPTED.values())
def test_what_was_changed_behind_its_back_is_refused(
    sql: str, ledger: Ledger, database: Database, address: str
) -> None:
    past_its_triggers(database, sql.format(e="sfumato_ledger.entries"))
    with pytest.raises(LedgerCorruptError, match=f"check of its {CORRUPTED[sql]} failed"):
        reopened(address)


def test_a_deleted_tail_under_an_open_ledger_is_refused(ledger: Ledger, database: Database) -> None:
    past_its_triggers(database, "DELETE FROM sfumato_ledger.entries WHERE seq > 3")
    with pytest.raises(LedgerCorruptError, match="truncated"):
        ledger.spend(UNIT, label="more", protect=OneRow())


def test_a_changed_outcome_is_refused(ledger: Ledger, database: Database) -> None:
    past_its_triggers(database, "UPDATE sfumato_ledger.outcomes SET payload = 'other'")
    with pytest.raises(LedgerCorruptError, match="outcomes"):
        ledger.outcome("r0")


def test_dropped_tables_are_not_made_anew(
    ledger: Ledger, database: Database, address: str, home: Path
) -> None:
    database.run("DROP SCHEMA sfumato_ledger CASCADE")
    with pytest.raises(LedgerCorruptError, match="tables are gone"):
        ledger.spend(UNIT, label="more", protect=OneRow())
    with pytest.raises(StorageError, match=r"there was a ledger at .*Put the database back"):
        reopened(address)
    (anchor,) = (home / "anchors").glob("*.json")
    anchor.unlink()
    assert reopened(address).spent.nothing


def test_an_older_backup_is_noticed(ledger: Ledger, database: Database, address: str) -> None:
    copy = "CREATE TABLE kept AS SELECT * FROM sfumato_ledger.entries"
    database.run(copy)
    ledger.spend(UNIT, label="later", protect=OneRow())
    back = "INSERT INTO sfumato_ledger.entries SELECT * FROM kept"
    past_its_triggers(database, f"DELETE FROM sfumato_ledger.entries;\n{back}")
    with pytest.raises(LedgerCorruptError, match="older backup"):
        reopened(address)


def test_a_lost_connection_is_made_again(ledger: Ledger, database: Database) -> None:
    mine = "application_name = 'sfumato ledger' AND datname = current_database()"
    database.run(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {mine}")
    assert ledger.spend(UNIT, label="after", protect=OneRow()).seq == 7


def test_a_lock_that_others_held_for_too_long_is_busy_and_free_afterwards(
    ledger: Ledger, database: Database, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether the connection was in use before, or is made for this very spend."""
    ledgers = ledger, reopened(address)
    monkeypatch.setattr(stores, "_POSTGRES_BUSY", "50ms")
    for each in ledgers:
        each.close()
        with _held(database):
            for _ in range(2):
                with pytest.raises(StorageError, match="others were writing"):
                    each.spend(UNIT, label="busy", protect=OneRow())
        assert each.spend(UNIT, label="free", protect=OneRow())
        with _held(database), pytest.raises(StorageError, match="others were writing"):
            each.spend(UNIT, label="busy", protect=OneRow())
        assert each.spend(UNIT, label="free", protect=OneRow())
    assert [entry.label for entry in ledger.entries()].count("free") == 4


@contextmanager
def _held(database: Database) -> Iterator[None]:
    """Somebody who writes and does not end."""
    with psycopg.connect(database.address) as other:
        other.execute(f"SELECT pg_advisory_xact_lock({stores._LOCK})".encode())
        yield


def test_a_crash_of_the_database_loses_no_acknowledged_spend(
    ledger: Ledger, database: Database
) -> None:
    """Though this server does not wait for its log by itself: the ledger makes it."""
    assert database.run("SHOW synchronous_commit") == "off\n"
    for number in range(5):
        ledger.spend(UNIT, label=f"step {number}", protect=OneRow(), request=f"crash {number}")
        mine = "application_name = 'sfumato ledger' AND datname = current_database()"
        (pid, *_) = database.run(f"SELECT pid FROM pg_stat_activity WHERE {mine}").split()
        os.kill(int(pid), signal.SIGKILL)  # the server ends all others and recovers from its log
        _wait_for(database)
        paid = {entry.request for entry in ledger.entries()}
        assert paid >= {f"crash {done}" for done in range(number + 1)}
    assert ledger.verify().rollback_excluded
    assert ledger.spent.pure_epsilon == Fraction(35, 100)


def _wait_for(database: Database) -> None:
    until = time.monotonic() + 60
    while time.monotonic() < until:
        try:
            database.run("SELECT 1")
        except AssertionError:
            time.sleep(0.05)
        else:
            return
    raise AssertionError("the server did not come back")


def test_passwords_are_refused_and_stand_nowhere(
    ledger: Ledger, database: Database, home: Path
) -> None:
    with pytest.raises(InputError, match="PGPASSWORD") as refused:
        Ledger.open(database.address, dataset="adult")
    assert "s3cret" not in str(refused.value)
    (anchor,) = (home / "anchors").glob("*.json")
    assert "s3cret" not in anchor.read_text()
    assert "s3cret" not in json.dumps(ledger.export())


@pytest.mark.parametrize(
    "wrong", ["postgresql://@:x", "postgresql://127.0.0.1:1/none", "postgresql://u@[::1/x"]
)
def test_an_address_that_leads_nowhere_is_one_clear_error(wrong: str) -> None:
    with pytest.raises(SfumatoError, match=r"the ledger"):
        Ledger.open(wrong, dataset="adult")


def test_a_wrong_password_is_one_clear_error(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGPASSWORD", "geheim")
    with pytest.raises(StorageError, match="can't be used") as refused:
        Ledger.open(address, dataset="adult")
    assert "geheim" not in str(refused.value)


def test_a_missing_ledger_is_not_made_where_none_is_wanted(address: str) -> None:
    with pytest.raises(StorageError, match="there is no ledger at postgresql://"):
        Ledger.open(address, dataset="adult", create=False)


def test_a_path_made_of_an_address_is_the_address(ledger: Ledger, address: str) -> None:
    assert Ledger.open(Path(address), dataset="adult", create=False).head == ledger.head


@pytest.mark.parametrize("made", [str, Path])
def test_a_socket_of_this_machine_leads_to_it_too(
    made: Any, ledger: Ledger, database: Database
) -> None:
    server = database.server
    where = f"?host={server.folder}&port={server.port}&user={OWNER}"
    address = made(f"postgresql:///{database.name}{where}")
    assert Ledger.open(address, dataset="adult", create=False).head == ledger.head


def test_colleagues_may_pay_and_not_change(
    ledger: Ledger, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    database.run(
        "CREATE ROLE colleague LOGIN PASSWORD 'pass';\n"
        "GRANT USAGE ON SCHEMA sfumato_ledger TO colleague;\n"
        "GRANT SELECT, INSERT ON ALL TABLES IN SCHEMA sfumato_ledger TO colleague;"
    )
    try:
        monkeypatch.setenv("PGPASSWORD", "pass")
        address = database.server.address(database.name, user="colleague", password=None)
        with Ledger.open(address, dataset="adult") as theirs:
            assert theirs.spend(UNIT, label="theirs", protect=OneRow()).seq == 7
        assert ledger.spent.pure_epsilon == Fraction(31, 100)
    finally:
        database.run("DROP OWNED BY colleague;\nDROP ROLE colleague;")


def test_processes_that_create_one_ledger_at_once_get_exactly_its_200_units(
    address: str, tmp_path: Path, home: Path
) -> None:
    granted = [int(seq) for lines in at_once(WORKER, "race", 4, address, tmp_path) for seq in lines]
    assert len(granted) == len(set(granted)) == 200
    ledger = reopened(address)
    assert ledger.spent.pure_epsilon == 2
    assert ledger.verify().rollback_excluded
    (anchor,) = (home / "anchors").glob("*.json")
    kept = json.loads(anchor.read_text())
    assert Head(kept["seq"], kept["hash"]) == ledger.head


def test_of_processes_that_want_the_last_unit_one_wins(address: str, tmp_path: Path) -> None:
    said = at_once(WORKER, "take_one", 4, address, tmp_path)
    assert sorted(line for lines in said for line in lines) == ["lost"] * 3 + ["won"]


def test_callers_of_one_request_pay_once_and_see_the_same_bytes(
    address: str, tmp_path: Path
) -> None:
    said = at_once(WORKER, "same_request", 4, address, tmp_path)
    answers = [line for lines in said for line in lines]
    assert len(answers) == 40
    assert len(set(answers)) == 1
    assert reopened(address).composed() == UNIT


def serve(address: str, point: str, last: int) -> tuple[int, list[str]]:
    command = [sys.executable, str(WORKER), "serve", address, point, "0", str(last)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=60, check=False)
    return done.returncode, done.stdout.split("\n")[:-1]


@pytest.mark.parametrize("point", POINTS)
def test_a_killed_process_loses_no_spend_and_its_successor_pays_nothing_twice(
    point: str, address: str
) -> None:
    code, said = serve(address, point, 3)
    assert code == -signal.SIGKILL
    ledger = reopened(address)
    paid = {entry.request for entry in ledger.entries() if entry.event == "spend"}
    assert {line.split()[1] for line in said} <= paid <= {f"r{n}" for n in range(3)}
    assert ledger.spent.pure_epsilon == Fraction(len(paid), 100)
    code, again = serve(address, "", 3)
    assert code == 0
    assert reopened(address).spent.pure_epsilon == Fraction(3, 100)
    assert {line for line in said if line.startswith("released")} <= set(again)


def test_threads_share_one_ledger(ledger: Ledger) -> None:
    def work() -> None:
        for _ in range(10):
            ledger.spend(UNIT, label="unit", protect=OneRow())

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ledger.spent.pure_epsilon == Fraction(7, 10)


def test_a_fork_has_a_connection_of_its_own(ledger: Ledger) -> None:
    child = os.fork()
    if child == 0:
        code = 1
        try:
            ledger.spend(UNIT, label="child", protect=OneRow())
            code = 0
        finally:
            os._exit(code)
    ledger.spend(UNIT, label="parent", protect=OneRow())
    assert os.waitpid(child, 0)[1] == 0
    assert ledger.spent.pure_epsilon == Fraction(32, 100)
    ledger.spend(UNIT, label="parent", protect=OneRow())


def test_a_publication_pays_into_it_and_shows_no_address(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any
) -> None:
    from sfumato.cli import main

    (tmp_path / "t.csv").write_text("smoker\n" + "yes\nno\n" * 50)
    columns = [{"name": "smoker", "kind": "boolean"}]
    schema = {"sfumato": 1, "dataset": "adult", "columns": columns}
    (tmp_path / "s.json").write_text(json.dumps(schema))
    monkeypatch.chdir(tmp_path)
    command = ["publish", "t.csv", "--schema", "s.json", "--epsilon", "1", "--method"]
    more = ["independent", "--out", "out", "--ledger", address, "-q"]
    monkeypatch.setattr(sys, "argv", ["sfumato", *command, *more])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code in (0, None), capfd.readouterr().err
    ledger = reopened(address)
    assert ledger.composed() == PureDP(1)
    published = (tmp_path / "out" / "release.json").read_text()
    ledger.verify(anchors=[Head(**json.loads(published)["ledger"]["head"])])
    assert "postgresql" not in published
