"""What a dense histogram answers to many targets at once, in few passes over the domain."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sfumato.models.grouping import group, sums
from sfumato.schema.table import Marginal, Schema
from sfumato.schema.workload import Range, Target, box_sums, boxes, layout

_MATRIX_ENTRIES = 4_000_000
_COVER_CELLS = 16_384


class DenseAnswers:
    """Prepared for one schema and one list of targets; ``of(cells)`` is one flat vector."""

    def __init__(self, schema: Schema, targets: Sequence[Target]) -> None:
        self._schema = schema
        self._offsets = layout(schema, targets)
        self._ranges = [place for place, target in enumerate(targets) if isinstance(target, Range)]
        wanted = [target for target in targets if isinstance(target, Range)]
        limits = boxes(schema, schema.names, wanted)
        small = 0 < len(limits) * schema.cells(schema.names) <= _MATRIX_ENTRIES
        self._matrix = _indicators(schema, limits) if small else None
        self._limits = limits
        marginals = {
            target: place for place, target in enumerate(targets) if isinstance(target, tuple)
        }
        self._covers = [
            (cover, group(schema, cover), [(part, marginals[part]) for part in parts])
            for cover, parts in cover_marginals(schema, list(marginals))
        ]

    def of(self, cells: NDArray[np.float64]) -> NDArray[np.float64]:
        """Answers of all targets, in their order; a marginal takes as many places as cells."""
        out = np.empty(self._offsets[-1])
        if self._ranges:
            out[self._offsets[self._ranges]] = self._of_ranges(cells)
        for cover, grouping, parts in self._covers:
            table = sums(cells, grouping).reshape(self._schema.shape(cover))
            for part, place in parts:
                begin, end = self._offsets[place], self._offsets[place + 1]
                out[begin:end] = _sum_out(table, cover, part)
        return out

    def _of_ranges(self, cells: NDArray[np.float64]) -> NDArray[np.float64]:
        if self._matrix is not None:
            return self._matrix @ cells
        shape = self._schema.shape(self._schema.names)
        return np.asarray(box_sums(cells.reshape(shape), self._limits))


def cover_marginals(
    schema: Schema, marginals: Sequence[Marginal]
) -> list[tuple[Marginal, list[Marginal]]]:
    """Few larger marginals that hold all the given ones, each with those it serves.

    Greedy, largest first: a marginal joins the group that grows least, while the group keeps
    under a size that stays in the cache. 190 pairs of 20 binary columns need 5 passes, not 190.
    """
    groups: list[tuple[Marginal, list[Marginal]]] = []
    for marginal in sorted(marginals, key=schema.cells, reverse=True):
        best, best_cells = None, _COVER_CELLS + 1
        for place, (cover, _) in enumerate(groups):
            cells = schema.cells(schema.marginal({*cover, *marginal}))
            if cells < best_cells:
                best, best_cells = place, cells
        if best is None:
            groups.append((schema.marginal(marginal), [marginal]))
            continue
        cover, served = groups[best]
        groups[best] = (schema.marginal({*cover, *marginal}), [*served, marginal])
    return groups


def _sum_out(table: NDArray[np.float64], names: Marginal, wanted: Marginal) -> NDArray[np.float64]:
    dropped = tuple(axis for axis, name in enumerate(names) if name not in wanted)
    kept = [name for name in names if name in wanted]
    order = [kept.index(name) for name in wanted]
    return np.asarray(table.sum(axis=dropped)).transpose(order).reshape(-1)


def _indicators(schema: Schema, limits: NDArray[np.int64]) -> NDArray[np.float64]:
    """One row a range: 1 for each cell inside."""
    inside = np.ones((len(limits), *schema.shape(schema.names)), dtype=np.bool_)
    for axis, column in enumerate(schema):
        codes = np.arange(column.size)
        low, high = limits[:, axis, :1], limits[:, axis, 1:]
        allowed = (low <= codes) & (codes <= high)
        shape = [len(limits)] + [1] * len(schema)
        shape[axis + 1] = column.size
        inside &= allowed.reshape(shape)
    return inside.reshape(len(limits), -1).astype(np.float64)
