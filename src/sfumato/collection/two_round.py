"""A table published without any trusted party: DP2-Pub, the variant with groups of people.

Each person answers once, with all of epsilon: half of them about one column; what they say
decides how the other half is asked about pairs of columns. The server sees answers only, so all
it does is post-processing. After Jiang et al. 2023, arXiv 2208.11693.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from sfumato import check
from sfumato.collection.grouped_rounds import (
    Collected,
    RoundTally,
    SecondRound,
    count,
    first_plan,
    release,
    second_plan,
)
from sfumato.collection.plans import Agreement
from sfumato.errors import InputError
from sfumato.randomness import Rng, check_rng
from sfumato.release import TableRelease
from sfumato.schema.table import Schema


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
    _heard: RoundTally | None = field(init=False, repr=False, default=None)
    _asked: SecondRound | None = field(init=False, repr=False, default=None)

    def __post_init__(self) -> None:
        exact = check.exact(epsilon=self.epsilon)
        self._agreed = Agreement(schema=self.schema, epsilon=exact, variant=self.variant)
        self.epsilon = exact

    @property
    def manifest(self) -> dict[str, Any]:
        """What every participant is told before anything is asked, and pins."""
        return self._agreed.manifest()

    def first_round(self) -> dict[str, Any]:
        """The message to everybody: about one column each."""
        return first_plan(self._agreed).to_dict()

    def second_round(self, answers: Collected | Iterable[Collected]) -> dict[str, Any]:
        """Count the answers of the first round; the message to everybody for the second."""
        if self._asked is not None:
            raise InputError(
                "the second round was asked already, and devices refuse another plan for it. "
                "Nothing was counted. Start a new survey."
            )
        heard = count(first_plan(self._agreed), self._agreed, answers)
        self._asked = second_plan(self._agreed, heard)
        self._heard = heard
        return self._asked.plan.to_dict()

    def publish(self, answers: Collected | Iterable[Collected], *, rng: Rng) -> TableRelease:
        """The table of a model fitted to the answers of both rounds, a row for each of them."""
        check_rng(rng)
        if self._asked is None or self._heard is None:
            raise InputError("the second round was not asked yet: call second_round first.")
        heard = count(self._asked.plan, self._agreed, answers)
        return release(self._agreed, self._asked, self._heard, heard, rng=rng)
