"""Approximate costs: rho and delta add up, and a cap sets aside a part of its delta for them."""

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
    ApproxZCDP,
    Cap,
    OneRow,
    Price,
    PureDP,
    Totals,
    composed,
    epsilon_from_zcdp,
    left,
    scaled,
    within,
    zcdp_budget,
)
from sfumato.privacy.composition import delta_factor, from_json, set_aside, to_json

CAP = ApproxDP(1, "1e-9")
HALF = ApproxDP(1, "5e-10")
COUNT = ApproxDP("0.01", "5e-13")
TEXTS = ApproxZCDP("0.001", "4.995e-10")
ROW = OneRow()
REPLACE = OneRow(neighbors="replace")


def total(*charges: Price) -> Totals:
    totals = Totals()
    for charge in charges:
        totals = totals.plus(charge)
    return totals


def ledger(cap: Cap | None = CAP) -> Ledger:
    return Ledger.in_memory(dataset="study", cap=cap)


def rest_of_half(*charges: Price) -> ZCDP:
    return ZCDP(zcdp_budget(HALF).rho - total(*charges).rho)


def test_rho_and_delta_add_up_and_an_epsilon_counts_as_half_its_square() -> None:
    totals = total(COUNT, TEXTS, PureDP("0.1"), ZCDP("0.002"))
    halves = [Fraction(epsilon) ** 2 / 2 for epsilon in ("0.01", "0.1")]
    assert totals.rho == sum(halves) + Fraction("0.001") + Fraction("0.002")
    assert totals.delta == Fraction("5e-10")
    assert totals.pure_epsilon == Fraction("0.11")
    assert totals.has_zcdp
    assert totals.first_delta == COUNT.delta


def test_schema_and_release_together_are_the_epsilon_and_delta_that_were_asked_for() -> None:
    rest = rest_of_half(COUNT, TEXTS)
    assert within(total(COUNT, TEXTS, rest), CAP)
    assert not within(total(COUNT, TEXTS, rest, ZCDP("1e-12")), CAP)
    promise = composed(total(COUNT, TEXTS, rest), CAP.delta)
    assert isinstance(promise, ApproxDP)
    assert promise.delta == CAP.delta
    assert float(promise.epsilon) == pytest.approx(1, abs=1e-9)
    assert promise.epsilon <= 1


def test_half_of_a_cap_s_delta_is_set_aside_once_the_first_cost_is_approximate() -> None:
    assert set_aside(total(PureDP(1)), CAP) == 0
    assert set_aside(total(COUNT), CAP) == Fraction("5e-10")
    most = ApproxZCDP("0.001", "9e-10")
    assert set_aside(total(most), CAP) == Fraction("9e-10")
    assert set_aside(total(most), HALF) == 0  # passed already
    assert left(total(COUNT), CAP, ZCDP) == rest_of_half(COUNT)
    assert not within(total(COUNT, ApproxZCDP("0.001", "5e-10")), CAP)  # 5e-13 too much
    assert within(total(COUNT, TEXTS, PureDP("0.01")), CAP)


@pytest.mark.parametrize("earlier", [PureDP("0.01"), ZCDP("0.0001")], ids=str)
def test_an_approximate_cost_after_another_first_one_fits_no_cap(earlier: Price) -> None:
    """In view of results a delta in place of some rho could add up to more than the cap."""
    assert not within(total(earlier, TEXTS), CAP)
    assert left(total(earlier, TEXTS), CAP, ZCDP) is None
    book = ledger()
    book.spend(earlier, label="before", protect=ROW)
    for refused in (book.precheck, book.spend):
        with pytest.raises(BudgetError, match="only where the very first of a data set is one"):
            refused(TEXTS, label="infer", protect=ROW)
    free = ledger(None)
    free.spend(earlier, label="before", protect=ROW)
    free.spend(TEXTS, label="infer", protect=ROW)  # no cap: costs that were fixed in advance
    promise = free.composed(Fraction("1e-9"))
    assert isinstance(promise, ApproxDP)


def test_costs_that_each_fit_are_refused_together() -> None:
    book = ledger()
    book.precheck(COUNT, TEXTS, rest_of_half(COUNT, TEXTS), label="this run", protect=ROW)
    with pytest.raises(BudgetError, match="is left of the cap"):
        book.precheck(COUNT, TEXTS, zcdp_budget(HALF), label="this run", protect=ROW)
    assert book.spent == Totals()


def test_costs_in_epsilon_may_use_it_all_but_for_their_deltas() -> None:
    assert within(total(COUNT, PureDP("0.99")), CAP)
    assert not within(total(COUNT, PureDP("0.991")), CAP)
    assert left(total(COUNT), CAP, PureDP) == PureDP("0.99")
    assert composed(total(COUNT, PureDP("0.99"))) == ApproxDP(1, COUNT.delta)
    all_of_it = ApproxDP("0.1", CAP.delta)
    assert within(total(all_of_it, PureDP("0.9")), CAP)
    assert left(total(all_of_it), CAP, ZCDP) is None
    assert left(total(all_of_it, ZCDP("1e-9")), CAP, PureDP) is None
    assert not within(total(all_of_it, ZCDP("1e-9")), CAP)


@pytest.mark.parametrize("cap", [PureDP(100), ZCDP(100)], ids=str)
@pytest.mark.parametrize("cost", [COUNT, TEXTS], ids=str)
def test_a_cap_without_a_delta_admits_no_approximate_charge(cap: Cap, cost: Price) -> None:
    assert not within(total(cost), cap)
    assert left(total(cost), cap, PureDP) is None
    book = ledger(cap)
    with pytest.raises(BudgetError, match="a delta does not fit the cap"):
        book.spend(cost, label="infer", protect=ROW)
    assert book.spent == Totals()


def test_an_approximate_charge_over_the_cap_is_refused_and_opens_nothing() -> None:
    book = ledger()
    with pytest.raises(BudgetError, match=r"'infer' asks for .* more than the cap"):
        book.spend(ApproxZCDP(2, "1e-9"), label="infer", protect=ROW)
    assert book.protect is None


def test_the_deltas_of_the_costs_and_of_the_conversion_add_up() -> None:
    delta = Fraction("1e-9")
    converted = epsilon_from_zcdp(total(TEXTS).rho, delta - TEXTS.delta)
    assert composed(total(TEXTS), delta) == ApproxDP(converted, delta)
    assert composed(total(TEXTS)) == ApproxDP(
        epsilon_from_zcdp(TEXTS.rho, TEXTS.delta), 2 * TEXTS.delta
    )
    assert composed(total(COUNT)) == COUNT
    assert composed(total(COUNT), delta) == ApproxDP("0.01", delta)
    larger = epsilon_from_zcdp(total(TEXTS).rho, delta)
    assert larger < converted  # what the larger of the two deltas would promise


@pytest.mark.parametrize("delta", ["1e-12", "4.995e-10"])
def test_a_delta_that_leaves_none_for_the_conversion_is_not_stated(delta: str) -> None:
    assert total(TEXTS).epsilon(Fraction(delta)) is None
    stated = composed(total(TEXTS), Fraction(delta))
    assert isinstance(stated, ApproxDP)
    assert stated.delta == 2 * TEXTS.delta
    assert total(COUNT).epsilon() is None
    assert total(COUNT).epsilon(Fraction("1e-13")) is None


def test_totals_say_their_delta() -> None:
    assert str(total(COUNT)) == "epsilon=0.01, delta=5e-13"
    assert str(total(COUNT, TEXTS)) == "rho=0.00105, delta=5e-10"
    assert not total(COUNT).nothing


@pytest.mark.parametrize("rest", [(), (PureDP("0.25"),), (TEXTS,)], ids=str)
def test_totals_survive_their_json(rest: tuple[Price, ...]) -> None:
    totals = total(COUNT, *rest)
    assert from_json(to_json(totals)) == totals
    assert "delta" not in to_json(total(PureDP(1)))


def test_a_sum_of_an_earlier_version_is_refused_with_what_to_do() -> None:
    earlier = {"kind": "approximate", "epsilon": "1/5", "delta": "1/2000000000"}
    with pytest.raises(InputError, match="another dataset name"):
        from_json({**to_json(Totals()), "first": earlier})


def test_an_approximate_cost_in_epsilon_counts_under_replace_as_two_steps() -> None:
    """(2 epsilon, (1 + e^epsilon) delta), rounded up."""
    charged = scaled(ApproxDP("0.1", "5e-10"), 2)
    assert charged.epsilon == Fraction(1, 5)
    exact = (1 + math.exp(0.1)) * 5e-10
    assert exact <= float(charged.delta) <= exact * (1 + 1e-12)


def test_approximate_zcdp_has_no_rule_for_two_steps_and_is_refused() -> None:
    book = ledger(None)
    book.spend(PureDP("0.1"), label="release", protect=REPLACE)
    with pytest.raises(BudgetError, match="several rows at once"):
        book.spend(TEXTS, label="infer", protect=ROW)


@given(st.fractions(Fraction(1, 1000), 5), st.integers(1, 30))
def test_the_delta_of_a_group_is_the_sum_over_its_steps(epsilon: Fraction, people: int) -> None:
    exact = math.fsum(math.exp(epsilon * step) for step in range(people))
    assert float(delta_factor(epsilon, people)) == pytest.approx(exact, rel=1e-11)
    assert delta_factor(epsilon, people) >= people


def test_a_ledger_with_such_charges_verifies_and_keeps_its_budget(tmp_path) -> None:
    rest = rest_of_half(COUNT, TEXTS)
    with Ledger.open(tmp_path / "file", dataset="study", cap=CAP) as book:
        book.spend(COUNT, label="count", protect=ROW, request="count")
        entry = book.spend(TEXTS, label="infer", protect=ROW, request="schema")
        assert (entry.cost, entry.charged) == (TEXTS, TEXTS)
    with Ledger.open(tmp_path / "file", dataset="study") as book:
        assert book.spent == total(COUNT, TEXTS)
        assert book.left(ZCDP) == rest
        again = book.spend(TEXTS, label="infer", protect=ROW, request="schema")
        assert again.seq == entry.seq  # paid once
        book.spend(rest, label="release", protect=ROW)
        with pytest.raises(BudgetError, match="nothing is left of the cap"):
            book.spend(ZCDP("1e-6"), label="more", protect=ROW)
        assert book.verify().head == book.head
        assert verify_export(book.export()).head == book.head


def forged(export: dict, change) -> dict:
    """Change bodies and recompute all hashes, as somebody who knows the format would."""
    previous = "0" * 64
    for entry in export["entries"]:
        change(entry["body"])
        entry["previous"] = previous
        previous = entry["hash"] = digest(previous, canonical(entry["body"]))
    return export


def cheaper(body: dict) -> None:
    if body["event"] == "spend" and body["cost"]["kind"] == "approximate-zcdp":
        body["cost"]["delta"] = body["charged"]["delta"] = "1/1000000000000"


def forgotten(body: dict) -> None:
    body.get("after", {}).get("spent", {}).pop("delta", None)


def not_first(body: dict) -> None:
    if "first_delta" in (spent := body.get("after", {}).get("spent", {})):
        spent["first_delta"] = "0"


def local(body: dict) -> None:
    if body["event"] == "spend" and body["label"] == "release":
        body["cost"] = body["charged"] = {"kind": "local", "epsilon": "1/10"}


@pytest.mark.parametrize(
    ("forgery", "check"),
    [(cheaper, "sums"), (forgotten, "sums"), (not_first, "sums"), (local, "")],
)
def test_a_forged_approximate_charge_does_not_verify(forgery, check: str) -> None:
    book = ledger(None)
    book.spend(COUNT, label="count", protect=ROW)
    book.spend(TEXTS, label="infer", protect=ROW)
    book.spend(PureDP("0.9"), label="release", protect=ROW)
    assert verify_export(forged(book.export(), lambda body: None)).head == book.head
    with pytest.raises(LedgerCorruptError, match=f"check of its {check}"):
        verify_export(forged(book.export(), forgery))


def test_what_is_no_cost_is_refused() -> None:
    with pytest.raises(InputError, match="ApproxDP or ApproxZCDP"):
        ledger().spend("cheap", label="x", protect=ROW)  # type: ignore[arg-type]


def divergence(choose: list[Price], cap: ApproxDP, *, admitted: ApproxDP | None = None) -> float:
    """The exact hockey-stick divergence, at the cap's epsilon, of a process of adaptive steps.

    A step tells the answer openly with its delta and else by randomized response; each is chosen
    by all answers so far, as long as it is admitted.
    """
    limit = admitted or cap

    def follow(totals: Totals, path: int, p: float, q: float, steps: int) -> float:
        cost = choose[path % len(choose)]
        if steps == 5 or not within(totals.plus(cost), limit):
            return max(0.0, p - math.exp(cap.epsilon) * q)
        rho = getattr(cost, "rho", None)
        epsilon = math.sqrt(2 * rho) if rho is not None else float(cost.epsilon)
        delta = float(getattr(cost, "delta", 0))
        truth = (1 - delta) * math.exp(epsilon) / (1 + math.exp(epsilon))
        lie, after = 1 - delta - truth, totals.plus(cost)
        told = p * delta  # what the other table would never show
        return (
            told
            + follow(after, 2 * path + 1, p * truth, q * lie, steps + 1)
            + follow(after, 2 * path + 2, p * lie, q * truth, steps + 1)
        )

    return follow(Totals(), 0, 1.0, 1.0, 0)


steps = st.one_of(
    st.sampled_from(["0.05", "0.2", "0.4", "0.7"]).map(PureDP),
    st.sampled_from(["0.001", "0.01", "0.05"]).map(ZCDP),
    st.sampled_from([("0.1", "0.01"), ("0.3", "0.03")]).map(lambda each: ApproxDP(*each)),
    st.sampled_from([("0.001", "0.02"), ("0.02", "0.01")]).map(lambda each: ApproxZCDP(*each)),
)


@given(st.lists(steps, min_size=1, max_size=20))
def test_costs_chosen_in_view_of_earlier_outcomes_stay_within_the_cap(choose: list) -> None:
    cap = ApproxDP(1, "0.06")
    assert divergence(choose, cap) <= float(cap.delta) + 1e-12


def test_the_adaptive_check_would_see_deltas_that_do_not_count() -> None:
    cap, generous = ApproxDP(1, "0.06"), ApproxDP(2, "0.4")
    choose: list[Price] = [ApproxDP("0.4", "0.05")]
    assert divergence(choose, cap, admitted=generous) > 0.1
    assert divergence(choose, cap) <= 0.06
