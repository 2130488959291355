"""Cells of a dense domain grouped by what a target asks, in a form kernels can walk.

The flat index of a cell splits into a block (leading columns) and a place in it (the trailing
ones). Inside a block a target's cells form runs, each of one group; the group of a run is
``base[block] + key``. That takes two short arrays instead of one as long as the domain, sums run
at memory speed, and a range touches only the cells inside it.
"""

from dataclasses import dataclass
from math import prod

import numba
import numpy as np
from numpy.typing import NDArray

from sfumato.schema.table import Marginal, Schema
from sfumato.schema.workload import Range, Target

_BLOCK_CELLS = 1024
_NOT_COUNTED = -1


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Grouping:
    """How one target groups the cells it counts: all for a marginal, those inside for a range."""

    base: NDArray[np.int32]
    """The first group of each block, -1 where the block holds no cell that counts."""
    runs: NDArray[np.int32]
    """Three rows: where each run of a block starts, where it ends, and its key."""
    groups: int
    width: int
    """Cells in a block."""


def group(schema: Schema, target: Target) -> Grouping:
    """The grouping of the whole domain of a schema by one target."""
    split = _split(schema)
    leading, trailing = schema.names[:split], schema.names[split:]
    if isinstance(target, Range):
        limits = {name: (low, high) for name, low, high in target.bounds}
        high, low = _outside(leading, schema, limits), _outside(trailing, schema, limits)
        groups = 1
    else:
        strides = _strides(schema, target)
        high, low = _key(leading, schema, strides), _key(trailing, schema, strides)
        groups = schema.cells(target)
    return Grouping(base=high, runs=_runs(low), groups=groups, width=low.size)


def sums(cells: NDArray[np.float64], grouping: Grouping) -> NDArray[np.float64]:
    """The sum of the cells of each group."""
    out = np.zeros(grouping.groups)
    add_groups(cells, grouping.base, grouping.runs, grouping.width, out)
    return out


@numba.njit(cache=True, nogil=True, fastmath={"reassoc", "nsz"})
def add_groups(
    cells: NDArray[np.float64],
    base: NDArray[np.int32],
    runs: NDArray[np.int32],
    width: int,
    out: NDArray[np.float64],
) -> None:
    """Add each cell that counts to its group's sum."""
    single = runs.shape[1] == width  # every run is one cell: no inner loop
    for block in range(base.size):
        first = base[block]
        if first < 0:
            continue
        start = block * width
        if single:
            for place in range(width):
                out[first + runs[2, place]] += cells[start + place]
            continue
        for run in range(runs.shape[1]):
            total = 0.0
            for cell in range(start + runs[0, run], start + runs[1, run]):
                total += cells[cell]
            out[first + runs[2, run]] += total


@numba.njit(cache=True, nogil=True)
def scale_groups(
    cells: NDArray[np.float64],
    base: NDArray[np.int32],
    runs: NDArray[np.int32],
    width: int,
    factors: NDArray[np.float64],
) -> None:
    """Multiply each cell that counts by its group's factor."""
    single = runs.shape[1] == width
    for block in range(base.size):
        first = base[block]
        if first < 0:
            continue
        start = block * width
        if single:
            for place in range(width):
                cells[start + place] *= factors[first + runs[2, place]]
            continue
        for run in range(runs.shape[1]):
            factor = factors[first + runs[2, run]]
            for cell in range(start + runs[0, run], start + runs[1, run]):
                cells[cell] *= factor


def _split(schema: Schema) -> int:
    """The first column of a block: trailing columns until a block is large enough."""
    place = len(schema)
    while place > 0 and schema.cells(schema.names[place:]) < _BLOCK_CELLS:
        place -= 1
    return place


def _strides(schema: Schema, marginal: Marginal) -> dict[str, int]:
    return {name: prod(schema.shape(marginal[place + 1 :])) for place, name in enumerate(marginal)}


def _key(names: Marginal, schema: Schema, strides: dict[str, int]) -> NDArray[np.int32]:
    """Each cell of some columns' domain with its part of the group's number."""
    key = np.zeros(1, dtype=np.int32)
    for name in names:
        steps = np.arange(schema[name].size, dtype=np.int32) * strides.get(name, 0)
        key = np.add.outer(key, steps).reshape(-1)
    return key


def _outside(
    names: Marginal, schema: Schema, limits: dict[str, tuple[int, int]]
) -> NDArray[np.int32]:
    """0 for each cell of some columns' domain that lies inside the limits, otherwise -1."""
    inside = np.ones(1, dtype=np.bool_)
    for name in names:
        allowed = np.ones(schema[name].size, dtype=np.bool_)
        if name in limits:
            low, high = limits[name]
            allowed[:low] = False
            allowed[high + 1 :] = False
        inside = np.logical_and.outer(inside, allowed).reshape(-1)
    return np.where(inside, 0, _NOT_COUNTED).astype(np.int32)


def _runs(low: NDArray[np.int32]) -> NDArray[np.int32]:
    """Stretches of equal keys, without those that do not count."""
    starts = np.flatnonzero(np.diff(low, prepend=low[0] - 1))
    ends = np.append(starts[1:], low.size)
    keys = low[starts]
    counted = keys != _NOT_COUNTED
    return np.stack([starts[counted], ends[counted], keys[counted]]).astype(np.int32)
