"""DP2-Pub with a trusted server: rows randomized by clusters of a private Bayesian network.

Jiang et al. 2023, arXiv 2208.11693. The network is selected privately (Zhang et al. 2014,
"PrivBayes", algorithm 2), one-way tables are measured, their entropies share out the rest over the
clusters, every value of every row goes through randomized response and is redrawn by invariant
PRAM. Published rows stand for real ones, one by one: only a row that is replaced is protected.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from math import comb
from typing import Any, ClassVar, Final, get_args

import numpy as np
from numpy.typing import NDArray

from sfumato import check
from sfumato.errors import InputError
from sfumato.gate import Curator, MutualInformation
from sfumato.models.answers.frequencies import norm_sub
from sfumato.models.bayes.network import Network
from sfumato.models.graphical.structure import components
from sfumato.models.information import entropy
from sfumato.models.model import PublishedRows, repaired
from sfumato.models.pram.clusters import (
    Cluster,
    Known,
    Pram,
    attribute_shares,
    budget_shares,
    disjoint_clusters,
    redraw_columns,
    weigh,
)
from sfumato.models.pram.pram import Channel
from sfumato.privacy.composition import Cap
from sfumato.privacy.guarantees import PureDP
from sfumato.privacy.protection import OneRow, Protection
from sfumato.randomness import Rng
from sfumato.schema import Marginal, Measurement, Schema
from sfumato.synthesis.algorithm import Fit, columns_of_values
from sfumato.synthesis.independent import shares_by_cells

NETWORK_SHARE: Final = Fraction(9, 20)
ENTROPY_SHARE: Final = Fraction(1, 10)
"""The rest, 9/20, randomizes the rows; all of what the network does not need goes there too."""

LARGEST_TABLE: Final = 2**15
"""Cells of the largest marginal that a child and its parents may have."""
LARGEST_COLUMN: Final = 2**12
"""Values of one column: what undoes its randomized response is a square of them."""
MOST_CELLS: Final = 2**25
"""Cells of all candidate marginals together: 256 MB."""
MOST_CANDIDATES: Final = 2**19
"""Candidates of one selection, at most; chosen by judgment, for its time."""
LEAST_EPSILON: Final = Fraction(1, 10_000)
MOST_EPSILON: Final = Fraction(32)
"""What one value may be randomized with."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Dp2Pub:
    """Network, entropies, randomized and redrawn rows: as many as the table has, which is public.

    Formal guarantee: epsilon-DP for one row that is replaced, the sum of what the selections, the
    one-way tables and the randomized rows cost; everything else is post-processing.
    """

    degree: int = 2
    """The most parents of a column."""
    max_cluster: int = 3
    """The most columns that share a part of the budget, and may be redrawn jointly."""
    pram: Pram = "auto"
    """Redraw columns one by one, clusters jointly, or what is predicted to be nearer."""

    name: ClassVar[str] = "dp2pub"
    takes_many_bins: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check.whole(at_least=1, at_most=4, degree=self.degree)
        check.whole(at_least=1, max_cluster=self.max_cluster)
        check.one_of(get_args(Pram), pram=self.pram)

    def check(self, schema: Schema) -> None:
        """Columns must not be too many or too large, and one must have something to say."""
        columns = columns_of_values(schema)
        if not columns:
            raise InputError("no column has more than one value.")
        largest = max(schema, key=lambda column: column.size)
        if largest.size > LARGEST_COLUMN:
            raise InputError(
                f"{largest.name!r} has {largest.size:,} values; dp2pub takes columns of at most "
                f"{LARGEST_COLUMN:,}. Use wider bins."
            )
        size = min(self.degree + 1, len(columns))
        if size * comb(len(columns), size) > MOST_CANDIDATES:
            raise InputError(
                f"{len(columns)} columns have {size * comb(len(columns), size):,} parent sets of "
                f"{size - 1}; at most {MOST_CANDIDATES:,} are compared. Use a smaller degree."
            )

    def check_promise(self, schema: Schema, protect: Protection, budget: Cap) -> None:
        """Raise an InputError if it can't promise this; before any spend."""
        self._design(schema, protect, budget)

    def run(self, curator: Curator) -> Fit:
        """Spend all that is left, to the last part of it."""
        schema = curator.schema
        self.check(schema)
        design = self._design(schema, curator.protect, curator.left)
        curator.reserve(curator.left, label="dp2pub with a trusted server")
        rows = int(curator.total().values)
        network = _select_network(curator, design, rows=rows, degree=self.degree)  # SELECT
        tables = _measure_columns(curator, design)  # MEASURE
        clusters = _clusters(curator, design, network, max_size=self.max_cluster)
        shares = {name: norm_sub(table.values / rows) for name, table in tables.items()}
        epsilons = column_budgets(clusters, shares, design.rows)
        known = _randomize(curator, epsilons, tables)
        redrawn = redraw_columns(known, clusters, kind=self.pram, rng=curator.rng)  # FIT
        answers = {name: column.answers for name, column in known.items()}
        published = redrawn.codes if redrawn.helped else answers
        return Fit(
            model=_as_rows(schema, published, rows, rng=curator.rng),
            measurements=tuple(tables.values()),
            facts={
                "trust": "server",
                "variant": "faithful",
                "published": "redrawn" if redrawn.helped else "answers",
                "redrawn_together": [list(part) for part in redrawn.parts if len(part) > 1],
                "network": {
                    child: [design.columns[parent] for parent in parents]
                    for child, parents in zip(design.columns, network.parents, strict=True)
                },
                "clusters": [list(cluster) for cluster in clusters],
                "budgets": {name: str(epsilon) for name, epsilon in epsilons.items()},
                "split": design.split,
            },
        )

    def describe(self) -> dict[str, Any]:
        """Its options."""
        return {"degree": self.degree, "max_cluster": self.max_cluster, "pram": self.pram}

    def _design(self, schema: Schema, protect: Protection, budget: Cap) -> "_Design":
        if not isinstance(protect, OneRow) or protect.neighbors != "replace":
            raise InputError(
                "dp2pub publishes one row for each row of the table, so everyone sees how many "
                "there are. That protects one row that is replaced, not one that is added or "
                f"removed, and {protect} was to be protected. Use replace neighbors (--neighbors "
                "replace), which make the number of rows public, or another method."
            )
        if not isinstance(budget, PureDP):
            raise InputError(f"dp2pub promises pure DP, got a budget of {budget}. Leave delta out.")
        design = _Design.of(schema, degree=self.degree, epsilon=budget.epsilon)
        least, most = (limit * len(design.columns) for limit in (LEAST_EPSILON, MOST_EPSILON))
        if not least <= design.rows <= most:
            raise InputError(
                f"of {budget} the values of {len(design.columns)} columns would be randomized with "
                f"{float(design.rows):.3g} together; it must be {float(least):g} to "
                f"{float(most):g}. Choose another epsilon."
            )
        return design


def column_budgets(
    clusters: Sequence[Cluster], shares: Mapping[str, NDArray[np.float64]], epsilon: Fraction
) -> dict[str, Fraction]:
    """The epsilon of every column by the entropies of the clusters, summing to it exactly.

    PBC of its cluster over the cluster's size, then moved towards equal parts by the least that
    brings all between ``LEAST_EPSILON`` and ``MOST_EPSILON``: t (1/d) + (1 - t) share.

    Args:
        clusters: Disjoint clusters of all columns.
        shares: Estimated frequencies of each column: public.
        epsilon: What all columns may cost together.

    >>> even = np.array([0.5, 0.5])
    >>> column_budgets([("a",), ("b",)], {"a": even, "b": even}, Fraction(1))["a"]
    Fraction(1, 2)
    """
    entropies = {name: entropy(own) for name, own in shares.items()}
    parts = attribute_shares(clusters, budget_shares(clusters, entropies))
    given = {name: epsilon * part for name, part in parts.items()}
    equal = epsilon / len(given)
    moves = [Fraction(0)]
    for own in given.values():
        limit = min(max(own, LEAST_EPSILON), MOST_EPSILON)
        if limit != own:
            moves.append((limit - own) / (equal - own))
    move = max(moves)
    return {name: own + move * (equal - own) for name, own in given.items()}


@dataclass(frozen=True, kw_only=True, slots=True)
class _Design:
    """What is decided by public facts alone: the columns, the tables that fit, the budget."""

    columns: Marginal
    """The columns of more than one value."""
    largest: int
    """Cells of the largest marginal that is a candidate."""
    selections: int
    epsilon: Fraction

    @staticmethod
    def of(schema: Schema, *, degree: int, epsilon: Fraction) -> "_Design":
        columns = columns_of_values(schema)
        largest = _largest_table(schema, columns, degree)
        pairs = combinations(range(len(columns)), 2)
        tables = [(i, j) for i, j in pairs if schema.cells((columns[i], columns[j])) <= largest]
        groups = len(np.unique(components(len(columns), tables)))  # no table connects two of them
        return _Design(
            columns=columns, largest=largest, selections=len(columns) - groups, epsilon=epsilon
        )

    @property
    def network(self) -> Fraction:
        """For all selections."""
        return self.epsilon * NETWORK_SHARE if self.selections else Fraction(0)

    @property
    def entropies(self) -> Fraction:
        """For the one-way tables."""
        return self.epsilon * ENTROPY_SHARE

    @property
    def rows(self) -> Fraction:
        """For the randomized rows: all that is left."""
        return self.epsilon - self.network - self.entropies

    @property
    def split(self) -> dict[str, str]:
        """The parts as fractions of epsilon."""
        parts = {"network": self.network, "entropies": self.entropies, "rows": self.rows}
        return {name: str(part / self.epsilon) for name, part in parts.items()}


def _largest_table(schema: Schema, columns: Marginal, degree: int) -> int:
    """Cells up to which all marginals of up to ``degree`` parents fit into memory together."""
    sizes = range(2, min(degree + 1, len(columns)) + 1)
    every = (schema.cells(names) for size in sizes for names in combinations(columns, size))
    cells = np.sort([own for own in every if own <= LARGEST_TABLE]).astype(np.int64)
    limits, first = np.unique(cells, return_index=True)
    upto = np.cumsum(cells)[np.append(first[1:], cells.size) - 1] if cells.size else cells
    return int(limits[upto <= MOST_CELLS].max(initial=0))


def _select_network(curator: Curator, design: _Design, *, rows: int, degree: int) -> Network:
    """From a random root on, always a child and parents with much mutual information.

    Where no table of a column outside and one inside fits, another root is drawn: no charge.
    """
    order: list[str] = []
    parents: dict[str, Marginal] = {}
    left = list(design.columns)
    if design.selections:
        label = f"dp2pub: {design.selections} selections of a network"
        curator.reserve(PureDP(design.network), label=label)
    while left:
        curator.tell("columns of the network", len(order), len(design.columns))
        candidates = _candidates(curator.schema, order, left, degree, design.largest)
        if candidates:
            child, parents[child] = _select(curator, candidates, design, rows)
        else:
            child = left[curator.pick(len(left))]
        order.append(child)
        left.remove(child)
    number = {name: index for index, name in enumerate(design.columns)}
    return Network(
        order=tuple(number[name] for name in order),
        parents=tuple(
            tuple(sorted(number[own] for own in parents.get(name, ()))) for name in design.columns
        ),
    )


def _candidates(
    schema: Schema, inside: Sequence[str], outside: Sequence[str], degree: int, largest: int
) -> list[tuple[str, Marginal]]:
    """Every child outside with its parent sets inside, of the largest number that fits."""
    result: list[tuple[str, Marginal]] = []
    sets = {
        size: [(parents, schema.cells(parents)) for parents in combinations(inside, size)]
        for size in range(min(degree, len(inside)), 0, -1)
    }
    for child in outside:
        room = largest // schema[child].size
        for same_size in sets.values():
            fitting = [(child, parents) for parents, cells in same_size if cells <= room]
            if fitting:
                result += fitting
                break
    return result


def _select(
    curator: Curator, candidates: Sequence[tuple[str, Marginal]], design: _Design, rows: int
) -> tuple[str, Marginal]:
    position = {name: number for number, name in enumerate(curator.schema.names)}.__getitem__
    targets = [tuple(sorted((child, *parents), key=position)) for child, parents in candidates]
    score = MutualInformation(children=tuple(child for child, _ in candidates), rows=rows)
    cost = PureDP(design.network / design.selections)
    return candidates[curator.select(targets, score=score, cost=cost)]


def _measure_columns(curator: Curator, design: _Design) -> dict[str, Measurement]:
    sizes = [curator.schema[name].size for name in design.columns]
    costs = shares_by_cells(PureDP(design.entropies), sizes)
    measured = curator.measure([(name,) for name in design.columns], costs=costs)
    return dict(zip(design.columns, measured, strict=True))


def _clusters(
    curator: Curator, design: _Design, network: Network, *, max_size: int
) -> tuple[Cluster, ...]:
    blankets = {
        name: tuple(design.columns[other] for other in network.markov_blanket(index))
        for index, name in enumerate(design.columns)
    }
    return disjoint_clusters(design.columns, blankets, max_size=max_size, rng=curator.rng)


def _randomize(
    curator: Curator, epsilons: Mapping[str, Fraction], tables: Mapping[str, Measurement]
) -> dict[str, Known]:
    """The rows' answers, and what they and the measured tables tell about each column.

    The channel is the one that was applied: another would correct wrongly. Rows are n in public,
    so the noise of a table's sum is taken off all cells alike: (cells - 1) sigma^2 is left.
    """
    answers = curator.respond({name: epsilons[name] for name in tables})
    known = {}
    for name, table in tables.items():
        made, n, size = answers.mechanisms[name], answers.rows, table.values.size
        known[name] = weigh(
            answers.codes[name],
            Channel.randomized_response(size=size, p=made.p, q=made.q),
            other=table.values / n + (1 - table.values.sum() / n) / size,
            other_noise=(size - 1) * (table.sigma_counts / n) ** 2,
        )
    return known


def _as_rows(
    schema: Schema, codes: Mapping[str, NDArray[Any]], rows: int, *, rng: Rng
) -> PublishedRows:
    """All columns, no row impossible; a column of a single value has that value in every row.

    In a random order: that of the table would tell where each row stood.
    """
    constant, order = np.zeros(rows, dtype=np.int64), rng.permutation(rows)
    whole = {
        name: codes[name][order].astype(np.int64) if name in codes else constant
        for name in schema.names
    }
    return PublishedRows(schema=schema, codes=repaired(schema, whole, rng=rng))
