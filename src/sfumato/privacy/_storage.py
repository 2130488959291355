"""What the ledger asks of its storage: two kinds of transactions over rows and outcomes."""

from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Protocol

from sfumato.privacy._entries import Row


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
