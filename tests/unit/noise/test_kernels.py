"""The building blocks: exact integers first, frequencies second (false-alarm rate 1e-6)."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit
from scipy.stats import binomtest

from sfumato.noise import kernels as k
from sfumato.noise.discrete_noise import replay
from sfumato.randomness import simulation_rng

FALSE_ALARM = 1e-6
DRAWS = 200_000
WORD = st.integers(0, 2**64 - 1)


def words(*values: int):
    return np.array(values, dtype=np.uint64)


@given(word=WORD, bound=st.integers(1, 2**63 - 1))
@settings(derandomize=True, deadline=None, max_examples=500)
def test_a_uniform_draw_is_the_high_half_of_the_product_unless_rejected(word, bound):
    value, at = k.below(words(word), 0, np.uint64(bound))
    rejected = word * bound % 2**64 < 2**64 % bound
    assert at == (k.OUT if rejected else 1)
    assert rejected or value == word * bound >> 64


def test_each_value_below_a_bound_keeps_equally_many_words():
    """Counted over 16-bit words by the same rule: the shares are equal for every bound."""
    for bound in (3, 10, 1000):
        product = np.arange(2**16) * bound
        kept = product[product % 2**16 >= 2**16 % bound] >> 16
        assert set(np.bincount(kept)) == {2**16 // bound}


def test_a_rejected_word_is_followed_by_the_next_one():
    assert k.below(words(0, 2**64 - 1), 0, np.uint64(3)) == (2, 2)


def test_the_parts_of_a_word_that_say_yes_bracket_exp_minus_one():
    parts = math.factorial(12)
    yes = Fraction(int(k._BELOW_YES) // k._PART, parts)
    inverse_e = sum(Fraction((-1) ** j, math.factorial(j)) for j in range(40))
    open_part = Fraction(int(k._BELOW_OPEN) - int(k._BELOW_NO), k._PART * parts)
    assert open_part == Fraction(1, parts)
    assert yes < inverse_e < yes + open_part


def test_the_open_part_goes_on_with_the_series_of_exp_minus_one():
    """P(first failure after 12 throws is odd) = sum_{j>=12} (-1)^j 12!/j!, as the rest needs."""
    parts = math.factorial(12)
    yes = Fraction(int(k._BELOW_YES) // k._PART, parts)
    rest = sum(Fraction((-1) ** j, math.factorial(j)) for j in range(12, 40))
    assert float(yes + rest) == pytest.approx(math.exp(-1), abs=1e-16)


@pytest.mark.parametrize(
    ("stream", "expected"),
    [
        ([k._BELOW_YES - np.uint64(1)], (True, 1)),
        ([k._BELOW_YES], (False, 1)),
        ([k._BELOW_NO - np.uint64(1)], (False, 1)),
        ([k._BELOW_OPEN, 0], (True, 2)),  # no part of 12!: the next word decides
        ([k._BELOW_NO, 2**64 - 1], (True, 2)),  # fails at k = 13, odd
        ([k._BELOW_NO, 2**60, 2**64 - 1], (False, 3)),  # passes 13, fails at 14
    ],
)
def test_a_coin_decides_at_the_stated_words(stream, expected):
    assert k.coin(words(*map(int, stream)), 0) == expected


def test_every_primitive_says_when_the_words_ran_out():
    one = np.uint64(1)
    none = words()
    assert k.below(none, 0, np.uint64(7))[1] == k.OUT
    assert k.coin(none, 0)[1] == k.OUT
    assert k.coins(none, 0, 3)[1] == k.OUT
    assert k.bernoulli_exp_below_one(none, 0, one, one)[1] == k.OUT
    assert k.bernoulli_exp_square(none, 0, one, one)[1] == k.OUT
    assert k.bernoulli_exp(none, 0, np.uint64(5), one, one)[1] == k.OUT


@njit
def _throw(which, stream, out, done, distance, a, b):
    at = start = 0
    while done < out.size:
        if which == 0:
            yes, at = k.bernoulli_exp(stream, at, distance, a, b)
        else:
            yes, at = k.bernoulli_exp_square(stream, at, a, b)
        if at == k.OUT:
            break
        out[done] = yes
        done += 1
        start = at
    return done, start


def frequency_fits(probability, which, distance, a, b, seed):
    out = np.zeros(DRAWS, dtype=np.bool_)
    numbers = (np.uint64(distance), np.uint64(a), np.uint64(b))
    replay(
        lambda stream, done: _throw(which, stream, out, done, *numbers),
        DRAWS,
        rng=simulation_rng(seed),
        words_each=4,
    )
    return binomtest(int(out.sum()), DRAWS, probability).pvalue >= FALSE_ALARM


@pytest.mark.parametrize(
    ("distance", "a", "b"), [(1, 1, 3), (1, 1, 1), (5, 1, 2), (3, 2**31 - 1, 2**31 - 2), (7, 3, 41)]
)
def test_bernoulli_exp_has_the_stated_frequency_and_no_other(distance, a, b):
    exponent = distance * a / b
    assert frequency_fits(math.exp(-exponent), 0, distance, a, b, seed=1)
    assert not frequency_fits(math.exp(-exponent * 1.1), 0, distance, a, b, seed=1)


@pytest.mark.parametrize(("a", "b"), [(1, 3), (1, 1), (2**60 + 1, 2**61)])
def test_bernoulli_exp_of_a_square_has_the_stated_frequency_and_no_other(a, b):
    exponent = (a / b) ** 2
    assert frequency_fits(math.exp(-exponent), 1, 0, a, b, seed=2)
    assert not frequency_fits(math.exp(-exponent * 1.2), 1, 0, a, b, seed=2)


def test_a_distance_of_zero_is_always_accepted_without_a_word():
    assert k.bernoulli_exp(words(), 0, np.uint64(0), np.uint64(1), np.uint64(3)) == (True, 0)


@pytest.mark.parametrize("distance", [2**32, 2**62, 2**64 - 1])
@pytest.mark.parametrize(("a", "b"), [(2**31 - 1, 1), (1, 2**31 - 1), (2**31 - 1, 2**31 - 1)])
def test_the_largest_exponents_do_not_wrap_around(distance, a, b):
    """As many yes words are taken as the exponent has whole parts, or all there are."""
    coins = distance * a // b
    stream = np.zeros(2**15, dtype=np.uint64)
    stream[min(coins, stream.size) :] = 2**64 - 1
    yes, at = k.bernoulli_exp(stream, 0, np.uint64(distance), np.uint64(a), np.uint64(b))
    assert at == k.OUT if coins >= stream.size else (yes, at) == (True, coins + 1)
