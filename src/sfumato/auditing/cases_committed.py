"""A run that commits to all of its noise in advance, as a case.

The adversary gives every coin to the count that changes: some in a first look, the rest in a
second. One call of the gate counts many values of a column, of which each is an experiment; the
sum of its noisy copies tells all that they tell.
"""

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from math import exp
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sfumato.auditing.case import Case, Planted
from sfumato.auditing.checks import Check
from sfumato.auditing.outputs import Outputs
from sfumato.curator import Curator
from sfumato.curator.committing import Coins, Commitment
from sfumato.engine import ArrayTable
from sfumato.errors import InternalError
from sfumato.mechanisms import DiscreteGaussian
from sfumato.privacy.guarantees import ZCDP, ApproxDP
from sfumato.privacy.plans import GaussianPlan
from sfumato.privacy.protection import OneRow
from sfumato.randomness import Rng
from sfumato.schema import Integer, Schema

BUDGET: Final = ApproxDP(5, "1e-3")
COINS: Final = 3
PROTECT: Final = OneRow()

_VALUES: Final = 4_096
_FIRST: Final = 1
_RUNS: Final = 300_000
_REACH: Final = 64
_SCHEMA: Final = Schema(columns=(Integer(name="a", low=0, high=_VALUES),), dataset="audit")


def coins(larger: Fraction) -> Case:
    """All coins of a run on one count, a row more or less, in rho; and exactly in delta."""
    plan = committed_plan()
    honest = _Spender(number=COINS, spread=plan.parts[0].spread)
    bugs = {
        f"epsilon x {float(larger):g}": replace(honest, spread=_rounded(honest.spread / larger)),
        "a fifth less noise for each coin": replace(
            honest, spread=_rounded(honest.spread * Fraction(4, 5))
        ),
        "one coin too many": replace(honest, number=COINS + 1),
    }
    case = Case(
        name="GateCoins",
        guarantee=plan.cost,
        inputs=(0, 1),
        draw=_through_the_gate,
        ratio=honest.ratio,
        checks=(honest.within_delta,),
        runs=_RUNS,
        note=f"{COINS} coins on a count, for {BUDGET}, a row more or less",
    )
    planted = [
        Planted(bug=bug, case=replace(case, draw=broken.draw, ratio=broken.ratio, checks=()))
        for bug, broken in bugs.items()
    ]
    exactly = replace(case, checks=(bugs["one coin too many"].within_delta,))
    planted.append(Planted(bug="one coin too many, exactly", case=exactly, by="check"))
    return replace(case, planted=tuple(planted))


@cache
def committed_plan() -> GaussianPlan:
    """What the gate commits to."""
    plan = Commitment(coins=COINS).plan(BUDGET, PROTECT)
    if plan is None:
        raise InternalError(f"{COINS} coins can't be committed to for {BUDGET}")
    return plan


def _through_the_gate(held: int, n: int, *, rng: Rng) -> Outputs:
    """Sums of all copies, from one curator after another; each can spend its coins once."""
    found = [_all_coins(held, rng) for _ in range(-(-n // _VALUES))]
    return np.concatenate(found)[:n]


def _all_coins(held: int, rng: Rng) -> Outputs:
    table = ArrayTable(_SCHEMA, {"a": np.arange(_VALUES + 1) if held else [0]})
    gate = Curator(table, protect=PROTECT, budget=BUDGET, rng=rng)
    if not gate.commit(coins=COINS) or gate.coin is None:
        raise InternalError("the gate did not commit. Nothing was drawn.")
    total = np.zeros(_VALUES)
    for number in (_FIRST, COINS - _FIRST):
        (seen,) = gate.measure([("a",)], costs=[ZCDP(number * gate.coin.rho)])
        total += number * seen.values[1:]  # everybody has a row with 0: a table is not empty
    return np.rint(total).astype(np.int16)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Spender:
    """So many coins of some noise on one count."""

    number: int
    spread: Fraction

    @property
    def noise(self) -> DiscreteGaussian:
        """Of one coin."""
        return DiscreteGaussian(spread=self.spread)

    def draw(self, held: int, n: int, *, rng: Rng) -> Outputs:
        """Sums of all copies; beside the gate, which would refuse a coin too many."""
        spent = Coins(noise=self.noise, number=self.number)
        seen = spent.noisy(("a",), np.full(n, held), rng=rng)
        return np.rint(seen.values * self.number).astype(np.int16)

    def ratio(self) -> float:
        """e^rho: shifted by one, the divergence of order 1 of each coin is 1 / spread^2 too."""
        return exp(self.number / self.spread**2)

    def within_delta(self, runs: int, rng: Rng) -> Check:
        """The exact hockey-stick divergence of the sums at epsilon; nothing is drawn."""
        found = max(self._divergence(1), self._divergence(-1))
        return Check(
            name="all coins on one count stay within delta, exactly",
            passed=found <= BUDGET.delta,
            detail=f"{found:.3g} of {float(BUDGET.delta):g}",
        )

    def _divergence(self, moved: int) -> float:
        """The sum of max(0, P - e^epsilon Q) over sums of shifted and unshifted copies."""
        shifted, still = self._sums(moved), self._sums(0)
        return float(np.maximum(0.0, shifted - exp(BUDGET.epsilon) * still).sum())

    def _sums(self, moved: int) -> NDArray[np.float64]:
        """Probabilities of the sum of all copies, each noise around ``moved``."""
        one, found = self.noise.pmf(np.arange(-_REACH, _REACH + 1) - moved), np.ones(1)
        for _ in range(self.number):
            found = np.convolve(found, one)
        return found


def _rounded(spread: Fraction) -> Fraction:
    """A spread that exact draws can have."""
    return Fraction(round(spread * 2**12), 2**12)
