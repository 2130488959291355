"""What the server does with answers: check them, count them, merge counts.

A tally is a small array of whole numbers. Tallies of parts are added, so counting runs in batches,
in threads, as an engine's fold and on many machines, always to the same numbers.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError
from sfumato.local.layout import Answers, Layout
from sfumato.survey.protocol.messages import Answer

_TOGETHER: Final = 4_096
"""Single answers that are counted in one call: few calls, little memory."""


@dataclass(frozen=True, kw_only=True, eq=False)
class AnswerBatch:
    """Many answers to one question in one array."""

    question: str
    """The fingerprint of the question."""
    values: Answers
    simulated: bool = False
    """Whether seeded randomness made them, which protects nobody."""

    def __len__(self) -> int:
        return len(self.values)


class Countable(Protocol):
    """A mechanism as the server sees it."""

    @property
    def layout(self) -> Layout:
        """What an answer looks like."""

    @property
    def cells(self) -> int:
        """The length of the tally."""

    def add(self, answers: Answers, counts: NDArray[np.int64]) -> None:
        """Add checked answers to a tally, in place."""


class TalliedQuestion(Protocol):
    """A question as the server sees it: its name and what its answers went through."""

    @property
    def id(self) -> str:
        """The fingerprint that answers carry."""

    @property
    def mechanism(self) -> Countable:
        """What randomized the answers."""


Collected = AnswerBatch | Answer | Mapping[str, Any]
"""What may be counted: a batch, an answer, or an answer's message."""


@dataclass(kw_only=True, eq=False)
class Tally:
    """Counted answers to one question."""

    form: TalliedQuestion
    counts: NDArray[np.int64] = field(init=False)
    answers: int = 0
    """How many were counted."""
    simulated: bool = False
    """Whether any of the answers protects nobody."""

    def __post_init__(self) -> None:
        self.counts = np.zeros(self.form.mechanism.cells, dtype=np.int64)

    def add(self, collected: Collected | Iterable[Collected]) -> None:
        """Count a batch, an answer or many; what is not an answer to this question is refused.

        A refused batch or answer is not counted. Of many, those before it may stay counted: start
        a new tally after an error.
        """
        for batch in self.batches(collected):
            self._same_question(batch.question)
            checked = self.form.mechanism.layout.checked_many(batch.values)
            self.form.mechanism.add(checked, self.counts)
            self.answers += len(checked)
            self.simulated |= batch.simulated

    def merge(self, other: "Tally") -> None:
        """Add the counts of another part of the same collection."""
        self._same_question(other.form.id)
        self.counts += other.counts
        self.answers += other.answers
        self.simulated |= other.simulated

    def _batch(self, collected: Answer | Mapping[str, Any]) -> AnswerBatch:
        answer = collected if isinstance(collected, Answer) else Answer.from_dict(collected)
        self._same_question(answer.question)
        layout = self.form.mechanism.layout
        one = layout.one(layout.from_json(answer.value))
        return AnswerBatch(question=answer.question, values=one, simulated=answer.simulated)

    def batches(self, collected: Collected | Iterable[Collected]) -> Iterator[AnswerBatch]:
        """Answers in arrays: single ones thousands at a time, as a call for each would be slow."""
        if isinstance(collected, AnswerBatch | Answer | Mapping):
            collected = [collected]
        if not isinstance(collected, Iterable) or isinstance(collected, str | bytes):
            raise InputError(
                f"answers are batches, answers or their messages; got {type(collected).__name__}."
            )
        batches: list[AnswerBatch] = []
        for item in collected:
            if isinstance(item, AnswerBatch):
                yield item
                continue
            batches.append(self._batch(item))
            if len(batches) == _TOGETHER:
                yield from _joined(batches)
                batches = []
        yield from _joined(batches)

    def _same_question(self, question: str) -> None:
        if question != self.form.id:
            raise InputError(
                f"this is an answer to another question ({question[:40]!r}, not "
                f"{self.form.id!r}): another column, protocol or epsilon."
            )


@dataclass(frozen=True, kw_only=True)
class TallyKernel:
    """Counting as an engine's fold, over a column that holds integer answers.

    The last place of the state counts the answers.
    """

    form: TalliedQuestion
    column: str = "answer"

    @property
    def columns(self) -> tuple[str, ...]:
        """The column of answers."""
        return (self.column,)

    def zero(self) -> NDArray[np.int64]:
        """The state before any answer."""
        return np.zeros(self.form.mechanism.cells + 1, dtype=np.int64)

    def add(self, state: NDArray[np.int64], codes: Mapping[str, Any]) -> None:
        """Count one batch into the state."""
        answers = self.form.mechanism.layout.checked_many(codes[self.column])
        self.form.mechanism.add(answers, state[:-1])
        state[-1] += len(answers)

    def tally(self, state: NDArray[np.int64], *, simulated: bool) -> Tally:
        """The tally of a folded state; say whether seeded randomness made any of the answers."""
        tally = Tally(form=self.form, answers=int(state[-1]), simulated=simulated)
        tally.counts += state[:-1]
        return tally


def _joined(batches: list[AnswerBatch]) -> Iterator[AnswerBatch]:
    if batches:
        yield AnswerBatch(
            question=batches[0].question,
            values=np.concatenate([batch.values for batch in batches]),
            simulated=any(batch.simulated for batch in batches),
        )
