"""Tables about nobody, made to measure with: independent columns, and columns tied by a tree.

On independent uniform columns no method can be told from another: there is no structure to keep,
and the share of every code is right whatever was done to it. Hence the second generator.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato import check
from sfumato.errors import InputError
from sfumato.randomness import Rng
from sfumato.schema import Integer, Schema

Codes = NDArray[np.unsignedinteger[Any]]
Sizes = tuple[int, ...]


def independent_table(
    columns: int, *, sizes_between: tuple[int, int], rows: int, rng: Rng
) -> tuple[Sizes, Codes]:
    """Columns of sizes drawn from a range, ends included, and codes uniform and independent.

    Returns:
        The size of each column (see ``integer_schema``), and a block of codes, (column, row).
    """
    sizes, codes = _empty(columns, sizes_between, rows, rng)
    for size, column in zip(sizes, codes, strict=True):
        column[:] = rng.below(size, rows)
    return sizes, codes


def tree_table(
    columns: int, *, sizes_between: tuple[int, int], rows: int, strength: float, rng: Rng
) -> tuple[Sizes, Codes, tuple[int | None, ...]]:
    """Columns in which each but the first depends on one drawn from those before it.

    A code is, with probability ``strength``, the parent's code through a random map, as even as
    the sizes allow, and else uniform; the first column is uniform.

    Returns:
        The sizes, the block of codes, and the parent of each column, None for the first.
    """
    if not isinstance(strength, float | int) or not 0 <= strength <= 1:
        raise InputError(f"strength must be between 0 and 1, got {strength!r}.")
    sizes, codes = _empty(columns, sizes_between, rows, rng)
    codes[0] = rng.below(sizes[0], rows)
    parents: list[int | None] = [None]
    for child in range(1, columns):
        parent = int(rng.below(child, 1)[0])
        image = rng.permutation(sizes[parent]) % sizes[child]
        copied = rng.uniform(rows) < strength
        codes[child] = np.where(copied, image[codes[parent]], rng.below(sizes[child], rows))
        parents.append(parent)
    return sizes, codes, tuple(parents)


def integer_schema(sizes: Sizes, *, dataset: str | None = None) -> Schema:
    """Columns named 0, 1, 2 ... with the values 1 to their size."""
    named = enumerate(sizes)
    return Schema(
        dataset=dataset,
        columns=tuple(Integer(name=str(index), low=1, high=size, step=1) for index, size in named),
    )


def _empty(
    columns: int, sizes_between: tuple[int, int], rows: int, rng: Rng
) -> tuple[Sizes, Codes]:
    check.whole(at_least=1, columns=columns)
    check.whole(at_least=1, rows=rows)
    low = check.whole(at_least=1, smallest_size=sizes_between[0])
    high = check.whole(at_least=low, at_most=2**16, largest_size=sizes_between[1])
    sizes = tuple((low + rng.below(high - low + 1, columns)).tolist())
    return sizes, np.empty((columns, rows), dtype=np.min_scalar_type(high - 1))
