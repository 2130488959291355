"""Exact coins and categories: every probability a fraction, every edge a whole number."""

from collections.abc import Iterable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest, chisquare

from sfumato.errors import InputError
from sfumato.noise.categorical import Bernoulli, Categorical
from sfumato.randomness import simulation_rng

FALSE_ALARM = 1e-6


class Scripted:
    """A generator whose words are known."""

    def __init__(self, words: Iterable[int]) -> None:
        self.left = list(words)

    def words(self, n: int):
        taken, self.left = self.left[:n], self.left[n:]
        assert len(taken) == n
        return np.array(taken, np.uint64)


@given(numerator=st.integers(1, 2**64 - 1))
def test_a_coin_of_64_bits_says_yes_below_its_numerator(numerator):
    coin = Bernoulli(probability=Fraction(numerator, 2**64))
    rng = Scripted([0, numerator - 1, numerator, 2**64 - 1])
    assert coin.sample(4, rng=rng).tolist() == [True, True, False, False]
    assert rng.left == []


@given(
    probability=st.fractions(0, 1, max_denominator=10**60).filter(lambda p: p < 1),
    words=st.lists(st.integers(0, 2**64 - 1), min_size=3, max_size=3),
    equal_digits=st.integers(0, 2),
)
def test_a_coin_is_a_comparison_of_exact_numbers(probability, words, equal_digits):
    """The words are the digits of a uniform number, some of them those of the probability."""
    rest = probability
    for i in range(equal_digits):
        digit, rest = divmod(rest * 2**64, 1)
        words[i] = int(digit)
    uniform = sum(Fraction(word, 2 ** (64 * (i + 1))) for i, word in enumerate(words))
    drawn = Bernoulli(probability=probability).sample(1, rng=Scripted([*words, 2**64 - 1]))
    if abs(uniform - probability) > Fraction(1, 2**190):
        assert drawn[0] == (uniform < probability)


def test_zero_and_one_are_certain_and_need_no_words():
    assert not Bernoulli(probability=0).sample(5, rng=Scripted([])).any()
    assert Bernoulli(probability=1).sample(5, rng=Scripted([])).all()
    assert Bernoulli(probability=Fraction(1, 3)).sample(0, rng=Scripted([])).size == 0


def test_a_coin_comes_as_often_as_stated_and_a_wrong_one_is_seen():
    """False-alarm rate 1e-6; a probability 20% too large is rejected."""
    drawn = Bernoulli(probability=Fraction(1, 7)).sample(100_000, rng=simulation_rng(1))
    wrong = Bernoulli(probability=Fraction(12, 70)).sample(100_000, rng=simulation_rng(1))
    assert binomtest(int(drawn.sum()), drawn.size, 1 / 7).pvalue > FALSE_ALARM
    assert binomtest(int(wrong.sum()), wrong.size, 1 / 7).pvalue < FALSE_ALARM


def test_decimal_text_is_taken_exactly():
    assert Bernoulli(probability=0.1).probability == Fraction(1, 10)
    assert Bernoulli(probability="0.25").probability == Fraction(1, 4)


@pytest.mark.parametrize("probability", [-0.1, 1.1, float("nan"), float("inf"), "x", None, True])
def test_an_impossible_probability_is_refused(probability):
    with pytest.raises(InputError, match="probability"):
        Bernoulli(probability=probability)


@given(weights=st.lists(st.integers(0, 5), min_size=1, max_size=6).filter(any))
def test_each_number_below_the_sum_belongs_to_one_category(weights):
    class Every:
        def below(self, bound: int, n: int):
            assert bound == n == sum(weights)
            return np.arange(n)

    drawn = Categorical(weights=weights).sample(sum(weights), rng=Every())
    assert np.bincount(drawn, minlength=len(weights)).tolist() == weights


def test_categories_come_as_often_as_stated_and_wrong_weights_are_seen():
    """False-alarm rate 1e-6; a weight 20% too large is rejected."""
    n = 100_000
    expected = np.array([5, 10, 85]) / 100 * n
    drawn = Categorical(weights=[5, 10, 85]).sample(n, rng=simulation_rng(2))
    wrong = Categorical(weights=[6, 10, 84]).sample(n, rng=simulation_rng(2))
    assert chisquare(np.bincount(drawn), expected).pvalue > FALSE_ALARM
    assert chisquare(np.bincount(wrong), expected).pvalue < FALSE_ALARM


def test_a_weight_of_zero_is_never_drawn_and_huge_weights_are_exact():
    weights = [0, 2**62 - 2, 0, 1, 0]
    drawn = Categorical(weights=weights).sample(1000, rng=simulation_rng(3))
    assert set(drawn.tolist()) <= {1, 3}
    assert drawn.dtype == np.int64


def test_the_callers_weights_are_copied_and_never_changed():
    weights = [1, 2, 3]
    array = np.array(weights)
    spec, same = Categorical(weights=weights), Categorical(weights=array)
    spec.sample(10, rng=simulation_rng(4))
    same.sample(10, rng=simulation_rng(4))
    assert weights == array.tolist() == [1, 2, 3]
    weights[0] = 100
    assert spec == same == Categorical(weights=(1, 2, 3))


@pytest.mark.parametrize(
    "weights", [[], [0, 0], [-1, 2], [0.5, 0.5], [True, 1], ["1"], [2**61, 2**61]]
)
def test_weights_that_are_no_weights_are_refused(weights):
    with pytest.raises(InputError, match="weight"):
        Categorical(weights=weights)


@pytest.mark.parametrize("spec", [Bernoulli(probability=0.5), Categorical(weights=[1, 1])])
@pytest.mark.parametrize("n", [-1, 1.5, "3"])
def test_a_number_of_draws_that_is_none_is_refused(spec, n):
    with pytest.raises(InputError, match="n must be"):
        spec.sample(n, rng=simulation_rng(5))
