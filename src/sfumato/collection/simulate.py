"""Many clients in one process: a table's rows answer as so many devices would.

The table is read through the curator, so its ledger is charged: whoever holds a table and a
generator is a trusted curator, whatever the answers look like.
"""

from collections.abc import Iterator

import numpy as np

from sfumato.collection.questions import Question
from sfumato.collection.server import AnswerBatch
from sfumato.curator import Curator
from sfumato.errors import InputError
from sfumato.schema.values import numbers


def simulate(question: Question, curator: Curator) -> Iterator[AnswerBatch]:
    """One answer for each row of the curator's table; the charge comes before the first."""
    if curator.schema[question.column.name] != question.column:
        raise InputError(
            f"the question describes {question.column.name!r} otherwise than the table's schema. "
            "Nothing was looked at."
        )
    values = None if question.grid is None else np.array(numbers(question.column))
    batches = curator.perturb(
        (question.column.name,), question.mechanism, grid=question.grid, numbers=values
    )
    return (
        AnswerBatch(question=question.id, values=batch, simulated=not curator.private)
        for batch in batches
    )
