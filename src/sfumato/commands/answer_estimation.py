"""Estimates from answers, in a file or counted by Spark: ``sfumato answers estimate``."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.fs
import pyarrow.parquet as pq
from numpy.typing import NDArray

from sfumato.commands import lines
from sfumato.commands.answers import EstimateRequest
from sfumato.commands.parameters import Tell
from sfumato.commands.publication import silent
from sfumato.commands.request import as_path
from sfumato.errors import InputError, StorageError
from sfumato.local.arrow import arrow_type, from_arrow
from sfumato.readers.locations import SPARK
from sfumato.readers.open_table import is_spark
from sfumato.survey.estimate.answer_files import COLUMN, question_from, question_in, read_answers
from sfumato.survey.estimate.estimates import FrequencyEstimate, z_of
from sfumato.survey.estimate.question import Estimate, Question
from sfumato.survey.estimate.tally import AnswerBatch

HEADER: Final = "label,frequency,standard_error,low,high,adjusted"
"""What a table of estimates begins with."""


def estimate_file(request: EstimateRequest) -> Estimate:
    """Estimates from a file of answers; the chart and the table of them are written if wanted."""
    z_of(request.confidence)
    chart, csv = as_path(request.chart), as_path(request.csv)
    lines.check_chart(chart)
    _check_csv(csv, request)
    estimate = _estimate(request.path, request.tell or silent)
    if not isinstance(estimate, FrequencyEstimate):
        if chart or csv:
            raise InputError("a mean is one number: leave --chart and --csv out.")
        return estimate
    if chart is not None:
        lines.write_text(chart, estimate.chart(request.confidence))
    if csv is not None:
        lines.write_text(csv, estimate.to_csv(request.confidence))
    return estimate


def question_at(path: str | Path) -> Question:
    """The question that a file of answers begins with, or that stands beside those of Spark."""
    if is_spark(str(path)):
        return _question_in_spark(str(path))[0]
    return read_answers(Path(path))[0]


def with_progress(
    batches: Iterator[AnswerBatch], tell: Tell, *, what: str
) -> Iterator[AnswerBatch]:
    """The same batches; says how many answers went by."""
    done = 0
    tell(what, 0, 0)
    for batch in batches:
        yield batch
        done += len(batch)
        tell(what, done, 0)


def _estimate(path: str | Path, tell: Tell) -> Estimate:
    if is_spark(str(path)):
        tell("counting", 0, 0)
        return _estimate_in_spark(str(path))
    question, batches = read_answers(Path(path))
    tally = question.tally()
    tally.add(with_progress(batches, tell, what="counting"))
    tell("estimating", 0, 0)
    return question.estimate(tally)


def _check_csv(path: Path | None, request: EstimateRequest) -> None:
    """Refuse a table of estimates that can't be one or would replace something else."""
    if path is None:
        return
    if path.suffix != ".csv" or path == Path(request.path):
        raise InputError(f"the table is a CSV file: its name ends in .csv, got {path.name!r}.")
    if path.exists() and not request.force:
        raise InputError(f"{path} exists. Name another file, or add --force.")
    if path.exists() and not _is_ours(path):
        raise InputError(
            f"{path} is no table of estimates: --force replaces such only. Name another file."
        )


def _is_ours(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.readline().rstrip() == HEADER.encode()


def _estimate_in_spark(address: str) -> Estimate:
    """Estimates from all answers in the Parquet files that Spark finds at an address."""
    from sfumato.readers.spark_columns import fold_column

    question, simulated = _question_in_spark(address)
    counted = fold_column(address, COLUMN, _Counting(question.mechanism))
    tally = question.tally()
    tally.counts += counted[:-1]
    tally.answers = int(counted[-1])
    tally.simulated = simulated
    return question.estimate(tally)


def _question_in_spark(address: str) -> tuple[Question, bool]:
    """The question beside the answers of a folder, or in all of its files; if they are simulated.

    Files of answers that were written one by one may lie in one folder.
    """
    from sfumato.readers.spark.output import read_about
    from sfumato.readers.spark_columns import files_of

    if (text := read_about(address.removeprefix(SPARK))) is not None:
        return question_from(text, address)
    questions = [_question_of(file) for file in files_of(address)]
    if not questions or any(other[0].id != questions[0][0].id for other in questions):
        raise InputError(f"{address}: the files answer different questions.")
    return questions[0][0], any(simulated for _, simulated in questions)


def _question_of(file: str) -> tuple[Question, bool]:
    """The question in the footer of a file, wherever Arrow can reach it."""
    try:
        system, path = pyarrow.fs.FileSystem.from_uri(file.replace("s3a://", "s3://", 1))
        with system.open_input_file(path) as opened:
            metadata = pq.read_schema(opened).metadata
    except (pa.ArrowException, OSError):
        raise StorageError(f"can't read the question in {file}.") from None
    return question_in(metadata, file)


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
