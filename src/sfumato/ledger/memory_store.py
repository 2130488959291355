"""The ledger in plain lists: gone with the process, for simulation and tests."""

import json
import os
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager

from sfumato.ledger.entries import Row, corrupt


class MemoryStorage:
    """Rows and outcomes of one process; it is its own transaction, under a lock."""

    def __init__(self, first: Row) -> None:
        self._lock = threading.RLock()
        self._outcomes: dict[tuple[str, str], bytes] = {}
        self._keep([first])
        _storages.add(self)

    @contextmanager
    def reading(self) -> Iterator["MemoryStorage"]:
        """A view for reading."""
        with self._lock:
            yield self

    @contextmanager
    def writing(self) -> Iterator["MemoryStorage"]:
        """A view for writing, alone; undone if left by an error."""
        with self._lock:
            rows, outcomes = len(self._rows), dict(self._outcomes)
            try:
                yield self
            except BaseException:
                self._keep(self._rows[:rows])
                self._outcomes = outcomes
                raise

    def close(self) -> None:
        """There is nothing to let go of."""

    def head(self) -> Row | None:
        """The last row."""
        return self._rows[-1]

    def at(self, seq: int) -> Row | None:
        """The row with this number."""
        return self._rows[seq] if 0 <= seq < len(self._rows) else None

    def latest(self, dataset: str) -> Row | None:
        """The last row of a dataset."""
        return self._latest.get(dataset)

    def with_request(self, dataset: str, request: str) -> Row | None:
        """The row that paid for a request."""
        return self._paid.get((dataset, request))

    def rows(self) -> Iterator[Row]:
        """All rows in order."""
        return iter(tuple(self._rows))

    def append(self, row: Row) -> None:
        """Add the next row."""
        body = json.loads(row.body)
        dataset, request = body.get("dataset"), body.get("request")
        if row.seq != len(self._rows) or (dataset, request) in self._paid:
            raise corrupt("database structure", f"entry {row.seq} or its request is there already")
        self._rows.append(row)
        self._latest[dataset] = row
        if request is not None:
            self._paid[dataset, request] = row

    def outcome(self, dataset: str, request: str) -> bytes | None:
        """What was kept for a request."""
        return self._outcomes.get((dataset, request))

    def outcomes(self) -> Iterator[tuple[str, str, bytes]]:
        """All that was kept: dataset, request and content."""
        return ((*key, payload) for key, payload in tuple(self._outcomes.items()))

    def keep_outcome(self, dataset: str, request: str, payload: bytes) -> None:
        """Keep an outcome; there is none yet."""
        if (dataset, request) in self._outcomes:
            raise corrupt("database structure", "an outcome is there already")
        self._outcomes[dataset, request] = payload

    def check_structure(self) -> None:
        """Lists have none that could be damaged."""

    def begin_anew_in_child(self) -> None:
        """After a fork: a lock that another thread held would never open."""
        self._lock = threading.RLock()

    def _keep(self, rows: list[Row]) -> None:
        self._rows: list[Row] = []
        self._latest: dict[str, Row] = {}
        self._paid: dict[tuple[str, str], Row] = {}
        for row in rows:
            self.append(row)


_storages: "weakref.WeakSet[MemoryStorage]" = weakref.WeakSet()


def _after_fork() -> None:
    for storage in list(_storages):
        storage.begin_anew_in_child()


os.register_at_fork(after_in_child=_after_fork)
