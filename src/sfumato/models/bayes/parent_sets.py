"""Which parents a column may have: sets whose noisy table would still say something.

Zhang, Cormode, Procopiuc, Srivastava, Xiao 2017, "PrivBayes: private data release via Bayesian
networks", TODS 42, sections 4.2 and 5.2. All of it is decided by public facts: the sizes of
columns, the number of rows, the noise that a budget brings, and what fits into memory.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate
from math import prod

import numpy as np


def usefulness(*, rows: int, cells: int, noise_counts: float) -> float:
    """The mean count of a cell over the mean size of its noise: n / (m E|noise|).

    With Laplace noise of scale 2 d / epsilon on each of d tables, as rows are replaced, this is
    n epsilon / (2 d m): definition 4.7 and lemma 4.8.

    >>> usefulness(rows=20_000, cells=2**8, noise_counts=2 * 10 / 1)  # 10 tables, epsilon 1
    3.90625
    """
    return rows / (cells * noise_counts)


def largest_useful_table(
    sizes: Sequence[int],
    *,
    rows: int,
    theta: float,
    degree: int,
    most: int,
    noise_counts: Callable[[int], float],
) -> int:
    """The most cells that a table may have and still be theta-useful.

    Columns whose joint table is small enough all become parents of each other, in a chain, and
    one table tells of them all: of d columns, if even the m largest fit together, at most
    d - m + 1 tables are measured. For columns of two values these are the d - k of the paper. The
    fewest tables that go together with the limit they allow are taken.

    Args:
        sizes: How many values each column has.
        rows: Of the table.
        theta: The least usefulness.
        degree: The most parents of a column.
        most: The most cells of a table, however useful.
        noise_counts: The mean size of the noise of one cell, by the number of tables measured.
    """
    falling = sorted(sizes, reverse=True)[: degree + 1]
    for tables in range(1, len(sizes) + 1):
        useful = usefulness(rows=rows, cells=1, noise_counts=noise_counts(tables)) / theta
        limit = int(min(useful, most))
        together = sum(cells <= limit for cells in accumulate(falling, lambda a, b: a * b))
        if len(sizes) - max(together, 1) + 1 <= tables:
            break
    return limit


def affordable(
    sizes: Sequence[int], *, limit: int, degree: int, most_sets: int, most_cells: int
) -> tuple[int, int]:
    """The degree and the limit of cells up to which all tables can be counted.

    First the degree falls, to 1 if need be. Pairs are counted however many there are; if their
    cells are too many, the limit falls too.

    Args:
        sizes: How many values each column has.
        limit: The most cells of a table.
        degree: The most parents of a column.
        most_sets: So many tables of more than two columns may be counted.
        most_cells: So many cells may all tables have together.
    """
    counts = _sets_by_cells(sizes, limit=limit, longest=degree + 1)
    cells = np.arange(limit + 1)
    for most in range(degree, 0, -1):
        each = counts[2 : most + 2].sum(axis=0)
        few = most == 1 or each.sum() <= most_sets
        if few and each @ cells <= most_cells:
            return most, limit
    fitting = np.flatnonzero(np.cumsum(counts[2] * cells) <= most_cells)
    return 1, int(fitting[-1])


def maximal_parent_sets(
    sizes: Mapping[str, int], *, room: int, degree: int
) -> list[tuple[str, ...]]:
    """All sets of columns of at most ``room`` cells to which no other column can be added.

    Algorithm 5 of the paper without its generalized columns; a set of ``degree`` columns is
    complete too. The empty set is one only if nothing fits.

    >>> maximal_parent_sets({"a": 4, "b": 2, "c": 2}, room=8, degree=3)
    [('a', 'b'), ('a', 'c'), ('b', 'c')]
    """
    names = sorted(sizes, key=lambda name: -sizes[name])
    order = [sizes[name] for name in names]
    beyond = [prod(order[index:]) for index in range(len(order) + 1)]
    result = _grow_sets(order, beyond, room, degree, 0, (), 1, room + 1)
    return [tuple(names[index] for index in own) for own in result]


def _grow_sets(
    sizes: Sequence[int],
    beyond: Sequence[int],
    room: int,
    degree: int,
    place: int,
    chosen: tuple[int, ...],
    cells: int,
    least: int,
) -> Iterator[tuple[int, ...]]:
    """With and without each column; ``least`` is the smallest that was left out so far.

    A branch ends where that one could be added even to all columns that are still to come.
    """
    if len(chosen) == degree:
        yield chosen
        return
    enough = len(chosen) + len(sizes) - place >= degree
    if not enough and cells * beyond[place] * least <= room:
        return
    if place == len(sizes):
        yield chosen
        return
    size = sizes[place]
    rest = (sizes, beyond, room, degree, place + 1)
    if cells * size <= room:
        yield from _grow_sets(*rest, (*chosen, place), cells * size, least)
    yield from _grow_sets(*rest, chosen, cells, min(least, size))


def _sets_by_cells(
    sizes: Sequence[int], *, limit: int, longest: int
) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """How many sets of so many columns have so many cells, by both numbers.

    Column by column: a set with the new one has its size times the cells of a set without it.
    """
    longest = min(longest, len(sizes))
    counts = np.zeros((longest + 1, limit + 1))
    counts[0, 1 : limit + 1][:1] = 1
    for size in sizes:
        fits = limit // size + 1
        grown = counts[:-1, :fits].copy()
        counts[1:, : fits * size : size] += grown
    return counts
