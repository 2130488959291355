"""Mean and variance of a number: half of the people are asked for it, half for its square.

To ask everybody for both with epsilon each would cost 2 epsilon. Here each device draws one of the
two at random, answers it with all of epsilon, and says which.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import sqrt
from typing import Any

import numpy as np

from sfumato.charts import cards
from sfumato.errors import InputError
from sfumato.privacy.guarantees import LocalDP
from sfumato.randomness import Rng, check_rng
from sfumato.schema.columns import Column, Number
from sfumato.schema.values import limits, number_of
from sfumato.survey.estimate.estimates import promise_text
from sfumato.survey.estimate.question import Question
from sfumato.survey.estimate.tally import AnswerBatch, Collected, Tally
from sfumato.survey.protocol.mechanism_choice import MEANS, number_mechanism
from sfumato.survey.protocol.messages import Answer


@dataclass(frozen=True, kw_only=True, slots=True)
class Moments:
    """A mean and a variance, each with its standard error."""

    mean: float
    mean_error: float
    variance: float
    variance_error: float
    answers: tuple[int, int]
    """How many answered about the number, and how many about its square."""
    guarantee: LocalDP
    private: bool
    """False when seeded randomness made any of the answers."""

    def _repr_html_(self) -> str:
        """For notebooks: both figures and what they rest on."""
        figures = {
            "mean": f"{self.mean:.5g} ± {self.mean_error:.2g}",
            "variance": f"{self.variance:.5g} ± {self.variance_error:.2g}",
            "answers": f"{self.answers[0]:,} of the number, {self.answers[1]:,} of its square",
            "promise": promise_text(self.guarantee, private=self.private),
        }
        return cards.card("Mean and variance", cards.facts(figures))


@dataclass(frozen=True, kw_only=True)
class VarianceQuestion:
    """Asks for the mean and the variance of a column of numbers.

    Formal guarantee: the draw does not look at the value, and the one answer is
    epsilon-local DP.
    """

    column: Column
    epsilon: Fraction
    protocol: str = "hybrid"

    def __post_init__(self) -> None:
        if self.protocol not in MEANS:
            raise InputError(f"protocol must be one of {', '.join(MEANS)}; got {self.protocol!r}.")
        object.__setattr__(self, "epsilon", self.value.epsilon)

    @cached_property
    def value(self) -> Question:
        """The question of the first half."""
        return Question(column=self.column, epsilon=self.epsilon, protocol=self.protocol)

    @cached_property
    def square(self) -> Question:
        """The question of the second half: the squared distance from the middle, in [0, 1]."""
        low, high = limits(self.column)
        name = f"{self.column.name}: squared distance from the middle of {low!r} to {high!r}"
        column = Number(name=name, edges=(0.0, 1.0))
        return Question(column=column, epsilon=self.epsilon, protocol=self.protocol)

    @property
    def guarantee(self) -> LocalDP:
        """The promise to the person who answers once."""
        return self.value.guarantee

    def answer(self, value: Any, *, rng: Rng) -> Answer:
        """The answer to send; its question says which half it belongs to."""
        check_rng(rng)
        if rng.below(2, 1)[0] == 0:
            return self.value.answer(value, rng=rng)
        number = self._unit(np.array([number_of(self.column, value)]))
        return self.square.answer(float(number[0] ** 2), rng=rng)

    def answer_many(self, values: Any, *, rng: Rng) -> list[AnswerBatch]:
        """The answers of many people, from their numbers: one batch for each half."""
        check_rng(rng)
        numbers = np.array([number_of(self.column, value) for value in values])
        second = rng.below(2, numbers.size) == 1
        squares = self._unit(numbers[second]) ** 2
        return [
            _answered(self.value, numbers[~second], rng=rng),
            _answered(self.square, squares, rng=rng),
        ]

    def estimate(self, answers: Iterable[Collected]) -> Moments:
        """Mean and variance; what is not an answer to either half is refused."""
        if isinstance(answers, AnswerBatch | Answer | Mapping):
            raise InputError("a variance needs a list of answers: it is not estimable from one.")
        halves = {half.id: Tally(form=half) for half in (self.value, self.square)}
        for answer in answers:
            read = Answer.from_dict(answer) if isinstance(answer, Mapping) else answer
            if read.question not in halves:
                raise InputError("this is an answer to another question.")
            halves[read.question].add(read)
        first, second = halves[self.value.id], halves[self.square.id]
        if not first.answers or not second.answers:
            raise InputError(
                f"a variance needs answers of both halves, got {first.answers} and "
                f"{second.answers}: it is not estimable."
            )
        return self._moments(first, second)

    def _moments(self, first: Tally, second: Tally) -> Moments:
        """E[x^2] - mean^2 in units of half the range; the mean's own error is taken out of it."""
        (m, m_error), (s, s_error) = _mean(self.value, first), _mean(self.square, second)
        s, s_error = (s + 1) / 2, s_error / 2
        low, high = limits(self.column)
        middle, half = (low + high) / 2, (high - low) / 2
        return Moments(
            mean=middle + half * m,
            mean_error=half * m_error,
            variance=half**2 * (s - (m**2 - m_error**2)),
            variance_error=half**2 * sqrt(s_error**2 + (2 * m * m_error) ** 2),
            answers=(first.answers, second.answers),
            guarantee=self.guarantee,
            private=not (first.simulated or second.simulated),
        )

    def _unit(self, numbers: Any) -> Any:
        low, high = limits(self.column)
        return np.clip((numbers - (low + high) / 2) / ((high - low) / 2), -1.0, 1.0)


def _answered(question: Question, numbers: Any, *, rng: Rng) -> AnswerBatch:
    mechanism, grid = number_mechanism(question.column, question.epsilon, question.protocol)
    values = mechanism.answer_many(grid.round(numbers, rng=rng), rng=rng)
    return AnswerBatch(question=question.id, values=values, simulated=not rng.secure)


def _mean(question: Question, tally: Tally) -> tuple[float, float]:
    mechanism, _ = number_mechanism(question.column, question.epsilon, question.protocol)
    return mechanism.mean(tally.counts)
