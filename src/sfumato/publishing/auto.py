"""The automatic choice of an algorithm, from public facts and a declared or paid number of rows.

Where pairs of columns matter the choice is a clique tree, which decides about structure itself,
from paid scores: none, a tree, or cliques. A domain so small that counting every cell brings
less noise is counted; ranges on a small domain are answered by MWEM where that is better.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, Final

import numpy as np

from sfumato import check
from sfumato.errors import InputError
from sfumato.gate import Curator
from sfumato.models.dense.model import CELL_LIMIT
from sfumato.privacy.guarantees import Cost, PureDP, portion
from sfumato.schema import Schema, Target, Workload
from sfumato.schema.measurement import PublicTotal, check_totals, rows_of
from sfumato.synthesis.algorithm import Algorithm, check_workload, total_and_rest

UNMEASURED: Final = 0.08
"""What leaving a target out is taken to cost where no score is paid for: .05 to .16 on the real
tables we know. A public guess; a release states what was predicted with it."""

ROUNDS: Final = (5, 10, 20, 30)
"""Of MWEM: those that are compared."""

_FOR_TARGETS: Final = 0.65
"""The share of its budget that a clique tree has for what it chose."""

_TOGETHER: Final = 0.7
"""The error of targets that are fitted together, against each by itself: they share columns, and
some need no noise of their own. Measured on small tables of 3 to 6 made-up columns."""

Sigma = Callable[[Target, Cost], float]
"""The noise in counts of measuring a target for a cost, as ``Curator.sigma_of`` computes it."""

_REASONS = {
    "histogram": "one noisy count of every cell brings the least error",
    "mwem": "the domain is large: measuring a few parts of it brings less error than every cell",
    "independent": "too few rows for this epsilon: pairs would be noise, single columns are not",
    "cliquetree": "paid scores choose the marginals that are worth their noise",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Choice:
    """A method, why it was taken, and the noise predicted for those that were compared."""

    algorithm: Algorithm
    reason: str
    predicted: dict[str, float]
    """Mean error over the workload as a share of all rows (for marginals: total variation)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Auto:
    """Choose by public facts, and let paid scores decide about structure."""

    workload: Workload
    rows: int | None = None
    """The number of rows, if it is public knowledge; otherwise a part of the budget counts it."""
    model_mb: int = 16
    """The largest graphical model, in megabytes."""
    totals: tuple[PublicTotal, ...] = ()
    """Counts that are public knowledge; the release keeps them."""

    name: ClassVar[str] = "auto"

    def __post_init__(self) -> None:
        check.whole(at_least=1, at_most=100_000, model_mb=self.model_mb)
        object.__setattr__(self, "rows", rows_of(self.totals, self.rows))

    def check(self, schema: Schema) -> None:
        """Something works on every schema; the workload and public totals must fit it."""
        check_workload(schema, self.workload)
        check_totals(schema, self.totals)

    def choose(self, curator: Curator) -> Choice:
        """The choice for a curator's schema and budget; may pay for the number of rows.

        For numbers without bins the choice is that for their public classes.
        """
        bins = curator.schema.public_bins
        if bins:
            binned = curator.schema.with_bins(bins)
            choice = replace(self, workload=self.workload.on(binned)).choose(curator.binned(bins))
            if choice.algorithm.name == "histogram" and len(binned) == 1:
                choice = self._made("independent", "one column: all of the budget counts it")
            choice = replace(choice, algorithm=_asked(choice.algorithm, self.workload))
            return choice if _holds_all_bins(choice.algorithm, curator.schema) else self._large()
        schema, budget = curator.schema, curator.left
        dense = schema.cells(schema.names) <= CELL_LIMIT
        if len(schema) == 1 and dense:
            return self._made("histogram", "one column: every cell is counted once")
        if not isinstance(budget, PureDP) and not (dense and self.workload.ranges):
            return self._histogram_or_tree(schema, dense)
        if not dense:
            return self._made("independent", "the domain is too large for a dense histogram")
        rows, budget = total_and_rest(curator, rows=self.rows)
        return choose(
            self.workload, rows=rows, budget=budget, sigma=curator.sigma_of, totals=self.totals
        )

    def _histogram_or_tree(self, schema: Schema, dense: bool) -> Choice:
        """Every cell if that brings less noise than all targets one by one, else a clique tree."""
        if dense:  # a larger domain may have more cells than a float can count
            cells, targets = _noisy_cells(self.workload)
            if cells <= targets:
                return self._made("histogram", _REASONS["histogram"])
        try:
            self._algorithm("cliquetree").check(schema)
        except InputError:
            return self._large()
        return self._made("cliquetree", _REASONS["cliquetree"])

    def _large(self) -> Choice:
        return self._made("independent", "a column has more values than a model can hold")

    def _made(self, name: str, reason: str) -> Choice:
        return Choice(algorithm=self._algorithm(name), reason=reason, predicted={})

    def _algorithm(self, name: str) -> Algorithm:
        rows = None if self.totals else self.rows
        if name != "cliquetree":
            return _without_scores(name, rows=rows, totals=self.totals)
        from sfumato.synthesis.clique_tree import CliqueTree

        return CliqueTree(
            workload=self.workload,
            rows=rows,
            model_mb=self.model_mb,
            looks=2,
            totals=self.totals,
        )


def _holds_all_bins(algorithm: Algorithm, schema: Schema) -> bool:
    """Whether a method takes as many bins of numbers as may be found."""
    from sfumato.synthesis import number_bins  # only here: it loads models

    try:
        number_bins.check(algorithm, schema)
    except InputError:
        return False
    return True


def _asked(algorithm: Any, workload: Workload) -> Algorithm:
    """The same method for the workload as it was declared, if it has one."""
    made: Algorithm = (
        replace(algorithm, workload=workload) if hasattr(algorithm, "workload") else algorithm
    )
    return made


def prefers_pure(auto: Auto, schema: Schema, *, laplace: float, gaussian: float) -> bool:
    """Whether the automatic choice has less noise without a delta.

    Args:
        auto: What is to be chosen for.
        schema: The columns.
        laplace: The noise in counts of one table that the whole pure budget is spent on.
        gaussian: The same with a delta.
    """
    if schema.cells(schema.names) > CELL_LIMIT:
        return False
    if len(schema) == 1 or auto.workload.ranges:
        return True
    cells, targets = _noisy_cells(auto.workload)
    return laplace * cells <= gaussian * min(cells, targets)


def choose(
    workload: Workload,
    *,
    rows: float,
    budget: Cost,
    sigma: Sigma,
    totals: tuple[PublicTotal, ...] = (),
) -> Choice:
    """Of the methods that need no scores, the one with the least predicted error.

    From public facts alone: the noise is known; what is left unmeasured is taken to cost
    ``UNMEASURED`` a target. Public totals are kept by the choice.
    """
    schema, whole = workload.schema, sigma(workload.schema.names, budget)

    def mwem_error(rounds: int) -> float:
        step = portion(budget, Fraction(1, 2 * rounds))
        noise = _mean_share(workload, rows, lambda target: sigma(target, step))
        return noise + UNMEASURED * (1 - rounds / len(workload))

    rounds = min((min(r, len(workload)) for r in ROUNDS), key=mwem_error)
    predicted = {
        "histogram": _mean_share(workload, rows, lambda t: whole * math.sqrt(_merged(schema, t))),
        "mwem": mwem_error(rounds),
        "independent": UNMEASURED,
    }
    best = min(predicted, key=lambda name: predicted[name])
    public_rows = None if totals else max(1, round(rows))  # totals tell the number of rows, too
    if best == "mwem":
        from sfumato.synthesis.mwem import Mwem

        algorithm: Algorithm = Mwem(
            workload=workload, rounds=rounds, rows=public_rows, totals=totals
        )
    else:
        tied = any(len(total.marginal) > 1 for total in totals)  # not kept by single columns
        name = "histogram" if tied else best
        algorithm = _without_scores(name, rows=public_rows, totals=totals)
    return Choice(algorithm=algorithm, reason=_REASONS[best], predicted=predicted)


def _without_scores(name: str, *, rows: int | None, totals: tuple[PublicTotal, ...]) -> Algorithm:
    """A histogram, or independent columns; what a run does not need is not loaded."""
    if name == "histogram":
        from sfumato.synthesis.histogram import Histogram

        return Histogram(rows=rows, totals=totals)
    from sfumato.synthesis.independent import Independent

    return Independent(rows=rows, totals=totals)


def _noisy_cells(workload: Workload) -> tuple[float, float]:
    """How many noisy cells stand for one target, counting all cells or all targets.

    In the first case a target's s cells are sums of cells / s each, of sqrt(cells / s) times the
    noise. In the second the budget is divided: b proportional to s^(2/3) is best, and s / sqrt(b)
    sums up to (sum s^(2/3))^(3/2).
    """
    schema = workload.schema
    marginals = [t if isinstance(t, tuple) else t.marginal for t in workload.targets]
    sizes = np.array([float(schema.cells(names)) for names in marginals])
    cells = float(schema.cells(schema.names))
    split = float((sizes ** (2 / 3)).sum() ** 1.5) / math.sqrt(_FOR_TARGETS)
    together = _TOGETHER if len(sizes) > 1 else 1.0
    return float(np.sqrt(cells * sizes).mean()), together * split / len(sizes)


def _mean_share(workload: Workload, rows: float, sigma: Callable[[Target], float]) -> float:
    """Mean over targets of the expected noise, sigma * sqrt(2/pi) a cell, as a share of the rows.

    A marginal's cells are added and halved: total variation before any projection.
    """
    sizes = [
        workload.schema.cells(target) / 2 if isinstance(target, tuple) else 1.0
        for target in workload.targets
    ]
    noise = np.array([sigma(target) for target in workload.targets]) * np.array(sizes)
    return min(1.0, float(noise.mean() * math.sqrt(2 / math.pi) / max(1.0, rows)))


def _merged(schema: Schema, target: Target) -> float:
    """How many cells of the whole domain add up to one answer."""
    cells = schema.cells(schema.names)
    if isinstance(target, tuple):
        return cells / schema.cells(target)
    inside = math.prod((high - low + 1) / schema[name].size for name, low, high in target.bounds)
    return cells * inside
