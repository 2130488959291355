"""Selection: what it refuses, its extremes and its stated probabilities."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.errors import InputError
from sfumato.noise import ExponentialMechanism, PermuteAndFlip, selection_for
from sfumato.privacy.guarantees import ZCDP, PureDP
from sfumato.randomness import simulation_rng

BOTH = pytest.mark.parametrize("kind", [PermuteAndFlip, ExponentialMechanism])


def scores(*values: int):
    return np.array(values, dtype=np.int64)


def by_enumeration(accept):
    """Permute-and-flip over all orders: the definition, in factorial time."""
    out = np.zeros(len(accept))
    orders = list(itertools.permutations(range(len(accept))))
    for order in orders:
        reached = 1.0
        for i in order:
            out[i] += reached * accept[i] / len(orders)
            reached *= 1 - accept[i]
    return out


def test_permute_and_flip_probabilities_are_those_of_all_orders():
    spec, values = PermuteAndFlip(epsilon=Fraction(3, 2), sensitivity=2), scores(4, 4, 1, -3, 0, 2)
    accept = np.exp(-float(spec.rate) * (values.max() - values))
    assert spec.probabilities(values) == pytest.approx(by_enumeration(accept), rel=1e-12)


def test_permute_and_flip_never_expects_a_worse_score_than_the_exponential_mechanism():
    rng = simulation_rng(0)
    for n in (2, 5, 40):
        values = rng.below(20, n)
        flipped, proposed = (
            kind(epsilon=Fraction(1)).probabilities(values) @ values
            for kind in (PermuteAndFlip, ExponentialMechanism)
        )
        assert flipped >= proposed - 1e-9


@BOTH
def test_probabilities_sum_to_one_over_the_allowed(kind):
    allowed = np.array([True, False, True, True])
    p = kind(epsilon=Fraction(1)).probabilities(scores(1, 99, 2, 3), allowed)
    assert p.sum() == pytest.approx(1, rel=1e-12)
    assert p[1] == 0


@BOTH
def test_only_allowed_candidates_are_chosen_and_only_they_set_the_best_score(kind):
    rng, allowed = simulation_rng(0), np.array([True, False, True])
    chosen = {
        kind(epsilon=Fraction(1)).select(scores(0, 10**9, 0), rng=rng, allowed=allowed)
        for _ in range(100)
    }
    assert chosen == {0, 2}


@BOTH
def test_the_widest_scores_do_not_overflow(kind):
    values = scores(-(2**63), 2**63 - 1, -1, 0)
    for seed in range(20):
        assert kind(epsilon=Fraction(10_000)).select(values, rng=simulation_rng(seed)) == 1
        assert kind(epsilon=Fraction(1, 100)).select(values, rng=simulation_rng(seed)) == 1


@BOTH
def test_a_single_candidate_is_chosen(kind):
    assert kind(epsilon=Fraction(1)).select(scores(-7), rng=simulation_rng(0)) == 0


@BOTH
def test_the_best_of_a_hundred_thousand_candidates_is_found(kind):
    values = np.zeros(100_000, dtype=np.int64)
    values[77] = 10**6
    assert kind(epsilon=Fraction(1)).select(values, rng=simulation_rng(0)) == 77


@BOTH
def test_scores_that_are_not_whole_numbers_are_refused(kind):
    spec, rng = kind(epsilon=Fraction(1)), simulation_rng(0)
    for bad in (np.array([0.5, 1.0]), np.array([1, 2], np.int32), [1, 2], np.zeros((2, 2), int)):
        with pytest.raises(TypeError, match="scores must be"):
            spec.select(bad, rng=rng)
    for mask in (np.array([0, 1]), np.array([True])):
        with pytest.raises(TypeError, match="allowed must be"):
            spec.select(scores(1, 2), rng=rng, allowed=mask)


@BOTH
def test_nothing_to_choose_from_is_refused(kind):
    spec, rng = kind(epsilon=Fraction(1)), simulation_rng(0)
    for values, allowed in ((scores(), None), (scores(1, 2), np.array([False, False]))):
        with pytest.raises(InputError, match="may be chosen"):
            spec.select(values, rng=rng, allowed=allowed)


@BOTH
@pytest.mark.parametrize(
    ("epsilon", "sensitivity"),
    [(0.5, 1), (Fraction(0), 1), (Fraction(1), 0), (Fraction(1), 1.5), (Fraction(1, 10**12), 1)],
)
def test_a_selection_is_valid_from_birth(kind, epsilon, sensitivity):
    with pytest.raises(InputError):
        kind(epsilon=epsilon, sensitivity=sensitivity)


def test_probabilities_of_too_many_candidates_are_refused():
    with pytest.raises(InputError, match="1000 candidates at most, got 1001"):
        PermuteAndFlip(epsilon=Fraction(1)).probabilities(np.zeros(1001, dtype=np.int64))


def test_the_kind_of_cost_picks_the_selection():
    pure = selection_for(PureDP(0.1), 2)
    assert pure == PermuteAndFlip(epsilon=Fraction(1, 10), sensitivity=2)
    assert pure.guarantee == PureDP(0.1)
    concentrated = selection_for(ZCDP(Fraction(1, 2)), 1)
    assert concentrated == ExponentialMechanism(epsilon=Fraction(2))
    assert concentrated.guarantee == PureDP(2)
    assert concentrated.zcdp_guarantee == ZCDP(Fraction(1, 2))


@given(rho=st.fractions(Fraction(1, 10**12), 10_000, max_denominator=10**30))
@settings(derandomize=True, deadline=None)
def test_a_selection_for_zcdp_keeps_the_cost_and_wastes_nearly_nothing(rho):
    selection = selection_for(ZCDP(rho), 1)
    assert rho * (1 - Fraction(1, 10**6)) <= selection.zcdp_guarantee.rho <= rho


@BOTH
@given(
    epsilon=st.fractions(Fraction(1, 10**6), 10_000, max_denominator=10**20),
    sensitivity=st.integers(1, 10**3),
)
@settings(derandomize=True, deadline=None)
def test_the_rate_is_never_rounded_up(kind, epsilon, sensitivity):
    rate = kind(epsilon=epsilon, sensitivity=sensitivity).rate
    assert 1 - Fraction(1, 10**9) <= rate * 2 * sensitivity / epsilon <= 1


def test_a_thousand_candidates_still_have_stated_probabilities():
    found = PermuteAndFlip(epsilon=Fraction(1)).probabilities(np.zeros(1_000, dtype=np.int64))
    assert found == pytest.approx(np.full(1_000, 1e-3))
    with pytest.raises(InputError, match="at most"):
        PermuteAndFlip(epsilon=Fraction(1)).probabilities(np.zeros(1_001, dtype=np.int64))
