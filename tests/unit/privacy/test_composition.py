import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.errors import InputError
from sfumato.privacy import (
    ZCDP,
    ApproxDP,
    ApproxZCDP,
    Cap,
    Cost,
    LocalDP,
    PureDP,
    Totals,
    composed,
    left,
    scaled,
    within,
    zcdp_budget,
)
from sfumato.privacy.composition import from_json, to_json, unstated

CAPS: list[Cap] = [PureDP(1), ZCDP("0.5"), ApproxDP(1, "1e-9"), ApproxDP(1, "0.01")]

costs = st.one_of(
    st.fractions(min_value=Fraction(1, 1000), max_value=1, max_denominator=1000).map(PureDP),
    st.fractions(min_value=Fraction(1, 1000), max_value=1, max_denominator=1000).map(ZCDP),
)


def total(*steps: Cost) -> Totals:
    totals = Totals()
    for step in steps:
        totals = totals.plus(step)
    return totals


def test_ten_tenths_make_one() -> None:
    assert within(total(*[PureDP(0.1)] * 10), PureDP(1))
    assert not within(total(*[PureDP(0.1)] * 10, PureDP("1e-30")), PureDP(1))


def test_a_pure_cap_admits_no_zcdp_cost() -> None:
    assert not within(total(ZCDP("1e-9")), PureDP(1))


def test_a_zcdp_cap_counts_pure_costs_at_half_their_square() -> None:
    assert within(total(PureDP(1)), ZCDP("0.5"))
    assert not within(total(PureDP(1), PureDP("0.001")), ZCDP("0.5"))


def test_an_approximate_cap_admits_by_either_sum() -> None:
    cap = ApproxDP(1, "1e-9")
    assert within(total(PureDP(1)), cap)  # by the pure sum; as zCDP it would be too much
    assert not within(total(PureDP("0.99"), ZCDP("0.00001")), cap)  # neither sum alone fits
    many = total(*[PureDP("0.001")] * 5000)  # the pure sum is 5, but together they hide
    assert within(many, cap)
    assert within(total(zcdp_budget(cap)), cap)


@settings(derandomize=True, deadline=None, max_examples=150)
@given(st.lists(costs, max_size=6), st.sampled_from(CAPS), st.sampled_from([PureDP, ZCDP]))
def test_what_is_left_fits_and_no_more_does(
    steps: list[Cost], cap: Cap, kind: type[PureDP] | type[ZCDP]
) -> None:
    totals = Totals()
    for step in steps:
        if within(totals.plus(step), cap):
            totals = totals.plus(step)
    rest = left(totals, cap, kind)
    if rest is not None:
        assert within(totals.plus(rest), cap)
    amount = Fraction(0) if rest is None else getattr(rest, "epsilon", getattr(rest, "rho", None))
    assert not within(totals.plus(kind(amount + Fraction(1, 10**9))), cap)


@pytest.mark.parametrize("delta", ["1e-9", "0.01"])
@pytest.mark.parametrize("steps", [["0.25"], ["0.01"] * 90, ["0.001"] * 3000, ["0.01"] * 200])
def test_what_is_left_of_an_approximate_cap_is_the_better_of_its_two_sums(
    delta: str, steps: list[str]
) -> None:
    """Many small pure costs leave more by rho than by epsilon; few large ones the other way."""
    cap = ApproxDP(1, delta)
    totals = total(*map(PureDP, steps))
    by_pure = cap.epsilon - totals.pure_epsilon
    by_rho = math.sqrt(max(0, 2 * (zcdp_budget(cap).rho - totals.rho)))
    rest = left(totals, cap, PureDP)
    if rest is None:
        assert max(float(by_pure), by_rho) <= 0
        return
    assert isinstance(rest, PureDP)
    assert float(rest.epsilon) == pytest.approx(max(float(by_pure), by_rho), abs=1e-12)
    assert within(totals.plus(rest), cap)
    assert not within(totals.plus(PureDP(rest.epsilon + Fraction(1, 10**17))), cap)


@settings(derandomize=True, deadline=None, max_examples=100)
@given(st.lists(costs, min_size=1, max_size=8), st.sampled_from(CAPS))
def test_a_refused_total_is_never_admitted_again(steps: list[Cost], cap: Cap) -> None:
    verdicts = [within(total(*steps[: n + 1]), cap) for n in range(len(steps))]
    assert verdicts == sorted(verdicts, reverse=True)


def divergence(cap: ApproxDP, choose: list[Cost], depth: int) -> float:
    """The exact hockey-stick divergence of an adaptive process of randomized responses.

    After each answer the process picks its next cost from ``choose`` by all answers so far; a
    step at ``PureDP(e)`` or ``ZCDP(e^2/2)`` is a response that tells the truth at epsilon e.
    """

    def follow(totals: Totals, path: int, p: float, q: float, steps: int) -> float:
        cost = choose[path % len(choose)]
        if steps == depth or not within(totals.plus(cost), cap):
            return max(0.0, p - math.exp(cap.epsilon) * q)
        epsilon = float(cost.epsilon) if isinstance(cost, PureDP) else math.sqrt(2 * cost.rho)
        truth = math.exp(epsilon) / (1 + math.exp(epsilon))
        after = totals.plus(cost)
        return follow(after, 2 * path + 1, p * truth, q * (1 - truth), steps + 1) + follow(
            after, 2 * path + 2, p * (1 - truth), q * truth, steps + 1
        )

    return follow(Totals(), 0, 1.0, 1.0, 0)


@settings(derandomize=True, deadline=None, max_examples=60)
@given(
    st.lists(
        st.one_of(
            st.sampled_from(["0.05", "0.2", "0.4", "0.9"]).map(PureDP),
            st.sampled_from(["0.001", "0.01", "0.05"]).map(ZCDP),
        ),
        min_size=1,
        max_size=31,
    )
)
def test_costs_chosen_in_view_of_earlier_results_stay_within_the_cap(choose: list[Cost]) -> None:
    cap = ApproxDP(1, "0.05")
    assert divergence(cap, choose, depth=9) <= float(cap.delta)


def test_the_adaptive_check_would_see_a_cap_that_is_ignored() -> None:
    generous = ApproxDP(1, "0.9")  # admits far more than (1, 0.05)
    assert divergence(generous, [ZCDP("0.2")], depth=9) > 0.05


def test_a_relation_change_doubles_epsilon_and_quadruples_rho() -> None:
    assert scaled(PureDP("0.3"), 2) == PureDP("0.6")
    assert scaled(ZCDP("0.3"), 2) == ZCDP("1.2")
    with pytest.raises(InputError, match="factor"):
        scaled(PureDP(1), 0)


def test_composed_states_the_strongest_kind() -> None:
    delta = Fraction(1, 10**6)
    assert composed(Totals(), delta) is None
    assert composed(total(PureDP(1), PureDP(2))) == PureDP(3)
    assert composed(total(PureDP(1), ZCDP(1))) == ZCDP("1.5")
    assert composed(total(PureDP(1)), delta) == PureDP(1)
    assert isinstance(composed(total(*[PureDP("0.01")] * 1000), delta), ApproxDP)
    assert isinstance(composed(total(ZCDP(1)), delta), ApproxDP)


def test_a_total_beyond_every_guarantee_is_said_to_be_and_never_told_as_less() -> None:
    told = Fraction(1, 10**9)
    for totals, delta in (
        (total(PureDP(9_999), PureDP(2)), None),
        (total(ZCDP(9_999), ZCDP(2)), None),
        (total(ZCDP(9_999), ZCDP(2)), told),
        (total(PureDP(150), ZCDP(1)), told),
        (total(ApproxDP(9_999, "1e-12"), PureDP(2)), None),
        (total(ApproxZCDP(9_999, "1e-12"), ZCDP(2)), told),
    ):
        assert composed(totals, delta) is None
        assert unstated(totals) == f"more than epsilon=10000 ({totals})"
    assert composed(total(PureDP(9_999), PureDP(1))) == PureDP(10_000)
    assert unstated(Totals()) == "nothing"


def test_totals_say_what_was_spent() -> None:
    assert str(Totals()) == "nothing"
    assert str(total(PureDP("0.25"))) == "epsilon=0.25"
    assert str(total(PureDP(1), ZCDP(1))) == "rho=1.5"
    assert total(ZCDP(1)).epsilon() is None
    assert total(PureDP(1)).epsilon() == 1
    assert Totals().epsilon(Fraction(1, 2)) == 0


def test_totals_survive_their_json() -> None:
    totals = total(PureDP(Fraction(1, 3)), ZCDP(Fraction(1, 7)))
    assert from_json(to_json(totals)) == totals


def test_a_local_guarantee_is_no_cost() -> None:
    with pytest.raises(InputError, match="PureDP, ZCDP"):
        Totals().plus(LocalDP(1))  # type: ignore[arg-type]


def test_the_largest_epsilon_can_still_be_stated_after_a_first_cost():
    first = Totals().plus(ApproxDP(9_999, "1e-9"))
    assert composed(first.plus(PureDP(1))) == ApproxDP(10_000, "1e-9")
    assert composed(first.plus(PureDP("1.001"))) is None
