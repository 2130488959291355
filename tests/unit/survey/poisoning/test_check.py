"""What fakes can gain, and how they are found out."""

from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from scipy import stats

import sfumato as sf
from made import fakes
from sfumato.errors import InputError
from sfumato.local.frequency.grr import Grr
from sfumato.local.frequency.hadamard import HadamardResponse
from sfumato.local.frequency.local_hashing import FastOlh, Olh
from sfumato.randomness import simulation_rng
from sfumato.survey.dp2pub import faithful_rounds
from sfumato.survey.poisoning.check import PoisoningCheck, answer_gain, gains, poisoning_check
from sfumato.survey.poisoning.marginal_answers import answered_ways, together
from sfumato.survey.poisoning.traces import (
    Trace,
    beyond,
    copied,
    far_from_zero,
    histogram_traces,
    round_traces,
)
from sfumato.survey.protocol.rounds import PartsQuestion, QuestionPart

SIZES = (40, 2, 12, 100, 5, 30)
COLUMN = sf.Integer(name="x", low=1, high=64)


def question(protocol):
    return sf.Question(column=COLUMN, epsilon=1, protocol=protocol)


def batch(asked, values):
    return sf.AnswerBatch(question=asked.id, values=values, simulated=True)


@pytest.mark.parametrize(
    ("epsilon", "categories", "points"),
    [(1, 4, 2.7), (1, 16, 9.7), (Fraction(1, 10), 4, 29.5), (Fraction(1, 10), 16, 143.6)],
)
def test_one_percent_of_fakes_moves_a_response_by_so_many_points(epsilon, categories, points):
    assert answer_gain(Grr(categories=categories, epsilon=epsilon)) == pytest.approx(
        points, abs=0.05
    )


@pytest.mark.parametrize(("kind", "honest"), [(Grr, 75), (Olh, 3.3), (HadamardResponse, 2.2)])
def test_one_crafted_answer_weighs_as_much_as_so_many_honest_ones(kind, honest):
    assert answer_gain(kind(categories=128, epsilon=1)) == pytest.approx(honest, rel=0.02)


@pytest.mark.parametrize("variant", ["grouped", "single", "faithful"])
def test_the_gain_is_what_crafted_answers_do(variant):
    """With 60,000 people and 10% of fakes; false alarm below 1e-4: four standard errors."""
    rng, share = simulation_rng(5), 0.1
    survey = fakes.MadeSurvey.draw(SIZES, 60_000, epsilon=Fraction(4), variant=variant, rng=rng)
    rows, number = survey.honest(rng=rng), round(share * 60_000)
    if variant == "faithful":
        target = np.zeros((len(SIZES), number), dtype=np.int64)
        told = fakes.replaced(rows, target)
    else:
        told = fakes.replaced(rows, _about_first_codes(survey, number, rng))
    expected = {gain.column: gain for gain in gains(survey.agreed, [survey.question], fakes=share)}
    same_people = variant == "faithful"
    before = answered_ways(survey.agreed, [survey.tally(rows)])
    after = answered_ways(survey.agreed, [survey.tally(told)])
    for name, gain in expected.items():
        honest, error = together(before[name], same_people=same_people)
        attacked, other = together(after[name], same_people=same_people)
        moved = attacked[0] - (1 - share) * honest[0]
        assert moved == pytest.approx(gain.by_weights, abs=4 * (error[0] + other[0]))


def _about_first_codes(survey, number, rng):
    """Parts as the plan says, and answers that support code 0 of whatever is asked."""
    share = np.array(survey.question.weights) / sum(survey.question.weights)
    part = np.searchsorted(np.cumsum(share)[:-1], rng.uniform(number))
    answer = np.zeros(number, dtype=np.uint64)
    for place in np.unique(part):
        mechanism = survey.question.parts[place].mechanism(
            survey.agreed.schema, survey.question.epsilon
        )
        mine = np.flatnonzero(part == place)
        if isinstance(mechanism, FastOlh):  # code 0 is hashed to 0 by every seed
            seeds = rng.below(1 << mechanism.seed_bits, mine.size)
            answer[mine] = seeds * mechanism.response.values
        elif isinstance(mechanism, HadamardResponse):
            answer[mine] = 2 * rng.below(mechanism.cells // 2, mine.size)
    return part, answer


def test_fakes_who_all_answer_one_question_gain_more():
    survey = fakes.MadeSurvey.draw(
        SIZES, 10, epsilon=Fraction(1), variant="single", rng=simulation_rng(0)
    )
    share = dict(zip(survey.agreed.columns, survey.question.weights, strict=True))
    for gain in gains(survey.agreed, [survey.question]):
        weight = share[gain.column] / sum(share.values())
        among = 0.01 / (0.99 * weight + 0.01)
        assert gain.one_part == pytest.approx(gain.by_weights / 0.01 * among)
        assert gain.one_part > gain.by_weights


def test_where_everybody_answers_everything_there_is_no_part_to_choose():
    survey = fakes.MadeSurvey.draw(
        SIZES, 10, epsilon=Fraction(2), variant="faithful", rng=simulation_rng(0)
    )
    for gain in gains(survey.agreed, [survey.question]):
        assert gain.one_part == gain.by_weights


def test_a_share_of_fakes_is_between_none_and_all():
    survey = fakes.MadeSurvey.draw(
        (2, 3), 10, epsilon=Fraction(2), variant="single", rng=simulation_rng(0)
    )
    with pytest.raises(InputError, match="fakes must be a share"):
        gains(survey.agreed, [survey.question], fakes=1.0)


@pytest.mark.parametrize("q", [0.01, 0.3, 0.5])
@pytest.mark.parametrize("n", [60, 1_000])
def test_chances_are_never_smaller_than_the_exact_tails(n, q):
    counts = np.arange(n + 1)
    exact = np.where(
        counts >= n * q, stats.binom.sf(counts - 1, n, q), stats.binom.cdf(counts, n, q)
    )
    assert (beyond(counts / n, n, q, q) >= exact * (1 - 1e-9)).all()


def test_a_share_within_its_limits_is_no_trace():
    assert beyond(np.array([0.2, 0.25, 0.3]), 1_000, 0.2, 0.3).tolist() == [1, 1, 1]


def test_copies_are_bounded_by_birthdays():
    """365 equally likely answers: the bound is above the exact chance of a shared birthday."""
    exact = 1 - np.prod(1 - np.arange(23) / 365)
    assert copied(23, 2, 1 / 365) >= exact
    assert copied(23, 5, 1 / 365) < 1e-4


def test_sums_of_small_terms_are_bounded():
    deviation = np.array([40.0])
    exact = 2 * stats.binom.sf(539, 1_000, 0.5)
    assert far_from_zero(deviation, 1_000, variance=0.25, largest=0.5)[0] >= exact


@pytest.mark.parametrize("protocol", ["grr", "sue", "oue", "olh", "fast-olh", "hadamard", "subset"])
def test_honest_answers_raise_no_alarm(protocol):
    """False alarm below 1% by proof, for each of two."""
    asked = question(protocol)
    for seed in range(2):
        rng = simulation_rng(seed)
        answers = asked.answer_many(fakes.skewed(64, 5_000, rng=rng), rng=rng)
        assert not poisoning_check(asked, answers).alarm


@pytest.mark.parametrize("attack", ["crafted", "copies"])
@pytest.mark.parametrize("protocol", ["sue", "oue", "olh", "fast-olh", "hadamard", "subset"])
def test_five_percent_of_crafted_answers_are_found(protocol, attack):
    asked = question(protocol)
    for seed in range(2):
        rng = simulation_rng(seed)
        values = np.array(asked.answer_many(fakes.skewed(64, 20_000, rng=rng), rng=rng).values)
        targets = fakes.targets_of(64, rng=rng)
        made = fakes.crafted(asked.mechanism, targets, 1_000 if attack == "crafted" else 1, rng=rng)
        values[:1_000] = made
        check = poisoning_check(asked, batch(asked, values))
        assert check.alarm
        assert "do not look honest" in check.words


def test_answers_of_another_epsilon_are_found_by_their_ones():
    asked = question("oue")
    rng = simulation_rng(1)
    louder = sf.Question(column=COLUMN, epsilon=2, protocol="oue")
    values = louder.answer_many(fakes.skewed(64, 5_000, rng=rng), rng=rng).values
    assert "ones" in {trace.kind for trace in poisoning_check(asked, batch(asked, values)).found}


def test_fakes_who_answer_honestly_for_a_false_value_are_not_found_and_the_words_say_so():
    asked, rng = question("olh"), simulation_rng(2)
    codes = fakes.skewed(64, 20_000, rng=rng)
    codes[:4_000] = 7
    check = poisoning_check(asked, asked.answer_many(codes, rng=rng))
    assert not check.alarm
    assert "no check can tell" in check.words


@pytest.mark.parametrize("variant", ["grouped", "single", "faithful"])
def test_honest_surveys_raise_no_alarm(variant):
    """False alarm below 1% by proof, for each of five."""
    for seed in range(5):
        rng = simulation_rng(seed)
        survey = fakes.MadeSurvey.draw(SIZES, 5_000, epsilon=Fraction(1), variant=variant, rng=rng)
        traces = round_traces(survey.agreed, survey.tally(survey.honest(rng=rng)))
        assert traces
        assert not PoisoningCheck(traces=tuple(traces)).alarm


@pytest.mark.parametrize(
    ("variant", "attack"),
    [
        ("grouped", fakes.crafted_parts),
        ("grouped", fakes.one_part),
        ("single", fakes.crafted_parts),
        ("single", fakes.copied_parts),
        ("single", fakes.one_part),
        ("faithful", fakes.copied_records),
    ],
)
def test_five_percent_of_fakes_in_a_survey_are_found(variant, attack):
    for seed in range(2):
        rng = simulation_rng(100 + seed)
        survey = fakes.MadeSurvey.draw(SIZES, 20_000, epsilon=Fraction(1), variant=variant, rng=rng)
        rows = fakes.replaced(survey.honest(rng=rng), attack(survey, 1_000, rng=rng))
        assert PoisoningCheck(traces=tuple(round_traces(survey.agreed, survey.tally(rows)))).alarm


def alone_and_in_a_pair(rng):
    """A survey that asks half of the people about a column alone, and half about it in a pair."""
    made = fakes.MadeSurvey.draw((3, 2), 10_000, epsilon=Fraction(2), variant="single", rng=rng)
    parts = (
        QuestionPart(columns=("c0",), bins=(None,)),
        QuestionPart(columns=("c0", "c1"), bins=(None, None)),
    )
    plan = PartsQuestion(
        survey=made.agreed.id, round=1, epsilon=Fraction(2), parts=parts, weights=(1, 1)
    )
    return fakes.MadeSurvey(made.agreed, made.codes, plan)


@pytest.mark.parametrize("lying", [False, True])
def test_pairs_that_contradict_the_columns_are_found(lying):
    rng = simulation_rng(4)
    survey = alone_and_in_a_pair(rng)
    rows = survey.honest(rng=rng)
    fakes_there = (rows.part == 1) & (rng.uniform(len(rows)) < 0.3 * lying)
    answer = np.where(fakes_there, 0, rows.answer)
    told = sf.AnswerRows(question=rows.question, part=rows.part, answer=answer, simulated=True)
    check = PoisoningCheck(traces=tuple(round_traces(survey.agreed, survey.tally(told))))
    assert ("agreement" in {trace.kind for trace in check.found}) == lying


@pytest.mark.parametrize("kind", [Grr, FastOlh, HadamardResponse])
def test_limits_are_those_of_the_transition_matrix(kind):
    """A histogram at the exact probabilities of any mixture of values leaves no trace at all."""
    mechanism = kind(categories=12, epsilon=1)
    matrix = mechanism.transition().probabilities()
    for shares in (np.eye(12)[3], np.full(12, 1 / 12)):
        counts = np.round(1e7 * shares @ matrix).astype(np.int64)
        for trace in histogram_traces(mechanism, counts, about=("x",)):
            assert trace.chance == pytest.approx(1.0)


def test_a_lone_answer_can_be_checked_as_its_message():
    asked, rng = question("grr"), simulation_rng(0)
    answers = [asked.answer(1, rng=rng).to_dict() for _ in range(60)]
    assert not poisoning_check(asked, answers).alarm


def test_too_few_answers_get_no_verdict():
    asked, rng = question("grr"), simulation_rng(0)
    check = poisoning_check(asked, asked.answer_many(np.zeros(10, dtype=int), rng=rng))
    assert check.traces == ()
    assert "too few" in check.words


def test_answers_about_a_mean_are_refused():
    asked = sf.Question(column=COLUMN, epsilon=1, protocol="duchi")
    with pytest.raises(InputError, match="only answers about frequencies"):
        poisoning_check(asked, [])


def test_many_checks_share_one_level():
    odd = partial(Trace, kind="values", about=(), words="something")
    harmless = tuple(odd(chance=0.5) for _ in range(99))
    assert not PoisoningCheck(traces=(odd(chance=0.005), *harmless)).alarm
    assert PoisoningCheck(traces=(odd(chance=0.00005), *harmless)).alarm
    assert PoisoningCheck(traces=(odd(chance=0.005),)).alarm


def test_two_rounds_are_planned_and_counted_together():
    rng = simulation_rng(6)
    survey = fakes.MadeSurvey.draw((3, 2), 4_000, epsilon=Fraction(4), variant="faithful", rng=rng)
    first = survey.tally(survey.honest(rng=rng))
    second = faithful_rounds.second_question(survey.agreed, first).question
    both = gains(survey.agreed, [survey.question, second], people=[4_000, 2_000])
    each = [gains(survey.agreed, [plan]) for plan in (survey.question, second)]
    for place, gain in enumerate(both):
        low, high = sorted(one[place].by_weights for one in each)
        assert low * 0.999 <= gain.by_weights <= high * 1.001
