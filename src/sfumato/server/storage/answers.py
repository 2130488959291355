"""The answers of a round: blocks of fixed-width rows, an index in memory, and the SQL for both.

A row of its own for each answer costs a database page for each answer, because random names fall on
random pages; a block costs its bytes. The order within a block says nothing of when an answer came,
and blocks are merged until they are large, all of them when a round closes. The blocks decide; the
index is a copy, 16 bytes an answer. Each transaction compares the number of the last block with the
one that was read last and reads what another server wrote; after a failed one all is read again.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection

from sfumato.randomness import secure_rng

NAME_BYTES: Final = 16
"""Bytes of a report id, which names an answer."""
FAN: Final = 16
"""Blocks of a level that are merged into one of the next."""
MOST_ROWS: Final = 2**18
"""Rows of a block: it is read and written whole."""


@dataclass(frozen=True, eq=False, slots=True)
class Block:
    """Answers of one round."""

    names: NDArray[np.uint8]
    """A row for each answer, of 16 bytes."""
    contents: NDArray[np.uint8]
    """A row for each answer, as wide as the question says."""
    simulated: bool = False
    """Whether seeded randomness made some of them."""

    def __len__(self) -> int:
        return len(self.names)

    @staticmethod
    def of(names: bytes, contents: bytes, *, simulated: bool = False) -> "Block":
        """Answers from their names and contents, each in one piece."""
        size = len(names) // NAME_BYTES
        return Block(
            np.frombuffer(names, np.uint8).reshape(size, NAME_BYTES),
            np.frombuffer(contents, np.uint8).reshape(size, -1),
            simulated,
        )

    @staticmethod
    def read(stored: bytes, size: int, simulated: bool) -> "Block":
        """A block as it was written."""
        cut = size * NAME_BYTES
        return Block.of(stored[:cut], stored[cut:], simulated=simulated)

    def write(self) -> bytes:
        """The bytes to store."""
        return self.names.tobytes() + self.contents.tobytes()

    def chosen(self, rows: NDArray[np.int64]) -> "Block":
        """Some of the answers, in the order that is given."""
        return Block(self.names[rows], self.contents[rows], self.simulated)

    def in_order(self) -> "Block":
        """The same answers by their names."""
        return self.chosen(np.argsort(keys(self.names), kind="stable"))


def keys(names: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """The first half of each name as a number; halves of random names differ, too."""
    halves: NDArray[np.uint64] = np.ascontiguousarray(names).view(">u8").astype(np.uint64)
    return halves.reshape(-1, 2)[:, 0]


def merged(blocks: Iterable[Block]) -> Block:
    """All answers of some blocks in one; at least one block."""
    listed = list(blocks)
    return Block(
        np.concatenate([block.names for block in listed]),
        np.concatenate([block.contents for block in listed]),
        any(block.simulated for block in listed),
    ).in_order()


def cut(block: Block, size: int = MOST_ROWS) -> Iterator[Block]:
    """Pieces of at most ``size`` answers."""
    for start in range(0, len(block), size):
        yield block.chosen(np.arange(start, min(start + size, len(block))))


_MOST_RECENT: Final = 2**16
"""Answers in a dictionary before they are sorted into the arrays; chosen by judgment."""
_NOTHING: Final = np.zeros(0, dtype=np.uint64)


class AnswerIndex:
    """The names of a round's answers, each with a mark of what the answer said.

    A name is known by half of its 128 random bits: two of a million answers share a half with a
    chance below 10^-7, and then the later one is taken for a conflict and refused, not lost.
    """

    def __init__(self) -> None:
        self.latest = 0
        self._keys, self._marks = _NOTHING, _NOTHING
        self._recent: dict[int, int] = {}
        self._factors = secure_rng().words(64) | np.uint64(1)

    def __len__(self) -> int:
        return len(self._keys) + len(self._recent)

    def forget(self) -> None:
        """Know nothing, so that the next transaction reads the blocks again."""
        self.latest, self._keys, self._marks, self._recent = 0, _NOTHING, _NOTHING, {}

    def catch_up(self, blocks: Iterable[Block], latest: int) -> None:
        """Read blocks that are new to this server."""
        new = list(blocks)
        if sum(len(block) for block in new) > _MOST_RECENT:
            self._sort_in(
                np.concatenate([keys(block.names) for block in new]),
                np.concatenate([self.marks(block) for block in new]),
            )
            new = []
        added: dict[int, int] = {}
        for block in new:
            added.update(zip(keys(block.names).tolist(), self.marks(block).tolist(), strict=True))
        self.add(added, latest)

    def add(self, added: dict[int, int], latest: int) -> None:
        """Remember answers that are being stored as a block."""
        self._recent.update(added)
        self.latest = latest
        if len(self._recent) > _MOST_RECENT:
            recent, self._recent = self._recent, {}
            self._sort_in(_array(recent.keys()), _array(recent.values()))

    def marks(self, block: Block) -> NDArray[np.uint64]:
        """A number for each answer that differs, almost surely, if anything of it does.

        Sums of products modulo 2^64 with odd factors that this process drew: for telling a repeated
        answer from another one under its name, both of which change nothing.
        """
        rows = np.ascontiguousarray(np.hstack([block.names, block.contents]))
        words = rows.view("<u4").astype(np.uint64)
        factors = np.resize(self._factors, words.shape[1])
        sums: NDArray[np.uint64] = (words * factors).sum(axis=1, dtype=np.uint64)
        return sums

    def known(self, requested: NDArray[np.uint64]) -> dict[int, int]:
        """By key, the marks of those answers that are there."""
        marks: dict[int, int] = {}
        if len(self._keys):
            positions = np.minimum(np.searchsorted(self._keys, requested), len(self._keys) - 1)
            hits = self._keys[positions] == requested
            marks.update(
                zip(requested[hits].tolist(), self._marks[positions[hits]].tolist(), strict=True)
            )
        recent = self._recent
        for key in recent.keys() & set(requested.tolist()):
            marks[key] = recent[key]
        return marks

    def _sort_in(self, added: NDArray[np.uint64], marks: NDArray[np.uint64]) -> None:
        """Only what is new is sorted; the rest moves up."""
        added, first = np.unique(added, return_index=True)
        positions = np.searchsorted(self._keys, added)
        new = np.ones(len(added), dtype=bool)
        if len(self._keys):
            new = self._keys[np.minimum(positions, len(self._keys) - 1)] != added
        self._keys = np.insert(self._keys, positions[new], added[new])
        self._marks = np.insert(self._marks, positions[new], marks[first][new])


def _array(numbers: Iterable[int]) -> NDArray[np.uint64]:
    return np.fromiter(numbers, dtype=np.uint64)


@dataclass(frozen=True, slots=True)
class RoundId:
    """A round of a survey, to which uploads go."""

    survey: int
    round: int
    invited: bool

    @property
    def state(self) -> str:
        """The state of the survey in which this round takes answers."""
        return f"open-{self.round}"


class Statements(Protocol):
    """The statements that store answers, of any database."""

    def together(self) -> AbstractContextManager[Any]:
        """A block of statements that need not wait for one another."""

    def lock_round(self, round_id: RoundId) -> tuple[str, int] | None:
        """The state of the survey and the number of the last block, both fixed from now on."""

    def left(self, round_id: RoundId, tokens: Sequence[bytes]) -> dict[bytes, int]:
        """Of the invitations that exist, how many answers each still lets in, fixed from now on."""

    def take(self, round_id: RoundId, tokens: Mapping[bytes, int]) -> None:
        """Count answers that invitations let in."""

    def rewrite_invitations(self, round_id: RoundId) -> None:
        """Leave no trace in the rows of when each was used."""

    def blocks(
        self, round_id: RoundId, *, after: int = 0, level: int | None = None
    ) -> Iterator[Block]:
        """Blocks later than one, or of one level."""

    def rows(self, round_id: RoundId, level: int) -> int:
        """How many answers the blocks of one level have."""

    def drop(self, round_id: RoundId, level: int | None = None) -> None:
        """Remove blocks, those of one level or all."""

    def write(self, round_id: RoundId, number: int, level: int, block: Block) -> None:
        """Store a block."""

    def arrived(self, round_id: RoundId, number: int, hour: str, answers: int) -> None:
        """Count answers in an hour, and the block that they are in."""


def statements(connection: Connection) -> Statements:
    """How this database is spoken to."""
    driver: Any = connection.connection.driver_connection
    return _Postgres(driver) if connection.dialect.name == "postgresql" else _Sqlite(driver)


class _Sql:
    """What differs in the sign for a value only."""

    sign = "?"

    def __init__(self, driver: Any) -> None:
        self._driver = driver

    def _run(self, sql: str, *values: Any) -> Any:
        return self._driver.execute(sql.replace("?", self.sign), values)

    def blocks(
        self, round_id: RoundId, *, after: int = 0, level: int | None = None
    ) -> Iterator[Block]:
        sql = (
            "SELECT answers, size, simulated FROM blocks WHERE survey = ? AND round = ? "
            "AND number > ?"
        )
        values: tuple[int, ...] = (round_id.survey, round_id.round, after)
        if level is not None:
            sql, values = sql + " AND level = ?", (*values, level)
        for stored, size, simulated in self._run(sql, *values).fetchall():
            yield Block.read(bytes(stored), size, bool(simulated))

    def rows(self, round_id: RoundId, level: int) -> int:
        sql = "SELECT sum(size) FROM blocks WHERE survey = ? AND round = ? AND level = ?"
        return int(self._run(sql, round_id.survey, round_id.round, level).fetchone()[0] or 0)

    def drop(self, round_id: RoundId, level: int | None = None) -> None:
        sql, values = (
            "DELETE FROM blocks WHERE survey = ? AND round = ?",
            (round_id.survey, round_id.round),
        )
        if level is None:
            self._run(sql, *values)
        else:
            self._run(sql + " AND level = ?", *values, level)

    def write(self, round_id: RoundId, number: int, level: int, block: Block) -> None:
        sql = "INSERT INTO blocks VALUES (?, ?, ?, ?, ?, ?, ?)"
        row = (number, level, len(block), block.simulated, block.write())
        self._run(sql, round_id.survey, round_id.round, *row)

    def arrived(self, round_id: RoundId, number: int, hour: str, answers: int) -> None:
        here = (round_id.survey, round_id.round)
        self._run("UPDATE rounds SET latest = ? WHERE survey = ? AND round = ?", number, *here)
        sql = (
            "INSERT INTO arrivals VALUES (?, ?, ?, ?) ON CONFLICT (survey, round, hour) "
            "DO UPDATE SET kept = arrivals.kept + excluded.kept"
        )
        self._run(sql, *here, hour, answers)


class _Sqlite(_Sql):
    """Alone in its transaction."""

    def together(self) -> AbstractContextManager[Any]:
        return nullcontext()

    def lock_round(self, round_id: RoundId) -> tuple[str, int] | None:
        sql = (
            "SELECT state, latest FROM rounds JOIN surveys ON id = survey "
            "WHERE survey = ? AND round = ?"
        )
        row: tuple[str, int] | None = self._run(sql, round_id.survey, round_id.round).fetchone()
        return row

    def left(self, round_id: RoundId, tokens: Sequence[bytes]) -> dict[bytes, int]:
        sql = f"SELECT uses - taken{round_id.round} FROM invitations WHERE survey = ? AND token = ?"
        rows = ((token, self._run(sql, round_id.survey, token).fetchone()) for token in tokens)
        return {token: row[0] for token, row in rows if row is not None}

    def take(self, round_id: RoundId, tokens: Mapping[bytes, int]) -> None:
        column = f"taken{round_id.round}"
        sql = f"UPDATE invitations SET {column} = {column} + ? WHERE survey = ? AND token = ?"
        rows = [(number, round_id.survey, token) for token, number in sorted(tokens.items())]
        self._driver.executemany(sql, rows)

    def rewrite_invitations(self, round_id: RoundId) -> None:
        """Nothing to do: rows lie in the order of their digests and know no transaction."""


class _Postgres(_Sql):
    """Beside other servers."""

    sign = "%s"

    def together(self) -> AbstractContextManager[Any]:
        pipeline: AbstractContextManager[Any] = self._driver.pipeline()
        return pipeline

    def lock_round(self, round_id: RoundId) -> tuple[str, int] | None:
        sql = (
            "SELECT s.state, r.latest FROM rounds r JOIN surveys s ON s.id = r.survey "
            "WHERE r.survey = ? AND r.round = ? FOR UPDATE OF r FOR SHARE OF s"
        )
        row: tuple[str, int] | None = self._run(sql, round_id.survey, round_id.round).fetchone()
        return row

    def left(self, round_id: RoundId, tokens: Sequence[bytes]) -> dict[bytes, int]:
        sql = (
            f"SELECT token, uses - taken{round_id.round} FROM invitations "
            "WHERE survey = ? AND token = ANY(?) ORDER BY token FOR UPDATE"
        )
        rows = self._run(sql, round_id.survey, sorted(tokens)).fetchall()
        return {bytes(token): left for token, left in rows}

    def take(self, round_id: RoundId, tokens: Mapping[bytes, int]) -> None:
        column = f"taken{round_id.round}"
        sql = f"UPDATE invitations SET {column} = {column} + ? WHERE survey = ? AND token = ANY(?)"
        for number in set(tokens.values()):  # mostly one: a person answers once
            those = [token for token, own in tokens.items() if own == number]
            self._run(sql, number, round_id.survey, those)

    def rewrite_invitations(self, round_id: RoundId) -> None:
        """A row names the transaction that wrote it: now one for all, in the order of digests."""
        sql = (
            "WITH gone AS (DELETE FROM invitations WHERE survey = ? RETURNING *) "
            "INSERT INTO invitations SELECT * FROM gone ORDER BY token"
        )
        self._run(sql, round_id.survey)
