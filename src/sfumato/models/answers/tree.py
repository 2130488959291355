"""A forest over columns: each edge a two-way table, columns independent given their neighbors.

The joint distribution is the product of the edges' tables over the one-way tables of what they
share: P(x) = prod_edges P(x_i, x_j) / prod_columns P(x_i)^(degree - 1). Chow, Liu 1968,
"Approximating discrete probability distributions with dependence trees".
"""

from collections.abc import Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError
from sfumato.models.answers.dependence import shrink, spanning_tree
from sfumato.models.answers.pair_tables import Bins, Edge, NoisyTable, whole
from sfumato.models.graphical.kernels import deal
from sfumato.models.graphical.model import GraphicalModel
from sfumato.models.model import project
from sfumato.randomness import Rng
from sfumato.schema.schema import Marginal, Schema

Table = NDArray[np.float64]

RAKING_ROUNDS: Final = 30
"""How often a two-way table is scaled; what is left then is moved as a product."""
_LIFT: Final = 1e-6
"""The part of the product that each cell gets before raking: a zero would stay."""


def fit_tree(
    schema: Schema,
    *,
    total: float,
    shares: Mapping[str, Table],
    pairs: Mapping[Edge, NoisyTable],
    bins: Mapping[str, Bins] | None = None,
) -> GraphicalModel:
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
    fitted: dict[Marginal, Table] = {(name,): table for name, table in shares.items()}
    for (one, other), table in pairs.items():
        cuts = [(bins or {}).get(name) or whole(schema[name].size) for name in (one, other)]
        rows, columns = cuts[0].sums(shares[one]), cuts[1].sums(shares[other])
        shrunk = shrink(table.frequencies, np.outer(rows, columns), table.variance)
        joint = rake(project(shrunk, 1.0), rows, columns)
        joint = cuts[0].expand(joint, shares[one], axis=0)
        fitted[one, other] = cuts[1].expand(joint, shares[other], axis=1)
    return GraphicalModel.of_tables(schema, total=total, tables=fitted)


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
