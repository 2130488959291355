"""Random sampling plus fake data: one true response that looks like the uniform codes."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from sfumato.errors import InputError
from sfumato.local.frequency.grr import ResponseWeights
from sfumato.local.layout import Answers, IntegerLayout
from sfumato.local.mechanism import (
    Transition,
    answer_variance,
    kernels,
    refuse_large,
    transition_of,
)
from sfumato.local.probabilities import WORD, exp_below
from sfumato.local.records.mechanism import (
    MarginalEstimate,
    RecordMechanism,
    State,
    estimated,
)
from sfumato.noise.discrete_noise import replay
from sfumato.randomness import Rng


@dataclass(frozen=True, kw_only=True)
class RsFd(RecordMechanism):
    """Answer one attribute, drawn uniformly, with all of epsilon, and all others at random.

    The answer is one code for each attribute and does not show which is the true response.
    Arcolezi, Couchot, Al Bouna, Xiao 2021, "Random sampling plus fake data", arXiv 2109.07269,
    section 3.2, with randomized response.

    Formal guarantee: epsilon-local DP for the whole record. The probability of an answer y is
    prod(1/m_i) (1/d) sum_j m_j P_j(y_j | x_j), and no term of the sum changes by more than
    e^epsilon. The paper responds with ln(d (e^epsilon - 1) + 1) instead: that holds if just one
    attribute may change and all have the same size, but a whole record would lose all of it.
    """

    @cached_property
    def responses(self) -> tuple[ResponseWeights, ...]:
        """The one definition of the probabilities: a response for each attribute."""
        odds = exp_below(self.epsilon)
        return tuple(ResponseWeights(codes=size, odds=odds) for size in self.sizes)

    def probabilities(self, column: int) -> tuple[Fraction, Fraction]:
        """The exact probabilities that an answer has the true code, and a given other one.

        They are P/d + (d-1)/(d m), P being the response's keep or share, for the code of a fake
        is right once in m.
        """
        d, response = len(self.sizes), self.responses[column]
        fake = Fraction(d - 1, d * self.sizes[column])
        p, q = Fraction(response.keep, WORD), Fraction(response.share, WORD)
        return p / d + fake, q / d + fake

    def variance(self, column: int, frequency: float = 0.0) -> float:
        """The variance of an estimated frequency, times n, with p and q of ``probabilities``.

        The chance by which a person answers about this attribute is part of them.
        """
        return float(answer_variance(*self.probabilities(column), frequency))

    @cached_property
    def layouts(self) -> tuple[IntegerLayout, ...]:
        """A code for each attribute."""
        return tuple(IntegerLayout(below=size) for size in self.sizes)

    def answer(self, record: Sequence[int], *, rng: Rng) -> tuple[int, ...]:
        """One person's answer, by plain integers: a code for each attribute."""
        codes = self.checked_record(record)
        true = int(rng.below(len(self.sizes), 1)[0])
        return tuple(
            response.draw(code, rng=rng) if i == true else int(rng.below(response.codes, 1)[0])
            for i, (code, response) in enumerate(zip(codes, self.responses, strict=True))
        )

    def answer_many(self, block: Any, *, rng: Rng) -> Answers:
        """The answers of many people, of the same distribution: (attributes, people)."""
        dtype = IntegerLayout(below=max(self.sizes)).dtype
        records = np.ascontiguousarray(self.checked_block(block), dtype=dtype)
        out = np.empty(records.shape, dtype=dtype)
        sizes = np.array(self.sizes, dtype=np.uint64)
        numbers = [(r.keep, *r.reciprocal) for r in self.responses]
        responses = np.array(numbers, dtype=np.uint64)
        fill = kernels().hide_among_uniform
        replay(
            lambda words, done: fill(words, records, out, done, sizes, responses),
            records.shape[1],
            rng=rng,
            words_each=len(self.sizes) + 2,
        )
        return out

    def gather(self, answers: Iterable[Sequence[int]]) -> Answers:
        """Single answers of many people as one array, each checked."""
        rows = [self.checked_record(answer) for answer in answers]
        dtype = IntegerLayout(below=max(self.sizes)).dtype
        return np.array(rows, dtype=dtype).reshape(-1, len(self.sizes)).T.copy()

    def zero(self) -> State:
        """An empty tally: for each attribute the number of answers, then the codes'."""
        return [np.zeros(1 + size, dtype=np.int64) for size in self.sizes]

    def add(self, answers: Any, state: State) -> None:
        """Add answers to a tally, in place; all are checked before any is counted."""
        array = np.asarray(answers)
        if array.ndim != 2 or len(array) != len(self.sizes):
            raise InputError(
                f"answers must be an array of shape ({len(self.sizes)}, people), got shape "
                f"{array.shape}."
            )
        pairs = zip(self.layouts, array, strict=True)
        checked = [layout.checked_many(own) for layout, own in pairs]
        for own, tally in zip(checked, state, strict=True):
            tally[0] += own.size
            kernels().add_histogram(np.ascontiguousarray(own), tally[1:])

    def estimate(self, state: State) -> tuple[MarginalEstimate, ...]:
        """Each attribute's frequencies, (d c/n - (d-1)/m - q)/(p - q), with standard errors."""
        estimates = []
        for column, tally in enumerate(state):
            (p, q), n = self.probabilities(column), int(tally[0])
            estimates.append(estimated((column,), tally[1:].astype(np.float64), n, n, p, q))
        return tuple(estimates)

    def transition(self) -> Transition:
        """The weights sum_j m_j W_j(y_j | x_j) of every answer under every whole record.

        Records and answers are numbered alike, the last attribute fastest.
        """
        refuse_large(self, prod(self.sizes) ** 2, fewer="or smaller attributes")
        rows = [[self._weight(x, y) for y in self.records()] for x in self.records()]
        return transition_of(range(prod(self.sizes)), rows)

    def _weight(self, record: Sequence[int], answer: Sequence[int]) -> int:
        triples = zip(self.responses, record, answer, strict=True)
        return sum(r.codes * (r.keep if x == y else r.share) for r, x, y in triples)
