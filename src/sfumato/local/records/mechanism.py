"""Several attributes of one record: the promise is for the whole record, whatever changes in it.

``Splitting`` answers every attribute with an equal part of epsilon; ``Sampling`` answers one
attribute, or one pair, with all of it, which is nearly always better. Both are made of ordinary
frequency mechanisms, one for each marginal, called parts.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations, product
from math import lcm, prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato import check
from sfumato.errors import InputError, InternalError
from sfumato.local.frequency.choice import best_for
from sfumato.local.layout import Answer, Answers
from sfumato.local.mechanism import (
    MAX_CATEGORIES,
    Counts,
    FrequencyMechanism,
    Transition,
    answer_variance,
    refuse_large,
    transition_of,
    whole_code,
)
from sfumato.local.probabilities import local_epsilon
from sfumato.local.records.parts import by_part
from sfumato.privacy.guarantees import LocalDP
from sfumato.randomness import Rng

RecordAnswer = tuple[tuple[int, Answer], ...]
"""What one person sends: the number of a part and the answer about it, for each part answered."""

State = list[Counts]
"""For each part the number of answers, then its tally. States of parts of a crowd are summed."""


class Part(NamedTuple):
    """A marginal that is answered about, and how."""

    columns: tuple[int, ...]
    mechanism: FrequencyMechanism


@dataclass(frozen=True, kw_only=True, slots=True)
class RecordAnswers:
    """The answers of many people: for each part an array of those it got."""

    parts: tuple[Answers, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class MarginalEstimate:
    """Estimated frequencies of a marginal, an axis for each column, with their standard errors.

    They estimate the shares among all who took part: the errors hold the noise of the answers and
    of the sample of people who answered about this marginal.
    """

    columns: tuple[int, ...]
    frequencies: NDArray[np.float64]
    standard_errors: NDArray[np.float64]
    answers: int


@dataclass(frozen=True, kw_only=True)
class RecordMechanism:
    """What mechanisms for whole records share: the record, the promise, and their checks."""

    sizes: tuple[int, ...]
    """The number of categories of each attribute."""
    epsilon: Fraction
    """What all that a person sends promises together, if the whole record may change."""

    def __post_init__(self) -> None:
        if isinstance(self.sizes, str) or not isinstance(self.sizes, Iterable) or not self.sizes:
            raise InputError(f"sizes must list the categories per attribute, got {self.sizes!r}")
        sizes = tuple(check.whole(at_least=2, at_most=MAX_CATEGORIES, size=s) for s in self.sizes)
        object.__setattr__(self, "sizes", sizes)
        object.__setattr__(self, "epsilon", local_epsilon(self.epsilon))

    @cached_property
    def guarantee(self) -> LocalDP:
        """The promise to the person who answers."""
        return LocalDP(self.epsilon)

    def checked_record(self, record: Sequence[int]) -> tuple[int, ...]:
        """The record as plain integers, if it is one of these sizes."""
        if len(record) != len(self.sizes):
            raise InputError(f"a record has {len(self.sizes)} attributes, got {len(record)}.")
        pairs = zip(record, self.sizes, strict=True)
        return tuple(whole_code(code, below=size) for code, size in pairs)

    def checked_block(self, block: Any) -> NDArray[np.integer[Any]]:
        """Records as one (attributes, people) array, or an error before anything is drawn."""
        array = np.asarray(block)
        if array.ndim != 2 or array.dtype.kind not in "iu" or len(array) != len(self.sizes):
            raise InputError(
                f"records must be an array of whole numbers of shape ({len(self.sizes)}, people), "
                f"got {array.dtype} of shape {array.shape}."
            )
        for column, (codes, size) in enumerate(zip(array, self.sizes, strict=True)):
            if codes.size and (codes.min() < 0 or codes.max() >= size):
                raise InputError(
                    f"the codes of attribute {column} must be from 0 to {size - 1}; some are not."
                )
        return array.astype(array.dtype.newbyteorder("="), copy=False)  # for compiled code

    def records(self) -> Iterator[tuple[int, ...]]:
        """Every possible record, the last attribute fastest."""
        return product(*(range(size) for size in self.sizes))


@dataclass(frozen=True, kw_only=True)
class PartwiseMechanism(RecordMechanism, ABC):
    """A record mechanism whose answers are answers about its parts."""

    protocol: type[FrequencyMechanism] | None = None
    """How each part is answered; by default what has the least variance for its size."""

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.parts  # an impossible part is refused at once

    @property
    @abstractmethod
    def parts(self) -> tuple[Part, ...]:
        """The marginals that are answered about."""

    @abstractmethod
    def answer(self, record: Sequence[int], *, rng: Rng) -> RecordAnswer:
        """One person's answer, by plain integers: what a device does."""

    @abstractmethod
    def answer_many(self, block: Any, *, rng: Rng) -> RecordAnswers:
        """The answers of many people, whose records are the columns of ``block``."""

    @property
    @abstractmethod
    def answered(self) -> int:
        """The number of parts that each person answers about."""

    @abstractmethod
    def people(self, answers: Sequence[int]) -> int:
        """How many people took part, from the number of answers about each part."""

    @abstractmethod
    def variance(self, part: int, frequency: float = 0.0) -> float:
        """The variance of an estimated frequency of a part, times the number of people."""

    @abstractmethod
    def transition(self) -> Transition:
        """The exact weights of all that can be sent, numbered, under every whole record."""

    def gather(self, answers: Iterable[RecordAnswer]) -> RecordAnswers:
        """Single answers of many people as arrays, each checked: nobody answers twice."""
        gathered: list[list[Answers]] = [[] for _ in self.parts]
        for person in answers:
            self._check_parts([index for index, _ in person])
            for index, answer in person:
                gathered[index].append(self.parts[index].mechanism.layout.one(answer))
        pairs = zip(self.parts, gathered, strict=True)
        return RecordAnswers(
            parts=tuple(np.concatenate([p.mechanism.layout.empty(0), *own]) for p, own in pairs)
        )

    def zero(self) -> State:
        """An empty tally."""
        return [np.zeros(1 + part.mechanism.cells, dtype=np.int64) for part in self.parts]

    def add(self, answers: RecordAnswers, state: State) -> None:
        """Add answers to a tally, in place; all are checked before any is counted."""
        pairs = list(zip(self.parts, answers.parts, strict=True))
        checked = [part.mechanism.layout.checked_many(own) for part, own in pairs]
        self.people([len(own) for own in checked])
        for part, own, tally in zip(self.parts, checked, state, strict=True):
            tally[0] += len(own)
            part.mechanism.add(own, tally[1:])

    def estimate(self, state: State) -> tuple[MarginalEstimate, ...]:
        """Every part's frequencies with their standard errors."""
        people, estimates = self.people([int(tally[0]) for tally in state]), []
        for (columns, own), tally in zip(self.parts, state, strict=True):
            shape = tuple(self.sizes[column] for column in columns)
            supports = own.supports(tally[1:]).reshape(shape)
            estimates.append(estimated(columns, supports, int(tally[0]), people, own.p, own.q))
        return tuple(estimates)

    def _part(self, columns: tuple[int, ...], epsilon: Fraction) -> Part:
        categories = prod(self.sizes[column] for column in columns)
        choose = best_for if self.protocol is None else self.protocol
        return Part(columns, choose(categories=categories, epsilon=epsilon))

    def _check_parts(self, indices: list[Any]) -> None:
        for index in indices:
            check.whole(at_least=0, at_most=len(self.parts) - 1, part=index)
        if len(indices) != self.answered or sorted(set(indices)) != indices:
            raise InputError(
                f"a person answers about {self.answered} of {len(self.parts)} parts, each once "
                f"and in order, got parts {indices}."
            )

    def _code(self, columns: tuple[int, ...], record: Sequence[int]) -> int:
        """The record's cell of a marginal, the last column fastest."""
        code = 0
        for column in columns:
            code = code * self.sizes[column] + record[column]
        return code


@dataclass(frozen=True, kw_only=True)
class Splitting(PartwiseMechanism):
    """Answer every one of d attributes, each with epsilon/d.

    Formal guarantee: epsilon-local DP for the whole record: the answers are independent, so the
    ratio is the product of theirs.
    """

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """One for each attribute; their epsilons sum to the whole, exactly."""
        share = self.epsilon / len(self.sizes)
        parts = tuple(self._part((column,), share) for column in range(len(self.sizes)))
        if sum(part.mechanism.epsilon for part in parts) != self.epsilon:
            raise InternalError("the parts' epsilons do not sum to the promise")
        return parts

    def answer(self, record: Sequence[int], *, rng: Rng) -> RecordAnswer:
        """An answer about every attribute."""
        codes = self.checked_record(record)
        pairs = enumerate(zip(self.parts, codes, strict=True))
        return tuple((index, part.mechanism.answer(code, rng=rng)) for index, (part, code) in pairs)

    def answer_many(self, block: Any, *, rng: Rng) -> RecordAnswers:
        """Answers about every attribute, in the order of the people."""
        pairs = zip(self.parts, self.checked_block(block), strict=True)
        return RecordAnswers(
            parts=tuple(part.mechanism.answer_many(codes, rng=rng) for part, codes in pairs)
        )

    @property
    def answered(self) -> int:
        """All of them."""
        return len(self.sizes)

    def people(self, answers: Sequence[int]) -> int:
        """Everybody answers about everything."""
        if len(set(answers)) != 1:
            raise InputError(f"everybody answers about all, got {list(answers)}.")
        return answers[0]

    def variance(self, part: int, frequency: float = 0.0) -> float:
        """That of the part's mechanism."""
        return self.parts[part].mechanism.variance(frequency)

    def transition(self) -> Transition:
        """Products of the parts' weights; answers in the order of their product."""
        matrices = [part.mechanism.transition() for part in self.parts]
        answers = prod(len(matrix.answers) for matrix in matrices)
        refuse_large(self, prod(self.sizes) * answers, fewer="or smaller attributes")
        rows = [
            [prod(weights) for weights in product(*(m.weights[c] for m, c in pairs))]
            for pairs in (list(zip(matrices, record, strict=True)) for record in self.records())
        ]
        return transition_of(range(answers), rows)


@dataclass(frozen=True, kw_only=True)
class Sampling(PartwiseMechanism):
    """Answer one attribute (or one pair), drawn uniformly on the device, with all of epsilon.

    Formal guarantee: epsilon-local DP for the whole record: which part is answered is drawn
    without looking at the record, so it may be public, and the answer's ratio is the part's.
    """

    degree: int = 1
    """1 for the attributes, 2 for all their pairs."""

    def __post_init__(self) -> None:
        check.one_of((1, 2), degree=self.degree)
        super().__post_init__()
        if self.degree > len(self.sizes):
            raise InputError(f"a pair needs two attributes, got sizes={self.sizes}")

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """One for each attribute or pair, each with all of epsilon."""
        marginals = combinations(range(len(self.sizes)), self.degree)
        return tuple(self._part(columns, self.epsilon) for columns in marginals)

    def answer(self, record: Sequence[int], *, rng: Rng) -> RecordAnswer:
        """An answer about one part."""
        codes = self.checked_record(record)
        index = int(rng.below(len(self.parts), 1)[0])
        part = self.parts[index]
        return ((index, part.mechanism.answer(self._code(part.columns, codes), rng=rng)),)

    def answer_many(self, block: Any, *, rng: Rng) -> RecordAnswers:
        """Each person's answer about one part; within a part in the order of the people."""
        records = self.checked_block(block)
        drawn = rng.below(len(self.parts), records.shape[1])
        people = dict(by_part(drawn, len(self.parts)))
        answers = []
        for index, part in enumerate(self.parts):
            rows = people.get(index, drawn[:0])
            codes = np.zeros(rows.size, dtype=np.uint32)
            for column in part.columns:
                size = np.uint32(self.sizes[column])
                codes = codes * size + records[column][rows].astype(np.uint32)
            answers.append(part.mechanism.answer_many(codes, rng=rng))
        return RecordAnswers(parts=tuple(answers))

    @property
    def answered(self) -> int:
        """One of them."""
        return 1

    def people(self, answers: Sequence[int]) -> int:
        """Everybody answers once."""
        return sum(answers)

    def variance(self, part: int, frequency: float = 0.0) -> float:
        """That of the part's mechanism for its share of the people, and the chance of the share.

        With k parts about n/k people answer: k (noise + f(1-f)(1 - 1/k)).
        """
        k = len(self.parts)
        noise = self.parts[part].mechanism.variance(frequency)
        return k * (noise + frequency * (1 - frequency) * (1 - 1 / k))

    def transition(self) -> Transition:
        """The parts' answers one after the other, their weights on a common scale."""
        matrices = [part.mechanism.transition() for part in self.parts]
        answers = sum(len(matrix.answers) for matrix in matrices)
        refuse_large(self, prod(self.sizes) * answers, fewer="or smaller attributes")
        totals = [sum(matrix.weights[0]) for matrix in matrices]
        scale = lcm(*totals)
        rows = []
        for record in self.records():
            codes = [self._code(part.columns, record) for part in self.parts]
            triples = zip(matrices, totals, codes, strict=True)
            rows.append([scale // t * weight for m, t, c in triples for weight in m.weights[c]])
        return transition_of(range(answers), rows)


def estimated(
    columns: tuple[int, ...],
    supports: NDArray[np.float64],
    answers: int,
    people: int,
    p: Fraction,
    q: Fraction,
) -> MarginalEstimate:
    """Frequencies among all people, from those who answered about a marginal.

    f = (c/n - q)/(p - q) of n answers. To the variance of the answers' noise, as in
    ``answer_variance``, comes that of drawing n of N people without replacement,
    f(1-f)/n (N - n)/(N - 1). Cochran 1977, "Sampling techniques", theorem 3.2.
    """
    if answers == 0:
        raise InputError(
            f"nobody answered about the attributes {columns}, so their frequencies can't be "
            "estimated. Collect more answers."
        )
    frequencies = (supports / answers - float(q)) / float(p - q)
    likely = np.clip(frequencies, 0.0, 1.0)
    noise = answer_variance(p, q, likely)
    drawn = likely * (1 - likely) * (people - answers) / max(1, people - 1)
    return MarginalEstimate(
        columns=columns,
        frequencies=frequencies,
        standard_errors=np.sqrt((noise + drawn) / answers),
        answers=answers,
    )
