"""Uploads: what one transaction does with them, and the writer that puts many into one commit.

An upload is stored once, or refused for a stated reason; one that comes again is recognized by its
name and answered as before. An invitation lets in a fixed number of answers of a round, and no
table says which ones. Servers take turns at a round, and each first reads what the others wrote.
What arrives while the disk is busy goes into the next transaction, and an upload is answered only
after the commit that holds it. The queue is bounded: beyond it the server says that it is busy, and
the device comes again with the same upload.
"""

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import Enum
from time import perf_counter
from typing import Final

import numpy as np
from sqlalchemy import Connection, select

from sfumato.errors import BusyError
from sfumato.server.storage import tables
from sfumato.server.storage.answers import (
    FAN,
    MOST_ROWS,
    Block,
    Place,
    Seen,
    Statements,
    cut,
    keys,
    merged,
    statements,
)
from sfumato.server.storage.database import Storage
from sfumato.server.tokens import digest
from sfumato.survey.protocol.announcements import hour_of


class Outcome(Enum):
    """What became of an upload."""

    KEPT = "kept"
    REPEATED = "repeated"
    """It had come before, the same: counted once."""
    CONFLICT = "conflict"
    """Its report id belongs to another answer."""
    UNINVITED = "uninvited"
    SPENT = "spent"
    """The invitation has let in as many answers as it may."""
    CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class Incoming:
    """Answers that came together, were read and fit their plan."""

    names: bytes
    """Their report ids, one after the other."""
    contents: bytes
    """What they say, one after the other."""
    size: int
    simulated: bool
    token: str | None


def keep(
    connection: Connection, place: Place, uploads: Sequence[Incoming], *, hour: str, seen: Seen
) -> list[list[Outcome]]:
    """Keep uploads of one round; for each upload the outcomes of its answers, in order.

    Args:
        connection: With the transaction begun.
        place: Where they go.
        uploads: What came.
        hour: The present one.
        seen: What this server knows of the round; to be forgotten if the transaction fails.
    """
    speak = statements(connection)
    held = speak.held(place)
    if held is None or held[0] != place.state:
        seen.forget()
        return [[Outcome.CLOSED] * upload.size for upload in uploads]
    if held[1] != seen.latest:
        seen.catch_up(speak.blocks(place, after=seen.latest), held[1])
    came = Block.of(
        b"".join(upload.names for upload in uploads),
        b"".join(upload.contents for upload in uploads),
    )
    choice = _Choice(speak, place, uploads, came, seen)
    outcomes = [choice.outcomes(upload) for upload in uploads]
    if choice.kept:
        number = held[1] + 1
        with speak.together():
            choice.spend()
            block = came.chosen(np.array(choice.kept)).in_order()
            speak.write(place, number, 0, replace(block, simulated=choice.simulated))
            speak.arrived(place, number, hour, len(choice.kept))
        _merge(speak, place, number)
        seen.add(choice.fresh, number)
    return outcomes


def settle(connection: Connection, place: Place) -> None:
    """Put all answers of a closed round in the order of their names, which is none.

    Its invitations are written anew, so that no row says in which transaction it was used.
    """
    speak = statements(connection)
    if place.invited:
        speak.rewrite_invitations(place)
    blocks = list(speak.blocks(place))
    if blocks:
        speak.drop(place)
        for number, block in enumerate(cut(merged(blocks)), start=1):
            speak.write(place, number, 0, block)


class _Choice:
    """Which of the answers of one transaction are kept, one after the other."""

    def __init__(
        self,
        speak: Statements,
        place: Place,
        uploads: Sequence[Incoming],
        came: Block,
        seen: Seen,
    ) -> None:
        self._speak, self._place = speak, place
        found = keys(came.names)
        self._known = seen.known(found)
        self._answers: Iterator[tuple[int, tuple[int, int]]] = enumerate(
            zip(found.tolist(), seen.marks(came).tolist(), strict=True)
        )
        self._spent: Counter[bytes] = Counter()
        self._left: dict[bytes, int] = {}
        if place.invited:
            tokens = {digest(upload.token or "") for upload in uploads}
            self._left = speak.left(place, tuple(tokens))
        self.kept: list[int] = []
        """Where the kept answers stand among those that came."""
        self.fresh: dict[int, int] = {}
        """By key, their marks."""
        self.simulated = False
        """Whether one of them is; what a refused upload says of itself counts for nothing."""

    def outcomes(self, upload: Incoming) -> list[Outcome]:
        """What becomes of the next upload."""
        token, refused, left = b"", Outcome.SPENT, upload.size
        if self._place.invited:
            token = digest(upload.token or "")
            refused = Outcome.SPENT if token in self._left else Outcome.UNINVITED
            left = self._left.get(token, 0) - self._spent[token]
        kept, fresh, known, outcomes = self.kept, self.fresh, self._known, []
        before = len(kept)
        for _ in range(upload.size):
            place, (key, mark) = next(self._answers)
            earlier = fresh.get(key, known.get(key))
            if earlier is not None:
                outcomes.append(Outcome.REPEATED if earlier == mark else Outcome.CONFLICT)
            elif len(kept) - before < left:
                fresh[key] = mark
                kept.append(place)
                outcomes.append(Outcome.KEPT)
            else:
                outcomes.append(refused)
        self._spent[token] += len(kept) - before
        self.simulated |= upload.simulated and len(kept) > before
        return outcomes

    def spend(self) -> None:
        """Count what the invitations let in."""
        if self._place.invited:
            self._speak.take(self._place, +self._spent)


def _merge(speak: Statements, place: Place, number: int) -> None:
    """Every so many blocks of a level become one of the next, as digits of a number carry."""
    level, unit = 0, FAN
    while number % unit == 0 and speak.rows(place, level) <= MOST_ROWS:
        blocks = list(speak.blocks(place, level=level))
        speak.drop(place, level)
        speak.write(place, number, level + 1, merged(blocks))
        level, unit = level + 1, unit * FAN


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
