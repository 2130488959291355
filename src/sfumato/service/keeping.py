"""What one transaction does with uploads: each is kept once, or refused for a stated reason.

An upload that comes again is recognized by its report id and answered as before. An invitation
lets in as many answers of a round as it says, and nothing is kept of which ones. All of it holds
between servers, too, because the keys of the tables decide and not what a server remembers.

Most groups of uploads are all new: two statements for the whole group try that, and their counts
tell. Otherwise they are undone and every upload is looked at by itself.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from operator import attrgetter
from typing import Any, Final, Protocol

from sqlalchemy import Connection

from sfumato.service.tokens import digest

_TOGETHER: Final = 1_000
"""Uploads that are tried together: one bad one sends so many through the slow way."""


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
    """An upload that was read and fits its plan."""

    report: bytes
    part: int
    value: int
    codes: bytes | None
    simulated: bool
    token: str | None

    @property
    def content(self) -> tuple[int, int, bytes | None]:
        """What must be the same when it comes again."""
        return self.part, self.value, self.codes


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


def keep(
    connection: Connection,
    place: Place,
    uploads: Sequence[Incoming],
    *,
    hour: str,
    source: str,
) -> list[Outcome]:
    """Keep uploads of one round, inside a transaction; an outcome for each, in order.

    Args:
        connection: With the transaction begun.
        place: Where they go.
        uploads: What came.
        hour: The present one.
        source: The name of this server: each counts arrivals in rows of its own.
    """
    postgres = connection.dialect.name == "postgresql"
    speak: _Dialect = _Postgres(connection) if postgres else _Sqlite(connection)
    if speak.state(place.survey) != place.state:
        return [Outcome.CLOSED] * len(uploads)
    outcomes: list[Outcome] = []
    for start in range(0, len(uploads), _TOGETHER):
        outcomes += _keep_some(speak, place, uploads[start : start + _TOGETHER])
    speak.arrived(place, source, hour, outcomes.count(Outcome.KEPT))
    return outcomes


def _keep_some(speak: "_Dialect", place: Place, uploads: Sequence[Incoming]) -> list[Outcome]:
    if len(uploads) > 1:
        speak.run("SAVEPOINT together", ())
        if _all_new(speak, place, uploads):
            return [Outcome.KEPT] * len(uploads)
        speak.run("ROLLBACK TO SAVEPOINT together", ())
    return [_keep_one(speak, place, upload) for upload in uploads]


def _all_new(speak: "_Dialect", place: Place, uploads: Sequence[Incoming]) -> bool:
    """Whether every upload was new and let in; if not, some of it was done and is to be undone."""
    if place.invited:
        wanted = Counter(upload.token or "" for upload in uploads)
        if speak.let_in(place, {digest(token): n for token, n in wanted.items()}) < len(wanted):
            return False
    return speak.insert(place, sorted(uploads, key=_by_report)) == len(uploads)


def _keep_one(speak: "_Dialect", place: Place, upload: Incoming) -> Outcome:
    known = speak.known(place, upload.report)
    if known is not None:
        return Outcome.REPEATED if known == upload.content else Outcome.CONFLICT
    if place.invited:
        token = digest(upload.token or "")
        if not speak.let_in(place, {token: 1}):
            return Outcome.SPENT if speak.invited(place.survey, token) else Outcome.UNINVITED
    if speak.insert(place, [upload]):
        return Outcome.KEPT
    known = speak.known(place, upload.report)  # another server was faster
    return Outcome.REPEATED if known == upload.content else Outcome.CONFLICT


_by_report = attrgetter("report")
"""Keys in order go into a table faster, and two servers that both do so don't deadlock."""


class _Dialect(Protocol):
    """What is said differently to the two databases."""

    def run(self, sql: str, values: tuple[Any, ...]) -> Any: ...
    def state(self, survey: int) -> str | None: ...
    def invited(self, survey: int, token: bytes) -> bool: ...
    def let_in(self, place: Place, tokens: Mapping[bytes, int]) -> int: ...
    def known(self, place: Place, report: bytes) -> tuple[int, int, bytes | None] | None: ...
    def insert(self, place: Place, uploads: Sequence[Incoming]) -> int: ...
    def arrived(self, place: Place, source: str, hour: str, number: int) -> None: ...


class _Sqlite:
    """Alone in its transaction."""

    def __init__(self, connection: Connection) -> None:
        driver: Any = connection.connection.driver_connection
        self.run, self._many = driver.execute, driver.executemany

    def state(self, survey: int) -> str | None:
        row = self.run("SELECT state FROM surveys WHERE id = ?", (survey,)).fetchone()
        return None if row is None else str(row[0])

    def invited(self, survey: int, token: bytes) -> bool:
        sql = "SELECT 1 FROM invitations WHERE survey = ? AND token = ?"
        return self.run(sql, (survey, token)).fetchone() is not None

    def let_in(self, place: Place, tokens: Mapping[bytes, int]) -> int:
        taken = f"taken{place.round}"
        sql = (
            f"UPDATE invitations SET {taken} = {taken} + ?1 "
            f"WHERE survey = ?2 AND token = ?3 AND {taken} + ?1 <= uses"
        )
        rows = [(number, place.survey, token) for token, number in sorted(tokens.items())]
        changed: int = self._many(sql, rows).rowcount
        return changed

    def known(self, place: Place, report: bytes) -> tuple[int, int, bytes | None] | None:
        sql = "SELECT part, value, codes FROM answers WHERE survey = ? AND round = ? AND report = ?"
        row = self.run(sql, (place.survey, place.round, report)).fetchone()
        return None if row is None else tuple(row)

    def insert(self, place: Place, uploads: Sequence[Incoming]) -> int:
        rows = [
            (place.survey, place.round, each.report, *each.content, each.simulated)
            for each in uploads
        ]
        sql = "INSERT OR IGNORE INTO answers VALUES (?, ?, ?, ?, ?, ?, ?)"
        changed: int = self._many(sql, rows).rowcount
        return changed

    def arrived(self, place: Place, source: str, hour: str, number: int) -> None:
        self.run(
            "INSERT INTO arrivals VALUES (?, ?, ?, ?, ?) "
            "ON CONFLICT DO UPDATE SET kept = kept + excluded.kept",
            (place.survey, place.round, hour, source, number),
        )


class _Postgres:
    """Beside others: the survey's row is held, so that it can't be closed meanwhile."""

    def __init__(self, connection: Connection) -> None:
        driver: Any = connection.connection.driver_connection
        self.run = driver.execute

    def state(self, survey: int) -> str | None:
        sql = "SELECT state FROM surveys WHERE id = %s FOR SHARE"
        row = self.run(sql, (survey,)).fetchone()
        return None if row is None else str(row[0])

    def invited(self, survey: int, token: bytes) -> bool:
        sql = "SELECT 1 FROM invitations WHERE survey = %s AND token = %s"
        return self.run(sql, (survey, token)).fetchone() is not None

    def let_in(self, place: Place, tokens: Mapping[bytes, int]) -> int:
        taken, ordered = f"taken{place.round}", sorted(tokens)
        sql = (
            f"UPDATE invitations i SET {taken} = i.{taken} + u.n "
            "FROM unnest(%s::bytea[], %s::int[]) AS u(t, n) "
            f"WHERE i.survey = %s AND i.token = u.t AND i.{taken} + u.n <= i.uses"
        )
        values = ordered, [tokens[token] for token in ordered], place.survey
        changed: int = self.run(sql, values).rowcount
        return changed

    def known(self, place: Place, report: bytes) -> tuple[int, int, bytes | None] | None:
        sql = (
            "SELECT part, value, codes FROM answers "
            "WHERE survey = %s AND round = %s AND report = %s"
        )
        row = self.run(sql, (place.survey, place.round, report)).fetchone()
        return None if row is None else tuple(row)

    def insert(self, place: Place, uploads: Sequence[Incoming]) -> int:
        sql = (
            "INSERT INTO answers SELECT %s, %s, r, p, v, c, s FROM unnest(%s::bytea[], %s::int[], "
            "%s::bigint[], %s::bytea[], %s::bool[]) AS u(r, p, v, c, s) ON CONFLICT DO NOTHING"
        )
        rows = [(each.report, *each.content, each.simulated) for each in uploads]
        columns = [list(column) for column in zip(*rows, strict=True)]
        changed: int = self.run(sql, (place.survey, place.round, *columns)).rowcount
        return changed

    def arrived(self, place: Place, source: str, hour: str, number: int) -> None:
        self.run(
            "INSERT INTO arrivals VALUES (%s, %s, %s, %s, %s) ON CONFLICT (survey, round, hour, "
            "source) DO UPDATE SET kept = arrivals.kept + excluded.kept",
            (place.survey, place.round, hour, source, number),
        )
