"""Rows through a local mechanism: what the gate does when every row becomes an answer."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.counting.shuffle import mixed
from sfumato.counting.table import CodeBatch, Table, WritingTable
from sfumato.errors import InputError
from sfumato.local.arrow import from_arrow, to_arrow
from sfumato.local.frequency.grr import Grr
from sfumato.local.frequency.hadamard import HadamardResponse
from sfumato.local.frequency.local_hashing import FastOlh, Olh
from sfumato.local.frequency.subset_selection import SubsetSelection
from sfumato.local.frequency.unary import Oue, Sue
from sfumato.local.layout import Answers
from sfumato.local.means.duchi import Duchi
from sfumato.local.means.grid import Grid
from sfumato.local.means.hybrid import Hybrid
from sfumato.local.means.laplace import LocalLaplace
from sfumato.local.means.piecewise import Piecewise, SquareWave
from sfumato.local.mechanism import LocalMechanism
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
"""Answers in a batch. Batches of the reader end where its bytes say, and so would tell of them."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Perturbation:
    """One answer for every row, about the cell of a marginal that the row lies in."""

    marginal: Marginal
    shape: tuple[int, ...]
    mechanism: LocalMechanism
    grid: Grid | None
    """Where the answer is about a number: the public points it is rounded to."""
    numbers: NDArray[np.float64] | None
    """The number that stands for each code, public."""
    rng: Rng

    @property
    def columns(self) -> Marginal:
        """The columns of the marginal."""
        return self.marginal

    def apply(self, codes: CodeBatch) -> pa.RecordBatch:
        """Answers in the place of rows."""
        cells: NDArray[Any] = codes[self.marginal[0]]
        if len(self.marginal) > 1:
            columns = tuple(codes[name] for name in self.marginal)
            cells = np.ravel_multi_index(columns, self.shape).astype(np.uint32)
        if self.grid is not None and self.numbers is not None:
            cells = self.grid.round(self.numbers[cells], rng=self.rng)
        answers = self.mechanism.answer_many(cells, rng=self.rng)
        values = to_arrow(self.mechanism.layout, answers)
        return pa.RecordBatch.from_arrays([values], names=["answer"])


def check_question(
    schema: Schema, marginal: Marginal, mechanism: LocalMechanism, numbers: Any, grid: Grid | None
) -> None:
    """Refuse, before anything is charged, a mechanism that does not fit the marginal."""
    if type(mechanism) not in ALLOWED:
        names = ", ".join(kind.__name__ for kind in ALLOWED)
        raise InputError(f"rows are perturbed by one of {names}, got {type(mechanism).__name__}.")
    if not marginal or schema.marginal(marginal) != tuple(marginal):
        raise InputError("a marginal names one or more columns in the schema's order")
    cells = schema.cells(marginal)
    if (grid is None) != (numbers is None):
        raise InputError("numbers and the grid they are rounded to belong together")
    if grid is None and mechanism.inputs != cells:
        raise InputError(
            f"the mechanism answers about {mechanism.inputs} codes, but {', '.join(marginal)} has "
            f"{cells} cells."
        )
    if grid is not None and (mechanism.inputs != grid.points or np.shape(numbers) != (cells,)):
        raise InputError("each cell needs its number, and the mechanism the grid's points")
    if grid is not None and not ((numbers >= grid.low) & (numbers <= grid.high)).all():
        raise InputError("the number of each cell must lie on the grid.")


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

    The order of a table may tell what its rows say: sorted by a column, read by an index, and so
    on. ``check`` is called before each is drawn: the iterator may have gone to another process.
    """
    layout, held, rows = kernel.mechanism.layout, [], 0
    check()
    for batch in mixed(table.map(kernel), rng=kernel.rng):
        check()
        held.append(from_arrow(layout, batch.column(0)))
        rows += len(held[-1])
        while rows >= BATCH_ROWS:
            joined = np.concatenate(held)
            yield joined[:BATCH_ROWS]
            held, rows = [joined[BATCH_ROWS:]], rows - BATCH_ROWS
    if rows:
        yield np.concatenate(held)
