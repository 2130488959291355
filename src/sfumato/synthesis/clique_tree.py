"""The one-shot clique tree: single columns, noisy scores of all pairs, then everything at once.

The scores tell how far from independent each marginal of the workload is. They are released
whole, so that which marginals to measure, how precisely, and on which junction tree is free
post-processing: the choice with the least predicted error, which may be none at all.

With two looks a spanning forest is measured first. Where columns depend on each other in a chain,
independence is wrong about every pair of the chain, but the pairs of the forest explain the
others. A second vector of scores, against the model of the forest, shows which pairs are still
wrong: only these are worth their noise.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from sfumato import check
from sfumato.errors import InputError
from sfumato.gate import Curator, L1Error
from sfumato.models.graphical.fit import fit_graphical
from sfumato.models.graphical.model import rare_groups
from sfumato.models.graphical.structure import Limits
from sfumato.models.graphical.tree_search import (
    MEAN_ABSOLUTE,
    Scored,
    TreeChoice,
    choose_tree,
    first_forest,
    independent_counts,
    precision_of,
)
from sfumato.models.numbers import improved
from sfumato.privacy.composition import Cap
from sfumato.privacy.guarantees import ZCDP, Cost, PureDP, portion, split
from sfumato.schema import Marginal, Measurement, Schema, Workload
from sfumato.schema.measurement import PublicTotal, as_measurements, described, rows_of
from sfumato.synthesis.algorithm import Fit, check_workload
from sfumato.synthesis.graphical_steps import (
    check_begin,
    limits,
    structure,
    tied,
)
from sfumato.synthesis.independent import (
    agreed_total,
    column_sizes,
    measure_columns,
    measure_parts,
    shares_by_cells,
)

_FOREST: Final = Fraction(1, 4)
"""Of what is left besides the scores."""


_COLUMNS: Final = Fraction(1, 4)
_MOST_COLUMNS: Final = Fraction(9, 20)
_SCORES: Final = Fraction(1, 10)
"""Shares of the budget; the rest is allocated after the scores, also to single columns again."""
MOSTLY_NOISE: Final = 0.1
"""The mean total variation of single columns by noise alone, if all is theirs, from which nothing
else is measured. From .05 to .5 on the made-up tables of ``bench/value_tables.py`` with 300 to
6,000 rows."""
_LOUD: Final = 0.01
"""Total variation of all targets by noise alone, from which a second look pays."""
_ROW_COUNT: Final = Fraction(1, 500)
"""For a rough number of rows, where it is not public."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CliqueTree:
    """Measure, all at once, the marginals that pay for their noise; fit a graphical model.

    The order of steps is that of SWIFT in google/dpsynth; the prediction of errors and the
    division of the budget are ours (``models.graphical.tree_search``).
    """

    workload: Workload
    """The marginals that matter; of ranges, the columns that they limit."""
    rows: int | None = None
    """The number of rows, if it is public knowledge; otherwise the columns' sums tell it."""
    model_mb: int = 16
    """The largest model, in megabytes; a fit holds three copies."""
    looks: int = 1
    """With 2, and noise that is large against the rows, a spanning forest is measured first and
    targets are scored again against its model, so that what it explains is not paid for."""
    totals: tuple[PublicTotal, ...] = ()
    """Counts that are public knowledge; the model holds them exactly."""

    name: ClassVar[str] = "cliquetree"
    takes_many_bins: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check.whole(at_least=1, at_most=2, looks=self.looks)
        check.whole(at_least=1, at_most=100_000, model_mb=self.model_mb)
        object.__setattr__(self, "rows", rows_of(self.totals, self.rows))

    def check(self, schema: Schema) -> None:
        """The workload must be of this schema.

        Single columns, and what public facts tie together, must fit into the model's limit.
        """
        check_workload(schema, self.workload)
        check_begin(schema, self.totals, model_mb=self.model_mb, method=self.name)

    def check_promise(self, budget: Cap) -> None:
        """Raise an InputError if it can't promise this; before any spend."""
        if isinstance(budget, PureDP):
            raise InputError("cliquetree draws Gaussian noise and needs a delta, for example 1e-9.")

    def run(self, curator: Curator) -> Fit:
        """Columns, scores of all targets, then what is worth it."""
        self.check(curator.schema)
        targets = self._targets(curator)
        budget, cost = self._begin(curator)
        share = self._column_share(curator, budget)
        alone = share == 1
        targets = () if alone else targets
        paid = curator.left if alone else portion(budget, share)
        columns = self._columns(curator, paid)  # MEASURE
        scored = self._scored(curator, columns, targets, cost)
        measured = [one for one in columns if one.sigma_counts > 0]
        if self.looks == 2 and targets:
            better = [one for one in scored.columns if one.sigma_counts > 0]
            scored, forest = self._second_look(curator, scored, better, cost)
            measured += forest
        if not alone:
            choice = self._choose(curator, scored)  # SELECT: public numbers only
            measured += _measured(curator, scored, choice)  # MEASURE
        curator.tell("fitting the model", 0, 0)
        total = self._total(curator, scored, measured)
        measured = improved(curator.schema, measured, known=curator.numbers, total=total)
        model = fit_graphical(  # FIT
            scored.view,
            [*measured, *as_measurements(self.totals)],
            total=total,
            limit_mb=2.0 * self.model_mb,
        )
        known = as_measurements(self.totals)
        return Fit(model=model, measurements=(*known, *measured), facts=structure(model, measured))

    def describe(self) -> dict[str, Any]:
        """Its options and the public totals."""
        return {
            "model_mb": self.model_mb,
            "looks": self.looks,
            "targets": len(self.workload),
            **described(self.totals),
        }

    @property
    def _limits(self) -> Limits:
        return replace(limits(self.model_mb), clique_cells=limits(self.model_mb).all_cells / 5)

    def _begin(self, curator: Curator) -> tuple[Cost, Cost]:
        """The whole budget, and the part of it that pays for a vector of scores."""
        budget = curator.left
        self.check_promise(budget)
        curator.reserve(budget, label="cliquetree: columns, scores and marginals")
        return budget, portion(budget, _SCORES / self.looks)

    def _columns(self, curator: Curator, cost: Cost) -> list[Measurement]:
        """Every column, in the schema's order; those with public totals are not measured."""
        schema, known = curator.schema, self._public_columns()
        names = self._unknown(schema)
        if names:
            known |= dict(zip(names, measure_columns(curator, names, cost), strict=True))
        return [known[(name,)] for name in schema.names]

    def _unknown(self, schema: Schema) -> list[Marginal]:
        """The columns that public totals do not contain."""
        known = self._public_columns()
        return [(name,) for name in schema.names if (name,) not in known]

    def _public_columns(self) -> dict[Marginal, Measurement]:
        """The columns that public totals contain, also as sums over others."""
        result: dict[Marginal, Measurement] = {}
        for total in self.totals:
            for axis, name in enumerate(total.marginal):
                others = tuple(index for index in range(total.counts.ndim) if index != axis)
                counts = np.asarray(total.counts.sum(axis=others))
                result[(name,)] = Measurement(target=(name,), values=counts, sigma_counts=0.0)
        return result

    def _column_share(self, curator: Curator, budget: Cost) -> Fraction:
        """A quarter, and more where the noise is large against the rows; all where it is too large.

        Then fewer pairs will be worth measuring, and single columns would get more later anyway. If
        columns with the whole budget would be mostly noise, scores and pairs would take from them
        what they do not give back.
        """
        rows, names = float(self.rows or 0), self._unknown(curator.schema)
        if not names:
            return _COLUMNS
        if self.rows is None:
            cost = None if curator.knows_rows else portion(budget, _ROW_COUNT)
            rows = float(curator.total(cost=cost).values)
        sizes = column_sizes(curator, names)
        costs = shares_by_cells(portion(budget, _COLUMNS), sizes)
        sigmas = [curator.sigma_of(one, cost) for one, cost in zip(names, costs, strict=True)]
        wrong = MEAN_ABSOLUTE / 2 * sum(s * c for s, c in zip(sigmas, sizes, strict=True))
        mean = min(1.0, wrong / max(1.0, rows) / len(names))
        if mean * float(_COLUMNS) ** 0.5 > MOSTLY_NOISE:
            return Fraction(1)
        return min(_MOST_COLUMNS, _COLUMNS + Fraction(round(100 * mean), 100))

    def _targets(self, curator: Curator) -> tuple[Marginal, ...]:
        """What is scored: the workload's marginals of two columns and more that fit a clique.

        Those that a public total contains are known already.
        """
        known, most = [set(total.marginal) for total in self.totals], self._limits.clique_cells
        weighed = list(self._weights(curator.schema))
        schema = curator.schema if curator.numbers is None else curator.numbers.groups.schema
        sizes = [schema.cells(target) for target in weighed]
        return tuple(
            target
            for target, size in zip(weighed, sizes, strict=True)
            if len(target) > 1 and size <= most and not any(set(target) <= one for one in known)
        )

    def _weights(self, schema: Schema) -> dict[Marginal, float]:
        """How much each marginal matters; a range lends its weight to the columns it limits."""
        result: dict[Marginal, float] = {}
        pairs = zip(self.workload.targets, self.workload.importance, strict=True)
        for target, weight in pairs:
            names = schema.marginal(target if isinstance(target, tuple) else target.marginal)
            result[names] = result.get(names, 0.0) + float(weight)
        return result

    def _column_weights(self, schema: Schema, scored: tuple[Marginal, ...]) -> dict[str, float]:
        """How much each column matters by itself, and for marginals that can't be measured."""
        result = dict.fromkeys(schema.names, 0.0)
        for target, weight in self._weights(schema).items():
            if target not in scored:
                for name in target:
                    result[name] += weight
        return result

    def _scored(
        self,
        curator: Curator,
        columns: list[Measurement],
        targets: tuple[Marginal, ...],
        cost: Cost,
    ) -> Scored:
        """Rare values merged, and every target's noisy distance from independence."""
        schema, weights = curator.schema, self._weights(curator.schema)
        measured = [one for one in columns if one.sigma_counts > 0]
        rows = float(self.rows) if self.rows is not None else agreed_total(measured)
        if curator.knows_rows:
            rows = float(curator.total().values)
        rows = max(rows, 1.0)
        numbers = None if curator.numbers is None else curator.numbers.groups
        columns = improved(schema, columns, known=curator.numbers, total=rows)
        known = Scored(
            view=rare_groups(schema, columns, total=rows, numbers=numbers),
            columns=columns,
            rows=rows,
            targets=targets,
            errors=np.zeros(len(targets)),
            weights=np.array([weights[target] for target in targets]),
            column_weights=np.array(list(self._column_weights(schema, targets).values())),
            required=tied(schema, self.totals),
        )
        return replace(known, errors=_from_independence(curator, known, cost))

    def _second_look(
        self, curator: Curator, scored: Scored, measured: list[Measurement], cost: Cost
    ) -> tuple[Scored, list[Measurement]]:
        """A forest and the distances from it; where noise is small, better scores as they were.

        Small is the mean total variation if the budget that is left were divided over all targets.
        """
        sigma = curator.sigma_of(curator.schema.names[:1], curator.left)
        cells = np.array([float(scored.view.schema.cells(target)) for target in scored.targets])
        wrong = MEAN_ABSOLUTE / 2 * sigma * float((cells ** (2 / 3)).sum()) ** 1.5
        if wrong / cells.size / scored.rows <= _LOUD:
            again = _from_independence(curator, scored, cost)
            return replace(scored, errors=(scored.errors + again) / 2), []
        return look_again(
            curator,
            scored,
            [*measured, *as_measurements(self.totals)],
            cost=cost,
            limits=self._limits,
            limit_mb=2.0 * self.model_mb,
        )

    def _total(self, curator: Curator, scored: Scored, measured: list[Measurement]) -> float:
        """The number of rows: public, or what the sums of all tables that were measured say."""
        if curator.knows_rows or self.rows is not None:
            return scored.rows
        return max(1.0, agreed_total(measured))

    def _choose(self, curator: Curator, scored: Scored) -> TreeChoice:
        """The budget that is left, divided by predicted error."""
        curator.tell("choosing what to measure", 0, 0)
        precision = precision_of(curator.sigma_of(curator.schema.names[:1], curator.left))
        return choose_tree(scored, precision=precision, limits=self._limits)


def _from_independence(curator: Curator, scored: Scored, cost: Cost) -> NDArray[np.float64]:
    """Rows that independent columns put into wrong cells of each target, with noise."""
    if not scored.targets:
        return np.zeros(0)
    curator.tell(f"scoring {len(scored.targets):,} marginals", 0, 0)
    expected = np.concatenate([one.reshape(-1) for one in independent_counts(scored)])
    score = L1Error(answers=expected)
    l1 = curator.score(scored.targets, score=score, cost=cost, merged=scored.view)  # SELECT
    return np.asarray(l1 / 2)


def _measured(curator: Curator, scored: Scored, choice: TreeChoice) -> list[Measurement]:
    """The chosen marginals with rare values merged, and columns once more with all values."""
    precisions = [*choice.precisions, *choice.column_precisions]
    if not precisions:
        return []
    costs = split(curator.left, precisions)
    curator.tell(f"measuring {len(precisions):,} marginals", 0, 0)
    cut, measured = len(choice.targets), []
    if choice.targets:
        measured += curator.measure(choice.targets, costs=costs[:cut], merged=scored.view)
    if choice.columns:
        measured += measure_parts(curator, choice.columns, costs[cut:])
    return measured


def look_again(
    curator: Curator,
    scored: Scored,
    earlier: Sequence[Measurement],
    *,
    cost: Cost,
    limits: Limits,
    limit_mb: float,
) -> tuple[Scored, list[Measurement]]:
    """Measure a spanning forest and score all targets against its model.

    Args:
        curator: The gate.
        scored: Targets with their distance from independence.
        earlier: What was measured so far, public counts too.
        cost: What the scores cost.
        limits: How large the model may get.
        limit_mb: The same for the fit.

    Returns:
        The targets with their distance from the forest, which the model will hold in any case,
        and the pairs that were measured.
    """
    left = curator.left
    if not isinstance(left, ZCDP) or not isinstance(cost, ZCDP):
        return scored, []
    spare = portion(ZCDP(left.rho - cost.rho), _FOREST)
    precision = precision_of(curator.sigma_of(curator.schema.names[:1], spare))
    pairs = first_forest(scored, precision=precision, limits=limits)
    measured: list[Measurement] = []
    if pairs:
        sizes = [scored.view.schema.cells(pair) for pair in pairs]
        costs = shares_by_cells(spare, sizes)
        curator.tell(f"measuring {len(pairs):,} pairs of a tree", 0, 0)
        measured = curator.measure(pairs, costs=costs, merged=scored.view)  # MEASURE
    model = fit_graphical(  # FIT
        scored.view, [*earlier, *measured], total=scored.rows, limit_mb=limit_mb
    )
    curator.tell(f"scoring {len(scored.targets):,} marginals again", 0, 0)
    answers = [one.reshape(-1) for one in model.coarse_marginals(scored.targets)]
    score = L1Error(answers=np.concatenate(answers))
    l1 = curator.score(scored.targets, score=score, cost=cost, merged=scored.view)  # SELECT
    return replace(scored, errors=l1 / 2, required=[*scored.required, *pairs]), measured
