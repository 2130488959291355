"""Both stores of a ledger, the file and the lists in memory, keep the same promises."""

from collections.abc import Callable
from pathlib import Path

import pytest

from sfumato.errors import LedgerCorruptError
from sfumato.ledger import sqlite_store
from sfumato.ledger.entries import Row, genesis, linked
from sfumato.ledger.memory_store import MemoryStorage
from sfumato.ledger.storage import Storage

FIRST = genesis("0" * 32, "now")
ONE = linked({"dataset": "adult", "request": "a"}, FIRST.head)
TWO = linked({"dataset": "census"}, ONE.head)


def in_file(folder: Path) -> Storage:
    sqlite_store.create(folder / "study.ledger", FIRST, "token")
    return sqlite_store.SqliteStorage(folder / "study.ledger")


STORES = {"file": in_file, "memory": lambda _: MemoryStorage(FIRST)}


@pytest.fixture(params=STORES.values(), ids=STORES)
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    make: Callable[[Path], Storage] = request.param
    return make(tmp_path)


def keep(storage: Storage, *rows: Row) -> None:
    with storage.writing() as view:
        for row in rows:
            view.append(row)


def test_rows_are_found_by_place_dataset_and_request(storage: Storage) -> None:
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


def test_what_an_error_interrupts_is_undone(storage: Storage) -> None:
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
def test_neither_a_place_nor_a_request_is_taken_twice(storage: Storage, again: Row) -> None:
    keep(storage, ONE, TWO)
    with pytest.raises(LedgerCorruptError):
        keep(storage, again)
    with storage.reading() as view:
        assert view.head() == TWO


def test_an_outcome_is_kept_once(storage: Storage) -> None:
    keep(storage, ONE)
    with storage.writing() as view:
        view.keep_outcome("adult", "a", b"first")
    with pytest.raises(LedgerCorruptError), storage.writing() as view:
        view.keep_outcome("adult", "a", b"second")
    storage.close()
    with storage.reading() as view:
        assert view.outcome("adult", "a") == b"first"
        assert [*view.outcomes()] == [("adult", "a", b"first")]
