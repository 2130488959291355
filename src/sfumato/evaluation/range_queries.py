"""Range queries: which are compared, how many rows lie in each, the errors of the answers."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from math import prod
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sfumato import check
from sfumato.counting.exact_counts import count_marginals
from sfumato.counting.table import CodeBatch, Table
from sfumato.evaluation.marginals import MOST_CELLS, comparable_degrees, in_batches, marginals_of
from sfumato.evaluation.rows import regular_values
from sfumato.models.model import Counts, check_same_shape
from sfumato.randomness import Rng
from sfumato.schema import Marginal, Range, Schema, random_ranges
from sfumato.schema.columns import Column
from sfumato.schema.workload import sum_ranges

FLOOR: Final = 0.001
"""Of the real rows: what a smaller real answer counts as in relative errors."""
CELLS_A_RANGE: Final = 10_000
"""A marginal of more cells for each of its ranges is not counted: the rows are looked through."""
_TRIES: Final = 20
"""Random ranges for each one that is requested, as some come twice; then there are fewer."""


@dataclass(frozen=True, kw_only=True, slots=True)
class QueryErrors:
    """Absolute errors of many answers, in counts: the four figures of the MWEM lab."""

    max: float
    min: float
    mean_squared: float
    mean: float

    @staticmethod
    def of(real: Counts, published: Counts) -> "QueryErrors":
        """The errors of answers to the same queries in the same order."""
        check_same_shape(real, published)
        gaps = np.abs(np.asarray(real, float) - published)
        return QueryErrors(
            max=float(gaps.max()),
            min=float(gaps.min()),
            mean_squared=float((gaps**2).mean()),
            mean=float(gaps.mean()),
        )

    def to_dict(self) -> dict[str, float]:
        """The four figures by name."""
        return asdict(self)


@dataclass(frozen=True, kw_only=True, slots=True)
class RelativeErrors:
    """Errors of many answers as shares of the real answer."""

    mean: float
    median: float
    max: float
    floor: float
    """Real answers below this count as this: the error of an empty range is not infinite."""

    @staticmethod
    def of(real: Counts, published: Counts, *, floor: float) -> "RelativeErrors":
        """|q - q'| / max(q, floor) for the real answer q and the published q'.

        The floor of 0.1% of the rows that is usual is the sanity bound of Xiao, Wang, Gehrke 2011,
        "Differential privacy via wavelet transforms", arXiv 0909.5530, section VII.

        >>> errors = RelativeErrors.of(np.array([10.0, 0.0]), np.array([8.0, 1.0]), floor=2.0)
        >>> errors.mean, errors.max
        (0.35, 0.5)
        """
        check_same_shape(real, published)
        check.positive(floor=floor)
        truth = np.asarray(real, float)
        shares = np.abs(truth - published) / np.maximum(truth, floor)
        return RelativeErrors(
            mean=float(shares.mean()),
            median=float(np.median(shares)),
            max=float(shares.max()),
            floor=floor,
        )

    def to_dict(self) -> dict[str, float]:
        """The figures by name."""
        return asdict(self)


def drawn_ranges(schema: Schema, n: int, *, most_columns: int, rng: Rng) -> tuple[Range, ...]:
    """Different ranges over 1 to ``most_columns`` columns; fewer than ``n`` where so few exist.

    How many columns, and which, is uniform. An ordered column is limited to an interval of its
    regular values, low end uniform and high end uniform above it; any other one to a value.
    """
    chosen: dict[Range, None] = {}
    widths = 1 + rng.below(min(most_columns, len(schema)), _TRIES * n)
    for width in widths.tolist():
        indices = np.sort(rng.permutation(len(schema))[:width]).tolist()
        chosen[Range(tuple(_limits(schema.columns[i], rng) for i in indices))] = None
        if len(chosen) == n:
            break
    return tuple(chosen)


def whole_ranges(schema: Schema, n: int, *, rng: Rng) -> tuple[Range, ...]:
    """Ranges over all columns, or over small marginals in turn where that is too many cells.

    In a wide domain a random box of all columns would hold no row at all. Answering one sums a
    table with a border, which of 16 columns of two values has not 2^16 cells but 3^16.
    """
    if prod(column.size + 1 for column in schema) <= MOST_CELLS:
        return random_ranges(schema, n=n, rng=rng).ranges
    small = marginals_of(schema, comparable_degrees(schema, at_most=2)[-1], rng)
    chosen = [small[i] for i in rng.permutation(len(small))[:n].tolist()]
    each = -(-n // len(chosen))
    drawn: list[Range] = []
    for marginal in chosen:
        part = schema.pick(marginal)
        possible = prod(column.size * (column.size + 1) // 2 for column in part)
        drawn += random_ranges(part, n=min(each, possible), rng=rng).ranges
    return tuple(drawn[:n])


def answer(table: Table, ranges: Sequence[Range]) -> NDArray[np.int64]:
    """How many rows lie inside each range, in order: exact, sensitive.

    Ranges over small marginals are summed from their counts, others are counted row by row.
    """
    times = Counter(box.marginal for box in ranges)
    cells = {marginal: table.schema.cells(marginal) for marginal in times}
    small = [m for m, n in times.items() if cells[m] <= min(MOST_CELLS, n * CELLS_A_RANGE)]
    out = np.empty(len(ranges), dtype=np.int64)
    for part in in_batches(table.schema, small):
        counts = count_marginals(table, part)
        indices = [i for i, box in enumerate(ranges) if box.marginal in counts.marginals]
        inside = [ranges[i] for i in indices]
        out[indices] = sum_ranges(table.schema, inside, counts.__getitem__)
    known = set(small)
    rest = [i for i, box in enumerate(ranges) if box.marginal not in known]
    if rest:
        out[rest] = table.fold(_RowsInside(table.schema, tuple(ranges[i] for i in rest)))
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
        for i, box in enumerate(self.ranges):
            parts = [(codes[name] >= low) & (codes[name] <= high) for name, low, high in box.bounds]
            state[i] += np.count_nonzero(np.logical_and.reduce(parts))


def _limits(column: Column, rng: Rng) -> tuple[str, int, int]:
    if not column.ordered:
        value = int(rng.below(column.size, 1)[0])
        return column.name, value, value
    values = regular_values(column)
    low = int(rng.below(values, 1)[0])
    return column.name, low, low + int(rng.below(values - low, 1)[0])
