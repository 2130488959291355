"""What runs in the executors of Spark: the embedded engine, on the rows of one task.

A task gets Arrow batches and gives parcels; nothing here knows Spark. Work is sent as bytes that
hold no generator: a task makes its own. An error of ours travels as a parcel, so that it arrives
with its own text, without the executors' words, and no task is tried again for it.
"""

import io
import pickle
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato import errors
from sfumato.counting.table import (
    CodeBatch,
    CodedTable,
    Decode,
    FoldKernel,
    MapKernel,
    RowCount,
    from_arrow,
)
from sfumato.errors import SfumatoError
from sfumato.randomness import Rng, TaskRngs
from sfumato.readers.source_table import SourceTable
from sfumato.schema import Marginal, Schema
from sfumato.schema.codes import code_type

Batches = Iterator[pa.RecordBatch]

PARCEL: Final = pa.schema(
    [
        ("index", pa.int32()),  # of a piece of a state, or of a batch
        ("person", pa.binary()),  # whose rows must come together
        ("data", pa.binary()),
        ("error", pa.string()),
    ]
)
PIECE_CELLS: Final = 2**15
"""Counters in one parcel: a quarter of a megabyte."""


class Work(Protocol):
    """What a task does with its rows; small, and sent as bytes."""

    def run(self, batches: Batches, task: int) -> Batches:
        """Parcels for the rows of one task."""


class Opening(Protocol):
    """How the rows of a task are read as a table of codes."""

    def table(self, batches: Batches, task: int) -> CodedTable:
        """The table, which can be read once."""


def shipped(work: Work) -> bytes:
    """Work as bytes, in which no generator is: only whether it was secure (``TaskRngs``)."""
    sink = io.BytesIO()
    _Sender(sink).dump(work)
    return sink.getvalue()


def generator_in(kernel: MapKernel) -> Rng | None:
    """A generator that the kernel draws from; None if it draws nothing."""
    finder = _Finder(io.BytesIO())
    finder.dump(kernel)
    return next(iter(finder.generators), None)


def run(sent: bytes, batches: Batches, task: int) -> Batches:
    """Do the work that was sent, in the task of this number."""
    try:
        yield from _received(sent, task).run(batches, task)
    except SfumatoError as error:
        text = f"{type(error).__name__}: {error}"
        yield pa.RecordBatch.from_pylist([{"error": text}], schema=PARCEL)
        for _ in batches:  # a worker that leaves rows unread can't be used again
            pass


def run_writing(sent: bytes, batches: Batches, task: int) -> Batches:
    """Do work whose batches are written as they are; an error ends the job."""
    return _received(sent, task).run(batches, task)


def contents(parcels: Batches) -> Iterator[tuple[int, bytes]]:
    """The indices and bytes of parcels; the first error among them is raised."""
    for batch in parcels:
        refuse_errors(batch)
        indices, data = batch.column("index").to_pylist(), batch.column("data").to_pylist()
        yield from zip(indices, data, strict=True)


def refuse_errors(parcels: pa.RecordBatch) -> None:
    """Raise the first error among parcels, as it was raised in its task."""
    for text in parcels.column("error").drop_null().to_pylist():
        kind, _, message = text.partition(": ")
        raise getattr(errors, kind)(message)


def add_pieces(state: NDArray[np.int64], pieces: Iterator[tuple[int, bytes]]) -> None:
    """Add the pieces of partial states to a state, in place."""
    flat = state.reshape(-1)
    for index, data in pieces:
        part = flat[index * PIECE_CELLS : (index + 1) * PIECE_CELLS]
        part += np.frombuffer(data, dtype=np.int64)


def unpacked(data: bytes) -> Batches:
    """The batches that a parcel holds."""
    return iter(pa.ipc.open_stream(data))


@dataclass(frozen=True, kw_only=True, eq=False)
class RawRows:
    """Rows as Spark has them: values, which are encoded here."""

    schema: Schema
    columns: Marginal
    """The names of the columns that come, in their order."""
    where: str

    def table(self, batches: Batches, task: int) -> SourceTable:
        """The rows of one task; what is wrong with them is named with the task's number."""
        partition = _Partition(self.columns, batches, f"{self.where}, partition {task}")
        return SourceTable(self.schema, partition)


@dataclass(frozen=True, kw_only=True, eq=False)
class CodedRows:
    """Rows that were encoded before: parcels of codes."""

    schema: Schema

    def table(self, batches: Batches, task: int) -> CodedTable:
        """The rows of one task."""
        return _ParcelTable(self.schema, batches)


@dataclass(frozen=True, kw_only=True, eq=False)
class Folding:
    """The kernel's sum over the rows of a task, in pieces."""

    opening: Opening
    kernel: FoldKernel

    def run(self, batches: Batches, task: int) -> Batches:
        """Pieces of one state; those without a count are left out."""
        return pieces(self.opening.table(batches, task).fold(self.kernel))


@dataclass(frozen=True, kw_only=True, eq=False)
class Checking:
    """The number of rows of a task and, for each column, of values that did not fit."""

    opening: RawRows

    def run(self, batches: Batches, task: int) -> Batches:
        """Pieces of one state."""
        table = self.opening.table(batches, task)
        rows = table.fold(RowCount(self.opening.columns))
        table.refuse_odd_types()
        unfit = table.unfit_values()
        each = [unfit.get(name, 0) for name in self.opening.columns]
        return pieces(np.array([*rows, *each], dtype=np.int64))


@dataclass(frozen=True, kw_only=True, eq=False)
class Adding:
    """Sums of the pieces that have the same index."""

    def run(self, batches: Batches, task: int) -> Batches:
        """One piece for each index that comes to this task."""
        sums: dict[int, NDArray[np.int64]] = {}
        for index, data in contents(batches):
            part = np.frombuffer(data, dtype=np.int64)
            sums[index] = sums[index] + part if index in sums else part
        return (parcel(index, part.tobytes()) for index, part in sums.items())


@dataclass(frozen=True, kw_only=True, eq=False)
class Applying:
    """The kernel's batches instead of rows, each of them a parcel."""

    opening: Opening
    kernel: MapKernel

    def run(self, batches: Batches, task: int) -> Batches:
        """In the order of the rows."""
        mapped = self.opening.table(batches, task).map(self.kernel)
        return (parcel(index, packed(batch)) for index, batch in enumerate(mapped))


@dataclass(frozen=True, kw_only=True, eq=False)
class Naming:
    """Each row as one parcel, under the text that names its person: ready to be shuffled.

    The name is the one that the embedded engine bounds by, so " 7", 7 and 7.0 come together
    where it takes them for the same person.
    """

    opening: Opening
    column: str

    def run(self, batches: Batches, task: int) -> Batches:
        """Codes of all columns, side by side in a row's bytes."""
        table = self.opening.table(batches, task)
        for codes, people in table.people(self.column):
            rows = np.rec.fromarrays(list(codes.values()))
            yield by_person(people, rows)
        table.refuse_odd_types()


@dataclass(frozen=True, kw_only=True, eq=False)
class Bounding:
    """Of each person's rows, at most some, by the rule of ``table.BoundedTable``."""

    schema: Schema
    column: str
    max_rows: int

    def run(self, batches: Batches, task: int) -> Batches:
        """The rows of whole people come in, batches of codes go out."""
        bounded = _ParcelTable(self.schema, batches).bounded(self.column, self.max_rows)
        mapped = bounded.map(_Copying(self.schema.names))
        return (parcel(index, packed(batch)) for index, batch in enumerate(mapped))


def pieces(state: NDArray[np.int64]) -> Batches:
    """A state as parcels; pieces without a count are left out."""
    flat = state.reshape(-1)
    for index in range(-(-flat.size // PIECE_CELLS)):
        part = flat[index * PIECE_CELLS : (index + 1) * PIECE_CELLS]
        if part.any():
            yield parcel(index, part.tobytes())


def parcel(index: int, data: bytes) -> pa.RecordBatch:
    """One parcel."""
    return pa.RecordBatch.from_pylist([{"index": index, "data": data}], schema=PARCEL)


def packed(batch: pa.RecordBatch) -> bytes:
    """A batch as bytes, types and all: Spark has no unsigned numbers."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    return bytes(sink.getvalue())


def by_person(people: pa.Array, rows: NDArray[Any]) -> pa.RecordBatch:
    """Rows of a fixed number of bytes as parcels under the names of their people."""
    width = rows.dtype.itemsize
    ends = pa.py_buffer(np.arange(rows.size + 1, dtype=np.int32) * np.int32(width))
    data = pa.Array.from_buffers(
        pa.binary(), rows.size, [None, ends, pa.py_buffer(np.ascontiguousarray(rows))]
    )
    nothing = pa.nulls(rows.size, pa.int32()), pa.nulls(rows.size, pa.string())
    return pa.RecordBatch.from_arrays(
        [nothing[0], people.cast(pa.binary()), data, nothing[1]], schema=PARCEL
    )


def of_people(parcels: Batches, row: np.dtype[Any]) -> Iterator[tuple[pa.Array, NDArray[Any]]]:
    """The names and the rows that ``by_person`` sent, after the shuffle."""
    for batch in parcels:
        refuse_errors(batch)
        rows = np.frombuffer(b"".join(batch.column("data").to_pylist()), dtype=row)
        yield batch.column("person").cast(pa.string()), rows


class _Sender(pickle.Pickler):
    def persistent_id(self, value: Any) -> TaskRngs | None:
        return TaskRngs.of(value) if isinstance(value, Rng) else None


class _Finder(pickle.Pickler):
    def __init__(self, sink: io.BytesIO) -> None:
        super().__init__(sink)
        self.generators: list[Rng] = []

    def persistent_id(self, value: Any) -> int | None:
        if not isinstance(value, Rng):
            return None
        self.generators.append(value)
        return len(self.generators)


class _Receiver(pickle.Unpickler):
    def __init__(self, sent: bytes, task: int) -> None:
        super().__init__(io.BytesIO(sent))
        self._task = task

    def persistent_load(self, sent: TaskRngs) -> Rng:
        return sent.make(self._task)


def _received(sent: bytes, task: int) -> Work:
    work: Work = _Receiver(sent, task).load()
    return work


class _Partition:
    """The rows of a task as a source, which can be read once."""

    def __init__(self, columns: Marginal, batches: Batches, where: str) -> None:
        self._columns = columns
        self._batches = batches
        self._where = where

    def names(self) -> tuple[str, ...]:
        return self._columns

    def batches(self, columns: Marginal) -> Batches:
        indices = [self._columns.index(name) for name in columns]
        return (batch.select(indices) for batch in self._batches)

    def describe(self) -> str:
        return self._where


class _ParcelTable(CodedTable):
    """Rows of codes out of parcels: batches of them, or single rows under their people's names."""

    def __init__(self, schema: Schema, parcels: Batches) -> None:
        super().__init__(schema)
        self._parcels = parcels

    def describe(self) -> str:
        return "rows of Spark"

    def people(self, column: str) -> Iterator[tuple[CodeBatch, pa.Array]]:
        """Rows of whole people, as ``Naming`` sent them."""
        row = np.dtype([(f"f{index}", code_type(c)) for index, c in enumerate(self.schema)])
        for people, rows in of_people(self._parcels, row):
            arrays = (np.ascontiguousarray(rows[field]) for field in rows.dtype.names or ())
            yield dict(zip(self.schema.names, arrays, strict=True)), people

    def _read(self, columns: Marginal) -> Iterator[Decode]:
        """Batches of codes, as ``Bounding`` packed them."""
        for _, data in contents(self._parcels):
            for batch in unpacked(data):
                yield partial(from_arrow, columns, batch.select(list(columns)))


@dataclass(frozen=True)
class _Copying:
    """Rows as they are."""

    columns: Marginal

    def apply(self, codes: CodeBatch) -> pa.RecordBatch:
        arrays = [pa.array(codes[name]) for name in self.columns]
        return pa.RecordBatch.from_arrays(arrays, names=list(self.columns))
