"""The life of a survey: created, open and closed in each of its rounds, released.

A step is one transaction that asks for the state it starts from, so two owners who click at once,
or two servers, take it once. Plans are written when a round begins to be possible and never change.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, Final

from sqlalchemy import Connection, delete, func, insert, select, update

from sfumato import check
from sfumato.errors import InputError
from sfumato.randomness import Rng, secure_rng
from sfumato.server.storage import tables
from sfumato.server.storage.answers import RoundId, statements
from sfumato.server.storage.database import Storage
from sfumato.server.storage.uploads import settle
from sfumato.server.surveys import rounds
from sfumato.server.surveys.rounds import Round
from sfumato.server.tokens import Role, digest, new_id, new_token, same
from sfumato.survey.dp2pub import two_round
from sfumato.survey.dp2pub.round_tally import RoundTally
from sfumato.survey.protocol.announcements import Announcement, hour_of, moment, survey_hash
from sfumato.survey.protocol.envelopes import KEY_BYTES, Envelope, Signer
from sfumato.survey.protocol.rounds import read_question

MOST_INVITED: Final = 1_000_000
"""Invitations made at once, and answers of one invitation: a limit against abuse."""
CREATED: Final = "created"
ABANDONED: Final = "abandoned"
RELEASED: Final = "released"
STATES: Final = [CREATED, "open-1", "closed-1", "open-2", "closed-2", RELEASED, ABANDONED]
"""All states of a survey."""


@dataclass(frozen=True, kw_only=True)
class Survey:
    """A survey as the database has it; all but its state never changes."""

    id: int
    state: str
    envelope: Envelope
    announcement: Announcement
    secret: bytes = field(repr=False)

    @property
    def closed_by_time(self) -> bool:
        """Whether its last moment is over."""
        closes = self.announcement.closes
        return closes is not None and datetime.now(UTC) >= moment(closes=closes)

    @property
    def rounds(self) -> int:
        """How many rounds it has."""
        return self.announcement.agreement.rounds

    @cached_property
    def signer(self) -> Signer:
        """Signs as this survey."""
        return Signer(self.secret)

    def round_id(self, number: int) -> RoundId:
        """What a round is called in the storage."""
        return RoundId(self.id, number, self.announcement.invited)


@dataclass(frozen=True, kw_only=True)
class Access:
    """What a token opens."""

    role: Role
    survey: int | None
    """The survey it is for; None for the whole server."""


@dataclass(frozen=True, kw_only=True)
class Created:
    """A new survey, and the tokens that are shown once."""

    task: str
    admin: str = field(repr=False)
    reader: str = field(repr=False)
    key: str
    """The public key that announcement and questions are signed with."""
    survey_hash: str


class Surveys:
    """The surveys of one database."""

    def __init__(self, storage: Storage, *, rng: Rng | None = None) -> None:
        self.storage = storage
        self._rng = rng or secure_rng()
        self._rounds: dict[tuple[int, int], Round] = {}

    def instance(self) -> str:
        """The random name of the database."""
        with self.storage.reading() as connection:
            return str(connection.execute(select(tables.about.c.instance)).scalar_one())

    def server_token(self) -> str | None:
        """A token that makes surveys, for a database that has none yet; shown once."""
        token = new_token(rng=self._rng)
        with self.storage.writing() as connection:
            known = select(func.count()).where(tables.access.c.role == "server")
            if connection.execute(known).scalar_one():
                return None
            _grant(connection, token, role="server", survey=None)
        return token

    def access(self, token: str) -> Access | None:
        """What a token opens; None for one that is unknown or over."""
        columns = tables.access.c
        query = select(columns.token, columns.survey, columns.role, columns.expires)
        with self.storage.reading() as connection:
            row = connection.execute(query.where(columns.token == digest(token))).one_or_none()
        if row is None or not same(row.token, digest(token)):
            return None
        if row.expires is not None and datetime.now(UTC) >= moment(expires=row.expires):
            return None
        return Access(role=row.role, survey=row.survey)

    def create(
        self, announced: Announcement, *, dataset: str | None, expires: str | None
    ) -> Created:
        """Make a survey; its first question is signed with it.

        Args:
            announced: The announcement; its task and first question are replaced by its own.
            dataset: The name that a release will have.
            expires: When the tokens of admin and reader end.
        """
        secret = self._rng.words(KEY_BYTES // 8).tobytes()
        signer, task = Signer(secret), new_id(rng=self._rng)
        question = two_round.first_question(announced.agreement)  # refused now, if at all
        own = {"task": task, "first_plan": question.id}
        announcement = Announcement.from_dict({**announced.to_dict(), **own})
        signed = signer.sign(announcement.to_dict())
        admin, reader = (new_token(rng=self._rng) for _ in range(2))
        row = {
            "task": task,
            "state": CREATED,
            **signed.to_dict(),
            "secret": secret,
            "dataset": dataset,
            "created": hour_of(datetime.now(UTC)),
        }
        with self.storage.writing() as connection:
            made = connection.execute(insert(tables.surveys).returning(tables.surveys.c.id), row)
            survey = made.scalar_one()
            _write_round(connection, survey, 1, signer.sign(question.to_dict()), {})
            _grant(connection, admin, role="admin", survey=survey, expires=expires)
            _grant(connection, reader, role="reader", survey=survey, expires=expires)
        return Created(
            task=task,
            admin=admin,
            reader=reader,
            key=signer.key,
            survey_hash=survey_hash(signed.payload),
        )

    def find(self, task: str) -> Survey | None:
        """A survey by its name."""
        with self.storage.reading() as connection:
            query = select(tables.surveys).where(tables.surveys.c.task == task)
            row = connection.execute(query).one_or_none()
        if row is None:
            return None
        return Survey(
            id=row.id,
            state=row.state,
            envelope=Envelope(payload=row.payload, signature=row.signature),
            announcement=Announcement.from_dict(json.loads(row.payload)),
            secret=row.secret,
        )

    def round(self, survey: Survey, number: int) -> Round | None:
        """A round, from when its question is made."""
        if (known := self._rounds.get((survey.id, number))) is not None:
            return known
        columns = tables.rounds.c
        query = select(columns.payload, columns.signature, columns.planned).where(
            columns.survey == survey.id, columns.round == number
        )
        with self.storage.reading() as connection:
            row = connection.execute(query).one_or_none()
        if row is None:
            return None
        agreed = survey.announcement.agreement
        self._rounds[survey.id, number] = made = Round(
            agreed=agreed,
            question=read_question(json.loads(row.payload), agreed),
            signed=Envelope(payload=row.payload, signature=row.signature),
            why=json.loads(row.planned),
        )
        return made

    def rounds(self, survey: Survey) -> list[Round]:
        """The rounds that have a question."""
        known = (self.round(survey, number) for number in range(1, survey.rounds + 1))
        return [each for each in known if each is not None]

    def invite(self, survey: Survey, number: int, *, uses: int = 1) -> list[str]:
        """New invitations, shown once.

        Args:
            survey: To which.
            number: How many.
            uses: Answers that each may bring in a round: 1 for a person, more for a device that
                many people share.
        """
        if survey.state in (ABANDONED, RELEASED):
            raise InputError(f"a survey that is {survey.state} takes no answers.")
        check.whole(at_least=1, at_most=MOST_INVITED, number=number)
        check.whole(at_least=1, at_most=MOST_INVITED, uses=uses)
        made = [new_token(rng=self._rng) for _ in range(number)]
        rows = [{"survey": survey.id, "token": digest(token), "uses": uses} for token in made]
        with self.storage.writing() as connection:
            connection.execute(insert(tables.invitations), rows)
        return made

    def open_next(self, survey: Survey) -> str:
        """Open the next round; the new state."""
        following = {CREATED: "open-1", "closed-1": "open-2"}.get(survey.state)
        if following is None or (following == "open-2" and survey.rounds == 1):
            raise InputError(f"a survey that is {survey.state} has no round to open.")
        if following == "open-2":
            self.make_second_round(survey)
        return self._step(survey, following)

    def close(self, survey: Survey, *, abandon: bool = False) -> str:
        """Close the open round; the new state.

        Args:
            survey: Which.
            abandon: Give the survey up: nothing will be estimated or released.
        """
        number = open_round(survey.state)
        if abandon and survey.state not in (ABANDONED, RELEASED):
            return self._step(survey, ABANDONED, closing=number)
        if number is None:
            raise InputError(f"a survey that is {survey.state} has no open round to close.")
        self.check_minimum(survey, number)
        return self._step(survey, f"closed-{number}", closing=number)

    def make_second_round(self, survey: Survey) -> None:
        """Make the question of the second round from the answers of the first, once."""
        if self.round(survey, 2) is not None or survey.rounds == 1:
            return
        if survey.state != "closed-1":
            raise InputError(
                "the question of the second round is made when the first one is closed."
            )
        agreed = survey.announcement.agreement
        heard, minimum = self.tally(survey, 1), survey.announcement.minimum
        question, why = rounds.second_round(agreed, heard, minimum=minimum)
        signed = survey.signer.sign(question.to_dict())
        with self.storage.writing() as connection:
            query = select(tables.rounds.c.round).where(
                tables.rounds.c.survey == survey.id, tables.rounds.c.round == 2
            )
            if connection.execute(query).one_or_none() is None:
                _write_round(connection, survey.id, 2, signed, why)

    def counts(self, survey: Survey) -> dict[int, int]:
        """How many answers each round has."""
        columns = tables.arrivals.c
        query = (
            select(columns.round, func.sum(columns.kept))
            .where(columns.survey == survey.id)
            .group_by(columns.round)
        )
        with self.storage.reading() as connection:
            counts = {number: int(answers) for number, answers in connection.execute(query)}
        return {number: counts.get(number, 0) for number in range(1, survey.rounds + 1)}

    def arrivals(self, survey: Survey) -> list[tuple[int, str, int]]:
        """Round, hour and number of answers."""
        columns = tables.arrivals.c
        query = (
            select(columns.round, columns.hour, func.sum(columns.kept))
            .where(columns.survey == survey.id)
            .group_by(columns.round, columns.hour)
            .order_by(columns.round, columns.hour)
        )
        with self.storage.reading() as connection:
            return [(number, hour, int(come)) for number, hour, come in connection.execute(query)]

    def check_minimum(self, survey: Survey, number: int) -> None:
        """Refuse to look at the answers of a round that has too few."""
        minimum = survey.announcement.minimum
        if self.counts(survey)[number] < minimum:  # the message does not tell how many there are
            raise InputError(
                f"round {number} has fewer answers than {minimum:,}, and this survey promised not "
                "to look at fewer. Wait for more answers, or give the survey up."
            )

    def tally(self, survey: Survey, number: int) -> RoundTally:
        """The counted answers of a round; refused below the minimum."""
        self.check_minimum(survey, number)
        known = self.round(survey, number)
        if known is None:
            raise InputError(f"round {number} was not asked yet.")
        with self.storage.reading() as connection:
            blocks = list(statements(connection).blocks(survey.round_id(number)))
        contents = b"".join(block.contents.tobytes() for block in blocks)
        return known.tally(contents, simulated=any(block.simulated for block in blocks))

    def archive(self, survey: Survey) -> bytes | None:
        """The release, packed; None before there is one."""
        query = select(tables.releases.c.archive).where(tables.releases.c.survey == survey.id)
        with self.storage.reading() as connection:
            archive = connection.execute(query).scalar_one_or_none()
        return None if archive is None else bytes(archive)

    def keep_archive(self, survey: Survey, archive: bytes) -> None:
        """Keep the release; the first one stays."""
        self._step(survey, RELEASED, archive=archive)

    def _step(
        self,
        survey: Survey,
        state: str,
        *,
        closing: int | None = None,
        archive: bytes | None = None,
    ) -> str:
        """From the state that the caller knows to another one, or not at all."""
        columns = tables.surveys.c
        with self.storage.writing() as connection:
            here = update(tables.surveys).where(
                columns.id == survey.id, columns.state == survey.state
            )
            if connection.execute(here.values(state=state)).rowcount != 1:
                raise InputError("the survey has moved on meanwhile.")
            if closing is not None:
                settle(connection, survey.round_id(closing))
                gone = tables.shown.c.survey == survey.id, tables.shown.c.round == closing
                connection.execute(delete(tables.shown).where(*gone))
            if archive is not None:
                row = {"survey": survey.id, "archive": archive}
                connection.execute(insert(tables.releases), row)
        if closing is not None or archive is not None:  # a release tries again
            self.storage.scrub()
        return state


def open_round(state: str) -> int | None:
    """The round that takes answers in a state."""
    return {"open-1": 1, "open-2": 2}.get(state)


def _write_round(
    connection: Connection, survey: int, number: int, signed: Envelope, why: Mapping[str, Any]
) -> None:
    row = {"survey": survey, "round": number, **signed.to_dict(), "planned": json.dumps(why)}
    connection.execute(insert(tables.rounds), row)


def _grant(
    connection: Connection,
    token: str,
    *,
    role: Role,
    survey: int | None,
    expires: str | None = None,
) -> None:
    row = {"token": digest(token), "survey": survey, "role": role, "expires": expires}
    connection.execute(insert(tables.access), row)
