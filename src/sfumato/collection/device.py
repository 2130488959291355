"""A participant's device in a survey of two rounds: it trusts its own ledger only.

It pins what was agreed, tosses a coin for its round, draws one answer in its life and repeats
that one when asked again. numpy and cryptography are all that it loads.
"""

import threading
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato import check
from sfumato.collection.messages import VERSION, Answer, version
from sfumato.collection.plans import Agreement, AnswerRows, RoundPlan
from sfumato.errors import BudgetError, InputError
from sfumato.mechanisms.local.mechanism import whole_code
from sfumato.mechanisms.local.parts import answer_parts, draw_part
from sfumato.randomness import Rng, check_rng
from sfumato.schema.table import Schema
from sfumato.schema.values import code_of

ROUNDS: Final = 2
_STATE: Final = {"sfumato", "kind", "survey", "round", "plans", "answer"}


class Client:
    """One person's half of a survey in two rounds.

    Formal guarantee: all that a client ever sends is epsilon-local DP for the whole record, with
    the agreed epsilon, whatever the server asks and however often. Its round, the part it draws
    and every refusal of a plan do not depend on the record. This holds as long as the client
    lives: a device that may restart keeps ``to_dict()`` before it sends, and goes on with
    ``restore``.

    Args:
        record: The person's values by column.
        agreed: The survey's manifest, as it was shown to the person.
        rng: Where the coin and the answer come from.
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
        self._round = 1 + int(rng.below(ROUNDS, 1)[0])
        self._plans: dict[int, str] = {}
        self._answer: Answer | None = None

    def answer(self, message: Any) -> Answer | None:
        """The answer to a plan, or None where the round is not this client's own.

        The first answer is the only one: the same plan gets the same answer again, another plan
        for a round that was seen already, or one for a round that is over, is refused.
        """
        plan = RoundPlan.from_dict(message, self._agreed)
        with self._lock:  # asked twice at once, it still draws once
            self._admit(plan)
            self._plans[plan.round] = plan.id
            if plan.round != self._round:
                return None
            if self._answer is None:
                self._answer = self._draw(plan)
            return self._answer

    def to_dict(self) -> dict[str, Any]:
        """The client's ledger: what it saw and what it answered, without the record.

        Not for the server: it tells the round of a client that has not answered.
        """
        return {
            "sfumato": VERSION,
            "kind": "client",
            "survey": self._agreed.id,
            "round": self._round,
            "plans": {str(number): plan for number, plan in sorted(self._plans.items())},
            "answer": None if self._answer is None else self._answer.to_dict(),
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
        client._resume(state)
        return client

    def _admit(self, plan: RoundPlan) -> None:
        """The client's own ledger: each round has one plan, and rounds don't come back."""
        seen = self._plans.get(plan.round)
        if seen is not None and seen != plan.id:
            raise BudgetError(
                f"round {plan.round} was asked with another plan before, and a second answer "
                "would cost epsilon again. Nothing was answered."
            )
        if seen is None and any(number > plan.round for number in self._plans):
            raise BudgetError(
                f"round {plan.round} is over: a later one was asked already. Nothing was answered."
            )

    def _draw(self, plan: RoundPlan) -> Answer:
        schema = self._agreed.schema
        place = draw_part(plan.weights, rng=self._rng)
        part = plan.parts[place].made(schema, self._agreed.epsilon)
        drawn = part.mechanism.answer(part.cell(self._codes), rng=self._rng)
        value = [place, part.mechanism.layout.to_json(drawn)]
        return Answer(question=plan.id, value=value, simulated=not self._rng.secure)

    def _resume(self, state: Any) -> None:
        if not isinstance(state, Mapping) or set(state) != _STATE or state["kind"] != "client":
            raise _no_state(f"it has {', '.join(sorted(_STATE))}")
        version(state)
        plans, kept = state["plans"], state["answer"]
        if state["survey"] != self._agreed.id:
            raise _no_state("this one is of another survey")
        if not isinstance(plans, Mapping) or not all(
            number in ("1", "2") and isinstance(plan, str) for number, plan in plans.items()
        ):
            raise _no_state("its plans are fingerprints by round")
        own = check.whole(at_least=1, at_most=ROUNDS, round=state["round"])
        answer = None if kept is None else Answer.from_dict(kept)
        if (None if answer is None else answer.question) != plans.get(str(own)):
            raise _no_state("its answer belongs to the plan of its round")
        self._round, self._answer = own, answer
        self._plans = {int(number): plan for number, plan in plans.items()}


def draw_rounds(people: int, *, rng: Rng) -> NDArray[np.int64]:
    """The round of each of many people: the coins of so many clients."""
    return 1 + rng.below(ROUNDS, people)


def simulate_clients(
    message: Any,
    codes: ArrayLike,
    rounds: NDArray[np.int64],
    *,
    agreed: Mapping[str, Any],
    rng: Rng,
) -> AnswerRows:
    """What so many clients would answer to a plan, drawn together: the same distribution.

    Whoever holds all records and a generator is a trusted party, whatever the answers look like.

    Args:
        message: The plan.
        codes: A row a column of the agreed schema, a column a person.
        rounds: The round of each person: see ``draw_rounds``.
        agreed: The survey's manifest.
        rng: Where the answers come from.
    """
    check_rng(rng)
    agreement = Agreement.from_manifest(agreed)
    plan, schema = RoundPlan.from_dict(message, agreement), agreement.schema
    block = _checked_block(codes, schema, people=len(rounds))
    mine = np.flatnonzero(np.asarray(rounds) == plan.round)
    own = {name: row[mine] for name, row in zip(schema.names, block, strict=True)}
    parts = [part.made(schema, agreement.epsilon) for part in plan.parts]
    drawn, answers = answer_parts(parts, plan.weights, own, mine.size, rng=rng)
    return AnswerRows(question=plan.id, part=drawn, answer=answers, simulated=not rng.secure)


def _checked_block(codes: ArrayLike, schema: Schema, *, people: int) -> NDArray[Any]:
    block = np.asarray(codes)
    if block.shape != (len(schema), people) or block.dtype.kind not in "iu":
        raise InputError(
            f"codes must be {len(schema)} rows of {people} whole numbers, got {block.dtype} of "
            f"the shape {block.shape}. Nothing was answered."
        )
    for column, row in zip(schema, block, strict=True):
        if people and (row.min() < 0 or row.max() >= column.size):
            raise InputError(
                f"codes of {column.name!r} must be from 0 to {column.size - 1}; some are not. "
                "Nothing was answered."
            )
    return block


def _codes(schema: Schema, record: Any, *, coded: bool) -> dict[str, int]:
    """Every column's code, read at once: later no refusal can depend on a value."""
    if not isinstance(record, Mapping):
        raise InputError("a record is a mapping of columns to values. Nothing was answered.")
    if coded:
        return {c.name: whole_code(record.get(c.name), below=c.size) for c in schema}
    return {column.name: code_of(column, record.get(column.name)) for column in schema}


def _no_state(why: str) -> InputError:
    return InputError(f"this is no state of this client: {why}. Nothing was restored.")
