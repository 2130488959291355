"""From the answers of disjoint groups of people to one model: the structure that pays its noise.

Some people answered about one column, others about a pair. All of it goes into the one-way
tables; the answers about pairs decide whether columns are independent, a tree, or a mixture.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb, log
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError
from sfumato.models.answers.dependence import Kind, shrink, spanning_tree
from sfumato.models.answers.mixture import MixtureModel, fit_mixture
from sfumato.models.answers.pair_tables import (
    Bins,
    Edge,
    NoisyTable,
    PairAnswers,
    agreed_pairs,
    column_averages,
    known_columns,
)
from sfumato.models.answers.tree import fit_tree
from sfumato.models.graphical.model import GraphicalModel
from sfumato.models.information import mutual_information, tie_strength
from sfumato.models.model import Model, project
from sfumato.randomness import Rng
from sfumato.schema.columns import Integer
from sfumato.schema.schema import Marginal, Schema

Table = NDArray[np.float64]
Fitted = GraphicalModel | MixtureModel

EDGE_CELLS: Final = 1_000_000
"""A tree keeps a table by code for each edge: pairs of columns with more cells are no edges."""

MOST_TIES: Final = 30
"""The most pairs of columns that a report lists as tied; chosen by judgment."""

ROUNDING: Final = 1e-12
"""What independent columns may seem to know of each other, in nats."""


@dataclass(frozen=True, kw_only=True, eq=False)
class GroupedFit:
    """The chosen model, and what each structure was worth."""

    kind: Kind
    model: Fitted
    worth: Mapping[Kind, float]
    """The log-likelihood of the answers above that of independent columns, less parameters."""


def fit_grouped(
    schema: Schema,
    *,
    total: float,
    one_ways: Mapping[str, NoisyTable],
    answers: Sequence[PairAnswers],
    bins: Mapping[str, Bins],
    rng: Rng,
) -> GroupedFit:
    """The model of the most worth: independent columns ("none"), a "tree", or a mixture ("pairs").

    Worth is the log-likelihood of the answers about pairs less the number of parameters, an
    estimate of how well new answers would be explained: Akaike 1974. A tree's edges are chosen
    among all pairs, which costs the logarithm of their number for each. All three have the same
    one-way tables, so dependence is added only where it is predicted to help.

    Args:
        schema: The columns.
        total: The number of rows that the model stands for.
        one_ways: By column, one debiased frequency a code.
        answers: The counted answers about pairs, each pair at most once; there may be none.
        bins: Of every column, those of the questions about pairs.
        rng: Where random starts come from.
    """
    answered = [each for each in answers if each.counts.any()]
    tables = {each.columns: each.table() for each in answered}
    if len(tables) < len(answered):
        raise InputError("a pair stands twice among the answers: add up its counts first.")
    known = known_columns(schema, one_ways=one_ways, pairs=tables, bins=bins)
    shares = {name: table.frequencies for name, table in known.items()}
    tables = agreed_pairs(tables, column_averages(one_ways=one_ways, pairs=tables, bins=bins))
    product = fit_tree(schema, total=total, shares=shares, pairs={})
    candidates: dict[Kind, tuple[float, Fitted]] = {"none": (0.0, product)}
    alone = log_likelihood(by_bins(product, bins), answered)
    small = {edge: table for edge, table in tables.items() if schema.cells(edge) <= EDGE_CELLS}
    if edges := likely_edges(small, shares, bins):
        chosen = {edge: tables[edge] for edge in edges}
        tree = fit_tree(schema, total=total, shares=shares, pairs=chosen, bins=bins)
        cost = float(sum((bins[i].count - 1) * (bins[j].count - 1) for i, j in edges))
        cost += len(edges) * log(comb(len(schema.names), 2))
        candidates["tree"] = (log_likelihood(by_bins(tree, bins), answered) - alone - cost, tree)
    mixture = fit_mixture(
        schema, total=total, one_ways=shares, answers=answered, bins=bins, rng=rng
    )
    if mixture.parameters:
        gain = log_likelihood(by_bins(mixture.model, bins), answered) - alone
        candidates["pairs"] = (gain - mixture.parameters, mixture.model)
    kind = max(candidates, key=lambda kind: candidates[kind][0])
    return GroupedFit(
        kind=kind,
        model=candidates[kind][1],
        worth={each: value for each, (value, _model) in candidates.items()},
    )


def strongest_ties(fit: GroupedFit) -> list[list[Any]]:
    """The pairs of columns that the model ties most, with their distance from independence.

    Of a tree its edges; a mixture ties all columns, and the strongest are listed.
    """
    model = fit.model
    edges: Iterable[Marginal]
    if isinstance(model, MixtureModel):
        edges = combinations(model.schema.names, 2)
    else:
        edges = [model.schema.marginal(pair) for pair in model.cliques if len(pair) == 2]
    ties: list[list[Any]] = [
        [one, other, tie_strength(model.marginal((one, other)) / model.total)]
        for one, other in edges
        if model.schema.cells((one, other)) <= EDGE_CELLS
    ]
    return sorted(ties, key=lambda tie: -tie[2])[:MOST_TIES]


def likely_edges(
    pairs: Mapping[Edge, NoisyTable], shares: Mapping[str, Table], bins: Mapping[str, Bins]
) -> tuple[Edge, ...]:
    """The spanning tree by the mutual information that is left of each table after shrinking."""
    weights = {}
    for edge, table in pairs.items():
        product = np.outer(*(bins[name].sums(shares[name]) for name in edge))
        shrunk = project(shrink(table.frequencies, product, table.variance), 1.0)
        nats = mutual_information(shrunk)
        weights[edge] = nats if nats > ROUNDING else 0.0
    return spanning_tree(weights)


def log_likelihood(model: Model, answers: Sequence[PairAnswers]) -> float:
    """Of counted answers about pairs, but for a constant: chances are q + (p - q) f.

    Args:
        model: Of columns whose codes are the bins that were asked about: see ``by_bins``.
        answers: The counted answers.
    """
    total = 0.0
    for each in answers:
        table = model.marginal(each.columns) / model.total
        total += float((each.counts * np.log(each.q + (each.p - each.q) * table)).sum())
    return total


def by_bins(model: Fitted, bins: Mapping[str, Bins]) -> Fitted:
    """The same model of coarser columns: every marginal is that of the model, summed over bins.

    For a tree this is so where within a bin codes are independent of the other columns, as
    ``fit_tree`` makes it.
    """
    names, total = model.schema.names, model.total
    schema = Schema(columns=tuple(Integer(name=n, low=1, high=bins[n].count) for n in names))
    if isinstance(model, MixtureModel):
        shares = {name: bins[name].sums(model.shares[name], axis=1) for name in names}
        return MixtureModel(schema=schema, total=total, weights=model.weights, shares=shares)
    tables: dict[Marginal, Table] = {}
    for clique in model.cliques:
        tables[clique] = model.marginal(clique) / total
        for axis, name in enumerate(clique):
            tables[clique] = bins[name].sums(tables[clique], axis=axis)
    return GraphicalModel.of_tables(schema, total=total, tables=tables)
