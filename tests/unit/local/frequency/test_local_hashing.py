"""Local hashing: exact ratios and collisions, the field, decoding, distributions."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.stats import chisquare

from sfumato.errors import InputError
from sfumato.local.frequency.local_hashing import (
    MAX_CELLS,
    MULTIPLIERS,
    POLYNOMIALS,
    FastOlh,
    HashedResponse,
    Olh,
    best_response,
    field_product,
    mixed,
)
from sfumato.local.probabilities import WORD, exp_below
from sfumato.randomness import simulation_rng

BOTH = pytest.mark.parametrize("kind", [Olh, FastOlh])
epsilons = st.fractions(Fraction(1, 10_000), 32, max_denominator=10**6)
small_epsilons = st.fractions(Fraction(1, 10_000), Fraction(5, 2), max_denominator=10**6)
sizes = st.integers(2, 1_000_000)
FALSE_ALARM = 1e-6


def tallied(mechanism, answers):
    counts = np.zeros(mechanism.cells, np.int64)
    mechanism.add(answers, counts)
    return counts


@BOTH
@given(epsilon=epsilons, categories=sizes)
@example(epsilon=Fraction(32), categories=1_000_000)
@example(epsilon=Fraction(32), categories=2)
@example(epsilon=Fraction(1, 10_000), categories=1_000_000)
def test_the_odds_are_at_most_e_to_the_epsilon(kind, epsilon, categories):
    mechanism = kind(categories=categories, epsilon=epsilon)
    response = mechanism.response
    weights = response.row(0)
    assert sum(weights) << mechanism.seed_bits == WORD
    assert weights[1] > 0
    assert 1 < Fraction(weights[0], weights[1]) <= exp_below(epsilon)
    assert response.p == Fraction(weights[0], sum(weights))


@given(odds=st.fractions(Fraction(11, 10), 10**6), value_bits=st.integers(1, 16))
def test_one_more_coin_of_truth_would_exceed_the_odds(odds, value_bits):
    response = HashedResponse(value_bits=value_bits, word_bits=40, odds=odds)
    lies = response.total - response.truth - 1
    assert response.truth < response.total
    assert lies == 0 or 1 + Fraction(response.values * (response.truth + 1), lies) > odds


@given(epsilon=small_epsilons, categories=st.integers(2, 16))
def test_every_whole_answer_of_the_linear_family_keeps_the_promise_with_exact_p_and_q(
    epsilon, categories
):
    mechanism = FastOlh(categories=categories, epsilon=epsilon)
    transition = mechanism.transition()
    assert 1 < transition.ratio <= exp_below(epsilon)
    assert transition.answers == tuple(range(mechanism.cells))
    weights = np.array(transition.weights, dtype=object)
    assert (weights.sum(axis=1) == WORD).all()
    for code in range(categories):
        supports = [
            seed * mechanism.response.values + mechanism.hashed(seed, code)
            for seed in range(1 << mechanism.seed_bits)
        ]
        shares = [Fraction(total, WORD) for total in weights[:, supports].sum(axis=1)]
        assert shares == [mechanism.p if v == code else mechanism.q for v in range(categories)]


@given(
    epsilon=st.fractions(Fraction(1, 10_000), 5, max_denominator=10**6),
    categories=st.integers(2, 50),
    seed=st.integers(0, 2**32 - 1),
)
def test_given_its_seed_an_answer_of_the_mixer_keeps_the_promise(epsilon, categories, seed):
    mechanism = Olh(categories=categories, epsilon=epsilon)
    part = mechanism.given_seed(seed)
    assert all(sum(row) == 2**32 for row in part.weights)
    assert part.ratio <= exp_below(epsilon)
    assert part.answers[0] == seed * mechanism.response.values


def test_the_matrix_of_all_32_bit_seeds_is_not_written_out():
    with pytest.raises(InputError, match="given_seed"):
        Olh(categories=2, epsilon=1).transition()
    with pytest.raises(InputError, match="entries"):
        FastOlh(categories=10_000, epsilon=1).transition()


@pytest.mark.parametrize("kind", [Olh, FastOlh])
def test_the_variances_are_those_of_a_power_of_two(kind):
    made = [kind(categories=128, epsilon=e) for e in (0.5, 1, 2, 4)]
    assert [m.variance() for m in made] == pytest.approx([16.67, 3.69, 0.725, 0.0764], rel=2e-3)
    assert [m.response.values for m in made] == [2, 4, 8, 64]


@given(epsilon=epsilons)
def test_no_other_power_of_two_has_less_variance(epsilon):
    odds = float(exp_below(epsilon))
    chosen = Olh(categories=10, epsilon=epsilon).response.values

    def variance(g):
        p = odds / (odds + g - 1)
        return (1 - 1 / g) / g / (p - 1 / g) ** 2

    least = min(variance(2**bits) for bits in range(1, 17))
    assert variance(chosen) == pytest.approx(least, rel=1e-3)


@given(epsilon=epsilons, categories=sizes)
def test_the_tally_of_the_linear_family_always_fits(epsilon, categories):
    mechanism = FastOlh(categories=categories, epsilon=epsilon)
    assert mechanism.cells <= MAX_CELLS
    assert 1 << mechanism.seed_bits >= max(categories, mechanism.response.values)


@pytest.mark.parametrize("degree", range(1, 21))
def test_the_polynomials_are_irreducible(degree):
    """Rabin's test: x^(2^k) = x, and x^(2^(k/r)) - x has no common factor with it for primes r."""
    polynomial = POLYNOMIALS[degree - 1]
    assert polynomial.bit_length() == degree + 1
    x = remainder(0b10, polynomial)
    assert repeated_square(x, degree, degree) == x
    for prime in (r for r in (2, 3, 5, 7, 11, 13, 17, 19) if degree % r == 0):
        assert divisor(polynomial, repeated_square(x, degree // prime, degree) ^ x) == 1


def remainder(a: int, b: int) -> int:
    while a.bit_length() >= b.bit_length():
        a ^= b << (a.bit_length() - b.bit_length())
    return a


def divisor(a: int, b: int) -> int:
    while b:
        a, b = b, remainder(a, b)
    return a


def repeated_square(x: int, times: int, degree: int) -> int:
    for _ in range(times):
        x = field_product(x, x, degree)
    return x


def test_a_reducible_polynomial_would_be_seen():
    assert divisor(0b101, 0b11) == 0b11  # x^2 + 1 = (x + 1)^2
    assert remainder(0b101, 0b11) == 0


@pytest.mark.parametrize("degree", [1, 2, 5, 8])
def test_in_the_field_every_nonzero_factor_permutes(degree):
    for b in range(1, 1 << degree):
        products = {field_product(a, b, degree) for a in range(1 << degree)}
        assert products == set(range(1 << degree))


@given(epsilon=epsilons, categories=st.integers(2, 5000), seed=st.integers(0, 99))
def test_the_masks_are_the_field_product(epsilon, categories, seed):
    mechanism = FastOlh(categories=categories, epsilon=epsilon)
    rng = simulation_rng(seed)
    seeds, codes = rng.below(1 << mechanism.seed_bits, 20), rng.below(categories, 20)
    bits = np.bitwise_count(mechanism.masks[codes] & seeds[:, None].astype(np.uint32)) & 1
    by_masks = bits @ (1 << np.arange(mechanism.response.value_bits))
    assert by_masks.tolist() == [
        mechanism.hashed(int(a), int(v)) for a, v in zip(seeds, codes, strict=True)
    ]


def collisions(hash_of, value_bits: int):
    """Standardized numbers of collisions of all pairs of 64 categories under 2^18 seeds."""
    seeds = simulation_rng(1).words(2**18) & np.uint64(2**32 - 1)
    codes = [*range(32), *(2**k for k in range(5, 20)), *range(999_983, 1_000_000)]
    hashes = [hash_of(seeds, np.uint64(v)) >> np.uint64(32 - value_bits) for v in codes]
    small = np.array(hashes, dtype=np.uint8)
    pairs = [(u, v) for u in range(len(codes)) for v in range(u)]
    found = np.array([np.count_nonzero(small[u] == small[v]) for u, v in pairs])
    q = 2.0**-value_bits
    return (found - seeds.size * q) / np.sqrt(seeds.size * q * (1 - q))


@pytest.mark.parametrize("value_bits", [1, 2, 4])
def test_the_mixer_collides_as_an_ideal_hash_would(value_bits):
    """False-alarm rate 1e-6 for all 2,016 pairs together."""
    z = collisions(mixed, value_bits)
    assert np.abs(z).max() < 6.4
    assert 0.9 < z.std() < 1.1


def test_a_mixer_of_one_round_would_be_seen():
    def one_round(seeds, code):
        return (seeds ^ code) * np.uint64(MULTIPLIERS[1]) & np.uint64(2**32 - 1)

    assert np.abs(collisions(one_round, 2)).max() > 100


def test_over_all_seeds_a_category_has_each_hash_equally_often():
    """The mixer permutes: shown on the seeds that differ in 16 bits, wherever these stand."""
    for shift in (0, 8, 16):
        seeds = np.arange(2**16, dtype=np.uint64) << np.uint64(shift)
        assert np.unique(mixed(seeds, np.uint64(77))).size == seeds.size


@BOTH
@given(epsilon=epsilons, data=st.data())
def test_one_word_gives_the_same_answer_compiled_and_plain(kind, epsilon, data):
    mechanism = kind(categories=data.draw(st.integers(2, 3000)), epsilon=epsilon)
    codes = simulation_rng(1).below(mechanism.categories, 50)
    seed = data.draw(st.integers(0, 1000))
    alone, bulk = simulation_rng(seed), simulation_rng(seed)
    answers = [mechanism.answer(int(code), rng=alone) for code in codes]
    assert mechanism.answer_many(codes, rng=bulk).tolist() == answers
    mechanism.layout.checked_many(answers)


@given(epsilon=small_epsilons, categories=st.integers(2, 70), seed=st.integers(0, 99))
def test_decoding_the_linear_family_counts_the_supporting_answers(epsilon, categories, seed):
    mechanism = FastOlh(categories=categories, epsilon=epsilon)
    answers = simulation_rng(seed).below(mechanism.cells, 500).astype(mechanism.layout.dtype)
    assert mechanism.supports(tallied(mechanism, answers)).tolist() == brute(mechanism, answers)


@given(epsilon=epsilons, categories=st.integers(2, 70), n=st.integers(0, 50))
def test_counting_the_mixer_counts_the_supporting_answers(epsilon, categories, n):
    mechanism = Olh(categories=categories, epsilon=epsilon)
    codes = simulation_rng(n).below(categories, n)
    answers = mechanism.answer_many(codes, rng=simulation_rng(n))
    assert mechanism.supports(tallied(mechanism, answers)).tolist() == brute(mechanism, answers)


def brute(mechanism, answers) -> list[int]:
    split = [divmod(int(answer), mechanism.response.values) for answer in answers]
    return [
        sum(mechanism.hashed(seed, code) == value for seed, value in split)
        for code in range(mechanism.categories)
    ]


def test_more_answers_than_one_block_are_all_counted():
    mechanism, n = Olh(categories=3, epsilon=1), 2**20 + 5
    answers = mechanism.answer_many(np.zeros(n, np.uint8), rng=simulation_rng(1))
    values = answers & np.uint64(3)
    hashes = [mixed(answers >> np.uint64(2), np.uint64(v)) >> np.uint64(30) for v in range(3)]
    assert tallied(mechanism, answers).tolist() == [int((h == values).sum()) for h in hashes]


def test_tallies_of_parts_sum_to_the_tally_of_all():
    for mechanism in (Olh(categories=9, epsilon=1), FastOlh(categories=9, epsilon=1)):
        answers = mechanism.answer_many(np.arange(9), rng=simulation_rng(2))
        whole = tallied(mechanism, answers)
        assert (whole == tallied(mechanism, answers[:4]) + tallied(mechanism, answers[4:])).all()


def chi_square_p(drawn_by: FastOlh, claimed: FastOlh, code: int) -> float:
    n = 100_000
    answers = drawn_by.answer_many(np.full(n, code), rng=simulation_rng(3))
    expected = claimed.transition().probabilities()[code] * n
    return float(chisquare(np.bincount(answers, minlength=expected.size), expected).pvalue)


@pytest.mark.parametrize("code", [0, 2, 5])
def test_answers_of_the_linear_family_have_the_stated_probabilities(code):
    """False-alarm rate 1e-6 for each code; an epsilon 20% too large is rejected."""
    right, wrong = (FastOlh(categories=6, epsilon=e) for e in (1, 1.2))
    assert chi_square_p(right, right, code) > FALSE_ALARM
    assert chi_square_p(wrong, right, code) < FALSE_ALARM


def test_answers_of_the_mixer_have_the_stated_probabilities():
    """Responses relative to the true hash, and seeds in 64 parts; false-alarm rate 1e-6 each."""
    right, wrong, n = Olh(categories=6, epsilon=1), Olh(categories=6, epsilon=1.2), 100_000
    expected = np.array(right.response.row(0)) / 2**32 * n
    for mechanism, fits in ((right, True), (wrong, False)):
        answers = mechanism.answer_many(np.full(n, 5), rng=simulation_rng(4))
        seeds, values = answers >> np.uint64(2), answers & np.uint64(3)
        relative = (values ^ (mixed(seeds, np.uint64(5)) >> np.uint64(30))).astype(np.int64)
        assert (chisquare(np.bincount(relative), expected).pvalue > FALSE_ALARM) == fits
        parts = np.bincount((seeds >> np.uint64(26)).astype(np.int64), minlength=64)
        assert chisquare(parts).pvalue > FALSE_ALARM


@BOTH
def test_the_measured_error_is_the_stated_one_and_not_that_of_a_larger_epsilon(kind):
    """30 runs of 16 unequal categories: the mean of n MSE / variance has sd 0.07, and the band
    a false-alarm rate of 2e-4. The variance of an epsilon 20% larger is rejected."""
    mechanism, n = kind(categories=16, epsilon=1), 20_000
    codes = np.minimum(simulation_rng(4).below(40, n), 15)
    truth = np.bincount(codes, minlength=16) / n
    wrong = kind(categories=16, epsilon=1.2)
    rng, errors = simulation_rng(5), []
    for _ in range(30):
        counts = tallied(mechanism, mechanism.answer_many(codes, rng=rng))
        p, q = float(mechanism.p), float(mechanism.q)
        errors.append((mechanism.supports(counts) / n - q) / (p - q) - truth)
    measured = n * np.mean(np.square(errors), axis=0)
    right_ratio, wrong_ratio = (
        np.mean(measured / [spec.variance(f) for f in truth]) for spec in (mechanism, wrong)
    )
    assert 0.75 < right_ratio < 1.25 < wrong_ratio


@BOTH
@pytest.mark.parametrize("epsilon", [0, -1, float("nan"), 1000])
def test_an_unusable_epsilon_is_refused(kind, epsilon):
    with pytest.raises(InputError, match="epsilon"):
        kind(categories=4, epsilon=epsilon)


@BOTH
def test_codes_outside_are_refused_and_the_callers_list_stays(kind):
    mechanism, codes = kind(categories=4, epsilon=1), [0, 3, 1]
    for bad in (-1, 4):
        with pytest.raises(InputError, match="code"):
            mechanism.answer(bad, rng=simulation_rng(6))
        with pytest.raises(InputError, match="codes"):
            mechanism.answer_many([0, bad], rng=simulation_rng(6))
    assert mechanism.answer_many(codes, rng=simulation_rng(6)).size == 3
    assert codes == [0, 3, 1]


def test_answers_are_short():
    assert FastOlh(categories=128, epsilon=1).layout.below == 512
    assert FastOlh(categories=1_000_000, epsilon=1).layout.width == 4
    assert Olh(categories=1_000_000, epsilon=32).layout.below == 2**48


def test_the_best_response_is_the_least_variance_of_those_offered():
    sizes = [(1, 32), (2, 32), (3, 32)]
    assert best_response(sizes, odds=Fraction(3)).values == 4
    assert best_response(sizes[:1], odds=Fraction(3)).values == 2
