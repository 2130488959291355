"""What a run may spend: charged step by step, or reserved in one entry."""

from collections.abc import Sequence
from fractions import Fraction

from sfumato.errors import BudgetError, InputError
from sfumato.gate.journal import Journal
from sfumato.gate.requests import amount, noise_of, same_kind
from sfumato.gate.scores import Score, TargetList
from sfumato.noise import Noise, noise_for
from sfumato.privacy.composition import Cap
from sfumato.privacy.guarantees import ApproxDP, Cost, zcdp_budget
from sfumato.privacy.sensitivity import Protection
from sfumato.schema.workload import Range, Target


class RunBudget:
    """The budget of one run, and what its steps took of it. Pays before anything is looked at."""

    def __init__(self, budget: Cap, protect: Protection, journal: Journal) -> None:
        self._budget = budget
        self._protect = protect
        self._journal = journal
        self._working = zcdp_budget(budget) if isinstance(budget, ApproxDP) else budget
        self._paid = Fraction(0)  # what the ledger charged this run
        self._used = Fraction(0)  # what its steps took of that; the rest is reserved

    def precheck(self) -> None:
        """Raise, before a row is read, if the ledger would refuse what is still to be paid."""
        charges = [step.charge for step in self._journal.ahead]
        costs = [charge for charge in charges if isinstance(charge, type(self._working))]
        rest = amount(self._working) - sum((amount(cost) for cost in costs), Fraction(0))
        if rest > 0:
            cost = same_kind(self._working, rest)
            self._journal.ledger.precheck(cost, label="this run", protect=self._protect)

    @property
    def left(self) -> Cost:
        """What is left of the budget, in the kind that its steps are charged in."""
        rest = amount(self._working) - self._used
        if rest <= 0:
            raise BudgetError(f"the budget {self._budget} of this run is spent")
        return same_kind(self._working, rest)

    def noises(self, targets: Sequence[Target], costs: Sequence[Cost]) -> list[Noise]:
        """What is added to each count for its cost. A cost too small for any noise is refused."""
        paired = zip(targets, costs, strict=True)
        return [noise_of(cost, isinstance(t, Range), self._protect) for t, cost in paired]

    def score_noise(self, score: Score, targets: TargetList, cost: Cost) -> Noise:
        """What is added to each score of a vector."""
        self._amount(cost)
        moved, number = score.sensitivity(targets), len(targets.targets)
        return noise_for(cost, moved * number, moved**2 * number)

    def charge(self, *costs: Cost, label: str, reserve: bool = False) -> None:
        """Take costs off what is reserved or off the budget; a refusal raises before any look.

        With ``reserve`` they are paid, in one entry, and left for the steps that follow.
        """
        total = sum(map(self._amount, costs), Fraction(0))
        used = self._used + total
        if used > self._paid:
            cost, rest = same_kind(self._working, total), amount(self._working) - self._paid
            if total > rest:
                left = f"only {same_kind(self._working, rest)}" if rest > 0 else "nothing"
                raise BudgetError(
                    f"{label!r} asks for {cost} but {left} is left of this run's budget "
                    f"{self._budget}. Ask for less, or give a larger budget."
                )
            self._journal.spend(cost, label=label, protect=self._protect)
            self._paid += total
        if not reserve:
            self._used = used

    def _amount(self, cost: Cost) -> Fraction:
        """The amount of a cost of this run's kind; another kind is refused."""
        if type(cost) is not type(self._working):
            kind = type(self._working).__name__
            raise InputError(f"steps of this run cost {kind}, got {cost!r}.")
        return amount(cost)
