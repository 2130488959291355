"""Adding up costs, and deciding whether one more fits under a cap.

A cost is pure (epsilon), zero-concentrated (rho), or one of these but for a delta. All add up
exactly as rho and delta, also when each is chosen after seeing the earlier results. ``Totals``
keeps the sums, ``within`` is the one place that admits a step, and its docstring is the proof.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal, localcontext
from fractions import Fraction
from typing import Any, Final, overload

from sfumato import check
from sfumato.errors import BudgetError, InputError
from sfumato.privacy.guarantees import (
    MAX_EPSILON,
    ZCDP,
    ApproxDP,
    ApproxZCDP,
    Cost,
    Guarantee,
    Price,
    PureDP,
    epsilon_from_zcdp,
    short,
    zcdp_budget,
    zcdp_from_pure,
)

PRICES: Final = "PureDP, ZCDP, ApproxDP or ApproxZCDP"
"""The kinds of ``Price``, for messages."""

Cap = PureDP | ZCDP | ApproxDP
"""The largest total a dataset may reach."""

BEYOND: Final = f"more than epsilon={MAX_EPSILON}"
"""The text for totals whose promise can't be stated."""

_DIGITS: Final = 100
"""Of the decimals in which ``delta_factor`` is computed."""
_MARGIN: Final = Decimal("1e-20")
"""Far more than roundings to 100 digits add up to, also where e^epsilon is 1 to 60 of them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Totals:
    """Exact sums of all costs so far."""

    pure_epsilon: Fraction = Fraction(0)
    """Sum over the costs that have an epsilon."""
    rho: Fraction = Fraction(0)
    """Sum over all costs as zCDP: rho of those that have one, epsilon^2/2 of the others."""
    has_zcdp: bool = False
    """Whether any cost was in rho; then no pure guarantee holds for the whole."""
    delta: Fraction = Fraction(0)
    """Sum over the approximate costs."""
    first_delta: Fraction = Fraction(0)
    """Of the very first cost, if that was approximate."""

    @property
    def nothing(self) -> bool:
        """Whether nothing was spent at all."""
        return not self.rho

    def plus(self, cost: Price) -> "Totals":
        """The sums with one more cost.

        An (epsilon, delta)-DP step is delta-approximate epsilon^2/2-zCDP: it is post-processing
        of an epsilon-DP answer that an event of probability delta replaces (Kairouz, Oh, Viswanath
        2015, arXiv 1311.0776, theorem 3.4; Bun, Steinke 2016, section 8).

        >>> str(Totals().plus(PureDP("0.1")).plus(PureDP("0.2")))
        'epsilon=0.3'
        """
        if isinstance(cost, ZCDP | ApproxZCDP):
            epsilon, rho = Fraction(0), cost.rho
        elif isinstance(cost, PureDP | ApproxDP):
            epsilon, rho = cost.epsilon, zcdp_from_pure(cost.epsilon)
        else:
            raise InputError(f"a cost must be {PRICES}, got {cost!r}")
        delta = cost.delta if isinstance(cost, ApproxDP | ApproxZCDP) else Fraction(0)
        return Totals(
            pure_epsilon=self.pure_epsilon + epsilon,
            rho=self.rho + rho,
            has_zcdp=self.has_zcdp or isinstance(cost, ZCDP | ApproxZCDP),
            delta=self.delta + delta,
            first_delta=delta if self.nothing else self.first_delta,
        )

    def epsilon(self, delta: Fraction | None = None) -> Fraction | None:
        """The composed epsilon at ``delta``, rounded up; without delta the pure sum.

        None where there is none to state: costs in rho, or approximate ones, without a delta that
        is larger than theirs. delta-approximate rho-zCDP is (epsilon, delta + (1 - delta)
        delta')-DP for every (epsilon, delta') that rho converts to (Bun, Steinke 2016, section 8):
        at most delta + delta'.
        """
        if delta is None:
            return None if self.has_zcdp or self.delta else self.pure_epsilon
        if not self.rho:
            return Fraction(0)
        pure = None if self.has_zcdp or delta < self.delta else self.pure_epsilon
        if delta <= self.delta:
            return pure
        converted = epsilon_from_zcdp(self.rho, delta - self.delta)
        return converted if pure is None else min(converted, pure)

    def __str__(self) -> str:
        if self.nothing:
            return "nothing"
        sums = f"rho={short(self.rho)}" if self.has_zcdp else f"epsilon={short(self.pure_epsilon)}"
        return f"{sums}, delta={short(self.delta)}" if self.delta else sums


def within(totals: Totals, cap: Cap) -> bool:
    """Whether these totals may stand under the cap.

    ========  ==========================================================================
    cap       admits
    ========  ==========================================================================
    PureDP    pure costs only, their sum at most epsilon
    ZCDP      costs without a delta, the sum of rho at most the cap's rho
    ApproxDP  the sum of delta at most ``set_aside``, AND EITHER costs in epsilon only, their
              sum at most epsilon, OR the sum of rho at most ``zcdp_budget`` of epsilon and
              the delta that is left
    ========  ==========================================================================

    ``set_aside`` is a part of the cap's delta for approximate costs: none if the first cost is
    not approximate (then none is admitted later), else half, or the first cost's if that is more.

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

    A cap that is changed, also in view of results: fix any cap C, and let S be the transcripts
    of which every total was within C. ``within`` only grows with a cap, so S holds all of which
    no cap was above C. Beside the real process think of the one that is stopped by C alone: both
    take the same steps on S, as sums are never reset, so they give each transcript of S the
    same probability; and the stopped one keeps C. Hence, for neighbors P, Q and every part of S,
    ``P <= e^epsilon Q + delta`` with C's numbers. A transcript shows its caps: what it promises is
    the largest that was ever set, in each number (``joined``), for earlier releases too. This
    is about each C apart: delta is spent once for every largest cap that results may lead to.

    Approximate costs. What is set aside, D, is known when the first cost is: before anything was
    looked at. For neighbors an approximate step has the probabilities of one that, with
    probability delta_i, shows something else, and keeps rho_i otherwise (definition 8.1). On every
    transcript the delta_i add up to at most D, so one of them shows something else with
    probability at most D. Up to then the process is as above with the numbers (epsilon,
    cap's delta - D), and in sum it is (epsilon, delta)-DP. That D is fixed matters: with an
    approximate cost in view of results, in place of some rho, the two could add up to more.
    Approximate zCDP has a filter of such a pair (rho, D): Whitehouse et al. 2023, theorem 1.
    """
    if isinstance(cap, ZCDP):
        return not totals.delta and totals.rho <= cap.rho
    aside = set_aside(totals, cap)
    if totals.delta > aside:
        return False
    if not totals.has_zcdp and totals.pure_epsilon <= cap.epsilon:
        return True
    return not isinstance(cap, PureDP) and totals.rho <= _rho_limit(totals, cap)


def set_aside(totals: Totals, cap: PureDP | ApproxDP) -> Fraction:
    """The part of a cap's delta for approximate costs, fixed by the first cost."""
    if isinstance(cap, PureDP) or not totals.first_delta or totals.first_delta > cap.delta:
        return Fraction(0)
    return max(totals.first_delta, cap.delta / 2)


def joined(caps: Sequence[Cap]) -> Cap:
    """The smallest cap that promises what each of these does: the larger of each number.

    What the releases of a dataset promise together if these were in force one after the other. A
    pure cap beside rho counts as epsilon^2/2, a cap in rho beside a delta as what it converts to.

    >>> str(joined([ApproxDP(2, "1e-9"), ApproxDP(1, "1e-6")]))
    'epsilon=2, delta=1e-06'
    """
    pure = [cap.epsilon for cap in caps if isinstance(cap, PureDP)]
    rhos = [cap.rho for cap in caps if isinstance(cap, ZCDP)]
    approximate = [cap for cap in caps if isinstance(cap, ApproxDP)]
    if approximate:
        delta = max(cap.delta for cap in approximate)
        converted = [_covering(rho, delta) for rho in rhos]
        return ApproxDP(max([*pure, *converted, *(cap.epsilon for cap in approximate)]), delta)
    if rhos:
        return ZCDP(max([*rhos, *map(zcdp_from_pure, pure)]))
    return PureDP(max(pure))


def _covering(rho: Fraction, delta: Fraction) -> Fraction:
    """An epsilon whose budget at delta is at least rho: both ways are rounded to the private side.

    A part in 10^10 more is far above those roundings.
    """
    return epsilon_from_zcdp(rho * (1 + Fraction(1, 10**10)), delta)


def composed(totals: Totals, delta: Fraction | None = None) -> Guarantee | None:
    """What the totals promise together; None if nothing was spent, or more than can be stated.

    Without a cap a total may grow ``BEYOND`` any guarantee: it is never stated as less than it is.
    Without delta: PureDP for pure costs only, otherwise ZCDP. With delta: PureDP where that has
    the smaller epsilon, otherwise ApproxDP. After approximate costs always ApproxDP, at ``delta``;
    if that is absent or too small, at the sum of theirs, or at twice that where costs were in rho.
    Valid for costs fixed in advance; where costs were chosen in view of earlier results the
    promise is the cap that admitted them (see ``within``).

    >>> str(composed(Totals().plus(ZCDP("0.5")), Fraction(1, 10**6)))
    'epsilon=5.22154, delta=1e-06'
    """
    if totals.delta and (delta is None or totals.epsilon(delta) is None):
        delta = totals.delta * (2 if totals.has_zcdp else 1)
    epsilon = totals.epsilon(delta)
    if epsilon == 0 or (totals.rho if epsilon is None else epsilon) > MAX_EPSILON:
        return None
    if epsilon is None:
        return ZCDP(totals.rho)
    pure = not totals.has_zcdp and not totals.delta and epsilon == totals.pure_epsilon
    if delta is None or pure:
        return PureDP(epsilon)
    return ApproxDP(epsilon, delta)


def unstated(totals: Totals) -> str:
    """What is said where ``composed`` is None.

    >>> unstated(Totals()), unstated(Totals().plus(PureDP(9_000)).plus(PureDP(3_000)))
    ('nothing', 'more than epsilon=10000 (epsilon=12000)')
    """
    return "nothing" if totals.nothing else f"{BEYOND} ({totals})"


@overload
def scaled(cost: Cost, factor: int) -> Cost: ...
@overload
def scaled(cost: ApproxDP, factor: int) -> ApproxDP: ...
@overload
def scaled(cost: Price, factor: int) -> Price: ...
def scaled(cost: Price, factor: int) -> Price:
    """What a cost amounts to for ``factor`` changes at once: factor * epsilon, factor^2 * rho.

    Group privacy: Dwork, Roth 2014, theorem 2.2; Bun, Steinke 2016, arXiv 1605.02065,
    proposition 1.9. Of (epsilon, delta) the deltas of the steps between add up to
    delta (e^(factor epsilon) - 1) / (e^epsilon - 1), here rounded up: Vadhan 2017, "The complexity
    of differential privacy", lemma 2.2. Replacing a row is removing one and adding one, so an
    add-remove cost counts under replace with factor 2. Of approximate zCDP no such rule is known.

    >>> str(scaled(PureDP(1), 2)), str(scaled(ZCDP(1), 2))
    ('epsilon=2', 'rho=4')
    >>> str(scaled(ApproxDP("0.1", "1e-9"), 2))
    'epsilon=0.2, delta=2.10518e-09'
    """
    factor = check.whole(at_least=1, factor=factor)
    if isinstance(cost, PureDP):
        return PureDP(cost.epsilon * factor)
    if isinstance(cost, ApproxZCDP):
        raise BudgetError(
            f"a cost of {cost} can't be stated for several rows at once. Protect the same as the "
            "ledger does (--neighbors)"
        )
    if isinstance(cost, ApproxDP):
        return ApproxDP(cost.epsilon * factor, cost.delta * delta_factor(cost.epsilon, factor))
    return ZCDP(cost.rho * factor * factor)


def delta_factor(epsilon: Fraction, factor: int) -> Fraction:
    """How many times delta ``factor`` changes at once amount to, rounded up (see ``scaled``).

    (e^(factor epsilon) - 1) / (e^epsilon - 1) = the sum of e^(i epsilon) over i < factor.

    >>> float(delta_factor(Fraction(1, 10), 2))
    2.10517091807565
    """
    if factor == 1:
        return Fraction(1)
    with localcontext(Context(prec=_DIGITS)):
        power = Decimal(epsilon.numerator) / Decimal(epsilon.denominator)
        near = ((power * factor).exp() - 1) / (power.exp() - 1)
    return Fraction(Context(prec=15, rounding=ROUND_CEILING).multiply(near, 1 + _MARGIN))


def left(totals: Totals, cap: Cap, kind: type[PureDP] | type[ZCDP]) -> Cost | None:
    """The largest further cost of a kind that the cap admits, rounded down; None if none.

    >>> str(left(Totals().plus(PureDP("0.9")), PureDP(1), PureDP))
    'epsilon=0.1'
    """
    aside = Fraction(0) if isinstance(cap, ZCDP) else set_aside(totals, cap)
    if totals.delta > aside:
        return None
    rho = Fraction(0) if isinstance(cap, PureDP) else _rho_limit(totals, cap) - totals.rho
    if kind is ZCDP:
        return ZCDP(min(rho, Fraction(MAX_EPSILON))) if rho > 0 else None
    epsilon = _square_root(2 * rho)
    if isinstance(cap, PureDP | ApproxDP) and not totals.has_zcdp:
        epsilon = max(epsilon, cap.epsilon - totals.pure_epsilon)
    return PureDP(min(epsilon, Fraction(MAX_EPSILON))) if epsilon > 0 else None


def to_json(totals: Totals) -> dict[str, Any]:
    """The sums with fractions as text, as they stand in the ledger; deltas only if there are."""
    sums: dict[str, Any] = {
        "pure_epsilon": str(totals.pure_epsilon),
        "rho": str(totals.rho),
        "has_zcdp": totals.has_zcdp,
    }
    deltas = {"delta": str(totals.delta), "first_delta": str(totals.first_delta)}
    return sums | (deltas if totals.delta else {})


def from_json(value: Mapping[str, Any]) -> Totals:
    """The value that ``to_json`` wrote."""
    if "first" in value:
        raise InputError(
            "an earlier version of sfumato charged this data set for a schema in a way that does "
            "not add up with costs of this one. Use that version, or another dataset name"
        )
    return Totals(
        pure_epsilon=Fraction(value["pure_epsilon"]),
        rho=Fraction(value["rho"]),
        has_zcdp=value["has_zcdp"],
        delta=Fraction(value.get("delta", 0)),
        first_delta=Fraction(value.get("first_delta", 0)),
    )


def _rho_limit(totals: Totals, cap: ZCDP | ApproxDP) -> Fraction:
    """The largest sum of rho; 0 where no delta is left for its conversion."""
    if isinstance(cap, ZCDP):
        return cap.rho
    rest = cap.delta - set_aside(totals, cap)
    return zcdp_budget(ApproxDP(cap.epsilon, rest)).rho if rest > 0 else Fraction(0)


def _square_root(number: Fraction) -> Fraction:
    """The square root rounded down to 18 decimals; 0 for what is not positive."""
    if number <= 0:
        return Fraction(0)
    return Fraction(math.isqrt(number.numerator * 10**36 // number.denominator), 10**18)
