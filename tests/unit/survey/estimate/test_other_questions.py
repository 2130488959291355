"""Questions about numbers' spread, pairs and whole records."""

import numpy as np
import pytest

from sfumato.errors import InputError
from sfumato.local.keyvalue.pairs import Pairs
from sfumato.privacy import LocalDP
from sfumato.randomness import simulation_rng
from sfumato.schema import Boolean, Category, Integer, Schema
from sfumato.survey.estimate.moments import VarianceQuestion
from sfumato.survey.estimate.pairs import PADDED, SAMPLED, PairsQuestion
from sfumato.survey.estimate.records import RecordQuestion
from sfumato.survey.protocol.messages import Answer

SCHEMA = Schema(
    columns=(
        Category(name="town", values=("ash", "birch", "cedar")),
        Boolean(name="member"),
        Integer(name="age", low=0, high=3),
    )
)


def test_a_variance_costs_epsilon_once_and_comes_back():
    rng = simulation_rng(1)
    question = VarianceQuestion(column=Integer(name="age", low=0, high=100), epsilon=2)
    numbers = (rng.below(41, 80_000) + 30).astype(float)
    found = question.estimate(question.answer_many(numbers, rng=rng))
    assert question.guarantee == LocalDP(2)
    assert abs(found.mean - numbers.mean()) < 4 * found.mean_error
    assert abs(found.variance - numbers.var()) < 4 * found.variance_error
    assert found.variance_error < numbers.var()
    assert sum(found.answers) == 80_000


def test_one_device_answers_one_half_of_a_variance_question():
    rng = simulation_rng(2)
    question = VarianceQuestion(column=Integer(name="age", low=0, high=100), epsilon=1)
    answers = [question.answer(40, rng=rng) for _ in range(200)]
    halves = {answer.question for answer in answers}
    assert halves == {question.value.id, question.square.id}
    assert question.estimate([answer.to_dict() for answer in answers]).answers[0] > 50


def test_a_variance_from_one_half_is_not_estimable():
    rng = simulation_rng(3)
    question = VarianceQuestion(column=Integer(name="age", low=0, high=100), epsilon=1)
    only = question.value.answer(40, rng=rng)
    with pytest.raises(InputError, match="not estimable"):
        question.estimate([only])
    with pytest.raises(InputError, match="another question"):
        question.estimate([Answer(question="0" * 32, value=1)])


@pytest.mark.parametrize("protocol", [*SAMPLED, *PADDED])
def test_pairs_come_back_with_frequency_and_mean(protocol):
    rng = simulation_rng(4)
    held = rng.uniform(60_000) < 0.6
    matrix = np.full((60_000, 2), np.nan)
    matrix[held, 0] = 0.5
    matrix[~held, 1] = -0.25
    question = PairsQuestion(keys=("apples", "pears"), epsilon=2, protocol=protocol)
    pairs = Pairs.from_dense(matrix)
    estimate = question.estimate(question.answer_many(pairs, rng=rng))
    assert not estimate.private
    assert estimate.guarantee == LocalDP(2)
    found = estimate.found
    assert (
        np.abs(found.frequencies - pairs.true_frequencies()) < 4.5 * found.frequency_errors
    ).all()
    assert (np.abs(found.means - pairs.true_means()) < 4.5 * found.mean_errors).all()
    assert found.estimable.all()


def test_one_person_s_pairs_are_answered_by_name():
    rng = simulation_rng(5)
    question = PairsQuestion(keys=("apples", "pears", "plums"), epsilon=2, protocol="bisample")
    answers = [question.answer({"pears": 0.5}, rng=rng) for _ in range(300)]
    found = question.estimate([Answer.from_json(answer.to_json()) for answer in answers])
    assert list(found.to_dict()["keys"]) == ["apples", "pears", "plums"]
    assert str(found).count("frequency") == 3
    with pytest.raises(InputError, match="not in the question"):
        question.answer({"figs": 1.0}, rng=rng)
    with pytest.raises(InputError, match="protocol must be one of"):
        PairsQuestion(keys=("a",), epsilon=1, protocol="x")


@pytest.mark.parametrize(
    ("method", "degree"), [("sampling", 1), ("sampling", 2), ("splitting", 1), ("rsfd", 1)]
)
def test_records_come_back_by_marginal(method, degree):
    rng = simulation_rng(6)
    question = RecordQuestion(schema=SCHEMA, epsilon=2, method=method, degree=degree)
    codes = {"town": rng.below(3, 60_000), "age": rng.below(4, 60_000)}
    codes["member"] = (codes["town"] == 1).astype(int)
    found = question.estimate([question.answer_many(codes, rng=rng)])
    for marginal, frequencies in found.frequencies.items():
        shape = SCHEMA.shape(marginal)
        cells = np.ravel_multi_index([codes[name] for name in marginal], shape)
        truth = (np.bincount(cells, minlength=np.prod(shape)) / 60_000).reshape(shape)
        assert (np.abs(frequencies - truth) < 4.5 * found.standard_errors[marginal]).all()
    assert len(found.frequencies) == 3
    assert not found.private
    agreed = found.consistent()
    assert all(abs(table.sum() - 1) < 1e-9 and (table >= 0).all() for table in agreed.values())


@pytest.mark.parametrize(("method", "degree"), [("sampling", 2), ("splitting", 1), ("rsfd", 1)])
def test_one_person_s_record_travels_as_json(method, degree):
    rng = simulation_rng(7)
    question = RecordQuestion(schema=SCHEMA, epsilon=2, method=method, degree=degree)
    record = {"town": "birch", "member": "yes", "age": 2}
    answers = [Answer.from_json(question.answer(record, rng=rng).to_json()) for _ in range(200)]
    assert len(question.estimate(answers).frequencies) == 3
    with pytest.raises(InputError, match="another question"):
        question.estimate([Answer(question="0" * 32, value=[])])
    with pytest.raises(InputError):
        question.estimate([Answer(question=question.id, value=[[9, 1]])])
    with pytest.raises(InputError, match="missing is not one of them"):
        question.answer({"town": "birch"}, rng=rng)


def test_pairs_of_columns_are_asked_for_by_sampling_only():
    with pytest.raises(InputError, match="by sampling"):
        RecordQuestion(schema=SCHEMA, epsilon=1, method="rsfd", degree=2)
