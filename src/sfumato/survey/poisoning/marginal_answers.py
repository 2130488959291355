"""Every way in which a survey asked about a column, and what the answers say together.

A column is asked about by itself and, in the variant with groups, as one side of a pair. Each way
is a response that supports the true code with a probability p and any other with q, so all of them
estimate the same frequencies and are averaged by their precision.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from sfumato.survey.dp2pub.round_tally import ColumnsTally, RoundTally
from sfumato.survey.protocol.rounds import Agreement, ColumnsQuestion, PartsQuestion, RoundQuestion

Vector = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, slots=True)
class Way:
    """One way in which a column is asked about, in one round."""

    column: str
    codes: int
    round: int
    part: int
    """The index of the part in its question, or of the column where everybody answers all."""
    axis: int
    """The side of the part's columns that this one is."""
    p: float
    """The probability that an answer supports the true code."""
    q: float
    """The probability that it supports a given other one."""
    share: float
    """Of the people of the round, those who are asked so."""

    @property
    def gap(self) -> float:
        """How much an answer tells."""
        return self.p - self.q

    @property
    def noise(self) -> float:
        """The variance of an average frequency times the number of answers, people's included.

        s(1 - s)/(p - q)^2 with s = q + (p - q)/k for k codes.
        """
        support = self.q + self.gap / self.codes
        return support * (1 - support) / self.gap**2

    @property
    def gain(self) -> float:
        """What one answer that supports a code for certain adds to its count: (1 - q)/(p - q).

        An honest person who has the code adds 1, on average.
        """
        return (1 - self.q) / self.gap


@dataclass(frozen=True, kw_only=True, eq=False, slots=True)
class WayAnswers:
    """The answers of one way."""

    way: Way
    supports: Vector
    """By code, the answers that support it."""
    people: int

    @property
    def frequencies(self) -> Vector:
        """Without bias: (c/n - q)/(p - q)."""
        return np.asarray((self.supports / self.people - self.way.q) / self.way.gap)

    @property
    def variances(self) -> Vector:
        """Of each frequency, for people drawn at random: s(1 - s)/n/(p - q)^2.

        One answer for each code and one against are added: a code without answers would have the
        variance 0.
        """
        support = (self.supports + 1) / (self.people + 2)
        return np.asarray(support * (1 - support) / self.people / self.way.gap**2)

    @property
    def precision(self) -> float:
        """The weight of this way: one over its average variance, which no answer changes."""
        return self.people / self.way.noise


def ways_of(agreed: Agreement, question: RoundQuestion) -> list[Way]:
    """The ways of one round in which codes are asked about one by one, not in bins."""
    if isinstance(question, ColumnsQuestion):
        return list(_record_ways(agreed, question))
    return list(_part_ways(agreed, question))


def answered_ways(agreed: Agreement, tallies: Sequence[RoundTally]) -> dict[str, list[WayAnswers]]:
    """By column, all that was answered about it; columns that nobody answered about are left out.

    Args:
        agreed: The survey.
        tallies: Of rounds, in any number.
    """
    columns: dict[str, list[WayAnswers]] = {}
    for tally in tallies:
        for way in ways_of(agreed, tally.question):
            answers = _way_answers(way, tally, agreed)
            if answers.people:
                columns.setdefault(way.column, []).append(answers)
    return {name: columns[name] for name in agreed.columns if name in columns}


def together(answers: Sequence[WayAnswers], *, same_people: bool) -> tuple[Vector, Vector]:
    """The frequencies of a column from all ways, and their standard errors.

    Weights w follow the precision of each way. Different people are behind the parts of a question,
    so variances add up: sum w^2 V. Where the same people answer twice only their noise is
    independent, and being a sample of everybody counts once: sum w^2 (V - S) + (sum w sqrt S)^2
    with S = f(1 - f)/n, which is the most it can be.

    Args:
        answers: At least one way.
        same_people: Whether the ways are rounds that everybody answers in.
    """
    weights = np.array([each.precision for each in answers])
    weights = weights / weights.sum()
    frequencies = np.tensordot(weights, np.stack([each.frequencies for each in answers]), axes=1)
    variances = np.stack([each.variances for each in answers])
    if not same_people:
        return frequencies, np.sqrt(np.tensordot(weights**2, variances, axes=1))
    people = np.array([each.people for each in answers])[:, None]
    cut = np.clip(frequencies, 0.0, 1.0)
    samples = np.minimum(cut * (1 - cut) / people, variances)
    noise = np.tensordot(weights**2, variances - samples, axes=1)
    sampled = np.tensordot(weights, np.sqrt(samples), axes=1) ** 2
    return frequencies, np.sqrt(noise + sampled)


def by_column(ways: Sequence[Way]) -> Mapping[str, list[Way]]:
    """Ways by the column that they are about."""
    columns: dict[str, list[Way]] = {}
    for way in ways:
        columns.setdefault(way.column, []).append(way)
    return columns


def _part_ways(agreed: Agreement, question: PartsQuestion) -> Iterator[Way]:
    """One for each part about a column, two for a pair: sums over the other side's bins.

    With c of these, where an answer is the true pair with p and each other one with q, its side is
    the true code with p + (c - 1) q and each other code with c q.
    """
    total = sum(question.weights)
    for index, (part, weight) in enumerate(zip(question.parts, question.weights, strict=True)):
        shape, mechanism = (
            part.shape(agreed.schema),
            part.mechanism(agreed.schema, question.epsilon),
        )
        p, q = float(mechanism.p), float(mechanism.q)
        for axis, (name, cut) in enumerate(zip(part.columns, part.bins, strict=True)):
            if cut is None:
                others = prod(shape) // shape[axis]
                yield Way(
                    column=name,
                    codes=shape[axis],
                    round=question.round,
                    part=index,
                    axis=axis,
                    p=p + (others - 1) * q,
                    q=others * q,
                    share=weight / total,
                )


def _record_ways(agreed: Agreement, question: ColumnsQuestion) -> Iterator[Way]:
    for index, (name, own) in enumerate(question.mechanisms(agreed.schema).items()):
        yield Way(
            column=name,
            codes=own.categories,
            round=question.round,
            part=index,
            axis=0,
            p=float(own.p),
            q=float(own.q),
            share=1.0,
        )


def _way_answers(way: Way, tally: RoundTally, agreed: Agreement) -> WayAnswers:
    counts, people = tally.counts[way.part], int(tally.answers[way.part])
    if isinstance(tally, ColumnsTally):
        return WayAnswers(way=way, supports=counts.astype(np.float64), people=people)
    part = tally.question.parts[way.part]
    if len(part.columns) == 1:
        supports = part.mechanism(agreed.schema, tally.question.epsilon).supports(counts)
    else:
        table = counts.reshape(part.shape(agreed.schema))
        supports = table.sum(axis=1 - way.axis).astype(np.float64)
    return WayAnswers(way=way, supports=supports, people=people)
