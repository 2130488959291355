"""Cells of a dense domain grouped by what a target asks, in a form kernels can walk.

The flat index of a cell splits into a block (leading columns) and a place in it (the trailing
ones). Inside a block a target's cells form runs, each of one group; the group of a run is
``base[block] + key``. That takes two short arrays instead of one as long as the domain, sums run
at memory speed, and a range touches only the cells inside it.
"""

from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from sfumato.models.dense.kernels import add_groups, write_grouping
from sfumato.schema.schema import Schema
from sfumato.schema.workload import Range, Target

_BLOCK_CELLS = 1024


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Grouping:
    """How one target groups the cells it counts: all for a marginal, those inside for a range."""

    base: NDArray[np.int32]
    """The first group of each block, -1 where the block holds no cell that counts."""
    runs: NDArray[np.int32]
    """A row for each run of a block: where it starts, where it ends, and its key."""
    groups: int
    width: int
    """Cells in a block."""


class Blocks:
    """A schema's domain cut into blocks: what all groupings of its cells share."""

    def __init__(self, schema: Schema) -> None:
        sizes = schema.shape(schema.names)
        split = len(sizes)  # the first column inside a block
        while split > 0 and prod(sizes[split:]) < _BLOCK_CELLS:
            split -= 1
        self.count = prod(sizes[:split])
        self.width = prod(sizes[split:])
        self._split = split
        self._sizes = np.array(sizes)
        self._whole = [(0, size - 1, 0) for size in sizes]
        self._place = {name: place for place, name in enumerate(schema.names)}

    def group(self, target: Target) -> Grouping:
        """The grouping of all cells by one target."""
        base = np.empty(self.count, dtype=np.int32)
        runs = np.empty((self.width, 3), dtype=np.int32)
        found = self.write(target, base, runs)
        groups = 1
        if isinstance(target, tuple):
            groups = prod(int(self._sizes[self._place[name]]) for name in target)
        return Grouping(base=base, runs=runs[:found].copy(), groups=groups, width=self.width)

    def write(self, target: Target, base: NDArray[np.int32], runs: NDArray[np.int32]) -> int:
        """Write a grouping into arrays that have room for any; the number of runs."""
        rule = list(self._whole)
        if isinstance(target, Range):
            for name, low, high in target.bounds:
                rule[self._place[name]] = (low, high, 0)
        else:
            step = 1
            for name in reversed(target):
                place = self._place[name]
                last = rule[place][1]
                rule[place] = (0, last, step)
                step *= last + 1
        return int(write_grouping(np.array(rule), self._sizes, self._split, base, runs))


def group(schema: Schema, target: Target) -> Grouping:
    """The grouping of the whole domain of a schema by one target."""
    return Blocks(schema).group(target)


def sums(cells: NDArray[np.float64], grouping: Grouping) -> NDArray[np.float64]:
    """The sum of the cells of each group."""
    out = np.zeros(grouping.groups)
    add_groups(cells, grouping.base, grouping.runs, grouping.width, out)
    return out
