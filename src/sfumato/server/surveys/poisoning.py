"""The poisoning figure of a survey, and the verdict on its answers.

The figure follows from the questions and needs no answer. The verdict looks at the counted
answers, as estimates do, and at how often each shared invitation was used. Hours of
arrival are shown as they are: nobody knows how honest people spread over a day, so they raise no
alarm.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np
from sqlalchemy import select

from sfumato.server.storage import tables
from sfumato.server.surveys.lifecycle import Survey, Surveys
from sfumato.survey.dp2pub.round_tally import RoundTally
from sfumato.survey.poisoning.check import UNSEEN, Gain, PoisoningCheck, gains
from sfumato.survey.poisoning.traces import LEAST_ANSWERS, Trace, gap_chance, round_traces

FAKES: Final = 0.01
"""The share of fake answers that the figure is about: one in a hundred, easy to imagine."""
ANYTHING: Final = 100
"""Points from which on fakes can make a share look like anything."""
LEAST_SHARED: Final = 20
"""Shared invitations of one kind that are needed to say what is usual."""
MOST_ABUSED: Final = 3
"""Invitations that fakes may share and still stand out."""
_ALIKE: Final = (
    "invitations for as many answers are used alike, by groups that differ no more than waiting "
    "times do"
)


def figure(surveys: Surveys, survey: Survey, counts: Mapping[int, int]) -> dict[str, Any]:
    """What 1% of fakes can do to each column, by the questions of the rounds so far.

    Args:
        surveys: Of the database.
        survey: Which.
        counts: By round, the answers that may be told.
    """
    agreed = survey.announcement.agreement
    questions = [each.question for each in surveys.rounds(survey)]
    people = [counts[question.round] for question in questions]
    computed = gains(agreed, questions, fakes=FAKES, people=people if all(people) else None)
    columns = [
        {
            "name": gain.column,
            "by_plan": round(100 * gain.by_weights, 2),
            "one_part": round(100 * gain.one_part, 2),
        }
        for gain in computed
    ]
    worst = max(computed, key=lambda gain: gain.one_part)
    return {
        "fakes": FAKES,
        "columns": columns,
        "most_uses": _most_uses(surveys, survey),
        "words": _gain_words(worst),
        "unseen": UNSEEN,
    }


def _gain_words(worst: Gain) -> str:
    points = 100 * worst.one_part
    anything = " That is anything at all." if points >= ANYTHING else ""
    return (
        f"If 1 of 100 answers is fake, the share of a value can come out up to {points:.1f} points "
        f"too high ({worst.column}).{anything} One honest person in 100 moves it by 1 point."
    )


def verdict(
    surveys: Surveys, survey: Survey, tallies: Sequence[RoundTally], *, least: int = LEAST_ANSWERS
) -> dict[str, Any]:
    """Whether the answers look as if some were fake.

    Args:
        surveys: Of the database.
        survey: Which.
        tallies: Of the rounds that are looked at; nothing is said of others.
        least: Answers about a part below which what they say is not looked at.
    """
    agreed, numbers = survey.announcement.agreement, [tally.question.round for tally in tallies]
    traces = [trace for tally in tallies for trace in round_traces(agreed, tally, least=least)]
    for number in numbers:
        traces += shared_traces(number, _uses_of_shared(surveys, survey, number))
    check = PoisoningCheck(traces=tuple(traces))
    arrivals = [row for row in surveys.arrivals(survey) if row[0] in numbers]
    return {**check.to_dict(), "busiest": _busiest(arrivals)}


def shared_traces(number: int, used: Mapping[int, Sequence[int]]) -> list[Trace]:
    """Whether few of the invitations that many share brought far more answers than all others.

    Sorted from the largest, the gap under the first k is compared with how far the next one is
    above the median (``gap_chance``), as if an answer were missing in each comparison: counts are
    whole numbers. The level is divided over k = 1, 2, 3 as 1/2, 1/4, 1/8.

    Args:
        number: The round.
        used: By what an invitation may bring, how often each of these was used.
    """
    traces = []
    for uses, counts in used.items():
        if uses == 1 or len(counts) < LEAST_SHARED:
            continue
        ordered, half = sorted(counts, reverse=True), len(counts) // 2
        chances = [
            2**above
            * gap_chance(
                ordered[above - 1] - ordered[above] - 1,
                ordered[above] - ordered[half] + 1,
                above=above,
                below=half,
            )
            for above in range(1, MOST_ABUSED + 1)
        ]
        least = min(chances)
        traces.append(
            Trace(
                kind="invitation",
                about=(),
                chance=min(1.0, least),
                words=_shared_words(number, 1 + chances.index(least), ordered),
                assumes=_ALIKE,
            )
        )
    return traces


def _shared_words(number: int, abused: int, ordered: Sequence[int]) -> str:
    many = "one invitation" if abused == 1 else f"each of {abused} invitations"
    return (
        f"in round {number} {many} brought {ordered[abused - 1]:,} answers or more, where no other "
        f"brought above {ordered[abused]:,} and half of them at most {ordered[len(ordered) // 2]:,}"
    )


def _uses_of_shared(surveys: Surveys, survey: Survey, number: int) -> dict[int, list[int]]:
    """How often shared invitations were used in a round, by how often they may be."""
    columns = tables.invitations.c
    count = columns.taken1 if number == 1 else columns.taken2
    query = select(columns.uses, count).where(columns.survey == survey.id, columns.uses > 1)
    used: dict[int, list[int]] = {}
    with surveys.storage.reading() as connection:
        for uses, times in connection.execute(query.where(count > 0)):
            used.setdefault(uses, []).append(times)
    return used


def _most_uses(surveys: Surveys, survey: Survey) -> int | None:
    """The answers that one invitation can bring at most; None where nobody needs one."""
    if not survey.announcement.invited:
        return None
    columns = tables.invitations.c
    query = (
        select(columns.uses)
        .where(columns.survey == survey.id)
        .order_by(columns.uses.desc())
        .limit(1)
    )
    with surveys.storage.reading() as connection:
        return connection.execute(query).scalar_one_or_none() or 0


def _busiest(arrivals: Iterable[tuple[int, str, int]]) -> dict[str, Any] | None:
    """The hour with the most answers, beside a usual one."""
    listed = list(arrivals)
    if not listed:
        return None
    number, hour, answers = max(listed, key=lambda row: row[2])
    usual = float(np.median([row[2] for row in listed]))
    return {"round": number, "hour": hour, "answers": answers, "usual": usual}
