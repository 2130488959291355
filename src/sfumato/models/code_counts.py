"""Counts of a block of codes that is public already, without widening it.

A block has a row for each attribute and a column for each record. Compiled code is made for three
types only, so ``narrow`` brings every other one down to these.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from math import prod
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError
from sfumato.models.code_kernels import count_cells, count_pair, count_two_pairs

Codes = NDArray[Any]
Pair = tuple[int, int]

_THREADS: Final = 2
"""Threads that count pairs; one for each core of a small machine."""
_MOST_RECORDS: Final = 2**32 - 1  # pairs are counted in 32 bits


def narrow(codes: Codes, size: int) -> Codes:
    """Codes below ``size`` as 8, 16 or 32 bits without a sign: no copy of what already is.

    >>> narrow(np.array([3, 299]), 300).dtype
    dtype('uint16')
    """
    fits = codes.dtype.kind == "u" and codes.dtype.itemsize <= 4
    return np.ascontiguousarray(codes, dtype=codes.dtype if fits else np.min_scalar_type(size - 1))


def cell_counts(block: Codes, sizes: Sequence[int]) -> NDArray[np.int64]:
    """How many records are in each cell, an axis for each attribute of a ``narrow`` block.

    >>> cell_counts(np.array([[0, 1, 1], [2, 0, 2]], dtype=np.uint8), (2, 3)).tolist()
    [[0, 0, 1], [1, 0, 1]]
    """
    counts = np.zeros(prod(sizes), dtype=np.int64)
    count_cells(block, np.array(sizes, dtype=np.uint64), counts)
    return counts.reshape(tuple(sizes))


def map_pairs(
    judge: Callable[[Pair, NDArray[np.uint32]], float], block: Codes, sizes: Sequence[int]
) -> dict[Pair, float]:
    """A number from the table of counts of every two attributes, by two threads.

    Tables are made two at a time and dropped when judged, so memory holds a few of them whatever
    the number of pairs. The result does not depend on the threads.

    Args:
        judge: From a pair (i, j), i < j, and its table, values of i by values of j, to a number.
        block: Codes, each below the size of its attribute.
        sizes: How many values each attribute has.
    """
    codes = _checked(block, sizes)

    def one(left: int, rights: Sequence[int]) -> dict[Pair, float]:
        tables = [np.zeros((sizes[left], sizes[right]), dtype=np.uint32) for right in rights]
        columns = [codes[right] for right in rights]
        if len(rights) == 2:
            count_two_pairs(codes[left], *columns, *tables)
        else:
            count_pair(codes[left], *columns, *tables)
        named = zip(rights, tables, strict=True)
        return {(left, right): judge((left, right), table) for right, table in named}

    result: dict[Pair, float] = {}
    with ThreadPoolExecutor(_THREADS, thread_name_prefix="sfumato-pairs") as pool:
        tasks: list[Future[dict[Pair, float]]] = [
            pool.submit(one, left, rights) for left, rights in _tasks(len(codes))
        ]
        for task in tasks:
            result |= task.result()
    return result


def _tasks(attributes: int) -> Iterator[tuple[int, list[int]]]:
    """Each attribute with the later ones, two at a time."""
    for left in range(attributes):
        later = iter(range(left + 1, attributes))
        while rights := list(islice(later, 2)):
            yield left, rights


def _checked(block: Codes, sizes: Sequence[int]) -> Codes:
    codes = np.asarray(block)
    if codes.ndim != 2 or len(codes) != len(sizes) or codes.dtype.kind not in "iu":
        raise InputError(
            f"block must hold whole codes, a row for each of {len(sizes)} attributes, got "
            f"{codes.dtype} of shape {codes.shape}."
        )
    if not 0 < codes.shape[1] <= _MOST_RECORDS:
        raise InputError(f"block must have 1 to {_MOST_RECORDS:,} records, got {codes.shape[1]:,}.")
    for attribute, (row, size) in enumerate(zip(codes, sizes, strict=True)):
        if row.min() < 0 or row.max() >= size:
            raise InputError(f"attribute {attribute} has codes outside 0 to {size - 1}")
    return narrow(codes, max(sizes))
