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

from sfumato.collection.plans import Agreement
from sfumato.collection.questions import Question
from sfumato.collection.server import AnswerBatch, Collected, Tally
from sfumato.collection.traces import (
    LEAST_ANSWERS,
    Trace,
    beyond,
    copies_trace,
    far_from_zero,
    histogram_traces,
    smallest,
    supports_trace,
)
from sfumato.collection.ways import Plan, Way, by_column, ways_of
from sfumato.errors import InputError
from sfumato.mechanisms.local.hashing import MULTIPLIERS, Olh
from sfumato.mechanisms.local.layout import IntegerLayout
from sfumato.mechanisms.local.mechanism import FrequencyMechanism
from sfumato.mechanisms.local.subsets import SubsetSelection
from sfumato.mechanisms.local.unary import Unary

LEVEL: Final = 0.01
"""How often at most honest answers raise the alarm, at one look."""
ONE_PERCENT: Final = 0.01

UNSEEN: Final = (
    "Fakes who answer honestly for a value that is not theirs look like people who have it, and "
    "no check can tell. What they can do is the gain."
)

_MOST_TOGETHER: Final = 256
"""Categories whose pairs are compared: of more, those with the most support."""
_CHUNK: Final = 8_192


@dataclass(frozen=True, kw_only=True, slots=True)
class Gain:
    """What fakes among the answers can add to the estimate of one value of a column, at most.

    Shares, per share of fakes: 0.027 is 2.7 points, with fakes being 1% of all who answer.
    """

    column: str
    by_plan: float
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
    has the value. Per 1% of fakes an estimate moves by so many points, at most.

    >>> from sfumato.mechanisms.local import Grr
    >>> round(answer_gain(Grr(categories=4, epsilon=1)), 1)
    2.7
    """
    return float((1 - mechanism.q) / (mechanism.p - mechanism.q))


def gains(
    agreed: Agreement,
    plans: Sequence[Plan],
    *,
    fakes: float = ONE_PERCENT,
    people: Sequence[int] | None = None,
) -> list[Gain]:
    """For each column, what a share of fakes can add to the estimate of one value.

    Args:
        agreed: The survey.
        plans: Of the rounds that are counted, one at least.
        fakes: Their share of all who answer, in every round.
        people: Who answered in each of these rounds; without, as many in each.
    """
    if not 0 < fakes < 1:
        raise InputError(f"fakes must be a share above 0 and below 1, got {fakes!r}")
    counts = list(people) if people is not None else [1] * len(plans)
    total = sum(counts)
    sizes = {
        plan.round: count / total if total else 1 / len(plans)
        for plan, count in zip(plans, counts, strict=True)
    }
    ways = by_column([way for plan in plans for way in ways_of(agreed, plan)])
    return [_gain(name, ways[name], sizes, fakes) for name in agreed.asked if name in ways]


def poisoning_check(
    question: Question, answers: AnswerBatch | Collected | Iterable[Collected]
) -> PoisoningCheck:
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
            "checked. Nothing was looked at."
        )
    tally, values = Tally(form=question), list[NDArray[Any]]()
    for batch in _batches(question, answers):
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
        *_ones_traces(mechanism, rows, about),
        *_together_traces(mechanism, rows, supports, about),
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
    by_plan = fakes * sum(w * way.gain for w, way in zip(weights, ways, strict=True))
    if all(way.share == 1.0 for way in ways):
        return Gain(column=name, by_plan=by_plan, one_part=by_plan)
    left = (1 - fakes) * sum(precision)
    added = [(fakes / way.noise, way.gain) for way in ways]
    alone = max(more / (left + more) * gain for more, gain in added)
    return Gain(column=name, by_plan=by_plan, one_part=max(by_plan, alone))


def _batches(
    question: Question, answers: AnswerBatch | Collected | Iterable[Collected]
) -> Iterator[AnswerBatch]:
    """Answers in arrays, for each of which a tally of its own would refuse what does not fit."""
    if isinstance(answers, AnswerBatch):
        yield answers
        return
    if isinstance(answers, Mapping) or not isinstance(answers, Iterable):
        answers = [answers]
    layout = question.mechanism.layout
    for each in answers:
        if isinstance(each, AnswerBatch):
            yield each
            continue
        message = each if isinstance(each, Mapping) else each.to_dict()
        one = layout.one(layout.from_json(message["answer"]))
        yield AnswerBatch(
            question=message["question"], values=one, simulated=bool(message.get("simulated"))
        )


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


def _ones_traces(
    mechanism: FrequencyMechanism, rows: NDArray[Any], about: tuple[str, ...]
) -> list[Trace]:
    """Whether the number of ones of unary answers is distributed as it must be.

    One bit is set with p and m - 1 others with q, whatever the value, so the number of ones is the
    sum of a Bernoulli and a binomial variable.
    """
    if not isinstance(mechanism, Unary):
        return []
    p, q, m = float(mechanism.p), float(mechanism.q), mechanism.categories
    others = _binomial(m - 1, q)
    expected = np.append(others * (1 - p), 0.0) + np.append(0.0, others * p)
    ones = np.bitwise_count(rows).sum(axis=1, dtype=np.int64)
    seen = np.bincount(ones, minlength=m + 1)
    chances = beyond(seen / len(rows), len(rows), expected, expected)
    worst = int(chances.argmin())
    return [
        Trace(
            kind="ones",
            about=about,
            chance=smallest(chances),
            words=f"{seen[worst]:,} answers have {worst} bits set, where devices make "
            f"{expected[worst] * len(rows):,.0f} on average",
        )
    ]


def _binomial(n: int, q: float) -> NDArray[np.float64]:
    """The probabilities of a binomial variable, by products of its neighbors' ratios, in logs."""
    k = np.arange(1, n + 1)
    steps = np.log((n - k + 1) / k) + np.log(q) - np.log1p(-q)
    logs = n * np.log1p(-q) + np.concatenate([[0.0], np.cumsum(steps)])
    return np.asarray(np.exp(logs))


def _together_traces(
    mechanism: FrequencyMechanism,
    rows: NDArray[Any],
    supports: NDArray[np.float64],
    about: tuple[str, ...],
) -> list[Trace]:
    """Whether two categories are supported together more often than their own supports explain.

    With probabilities r0 that an answer supports two given others and r1 that it supports the true
    category and a given other, x_u x_v - r0 - (r1 - r0)/(p - q) (x_u + x_v - 2q) has the mean 0,
    whatever the value. Crafted answers that support several targets at once are seen so.
    """
    if mechanism.categories < 3:
        return []
    chosen = np.sort(np.argsort(-supports, kind="stable")[:_MOST_TOGETHER])
    both = np.zeros((chosen.size, chosen.size))
    for start in range(0, len(rows), _CHUNK):
        held = _supported(mechanism, rows[start : start + _CHUNK], chosen).astype(np.float32)
        both += held.T @ held
    p, q = float(mechanism.p), float(mechanism.q)
    r0, r1 = _pair_rates(mechanism)
    slope, n = (r1 - r0) / (p - q), len(rows)
    alone = both.diagonal()
    sums = both - n * r0 - slope * (alone[:, None] + alone[None, :] - 2 * n * q)
    upper = np.triu_indices(chosen.size, k=1)
    variance, largest = _pair_spread(p, q, r0, r1, slope)
    chances = far_from_zero(sums[upper], n, variance=variance, largest=largest)
    tried = comb(mechanism.categories, 2)
    one, other = (int(axis[chances.argmin()]) for axis in upper)
    return [
        Trace(
            kind="together",
            about=about,
            chance=float(min(1.0, tried * chances.min())),
            words=f"{both[one, other]:,.0f} answers support two certain values at once, where "
            f"{both[one, other] - sums[one, other]:,.0f} would by their frequencies",
        )
    ]


def _supported(
    mechanism: FrequencyMechanism, rows: NDArray[Any], chosen: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Which of the chosen categories each answer supports."""
    if isinstance(mechanism, Olh):
        bits = mechanism.response.value_bits
        seeds, told = (rows >> bits).astype(np.uint32), rows & ((1 << bits) - 1)
        of_code, first, second = (np.uint32(multiplier) for multiplier in MULTIPLIERS)
        x = seeds[:, None] ^ (chosen.astype(np.uint32) * of_code)[None, :]
        x = (x ^ x >> np.uint32(16)) * first
        x = (x ^ x >> np.uint32(15)) * second
        return np.asarray(x >> np.uint32(32 - bits) == told[:, None])
    unpacked = np.unpackbits(rows, axis=1, bitorder="little")
    return unpacked[:, chosen].astype(np.bool_)


def _pair_rates(mechanism: FrequencyMechanism) -> tuple[float, float]:
    """The probabilities (r0, r1) that an answer supports two others, or the true one and another.

    Bits and hashes of different categories are independent; sets of a fixed size are not.
    """
    p, q = float(mechanism.p), float(mechanism.q)
    if not isinstance(mechanism, SubsetSelection):
        return q * q, p * q
    m, w = mechanism.categories, mechanism.size
    others = p * (w - 1) * (w - 2) + (1 - p) * w * (w - 1)
    return others / ((m - 1) * (m - 2)), p * (w - 1) / (m - 1)


def _pair_spread(p: float, q: float, r0: float, r1: float, slope: float) -> tuple[float, float]:
    """The largest variance and size of one answer's term, over all values."""
    term = {(a, b): a * b - r0 - slope * (a + b - 2 * q) for a in (0, 1) for b in (0, 1)}
    variances = []
    for first, second, joint in ((q, q, r0), (p, q, r1)):
        chances = {
            (1, 1): joint,
            (1, 0): first - joint,
            (0, 1): second - joint,
            (0, 0): 1 - first - second + joint,
        }
        variances.append(sum(chances[each] * term[each] ** 2 for each in term))
    return max(variances), max(abs(value) for value in term.values())
