"""Many uploads, one commit: what arrives while the disk is busy goes into the next transaction.

An upload is answered only after the commit that holds it. The queue is bounded: beyond it the
server says that it is busy, and the device comes again with the same upload.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from time import perf_counter
from typing import Final

from sqlalchemy import Connection, select

from sfumato.errors import BusyError
from sfumato.server.storage import tables
from sfumato.server.storage.answer_index import Seen
from sfumato.server.storage.database import Storage
from sfumato.server.storage.statements import Place
from sfumato.server.storage.uploads import Incoming, Outcome, keep
from sfumato.survey.protocol.announcements import hour_of

MOST_WAITING: Final = 20_000
"""Uploads that may wait for a commit."""
MOST_AT_ONCE: Final = 5_000
"""Uploads of one transaction."""


@dataclass(slots=True)
class Commits:
    """What the writer did so far, for the metrics."""

    transactions: int = 0
    uploads: int = 0
    seconds: float = 0.0
    failed: int = 0


@dataclass(slots=True)
class _Waiting:
    place: Place
    upload: Incoming
    done: "asyncio.Future[list[Outcome]]"


@dataclass
class Writer:
    """The one that writes answers for this process; its methods belong to the event loop."""

    storage: Storage
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    commits: Commits = field(default_factory=Commits)
    _waiting: deque[_Waiting] = field(default_factory=deque)
    _number: int = 0
    _seen: dict[Place, Seen] = field(default_factory=dict)
    _running: "asyncio.Task[None] | None" = None
    _thread: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(max_workers=1, thread_name_prefix="writer")
    )

    @property
    def waiting(self) -> int:
        """Uploads that are not on the disk yet."""
        return self._number

    async def keep(self, place: Place, upload: Incoming) -> list[Outcome]:
        """The outcome of each answer of an upload, once it is on the disk.

        Raises:
            BusyError: If too much is waiting; nothing was kept.
            StorageError: If the database failed; nothing was kept.
        """
        if self._number + upload.size > MOST_WAITING:
            raise BusyError("too many answers at once. Come again in a moment.")
        done: asyncio.Future[list[Outcome]] = asyncio.get_running_loop().create_future()
        self._waiting.append(_Waiting(place, upload, done))
        self._number += upload.size
        if self._running is None:
            self._running = asyncio.create_task(self._run())
        return await done

    async def close(self) -> None:
        """Finish what is waiting."""
        if self._running is not None:
            await self._running
        self._thread.shutdown()

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while self._waiting:
            group = self._next_group()
            try:
                outcomes = await loop.run_in_executor(self._thread, self._commit, group)
            except Exception as error:
                self.commits.failed += 1
                for each in group:
                    _finish(each, error=error)
            else:
                for each, own in zip(group, outcomes, strict=True):
                    _finish(each, outcomes=own)
            self._number -= sum(each.upload.size for each in group)
        self._running = None

    def _next_group(self) -> list[_Waiting]:
        group = [self._waiting.popleft()]
        size = group[0].upload.size
        while self._waiting and size + self._waiting[0].upload.size <= MOST_AT_ONCE:
            group.append(self._waiting.popleft())
            size += group[-1].upload.size
        return group

    def _commit(self, group: Sequence[_Waiting]) -> list[list[Outcome]]:
        """One transaction for a group, in the writer's thread."""
        begun, hour = perf_counter(), hour_of(self.now())
        places: dict[Place, list[Incoming]] = {}
        for each in group:
            places.setdefault(each.place, []).append(each.upload)
        found = self._kept(dict(sorted(places.items(), key=_in_turn)), hour)
        self.commits.transactions += 1
        self.commits.uploads += sum(each.upload.size for each in group)
        self.commits.seconds += perf_counter() - begun
        return [next(found[each.place]) for each in group]

    def _kept(
        self, places: Mapping[Place, Sequence[Incoming]], hour: str
    ) -> dict[Place, Iterator[list[Outcome]]]:
        fresh = not places.keys() <= self._seen.keys()
        seen = {place: self._seen.setdefault(place, Seen()) for place in places}
        try:
            with self.storage.writing() as connection:
                if fresh:
                    self._forget_closed(connection)
                return {
                    place: iter(keep(connection, place, uploads, hour=hour, seen=seen[place]))
                    for place, uploads in places.items()
                }
        except BaseException:
            for known in seen.values():
                known.forget()
            raise

    def _forget_closed(self, connection: Connection) -> None:
        """Drop rounds that are over, whichever server closed them, when another one begins."""
        columns = tables.surveys.c
        query = select(columns.id, columns.state).where(columns.state.like("open-%"))
        taking = {(survey, state) for survey, state in connection.execute(query)}
        over = [place for place in self._seen if (place.survey, place.state) not in taking]
        for place in over:
            del self._seen[place]


def _in_turn(item: tuple[Place, Sequence[Incoming]]) -> tuple[int, int]:
    """Servers that hold several rounds take them in one order, so none waits for another's."""
    return item[0].survey, item[0].round


def _finish(
    waiting: _Waiting, *, outcomes: list[Outcome] | None = None, error: Exception | None = None
) -> None:
    """Tell whoever waits, unless the connection is gone already."""
    if waiting.done.done():
        return
    if error is not None:
        waiting.done.set_exception(error)
    elif outcomes is not None:
        waiting.done.set_result(outcomes)
