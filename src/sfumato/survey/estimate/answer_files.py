"""Files of answers: Parquet for many, JSON lines for people and other languages.

Both begin with the question, so a file can be estimated by itself. They are written beside their
place and moved there when whole.
"""

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from sfumato.errors import InputError, StorageError
from sfumato.local.arrow import arrow_type, from_arrow, to_arrow
from sfumato.local.layout import Answers
from sfumato.survey.estimate.question import Question
from sfumato.survey.estimate.tally import AnswerBatch
from sfumato.survey.protocol.messages import VERSION, parse, version

SUFFIXES: Final = (".parquet", ".jsonl")
_KEY: Final = b"sfumato.answers"
COLUMN: Final = "answer"
"""The column of answers in a Parquet file."""
_END: Final = "answers"
_LINES: Final = 65_536
"""Answers of a batch read from JSON lines: bounded memory, and few calls."""
_NAME_PREFIX: Final = 40
"""Characters of a file's name that its temporary name begins with."""


def check_suffix(path: Path) -> Path:
    """Refuse a file name whose format we can't tell, or that no file can have."""
    if path.suffix not in SUFFIXES:
        raise InputError(f"a file of answers ends in {' or '.join(SUFFIXES)}, got {path.name!r}.")
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return path
    except OSError as error:  # a name that is too long
        raise StorageError(f"{path} can't be a file: {error.strerror}.") from None
    return path


def write_answers(path: Path, question: Question, batches: Iterable[AnswerBatch]) -> int:
    """Write answers as they come, in bounded memory; returns how many."""
    check_suffix(path)
    batches = iter(batches)
    first = list(islice(batches, 1))
    head = _head(question, simulated=any(batch.simulated for batch in first))
    every = _alike(question, head["simulated"], chain(first, batches))
    writer = _write_parquet if path.suffix == ".parquet" else _write_lines
    with _beside(path) as unfinished:
        return writer(unfinished, question, head, every)


def read_answers(path: Path) -> tuple[Question, Iterator[AnswerBatch]]:
    """The question of a file, and its answers in batches."""
    try:
        if check_suffix(path).suffix == ".parquet":
            return _read_parquet(path)
        return _read_lines(path)
    except OSError as error:
        raise StorageError(f"can't read {path}: {error.strerror or 'not a file'}") from None


def question_in(metadata: Mapping[bytes, bytes] | None, where: str) -> tuple[Question, bool]:
    """The question that a Parquet file of answers carries, and whether they are simulated."""
    return question_from((metadata or {}).get(_KEY, b"null"), where)


def question_from(text: str | bytes, where: str) -> tuple[Question, bool]:
    """The question in a text that ``question_text`` made, and whether answers are simulated."""
    return _question(parse(text), where)


def question_text(question: Question, *, simulated: bool) -> str:
    """The question as it stands before its answers, whatever holds them."""
    return json.dumps(_head(question, simulated=simulated))


def _alike(
    question: Question, simulated: bool, batches: Iterable[AnswerBatch]
) -> Iterator[AnswerBatch]:
    """The same batches; one of another question, or simulated beside real ones, is refused."""
    for batch in batches:
        if batch.question != question.id:
            raise InputError("a batch answers another question.")
        if batch.simulated != simulated:
            raise InputError("simulated answers protect nobody and do not belong beside real ones.")
        yield batch


def _head(question: Question, *, simulated: bool) -> dict[str, Any]:
    return {"sfumato": VERSION, "question": question.manifest(), "simulated": simulated}


def _question(head: Any, path: Path | str) -> tuple[Question, bool]:
    if not isinstance(head, dict) or set(head) != {"sfumato", "question", "simulated"}:
        raise InputError(f"{path} is not a file of answers: it does not begin with a question.")
    version(head)
    return Question.from_manifest(head["question"]), bool(head["simulated"])


def _write_parquet(
    path: Path, question: Question, head: dict[str, Any], batches: Iterable[AnswerBatch]
) -> int:
    layout, written = question.mechanism.layout, 0
    field = pa.field(COLUMN, arrow_type(layout), nullable=False)
    schema = pa.schema([field], metadata={_KEY: json.dumps(head).encode()})
    # No dictionary and no statistics: answers are noise, and those would only cost time.
    with pq.ParquetWriter(
        path, schema, compression="zstd", use_dictionary=False, write_statistics=False
    ) as writer:
        for batch in batches:
            arrays = [to_arrow(layout, batch.values)]
            writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=schema))
            written += len(batch)
    return written


def _write_lines(
    path: Path, question: Question, head: dict[str, Any], batches: Iterable[AnswerBatch]
) -> int:
    layout, written = question.mechanism.layout, 0
    with path.open("w", encoding="utf-8") as out:
        out.write(json.dumps(head) + "\n")
        for batch in batches:
            for value in batch.values:
                drawn = int(value) if value.ndim == 0 else value.tobytes()
                out.write(json.dumps(layout.to_json(drawn)) + "\n")
            written += len(batch)
        out.write(json.dumps({_END: written}) + "\n")
    return written


def _read_parquet(path: Path) -> tuple[Question, Iterator[AnswerBatch]]:
    try:
        file = pq.ParquetFile(path)
    except pa.ArrowException:
        raise InputError(f"{path} is not a whole Parquet file.") from None
    question, simulated = question_in(file.schema_arrow.metadata, str(path))
    if file.schema_arrow.names != [COLUMN]:
        raise InputError(f"{path} must have one column {COLUMN!r}.")
    return question, _parquet_batches(file, question, simulated)


def _parquet_batches(
    file: pq.ParquetFile, question: Question, simulated: bool
) -> Iterator[AnswerBatch]:
    try:
        for batch in file.iter_batches(batch_size=2**20):
            values = from_arrow(question.mechanism.layout, batch.column(0))
            yield AnswerBatch(question=question.id, values=values, simulated=simulated)
    except pa.ArrowException:
        raise InputError("the file of answers is damaged or truncated.") from None


def _read_lines(path: Path) -> tuple[Question, Iterator[AnswerBatch]]:
    try:
        with path.open(encoding="utf-8") as lines:
            question, simulated = _question(_parsed(next(lines, "null"), f"{path}:1"), path)
    except UnicodeDecodeError:
        raise InputError(f"{path} is not UTF-8 text.") from None
    return question, _line_batches(path, question, simulated)


def _line_batches(path: Path, question: Question, simulated: bool) -> Iterator[AnswerBatch]:
    counted, end = 0, None
    values: list[Answers] = []
    with path.open(encoding="utf-8") as lines:
        next(lines)
        for number, line in enumerate(lines, start=2):
            read = _parsed(line, f"{path}:{number}")
            if isinstance(read, dict) and end is None:
                end = read
                continue
            values.append(_checked(read, question, f"{path}:{number}"))
            if len(values) == _LINES:
                yield _joined(values, question, simulated)
                counted, values = counted + len(values), []
    if end != {_END: counted + len(values)}:
        raise InputError(f"{path} is truncated: its last line must say how many answers there are.")
    if values:
        yield _joined(values, question, simulated)


def _parsed(line: str, where: str) -> Any:
    try:
        return parse(line)
    except InputError as error:
        raise InputError(f"{where}: {error}") from None


def _checked(read: Any, question: Question, where: str) -> Answers:
    layout = question.mechanism.layout
    try:
        return layout.one(layout.from_json(read))
    except InputError as error:
        raise InputError(f"{where}: {error}") from None


def _joined(values: list[Answers], question: Question, simulated: bool) -> AnswerBatch:
    joined = np.concatenate(values)
    return AnswerBatch(question=question.id, values=joined, simulated=simulated)


@contextmanager
def _beside(path: Path) -> Iterator[Path]:
    """A name in the same folder that becomes ``path`` when all went well.

    It is no longer than a name can be: whatever ``path`` is called, it can be written.
    """
    unfinished = path.with_name(f".{path.name[:_NAME_PREFIX]}.{os.getpid()}.part")
    try:
        yield unfinished
        unfinished.replace(path)
    except OSError as error:
        raise StorageError(f"can't write {path}: {error.strerror}") from None
    finally:
        unfinished.unlink(missing_ok=True)
