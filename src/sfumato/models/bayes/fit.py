"""The tables of a Bayesian network from noisy marginals.

Marginals measured apart contradict each other on the columns they share. They are made to agree
and to be not negative; then each column's shares given its parents are read off.
"""

from collections.abc import Mapping
from itertools import combinations
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError
from sfumato.models.bayes.model import BayesNet
from sfumato.models.model import project
from sfumato.schema.measurement import Measurement
from sfumato.schema.schema import Marginal, Schema, possible

Table = NDArray[np.float64]

ROUNDS: Final = 20
"""How often tables are brought to agree and to be not negative, in turn."""
_PUBLIC: Final = 1e-3
"""The noise, in counts, that a table without any is taken to have: next to none."""


def fit_bayes_net(
    schema: Schema, *, total: float, parents: Mapping[str, Marginal], seen: list[Measurement]
) -> BayesNet:
    """The network whose columns follow noisy tables of them with their parents.

    A column of which no table tells with all its parents is an error; one of a single value needs
    none. Where parents' codes never occur, the column has its shares of all rows.

    Args:
        schema: The columns.
        total: The number of rows that the model stands for.
        parents: Of each column that has some.
        seen: Noisy counts of marginals; a column and its parents must be inside one of them.
    """
    rows = max(total, 1.0)  # of an empty table, noise alone
    tables = agreed_tables(
        {_named(each): each.values / rows for each in seen},
        {_named(each): (max(each.sigma_counts, _PUBLIC) / rows) ** 2 for each in seen},
        held={_named(each): possible(schema, _named(each)) for each in seen},
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
    held: Mapping[Marginal, NDArray[np.bool_]],
) -> dict[Marginal, Table]:
    """Tables of shares >= 0 that sum to 1 and say nearly the same of the columns they share.

    For every set of columns that two tables share, the smaller first: a table with cell variance
    v tells of it with variance k v, where k cells are summed; the tellings are averaged by
    precision, and each difference is spread over its k cells. This is repeated, in turn with the
    projection to the simplex, which has the last word. Qardaji, Yang, Li 2014, "PriView",
    sections 4.4 and 4.5.

    Args:
        tables: Noisy shares by marginal.
        variances: Of one cell of each.
        held: The cells of each that may hold anything.
    """
    shared = {frozenset(one) & frozenset(other) for one, other in combinations(tables, 2)}
    ordered = sorted(shared - {frozenset()}, key=lambda names: (len(names), sorted(names)))
    found = dict(tables)
    for _ in range(ROUNDS if ordered else 1):
        found = {key: table + (1 - table.sum()) / table.size for key, table in found.items()}
        for names in ordered:
            found |= _averaged(found, variances, names)
        for key, table in found.items():
            found[key] = np.zeros_like(table)
            found[key][held[key]] = project(table[held[key]], 1.0)
    return found


def _averaged(
    tables: Mapping[Marginal, Table], variances: Mapping[Marginal, float], names: frozenset[str]
) -> dict[Marginal, Table]:
    """The tables that have these columns, with what they say of them averaged."""
    having = sorted(key for key in tables if names.issubset(key))
    order = tuple(sorted(names))
    told = [summed(key, tables[key], order) for key in having]
    each = [tables[key].size // own.size for key, own in zip(having, told, strict=True)]
    weights = [1 / (k * variances[key]) for key, k in zip(having, each, strict=True)]
    mean = np.average(told, axis=0, weights=weights)
    return {
        key: tables[key] + _spread((mean - own) / k, order, key)
        for key, own, k in zip(having, told, each, strict=True)
    }


def summed(key: Marginal, table: Table, names: Marginal) -> Table:
    """A table's sums for some of its columns, in the order of the names."""
    others = tuple(axis for axis, name in enumerate(key) if name not in names)
    left = [name for name in key if name in names]
    return np.asarray(table.sum(axis=others).transpose([left.index(name) for name in names]))


def _spread(change: Table, names: Marginal, key: Marginal) -> Table:
    """A change by some columns with an axis for every column of a table."""
    left = [name for name in key if name in names]
    rising = change.transpose([names.index(name) for name in left])
    sizes = dict(zip(left, rising.shape, strict=True))
    return rising.reshape([sizes.get(name, 1) for name in key])


def _given(tables: Mapping[Marginal, Table], parents: Marginal, name: str) -> Table:
    family = (*parents, name)
    holding = [key for key in tables if set(family) <= set(key)]
    if not holding:
        raise InputError(f"no table tells of {name!r} with {parents}.")
    key = min(holding, key=lambda own: (tables[own].size, own))
    joint = summed(key, tables[key], family)
    held = joint.sum(axis=-1, keepdims=True)
    alone = joint.reshape(-1, joint.shape[-1]).sum(axis=0)
    own = np.broadcast_to(alone / alone.sum(), joint.shape).copy()
    return np.asarray(np.divide(joint, held, out=own, where=held > 0))


def _named(seen: Measurement) -> Marginal:
    if not isinstance(seen.target, tuple):
        raise InputError(f"a network is fitted to marginals, got {seen.target!s:.60}")
    return seen.target
