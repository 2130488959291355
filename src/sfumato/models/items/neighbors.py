"""The items most similar to each item: cosine, adjusted cosine, Pearson; only the best are kept.

Time follows the sum over people of the square of their number of ratings, memory the number of
ratings and of neighbors: no matrix of all similarities is ever made. Only positive similarities
make a neighbor; among equal ones the smaller code comes first.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sfumato import check
from sfumato.errors import InputError
from sfumato.models.items import neighbor_kernels as kernels
from sfumato.models.items.rating_rows import RatingRows

Codes = NDArray[np.int32]
Floats = NDArray[np.float64]

_THREADS: Final = 2
_FEW_RATINGS: Final = 500_000  # below, a second set of lists costs more than it saves
_MOST_RATINGS: Final = 2**31 - 1  # places are kept in 32 bits


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
        shrink: So many common raters halve a similarity (n: the common raters).
    """
    norms = np.sqrt(ratings.item_sums(ratings.ratings**2))
    inverse = np.divide(1, norms, out=np.zeros(norms.size), where=norms > 0)
    units = ratings.ratings * inverse[ratings.items]
    if shrink:
        return _counted(ratings, units, k, pearson=False, fewest=1, shrink=shrink)
    return _best(ratings, units, k, kernels.cosine_rows, ())


def adjusted_cosine_neighbors(ratings: RatingRows, k: int, *, shrink: float = 0.0) -> Neighbors:
    """The cosine of ratings less the person's own mean (Sarwar et al. 2001)."""
    counts = np.maximum(np.diff(ratings.starts), 1)
    means = ratings.person_sums(ratings.ratings) / counts
    centered = ratings.with_ratings(ratings.ratings - means[ratings.persons])
    return cosine_neighbors(centered, k, shrink=shrink)


def pearson_neighbors(
    ratings: RatingRows, k: int, *, fewest: int = 1, shrink: float = 0.0
) -> Neighbors:
    """The correlation of two items' ratings over the people who rated both.

    Both are centered on their means over these people; no similarity where one does not vary.

    Args:
        ratings: What counts.
        k: Neighbors of each item.
        fewest: Items with fewer common raters are no neighbors.
        shrink: As for ``cosine_neighbors``.
    """
    check.whole(at_least=1, fewest=fewest)
    return _counted(ratings, ratings.ratings, k, pearson=True, fewest=fewest, shrink=shrink)


def matrix_neighbors(similarities: NDArray[Any], k: int) -> Neighbors:
    """The best of each row of a matrix of similarities, the diagonal left out.

    >>> matrix_neighbors(np.array([[9, 0.1, 0.3], [0.1, 9, -1], [0.3, -1, 9]]), 2).codes.tolist()
    [[2, 1], [0, -1], [0, -1]]
    """
    if similarities.ndim != 2 or similarities.shape[0] != similarities.shape[1]:
        raise InputError(f"similarities must be a square matrix, got shape {similarities.shape}.")
    lists = _empty_lists(len(similarities), k)
    kernels.matrix_rows(similarities, lists)
    kernels.sort_lists(lists)
    return Neighbors(codes=lists[1], weights=lists[0])


def _counted(
    ratings: RatingRows, values: Floats, k: int, *, pearson: bool, fewest: int, shrink: float
) -> Neighbors:
    if not 0 <= shrink < np.inf:
        raise InputError(f"shrink must be >= 0, got {shrink!r}.")
    return _best(ratings, values, k, kernels.counted_rows, (pearson, fewest, float(shrink)))


def _best(
    ratings: RatingRows,
    values: Floats,
    k: int,
    kernel: Callable[..., None],
    options: tuple[bool | int | float, ...],
) -> Neighbors:
    """Run a kernel by threads, each on every so-manyth item and with lists of its own."""
    if ratings.items.size > _MOST_RATINGS:
        raise InputError(
            f"at most {_MOST_RATINGS:,} ratings can be compared, got {ratings.items.size:,}."
        )
    item_starts = np.concatenate([[0], np.cumsum(ratings.counts)]).astype(np.int64)
    places, ends = np.empty((2, ratings.items.size), dtype=np.uint32)
    items = ratings.items.view(np.uint32)
    kernels.transpose(ratings.starts, items, item_starts, places, ends)
    given = items, values, item_starts, places, ends
    threads = 1 if ratings.items.size < _FEW_RATINGS else _THREADS
    lists = [_empty_lists(ratings.catalogue, k) for _ in range(threads)]
    with ThreadPoolExecutor(threads, thread_name_prefix="sfumato-neighbors") as pool:
        tasks = [
            pool.submit(kernel, first, threads, *given, *options, own)
            for first, own in enumerate(lists)
        ]
        for task in tasks:
            task.result()
    for other in lists[1:]:
        kernels.merge(lists[0], other)
    kernels.sort_lists(lists[0])
    return Neighbors(codes=lists[0][1], weights=lists[0][0])


def _empty_lists(items: int, k: int) -> kernels.Lists:
    width = min(check.whole(at_least=1, k=k), max(items - 1, 1))
    return (
        np.zeros((items, width)),
        np.full((items, width), -1, dtype=np.int32),
        np.zeros(items, dtype=np.int64),
        np.zeros(items),
    )
