"""A participant's device in a survey of two rounds: it trusts its own ledger only.

It pins what was agreed, draws one answer in each round that is its own and repeats that one when
asked again; together they never cost more than was agreed. numpy and cryptography are all that it
loads.
"""

import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Final, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato import check
from sfumato.errors import BudgetError, InputError
from sfumato.local.mechanism import whole_code
from sfumato.randomness import Rng, check_rng
from sfumato.schema.columns import Category, Column
from sfumato.schema.schema import Schema
from sfumato.schema.values import code_of
from sfumato.survey.protocol.messages import VERSION, Answer, exact_epsilon, version
from sfumato.survey.protocol.rounds import (
    ROUNDS,
    Agreement,
    AnswerRows,
    RecordRows,
    RoundQuestion,
    read_question,
)

_HEAD: Final = {"sfumato", "kind", "survey", "plans"}
_STATES: Final = {
    "grouped": _HEAD | {"round", "answer"},
    "faithful": _HEAD | {"answers", "spent"},
    "single": _HEAD | {"round", "answer"},
}


class Client:
    """One person's half of a survey in two rounds.

    Formal guarantee: all that a client ever sends is epsilon-local DP for the whole record, with
    the agreed epsilon, whatever the server asks and however often. In the variant "grouped" it
    answers in one round, drawn at random; in "single" in the only one; in "faithful" in both,
    and its ledger adds up what they cost. Its round, the part it draws and every refusal of a
    question do not depend on the record. This holds as long as the client lives: a device that may
    restart keeps ``to_dict()`` before it sends, and goes on with ``restore``. A client can't be
    copied, nor answer after a fork: the other one would answer afresh. Its noise is its
    generator's: two people with equal records answer differently, and nobody can replay what
    ``secure_rng`` drew.

    Args:
        record: The person's values by column. One that does not fit is refused here, before
            anything is asked: that must not reach the server, nor that nothing follows.
        agreed: The survey's manifest, as it was shown to the person.
        rng: Draws the round and the answers.
        coded: Whether the record holds codes instead of values.
    """

    def __init__(
        self,
        record: Mapping[str, Any],
        *,
        agreed: Mapping[str, Any],
        rng: Rng,
        coded: bool = False,
    ) -> None:
        check_rng(rng)
        self._agreed = Agreement.from_manifest(agreed)
        self._codes = _codes(self._agreed.schema, record, coded=coded)
        self._rng = rng
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._ledger = _Ledger(epsilon=self._agreed.epsilon, rounds=_own_rounds(self._agreed, rng))

    def answer(self, message: Any) -> Answer | None:
        """The answer to a question, or None where the round is not this client's own.

        The first answer of a round is the only one: the same question gets the same answer again. A
        question that costs more than is left, another one of a round whose question is known, or
        one of a round that is over, is refused.
        """
        self._check_process()
        question = read_question(message, self._agreed)
        with self._lock:  # asked twice at once, it still draws once
            self._ledger.admit(question)
            if self._ledger.to_draw(question):
                value = question.answer(self._codes, self._agreed.schema, rng=self._rng)
                answer = Answer(question=question.id, value=value, simulated=not self._rng.secure)
                self._ledger.answers[question.round] = answer
                self._ledger.spent[question.round] = question.cost
            self._ledger.questions[question.round] = question.id
            return self._ledger.answers.get(question.round)

    def to_dict(self) -> dict[str, Any]:
        """The client's ledger: what it saw, answered and spent, without the record.

        Not for the server: it tells the round of a client that has not answered.
        """
        self._check_process()
        with self._lock:
            return {
                "sfumato": VERSION,
                "kind": "client",
                "survey": self._agreed.id,
                **self._ledger.to_dict(),
            }

    @classmethod
    def restore(
        cls,
        state: Any,
        record: Mapping[str, Any],
        *,
        agreed: Mapping[str, Any],
        rng: Rng,
        coded: bool = False,
    ) -> "Client":
        """The client that ``to_dict`` was called of: it does not answer afresh."""
        client = cls(record, agreed=agreed, rng=rng, coded=coded)
        client._ledger = _restored(state, client._agreed)
        return client

    def __copy__(self) -> NoReturn:
        """Refused: a copy would answer afresh, at the cost of epsilon once more."""
        raise TypeError(
            "a client can't be copied or pickled: the copy would answer afresh. Keep its "
            "to_dict() and go on with Client.restore"
        )

    def __deepcopy__(self, memo: Any) -> NoReturn:
        """Refused, as ``__copy__``."""
        self.__copy__()

    def __reduce__(self) -> NoReturn:
        """Refused, as ``__copy__``."""
        self.__copy__()

    def _check_process(self) -> None:
        """A fork makes two clients of one, and a secure generator draws anew in each."""
        if os.getpid() != self._process:
            raise BudgetError(
                "this client was made in another process, which may answer too; both together "
                "would cost epsilon twice. Keep its to_dict() there and go on with Client.restore "
                "in one process only."
            )


@dataclass(kw_only=True)
class _Ledger:
    """By round: the question that was seen, the answer that was drawn and what it cost."""

    epsilon: Fraction
    rounds: tuple[int, ...]
    """Those in which the client answers."""
    questions: dict[int, str] = field(default_factory=dict)
    answers: dict[int, Answer] = field(default_factory=dict)
    spent: dict[int, Fraction] = field(default_factory=dict)

    def to_draw(self, question: RoundQuestion) -> bool:
        """Whether a question is to be answered now for the first time."""
        return question.round in self.rounds and question.round not in self.answers

    def admit(self, question: RoundQuestion) -> None:
        """A round has one question, rounds don't come back, and the sum never exceeds epsilon."""
        known = self.questions.get(question.round)
        if known is not None and known != question.id:
            raise BudgetError(
                f"round {question.round} asked another question before, and a second answer "
                "would cost epsilon again."
            )
        if known is None and any(number > question.round for number in self.questions):
            raise BudgetError(f"round {question.round} is over: a later one was asked already.")
        left = self.epsilon - sum(self.spent.values())
        if self.to_draw(question) and question.cost > left:
            raise BudgetError(
                f"the question asks for epsilon {question.cost}, but {left} is left of the agreed "
                f"{self.epsilon}."
            )

    def to_dict(self) -> dict[str, Any]:
        """The ledger's part of a client's state."""
        questions = {"plans": _by_text(self.questions)}
        answers = {number: answer.to_dict() for number, answer in self.answers.items()}
        if len(self.rounds) == 1:
            (own,) = self.rounds
            return questions | {"round": own, "answer": answers.get(own)}
        spent = {number: str(cost) for number, cost in self.spent.items()}
        return questions | {"answers": _by_text(answers), "spent": _by_text(spent)}


def draw_rounds(people: int, *, rng: Rng) -> NDArray[np.int64]:
    """The round of each of many people, as clients of the variant "grouped" draw theirs."""
    return 1 + rng.below(ROUNDS, people)


def simulate_clients(
    message: Any,
    codes: ArrayLike,
    rounds: NDArray[np.int64] | None = None,
    *,
    agreed: Mapping[str, Any],
    rng: Rng,
) -> AnswerRows | RecordRows:
    """What many clients would answer to a question, drawn together: the same distribution.

    Whoever holds all records and a generator is a trusted party, whatever the answers look like.

    Args:
        message: The question.
        codes: A row a column of the agreed schema, a column a person.
        rounds: The round of each person, see ``draw_rounds``; None where everybody answers in
            each, so in all variants but "grouped".
        agreed: The survey's manifest.
        rng: Where the answers come from.
    """
    check_rng(rng)
    agreement = Agreement.from_manifest(agreed)
    question, schema = read_question(message, agreement), agreement.schema
    if (rounds is None) != (agreement.variant != "grouped"):
        raise InputError(
            'rounds are needed in the variant "grouped" (see draw_rounds), and only there: '
            f'otherwise everybody answers in each; this survey is "{agreement.variant}".'
        )
    block = _checked_block(codes, schema, people=None if rounds is None else len(rounds))
    mine = slice(None) if rounds is None else np.flatnonzero(np.asarray(rounds) == question.round)
    own = {name: row[mine] for name, row in zip(schema.names, block, strict=True)}
    return question.answer_many(own, schema, rng=rng)


def fitted(
    schema: Schema, record: Mapping[str, Any], *, coded: bool
) -> tuple[dict[str, int], tuple[str, ...]]:
    """Every column's code, and the columns whose value has none; never an error.

    Such a value gets a public code: that of missing, else of other, else the first. For a device
    whose schema comes from a server: an error would tell the server that a value has no code.
    """
    codes, misfits = {}, []
    for column in schema:
        try:
            codes[column.name] = _code(column, record.get(column.name), coded=coded)
        except Exception:  # whatever a value does when it is read
            codes[column.name] = _public_code(column)
            misfits.append(column.name)
    return codes, tuple(misfits)


def _own_rounds(agreed: Agreement, rng: Rng) -> tuple[int, ...]:
    """The rounds in which a client answers; where people are halved, one of two at random."""
    if agreed.variant == "faithful":
        return 1, 2
    return (1 + int(rng.below(agreed.rounds, 1)[0]),)


def _checked_block(codes: ArrayLike, schema: Schema, *, people: int | None) -> NDArray[Any]:
    block = np.asarray(codes)
    width = block.shape[-1] if people is None and block.ndim else people
    if block.shape != (len(schema), width) or block.dtype.kind not in "iu":
        raise InputError(
            f"codes must be {len(schema)} rows of {width} whole numbers, got {block.dtype} of "
            f"the shape {block.shape}."
        )
    for column, row in zip(schema, block, strict=True):
        if row.size and (row.min() < 0 or row.max() >= column.size):
            raise InputError(
                f"codes of {column.name!r} must be from 0 to {column.size - 1}; some are not."
            )
    return block


def _codes(schema: Schema, record: Any, *, coded: bool) -> dict[str, int]:
    """Every column's code, read at once: later no refusal can depend on a value."""
    if not isinstance(record, Mapping):
        raise InputError("a record is a mapping of columns to values.")
    return {column.name: _code(column, record.get(column.name), coded=coded) for column in schema}


def _code(column: Column, value: Any, *, coded: bool) -> int:
    return whole_code(value, below=column.size) if coded else code_of(column, value)


def _public_code(column: Column) -> int:
    """What stands for a value without a code; it depends on the schema alone."""
    other = column.other_code if isinstance(column, Category) else None
    return next(code for code in (column.missing_code, other, 0) if code is not None)


def _restored(state: Any, agreed: Agreement) -> _Ledger:
    """The ledger in a client's state; one that does not hold together is refused."""
    fields = _STATES[agreed.variant]
    if not isinstance(state, Mapping) or set(state) != fields or state["kind"] != "client":
        raise _no_state(f"it has {', '.join(sorted(fields))}")
    version(state)
    if state["survey"] != agreed.id:
        raise _no_state("this one is of another survey")
    questions = _by_round(state["plans"], "plans")
    if not all(isinstance(question, str) for question in questions.values()):
        raise _no_state("its questions are fingerprints by round")
    read = _both_rounds if agreed.variant == "faithful" else _one_round
    ledger = read(state, questions, agreed)
    named = {number: answer.question for number, answer in ledger.answers.items()}
    if named != {
        number: question for number, question in questions.items() if number in ledger.rounds
    }:
        raise _no_state("its answers belong to the questions of its rounds")
    return ledger


def _one_round(state: Mapping[str, Any], questions: dict[int, str], agreed: Agreement) -> _Ledger:
    own = check.whole(at_least=1, at_most=agreed.rounds, round=state["round"])
    answer = state["answer"]
    return _Ledger(
        epsilon=agreed.epsilon,
        rounds=(own,),
        questions=questions,
        answers={} if answer is None else {own: Answer.from_dict(answer)},
        spent={} if answer is None else {own: agreed.epsilon},
    )


def _both_rounds(state: Mapping[str, Any], questions: dict[int, str], agreed: Agreement) -> _Ledger:
    answers, costs = _by_round(state["answers"], "answers"), _by_round(state["spent"], "spent")
    spent = {number: exact_epsilon(cost) for number, cost in costs.items()}
    first = spent.get(1, agreed.round_epsilon)
    if (
        set(spent) != set(answers)
        or sum(spent.values()) > agreed.epsilon
        or not all(spent.values())
    ):
        raise _no_state("every answer has its cost, together at most the agreed epsilon")
    if first != agreed.round_epsilon:
        raise _no_state("the first round costs what was agreed")
    return _Ledger(
        epsilon=agreed.epsilon,
        rounds=(1, 2),
        questions=questions,
        answers={number: Answer.from_dict(answer) for number, answer in answers.items()},
        spent=spent,
    )


def _by_text(rounds: Mapping[int, Any]) -> dict[str, Any]:
    """Rounds as JSON names them."""
    return {str(number): value for number, value in sorted(rounds.items())}


def _by_round(rounds: Any, what: str) -> dict[int, Any]:
    if not isinstance(rounds, Mapping) or not set(rounds) <= {"1", "2"}:
        raise _no_state(f"its {what} are given by round")
    return {int(number): value for number, value in rounds.items()}


def _no_state(why: str) -> InputError:
    return InputError(f"this is no state of this client: {why}.")
