"""Answers belong to one question, say how they were made, and state errors they have."""

from dataclasses import replace

import numpy as np
import pytest

from sfumato.errors import InputError
from sfumato.local.memo import Memo
from sfumato.randomness import secure_rng, simulation_rng
from sfumato.schema import Boolean, Integer, Number, Schema
from sfumato.survey.estimate.moments import VarianceQuestion
from sfumato.survey.estimate.pairs import PairsQuestion
from sfumato.survey.estimate.question import Question
from sfumato.survey.estimate.records import RecordQuestion
from sfumato.survey.estimate.tally import TallyKernel

SCHEMA = Schema(columns=(Boolean(name="a"), Boolean(name="b")))
GRR = Question(column=Boolean(name="b"), epsilon=1, protocol="grr")
AGE = Integer(name="age", low=0, high=99)


def test_a_repeated_answer_depends_on_value_and_question_and_on_nothing_else():
    """With 2^-64 words the answers of 64 memos all agree once in 10^9 at least."""
    memos = [Memo(secret=bytes([i]) * 32) for i in range(64)]
    one, two = (Question(column=AGE, epsilon=e, protocol="laplace") for e in (1, "1.0001"))

    def answers(question, value):
        return [question.answer_again(value, memo=memo).value for memo in memos]

    noise = np.array(answers(one, 20)), np.array(answers(one, 60))
    shifts = noise[1] - noise[0]
    assert len(set(shifts.tolist())) > 20  # the same noise would shift all alike
    assert len(set((np.array(answers(two, 20)) - noise[0]).tolist())) > 20


def test_every_part_of_a_question_is_in_its_fingerprint():
    record = RecordQuestion(schema=SCHEMA, epsilon=1)
    records = [
        record,
        *(
            replace(record, **c)
            for c in ({"epsilon": 2}, {"method": "rsfd"}, {"degree": 2}, {"method": "splitting"})
        ),
    ]
    pair = PairsQuestion(keys=("x", "y"), epsilon=1)
    pairs = [
        pair,
        *(
            replace(pair, **c)
            for c in ({"epsilon": 2}, {"padding": 2}, {"protocol": "pckv-ue"}, {"keys": ("y", "x")})
        ),
    ]
    assert len({q.id for q in (*records, *pairs)}) == 10


def test_one_simulated_answer_makes_the_whole_tally_simulated():
    real = GRR.answer(True, rng=secure_rng())
    toy = GRR.answer(True, rng=simulation_rng(0))
    for order in ([real, toy], [toy, real]):
        assert not GRR.estimate(order).private
    left, right = GRR.tally(), GRR.tally()
    left.add(real)
    right.add(toy)
    left.merge(right)
    assert left.simulated
    kernel = TallyKernel(form=GRR)
    assert kernel.tally(kernel.zero(), simulated=True).simulated


def test_what_other_questions_were_answered_by_a_seed_says_so():
    toy, real = simulation_rng(0), secure_rng()
    record = RecordQuestion(schema=SCHEMA, epsilon=1)
    pairs = PairsQuestion(keys=("x",), epsilon=1)
    spread = VarianceQuestion(column=AGE, epsilon=1)
    for rng in (toy, real):
        made = [
            record.answer({"a": True, "b": False}, rng=rng),
            record.answer_many({"a": [0, 1], "b": [1, 0]}, rng=rng),
            pairs.answer({"x": 0.5}, rng=rng),
            *spread.answer_many([1.0, 2.0], rng=rng),
        ]
        assert {each.simulated for each in made} == {rng is toy}


def test_a_batch_a_tally_and_a_part_of_another_question_are_refused():
    other = replace(GRR, epsilon=2)
    batch = other.answer_many([0, 1], rng=simulation_rng(0))
    tally = GRR.tally()
    for wrong in (batch, [batch]):
        with pytest.raises(InputError, match="another question"):
            tally.add(wrong)
    counted = other.tally()
    counted.add(batch)
    with pytest.raises(InputError, match="another question"):
        tally.merge(counted)
    with pytest.raises(InputError, match="another question"):
        GRR.estimate(counted)
    assert (tally.answers, tally.counts.sum()) == (0, 0)
    pair = PairsQuestion(keys=("x",), epsilon=1)
    with pytest.raises(InputError, match="another question"):
        pair.estimate(replace(pair, epsilon=2).tally())


def test_a_question_of_another_version_is_refused():
    with pytest.raises(InputError, match="version 2"):
        Question.from_manifest({**GRR.manifest(), "sfumato": 2})


@pytest.mark.parametrize("protocol", ["grr", "oue", "hybrid"])
def test_the_stated_error_is_the_spread_of_repeated_collections(protocol):
    """400 collections: the ratio's standard error is 3.5%, so 20% off is 5 of them."""
    rng = simulation_rng(3)
    question = Question(column=Integer(name="x", low=0, high=4), epsilon=1, protocol=protocol)
    codes = np.full(400, 0)
    found = [question.estimate(question.answer_many(codes, rng=rng)) for _ in range(400)]
    if protocol == "hybrid":
        values, errors = [f.mean for f in found], [f.standard_error for f in found]
    else:
        values, errors = [f.frequencies[1] for f in found], [f.standard_errors[1] for f in found]
    assert 0.85 < np.std(values) / np.mean(errors) < 1.15


def test_a_batch_of_another_question_does_not_hide_behind_an_answer():
    batch = replace(GRR, epsilon=2).answer_many([0, 1], rng=simulation_rng(0))
    tally = GRR.tally()
    with pytest.raises(InputError, match="another question"):
        tally.add([GRR.answer(True, rng=simulation_rng(0)), batch])


def test_the_likeliest_frequencies_need_answers_to_this_question():
    other = replace(GRR, epsilon=2)
    tally = other.tally()
    tally.add(other.answer_many([0, 1], rng=simulation_rng(0)))
    with pytest.raises(InputError, match="another question"):
        GRR.likeliest(tally)


def test_an_interval_of_a_mean_is_never_upside_down():
    question = Question(column=AGE, epsilon=1, protocol="duchi")
    rng = simulation_rng(1)
    for _ in range(200):
        low, high = question.estimate(question.answer_many(np.zeros(50, int), rng=rng)).interval()
        assert 0 <= low <= high <= 99


def test_half_of_the_people_are_asked_for_the_square():
    question = VarianceQuestion(column=AGE, epsilon=1)
    first, second = question.answer_many([7.0] * 10_000, rng=simulation_rng(2))
    assert abs(len(first) - 5_000) < 5 * 50
    assert len(first) + len(second) == 10_000


def test_the_stated_errors_of_moments_are_their_spread():
    """300 collections: the ratio's standard error is 4%, so 20% off is 5 of them."""
    question = VarianceQuestion(column=AGE, epsilon=2)
    rng = simulation_rng(3)
    found = [question.estimate(question.answer_many([80.0] * 400, rng=rng)) for _ in range(300)]
    for value, error in (("mean", "mean_error"), ("variance", "variance_error")):
        spread = np.std([getattr(each, value) for each in found])
        assert 0.8 < spread / np.mean([getattr(each, error) for each in found]) < 1.2
    bias = np.mean([each.variance for each in found])  # the truth is 0
    assert abs(bias) < 5 * np.std([each.variance for each in found]) / np.sqrt(300)


def test_a_square_wave_s_errors_are_of_the_size_of_its_spread():
    """Six collections: within a factor of 2.5; errors five times too large are seen."""
    column = Number(name="x", edges=(0.0, 0.25, 0.5, 0.75, 1.0))
    question = Question(column=column, epsilon=2, protocol="square-wave")
    rng = simulation_rng(4)
    found = [question.estimate(question.answer_many([1] * 2_000, rng=rng)) for _ in range(6)]
    spread = np.std([each.frequencies for each in found], axis=0)
    stated = np.mean([each.standard_errors for each in found], axis=0)
    assert ((stated / spread > 0.4) & (stated / spread < 2.5)).all()
    assert np.mean([each.frequencies for each in found], axis=0)[1] > 0.85


def test_single_answers_about_pairs_tell_the_sign():
    question = PairsQuestion(keys=("x",), epsilon=4, protocol="state")
    rng = simulation_rng(5)
    found = question.estimate([question.answer({"x": 0.9}, rng=rng) for _ in range(3_000)]).found
    assert abs(found.means[0] - 0.9) < 5 * found.mean_errors[0]
    assert found.mean_errors[0] < 0.1
