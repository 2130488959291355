"""Answers in a file or in Spark's folders: the work of ``sfumato answers``.

Simulating writes one randomized answer for each row of a table; estimating reads answers alone.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.fs
import pyarrow.parquet as pq
from numpy.typing import NDArray

from sfumato import check
from sfumato.commands import lines
from sfumato.commands.answers import EstimateRequest, SimulateRequest
from sfumato.commands.publication import (
    dataset_name,
    loaded_schema,
    note_charges,
    read_strictly,
    silent,
)
from sfumato.commands.request import ProgressCall, as_path, cap_of
from sfumato.errors import InputError, StorageError
from sfumato.gate import Curator
from sfumato.ledger import default_path
from sfumato.ledger.ledger import Ledger
from sfumato.local.arrow import arrow_type, from_arrow
from sfumato.privacy.guarantees import PureDP
from sfumato.privacy.protection import OneRow
from sfumato.randomness import secure_rng, simulation_rng
from sfumato.readers.locations import SPARK
from sfumato.readers.open_table import is_spark, open_table
from sfumato.release import check_apart, check_usable
from sfumato.schema.classes import with_steps
from sfumato.survey.estimate.answer_files import (
    COLUMN,
    check_suffix,
    question_from,
    question_in,
    question_text,
    read_answers,
    write_answers,
)
from sfumato.survey.estimate.estimates import FrequencyEstimate, z_of
from sfumato.survey.estimate.question import Estimate, Question
from sfumato.survey.estimate.simulation import simulate, simulate_to
from sfumato.survey.estimate.tally import AnswerBatch


def simulate_rows(request: SimulateRequest) -> tuple[Path | str, int]:
    """One randomized answer for each row; returns what was written and the number of answers."""
    schema = read_strictly(loaded_schema(request.schema), request.strict)
    columns = tuple(with_steps(column) for column in schema.pick([request.column]))
    schema = replace(schema.pick([request.column]), columns=columns)
    question = Question(
        column=schema[request.column],
        epsilon=check.exact(epsilon=request.epsilon),
        protocol=request.protocol,
    )
    path = _output(request)
    tell = request.tell or silent
    tell("checking the table", 0, 0)
    table = open_table(
        request.table,
        schema.pick([request.column]),
        encoding=request.encoding,
        delimiter=request.delimiter,
    )
    dataset = dataset_name(schema, request.dataset)
    curator = Curator(
        table,
        protect=OneRow(neighbors="replace"),
        budget=PureDP(question.epsilon),
        ledger=Ledger.open(request.ledger, dataset=dataset, cap=cap_of(request.cap)),
        rng=secure_rng() if request.seed is None else simulation_rng(request.seed),
    )
    with note_charges(curator.journal if curator.private else None):
        if isinstance(path, str):
            tell("answering", 0, 0)
            return path, _simulate_in_spark(path, question, curator)
        batches = with_progress(simulate(question, curator), tell, what="answering")
        return path, write_answers(path, question, batches)


def _output(request: SimulateRequest) -> Path | str:
    """What is written: a file, or the address of a folder for Spark; checked before any spend."""
    if is_spark(request.out):
        return _spark_folder(str(request.out), request.table, request.seed)
    path = _file(Path(request.out), request.seed)
    _check_file(path, request.table, force=request.force)
    check_apart(path, request.ledger or default_path(), named="the ledger")
    return path


def _file(out: Path, seed: int | None) -> Path:
    check_suffix(out)
    if out.stem.casefold().endswith("-internal"):
        raise InputError(
            f"{out} ends in -internal, the mark of what may not be published. Choose another name."
        )
    return out if seed is None else out.with_name(f"{out.stem}-internal{out.suffix}")


def _check_file(path: Path, table: Any, *, force: bool) -> None:
    """Refuse, before anything is spent, a file that can't or must not be written."""
    check_apart(path, table, named="the input")
    if path.exists() and not (force and path.is_file()):
        raise InputError(f"{path} exists. Choose another name, or add --force.")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(f"can't make the folder {path.parent}: {error.strerror}.") from None
    check_usable(path.parent)


def _spark_folder(out: str, table: Any, seed: int | None) -> str:
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


def _simulate_in_spark(address: str, question: Question, curator: Curator) -> int:
    """One answer for each row, written by Spark; the question comes last, when all is there."""
    from sfumato.readers.spark.output import write_about

    folder = address.removeprefix(SPARK)
    written = simulate_to(folder, question, curator)
    write_about(folder, question_text(question, simulated=not curator.private))
    return written


HEADER: Final = "label,frequency,standard_error,low,high,adjusted"
"""What a table of estimates begins with."""


def estimate_file(request: EstimateRequest) -> Estimate:
    """Estimates from a file of answers; the chart and the table of them if named."""
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
    batches: Iterator[AnswerBatch], tell: ProgressCall, *, what: str
) -> Iterator[AnswerBatch]:
    """The same batches; says how many answers went by."""
    done = 0
    tell(what, 0, 0)
    for batch in batches:
        yield batch
        done += len(batch)
        tell(what, done, 0)


def _estimate(path: str | Path, tell: ProgressCall) -> Estimate:
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
