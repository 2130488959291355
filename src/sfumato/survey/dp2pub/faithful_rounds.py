"""The rounds of the variant in which everybody answers every column twice: DP2-Pub as written.

The first round's answers tell which columns belong together; each cluster's share of the second
round's epsilon follows from its entropy. Jiang et al. 2023, arXiv 2208.11693, with one epsilon for
both rounds together. All functions take public values: the server sees answers only.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from math import expm1, log1p, prod, sqrt
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError
from sfumato.local.frequency.grr import Grr
from sfumato.local.probabilities import MIN_EPSILON, ceil_div
from sfumato.models.answers.dependence import (
    dependence,
    interaction_noise,
    shrink,
    spanning_tree,
)
from sfumato.models.answers.group_fit import EDGE_CELLS
from sfumato.models.answers.pair_tables import Edge, NoisyTable
from sfumato.models.answers.tree import fit_tree
from sfumato.models.code_counts import cell_counts
from sfumato.models.information import mutual_information, tie_strength
from sfumato.models.model import project
from sfumato.models.pram.clusters import Cluster, attribute_shares
from sfumato.randomness import Rng, derived_rng
from sfumato.release import TableRelease
from sfumato.schema.schema import Marginal
from sfumato.survey.dp2pub.round_tally import ColumnsTally, table_release
from sfumato.survey.dp2pub.semi_honest import check_pairs, publish_answers
from sfumato.survey.protocol.rounds import (
    BUDGET_UNITS,
    Agreement,
    ColumnsQuestion,
    first_budgets,
)

DEGREE: Final = 3
"""The most parents of a column in the network."""
MAX_CLUSTER: Final = 3
"""The most columns of a cluster."""

Table = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, slots=True)
class SecondRound:
    """The question of the second round and why: the network and the clusters of the first."""

    question: ColumnsQuestion
    network: Mapping[str, tuple[str, ...]]
    """The parents of each column."""
    clusters: tuple[Cluster, ...]


def first_question(agreed: Agreement) -> ColumnsQuestion:
    """Everybody is asked about every column with the same epsilon.

    Columns too large to be compared later are refused now: people's epsilon would be lost.
    """
    check_pairs(agreed.schema)
    return ColumnsQuestion(survey=agreed.id, round=1, budgets=first_budgets(agreed))


def second_question(agreed: Agreement, first: ColumnsTally) -> SecondRound:
    """Clusters and budgets from the answers of the first round: post-processing.

    The root of the network and the columns that clusters grow from are drawn by the survey's own
    name: public choices, so the same answers make the same question.
    """
    if first.people == 0:
        raise InputError("nobody answered in the first round: there is nothing to plan with.")
    result = publish_answers(
        agreed.schema.pick(agreed.columns),
        first.records,
        list(first.question.mechanisms(agreed.schema).values()),
        degree=DEGREE,
        max_cluster=MAX_CLUSTER,
        pram="attribute",
        rng=derived_rng(bytes.fromhex(agreed.id), b"second round"),
    )
    parents = zip(result.asked, result.learned.network.parents, strict=True)
    shares = attribute_shares(result.clusters, result.shares)
    budgets = spelled_budgets({name: shares[name] for name in agreed.columns}, agreed.round_epsilon)
    return SecondRound(
        question=ColumnsQuestion(survey=agreed.id, round=2, budgets=budgets),
        network={child: tuple(result.asked[index] for index in own) for child, own in parents},
        clusters=result.clusters,
    )


def spelled_budgets(shares: Mapping[str, Fraction], epsilon: Fraction) -> dict[str, Fraction]:
    """Shares of an epsilon that a message can spell and a response can have, summing to it exactly.

    Whoever would get less than the smallest epsilon of an answer gets that, and the others divide
    what is left in proportion. Rounded down to whole units; the largest takes the rest.

    >>> spelled_budgets({"a": Fraction(2, 3), "b": Fraction(1, 3)}, Fraction(3))
    {'a': Fraction(33554433, 16777216), 'b': Fraction(16777215, 16777216)}

    Args:
        shares: By column, positive, summing to 1.
        epsilon: At least the smallest epsilon for each column.
    """
    units = len(shares) * BUDGET_UNITS
    least = ceil_div(MIN_EPSILON * units, epsilon)
    low: set[str] = set()
    while True:
        left = Fraction(units - least * len(low), sum(s for n, s in shares.items() if n not in low))
        more = {name for name, share in shares.items() if share * left < least} - low
        if not more:
            break
        low |= more
    whole = {name: least if name in low else int(share * left) for name, share in shares.items()}
    whole[max(whole, key=lambda name: whole[name])] += units - sum(whole.values())
    return {name: epsilon * Fraction(part, units) for name, part in whole.items()}


def release(
    agreed: Agreement, chosen: SecondRound, first: ColumnsTally, second: ColumnsTally, *, rng: Rng
) -> TableRelease:
    """Fit and draw: as many rows as people answered.

    Answers carry no names, so the people are those of the round in which more of them answered.
    """
    people, tallies = max(first.people, second.people), (first, second)
    one_ways = {name: noisy_table(agreed, tallies, (name,)) for name in agreed.columns}
    shares = {
        c.name: project(one_ways[c.name].frequencies, 1.0) if c.name in one_ways else np.ones(1)
        for c in agreed.schema
    }
    pairs = {
        edge: noisy_table(agreed, tallies, edge)
        for cluster in chosen.clusters
        for edge in combinations(cluster, 2)
        if agreed.schema.cells(edge) <= EDGE_CELLS
    }
    ties = helpful_ties(shares, pairs)
    model = fit_tree(agreed.schema, total=float(people), shares=shares, pairs=ties)
    method = {
        "network": {child: list(parents) for child, parents in chosen.network.items()},
        "clusters": [list(cluster) for cluster in chosen.clusters],
        "rounds": [
            {
                "label": f"round {tally.question.round}",
                "budgets": tally.question.to_dict()["budgets"],
            }
            for tally in tallies
        ],
        "ties": [[*edge, tie_strength(model.marginal(edge) / model.total)] for edge in ties],
    }
    tables: dict[Marginal, NoisyTable] = {(name,): table for name, table in one_ways.items()}
    return table_release(
        agreed, tallies, people=people, model=model, tables=tables, method=method, rng=rng
    )


def noisy_table(
    agreed: Agreement, tallies: Iterable[ColumnsTally], columns: Marginal
) -> NoisyTable:
    """The debiased table of one or two columns from all rounds, weighted by inverse variance.

    The people of a table are those who answered, so its noise is that of the answers alone. The
    variance of a table of two is the one with which its interaction is as noisy as it is.
    """
    rows, shape = [agreed.columns.index(name) for name in columns], agreed.schema.shape(columns)
    tables, precisions = [], []
    for tally in tallies:
        if tally.people:
            made = tally.question.mechanisms(agreed.schema)
            own = [made[name] for name in columns]
            tables.append(debiased(cell_counts(tally.records[rows], shape), own))
            precisions.append(tally.people / answer_noise(own))
    if not tables:
        raise InputError("nobody answered: no table can be estimated.")
    cells = interaction_noise(shape, 1.0) if len(shape) == 2 else float(shape[0])
    return NoisyTable(
        frequencies=np.average(tables, axis=0, weights=precisions),
        variance=1 / sum(precisions) / cells,
    )


def debiased(counts: NDArray[np.int64], responses: Sequence[Grr]) -> Table:
    """The unbiased joint frequencies behind answers about some columns, each randomized by itself.

    Along each axis (x - q sum x)/(p - q), the inverse of its response: Warner 1965; Kairouz,
    Bonawitz, Ramage 2016, arXiv 1602.07387. Cells may be negative.
    """
    table = counts / counts.sum()
    for axis, made in enumerate(responses):
        p, q = float(made.p), float(made.q)
        table = (table - q * table.sum(axis=axis, keepdims=True)) / (p - q)
    return np.asarray(table)


def answer_noise(responses: Sequence[Grr]) -> float:
    """The expected squared error, times the number of people, of what a debiased table adds.

    One person adds prod_i g_i to a cell, g = (1[answer = own] - q)/(p - q), whose mean is 1 in
    their own cell and 0 elsewhere. For one column of k codes E[g^2] sums to
    R = 1 + (p(1 - p) + (k - 1) q(1 - q))/(p - q)^2, whatever the true code; without the mean 1/k
    of its cells, to R - 1/k. So the part that only the joint table has, two columns' interaction,
    has the noise prod_i (R_i - 1/k_i) - prod_i (1 - 1/k_i). That is most of the noise there is,
    and for one column all of it, R - 1.

    >>> round(answer_noise([Grr(categories=2, epsilon=Fraction(1))]), 4)
    1.8413
    """
    sizes = [made.categories for made in responses]
    own = [1 - 1 / size for size in sizes]
    more = [float(_spread(made)) for made in responses]
    # Each product over the second: differences of nearly equal numbers would lose all digits.
    grown = sum(log1p(extra / part) for extra, part in zip(more, own, strict=True))
    return prod(own) * expm1(grown)


def tie_helps(table: NoisyTable, rows: Table, columns: Table) -> bool:
    """Whether a shrunk table is predicted to be nearer to the truth than the product of columns.

    With X the squared distance of the two, N its noise and k = (r-1)(c-1), unbiased estimates of
    the squared errors are X - N for the product and N - N^2 (1 - 4/k)/X for ``shrink``, which
    multiplies by 1 - N/X: Stein 1981, "Estimation of the mean of a multivariate normal
    distribution". The second is less where X - N > 2 N / sqrt(k).
    """
    noise = interaction_noise(table.frequencies.shape, table.variance)
    freedom = (rows.size - 1) * (columns.size - 1)
    return dependence(table, rows, columns).squared > 2 * noise / sqrt(freedom)


def helpful_ties(
    shares: Mapping[str, Table], pairs: Mapping[Edge, NoisyTable]
) -> dict[Edge, NoisyTable]:
    """Of the pairs that help, a forest, with tables whose means are those of the columns' shares.

    The forest is that of the mutual information that is left of each table after shrinking.
    """
    ties, weights = {}, {}
    for (one, other), table in pairs.items():
        if not tie_helps(table, shares[one], shares[other]):
            continue
        product = np.outer(shares[one], shares[other])
        gap = table.frequencies - product
        # Errors of the one-way tables are no ties: means by row and by column are taken out.
        gap = gap - gap.mean(axis=0) - gap.mean(axis=1, keepdims=True) + gap.mean()
        tie = NoisyTable(frequencies=product + gap, variance=table.variance)
        shrunk = project(shrink(tie.frequencies, product, tie.variance), 1.0)
        ties[one, other], weights[one, other] = tie, mutual_information(shrunk)
    return {edge: ties[edge] for edge in spanning_tree(weights)}


def _spread(made: Grr) -> Fraction:
    p, q = made.p, made.q
    return (p * (1 - p) + (made.categories - 1) * q * (1 - q)) / (p - q) ** 2
