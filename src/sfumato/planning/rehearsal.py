"""Rehearsals: a method run with seeded noise on a public or made-up table, and its error.

What a method does with its budget is its own business, so it is not modeled a second time: it runs.
The table is public, or made up from the schema; the private one has no way in here.

Real columns hold most rows in few values, and are tied to each other, some pairs more than others;
so are those of a made-up table. Uniform columns would make noise look two to five times as bad as
it is, and independent ones would show a method that measures pairs nothing to measure.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sfumato.counting.exact_counts import count_marginals
from sfumato.errors import InputError
from sfumato.evaluation.marginals import distance, in_batches
from sfumato.evaluation.rows import read_rows, row_count, take
from sfumato.gate import Curator
from sfumato.ledger.ledger import Ledger
from sfumato.models.model import Rows, draw_possible, repaired
from sfumato.planning.plan import TYPICAL_DEPENDENCE
from sfumato.privacy.composition import Cap
from sfumato.privacy.guarantees import (
    MAX_EPSILON,
    ZCDP,
    ApproxDP,
    PureDP,
    epsilon_from_zcdp,
    zcdp_budget,
)
from sfumato.privacy.sensitivity import Protection
from sfumato.randomness import Rng, simulation_rng
from sfumato.readers.array_table import ArrayTable
from sfumato.readers.open_table import open_table
from sfumato.schema import Marginal, Measurement, Range, Schema, Target, Workload
from sfumato.schema.workload import sum_ranges
from sfumato.synthesis.algorithm import Algorithm
from sfumato.synthesis.dp2pub import Dp2Pub

MOST_ROWS: Final = 200_000
"""A larger table is replaced by one of this many rows with as much less noise: what noise does to
shares stays the same, and only what sampling rows brings is predicted too large."""
MOST_TARGETS: Final = 300
"""The most targets that are compared; chosen by judgment, for the time."""
MOST_CELLS: Final = 5_000_000
"""The most cells of all compared targets; of a larger workload some are taken at random."""

_SEED: Final = 1_000
"""Of simulations: the same request gives the same prediction."""
_LARGEST: Final = Fraction(MAX_EPSILON)

Answers = Mapping[Target, NDArray[Any]]
Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Stage:
    """A table to rehearse on, and the part of the workload that is compared."""

    table: ArrayTable
    targets: tuple[Target, ...]
    weights: NDArray[np.float64]
    n_rows: int
    """Of the table."""
    scale: Fraction
    """Requested rows for each row of the table: above 1 for very large tables."""

    @property
    def schema(self) -> Schema:
        """The columns."""
        return self.table.schema

    @cached_property
    def truth(self) -> Answers:
        """The true answers to the targets."""
        return _answers(self.table, self.targets)

    @cached_property
    def _counted(self) -> dict[Marginal, NDArray[np.int64]]:
        return {target: known for target, known in self.truth.items() if isinstance(target, tuple)}

    def curator(self, budget: Cap, protect: Protection, *, run: int) -> Curator:
        """Of a simulation: the same noise for the same run."""
        ledger = Ledger.in_memory(dataset="plan")
        rng = simulation_rng(_SEED + 1 + run)
        return Curator(self.table, protect=protect, budget=budget, ledger=ledger, rng=rng)

    def counts(self, marginal: Marginal) -> NDArray[np.int64]:
        """One marginal of the table, counted once."""
        if marginal not in self._counted:
            self._counted[marginal] = count_marginals(self.table, [marginal])[marginal]
        return self._counted[marginal]


@dataclass(frozen=True, kw_only=True)
class Rehearsal:
    """What came out of the runs of a method."""

    error: float
    """Mean over targets and runs, as a share of the rows."""
    measurements: tuple[Measurement, ...]
    """Of the first run."""
    laplace: bool
    """Whether their noise was Laplace, not Gaussian."""


def stage(
    schema: Schema, n_rows: int, workload: Workload, *, like: Any | None, encoding: str
) -> Stage:
    """A public table with as many rows as requested, or one that is made up."""
    rng = simulation_rng(_SEED)
    rows = min(n_rows, MOST_ROWS)
    if like is None:
        made = stand_in_rows(schema, rows, dependence=TYPICAL_DEPENDENCE, rng=rng)
        table = ArrayTable(schema, made)
    else:
        table = _public(schema, like, rows, encoding=encoding, rng=rng)
    targets, weights = _compared(workload, rng)
    return Stage(
        table=table, targets=targets, weights=weights, n_rows=rows, scale=Fraction(n_rows, rows)
    )


def rehearse(
    algorithm: Algorithm, on: Stage, *, budget: Cap, protect: Protection, runs: int
) -> Rehearsal:
    """Run a method on a stage, draw its rows and compare them."""
    one_by_one = isinstance(algorithm, Dp2Pub)  # rows are randomized each for itself
    scaled = budget if one_by_one else scaled_budget(budget, on.scale)
    errors, measurements = [], []
    for run in range(runs):
        curator = on.curator(scaled, protect, run=run)
        fit = algorithm.run(curator)
        drawn = draw_possible(fit.model, round(fit.model.total), rng=curator.rng)
        errors.append(_error(on, ArrayTable(on.schema, drawn)))
        measurements.append(fit.measurements)
    return Rehearsal(
        error=float(np.mean(errors)),
        measurements=measurements[0],
        laplace=isinstance(scaled, PureDP),
    )


def scaled_budget(budget: Cap, scale: Fraction) -> Cap:
    """The budget whose noise is smaller by a factor: epsilon times it, or rho times its square.

    >>> str(scaled_budget(PureDP(1), Fraction(5)))
    'epsilon=5'
    """
    if scale == 1:
        return budget
    if isinstance(budget, ApproxDP):
        rho = zcdp_budget(budget).rho * scale**2
        return ApproxDP(min(epsilon_from_zcdp(rho, budget.delta), _LARGEST), budget.delta)
    if isinstance(budget, PureDP):
        return PureDP(min(budget.epsilon * scale, _LARGEST))
    return ZCDP(min(budget.rho * scale**2, _LARGEST))


def _public(schema: Schema, like: Any, n_rows: int, *, encoding: str, rng: Rng) -> ArrayTable:
    """A public table's rows; fewer at random, or more by repeating them all, as even as can be.

    Drawing with replacement would tie columns that are not tied.
    """
    table = open_table(like, schema, encoding=encoding)
    table.validate()
    rows = read_rows(table)
    there = row_count(rows)
    return take(schema, rows, np.resize(rng.permutation(there), n_rows))


def _compared(workload: Workload, rng: Rng) -> tuple[tuple[Target, ...], NDArray[np.float64]]:
    """The targets, with their weights; of too many, some at random."""
    schema = workload.schema
    order = np.arange(len(workload))
    sizes = np.array(
        [schema.cells(t) if isinstance(t, tuple) else 1 for t in workload.targets], dtype=float
    )
    if order.size > MOST_TARGETS or sizes.sum() > MOST_CELLS:
        order = rng.permutation(order.size)
        order = np.sort(order[np.cumsum(sizes[order]) <= MOST_CELLS][:MOST_TARGETS])
    if not order.size:
        raise InputError(
            f"the workload's marginals have up to {sizes.max():.2e} cells; at most {MOST_CELLS:,} "
            "can be rehearsed. Ask for fewer columns together."
        )
    return tuple(workload.targets[index] for index in order), workload.importance[order]


def _error(on: Stage, published: ArrayTable) -> float:
    """Weighted mean over targets: total variation, or the gap of a range as a share of rows."""
    published_answers = _answers(published, on.targets)
    rows = max(1, row_count(read_rows(published)))
    errors = [
        distance(on.truth[target], published_answers[target])
        if isinstance(target, tuple)
        else abs(float(on.truth[target]) / on.n_rows - float(published_answers[target]) / rows)
        for target in on.targets
    ]
    return float(np.average(errors, weights=on.weights))


def _answers(table: ArrayTable, targets: Sequence[Target]) -> Answers:
    """The counts of marginals and ranges of a table."""
    marginals = [target for target in targets if isinstance(target, tuple)]
    result: dict[Target, NDArray[Any]] = {}
    for part in in_batches(table.schema, marginals):
        if part:
            counts = count_marginals(table, part)
            result |= {marginal: counts[marginal] for marginal in part}
    boxes = [target for target in targets if isinstance(target, Range)]
    inside = sum_ranges(table.schema, boxes, lambda names: count_marginals(table, [names])[names])
    return result | dict(zip(boxes, inside, strict=True))


SKEW: Final = 1.75
"""Shares fall with the rank to this power: then noise costs about what it does on Adult, NLTCS
and BR2000."""
_WEAKEST: Final = 0.2
"""How strongly the least tied column is tied, against the most tied."""
_STEPS: Final = 40
"""Halvings of the interval of the common strength: beyond what dependence can be noticed."""


def stand_in_rows(schema: Schema, n_rows: int, *, dependence: float, rng: Rng) -> Rows:
    """Skewed columns that all depend on one hidden sign, each to its own degree.

    Given the sign h = 1 or -1, each with probability 1/2, column i has the shares
    b_i(x) (1 + h t_i a_i(x)), with b_i skewed, sum b_i a_i = 0 and |a_i| <= 1: its own shares are
    b_i, and two columns are at the total variation t_i t_j E|a_i| E|a_j| / 2 from independence.

    Args:
        schema: The columns.
        n_rows: How many rows.
        dependence: What leaving the ties out shall cost in total variation, as the mean over
            pairs; less where the columns allow no more.
        rng: Of a simulation.
    """
    columns = [_column(size, rng) for size in schema.shape(schema.names)]
    spreads = np.array([float(np.abs(shares * tilt).sum()) for shares, tilt in columns])
    sizes = np.array([column.size for column in schema])
    ties = _tie_strengths(sizes, spreads, dependence)
    heads = rng.uniform(n_rows) < 0.5
    rows = {}
    for name, (shares, tilt), tie in zip(schema.names, columns, ties, strict=True):
        codes = np.empty(n_rows, dtype=np.int64)
        for side, sign in ((heads, 1.0), (~heads, -1.0)):
            codes[side] = _drawn(shares * (1 + sign * tie * tilt), int(side.sum()), rng)
        rows[name] = codes
    return repaired(schema, rows, rng=rng) if schema.impossible else rows


def _column(size: int, rng: Rng) -> tuple[Floats, Floats]:
    """Skewed shares in random order, and a tilt: every second rank up, the others down."""
    rank = rng.permutation(size)
    weights = np.power(rank + 1.0, -SKEW, dtype=np.float64)
    shares = np.asarray(weights / weights.sum(), dtype=np.float64)
    tilt = np.zeros(size)
    if size > 1:
        up = float(shares[rank % 2 == 0].sum())
        tilt[rank % 2 == 0] = min(1.0, (1 - up) / up)
        tilt[rank % 2 == 1] = -min(1.0, up / (1 - up))
    return shares, tilt


def _tie_strengths(sizes: NDArray[np.int64], spreads: Floats, dependence: float) -> Floats:
    """How strongly each column follows the hidden sign for a mean over pairs of ``dependence``.

    Columns of many values least: such are amounts and codes, on which little else depends.
    With x_i = t_i E|a_i| that mean is ((sum x)^2 - sum x^2) / (2 d (d - 1)), growing with t.
    """
    columns = sizes.size
    strengths = np.empty(columns)
    strengths[np.argsort(-sizes, kind="stable")] = np.linspace(_WEAKEST, 1.0, columns)
    low, high = 0.0, 1 / _WEAKEST
    for _ in range(_STEPS):
        scale = (low + high) / 2
        own = np.minimum(scale * strengths, 1.0) * spreads
        cost = (own.sum() ** 2 - (own**2).sum()) / (2 * columns * max(columns - 1, 1))
        low, high = (scale, high) if cost < dependence else (low, scale)
    return np.minimum(low * strengths, 1.0)


def _drawn(shares: Floats, n: int, rng: Rng) -> NDArray[np.int64]:
    edges = np.cumsum(shares)
    indices = np.searchsorted(edges / edges[-1], rng.uniform(n), side="right")
    return np.minimum(indices, shares.size - 1).astype(np.int64)
