"""A histogram over every cell of a small domain: sums by target, raking to public totals.

Cells are grouped by what a target asks, in a form kernels can walk. The flat index of a cell splits
into a block (leading columns) and a position in it (the trailing ones). Inside a block a target's
cells form runs, each of one group; the group of a run is ``base[block] + key``. That takes two
short arrays instead of one as long as the domain, sums run at memory speed, and a range touches
only the cells inside it. Many targets are answered in few passes: marginals are summed down a tree,
the domain into a few large marginals, each of those into smaller ones, and only these into the
marginals that were asked for.

The compiled loops come first: sums and factors by group, and the sweeps of a fit.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Final

import numba
import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError
from sfumato.models.model import Rows, round_counts
from sfumato.randomness import Rng
from sfumato.schema.measurement import PublicTotal
from sfumato.schema.schema import Marginal, Schema, possible
from sfumato.schema.workload import Range, Target, boxes, layout

_NOT_COUNTED = -1
"""The key of a cell that a target does not count."""

_LEAST_COUNT = 1e-9
"""Raking leaves every group at least this much: a zero would stay for ever."""

_SMALLEST_FACTOR, _LARGEST_FACTOR = 1e-3, 1e12
"""Raking never moves a group by more than these factors at once."""

_CLOSE = 0.05
"""Stop when every measurement fits to this part of its own noise: more would fit the noise."""

_STALLED = 1.0
"""Stop raking when a sweep leaves more than this part of the worst misfit: the rest is noise
that contradicts itself. Not for ranges, whose steps are too small to tell."""

Where = tuple[np.uint64, np.uint64, np.uint64]
"""One of many groupings: its row of all bases, its first run and the one after its last."""


@numba.njit(cache=True, nogil=True, error_model="numpy")
def sweep(
    cells: NDArray[np.float64],
    total: float,
    words: NDArray[np.uint64],
    base: NDArray[np.int32],
    runs: NDArray[np.int32],
    run_ends: NDArray[np.int64],
    width: int,
    goals: NDArray[np.float64],
    goal_ends: NDArray[np.int64],
    rake: NDArray[np.bool_],
    sigma: NDArray[np.float64],
) -> None:
    """Move the cells towards all measurements, again and again, until they fit."""
    repetitions, count = words.shape
    order = np.arange(count)
    largest = np.diff(goal_ends[: count + 1]).max()
    result, factors = np.empty(largest), np.empty(largest)
    only_marginals, before = rake[:count].all(), np.inf
    for repetition in range(repetitions):
        _shuffle(order, words[repetition])
        worst, mass = 0.0, total
        for i in order:
            first, last = np.uint64(run_ends[i]), np.uint64(run_ends[i + 1])
            if rake[i]:
                its_runs = runs[first:last]
                its_goals = goals[goal_ends[i] : goal_ends[i + 1]]
                gap, mass = _rake(
                    cells, total, mass, base[i], its_runs, width, its_goals, result, factors
                )
            else:
                goal, where = goals[goal_ends[i]], (np.uint64(i), first, last)
                gap, mass = _move(cells, total, mass, base, runs, where, width, goal)
            worst = max(worst, gap / sigma[i])
            if not 0.01 * total < mass < 100 * total:  # so far away, it loses its digits
                _scale_to(cells, total)
                mass = total
        _scale_to(cells, total)  # the running mass drifts by rounding: take the true one
        if worst < _CLOSE or (only_marginals and worst > _STALLED * before):
            break
        before = worst


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _move(
    cells: NDArray[np.float64],
    total: float,
    mass: float,
    base: NDArray[np.int32],
    runs: NDArray[np.int32],
    where: Where,
    width: int,
    goal: float,
) -> tuple[float, float]:
    """One step towards a range's goal: how far it was off, and the mass after it."""
    inside = sum_inside(cells, base, runs, where, width)
    gap = goal - inside * (total / mass)
    factor = np.exp(gap / (2 * total))
    scale_inside(cells, base, runs, where, width, factor)
    return abs(gap), mass + inside * (factor - 1)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _rake(
    cells: NDArray[np.float64],
    total: float,
    mass: float,
    base: NDArray[np.int32],
    runs: NDArray[np.int32],
    width: int,
    goals: NDArray[np.float64],
    group_sums: NDArray[np.float64],
    factors: NDArray[np.float64],
) -> tuple[float, float]:
    """Bring a marginal to its goals: how far the worst cell was off, and the mass after it."""
    group_sums[: goals.size] = 0
    add_groups(cells, base, runs, width, group_sums)
    scale, worst = total / mass, 0.0
    for g in range(goals.size):
        has, goal = group_sums[g] * scale, goals[g]
        worst = max(worst, abs(goal - has))
        factors[g] = _raking_factor(goal, has)
        mass += group_sums[g] * (factors[g] - 1)
    scale_groups(cells, base, runs, width, factors)
    return worst, mass


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _raking_factor(goal: float, has: float) -> float:
    if has <= 0:
        return 1.0
    return min(max(max(goal, _LEAST_COUNT) / has, _SMALLEST_FACTOR), _LARGEST_FACTOR)


@numba.njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc"})
def _scale_to(cells: NDArray[np.float64], total: float) -> None:
    mass = 0.0
    for cell in range(cells.size):
        mass += cells[cell]
    for cell in range(cells.size):
        cells[cell] *= total / mass


@numba.njit(cache=True, nogil=True)
def _shuffle(order: NDArray[np.int64], words: NDArray[np.uint64]) -> None:
    """Fisher and Yates, a word for each position: for post-processing, it is not quite uniform."""
    for last in range(order.size - 1, 0, -1):
        other = np.int64((words[last] >> np.uint64(32)) * np.uint64(last + 1) >> np.uint64(32))
        order[last], order[other] = order[other], order[last]


@numba.njit(cache=True, nogil=True, fastmath={"reassoc", "nsz"})
def add_groups(
    cells: NDArray[np.float64],
    base: NDArray[np.int32],
    runs: NDArray[np.int32],
    width: int,
    out: NDArray[np.float64],
) -> None:
    """Add each cell that counts to its group's sum."""
    single = len(runs) == width  # every run is one cell: no inner loop
    for block in range(base.size):
        first = base[block]
        if first < 0:
            continue
        start = block * width
        if single:
            for index in range(width):
                out[first + runs[index, 2]] += cells[start + index]
            continue
        for run in range(len(runs)):
            total = 0.0
            for cell in range(start + runs[run, 0], start + runs[run, 1]):
                total += cells[cell]
            out[first + runs[run, 2]] += total


@numba.njit(cache=True, nogil=True)
def scale_groups(
    cells: NDArray[np.float64],
    base: NDArray[np.int32],
    runs: NDArray[np.int32],
    width: int,
    factors: NDArray[np.float64],
) -> None:
    """Multiply each cell that counts by its group's factor."""
    single = len(runs) == width
    for block in range(base.size):
        first = base[block]
        if first < 0:
            continue
        start = block * width
        if single:
            for index in range(width):
                cells[start + index] *= factors[first + runs[index, 2]]
            continue
        for run in range(len(runs)):
            factor = factors[first + runs[run, 2]]
            for cell in range(start + runs[run, 0], start + runs[run, 1]):
                cells[cell] *= factor


@numba.njit(cache=True, nogil=True, fastmath={"reassoc", "nsz"})
def sum_inside(
    cells: NDArray[np.float64],
    base: NDArray[np.int32],
    runs: NDArray[np.int32],
    where: Where,
    width: int,
) -> float:
    """The sum of one of many ranges.

    Offsets instead of slices, and unsigned ones: on a small domain both are felt.
    """
    index, first, last = where
    total = 0.0
    for block in range(base.shape[1]):
        if base[index, block] >= 0:
            start = block * width
            for run in range(first, last):
                for cell in range(np.uint64(start + runs[run, 0]), np.uint64(start + runs[run, 1])):
                    total += cells[cell]
    return total


@numba.njit(cache=True, nogil=True)
def scale_inside(
    cells: NDArray[np.float64],
    base: NDArray[np.int32],
    runs: NDArray[np.int32],
    where: Where,
    width: int,
    factor: float,
) -> None:
    """Multiply the cells of one of many ranges by a factor."""
    index, first, last = where
    for block in range(base.shape[1]):
        if base[index, block] >= 0:
            start = block * width
            for run in range(first, last):
                for cell in range(np.uint64(start + runs[run, 0]), np.uint64(start + runs[run, 1])):
                    cells[cell] *= factor


@numba.njit(cache=True, nogil=True)
def write_grouping(
    rule: NDArray[np.int64],
    sizes: NDArray[np.int64],
    split: int,
    base: NDArray[np.int32],
    runs: NDArray[np.int32],
) -> int:
    """Fill ``base`` and ``runs``; returns the number of runs.

    ``rule`` has a row for each column: the first and the last code that count, and how far apart
    the groups of two neighboring codes are.
    """
    _write_keys(rule[:split], sizes[:split], base)
    keys = np.empty(len(runs), dtype=np.int32)
    _write_keys(rule[split:], sizes[split:], keys)
    result = 0
    for index in range(keys.size):
        key = keys[index]
        if key == _NOT_COUNTED:
            continue
        if result and runs[result - 1, 1] == index and runs[result - 1, 2] == key:
            runs[result - 1, 1] += 1
        else:
            runs[result, 0], runs[result, 1], runs[result, 2] = index, index + 1, key
            result += 1
    return result


@numba.njit(cache=True, nogil=True)
def _write_keys(rule: NDArray[np.int64], sizes: NDArray[np.int64], keys: NDArray[np.int32]) -> None:
    """Each cell of some columns' domain with its part of the group's number."""
    keys[0], done = 0, 1
    for column in range(sizes.size - 1, -1, -1):
        low, high, step = rule[column]
        for code in range(sizes[column] - 1, -1, -1):  # code 0 last: the others are made of it
            for index in range(done):
                counts = low <= code <= high and keys[index] != _NOT_COUNTED
                moved = keys[index] + code * step
                keys[code * done + index] = moved if counts else _NOT_COUNTED
        done *= sizes[column]


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
            current, target = counts.sum(axis=others, keepdims=True), _spread(schema, total)
            worst = max(worst, float(np.abs(current - target).max()))
            if ((current <= 0) & (target > 0)).any():
                counts += np.where((current <= 0) & (target > 0), lifted, 0.0)
                current = counts.sum(axis=others, keepdims=True)
            counts *= np.divide(target, current, out=np.zeros_like(current), where=current > 0)
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
        self._axis = {name: index for index, name in enumerate(schema.names)}

    def group(self, target: Target) -> Grouping:
        """The grouping of all cells by one target."""
        base = np.empty(self.count, dtype=np.int32)
        runs = np.empty((self.width, 3), dtype=np.int32)
        result = self.write(target, base, runs)
        groups = 1
        if isinstance(target, tuple):
            groups = prod(int(self._sizes[self._axis[name]]) for name in target)
        return Grouping(base=base, runs=runs[:result].copy(), groups=groups, width=self.width)

    def write(self, target: Target, base: NDArray[np.int32], runs: NDArray[np.int32]) -> int:
        """Write a grouping into arrays that have room for any; the number of runs."""
        rule = list(self._whole)
        if isinstance(target, Range):
            for name, low, high in target.bounds:
                rule[self._axis[name]] = (low, high, 0)
        else:
            step = 1
            for name in reversed(target):
                index = self._axis[name]
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
        ranges = [target for target in targets if isinstance(target, Range)]
        small = 0 < len(ranges) * schema.cells(schema.names) <= _MATRIX_ENTRIES
        self._matrix = _indicators(schema, ranges) if small else None
        self._groupings = [] if small else [group(schema, box) for box in ranges]
        marginals = {t: index for index, t in enumerate(targets) if isinstance(t, tuple)}
        self._tree = _tree(schema, marginals, _LEVELS)

    def of(self, cells: NDArray[np.float64]) -> NDArray[np.float64]:
        """Answers of all targets, in their order; a marginal takes as many entries as cells."""
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
    """A marginal of its parent's: a target at ``index``, or the parent of others."""

    grouping: Grouping
    index: int | None = None
    children: tuple["_Node", ...] = ()

    def sum_into(
        self,
        out: NDArray[np.float64],
        cells: NDArray[np.float64],
        offsets: NDArray[np.int64],
    ) -> None:
        """Write the answers of all targets below."""
        own = sums(cells, self.grouping)
        if self.index is not None:
            out[offsets[self.index] : offsets[self.index + 1]] = own
        for child in self.children:
            child.sum_into(out, own, offsets)


def _tree(
    schema: Schema, targets: Mapping[Marginal, int], levels: tuple[int, ...]
) -> tuple[_Node, ...]:
    if not levels:
        return tuple(
            _Node(grouping=group(schema, target), index=index) for target, index in targets.items()
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
