"""Thresholds for values that nobody declared: the guarantee is computed, not believed."""

import math
from decimal import Context, Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import InputError
from sfumato.noise.thresholding import NOT_SHOWN, Thresholding
from sfumato.privacy import OnePerson, OneRow, epsilon_from_zcdp
from sfumato.privacy.guarantees import ApproxZCDP
from sfumato.randomness import simulation_rng

ROW = OneRow()
REPLACED = OneRow(neighbors="replace")
rhos = st.sampled_from(["0.002", "0.02", "0.125", "1", "3"])
deltas = st.sampled_from(["0.01", "1e-4", "5e-10"])
units = st.sampled_from([
    ROW, REPLACED, OnePerson(max_rows=3, column="who"),
    OnePerson(max_rows=2, column="who", neighbors="replace"),
])  # fmt: skip
columns = st.integers(1, 12)


def exact_tail(spec: Thresholding, least: int) -> Decimal:
    """P(noise >= least), summed term by term to 50 digits."""
    with localcontext(Context(prec=50)):
        s = Decimal(spec.noise.spread.numerator) / Decimal(spec.noise.spread.denominator)
        end = max(least, 0) + 40 * int(s) + 40
        weights = {k: (-((k / s) ** 2)).exp() for k in range(end)}
        return sum(weights[k] for k in range(least, end)) / (2 * sum(weights.values()) - 1)


@given(rhos, deltas, units, columns)
def test_it_costs_what_was_to_be_paid_or_hardly_less(rho, delta, protect, d):
    cost = ApproxZCDP(rho, delta)
    promised = Thresholding.for_cost(cost, protect, columns=d).guarantee()
    assert promised.rho <= cost.rho
    assert promised.rho >= cost.rho * (1 - Fraction(1, 10**6))
    assert promised.delta <= cost.delta


@given(rhos, deltas, units, st.integers(1, 3))
def test_texts_of_one_unit_alone_are_shown_with_a_probability_of_at_most_delta(
    rho, delta, protect, d
):
    """However K rows are divided among texts that nobody else has, in each of d columns."""
    cost = ApproxZCDP(rho, delta)
    spec = Thresholding.for_cost(cost, protect, columns=d)
    k = protect.rows
    divisions = [[k], [1] * k, *([k - 1, 1] for _ in range(k > 1))]
    worst = max(
        sum(exact_tail(spec, spec.reach + 1 - rows) for rows in division) for division in divisions
    )
    assert d * worst <= cost.delta
    assert d * worst <= spec.guarantee().delta


@given(rhos, deltas, units, columns)
def test_no_lower_threshold_would_keep_the_promise(rho, delta, protect, d):
    cost = ApproxZCDP(rho, delta)
    spec = Thresholding.for_cost(cost, protect, columns=d)
    if spec.reach > protect.rows:
        lower = Thresholding(
            noise=spec.noise, protect=protect, columns=d, reach=spec.reach - 1
        ).guarantee()
        assert lower.delta > cost.delta


@pytest.mark.parametrize(("rho", "delta"), [("0.005", "1e-9"), ("0.05", "1e-4"), ("0.5", "1e-3")])
def test_a_threshold_one_row_lower_is_caught(rho, delta):
    """The companion: the exact tail sees a single row's difference."""
    spec = Thresholding.for_cost(ApproxZCDP(rho, delta), ROW, columns=1)
    assert exact_tail(spec, spec.reach) <= Decimal(delta)
    assert exact_tail(spec, spec.reach - 1) > Decimal(delta)


@given(rhos, st.integers(1, 6))
def test_the_bound_of_the_tail_is_never_below_it_and_close_far_out(rho, sigmas):
    spec = Thresholding.for_cost(ApproxZCDP(rho, "1e-9"), ROW, columns=1)
    least = max(1, round(sigmas * spec.noise.sigma_counts))
    at = Thresholding(noise=spec.noise, protect=ROW, columns=1, reach=max(least, 1)).guarantee()
    exact = exact_tail(spec, max(least, 1))
    assert Fraction(exact) <= at.delta
    if sigmas >= 4:
        assert at.delta <= Fraction(exact) * Fraction(108, 100)


def divergence(spec: Thresholding, rows: int, other: int, epsilon: Fraction) -> float:
    """The exact hockey-stick divergence of what is shown of a text."""
    sums = np.arange(rows + 40 * math.ceil(spec.noise.sigma_counts) + spec.reach)

    def chances(n: int) -> np.ndarray:
        shown = np.where((sums > spec.reach) & (n > 0), spec.noise.pmf(sums - n), 0.0)
        return np.array([1 - shown.sum(), *shown])

    excess = chances(rows) - math.exp(epsilon) * chances(other)
    return float(np.maximum(excess, 0).sum())


@pytest.mark.parametrize("protect", [ROW, OnePerson(max_rows=3, column="who")], ids=str)
@pytest.mark.parametrize("second", ["1e-2", "1e-4"])
def test_rows_of_one_text_cost_at_most_what_is_promised(protect, second):
    """At every number of others' rows, also none: epsilon of rho, and the sum of both deltas."""
    cost, k = ApproxZCDP("0.05", "1e-3"), protect.rows
    spec = Thresholding.for_cost(cost, protect, columns=1)
    epsilon = epsilon_from_zcdp(cost.rho, Fraction(second))
    most = float(cost.delta + Fraction(second))
    pairs = [(n, n + k) for n in range(2 * spec.reach)]
    worst = max(
        max(divergence(spec, a, b, epsilon), divergence(spec, b, a, epsilon)) for a, b in pairs
    )
    assert worst <= most * (1 + 1e-9)


def test_half_the_noise_is_caught():
    cost = ApproxZCDP("0.05", "1e-3")
    spec = Thresholding.for_cost(cost, ROW, columns=1)
    halved = Thresholding(
        noise=type(spec.noise).for_sigma(spec.noise.sigma_counts / 4),
        protect=ROW, columns=1, reach=spec.reach,
    )  # fmt: skip
    epsilon = epsilon_from_zcdp(cost.rho, Fraction("1e-4"))
    assert divergence(halved, 3 * spec.reach + 1, 3 * spec.reach, epsilon) > 2e-3


def test_noise_grows_with_the_root_of_the_columns_and_with_the_rows_of_a_person():
    def sigma(protect, d):
        cost = ApproxZCDP("0.0016", "5e-10")
        return Thresholding.for_cost(cost, protect, columns=d).noise.sigma_counts

    one = sigma(ROW, 1)
    assert sigma(ROW, 9) == pytest.approx(3 * one, rel=1e-6)
    assert sigma(REPLACED, 1) == pytest.approx(2**0.5 * one, rel=1e-6)
    assert sigma(OnePerson(max_rows=4, column="who"), 1) == pytest.approx(4 * one, rel=1e-6)


def test_the_threshold_is_that_of_the_formula():
    """T = K + sigma z(1 - delta / (2 K d)): 353 rows at ten columns of texts of bank.csv."""
    spec = Thresholding.for_cost(ApproxZCDP("0.00162", "5e-10"), ROW, columns=10)
    z = 6.47  # of a tail of 5e-11
    assert spec.reach + 1 == pytest.approx(1 + z * spec.noise.sigma_counts, rel=0.01)
    assert 340 < spec.reach < 370


def test_what_is_shown_is_above_the_reach_and_all_else_is_not_told():
    spec = Thresholding.for_cost(ApproxZCDP("0.5", "1e-9"), ROW, columns=1)
    shown = spec.show([1] * 1_000 + [5 * spec.reach] * 1_000, rng=simulation_rng(2))
    assert (shown[:1_000] == NOT_SHOWN).all()
    assert (shown[1_000:] > spec.reach).all()


def test_a_sum_at_the_threshold_is_hidden_and_the_next_one_is_shown():
    """5 standard errors are a false alarm in 1.7 million; one lower shows half as often again."""
    spec = Thresholding.for_cost(ApproxZCDP("0.5", "1e-3"), ROW, columns=1)
    draws = 100_000
    shown = spec.show([spec.reach] * draws, rng=simulation_rng(5))
    assert shown[shown != NOT_SHOWN].min() == spec.reach + 1
    chance = float(spec.noise.pmf(np.arange(1, 60)).sum())
    band = 5 * math.sqrt(chance * (1 - chance) / draws)
    assert (shown != NOT_SHOWN).mean() == pytest.approx(chance, abs=band)


def test_values_that_do_not_occur_are_refused():
    spec = Thresholding.for_cost(ApproxZCDP("0.5", "1e-9"), ROW, columns=1)
    with pytest.raises(InputError, match="only values that occur"):
        spec.show([3, 0], rng=simulation_rng(0))
    assert spec.show([], rng=simulation_rng(0)).size == 0


@pytest.mark.parametrize("wrong", [{"reach": 0}, {"columns": 0}, {"reach": 1.5}])
def test_what_can_not_be_is_refused(wrong):
    spec = Thresholding.for_cost(ApproxZCDP("0.5", "1e-9"), ROW, columns=1)
    with pytest.raises(InputError):
        Thresholding(**{"noise": spec.noise, "protect": ROW, "columns": 1, "reach": 9, **wrong})


def test_a_cost_that_buys_nothing_of_use_is_refused():
    with pytest.raises(InputError):
        Thresholding.for_cost(ApproxZCDP("1e-18", "1e-9"), ROW, columns=1)
