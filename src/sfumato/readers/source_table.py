"""Tables of raw values: finds the columns, translates values to codes, names what does not fit."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.counting.table import BATCH_ROWS, CodeBatch, CodedTable, Decode
from sfumato.errors import TableError
from sfumato.readers.source import RawColumn, RoundingSource, Source, TypesFollowRows
from sfumato.readers.value_texts import as_if_mixed, parts, person_texts, trimmed
from sfumato.schema import Column, Marginal, Schema
from sfumato.schema.arrow_values import extension, plain
from sfumato.schema.codes import Codes, code_type, encode, fit
from sfumato.schema.columns import repeated
from sfumato.schema.raw_values import raw_values

_MOST_NAMED = 12
"""Columns in one message."""
_MOST_COMPARED = 1_000
"""Columns that a hint is chosen from."""


class SourceTable(CodedTable):
    """The table that a file or a data frame holds."""

    def __init__(self, schema: Schema, source: Source) -> None:
        super().__init__(schema)
        self._source = source
        self._watch: Callable[[int, int], None] | None = None
        self._rows = 0  # known after the first time that all were read
        self._unfit: dict[str, dict[int, int]] = {}
        """For each column, by the first row of a batch, how many values did not fit."""
        self._nobody: dict[int, int] = {}
        """By the first row of a batch, how many rows name no person."""

    def on(self, schema: Schema) -> "SourceTable":
        """The same rows by another schema of the same columns."""
        return SourceTable(schema, self._source)

    def watch(self, tell: Callable[[int, int], None]) -> None:
        """While rows are read, report how many were, and how many there are: 0 if not known yet."""
        self._watch = tell

    def describe(self) -> str:
        """The source's own description."""
        return self._source.describe()

    def require(self, columns: Marginal) -> None:
        """Raise if the source lacks one of the columns, before any row is read."""
        require_columns(self._source.names(), columns, where=self.describe())

    def validate(self) -> None:
        """Read every column once; raise what is wrong with the table before anything is spent."""
        super().validate()
        self.refuse_odd_types()

    def misfits(self) -> tuple[str, ...]:
        """What did not fit of the rows that were read so far: exact, and internal."""
        sentences = misfit_sentences(self.schema, self.unfit_values(), self._rows)
        nobody = sum(self._nobody.values())
        return (
            *sentences,
            *((f"{nobody:,} rows name no person and do not count",) if nobody else ()),
        )

    def unfit_values(self) -> dict[str, int]:
        """For each column, how many values did not fit."""
        return {name: sum(each.values()) for name, each in self._unfit.items()}

    def left_out(self) -> tuple[str, ...]:
        """Columns of the source that the schema neither declares nor excludes: never read."""
        return undeclared(self._source.names(), self.schema)

    def people(self, column: str) -> Iterator[tuple[CodeBatch, pa.Array]]:
        """Codes and people, read together so that they stay side by side."""
        names = self.schema.names
        self.require((*names, column))
        require_exact(self._source, column)
        columns = names if column in names else (*names, column)
        for first_row, batch in self._raw(columns):
            codes = self._encode(names, batch, first_row)
            people = self._persons(column, batch.column(columns.index(column)), first_row)
            self._nobody[first_row] = people.null_count
            if people.null_count:  # of nobody, so it counts for nobody
                named = np.flatnonzero(np.from_dlpack(people.is_valid().cast(pa.uint8())))
                codes = {name: each[named] for name, each in codes.items()}
                people = people.take(pa.array(named))
            yield codes, people

    def raw_rows(self, columns: Marginal) -> Iterator[Mapping[str, RawColumn]]:
        """Batches of values as they are in the table, by no limits and no bins: internal.

        Of each column ``raw_values``, and which of them the schema has no place for.
        """
        for _, batch in self._raw(columns):
            yield {
                name: self._raw_column(name, batch.column(index))
                for index, name in enumerate(columns)
            }

    def _raw_column(self, name: str, values: pa.Array) -> RawColumn:
        """The values of a column; of Python objects those of each type by itself."""
        column = self.schema[name]
        if isinstance(self._source, TypesFollowRows):
            values = as_if_mixed(values)
        read = [(at, raw_values(column, self._trimmed(part))) for at, part in parts(values)]
        if len(read) == 1:
            return read[0][1]
        order = np.argsort(np.concatenate([np.arange(0), *(at for at, _ in read)]))
        none = raw_values(column, pa.nulls(0))
        both = [none, *(each for _, each in read)]
        whole, unfit = (np.concatenate([each[i] for each in both])[order] for i in range(2))
        return whole, unfit

    def _read(self, columns: Marginal) -> Iterator[Decode]:
        for first_row, batch in self._raw(columns):
            yield partial(self._encode, columns, batch, first_row)

    def _raw(self, columns: Marginal) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Batches of at most ``BATCH_ROWS`` rows and the number of their first row."""
        first_row = 1
        for batch in self._source.batches(columns):
            for start in range(0, batch.num_rows, BATCH_ROWS):
                yield first_row + start, batch.slice(start, BATCH_ROWS)
            first_row += batch.num_rows
            if self._watch is not None:
                self._watch(first_row - 1, self._rows)
        self._rows = first_row - 1

    def _encode(self, columns: Marginal, batch: pa.RecordBatch, first_row: int) -> CodeBatch:
        """The codes of a batch; how many values did not fit is remembered."""
        codes, unfit = self._fitted(columns, batch, first_row)
        for name, which in unfit.items():
            self._unfit.setdefault(name, {})[first_row] = int(np.count_nonzero(which))
        return codes

    def _fitted(
        self, columns: Marginal, batch: pa.RecordBatch, first_row: int
    ) -> tuple[CodeBatch, Mapping[str, NDArray[np.bool_]]]:
        """The codes of a batch and, of columns where some value did not fit, which ones."""
        codes, unfit = {}, {}
        try:
            for index, name in enumerate(columns):
                codes[name], which = self._fitted_column(name, batch.column(index), first_row)
                if which is not None:
                    unfit[name] = which
        except TableError as error:
            raise TableError(f"{self.describe()}: {error}") from None
        return codes, unfit

    def _fitted_column(
        self, name: str, values: pa.Array, first_row: int
    ) -> tuple[Codes, NDArray[np.bool_] | None]:
        """The codes of a column; of Python objects those of each type by itself."""
        column = self.schema[name]
        if isinstance(self._source, TypesFollowRows):
            values = as_if_mixed(values)
        if not pa.types.is_union(values.type):
            return self._read_values(column, self._trimmed(values), first_row)
        codes = np.zeros(len(values), dtype=code_type(column))
        unfit = np.zeros(len(values), dtype=np.bool_)
        for indices, part in parts(values):
            part = self._trimmed(part)
            try:
                codes[indices], which = self._read_values(column, part, first_row)
            except TableError:  # of which row: one by one
                for i, row in enumerate(indices.tolist()):
                    self._read_values(column, part[i : i + 1], first_row + row)
                raise
            unfit[indices] = False if which is None else which
        return codes, unfit

    def _read_values(
        self, column: Column, values: pa.Array, first_row: int
    ) -> tuple[Codes, NDArray[np.bool_] | None]:
        """The codes of values of one type, and which did not fit; a strict schema refuses."""
        if self.schema.file.strict:
            return encode(column, values, first_row=first_row), None
        if (odd := extension(plain(values).type)) is not None:
            self._odd[column.name] = odd
        return fit(column, values)

    def _trimmed(self, values: pa.Array) -> pa.Array:
        return trimmed(values) if self.schema.file.trim else values

    def _persons(self, column: str, values: pa.Array, first_row: int) -> pa.Array:
        """The people of a batch as text, null where a row names nobody; refused if strict."""
        try:
            texts = person_texts(values, trim=self.schema.file.trim)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            raise _no_names(self.describe(), column) from None
        if texts.null_count and self.schema.file.strict:
            row = first_row + pc.index(texts.is_null(), True).as_py()
            raise TableError(
                f"{self.describe()}: column {column!r}, row {row}: the person is missing, so "
                "their rows can't be bounded."
            )
        return texts


def misfit_sentences(schema: Schema, unfit: Mapping[str, int], rows: int) -> tuple[str, ...]:
    """For each column, how many values it had no code for, and what they counted as."""
    sentences = []
    for name, number in unfit.items():
        column = schema[name]
        labels = dict.fromkeys(column.labels[c] for c in (column.unfit_code, column.absent_code))
        counted = " or ".join(map(repr, labels))
        values = "1 value" if number == 1 else f"{number:,} values"
        most = " Most of them: is it declared as the file writes it?" if 2 * number > rows else ""
        if number:
            sentences.append(
                f"{values} of column {name!r} did not fit and counted as {counted}.{most}"
            )
    return tuple(sentences)


def require_columns(names: Sequence[str], columns: Marginal, *, where: str) -> None:
    """Raise if one of the columns is not among the names, and say which one may be meant."""
    known = set(names)
    absent = [name for name in columns if name not in known]
    if absent:
        listed = _hinted(absent, names, sure=len(absent) < len(columns))
        raise TableError(
            f"{where}: these columns are missing: {listed}. Names must agree exactly, also in "
            "case and spaces."
        )


def require_unique(names: Sequence[str], *, where: str) -> None:
    """Raise if a name stands twice among the columns."""
    if twice := repeated(names):
        raise TableError(
            f"{where}: these column names stand twice: {', '.join(twice[:_MOST_NAMED])}. Rename "
            "one of each."
        )


def require_exact(source: Source, column: str) -> None:
    """Raise if a source might read two people by the same text: then neither would be bounded."""
    if isinstance(source, RoundingSource) and source.has_inexact(column):
        raise _no_names(source.describe(), column)


def undeclared(names: Sequence[str], schema: Schema) -> tuple[str, ...]:
    """Those of the columns that a schema neither declares nor excludes."""
    known = {*schema.names, *schema.exclude}
    return tuple(name for name in names if name and name not in known)


def _no_names(where: str, column: str) -> TableError:
    return TableError(
        f"{where}: column {column!r} can't be read as text or whole numbers up to 2^53, so it "
        "can't name people."
    )


def _hinted(absent: Sequence[str], names: Sequence[str], *, sure: bool) -> str:
    """The absent names, each with the one that may be meant.

    A file without a header "has" the values of its first row as names. So a name is shown only
    where it differs in case and spaces alone, or where ``sure``: other columns are there.
    """
    plain = {text.strip().casefold(): text for text in names[:_MOST_COMPARED]}
    shown = []
    for name in absent[:_MOST_NAMED]:
        near = get_close_matches(name.strip().casefold(), plain, n=1, cutoff=0.6 if sure else 1.0)
        shown.append(f"{name!r} (did you mean {plain[near[0]]!r}?)" if near else repr(name))
    more = f" and {len(absent) - _MOST_NAMED:,} more" if len(absent) > _MOST_NAMED else ""
    return ", ".join(shown) + more
