"""Local collection on files: answers for the rows of a table, and estimates from answers."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from sfumato import check
from sfumato.commands.answers_in_spark import (
    estimate_in_spark,
    place_in_spark,
    question_in_spark,
    simulate_in_spark,
)
from sfumato.commands.inputs import dataset_name, loaded_schema, read_strictly
from sfumato.commands.publication import Tell, silent
from sfumato.commands.resume import telling_what_was_paid
from sfumato.errors import InputError, StorageError
from sfumato.gate import Curator
from sfumato.ledger import default_path
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.outcome import spending_boundary
from sfumato.privacy.composition import Cap
from sfumato.privacy.guarantees import PureDP
from sfumato.privacy.protection import OneRow
from sfumato.randomness import secure_rng, simulation_rng
from sfumato.readers.open_table import is_spark, open_table
from sfumato.release import check_apart, check_usable
from sfumato.schema import Schema
from sfumato.survey.estimate.answer_files import check_suffix, read_answers, write_answers
from sfumato.survey.estimate.question import Estimate, Question
from sfumato.survey.estimate.simulation import simulate
from sfumato.survey.estimate.tally import AnswerBatch


@spending_boundary()
def simulate_answers(
    table: Any,
    *,
    schema: Schema | Mapping[str, Any] | str | Path,
    column: str,
    epsilon: check.Number,
    out: str | Path,
    protocol: str = "auto",
    dataset: str | None = None,
    ledger: str | Path | None = None,
    cap: Cap | None = None,
    force: bool = False,
    encoding: str = "utf-8",
    delimiter: str | None = None,
    strict: bool = False,
    seed: int | None = None,
    tell: Tell | None = None,
) -> tuple[Path | str, int]:
    """One randomized answer for each row of a table: `sfumato answers simulate` in one call.

    Returns what was written and the number of answers in it.

    Args:
        table: Anything that ``sf.publish_table`` takes.
        schema: The public description of its columns.
        column: The column that is asked about.
        epsilon: What each answer promises; also what the ledger is charged, once.
        out: The file to write, ``.parquet`` or ``.jsonl``; or, if Spark holds the table, a folder
            that its machines write Parquet files to, as ``spark::/folder``.
        protocol: ``auto`` or a name such as ``grr``, ``oue``, ``hybrid`` or ``square-wave``.
        dataset: The name that the budget belongs to; by default the schema's.
        ledger: The ledger file; by default the one of this user.
        cap: The most that everything from this data set together may cost.
        force: Replace an older file.
        encoding: Of a CSV file.
        delimiter: Of a CSV file; by default the one that explains its header.
        strict: Refuse a table with a value that does not fit. By default it counts as a public
            code, so that no single row decides whether there is a release.
        seed: Make a simulation that protects nobody, under a name that ends in ``-internal``.
        tell: Called with the progress.
    """
    with spending_boundary():
        known = read_strictly(loaded_schema(schema), strict)
        question = Question(
            column=known[column], epsilon=check.exact(epsilon=epsilon), protocol=protocol
        )
        path = place_in_spark(str(out), table, seed) if is_spark(out) else _place(Path(out), seed)
        if isinstance(path, Path):
            _check_place(path, table, force=force)
            check_apart(path, ledger or default_path(), named="the ledger")
        tell = tell or silent
        tell("checking the table", 0, 0)
        source = open_table(table, known.pick([column]), encoding=encoding, delimiter=delimiter)
        book = Ledger.open(
            None if ledger is None else Path(ledger), dataset=dataset_name(known, dataset), cap=cap
        )
        curator = Curator(
            source,
            protect=OneRow(neighbors="replace"),
            budget=PureDP(question.epsilon),
            ledger=book,
            rng=secure_rng() if seed is None else simulation_rng(seed),
        )
    with telling_what_was_paid(curator.journal if curator.private else None):
        if isinstance(path, str):
            tell("answering", 0, 0)
            written = simulate_in_spark(path, question, curator)
        else:
            written = write_answers(path, question, _told(simulate(question, curator), tell))
    return path, written


def estimate_answers(path: str | Path, *, tell: Tell | None = None) -> Estimate:
    """Estimates from a file of answers: `sfumato answers estimate` in one call.

    ``spark::`` before the path of Parquet files of answers lets Spark count them.
    """
    tell = tell or silent
    if is_spark(str(path)):
        tell("counting", 0, 0)
        return estimate_in_spark(str(path))
    question, batches = read_answers(Path(path))
    tally = question.tally()
    tally.add(_told(batches, tell, what="counting"))
    tell("estimating", 0, 0)
    return question.estimate(tally)


def question_at(path: str | Path) -> Question:
    """The question that a file of answers begins with, or that stands beside those of Spark."""
    if is_spark(str(path)):
        return question_in_spark(str(path))[0]
    return read_answers(Path(path))[0]


def _told(
    batches: Iterator[AnswerBatch], tell: Tell, *, what: str = "answering"
) -> Iterator[AnswerBatch]:
    done = 0
    tell(what, 0, 0)
    for batch in batches:
        yield batch
        done += len(batch)
        tell(what, done, 0)


def _place(out: Path, seed: int | None) -> Path:
    check_suffix(out)
    if out.stem.casefold().endswith("-internal"):
        raise InputError(
            f"{out} ends in -internal, the mark of what may not be published. Choose another name."
        )
    return out if seed is None else out.with_name(f"{out.stem}-internal{out.suffix}")


def _check_place(path: Path, table: Any, *, force: bool) -> None:
    """Refuse, before anything is spent, a place that can't or must not be written."""
    check_apart(path, table, named="the input")
    if path.exists() and not (force and path.is_file()):
        raise InputError(f"{path} exists. Choose another name, or add --force.")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(f"can't make the folder {path.parent}: {error.strerror}.") from None
    check_usable(path.parent)
