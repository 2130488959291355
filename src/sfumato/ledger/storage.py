"""Finding a ledger, or making it where there was none: in a file or in a database."""

from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from sfumato.errors import StorageError
from sfumato.ledger import anchors, bodies, postgres_store, sqlite_store
from sfumato.ledger.entries import Row, genesis
from sfumato.randomness import secure_rng


class Transaction(Protocol):
    """One consistent view of the ledger; in a writing one nobody else writes meanwhile."""

    def head(self) -> Row | None:
        """The last row."""

    def at(self, seq: int) -> Row | None:
        """The row with this number."""

    def latest(self, dataset: str) -> Row | None:
        """The last row of a dataset."""

    def with_request(self, dataset: str, request: str) -> Row | None:
        """The row that paid for a request."""

    def rows(self) -> Iterator[Row]:
        """All rows in order."""

    def append(self, row: Row) -> None:
        """Add the next row."""

    def outcome(self, dataset: str, request: str) -> bytes | None:
        """What was kept for a request."""

    def outcomes(self) -> Iterator[tuple[str, str, bytes]]:
        """All that was kept: dataset, request and content."""

    def keep_outcome(self, dataset: str, request: str, payload: bytes) -> None:
        """Keep an outcome; there is none yet."""

    def check_structure(self) -> None:
        """Refuse a store whose own structure (pages, indexes) is damaged."""


class Storage(Protocol):
    """A ledger's store: one file, later also a database server."""

    def reading(self) -> AbstractContextManager[Transaction]:
        """A view for reading."""

    def writing(self) -> AbstractContextManager[Transaction]:
        """A view for writing, alone; durable once left, undone if left by an error."""

    def close(self) -> None:
        """Let go of the store; it opens itself again when used."""


def opened(path: str | Path | None, *, create: bool) -> tuple[Storage, Path | str]:
    """A ledger's store, and where it is: a file, or the place of a database.

    Args:
        path: A file, None for the default one, or postgresql://user@host/database.
        create: Whether a missing ledger is made; one that was lost is not.
    """
    if path is not None and postgres_store.is_address(str(path)):
        return _database(str(path), create=create)
    where = Path(path) if path is not None else anchors.default_path()
    if path is None and create:
        anchors.make_directory(where.parent)
    if not where.exists():
        if not create:
            raise _missing(where)
        anchors.refuse_lost(anchors.anchors_directory(), where)
        token = secure_rng().token()
        sqlite_store.create(where, genesis(token, bodies.today()), token)
    return sqlite_store.SqliteStorage(where), where


def _database(address: str, *, create: bool) -> tuple[Storage, str]:
    storage = postgres_store.PostgresStorage(address)
    with storage.reading() as view:
        there = view.exists()
    if not there and not create:
        raise _missing(storage.place)
    if not there:
        with storage.writing() as writing:
            if not writing.exists():  # somebody else may just have made it
                anchors.refuse_lost(anchors.anchors_directory(), storage.place)
                writing.create(genesis(secure_rng().token(), bodies.today()))
    return storage, storage.place


def _missing(where: Path | str) -> StorageError:
    return StorageError(f"there is no ledger at {where}")
