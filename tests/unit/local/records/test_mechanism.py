"""Splitting and sampling: the promise over whole records, exactly; the estimates, measured."""

from fractions import Fraction
from functools import cached_property
from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, chi2, chisquare, norm

from sfumato.errors import InputError
from sfumato.local.frequency.choice import best_for
from sfumato.local.frequency.grr import Grr
from sfumato.local.probabilities import exp_below
from sfumato.local.records.mechanism import RecordAnswers, Sampling, Splitting
from sfumato.models.answers import frequencies
from sfumato.privacy.guarantees import LocalDP
from sfumato.randomness import simulation_rng

FALSE_ALARM = 1e-6
SIZES = (2, 3)
MECHANISMS = [
    Splitting(sizes=SIZES, epsilon=1),
    Sampling(sizes=SIZES, epsilon=1),
    Sampling(sizes=(2, 2, 3), epsilon=1, degree=2),
]
BY_NAME = pytest.mark.parametrize("mechanism", MECHANISMS, ids=["splitting", "sampling", "pairs"])


class Spendthrift(Splitting):
    """The planted bug: all of epsilon for every attribute."""

    @cached_property
    def parts(self):
        return tuple(self._part((column,), self.epsilon) for column in range(len(self.sizes)))


def population(sizes, n, *, seed=0):
    """Codes that lean to the small ones: the smaller of two uniform draws."""
    rng = simulation_rng(seed)
    return np.stack([np.minimum(rng.below(m, n), rng.below(m, n)) for m in sizes])


def table(block, columns, sizes):
    """The exact frequencies of a marginal."""
    shape = tuple(sizes[column] for column in columns)
    codes = np.ravel_multi_index(tuple(block[list(columns)]), shape)
    return np.bincount(codes, minlength=prod(shape)).reshape(shape) / block.shape[1]


def estimates(mechanism, block, *, runs, seed):
    """Frequencies and standard errors of the first part's first cell, and its variance."""
    rng, found = simulation_rng(seed), []
    for _ in range(runs):
        state = mechanism.zero()
        mechanism.add(mechanism.answer_many(block, rng=rng), state)
        first = mechanism.estimate(state)[0]
        found.append((first.frequencies.flat[0], first.standard_errors.flat[0], first.answers))
    return np.array(found).T


def in_band(squares, alpha=FALSE_ALARM):
    """Whether squared z-scores sum to what a chi-square of as many degrees of freedom may be."""
    total, n = np.sum(squares), len(squares)
    return chi2.ppf(alpha / 2, n) <= total <= chi2.isf(alpha / 2, n)


def covers(hits, alpha=FALSE_ALARM):
    """Whether so many hits may come from 95% intervals."""
    return hits.sum() >= binom.ppf(alpha / 2, len(hits), 0.95)


def sent(mechanism, answers):
    """Whole answers of one person as the numbers that ``transition`` gives them."""
    sizes = [part.mechanism.cells for part in mechanism.parts]
    if isinstance(mechanism, Splitting):
        return np.ravel_multi_index(tuple(answers.parts), sizes)
    starts = np.cumsum([0, *sizes[:-1]])
    return np.concatenate([s + a.astype(int) for s, a in zip(starts, answers.parts, strict=True)])


@BY_NAME
def test_the_exact_loss_over_whole_records_is_epsilon_and_not_more(mechanism):
    transition = mechanism.transition()
    inner = [part.mechanism.transition().ratio for part in mechanism.parts]
    assert transition.ratio == (prod(inner) if isinstance(mechanism, Splitting) else max(inner))
    assert transition.ratio <= exp_below(Fraction(1))
    assert transition.loss == pytest.approx(1, abs=1e-9)
    assert mechanism.guarantee == LocalDP(1)


def test_the_exact_loss_refutes_a_full_epsilon_for_every_attribute():
    transition = Spendthrift(sizes=SIZES, epsilon=1).transition()
    assert transition.ratio > exp_below(Fraction(1))
    assert transition.loss == pytest.approx(2, abs=1e-9)


def test_every_record_has_the_same_total_weight():
    for mechanism in MECHANISMS:
        assert len({sum(row) for row in mechanism.transition().weights}) == 1


@given(epsilon=st.fractions(Fraction(1, 10), 8), d=st.integers(1, 12))
def test_the_parts_of_a_split_sum_to_the_whole_exactly(epsilon, d):
    mechanism = Splitting(sizes=(3,) * d, epsilon=epsilon)
    assert sum(part.mechanism.epsilon for part in mechanism.parts) == epsilon
    assert {part.mechanism.epsilon for part in mechanism.parts} == {epsilon / d}


def test_a_sample_is_answered_with_all_of_epsilon():
    for mechanism in MECHANISMS[1:]:
        assert {part.mechanism.epsilon for part in mechanism.parts} == {Fraction(1)}


def test_the_parts_are_the_attributes_or_all_their_pairs():
    columns = [[part.columns for part in mechanism.parts] for mechanism in MECHANISMS]
    assert columns == [[(0,), (1,)], [(0,), (1,)], [(0, 1), (0, 2), (1, 2)]]
    assert [part.mechanism.categories for part in MECHANISMS[2].parts] == [4, 6, 6]


def test_each_part_is_answered_by_the_best_protocol_for_its_size():
    mechanism = Sampling(sizes=(4, 100), epsilon=1)
    assert [p.mechanism for p in mechanism.parts] == [
        best_for(categories=4, epsilon=Fraction(1)),
        best_for(categories=100, epsilon=Fraction(1)),
    ]
    insisted = Sampling(sizes=(4, 100), epsilon=1, protocol=Grr)
    assert insisted.parts[1].mechanism == Grr(categories=100, epsilon=1)


@pytest.mark.parametrize("kind", [Splitting, Sampling])
def test_the_exact_loss_holds_for_parts_of_several_protocols(kind):
    mechanism = kind(sizes=(2, 9), epsilon="0.5")
    assert len({type(part.mechanism) for part in mechanism.parts}) == 2
    transition = mechanism.transition()
    assert transition.ratio <= exp_below(Fraction(1, 2))
    assert transition.loss == pytest.approx(0.5, abs=1e-9)


@pytest.mark.parametrize("kind", [Splitting, Sampling])
def test_parts_of_several_protocols_are_estimated_from_single_and_bulk_answers(kind):
    """Six standard errors for 606 cells: false-alarm rate 2e-6."""
    mechanism, rng = kind(sizes=(3, 40, 260), epsilon=2), simulation_rng(10)
    assert len({type(part.mechanism) for part in mechanism.parts}) > 1
    for n, many in ((1_500, False), (100_000, True)):
        block, state = population(mechanism.sizes, n), mechanism.zero()
        single = (mechanism.answer(record, rng=rng) for record in block.T.tolist() if not many)
        bulk = mechanism.answer_many(block, rng=rng) if many else mechanism.gather(single)
        mechanism.add(bulk, state)
        for own in mechanism.estimate(state):
            truth = table(block, own.columns, mechanism.sizes)
            assert np.abs((own.frequencies - truth) / own.standard_errors).max() < 6


@pytest.mark.parametrize("kind", [Splitting, Sampling])
@pytest.mark.parametrize("record", [(0, 0), (1, 2)])
def test_single_and_bulk_answers_have_the_exact_distribution(kind, record):
    """Chi-square of whole answers; false-alarm rate 1e-6 each, and it sees the wrong record."""
    mechanism, rng = kind(sizes=SIZES, epsilon=1, protocol=Grr), simulation_rng(1)
    exact = mechanism.transition().probabilities()
    row, wrong = exact[record[0] * 3 + record[1]], exact[(1 - record[0]) * 3 + record[1]]
    single = mechanism.gather(mechanism.answer(record, rng=rng) for _ in range(6_000))
    bulk = mechanism.answer_many(np.array([record] * 200_000).T, rng=rng)
    for answers in (single, bulk):
        counts = np.bincount(sent(mechanism, answers), minlength=row.size)
        assert chisquare(counts, row * counts.sum()).pvalue >= FALSE_ALARM
        assert chisquare(counts, wrong * counts.sum()).pvalue < FALSE_ALARM


@BY_NAME
def test_estimates_are_unbiased_with_the_stated_variance(mechanism):
    """False-alarm rate 1e-6 each; a scale that is 30% off would be seen."""
    n, runs = 3_000, 400
    block = population(mechanism.sizes, n)
    truth = table(block, mechanism.parts[0].columns, mechanism.sizes).flat[0]
    found, _, _ = estimates(mechanism, block, runs=runs, seed=2)
    z = (found - truth) / np.sqrt(mechanism.variance(0, truth) / n)
    assert abs(z.mean()) < 4.9 / np.sqrt(runs)
    assert in_band(z**2)
    assert not in_band((1.3 * z) ** 2)
    assert not in_band((z / 1.3) ** 2)


@BY_NAME
def test_intervals_cover_the_share_among_all_who_took_part(mechanism):
    """False-alarm rate 1e-6 each; errors that are 30% too small would be seen."""
    block = population(mechanism.sizes, 3_000)
    truth = table(block, mechanism.parts[0].columns, mechanism.sizes).flat[0]
    found, errors, _ = estimates(mechanism, block, runs=800, seed=3)
    for scale, holds in [(1, True), (0.7, False)]:
        reach = norm.ppf(0.975) * scale * errors
        assert covers(np.abs(found - truth) <= reach) == holds


def test_the_errors_of_a_sample_know_that_not_all_were_asked():
    """At epsilon 6 nearly all the error comes from asking half of the people."""
    mechanism, block = Sampling(sizes=(2, 2), epsilon=6), population((2, 2), 2_000)
    truth = table(block, (0,), (2, 2))[0]
    found, errors, answers = estimates(mechanism, block, runs=300, seed=4)
    part = mechanism.parts[0].mechanism
    noise_alone = np.sqrt(part.variance(truth) / answers)
    assert covers(np.abs(found - truth) <= 1.96 * errors)
    assert not covers(np.abs(found - truth) <= 1.96 * noise_alone)


def test_an_estimate_of_all_people_is_the_debiased_frequency():
    mechanism, rng = MECHANISMS[0], simulation_rng(5)
    state = mechanism.zero()
    mechanism.add(mechanism.answer_many(population(SIZES, 5_000), rng=rng), state)
    for part, tally, own in zip(mechanism.parts, state, mechanism.estimate(state), strict=True):
        m = part.mechanism
        expected, errors = frequencies.debias(m.supports(tally[1:]), 5_000, m.p, m.q)
        np.testing.assert_allclose(own.frequencies, expected, rtol=0, atol=1e-12)
        np.testing.assert_allclose(own.standard_errors, errors, rtol=1e-9)


def test_a_pair_is_estimated_as_a_table_of_its_columns():
    mechanism, block = Sampling(sizes=(2, 3, 4), epsilon=4, degree=2), population((2, 3, 4), 60_000)
    state = mechanism.zero()
    mechanism.add(mechanism.answer_many(block, rng=simulation_rng(6)), state)
    for own in mechanism.estimate(state):
        truth = table(block, own.columns, mechanism.sizes)
        assert own.frequencies.shape == own.standard_errors.shape == truth.shape
        assert np.abs((own.frequencies - truth) / own.standard_errors).max() < 6  # alarm: 6e-8


@pytest.mark.parametrize("d", [2, 3, 6])
@pytest.mark.parametrize("size", [2, 5, 30])
def test_sampling_beats_splitting_from_two_attributes_on(d, size):
    sampling = Sampling(sizes=(size,) * d, epsilon=1)
    splitting = Splitting(sizes=(size,) * d, epsilon=1)
    for frequency in (0.0, 0.5, 1.0):
        assert sampling.variance(0, frequency) < splitting.variance(0, frequency)


def test_sampling_is_measured_to_beat_splitting():
    """Of 3 attributes the squared error is 2 to 4 times smaller; 400 runs tell it from 1."""
    block = population((4, 4, 4), 2_000)
    truth = table(block, (0,), (4, 4, 4))[0]
    errors = [
        np.mean(
            (estimates(kind(sizes=(4, 4, 4), epsilon=1), block, runs=400, seed=7)[0] - truth) ** 2
        )
        for kind in (Splitting, Sampling)
    ]
    assert 2 < errors[0] / errors[1] < 4.5


@BY_NAME
def test_tallies_of_two_crowds_sum_to_that_of_both(mechanism):
    answers = mechanism.answer_many(population(mechanism.sizes, 1_000), rng=simulation_rng(8))
    whole, first, second = (mechanism.zero() for _ in range(3))
    halves = [(own[: len(own) // 2], own[len(own) // 2 :]) for own in answers.parts]
    mechanism.add(answers, whole)
    if isinstance(mechanism, Splitting):
        assert {int(tally[0]) for tally in whole} == {1_000}
    for state, half in ((first, 0), (second, 1)):
        mechanism.add(RecordAnswers(parts=tuple(pair[half] for pair in halves)), state)
    for all_of_it, one, two in zip(whole, first, second, strict=True):
        np.testing.assert_array_equal(all_of_it, one + two)


@BY_NAME
def test_nothing_of_the_caller_is_changed(mechanism):
    block, rng = population(mechanism.sizes, 500), simulation_rng(9)
    before, record = block.copy(), [1] * len(mechanism.sizes)
    answers = mechanism.answer_many(block, rng=rng)
    kept = [own.copy() for own in answers.parts]
    mechanism.answer(record, rng=rng)
    mechanism.add(answers, mechanism.zero())
    np.testing.assert_array_equal(block, before)
    assert record == [1] * len(mechanism.sizes)
    assert all(map(np.array_equal, kept, answers.parts))


@BY_NAME
def test_nobody_at_all_gives_empty_answers_and_no_estimate(mechanism):
    nobody = np.zeros((len(mechanism.sizes), 0), dtype=np.uint8)
    answers, state = mechanism.answer_many(nobody, rng=simulation_rng(0)), mechanism.zero()
    mechanism.add(answers, state)
    assert all(len(own) == 0 for own in answers.parts)
    with pytest.raises(InputError, match="nobody answered about the attributes"):
        mechanism.estimate(state)


@BY_NAME
@pytest.mark.parametrize("change", ["short", "long", "outside", "negative", "float"])
def test_a_record_that_does_not_fit_is_refused(mechanism, change):
    record = [0] * len(mechanism.sizes)
    bad = {
        "short": record[1:],
        "long": [*record, 0],
        "outside": [2, *record[1:]],
        "negative": [-1, *record[1:]],
        "float": [0.5, *record[1:]],
    }[change]
    with pytest.raises(InputError, match=r"a record has|code must be a whole number"):
        mechanism.answer(bad, rng=simulation_rng(0))
    if len(bad) == len(record):
        with pytest.raises(InputError, match=r"records must be|codes of attribute"):
            mechanism.answer_many(np.array([bad]).T, rng=simulation_rng(0))


@pytest.mark.parametrize("block", [[0, 1], [[0, 1]], [[0], [1], [2]], [[0.0], [1.0]]])
def test_records_of_a_wrong_shape_are_refused(block):
    for mechanism in MECHANISMS[:2]:
        with pytest.raises(InputError, match="records must be"):
            mechanism.answer_many(block, rng=simulation_rng(0))


@pytest.mark.parametrize("sizes", [(), [], 3, "23", (1, 2), (2, 2.5), (2, None)])
def test_sizes_that_describe_no_record_are_refused(sizes):
    for kind in (Splitting, Sampling):
        with pytest.raises(InputError, match="size"):
            kind(sizes=sizes, epsilon=1)


def test_bad_degrees_are_refused():
    with pytest.raises(InputError, match="degree must be one of 1, 2, got 3"):
        Sampling(sizes=(2, 2, 2), epsilon=1, degree=3)
    with pytest.raises(InputError, match="a pair needs two attributes"):
        Sampling(sizes=(2,), epsilon=1, degree=2)


@pytest.mark.parametrize("epsilon", [0, -1, "nan", 33])
def test_epsilons_beyond_reason_are_refused(epsilon):
    for kind in (Splitting, Sampling):
        with pytest.raises(InputError, match="epsilon"):
            kind(sizes=SIZES, epsilon=epsilon)


@pytest.mark.parametrize(
    ("mechanism", "person"),
    [
        (MECHANISMS[0], ((0, 1),)),
        (MECHANISMS[0], ((0, 1), (0, 1))),
        (MECHANISMS[0], ((1, 1), (0, 1))),
        (MECHANISMS[1], ()),
        (MECHANISMS[1], ((0, 1), (1, 1))),
        (MECHANISMS[1], ((2, 1),)),
        (MECHANISMS[1], ((True, 1),)),
    ],
)
def test_a_person_who_answers_too_much_or_too_little_is_refused(mechanism, person):
    with pytest.raises(InputError, match=r"everybody answers|in order|part must be"):
        mechanism.gather([person])


def test_answers_of_a_wrong_layout_leave_the_tally_as_it_was():
    mechanism = Splitting(sizes=SIZES, epsilon=1, protocol=Grr)
    state = mechanism.zero()
    for second in ([3], [0, 1]):
        answers = RecordAnswers(parts=(np.array([1]), np.array(second)))
        with pytest.raises(InputError, match="answer"):
            mechanism.add(answers, state)
    assert not any(tally.any() for tally in state)


def test_a_matrix_that_nobody_could_read_is_refused():
    for kind in (Splitting, Sampling):
        with pytest.raises(InputError, match="entries"):
            kind(sizes=(50, 50, 50), epsilon=1, protocol=Grr).transition()
