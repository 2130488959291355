"""The plan of a round in which everybody answers about every column, and its answers.

Each column has its own epsilon, and their sum is what the answers of one person cost. A device
refuses a plan that is not of its survey; what it can still afford only its own ledger knows.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sfumato import check
from sfumato.errors import BudgetError, InputError
from sfumato.local.frequency.grr import Grr
from sfumato.local.probabilities import local_epsilon
from sfumato.randomness import Rng
from sfumato.schema.schema import Schema
from sfumato.survey.protocol.messages import VERSION, exact_epsilon, fingerprint
from sfumato.survey.protocol.rounds import (
    ROUNDS,
    Agreement,
    RoundPlan,
    check_fields,
    check_spelling,
)

_PLAN: Final = {"sfumato", "kind", "survey", "round", "budgets"}


@dataclass(frozen=True, kw_only=True)
class RecordPlan:
    """What everybody is asked in one round: each column by randomized response.

    Formal guarantee: the answers about a record are ``cost``-local DP for all of it, the sum of
    the columns' epsilons, because they are drawn independently of each other.
    """

    survey: str
    """The fingerprint of the agreement."""
    round: int
    budgets: Mapping[str, Fraction]
    """By column, in the agreed order, the epsilon of its answer."""

    def __post_init__(self) -> None:
        check.whole(at_least=1, at_most=ROUNDS, round=self.round)
        if not self.budgets:
            raise InputError("a plan has budgets for one column or more.")
        exact = {name: local_epsilon(epsilon) for name, epsilon in self.budgets.items()}
        object.__setattr__(self, "budgets", exact)
        exact_epsilon(str(self.cost))  # a ledger must be able to spell it

    @cached_property
    def cost(self) -> Fraction:
        """The epsilon of one person's answers."""
        return sum(self.budgets.values(), Fraction(0))

    @cached_property
    def id(self) -> str:
        """The fingerprint that answers carry."""
        return fingerprint(self.to_dict())

    def mechanisms(self, schema: Schema) -> dict[str, Grr]:
        """What randomizes each column, in the order of the answers."""
        return {
            name: Grr(categories=schema[name].size, epsilon=epsilon)
            for name, epsilon in self.budgets.items()
        }

    def answer(self, codes: Mapping[str, int], schema: Schema, *, rng: Rng) -> list[int]:
        """One person's answer: a code for each column."""
        made = self.mechanisms(schema)
        return [int(own.answer(codes[name], rng=rng)) for name, own in made.items()]

    def answer_many(
        self, codes: Mapping[str, NDArray[Any]], schema: Schema, *, rng: Rng
    ) -> "RecordRows":
        """The answers of many people, whose codes were checked: the same distribution."""
        made = self.mechanisms(schema)
        rows = [own.answer_many(codes[name], rng=rng) for name, own in made.items()]
        return RecordRows(question=self.id, codes=np.stack(rows), simulated=not rng.secure)

    def to_dict(self) -> dict[str, Any]:
        """The message."""
        return {
            "sfumato": VERSION,
            "kind": "record-plan",
            "survey": self.survey,
            "round": self.round,
            "budgets": {name: str(epsilon) for name, epsilon in self.budgets.items()},
        }

    @staticmethod
    def from_dict(message: Any, agreed: Agreement) -> "RecordPlan":
        """The plan in a message, if it is one of the agreed survey; anything else is refused."""
        check_fields(message, _PLAN, "a plan")
        if message["survey"] != agreed.id:
            raise InputError(
                "the plan belongs to another survey: other columns, epsilon or rules than agreed."
            )
        listed = message["budgets"]
        if not isinstance(listed, Mapping) or set(listed) != set(agreed.asked):
            raise InputError("a plan has budgets for the agreed columns.")
        found = RecordPlan(
            survey=agreed.id,
            round=message["round"],
            budgets={name: exact_epsilon(listed[name]) for name in agreed.asked},
        )
        check_spelling(found.to_dict(), message, "plan")
        if found.round == 1:
            _check_first(found, agreed)
        found.mechanisms(agreed.schema)  # refused now, if at all: later a record would be at hand
        return found


@dataclass(frozen=True, kw_only=True, eq=False)
class RecordRows:
    """The answers of many people about every column."""

    question: str
    """The fingerprint of the plan."""
    codes: NDArray[np.unsignedinteger[Any]]
    """A row for each column that was asked about, in the agreed order; a column for each person."""
    simulated: bool = False
    """Whether seeded randomness made them, which protects nobody."""

    def __len__(self) -> int:
        return int(self.codes.shape[1])


def first_budgets(agreed: Agreement) -> dict[str, Fraction]:
    """The agreed ones of the first round: half of epsilon, the same for each column."""
    return dict.fromkeys(agreed.asked, agreed.round_epsilon / len(agreed.asked))


def read_plan(message: Any, agreed: Agreement) -> RoundPlan | RecordPlan:
    """The plan in a message of the agreed variant; anything else is refused."""
    kind = RecordPlan if agreed.variant == "faithful" else RoundPlan
    return kind.from_dict(message, agreed)


def _check_first(plan: RecordPlan, agreed: Agreement) -> None:
    if plan.cost > agreed.round_epsilon:
        raise BudgetError(
            f"the plan asks for epsilon {plan.cost}, but {agreed.round_epsilon} was agreed for "
            "the first round."
        )
    if dict(plan.budgets) != first_budgets(agreed):
        raise InputError(
            "the columns of the first round are asked with the same epsilon each, as agreed."
        )
