"""A table and its two verbs, and tables of codes: the seam between exact data and everything else.

``fold`` adds batches into a small array, ``map`` turns batches into batches. A kernel is a small
frozen object that names the columns it needs; only those are read. What a fold returns is exact
and sensitive: only the curator may call it.

A table of at most 64 MB of codes is parsed once: the first whole pass keeps what it read. A
larger one is read again by each fold, in bounded memory. Two reads may bring the rows in two
orders, so columns stand side by side only if one read brought them.

A fold decodes batches and adds them up in two threads, then sums the partial states. Memory is
bounded by the batches under way and one state a thread; a large state is not doubled. Errors
surface in the order of the rows, so the message names the first row that does not fit.
"""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain, islice
from queue import SimpleQueue
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, Protocol, runtime_checkable

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato import check
from sfumato.errors import InputError, TableError
from sfumato.schema import Marginal, Schema
from sfumato.schema.codes import Codes, unknown_type

if TYPE_CHECKING:
    from sfumato.counting.row_store import RowStore

BATCH_ROWS = 65_536
"""Rows in a batch: 15 columns of one-byte codes are a megabyte, within the second-level cache."""

CodeBatch = Mapping[str, Codes]
"""Columns of codes by name, all of one length, each code below the size of its column."""


TextCounts = Mapping[str, int]
"""How many rows have each text that occurs in a column."""


class FoldKernel(Protocol):
    """Adds batches of codes into an array of integers."""

    @property
    def columns(self) -> Marginal:
        """The columns that ``add`` looks at; at least one."""

    def zero(self) -> NDArray[np.int64]:
        """The state before any row, all zeros: partial states are added."""

    def add(self, state: NDArray[np.int64], codes: CodeBatch) -> None:
        """Add one batch to ``state``, in place."""


class MapKernel(Protocol):
    """Turns a batch of codes into a batch of values."""

    @property
    def columns(self) -> Marginal:
        """The columns that ``apply`` looks at; at least one."""

    def apply(self, codes: CodeBatch) -> pa.RecordBatch:
        """The batch that takes the place of these rows."""


class Table(Protocol):
    """Rows of codes that can be read again and again. Only the curator holds one."""

    @property
    def schema(self) -> Schema:
        """The public description of the columns."""

    @property
    def max_rows(self) -> int | None:
        """The most rows of one person that are left, if they were bounded."""

    def fold(self, kernel: FoldKernel) -> NDArray[np.int64]:
        """The sum of the kernel over all rows: exact, sensitive."""

    def map(self, kernel: MapKernel) -> Iterator[pa.RecordBatch]:
        """The kernel on each batch, in the order of the rows."""

    def bounded(self, column: str, max_rows: int) -> "Table":
        """At most ``max_rows`` rows of each person named in ``column``.

        Which rows stay depends on that person's rows alone, so adding or removing a person
        changes nobody else's.
        """

    def validate(self) -> None:
        """Read everything once and raise what is wrong with it, before anything is spent."""

    def describe(self) -> str:
        """Where the rows come from, for messages; never what they say."""

    def misfits(self) -> tuple[str, ...]:
        """What did not fit of the rows that were read so far, and what it counted as.

        With exact numbers: for whoever holds the table, never to be published.
        """


@runtime_checkable
class WritingTable(Protocol):
    """A table on many machines, which can write what a kernel draws without bringing it here."""

    def check_folder(self, folder: str) -> None:
        """Refuse, before anything is spent, a folder that can't be written."""

    def map_to_parquet(self, kernel: MapKernel, folder: str) -> int:
        """The kernel on each batch, as Parquet files in a random order; how many rows."""


class TextTable(Protocol):
    """A table of which nothing is declared but the names of its columns: values are texts."""

    @property
    def names(self) -> Marginal:
        """The columns that have a name: public, as file names are."""

    def describe(self) -> str:
        """Where the rows come from, for messages."""

    def bounded(self, column: str, max_rows: int) -> "TextTable":
        """At most ``max_rows`` rows of each person, chosen by that person's rows alone."""

    def validate(self) -> None:
        """Read every row once and raise what is wrong with the file."""

    def shapes(self, columns: Marginal) -> dict[str, NDArray[np.int64]]:
        """For each column, how many rows are of each shape: exact, sensitive."""

    def texts(self, columns: Marginal) -> dict[str, TextCounts]:
        """For each column, how many rows have each of its short texts: exact, sensitive."""


def batch_rows(codes: Mapping[str, NDArray[Any]]) -> int:
    """The number of rows of a batch of one or more columns."""
    return int(next(iter(codes.values())).size)


@dataclass(frozen=True)
class RowCount:
    """The fold kernel that counts rows, and so makes sure that its columns can be read."""

    columns: Marginal

    def zero(self) -> NDArray[np.int64]:
        """No row yet."""
        return np.zeros(1, dtype=np.int64)

    def add(self, state: NDArray[np.int64], codes: CodeBatch) -> None:
        """Count the rows of one batch."""
        state[0] += batch_rows(codes)


CACHE_BYTES = 64 * 2**20
"""Codes of a table that is small enough to stay in memory."""
_SLICE_CODES = 2**20
"""Codes in a batch that is cut from memory: one of few columns has the more rows."""
THREADS: Final = 2
"""Threads of a fold: two decode as fast as one thread reads a file."""
_UNDER_WAY: Final = 2 * THREADS
"""Batches that are read ahead: one waits while one is counted, in each thread."""
_SHARED_STATE_BYTES: Final = 64 * 2**20
"""A larger state is not doubled: one thread adds all batches."""

Decode = Callable[[], CodeBatch]
"""A batch that is not decoded yet, so that the threads share that work too."""


class CodedTable(ABC):
    """A table whose columns can be had as batches of codes, again and again."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._cached: Mapping[str, Codes] = {}
        """Columns of one read, the last one that was small enough: never of two."""
        self._odd: dict[str, str] = {}
        """Columns of a type that no kind of column holds, as they were read."""

    @property
    def schema(self) -> Schema:
        """The public description of the columns."""
        return self._schema

    @property
    def max_rows(self) -> int | None:
        """The most rows of one person that are left, if they were bounded."""
        return None

    def fold(self, kernel: FoldKernel) -> NDArray[np.int64]:
        """The sum of the kernel over all rows: exact, sensitive."""
        if all(name in self._cached for name in kernel.columns):
            return run_fold(kernel, slices(self._cached, kernel.columns))
        cache = _Cache()
        state = run_fold(kernel, cache.watch(self._read(kernel.columns)))
        self._cached = cache.whole(kernel.columns) or self._cached
        return state

    def map(self, kernel: MapKernel) -> Iterator[pa.RecordBatch]:
        """The kernel on each batch, in the order of the rows."""
        for decode in self._read(kernel.columns):
            yield kernel.apply(decode())

    def bounded(self, column: str, max_rows: int) -> "BoundedTable":
        """At most ``max_rows`` rows of each person, chosen by that person's rows alone."""
        return BoundedTable(self, column, max_rows)

    def validate(self) -> None:
        """Read every column once; raise the first thing that does not fit."""
        self._refuse_no_rows(self.fold(RowCount(self.schema.names))[0])

    def misfits(self) -> tuple[str, ...]:
        """What did not fit: of codes nothing."""
        return ()

    def refuse_odd_types(self) -> None:
        """Raise if a column that was read is of a type that no kind of column holds."""
        for name, kind in self._odd.items():
            raise TableError(f"{self.describe()}: {unknown_type(self.schema[name], kind)}")

    def _refuse_no_rows(self, rows: int) -> None:
        if not rows:
            raise TableError(f"{self.describe()}: there are no rows; there is nothing to publish.")

    @abstractmethod
    def describe(self) -> str:
        """Where the rows come from, for messages; never what they say."""

    @abstractmethod
    def people(self, column: str) -> Iterator[tuple[CodeBatch, pa.Array]]:
        """All columns of the schema, and beside each row the text that names its person."""

    @abstractmethod
    def _read(self, columns: Marginal) -> Iterator[Decode]:
        """The named columns of all rows in order, each batch still to be decoded."""


class BoundedTable(CodedTable):
    """A table with at most some rows of each person, chosen once and kept in memory.

    A person's rows are ordered by a fixed hash of the person and the row, then by the row itself;
    the first ``max_rows`` stay, and rows that tie are equal. So what stays of a person is a
    function of that person's rows alone, whoever else is in the table. (The hash takes in the
    person so that no value is favored for everyone.)
    """

    def __init__(self, whole: CodedTable, column: str, max_rows: int) -> None:
        super().__init__(whole.schema)
        self._whole = whole
        self._column = column
        self._max_rows = check.whole(at_least=1, max_rows=max_rows)

    @property
    def max_rows(self) -> int:
        """The most rows of one person that are left."""
        return self._max_rows

    def validate(self) -> None:
        """Read every row once; a table in which no row names a person is allowed."""
        if not self.fold(RowCount(self.schema.names))[0]:
            self._whole.validate()  # refuses a table without rows
        self._whole.refuse_odd_types()

    def describe(self) -> str:
        """The whole table's description and the bound."""
        return f"{self._whole.describe()}, at most {self._max_rows} rows per {self._column!r}"

    def misfits(self) -> tuple[str, ...]:
        """What did not fit of the whole table."""
        return self._whole.misfits()

    def people(self, column: str) -> Iterator[tuple[CodeBatch, pa.Array]]:
        """Refused: the people are not stored once their rows are chosen."""
        raise InputError(f"the table is already bounded by {self._column!r}; bound it once")

    def _read(self, columns: Marginal) -> Iterator[Decode]:
        indices = [self.schema.names.index(name) for name in columns]
        for batch in self._rows.batches(indices, rows=BATCH_ROWS):
            yield partial(from_arrow, columns, batch)

    @cached_property
    def _rows(self) -> "RowStore":
        from sfumato.counting.row_store import RowStore

        store = RowStore()
        for codes, people in self._whole.people(self._column):
            store.add([codes[name] for name in self.schema.names], people)
        store.bound(self._max_rows)
        return store


def slices(columns: Mapping[str, NDArray[Any]], names: Marginal) -> Iterator[Decode]:
    """Whole columns in memory as batches."""
    rows = max(BATCH_ROWS, _SLICE_CODES // len(names))
    for start in range(0, columns[names[0]].size, rows):
        yield partial(_slice, columns, names, slice(start, start + rows))


def _slice(columns: Mapping[str, NDArray[Any]], names: Marginal, rows: slice) -> CodeBatch:
    return {name: columns[name][rows] for name in names}


def from_arrow(columns: Marginal, batch: pa.RecordBatch) -> CodeBatch:
    """A batch of codes, without a copy."""
    arrays: list[Any] = [np.from_dlpack(column) for column in batch.columns]
    return dict(zip(columns, arrays, strict=True))


class _Cache:
    """Stores the batches of a read, unless they exceed ``CACHE_BYTES``."""

    def __init__(self) -> None:
        self._batches: dict[int, CodeBatch] = {}
        self._bytes = 0
        self._lock = Lock()

    def watch(self, batches: Iterable[Decode]) -> Iterator[Decode]:
        """The same batches; each is remembered when a thread decodes it."""
        for number, decode in enumerate(batches):
            yield partial(self._remember, number, decode)

    def whole(self, columns: Marginal) -> dict[str, Codes]:
        """The columns in one piece, or nothing if they were too large or there were no rows."""
        if self._bytes > CACHE_BYTES or not self._batches:
            return {}
        ordered = [self._batches[number] for number in sorted(self._batches)]
        return {name: np.concatenate([batch[name] for batch in ordered]) for name in columns}

    def _remember(self, number: int, decode: Decode) -> CodeBatch:
        codes = decode()
        with self._lock:  # a lost addition could keep the last batches and pass them for all
            self._bytes += sum(column.nbytes for column in codes.values())
            if self._bytes <= CACHE_BYTES:
                self._batches[number] = codes
            else:
                self._batches.clear()
        return codes


def run_fold(kernel: FoldKernel, batches: Iterable[Decode]) -> NDArray[np.int64]:
    """The sum of the kernel over the batches."""
    state = kernel.zero()
    waiting = iter(batches)
    first = list(islice(waiting, 2))
    if len(first) < 2 or state.nbytes > _SHARED_STATE_BYTES:
        for decode in chain(first, waiting):
            kernel.add(state, decode())
        return state
    return _run_in_threads(kernel, state, chain(first, waiting))


def _run_in_threads(
    kernel: FoldKernel, state: NDArray[np.int64], batches: Iterable[Decode]
) -> NDArray[np.int64]:
    states = [state, *(kernel.zero() for _ in range(THREADS - 1))]
    free: SimpleQueue[NDArray[np.int64]] = SimpleQueue()
    for each in states:
        free.put(each)

    def work(decode: Decode) -> None:
        codes = decode()
        own = free.get()
        try:
            kernel.add(own, codes)
        finally:
            free.put(own)

    pool = ThreadPoolExecutor(THREADS, thread_name_prefix="sfumato-fold")
    pending: deque[Future[None]] = deque()
    try:
        for decode in batches:
            pending.append(pool.submit(work, decode))
            if len(pending) >= _UNDER_WAY:
                pending.popleft().result()
        for future in pending:
            future.result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
    for each in states[1:]:
        state += each
    return state
