"""Subset selection: exact ratio, uniform sets, a layout that shows the set only, bad input."""

from fractions import Fraction
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from sfumato.errors import InputError
from sfumato.local import bit_kernels
from sfumato.local.frequency.subset_selection import SubsetSelection
from sfumato.local.frequency.unary import Oue
from sfumato.local.layout import BitLayout
from sfumato.local.probabilities import WORD, exp_below
from sfumato.randomness import simulation_rng

MANY = settings(max_examples=200, derandomize=True, deadline=None)
EPSILON = st.fractions(min_value=Fraction(1, 10_000), max_value=32)


def p_value(answers, matrix, code):
    """Of the chi-square test that answers to the code have the matrix's probabilities."""
    values, seen = np.unique([int.from_bytes(a, "little") for a in answers], return_counts=True)
    found = dict(zip(values.tolist(), seen.tolist(), strict=True))
    counts = [found.pop(int.from_bytes(a, "little"), 0) for a in matrix.answers]
    assert not found, "a set of another size was answered"
    row = matrix.probabilities()[code]
    return stats.chisquare(counts, row * len(answers)).pvalue


def sets(spec, codes, seed):
    answers = spec.answer_many(codes, rng=simulation_rng(seed))
    return np.unpackbits(answers, axis=1, bitorder="little")[:, : spec.categories]


# What it promises


@MANY
@given(epsilon=EPSILON, categories=st.integers(2, 10**6))
def test_the_true_category_costs_the_claim_and_no_more(epsilon, categories):
    spec = SubsetSelection(categories=categories, epsilon=epsilon)
    m, w, p = categories, spec.size, spec.p
    ratio = p * (m - w) / ((1 - p) * w)
    assert 1 <= w <= m / 2
    assert exp_below(epsilon * Fraction(999, 1000)) < ratio <= exp_below(epsilon)
    assert spec.q == p * Fraction(w - 1, m - 1) + (1 - p) * Fraction(w, m - 1)


@settings(max_examples=50, derandomize=True, deadline=None)
@given(epsilon=EPSILON, categories=st.integers(2, 9))
def test_no_whole_answer_tells_more_than_the_claim(epsilon, categories):
    spec = SubsetSelection(categories=categories, epsilon=epsilon)
    matrix = spec.transition()
    assert exp_below(epsilon * Fraction(999, 1000)) < matrix.ratio <= exp_below(epsilon)
    assert len(matrix.answers) == len(set(matrix.answers)) == comb(categories, spec.size)
    total = WORD * (categories - spec.size) * comb(categories - 1, spec.size - 1)
    assert {sum(row) for row in matrix.weights} == {total}


def test_p_and_q_are_those_of_the_matrix():
    spec = SubsetSelection(categories=7, epsilon="0.5")
    matrix = spec.transition()
    held = [int.from_bytes(a, "little") for a in matrix.answers]
    for code, row in enumerate(matrix.weights):
        for category in range(7):
            weight = sum(w for w, bits in zip(row, held, strict=True) if bits >> category & 1)
            assert Fraction(weight, sum(row)) == (spec.p if category == code else spec.q)


def test_a_set_says_of_its_members_only_that_they_are_members():
    spec = SubsetSelection(categories=7, epsilon="0.5")
    matrix = spec.transition()
    for answer, column in zip(matrix.answers, zip(*matrix.weights, strict=True), strict=True):
        members = [int.from_bytes(answer, "little") >> code & 1 for code in range(7)]
        assert len({w for w, member in zip(column, members, strict=True) if member}) == 1
        assert len({w for w, member in zip(column, members, strict=True) if not member}) == 1


# What it draws

SIZES = pytest.mark.parametrize(("categories", "epsilon"), [(2, 1), (5, "0.1"), (6, 2), (9, "0.5")])


@SIZES
def test_bulk_draws_have_the_stated_probabilities(categories, epsilon):
    """False alarms: 1e-6 for each of 8 inputs."""
    spec, rng = SubsetSelection(categories=categories, epsilon=epsilon), simulation_rng(1)
    for code in (0, categories - 1):
        answers = spec.answer_many(np.full(50_000, code), rng=rng)
        assert p_value([a.tobytes() for a in answers], spec.transition(), code) > 1e-6


@SIZES
def test_single_draws_have_the_stated_probabilities(categories, epsilon):
    """False alarms: 1e-6 for each of 8 inputs."""
    spec, rng = SubsetSelection(categories=categories, epsilon=epsilon), simulation_rng(2)
    for code in (0, categories - 1):
        answers = [spec.answer(code, rng=rng) for _ in range(3_000)]
        assert p_value(answers, spec.transition(), code) > 1e-6


def test_draws_of_a_fifth_more_epsilon_are_rejected():
    right, wrong = (SubsetSelection(categories=9, epsilon=e) for e in (1, "1.2"))
    assert right.size == wrong.size
    rng, matrix = simulation_rng(3), right.transition()
    bulk = wrong.answer_many(np.zeros(50_000, int), rng=rng)
    assert p_value([a.tobytes() for a in bulk], matrix, 0) < 1e-6
    assert p_value([wrong.answer(0, rng=rng) for _ in range(15_000)], matrix, 0) < 1e-6


def test_independent_bits_of_the_right_frequency_are_rejected():
    spec = SubsetSelection(categories=6, epsilon=1)
    answers = Oue(categories=6, epsilon=1).answer_many(np.zeros(1_000, int), rng=simulation_rng(4))
    with pytest.raises(AssertionError, match="another size"):
        p_value([a.tobytes() for a in answers], spec.transition(), 0)


def largest_deviation(spec, code, seen, pairs):
    """In standard errors, of single categories and of pairs of others from their chances."""
    m, w, p, n = spec.categories, spec.size, spec.p, len(seen)
    both = (w - 1) * (p * (w - 2) + (1 - p) * w) / Fraction((m - 1) * (m - 2))
    single = [float(spec.p if category == code else spec.q) for category in range(m)]
    chances = np.array(single + [float(both)] * len(pairs))
    found = [*seen.mean(axis=0), *((seen[:, a] & seen[:, b]).mean() for a, b in pairs)]
    return np.abs((np.array(found) - chances) / np.sqrt(chances * (1 - chances) / n)).max()


@pytest.mark.parametrize("categories", [60, 64, 128])
def test_large_sets_hold_every_category_and_every_pair_alike(categories):
    """At most 135 deviations of at most 5.5 standard errors: false alarms below 1e-5 each.
    Rows of whole words and of bytes; pairs inside one byte, across bytes, at both ends."""
    spec, code = SubsetSelection(categories=categories, epsilon=1), 9
    pairs = [(0, 1), (1, 8), (8, 10), (0, categories - 1), (20, 50), (31, 33)]
    seen = sets(spec, np.full(60_000, code), seed=5)
    assert largest_deviation(spec, code, seen, pairs) < 5.5
    seen[::20, 20] = 1  # a place that is favored in every twentieth set
    assert largest_deviation(spec, code, seen, pairs) > 5.5


def test_flips_do_not_depend_on_how_the_words_arrive():
    rng, n = simulation_rng(7), 50
    start = rng.below(256, n * 16).astype(np.uint8).reshape(n, 16)
    codes, words = rng.below(128, n).astype(np.uint32), rng.words(2_000)
    whole, parts = start.copy(), start.copy()
    assert bit_kernels.balance(words, codes, whole.view(np.uint64), 0, 34, 128) == n
    done = 0
    for piece in np.split(words, range(0, 2_000, 3)):
        done = bit_kernels.balance(piece, codes, parts, done, 34, 128)
    assert done == n
    assert (whole == parts).all()
    assert (np.bitwise_count(whole).sum(axis=1) == 34).all()
    byte, lane = codes >> 3, codes & 7
    kept = whole[np.arange(n), byte] >> lane & 1
    assert (kept == start[np.arange(n), byte] >> lane & 1).all()


@pytest.mark.parametrize("categories", [2, 3, 8, 13, 64, 100, 128, 1_000])
@pytest.mark.parametrize("epsilon", ["0.01", 1, 8])
def test_an_answer_is_a_set_of_the_stated_size(categories, epsilon):
    spec, rng = SubsetSelection(categories=categories, epsilon=epsilon), simulation_rng(8)
    assert spec.layout == BitLayout(length=categories, ones=spec.size)
    spec.layout.checked_many(spec.answer_many(np.arange(categories), rng=rng))
    spec.layout.checked(spec.answer(categories - 1, rng=rng))


# How well it estimates


def test_the_variance_is_at_most_that_of_optimized_unary_encoding():
    for epsilon in ("0.5", 1, 2, 4):
        chosen = SubsetSelection(categories=128, epsilon=epsilon).variance()
        assert chosen < Oue(categories=128, epsilon=epsilon).variance()


@pytest.mark.parametrize(("true_epsilon", "fits"), [(1, True), ("1.2", False)])
def test_the_measured_error_is_the_stated_variance(true_epsilon, fits):
    """40 x 127 squares, nearly independent: the band is 5 standard deviations, false alarms below
    1e-5. Answers of a fifth more epsilon are rejected."""
    decoder = SubsetSelection(categories=128, epsilon=1)
    device = SubsetSelection(categories=128, epsilon=true_epsilon)
    p, q, n, squares = float(decoder.p), float(decoder.q), 2_000, []
    rng, codes = simulation_rng(9), np.zeros(n, np.uint32)
    for _ in range(40):
        counts = np.zeros(device.cells, np.int64)
        device.add(device.answer_many(codes, rng=rng), counts)
        squares.append(((counts[1:] / n - q) / (p - q)) ** 2)
    ratio = n * np.mean(squares) / decoder.variance()
    assert (abs(ratio - 1) < 5 * np.sqrt(2 / (40 * 127))) == fits


# What it refuses and what it leaves alone


@pytest.mark.parametrize("epsilon", [0, -1, float("nan"), 1000])
def test_an_epsilon_without_meaning_is_refused(epsilon):
    with pytest.raises(InputError, match="epsilon"):
        SubsetSelection(categories=3, epsilon=epsilon)


@pytest.mark.parametrize("codes", [[-1], [3], [0.5], np.eye(3, dtype=int)])
def test_codes_outside_are_refused(codes):
    with pytest.raises(InputError, match="codes must be"):
        SubsetSelection(categories=3, epsilon=1).answer_many(codes, rng=simulation_rng(0))


def test_a_code_outside_is_refused():
    with pytest.raises(InputError, match="code must be"):
        SubsetSelection(categories=3, epsilon=1).answer(3, rng=simulation_rng(0))


@pytest.mark.parametrize("categories", [64, 1_000_000])
def test_a_matrix_that_nobody_could_read_is_refused(categories):
    with pytest.raises(InputError, match="fewer categories"):
        SubsetSelection(categories=categories, epsilon=1).transition()


def test_the_callers_codes_stay_as_they_were():
    codes = np.arange(7, dtype=np.uint8)
    SubsetSelection(categories=7, epsilon=1).answer_many(codes, rng=simulation_rng(0))
    assert (codes == np.arange(7)).all()


def test_no_code_gives_no_answer():
    spec = SubsetSelection(categories=9, epsilon=1)
    assert spec.answer_many([], rng=simulation_rng(0)).shape == (0, 2)
