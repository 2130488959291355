"""What a list of discrete Gaussian draws costs, against formulas that share no code with ours."""

import json
import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import InputError
from sfumato.mechanisms import DiscreteGaussian
from sfumato.privacy import (
    ZCDP,
    ApproxDP,
    GaussianNoise,
    epsilon_from_zcdp,
    epsilon_of_noise,
    zcdp_budget,
)
from sfumato.privacy.guarantees import MAX_EPSILON
from sfumato.privacy.plans import (
    GaussianPart,
    GaussianPlan,
    Share,
    from_json,
    largest_plan,
    to_json,
)

DELTA = Fraction(1, 10**9)


def plan(*parts: tuple[float, int, int]) -> GaussianPlan:
    """Of (sigma, coordinates, shift)."""
    return GaussianPlan(
        parts=tuple(
            GaussianPart(
                spread=DiscreteGaussian.for_sigma(sigma).spread, coordinates=n, shift=shift
            )
            for sigma, n, shift in parts
        )
    )


def brute_force_delta(one: GaussianPlan, epsilon: float, reach: int = 40) -> float:
    """The sum of max(0, P - e^epsilon Q) over all vectors of draws, for a few coordinates."""
    x = np.arange(-reach, reach + 1, dtype=float)
    p, q = np.ones(1), np.ones(1)
    for part in one.parts:
        weights = np.exp(-np.square(np.arange(-300, 301) / float(part.spread)))
        for _ in range(part.coordinates):
            moved = np.exp(-np.square((x - part.shift) / float(part.spread))) / weights.sum()
            still = np.exp(-np.square(x / float(part.spread))) / weights.sum()
            p, q = np.outer(p, moved).ravel(), np.outer(q, still).ravel()
    return float(np.maximum(0.0, p - math.exp(epsilon) * q).sum())


def gaussian_epsilon(mu: float, delta: float) -> float:
    """Of the continuous Gaussian mechanism (Balle, Wang 2018, arXiv 1805.06530, theorem 8)."""

    def tail(x: float) -> float:
        return math.erfc(x / math.sqrt(2)) / 2

    low, high = 0.0, 1_000.0
    for _ in range(100):
        e = (low + high) / 2
        lost = tail(e / mu - mu / 2) - math.exp(min(e, 700)) * tail(e / mu + mu / 2)
        low, high = (low, e) if lost <= delta else (e, high)
    return high


@pytest.mark.parametrize(
    "parts",
    [
        [(1.0, 1, 1)],
        [(0.4, 1, 1)],
        [(3.0, 1, 4)],
        [(1.0, 3, 1)],
        [(0.7, 2, 2)],
        [(2.5, 2, 3)],
        [(1.0, 1, 1), (2.0, 1, 1)],
        [(0.6, 2, 1), (1.5, 1, 2)],
    ],
)
@pytest.mark.parametrize("delta", [1e-2, 1e-6, 1e-12])
def test_few_draws_cost_what_all_their_outcomes_add_up_to(
    parts: list[tuple[float, int, int]], delta: float
) -> None:
    one = plan(*parts)
    epsilon = float(one.epsilon(Fraction(delta)))
    assert brute_force_delta(one, epsilon) <= delta
    assert brute_force_delta(one, epsilon * (1 - 1e-3) - 1e-6) > delta  # and hardly more


@pytest.mark.parametrize(
    "parts",
    [
        [(1.0, 20, 1), (0.5, 5, 1)],
        [(2.5, 512, 1), (3.0, 91, 1)],
        [(16.0, 512, 1)],
        [(130.0, 512, 1)],
        [(138.0, 512, 1), (174.0, 91, 1)],
        [(195.0, 1024, 1), (348.0, 91, 2)],
    ],
)
def test_the_composed_epsilon_is_that_of_dp_accounting(parts: list[tuple[float, int, int]]) -> None:
    """It sets 1% of delta aside and rounds losses to 1e-4: 2e-4 of epsilon at most."""
    noises = [
        GaussianNoise(sigma=Fraction(sigma), sensitivity=shift)
        for sigma, n, shift in parts
        for _ in range(n)
    ]
    theirs = float(epsilon_of_noise(noises, DELTA * 100 / 99))
    ours = float(plan(*parts).epsilon(DELTA))
    assert theirs * (1 - 2e-4) <= ours <= theirs * (1 + 1e-3)


@pytest.mark.parametrize("sigma", [12_000.0, 1_200.0, 150.0])
@pytest.mark.parametrize("share", [0.0, 0.1, 0.5])
def test_wide_noise_costs_what_the_continuous_gaussian_does(sigma: float, share: float) -> None:
    rho = 512 / (2 * sigma**2)
    parts = [(math.sqrt(512 / (2 * rho * (1 - share))), 512, 1)]
    if share:
        parts.append((math.sqrt(91 * 4 / (2 * rho * share)), 91, 2))
    found = float(plan(*parts).epsilon(DELTA))
    exact = gaussian_epsilon(math.sqrt(2 * rho), float(DELTA))
    assert exact * (1 - 1e-5) <= found <= exact * (1 + 1e-3)


@pytest.mark.parametrize("epsilon", ["0.01", "0.1", "1", "10", "100"])
def test_the_largest_plan_fills_its_cap_and_beats_the_sum_of_rho(epsilon: str) -> None:
    cap = ApproxDP(epsilon, DELTA)
    shares = [
        Share(coordinates=512, share=Fraction(9, 10)),
        Share(coordinates=91, share=Fraction(1, 10)),
    ]
    found = largest_plan(cap, shares)
    assert found is not None
    assert float(cap.epsilon) * (1 - 1e-3) <= float(found.epsilon(DELTA)) <= float(cap.epsilon)
    assert 1.04 < found.rho / zcdp_budget(cap).rho < 1.15
    assert float(found.parts[1].rho / found.rho) == pytest.approx(0.1, rel=1e-5)
    for part in found.parts:
        assert DiscreteGaussian(spread=part.spread).spread == part.spread  # can be drawn


@pytest.mark.parametrize("epsilon", ["0.01", "1", "100"])
def test_three_percent_less_noise_than_the_largest_plan_is_over_the_cap(epsilon: str) -> None:
    cap = ApproxDP(epsilon, DELTA)
    found = largest_plan(cap, [Share(coordinates=512)])
    assert found is not None
    bold = GaussianPlan(
        parts=(GaussianPart(spread=found.parts[0].spread * 97 / 100, coordinates=512),)
    )
    assert bold.epsilon(DELTA) > cap.epsilon


@given(
    st.sampled_from([0.3, 1.0, 2.0, 5.0, 40.0]),
    st.integers(1, 40),
    st.integers(1, 4),
    st.sampled_from([Fraction(1, 10), Fraction(1, 10**6), Fraction(1, 10**30)]),
)
def test_more_shift_or_more_draws_or_less_noise_never_cost_less(
    sigma: float, n: int, shift: int, delta: Fraction
) -> None:
    epsilon = plan((sigma, n, shift)).epsilon(delta)
    assert epsilon <= plan((sigma, n, shift + 1)).epsilon(delta) * Fraction(1_000_001, 1_000_000)
    assert epsilon <= plan((sigma, n + 1, shift)).epsilon(delta) * Fraction(1_000_001, 1_000_000)
    assert epsilon <= epsilon_from_zcdp(plan((sigma, n, shift)).rho, delta)


@pytest.mark.parametrize("order", [1, -1])
def test_the_order_and_the_division_of_parts_make_no_difference(order: int) -> None:
    halves = plan((50.0, 10, 1), (50.0, 10, 1)).epsilon(DELTA)
    assert float(halves) == pytest.approx(float(plan((50.0, 20, 1)).epsilon(DELTA)), rel=1e-3)
    mixed = [(50.0, 10, 1), (9.0, 3, 2)]
    assert plan(*mixed[::order]).epsilon(DELTA) == plan(*mixed).epsilon(DELTA)


@pytest.mark.parametrize(
    ("parts", "delta"),
    [
        ([(1.5, 2**15, 1)], DELTA),  # losses beyond what floats hold
        ([(0.05, 1, 1)], DELTA),
        ([(10.0, 1, 1)], Fraction(1, 10**400)),
    ],
)
def test_where_no_table_can_be_made_the_sum_of_rho_counts(
    parts: list[tuple[float, int, int]], delta: Fraction
) -> None:
    one = plan(*parts)
    assert one.epsilon(delta) == epsilon_from_zcdp(one.rho, delta)


@pytest.mark.parametrize("cap", [ApproxDP("1e-9", "1e-9"), ApproxDP(5_000, "1e-9")])
def test_there_is_no_plan_for_noise_that_can_not_be_drawn(cap: ApproxDP) -> None:
    assert largest_plan(cap, [Share(coordinates=1)]) is None


def test_a_plan_is_its_rho_where_costs_are_added() -> None:
    one = plan((10.0, 3, 1), (20.0, 5, 2))
    assert one.cost == ZCDP(one.rho)
    assert one.rho == sum(part.coordinates * part.shift**2 / part.spread**2 for part in one.parts)
    assert "8 draws" in str(one)


@st.composite
def any_part(draw: st.DrawFn) -> tuple[float, int, int]:
    """Of rho = n (shift / sigma)^2 / 2 at most 4,500, so that two are within the largest."""
    n, shift = draw(st.integers(1, 99)), draw(st.integers(1, 9))
    least = max(0.1, shift * math.sqrt(n / 9_000))
    return draw(st.floats(least, 1_000)), n, shift


@given(st.lists(any_part(), min_size=1, max_size=2))
def test_a_plan_is_read_back_as_it_was_written(parts: list[tuple[float, int, int]]) -> None:
    one = plan(*parts)
    assert from_json(json.loads(json.dumps(to_json(one)))) == one


def test_a_plan_of_the_largest_rho_is_made_and_more_is_refused() -> None:
    part = GaussianPart(spread=Fraction(1), coordinates=MAX_EPSILON)
    assert GaussianPlan(parts=(part,)).rho == MAX_EPSILON
    with pytest.raises(InputError, match="rho is at most 10000, got 10001"):
        GaussianPlan(parts=(part, GaussianPart(spread=Fraction(1), coordinates=1)))


@pytest.mark.parametrize(
    ("spread", "coordinates", "shift"),
    [
        (Fraction(0), 1, 1),
        (Fraction(2**30), 1, 1),
        (1.5, 1, 1),
        (Fraction(1), 0, 1),
        (Fraction(1), 2**40, 1),
        (Fraction(1), 1, 0),
        (Fraction(1), 1, 2**40),
    ],
)
def test_a_part_that_can_not_be_drawn_is_refused(
    spread: Fraction, coordinates: int, shift: int
) -> None:
    with pytest.raises(InputError, match=r"spread|coordinates|shift"):
        GaussianPart(spread=spread, coordinates=coordinates, shift=shift)


@pytest.mark.parametrize("n", [0, 3])
def test_a_plan_has_one_or_two_parts(n: int) -> None:
    part = GaussianPart(spread=Fraction(10), coordinates=1)
    with pytest.raises(InputError, match="one or two parts"):
        GaussianPlan(parts=(part,) * n)


def test_shares_must_make_a_whole() -> None:
    halves = [
        Share(coordinates=1, share=Fraction(1, 2)),
        Share(coordinates=1, share=Fraction(1, 3)),
    ]
    with pytest.raises(InputError, match="sum to 1"):
        largest_plan(ApproxDP(1, DELTA), halves)


def test_both_directions_have_the_same_losses() -> None:
    """Adding is removing seen from the other table: P against Q as Q against P, by brute force."""
    spread, x = float(DiscreteGaussian.for_sigma(0.8).spread), np.arange(-40, 41, dtype=float)
    p, q = np.exp(-np.square((x - 1) / spread)), np.exp(-np.square(x / spread))
    for epsilon, sides in product([0.1, 1.0, 3.0], [((p, q), (q, p))]):
        found = [np.maximum(0, one - math.exp(epsilon) * other).sum() for one, other in sides]
        assert found[0] == pytest.approx(found[1], rel=1e-12)
