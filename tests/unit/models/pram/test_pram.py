"""Invariant PRAM: its identities, its draws against brute force, and the documents' mistakes."""

import csv
import tracemalloc
from fractions import Fraction
from functools import reduce
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import InputError
from sfumato.local.frequency.grr import Grr
from sfumato.models.answers.frequencies import norm_sub
from sfumato.models.code_counts import FULL, draw_from_rows, fill_alias_rows
from sfumato.models.pram.pram import (
    MOST_LIKELY_CELLS,
    Channel,
    along,
    compound_pram,
    estimate,
    expected_frequencies,
    observed_frequencies,
    pram,
    predicted_errors,
    redraw,
    redraw_jointly,
    redrawing,
    redrawing_helps,
)
from sfumato.randomness import simulation_rng


def grr(categories, epsilon):
    made = Grr(categories=categories, epsilon=Fraction(epsilon))
    return made, Channel.randomized_response(size=categories, p=made.p, q=made.q)


def draw(probabilities, n, rng):
    ends = np.cumsum(probabilities)
    return np.searchsorted(ends / ends[-1], rng.uniform(n), side="right").astype(np.uint8)


def random_channel(size, seed):
    matrix = simulation_rng(seed).uniform(size * size).reshape(size, size) + 0.05
    matrix += np.eye(size)
    return Channel.of(matrix / matrix.sum(axis=1, keepdims=True))


def kronecker(channels):
    return reduce(np.kron, [channel.matrix for channel in channels])


def chi_squared(counts, expected):
    return float(((counts - expected) ** 2 / expected).sum())


weights = st.lists(st.floats(0, 1), min_size=2, max_size=7).filter(lambda w: sum(w) > 1e-3)
frequencies = weights.map(lambda w: np.array(w) / sum(w))


@given(frequencies, st.integers(0, 50))
def test_redrawing_is_invariant_for_any_frequencies(pi, seed):
    channel = random_channel(pi.size, seed)
    rows = redrawing(pi, channel)
    assert rows.min() >= 0
    assert rows.sum(axis=1) == pytest.approx(np.ones(pi.size), abs=1e-12)
    assert np.abs(pi @ channel.matrix @ rows - pi).max() < 1e-12


@given(frequencies, st.floats(0.01, 5))
def test_expected_answers_are_redrawn_to_the_true_frequencies(pi, epsilon):
    _, channel = grr(pi.size, repr(epsilon))
    observed = pi @ channel.matrix
    found = estimate(observed, [channel], people=1000, estimator="norm-sub")
    assert np.abs(found - pi).max() < 1e-10
    assert np.abs(observed @ redrawing(found, channel) - pi).max() < 1e-10


@given(st.lists(st.integers(0, 9), min_size=3, max_size=3).filter(any), st.integers(0, 20))
def test_the_gap_is_none_where_nothing_was_clipped_and_told_where_it_was(counts, seed):
    channel = random_channel(3, seed)
    answers = np.repeat(np.arange(3, dtype=np.uint8), counts)
    result = pram(answers, channel, rng=simulation_rng(1))
    observed = np.array(counts) / sum(counts)
    drawn = observed @ redrawing(result.frequencies, channel)
    assert result.clipped == ((observed @ channel.inverse) < 0).any()
    assert result.gap == pytest.approx(np.abs(drawn - result.frequencies).sum() / 2, abs=1e-12)
    if not result.clipped:
        assert result.gap < 1e-10


def test_the_closed_form_of_randomized_response_is_the_inverse():
    for size, epsilon in product((2, 3, 16), ("0.01", "1", "8")):
        made, closed = grr(size, epsilon)
        solved = Channel.of(closed.matrix)
        assert closed.inverse == pytest.approx(solved.inverse, rel=1e-9, abs=1e-9)
        observed = np.arange(1.0, size + 1) / np.arange(1, size + 1).sum()
        p, q = float(made.p), float(made.q)
        assert observed @ closed.inverse == pytest.approx((observed - q) / (p - q), rel=1e-9)


def test_redrawn_codes_follow_their_rows():
    """Chi-squared with 8 degrees of freedom over three rows: above 35 once in 37,000 seeds.

    The companion: rows in which one probability is 30% off are rejected.
    """
    rows = np.array([[0.2, 0.3, 0.4, 0.1], [0.7, 0.1, 0.1, 0.1], [0.25, 0.25, 0.5, 0.0]])
    answers = simulation_rng(5).below(3, 30_000)
    codes = redraw(answers, rows, rng=simulation_rng(6))
    tables = [np.bincount(codes[answers == i], minlength=4) for i in range(3)]

    def distance(rows):
        likely = [row > 0 for row in rows]
        parts = zip(tables, rows, likely, strict=True)
        return sum(chi_squared(t[ok], t.sum() * row[ok]) for t, row, ok in parts)

    assert tables[2][3] == 0
    assert distance(rows) < 35
    wrong = rows * [[1.3, 1, 1, 1]]
    assert distance(wrong / wrong.sum(axis=1, keepdims=True)) > 35


@given(frequencies)
def test_alias_tables_hold_every_probability_and_nothing_of_a_code_that_has_none(pi):
    packed = np.empty((1, pi.size), dtype=np.uint64)
    fill_alias_rows(pi[None], packed)
    held = [0] * pi.size
    for column, entry in enumerate(packed[0].tolist()):
        own, alias = divmod(entry, 2**16)
        held[column] += own
        held[alias] += FULL - own
    assert sum(held) == pi.size * FULL
    for weight, probability in zip(held, pi.tolist(), strict=True):
        assert abs(Fraction(weight, pi.size * FULL) - Fraction(probability)) < Fraction(1, 2**45)
        assert weight == 0 or probability > 0


def test_words_at_equal_distances_give_every_code_its_share():
    """Exact to one word at each of 14 boundaries; the companion with 1% moved is not."""
    pi = np.array([[0.3, 0.01, 0.0, 0.25, 0.04, 0.15, 0.25]])
    packed, codes = np.empty((1, 7), dtype=np.uint64), np.empty(2**16, dtype=np.uint8)
    fill_alias_rows(pi, packed)
    words = np.arange(2**16, dtype=np.uint64) << np.uint64(48)
    draw_from_rows(np.zeros_like(codes), words, packed, codes)
    shares = np.bincount(codes, minlength=7)
    assert np.abs(shares - 2**16 * pi[0]).max() <= 14
    assert np.abs(shares - 2**16 * np.roll(pi[0], 1)).max() > 600


@pytest.mark.parametrize("dtype", [np.uint8, np.uint32, np.int64, np.uint64])
def test_redrawing_keeps_the_type_and_the_order_of_the_answers(dtype):
    answers = np.array([2, 0, 1, 1, 2, 0], dtype=dtype)
    rotation = np.roll(np.eye(3), 1, axis=1)
    codes = redraw(answers, rotation, rng=simulation_rng(0))
    assert codes.dtype == dtype
    assert codes.tolist() == [0, 1, 2, 2, 0, 1]


@given(st.lists(st.integers(2, 4), min_size=1, max_size=3), st.integers(0, 50))
def test_a_table_goes_through_channels_as_through_their_kronecker_product(sizes, seed):
    channels = [random_channel(size, seed + place) for place, size in enumerate(sizes)]
    table = simulation_rng(seed).uniform(int(np.prod(sizes))).reshape(sizes)
    found = along(table, [channel.matrix for channel in channels])
    assert found.reshape(-1) == pytest.approx(table.reshape(-1) @ kronecker(channels))


@given(st.lists(st.integers(2, 4), min_size=2, max_size=3), st.integers(0, 50))
def test_compound_frequencies_are_those_of_the_kronecker_product(sizes, seed):
    channels = [random_channel(size, seed + place) for place, size in enumerate(sizes)]
    rng = simulation_rng(seed)
    block = np.array([rng.below(size, 200) for size in sizes])
    observed = observed_frequencies(block, channels)
    whole, flat = Channel.of(kronecker(channels)), observed.reshape(-1)
    found = estimate(observed, channels, people=200, estimator="norm-sub")
    assert found.reshape(-1) == pytest.approx(norm_sub(flat @ whole.inverse), abs=1e-9)
    drawn = expected_frequencies(observed, found, channels)
    expected = flat @ redrawing(found.reshape(-1), whole)
    assert drawn.reshape(-1) == pytest.approx(expected, abs=1e-12)
    one, other = (
        predicted_errors(observed, channels, people=200),
        predicted_errors(flat, [whole], people=200),
    )
    assert one.answers == pytest.approx(other.answers, rel=1e-6)
    assert one.answers_at_most == pytest.approx(other.answers_at_most)
    assert one.redrawn == pytest.approx(other.redrawn)


@given(st.lists(st.integers(2, 4), min_size=2, max_size=3), st.integers(0, 50))
def test_a_cluster_is_invariant_and_where_nothing_is_clipped_redrawn_to_its_estimate(sizes, seed):
    """The second holds only with the channel that was applied: with another there is a gap."""
    channels = [random_channel(size, seed + place) for place, size in enumerate(sizes)]
    pi = 0.1 + simulation_rng(seed).uniform(int(np.prod(sizes))).reshape(sizes)
    pi /= pi.sum()
    answers = along(pi, [channel.matrix for channel in channels])
    assert np.abs(expected_frequencies(answers, pi, channels) - pi).max() < 1e-12
    found = estimate(answers, channels, people=1, estimator="norm-sub")
    assert np.abs(expected_frequencies(answers, found, channels) - found).max() < 1e-12
    assert np.abs(found - pi).max() < 1e-9
    others = [random_channel(size, seed + place + 100) for place, size in enumerate(sizes)]
    assert np.abs(expected_frequencies(answers, pi, others) - pi).max() > 1e-6


def test_a_cell_without_frequency_is_never_drawn():
    channels = [random_channel(3, 1), random_channel(4, 2)]
    pi = simulation_rng(3).uniform(12).reshape(3, 4)
    pi[[0, 1, 2], [3, 1, 0]] = 0
    block = np.array([simulation_rng(4).below(size, 20_000) for size in (3, 4)])
    codes = redraw_jointly(block, pi / pi.sum(), channels, rng=simulation_rng(5))
    assert len(np.unique(4 * codes[0] + codes[1])) == 9
    assert (pi[codes[0], codes[1]] > 0).all()


def test_a_cluster_of_64_000_cells_takes_tables_and_no_matrix_of_them():
    """Tables of 0.5 MB each; the compound matrix would take 32 GB."""
    _, channel = grr(40, "4")
    block = simulation_rng(1).below(40, 3 * 5_000).reshape(3, 5_000).astype(np.uint8)
    tracemalloc.start()
    result = compound_pram(block, [channel] * 3, rng=simulation_rng(2))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert result.codes.shape == block.shape
    assert peak < 20e6


def test_joint_draws_follow_the_row_of_the_compound_matrix():
    """Chi-squared over the 12 cells behind each of two answers, 22 degrees of freedom: above 60
    once in 40,000 seeds.

    The companion: the members redrawn one by one are rejected.
    """
    channels = [random_channel(2, 1), random_channel(3, 2), random_channel(2, 3)]
    pi = simulation_rng(4).uniform(12).reshape(2, 3, 2) ** 3
    pi /= pi.sum()
    rows = redrawing(pi.reshape(-1), Channel.of(kronecker(channels)))
    asked = [(0, 2, 1), (1, 0, 0)]
    block = np.repeat(np.array(asked, dtype=np.uint8).T, 20_000, axis=1)
    jointly = redraw_jointly(block, pi, channels, rng=simulation_rng(5))
    alone = np.stack([
        redraw(block[axis], redrawing(pi.sum(axis=others), channels[axis]), rng=simulation_rng(6))
        for axis, others in ((0, (1, 2)), (1, (0, 2)), (2, (0, 1)))
    ])  # fmt: skip

    def distance(codes):
        cells = np.ravel_multi_index(tuple(codes.astype(np.intp)), pi.shape).reshape(2, -1)
        where = [np.ravel_multi_index(answer, pi.shape) for answer in asked]
        tables = [np.bincount(part, minlength=12) for part in cells]
        return sum(chi_squared(t, t.sum() * rows[i]) for t, i in zip(tables, where, strict=True))

    assert distance(jointly) < 60
    assert distance(alone) > 60


def test_compound_redrawing_restores_what_ties_two_attributes():
    """True share of equal codes 0.9; its standard error is 0.009, five of which are allowed."""
    made, channel = grr(2, "1")
    rng = simulation_rng(8)
    first = rng.below(2, 40_000).astype(np.uint8)
    second = first ^ (rng.uniform(first.size) < 0.1)
    answers = np.stack([made.answer_many(c.astype(np.uint8), rng=rng) for c in (first, second)])
    equal = [np.mean(block[0] == block[1]) for block in (
        answers,
        [pram(row, channel, rng=rng).codes for row in answers],
        compound_pram(answers, [channel] * 2, rng=rng).codes,
    )]  # fmt: skip
    assert equal[0] < 0.6
    assert equal[1] < 0.6
    assert abs(equal[2] - 0.9) < 0.046


def test_the_likeliest_frequencies_are_the_inverse_where_that_is_possible():
    _, channel = grr(3, "2")
    pi = np.array([0.5, 0.3, 0.2])
    found = estimate(pi @ channel.matrix, [channel], people=10**6, estimator="em")
    assert found == pytest.approx(pi, abs=1e-3)


def test_predicted_errors_are_the_mean_errors():
    """500 repetitions: each mean within 5 standard errors, so a false alarm is one in 10^6.

    A noise that is 30% off would be seen: it is more than 5 standard errors.
    """
    made, channel = grr(4, "1")
    codes = np.repeat(np.arange(4, dtype=np.uint8), [600, 250, 100, 50])
    truth, rng = np.bincount(codes) / codes.size, simulation_rng(9)
    found = []
    for _ in range(500):
        answers = made.answer_many(codes, rng=rng).astype(np.uint8)
        observed = observed_frequencies(answers[None], [channel])
        predicted = predicted_errors(observed, [channel], people=codes.size)
        unbiased = observed @ channel.inverse
        projected = ((norm_sub(unbiased) - truth) ** 2).sum()
        raw = ((observed - truth) ** 2).sum()
        found.append([predicted.answers - raw, predicted.redrawn - ((unbiased - truth) ** 2).sum(),
                      predicted.redrawn, predicted.redrawn - projected, raw])  # fmt: skip
    means, errors = np.mean(found, axis=0), np.std(found, axis=0) / np.sqrt(500)
    assert abs(means[0]) < 5 * errors[0]
    assert abs(means[1]) < 5 * errors[1] < 0.3 * means[2]
    assert means[3] > -5 * errors[3]
    assert means[4] <= predicted.answers_at_most


def test_no_distribution_makes_the_answers_worse_than_the_ceiling():
    channel = random_channel(3, 7)
    grid = [np.array([a, b, 10 - a - b]) / 10 for a in range(11) for b in range(11 - a)]
    worst = max(float(((pi @ channel.matrix - pi) ** 2).sum()) for pi in grid)
    ceiling = predicted_errors(np.ones(3) / 3, [channel], people=10**12).answers_at_most
    assert ceiling == pytest.approx(worst)


@pytest.mark.parametrize(("epsilon", "helps"), [("1/80", False), ("1/16", True), ("1/4", True)])
def test_strong_noise_is_noticed_before_clipping_makes_things_worse(epsilon, helps):
    """Sixteen binary attributes of 20,000 people, 16 epsilon in all: 0.2, 1 and 4."""
    made, channel = grr(2, epsilon)
    for seed in range(5):
        rng = simulation_rng(seed)
        shares = 0.1 + 0.5 * rng.uniform(16)
        block = np.array([rng.uniform(20_000) < share for share in shares]).astype(np.uint8)
        answers = np.array([made.answer_many(codes, rng=rng) for codes in block]).astype(np.uint8)
        results = [pram(column, channel, rng=rng) for column in answers]
        assert redrawing_helps(results) == helps
        errors = [
            np.mean(np.abs(codes.mean(axis=1) - block.mean(axis=1)))
            for codes in (answers, np.array([result.codes for result in results]))
        ]
        assert (errors[1] < errors[0]) == helps


def test_a_channel_of_another_budget_loses_the_invariance():
    """Document 001 takes Q from the second budget while the answers carry the first."""
    made, channel = grr(3, "1")
    _, other = grr(3, "2")
    truth, rng = np.array([0.7, 0.2, 0.1]), simulation_rng(11)
    answers = made.answer_many(draw(truth, 200_000, rng), rng=rng)
    right, wrong = pram(answers, channel, rng=rng), pram(answers, other, rng=rng)
    rows = redrawing(wrong.frequencies, other)
    assert np.abs(truth @ channel.matrix @ redrawing(truth, channel) - truth).max() < 1e-12
    assert np.abs(wrong.frequencies @ channel.matrix @ rows - wrong.frequencies).max() > 0.03
    published = [np.bincount(result.codes, minlength=3) / 200_000 for result in (right, wrong)]
    assert np.abs(published[0] - truth).max() < 0.02
    assert np.abs(published[1] - truth).max() > 0.1


def test_the_normalized_inverse_of_the_documents_debiases_nothing():
    """Shifted by its least entry and divided by its row sums, the inverse is the identity."""
    _, channel = grr(4, "1")
    shifted = channel.inverse - channel.inverse.min()
    assert shifted / shifted.sum(axis=1, keepdims=True) == pytest.approx(np.eye(4), abs=1e-12)
    observed = np.array([0.4, 0.3, 0.2, 0.1])
    found = estimate(observed, [channel], people=1, estimator="norm-sub")
    assert np.abs(found - observed).max() > 0.1


def test_entries_cut_at_zero_lose_their_sum_and_projected_frequencies_do_not():
    _, channel = grr(3, "1/2")
    observed = np.array([0.5, 0.4, 0.1])
    negative = observed @ channel.inverse
    assert negative.min() < 0
    joint = (negative[:, None] * channel.matrix).T
    cut = np.maximum(joint / joint.sum(axis=1, keepdims=True), 0)
    assert np.abs(cut.sum(axis=1) - 1).max() > 0.05
    assert redrawing(norm_sub(negative), channel).sum(axis=1) == pytest.approx(np.ones(3))
    with pytest.raises(InputError, match="Project the estimate to the simplex first"):
        redrawing(negative, channel)
    for wrong in (cut, joint / joint.sum(axis=1, keepdims=True)):
        with pytest.raises(InputError, match="not to be cut"):
            redraw(np.array([0, 1, 2]), wrong, rng=simulation_rng(0))


@pytest.mark.parametrize(
    "wrong", [np.ones((2, 3)) / 5, np.ones((3, 2)) / 6, [[-0.1, 0.5, 0.1], [0.1, 0.3, 0.1]]]
)
def test_joint_frequencies_that_are_none_are_refused(wrong):
    channels = [random_channel(2, 1), random_channel(3, 2)]
    with pytest.raises(InputError, match=r"of shape \(2, 3\)"):
        redraw_jointly(
            np.zeros((2, 4), dtype=int), np.array(wrong), channels, rng=simulation_rng(0)
        )


def test_a_cluster_with_too_many_cells_is_refused_before_anything_is_built():
    _, channel = grr(10, "1")
    with pytest.raises(InputError, match="1,000,000,000,000 cells; at most 1,048,576"):
        compound_pram(np.zeros((12, 5), dtype=np.uint8), [channel] * 12, rng=simulation_rng(0))
    with pytest.raises(InputError, match=f"up to {MOST_LIKELY_CELLS:,} cells"):
        compound_pram(
            np.zeros((4, 5), dtype=np.uint8), [channel] * 4, rng=simulation_rng(0), estimator="em"
        )


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        (np.array([0, 3]), "no code of its attribute's channel"),
        (np.array([0, -1]), "no code of its attribute's channel"),
        (np.array([0.5, 1.0]), "whole codes of 1 attributes, got float64"),
        (np.array([], dtype=np.int64), "no answers"),
        (np.zeros((2, 2), dtype=np.int64), "of shape"),
    ],
)
def test_answers_that_do_not_fit_the_channel_are_refused(answers, message):
    _, channel = grr(3, "1")
    with pytest.raises(InputError, match=message):
        pram(answers, channel, rng=simulation_rng(0))


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (np.eye(2), "must be positive"),
        (np.full((2, 2), 0.6), "rows must sum to 1"),
        (np.full((2, 3), 1 / 3), "as many answers as codes"),
        (np.full((2, 2), 0.5), "can't be inverted"),
    ],
)
def test_a_matrix_that_is_no_channel_is_refused(matrix, message):
    with pytest.raises(InputError, match=message):
        Channel.of(matrix)


@pytest.mark.parametrize(("p", "q"), [(0.5, 0.5), (0.4, 0.6), (0.7, 0.2), (1.0, 0.0)])
def test_a_response_without_information_or_without_sum_is_refused(p, q):
    with pytest.raises(InputError, match="0 < q < p"):
        Channel.randomized_response(size=2, p=p, q=q)


def test_an_unknown_estimator_and_no_results_are_refused():
    _, channel = grr(2, "1")
    with pytest.raises(InputError, match="estimator must be one of 'norm-sub', 'em'"):
        pram(np.array([0, 1]), channel, rng=simulation_rng(0), estimator="mle")
    with pytest.raises(InputError, match="no result"):
        redrawing_helps([])


@pytest.fixture(scope="module")
def three_way():
    """The cell numbers of all 560 three-way marginals of 16 binary columns."""
    return np.array(list(combinations(range(16), 3)))


def mean_distance(a, b, marginals):
    found = 0.0
    for i, j, k in marginals:
        tables = [np.bincount(4 * x[i] + 2 * x[j] + x[k], minlength=8) for x in (a, b)]
        found += np.abs(tables[0] - tables[1]).sum() / (2 * a.shape[1])
    return found / len(marginals)


def test_on_nltcs_redrawing_wins_at_epsilon_one_and_is_noticed_to_lose_at_a_fifth(
    real_data, three_way
):
    """Means of three runs with standard deviations of about .02, .05 at 0.2: bands of 3 of them."""
    with (real_data / "nltcs" / "nltcs.csv").open() as file:
        block = np.array(list(csv.reader(file))[1:], dtype=np.uint8).T.copy()
    found = {}
    for total in ("0.2", "1"):
        made, channel = grr(2, Fraction(total) / 16)
        runs = []
        for seed in range(3):
            rng = simulation_rng(seed)
            answers = np.array([made.answer_many(c, rng=rng) for c in block]).astype(np.uint8)
            results = [pram(column, channel, rng=rng) for column in answers]
            codes = np.array([result.codes for result in results])
            distances = [mean_distance(block, x, three_way) for x in (answers, codes)]
            runs.append([*distances, redrawing_helps(results)])
        found[total] = np.mean(runs, axis=0)
    assert found["1"][0] == pytest.approx(0.432, abs=0.005)
    assert found["1"][1] == pytest.approx(0.302, abs=0.035)
    assert found["1"][2] == 1
    assert found["0.2"][0] == pytest.approx(0.437, abs=0.005)
    assert found["0.2"][1] > 0.5
    assert found["0.2"][2] == 0
