"""Answers for the rows of a table, in a file or written by Spark: ``sfumato answers simulate``."""

from pathlib import Path
from typing import Any

from sfumato import check
from sfumato.commands.answer_estimation import with_progress
from sfumato.commands.answers import SimulateRequest
from sfumato.commands.inputs import dataset_name, loaded_schema, read_strictly
from sfumato.commands.parameters import asked_cap
from sfumato.commands.publication import silent
from sfumato.commands.resume import telling_what_was_paid
from sfumato.errors import InputError, StorageError
from sfumato.gate import Curator
from sfumato.ledger import default_path
from sfumato.ledger.ledger import Ledger
from sfumato.privacy.guarantees import PureDP
from sfumato.privacy.protection import OneRow
from sfumato.randomness import secure_rng, simulation_rng
from sfumato.readers.locations import SPARK
from sfumato.readers.open_table import is_spark, open_table
from sfumato.release import check_apart, check_usable
from sfumato.survey.estimate.answer_files import check_suffix, question_text, write_answers
from sfumato.survey.estimate.question import Question
from sfumato.survey.estimate.simulation import simulate, simulate_to


def simulate_rows(request: SimulateRequest) -> tuple[Path | str, int]:
    """One randomized answer for each row; returns what was written and the number of answers."""
    schema = read_strictly(loaded_schema(request.schema), request.strict)
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
        ledger=Ledger.open(request.ledger, dataset=dataset, cap=asked_cap(request.cap)),
        rng=secure_rng() if request.seed is None else simulation_rng(request.seed),
    )
    with telling_what_was_paid(curator.journal if curator.private else None):
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
