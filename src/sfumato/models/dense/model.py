"""A histogram over every cell of a small domain: sums by target, raking to public totals.

Cells are grouped by what a target asks, in a form kernels can walk. The flat index of a cell splits
into a block (leading columns) and a place in it (the trailing ones). Inside a block a target's
cells form runs, each of one group; the group of a run is ``base[block] + key``. That takes two
short arrays instead of one as long as the domain, sums run at memory speed, and a range touches
only the cells inside it. Many targets are answered in few passes: marginals are summed down a tree,
the domain into a few large marginals, each of those into smaller ones, and only these into the
marginals that were asked for.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError
from sfumato.models.dense.kernels import add_groups, write_grouping
from sfumato.models.model import Rows, round_counts
from sfumato.randomness import Rng
from sfumato.schema.measurement import PublicTotal
from sfumato.schema.schema import Marginal, Schema, possible
from sfumato.schema.workload import Range, Target, boxes, layout

CELL_LIMIT = 10_000_000
"""The most cells a dense histogram may have: 80 MB a copy."""


@dataclass(frozen=True, kw_only=True, eq=False)
class DenseModel:
    """A count for each cell, in the shape of the schema."""

    schema: Schema
    counts: NDArray[np.float64]

    @property
    def total(self) -> float:
        """The sum of all cells."""
        return float(self.counts.sum())

    def marginal(self, names: Marginal) -> NDArray[np.float64]:
        """Counts of a marginal, in the order of the given names."""
        result = sums(self.counts.reshape(-1), group(self.schema, names))
        return result.reshape(self.schema.shape(names))

    def draw(self, n_rows: int, *, rng: Rng) -> Rows:
        """Cells rounded together, so that every cell keeps its share, then shuffled."""
        counts = round_counts(self.counts, n_rows, rng=rng).reshape(-1)
        cells = np.repeat(np.arange(counts.size), counts)[rng.permutation(n_rows)]
        codes = np.unravel_index(cells, self.counts.shape)
        return dict(zip(self.schema.names, codes, strict=True))

    def arrays(self) -> dict[str, NDArray[np.float64]]:
        """The counts."""
        return {"counts": self.counts}

    @staticmethod
    def from_arrays(schema: Schema, arrays: Mapping[str, NDArray[np.float64]]) -> "DenseModel":
        """What ``arrays`` gave."""
        return DenseModel(schema=schema, counts=arrays["counts"])


def check_size(schema: Schema, *, method: str) -> None:
    """Refuse a domain that no dense histogram can hold, before anything is allocated."""
    cells = schema.cells(schema.names)
    if cells > CELL_LIMIT:
        raise InputError(
            f"{method} keeps every combination of values, and this schema has {cells:.3g} "
            f"combinations; at most {CELL_LIMIT:,} fit. Use --method independent, coarser bins, "
            "or fewer columns."
        )


MOST_ROUNDS: Final = 200
"""The most sweeps of raking over all totals; chosen by judgment."""
CLOSE: Final = 1e-9
"""Raking stops when no cell of a total is off by more than this part of all rows."""
_LIFT: Final = 1e-6
"""Rows that a cell gets where a total wants some and the histogram has none."""


def rake(model: DenseModel, totals: Sequence[PublicTotal]) -> DenseModel:
    """The histogram scaled along each total in turn until all agree.

    Iterative proportional fitting (Deming, Stephan 1940): what the histogram says beyond the
    totals, its odds ratios, stays. A group of cells without any rows can't be scaled; where a
    total wants some, its possible cells share them evenly.

    >>> schema = Schema.from_dict({"a": 2, "b": 2})
    >>> made = DenseModel(schema=schema, counts=np.array([[2.0, 2.0], [1.0, 3.0]]))
    >>> rake(made, [PublicTotal(marginal=("a",), counts=np.array([8, 2]))]).counts.tolist()
    [[4.0, 4.0], [0.5, 1.5]]
    """
    if not totals:
        return model
    schema, counts = model.schema, np.array(model.counts)
    lifted = possible(schema, schema.names) * _LIFT
    for _ in range(MOST_ROUNDS):
        worst = 0.0
        for total in totals:
            others = _others(schema, total)
            held, wanted = counts.sum(axis=others, keepdims=True), _spread(schema, total)
            worst = max(worst, float(np.abs(held - wanted).max()))
            if ((held <= 0) & (wanted > 0)).any():
                counts += np.where((held <= 0) & (wanted > 0), lifted, 0.0)
                held = counts.sum(axis=others, keepdims=True)
            counts *= np.divide(wanted, held, out=np.zeros_like(held), where=held > 0)
        if worst <= CLOSE * totals[0].rows:
            break
    return DenseModel(schema=schema, counts=counts)


def _others(schema: Schema, total: PublicTotal) -> tuple[int, ...]:
    return tuple(a for a, name in enumerate(schema.names) if name not in total.marginal)


def _spread(schema: Schema, total: PublicTotal) -> NDArray[np.float64]:
    """A total with an axis of length 1 for each column that it does not name."""
    return np.expand_dims(total.counts, _others(schema, total))


_BLOCK_CELLS = 1024
"""A block has at least this number of cells where the domain has them; chosen by judgment."""


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
        self._place = {name: index for index, name in enumerate(schema.names)}

    def group(self, target: Target) -> Grouping:
        """The grouping of all cells by one target."""
        base = np.empty(self.count, dtype=np.int32)
        runs = np.empty((self.width, 3), dtype=np.int32)
        result = self.write(target, base, runs)
        groups = 1
        if isinstance(target, tuple):
            groups = prod(int(self._sizes[self._place[name]]) for name in target)
        return Grouping(base=base, runs=runs[:result].copy(), groups=groups, width=self.width)

    def write(self, target: Target, base: NDArray[np.int32], runs: NDArray[np.int32]) -> int:
        """Write a grouping into arrays that have room for any; the number of runs."""
        rule = list(self._whole)
        if isinstance(target, Range):
            for name, low, high in target.bounds:
                rule[self._place[name]] = (low, high, 0)
        else:
            step = 1
            for name in reversed(target):
                index = self._place[name]
                last = rule[index][1]
                rule[index] = (0, last, step)
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


_MATRIX_ENTRIES = 4_000_000
"""Ranges are answered by a matrix of at most this number of entries: 32 MB."""
_LEVELS = (131_072, 2_048)
"""The most cells of a marginal on each level of the tree: second- and first-level cache."""


class DenseAnswers:
    """Prepared for one schema and one list of targets; ``of(cells)`` is one flat vector."""

    def __init__(self, schema: Schema, targets: Sequence[Target]) -> None:
        self._offsets = layout(schema, targets)
        self._ranges = [index for index, target in enumerate(targets) if isinstance(target, Range)]
        wanted = [target for target in targets if isinstance(target, Range)]
        small = 0 < len(wanted) * schema.cells(schema.names) <= _MATRIX_ENTRIES
        self._matrix = _indicators(schema, wanted) if small else None
        self._groupings = [] if small else [group(schema, box) for box in wanted]
        marginals = {t: index for index, t in enumerate(targets) if isinstance(t, tuple)}
        self._tree = _tree(schema, marginals, _LEVELS)

    def of(self, cells: NDArray[np.float64]) -> NDArray[np.float64]:
        """Answers of all targets, in their order; a marginal takes as many places as cells."""
        if not self._tree:
            return self._of_ranges(cells)
        out = np.empty(self._offsets[-1])
        out[self._offsets[self._ranges]] = self._of_ranges(cells)
        for node in self._tree:
            node.sum_into(out, cells, self._offsets)
        return out

    def _of_ranges(self, cells: NDArray[np.float64]) -> NDArray[np.float64]:
        if self._matrix is not None:
            return self._matrix @ cells
        return np.array([sums(cells, grouping)[0] for grouping in self._groupings])


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class _Node:
    """A marginal of its parent's: a target at ``place``, or the parent of others."""

    grouping: Grouping
    place: int | None = None
    children: tuple["_Node", ...] = ()

    def sum_into(
        self,
        out: NDArray[np.float64],
        cells: NDArray[np.float64],
        offsets: NDArray[np.int64],
    ) -> None:
        """Write the answers of all targets below."""
        own = sums(cells, self.grouping)
        if self.place is not None:
            out[offsets[self.place] : offsets[self.place + 1]] = own
        for child in self.children:
            child.sum_into(out, own, offsets)


def _tree(
    schema: Schema, targets: Mapping[Marginal, int], levels: tuple[int, ...]
) -> tuple[_Node, ...]:
    if not levels:
        return tuple(
            _Node(grouping=group(schema, target), place=index) for target, index in targets.items()
        )
    if schema.cells(schema.names) <= levels[0]:
        return _tree(schema, targets, levels[1:])
    nodes: list[_Node] = []
    for cover, parts in cover_marginals(schema, list(targets), most_cells=levels[0]):
        served = {part: targets[part] for part in parts}
        if len(parts) == 1:  # alone, it needs nothing in between
            nodes += _tree(schema, served, ())
        else:
            children = _tree(schema.pick(cover), served, levels[1:])
            nodes.append(_Node(grouping=group(schema, cover), children=children))
    return tuple(nodes)


def cover_marginals(
    schema: Schema, marginals: Sequence[Marginal], *, most_cells: int
) -> list[tuple[Marginal, list[Marginal]]]:
    """Few larger marginals that hold all the given ones, each with those it serves.

    Greedy, largest first: a marginal joins the group that stays smallest, as long as the group
    has at most ``most_cells``; one that is larger by itself is alone.
    """
    groups: list[tuple[Marginal, list[Marginal]]] = []
    for marginal in sorted(marginals, key=schema.cells, reverse=True):
        best, best_cells = None, most_cells + 1
        for index, (cover, _) in enumerate(groups):
            cells = schema.cells(schema.marginal({*cover, *marginal}))
            if cells < best_cells:
                best, best_cells = index, cells
        if best is None:
            groups.append((schema.marginal(marginal), [marginal]))
            continue
        cover, served = groups[best]
        groups[best] = (schema.marginal({*cover, *marginal}), [*served, marginal])
    return groups


def _indicators(schema: Schema, ranges: Sequence[Range]) -> NDArray[np.float64]:
    """One row a range: 1 for each cell inside."""
    limits = boxes(schema, schema.names, ranges)
    inside = np.ones((len(limits), 1), dtype=np.bool_)
    for axis, column in enumerate(schema):
        codes = np.arange(column.size)
        allowed = (limits[:, axis, :1] <= codes) & (codes <= limits[:, axis, 1:])
        inside = (inside[:, :, None] & allowed[:, None, :]).reshape(len(limits), -1)
    return inside.astype(np.float64)
