"""Bit response and unary encodings: loss, draws, counts, published variances, bad input."""

import subprocess
import sys
from fractions import Fraction
from math import log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from sfumato.errors import InputError
from sfumato.local import bit_kernels
from sfumato.local.frequency import unary
from sfumato.local.frequency.unary import BitResponse, BitWeights, Oue, Sue, log_above
from sfumato.local.layout import BitLayout
from sfumato.local.mechanism import add_bits
from sfumato.local.probabilities import WORD, exp_below
from sfumato.privacy.guarantees import LocalDP
from sfumato.randomness import simulation_rng

BOTH = pytest.mark.parametrize("kind", [Sue, Oue])
MANY = settings(max_examples=150, derandomize=True, deadline=None)
EPSILON = st.fractions(min_value=Fraction(1, 10_000), max_value=32)


def p_value(answers, probabilities):
    """Of the chi-square test that packed answers of at most 8 bits have these probabilities."""
    seen = np.bincount(np.asarray(answers).reshape(-1), minlength=probabilities.size)
    return stats.chisquare(seen, probabilities * seen.sum()).pvalue


# What they promise


@BOTH
@MANY
@given(epsilon=EPSILON, categories=st.integers(2, 10**6))
def test_two_differing_bits_cost_the_claim_and_no_more(kind, epsilon, categories):
    spec = kind(categories=categories, epsilon=epsilon)
    ratio = spec.p * (1 - spec.q) / (spec.q * (1 - spec.p))
    assert exp_below(epsilon * Fraction(999, 1000)) < ratio <= exp_below(epsilon)


@BOTH
@settings(max_examples=30, derandomize=True, deadline=None)
@given(epsilon=EPSILON, categories=st.integers(2, 6))
def test_no_whole_answer_tells_more_than_the_claim(kind, epsilon, categories):
    matrix = kind(categories=categories, epsilon=epsilon).transition()
    assert exp_below(epsilon * Fraction(999, 1000)) < matrix.ratio <= exp_below(epsilon)
    assert {sum(row) for row in matrix.weights} == {WORD**categories}


@BOTH
def test_the_claim_holds_where_a_truth_probability_for_the_odds_breaks_it(kind):
    """The mistake itself is in ``test_bits``: requested 0.1, delivered 1.337 and 0.644."""
    spec = kind(categories=4, epsilon="0.1")
    assert spec.guarantee == LocalDP("0.1")
    assert spec.transition().loss == pytest.approx(0.1, rel=1e-9)
    assert spec.transition().ratio <= exp_below(Fraction(1, 10))


def test_symmetric_encoding_treats_ones_and_zeros_alike():
    spec = Sue(categories=5, epsilon=1)
    assert spec.p + spec.q == 1
    assert float(spec.p) == pytest.approx(np.exp(0.5) / (np.exp(0.5) + 1))


def test_optimized_encoding_keeps_half_of_the_ones():
    spec = Oue(categories=5, epsilon=1)
    assert spec.p == Fraction(1, 2)
    assert float(spec.q) == pytest.approx(1 / (np.e + 1))


# What they draw


@BOTH
def test_bulk_draws_have_the_stated_probabilities(kind):
    """False alarms: 1e-6 for each of 6 inputs."""
    spec, rng = kind(categories=3, epsilon=1), simulation_rng(1)
    for code, row in enumerate(spec.transition().probabilities()):
        assert p_value(spec.answer_many(np.full(100_000, code), rng=rng), row) > 1e-6


@BOTH
def test_single_draws_have_the_stated_probabilities(kind):
    """False alarms: 1e-6 for each of 6 inputs."""
    spec, rng = kind(categories=3, epsilon=1), simulation_rng(2)
    for code, row in enumerate(spec.transition().probabilities()):
        assert p_value([spec.answer(code, rng=rng)[0] for _ in range(3_000)], row) > 1e-6


@BOTH
def test_draws_of_a_fifth_more_epsilon_are_rejected(kind):
    right, wrong = (kind(categories=3, epsilon=epsilon) for epsilon in (1, "1.2"))
    row, rng = right.transition().probabilities()[0], simulation_rng(3)
    assert p_value(wrong.answer_many(np.zeros(100_000, int), rng=rng), row) < 1e-6
    assert p_value([wrong.answer(0, rng=rng)[0] for _ in range(15_000)], row) < 1e-6


@BOTH
@pytest.mark.parametrize("categories", [2, 13, 100, 128])
def test_every_category_has_its_own_bit_and_unused_ones_are_zero(kind, categories):
    spec, rng = kind(categories=categories, epsilon=32), simulation_rng(4)
    codes = np.arange(categories).repeat(300)
    answers = spec.answer_many(codes, rng=rng)
    assert spec.layout == BitLayout(length=categories)
    spec.layout.checked_many(answers)
    counts = np.zeros(spec.cells, np.int64)
    spec.add(answers, counts)
    assert counts == pytest.approx(300 * float(spec.p), abs=60)  # other bits: 1e-7 each at most
    for code in (0, categories - 1):
        answer = spec.layout.checked(spec.answer(code, rng=rng))
        assert int.from_bytes(answer, "little") in (0, 1 << code)


# How well they estimate

TABLE = {
    Sue: {"0.5": 15.92, "1": 3.918, "2": 0.9207, "4": 0.1810},
    Oue: {"0.5": 15.67, "1": 3.683, "2": 0.7241, "4": 0.0760},
}


@BOTH
def test_variances_are_the_published_ones(kind):
    for epsilon, published in TABLE[kind].items():
        found = kind(categories=128, epsilon=epsilon).variance()
        assert found == pytest.approx(published, rel=7e-4)


def scaled_error(device, decoder, seed, runs=40, n=2_000):
    """n times the mean squared error over the 127 categories that nobody has."""
    rng, codes, squares = simulation_rng(seed), np.zeros(n, np.uint32), []
    for _ in range(runs):
        counts = np.zeros(device.cells, np.int64)
        device.add(device.answer_many(codes, rng=rng), counts)
        p, q = float(decoder.p), float(decoder.q)
        squares.append(((counts[1:] / n - q) / (p - q)) ** 2)
    return n * np.mean(squares)


@BOTH
@pytest.mark.parametrize(("true_epsilon", "fits"), [(1, True), ("1.2", False)])
def test_the_measured_error_is_the_stated_variance(kind, true_epsilon, fits):
    """40 x 127 squares: the band is 5 of their standard deviations, false alarms below 1e-5.
    Answers of a fifth more epsilon are rejected."""
    decoder = kind(categories=128, epsilon=1)
    found = scaled_error(kind(categories=128, epsilon=true_epsilon), decoder, seed=5)
    band = 5 * np.sqrt(2 / (40 * 127))
    assert (abs(found / decoder.variance() - 1) < band) == fits


# What they refuse and what they leave alone


@BOTH
@pytest.mark.parametrize("epsilon", [0, -1, float("nan"), float("inf"), 1000, "1e-5", None])
def test_an_epsilon_without_meaning_is_refused(kind, epsilon):
    with pytest.raises(InputError, match="epsilon"):
        kind(categories=3, epsilon=epsilon)


@BOTH
@pytest.mark.parametrize("code", [-1, 3, 1.0, True, None])
def test_a_code_outside_is_refused(kind, code):
    with pytest.raises(InputError, match="code must be"):
        kind(categories=3, epsilon=1).answer(code, rng=simulation_rng(0))


@BOTH
@pytest.mark.parametrize("codes", [[-1], [0, 3], [0.0], [[0, 1, 0]], np.eye(3, dtype=int)])
def test_codes_outside_and_vectors_are_refused(kind, codes):
    with pytest.raises(InputError, match="codes must be"):
        kind(categories=3, epsilon=1).answer_many(codes, rng=simulation_rng(0))


@BOTH
@pytest.mark.parametrize("categories", [20, 1_000_000])
def test_a_matrix_that_nobody_could_read_is_refused(kind, categories):
    with pytest.raises(InputError, match="fewer categories"):
        kind(categories=categories, epsilon=1).transition()


@BOTH
def test_the_callers_codes_stay_as_they_were(kind):
    codes = np.arange(7, dtype=np.uint8)
    kind(categories=7, epsilon=1).answer_many(codes, rng=simulation_rng(0))
    assert (codes == np.arange(7)).all()


@BOTH
def test_no_code_gives_no_answer(kind):
    assert kind(categories=9, epsilon=1).answer_many([], rng=simulation_rng(0)).shape == (0, 2)


def test_a_device_that_answers_once_loads_no_compiler():
    program = (
        "import sys; from sfumato.local.frequency.unary import Oue, Sue;"
        "from sfumato.local.frequency.subset_selection import SubsetSelection;"
        "from sfumato.randomness import simulation_rng;"
        "kinds = (Oue, Sue, SubsetSelection);"
        "[k(categories=9, epsilon=1).answer(3, rng=simulation_rng(0)) for k in kinds];"
        "sys.exit('numba' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


# Vectors of bits

VECTORS = settings(max_examples=200, derandomize=True, deadline=None)
PROBABILITY = st.fractions(min_value=Fraction(1, 10**6), max_value=1 - Fraction(1, 10**6))


def unpacked(rows, length):
    return np.unpackbits(rows, axis=1, bitorder="little")[:, :length]


# What it promises


@VECTORS
@given(p=PROBABILITY, q=PROBABILITY, length=st.integers(1, 5), data=st.data())
def test_epsilon_is_the_loss_of_the_worst_pair_of_vectors(p, q, length, data):
    if abs(p - q) < Fraction(1, 10**9):
        return
    ones = data.draw(st.sampled_from([None, *range(1, length)]))
    spec = BitResponse(length=length, p=p, q=q, ones=ones)
    ratio = spec.transition().ratio
    assert ratio <= exp_below(spec.epsilon)
    assert ratio > exp_below(spec.epsilon * Fraction(10**20 - 1, 10**20))


@VECTORS
@given(ratio=st.fractions(min_value=1 + Fraction(1, 2**64), max_value=10**30))
def test_the_logarithm_is_above_by_the_last_digit_only(ratio):
    above = log_above(ratio)
    assert ratio < exp_below(above)
    assert exp_below(above * (1 - Fraction(1, 10**28))) < ratio


@VECTORS
@given(p=PROBABILITY, q=PROBABILITY)
def test_rounding_never_raises_a_ratio(p, q):
    if abs(p - q) < Fraction(1, 10**9):
        return
    spec = BitResponse(length=1, p=p, q=q)
    assert (spec.p * WORD).denominator == (spec.q * WORD).denominator == 1
    if p > q:
        assert q <= spec.q < spec.p <= p
    else:
        assert p <= spec.p < spec.q <= q


def test_a_vector_with_any_number_of_ones_costs_every_bit():
    one_hot = BitResponse(length=8, p="0.75", q="0.25", ones=1)
    free = BitResponse(length=8, p="0.75", q="0.25")
    assert float(one_hot.epsilon) == pytest.approx(2 * log(3))
    assert float(free.epsilon) == pytest.approx(8 * log(3))


@pytest.mark.parametrize("ones", [2, 6])
def test_vectors_of_mostly_ones_differ_as_little_as_those_of_mostly_zeros(ones):
    spec = BitResponse(length=8, p="0.75", q="0.25", ones=ones)
    assert float(spec.epsilon) == pytest.approx(2 * 2 * log(3))


def truth_probability(epsilon):
    """The chance of the true answer of a binary response of this epsilon."""
    odds = exp_below(Fraction(epsilon))
    return odds / (odds + 1)


def test_a_truth_probability_in_the_place_of_the_odds_breaks_the_claim():
    requested = Fraction(1, 10)
    z, odds = truth_probability(requested / 2), truth_probability(requested)
    sue = BitResponse(length=4, p=z / (z + 1), q=1 / (z + 1), ones=1)
    oue = BitResponse(length=4, p=Fraction(1, 2), q=1 / (odds + 1), ones=1)
    assert float(sue.epsilon) == pytest.approx(1.337, abs=5e-4)
    assert float(oue.epsilon) == pytest.approx(0.644, abs=5e-4)
    assert sue.transition().ratio > exp_below(requested)
    assert oue.transition().ratio > exp_below(requested)


# What it draws

SPECS = pytest.mark.parametrize(
    "spec",
    [
        BitResponse(length=3, p="0.7", q="0.2"),
        BitResponse(length=3, p="0.1", q="0.9", ones=1),
        BitResponse(length=4, p=Fraction(5, 8), q=Fraction(1, 4), ones=2),
    ],
    ids=["any", "one-hot", "pairs"],
)


def every_input(spec):
    vectors = range(2**spec.length)
    bits = np.array([[v >> i & 1 for i in range(spec.length)] for v in vectors])
    return bits if spec.ones is None else bits[bits.sum(axis=1) == spec.ones]


@SPECS
def test_rows_of_the_matrix_sum_alike(spec):
    weights = spec.transition().weights
    assert {sum(row) for row in weights} == {WORD**spec.length}
    assert len(weights) == spec.inputs == len(every_input(spec))


@SPECS
def test_bulk_draws_of_vectors_have_the_stated_probabilities(spec):
    """False alarms: 1e-6 for each of at most 8 inputs."""
    rng = simulation_rng(1)
    for row, bits in zip(spec.transition().probabilities(), every_input(spec), strict=True):
        answers = spec.answer_many(np.tile(bits, (100_000, 1)), rng=rng)
        assert p_value(answers, row) > 1e-6


@SPECS
def test_single_draws_of_vectors_have_the_stated_probabilities(spec):
    """False alarms: 1e-6."""
    rng, row = simulation_rng(2), spec.transition().probabilities()[1]
    bits = every_input(spec)[1]
    answers = [spec.answer(bits, rng=rng)[0] for _ in range(4_000)]
    assert p_value(answers, row) > 1e-6


def test_the_draws_of_another_response_are_rejected():
    rng = simulation_rng(3)
    right, wrong = (BitResponse(length=3, p=p, q="0.2", ones=1) for p in ("0.7", "0.74"))
    row, bits = right.transition().probabilities()[0], [1, 0, 0]
    assert p_value(wrong.answer_many(np.tile(bits, (100_000, 1)), rng=rng), row) < 1e-6
    assert p_value([wrong.answer(bits, rng=rng)[0] for _ in range(15_000)], row) < 1e-4


def compare(weights, planes, rest, bits):
    """The kernels on given words: ``planes`` (8, size), ``rest`` in pieces."""
    out, scratch = bits.copy(), np.empty((2, bits.size), np.uint64)
    numbers = np.uint64(weights.from_one), np.uint64(weights.from_zero)
    bit_kernels.compare_planes(planes.reshape(-1), out, *scratch, *numbers)
    rests = [np.uint64((int(x) << 8) % WORD) for x in numbers]
    done = 0
    for piece in rest:
        done = bit_kernels.decide_rest(piece, out, *scratch, done, *rests)
    assert done == bits.size
    return out


def by_definition(weights, planes, rest, bits):
    """Each lane's digits as one number of 8 digits, or 72 where those are a tie."""
    out, words = np.zeros_like(bits), iter(np.concatenate(rest))
    for j in range(bits.size):
        for lane in range(64):
            one = int(bits[j]) >> lane & 1
            threshold = (weights.from_one if one else weights.from_zero) << 8
            number = sum((int(planes[k, j]) >> lane & 1) << (71 - k) for k in range(8))
            if number >> 64 == threshold >> 64:
                number += int(next(words))
            out[j] |= np.uint64((number < threshold) << lane)
    return out


@pytest.mark.parametrize(
    "numbers", [(2**63, 2**62 + 1), (1, WORD - 1), (0xDEADBEEF << 30, 3), (2**56, 2**56 - 1)]
)
def test_a_lane_answers_one_exactly_below_its_threshold_however_the_words_arrive(numbers):
    rng, weights = simulation_rng(4), BitWeights(from_one=numbers[0], from_zero=numbers[1])
    bits, planes = rng.words(6), rng.words(48).reshape(8, 6)
    for k in range(8):  # the second half of the lanes is a tie in every digit
        tie = -(numbers[0] >> (63 - k) & 1) % WORD, -(numbers[1] >> (63 - k) & 1) % WORD
        planes[k, 3:] = (bits[3:] & np.uint64(tie[0])) | (~bits[3:] & np.uint64(tie[1]))
    words = rng.words(400)
    words[:4] = [(x << 8) % WORD for x in (*numbers, numbers[0] + 1, numbers[1] - 1)]
    want = by_definition(weights, planes, [words], bits)
    for rest in ([words], np.split(words, [0, 1, 3, 100, 399])):
        assert (compare(weights, planes, rest, bits) == want).all()


def test_every_bit_is_drawn_for_itself_across_chunk_borders():
    """8,000 words of bits are more than a chunk. False alarms: 6e-5 for the mean, the same for
    neighbors and for the same lane of the next word, all of them at 4 standard errors."""
    bits = np.zeros(8_000, np.uint64)
    BitWeights(from_one=1, from_zero=WORD // 4 + 12_345).draw_many(bits, rng=simulation_rng(5))
    lanes = np.unpackbits(bits.view(np.uint8), bitorder="little").astype(float) - 0.25
    scale = 4 / np.sqrt(lanes.size)
    assert abs(lanes.mean()) < scale * np.sqrt(3 / 16)
    for distance in (1, 64):
        assert abs((lanes[distance:] * lanes[:-distance]).mean()) < scale * 3 / 16


def test_lanes_that_stay_open_beyond_expectation_get_more_words(monkeypatch):
    """7 spare words where about 100 are used. False alarms: 1e-6."""
    monkeypatch.setattr(unary, "_words_for", lambda size: 8 * size + 7)
    spec = BitResponse(length=3, p="0.7", q="0.2", ones=1)
    answers = spec.answer_many(np.tile([1, 0, 0], (3_200, 1)), rng=simulation_rng(11))
    assert p_value(answers, spec.transition().probabilities()[0]) > 1e-6


# What it counts


@pytest.mark.parametrize("length", [1, 7, 8, 9, 16, 63, 64, 65, 100, 128, 136, 1_000])
@pytest.mark.parametrize("n", [0, 1, 7, 64, 65, 1_003])
def test_counts_are_those_of_unpacked_bits(length, n):
    rows, counts = random_rows(length, n), np.arange(length)
    add_bits(rows, counts)
    assert (counts - np.arange(length) == unpacked(rows, length).sum(axis=0)).all()


def test_counts_do_not_overflow_their_bit_slices():
    rows, counts = np.full((70_001, 3), 255, np.uint8), np.zeros(24, np.int64)
    add_bits(rows, counts)
    assert (counts == 70_001).all()


def test_answers_at_any_address_and_in_any_stride_are_counted_alike():
    rows = random_rows(128, 300)
    raw = np.frombuffer(b"x" + rows.tobytes(), np.uint8)[1:].reshape(rows.shape)
    tallies = np.zeros((3, 128), np.int64)
    for answers, counts in zip((rows, raw, np.repeat(rows, 2, axis=0)[::2]), tallies, strict=True):
        add_bits(answers, counts)
    assert (tallies == tallies[0]).all()
    assert tallies.sum() == 3 * unpacked(rows, 128).sum()


def test_a_tally_of_another_length_is_refused():
    with pytest.raises(InputError, match="16 bytes can't be counted in 129 cells"):
        add_bits(random_rows(128, 3), np.zeros(129, np.int64))


def random_rows(length, n):
    width = (length + 7) // 8
    rows = simulation_rng(6).below(256, n * width).astype(np.uint8).reshape(n, width)
    rows[:, -1] &= 255 >> (-length % 8)
    return rows


# What it estimates


def test_the_estimate_of_expected_counts_is_the_truth():
    spec, n = BitResponse(length=3, p="0.7", q="0.2", ones=1), 1_000
    true = np.array([0, 400, 1_000])
    found = spec.estimate(true * 0.7 + (n - true) * 0.2, n)
    assert found.counts == pytest.approx(true, abs=1e-9)
    assert found.standard_errors[0] == pytest.approx(np.sqrt(n * 0.2 * 0.8) / 0.5)
    assert found.standard_errors[2] == pytest.approx(np.sqrt(n * 0.7 * 0.3) / 0.5)


@pytest.mark.parametrize(("p", "fits"), [("0.3", True), ("0.36", False)])
def test_estimates_scatter_by_their_standard_errors(p, fits):
    """600 squared errors; the band is 5 standard deviations, false alarms below 1e-5. Answers of
    another p than the decoder's are rejected."""
    decoder, device = (BitResponse(length=2, p=p, q="0.8", ones=1) for p in ("0.3", p))
    rng, bits, n = simulation_rng(7), np.tile([[1, 0], [0, 1], [0, 1]], (400, 1)), 1_200
    squares = []
    for _ in range(300):
        counts = np.zeros(2, np.int64)
        device.add(device.answer_many(bits, rng=rng), counts)
        found = decoder.estimate(counts, n)
        squares += list(((found.counts - [400, 800]) / found.standard_errors) ** 2)
    assert (abs(np.mean(squares) - 1) < 5 * np.sqrt(2 / len(squares))) == fits


@pytest.mark.parametrize(("counts", "n"), [([1, 2], 5), ([0, 1, 9], 5), ([-1, 0, 0], 5)])
def test_counts_that_n_answers_can_not_have_are_refused(counts, n):
    with pytest.raises(InputError, match="counts must be 3 whole numbers"):
        BitResponse(length=3, p="0.7", q="0.2").estimate(np.array(counts), n)


def test_nothing_is_estimated_from_no_answer():
    with pytest.raises(InputError, match="n must be a whole number >= 1"):
        BitResponse(length=3, p="0.7", q="0.2").estimate(np.zeros(3, np.int64), 0)


# What it refuses


@pytest.mark.parametrize(
    ("vector", "message"),
    [
        ([1, 1, 0], "exactly 1 of 3 bits"),
        ([0, 0, 0], "exactly 1 of 3 bits"),
        ([2, 0, 0], "0 and 1 only"),
        ([-1, 1, 1], "0 and 1 only"),
        ([1, 0], "3 whole numbers"),
        ([1.0, 0, 0], "3 whole numbers"),
        ([[1, 0, 0]], "3 whole numbers"),
        ([[1], [0, 0]], "one length"),
        (None, "3 whole numbers"),
        ("100", "3 whole numbers"),
    ],
)
def test_a_vector_that_was_not_declared_is_refused(vector, message):
    spec, rng = BitResponse(length=3, p="0.7", q="0.2", ones=1), simulation_rng(8)
    with pytest.raises(InputError, match=message):
        spec.answer(vector, rng=rng)
    with pytest.raises(InputError, match=message):
        spec.answer_many([vector], rng=rng)


@pytest.mark.parametrize(
    ("p", "q"),
    [(0.5, 0.5), (0, 0.5), (0.5, 0), (1, 0.5), (0.5, 1), (float("nan"), 0.5), (-0.1, 0.5)],
)
def test_probabilities_that_hide_or_tell_nothing_are_refused(p, q):
    with pytest.raises(InputError):
        BitResponse(length=3, p=p, q=q)


def test_probabilities_that_a_word_can_not_tell_apart_are_refused():
    with pytest.raises(InputError, match="must differ"):
        BitResponse(length=3, p=Fraction(1, 2) + Fraction(1, 2**70), q=Fraction(1, 2))


@pytest.mark.parametrize("ones", [0, 3, 4, 1.0, True])
def test_a_number_of_ones_that_leaves_no_choice_is_refused(ones):
    with pytest.raises(InputError, match="ones must be"):
        BitResponse(length=3, p="0.7", q="0.2", ones=ones)


def test_a_loss_beyond_any_promise_is_refused_at_birth():
    with pytest.raises(InputError, match="epsilon must be"):
        BitResponse(length=1_000_000, p="0.7", q="0.2")


def test_a_matrix_of_vectors_that_nobody_could_read_is_refused():
    with pytest.raises(InputError, match="fewer bits"):
        BitResponse(length=2_000, p="0.7", q="0.2").transition()


# What it leaves alone


def test_the_callers_vectors_stay_as_they_were():
    bits = np.eye(5, dtype=np.uint8)
    BitResponse(length=5, p="0.7", q="0.2", ones=1).answer_many(bits, rng=simulation_rng(9))
    assert (bits == np.eye(5)).all()


def test_unused_bits_are_zero():
    spec = BitResponse(length=13, p="0.9", q="0.8")
    bits = np.ones((1_000, 13), bool)
    answers = spec.answer_many(bits, rng=simulation_rng(10))
    assert spec.layout == BitLayout(length=13)
    assert spec.layout.checked_many(answers) is answers
    spec.layout.checked(spec.answer(bits[0], rng=simulation_rng(10)))


def test_no_vector_gives_no_answer():
    none = np.zeros((0, 5), int)
    spec = BitResponse(length=5, p="0.7", q="0.2")
    assert spec.answer_many(none, rng=simulation_rng(0)).shape == (0, 1)
