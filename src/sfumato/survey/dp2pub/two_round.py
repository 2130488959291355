"""A table published without any trusted party: a survey in one or two rounds of answers.

The answers of the first round decide the question of the second. In the variant "grouped" half of
the people answer in each round, once, with all of epsilon; in "faithful" everybody answers in both,
with half of it; "single" has one round. The server sees answers only, so all it does is
post-processing. After Jiang et al. 2023, arXiv 2208.11693.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from sfumato import check
from sfumato.errors import InputError
from sfumato.randomness import Rng, check_rng
from sfumato.release import TableRelease
from sfumato.schema.schema import Schema
from sfumato.survey.dp2pub import faithful_rounds, grouped_rounds
from sfumato.survey.dp2pub.round_tally import (
    Collected,
    ColumnsTally,
    PartsTally,
    RoundTally,
    count,
)
from sfumato.survey.protocol.rounds import TWO_ROUNDS, Agreement, RoundQuestion

SecondRound = grouped_rounds.SecondRound | faithful_rounds.SecondRound
"""The question of the second round, and what of the first round it follows from."""


def first_question(agreed: Agreement) -> RoundQuestion:
    """What everybody, or half of them, is asked first."""
    if agreed.variant == "faithful":
        return faithful_rounds.first_question(agreed)
    if agreed.variant == "grouped":
        return grouped_rounds.first_question(agreed)
    return grouped_rounds.one_column_question(agreed)


def second_round(agreed: Agreement, first: RoundTally) -> SecondRound:
    """What is asked next, from the answers of the first round."""
    if isinstance(first, ColumnsTally):
        return faithful_rounds.second_question(agreed, first)
    return grouped_rounds.second_question(agreed, first)


def release(
    agreed: Agreement, tallies: Sequence[RoundTally], chosen: SecondRound | None, *, rng: Rng
) -> TableRelease:
    """The table of a model fitted to the answers of all rounds.

    Args:
        agreed: The survey.
        tallies: Of all rounds.
        chosen: The second round; None in a survey of one.
        rng: Draws the rows.
    """
    if isinstance(chosen, faithful_rounds.SecondRound):
        one, two = (tally for tally in tallies if isinstance(tally, ColumnsTally))
        return faithful_rounds.release(agreed, chosen, one, two, rng=rng)
    parts = [tally for tally in tallies if isinstance(tally, PartsTally)]
    if chosen is None:
        return grouped_rounds.release_columns(agreed, parts[0], rng=rng)
    return grouped_rounds.release(agreed, chosen, parts[0], parts[1], rng=rng)


@dataclass
class TwoRound:
    """A survey in two rounds: asks, asks again by what the answers show, and publishes a table.

    Formal guarantee: epsilon-local DP for each person who takes part with a ``Client``, which
    keeps it without trusting this class.
    """

    schema: Schema
    epsilon: check.Number
    variant: str = "grouped"
    _agreed: Agreement = field(init=False, repr=False)
    _first: RoundTally | None = field(init=False, repr=False, default=None)
    _second: SecondRound | None = field(init=False, repr=False, default=None)

    def __post_init__(self) -> None:
        exact = check.exact(epsilon=self.epsilon)
        check.one_of(TWO_ROUNDS, variant=self.variant)
        self._agreed = Agreement(schema=self.schema, epsilon=exact, variant=self.variant)
        self.epsilon = exact

    @property
    def manifest(self) -> dict[str, Any]:
        """What every participant is shown before anything is asked, and pins."""
        return self._agreed.manifest()

    def first_round(self) -> dict[str, Any]:
        """The message to everybody: about one column each, or about every column."""
        return first_question(self._agreed).to_dict()

    def second_round(self, answers: Collected | Iterable[Collected]) -> dict[str, Any]:
        """Count the answers of the first round; the message to everybody for the second."""
        if self._second is not None:
            raise InputError(
                "the second round was asked already, and devices refuse another question for it. "
                "Start a new survey."
            )
        first = count(first_question(self._agreed), self._agreed, answers)
        self._second = second_round(self._agreed, first)
        self._first = first
        return self._second.question.to_dict()

    def publish(self, answers: Collected | Iterable[Collected], *, rng: Rng) -> TableRelease:
        """The table of a model fitted to the answers of both rounds, a row for each person."""
        check_rng(rng)
        if self._second is None or self._first is None:
            raise InputError("the second round was not asked yet: call second_round first.")
        second = count(self._second.question, self._agreed, answers)
        return release(self._agreed, [self._first, second], self._second, rng=rng)
