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
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sfumato import check
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
from sfumato.models.answers.tree import TreeModel, fit_tree
from sfumato.models.code_counts import cell_counts, narrow
from sfumato.models.information import mutual_information, tie_strength
from sfumato.models.model import project
from sfumato.models.pram.clusters import Cluster, attribute_shares
from sfumato.models.product import ProductModel
from sfumato.privacy.protection import OneRow
from sfumato.randomness import Rng, derived_rng
from sfumato.release import TableRelease, draw_table
from sfumato.schema.schema import Marginal, Schema
from sfumato.survey.dp2pub.semi_honest import LARGEST_PAIR, publish_answers
from sfumato.survey.protocol.messages import Answer
from sfumato.survey.protocol.rounds import (
    BUDGET_UNITS,
    Agreement,
    RecordPlan,
    RecordRows,
    check_question,
    first_budgets,
)

Collected = RecordRows | Answer | Mapping[str, Any] | None
"""What may be counted: the answers of many, of one, their message, or None from who gave none."""

DEGREE: Final = 3
"""The most parents of a column in the network."""
MAX_CLUSTER: Final = 3
"""The most columns of a cluster."""

Table = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class RecordTally:
    """The checked answers to a plan."""

    plan: RecordPlan
    block: NDArray[np.unsignedinteger[Any]]
    """A row for each column that was asked about, a column for each person."""
    simulated: bool

    @property
    def people(self) -> int:
        """Everybody who answered."""
        return int(self.block.shape[1])

    def column_counts(self, sizes: Sequence[int]) -> list[NDArray[np.int64]]:
        """By column, how many answers are each code."""
        rows = zip(self.block, sizes, strict=True)
        return [np.bincount(row, minlength=size).astype(np.int64) for row, size in rows]


@dataclass(frozen=True, kw_only=True, eq=False)
class RecordCounts:
    """The counted answers to a plan, each column by itself."""

    plan: RecordPlan
    counts: tuple[NDArray[np.int64], ...]
    people: int
    simulated: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class SecondRound:
    """The plan of the second round and why: the network and the clusters of the first."""

    plan: RecordPlan
    network: Mapping[str, tuple[str, ...]]
    """The parents of each column."""
    clusters: tuple[Cluster, ...]


def first_plan(agreed: Agreement) -> RecordPlan:
    """Everybody is asked about every column with the same epsilon.

    Columns too large to be compared later are refused now: people's epsilon would be lost.
    """
    largest = sorted(agreed.asked, key=lambda name: agreed.schema[name].size)[-2:]
    if (cells := agreed.schema.cells(tuple(largest))) > LARGEST_PAIR:
        raise InputError(
            f"the table of {' and '.join(largest)} would have {cells:,} cells, at most "
            f"{LARGEST_PAIR:,} are compared. Use coarser bins."
        )
    return RecordPlan(survey=agreed.id, round=1, budgets=first_budgets(agreed))


def second_plan(agreed: Agreement, heard: RecordTally) -> SecondRound:
    """Clusters and budgets from the answers of the first round: post-processing.

    The root of the network and the columns that clusters grow from are drawn by the survey's own
    name: public choices, so the same answers make the same plan.
    """
    if heard.people == 0:
        raise InputError("nobody answered in the first round: there is nothing to plan with.")
    found = publish_answers(
        agreed.schema.pick(agreed.asked),
        heard.block,
        list(heard.plan.mechanisms(agreed.schema).values()),
        degree=DEGREE,
        max_cluster=MAX_CLUSTER,
        pram="attribute",
        rng=derived_rng(bytes.fromhex(agreed.id), b"second round"),
    )
    parents = zip(found.asked, found.learned.network.parents, strict=True)
    shares = attribute_shares(found.clusters, found.shares)
    budgets = spelled_budgets({name: shares[name] for name in agreed.asked}, agreed.round_epsilon)
    return SecondRound(
        plan=RecordPlan(survey=agreed.id, round=2, budgets=budgets),
        network={child: tuple(found.asked[place] for place in own) for child, own in parents},
        clusters=found.clusters,
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


def count(
    plan: RecordPlan, agreed: Agreement, answers: Collected | Iterable[Collected]
) -> RecordTally:
    """Check and gather answers to a plan; one that does not fit refuses all of them."""
    if answers is None or isinstance(answers, RecordRows | Answer | Mapping):
        answers = [answers]
    if not isinstance(answers, Iterable) or isinstance(answers, str | bytes):
        raise InputError(
            f"answers are rows, answers or their messages; got {type(answers).__name__}."
        )
    blocks, single, simulated = [], [], False
    for each in answers:
        if each is None:
            continue
        given = each if isinstance(each, RecordRows | Answer) else Answer.from_dict(each)
        check_question(given.question, plan)
        simulated |= given.simulated
        if isinstance(given, RecordRows):
            blocks.append(_checked(given.codes, agreed))
        else:
            single.append(_codes(given.value, agreed))
    if single or not blocks:
        rows = np.array(single, dtype=np.int64).reshape(-1, len(agreed.asked))
        blocks.append(_checked(rows.T, agreed))
    return RecordTally(plan=plan, block=np.concatenate(blocks, axis=1), simulated=simulated)


def release(
    agreed: Agreement, asked: SecondRound, first: RecordTally, second: RecordTally, *, rng: Rng
) -> TableRelease:
    """Fit and draw: as many rows as people answered, a number that is public.

    Answers carry no names, so the people are those of the round in which more of them answered.
    """
    people, rounds = max(first.people, second.people), (first, second)
    one_ways = {name: noisy_table(agreed, rounds, (name,)) for name in agreed.asked}
    shares = {
        c.name: project(one_ways[c.name].frequencies, 1.0) if c.name in one_ways else np.ones(1)
        for c in agreed.schema
    }
    pairs = {
        edge: noisy_table(agreed, rounds, edge)
        for cluster in asked.clusters
        for edge in combinations(cluster, 2)
        if agreed.schema.cells(edge) <= EDGE_CELLS
    }
    model = fit_ties(agreed.schema, total=float(people), shares=shares, pairs=pairs)
    return TableRelease(
        dataset=agreed.schema.dataset or f"survey {agreed.id}",
        guarantee=agreed.guarantee,
        protect=OneRow(neighbors="replace"),
        private=not (first.simulated or second.simulated),
        method=_method(agreed, asked, rounds, model),
        schema=agreed.schema,
        model=model,
        measurements=tuple(
            {"target": [name], "sigma_counts": people * sqrt(table.variance)}
            for name, table in one_ways.items()
        ),
        data=draw_table(model, n_rows=people, rng=rng),
        ledger={"head": {"seq": 0, "hash": agreed.id}, "entries": []},  # devices keep their own
    )


def noisy_table(agreed: Agreement, rounds: Iterable[RecordTally], columns: Marginal) -> NoisyTable:
    """The debiased table of one or two columns from all rounds, weighted by inverse variance.

    The people of a table are those who answered, so its noise is that of the answers alone. The
    variance of a table of two is the one with which its interaction is as noisy as it is.
    """
    places, shape = [agreed.asked.index(name) for name in columns], agreed.schema.shape(columns)
    tables, precisions = [], []
    for heard in rounds:
        if heard.people:
            made = heard.plan.mechanisms(agreed.schema)
            own = [made[name] for name in columns]
            tables.append(debiased(cell_counts(heard.block[places], shape), own))
            precisions.append(heard.people / answer_noise(own))
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


def fit_ties(
    schema: Schema,
    *,
    total: float,
    shares: Mapping[str, Table],
    pairs: Mapping[Edge, NoisyTable],
) -> ProductModel | TreeModel:
    """Columns with these shares, tied by a forest of the pairs that help; without any, a product.

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
    if edges := spanning_tree(weights):
        chosen = {edge: ties[edge] for edge in edges}
        return fit_tree(schema, total=total, shares=shares, pairs=chosen)
    return ProductModel(schema=schema, total=total, shares=dict(shares))


def _method(
    agreed: Agreement,
    asked: SecondRound,
    rounds: Sequence[RecordTally],
    model: ProductModel | TreeModel,
) -> dict[str, Any]:
    """What a release says of how it was made: public numbers only."""
    ties = model.pairs if isinstance(model, TreeModel) else {}
    return {
        "name": "dp2pub",
        "trust": "nobody",
        "variant": agreed.variant,
        "survey": agreed.id,
        "answers": [heard.people for heard in rounds],
        "network": {child: list(parents) for child, parents in asked.network.items()},
        "clusters": [list(cluster) for cluster in asked.clusters],
        "rounds": [
            {"label": f"round {heard.plan.round}", "budgets": heard.plan.to_dict()["budgets"]}
            for heard in rounds
        ],
        "ties": [[one, other, tie_strength(table)] for (one, other), table in ties.items()],
    }


def _spread(made: Grr) -> Fraction:
    p, q = made.p, made.q
    return (p * (1 - p) + (made.categories - 1) * q * (1 - q)) / (p - q) ** 2


def _codes(value: Any, agreed: Agreement) -> list[int]:
    sizes = agreed.schema.shape(agreed.asked)
    if not isinstance(value, list | tuple) or len(value) != len(sizes):
        raise InputError(
            f"an answer is a list of codes, one for each of the {len(sizes)} columns that were "
            "asked about."
        )
    named = zip(value, sizes, strict=True)
    return [check.whole(at_least=0, at_most=size - 1, answer=code) for code, size in named]


def _checked(codes: Any, agreed: Agreement) -> NDArray[np.unsignedinteger[Any]]:
    """A block of answers in a small type; one that is no code of its column refuses all."""
    block, sizes = np.asarray(codes), agreed.schema.shape(agreed.asked)
    if block.ndim != 2 or len(block) != len(sizes) or block.dtype.kind not in "iu":
        raise InputError(
            f"answers are whole numbers, a row for each of the {len(sizes)} columns that were "
            f"asked about; got {block.dtype} of shape {block.shape}."
        )
    for name, size, row in zip(agreed.asked, sizes, block, strict=True):
        if row.size and (row.min() < 0 or row.max() >= size):
            raise InputError(f"answers about {name!r} are from 0 to {size - 1}; some are not.")
    return narrow(block, max(sizes))
