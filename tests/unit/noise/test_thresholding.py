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
from sfumato.privacy.guarantees import ApproxDP
from sfumato.randomness import simulation_rng

epsilons = st.sampled_from(["0.05", "0.3", "1", "2.5"])
deltas = st.sampled_from(["0.2", "0.01", "1e-4", "1e-9"])
changes = st.integers(1, 4)


def chances(spec: Thresholding, rows: int, above: int | None = None) -> list[Decimal]:
    """Of not being shown, and of each sum from the threshold on, to 50 digits."""
    with localcontext(Context(prec=50)):
        q = (-1 / (Decimal(spec.scale.numerator) / Decimal(spec.scale.denominator))).exp()
        weights = {x: q ** abs(x) for x in range(-spec.reach, spec.reach + 1)}
        whole = sum(weights.values())
        first = (spec.reach if above is None else above) + 1
        shown = [weights.get(o - rows, Decimal(0)) / whole for o in range(first, 3 * spec.reach)]
        if rows == 0:
            shown = [Decimal(0)] * len(shown)
        return [1 - sum(shown), *shown]


def divergence(one: list[Decimal], other: list[Decimal], epsilon: Fraction) -> Decimal:
    with localcontext(Context(prec=50)):
        odds = (Decimal(epsilon.numerator) / Decimal(epsilon.denominator)).exp()
        return sum((max(Decimal(0), p - odds * q) for p, q in zip(one, other, strict=True)))


def worst(spec: Thresholding, epsilon: Fraction, moved: int = 1, above: int | None = None) -> float:
    """The largest divergence between counts that are ``moved`` apart, whatever they are."""
    rows = range(spec.reach + 2 * moved)
    pairs = [(n, n + moved) for n in rows] + [(n + moved, n) for n in rows]
    cached = {n: chances(spec, n, above) for n in range(spec.reach + 3 * moved)}
    return float(max(divergence(cached[a], cached[b], epsilon) for a, b in pairs))


@given(epsilons, st.sampled_from(["0.2", "0.01", "1e-3"]))
def test_one_row_more_or_less_costs_exactly_what_is_promised(epsilon: str, delta: str) -> None:
    cost = ApproxDP(max(Fraction(epsilon), Fraction(1, 4)), delta)
    spec = Thresholding.for_cost(cost, 1)
    promised = spec.guarantee()
    assert promised.epsilon <= cost.epsilon
    assert promised.delta <= cost.delta
    found = worst(spec, promised.epsilon)
    assert found == pytest.approx(float(promised.delta), rel=1e-9)


@given(st.sampled_from(["0.5", "1", "2.5"]), st.sampled_from(["0.2", "0.01"]), st.integers(2, 4))
def test_several_rows_in_one_text_stay_within_the_cost(eps: str, delta: str, moved: int) -> None:
    cost = ApproxDP(eps, delta)
    spec = Thresholding.for_cost(cost, moved)
    assert worst(spec, cost.epsilon, moved) <= float(cost.delta) * (1 + 1e-12)


@given(st.sampled_from(["1", "2.5"]), st.sampled_from(["0.2", "0.05"]))
def test_two_rows_in_two_texts_stay_within_the_cost(epsilon: str, delta: str) -> None:
    """All pairs of counts up to the threshold, as a joint distribution."""
    cost = ApproxDP(epsilon, delta)
    spec = Thresholding.for_cost(cost, 2)
    each = [np.array([float(p) for p in chances(spec, n)]) for n in range(spec.reach + 3)]
    odds, found = math.exp(cost.epsilon), 0.0
    for n in range(spec.reach + 2):
        for m in range(spec.reach + 2):
            one = np.multiply.outer(each[n], each[m])
            other = np.multiply.outer(each[n + 1], each[m + 1])
            found = max(found, np.maximum(one - odds * other, 0).sum())
            found = max(found, np.maximum(other - odds * one, 0).sum())
    assert found <= float(cost.delta) * (1 + 1e-9)


@given(epsilons, deltas, changes)
def test_the_text_of_one_row_is_shown_with_probability_at_most_delta(eps, delta, moved):
    cost = ApproxDP(eps, delta)
    spec = Thresholding.for_cost(cost, moved)
    alone = float(spec.pmf(spec.reach))
    assert 0 < alone <= float(cost.delta)
    assert float(spec.guarantee().delta) == pytest.approx(alone, rel=1e-9)


@given(epsilons, deltas, changes)
def test_no_lower_threshold_would_keep_the_promise(eps, delta, moved):
    cost = ApproxDP(eps, delta)
    spec = Thresholding.for_cost(cost, moved)
    if spec.reach > 1:
        lower = Thresholding(scale=spec.scale, reach=spec.reach - 1)
        assert lower.guarantee(moved).delta > cost.delta


@pytest.mark.parametrize("delta", ["0.2", "0.01"])
def test_a_threshold_one_row_lower_is_caught(delta):
    """The companion: the check of the guarantee sees a single row's difference."""
    cost = ApproxDP(1, delta)
    spec = Thresholding.for_cost(cost, 1)
    assert worst(spec, cost.epsilon, above=spec.reach - 1) > float(cost.delta)


def test_half_the_noise_is_caught():
    cost = ApproxDP(1, "0.01")
    spec = Thresholding.for_cost(cost, 1)
    halved = Thresholding(scale=spec.scale / 2, reach=spec.reach)
    assert worst(halved, cost.epsilon) > 0.1


def test_the_threshold_is_lower_than_that_of_noise_without_end():
    """1 + ln(1 / (2 delta)) / epsilon, of Korolova et al. 2009, would hide more."""
    spec = Thresholding.for_cost(ApproxDP("0.02", "1e-10"), 1)
    assert spec.reach < 0.85 * (1 + math.log(1 / 2e-10) / 0.02)


def test_draws_follow_the_stated_probabilities_and_end_at_the_reach():
    """Chi-square over 9 values, 100,000 draws: above 40 once in 10^5; 30% more noise is seen."""
    spec = Thresholding(scale=Fraction(2), reach=4)
    drawn = spec.sample(100_000, rng=simulation_rng(1))
    values = np.arange(-4, 5)
    counts = np.array([(drawn == value).sum() for value in values])
    assert counts.sum() == drawn.size
    expected = spec.pmf(values) * drawn.size
    assert expected.sum() == pytest.approx(drawn.size)
    assert ((counts - expected) ** 2 / expected).sum() < 40
    wrong = Thresholding(scale=Fraction(26, 10), reach=4).pmf(values) * drawn.size
    assert ((counts - wrong) ** 2 / wrong).sum() > 400


def test_what_is_shown_is_above_the_reach_and_all_else_is_not_told():
    spec = Thresholding.for_cost(ApproxDP(1, "1e-9"), 1)
    shown = spec.show([1] * 1_000 + [5 * spec.reach] * 1_000, rng=simulation_rng(2))
    assert (shown[:1_000] == NOT_SHOWN).all()
    assert (shown[1_000:] > spec.reach).all()
    assert spec.sigma_counts == pytest.approx(1.3, abs=0.1)


def test_values_that_do_not_occur_are_refused():
    spec = Thresholding.for_cost(ApproxDP(1, "1e-9"), 1)
    with pytest.raises(InputError, match="only values that occur"):
        spec.show([3, 0], rng=simulation_rng(0))
    assert spec.show([], rng=simulation_rng(0)).size == 0


@pytest.mark.parametrize(("scale", "reach"), [(Fraction(0), 3), (Fraction(1), 0), (1.5, 3)])
def test_what_can_not_be_is_refused(scale, reach):
    with pytest.raises(InputError):
        Thresholding(scale=scale, reach=reach)


def test_a_cost_that_buys_nothing_of_use_is_refused():
    with pytest.raises(InputError, match="too large to be of use"):
        Thresholding.for_cost(ApproxDP("1e-9", "1e-9"), 1)


def test_a_sum_at_the_threshold_is_hidden_and_the_next_one_is_shown():
    """The value of one row is shown only if its noise is the largest there is: 5 standard errors
    are a false alarm in 1.7 million, and a threshold one lower shows it 2.6 times as often."""
    spec, draws = Thresholding(scale=Fraction(1), reach=3), 200_000
    shown = spec.show([1] * draws, rng=simulation_rng(5))
    assert set(shown[shown != NOT_SHOWN].tolist()) == {4}
    chance = float(spec.pmf(3))
    assert (shown == 4).mean() == pytest.approx(chance, abs=5 * math.sqrt(chance / draws))


def test_noise_beyond_the_reach_has_no_probability():
    spec = Thresholding(scale=Fraction(2), reach=4)
    assert spec.pmf([-6, -5, 5, 6]).tolist() == [0.0] * 4
    assert spec.pmf(np.arange(-4, 5)).sum() == pytest.approx(1)


def test_the_lowest_threshold_is_taken_where_delta_is_large():
    spec = Thresholding.for_cost(ApproxDP(3, "0.4"), 1)
    assert spec.reach == 1
    narrow = Thresholding(scale=Fraction(2), reach=np.int8(100))
    assert type(narrow.reach) is int
