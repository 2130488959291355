"""Generalized randomized response: exact ratios, the reciprocal division, its distribution."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.stats import chisquare

from sfumato.errors import InputError
from sfumato.local.frequency.grr import Grr, ResponseWeights
from sfumato.local.kernels import add_histogram, respond
from sfumato.local.probabilities import WORD, exp_below
from sfumato.privacy.guarantees import LocalDP
from sfumato.randomness import simulation_rng

epsilons = st.fractions(Fraction(1, 10_000), 32, max_denominator=10**6)
sizes = st.integers(2, 1_000_000)
FALSE_ALARM = 1e-6


@given(epsilon=epsilons, categories=sizes)
@example(epsilon=Fraction(1, 10_000), categories=1_000_000)
@example(epsilon=Fraction(32), categories=1_000_000)
def test_the_odds_are_at_most_e_to_the_epsilon_and_hardly_less(epsilon, categories):
    weights = Grr(categories=categories, epsilon=epsilon).weights
    assert weights.keep + (categories - 1) * weights.share == WORD
    odds = exp_below(epsilon)
    assert odds * (1 - Fraction(1, 10**4)) < Fraction(weights.keep, weights.share) <= odds


@given(epsilon=epsilons, categories=st.integers(2, 12))
def test_the_whole_matrix_keeps_the_promise(epsilon, categories):
    transition = Grr(categories=categories, epsilon=epsilon).transition()
    assert all(sum(row) == WORD for row in transition.weights)
    assert 1 < transition.ratio <= exp_below(epsilon)


def careless(epsilon: Fraction, categories: int) -> Fraction:
    """The odds of the plain threshold floor(p 2^64) with the rest shared by a multiply-high."""
    odds = exp_below(epsilon)
    keep = int(WORD * odds // (odds + categories - 1))
    return Fraction(keep, (WORD - keep) // (categories - 1))


def test_a_careless_threshold_breaks_the_promise_in_most_settings():
    settings = [(Fraction(e, 16), m) for e in range(1, 65) for m in (3, 7, 16, 100, 1000)]
    surely_above = 1 + Fraction(1, 10**50)
    broken = [careless(e, m) > exp_below(e) * surely_above for e, m in settings]
    assert sum(broken) > len(settings) / 2
    kept = [Grr(categories=m, epsilon=e).weights for e, m in settings]
    odds = [exp_below(e) for e, _ in settings]
    assert all(Fraction(w.keep, w.share) <= o for w, o in zip(kept, odds, strict=True))


def edge_words(weights: ResponseWeights) -> list[int]:
    others = weights.codes - 1
    multiples = {0, 1, 2, others // 2, others - 1, others}
    words = {weights.keep + weights.share * k + d for k in multiples for d in (-1, 0, 1)}
    words |= {0, 1, weights.keep - 1, weights.keep, WORD // 2, WORD - 1}
    return sorted(word for word in words if 0 <= word < WORD)


def by_division(weights: ResponseWeights, code: int, word: int) -> int:
    if word < weights.keep:
        return code
    other = (word - weights.keep) // weights.share
    return other + (other >= code)


@given(epsilon=epsilons, categories=sizes, data=st.data())
@example(epsilon=Fraction(32), categories=2, data=None)
@example(epsilon=Fraction(1, 10_000), categories=2, data=None)
def test_the_compiled_reciprocal_is_a_division_at_every_edge(epsilon, categories, data):
    code = 0 if data is None else data.draw(st.integers(0, categories - 1))
    weights = Grr(categories=categories, epsilon=epsilon).weights
    words = edge_words(weights)
    if data is not None:
        words += data.draw(st.lists(st.integers(0, WORD - 1), max_size=20))
    out = np.empty(len(words), np.uint32)
    codes = np.full(len(words), code, np.uint32)
    numbers = (weights.keep, *weights.reciprocal)
    respond(np.array(words, np.uint64), codes, out, *map(np.uint64, numbers))
    assert out.tolist() == [by_division(weights, code, word) for word in words]


def test_the_same_words_give_the_same_answers_alone_and_in_bulk():
    mechanism = Grr(categories=300, epsilon=1)
    codes = simulation_rng(1).below(300, 1000)
    alone, bulk = simulation_rng(2), simulation_rng(2)
    answers = [mechanism.answer(int(code), rng=alone) for code in codes]
    assert mechanism.answer_many(codes, rng=bulk).tolist() == answers


def chi_square_p(mechanism: Grr, claimed: Grr, code: int, n: int) -> float:
    answers = mechanism.answer_many(np.full(n, code), rng=simulation_rng(3))
    expected = claimed.transition().probabilities()[code] * n
    return float(chisquare(np.bincount(answers, minlength=expected.size), expected).pvalue)


@pytest.mark.parametrize("code", [0, 3, 6])
def test_answers_have_the_stated_probabilities_and_a_larger_epsilon_is_seen(code):
    """False-alarm rate 1e-6 for each code; an epsilon 20% too large is rejected."""
    right, wrong = Grr(categories=7, epsilon=1), Grr(categories=7, epsilon=1.2)
    assert chi_square_p(right, right, code, 100_000) > FALSE_ALARM
    assert chi_square_p(wrong, right, code, 100_000) < FALSE_ALARM


@pytest.mark.parametrize(
    ("categories", "figures"),
    [
        (2, [3.918, 0.9207, 0.1810, 0.0190]),
        (16, [37.18, 5.662, 0.5240, 0.0239]),
        (128, [303.3, 43.60, 3.268, 0.0629]),
    ],
)
def test_the_variances_are_those_of_the_specification(categories, figures):
    found = [Grr(categories=categories, epsilon=e).variance() for e in (0.5, 1, 2, 4)]
    assert found == pytest.approx(figures, rel=2e-3)


def test_the_measured_error_is_the_stated_one_and_not_that_of_a_larger_epsilon():
    """30 runs of 16 unequal categories: the mean of n MSE / variance has sd 0.07, and the band
    a false-alarm rate of 2e-4. The variance of an epsilon 20% larger is rejected."""
    mechanism, n = Grr(categories=16, epsilon=1), 20_000
    codes = np.minimum(simulation_rng(4).below(40, n), 15)
    truth = np.bincount(codes, minlength=16) / n
    wrong = Grr(categories=16, epsilon=1.2)
    rng, errors = simulation_rng(5), []
    for _ in range(30):
        counts = np.zeros(mechanism.cells, np.int64)
        mechanism.add(mechanism.answer_many(codes, rng=rng), counts)
        p, q = float(mechanism.p), float(mechanism.q)
        errors.append((mechanism.supports(counts) / n - q) / (p - q) - truth)
    measured = n * np.mean(np.square(errors), axis=0)
    right_ratio, wrong_ratio = (
        np.mean(measured / [spec.variance(f) for f in truth]) for spec in (mechanism, wrong)
    )
    assert 0.75 < right_ratio < 1.25 < wrong_ratio


@pytest.mark.parametrize("n", [0, 1, 3, 4, 39, 40, 4_001])
def test_counting_in_banks_is_counting(n):
    answers = simulation_rng(6).below(10, n).astype(np.uint8)
    counts = np.arange(10, dtype=np.int64)
    add_histogram(answers, counts)
    assert counts.tolist() == (np.bincount(answers, minlength=10) + np.arange(10)).tolist()


@pytest.mark.parametrize("epsilon", [0, -1, float("nan"), float("inf"), 1000, "x", None, True])
def test_an_unusable_epsilon_is_refused(epsilon):
    with pytest.raises(InputError, match="epsilon"):
        Grr(categories=4, epsilon=epsilon)


@pytest.mark.parametrize("categories", [0, 1, -3, 2.0, True, 1_000_001])
def test_an_unusable_number_of_categories_is_refused(categories):
    with pytest.raises(InputError, match="categories"):
        Grr(categories=categories, epsilon=1)


@pytest.mark.parametrize("code", [-1, 4, 1.0, "1", True])
def test_a_code_outside_is_refused_before_a_word_is_drawn(code):
    rng, untouched = simulation_rng(7), simulation_rng(7)
    with pytest.raises(InputError, match=r"code|whole"):
        Grr(categories=4, epsilon=1).answer(code, rng=rng)
    with pytest.raises(InputError, match=r"codes|whole"):
        Grr(categories=4, epsilon=1).answer_many([code], rng=rng)
    assert rng.words(1) == untouched.words(1)


def test_the_callers_codes_are_never_changed():
    mechanism, codes = Grr(categories=4, epsilon=1), [0, 1, 2, 3, 3]
    array = np.array(codes, dtype=np.uint8)
    mechanism.answer_many(codes, rng=simulation_rng(8))
    mechanism.answer_many(array, rng=simulation_rng(8))
    assert codes == array.tolist() == [0, 1, 2, 3, 3]


def test_a_huge_matrix_is_not_written_out():
    with pytest.raises(InputError, match="entries"):
        Grr(categories=10_000, epsilon=1).transition()


def test_the_guarantee_is_that_of_the_decimal_text():
    assert Grr(categories=2, epsilon=0.1).guarantee == LocalDP(Fraction(1, 10))


def test_a_number_of_categories_from_numpy_is_a_plain_integer():
    plain, from_numpy = (Grr(categories=m, epsilon=1) for m in (200, np.uint8(200)))
    assert plain.weights == from_numpy.weights
    assert plain.weights.keep == from_numpy.weights.keep


@pytest.mark.parametrize("exponent", ["1/10000", "1/7", "1", "2.5", "17/3", "32"])
def test_the_odds_are_below_the_power_itself_and_hardly(exponent):
    """Every part of the power series is below e^x: nothing here is computed by ``exp_below``."""
    x = Fraction(exponent)
    term, below = Fraction(1), Fraction(0)
    for n in range(1, 250):
        below += term
        term = term * x / n
    assert exp_below(x) < below
    assert exp_below(x) > below * (1 - Fraction(1, 10**57))
