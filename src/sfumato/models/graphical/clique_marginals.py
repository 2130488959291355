"""Many marginals of one clique, read or multiplied in one pass over its table.

The table is seen as a matrix: leading columns by trailing ones, whose cells fit into the first
cache. A marginal lies within the rows, within the columns, or across both; each kind is a small
table of its own, and the large one is read once however many marginals there are.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.models.graphical.beliefs import Floats
from sfumato.models.graphical.junction_tree import Clique, cells

_ROW_CELLS = 64
"""A row of the matrix has at least so many cells where the clique has them."""


@dataclass(frozen=True, kw_only=True, eq=False)
class _Part:
    """One marginal seen from the matrix: rows x places."""

    outer: int
    inner: int
    """Cells of the marginal's leading and trailing columns."""
    rows: NDArray[np.int32] | None
    """For each row of the matrix its cell among the leading columns."""
    places: NDArray[np.int64] | None
    """For each place in a row its cell among the trailing columns; None if they are the same."""


class CliqueWork:
    """The marginals that are asked of one clique again and again."""

    def __init__(self, sizes: tuple[int, ...], clique: Clique, marginals: Sequence[Clique]) -> None:
        cut = _cut(sizes, clique)
        self._leading, self._trailing = clique[:cut], clique[cut:]
        self._rows, self._inner = cells(sizes, self._leading), cells(sizes, self._trailing)
        self._parts = [self._part(sizes, marginal) for marginal in marginals]
        across = [part for part in self._parts if part.rows is not None and part.inner > 1]
        self._starts = np.cumsum([0, *(part.outer * self._inner for part in across)])
        empty = np.zeros((0, self._rows), dtype=np.int32)
        self._rows_of = (
            np.stack([p.rows for p in across if p.rows is not None]) if across else empty
        )

    def marginals(self, table: Floats) -> list[Floats]:
        """Each marginal of the table, flat."""
        from sfumato.models.graphical.belief_kernels import sum_rows

        by_row, by_cell = np.zeros(self._rows), np.zeros(self._inner)
        mixed = np.zeros(int(self._starts[-1]))
        sum_rows(table, by_row, by_cell, mixed, self._starts[:-1], self._rows_of)
        found, across = [], 0
        for part in self._parts:
            if part.rows is None:
                found.append(_within(by_cell[None], part)[0])
            elif part.inner == 1:
                found.append(np.bincount(part.rows, weights=by_row, minlength=part.outer))
            else:
                held = mixed[self._starts[across] : self._starts[across + 1]]
                found.append(_within(held.reshape(part.outer, -1), part).reshape(-1))
                across += 1
        return found

    def multiply(self, table: Floats, factors: Sequence[Floats]) -> None:
        """Multiply the table by a factor for each marginal, in place."""
        from sfumato.models.graphical.belief_kernels import multiply_rows

        by_row, by_cell = np.ones(self._rows), np.ones(self._inner)
        mixed = np.empty(int(self._starts[-1]))
        across = 0
        for part, factor in zip(self._parts, factors, strict=True):
            if part.rows is None:
                by_cell *= factor if part.places is None else factor[part.places]
            elif part.inner == 1:
                by_row *= factor[part.rows]
            else:
                wide = factor.reshape(part.outer, part.inner)
                wide = wide if part.places is None else wide[:, part.places]
                mixed[self._starts[across] : self._starts[across + 1]] = wide.reshape(-1)
                across += 1
        multiply_rows(table, by_row, by_cell, mixed, self._starts[:-1], self._rows_of)

    def _part(self, sizes: tuple[int, ...], marginal: Clique) -> _Part:
        leading = tuple(c for c in marginal if c in self._leading)
        trailing = tuple(c for c in marginal if c in self._trailing)
        rows = _numbers(sizes, self._leading, leading).astype(np.int32) if leading else None
        whole = trailing == self._trailing
        places = None if whole else _numbers(sizes, self._trailing, trailing)
        return _Part(
            outer=cells(sizes, leading), inner=cells(sizes, trailing), rows=rows, places=places
        )


def _within(held: Floats, part: _Part) -> Floats:
    """Rows of places summed to the cells of the trailing columns."""
    if part.places is None:
        return held
    cell = part.places + np.arange(len(held))[:, None] * part.inner
    size = len(held) * part.inner
    flat = np.bincount(cell.reshape(-1), weights=held.reshape(-1), minlength=size)
    return np.asarray(flat.reshape(len(held), part.inner), dtype=np.float64)


def _numbers(sizes: tuple[int, ...], columns: Clique, kept: Clique) -> NDArray[np.int64]:
    """For each cell of some columns, the cell of the kept ones that it falls on."""
    shape = [sizes[column] if column in kept else 1 for column in columns]
    numbers = np.arange(cells(sizes, kept)).reshape(shape)
    return np.broadcast_to(numbers, [sizes[column] for column in columns]).reshape(-1)


def _cut(sizes: tuple[int, ...], clique: Clique) -> int:
    """How many leading columns make the rows."""
    cut = len(clique)
    while cut > 0 and cells(sizes, clique[cut:]) < _ROW_CELLS:
        cut -= 1
    return cut
