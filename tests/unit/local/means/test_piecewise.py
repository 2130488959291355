"""Windows: the integers, every boundary of the words, and what floats would have given away."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.local.means.duchi import Duchi
from sfumato.local.means.piecewise import Hybrid, Piecewise, SquareWave, WindowWeights
from sfumato.local.probabilities import WORD, exp_below
from sfumato.randomness import simulation_rng

epsilons = st.fractions(Fraction(1, 10_000), 32, max_denominator=10**6)


class Scripted:
    """Stands for a generator whose words are known beforehand; then come words of 0."""

    def __init__(self, words):
        self.left = [int(word) for word in words]

    def words(self, n):
        taken, self.left = self.left[:n], self.left[n:]
        return np.array(taken + [0] * (n - len(taken)), dtype=np.uint64)

    def fill(self, out):
        out[:] = self.words(out.size)


def boundaries(row):
    """The first and the last word of every answer, and the answers, window first."""
    order = sorted(range(len(row)), key=lambda a: (row[a] != max(row), a))
    words, answers, start = [], [], 0
    for answer in order:
        words += [start, start + row[answer] - 1]
        answers += [answer, answer]
        start += row[answer]
    return words, answers


@given(points=st.integers(2, 2**16), epsilon=epsilons)
def test_high_and_low_keep_the_odds_at_every_size(points, epsilon):
    for kind in (Piecewise, SquareWave):
        weights = kind(points=points, epsilon=epsilon).response
        assert Fraction(weights.high, weights.low) <= exp_below(epsilon)
        assert 0 <= WORD - weights.total < weights.width
        assert weights.high > weights.low > 0


@pytest.mark.parametrize("kind", [Piecewise, SquareWave])
@pytest.mark.parametrize("epsilon", ["0.0001", "0.5", 1, 4, 8])
def test_the_integers_of_the_default_grid_waste_nearly_nothing(kind, epsilon):
    weights = kind(epsilon=epsilon).response
    loss = math.log(weights.high) - math.log(weights.low)
    assert loss == pytest.approx(float(Fraction(epsilon)), abs=1e-9)


def test_widths_are_those_of_the_papers():
    assert Piecewise(epsilon=2).response.width == round(1023 / math.e)
    assert Piecewise(points=4, epsilon=32).response.width == 1
    for eps in (0.5, 1.0, 3.0):
        odds = math.exp(eps)
        b = (eps * odds - odds + 1) / (2 * odds * (odds - 1 - eps))
        assert SquareWave(epsilon=eps).response.width == round(2 * b * 1023)
    assert SquareWave(epsilon="0.0001").response.width == 1023  # b tends to 1/2


@pytest.mark.parametrize("kind", [Piecewise, SquareWave])
@pytest.mark.parametrize("epsilon", ["0.01", 1, 12])
@pytest.mark.parametrize("code", [0, 3, 10])
def test_one_and_many_agree_with_the_weights_at_every_boundary(kind, epsilon, code):
    mechanism = kind(points=11, epsilon=epsilon)
    words, expected = boundaries(mechanism.response.row(code))
    bulk = mechanism.answer_many(np.full(len(words), code), rng=Scripted(words))
    singles = Scripted(words)
    assert bulk.tolist() == expected
    assert [mechanism.answer(code, rng=singles) for _ in words] == expected


def test_words_left_over_are_drawn_again():
    weights = WindowWeights(points=4, width=7, odds=Fraction(3))
    assert weights.total < WORD
    for left_over in range(weights.total, WORD):
        out = np.zeros(2, np.uint8)
        words = [left_over, weights.high, left_over, left_over, 0]
        weights.draw_many(np.array([2, 2], np.uint8), out, rng=Scripted(words))
        assert out.tolist() == [3, 2]
        singles = Scripted(words)
        assert [weights.draw(2, rng=singles) for _ in range(2)] == [3, 2]


def test_the_hybrid_takes_a_coin_and_then_a_word_in_bulk_as_one_by_one():
    mechanism, code = Hybrid(points=11, epsilon=1), 4
    coin = mechanism.response.coin
    near, expected = boundaries(mechanism.response.window.row(code))
    ones = mechanism.response.linear.row(code)[1]
    answers = mechanism.response.window.answers
    words = [word for pair in zip([coin - 1] * len(near), near, strict=True) for word in pair]
    words += [coin, ones - 1, coin, ones]
    expected = [*expected, answers + 1, answers]
    bulk = mechanism.answer_many(np.full(len(expected), code), rng=Scripted(words))
    singles = Scripted(words)
    assert bulk.tolist() == expected
    assert [mechanism.answer(code, rng=singles) for _ in expected] == expected


def test_hybrid_draws_continue_where_a_buffer_ended():
    mechanism = Hybrid(points=11, epsilon=1)
    last = mechanism.response.window.total  # a word that is drawn again, if there is one
    assert last < WORD
    words = [0] + [last] * 40 + [mechanism.response.window.high, 0, 0]
    bulk = mechanism.answer_many(np.array([4, 4]), rng=Scripted(words))
    assert bulk.tolist() == [5, 4]


def test_the_two_answers_of_duchi_split_at_the_exact_word():
    mechanism = Duchi(points=11, epsilon=1)
    for code in range(11):
        ones = mechanism.response.row(code)[1]
        words = [0, ones - 1, ones, WORD - 1]
        assert mechanism.answer_many(np.full(4, code), rng=Scripted(words)).tolist() == [1, 1, 0, 0]
        singles = Scripted(words)
        assert [mechanism.answer(code, rng=singles) for _ in words] == [1, 1, 0, 0]


@given(points=st.integers(2, 2**16), epsilon=epsilons)
def test_duchi_is_symmetric_and_keeps_the_odds_at_every_size(points, epsilon):
    weights = Duchi(points=points, epsilon=epsilon).response
    first, last = weights.row(0), weights.row(points - 1)
    assert first == last[::-1]
    assert Fraction(first[0], first[1]) <= exp_below(epsilon)


# The planted bug: the piecewise mechanism as it is written in papers, in floating point.


def _float_pieces(value, epsilon):
    """Where the pieces begin and how a uniform number is stretched over them."""
    z = math.exp(epsilon / 2)
    c = (z + 1) / (z - 1)
    left = (c + 1) / 2 * value - (c - 1) / 2
    return z / (z + 1), c, left, left + c - 1


def float_piecewise(value, epsilon, n, rng):
    inner, c, left, right = _float_pieces(value, epsilon)
    near, u = rng.uniform(n) < inner, rng.uniform(n)
    far = u * (c + 1)
    outside = np.where(far < left + c, -c + far, right + (far - (left + c)))
    return np.where(near, left + u * (c - 1), outside)


def float_piecewise_possible(answers, value, epsilon):
    """Whether any of the 2^53 uniform numbers gives exactly this answer under ``value``."""
    _, c, left, right = _float_pieces(value, epsilon)
    possible = np.zeros(answers.size, dtype=bool)
    for width, back, forth in (
        (c - 1, lambda a: a - left, lambda x: left + x),
        (c + 1, lambda a: a + c, lambda x: np.where(x < left + c, -c + x, np.nan)),
        (
            c + 1,
            lambda a: a - right + (left + c),
            lambda x: np.where(x >= left + c, right + (x - (left + c)), np.nan),
        ),
    ):
        nearest = np.rint(back(answers) / width * 2.0**53)
        for offset in range(-8, 9):
            k = nearest + offset
            u = np.where((k >= 0) & (k < 2.0**53), k * 2.0**-53, np.nan)
            possible |= forth(u * width) == answers
    return possible


def test_a_float_piecewise_mechanism_gives_many_values_away():
    rng, epsilon = simulation_rng(21), 1.0
    answers = float_piecewise(0.3, epsilon, 20_000, rng)
    assert float_piecewise_possible(answers, 0.3, epsilon).all()
    impossible = 1 - float_piecewise_possible(answers, -0.2, epsilon).mean()
    assert impossible > 0.2


def test_on_the_grid_every_answer_is_possible_under_every_value():
    for kind in (Duchi, Piecewise, SquareWave, Hybrid):
        assert (kind(epsilon=1).probabilities() > 0).all()
