"""A table published without any trusted party: DP2-Pub in two rounds of answers.

What is said in the first round decides how the second one asks. In the variant "grouped" half of
the people answer in each, once, with all of epsilon; in "faithful" everybody answers in both, with
half of it. The server sees answers only, so all it does is post-processing. After Jiang et al.
2023, arXiv 2208.11693.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from sfumato import check
from sfumato.errors import InputError
from sfumato.randomness import Rng, check_rng
from sfumato.release import TableRelease
from sfumato.schema.schema import Schema
from sfumato.survey.dp2pub import faithful_rounds, grouped_rounds
from sfumato.survey.protocol.rounds import TWO_ROUNDS, Agreement

Collected = grouped_rounds.Collected | faithful_rounds.Collected
"""What may be counted: many answers, one, its message, or None from who had nothing to answer."""


class _Rounds(Protocol):
    """What a variant's module does; tallies and plans are its own."""

    def first_plan(self, agreed: Agreement) -> Any: ...
    def second_plan(self, agreed: Agreement, heard: Any) -> Any: ...
    def count(self, plan: Any, agreed: Agreement, answers: Any) -> Any: ...
    def release(
        self, agreed: Agreement, asked: Any, first: Any, second: Any, *, rng: Rng
    ) -> TableRelease: ...


_ROUNDS: Final[Mapping[str, _Rounds]] = {"grouped": grouped_rounds, "faithful": faithful_rounds}


@dataclass
class TwoRound:
    """A survey in two rounds: asks, asks again by what was heard, and publishes a table.

    Formal guarantee: epsilon-local DP for each person who takes part with a ``Client``, which
    holds it without trusting this class.
    """

    schema: Schema
    epsilon: check.Number
    variant: str = "grouped"
    _agreed: Agreement = field(init=False, repr=False)
    _rounds: _Rounds = field(init=False, repr=False)
    _heard: Any = field(init=False, repr=False, default=None)
    _asked: Any = field(init=False, repr=False, default=None)

    def __post_init__(self) -> None:
        exact = check.exact(epsilon=self.epsilon)
        check.one_of(TWO_ROUNDS, variant=self.variant)
        self._agreed = Agreement(schema=self.schema, epsilon=exact, variant=self.variant)
        self._rounds = _ROUNDS[self.variant]
        self.epsilon = exact

    @property
    def manifest(self) -> dict[str, Any]:
        """What every participant is told before anything is asked, and pins."""
        return self._agreed.manifest()

    def first_round(self) -> dict[str, Any]:
        """The message to everybody: about one column each, or about every column."""
        message: dict[str, Any] = self._rounds.first_plan(self._agreed).to_dict()
        return message

    def second_round(self, answers: Collected | Iterable[Collected]) -> dict[str, Any]:
        """Count the answers of the first round; the message to everybody for the second."""
        if self._asked is not None:
            raise InputError(
                "the second round was asked already, and devices refuse another plan for it. "
                "Start a new survey."
            )
        heard = self._rounds.count(self._rounds.first_plan(self._agreed), self._agreed, answers)
        self._asked = self._rounds.second_plan(self._agreed, heard)
        self._heard = heard
        message: dict[str, Any] = self._asked.plan.to_dict()
        return message

    def publish(self, answers: Collected | Iterable[Collected], *, rng: Rng) -> TableRelease:
        """The table of a model fitted to the answers of both rounds, a row for each person."""
        check_rng(rng)
        if self._asked is None or self._heard is None:
            raise InputError("the second round was not asked yet: call second_round first.")
        heard = self._rounds.count(self._asked.plan, self._agreed, answers)
        return self._rounds.release(self._agreed, self._asked, self._heard, heard, rng=rng)
