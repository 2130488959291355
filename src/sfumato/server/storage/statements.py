"""What one transaction says to the database, to SQLite and to PostgreSQL, without a translator.

These run for every group of uploads. In SQLite the transaction is alone; in PostgreSQL it holds
the row of the round, so that servers take turns, and shares the survey's, so that nobody closes it.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Protocol

from sqlalchemy import Connection

from sfumato.server.storage.answer_blocks import Block


@dataclass(frozen=True, slots=True)
class Place:
    """Where uploads go: a round of a survey."""

    survey: int
    round: int
    invited: bool

    @property
    def state(self) -> str:
        """The state of the survey in which this round takes answers."""
        return f"open-{self.round}"


class Statements(Protocol):
    """What keeping answers asks of a database."""

    def together(self) -> AbstractContextManager[Any]:
        """A block of statements that need not wait for one another."""

    def held(self, place: Place) -> tuple[str, int] | None:
        """The state of the survey and the number of the last block, both fixed from now on."""

    def left(self, place: Place, tokens: Sequence[bytes]) -> dict[bytes, int]:
        """Of the invitations that exist, how many answers each still lets in, fixed from now on."""

    def take(self, place: Place, tokens: Mapping[bytes, int]) -> None:
        """Count answers that invitations let in."""

    def rewrite_invitations(self, place: Place) -> None:
        """Leave no trace in the rows of when each was used."""

    def blocks(self, place: Place, *, after: int = 0, level: int | None = None) -> Iterator[Block]:
        """Blocks later than one, or of one level."""

    def rows(self, place: Place, level: int) -> int:
        """How many answers the blocks of one level have."""

    def drop(self, place: Place, level: int | None = None) -> None:
        """Remove blocks, those of one level or all."""

    def write(self, place: Place, number: int, level: int, block: Block) -> None:
        """Store a block."""

    def arrived(self, place: Place, number: int, hour: str, answers: int) -> None:
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

    def blocks(self, place: Place, *, after: int = 0, level: int | None = None) -> Iterator[Block]:
        sql = (
            "SELECT answers, size, simulated FROM blocks WHERE survey = ? AND round = ? "
            "AND number > ?"
        )
        values: tuple[int, ...] = (place.survey, place.round, after)
        if level is not None:
            sql, values = sql + " AND level = ?", (*values, level)
        for stored, size, simulated in self._run(sql, *values).fetchall():
            yield Block.read(bytes(stored), size, bool(simulated))

    def rows(self, place: Place, level: int) -> int:
        sql = "SELECT sum(size) FROM blocks WHERE survey = ? AND round = ? AND level = ?"
        return int(self._run(sql, place.survey, place.round, level).fetchone()[0] or 0)

    def drop(self, place: Place, level: int | None = None) -> None:
        sql, values = (
            "DELETE FROM blocks WHERE survey = ? AND round = ?",
            (place.survey, place.round),
        )
        if level is None:
            self._run(sql, *values)
        else:
            self._run(sql + " AND level = ?", *values, level)

    def write(self, place: Place, number: int, level: int, block: Block) -> None:
        sql = "INSERT INTO blocks VALUES (?, ?, ?, ?, ?, ?, ?)"
        row = (number, level, len(block), block.simulated, block.write())
        self._run(sql, place.survey, place.round, *row)

    def arrived(self, place: Place, number: int, hour: str, answers: int) -> None:
        here = (place.survey, place.round)
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

    def held(self, place: Place) -> tuple[str, int] | None:
        sql = (
            "SELECT state, latest FROM rounds JOIN surveys ON id = survey "
            "WHERE survey = ? AND round = ?"
        )
        found: tuple[str, int] | None = self._run(sql, place.survey, place.round).fetchone()
        return found

    def left(self, place: Place, tokens: Sequence[bytes]) -> dict[bytes, int]:
        sql = f"SELECT uses - taken{place.round} FROM invitations WHERE survey = ? AND token = ?"
        found = ((token, self._run(sql, place.survey, token).fetchone()) for token in tokens)
        return {token: row[0] for token, row in found if row is not None}

    def take(self, place: Place, tokens: Mapping[bytes, int]) -> None:
        taken = f"taken{place.round}"
        sql = f"UPDATE invitations SET {taken} = {taken} + ? WHERE survey = ? AND token = ?"
        rows = [(number, place.survey, token) for token, number in sorted(tokens.items())]
        self._driver.executemany(sql, rows)

    def rewrite_invitations(self, place: Place) -> None:
        """Nothing to do: rows lie in the order of their digests and know no transaction."""


class _Postgres(_Sql):
    """Beside other servers."""

    sign = "%s"

    def together(self) -> AbstractContextManager[Any]:
        pipeline: AbstractContextManager[Any] = self._driver.pipeline()
        return pipeline

    def held(self, place: Place) -> tuple[str, int] | None:
        sql = (
            "SELECT s.state, r.latest FROM rounds r JOIN surveys s ON s.id = r.survey "
            "WHERE r.survey = ? AND r.round = ? FOR UPDATE OF r FOR SHARE OF s"
        )
        found: tuple[str, int] | None = self._run(sql, place.survey, place.round).fetchone()
        return found

    def left(self, place: Place, tokens: Sequence[bytes]) -> dict[bytes, int]:
        sql = (
            f"SELECT token, uses - taken{place.round} FROM invitations "
            "WHERE survey = ? AND token = ANY(?) ORDER BY token FOR UPDATE"
        )
        found = self._run(sql, place.survey, sorted(tokens)).fetchall()
        return {bytes(token): left for token, left in found}

    def take(self, place: Place, tokens: Mapping[bytes, int]) -> None:
        taken = f"taken{place.round}"
        sql = f"UPDATE invitations SET {taken} = {taken} + ? WHERE survey = ? AND token = ANY(?)"
        for number in set(tokens.values()):  # mostly one: a person answers once
            those = [token for token, own in tokens.items() if own == number]
            self._run(sql, number, place.survey, those)

    def rewrite_invitations(self, place: Place) -> None:
        """A row names the transaction that wrote it: now one for all, in the order of digests."""
        sql = (
            "WITH gone AS (DELETE FROM invitations WHERE survey = ? RETURNING *) "
            "INSERT INTO invitations SELECT * FROM gone ORDER BY token"
        )
        self._run(sql, place.survey)
