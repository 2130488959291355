"""What the stores of a ledger share: the SQL of a transaction, taking turns, and forks.

A ledger is two append-only tables. ``entries`` holds the rows of the hash chain; its indexes read
dataset and request from the body itself, so there is no second copy that could disagree.
``outcomes`` holds what was drawn for a request that was paid.
"""

import os
import threading
import weakref
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any, ClassVar

from sfumato.ledger.entries import Row, corrupt


class Transaction:
    """One consistent view of the ledger; in a writing one nobody else writes meanwhile."""

    _entries: ClassVar = "entries"
    _outcomes: ClassVar = "outcomes"
    _dataset: ClassVar[str]
    """The expression that reads the dataset from a body."""
    _request: ClassVar[str]

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def head(self) -> Row | None:
        """The last row."""
        return self._row("ORDER BY seq DESC LIMIT 1")

    def at(self, seq: int) -> Row | None:
        """The row with this number."""
        return self._row("WHERE seq = ?", seq)

    def latest(self, dataset: str) -> Row | None:
        """The last row of a dataset."""
        return self._row(f"WHERE {self._dataset} = ? ORDER BY seq DESC LIMIT 1", dataset)

    def with_request(self, dataset: str, request: str) -> Row | None:
        """The row that paid for a request."""
        return self._row(f"WHERE {self._dataset} = ? AND {self._request} = ?", dataset, request)

    def rows(self) -> Iterator[Row]:
        """All rows in order."""
        return (Row(*values) for values in self._select("ORDER BY seq"))

    def append(self, row: Row) -> None:
        """Add the next row."""
        sql = f"INSERT INTO {self._entries} (seq, body, previous, hash) VALUES (?, ?, ?, ?)"
        self.execute(sql, row.seq, row.body, row.previous, row.hash)

    def outcome(self, dataset: str, request: str) -> bytes | None:
        """What was drawn for a request."""
        sql = f"SELECT payload FROM {self._outcomes} WHERE dataset = ? AND request = ?"
        values = self.execute(sql, dataset, request).fetchone()
        return _bytes(values[0]) if values else None

    def outcomes(self) -> Iterator[tuple[str, str, bytes]]:
        """All outcomes: dataset, request and content."""
        for dataset, request, payload in self.execute(f"SELECT * FROM {self._outcomes}"):
            yield dataset, request, _bytes(payload)

    def keep_outcome(self, dataset: str, request: str, payload: bytes) -> None:
        """Store the outcome of a request that has none yet."""
        sql = f"INSERT INTO {self._outcomes} VALUES (?, ?, ?)"
        self.execute(sql, dataset, request, payload)

    def check_structure(self) -> None:
        """Refuse a store whose own structure (pages, indexes, version) is damaged."""
        raise NotImplementedError

    def execute(self, sql: str, *values: Any) -> Any:
        """Run one statement with ``?`` for values; a cursor over its result."""
        return self._connection.execute(sql, values)

    def _select(self, which: str, *values: Any) -> Any:
        return self.execute(
            f"SELECT seq, body, previous, hash FROM {self._entries} {which}", *values
        )

    def _row(self, which: str, *values: Any) -> Row | None:
        row = self._select(which, *values).fetchone()
        return Row(*row) if row else None


def _bytes(payload: Any) -> bytes:
    if not isinstance(payload, bytes):  # SQLite stores whatever it is given
        raise corrupt("outcomes", "one of them is of another type")
    return payload


class Store:
    """A ledger's store. One transaction at a time in a process, and none while it forks."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        _stores.add(self)

    def reading(self) -> AbstractContextManager[Transaction]:
        """A view for reading."""
        raise NotImplementedError

    def writing(self) -> AbstractContextManager[Transaction]:
        """A view for writing, alone; durable once left, undone if left by an error."""
        raise NotImplementedError

    def close(self) -> None:
        """Release the connection; it is made again when used."""
        raise NotImplementedError

    def before_fork(self) -> None:
        """With the lock held, in the parent."""

    def after_fork_in_child(self) -> None:
        """Never use, nor close, a connection of the parent."""
        raise NotImplementedError


_stores: "weakref.WeakSet[Store]" = weakref.WeakSet()


class _Forks:
    """No store is in the middle of a transaction while the process forks."""

    def __init__(self) -> None:
        self._one_at_a_time = threading.RLock()
        self._paused: list[Store] = []

    def before(self) -> None:
        self._one_at_a_time.acquire()
        self._paused = list(_stores)
        for store in self._paused:
            store.lock.acquire()
            store.before_fork()

    def after_in_parent(self) -> None:
        for store in self._paused:
            store.lock.release()
        self._paused = []
        self._one_at_a_time.release()

    def after_in_child(self) -> None:
        for store in list(_stores):
            store.lock = threading.RLock()  # one that another thread held would never open
            store.after_fork_in_child()
        self._one_at_a_time = threading.RLock()
        self._paused = []


if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
    _forks = _Forks()
    os.register_at_fork(
        before=_forks.before,
        after_in_parent=_forks.after_in_parent,
        after_in_child=_forks.after_in_child,
    )
