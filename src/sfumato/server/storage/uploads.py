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
    AnswerIndex,
    Block,
    RoundId,
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

    STORED = "kept"
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
    """Answers that came together, were read and fit their question."""

    names: bytes
    """Their report ids, one after the other."""
    contents: bytes
    """What they say, one after the other."""
    size: int
    simulated: bool
    token: str | None


def keep(
    connection: Connection,
    round_id: RoundId,
    uploads: Sequence[Incoming],
    *,
    hour: str,
    index: AnswerIndex,
) -> list[list[Outcome]]:
    """Keep uploads of one round; for each upload the outcomes of its answers, in order.

    Args:
        connection: With the transaction begun.
        round_id: The round that they answer.
        uploads: What came.
        hour: The present one.
        index: The answers that this server knows; to be forgotten if the transaction fails.
    """
    sql = statements(connection)
    locked = sql.lock_round(round_id)
    if locked is None or locked[0] != round_id.state:
        index.forget()
        return [[Outcome.CLOSED] * upload.size for upload in uploads]
    if locked[1] != index.latest:
        index.catch_up(sql.blocks(round_id, after=index.latest), locked[1])
    came = Block.of(
        b"".join(upload.names for upload in uploads),
        b"".join(upload.contents for upload in uploads),
    )
    choice = _Choice(sql, round_id, uploads, came, index)
    outcomes = [choice.outcomes(upload) for upload in uploads]
    if choice.stored:
        number = locked[1] + 1
        with sql.together():
            choice.spend()
            block = came.chosen(np.array(choice.stored)).in_order()
            sql.write(round_id, number, 0, replace(block, simulated=choice.simulated))
            sql.arrived(round_id, number, hour, len(choice.stored))
        _merge(sql, round_id, number)
        index.add(choice.fresh, number)
    return outcomes


def settle(connection: Connection, round_id: RoundId) -> None:
    """Put all answers of a closed round in the order of their names, which is none.

    Its invitations are written anew, so that no row says in which transaction it was used.
    """
    sql = statements(connection)
    if round_id.invited:
        sql.rewrite_invitations(round_id)
    blocks = list(sql.blocks(round_id))
    if blocks:
        sql.drop(round_id)
        for number, block in enumerate(cut(merged(blocks)), start=1):
            sql.write(round_id, number, 0, block)


class _Choice:
    """Which of the answers of one transaction are kept, one after the other."""

    def __init__(
        self,
        sql: Statements,
        round_id: RoundId,
        uploads: Sequence[Incoming],
        came: Block,
        index: AnswerIndex,
    ) -> None:
        self._sql, self._round = sql, round_id
        own = keys(came.names)
        self._known = index.known(own)
        self._answers: Iterator[tuple[int, tuple[int, int]]] = enumerate(
            zip(own.tolist(), index.marks(came).tolist(), strict=True)
        )
        self._spent: Counter[bytes] = Counter()
        self._left: dict[bytes, int] = {}
        if round_id.invited:
            tokens = {digest(upload.token or "") for upload in uploads}
            self._left = sql.left(round_id, tuple(tokens))
        self.stored: list[int] = []
        """Rows of those that came which are stored."""
        self.fresh: dict[int, int] = {}
        """By key, their marks."""
        self.simulated = False
        """Whether one of them is; what a refused upload says of itself counts for nothing."""

    def outcomes(self, upload: Incoming) -> list[Outcome]:
        """What becomes of the next upload."""
        token, refused, left = b"", Outcome.SPENT, upload.size
        if self._round.invited:
            token = digest(upload.token or "")
            refused = Outcome.SPENT if token in self._left else Outcome.UNINVITED
            left = self._left.get(token, 0) - self._spent[token]
        stored, fresh, known, outcomes = self.stored, self.fresh, self._known, []
        before = len(stored)
        for _ in range(upload.size):
            row, (key, mark) = next(self._answers)
            earlier = fresh.get(key, known.get(key))
            if earlier is not None:
                outcomes.append(Outcome.REPEATED if earlier == mark else Outcome.CONFLICT)
            elif len(stored) - before < left:
                fresh[key] = mark
                stored.append(row)
                outcomes.append(Outcome.STORED)
            else:
                outcomes.append(refused)
        self._spent[token] += len(stored) - before
        self.simulated |= upload.simulated and len(stored) > before
        return outcomes

    def spend(self) -> None:
        """Count what the invitations let in."""
        if self._round.invited:
            self._sql.take(self._round, +self._spent)


def _merge(sql: Statements, round_id: RoundId, number: int) -> None:
    """Every ``FAN`` blocks of a level become one of the next, as digits of a number carry."""
    level, unit = 0, FAN
    while number % unit == 0 and sql.rows(round_id, level) <= MOST_ROWS:
        blocks = list(sql.blocks(round_id, level=level))
        sql.drop(round_id, level)
        sql.write(round_id, number, level + 1, merged(blocks))
        level, unit = level + 1, unit * FAN


MOST_WAITING: Final = 20_000
"""Uploads that may wait for a commit."""
MOST_AT_ONCE: Final = 5_000
"""Uploads of one transaction."""


@dataclass(slots=True)
class Commits:
    """What the writer did so far, for the metrics."""

    transactions: int = 0
    """Committed."""
    uploads: int = 0
    """Answered after a commit."""
    seconds: float = 0.0
    """Of all commits, with what was done in their transactions."""
    failed: int = 0
    """Transactions that were undone."""


@dataclass(slots=True)
class _Waiting:
    round: RoundId
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
    """Answers that are not on the disk yet."""
    _indexes: dict[RoundId, AnswerIndex] = field(default_factory=dict)
    _running: "asyncio.Task[None] | None" = None
    _thread: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(max_workers=1, thread_name_prefix="writer")
    )

    @property
    def waiting(self) -> int:
        """Uploads that are not on the disk yet."""
        return self._number

    async def keep(self, round_id: RoundId, upload: Incoming) -> list[Outcome]:
        """The outcome of each answer of an upload, once it is on the disk.

        Raises:
            BusyError: If too much is waiting; nothing was kept.
            StorageError: If the database failed; nothing was kept.
        """
        if self._number + upload.size > MOST_WAITING:
            raise BusyError("too many answers at once. Come again in a moment.")
        done: asyncio.Future[list[Outcome]] = asyncio.get_running_loop().create_future()
        self._waiting.append(_Waiting(round_id, upload, done))
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
        groups: dict[RoundId, list[Incoming]] = {}
        for each in group:
            groups.setdefault(each.round, []).append(each.upload)
        outcomes = self._store(dict(sorted(groups.items(), key=_in_turn)), hour)
        self.commits.transactions += 1
        self.commits.uploads += sum(each.upload.size for each in group)
        self.commits.seconds += perf_counter() - begun
        return [next(outcomes[each.round]) for each in group]

    def _store(
        self, groups: Mapping[RoundId, Sequence[Incoming]], hour: str
    ) -> dict[RoundId, Iterator[list[Outcome]]]:
        fresh = not groups.keys() <= self._indexes.keys()
        indexes = {each: self._indexes.setdefault(each, AnswerIndex()) for each in groups}
        try:
            with self.storage.writing() as connection:
                if fresh:
                    self._forget_closed(connection)
                return {
                    each: iter(keep(connection, each, uploads, hour=hour, index=indexes[each]))
                    for each, uploads in groups.items()
                }
        except BaseException:
            for known in indexes.values():
                known.forget()
            raise

    def _forget_closed(self, connection: Connection) -> None:
        """Drop rounds that are over, whichever server closed them, when another one begins."""
        columns = tables.surveys.c
        query = select(columns.id, columns.state).where(columns.state.like("open-%"))
        taking = {(survey, state) for survey, state in connection.execute(query)}
        over = [each for each in self._indexes if (each.survey, each.state) not in taking]
        for each in over:
            del self._indexes[each]


def _in_turn(item: tuple[RoundId, Sequence[Incoming]]) -> tuple[int, int]:
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
