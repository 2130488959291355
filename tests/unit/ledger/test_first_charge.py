"""A first charge that is approximate: everything later is admitted under what it leaves."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import BudgetError, InputError, LedgerCorruptError
from sfumato.ledger import Ledger, verify_export
from sfumato.ledger.entries import canonical, digest
from sfumato.privacy import (
    ZCDP,
    ApproxDP,
    Cap,
    OnePerson,
    OneRow,
    PureDP,
    Totals,
    composed,
    epsilon_from_zcdp,
    left,
    scaled,
    within,
    zcdp_budget,
)
from sfumato.privacy.composition import Price, delta_factor, from_json, to_json

CAP = ApproxDP(1, "1e-9")
FIRST = ApproxDP("0.1", "5e-10")
REST = ApproxDP("0.9", "5e-10")
ROW = OneRow()
REPLACE = OneRow(neighbors="replace")


def total(*charges: Price) -> Totals:
    totals = Totals()
    for charge in charges:
        totals = totals.plus(charge)
    return totals


def ledger(cap: Cap | None = CAP) -> Ledger:
    return Ledger.in_memory(dataset="study", cap=cap)


@pytest.mark.parametrize("rest", [PureDP("0.9"), zcdp_budget(REST)], ids=str)
def test_what_is_left_of_the_cap_can_be_spent_to_the_last(rest: Price) -> None:
    assert within(total(FIRST, rest), CAP)
    more = PureDP("1e-12") if isinstance(rest, PureDP) else ZCDP("1e-12")
    assert not within(total(FIRST, rest, more), CAP)


@pytest.mark.parametrize("rest", [PureDP("0.91"), zcdp_budget(CAP)], ids=str)
def test_what_only_the_whole_cap_would_admit_is_refused_afterwards(rest: Price) -> None:
    assert not within(total(FIRST, rest), CAP)


def test_the_first_charge_alone_fits_up_to_the_cap() -> None:
    assert within(total(CAP), CAP)
    assert not within(total(ApproxDP(1, "1.1e-9")), CAP)
    assert not within(total(ApproxDP("1.1", "1e-9")), CAP)
    assert left(total(CAP), CAP, PureDP) is None


def test_where_all_of_delta_is_gone_pure_costs_still_fit() -> None:
    totals = total(ApproxDP("0.1", "1e-9"))
    assert left(totals, CAP, PureDP) == PureDP("0.9")
    assert left(totals, CAP, ZCDP) is None
    assert within(totals.plus(PureDP("0.9")), CAP)
    assert not within(totals.plus(ZCDP("1e-9")), CAP)


@pytest.mark.parametrize("cap", [PureDP(100), ZCDP(100)], ids=str)
def test_a_cap_without_a_delta_admits_no_approximate_charge(cap: Cap) -> None:
    assert not within(total(FIRST), cap)
    assert left(total(FIRST), cap, PureDP) is None
    book = ledger(cap)
    with pytest.raises(BudgetError, match="a delta does not fit the cap"):
        book.spend(FIRST, label="infer", protect=ROW)
    assert book.spent == Totals()


@pytest.mark.parametrize("earlier", [PureDP("0.01"), ZCDP("0.0001"), FIRST], ids=str)
def test_a_later_approximate_charge_is_refused_with_advice(earlier: Price) -> None:
    book = ledger(None)
    book.spend(earlier, label="before", protect=ROW)
    for refused in (book.precheck, book.spend):
        with pytest.raises(BudgetError, match="only be the first of a dataset") as refusal:
            refused(FIRST, label="infer", protect=ROW)
        assert "schema draft" in str(refusal.value)
    assert len(book.entries()) == 2


def test_a_first_charge_over_the_cap_is_refused_and_opens_nothing() -> None:
    book = ledger()
    with pytest.raises(BudgetError, match=r"'infer' asks for .* more than the cap"):
        book.spend(ApproxDP(2, "1e-9"), label="infer", protect=ROW)
    assert book.protect is None


def test_the_composed_guarantee_is_the_sum() -> None:
    delta = Fraction(1, 10**9)
    assert composed(total(FIRST)) == FIRST
    assert composed(total(FIRST), delta) == ApproxDP("0.1", delta)
    assert composed(total(FIRST, PureDP("0.5"))) == ApproxDP("0.6", "5e-10")
    assert composed(total(FIRST, PureDP("0.5")), delta) == ApproxDP("0.6", delta)
    rho = ZCDP("0.01")
    later = epsilon_from_zcdp(rho.rho, Fraction(1, 2 * 10**9))
    assert composed(total(FIRST, rho), delta) == ApproxDP(FIRST.epsilon + later, delta)
    assert composed(total(FIRST, rho)) == ApproxDP(FIRST.epsilon + later, delta)


@pytest.mark.parametrize("delta", ["1e-12", "5e-10"])
def test_a_delta_that_leaves_none_for_zcdp_is_not_stated(delta: str) -> None:
    totals = total(FIRST, ZCDP("0.01"))
    assert totals.epsilon(Fraction(delta)) is None
    stated = composed(totals, Fraction(delta))
    assert isinstance(stated, ApproxDP)
    assert stated.delta == Fraction(1, 10**9)


def test_totals_say_what_came_first() -> None:
    assert str(total(FIRST)) == "epsilon=0.1, delta=5e-10"
    assert str(total(FIRST, ZCDP("0.5"))) == "epsilon=0.1, delta=5e-10 and then rho=0.5"
    assert str(total(FIRST, PureDP("0.5"))) == "epsilon=0.1, delta=5e-10 and then epsilon=0.5"
    assert not total(FIRST).nothing


@pytest.mark.parametrize("rest", [(), (PureDP("0.25"),), (ZCDP("0.0001"),)], ids=str)
def test_totals_survive_their_json(rest: tuple[Price, ...]) -> None:
    totals = total(FIRST, *rest)
    assert from_json(to_json(totals)) == totals
    assert "first" not in to_json(total(*rest))


def test_an_add_remove_charge_counts_under_replace_as_two_steps() -> None:
    """(2 epsilon, (1 + e^epsilon) delta), rounded up."""
    book = Ledger.in_memory(dataset="study")
    book.spend(FIRST, label="infer", protect=ROW)
    assert book.spent.first == FIRST
    charged = scaled(FIRST, 2)
    assert charged.epsilon == Fraction(1, 5)
    exact = (1 + math.exp(0.1)) * 5e-10
    assert exact <= float(charged.delta) <= exact * (1 + 1e-12)


@given(st.fractions(Fraction(1, 1000), 5), st.integers(1, 30))
def test_the_delta_of_a_group_is_the_sum_over_its_steps(epsilon: Fraction, people: int) -> None:
    exact = math.fsum(math.exp(epsilon * step) for step in range(people))
    assert float(delta_factor(epsilon, people)) == pytest.approx(exact, rel=1e-11)
    assert delta_factor(epsilon, people) >= people


def test_a_ledger_with_such_a_charge_verifies_and_keeps_its_budget(tmp_path) -> None:
    with Ledger.open(tmp_path / "file", dataset="study", cap=CAP) as book:
        entry = book.spend(FIRST, label="infer", protect=ROW, request="schema")
        assert (entry.cost, entry.charged) == (FIRST, FIRST)
    with Ledger.open(tmp_path / "file", dataset="study") as book:
        assert book.spent == total(FIRST)
        assert book.left(PureDP) == PureDP("0.9")
        again = book.spend(FIRST, label="infer", protect=ROW, request="schema")
        assert again.seq == entry.seq  # paid once
        book.spend(PureDP("0.9"), label="release", protect=ROW)
        with pytest.raises(BudgetError, match="nothing is left of the cap"):
            book.spend(PureDP("0.01"), label="more", protect=ROW)
        assert book.composed() == ApproxDP(1, "1e-9")
        assert book.verify().head == book.head
        assert verify_export(book.export()).head == book.head


def test_a_cap_that_comes_later_counts_the_first_charge() -> None:
    book = ledger(None)
    book.spend(FIRST, label="infer", protect=OnePerson(max_rows=3, column="who"))
    book.set_cap(ApproxDP("0.1", "1e-9"))
    with pytest.raises(BudgetError, match="nothing is left"):
        book.spend(PureDP("1e-9"), label="release", protect=book.protect)
    book.set_cap(CAP)
    assert book.left(PureDP) == PureDP("0.9")


def forged(export: dict, change) -> dict:
    """Change bodies and recompute all hashes, as somebody who knows the format would."""
    previous = "0" * 64
    for entry in export["entries"]:
        change(entry["body"])
        entry["previous"] = previous
        previous = entry["hash"] = digest(previous, canonical(entry["body"]))
    return export


def cheaper(body: dict) -> None:
    if body["event"] == "spend" and body["cost"]["kind"] == "approximate":
        body["cost"]["delta"] = body["charged"]["delta"] = "1/1000000000000"


def forgotten(body: dict) -> None:
    body.get("after", {}).get("spent", {}).pop("first", None)


def second(body: dict) -> None:
    if body["event"] == "spend" and body["label"] == "release":
        body["cost"] = body["charged"] = {"kind": "approximate", "epsilon": "1/10", "delta": "1/99"}


@pytest.mark.parametrize(
    ("forgery", "check"), [(cheaper, "sums"), (forgotten, "sums"), (second, "rules")]
)
def test_a_forged_first_charge_does_not_verify(forgery, check: str) -> None:
    book = ledger(None)
    book.spend(FIRST, label="infer", protect=ROW)
    book.spend(PureDP("0.9"), label="release", protect=ROW)
    assert verify_export(forged(book.export(), lambda body: None)).head == book.head
    with pytest.raises(LedgerCorruptError, match=f"check of its {check}"):
        verify_export(forged(book.export(), forgery))


def test_a_local_guarantee_is_still_no_cost() -> None:
    with pytest.raises(InputError, match="ApproxDP if it is the first"):
        ledger().spend("cheap", label="x", protect=ROW)  # type: ignore[arg-type]


def divergence(
    choose: list[Price], first: ApproxDP, cap: ApproxDP, *, admitted: ApproxDP | None = None
) -> float:
    """The exact hockey-stick divergence, at the cap's epsilon, of a process of two parts.

    First an answer that is told openly with probability delta0 and else by randomized response at
    epsilon0; then steps that are chosen by all answers so far, as long as they are admitted.
    """
    begun, delta = Totals().plus(first), float(first.delta)
    limit = admitted or cap

    def follow(totals: Totals, path: int, p: float, q: float, steps: int) -> float:
        cost = choose[path % len(choose)]
        if steps == 7 or not within(totals.plus(cost), limit):
            return max(0.0, p - math.exp(cap.epsilon) * q)
        epsilon = float(cost.epsilon) if isinstance(cost, PureDP) else math.sqrt(2 * cost.rho)
        truth = math.exp(epsilon) / (1 + math.exp(epsilon))
        after = totals.plus(cost)
        return follow(after, 2 * path + 1, p * truth, q * (1 - truth), steps + 1) + follow(
            after, 2 * path + 2, p * (1 - truth), q * truth, steps + 1
        )

    truth = (1 - delta) * math.exp(first.epsilon) / (1 + math.exp(first.epsilon))
    lie = 1 - delta - truth
    outcomes = [(delta, 0.0), (0.0, delta), (truth, lie), (lie, truth)]
    return sum(follow(begun, place, p, q, 0) for place, (p, q) in enumerate(outcomes))


steps = st.one_of(
    st.sampled_from(["0.05", "0.2", "0.4", "0.7"]).map(PureDP),
    st.sampled_from(["0.001", "0.01", "0.05"]).map(ZCDP),
)


@given(st.lists(steps, min_size=1, max_size=20))
def test_costs_chosen_in_view_of_the_first_outcome_stay_within_the_cap(choose: list) -> None:
    cap, first = ApproxDP(1, "0.06"), ApproxDP("0.3", "0.03")
    assert divergence(choose, first, cap) <= float(cap.delta) + 1e-12


def test_the_adaptive_check_would_see_a_first_charge_that_is_forgotten() -> None:
    cap, first = ApproxDP(1, "0.06"), ApproxDP("0.9", "0.05")
    forgetful = ApproxDP(cap.epsilon + first.epsilon, cap.delta + first.delta)
    assert divergence([PureDP("0.5")], first, cap, admitted=forgetful) > 0.1
    assert divergence([PureDP("0.5")], first, cap) <= 0.06
