"""A forest over columns: each edge a two-way table, columns independent given their neighbors.

The joint distribution is the product of the edges' tables over the one-way tables of what they
share: P(x) = prod_edges P(x_i, x_j) / prod_columns P(x_i)^(degree - 1). Chow, Liu 1968,
"Approximating discrete probability distributions with dependence trees".
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError
from sfumato.models.answers.dependence import shrink, spanning_tree
from sfumato.models.answers.pair_tables import Bins, Edge, NoisyTable, whole
from sfumato.models.graphical.kernels import deal
from sfumato.models.model import Rows, project, round_counts
from sfumato.randomness import Rng
from sfumato.schema.schema import Marginal, Schema

Table = NDArray[np.float64]

RAKING_ROUNDS: Final = 30
"""How often a two-way table is scaled; what is left then is moved as a product."""
_AGREE: Final = 1e-6
"""How far a table's sums may be from the columns' own shares."""
_LIFT: Final = 1e-6
"""The part of the product that each cell gets before raking: a zero would stay."""


@dataclass(frozen=True, kw_only=True, eq=False)
class TreeModel:
    """Shares of each column's codes and, for each edge of a forest, of its two columns' pairs."""

    schema: Schema
    total: float
    shares: dict[str, Table]
    pairs: dict[Edge, Table]
    """By edge; every table sums to the shares of its two columns."""

    def __post_init__(self) -> None:
        _check_forest(self.schema, self.pairs)
        for (one, other), table in self.pairs.items():
            if table.shape != (self.shares[one].size, self.shares[other].size):
                raise InputError(f"the table of {one!r} and {other!r} has the shape {table.shape}")
            sides = ((table.sum(axis=1), one), (table.sum(axis=0), other))
            if any(np.abs(side - self.shares[name]).max() > _AGREE for side, name in sides):
                raise InputError(
                    f"the table of {one!r} and {other!r} says something else about a column than "
                    "the column's own shares. Rake it first."
                )

    def marginal(self, names: Marginal) -> Table:
        """Counts of a marginal: sums pushed along the tree from the outside in."""
        counts, order = np.array(self.total), list[str]()
        left = list(names)
        while left:
            part, axes = self._component_marginal(left[0], frozenset(left))
            counts, order = np.multiply.outer(counts, part), order + axes
            left = [name for name in left if name not in axes]
        return counts.transpose([order.index(name) for name in names])

    def draw(self, n_rows: int, *, rng: Rng) -> Rows:
        """Columns from the roots out; rows of equal parents get rounded shares, in random order."""
        rows: dict[str, NDArray[np.int64]] = {}
        for name, parent in self._walk():
            if parent is None:
                counts = round_counts(self.shares[name], n_rows, rng=rng)
                codes = np.repeat(np.arange(counts.size), counts)
                rows[name] = codes[rng.permutation(n_rows)]
            else:
                rows[name] = draw_given(rows[parent], self._given[parent, name], rng=rng)
        return {name: rows[name] for name in self.schema.names}

    def arrays(self) -> dict[str, Table]:
        """The shares by column and the tables by edge, under the columns' indices in the schema."""
        number = {name: str(i) for i, name in enumerate(self.schema.names)}
        columns = {f"column_{number[name]}": table for name, table in self.shares.items()}
        edges = {f"edge_{number[i]}_{number[j]}": table for (i, j), table in self.pairs.items()}
        return {"total": np.array(self.total), **columns, **edges}

    @staticmethod
    def from_arrays(schema: Schema, arrays: Mapping[str, Table]) -> "TreeModel":
        """The model that ``arrays`` was called of."""
        names = schema.names
        shares = {name: arrays[f"column_{number}"] for number, name in enumerate(names)}
        pairs: dict[Edge, Table] = {}
        for key, table in arrays.items():
            if key.startswith("edge_"):
                one, other = key.removeprefix("edge_").split("_")
                pairs[names[int(one)], names[int(other)]] = table
        return TreeModel(schema=schema, total=float(arrays["total"]), shares=shares, pairs=pairs)

    @cached_property
    def _neighbors(self) -> dict[str, list[str]]:
        result: dict[str, list[str]] = {name: [] for name in self.schema.names}
        for one, other in self.pairs:
            result[one].append(other)
            result[other].append(one)
        return result

    def _walk(self, root: str | None = None) -> Iterator[tuple[str, str | None]]:
        """Columns with their parents, parents first: of one root's tree, or of the forest."""
        visited: set[str] = set()
        for start in self.schema.names if root is None else (root,):
            waiting: list[tuple[str, str | None]] = [] if start in visited else [(start, None)]
            while waiting:
                name, parent = waiting.pop()
                visited.add(name)
                yield name, parent
                waiting += [(near, name) for near in self._neighbors[name] if near != parent]

    @cached_property
    def _given(self) -> dict[Edge, Table]:
        """By parent and column, a row of the column's shares for each code of the parent.

        The column's own shares where the parent's code holds nothing.
        """
        result: dict[Edge, Table] = {}
        for (one, other), joint in self.pairs.items():
            for edge, table in (((one, other), joint), ((other, one), joint.T)):
                totals = table.sum(axis=1, keepdims=True)
                own = np.broadcast_to(self.shares[edge[1]], table.shape).copy()
                result[edge] = np.divide(table, totals, out=own, where=totals > 0)
        return result

    def _component_marginal(self, root: str, requested: frozenset[str]) -> tuple[Table, list[str]]:
        """The shares of the requested columns in a root's tree, and their order.

        Each column hands to its parent a table: first axis the parent's codes, then the requested
        columns beyond. A column that is not requested is summed out on the way, and one beyond
        which nothing is requested has no part.
        """
        inbox: dict[str, tuple[Table, list[str]]] = {}
        for name, parent in reversed(list(self._walk(root))):
            if parent is None or not (name in requested or name in inbox):
                continue
            given = self._given[parent, name]
            table, axes = inbox.get(name, (np.ones(given.shape[1]), []))
            if name in requested:
                sent = given.reshape(*given.shape, *[1] * len(axes)) * table
                axes = [name, *axes]
            else:
                sent = np.tensordot(given, table, axes=1)
            inbox[parent] = _joined(inbox.get(parent), (sent, axes))
        own = self.shares[root]
        table, axes = inbox.get(root, (np.ones(own.size), []))
        return table * own.reshape(-1, *[1] * len(axes)), [root, *axes]


def fit_tree(
    schema: Schema,
    *,
    total: float,
    shares: Mapping[str, Table],
    pairs: Mapping[Edge, NoisyTable],
    bins: Mapping[str, Bins] | None = None,
) -> TreeModel:
    """The tree with given one-way shares and noisy tables of its edges.

    Each edge's table is shrunk towards the product, brought to the simplex and raked to the
    one-way shares. ``agreed_tables`` makes these, and the tables, of all that is known.

    Args:
        schema: The columns.
        total: The number of rows that the model stands for.
        shares: By column, one share a code.
        pairs: By edge, one frequency a pair of bins; the edges form a forest.
        bins: Of the columns whose pair tables are coarser than their codes.
    """
    _check_forest(schema, pairs)
    fitted: dict[Edge, Table] = {}
    for (one, other), table in pairs.items():
        cuts = [(bins or {}).get(name) or whole(schema[name].size) for name in (one, other)]
        rows, columns = cuts[0].sums(shares[one]), cuts[1].sums(shares[other])
        shrunk = shrink(table.frequencies, np.outer(rows, columns), table.variance)
        joint = rake(project(shrunk, 1.0), rows, columns)
        joint = cuts[0].expand(joint, shares[one], axis=0)
        fitted[one, other] = cuts[1].expand(joint, shares[other], axis=1)
    return TreeModel(schema=schema, total=total, shares=dict(shares), pairs=fitted)


def rake(table: Table, rows: Table, columns: Table, *, rounds: int = RAKING_ROUNDS) -> Table:
    """The table scaled by row and by column until it sums to these shares, exactly.

    Iterative proportional fitting: of all tables with these sums the one nearest in relative
    entropy. Deming, Stephan 1940. Every cell gets a millionth of the product first, because zeros
    would stay. What is left after the last round is moved as a product: Altschuler, Weed,
    Rigollet 2017, arXiv 1705.09634, algorithm 2.

    Args:
        table: Not negative.
        rows: What the rows shall sum to.
        columns: What the columns shall sum to: as much in all.
        rounds: How often to scale.
    """
    result = table + _LIFT * np.outer(rows, columns)
    for _ in range(rounds):
        result = result * _ratio(columns, result.sum(axis=0))
        result = result * _ratio(rows, result.sum(axis=1))[:, None]
    result = result * np.minimum(_ratio(columns, result.sum(axis=0)), 1.0)
    short_rows, short_columns = rows - result.sum(axis=1), columns - result.sum(axis=0)
    short = float(short_columns.sum())
    return result + np.outer(short_rows, short_columns) / short if short > 0 else result


def _ratio(target: Table, current: Table) -> Table:
    return np.divide(target, current, out=np.zeros_like(current), where=current > 0)


def _joined(
    here: tuple[Table, list[str]] | None, new: tuple[Table, list[str]]
) -> tuple[Table, list[str]]:
    """Two messages to one column as one: multiplied for each of its codes."""
    if here is None:
        return new
    (left, left_axes), (right, right_axes) = here, new
    left = left.reshape(*left.shape, *[1] * len(right_axes))
    right = right.reshape(right.shape[0], *[1] * len(left_axes), *right.shape[1:])
    return left * right, left_axes + right_axes


def draw_given(parents: NDArray[np.int64], given: Table, *, rng: Rng) -> NDArray[np.int64]:
    """A code for each row by its parent's: rows of equal parents get each code's share, rounded.

    Systematic sampling in every block, as ``round_counts`` does it in one; within a block in
    random order, so that nothing but the parent decides.
    """
    sizes = np.bincount(parents, minlength=len(given))
    reached = np.cumsum(given, axis=1)
    reached = reached / reached[:, -1:]
    offsets = rng.uniform(len(given))[:, None]
    ends = np.minimum(np.floor(reached * sizes[:, None] + offsets), sizes[:, None])
    counts = np.asarray(np.diff(ends, axis=1, prepend=0), dtype=np.int64)
    out = np.empty(parents.size, dtype=np.int64)
    deal(parents, rng.words(parents.size), counts, out)
    return out


def _check_forest(schema: Schema, edges: Mapping[Edge, object]) -> None:
    """Refuse edges of unknown columns and circles."""
    forest = spanning_tree({(schema[one].name, schema[other].name): 1.0 for one, other in edges})
    for edge in edges:
        if edge not in forest:
            raise InputError(
                f"the edge {edge[0]!r} to {edge[1]!r} closes a circle: a tree model needs a "
                "forest. Use spanning_tree to choose the edges."
            )
