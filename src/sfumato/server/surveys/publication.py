"""What owners are shown of a round that is open: whole batches of answers, refreshed by the hour.

A batch is the number of answers below which the survey promised to show no estimate. The unit is
what one person is asked about: a part of a question. Its counts are taken once an hour if a batch
of answers about it came since they were taken last, and are shown when the next batch is complete.
So two states of a part that anybody is shown, the one at the end included, differ by a batch at
least, and nobody gets single answers by subtracting one from the other. What is shown lies in the
database: it is the same from every process, and after a restart.

Of a closed round all answers are shown about the parts that a batch of people answered about, and
none about others (``estimates``): no later round adds fewer either. A rehearsal is shown at once,
not in batches: its answers are made up.
"""

import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from itertools import groupby
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import select, text, update

from sfumato.errors import InternalError
from sfumato.server.storage import tables
from sfumato.server.surveys.lifecycle import Survey, Surveys, open_round
from sfumato.server.surveys.rounds import Round
from sfumato.survey.dp2pub.round_tally import ColumnsTally, PartsTally, RoundTally
from sfumato.survey.protocol.announcements import hour_of
from sfumato.survey.protocol.rounds import ColumnsQuestion

_INSERT: Final = (
    "INSERT INTO shown (survey, round, hour, answers, counts, waiting) "
    "VALUES (:survey, :round, '', 0, :nothing, :nothing) ON CONFLICT DO NOTHING"
)


@dataclass(frozen=True)
class Units:
    """Counted answers, by what people are asked about: a part, or a column where all are asked."""

    people: NDArray[np.int64]
    """By unit."""
    counts: NDArray[np.int64]
    """Of all units, one after the other."""

    @staticmethod
    def none(lengths: NDArray[np.int64]) -> "Units":
        """No answer yet."""
        return Units(np.zeros(lengths.size, np.int64), np.zeros(int(lengths.sum()), np.int64))

    @staticmethod
    def of(tally: RoundTally) -> "Units":
        """The units of a tally."""
        return Units(tally.answers, np.concatenate(tally.counts))

    def where(self, chosen: NDArray[np.bool_], other: "Units", lengths: Any) -> "Units":
        """These where chosen, those of another elsewhere."""
        cells = np.repeat(chosen, lengths)
        return Units(
            np.where(chosen, self.people, other.people), np.where(cells, self.counts, other.counts)
        )

    def write(self) -> bytes:
        """As it is stored."""
        stored = io.BytesIO()
        np.savez_compressed(stored, people=self.people, counts=self.counts)
        return stored.getvalue()

    @staticmethod
    def read(stored: bytes, lengths: NDArray[np.int64]) -> "Units":
        """What was stored; nothing at first."""
        if not stored:
            return Units.none(lengths)
        with np.load(io.BytesIO(stored), allow_pickle=False) as arrays:
            return Units(arrays["people"], arrays["counts"])


@dataclass(frozen=True)
class Shown:
    """What is shown of an open round."""

    hour: str
    answers: int
    """In whole batches."""
    counts: bytes
    waiting: bytes


@dataclass
class Publication:
    """What owners are shown of surveys; safe to use from several threads and processes."""

    surveys: Surveys
    now: Callable[[], datetime] = lambda: datetime.now(UTC)

    def counts(self, survey: Survey) -> dict[int, int]:
        """By round, how many answers are shown: all of a closed one, whole batches of an open."""
        known = self.surveys.counts(survey)
        number = None if survey.announcement.rehearsal else open_round(survey.state)
        return known if number is None else {**known, number: self._shown(survey, number).answers}

    def arrivals(self, survey: Survey, counts: Mapping[int, int]) -> list[tuple[int, str, int]]:
        """Round, hour and number of answers: an hour gets the batches that were full in it."""
        batch = 1 if survey.announcement.rehearsal else survey.announcement.minimum
        shown = []
        for number, rows in groupby(self.surveys.arrivals(survey), key=lambda row: row[0]):
            came = before = 0
            for _, hour, answers in rows:
                came += answers
                upto = min(came // batch * batch, counts[number])
                shown.append((number, hour, upto - before))
                before = upto
        return [row for row in shown if row[2]]

    def version(self, survey: Survey) -> tuple[object, ...]:
        """Something that stays the same while the same is shown."""
        number = None if survey.announcement.rehearsal else open_round(survey.state)
        hour = "" if number is None else self._shown(survey, number).hour
        return survey.state, tuple(self.counts(survey).items()), hour

    def is_whole(self, survey: Survey, number: int) -> bool:
        """Whether all answers of a round are shown."""
        return survey.announcement.rehearsal or open_round(survey.state) != number

    def tallies(self, survey: Survey) -> list[RoundTally]:
        """The counted answers of each round, as they may be estimated from."""
        number = None if survey.announcement.rehearsal else open_round(survey.state)
        known = self.surveys.counts(survey)
        whole = [each for each in known if each != number]
        enough = [each for each in whole if known[each] >= survey.announcement.minimum]
        tallies: list[RoundTally] = [self.surveys.tally(survey, each) for each in enough]
        if number is not None:
            tallies.append(self._part(survey, number))
        return [tally for tally in tallies if tally.people]

    def _part(self, survey: Survey, number: int) -> RoundTally:
        """What is shown of an open round, as a tally."""
        current = self._round(survey, number)
        lengths = current.sizes
        units = Units.read(self._shown(survey, number).counts, lengths)
        parts = tuple(np.split(units.counts, np.cumsum(lengths)[:-1]))
        if isinstance(current.question, ColumnsQuestion):
            people = int(units.people[0])
            return ColumnsTally(
                question=current.question, counts=parts, people=people, simulated=False
            )
        return PartsTally(
            question=current.question, counts=parts, answers=units.people, simulated=False
        )

    def _shown(self, survey: Survey, number: int) -> Shown:
        """What is shown this hour; who asks first in an hour refreshes it for everybody."""
        stored, hour = self._read(survey, number), hour_of(self.now())
        if stored is not None and stored.hour >= hour:
            return stored
        before = stored or Shown("", 0, b"", b"")
        fresh = self._refreshed(survey, number, before, hour)
        columns, state = tables.shown.c, select(tables.surveys.c.state)
        with self.surveys.storage.writing() as connection:
            now = connection.execute(state.where(tables.surveys.c.id == survey.id)).scalar_one()
            if now != survey.state:  # closed meanwhile: nothing is kept of it
                return before
            here = {"survey": survey.id, "round": number, "nothing": b""}
            connection.execute(text(_INSERT), here)
            mine = update(tables.shown).where(
                columns.survey == survey.id, columns.round == number, columns.hour == before.hour
            )
            first = connection.execute(mine.values(**_columns_of(fresh))).rowcount == 1
        return fresh if first else self._read(survey, number) or before

    def _refreshed(self, survey: Survey, number: int, before: Shown, hour: str) -> Shown:
        batch = survey.announcement.minimum
        came = self.surveys.counts(survey)[number]
        answers = max(before.answers, came // batch * batch)
        if came < batch:
            return replace(before, hour=hour, answers=answers)
        lengths = self._round(survey, number).sizes
        now = Units.of(self.surveys.tally(survey, number))
        counts, waiting = (Units.read(each, lengths) for each in (before.counts, before.waiting))
        full = now.people - waiting.people >= batch
        counts = waiting.where(full, counts, lengths)
        return Shown(hour, answers, counts.write(), now.where(full, waiting, lengths).write())

    def _read(self, survey: Survey, number: int) -> Shown | None:
        columns = tables.shown.c
        query = select(columns.hour, columns.answers, columns.counts, columns.waiting)
        with self.surveys.storage.reading() as connection:
            row = connection.execute(
                query.where(columns.survey == survey.id, columns.round == number)
            ).one_or_none()
        return None if row is None else Shown(row[0], row[1], bytes(row[2]), bytes(row[3]))

    def _round(self, survey: Survey, number: int) -> Round:
        known = self.surveys.round(survey, number)
        if known is None:
            raise InternalError("an open round has a question")
        return known


def _columns_of(shown: Shown) -> dict[str, Any]:
    """What is kept of it, by the names of the table's columns."""
    return {each.name: getattr(shown, each.name) for each in fields(shown)}
