"""Adding up costs, and deciding whether one more fits under a cap.

A cost is pure (epsilon) or zero-concentrated (rho); both add up exactly, also when each is chosen
after seeing the earlier results. The very first charge may be approximate. ``Totals`` keeps the
sums, ``within`` is the one place that admits a step, and its docstring is the proof.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, Context, Decimal, localcontext
from fractions import Fraction
from typing import Any, Final, overload

from sfumato import check
from sfumato.errors import BudgetError, InputError, InternalError
from sfumato.privacy import guarantees
from sfumato.privacy.guarantees import (
    MAX_EPSILON,
    ZCDP,
    ApproxDP,
    Cost,
    Guarantee,
    PureDP,
    epsilon_from_zcdp,
    short,
    zcdp_budget,
    zcdp_from_pure,
)

Price = Cost | ApproxDP
"""What an entry may cost: an approximate guarantee only if it is a dataset's first."""

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
    """Sum over the pure costs."""
    rho: Fraction = Fraction(0)
    """Sum over all costs as zCDP: rho of the zCDP ones, epsilon^2/2 of the pure ones."""
    has_zcdp: bool = False
    """Whether any cost was zCDP; then no pure guarantee holds for the whole."""
    first: ApproxDP | None = None
    """The approximate cost that everything began with; in none of the sums."""

    @property
    def nothing(self) -> bool:
        """Whether nothing was spent at all."""
        return not self.rho and self.first is None

    def plus(self, cost: Price) -> "Totals":
        """The sums with one more cost.

        >>> str(Totals().plus(PureDP("0.1")).plus(PureDP("0.2")))
        'epsilon=0.3'

        Raises:
            BudgetError: For an approximate cost that is not the first.
        """
        if isinstance(cost, ApproxDP):
            if not self.nothing:
                raise BudgetError(
                    f"an approximate cost ({cost}) can only be the first of a dataset, which has "
                    f"spent {self} already. Use the schema that was published first (schema.json "
                    "of that release), or write one: `sfumato schema draft`"
                )
            return Totals(first=cost)
        if isinstance(cost, PureDP):
            return replace(
                self,
                pure_epsilon=self.pure_epsilon + cost.epsilon,
                rho=self.rho + zcdp_from_pure(cost.epsilon),
            )
        if not isinstance(cost, ZCDP):
            raise InputError(
                f"a cost must be PureDP or ZCDP, or ApproxDP if it is the first, got {cost!r}"
            )
        return replace(self, rho=self.rho + cost.rho, has_zcdp=True)

    def epsilon(self, delta: Fraction | None = None) -> Fraction | None:
        """The composed epsilon at ``delta``, rounded up; without delta the pure sum.

        None where there is none to state: zCDP costs without a delta, or an approximate first
        cost with a delta that leaves none for the others. Its epsilon and delta are added to those
        of the others: Dwork, Roth 2014, theorem 3.16.
        """
        if self.first is not None:
            if delta is None or delta < self.first.delta:
                return None
            rest = replace(self, first=None).epsilon(delta - self.first.delta or None)
            return None if rest is None else self.first.epsilon + rest
        if delta is None:
            return None if self.has_zcdp else self.pure_epsilon
        if not self.rho:
            return Fraction(0)
        converted = epsilon_from_zcdp(self.rho, delta)
        return converted if self.has_zcdp else min(converted, self.pure_epsilon)

    def __str__(self) -> str:
        if self.nothing:
            return "nothing"
        sums = f"rho={short(self.rho)}" if self.has_zcdp else f"epsilon={short(self.pure_epsilon)}"
        if self.first is None:
            return sums
        return f"{self.first} and then {sums}" if self.rho else str(self.first)


def within(totals: Totals, cap: Cap) -> bool:
    """Whether these totals may stand under the cap.

    ========  ==========================================================================
    cap       admits
    ========  ==========================================================================
    PureDP    pure costs only, their sum at most epsilon
    ZCDP      the sum of rho at most the cap's rho
    ApproxDP  EITHER pure costs only, their sum at most epsilon, OR the sum of rho at most
              ``zcdp_budget(cap)``, the rho whose conversion is (epsilon, delta)
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

    A cap that is changed, also in view of results: fix any cap C, and let S be the transcripts
    of which every total was within C. ``within`` only grows with a cap, so S holds all of which
    no cap was above C. Beside the real process think of the one that is stopped by C alone: both
    take the same steps on S, as sums are never reset, so they give each transcript of S the
    same probability; and the stopped one keeps C. Hence, for neighbors P, Q and every part of S,
    ``P <= e^epsilon Q + delta`` with C's numbers. A transcript shows its caps: what it promises is
    the largest that was ever set, in each number (``joined``), for earlier releases too. This
    is about each C apart: delta is spent once for every largest cap that results may lead to.

    A first charge that is approximate, (epsilon0, delta0), comes before all of this: only an
    ApproxDP cap admits it, and all later charges are admitted under what that leaves, the cap
    (epsilon - epsilon0, delta - delta0) (pure epsilon where no delta is left). Whether there is
    such a charge, and its size, is decided before anything was looked at. Given any outcome of
    the first step, what follows is a process as above and satisfies what was left, for it starts
    anew with sums of zero; and an (epsilon0, delta0)-DP step followed by one that is
    (epsilon1, delta1)-DP whatever the first one's outcome is (epsilon0 + epsilon1,
    delta0 + delta1)-DP: Dwork, Roth 2014, "The algorithmic foundations of differential privacy",
    theorem 3.16 and appendix B.1. A later approximate charge is never admitted: no filter
    of ours covers sizes that are chosen in view of results. (``Totals.plus`` refuses it.)
    """
    if totals.first is not None:
        if not isinstance(cap, ApproxDP):
            return False
        others = replace(totals, first=None)
        if others.nothing:
            return totals.first.epsilon <= cap.epsilon and totals.first.delta <= cap.delta
        rest = _after(totals.first, cap)
        return rest is not None and within(others, rest)
    pure_fits = isinstance(cap, PureDP | ApproxDP) and (
        not totals.has_zcdp and totals.pure_epsilon <= cap.epsilon
    )
    if pure_fits or isinstance(cap, PureDP):
        return pure_fits
    return totals.rho <= _rho_limit(cap)


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
    the smaller epsilon, otherwise ApproxDP. After an approximate first cost always ApproxDP, at
    ``delta``; if that is absent or too small, at the delta of the first cost, or at twice that
    where zCDP costs followed. Valid for costs fixed in advance; where costs were
    chosen in view of earlier results the promise is the cap that admitted them (see ``within``).

    >>> str(composed(Totals().plus(ZCDP("0.5")), Fraction(1, 10**6)))
    'epsilon=5.22154, delta=1e-06'
    """
    if totals.first is not None:
        return _composed_after(totals.first, totals, delta)
    epsilon = totals.epsilon(delta)
    if epsilon == 0 or (totals.rho if epsilon is None else epsilon) > MAX_EPSILON:
        return None
    if epsilon is None:
        return ZCDP(totals.rho)
    if delta is None or (not totals.has_zcdp and epsilon == totals.pure_epsilon):
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
    add-remove cost counts under replace with factor 2.

    >>> str(scaled(PureDP(1), 2)), str(scaled(ZCDP(1), 2))
    ('epsilon=2', 'rho=4')
    >>> str(scaled(ApproxDP("0.1", "1e-9"), 2))
    'epsilon=0.2, delta=2.10518e-09'
    """
    factor = check.whole(at_least=1, factor=factor)
    if isinstance(cost, PureDP):
        return PureDP(cost.epsilon * factor)
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
    if totals.first is not None:
        rest = _after(totals.first, cap)
        return None if rest is None else left(replace(totals, first=None), rest, kind)
    rho = Fraction(0) if isinstance(cap, PureDP) else _rho_limit(cap) - totals.rho
    if kind is ZCDP:
        return ZCDP(min(rho, Fraction(MAX_EPSILON))) if rho > 0 else None
    epsilon = _square_root(2 * rho)
    if isinstance(cap, PureDP | ApproxDP) and not totals.has_zcdp:
        epsilon = max(epsilon, cap.epsilon - totals.pure_epsilon)
    return PureDP(min(epsilon, Fraction(MAX_EPSILON))) if epsilon > 0 else None


def to_json(totals: Totals) -> dict[str, Any]:
    """The sums with fractions as text, as they stand in the ledger.

    An approximate first cost only if there is one.
    """
    sums: dict[str, Any] = {
        "pure_epsilon": str(totals.pure_epsilon),
        "rho": str(totals.rho),
        "has_zcdp": totals.has_zcdp,
    }
    return sums | ({} if totals.first is None else {"first": guarantees.to_json(totals.first)})


def from_json(value: Mapping[str, Any]) -> Totals:
    """The value that ``to_json`` wrote."""
    first = guarantees.from_json(value["first"]) if "first" in value else None
    if first is not None and not isinstance(first, ApproxDP):
        raise ValueError(f"not an approximate cost: {first}")
    return Totals(
        pure_epsilon=Fraction(value["pure_epsilon"]),
        rho=Fraction(value["rho"]),
        has_zcdp=value["has_zcdp"],
        first=first,
    )


def _after(first: ApproxDP, cap: Cap) -> PureDP | ApproxDP | None:
    """The cap that is left after an approximate first cost; None if that used it up or more."""
    if not isinstance(cap, ApproxDP) or first.epsilon >= cap.epsilon or first.delta > cap.delta:
        return None
    epsilon, delta = cap.epsilon - first.epsilon, cap.delta - first.delta
    return ApproxDP(epsilon, delta) if delta else PureDP(epsilon)


def _composed_after(first: ApproxDP, totals: Totals, delta: Fraction | None) -> ApproxDP | None:
    least = 2 * first.delta if totals.has_zcdp else first.delta
    stated = delta if delta is not None and totals.epsilon(delta) is not None else least
    epsilon = totals.epsilon(stated)
    if epsilon is None:
        raise InternalError(f"no epsilon can be stated for {totals}")
    return ApproxDP(epsilon, stated) if epsilon <= MAX_EPSILON else None


def _rho_limit(cap: ZCDP | ApproxDP) -> Fraction:
    return cap.rho if isinstance(cap, ZCDP) else zcdp_budget(cap).rho


def _square_root(number: Fraction) -> Fraction:
    """The square root rounded down to 18 decimals; 0 for what is not positive."""
    if number <= 0:
        return Fraction(0)
    return Fraction(math.isqrt(number.numerator * 10**36 // number.denominator), 10**18)
