"""What fake answers can do to a survey, and whether these answers look as if there were some.

The gain of fakes follows from the protocols and is known before anybody answers. The check looks
for traces that honest answers don't leave (``traces``). Fakes who answer honestly for a value that
is not theirs leave none. Cao, Jia, Gong 2021, "Data poisoning attacks to local differential privacy
protocols", USENIX Security, arXiv 1911.02046.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import comb
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError
from sfumato.local.frequency.local_hashing import Olh
from sfumato.local.frequency.subset_selection import SubsetSelection
from sfumato.local.layout import IntegerLayout
from sfumato.local.mechanism import FrequencyMechanism
from sfumato.survey.estimate.question import Question
from sfumato.survey.estimate.tally import Collected, Tally
from sfumato.survey.poisoning.marginal_answers import Way, by_column, ways_of
from sfumato.survey.poisoning.traces import (
    LEAST_ANSWERS,
    Trace,
    copies_trace,
    histogram_traces,
    joint_traces,
    ones_traces,
    supports_trace,
)
from sfumato.survey.protocol.rounds import Agreement, RoundQuestion

LEVEL: Final = 0.01
"""How often at most honest answers raise the alarm, at one look."""
ONE_PERCENT: Final = 0.01
"""The share of fakes that gains are stated for, unless another is given."""

UNSEEN: Final = (
    "Fakes who answer honestly for a value that is not theirs look like people who have it, and "
    "no check can tell. What they can do is the gain."
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Gain:
    """What fakes among the answers can add to the estimate of one value of a column, at most.

    Shares, per share of fakes: 0.027 is 2.7 points, with fakes being 1% of all who answer.
    """

    column: str
    by_weights: float
    """When they draw their part as everybody does, and say what supports the value."""
    one_part: float
    """When all of them answer about the part that moves this column most."""


@dataclass(frozen=True, kw_only=True)
class PoisoningCheck:
    """The traces that were looked for, and the verdict."""

    traces: tuple[Trace, ...]
    level: float = LEVEL
    """How often at most honest answers raise the alarm, at one look."""

    @property
    def found(self) -> tuple[Trace, ...]:
        """The traces that raise the alarm, the least likely first: each tried at an equal part."""
        limit = self.level / max(len(self.traces), 1)
        return tuple(sorted(self._below(limit), key=lambda trace: trace.chance))

    @property
    def alarm(self) -> bool:
        """Whether the answers look as if some were fake."""
        return bool(self.found)

    @property
    def words(self) -> str:
        """The verdict, for a person."""
        if not self.traces:
            return f"There are too few answers to look for fakes. {UNSEEN}"
        if not self.alarm:
            return (
                f"Nothing odd was found in {len(self.traces):,} checks. That does not mean that "
                f"nobody cheated. {UNSEEN}"
            )
        first = self.found[0]
        where = f" about {' and '.join(first.about)}" if first.about else ""
        condition = f", if {first.assumes}" if first.assumes else ""
        return (
            f"Some of the answers{where} do not look honest: {first.words}. Honest answers raise "
            f"this alarm in at most {self.level:.0%} of surveys{condition}. {UNSEEN}"
        )

    def to_dict(self) -> dict[str, Any]:
        """The JSON form: the verdict and what raised it."""
        return {
            "alarm": self.alarm,
            "words": self.words,
            "level": self.level,
            "checks": len(self.traces),
            "found": [
                {
                    "kind": trace.kind,
                    "about": list(trace.about),
                    "chance": trace.chance,
                    "words": trace.words,
                    "assumes": trace.assumes,
                }
                for trace in self.found
            ],
        }

    def _below(self, limit: float) -> Iterator[Trace]:
        return (trace for trace in self.traces if trace.chance <= limit)


def answer_gain(mechanism: FrequencyMechanism) -> float:
    """How many honest people one crafted answer weighs as much as: (1 - q)/(p - q).

    An answer counts (1[it supports the value] - q)/(p - q), which is 1 on average from a person who
    has the value. Per 1% of fakes an estimate moves by this number of points, at most.

    >>> from sfumato.local.frequency.grr import Grr
    >>> round(answer_gain(Grr(categories=4, epsilon=1)), 1)
    2.7
    """
    return float((1 - mechanism.q) / (mechanism.p - mechanism.q))


def gains(
    agreed: Agreement,
    questions: Sequence[RoundQuestion],
    *,
    fakes: float = ONE_PERCENT,
    people: Sequence[int] | None = None,
) -> list[Gain]:
    """For each column, what a share of fakes can add to the estimate of one value.

    Args:
        agreed: The survey.
        questions: Of the rounds that are counted, one at least.
        fakes: Their share of all who answer, in every round.
        people: Who answered in each of these rounds; without, as many in each.
    """
    if not 0 < fakes < 1:
        raise InputError(f"fakes must be a share above 0 and below 1, got {fakes!r}")
    counts = list(people) if people is not None else [1] * len(questions)
    total = sum(counts)
    sizes = {
        question.round: count / total if total else 1 / len(questions)
        for question, count in zip(questions, counts, strict=True)
    }
    ways = by_column([way for question in questions for way in ways_of(agreed, question)])
    return [_gain(name, ways[name], sizes, fakes) for name in agreed.columns if name in ways]


def poisoning_check(question: Question, answers: Collected | Iterable[Collected]) -> PoisoningCheck:
    """Look for traces of fakes in the answers to one question about frequencies.

    Formal guarantee: if everybody answers as devices do, the alarm is raised with a probability of
    at most 1%, whatever their values are.

    Args:
        question: What was asked.
        answers: All of them: a batch, answers or their messages.
    """
    mechanism, about = question.mechanism, (question.column.name,)
    if not isinstance(mechanism, FrequencyMechanism):
        raise InputError(
            f"{question.protocol} asks for a number, and only answers about frequencies are "
            "checked."
        )
    tally, values = Tally(form=question), list[NDArray[Any]]()
    for batch in tally.batches(answers):
        tally.add(batch)
        values.append(mechanism.layout.checked_many(batch.values))
    if tally.answers < LEAST_ANSWERS:
        return PoisoningCheck(traces=())
    layout = mechanism.layout
    if isinstance(layout, IntegerLayout) and mechanism.cells == layout.below:
        return PoisoningCheck(traces=tuple(histogram_traces(mechanism, tally.counts, about=about)))
    rows = np.concatenate(values)
    supports = mechanism.supports(tally.counts)
    traces = [
        supports_trace(mechanism, supports, tally.answers, about),
        copies_trace(rows, _likeliest(mechanism), about=about),
        *ones_traces(mechanism, rows, about=about),
        *joint_traces(mechanism, rows, about=about),
    ]
    return PoisoningCheck(traces=tuple(traces))


def _gain(name: str, ways: Sequence[Way], sizes: Mapping[int, float], fakes: float) -> Gain:
    """Estimates are averages by precision n/v, so a way moves them by its part of it times gain.

    A share b of fakes who all answer in one way adds b/v to its precision, and the honest keep
    (1 - b) of all. That is a ratio of linear functions of where the fakes go, so the worst they
    can do together is done by all of them in one way.
    """
    precision = [sizes[way.round] * way.share / way.noise for way in ways]
    weights = [each / sum(precision) if sum(precision) else 0.0 for each in precision]
    by_weights = fakes * sum(w * way.gain for w, way in zip(weights, ways, strict=True))
    if all(way.share == 1.0 for way in ways):
        return Gain(column=name, by_weights=by_weights, one_part=by_weights)
    left = (1 - fakes) * sum(precision)
    added = [(fakes / way.noise, way.gain) for way in ways]
    alone = max(more / (left + more) * gain for more, gain in added)
    return Gain(column=name, by_weights=by_weights, one_part=max(by_weights, alone))


def _likeliest(mechanism: FrequencyMechanism) -> float:
    """The largest probability of any whole answer, whatever the value."""
    p, q = float(mechanism.p), float(mechanism.q)
    if isinstance(mechanism, SubsetSelection):
        m, w = mechanism.categories, mechanism.size
        with_it, without = p / comb(m - 1, w - 1), (1 - p) / comb(m - 1, w)
        return float(max(with_it, without))
    if isinstance(mechanism, Olh):
        return p / float(1 << mechanism.seed_bits)
    return max(p, 1 - p) * float(max(q, 1 - q) ** (mechanism.categories - 1))
