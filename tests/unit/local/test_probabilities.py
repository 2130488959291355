"""Draws turn exactly at their thresholds, and these are on the private side."""

from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction

import numpy as np
import pytest

import sfumato as sf
from sfumato.local.frequency.grr import ResponseWeights
from sfumato.local.frequency.subset_selection import _distinct_words
from sfumato.local.frequency.unary import BitWeights
from sfumato.local.memo import Memo
from sfumato.local.probabilities import WORD, exp_below
from sfumato.randomness import simulation_rng


class Words:
    """A generator whose words are known."""

    secure = False

    def __init__(self, *words):
        self._words = list(words)

    def words(self, n):
        return np.array([self._words.pop(0) for _ in range(n)], dtype=np.uint64)

    def fill(self, out):
        out[:] = self.words(out.size)


def test_an_exponential_is_below_the_true_one_at_twice_the_digits():
    long = Context(prec=120)
    for k in range(1, 300):
        exact = long.exp(long.divide(Decimal(k), Decimal(97)))
        assert exp_below(Fraction(k, 97)) < Fraction(exact)


def test_one_answer_turns_exactly_at_its_threshold():
    weights = ResponseWeights(codes=4, odds=Fraction(3))
    assert weights.draw(2, rng=Words(weights.keep - 1)) == 2
    assert weights.draw(2, rng=Words(weights.keep)) == 0
    assert weights.draw(2, rng=Words(2**64 - 1)) == 3


def test_an_open_lane_is_decided_by_the_rest_of_its_own_threshold():
    weights = BitWeights(from_one=0xA5C3000000000007, from_zero=0x3C5A000000000009)
    ones = 2**64 - 1
    for bits, threshold in ((0, weights.from_zero), (ones, weights.from_one)):
        planes = [ones if threshold >> (63 - k) & 1 else 0 for k in range(8)]
        rest = (threshold << 8) % WORD
        for word, expected in ((rest - 1, ones), (rest, 0)):
            lane = np.array([bits], dtype=np.uint64)
            words = np.array([*planes, *[word] * 64], dtype=np.uint64)
            weights._draw_part(lane, words, np.empty((2, 1), np.uint64), rng=simulation_rng(0))
            assert int(lane[0]) == expected


@dataclass(frozen=True)
class Telling:
    def answer(self, value, *, rng):
        return rng.secure


@pytest.mark.parametrize("secure", [True, False])
def test_a_memo_draws_as_securely_as_its_secret_came(secure):
    assert Memo(secret=bytes(range(32)), secure=secure).answer(Telling(), 1, "q") is secure


@pytest.mark.parametrize("kind", ["Olh", "FastOlh"])
def test_a_hashed_response_turns_exactly_at_its_threshold(kind):
    mechanism = getattr(sf, kind)(categories=9, epsilon=1)
    response, code = mechanism.response, 5
    for coin in (response.truth - 1, response.truth):
        for value in range(response.values):
            rest = coin * response.values + value
            word = rest << mechanism.seed_bits | 3
            one = mechanism.answer(code, rng=Words(word))
            many = mechanism.answer_many(np.array([code]), rng=Words(word))
            told = mechanism.hashed(3, code) if coin < response.truth else value
            assert one == int(many[0]) == 3 * response.values + told


def test_words_that_tie_are_drawn_again():
    assert _distinct_words(2, rng=Words(7, 7, 1, 2)).tolist() == [1, 2]
