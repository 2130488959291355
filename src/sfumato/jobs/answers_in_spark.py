"""Files of answers that Spark counts: the question is in each file, the tally comes back."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.fs
import pyarrow.parquet as pq
from numpy.typing import NDArray

from sfumato.collection.files import COLUMN, question_in
from sfumato.collection.questions import Estimate, Question
from sfumato.errors import InputError, StorageError
from sfumato.mechanisms.local.arrow import arrow_type, from_arrow


def estimate_in_spark(address: str) -> Estimate:
    """Estimates from all answers in the Parquet files that Spark finds at an address."""
    from sfumato.engine.spark_values import files_of, fold_column

    found = [_question_of(file) for file in files_of(address)]
    if not found or any(other[0].id != found[0][0].id for other in found):
        raise InputError(f"{address}: the files answer different questions. Nothing was counted.")
    question = found[0][0]
    counted = fold_column(address, COLUMN, _Counting(question.mechanism))
    tally = question.tally()
    tally.counts += counted[:-1]
    tally.answers = int(counted[-1])
    tally.simulated = any(simulated for _, simulated in found)
    return question.estimate(tally)


@dataclass(frozen=True, eq=False)
class _Counting:
    """Adds answers to the tally of a mechanism; the last counter is how many there were."""

    mechanism: Any

    def zero(self) -> NDArray[np.int64]:
        return np.zeros(self.mechanism.cells + 1, dtype=np.int64)

    def add(self, state: NDArray[np.int64], values: pa.Array) -> None:
        layout = self.mechanism.layout
        try:
            values = values.cast(arrow_type(layout))  # Spark has no unsigned numbers
        except pa.ArrowInvalid:
            raise InputError("a value is no answer to this question. Nothing was counted") from None
        self.mechanism.add(from_arrow(layout, values), state[:-1])
        state[-1] += len(values)


def _question_of(file: str) -> tuple[Question, bool]:
    """The question in the footer of a file, wherever Arrow can reach it."""
    try:
        system, path = pyarrow.fs.FileSystem.from_uri(file.replace("s3a://", "s3://", 1))
        with system.open_input_file(path) as opened:
            metadata = pq.read_schema(opened).metadata
    except (pa.ArrowException, OSError):
        raise StorageError(f"can't read the question in {file}. Nothing was counted.") from None
    return question_in(metadata, file)
