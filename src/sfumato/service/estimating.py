"""What the answers say so far: frequencies with standard errors, from the promised number on.

Reading and counting takes a while for a large survey, and pages ask every few seconds. So one look
at the answers is kept: for some seconds, and as long as no answer came; whoever asks meanwhile
gets that one.
"""

from collections import OrderedDict, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Lock
from time import monotonic
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sfumato.collection.estimates import z_of
from sfumato.collection.grouped_rounds import RoundTally
from sfumato.collection.plans import Agreement, PlanPart
from sfumato.collection.ways import heard_ways, together
from sfumato.errors import InputError
from sfumato.models.simplex import project
from sfumato.schema.columns import Column
from sfumato.service import poisoning
from sfumato.service.rounds import Tally
from sfumato.service.surveys import ABANDONED, Survey, Surveys

CONFIDENCE: Final = 0.95
KEPT_S: Final = 5.0
"""How long a look at the answers is kept, at least."""
MOST_PAIRS: Final = 40
"""Tables of pairs that are told: those with the most answers."""
_REST: Final = 10
"""A look that takes long is kept so many times as long: at most a tenth of a processor is spent."""
_MOST_LOOKS: Final = 64
_DIGITS: Final = 6
_LISTED: Final = 3


@dataclass(frozen=True, kw_only=True)
class Look:
    """What one reading of a survey's answers found."""

    counts: Mapping[int, int]
    """Answers by round when they were read."""
    estimates: dict[str, Any]
    verdict: dict[str, Any]
    until: float
    """When it is too old, by the monotonic clock."""


@dataclass
class Watch:
    """Looks at surveys, no more often than needed; safe to use from several threads."""

    surveys: Surveys
    now: Callable[[], float] = monotonic
    _looks: OrderedDict[int, Look] = field(default_factory=OrderedDict)
    _busy: defaultdict[int, Lock] = field(default_factory=lambda: defaultdict(Lock))

    def look(self, survey: Survey) -> Look:
        """The newest look at a survey that is not too old.

        Raises:
            InputError: Below the number of answers that was promised, or when the survey was given
                up; nothing was looked at.
        """
        if survey.state == ABANDONED:
            raise InputError("this survey was given up: nothing is estimated.")
        self.surveys.check_minimum(survey, 1)
        with self._busy[survey.id]:  # whoever waits here finds the look of who was first
            kept = self._looks.get(survey.id)
            if kept is not None and self.now() < kept.until:
                return kept
            counts = self.surveys.counts(survey)
            if kept is not None and kept.counts == counts:
                return kept
            return self._keep(survey, counts)

    def _keep(self, survey: Survey, counts: Mapping[int, int]) -> Look:
        begun = self.now()
        enough = [n for n, kept in counts.items() if kept >= survey.announcement.minimum]
        tallies = [self.surveys.tally(survey, number) for number in enough]
        told = estimates(survey.announcement.agreement, tallies)
        check = poisoning.verdict(self.surveys, survey, tallies)
        took = self.now() - begun
        look = Look(
            counts=counts,
            estimates={"counts": {str(n): kept for n, kept in counts.items()}, **told},
            verdict=check,
            until=self.now() + max(KEPT_S, _REST * took),
        )
        self._looks[survey.id] = look
        self._looks.move_to_end(survey.id)
        while len(self._looks) > _MOST_LOOKS:
            self._looks.popitem(last=False)
        return look


def estimates(agreed: Agreement, tallies: Sequence[Tally]) -> dict[str, Any]:
    """The frequencies of every column that anybody answered about, from all rounds together."""
    same_people = agreed.variant == "faithful"
    columns = []
    for name, heard in heard_ways(agreed, tallies).items():
        frequencies, errors = together(heard, same_people=same_people)
        reach = z_of(CONFIDENCE) * errors
        most = max if same_people else sum
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
    return {
        "rounds": [tally.plan.round for tally in tallies],
        "answers": sum(tally.people for tally in tallies),
        "epsilon": str(agreed.epsilon),
        "confidence": CONFIDENCE,
        "simulated": any(tally.simulated for tally in tallies),
        "columns": columns,
        "pairs": _pairs(agreed, tallies),
    }


def _pairs(agreed: Agreement, tallies: Sequence[Tally]) -> list[dict[str, Any]]:
    """The tables of the pairs that were asked, those with the most answers first.

    Answers about a pair are a sample with shares s, so a cell (s - q)/(p - q) has the standard
    error sqrt(s(1 - s)/n)/(p - q).
    """
    counted: dict[PlanPart, NDArray[np.int64]] = {}
    for tally in tallies:
        if isinstance(tally, RoundTally):
            for part, counts in zip(tally.plan.parts, tally.counts, strict=True):
                if len(part.columns) == 2 and counts.any():
                    counted[part] = counted[part] + counts if part in counted else counts
    listed = sorted(counted.items(), key=lambda item: -int(item[1].sum()))[:MOST_PAIRS]
    return [_pair(agreed, part, counts) for part, counts in listed]


def _pair(agreed: Agreement, part: PlanPart, counts: NDArray[np.int64]) -> dict[str, Any]:
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
    found = []
    for number in range(max(cut) + 1):
        codes = [code for code, own in enumerate(cut) if own == number]
        labels = [column.labels[code] for code in codes]
        if len(codes) > 1 and codes[-1] - codes[0] == len(codes) - 1:
            found.append(f"{labels[0]} to {labels[-1]}")
        else:
            more = [f"{len(labels) - _LISTED} more"] if len(labels) > _LISTED else []
            found.append(", ".join([*labels[:_LISTED], *more]))
    return found


def _rounded(values: NDArray[np.float64]) -> Any:
    return np.round(values, _DIGITS).tolist()
