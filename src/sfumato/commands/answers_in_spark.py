"""Answers that Spark writes and counts: what comes back are the tallies."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.fs
import pyarrow.parquet as pq
from numpy.typing import NDArray

from sfumato.errors import InputError, StorageError
from sfumato.gate import Curator
from sfumato.local.arrow import arrow_type, from_arrow
from sfumato.readers.locations import SPARK
from sfumato.readers.open_table import is_spark
from sfumato.survey.estimate.answer_files import COLUMN, question_from, question_in, question_text
from sfumato.survey.estimate.question import Estimate, Question
from sfumato.survey.estimate.simulation import simulate_to


def place_in_spark(out: str, table: Any, seed: int | None) -> str:
    """The folder that Spark shall write, checked before anything is spent."""
    folder = out.removeprefix(SPARK).rstrip("/")
    if "/" not in folder or folder.casefold().endswith("-internal"):
        raise InputError(
            f"{out!r} names no folder that may be written: it needs a slash, and -internal at its "
            "end is the mark of what may not be published. Write it like spark::/data/answers."
        )
    if not is_spark(table):
        raise InputError(
            f"{out!r} is written by Spark, but the table is not read by it. Give a file to write, "
            "or spark:: before the table."
        )
    if isinstance(table, str) and f"{folder}/".startswith(f"{table.removeprefix(SPARK)}/"):
        raise InputError(f"{out!r} lies inside the table. Choose another.")
    return f"{SPARK}{folder}{'' if seed is None else '-internal'}"


def simulate_in_spark(address: str, question: Question, curator: Curator) -> int:
    """One answer for each row, written by Spark; the question comes last, when all is there."""
    from sfumato.readers.spark.output import write_about

    folder = address.removeprefix(SPARK)
    written = simulate_to(folder, question, curator)
    write_about(folder, question_text(question, simulated=not curator.private))
    return written


def question_in_spark(address: str) -> tuple[Question, bool]:
    """The question beside the answers of a folder, or in all of its files; if they are simulated.

    Files of answers that were written one by one may lie in one folder.
    """
    from sfumato.readers.spark.output import read_about
    from sfumato.readers.spark_columns import files_of

    if (text := read_about(address.removeprefix(SPARK))) is not None:
        return question_from(text, address)
    found = [_question_of(file) for file in files_of(address)]
    if not found or any(other[0].id != found[0][0].id for other in found):
        raise InputError(f"{address}: the files answer different questions.")
    return found[0][0], any(simulated for _, simulated in found)


def estimate_in_spark(address: str) -> Estimate:
    """Estimates from all answers in the Parquet files that Spark finds at an address."""
    from sfumato.readers.spark_columns import fold_column

    question, simulated = question_in_spark(address)
    counted = fold_column(address, COLUMN, _Counting(question.mechanism))
    tally = question.tally()
    tally.counts += counted[:-1]
    tally.answers = int(counted[-1])
    tally.simulated = simulated
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
            raise InputError("a value is no answer to this question") from None
        self.mechanism.add(from_arrow(layout, values), state[:-1])
        state[-1] += len(values)


def _question_of(file: str) -> tuple[Question, bool]:
    """The question in the footer of a file, wherever Arrow can reach it."""
    try:
        system, path = pyarrow.fs.FileSystem.from_uri(file.replace("s3a://", "s3://", 1))
        with system.open_input_file(path) as opened:
            metadata = pq.read_schema(opened).metadata
    except (pa.ArrowException, OSError):
        raise StorageError(f"can't read the question in {file}.") from None
    return question_in(metadata, file)
