"""A ledger that is charged with a plan: alone it counts by its losses, otherwise by its rho."""

import json
import math
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sfumato.errors import BudgetError, InputError, LedgerCorruptError
from sfumato.privacy import (
    ZCDP,
    ApproxDP,
    Cap,
    Ledger,
    OneRow,
    PureDP,
    Totals,
    composed,
    verify_export,
    within,
    zcdp_budget,
)
from sfumato.privacy._entries import canonical, digest
from sfumato.privacy.composition import Charge, from_json, left, to_json
from sfumato.privacy.plans import GaussianPart, GaussianPlan, Share, largest_plan

CAP = ApproxDP(1, "1e-9")
ROW = OneRow()
REPLACE = OneRow(neighbors="replace")


def full_plan(cap: ApproxDP = CAP, coins: int = 64) -> GaussianPlan:
    found = largest_plan(cap, [Share(coordinates=coins)])
    assert found is not None
    return found


PLAN = full_plan()
SMALL = GaussianPlan(parts=(GaussianPart(spread=Fraction(1000), coordinates=64),))


def total(*charges: Charge) -> Totals:
    totals = Totals()
    for charge in charges:
        totals = totals.plus(charge)
    return totals


def ledger(cap: Cap | None = CAP) -> Ledger:
    return Ledger.in_memory(dataset="study", cap=cap)


def test_a_plan_alone_is_admitted_though_its_rho_is_over_the_limit() -> None:
    assert zcdp_budget(CAP).rho < PLAN.rho
    assert within(total(PLAN), CAP)
    assert not within(total(ZCDP(PLAN.rho)), CAP)


@pytest.mark.parametrize("more", [ZCDP("1e-12"), PureDP("1e-12"), PLAN, SMALL], ids=str)
def test_nothing_fits_beside_a_plan_over_the_limit(more: Charge) -> None:
    assert not within(total(PLAN, more), CAP)
    assert not within(total(more, PLAN), CAP)
    assert total(PLAN, more).plan is None
    assert left(total(PLAN), CAP, ZCDP) is None
    assert left(total(PLAN), CAP, PureDP) is None


def test_a_plan_within_the_limit_is_a_step_like_any_other() -> None:
    rest = ZCDP(zcdp_budget(CAP).rho - SMALL.rho)
    assert within(total(SMALL, rest), CAP)
    assert within(total(rest, SMALL), CAP)
    assert not within(total(SMALL, rest, ZCDP("1e-12")), CAP)


def test_only_an_approximate_cap_knows_about_losses() -> None:
    assert not within(total(PLAN), ZCDP(PLAN.rho * Fraction(999, 1000)))
    assert within(total(PLAN), ZCDP(PLAN.rho))
    assert not within(total(SMALL), PureDP(100))
    assert not within(total(PLAN), ApproxDP(1, "1e-10"))
    assert within(total(PLAN), ApproxDP(1, "1e-8"))


def test_a_plan_promises_its_composed_epsilon_while_it_is_alone() -> None:
    alone = composed(total(PLAN), CAP.delta)
    assert isinstance(alone, ApproxDP)
    assert Fraction(999, 1000) < alone.epsilon <= 1
    assert composed(total(PLAN)) == ZCDP(PLAN.rho)
    beside = composed(total(PLAN, ZCDP("1e-12")), CAP.delta)
    assert isinstance(beside, ApproxDP)
    assert beside.epsilon > 1


def test_a_charged_plan_is_one_entry_that_says_all() -> None:
    book = ledger()
    entry = book.spend(PLAN, label="all steps", protect=ROW, request="r")
    assert (entry.plan, entry.cost, entry.charged) == (PLAN, PLAN.cost, PLAN.cost)
    assert entry.to_json()["plan"] == [
        {"spread": str(PLAN.parts[0].spread), "coordinates": 64, "shift": 1}
    ]
    assert book.spent.plan == PLAN
    assert str(book.composed()).startswith("epsilon=0.9999")
    assert book.left(ZCDP) is None


@pytest.mark.parametrize("cost", [ZCDP("1e-12"), PureDP("1e-12"), SMALL], ids=str)
def test_a_ledger_with_a_plan_over_the_limit_refuses_all_that_follows(cost: Charge) -> None:
    book = ledger()
    book.spend(PLAN, label="all steps", protect=ROW)
    with pytest.raises(BudgetError, match="nothing is left"):
        book.spend(cost, label="more", protect=ROW)
    with pytest.raises(BudgetError):
        book.precheck(cost, label="more", protect=ROW)
    assert book.spent == total(PLAN)


def test_a_plan_over_the_limit_must_be_the_first_charge() -> None:
    book = ledger()
    book.spend(PureDP("1e-12"), label="a little", protect=ROW)
    with pytest.raises(BudgetError):
        book.spend(PLAN, label="all steps", protect=ROW)


def test_a_request_that_was_paid_with_a_plan_is_paid_once() -> None:
    book = ledger()
    first = book.spend(PLAN, label="all steps", protect=ROW, request="r")
    assert book.spend(PLAN, label="all steps", protect=ROW, request="r") == first
    for other in (PLAN.cost, SMALL):  # the rho alone is not the plan
        with pytest.raises(InputError, match="already paid"):
            book.spend(other, label="all steps", protect=ROW, request="r")


def test_an_add_remove_plan_counts_in_a_replace_ledger_by_four_times_its_rho() -> None:
    book = ledger()
    book.spend(ZCDP("1e-9"), label="opens it", protect=REPLACE)
    entry = book.spend(SMALL, label="all steps", protect=ROW)
    assert entry.charged == ZCDP(4 * SMALL.rho)
    fresh = ledger()
    with fresh._writing() as view:
        state, bodies = fresh._plan(view, ZCDP("1e-9"), "opens it", REPLACE, None)
        fresh._append(view, state, bodies[0])
    with pytest.raises(BudgetError, match="counts as"):
        fresh.spend(PLAN, label="all steps", protect=ROW)
    assert fresh.spend(PLAN, label="all steps", protect=REPLACE).after.spent.plan == PLAN


def test_of_a_plan_for_another_relation_only_the_rho_is_left() -> None:
    book = ledger(ApproxDP(10, "1e-9"))
    with book._writing() as view:
        state, bodies = book._plan(view, ZCDP("1e-9"), "opens it", REPLACE, None)
        book._append(view, state, bodies[0])
    entry = book.spend(PLAN, label="all steps", protect=ROW)
    assert entry.after.spent == total(ZCDP(4 * PLAN.rho))
    assert entry.after.spent.plan is None


def test_a_raised_cap_admits_more_only_by_the_sum_of_rho() -> None:
    book = ledger()
    book.spend(PLAN, label="all steps", protect=ROW)
    book.set_cap(ApproxDP("1.01", "1e-9"))  # the plan's rho is over this limit too
    with pytest.raises(BudgetError):
        book.spend(ZCDP("1e-12"), label="more", protect=ROW)
    book.set_cap(ApproxDP(2, "1e-9"))
    rest = book.left(ZCDP)
    assert rest == ZCDP(zcdp_budget(ApproxDP(2, "1e-9")).rho - PLAN.rho)
    assert rest is not None
    book.spend(rest, label="the rest", protect=ROW)
    assert book.left(ZCDP) is None
    promised = book.composed()
    assert isinstance(promised, ApproxDP)
    assert promised.epsilon <= 2


def test_a_lowered_cap_refuses_everything_and_keeps_what_was_paid() -> None:
    book = ledger()
    book.spend(PLAN, label="all steps", protect=ROW)
    book.set_cap(ApproxDP("0.5", "1e-9"))
    assert book.left(ZCDP) is None
    with pytest.raises(BudgetError):
        book.spend(ZCDP("1e-12"), label="more", protect=ROW)
    book.set_cap(CAP)
    assert book.spent == total(PLAN)


def test_a_first_cap_stands_over_a_plan_that_fits_it() -> None:
    book = ledger(None)
    book.spend(PLAN, label="all steps", protect=ROW)
    book._set_first_cap(CAP)
    assert book.cap == CAP


def test_a_ledger_with_plans_is_kept_verified_and_exported(tmp_path: Path) -> None:
    with Ledger.open(tmp_path / "file", dataset="study", cap=CAP) as book:
        book.spend(PLAN, label="all steps", protect=ROW)
    with Ledger.open(tmp_path / "file", dataset="study", create=False) as again:
        assert again.spent == total(PLAN)
        assert again.verify().head == again.head
        verify_export(again.export())


def test_a_plan_with_less_noise_written_under_the_same_cost_is_found() -> None:
    """Edited and hashed anew: the cost no longer is what the plan costs."""
    book = ledger()
    book.spend(PLAN, label="all steps", protect=ROW)
    export = book.export()
    spend = export["entries"][-1]
    spend["body"]["plan"][0]["coordinates"] = 1
    spend["body"]["after"]["spent"]["plan"][0]["coordinates"] = 1
    spend["hash"] = digest(spend["previous"], canonical(spend["body"]))
    with pytest.raises(LedgerCorruptError, match="should not have been admitted"):
        verify_export(export)


def test_sums_without_a_plan_are_written_as_they_always_were() -> None:
    assert to_json(total(ZCDP("0.5"))) == {"pure_epsilon": "0", "rho": "1/2", "has_zcdp": True}
    for totals in (total(), total(PLAN), total(PLAN, SMALL), total(PureDP(1))):
        assert from_json(json.loads(json.dumps(to_json(totals)))) == totals


def test_a_part_of_a_plan_is_no_charge() -> None:
    part: Any = PLAN.parts[0]
    with pytest.raises(InputError, match="GaussianPlan"):
        ledger().spend(part, label="one", protect=ROW)


def divergence(cap: ApproxDP, first: Charge, later: list[ZCDP], plan_draws: int) -> float:
    """The exact hockey-stick divergence of a process that may go on after its first charge.

    The first charge buys draws of one discrete Gaussian (for a plan as many as it has); each later
    one, if ``within`` admits it, a draw of its own, the costs picked by the sign of the last
    answer. Everything is added over a range that leaves out less than 1e-12.
    """
    x = np.arange(-60, 61, dtype=float)

    def draw(spread: float) -> tuple[np.ndarray, np.ndarray]:
        weights = np.exp(-np.square(x / spread))
        return np.exp(-np.square((x - 1) / spread)) / weights.sum(), weights / weights.sum()

    def follow(totals: Totals, p: np.ndarray, q: np.ndarray, costs: list[ZCDP]) -> float:
        if not costs or not within(totals.plus(costs[0]), cap):
            return float(np.maximum(0.0, p - math.exp(cap.epsilon) * q).sum())
        after, (up, down) = totals.plus(costs[0]), draw(1 / math.sqrt(costs[0].rho))
        sides = [(x > 0, costs[1:]), (x <= 0, costs[2:])]
        return sum(
            follow(after, np.outer(p, up[side]).ravel(), np.outer(q, down[side]).ravel(), rest)
            for side, rest in sides
        )

    if not within(total(first), cap):
        return 0.0
    spread = first.parts[0].spread if isinstance(first, GaussianPlan) else 1 / first.rho**0.5
    p, q = np.ones(1), np.ones(1)
    for _ in range(plan_draws):
        up, down = draw(float(spread))
        p, q = np.outer(p, up).ravel(), np.outer(q, down).ravel()
    return follow(total(first), p, q, later)


@pytest.mark.parametrize(("first", "later"), list(product([0, 1, 2], ["0.001", "0.05", "0.2"])))
def test_a_process_that_may_go_on_after_a_plan_stays_within_the_cap(first: int, later: str) -> None:
    cap = ApproxDP(1, "0.02")
    full = full_plan(cap, coins=1)
    charges: list[Charge] = [
        full,
        GaussianPlan(parts=(GaussianPart(spread=full.parts[0].spread * 2, coordinates=1),)),
        ZCDP("0.03"),
    ]
    found = divergence(cap, charges[first], [ZCDP(later)] * 2, plan_draws=1)
    assert 0 < found <= float(cap.delta)


def test_the_process_would_be_over_the_cap_if_a_full_plan_were_not_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cap = ApproxDP(1, "0.02")
    full = full_plan(cap, coins=1)
    monkeypatch.setitem(globals(), "within", lambda totals, cap: True)
    assert divergence(cap, full, [ZCDP("0.05")] * 2, plan_draws=1) > float(cap.delta)
