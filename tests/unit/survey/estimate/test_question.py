"""Questions, answers, tallies and estimates: both halves together."""

import json
from fractions import Fraction

import numpy as np
import pytest

from sfumato.errors import InputError
from sfumato.local.memo import Memo
from sfumato.privacy import LocalDP
from sfumato.randomness import secure_rng, simulation_rng
from sfumato.readers.array_table import ArrayTable
from sfumato.schema import Boolean, Category, Integer, Number, Schema
from sfumato.survey.device.form import Form
from sfumato.survey.estimate.question import Question
from sfumato.survey.estimate.tally import AnswerBatch, TallyKernel
from sfumato.survey.protocol.mechanism_choice import FREQUENCIES, MEANS, PROTOCOLS
from sfumato.survey.protocol.messages import Answer, fingerprint

TOWNS = Category(name="town", values=("ash", "birch", "cedar", "dogwood", "elm"), missing=True)
AGE = Integer(name="age", low=0, high=99)
PEOPLE = 60_000
SHARES = np.array([0.4, 0.3, 0.15, 0.1, 0.05, 0.0])


def towns(n, rng):
    return np.searchsorted(np.cumsum(SHARES), rng.uniform(n), side="right").astype(np.uint8)


@pytest.mark.parametrize("protocol", FREQUENCIES)
def test_frequencies_come_back_within_their_standard_errors(protocol):
    rng = simulation_rng(1)
    question = Question(column=TOWNS, epsilon=1, protocol=protocol)
    codes = towns(PEOPLE, rng)
    found = question.estimate(question.answer_many(codes, rng=rng))
    truth = np.bincount(codes, minlength=6) / PEOPLE
    # Six two-sided normals beyond 4 standard errors: a false alarm in 2,600 honest protocols.
    assert (np.abs(found.frequencies - truth) < 4 * found.standard_errors).all()
    assert (found.standard_errors < 0.05).all()
    assert found.guarantee == LocalDP(1)
    assert found.labels[-1] == "(missing)"
    assert not found.private


@pytest.mark.parametrize("protocol", MEANS)
def test_a_mean_comes_back_within_its_standard_error(protocol):
    rng = simulation_rng(2)
    question = Question(column=AGE, epsilon=1, protocol=protocol)
    codes = rng.below(60, PEOPLE)
    found = question.estimate(question.answer_many(codes, rng=rng))
    assert abs(found.mean - codes.mean()) < 4 * found.standard_error
    assert found.standard_error < 1.0
    low, high = found.interval(0.95)
    assert 0 <= low < found.mean < high <= 99


def test_square_wave_recovers_a_distribution():
    rng = simulation_rng(3)
    column = Number(name="income", edges=tuple(float(edge) for edge in range(0, 110, 10)))
    question = Question(column=column, epsilon=2, protocol="square-wave")
    codes = np.minimum(9, rng.below(5, PEOPLE) + rng.below(4, PEOPLE))
    found = question.estimate(question.answer_many(codes, rng=rng))
    truth = np.bincount(codes, minlength=10) / PEOPLE
    assert np.abs(found.frequencies - truth).sum() / 2 < 0.15
    assert abs(found.frequencies.sum() - 1) < 1e-6
    assert (found.standard_errors > 0).all()


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_single_answers_count_like_a_batch(protocol):
    column = AGE if protocol not in FREQUENCIES else TOWNS
    question = Question(column=column, epsilon=1, protocol=protocol)
    rng = simulation_rng(4)
    value = 40 if protocol not in FREQUENCIES else "cedar"
    answers = [question.answer(value, rng=rng) for _ in range(50)]
    assert all(Answer.from_json(answer.to_json()) == answer for answer in answers)
    tally = question.tally()
    tally.add([json.loads(answer.to_json()) for answer in answers])
    assert tally.answers == 50
    assert tally.simulated
    other = question.tally()
    other.add(answers)
    np.testing.assert_array_equal(tally.counts, other.counts)


def test_the_protocol_of_least_variance_is_taken():
    few = Question(column=Boolean(name="smoker"), epsilon=1)
    many = Question(column=Integer(name="age", low=0, high=999), epsilon=1)
    assert few.protocol == "grr"
    assert many.mechanism.variance() <= min(
        Question(column=many.column, epsilon=1, protocol=name).mechanism.variance() * 1.03
        for name in FREQUENCIES
    )


def test_a_question_survives_its_manifest():
    question = Question(column=TOWNS, epsilon="0.1", protocol="oue")
    again = Question.from_manifest(json.loads(json.dumps(question.manifest())))
    assert again == question
    assert again.id == question.id
    assert again.epsilon == Fraction(1, 10)
    assert isinstance(Form.from_manifest(question.manifest()), Form)


def test_parts_of_a_collection_merge_to_the_whole():
    rng = simulation_rng(5)
    question = Question(column=TOWNS, epsilon=1, protocol="oue")
    batches = [question.answer_many(towns(1_000, rng), rng=rng) for _ in range(3)]
    whole, left, right = question.tally(), question.tally(), question.tally()
    whole.add(batches)
    left.add(batches[:1])
    right.add(batches[1:])
    left.merge(right)
    np.testing.assert_array_equal(left.counts, whole.counts)
    assert left.answers == whole.answers == 3_000


def test_counting_runs_as_a_fold_of_the_engine():
    rng = simulation_rng(6)
    question = Question(column=TOWNS, epsilon=1, protocol="hadamard")
    batch = question.answer_many(towns(10_000, rng), rng=rng)
    below = question.mechanism.layout.below
    schema = Schema(columns=(Integer(name="answer", low=0, high=below - 1),))
    kernel = TallyKernel(form=question)
    state = ArrayTable(schema, {"answer": batch.values}).fold(kernel)
    expected = question.estimate(batch)
    found = question.estimate(kernel.tally(state, simulated=True))
    np.testing.assert_array_equal(found.frequencies, expected.frequencies)
    assert found.answers == 10_000


def test_answers_of_a_secure_generator_are_private():
    question = Question(column=Boolean(name="smoker"), epsilon=1)
    found = question.estimate([question.answer(True, rng=secure_rng()) for _ in range(10)])
    assert found.private
    assert found.to_dict()["guarantee"] == {"kind": "local", "epsilon": "1"}
    assert "simulated" not in question.answer(True, rng=secure_rng()).to_dict()


def test_a_memoized_answer_is_the_same_every_time():
    memo = Memo.fresh(rng=secure_rng())
    for question, one, other in (
        (Question(column=TOWNS, epsilon=1, protocol="oue"), "ash", "elm"),
        (Question(column=AGE, epsilon=1, protocol="piecewise"), 20, 60),
    ):
        first = question.answer_again(one, memo=memo)
        assert all(question.answer_again(one, memo=memo) == first for _ in range(20))
        assert not first.simulated
        others = {
            question.answer_again(other, memo=Memo.fresh(rng=secure_rng())).value for _ in range(40)
        }
        assert len(others) > 1


def test_adjusted_frequencies_could_exist_and_intervals_hold_the_estimate():
    rng = simulation_rng(7)
    question = Question(column=TOWNS, epsilon="0.5", protocol="grr")
    found = question.estimate(question.answer_many(towns(500, rng), rng=rng))
    assert (found.adjusted >= 0).all()
    assert abs(found.adjusted.sum() - 1) < 1e-9
    low, high = found.interval(0.9)
    assert (low < found.frequencies).all()
    assert (found.frequencies < high).all()
    assert found.chart().startswith("<svg")


@pytest.mark.parametrize("epsilon", [0, -1, float("nan"), 1000, float("inf"), "1e400", "x", None])
def test_an_epsilon_that_promises_nothing_is_refused(epsilon):
    with pytest.raises(InputError, match="epsilon"):
        Question(column=TOWNS, epsilon=epsilon)


def test_answers_that_do_not_belong_are_refused_and_not_counted():
    rng = simulation_rng(8)
    question = Question(column=TOWNS, epsilon=1, protocol="oue")
    good = question.answer("ash", rng=rng).to_dict()
    other = Question(column=TOWNS, epsilon=2, protocol="oue").answer("ash", rng=rng).to_dict()
    cases = {
        "another question": other,
        "version 2": {**good, "sfumato": 2},
        "version True": {**good, "sfumato": True},
        "base64 text": {**good, "answer": good["answer"][:-4]},
        "not base64": {**good, "answer": "!!!!"},
        "bits beyond": {**good, "answer": "/w=="},
        "has no": {**good, "extra": 1},
        "an answer is an object": {"sfumato": 1},
        "true or false": {**good, "simulated": "yes"},
    }
    tally = question.tally()
    for message, case in cases.items():
        with pytest.raises(InputError, match=message):
            tally.add(case)
    with pytest.raises(InputError, match="truncated"):
        Answer.from_json(json.dumps(good)[:-3])
    with pytest.raises(InputError, match="rows of 1 bytes"):
        tally.add(AnswerBatch(question=question.id, values=np.zeros((3, 2), np.uint8)))
    assert tally.answers == 0
    assert not tally.counts.any()


def test_a_value_outside_the_domain_is_refused_and_nothing_is_mutated():
    rng = simulation_rng(9)
    question = Question(column=TOWNS, epsilon=1, protocol="grr")
    with pytest.raises(InputError, match="not one of the declared values"):
        question.answer("fir", rng=rng)
    codes = np.array([0, 1, 6])
    with pytest.raises(InputError, match="from 0 to 5"):
        question.answer_many(codes, rng=rng)
    mean = Question(column=AGE, epsilon=1, protocol="duchi")
    with pytest.raises(InputError, match="from 0 to 99"):
        mean.answer_many(np.array([100]), rng=rng)
    fine = np.array([0, 1, 5])
    question.answer_many(fine, rng=rng)
    assert fine.tolist() == [0, 1, 5]


def test_what_cannot_be_asked_is_refused_at_birth():
    with pytest.raises(InputError, match="only integer and number columns have a mean"):
        Question(column=TOWNS, epsilon=1, protocol="duchi")
    with pytest.raises(InputError, match="protocol must be auto or one of"):
        Question(column=TOWNS, epsilon=1, protocol="rappor")
    with pytest.raises(InputError, match="one value only"):
        Question(column=Category(name="x", values=("a",)), epsilon=1)
    with pytest.raises(InputError, match="may be missing"):
        Question(column=Integer(name="x", low=0, high=9, missing=True), epsilon=1, protocol="duchi")


def test_no_answers_are_no_estimate():
    question = Question(column=TOWNS, epsilon=1)
    with pytest.raises(InputError, match="no answers"):
        question.estimate([])


def test_a_fingerprint_depends_on_everything_in_the_question():
    base = Question(column=TOWNS, epsilon=1, protocol="grr")
    others = [
        Question(column=TOWNS, epsilon=2, protocol="grr"),
        Question(column=TOWNS, epsilon=1, protocol="oue"),
        Question(column=Boolean(name="town"), epsilon=1, protocol="grr"),
    ]
    assert len({base.id, *(other.id for other in others)}) == 4
    assert fingerprint(base.manifest()) == base.id


@pytest.mark.parametrize("protocol", ["grr", "hadamard", "fast-olh"])
def test_the_likeliest_frequencies_could_exist_and_are_near(protocol):
    rng = simulation_rng(10)
    question = Question(column=TOWNS, epsilon=1, protocol=protocol)
    codes = towns(PEOPLE, rng)
    batch = question.answer_many(codes, rng=rng)
    found = question.likeliest(batch)
    assert (found >= 0).all()
    assert abs(found.sum() - 1) < 1e-9
    errors = question.estimate(batch).standard_errors
    assert (np.abs(found - np.bincount(codes, minlength=6) / PEOPLE) < 4.5 * errors).all()


def test_supports_are_not_enough_for_the_likeliest_frequencies():
    question = Question(column=TOWNS, epsilon=1, protocol="oue")
    with pytest.raises(InputError, match="adjusted"):
        question.likeliest([])


def test_a_question_written_otherwise_is_not_used():
    for question in (
        Question(column=AGE, epsilon=1, protocol="piecewise"),
        Question(column=TOWNS, epsilon=1, protocol="subset"),
    ):
        manifest = question.manifest()
        assert Question.from_manifest(manifest) == question
        for changed in (
            {"points": 64},
            {"layout": {"below": 7}},
            {"protocol": "auto"},
            {"epsilon": "2/2"},
            {"epsilon": 1},
            {"more": 1},
        ):
            with pytest.raises(InputError):
                Question.from_manifest({**manifest, **changed})
    with pytest.raises(InputError, match="JSON object"):
        Question.from_manifest([])


def test_edges_written_as_whole_numbers_are_the_same_question():
    whole = Question(column=Number(name="x", edges=(0, 1)), epsilon=1, protocol="duchi")
    reals = Question(column=Number(name="x", edges=(0.0, 1.0)), epsilon=1, protocol="duchi")
    assert whole.id == reals.id


def test_minus_zero_is_no_other_value():
    memo = Memo.fresh(rng=secure_rng())
    column = Number(name="x", edges=(-1.0, 1.0))
    question = Question(column=column, epsilon=1, protocol="piecewise")
    assert {question.answer_again(zero, memo=memo) for zero in (0.0, -0.0, "-0", 0)} == {
        question.answer_again(0.0, memo=memo)
    }


def test_values_become_codes():
    question = Question(column=AGE, epsilon=1)
    assert question.codes([41, "7", 99.0]).tolist() == [41, 7, 99]
    grown = Question(column=Integer(name="age", low=18, high=89), epsilon=1)
    assert grown.codes([41]).tolist() == [23]


@pytest.mark.parametrize("rng", [None, np.random.default_rng(0), 7])
def test_a_foreign_generator_is_refused(rng):
    question = Question(column=TOWNS, epsilon=1)
    with pytest.raises(InputError, match="secure_rng"):
        question.answer("ash", rng=rng)
    with pytest.raises(InputError, match="secure_rng"):
        question.answer_many([0], rng=rng)


def test_what_is_no_column_memo_or_answer_is_refused():
    with pytest.raises(InputError, match="column must be a Column"):
        Question(column="town", epsilon=1)
    question = Question(column=TOWNS, epsilon=1)
    with pytest.raises(InputError, match="Memo"):
        question.answer_again("ash", memo="x")
    for answers in (None, "x", 5):
        with pytest.raises(InputError, match="answers are"):
            question.estimate(answers)
    with pytest.raises(InputError, match="JSON text"):
        Answer.from_json(None)
