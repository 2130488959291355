"""Many clients in one process: a table's rows answer as devices would.

The table is read through the curator, so its ledger is charged: whoever holds a table and a
generator is a trusted curator, whatever the answers look like.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError
from sfumato.gate import Curator
from sfumato.schema import Marginal
from sfumato.schema.values import numbers
from sfumato.survey.estimate.question import Question
from sfumato.survey.estimate.tally import AnswerBatch


def simulate(question: Question, curator: Curator) -> Iterator[AnswerBatch]:
    """One answer for each row of the curator's table; the charge comes before the first."""
    columns = _checked(question, curator)
    batches = curator.perturb(
        columns, question.mechanism, grid=question.grid, numbers=_numbers(question)
    )
    return (
        AnswerBatch(question=question.id, values=batch, simulated=not curator.private)
        for batch in batches
    )


def simulate_to(folder: str, question: Question, curator: Curator) -> int:
    """The same, as Parquet files that the machines with the rows write; how many answers."""
    columns = _checked(question, curator)
    return curator.perturb_to(
        folder, columns, question.mechanism, grid=question.grid, numbers=_numbers(question)
    )


def _checked(question: Question, curator: Curator) -> Marginal:
    if curator.schema[question.column.name] != question.column:
        raise InputError(
            f"the question describes {question.column.name!r} otherwise than the table's schema."
        )
    return (question.column.name,)


def _numbers(question: Question) -> NDArray[np.float64] | None:
    return None if question.grid is None else np.array(numbers(question.column))
