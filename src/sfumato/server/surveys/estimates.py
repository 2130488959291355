"""What the answers say, as it may be shown: frequencies with standard errors.

Each estimate rests on the promised number of answers at least, or it is not made, and so does what
each round and part adds to it: the difference of two estimates is none of fewer answers. What is
shown of an open round is in ``publication``. Reading and counting takes a while for a large survey,
and pages ask every few seconds: so one look is kept while what may be shown stays the same.
"""

from collections import OrderedDict, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from threading import Lock
from time import monotonic
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError
from sfumato.models.model import project
from sfumato.schema.columns import Column
from sfumato.server.surveys import poisoning
from sfumato.server.surveys.lifecycle import ABANDONED, Survey, Surveys
from sfumato.server.surveys.publication import Publication
from sfumato.survey.dp2pub.round_tally import PartsTally, RoundTally
from sfumato.survey.estimate.estimates import z_of
from sfumato.survey.poisoning.marginal_answers import answered_ways, together
from sfumato.survey.protocol.rounds import Agreement, QuestionPart

CONFIDENCE: Final = 0.95
"""Of the intervals: the usual level."""
REUSED_S: Final = 5.0
"""Seconds for which a look at a rehearsal is shown again, at least."""
MOST_PAIRS: Final = 40
"""Tables of pairs that are shown: those with the most answers."""
_REST: Final = 10
"""A look is reused for ten times as long as it took: at most a tenth of a processor is spent."""
_MOST_LOOKS: Final = 64
"""Surveys whose last look is remembered; chosen by judgment."""
_DIGITS: Final = 6
"""Decimals of what is shown: far below any standard error."""
_LISTED: Final = 3
"""Labels of a bin that are written out."""


@dataclass(frozen=True, kw_only=True)
class Look:
    """What is shown of a survey."""

    shown: object
    """What it depends on: the state, the counts that are shown, the tallies' people."""
    estimates: dict[str, Any] | None
    """None while no column has enough answers."""
    verdict: dict[str, Any] | None
    """None before a round is closed, but in a rehearsal."""
    until: float
    """When a look at a rehearsal is too old, by the monotonic clock."""


@dataclass
class Watch:
    """Looks at surveys, no more often than needed; safe to use from several threads."""

    surveys: Surveys
    now: Callable[[], float] = monotonic
    publication: Publication = field(init=False)
    _looks: OrderedDict[int, Look] = field(default_factory=OrderedDict)
    _busy: defaultdict[int, Lock] = field(default_factory=lambda: defaultdict(Lock))

    def __post_init__(self) -> None:
        self.publication = Publication(self.surveys)

    def estimates(self, survey: Survey) -> dict[str, Any]:
        """What is shown of a survey.

        Raises:
            InputError: While no column has enough answers, or when the survey was given up.
        """
        if survey.state == ABANDONED:
            raise InputError("this survey was given up: nothing is estimated.")
        if (shown := self.look(survey).estimates) is None:
            raise InputError(_not_yet(survey))
        return shown

    def verdict(self, survey: Survey) -> dict[str, Any] | None:
        """Whether the answers of closed rounds look as if some were fake."""
        return None if survey.state == ABANDONED else self.look(survey).verdict

    def look(self, survey: Survey) -> Look:
        """The newest look at a survey that is not too old."""
        with self._busy[survey.id]:  # who waits here gets the look of the first
            known = self._looks.get(survey.id)
            rehearsal = survey.announcement.rehearsal
            if known is not None and rehearsal and self.now() < known.until:
                return known
            shown = self.publication.version(survey)
            if known is not None and known.shown == shown:
                return known
            return self._keep(survey, shown)

    def _keep(self, survey: Survey, shown: object) -> Look:
        begun = self.now()
        announced, minimum = survey.announcement, survey.announcement.minimum
        tallies = self.publication.tallies(survey)
        made = estimates(announced.agreement, tallies, minimum=minimum)
        counts = {str(n): answers for n, answers in self.publication.counts(survey).items()}
        is_whole = self.publication.is_whole
        closed = [each for each in tallies if is_whole(survey, each.question.round)]
        took = self.now() - begun
        look = Look(
            shown=shown,
            estimates={"counts": counts, **made} if made["columns"] else None,
            verdict=poisoning.verdict(self.surveys, survey, closed, least=minimum)
            if closed
            else None,
            until=self.now() + max(REUSED_S, _REST * took),
        )
        self._looks[survey.id] = look
        self._looks.move_to_end(survey.id)
        while len(self._looks) > _MOST_LOOKS:
            self._looks.popitem(last=False)
        return look


def _not_yet(survey: Survey) -> str:
    least = f"{survey.announcement.minimum:,}"
    if survey.announcement.rehearsal:
        return f"not yet: no question has {least} answers so far."
    return (
        f"not yet: an estimate needs {least} answers, and while a round is open {least} more after "
        "them, counted by the hour. All that have enough are shown when the round is closed."
    )


def estimates(agreed: Agreement, tallies: Sequence[RoundTally], *, minimum: int) -> dict[str, Any]:
    """The frequencies of every column, from all parts of all rounds that have enough answers."""
    same_people = agreed.variant == "faithful"
    most = max if same_people else sum
    tallies = _with_enough(tallies, minimum)
    columns, known = [], answered_ways(agreed, tallies)
    for name, heard in known.items():
        frequencies, errors = together(heard, same_people=same_people)
        reach = z_of(CONFIDENCE) * errors
        columns.append(
            {
                "name": name,
                "labels": list(agreed.schema[name].labels),
                "answers": most(each.people for each in heard),
                "frequencies": _rounded(frequencies),
                "standard_errors": _rounded(errors),
                "intervals": _rounded(np.stack([frequencies - reach, frequencies + reach], axis=1)),
                "adjusted": _rounded(project(frequencies, 1.0)),
            }
        )
    pairs, later = _pairs(agreed, tallies)
    return {
        "minimum": minimum,
        "later": {"columns": [n for n in agreed.columns if n not in known], "pairs": later},
        "rounds": [tally.question.round for tally in tallies if tally.people],
        "answers": sum(tally.people for tally in tallies),
        "epsilon": str(agreed.epsilon),
        "confidence": CONFIDENCE,
        "simulated": any(tally.simulated for tally in tallies),
        "columns": columns,
        "pairs": pairs,
    }


def _with_enough(tallies: Sequence[RoundTally], minimum: int) -> list[RoundTally]:
    """The same without the answers about parts, or in rounds asked of all, that have too few.

    Estimates are functions of what is left. So whoever subtracts one from another, of one round or
    of two, never gets at fewer answers than the minimum.
    """
    enough_people: list[RoundTally] = []
    for tally in tallies:
        if isinstance(tally, PartsTally):
            shown = tally.answers >= minimum
            counts = tuple(own * enough for own, enough in zip(tally.counts, shown, strict=True))
            enough_people.append(replace(tally, counts=counts, answers=tally.answers * shown))
        elif tally.people >= minimum:
            enough_people.append(tally)
    return enough_people


def _pairs(agreed: Agreement, tallies: Sequence[RoundTally]) -> tuple[list[dict[str, Any]], int]:
    """The tables of pairs with enough answers, the most first; how many were asked and have not.

    Answers about a pair are a sample with shares s, so a cell (s - q)/(p - q) has the standard
    error sqrt(s(1 - s)/n)/(p - q).
    """
    counted: dict[QuestionPart, NDArray[np.int64]] = {}
    for tally in tallies:
        if isinstance(tally, PartsTally):
            for part, counts in zip(tally.question.parts, tally.counts, strict=True):
                if len(part.columns) == 2:
                    counted[part] = counted[part] + counts if part in counted else counts
    enough = {part: counts for part, counts in counted.items() if counts.any()}
    listed = sorted(enough.items(), key=lambda item: -int(item[1].sum()))[:MOST_PAIRS]
    return [_pair(agreed, part, counts) for part, counts in listed], len(counted) - len(enough)


def _pair(agreed: Agreement, part: QuestionPart, counts: NDArray[np.int64]) -> dict[str, Any]:
    mechanism, shape = part.mechanism(agreed.schema, agreed.epsilon), part.shape(agreed.schema)
    p, q, n = float(mechanism.p), float(mechanism.q), int(counts.sum())
    smooth = (counts + 1) / (n + 2)
    return {
        "columns": list(part.columns),
        "labels": [
            bin_labels(agreed.schema[name], cut)
            for name, cut in zip(part.columns, part.bins, strict=True)
        ],
        "answers": n,
        "frequencies": _rounded(((counts / n - q) / (p - q)).reshape(shape)),
        "standard_errors": _rounded(
            (np.sqrt(smooth * (1 - smooth) / n) / (p - q)).reshape(shape),
        ),
    }


def bin_labels(column: Column, cut: Sequence[int] | None) -> list[str]:
    """What the bins of a column are called: by their labels, from the first to the last."""
    if cut is None:
        return list(column.labels)
    names = []
    for number in range(max(cut) + 1):
        codes = [code for code, own in enumerate(cut) if own == number]
        labels = [column.labels[code] for code in codes]
        if len(codes) > 1 and codes[-1] - codes[0] == len(codes) - 1:
            names.append(f"{labels[0]} to {labels[-1]}")
        else:
            more = [f"{len(labels) - _LISTED} more"] if len(labels) > _LISTED else []
            names.append(", ".join([*labels[:_LISTED], *more]))
    return names


def _rounded(values: NDArray[np.float64]) -> Any:
    return np.round(values, _DIGITS).tolist()
