"""The counted answers to the question of one round, in all variants, and the release they make.

A question lists parts, one of which each person answers about, or it is about every column. All
functions take public values: the server sees answers only.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from sfumato import check
from sfumato.errors import InputError
from sfumato.local.records.parts import by_part
from sfumato.models.answers.pair_tables import NoisyTable
from sfumato.models.code_counts import narrow
from sfumato.models.model import Model
from sfumato.privacy.sensitivity import OneRow
from sfumato.randomness import Rng
from sfumato.release import TableRelease, draw_rows
from sfumato.schema.schema import Marginal
from sfumato.survey.protocol.messages import Answer
from sfumato.survey.protocol.rounds import (
    Agreement,
    AnswerRows,
    ColumnsQuestion,
    PartsQuestion,
    RecordRows,
    RoundQuestion,
    check_question,
)

Collected = AnswerRows | RecordRows | Answer | Mapping[str, Any] | None
"""What may be counted: the answers of many people, of one, the message of one, or None from
somebody who had nothing to answer."""
Rows = TypeVar("Rows", AnswerRows, RecordRows)


@dataclass(frozen=True, kw_only=True, eq=False)
class PartsTally:
    """The counted answers to a question of which each person answers one part."""

    question: PartsQuestion
    counts: tuple[NDArray[np.int64], ...]
    """For each part, how many answers are each code."""
    answers: NDArray[np.int64]
    """The number of people who answered about each part."""
    simulated: bool

    @property
    def people(self) -> int:
        """Everybody who answered."""
        return int(self.answers.sum())

    def of(self, columns: Marginal) -> tuple[NDArray[np.int64], int] | None:
        """Counts and people of the part about these columns, if there is one."""
        parts = zip(self.question.parts, self.counts, self.answers, strict=True)
        for part, counts, people in parts:
            if part.columns == columns:
                return counts, int(people)
        return None


@dataclass(frozen=True, kw_only=True, eq=False)
class ColumnsTally:
    """The counted answers to a question about every column."""

    question: ColumnsQuestion
    counts: tuple[NDArray[np.int64], ...]
    """For each column, how many answers are each code."""
    people: int
    simulated: bool
    block: NDArray[np.unsignedinteger[Any]] | None = None
    """The answers, a row for each column and a column for each person; None if only counts are
    known."""

    @property
    def answers(self) -> NDArray[np.int64]:
        """The number of people who answered about each column: all of them."""
        return np.full(len(self.counts), self.people, dtype=np.int64)

    @property
    def records(self) -> NDArray[np.unsignedinteger[Any]]:
        """The answers, where they are known."""
        if self.block is None:
            raise InputError("only counts of these answers are known, not the answers.")
        return self.block


RoundTally = PartsTally | ColumnsTally


def count(
    question: RoundQuestion, agreed: Agreement, answers: Collected | Iterable[Collected]
) -> RoundTally:
    """Check and count answers to a question; one that does not fit refuses all of them."""
    if isinstance(question, ColumnsQuestion):
        return count_columns(question, agreed, answers)
    return count_parts(question, agreed, answers)


def count_parts(
    question: PartsQuestion, agreed: Agreement, answers: Collected | Iterable[Collected]
) -> PartsTally:
    """The answers to a question of which each person answers one part."""
    mechanisms = [part.mechanism(agreed.schema, question.epsilon) for part in question.parts]
    counts = tuple(np.zeros(mechanism.cells, dtype=np.int64) for mechanism in mechanisms)
    people = np.zeros(len(mechanisms), dtype=np.int64)

    def add(parts: NDArray[np.int64], values: NDArray[np.uint64]) -> None:
        for part, mine in by_part(parts, len(mechanisms)):
            mechanism = mechanisms[part]
            mechanism.add(mechanism.layout.checked_many(values[mine]), counts[part])
            people[part] += mine.size

    single, simulated = [], False
    for each in _collected(answers, AnswerRows, question):
        simulated |= each.simulated
        if isinstance(each, AnswerRows):
            add(*_checked_parts(each, len(mechanisms)))
        else:
            single.append(_part_and_value(each.value, len(mechanisms)))
    rows = np.array(single, dtype=np.uint64).reshape(-1, 2)
    add(rows[:, 0].astype(np.int64), rows[:, 1])
    return PartsTally(question=question, counts=counts, answers=people, simulated=simulated)


def count_columns(
    question: ColumnsQuestion, agreed: Agreement, answers: Collected | Iterable[Collected]
) -> ColumnsTally:
    """The answers to a question about every column."""
    blocks, single, simulated = [], [], False
    for each in _collected(answers, RecordRows, question):
        simulated |= each.simulated
        if isinstance(each, RecordRows):
            blocks.append(_checked_block(each.codes, agreed))
        else:
            single.append(_codes(each.value, agreed))
    if single or not blocks:
        rows = np.array(single, dtype=np.int64).reshape(-1, len(agreed.columns))
        blocks.append(_checked_block(rows.T, agreed))
    block = np.concatenate(blocks, axis=1)
    sizes = zip(block, agreed.schema.shape(agreed.columns), strict=True)
    return ColumnsTally(
        question=question,
        counts=tuple(np.bincount(row, minlength=size).astype(np.int64) for row, size in sizes),
        people=block.shape[1],
        simulated=simulated,
        block=block,
    )


def table_release(
    agreed: Agreement,
    tallies: Sequence[RoundTally],
    *,
    people: int,
    model: Model,
    tables: Mapping[Marginal, NoisyTable],
    method: Mapping[str, Any],
    rng: Rng,
) -> TableRelease:
    """A release of the model that was fitted to all answers, with a row drawn for each person.

    Args:
        agreed: The survey.
        tallies: Of all rounds.
        people: How many answered, a number that is public.
        model: Fitted to the tables.
        tables: The debiased tables, by their columns.
        method: How the release was made, beside what all surveys say: public values only.
        rng: Draws the rows.
    """
    drawn = draw_rows(model, n_rows=people, rng=rng)
    return TableRelease(
        dataset=agreed.schema.dataset or f"survey {agreed.id}",
        guarantee=agreed.guarantee,
        protect=OneRow(neighbors="replace"),
        private=not any(tally.simulated for tally in tallies),
        method={
            "name": "survey" if agreed.rounds == 1 else "dp2pub",
            "trust": "nobody",
            "variant": agreed.variant,
            "survey": agreed.id,
            "answers": [tally.people for tally in tallies],
            **method,
            **drawn.facts,
        },
        schema=agreed.schema,
        model=drawn.model,
        measurements=tuple(
            {"target": list(columns), "sigma_counts": people * sqrt(table.variance)}
            for columns, table in tables.items()
        ),
        data=drawn.table,
        ledger={"head": {"seq": 0, "hash": agreed.id}, "entries": []},  # devices keep their own
    )


def _collected(
    answers: Collected | Iterable[Collected], kind: type[Rows], question: RoundQuestion
) -> Iterator[Rows | Answer]:
    """Rows of many people and answers of one, all to this question."""
    if answers is None or isinstance(answers, AnswerRows | RecordRows | Answer | Mapping):
        answers = [answers]
    if not isinstance(answers, Iterable) or isinstance(answers, str | bytes):
        raise InputError(
            "answers must be AnswerRows, RecordRows, Answer or the message of one, or several of "
            f"these; got {type(answers).__name__}."
        )
    for each in answers:
        if each is not None:
            read = each if isinstance(each, (kind, Answer)) else Answer.from_dict(each)
            check_question(read.question, question)
            yield read


def _part_and_value(value: Any, parts: int) -> tuple[int, int]:
    if not isinstance(value, list | tuple) or len(value) != 2:
        raise InputError("an answer is a part and what is answered about it.")
    part = check.whole(at_least=0, at_most=parts - 1, part=value[0])
    return part, check.whole(at_least=0, at_most=2**63 - 1, answer=value[1])


def _checked_parts(rows: AnswerRows, parts: int) -> tuple[NDArray[Any], NDArray[Any]]:
    part, answer = np.asarray(rows.part), np.asarray(rows.answer)
    whole_numbers = part.dtype.kind in "iu" and answer.dtype.kind in "iu"
    if part.ndim != 1 or part.shape != answer.shape or not whole_numbers:
        raise InputError("rows are two arrays of whole numbers, of one length.")
    if part.size and (part.min() < 0 or part.max() >= parts):
        raise InputError(f"parts are from 0 to {parts - 1}; some are not.")
    return part, answer


def _codes(value: Any, agreed: Agreement) -> list[int]:
    sizes = agreed.schema.shape(agreed.columns)
    if not isinstance(value, list | tuple) or len(value) != len(sizes):
        raise InputError(
            f"an answer is a list of codes, one for each of the {len(sizes)} columns of the "
            "question."
        )
    named = zip(value, sizes, strict=True)
    return [check.whole(at_least=0, at_most=size - 1, answer=code) for code, size in named]


def _checked_block(codes: Any, agreed: Agreement) -> NDArray[np.unsignedinteger[Any]]:
    """A block of answers in a small type; one that is no code of its column refuses all."""
    block, sizes = np.asarray(codes), agreed.schema.shape(agreed.columns)
    if block.ndim != 2 or len(block) != len(sizes) or block.dtype.kind not in "iu":
        raise InputError(
            f"answers are whole numbers, a row for each of the {len(sizes)} columns of the "
            f"question; got {block.dtype} of shape {block.shape}."
        )
    for name, size, row in zip(agreed.columns, sizes, block, strict=True):
        if row.size and (row.min() < 0 or row.max() >= size):
            raise InputError(f"answers about {name!r} are from 0 to {size - 1}; some are not.")
    return narrow(block, max(sizes))
