"""Rows through local mechanisms: what the gate does when every row becomes an answer.

One answer of every row about a marginal; answers about every column by randomized response; or
rounds of a survey run on a table, in which rows are people: each in one of several groups, each
answering one drawn question once. For these, rows are read once and held here, so that no row can
answer twice, whatever becomes of the file between two rounds.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.counting.exact_counts import exact_codes
from sfumato.counting.shuffle import mixed
from sfumato.counting.table import CodeBatch, Table, WritingTable
from sfumato.durable import SingleProcess
from sfumato.errors import BudgetError, InputError
from sfumato.local.arrow import from_arrow, to_arrow
from sfumato.local.frequency.grr import Grr
from sfumato.local.frequency.hadamard import HadamardResponse
from sfumato.local.frequency.local_hashing import FastOlh, Olh
from sfumato.local.frequency.subset_selection import SubsetSelection
from sfumato.local.frequency.unary import Oue, Sue
from sfumato.local.layout import Answers
from sfumato.local.means.duchi import Duchi
from sfumato.local.means.grid import Grid
from sfumato.local.means.laplace import LocalLaplace
from sfumato.local.means.piecewise import Hybrid, Piecewise, SquareWave
from sfumato.local.mechanism import LocalMechanism
from sfumato.local.records.parts import Part, answer_parts, check_weights
from sfumato.privacy.guarantees import PureDP
from sfumato.randomness import Rng
from sfumato.schema.schema import Marginal, Schema

ALLOWED: Final[tuple[Any, ...]] = (
    Duchi,
    FastOlh,
    Grr,
    HadamardResponse,
    Hybrid,
    LocalLaplace,
    Olh,
    Oue,
    Piecewise,
    SquareWave,
    SubsetSelection,
    Sue,
)
"""The mechanisms that may see exact codes: a closed list, as a subclass could return them."""

BATCH_ROWS: Final = 2**18
"""Answers in a batch. Batches of a reader end by the bytes of their rows, which are private."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Perturbation:
    """One answer for every row, about the cell of a marginal that the row lies in."""

    columns: Marginal
    """Those of the marginal."""
    shape: tuple[int, ...]
    mechanism: LocalMechanism
    grid: Grid | None
    """Where the answer is about a number: the public points it is rounded to."""
    numbers: NDArray[np.float64] | None
    """The number that stands for each code, public."""
    rng: Rng

    @staticmethod
    def of(
        schema: Schema,
        marginal: Marginal,
        mechanism: LocalMechanism,
        *,
        grid: Grid | None,
        numbers: NDArray[np.float64] | None,
        rng: Rng,
    ) -> "Perturbation":
        """Checked before anything is charged: the mechanism has to fit the marginal."""
        if type(mechanism) not in ALLOWED:
            kind = type(mechanism).__name__
            raise InputError(f"rows are perturbed by one of {_allowed_names()}, got {kind}.")
        if not marginal or schema.marginal(marginal) != tuple(marginal):
            raise InputError("a marginal names one or more columns in the schema's order")
        cells = schema.cells(marginal)
        if (grid is None) != (numbers is None):
            raise InputError("numbers and the grid they are rounded to belong together")
        if grid is None or numbers is None:
            if mechanism.inputs != cells:
                raise InputError(
                    f"the mechanism answers about {mechanism.inputs} codes, but "
                    f"{', '.join(marginal)} has {cells} cells."
                )
        else:
            if type(grid) is not Grid:  # another one would be handed exact numbers
                raise InputError(f"the grid must be a Grid, got {type(grid).__name__}.")
            numbers = np.array(numbers, dtype=np.float64)
            if mechanism.inputs != grid.points or numbers.shape != (cells,):
                raise InputError("each cell needs its number, and the mechanism the grid's points")
            if not ((numbers >= grid.low) & (numbers <= grid.high)).all():
                raise InputError("the number of each cell must lie on the grid.")
        return Perturbation(
            columns=tuple(marginal),
            shape=schema.shape(marginal),
            mechanism=mechanism,
            grid=grid,
            numbers=numbers,
            rng=rng,
        )

    def apply(self, codes: CodeBatch) -> pa.RecordBatch:
        """Answers in the place of rows."""
        cells: NDArray[Any] = codes[self.columns[0]]
        if len(self.columns) > 1:
            columns = tuple(codes[name] for name in self.columns)
            cells = np.ravel_multi_index(columns, self.shape).astype(np.uint32)
        if self.grid is not None and self.numbers is not None:
            cells = self.grid.round(self.numbers[cells], rng=self.rng)
        answers = self.mechanism.answer_many(cells, rng=self.rng)
        values = to_arrow(self.mechanism.layout, answers)
        return pa.RecordBatch.from_arrays([values], names=["answer"])


def _allowed_names() -> str:
    return ", ".join(kind.__name__ for kind in ALLOWED)


def check_folder(table: object, folder: str) -> WritingTable:
    """The table, if it can write to that folder by itself; refused before anything is charged."""
    if not isinstance(table, WritingTable):
        raise InputError(
            "only a table that Spark holds is written past this process. Give a file to write, or "
            "spark:: before the table."
        )
    table.check_folder(folder)
    return table


def answers(table: Table, kernel: Perturbation, *, check: Callable[[], None]) -> Iterator[Answers]:
    """The answers of all rows in a random order, in batches whose sizes depend on nothing else.

    The order of a table may reveal values of its rows: sorted by a column, read by an index, and so
    on. ``check`` is called before each is drawn: the iterator may have gone to another process.
    """
    layout, waiting, rows = kernel.mechanism.layout, [], 0
    check()
    for batch in mixed(table.map(kernel), rng=kernel.rng):
        check()
        waiting.append(from_arrow(layout, batch.column(0)))
        rows += len(waiting[-1])
        while rows >= BATCH_ROWS:
            joined = np.concatenate(waiting)
            yield joined[:BATCH_ROWS]
            waiting, rows = [joined[BATCH_ROWS:]], rows - BATCH_ROWS
    if rows:
        yield np.concatenate(waiting)


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Responses:
    """Randomized rows, and what randomized them: public."""

    codes: Mapping[str, NDArray[Any]]
    """By column, one answer a row. Rows stand in a random order, the same one in all columns."""
    mechanisms: Mapping[str, Grr]
    """By column; ``p`` and ``q`` are the chances of the true value and of each other one."""

    @property
    def rows(self) -> int:
        """How many rows there are: public."""
        return len(next(iter(self.codes.values())))


def mechanisms_for(schema: Schema, epsilons: Mapping[str, Fraction]) -> dict[str, Grr]:
    """A randomized response for each column that is named; refused before anything is charged."""
    if not epsilons:
        raise InputError("no column is to be answered about.")
    for name in epsilons:
        if schema[name].size < 2:
            raise InputError(f"{name!r} has one value only: it needs no answer.")
    return {
        name: Grr(categories=schema[name].size, epsilon=epsilon)
        for name, epsilon in epsilons.items()
    }


def cost_of(mechanisms: Mapping[str, Grr]) -> PureDP:
    """The sum: a row that is replaced changes its own answers only, one for each column."""
    return PureDP(sum((made.epsilon for made in mechanisms.values()), Fraction(0)))


def responses(table: Table, mechanisms: Mapping[str, Grr], *, rng: Rng) -> Responses:
    """One pass over the table, whose order may reveal values of its rows."""
    kernel = _Responding(mechanisms=mechanisms, rng=rng)
    whole = pa.Table.from_batches(list(mixed(table.map(kernel), rng=rng))).combine_chunks()
    codes = {name: whole[name].to_numpy() for name in kernel.columns}
    return Responses(codes=codes, mechanisms=mechanisms)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Responding:
    """Answers in the place of rows."""

    mechanisms: Mapping[str, Grr]
    rng: Rng

    @property
    def columns(self) -> Marginal:
        """The columns that are answered about."""
        return tuple(self.mechanisms)

    def apply(self, codes: CodeBatch) -> pa.RecordBatch:
        """The answers of a batch."""
        drawn = {n: m.answer_many(codes[n], rng=self.rng) for n, m in self.mechanisms.items()}
        return pa.RecordBatch.from_pydict(drawn)


class Interview(SingleProcess):
    """Rows divided into groups at random and put in a random order; each group answers once.

    Formal guarantee: all that ``ask`` ever returns is epsilon-DP for one row that is replaced. A
    row is in one group, whatever it says, and gives one answer there, which is epsilon-local DP.
    """

    __slots__ = ("__codes", "__epsilon", "__group", "__left", "__rng", "__rows", "__schema")

    def __init__(
        self, table: Table, *, epsilon: Fraction, groups: int, columns: Marginal, rng: Rng
    ) -> None:
        super().__init__()
        self.__schema = table.schema
        self.__epsilon = epsilon
        self.__rng = rng
        exact = exact_codes(table, columns)
        self.__rows = len(next(iter(exact.values())))
        order = rng.permutation(self.__rows)  # that of the table may reveal values of its rows
        self.__codes = {name: codes[order] for name, codes in exact.items()}
        self.__group = rng.below(groups, self.__rows)
        self.__left = list(range(groups))

    @property
    def people(self) -> int:
        """How many rows there are in all groups: public."""
        return self.__rows

    def ask(
        self, parts: Sequence[Part], weights: Sequence[int]
    ) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
        """The next group: for each of its rows the part that it drew, and its answer.

        Args:
            parts: What may be answered about.
            weights: A part is drawn with its weight out of their sum.
        """
        parts, weights = tuple(parts), tuple(weights)  # what is checked is what is used
        self._check(parts, weights)
        with self._turn():
            if not self.__left:
                raise BudgetError(
                    "every group has answered, and a second answer would cost epsilon again."
                )
            mine = np.flatnonzero(self.__group == self.__left.pop(0))
            own = {name: codes[mine] for name, codes in self.__codes.items()}
            return answer_parts(parts, weights, own, mine.size, rng=self.__rng)

    def _check(self, parts: Sequence[Part], weights: Sequence[int]) -> None:
        if not parts:
            raise InputError("there is nothing to ask.")
        check_weights(weights, len(parts))
        for part in parts:
            if type(part) is not Part or type(part.mechanism) not in ALLOWED:
                raise InputError(f"rows answer parts by one of {_allowed_names()}.")
            if unknown := [name for name in part.columns if name not in self.__codes]:
                raise InputError(f"this interview is not about {unknown[0]!r}.")
            if part.sizes != self.__schema.shape(part.columns):
                raise InputError("a part's sizes are not those of the table's columns.")
            if part.mechanism.epsilon > self.__epsilon:
                raise BudgetError(
                    f"a part asks for epsilon {part.mechanism.epsilon}, but {self.__epsilon} was "
                    "paid for."
                )
