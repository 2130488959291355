"""Rows drawn from a junction tree: one clique after the other, given what it shares with the last.

Rounded draws have less variance than independent ones: within each block of rows that agree on
the conditioning columns the counts are as near to the model as whole numbers can be. Rows are
dealt to the block's places at random, so columns that are not tied in the model stay untied.
"""

import numpy as np
from numpy.typing import NDArray

from sfumato.models.beliefs import Beliefs, Floats
from sfumato.models.junction import Clique, cells
from sfumato.randomness import Rng

Codes = NDArray[np.int64]


def draw(beliefs: Beliefs, n_rows: int, *, rng: Rng, rounded: bool) -> Codes:
    """Codes (column, row) in random order of rows."""
    tree = beliefs.tree
    codes = np.zeros((len(tree.sizes), n_rows), dtype=np.int64)
    for table, clique, given in zip(beliefs.tables, tree.cliques, tree.separators, strict=True):
        new = tuple(column for column in clique if column not in given)
        shaped = table.reshape([tree.sizes[column] for column in clique])
        axes = [clique.index(column) for column in (*given, *new)]
        blocks = shaped.transpose(axes).reshape(cells(tree.sizes, given), -1)
        cell = draw_given(blocks, _cell(codes, tree.sizes, given), rng=rng, rounded=rounded)
        for column in reversed(new):
            cell, codes[column] = np.divmod(cell, tree.sizes[column])
    return codes


def draw_given(blocks: Floats, given: Codes, *, rng: Rng, rounded: bool) -> Codes:
    """For each row a cell of its block, in proportion to the block's weights.

    Rounded: the g rows of a block, in random order, take the places (k + offset) / g of its
    cumulated weights: systematic sampling, Madow 1949. A block without weight is taken as even.
    """
    if rounded:
        from sfumato.models._draw_kernels import deal_evenly

        # In one layout, whatever that of the blocks: the kernel is compiled for one.
        weights = np.maximum(blocks, 0.0, order="C")
        out = np.empty(given.size, dtype=np.int64)
        deal_evenly(given, rng.words(given.size), weights, rng.uniform(len(blocks)), out)
        return out
    weights = np.where(blocks.sum(axis=1, keepdims=True) > 0, np.maximum(blocks, 0.0), 1.0)
    mass = np.cumsum(weights, axis=1)
    ends = mass / mass[:, -1:]
    wide = (ends + np.arange(len(ends))[:, None]).reshape(-1)
    found = np.searchsorted(wide, given + rng.uniform(given.size), side="right")
    last = (ends < 1).sum(axis=1)  # beyond it nothing has weight; a sum rounded up would go there
    return np.asarray(np.minimum(found - given * blocks.shape[1], last[given]), dtype=np.int64)


def _cell(codes: Codes, sizes: tuple[int, ...], columns: Clique) -> Codes:
    """The row-major cell of each row among some columns."""
    cell = np.zeros(codes.shape[1], dtype=np.int64)
    for column in columns:
        cell = cell * sizes[column] + codes[column]
    return cell
