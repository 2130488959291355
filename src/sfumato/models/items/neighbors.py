"""The items most similar to each item: cosine, adjusted cosine, Pearson; only the best are stored.

Time follows the sum over people of the square of their number of ratings, memory the number of
ratings and of neighbors: no matrix of all similarities is ever made. Only positive similarities
make a neighbor; among equal ones the smaller code comes first.

For item i each of its raters is walked from i onwards, so each pair of items is met once; the sums
go into one dense row. A similarity is then offered to both items' lists. Lists are heaps of
(similarity, then smaller code), so they do not depend on who filled them.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final

import numba
import numpy as np
from numpy.typing import NDArray

from sfumato import check
from sfumato.errors import InputError
from sfumato.models.items.rating_rows import RatingRows

Array = NDArray[Any]
Codes = NDArray[np.int32]
Floats = NDArray[np.float64]
Unsigned = NDArray[np.uint32]
"""Without a sign: an index that may be negative costs a test each time."""
Whole = NDArray[np.int64]
Rated = tuple[Unsigned, Floats, Whole, Unsigned, Unsigned]
"""Items and ratings by person; where each item's raters start, the index of each one's rating, and
where that person's ratings end."""
Lists = tuple[Floats, Codes, Whole, Floats]
"""Heaps of similarities and codes, their sizes, and what a similarity must reach to enter."""


@numba.njit(cache=True, nogil=True)
def transpose(
    starts: Whole, items: Unsigned, item_starts: Whole, positions: Unsigned, ends: Unsigned
) -> None:
    """For each item, where its ratings are, and where the ratings of their persons end."""
    filled = item_starts[:-1].copy()
    for person in range(starts.size - 1):
        for index in range(starts[person], starts[person + 1]):
            item = items[index]
            positions[filled[item]] = index
            ends[filled[item]] = starts[person + 1]
            filled[item] += 1


@numba.njit(cache=True, nogil=True, inline="always")
def _worse(value: float, code: int, other: float, other_code: int) -> bool:
    return value < other or (value == other and code > other_code)


@numba.njit(cache=True, nogil=True)
def _offer(lists: Lists, row: int, value: float, code: int) -> None:
    """Put into the heap of a row, whose worst is on top, if there is room or the top is worse."""
    values, codes, sizes, least = lists
    width, size = values.shape[1], sizes[row]
    if size == width:
        if _worse(values[row, 0], codes[row, 0], value, code):
            _replace_top(values, codes, row, width, value, code)
            least[row] = values[row, 0]
        return
    sizes[row], child = size + 1, size
    while child > 0:
        parent = (child - 1) >> 1
        if not _worse(value, code, values[row, parent], codes[row, parent]):
            break
        values[row, child], codes[row, child] = values[row, parent], codes[row, parent]
        child = parent
    values[row, child], codes[row, child] = value, code
    if size + 1 == width:
        least[row] = values[row, 0]


@numba.njit(cache=True, nogil=True)
def _replace_top(
    values: Floats, codes: Codes, row: int, size: int, value: float, code: int
) -> None:
    hole = 0
    while True:
        child = 2 * hole + 1
        if child >= size:
            break
        right = child + 1
        if right < size and _worse(
            values[row, right], codes[row, right], values[row, child], codes[row, child]
        ):
            child = right
        if not _worse(values[row, child], codes[row, child], value, code):
            break
        values[row, hole], codes[row, hole] = values[row, child], codes[row, child]
        hole = child
    values[row, hole], codes[row, hole] = value, code


@numba.njit(cache=True, nogil=True)
def cosine_rows(first: int, step: int, rated: Rated, lists: Lists) -> None:
    """Sums of products of ratings (each item's of length 1), items ``first``, + step, ..."""
    _, _, item_starts, positions, ends = rated
    catalogue, least = item_starts.size - 1, lists[3]
    sums = np.zeros(catalogue)
    touched = np.empty(catalogue, dtype=np.uint32)
    for item in range(first, catalogue, step):
        reach = 0
        for entry in range(item_starts[item], item_starts[item + 1]):
            reach += ends[entry] - positions[entry] - 1
        met = catalogue - item - 1
        sparse = 8 * reach < met  # else most of the row is met: look at all of it
        if sparse:
            met = _add_touched(item, rated, sums, touched)
        else:
            _add_all(item, rated, sums)
        for index in range(met):
            other = touched[index] if sparse else item + 1 + index
            value = sums[other]
            sums[other] = 0.0
            if value > 0.0:
                if value >= least[item]:
                    _offer(lists, item, value, other)
                if value >= least[other]:
                    _offer(lists, other, value, item)


@numba.njit(cache=True, nogil=True)
def _add_all(item: int, rated: Rated, sums: Floats) -> None:
    items, units, item_starts, positions, ends = rated
    for entry in range(item_starts[item], item_starts[item + 1]):
        unit = units[positions[entry]]
        for index in range(positions[entry] + np.uint32(1), ends[entry]):
            sums[items[index]] += unit * units[index]


@numba.njit(cache=True, nogil=True)
def _add_touched(item: int, rated: Rated, sums: Floats, touched: Unsigned) -> int:
    """As ``_add_all``; the number of items noted, one of sum zero perhaps more than once."""
    items, units, item_starts, positions, ends = rated
    met = 0
    for entry in range(item_starts[item], item_starts[item + 1]):
        unit = units[positions[entry]]
        for index in range(positions[entry] + np.uint32(1), ends[entry]):
            other = items[index]
            if sums[other] == 0.0:
                touched[met] = other
                met += 1
            sums[other] += unit * units[index]
    return met


@numba.njit(cache=True, nogil=True)
def counted_rows(
    first: int, step: int, rated: Rated, pearson: bool, shrink: float, lists: Lists
) -> None:
    """As ``cosine_rows``, times n / (n + shrink), n being the common raters.

    Pearson: (n sum xy - sum x sum y) / sqrt((n sum xx - (sum x)^2) (n sum yy - (sum y)^2)), all
    sums over the common raters. Else: the sum of products.
    """
    items, ratings, item_starts, positions, ends = rated
    catalogue, least = item_starts.size - 1, lists[3]
    sums = np.zeros((catalogue, 6))
    for item in range(first, catalogue, step):
        for entry in range(item_starts[item], item_starts[item + 1]):
            x = ratings[positions[entry]]
            for index in range(positions[entry] + np.uint32(1), ends[entry]):
                y, other = ratings[index], items[index]
                sums[other, 0] += 1.0
                sums[other, 1] += x * y
                if pearson:
                    sums[other, 2] += x
                    sums[other, 3] += y
                    sums[other, 4] += x * x
                    sums[other, 5] += y * y
        for other in range(item + 1, catalogue):
            n, value = sums[other, 0], sums[other, 1]
            if n == 0.0:
                continue
            if pearson:
                value = _correlation(n, value, sums[other])
            if value > 0.0:
                value *= n / (n + shrink)
                if value >= least[item]:
                    _offer(lists, item, value, other)
                if value >= least[other]:
                    _offer(lists, other, value, item)
            sums[other] = 0.0


@numba.njit(cache=True, nogil=True)
def _correlation(n: float, products: float, sums: Floats) -> float:
    x, y, xx, yy = sums[2], sums[3], sums[4], sums[5]
    spread = (n * xx - x**2) * (n * yy - y**2)
    return (n * products - x * y) / np.sqrt(spread) if spread > 0.0 else 0.0


@numba.njit(cache=True, nogil=True)
def merge(lists: Lists, more: Lists) -> None:
    """Offer the neighbors of another worker."""
    values, codes, sizes, _ = more
    for row in range(values.shape[0]):
        for index in range(sizes[row]):
            _offer(lists, row, values[row, index], codes[row, index])


@numba.njit(cache=True, nogil=True)
def sort_lists(lists: Lists) -> None:
    """Heaps to lists, best first; -1 and 0 where there is nothing."""
    values, codes, sizes, _ = lists
    for row in range(values.shape[0]):
        for last in range(sizes[row] - 1, 0, -1):
            value, code = values[row, last], codes[row, last]
            values[row, last], codes[row, last] = values[row, 0], codes[row, 0]
            _replace_top(values, codes, row, last, value, code)
        values[row, sizes[row] :] = 0.0
        codes[row, sizes[row] :] = -1


@numba.njit(cache=True, nogil=True)
def add_neighbors(
    neighbors: Codes,
    weights: Array,
    given: Floats,
    most: int,
    sums: Floats,
    sizes: Floats,
    products: Floats,
) -> None:
    """Add w, |w| and w x over the first neighbors for which x is given (not nan)."""
    for item in range(neighbors.shape[0]):
        result = 0
        for index in range(neighbors.shape[1]):
            neighbor = neighbors[item, index]
            if neighbor < 0 or np.isnan(given[neighbor]):
                continue
            weight = weights[item, index]
            sums[item] += weight
            sizes[item] += abs(weight)
            products[item] += weight * given[neighbor]
            result += 1
            if result == most:
                break


_THREADS: Final = 2
"""Threads that compare items; one for each core of a small machine."""
_FEW_RATINGS: Final = 500_000  # below, a second set of lists costs more than it saves
_MOST_RATINGS: Final = 2**31 - 1  # positions are stored in 32 bits


@dataclass(frozen=True, kw_only=True, eq=False)
class Neighbors:
    """For each item the codes of its neighbors and their similarities, best first."""

    codes: Codes
    """-1 where there are fewer."""
    weights: Floats


def cosine_neighbors(ratings: RatingRows, k: int, *, shrink: float = 0.0) -> Neighbors:
    """s_ij = sum_u r_ui r_uj / (|r_i| |r_j|), norms over all raters, times n / (n + shrink).

    Args:
        ratings: What counts; all ones if only it matters who rated what.
        k: Neighbors of each item.
        shrink: The number n of common raters that halves a similarity.
    """
    norms = np.sqrt(ratings.item_sums(ratings.ratings**2))
    inverse = np.divide(1, norms, out=np.zeros(norms.size), where=norms > 0)
    units = ratings.ratings * inverse[ratings.items]
    if shrink:
        return _counted(ratings, units, k, pearson=False, shrink=shrink)
    return _best(ratings, units, k, cosine_rows, ())


def adjusted_cosine_neighbors(ratings: RatingRows, k: int, *, shrink: float = 0.0) -> Neighbors:
    """The cosine of ratings less the person's own mean (Sarwar et al. 2001)."""
    counts = np.maximum(np.diff(ratings.starts), 1)
    means = ratings.person_sums(ratings.ratings) / counts
    centered = ratings.with_ratings(ratings.ratings - means[ratings.persons])
    return cosine_neighbors(centered, k, shrink=shrink)


def pearson_neighbors(ratings: RatingRows, k: int, *, shrink: float = 0.0) -> Neighbors:
    """The correlation of two items' ratings over the people who rated both.

    Both are centered on their means over these people; no similarity where one does not vary.

    Args:
        ratings: What counts.
        k: Neighbors of each item.
        shrink: As for ``cosine_neighbors``.
    """
    return _counted(ratings, ratings.ratings, k, pearson=True, shrink=shrink)


def _counted(
    ratings: RatingRows, values: Floats, k: int, *, pearson: bool, shrink: float
) -> Neighbors:
    if not 0 <= shrink < np.inf:
        raise InputError(f"shrink must be >= 0, got {shrink!r}.")
    return _best(ratings, values, k, counted_rows, (pearson, float(shrink)))


def _best(
    ratings: RatingRows,
    values: Floats,
    k: int,
    kernel: Callable[..., None],
    options: tuple[bool | int | float, ...],
) -> Neighbors:
    """Run a kernel by threads, each on every n-th item and with lists of its own."""
    if ratings.items.size > _MOST_RATINGS:
        raise InputError(
            f"at most {_MOST_RATINGS:,} ratings can be compared, got {ratings.items.size:,}."
        )
    item_starts = np.concatenate([[0], np.cumsum(ratings.counts)]).astype(np.int64)
    indices, ends = np.empty((2, ratings.items.size), dtype=np.uint32)
    items = ratings.items.view(np.uint32)
    transpose(ratings.starts, items, item_starts, indices, ends)
    given = items, values, item_starts, indices, ends
    threads = 1 if ratings.items.size < _FEW_RATINGS else _THREADS
    lists = [_empty_lists(ratings.catalogue, k) for _ in range(threads)]
    with ThreadPoolExecutor(threads, thread_name_prefix="sfumato-neighbors") as pool:
        tasks = [
            pool.submit(kernel, first, threads, given, *options, own)
            for first, own in enumerate(lists)
        ]
        for task in tasks:
            task.result()
    for other in lists[1:]:
        merge(lists[0], other)
    sort_lists(lists[0])
    return Neighbors(codes=lists[0][1], weights=lists[0][0])


def _empty_lists(items: int, k: int) -> Lists:
    width = min(check.whole(at_least=1, k=k), max(items - 1, 1))
    return (
        np.zeros((items, width)),
        np.full((items, width), -1, dtype=np.int32),
        np.zeros(items, dtype=np.int64),
        np.zeros(items),
    )
