"""Rows drawn from a junction tree: one clique after the other, given what it shares with the last.

Rounded draws have less variance than independent ones: within each block of rows that agree on
the conditioning columns the counts are as near to the model as whole numbers can be. Rows are
dealt to the block's places at random, so columns that are not tied in the model stay untied.
"""

import numpy as np
from numpy.typing import NDArray

from sfumato.models.graphical.beliefs import Beliefs, Floats
from sfumato.models.graphical.junction_tree import Clique, cells
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
        # In one layout, whatever that of the blocks: the kernel is compiled for one.
        weights = np.maximum(blocks, 0.0, order="C").reshape(-1)
        return _deal(weights, np.full(len(blocks), blocks.shape[1]), given, rng)
    weights = np.where(blocks.sum(axis=1, keepdims=True) > 0, np.maximum(blocks, 0.0), 1.0)
    mass = np.cumsum(weights, axis=1)
    ends = mass / mass[:, -1:]
    wide = (ends + np.arange(len(ends))[:, None]).reshape(-1)
    result = np.searchsorted(wide, given + rng.uniform(given.size), side="right")
    last = (ends < 1).sum(axis=1)  # beyond it nothing has weight; a sum rounded up would go there
    return np.asarray(np.minimum(result - given * blocks.shape[1], last[given]), dtype=np.int64)


def draw_within(weights: Floats, sizes: Codes, given: Codes, *, rng: Rng, rounded: bool) -> Codes:
    """As ``draw_given``, of blocks of different sizes that stand one after the other.

    A table of them would be as wide as the largest: too wide where most values of a column are
    rare and merged into one.
    """
    if rounded:
        return _deal(np.maximum(weights, 0.0), sizes, given, rng)
    cell, ends = np.zeros(given.size, dtype=np.int64), np.cumsum(sizes)
    for block in np.unique(given[sizes[given] > 1]):
        rows, end = np.flatnonzero(given == block), ends[block]
        only = weights[None, end - sizes[block] : end]
        cell[rows] = draw_given(only, np.zeros_like(rows), rng=rng, rounded=False)
    return cell


def _deal(weights: Floats, sizes: Codes, given: Codes, rng: Rng) -> Codes:
    """A cell of its block for each row, rounded."""
    from sfumato.models.graphical.kernels import deal_evenly

    out = np.empty(given.size, dtype=np.int64)
    begins = np.concatenate([[0], np.cumsum(sizes)])
    deal_evenly(given, rng.words(given.size), weights, begins, rng.uniform(sizes.size), out)
    return out


def _cell(codes: Codes, sizes: tuple[int, ...], columns: Clique) -> Codes:
    """The row-major cell of each row among some columns."""
    cell = np.zeros(codes.shape[1], dtype=np.int64)
    for column in columns:
        cell = cell * sizes[column] + codes[column]
    return cell
