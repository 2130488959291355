"""Costs and guarantees are exact values, valid from birth; what each kind says in another kind."""

import math
from decimal import Context, Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.errors import InputError
from sfumato.privacy import (
    ZCDP,
    ApproxDP,
    LocalDP,
    PureDP,
    as_epsilon_delta,
    epsilon_from_zcdp,
    zcdp_budget,
    zcdp_from_pure,
)
from sfumato.privacy.guarantees import MAX_EPSILON, from_json, portion, split, to_json


@pytest.mark.parametrize("kind", [PureDP, ZCDP, LocalDP, lambda epsilon: ApproxDP(epsilon, "1e-9")])
def test_a_parameter_is_above_zero_and_at_most_the_largest(kind):
    for wrong in (0, "-1e-9", MAX_EPSILON + Fraction(1, 10**9)):
        with pytest.raises(InputError):
            kind(wrong)
    kind(MAX_EPSILON)
    kind("1e-12")


@pytest.mark.parametrize("delta", [0, 1, "-1e-9", "1.5"])
def test_a_delta_lies_between_zero_and_one(delta):
    with pytest.raises(InputError, match="delta"):
        ApproxDP(1, delta)


def test_a_share_of_a_cost_is_that_share_of_its_own_kind():
    assert portion(PureDP(2), Fraction(1, 8)) == PureDP("0.25")
    assert portion(ZCDP(2), Fraction(1, 8)) == ZCDP("0.25")


@pytest.mark.parametrize("cost", [PureDP("0.7"), ZCDP("0.7")], ids=str)
@pytest.mark.parametrize("weights", [[1], [1, 3], [0.1, 0.1, 0.1], [1e-3, 7.0, 3.3], [5, 1, 1, 1]])
def test_parts_sum_to_the_whole_exactly_and_are_in_proportion(cost, weights):
    parts = split(cost, weights)
    amounts = [part.epsilon if isinstance(part, PureDP) else part.rho for part in parts]
    assert {type(part) for part in parts} == {type(cost)}
    assert sum(amounts) == Fraction(7, 10)
    for got, weight in zip(amounts, weights, strict=True):
        assert float(got) == pytest.approx(0.7 * weight / sum(weights), rel=1e-6)
    unit = Fraction(7, 10) / 2**40
    largest = max(range(len(weights)), key=amounts.__getitem__)
    for place, got in enumerate(amounts):  # short fractions, so that a ledger stays small
        assert (got / unit).denominator == 1
        exact = Fraction(7, 10) * Fraction(weights[place]) / sum(map(Fraction, weights))
        assert got <= exact or place == largest


@pytest.mark.parametrize(
    "kept", [PureDP("0.1"), ZCDP("0.1"), ApproxDP("0.1", "1e-9"), LocalDP(1)], ids=str
)
def test_what_is_written_is_read_back_exactly(kept):
    assert from_json(to_json(kept)) == kept


RHOS = [Fraction(1, 10**8), Fraction(1, 100), Fraction(1, 2), Fraction(7), Fraction(1000)]
DELTAS = [Fraction(1, 10**30), Fraction(1, 10**9), Fraction(1, 1000), Fraction(1, 2)]


def corollary_13(rho: float, delta: float) -> float:
    """The bound by brute force over a million orders, written independently of the source."""
    order = 1 + np.geomspace(1e-6, 1e9, 1_000_000)
    log_delta = np.log(delta)
    bound = order * rho + np.log1p(-1 / order) - (log_delta + np.log(order)) / (order - 1)
    return float(bound.min())


@pytest.mark.parametrize("rho", RHOS)
@pytest.mark.parametrize("delta", DELTAS)
def test_the_conversion_is_the_best_over_all_orders(rho: Fraction, delta: Fraction) -> None:
    best = max(0.0, corollary_13(float(rho), float(delta)))
    assert float(epsilon_from_zcdp(rho, delta)) == pytest.approx(best, rel=1e-8, abs=1e-9)


def minimum_in_80_digits(rho: Decimal, delta: Decimal) -> Decimal:
    """Corollary 13 at its best order, from the root of the derivative, in long decimals."""
    with localcontext(Context(prec=80)):
        low, high = Decimal("1e-9"), 1 / delta
        for _ in range(250):
            x = (low + high) / 2
            low, high = (low, x) if rho * x * x + (1 + x).ln() > -delta.ln() else (x, high)
        return (1 + x) * rho + (x / (1 + x)).ln() - (delta.ln() + (1 + x).ln()) / x


@pytest.mark.parametrize("rho", ["0.003", "0.5", "41"])
@pytest.mark.parametrize("delta", ["1e-9", "0.01"])
def test_the_conversion_is_rounded_up_and_by_little(rho: str, delta: str) -> None:
    exact = Fraction(minimum_in_80_digits(Decimal(rho), Decimal(delta)))
    assert (
        exact
        <= epsilon_from_zcdp(Fraction(rho), Fraction(delta))
        <= exact * (1 + Fraction(1, 10**13))
    )


def test_the_conversion_beats_the_classical_formula() -> None:
    # Bun, Steinke 2016, proposition 1.3: rho + 2 sqrt(rho log(1/delta))
    for rho in RHOS:
        for delta in DELTAS:
            classical = float(rho) + 2 * math.sqrt(float(rho) * -math.log(delta))
            assert float(epsilon_from_zcdp(rho, delta)) < classical


def test_the_conversion_covers_the_exact_gaussian_curve() -> None:
    # Balle, Wang 2018: delta of the Gaussian mechanism with sensitivity 1 at a given epsilon
    def normal(x: float) -> float:
        return math.erfc(-x / math.sqrt(2)) / 2

    for rho in (0.01, 0.5, 4.0):
        sigma = 1 / math.sqrt(2 * rho)
        epsilon = float(epsilon_from_zcdp(Fraction(rho), Fraction(1, 10**6)))
        exact = normal(0.5 / sigma - epsilon * sigma) - math.exp(epsilon) * normal(
            -0.5 / sigma - epsilon * sigma
        )
        assert 1e-8 < exact <= 1e-6


@settings(derandomize=True, deadline=None, max_examples=60)
@given(
    st.fractions(min_value=Fraction(1, 10**6), max_value=1000, max_denominator=10**6),
    st.integers(min_value=1, max_value=40),
)
def test_the_budget_is_the_largest_that_converts_back(epsilon: Fraction, digits: int) -> None:
    cap = ApproxDP(epsilon, Fraction(1, 10**digits))
    rho = zcdp_budget(cap).rho
    assert epsilon_from_zcdp(rho, cap.delta) <= cap.epsilon
    assert epsilon_from_zcdp(rho * (1 + Fraction(1, 10**9)), cap.delta) > cap.epsilon


def test_the_conversion_grows_with_rho_and_falls_with_delta() -> None:
    epsilons = [epsilon_from_zcdp(Fraction(n, 50), Fraction(1, 10**6)) for n in range(1, 60)]
    assert epsilons == sorted(epsilons)
    epsilons = [epsilon_from_zcdp(Fraction(1, 2), Fraction(1, 2**n)) for n in range(1, 60)]
    assert epsilons == sorted(epsilons)


def test_a_vanishing_or_enormous_rho_still_gives_a_bound() -> None:
    assert 0 < epsilon_from_zcdp(Fraction(1, 10**400), Fraction(1, 10**9)) < Fraction(1, 10**20)
    assert epsilon_from_zcdp(Fraction(10**8), Fraction(1, 10**9)) > 10**8
    assert epsilon_from_zcdp(Fraction(0), Fraction(1, 2)) > 0


@pytest.mark.parametrize(("rho", "delta"), [(-1, "1/2"), (1, 0), (1, 1), (1, -1)])
def test_numbers_outside_their_range_are_refused(rho: int, delta: str) -> None:
    with pytest.raises(InputError, match="must be"):
        epsilon_from_zcdp(Fraction(rho), Fraction(delta))


def test_a_pure_cost_is_half_its_square() -> None:
    assert zcdp_from_pure(Fraction(1, 3)) == Fraction(1, 18)


def test_randomized_response_stays_within_its_converted_rho() -> None:
    # Renyi divergence of binary randomized response, order by order, against order * eps^2 / 2
    for epsilon in (0.1, 1.0, 5.0):
        p = math.exp(epsilon) / (1 + math.exp(epsilon))
        rho = float(zcdp_from_pure(Fraction(epsilon)))
        for order in (1.01, 1.5, 2, 4, 16):
            moment = p**order * (1 - p) ** (1 - order) + (1 - p) ** order * p ** (1 - order)
            assert math.log(moment) / (order - 1) <= order * rho


def test_every_guarantee_can_be_stated_at_a_delta() -> None:
    delta = Fraction(1, 10**6)
    assert as_epsilon_delta(PureDP(2), delta) == ApproxDP(2, delta)
    assert as_epsilon_delta(LocalDP(2), delta) == ApproxDP(2, delta)
    assert as_epsilon_delta(ApproxDP(2, "1e-9"), delta) == ApproxDP(2, delta)
    assert as_epsilon_delta(ZCDP("0.5"), delta).epsilon == epsilon_from_zcdp(Fraction(1, 2), delta)


def test_a_guarantee_is_never_stated_at_a_smaller_delta() -> None:
    with pytest.raises(InputError, match="smaller"):
        as_epsilon_delta(ApproxDP(2, "1e-3"), Fraction(1, 10**6))


def test_a_budget_in_rho_is_the_same_to_the_last_digit_on_every_machine():
    """Twelve digits, rounded down, less one in the last."""
    assert zcdp_budget(ApproxDP(1, "1e-9")).rho == Fraction("0.0149730576734")
