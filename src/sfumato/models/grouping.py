"""Cells of a dense domain grouped by what a target asks, in a form kernels can walk.

The flat index of a cell splits into a high part (a block) and a low part (a place in the block).
The group of a cell is then ``high_key[block] + low_key[place]``: two short arrays instead of one
as long as the domain. A range has three groups; a cell lies inside when both parts do (1 + 1).
"""

from dataclasses import dataclass
from math import prod

import numba
import numpy as np
from numpy.typing import NDArray

from sfumato.schema.table import Marginal, Schema
from sfumato.schema.workload import Range, Target

_BLOCK_CELLS = 1024


@dataclass(frozen=True, kw_only=True, eq=False)
class Grouping:
    """How one target groups the cells, and which of its groups it speaks of."""

    high_key: NDArray[np.int32]
    low_key: NDArray[np.int32]
    groups: int
    inside: NDArray[np.bool_]
    """Groups that the target counts: all of a marginal, the last of a range's three."""
    touched: NDArray[np.bool_]
    """Blocks that hold a cell the target counts."""


def group(schema: Schema, target: Target) -> Grouping:
    """The grouping of the whole domain of a schema by one target."""
    split = _split(schema)
    if isinstance(target, Range):
        return _group_range(schema, target, split)
    strides = _strides(schema, target)
    high = _key(schema.names[:split], schema, strides)
    low = _key(schema.names[split:], schema, strides)
    groups = schema.cells(target)
    everything = np.ones(groups, dtype=np.bool_)
    return Grouping(
        high_key=high,
        low_key=low,
        groups=groups,
        inside=everything,
        touched=np.ones(high.size, dtype=np.bool_),
    )


def sums(cells: NDArray[np.float64], grouping: Grouping) -> NDArray[np.float64]:
    """The sum of the cells of each group: one pass over the domain."""
    out = np.zeros(grouping.groups)
    add_groups(cells, grouping.high_key, grouping.low_key, grouping.touched, out)
    return out


@numba.njit(cache=True, nogil=True)
def add_groups(
    cells: NDArray[np.float64],
    high_key: NDArray[np.int32],
    low_key: NDArray[np.int32],
    touched: NDArray[np.bool_],
    out: NDArray[np.float64],
) -> None:
    """Add each cell to its group's sum."""
    width = low_key.size
    for block in range(high_key.size):
        if not touched[block]:
            continue
        base = high_key[block]
        start = block * width
        for place in range(width):
            out[base + low_key[place]] += cells[start + place]


@numba.njit(cache=True, nogil=True)
def scale_groups(
    cells: NDArray[np.float64],
    high_key: NDArray[np.int32],
    low_key: NDArray[np.int32],
    touched: NDArray[np.bool_],
    factors: NDArray[np.float64],
) -> None:
    """Multiply each cell by its group's factor."""
    width = low_key.size
    for block in range(high_key.size):
        if not touched[block]:
            continue
        base = high_key[block]
        start = block * width
        for place in range(width):
            cells[start + place] *= factors[base + low_key[place]]


def _split(schema: Schema) -> int:
    """The first column of the low part: trailing columns until a block is large enough."""
    place = len(schema)
    while place > 0 and schema.cells(schema.names[place:]) < _BLOCK_CELLS:
        place -= 1
    return place


def _strides(schema: Schema, marginal: Marginal) -> dict[str, int]:
    return {name: prod(schema.shape(marginal[place + 1 :])) for place, name in enumerate(marginal)}


def _key(names: Marginal, schema: Schema, strides: dict[str, int]) -> NDArray[np.int32]:
    key = np.zeros(schema.shape(names), dtype=np.int32)
    for axis, name in enumerate(names):
        if name in strides:
            steps = np.arange(schema[name].size, dtype=np.int32) * strides[name]
            key += steps.reshape([-1 if place == axis else 1 for place in range(len(names))])
    return key.reshape(-1)


def _group_range(schema: Schema, box: Range, split: int) -> Grouping:
    limits = {name: (low, high) for name, low, high in box.bounds}
    high = _inside(schema.names[:split], schema, limits)
    low = _inside(schema.names[split:], schema, limits)
    return Grouping(
        high_key=high.astype(np.int32),
        low_key=low.astype(np.int32),
        groups=3,
        inside=np.array([False, False, True]),
        touched=high,
    )


def _inside(
    names: Marginal, schema: Schema, limits: dict[str, tuple[int, int]]
) -> NDArray[np.bool_]:
    inside = np.ones(schema.shape(names), dtype=np.bool_)
    for axis, name in enumerate(names):
        low, high = limits.get(name, (0, schema[name].size - 1))
        codes = np.arange(schema[name].size)
        allowed = (low <= codes) & (codes <= high)
        inside &= allowed.reshape([-1 if place == axis else 1 for place in range(len(names))])
    return inside.reshape(-1)
