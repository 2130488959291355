"""A Bayesian network with its tables: each column drawn given its parents.

The joint distribution is P(x) = prod over columns of P(x_i | parents of i). Marginals are exact:
whatever is not asked for is summed out, one column after the other. Where no order of doing so
keeps the tables small enough, the marginal is refused, not estimated.

The tables come from noisy marginals. Measured apart, these contradict each other on the columns
they share. They are made to agree and to be not negative; then each column's shares given its
parents are read off.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import prod
from string import ascii_letters
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError
from sfumato.models.answers.pair_tables import averaged, summed
from sfumato.models.answers.tree import draw_given
from sfumato.models.model import Rows, project
from sfumato.randomness import Rng
from sfumato.schema.measurement import Measurement
from sfumato.schema.schema import Marginal, Schema, possible

Table = NDArray[np.float64]
Scope = frozenset[str]

CELL_LIMIT: Final = 2**26
"""The most cells that are gone through to sum one column out, or that a marginal has."""
_AGREE: Final = 1e-9
"""How far the shares of a column may be from a sum of 1: rounding only."""


@dataclass(frozen=True, kw_only=True, eq=False)
class BayesNet:
    """Parents of each column, and its shares given every combination of their codes."""

    schema: Schema
    total: float
    parents: Mapping[str, Marginal]
    given: Mapping[str, Table]
    """By column, one axis for each parent and the last for the column; that one sums to 1."""

    def __post_init__(self) -> None:
        _ = self.order
        for name in self.schema.names:
            table, shape = self.given[name], self.schema.shape((*self.parents[name], name))
            if table.shape != shape:
                raise InputError(f"the table of {name!r} must be of {shape}, got {table.shape}")
            if not table.min() >= 0 or not np.abs(table.sum(axis=-1) - 1).max() <= _AGREE:
                raise InputError(
                    f"the shares of {name!r} must be >= 0 and sum to 1 for all codes of its "
                    "parents."
                )

    @cached_property
    def order(self) -> Marginal:
        """All columns, each after its parents."""
        result: dict[str, None] = {}
        waiting = list(self.schema.names)
        while waiting:
            ready = [name for name in waiting if result.keys() >= set(self.parents[name])]
            if not ready:
                raise InputError(
                    f"the parents of {', '.join(waiting)} go around in a circle or are no columns."
                )
            result |= dict.fromkeys(ready)
            waiting = [name for name in waiting if name not in result]
        return tuple(result)

    def marginal(self, names: Marginal) -> Table:
        """Counts of a marginal, exact; the columns that it does not depend on are left out.

        A table of more than ``CELL_LIMIT`` cells on the way is an InputError.
        """
        factors = [
            ((*self.parents[name], name), self.given[name]) for name in self._ancestors(names)
        ]
        scopes = [frozenset(scope) for scope, _ in factors]
        steps, largest = elimination(scopes, self.schema, keep=frozenset(names))
        if largest > CELL_LIMIT:
            raise InputError(
                f"the marginal of {', '.join(names) or 'all rows'} needs tables of {largest:.3g} "
                f"cells on the way; at most {CELL_LIMIT:,} are allowed. Ask for fewer "
                "columns, or draw rows and count them."
            )
        if not names:
            return np.array(self.total)
        for step in steps:
            meet = [factor for factor in factors if step in factor[0]]
            factors = [factor for factor in factors if step not in factor[0]]
            left = tuple(dict.fromkeys(n for scope, _ in meet for n in scope if n != step))
            factors.append((left, _contract(meet, left)))
        return np.asarray(self.total * _contract(factors, names))

    def draw(self, n_rows: int, *, rng: Rng) -> Rows:
        """Parents first; rows of equal parents get rounded shares, in random order."""
        rows: dict[str, NDArray[np.int64]] = {}
        for name in self.order:
            block, table = np.zeros(n_rows, dtype=np.int64), self.given[name]
            for parent in self.parents[name]:
                block = block * self.schema[parent].size + rows[parent]
            rows[name] = draw_given(block, table.reshape(-1, table.shape[-1]), rng=rng)
        return {name: rows[name] for name in self.schema.names}

    def arrays(self) -> dict[str, Table]:
        """Tables and the indices of parents, under the columns' indices in the schema."""
        index = {name: i for i, name in enumerate(self.schema.names)}
        result = {"total": np.array(self.total)}
        for name, i in index.items():
            result[f"given_{i}"] = self.given[name]
            result[f"parents_{i}"] = np.array([index[p] for p in self.parents[name]], dtype=float)
        return result

    @staticmethod
    def from_arrays(schema: Schema, arrays: Mapping[str, Table]) -> "BayesNet":
        """The model that ``arrays`` was called of."""
        names = schema.names
        return BayesNet(
            schema=schema,
            total=float(arrays["total"]),
            parents={
                name: tuple(names[int(p)] for p in arrays[f"parents_{i}"])
                for i, name in enumerate(names)
            },
            given={name: arrays[f"given_{i}"] for i, name in enumerate(names)},
        )

    def _ancestors(self, names: Marginal) -> list[str]:
        """The named columns and all that they depend on; what else there is sums to 1."""
        needed = {self.schema[name].name for name in names}
        for name in reversed(self.order):
            if name in needed:
                needed.update(self.parents[name])
        return [name for name in self.order if name in needed]


def elimination(
    scopes: Iterable[Scope], schema: Schema, *, keep: Scope = frozenset()
) -> tuple[list[str], int]:
    """An order in which to sum columns out of a product of tables, and the most cells of a step.

    Always the column whose tables together have the fewest cells: Kjaerulff 1990, "Triangulation
    of graphs: algorithms giving small total state space", minimum weight.

    Args:
        scopes: The columns of each table.
        schema: Knows their sizes.
        keep: The columns that stay; the last step multiplies what is left of their tables.
    """
    sizes = {column.name: column.size for column in schema}
    near: dict[str, set[str]] = {}
    for scope in scopes:
        for name in scope:
            near.setdefault(name, set()).update(scope)
    cells = {name: prod(sizes[own] for own in near[name]) for name in near.keys() - keep}
    order, largest = list[str](), prod(sizes[name] for name in keep)
    while cells:
        name = min(cells, key=lambda own: (cells[own], own))
        largest = max(largest, cells.pop(name))
        order.append(name)
        together = near.pop(name) - {name}
        for own in together:
            near[own] = (near[own] | together) - {name}
            if own in cells:
                cells[own] = prod(sizes[other] for other in near[own])
    return order, largest


def _contract(factors: Sequence[tuple[Marginal, Table]], left: Marginal) -> Table:
    """The product of tables, summed over all columns that are not left."""
    measured = dict.fromkeys(name for scope, _ in factors for name in scope)
    letters = dict(zip(measured, ascii_letters, strict=False))
    scopes = [
        "".join(letters[name] for name in scope) for scope in (*(s for s, _ in factors), left)
    ]
    spec = f"{','.join(scopes[:-1])}->{scopes[-1]}"
    return np.asarray(np.einsum(spec, *(table for _, table in factors)))


ROUNDS: Final = 20
"""How often tables are brought to agree and to be not negative, in turn."""
_PUBLIC: Final = 1e-3
"""The noise, in counts, that a table without any is taken to have: next to none."""


def fit_bayes_net(
    schema: Schema,
    *,
    total: float,
    parents: Mapping[str, Marginal],
    measurements: list[Measurement],
) -> BayesNet:
    """The network whose columns follow noisy tables of them with their parents.

    A column that is in no table with all its parents is an error; one of a single value needs
    none. Where parents' codes never occur, the column has its shares of all rows.

    Args:
        schema: The columns.
        total: The number of rows that the model stands for.
        parents: Of each column that has some.
        measurements: Noisy counts of marginals; a column and its parents must be inside one.
    """
    rows = max(total, 1.0)  # of an empty table, noise alone
    tables = agreed_tables(
        {_named(each): each.values / rows for each in measurements},
        {_named(each): (max(each.sigma_counts, _PUBLIC) / rows) ** 2 for each in measurements},
        possible_cells={_named(each): possible(schema, _named(each)) for each in measurements},
    )
    given: dict[str, Table] = {}
    for column in schema:
        own = parents.get(column.name, ())
        if column.size == 1 and not own:
            given[column.name] = np.ones(1)
        else:
            given[column.name] = _given(tables, own, column.name)
    every = {name: tuple(parents.get(name, ())) for name in schema.names}
    return BayesNet(schema=schema, total=total, parents=every, given=given)


def agreed_tables(
    tables: Mapping[Marginal, Table],
    variances: Mapping[Marginal, float],
    *,
    possible_cells: Mapping[Marginal, NDArray[np.bool_]],
) -> dict[Marginal, Table]:
    """Tables of shares >= 0 that sum to 1 and nearly agree on the columns they share.

    For every set of columns that two tables share, the smaller first: a table with cell variance
    v estimates it with variance k v, where k cells are summed; the estimates are averaged by
    precision, and each difference is spread over its k cells. This is repeated, in turn with the
    projection to the simplex, which has the last word. Qardaji, Yang, Li 2014, "PriView",
    sections 4.4 and 4.5.

    Args:
        tables: Noisy shares by marginal.
        variances: Of one cell of each.
        possible_cells: The cells of each that may hold anything.
    """
    shared = {frozenset(one) & frozenset(other) for one, other in combinations(tables, 2)}
    ordered = sorted(shared - {frozenset()}, key=lambda names: (len(names), sorted(names)))
    result = dict(tables)
    for _ in range(ROUNDS if ordered else 1):
        result = {key: table + (1 - table.sum()) / table.size for key, table in result.items()}
        for names in ordered:
            result |= averaged(result, variances, names)
        for key, table in result.items():
            result[key] = np.zeros_like(table)
            result[key][possible_cells[key]] = project(table[possible_cells[key]], 1.0)
    return result


def _given(tables: Mapping[Marginal, Table], parents: Marginal, name: str) -> Table:
    family = (*parents, name)
    holding = [key for key in tables if set(family) <= set(key)]
    if not holding:
        raise InputError(f"no table tells of {name!r} with {parents}.")
    key = min(holding, key=lambda own: (tables[own].size, own))
    joint = summed(key, tables[key], family)
    totals = joint.sum(axis=-1, keepdims=True)
    alone = joint.reshape(-1, joint.shape[-1]).sum(axis=0)
    own = np.broadcast_to(alone / alone.sum(), joint.shape).copy()
    return np.asarray(np.divide(joint, totals, out=own, where=totals > 0))


def _named(measurement: Measurement) -> Marginal:
    if not isinstance(measurement.target, tuple):
        raise InputError(f"a network is fitted to marginals, got {measurement.target!s:.60}")
    return measurement.target
