"""Duchi's mechanism for vectors of signs: half-spaces, exact scale, packed answers."""

import math
from fractions import Fraction
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from sfumato.errors import InputError
from sfumato.local.means.duchi import DuchiVector
from sfumato.local.means.grid import discretize
from sfumato.local.mechanism import transition_of
from sfumato.local.probabilities import WORD, exp_below, split_below
from sfumato.randomness import simulation_rng

FALSE_ALARM = 1e-6
epsilons = st.fractions(Fraction(1, 10_000), 32, max_denominator=10**6)


def tally(mechanism, answers):
    counts = np.zeros(mechanism.cells, dtype=np.int64)
    mechanism.add(mechanism.layout.checked_many(answers), counts)
    return counts


def numbers(answers):
    return [int.from_bytes(bytes(row), "little") for row in answers]


def p_value(found, weights):
    observed = np.bincount(found, minlength=len(weights))
    expected = np.array([float(Fraction(w, sum(weights))) for w in weights])
    return chisquare(observed, expected / expected.sum() * len(found)).pvalue


@given(dimensions=st.integers(1, 6), epsilon=epsilons)
@settings(max_examples=30)
def test_no_answer_is_likelier_by_more_than_e_to_the_epsilon(dimensions, epsilon):
    mechanism = DuchiVector(dimensions=dimensions, epsilon=epsilon)
    transition = mechanism.transition()
    assert transition.ratio <= exp_below(epsilon)
    assert {sum(row) for row in transition.weights} == {math.prod(mechanism.sides) * WORD}


@pytest.mark.parametrize("d", [1, 2, 5, 6, 200, 4096])
@pytest.mark.parametrize("epsilon", ["0.0001", 1, 32])
def test_the_weights_keep_the_odds_in_every_dimension(d, epsilon):
    likely, unlikely = DuchiVector(dimensions=d, epsilon=epsilon).weights
    assert 1 < Fraction(likely, unlikely) <= exp_below(Fraction(epsilon))


@pytest.mark.parametrize("d", [2, 4, 6])
def test_right_angles_on_both_sides_as_published_would_break_the_claim(d):
    # The planted bug: uniform on <t, v> >= 0 with odds e^eps, else on <t, v> <= 0.
    keep = split_below(exp_below(Fraction(1)))
    by_distance = [keep if 2 * m < d else WORD if 2 * m == d else WORD - keep for m in range(d + 1)]
    rows = [[by_distance[(a ^ b).bit_count()] for b in range(2**d)] for a in range(2**d)]
    assert transition_of(range(2**d), rows).loss == pytest.approx(math.log(math.e + 1))
    published = published_c(d) * (math.e + 1) / (math.e - 1)
    assert float(DuchiVector(dimensions=d, epsilon=1).scale) < published


@given(dimensions=st.integers(1, 6), epsilon=epsilons)
@settings(max_examples=20)
def test_decoded_signs_have_exactly_the_expectation_of_the_persons(dimensions, epsilon):
    mechanism = DuchiVector(dimensions=dimensions, epsilon=epsilon)
    for own, row in enumerate(mechanism.transition().weights):
        for place in range(dimensions):
            sides = [(1 if answer >> place & 1 else -1) for answer in range(len(row))]
            mean = Fraction(sum(s * w for s, w in zip(sides, row, strict=True)), sum(row))
            assert mechanism.scale * mean == (1 if own >> place & 1 else -1)


def published_c(d):
    """C_d of the paper, by which (E + 1)/(E - 1) is multiplied."""
    if d % 2:
        return Fraction(2 ** (d - 1), comb(d - 1, (d - 1) // 2))
    return Fraction(2 ** (d - 1) + comb(d, d // 2) // 2, comb(d - 1, d // 2))


@pytest.mark.parametrize("d", [1, 3, 5, 7, 9, 11, 63, 65, 201])
def test_in_odd_dimensions_the_scale_is_that_of_the_paper(d):
    mechanism = DuchiVector(dimensions=d, epsilon=1)
    kept = Fraction(2 * mechanism.keep - WORD, WORD)
    assert mechanism.scale * kept == published_c(d)


@pytest.mark.parametrize("d", [2, 4, 10, 64, 200])
def test_in_even_dimensions_the_scale_has_the_right_angles_on_the_other_side(d):
    # own = 2^(d-1) - binom(d, d/2)/2 vectors weigh E, all others 1; their signs agree by
    # binom(d-1, d/2) more often than not.
    odds, own = math.e, 2 ** (d - 1) - comb(d, d // 2) // 2
    scale = (own * odds + 2**d - own) / ((odds - 1) * comb(d - 1, d // 2))
    assert float(DuchiVector(dimensions=d, epsilon=1).scale) == pytest.approx(scale)


@pytest.mark.parametrize("d", [3, 4])
def test_single_and_bulk_answers_follow_the_matrix(d):
    # Chi-square: a false alarm once in a million; an epsilon 20% too large is refused.
    mechanism, own, rng = DuchiVector(dimensions=d, epsilon=1), 5, simulation_rng(31)
    weights = mechanism.transition().weights[own]
    wrong = DuchiVector(dimensions=d, epsilon=Fraction(6, 5)).transition().weights[own]
    bulk = numbers(mechanism.answer_many(np.full(60_000, own), rng=rng))
    singles = [int.from_bytes(mechanism.answer(own, rng=rng), "little") for _ in range(20_000)]
    assert p_value(bulk, weights) > FALSE_ALARM
    assert p_value(singles, weights) > FALSE_ALARM
    assert p_value(bulk, wrong) < FALSE_ALARM


@pytest.mark.parametrize("d", [1, 2, 7, 8, 9, 64, 65, 130])
def test_means_are_recovered_within_their_errors(d):
    # 5 standard errors in each of d dimensions: a false alarm less than once in 10,000.
    mechanism, rng = DuchiVector(dimensions=d, epsilon=2), simulation_rng(32)
    truth = np.linspace(-0.9, 0.9, d)
    signs = np.stack([discretize(np.full(20_000, v), low=-1, high=1, rng=rng) for v in truth], 1)
    means = mechanism.means(tally(mechanism, mechanism.answer_many(signs, rng=rng)))
    for value, (mean, error) in zip(truth, means, strict=True):
        assert abs(mean - value) < 5 * error
        assert error == pytest.approx(math.sqrt(mechanism.variance(value) / 20_000), rel=0.2)


def test_a_record_may_be_given_as_signs_or_as_its_code():
    mechanism = DuchiVector(dimensions=3, epsilon=32)  # so sure that the side never changes
    answers = {mechanism.answer([1, 1, 0], rng=simulation_rng(seed)) for seed in range(40)}
    assert answers == {mechanism.answer(3, rng=simulation_rng(seed)) for seed in range(40)}
    assert {int.from_bytes(a, "little") for a in answers} == {0b011, 0b001, 0b010, 0b111}
    rows = mechanism.answer_many(np.array([[1, 1, 0]] * 9), rng=simulation_rng(1))
    codes = mechanism.answer_many(np.array([3] * 9), rng=simulation_rng(1))
    assert rows.tolist() == codes.tolist()


@pytest.mark.parametrize("d", [1, 5, 8, 63, 64, 65, 100])
def test_answers_are_of_the_layout_with_unused_bits_zero(d):
    mechanism, rng = DuchiVector(dimensions=d, epsilon=1), simulation_rng(33)
    answers = mechanism.answer_many(np.ones((50, d), np.uint8), rng=rng)
    assert mechanism.layout.checked_many(answers).shape == (50, (d + 7) // 8)
    assert mechanism.layout.checked(mechanism.answer([1] * d, rng=rng))


def test_no_answers_are_not_estimable_and_one_has_the_error_of_the_formula():
    mechanism = DuchiVector(dimensions=2, epsilon=1)
    with pytest.raises(InputError, match="not estimable"):
        mechanism.means(np.array([0, 0, 0]))
    (mean, error), _ = mechanism.means(np.array([1, 0, 1]))
    assert mean == pytest.approx(float(mechanism.scale))
    assert error == pytest.approx(math.sqrt(mechanism.variance(1.0)))


def test_nobody_answers_nothing():
    mechanism = DuchiVector(dimensions=9, epsilon=1)
    assert mechanism.answer_many([], rng=simulation_rng(0)).shape == (0, 2)
    assert mechanism.answer_many(np.ones((0, 9), int), rng=simulation_rng(0)).shape == (0, 2)


def test_bad_input_is_refused():
    mechanism, rng = DuchiVector(dimensions=3, epsilon=1), simulation_rng(0)
    for code in (8, -1, [0, 1], [0, 1, 2], [0, 1, 0.5]):
        with pytest.raises(InputError):
            mechanism.answer(code, rng=rng)
    for codes in ([[0, 1]], [[0, 1, 2]], [8], [[0.5, 1, 1]], [[[1]]]):
        with pytest.raises(InputError):
            mechanism.answer_many(codes, rng=rng)
    for counts in ([1, 1, 1], [2, 0, 0, 1], [0.0, 0.0, 0.0, 1.0]):
        with pytest.raises(InputError, match="tally"):
            mechanism.means(np.array(counts))
    for dimensions in (0, 4097, 1.5):
        with pytest.raises(InputError):
            DuchiVector(dimensions=dimensions, epsilon=1)
    with pytest.raises(InputError, match="fewer dimensions"):
        DuchiVector(dimensions=4096, epsilon=1).transition()
    with pytest.raises(InputError):
        mechanism.variance(2.0)
