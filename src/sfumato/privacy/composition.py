"""Adding up costs, and deciding whether one more fits under a cap.

A cost is pure (epsilon) or zero-concentrated (rho); both add up exactly, also when each is chosen
after seeing the earlier results. A plan of draws fixed in advance may be charged too, and is worth
more while it is alone. ``Totals`` keeps the sums, ``within`` is the one place that admits a step,
and its docstring is the proof.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from sfumato import check
from sfumato.errors import InputError
from sfumato.privacy import plans
from sfumato.privacy.conversions import epsilon_from_zcdp, zcdp_budget, zcdp_from_pure
from sfumato.privacy.guarantees import (
    MAX_EPSILON,
    ZCDP,
    ApproxDP,
    Cost,
    Guarantee,
    PureDP,
    short,
)
from sfumato.privacy.plans import GaussianPlan

Charge = Cost | GaussianPlan
"""What a ledger may be charged with at once."""

Cap = PureDP | ZCDP | ApproxDP
"""The largest total a dataset may reach."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Totals:
    """Exact sums of all costs so far."""

    pure_epsilon: Fraction = Fraction(0)
    """Sum over the pure costs."""
    rho: Fraction = Fraction(0)
    """Sum over all costs as zCDP: rho of the zCDP ones, epsilon^2/2 of the pure ones."""
    has_zcdp: bool = False
    """Whether any cost was zCDP; then no pure guarantee holds for the whole."""
    plan: GaussianPlan | None = None
    """The plan that was the only charge so far, if that is all there was."""

    def plus(self, cost: Charge) -> "Totals":
        """The sums with one more cost; a plan adds its rho.

        >>> str(Totals().plus(PureDP("0.1")).plus(PureDP("0.2")))
        'epsilon=0.3'
        """
        if isinstance(cost, PureDP):
            return Totals(
                pure_epsilon=self.pure_epsilon + cost.epsilon,
                rho=self.rho + zcdp_from_pure(cost.epsilon),
                has_zcdp=self.has_zcdp,
            )
        if not isinstance(cost, ZCDP | GaussianPlan):
            raise InputError(f"a cost must be PureDP or ZCDP, or a GaussianPlan, got {cost!r}")
        return Totals(
            pure_epsilon=self.pure_epsilon,
            rho=self.rho + cost.rho,
            has_zcdp=True,
            plan=cost if isinstance(cost, GaussianPlan) and not self.rho else None,
        )

    def epsilon(self, delta: Fraction | None = None) -> Fraction | None:
        """The composed epsilon at ``delta``, rounded up; without delta the pure sum.

        None where zCDP costs leave no pure epsilon to state.
        """
        if delta is None:
            return None if self.has_zcdp else self.pure_epsilon
        if not self.rho:
            return Fraction(0)
        if self.plan is not None:
            return self.plan.epsilon(delta)
        converted = epsilon_from_zcdp(self.rho, delta)
        return converted if self.has_zcdp else min(converted, self.pure_epsilon)

    def __str__(self) -> str:
        if not self.rho:
            return "nothing"
        return f"rho={short(self.rho)}" if self.has_zcdp else f"epsilon={short(self.pure_epsilon)}"


def within(totals: Totals, cap: Cap) -> bool:
    """Whether these totals may stand under the cap.

    ========  ==========================================================================
    cap       admits
    ========  ==========================================================================
    PureDP    pure costs only, their sum at most epsilon
    ZCDP      the sum of rho at most the cap's rho
    ApproxDP  EITHER pure costs only, their sum at most epsilon, OR the sum of rho at most
              ``zcdp_budget(cap)``, the rho whose conversion is (epsilon, delta),
              OR one plan and nothing else, its composed epsilon at delta at most epsilon
    ========  ==========================================================================

    Formal guarantees: a process that asks ``within`` before each step, and stops at the first
    refusal, satisfies the cap, even if every cost is chosen in view of all earlier results.
    Each single condition is a privacy filter: for pure DP, Rogers, Roth, Ullman, Vadhan 2016,
    arXiv 1605.08294; for zCDP (every Renyi order at once), Feldman, Zrnic 2021,
    arXiv 2008.11193; both in one framework in Whitehouse, Ramdas, Rogers, Wu 2023,
    arXiv 2203.05481. A refused step reads nothing, and the process may go on with smaller ones.

    The two conditions of ApproxDP together: costs are part of the transcript y, and both sums
    only grow, so a condition that holds at the end of y held at each of its steps. Let A be the
    transcripts that end with the first condition true and B the others, which end with the
    second true. On A the process has the probabilities of the one stopped by the first filter
    (epsilon-DP), on B of the one stopped by the second ((epsilon, delta)-DP). Neighbors P, Q::

        sum_y max(0, P(y) - e^epsilon Q(y))
          <= sum_A max(0, P1(y) - e^epsilon Q1(y)) + sum_B max(0, P2(y) - e^epsilon Q2(y))
          <= 0 + delta

    The third one adds no delta of its own, because what was charged first decides between it and
    the other two, and that is chosen before anything was looked at. If the first charge is a
    plan whose rho is over ``zcdp_budget(cap)``, each further charge leaves it over, is not pure,
    and leaves the plan no longer alone: all are refused, and the whole process is the plan
    ((epsilon, delta)-DP, ``plans``). If it is anything else, the third alternative can hold
    after that charge alone, where the second holds too: a plan within the limit is a step of
    its rho like any other (zCDP adds up also over draws that are assigned on the way). A choice of
    the first charge by a public coin is a mixture of such processes.

    A cap that is changed: what counts is that the process would have been admitted by the last
    one. Raised so far that a plan's rho is within its limit, more steps are admitted by
    the second alternative, which then held all along; lowered, everything is refused.
    """
    pure_fits = isinstance(cap, PureDP | ApproxDP) and (
        not totals.has_zcdp and totals.pure_epsilon <= cap.epsilon
    )
    if pure_fits or isinstance(cap, PureDP):
        return pure_fits
    if totals.rho <= _rho_limit(cap):
        return True
    if totals.plan is None or isinstance(cap, ZCDP):
        return False
    return totals.plan.epsilon(cap.delta) <= cap.epsilon


def composed(totals: Totals, delta: Fraction | None = None) -> Guarantee | None:
    """What the totals promise together, or None if nothing was spent.

    Without delta: PureDP for pure costs only, otherwise ZCDP. With delta: PureDP where that has
    the smaller epsilon, otherwise ApproxDP. Valid for costs fixed in advance; where costs were
    chosen in view of earlier results the promise is the cap that admitted them (see ``within``).

    >>> str(composed(Totals().plus(ZCDP("0.5")), Fraction(1, 10**6)))
    'epsilon=5.22154, delta=1e-06'
    """
    epsilon = totals.epsilon(delta)
    if epsilon == 0:
        return None
    if epsilon is None:
        return ZCDP(totals.rho)
    if delta is None or (not totals.has_zcdp and epsilon == totals.pure_epsilon):
        return PureDP(epsilon)
    return ApproxDP(epsilon, delta)


def scaled(cost: Cost, factor: int) -> Cost:
    """What a cost amounts to for ``factor`` changes at once: factor * epsilon, factor^2 * rho.

    Group privacy: Dwork, Roth 2014, theorem 2.2; Bun, Steinke 2016, arXiv 1605.02065,
    proposition 1.9. Replacing a row is removing one and adding one, so an add-remove cost
    counts under replace with factor 2. A plan says how far each of its numbers moves for one
    change only: for two it counts as its rho (``_rules.count_as``).

    >>> str(scaled(PureDP(1), 2)), str(scaled(ZCDP(1), 2))
    ('epsilon=2', 'rho=4')
    """
    check.whole(at_least=1, factor=factor)
    if isinstance(cost, PureDP):
        return PureDP(cost.epsilon * factor)
    return ZCDP(cost.rho * factor * factor)


def left(totals: Totals, cap: Cap, kind: type[PureDP] | type[ZCDP]) -> Cost | None:
    """The largest further cost of a kind that the cap admits, rounded down; None if none.

    >>> str(left(Totals().plus(PureDP("0.9")), PureDP(1), PureDP))
    'epsilon=0.1'
    """
    rho = Fraction(0) if isinstance(cap, PureDP) else _rho_limit(cap) - totals.rho
    if kind is ZCDP:
        return ZCDP(min(rho, Fraction(MAX_EPSILON))) if rho > 0 else None
    epsilon = _square_root(2 * rho)
    if isinstance(cap, PureDP | ApproxDP) and not totals.has_zcdp:
        epsilon = max(epsilon, cap.epsilon - totals.pure_epsilon)
    return PureDP(min(epsilon, Fraction(MAX_EPSILON))) if epsilon > 0 else None


def to_json(totals: Totals) -> dict[str, Any]:
    """The sums with fractions as text, as they stand in the ledger; a plan only if there is one."""
    sums = {
        "pure_epsilon": str(totals.pure_epsilon),
        "rho": str(totals.rho),
        "has_zcdp": totals.has_zcdp,
    }
    return sums if totals.plan is None else {**sums, "plan": plans.to_json(totals.plan)}


def from_json(value: Mapping[str, Any]) -> Totals:
    """The value that ``to_json`` wrote."""
    return Totals(
        pure_epsilon=Fraction(value["pure_epsilon"]),
        rho=Fraction(value["rho"]),
        has_zcdp=value["has_zcdp"],
        plan=plans.from_json(value["plan"]) if "plan" in value else None,
    )


def _rho_limit(cap: ZCDP | ApproxDP) -> Fraction:
    return cap.rho if isinstance(cap, ZCDP) else zcdp_budget(cap).rho


def _square_root(number: Fraction) -> Fraction:
    """The square root rounded down to 18 decimals; 0 for what is not positive."""
    if number <= 0:
        return Fraction(0)
    return Fraction(math.isqrt(number.numerator * 10**36 // number.denominator), 10**18)
