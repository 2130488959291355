"""The compiled part of dense histograms: sums and factors by group, and the sweeps of a fit.

All in one file, because numba's cache on disk does not see a change in a file that another one's
kernel calls into.
"""

import numba
import numpy as np
from numpy.typing import NDArray

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
    wanted: NDArray[np.float64],
    wanted_ends: NDArray[np.int64],
    rake: NDArray[np.bool_],
    sigma: NDArray[np.float64],
) -> None:
    """Move the cells towards all measurements, again and again, until they fit."""
    repetitions, count = words.shape
    order = np.arange(count)
    largest = np.diff(wanted_ends[: count + 1]).max()
    result, factors = np.empty(largest), np.empty(largest)
    only_marginals, before = rake[:count].all(), np.inf
    for repetition in range(repetitions):
        _shuffle(order, words[repetition])
        worst, mass = 0.0, total
        for i in order:
            first, last = np.uint64(run_ends[i]), np.uint64(run_ends[i + 1])
            if rake[i]:
                its_runs = runs[first:last]
                goals = wanted[wanted_ends[i] : wanted_ends[i + 1]]
                gap, mass = _rake(
                    cells, total, mass, base[i], its_runs, width, goals, result, factors
                )
            else:
                goal, where = wanted[wanted_ends[i]], (np.uint64(i), first, last)
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
    found: NDArray[np.float64],
    factors: NDArray[np.float64],
) -> tuple[float, float]:
    """Bring a marginal to its goals: how far the worst cell was off, and the mass after it."""
    found[: goals.size] = 0
    add_groups(cells, base, runs, width, found)
    scale, worst = total / mass, 0.0
    for g in range(goals.size):
        has, goal = found[g] * scale, goals[g]
        worst = max(worst, abs(goal - has))
        factors[g] = _raking_factor(goal, has)
        mass += found[g] * (factors[g] - 1)
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
    """Fisher and Yates, a word for each place: for post-processing, it is not quite uniform."""
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
