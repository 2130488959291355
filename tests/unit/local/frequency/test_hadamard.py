"""Hadamard response: exact ratios, orthogonal rows, the transform, its distribution."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.stats import chisquare

from sfumato.errors import InputError
from sfumato.local.bit_kernels import respond_hadamard
from sfumato.local.frequency.hadamard import HadamardResponse, odd, walsh_hadamard
from sfumato.local.probabilities import WORD, exp_below
from sfumato.randomness import simulation_rng

epsilons = st.fractions(Fraction(1, 10_000), 32, max_denominator=10**6)
FALSE_ALARM = 1e-6


def supporting(mechanism: HadamardResponse, code: int) -> list[int]:
    """The indices that support a category, by definition."""
    return [j for j in range(mechanism.cells) if not odd(j & (code + 1))]


@given(epsilon=epsilons, categories=st.integers(2, 1_000_000))
@example(epsilon=Fraction(32), categories=1_000_000)
@example(epsilon=Fraction(1, 10_000), categories=1_000_000)
def test_the_odds_are_at_most_e_to_the_epsilon_and_the_next_integer_would_exceed_it(
    epsilon, categories
):
    mechanism = HadamardResponse(categories=categories, epsilon=epsilon)
    total = WORD >> mechanism.index_bits
    assert Fraction(mechanism.keep, total - mechanism.keep) <= exp_below(epsilon)
    if mechanism.keep + 1 < total:
        more = Fraction(mechanism.keep + 1, total - mechanism.keep - 1)
        assert more > exp_below(epsilon)


@given(epsilon=epsilons, categories=st.integers(2, 20))
def test_the_whole_matrix_keeps_the_promise_and_has_the_stated_p_and_q(epsilon, categories):
    mechanism = HadamardResponse(categories=categories, epsilon=epsilon)
    weights = mechanism.transition().weights
    assert 1 < mechanism.transition().ratio <= exp_below(epsilon)
    for code in range(categories):
        supports = supporting(mechanism, code)
        shares = [Fraction(sum(row[j] for j in supports), WORD) for row in weights]
        assert all(sum(row) == WORD for row in weights)
        assert shares == [mechanism.p if v == code else mechanism.q for v in range(categories)]


@pytest.mark.parametrize(
    ("categories", "order"), [(2, 4), (3, 4), (4, 8), (127, 128), (128, 256), (1_000_000, 2**20)]
)
def test_the_order_is_the_next_power_of_two_above_the_categories(categories, order):
    assert HadamardResponse(categories=categories, epsilon=1).cells == order


@pytest.mark.parametrize("size", [1, 2, 8, 64])
def test_the_transform_is_the_matrix_and_leaves_its_input_alone(size):
    values = simulation_rng(1).below(2**40, size) - 2**39
    before = values.copy()
    signs = np.array([[-1 if odd(i & j) else 1 for i in range(size)] for j in range(size)])
    assert walsh_hadamard(values).tolist() == (signs @ values).tolist()
    assert (values == before).all()


@given(categories=st.integers(2, 40), seed=st.integers(0, 100))
def test_decoding_counts_the_supporting_answers(categories, seed):
    mechanism = HadamardResponse(categories=categories, epsilon=1)
    counts = simulation_rng(seed).below(1000, mechanism.cells)
    brute = [counts[supporting(mechanism, code)].sum() for code in range(categories)]
    assert mechanism.supports(counts).tolist() == brute


@given(epsilon=epsilons, categories=st.integers(2, 1_000_000), data=st.data())
def test_one_word_gives_the_same_answer_compiled_and_plain(epsilon, categories, data):
    mechanism = HadamardResponse(categories=categories, epsilon=epsilon)
    edge = mechanism.keep << mechanism.index_bits
    words = [0, edge - 1, edge, WORD - 1, *data.draw(st.lists(st.integers(0, WORD - 1)))]
    code = data.draw(st.integers(0, categories - 1))
    plain = [mechanism.answer(code, rng=Scripted(word)) for word in words]
    out = mechanism.layout.empty(len(words))
    numbers = np.uint64(mechanism.index_bits), np.int64(mechanism.keep)
    codes = np.full(len(words), code, np.uint32)
    respond_hadamard(np.array(words, np.uint64), codes, out, *numbers)
    assert out.tolist() == plain
    signs = [odd(answer & (code + 1)) for answer in plain]
    assert signs == [word >= edge for word in words]


class Scripted:
    """A generator whose only word is known."""

    def __init__(self, word: int) -> None:
        self.word = word

    def words(self, n: int):
        assert n == 1
        return np.array([self.word], np.uint64)


def test_the_same_words_give_the_same_answers_alone_and_in_bulk():
    mechanism = HadamardResponse(categories=300, epsilon=1)
    codes = simulation_rng(1).below(300, 1000)
    alone, bulk = simulation_rng(2), simulation_rng(2)
    answers = [mechanism.answer(int(code), rng=alone) for code in codes]
    assert mechanism.answer_many(codes, rng=bulk).tolist() == answers


def chi_square_p(drawn_by: HadamardResponse, claimed: HadamardResponse, code: int) -> float:
    n = 100_000
    answers = drawn_by.answer_many(np.full(n, code), rng=simulation_rng(3))
    expected = claimed.transition().probabilities()[code] * n
    return float(chisquare(np.bincount(answers, minlength=expected.size), expected).pvalue)


@pytest.mark.parametrize("code", [0, 2, 5])
def test_answers_have_the_stated_probabilities_and_a_larger_epsilon_is_seen(code):
    """False-alarm rate 1e-6 for each code; an epsilon 20% too large is rejected."""
    right, wrong = (HadamardResponse(categories=6, epsilon=e) for e in (1, 1.2))
    assert chi_square_p(right, right, code) > FALSE_ALARM
    assert chi_square_p(wrong, right, code) < FALSE_ALARM


@pytest.mark.parametrize(("epsilon", "figure"), [(0.5, 16.67), (1, 4.683), (2, 1.724), (4, 1.076)])
def test_the_variance_is_that_of_a_binary_response(epsilon, figure):
    mechanism = HadamardResponse(categories=128, epsilon=epsilon)
    assert mechanism.variance() == pytest.approx(figure, rel=1e-3)
    assert mechanism.layout.width == 1


def test_the_measured_error_is_the_stated_one_and_not_that_of_a_larger_epsilon():
    """30 runs of 16 unequal categories: the mean of n MSE / variance has sd 0.07, and the band
    a false-alarm rate of 2e-4. The variance of an epsilon 20% larger is rejected."""
    mechanism, n = HadamardResponse(categories=16, epsilon=1), 20_000
    codes = np.minimum(simulation_rng(4).below(40, n), 15)
    truth = np.bincount(codes, minlength=16) / n
    wrong = HadamardResponse(categories=16, epsilon=1.2)
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


@pytest.mark.parametrize("epsilon", [0, -1, float("nan"), 1000])
def test_an_unusable_epsilon_is_refused(epsilon):
    with pytest.raises(InputError, match="epsilon"):
        HadamardResponse(categories=4, epsilon=epsilon)


def test_codes_outside_are_refused_and_the_callers_list_stays():
    mechanism, codes = HadamardResponse(categories=4, epsilon=1), [0, 3, 1]
    for bad in (-1, 4):
        with pytest.raises(InputError, match="code"):
            mechanism.answer(bad, rng=simulation_rng(6))
        with pytest.raises(InputError, match="codes"):
            mechanism.answer_many([0, bad], rng=simulation_rng(6))
    assert mechanism.answer_many(codes, rng=simulation_rng(6)).size == 3
    assert codes == [0, 3, 1]


def test_a_huge_matrix_is_not_written_out():
    with pytest.raises(InputError, match="entries"):
        HadamardResponse(categories=10_000, epsilon=1).transition()
