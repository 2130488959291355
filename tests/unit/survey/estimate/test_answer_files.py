"""Files of answers: whole, checked, readable by themselves."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sfumato.errors import InputError, StorageError
from sfumato.randomness import secure_rng, simulation_rng
from sfumato.schema import Integer
from sfumato.survey.estimate.answer_files import read_answers, write_answers
from sfumato.survey.estimate.question import Question
from sfumato.survey.protocol.mechanism_choice import FREQUENCIES

COLUMN = Integer(name="age", low=0, high=19)


def written(path, protocol="oue", *, n=1_000, rng=None):
    question = Question(column=COLUMN, epsilon=1, protocol=protocol)
    rng = rng or simulation_rng(1)
    batches = [question.answer_many(rng.below(20, n), rng=rng) for _ in range(2)]
    assert write_answers(path, question, batches) == 2 * n
    return question, np.concatenate([batch.values for batch in batches])


@pytest.mark.parametrize("suffix", [".parquet", ".jsonl"])
@pytest.mark.parametrize("protocol", [*FREQUENCIES, "hybrid", "square-wave"])
def test_answers_survive_a_file(tmp_path, suffix, protocol):
    path = tmp_path / f"answers{suffix}"
    question, values = written(path, protocol, n=200)
    again, batches = read_answers(path)
    batches = list(batches)
    assert again == question
    np.testing.assert_array_equal(np.concatenate([batch.values for batch in batches]), values)
    assert all(batch.simulated for batch in batches)
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


def test_answers_of_a_secure_generator_are_marked_so(tmp_path):
    path = tmp_path / "answers.parquet"
    written(path, rng=secure_rng())
    _, batches = read_answers(path)
    assert not any(batch.simulated for batch in batches)


def test_a_truncated_or_damaged_file_is_refused(tmp_path):
    path = tmp_path / "answers.parquet"
    written(path)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match="not a whole Parquet file"):
        read_answers(path)
    lines = tmp_path / "answers.jsonl"
    written(lines)
    lines.write_text(lines.read_text()[:-3])
    question, batches = read_answers(lines)
    with pytest.raises(InputError, match=r"answers.jsonl:2002: .*truncated"):
        question.estimate(batches)
    written(lines)
    whole = lines.read_text().splitlines(keepends=True)
    for damaged in (whole[:-1], whole[:-5], [*whole[:5], *whole[6:]], [*whole, whole[3]]):
        lines.write_text("".join(damaged))
        question, batches = read_answers(lines)
        with pytest.raises(InputError, match="how many answers there are"):
            question.estimate(batches)


def test_a_file_that_is_something_else_is_refused(tmp_path):
    other = tmp_path / "table.parquet"
    pq.write_table(pa.table({"answer": [1, 2]}), other)
    with pytest.raises(InputError, match="does not begin with a question"):
        read_answers(other)
    text = tmp_path / "table.jsonl"
    text.write_text('{"age": 1}\n')
    with pytest.raises(InputError, match="does not begin with a question"):
        read_answers(text)
    text.write_bytes(b"\xff\xfe\n")
    with pytest.raises(InputError, match="not UTF-8"):
        read_answers(text)
    with pytest.raises(InputError, match=r"\.parquet or \.jsonl"):
        read_answers(tmp_path / "answers.csv")
    with pytest.raises(StorageError, match="can't read"):
        read_answers(tmp_path / "none.parquet")


def test_a_file_of_another_version_is_refused(tmp_path):
    path = tmp_path / "answers.jsonl"
    written(path)
    head, _, rest = path.read_text().partition("\n")
    path.write_text(json.dumps({**json.loads(head), "sfumato": 2}) + "\n" + rest)
    with pytest.raises(InputError, match="version 2"):
        read_answers(path)


def test_answers_that_do_not_fit_the_question_name_their_line(tmp_path):
    path = tmp_path / "answers.jsonl"
    written(path, "grr", n=5)
    head, *rest = path.read_text().splitlines()
    path.write_text("\n".join([head, *rest[:-1], "20", rest[-1]]) + "\n")
    question, batches = read_answers(path)
    with pytest.raises(InputError, match=r"answers.jsonl:12: .*from 0 to 19"):
        question.estimate(batches)


def test_answers_of_another_question_or_another_kind_do_not_get_into_a_file(tmp_path):
    question = Question(column=COLUMN, epsilon=1, protocol="grr")
    real = question.answer_many([1, 2, 3], rng=secure_rng())
    seeded = question.answer_many([1, 2, 3], rng=simulation_rng(1))
    other = Question(column=COLUMN, epsilon=4, protocol="grr").answer_many([1], rng=secure_rng())
    for batches, says in (
        ([real, seeded], "beside real ones"),
        ([real, other], "another question"),
    ):
        with pytest.raises(InputError, match=says):
            write_answers(tmp_path / "answers.parquet", question, batches)
    assert list(tmp_path.iterdir()) == []


def test_an_interrupted_write_leaves_nothing(tmp_path):
    question = Question(column=COLUMN, epsilon=1, protocol="grr")
    rng = simulation_rng(1)

    def broken():
        yield question.answer_many(rng.below(20, 10), rng=rng)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_answers(tmp_path / "answers.parquet", question, broken())
    assert list(tmp_path.iterdir()) == []
