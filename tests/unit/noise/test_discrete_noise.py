"""The specs of noise: claims, rounding, refusals. Frequencies are in tests/privacy."""

import math
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp

from sfumato.errors import InputError, InternalError
from sfumato.noise import (
    DiscreteGaussian,
    DiscreteLaplace,
    ExponentialMechanism,
    PermuteAndFlip,
    discrete_noise,
    kernels,
    noise_for,
)
from sfumato.noise.discrete_noise import (
    MAX_WORDS,
    ceil_sqrt,
    fits,
    floor_sqrt,
    round_down,
    round_up,
)
from sfumato.noise.kernels import LONG_RUN, fill_gaussian, fill_laplace
from sfumato.privacy.guarantees import ZCDP, PureDP
from sfumato.privacy.sensitivity import OnePerson, OneRow, histogram_l1, histogram_l2_squared
from sfumato.randomness import simulation_rng

SCALES = [Fraction(1, 3), Fraction(1), Fraction(60), Fraction(2001, 2)]
SIGMAS = [0.05, 0.3, 1, 2.8, 2.9, 7.3, 1e4]
positive_fractions = st.fractions(Fraction(1, 10**6), 9_999, max_denominator=10**30)


@given(epsilon=positive_fractions, sensitivity=st.integers(1, 1_000))
@settings(derandomize=True, deadline=None)
def test_laplace_noise_for_a_cost_keeps_it_and_wastes_nearly_nothing(epsilon, sensitivity):
    noise = DiscreteLaplace.for_cost(PureDP(epsilon), sensitivity)
    assert noise.guarantee(sensitivity).epsilon <= epsilon
    assert noise.scale <= sensitivity / epsilon * (1 + Fraction(1, 10**6))


@given(rho=st.fractions(Fraction(1, 10**9), 199, max_denominator=10**30), k=st.integers(1, 1000))
@settings(derandomize=True, deadline=None)
def test_gaussian_noise_for_a_cost_keeps_it_and_wastes_nearly_nothing(rho, k):
    noise = DiscreteGaussian.for_cost(ZCDP(rho), k)
    assert noise.guarantee(k).rho <= rho
    assert noise.spread**2 <= max(k / rho, Fraction(1, 200)) * (1 + Fraction(1, 10**6))


@given(value=st.fractions(Fraction(1, 2**31 - 1), 2**31 - 1, max_denominator=10**40))
@settings(derandomize=True, deadline=None, max_examples=300)
def test_rounding_goes_to_the_stated_side_and_fits(value):
    up, down = round_up(value, name="x"), round_down(value, name="x")
    assert fits(up)
    assert fits(down)
    assert value * (1 - Fraction(1, 10**9)) <= down <= value <= up
    assert up <= value * (1 + Fraction(1, 10**9))


@given(square=st.fractions(Fraction(1, 1000), 10**12))
@settings(derandomize=True, deadline=None)
def test_whole_square_roots_are_tight_on_both_sides(square):
    assert (ceil_sqrt(square) - 1) ** 2 < square <= ceil_sqrt(square) ** 2
    assert floor_sqrt(square) ** 2 <= square < (floor_sqrt(square) + 1) ** 2


def test_decimal_budgets_give_the_exact_scale():
    assert DiscreteLaplace.for_cost(PureDP(0.1), 1) == DiscreteLaplace(scale=Fraction(10))
    assert DiscreteLaplace(scale=Fraction(10)).guarantee(2) == PureDP(Fraction(1, 5))


def test_a_gaussian_states_rho_exactly():
    noise = DiscreteGaussian(spread=Fraction(3, 2))
    assert noise.guarantee(2) == ZCDP(Fraction(8, 9))


def test_the_kind_of_cost_picks_the_noise():
    assert isinstance(noise_for(PureDP(1), 2, 2), DiscreteLaplace)
    assert isinstance(noise_for(ZCDP(1), 2, 2), DiscreteGaussian)
    assert noise_for(PureDP(1), 3, 1).guarantee(3) == PureDP(1)
    assert noise_for(ZCDP(1), 1, 4).guarantee(4).rho <= 1


@pytest.mark.parametrize(
    "noise",
    [DiscreteLaplace(scale=s) for s in SCALES] + [DiscreteGaussian.for_sigma(s) for s in SIGMAS],
    ids=str,
)
def test_variance_and_probabilities_agree(noise):
    reach = math.ceil(45 * noise.sigma_counts) + 2
    k = np.arange(-reach, reach + 1)
    p = noise.pmf(k)
    assert p.sum() == pytest.approx(1, abs=1e-12)
    assert (p * k.astype(float) ** 2).sum() == pytest.approx(noise.variance, rel=1e-9)
    assert noise.sigma_counts == math.sqrt(noise.variance)


@pytest.mark.parametrize("scale", SCALES)
def test_laplace_probabilities_of_neighbors_never_differ_by_more_than_the_guarantee(scale):
    noise, k = DiscreteLaplace(scale=scale), np.arange(-50, 50)
    loss = np.abs(np.log(noise.pmf(k)) - np.log(noise.pmf(k + 1)))
    assert loss == pytest.approx(float(noise.guarantee().epsilon), rel=1e-9)


def renyi(order, shift, spread):
    """The Renyi divergence between discrete Gaussians around 0 and around a whole number."""
    k = np.arange(-500, 500).astype(float)
    log_p, log_q = (-np.square((k - at) / float(spread)) for at in (0, shift))
    whole = logsumexp(order * log_p + (1 - order) * log_q) - logsumexp(log_p)
    return whole / (order - 1)


@pytest.mark.parametrize("rho", ["0.02", "0.5", "3"])
@pytest.mark.parametrize("order", [1.01, 2, 5.5, 20])
@pytest.mark.parametrize("rows", [1, 3])
def test_a_vector_of_counts_of_which_rows_are_replaced_keeps_rho(rho, order, rows):
    protect = (
        OneRow(neighbors="replace") if rows == 1 else OnePerson(max_rows=rows, neighbors="replace")
    )
    squared = histogram_l2_squared(protect)
    assert squared == 2 * rows**2
    noise = noise_for(ZCDP(rho), histogram_l1(protect), squared)
    lost = renyi(order, rows, noise.spread) + renyi(order, -rows, noise.spread)  # two cells move
    assert lost <= order * float(Fraction(rho)) * (1 + 1e-9)
    assert lost >= 0.4 * order * float(Fraction(rho)) or rho == "3"
    added = noise_for(ZCDP(rho), rows, rows**2)  # noise for a row that is added: half the square
    assert renyi(2, rows, added.spread) + renyi(2, -rows, added.spread) > 2 * float(Fraction(rho))


@pytest.mark.parametrize("sigma", [0.3, 1, 7.3])
@pytest.mark.parametrize("order", [1.01, 2, 5.5, 20])
def test_gaussian_renyi_divergence_never_exceeds_the_guarantee(sigma, order):
    noise = DiscreteGaussian.for_sigma(sigma)
    k = np.arange(-400, 400).astype(float)
    log_p, log_q = (-np.square((k - shift) / float(noise.spread)) for shift in (0, 1))
    divergence = logsumexp(order * log_p + (1 - order) * log_q) - logsumexp(log_p)
    assert divergence / (order - 1) <= order * float(noise.guarantee().rho) * (1 + 1e-9)


@pytest.mark.parametrize("sigma", [Fraction(1, 20), 2**26])
def test_the_smallest_and_the_largest_sigma_can_be_drawn(sigma):
    noise = DiscreteGaussian.for_sigma(sigma)
    drawn = noise.sample(20_000, rng=simulation_rng(0))
    assert drawn.std() == pytest.approx(noise.sigma_counts, rel=0.05, abs=1e-6)


@pytest.mark.parametrize("scale", [Fraction(1, 2**31 - 1), Fraction(2**31 - 1)])
def test_the_smallest_and_the_largest_scale_can_be_drawn(scale):
    noise = DiscreteLaplace(scale=scale)
    drawn = noise.sample(20_000, rng=simulation_rng(0))
    assert drawn.std() == pytest.approx(noise.sigma_counts, rel=0.05, abs=1e-6)


def test_noise_is_whole_numbers():
    for noise in (DiscreteLaplace(scale=Fraction(3)), DiscreteGaussian.for_sigma(3)):
        assert noise.sample(10, rng=simulation_rng(0)).dtype == np.int64


def test_an_enormous_rho_gets_the_smallest_noise_there_is():
    noise = DiscreteGaussian.for_cost(ZCDP(10_000), 1)
    assert noise == DiscreteGaussian.for_sigma(0.05)
    assert noise.guarantee().rho <= 200


def test_noise_is_never_said_to_be_zero():
    assert DiscreteLaplace.for_cost(PureDP(10_000), 1).variance > 0


@pytest.mark.parametrize("scale", [Fraction(0), Fraction(-1), Fraction(1, 2**31), 1.5, None])
def test_a_scale_that_exact_draws_cannot_hold_is_refused(scale):
    with pytest.raises(InputError, match="scale must be a fraction above 0"):
        DiscreteLaplace(scale=scale)


@pytest.mark.parametrize(
    "spread", [Fraction(0), Fraction(1, 15), Fraction(2**27), Fraction(2**28 + 1, 2**28), 1.5]
)
def test_a_spread_that_exact_draws_cannot_hold_is_refused(spread):
    with pytest.raises(InputError, match="spread must be a fraction"):
        DiscreteGaussian(spread=spread)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: DiscreteGaussian.for_sigma(0.049), r"sigma would be 0\.049 counts"),
        (lambda: DiscreteGaussian.for_sigma(2**27), r"exact draws need 0\.05 to 67108864"),
        (lambda: DiscreteGaussian.for_cost(ZCDP(1e-18), 1), "sigma would be 7.07"),
        (lambda: DiscreteLaplace.for_cost(PureDP(1e-12), 1), r"scale would be 1e\+12"),
        (lambda: DiscreteLaplace.for_cost(PureDP(1), 0), "sensitivity must be a whole number"),
        (lambda: DiscreteGaussian.for_cost(ZCDP(1), 1.5), "sensitivity_squared must be a whole"),
        (lambda: DiscreteLaplace(scale=Fraction(1)).sample(-1, rng=simulation_rng(0)), "n must"),
    ],
)
def test_what_cannot_be_drawn_is_refused_with_the_allowed_range(make, message):
    with pytest.raises(InputError, match=message):
        make()


@pytest.mark.parametrize("sigma", [0.05, 1, 1e4, 2**26])
def test_an_absurd_proposal_is_a_row_of_coins_longer_than_any_draw(sigma):
    """The claim behind the cut: what would overflow has z > 255, so z^2 exceeds 2^15 coins."""
    noise = DiscreteGaussian.for_sigma(sigma)
    u, v, t = noise.spread.numerator, noise.spread.denominator, noise._proposal_scale
    step, divisor = 2 * t * v * v, 2 * t * u * v
    y_max = discrete_noise._MAX_PRODUCT // step
    assert (step * (y_max + 1) - u * u) ** 2 / divisor**2 > MAX_WORDS
    yes = np.zeros(MAX_WORDS, dtype=np.uint64)
    no = np.full(1, 2**63, dtype=np.uint64)
    for y in (y_max + 1, 2**64 // step + 1):  # the second wraps around to a likely proposal
        numbers = [np.uint64(i) for i in (y, y_max, step, u * u, divisor)]
        assert kernels._gaussian_keeps(yes, 0, *numbers)[1] == kernels.OUT
        assert kernels._gaussian_keeps(no, 0, *numbers) == (False, 1)


def test_specs_and_guarantees_load_no_compiler():
    """The device of a person who answers has no numba, and ``--help`` no time for it."""
    code = "import sys, sfumato.noise; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(
    "noise", [DiscreteLaplace(scale=Fraction(2)), DiscreteGaussian.for_sigma(2)], ids=str
)
def test_no_draws_are_an_empty_array(noise):
    assert noise.sample(0, rng=simulation_rng(0)).shape == (0,)


def test_a_spread_whose_draws_would_overflow_is_refused():
    """2 t u v would be above 2^54: see the docstring."""
    with pytest.raises(InputError, match="spread"):
        DiscreteGaussian(spread=Fraction(2**26 + 1, 2**27))


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
    monkeypatch.setattr(discrete_noise, "_BUFFER_WORDS", buffer_words)
    np.testing.assert_array_equal(noise.sample(2_000, rng=Tape(words)), large)


@pytest.mark.parametrize("noise", NOISES, ids=lambda noise: type(noise).__name__)
def test_a_seed_gives_the_same_draws_through_small_and_large_fills(noise, monkeypatch):
    """Up to 8,192 words, one buffer of the generator: beyond it, fills of other sizes skip."""
    large = noise.sample(200, rng=simulation_rng(4))
    monkeypatch.setattr(discrete_noise, "_BUFFER_WORDS", 5)
    np.testing.assert_array_equal(noise.sample(200, rng=simulation_rng(4)), large)


@pytest.mark.parametrize("selection", SELECTIONS, ids=lambda spec: type(spec).__name__)
def test_a_tiny_buffer_selects_the_same_candidates(selection, monkeypatch):
    scores = np.arange(50, dtype=np.int64) // 10
    words = simulation_rng(5).words(500_000)
    large = [selection.select(scores, rng=Tape(words[i * 2_000 :])) for i in range(200)]
    monkeypatch.setattr(discrete_noise, "_BUFFER_WORDS", 2)
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

    discrete_noise.replay(kernel, 1, rng=simulation_rng(0), words_each=9)
    assert not seen[-1].any()


def test_a_draw_that_never_ends_is_an_error_and_not_a_loop():
    calls = []

    def kernel(words, done):
        calls.append(words.size)
        assert len(calls) < 100
        return 0, 0

    with pytest.raises(InternalError, match="generator must be broken"):
        discrete_noise.replay(kernel, 1, rng=simulation_rng(0), words_each=9)
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
