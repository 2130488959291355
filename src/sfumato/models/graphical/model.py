"""The graphical model: a distribution over all columns, stored as the tables of a junction tree.

Fitted to noisy marginals by maximum likelihood. It gives any marginal, also of columns that no
clique holds together, and draws rows. Inside, columns are sorted by size, so that a table's last
axis is its longest.

Rows are drawn clique by clique, given what a clique shares with the last.
Rounded draws have less variance than independent ones: within each block of rows that agree on
the conditioning columns the counts are as near to the model as whole numbers can be. Rows are
dealt to the block's positions at random, so columns that are not tied in the model stay untied.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError
from sfumato.models.graphical.beliefs import Beliefs, Floats, marginals
from sfumato.models.graphical.junction_tree import Clique, JunctionTree, cells, tree_of
from sfumato.models.model import Rows
from sfumato.randomness import Rng
from sfumato.schema.measurement import Coarse, Groups, Measurement
from sfumato.schema.schema import Marginal, Schema


@dataclass(frozen=True, kw_only=True, eq=False)
class GraphicalModel:
    """Beliefs over a view of a schema, with what is needed to split merged codes again."""

    view: Coarse
    total: float
    beliefs: Beliefs
    """Over the view's columns, sorted by size (``Numbering``)."""
    within: Mapping[str, Floats] = field(default_factory=dict)
    """For a column with merged codes, the share of each code within its group."""
    potentials: Mapping[Clique, Floats] = field(default_factory=dict)
    """Where a later fit with more measurements starts from."""

    @staticmethod
    def of_tables(
        schema: Schema, *, total: float, tables: Mapping[Marginal, Floats]
    ) -> "GraphicalModel":
        """The model with these tables of shares, which agree on the columns that they share.

        Args:
            schema: The columns; each is in a table.
            total: The number of rows that the model stands for.
            tables: Shares of single columns or of the edges of a forest, and, in general, of sets
                of columns that are the cliques of a triangulated graph.
        """
        numbering = Numbering(schema)
        flat = {numbering.clique(n): numbering.inside(table, n) for n, table in tables.items()}
        tree = tree_of(numbering.sizes, flat)
        beliefs = Beliefs.of(tree, [flat[clique] for clique in tree.cliques])
        return GraphicalModel(view=Coarse(fine=schema, groups={}), total=total, beliefs=beliefs)

    @property
    def schema(self) -> Schema:
        """Its columns, with all their codes."""
        return self.view.fine

    @cached_property
    def numbering(self) -> "Numbering":
        """How columns are numbered inside."""
        return Numbering(self.view.schema)

    @property
    def tree(self) -> JunctionTree:
        """Its cliques."""
        return self.beliefs.tree

    @property
    def cliques(self) -> list[Marginal]:
        """The columns of each clique."""
        return [self.numbering.names_of(clique) for clique in self.tree.cliques]

    def marginal(self, names: Marginal) -> Floats:
        """Counts of a marginal, in the order of the given names."""
        return self.marginals([names])[0]

    def marginals(self, requested: Sequence[Marginal]) -> list[Floats]:
        """Counts of several marginals; what they share is computed once."""
        return [self._fine(counts, names) for counts, names in self._coarse(requested)]

    def coarse_marginals(self, requested: Sequence[Marginal]) -> list[Floats]:
        """Counts of several marginals with codes merged as in the view."""
        return [counts for counts, _ in self._coarse(requested)]

    def draw(self, n_rows: int, *, rng: Rng, rounded: bool = True) -> Rows:
        """Rows in random order.

        Args:
            n_rows: How many.
            rng: Where the randomness comes from.
            rounded: Each clique's counts as close to the model's as whole numbers can be, given
                the columns that it hangs on; otherwise rows are drawn independently.
        """
        codes = draw(self.beliefs, n_rows, rng=rng, rounded=rounded)
        named = {name: codes[index] for name, index in self.numbering.index.items()}
        return {
            name: self._split_groups(name, named[name], rng=rng, rounded=rounded)
            for name in self.schema.names
        }

    def arrays(self) -> dict[str, NDArray[np.float64]]:
        """Cliques as numbers of columns, their tables, groups of merged codes and shares."""
        saved: dict[str, NDArray[np.float64]] = {"total": np.array(self.total)}
        for index, (clique, table) in enumerate(
            zip(self.cliques, self.beliefs.tables, strict=True)
        ):
            columns = [self.schema.names.index(name) for name in clique]
            saved[f"clique_{index}"] = np.array(columns, dtype=np.float64)
            saved[f"table_{index}"] = table
        for name, groups in self.view.groups.items():
            column = self.schema.names.index(name)
            saved[f"groups_{column}"] = groups.astype(np.float64)
            saved[f"within_{column}"] = self.within[name]
        return saved

    @staticmethod
    def from_arrays(schema: Schema, arrays: Mapping[str, NDArray[np.float64]]) -> "GraphicalModel":
        """The model that ``arrays`` saved."""
        merged = {
            name: index for index, name in enumerate(schema.names) if f"groups_{index}" in arrays
        }
        groups = {name: arrays[f"groups_{p}"].astype(np.int64) for name, p in merged.items()}
        view = Coarse(fine=schema, groups=groups)
        numbering = Numbering(view.schema)
        count = sum(key.startswith("clique_") for key in arrays)
        tables = {}
        for index in range(count):
            names = tuple(schema.names[int(c)] for c in arrays[f"clique_{index}"])
            tables[numbering.clique(names)] = arrays[f"table_{index}"]
        tree = tree_of(numbering.sizes, list(tables))
        return GraphicalModel(
            view=view,
            total=float(arrays["total"]),
            beliefs=Beliefs.of(tree, [tables[clique] for clique in tree.cliques]),
            within={name: arrays[f"within_{index}"] for name, index in merged.items()},
        )

    def _coarse(self, requested: Sequence[Marginal]) -> Iterable[tuple[Floats, Marginal]]:
        numbering = self.numbering
        cliques = [numbering.clique(names) for names in requested]
        for names, shares in zip(requested, marginals(self.beliefs, cliques), strict=True):
            yield self.total * numbering.outside(shares, names), names

    def _fine(self, counts: Floats, names: Marginal) -> Floats:
        """Counts of groups spread over their codes."""
        for axis, name in enumerate(names):
            if name in self.view.groups:
                shape = [-1 if index == axis else 1 for index in range(len(names))]
                spread = counts.take(self.view.groups[name], axis=axis)
                counts = spread * self.within[name].reshape(shape)
        return counts

    def _split_groups(
        self, name: str, codes: NDArray[np.int64], *, rng: Rng, rounded: bool
    ) -> NDArray[np.int64]:
        """Codes of groups as codes of the column, by the shares within each group."""
        if name not in self.view.groups:
            return codes
        groups = self.view.groups[name]
        order = np.argsort(groups, kind="stable")
        sizes = np.bincount(groups)
        starts = np.cumsum(sizes) - sizes
        shares = self.within[name][order]
        inside = draw_within(shares, sizes, codes, rng=rng, rounded=rounded)
        return np.asarray(order[starts[codes] + inside], dtype=np.int64)


class Numbering:
    """Columns of a schema by rising size: how a model numbers them inside."""

    def __init__(self, schema: Schema) -> None:
        order = sorted(range(len(schema)), key=lambda number: (schema.columns[number].size, number))
        self.names = tuple(schema.names[number] for number in order)
        self.sizes = tuple(schema.columns[number].size for number in order)
        self.index = {name: number for number, name in enumerate(self.names)}

    def clique(self, names: Iterable[str]) -> Clique:
        """The numbers of some columns, rising."""
        return tuple(sorted(self.index[name] for name in names))

    def names_of(self, clique: Clique) -> Marginal:
        """The names of numbered columns."""
        return tuple(self.names[index] for index in clique)

    def inside(self, table: Floats, names: Marginal) -> Floats:
        """A table with an axis for each name as a flat one in rising order of numbers."""
        order = sorted(range(len(names)), key=lambda axis: self.index[names[axis]])
        return np.ascontiguousarray(table.transpose(order)).reshape(-1)

    def outside(self, flat: Floats, names: Marginal) -> Floats:
        """A flat table in rising order of numbers with an axis for each name."""
        clique = self.clique(names)
        table = flat.reshape([self.sizes[index] for index in clique])
        return table.transpose([clique.index(self.index[name]) for name in names])


NEVER_RARE: Final = 0.1
"""A code with this part of all rows is never merged, however large the noise: else a column of two
or three values would be gone at a small epsilon."""


def rare_groups(
    schema: Schema,
    measurements: Sequence[Measurement],
    *,
    total: float,
    sigmas: float = 2.0,
    numbers: Coarse | None = None,
) -> Coarse:
    """The view in which the rare codes of each column are one, and bins of numbers are few.

    Rare is a noisy count below ``min(sigmas * sigma, NEVER_RARE * total)``; one rare code alone
    stays as it is. Columns that a declared impossible combination names are left whole, since the
    combination names their codes. McKenna, Miklau, Sheldon 2021, "Winning the NIST contest",
    arXiv 2108.04978, section 4.2, with 3 sigmas.

    Args:
        schema: The columns.
        measurements: Those of single columns are used, by precision if there are several.
        total: The number of rows.
        sigmas: Counts below this many standard deviations of noise are rare; 0 merges nothing.
        numbers: The groups of the bins of numbers, where they are known.
    """
    if not 0 <= sigmas < np.inf:
        raise InputError(f"sigmas must be a number of at least 0, got {sigmas!r}")
    tied = {name for combination in schema.impossible for name in combination.names}
    groups = {} if numbers is None else dict(numbers.groups)
    for name in schema.names:
        if name in groups:
            continue
        own = [one for one in measurements if one.target == (name,) and one.merged is None]
        if own and name not in tied:
            counts, sigma = _averaged(own)
            rare = counts < min(sigmas * sigma, NEVER_RARE * total)
            if rare.sum() >= 2:
                groups[name] = _groups(rare)
    return Coarse(fine=schema, groups=groups)


def _averaged(own: Sequence[Measurement]) -> tuple[NDArray[np.float64], float]:
    """Measurements of one column weighed by precision, and the noise that is left."""
    public = [one.values for one in own if one.sigma_counts == 0]
    if public:
        return public[0], 0.0
    precision = np.array([one.sigma_counts**-2.0 for one in own])
    counts = np.tensordot(precision / precision.sum(), [one.values for one in own], axes=1)
    return counts, float(precision.sum() ** -0.5)


def _groups(rare: NDArray[np.bool_]) -> Groups:
    """A number for each code, all rare ones with that of the first of them.

    >>> _groups(np.array([False, True, False, True])).tolist()
    [0, 1, 2, 1]
    """
    first = int(np.flatnonzero(rare)[0])
    leader = np.where(rare, first, np.arange(rare.size))
    return np.asarray(np.unique(leader, return_inverse=True)[1], dtype=np.int64)


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

    Rounded: the g rows of a block, in random order, take the positions (k + offset) / g of its
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
