"""All noise of a run fixed before its first look: so many coins, and vectors of scores.

A coin is one discrete Gaussian draw on each cell of a histogram, all coins alike. Measuring with k
of them publishes k noisy copies, told as their mean. Which histogram gets how many may depend on
earlier answers; the list of draws does not, so their composed loss is what counts
(``privacy.plans``), which buys more than the sum of rho.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sfumato import check
from sfumato.curator.scores import Asked, L1Error, Score
from sfumato.errors import BudgetError, InputError
from sfumato.mechanisms import DiscreteGaussian
from sfumato.privacy import sensitivity
from sfumato.privacy.composition import Cap
from sfumato.privacy.guarantees import ZCDP, ApproxDP, Cost
from sfumato.privacy.plans import GaussianPlan, Share, largest_plan
from sfumato.privacy.protection import OneRow, Protection
from sfumato.randomness import Rng
from sfumato.schema.measurement import Measurement
from sfumato.schema.workload import Target

MOST_COINS: Final = 2**16
MOST_SCORES: Final = 2**16
MOST_VECTORS: Final = 16
_DRAWS_AT_ONCE: Final = 2**20


@dataclass(frozen=True, kw_only=True, slots=True)
class Commitment:
    """What a run binds itself to."""

    coins: int
    scores: int = 0
    """How many scores there will be, all in one vector; none if 0."""
    score_share: Fraction = Fraction(0)
    """Their share of the rho, over all vectors."""
    vectors: int = 1
    """How often such a vector of scores will be asked for."""

    def __post_init__(self) -> None:
        coins = check.whole(at_least=1, at_most=MOST_COINS, coins=self.coins)
        vectors = check.whole(at_least=1, at_most=MOST_VECTORS, vectors=self.vectors)
        scores = check.whole(at_least=0, at_most=MOST_SCORES // vectors, scores=self.scores)
        share = check.exact(score_share=self.score_share)
        if not 0 <= share < 1 or (share > 0) != (self.scores > 0):
            raise InputError(
                f"score_share must be above 0 and below 1 with scores and 0 without, got {share} "
                f"for {self.scores} scores. Nothing was spent."
            )
        kept = {"coins": coins, "vectors": vectors, "scores": scores, "score_share": share}
        for name, value in kept.items():  # plain ints: narrow ones of numpy wrap around
            object.__setattr__(self, name, value)

    def plan(self, budget: Cap, protect: Protection) -> GaussianPlan | None:
        """The least noise for a budget; None where committing would not buy any more.

        A row moves one cell of a histogram by one, a replaced row two; each score moves by as
        much as the error of a table of counts (``privacy.sensitivity``).
        """
        if not isinstance(budget, ApproxDP) or not isinstance(protect, OneRow):
            return None
        cells = sensitivity.histogram_l2_squared(protect)
        shares = [Share(coordinates=self.coins * cells, share=1 - self.score_share)]
        if self.scores:
            moved = sensitivity.l1_error(protect)
            told = self.scores * self.vectors
            shares += [Share(coordinates=told, shift=moved, share=self.score_share)]
        return largest_plan(budget, shares)

    def label(self, plan: GaussianPlan) -> str:
        """What the ledger says of it."""
        coin = DiscreteGaussian(spread=plan.parts[0].spread).sigma_counts
        text = f"all steps of this run: {self.coins} coins of sigma {coin:.4g}"
        if self.scores:
            score = DiscreteGaussian(spread=plan.parts[1].spread).sigma_counts
            times = f" {self.vectors} times" if self.vectors > 1 else ""
            text += f", {self.scores} scores{times} of sigma {score:.4g}"
        return text


@dataclass(frozen=True, kw_only=True, slots=True)
class Coins:
    """So many draws of the same noise on everything that is measured with them."""

    noise: DiscreteGaussian
    number: int

    @property
    def sigma_counts(self) -> float:
        """The standard deviation of their mean, in counts."""
        return self.noise.sigma_counts / math.sqrt(self.number)

    def noisy(self, target: Target, exact: NDArray[np.int64], *, rng: Rng) -> Measurement:
        """The mean of as many noisy copies of the counts.

        The copies are added up as whole numbers and divided at the end: the last digits of a
        float would otherwise depend on more than the sum that is paid for.
        """
        total = self.number * exact.reshape(-1)
        at_once = max(1, _DRAWS_AT_ONCE // max(1, exact.size))
        for start in range(0, self.number, at_once):
            copies = min(at_once, self.number - start)
            drawn = self.noise.sample(copies * exact.size, rng=rng)
            total = total + drawn.reshape(copies, exact.size).sum(axis=0)
        values = np.asarray(total.reshape(exact.shape) / self.number)
        return Measurement(target=target, values=values, sigma_counts=self.sigma_counts)


class Purse:
    """What is left of a commitment that was paid for."""

    def __init__(self, commitment: Commitment, plan: GaussianPlan) -> None:
        self._noise = DiscreteGaussian(spread=plan.parts[0].spread)
        self._coins = commitment.coins
        self._scores = commitment.scores
        self._score_part = plan.parts[1] if commitment.scores else None
        self._vectors = self._of_vectors = commitment.vectors if commitment.scores else 0
        self.coin = ZCDP(plan.parts[0].rho / commitment.coins)
        """What one coin costs: the least for which anything can be measured."""

    @property
    def rest(self) -> Fraction:
        """The rho of the coins that are left, and of the scores that are still to come."""
        scores = Fraction(0)
        if self._score_part is not None and self._vectors:
            scores = self._score_part.rho * Fraction(self._vectors, self._of_vectors)
        return self._coins * self.coin.rho + scores

    def sigma_of(self, cost: Cost) -> float:
        """The most noise, in counts, of a measurement for ``cost``; infinite below one coin."""
        coins = math.floor(self._worth(cost))
        return Coins(noise=self._noise, number=coins).sigma_counts if coins else math.inf

    def take(self, costs: Sequence[Cost]) -> list[Coins]:
        """Coins for one measurement or several, at most as many as the costs are worth together.

        Each gets the whole coins in its cost; those that the fractions add up to go to the
        largest fractions.

        Raises:
            BudgetError: If one is below a coin, or too few are left. Nothing was taken.
        """
        worth = [self._worth(cost) for cost in costs]
        coins = [math.floor(part) for part in worth]
        if 0 in coins:
            raise BudgetError(
                f"a measurement for {costs[coins.index(0)]} is less than one coin, {self.coin}, of "
                "those that this run committed to. Nothing was looked at. Measure fewer things, or "
                "commit to more coins."
            )
        wanted = math.floor(sum(worth))
        by_fraction = sorted(range(len(worth)), key=lambda place: coins[place] - worth[place])
        for place in by_fraction[: wanted - sum(coins)]:
            coins[place] += 1
        if wanted > self._coins:
            kept = ", besides those for the scores" if self._vectors else ""
            raise BudgetError(
                f"this asks for {wanted} coins but {self._coins} of those that this run committed "
                f"to are left{kept}. Nothing was looked at. Ask for less."
            )
        self._coins -= wanted
        return [Coins(noise=self._noise, number=number) for number in coins]

    def take_scores(self, score: Score, asked: Asked) -> DiscreteGaussian:
        """The noise of the next vector of scores, whatever it was said to cost.

        Raises:
            BudgetError: If it is not the vector that was committed to. Nothing was taken.
        """
        part, given = self._score_part, len(asked.targets)
        if part is None or not self._vectors:
            raise BudgetError(
                "no scores are left of those that this run committed to. Nothing was looked at."
            )
        fits = isinstance(score, L1Error) and score.sensitivity(asked) <= part.shift
        if not fits or given != self._scores:
            raise BudgetError(
                f"this run committed to {self._scores} scores of the kind L1Error, got {given} of "
                f"the kind {type(score).__name__}. Nothing was looked at."
            )
        self._vectors -= 1
        return DiscreteGaussian(spread=part.spread)

    def _worth(self, cost: Cost) -> Fraction:
        """A cost in coins."""
        if not isinstance(cost, ZCDP):
            raise InputError(f"steps of this run cost ZCDP, got {cost!r}. Nothing was looked at.")
        return cost.rho / self.coin.rho


def refuse(verb: str) -> BudgetError:
    """The error of a step that no coin can pay for."""
    return BudgetError(
        f"{verb!r} is not among the steps that this run committed to: it can count, measure, and "
        "score as often as was said. Nothing was looked at. Leave commit out to use it."
    )
