"""Ranges answered from two tables: which are asked, and how many rows lie inside."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sfumato.counting.exact_counts import count_marginals
from sfumato.counting.table import CodeBatch, Table
from sfumato.evaluation.marginals import MOST_CELLS, comparable_degrees, in_batches, marginals_of
from sfumato.evaluation.rows import regular_values
from sfumato.randomness import Rng
from sfumato.schema import Marginal, Range, Schema, random_ranges
from sfumato.schema.columns import Column
from sfumato.schema.workload import sum_ranges

FLOOR: Final = 0.001
"""Of the real rows: what a smaller real answer counts as in relative errors."""
CELLS_A_RANGE: Final = 10_000
"""A marginal of more cells for each of its ranges is not counted: the rows are looked through."""
_TRIES: Final = 20


def drawn_ranges(schema: Schema, n: int, *, most_columns: int, rng: Rng) -> tuple[Range, ...]:
    """Different ranges over 1 to ``most_columns`` columns; fewer than ``n`` where so few exist.

    How many columns, and which, is uniform. An ordered column is limited to an interval of its
    regular values, low end uniform and high end uniform above it; any other one to a value.
    """
    found: dict[Range, None] = {}
    widths = 1 + rng.below(min(most_columns, len(schema)), _TRIES * n)
    for width in widths.tolist():
        places = np.sort(rng.permutation(len(schema))[:width]).tolist()
        found[Range(tuple(_limits(schema.columns[place], rng) for place in places))] = None
        if len(found) == n:
            break
    return tuple(found)


def whole_ranges(schema: Schema, n: int, *, rng: Rng) -> tuple[Range, ...]:
    """Ranges over all columns, or over small marginals in turn where that is too many cells.

    In a wide domain a random box of all columns would hold no row at all. Answering one sums a
    table with a border, which of 16 columns of two values has not 2^16 cells but 3^16.
    """
    if prod(column.size + 1 for column in schema) <= MOST_CELLS:
        return random_ranges(schema, n=n, rng=rng).ranges
    small = marginals_of(schema, comparable_degrees(schema, at_most=2)[-1], rng)
    chosen = [small[place] for place in rng.permutation(len(small))[:n].tolist()]
    each = -(-n // len(chosen))
    drawn: list[Range] = []
    for marginal in chosen:
        part = schema.pick(marginal)
        possible = prod(column.size * (column.size + 1) // 2 for column in part)
        drawn += random_ranges(part, n=min(each, possible), rng=rng).ranges
    return tuple(drawn[:n])


def answer(table: Table, wanted: Sequence[Range]) -> NDArray[np.int64]:
    """How many rows lie inside each range, in order: exact, sensitive.

    Ranges over small marginals are summed from their counts, others are counted row by row.
    """
    times = Counter(box.marginal for box in wanted)
    cells = {marginal: table.schema.cells(marginal) for marginal in times}
    small = [m for m, n in times.items() if cells[m] <= min(MOST_CELLS, n * CELLS_A_RANGE)]
    out = np.empty(len(wanted), dtype=np.int64)
    for part in in_batches(table.schema, small):
        counts = count_marginals(table, part)
        places = [place for place, box in enumerate(wanted) if box.marginal in counts.marginals]
        inside = [wanted[place] for place in places]
        out[places] = sum_ranges(table.schema, inside, counts.__getitem__)
    known = set(small)
    rest = [place for place, box in enumerate(wanted) if box.marginal not in known]
    if rest:
        out[rest] = table.fold(_RowsInside(table.schema, tuple(wanted[place] for place in rest)))
    return out


@dataclass(frozen=True, eq=False)
class _RowsInside:
    """The fold kernel that counts rows in ranges, whatever the number of cells."""

    schema: Schema
    ranges: tuple[Range, ...]

    @cached_property
    def columns(self) -> Marginal:
        """All columns that some range limits."""
        return self.schema.marginal({name for box in self.ranges for name in box.marginal})

    def zero(self) -> NDArray[np.int64]:
        """A counter for each range."""
        return np.zeros(len(self.ranges), dtype=np.int64)

    def add(self, state: NDArray[np.int64], codes: CodeBatch) -> None:
        """Count the rows of one batch."""
        for place, box in enumerate(self.ranges):
            parts = [(codes[name] >= low) & (codes[name] <= high) for name, low, high in box.bounds]
            state[place] += np.count_nonzero(np.logical_and.reduce(parts))


def _limits(column: Column, rng: Rng) -> tuple[str, int, int]:
    if not column.ordered:
        value = int(rng.below(column.size, 1)[0])
        return column.name, value, value
    values = regular_values(column)
    low = int(rng.below(values, 1)[0])
    return column.name, low, low + int(rng.below(values - low, 1)[0])
