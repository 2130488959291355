"""MST: single columns, and the pairs of a maximum spanning tree of how dependent columns are.

McKenna, Miklau, Sheldon 2021, "Winning the NIST contest: a scalable and general approach to
differentially private synthetic data", arXiv 2108.04978. Two things differ. With
Gaussian noise the errors of all pairs are released at once, which makes the choice free. And the
weight of an edge is its error under independence less the noise that measuring it brings; an edge
of negative weight is left out, and the tree becomes a forest.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from sfumato import check
from sfumato.gate import MOST_CELLS, Curator, L1Error
from sfumato.models.graphical.fit import fit_graphical
from sfumato.models.graphical.junction_tree import Clique
from sfumato.models.graphical.structure import Pairs, joining, spanning_forest
from sfumato.models.graphical.tree_search import misplaced
from sfumato.privacy.guarantees import ZCDP, Cost, portion
from sfumato.schema import Marginal, Schema
from sfumato.schema.measurement import Coarse, PublicTotal, described, rows_of
from sfumato.synthesis.algorithm import Fit
from sfumato.synthesis.graphical_steps import Begun, begin, check_begin, limits, structure, tied
from sfumato.synthesis.independent import shares_by_cells

_COLUMNS: Final = Fraction(2, 5)
_CHOICE: Final = Fraction(1, 20)
"""Shares of the budget; the rest measures the pairs."""
_REPREDICTIONS: Final = 3
"""How often the noise of the edges is predicted: it depends on which other edges are chosen."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Mst:
    """A tree of measured pairs: everything else follows from them."""

    rows: int | None = None
    """The number of rows, if it is public knowledge; otherwise it is estimated."""
    model_mb: int = 64
    """The largest model, in megabytes; pairs that might exceed it are not measured."""
    merge_sigmas: float = 2.0
    """Values with a count below this many standard deviations of its noise are merged."""
    totals: tuple[PublicTotal, ...] = ()
    """Counts that are public knowledge; the model holds them exactly."""

    name: ClassVar[str] = "mst"
    takes_many_bins: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check.whole(at_least=1, at_most=100_000, model_mb=self.model_mb)
        check.positive(merge_sigmas=self.merge_sigmas)
        object.__setattr__(self, "rows", rows_of(self.totals, self.rows))

    def check(self, schema: Schema) -> None:
        """Single columns, and what public facts tie together, must fit into the model."""
        check_begin(schema, self.totals, model_mb=self.model_mb, method=self.name)

    def run(self, curator: Curator) -> Fit:
        """Columns, a tree, its pairs."""
        self.check(curator.schema)
        whole = curator.left
        curator.reserve(whole, label="mst: columns, the choice of a tree, its pairs")
        begun = begin(  # MEASURE
            curator,
            cost=portion(whole, _COLUMNS),
            rows=self.rows,
            totals=self.totals,
            merge_sigmas=self.merge_sigmas,
            limit_mb=self.model_mb,
        )
        edges = _edges(self, curator.schema, begun)
        choose = _from_scores if isinstance(whole, ZCDP) else _one_by_one
        chosen = choose(curator, edges, portion(whole, _CHOICE))  # SELECT
        measured = begun.measurements
        if chosen:
            sizes = [begun.view.schema.cells(pair) for pair in chosen]
            costs = shares_by_cells(curator.left, sizes)
            measured = measured + curator.measure(chosen, costs=costs, merged=begun.view)  # MEASURE
        model = fit_graphical(
            begun.view, measured, total=begun.total, limit_mb=self.model_mb
        )  # FIT
        return Fit(model=model, measurements=tuple(measured), facts=structure(model, measured))

    def describe(self) -> dict[str, Any]:
        """Its options and the public totals."""
        options = {"model_mb": self.model_mb, "merge_sigmas": self.merge_sigmas}
        return {**options, **described(self.totals)}


@dataclass(frozen=True, kw_only=True, eq=False)
class _Edges:
    """All pairs of columns and what is public about them."""

    view: Coarse
    pairs: tuple[Marginal, ...]
    scored: tuple[Marginal, ...]
    """What is scored in the place of each pair: of one that is too large only the total."""
    numbers: Pairs
    columns: int
    ties: list[Clique]
    counts: list[NDArray[np.float64]]
    """What independent columns expect of what is scored."""
    eligible: NDArray[np.bool_]
    """Neither too large, nor known already, nor of a column with one value left."""

    @property
    def score(self) -> L1Error:
        """How far the truth is from independence."""
        return L1Error(answers=np.concatenate([one.reshape(-1) for one in self.counts]))

    def joining(self, chosen: Sequence[int]) -> NDArray[np.bool_]:
        """Pairs that may be taken next."""
        free = joining(self.numbers, chosen, columns=self.columns, ties=self.ties)
        return np.asarray(free & self.eligible)

    def noise(self, curator: Curator, cost: Cost, chosen: Sequence[int]) -> NDArray[np.float64]:
        """The L1 error that measuring each pair would bring, if such a tree shares the cost."""
        power = np.array([one.size ** (2 / 3) for one in self.counts])
        among = list(chosen) if chosen else np.flatnonzero(self.eligible)
        edges = max(1, len(chosen) or self.columns - 1)
        sigma = curator.sigma_of(self.pairs[0], cost)
        sigmas = sigma * np.sqrt(edges * power[among].mean() / power)
        pairs = zip(self.counts, sigmas, strict=True)
        return np.array([2 * misplaced(counts, float(one)) for counts, one in pairs])


def _edges(spec: Mst, schema: Schema, begun: Begun) -> _Edges:
    pairs = tuple(combinations(schema.names, 2))
    room = (limits(spec.model_mb).all_cells - begun.model.tree.cells) / len(schema)
    room = min(room, MOST_CELLS / max(1, len(pairs)))  # all are counted in one look
    view, known = begun.view.schema, [set(total.marginal) for total in spec.totals]
    scored = tuple(pair if view.cells(pair) <= room else () for pair in pairs)
    eligible = [
        each == pair and min(view.shape(pair)) > 1 and not any(set(pair) <= k for k in known)
        for pair, each in zip(pairs, scored, strict=True)
    ]
    number = {name: index for index, name in enumerate(schema.names)}
    return _Edges(
        view=begun.view,
        pairs=pairs,
        scored=scored,
        numbers=np.array(list(combinations(range(len(schema)), 2))).reshape(-1, 2),
        columns=len(schema),
        ties=[tuple(number[name] for name in names) for names in tied(schema, spec.totals)],
        counts=begun.model.coarse_marginals(scored),
        eligible=np.array(eligible, dtype=np.bool_),
    )


def _from_scores(curator: Curator, edges: _Edges, cost: Cost) -> list[Marginal]:
    """The errors of all pairs with noise; the tree is then post-processing."""
    if not edges.eligible.any():
        return []
    errors = curator.score(edges.scored, score=edges.score, cost=cost, merged=edges.view)
    chosen: list[int] = []
    for _ in range(_REPREDICTIONS):
        gains = np.where(edges.eligible, errors - edges.noise(curator, curator.left, chosen), 0.0)
        chosen = spanning_forest(edges.numbers, gains, columns=edges.columns, ties=edges.ties)
    return [edges.pairs[index] for index in chosen]


def _one_by_one(curator: Curator, edges: _Edges, cost: Cost) -> list[Marginal]:
    """Edge by edge with a private selection, as published: d - 1 times."""
    chosen: list[int] = []
    if not edges.eligible.any():
        return []
    step = portion(cost, Fraction(1, edges.columns - 1))
    rest = portion(cost, (1 - _COLUMNS - _CHOICE) / _CHOICE)
    score = replace(edges.score, penalties=edges.noise(curator, rest, []))
    while (allowed := edges.joining(chosen)).any():
        chosen.append(
            curator.select(edges.scored, score=score, cost=step, allowed=allowed, merged=edges.view)
        )
    return [edges.pairs[index] for index in chosen]
