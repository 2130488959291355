"""A draw is a function of the word stream, however the words arrive."""

from fractions import Fraction

import numpy as np
import pytest

from sfumato.errors import InternalError
from sfumato.noise import (
    DiscreteGaussian,
    DiscreteLaplace,
    ExponentialMechanism,
    PermuteAndFlip,
    exact_draws,
)
from sfumato.noise.exact_draws import MAX_WORDS
from sfumato.noise.kernels import LONG_RUN, fill_gaussian, fill_laplace
from sfumato.randomness import simulation_rng

NOISES = [DiscreteLaplace(scale=Fraction(20)), DiscreteGaussian.for_sigma(7.3)]
SELECTIONS = [PermuteAndFlip(epsilon=Fraction(1)), ExponentialMechanism(epsilon=Fraction(1))]


class Tape:
    """Hands out one fixed row of words, in whatever pieces are asked for."""

    def __init__(self, words):
        self.words, self.next = words, 0

    def fill(self, out):
        out[:] = self.words[self.next : self.next + out.size]
        self.next += out.size


@pytest.mark.parametrize("noise", NOISES, ids=lambda noise: type(noise).__name__)
@pytest.mark.parametrize("buffer_words", [1, 2, 7, 33])
def test_a_tiny_buffer_gives_the_same_draws_as_a_large_one(noise, buffer_words, monkeypatch):
    words = simulation_rng(3).words(100_000)
    large = noise.sample(2_000, rng=Tape(words))
    monkeypatch.setattr(exact_draws, "_BUFFER_WORDS", buffer_words)
    np.testing.assert_array_equal(noise.sample(2_000, rng=Tape(words)), large)


@pytest.mark.parametrize("noise", NOISES, ids=lambda noise: type(noise).__name__)
def test_a_seed_gives_the_same_draws_through_small_and_large_fills(noise, monkeypatch):
    """Up to 8,192 words, one buffer of the generator: beyond it, fills of other sizes skip."""
    large = noise.sample(200, rng=simulation_rng(4))
    monkeypatch.setattr(exact_draws, "_BUFFER_WORDS", 5)
    np.testing.assert_array_equal(noise.sample(200, rng=simulation_rng(4)), large)


@pytest.mark.parametrize("selection", SELECTIONS, ids=lambda spec: type(spec).__name__)
def test_a_tiny_buffer_selects_the_same_candidates(selection, monkeypatch):
    scores = np.arange(50, dtype=np.int64) // 10
    words = simulation_rng(5).words(500_000)
    large = [selection.select(scores, rng=Tape(words[i * 2_000 :])) for i in range(200)]
    monkeypatch.setattr(exact_draws, "_BUFFER_WORDS", 2)
    assert [selection.select(scores, rng=Tape(words[i * 2_000 :])) for i in range(200)] == large
    assert len(set(large)) > 10


def test_dropping_the_words_of_an_unfinished_draw_would_shorten_the_noise():
    """What replaying is for: the careless loop loses a tenth of the variance and is seen."""
    noise, rng = DiscreteLaplace(scale=Fraction(20)), simulation_rng(6)
    out = np.empty(50_000, dtype=np.int64)
    done = 0
    while done < out.size:
        done, _ = fill_laplace(rng.words(12), out, done, np.uint64(20), np.uint64(1))
    assert out.var() < 0.9 * noise.variance
    assert noise.sample(50_000, rng=rng).var() == pytest.approx(noise.variance, rel=0.05)


@pytest.mark.parametrize("noise", NOISES, ids=lambda noise: type(noise).__name__)
def test_words_that_are_not_random_stop_the_draw(noise):
    with pytest.raises(InternalError, match="more than 32768 random words"):
        noise.sample(1, rng=Tape(np.zeros(4 * MAX_WORDS, dtype=np.uint64)))


def test_a_draw_may_take_exactly_the_largest_number_of_words():
    """One below for u, one for its Bernoulli, coins, and the sign."""
    yes, no = 0, 2**63
    for coins, stops in ((MAX_WORDS - 4, False), (MAX_WORDS - 3, True)):
        tape = Tape(np.array([yes, no] + [yes] * coins + [no, yes] + [no] * MAX_WORDS, np.uint64))
        if stops:
            with pytest.raises(InternalError):
                DiscreteLaplace(scale=Fraction(1)).sample(1, rng=tape)
        else:
            assert DiscreteLaplace(scale=Fraction(1)).sample(1, rng=tape) == [coins]


def test_a_run_of_coins_is_cut_only_where_no_draw_goes():
    assert LONG_RUN > MAX_WORDS


def test_no_draws_take_no_words():
    tape = Tape(np.empty(0, dtype=np.uint64))
    assert DiscreteLaplace(scale=Fraction(1)).sample(0, rng=tape).size == 0


def test_words_that_were_used_do_not_linger_in_memory():
    seen = []

    def kernel(words, done):
        seen.append(words)
        return 1, words.size

    exact_draws.replay(kernel, 1, rng=simulation_rng(0), words_each=9)
    assert not seen[-1].any()


def test_a_draw_that_never_ends_is_an_error_and_not_a_loop():
    calls = []

    def kernel(words, done):
        calls.append(words.size)
        assert len(calls) < 100
        return 0, 0

    with pytest.raises(InternalError, match="generator must be broken"):
        exact_draws.replay(kernel, 1, rng=simulation_rng(0), words_each=9)
    assert max(calls) == MAX_WORDS


@pytest.mark.parametrize("noise", NOISES, ids=lambda noise: type(noise).__name__)
def test_draws_are_written_where_there_is_room_and_no_further(noise):
    whole = np.full(20, -(2**62), dtype=np.int64)
    words = simulation_rng(1).words(4_096)
    if isinstance(noise, DiscreteLaplace):
        done, _ = fill_laplace(words, whole[:10], 0, 20, 1)
    else:
        u, v = noise.spread.as_integer_ratio()
        t = 8
        integers = (t, 2**62 // (2 * t * v * v), 2 * t * v * v, u * u, 2 * t * u * v)
        done, _ = fill_gaussian(words, whole[:10], 0, *map(np.uint64, integers))
    assert done == 10
    assert (whole[:10] != -(2**62)).all()
    assert (whole[10:] == -(2**62)).all()
