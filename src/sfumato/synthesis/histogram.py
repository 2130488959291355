"""The noisy histogram: every cell of the domain is counted once, with noise.

Hard to beat while the domain is small against n * epsilon: one count a row, no composition.
Cutting thousands of noisy cells at zero would bend every marginal; the sums of the uncut noisy
cells are still right on average, so the cut table is raked back to them. That costs nothing.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, combinations
from math import comb, sqrt
from typing import Any, ClassVar

import numpy as np

from sfumato.gate import Curator
from sfumato.models.dense.model import DenseModel, check_size, rake
from sfumato.models.dense.multiplicative_weights import WeightedHistogram
from sfumato.models.model import estimated_total, project
from sfumato.privacy.guarantees import Cost
from sfumato.randomness import Rng
from sfumato.schema import Marginal, Measurement, Schema
from sfumato.schema.measurement import (
    PublicTotal,
    as_measurements,
    check_totals,
    described,
    rows_of,
)
from sfumato.schema.schema import possible
from sfumato.synthesis.algorithm import Fit, total_and_rest

_COUNT_ROWS_FROM = 400
"""Cells from which a separate count of the rows, at a twentieth of the budget, is closer than the
sum of the noisy cells: sqrt(cells) > 20."""
_MOST_PAIRS = 300
"""The most pairs of columns to rake to (25 columns); chosen by judgment."""
_SWEEPS = 10
"""Passes over all one- and two-way sums; chosen by judgment."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Histogram:
    """Measure the whole table, then take counts that could exist and keep its marginals."""

    rows: int | None = None
    """The number of rows, if it is public knowledge or was paid for."""
    totals: tuple[PublicTotal, ...] = ()
    """Counts that are public knowledge; the release agrees with them."""

    name: ClassVar[str] = "histogram"
    takes_many_bins: ClassVar[bool] = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "rows", rows_of(self.totals, self.rows))

    def check(self, schema: Schema) -> None:
        """The domain must fit into memory, and the public totals it."""
        check_size(schema, method=self.name)
        check_totals(schema, self.totals)

    def run(self, curator: Curator) -> Fit:
        """One measurement of all cells."""
        schema = curator.schema
        self.check(schema)
        total, budget = self._total(curator)
        (measured,) = curator.measure([schema.names], costs=[budget])  # MEASURE
        possible_cells = possible(schema, schema.names)
        noisy = DenseModel(schema=schema, counts=np.where(possible_cells, measured.values, 0.0))
        if total is None:
            total = estimated_total(noisy.counts)
        cut = np.zeros_like(measured.values)  # FIT
        cut[possible_cells] = project(measured.values[possible_cells], total)
        model = DenseModel(schema=schema, counts=cut)
        if len(schema) > 2 and total > 0:
            model = _raked(model, noisy, sigma=measured.sigma_counts, total=total, rng=curator.rng)
        model = rake(model, self.totals)
        return Fit(model=model, measurements=(*as_measurements(self.totals), measured))

    def describe(self) -> dict[str, Any]:
        """The public totals, if there are any."""
        return described(self.totals)

    def _total(self, curator: Curator) -> tuple[float | None, Cost]:
        small = curator.schema.cells(curator.schema.names) < _COUNT_ROWS_FROM
        if small and self.rows is None and not curator.knows_rows:
            return None, curator.left
        return total_and_rest(curator, rows=self.rows)


def _raked(
    model: DenseModel, noisy: DenseModel, *, sigma: float, total: float, rng: Rng
) -> DenseModel:
    """The model moved to the one- and two-way sums of the noisy cells."""
    schema = model.schema
    targets = list(_low_marginals(schema))
    fit = WeightedHistogram(schema=schema, total=total, capacity=len(targets))
    fit.cells[:] = model.counts.reshape(-1)
    for target in targets:
        merged = schema.cells(schema.names) / schema.cells(target)
        fit.add(
            Measurement(
                target=target,
                values=noisy.marginal(target),
                sigma_counts=sigma * sqrt(merged),
            )
        )
    fit.fit(repetitions=_SWEEPS, rng=rng)
    return DenseModel(schema=schema, counts=fit.cells.reshape(model.counts.shape))


def _low_marginals(schema: Schema) -> Iterator[Marginal]:
    single = ((name,) for name in schema.names)
    pairs = combinations(schema.names, 2) if comb(len(schema), 2) <= _MOST_PAIRS else ()
    return chain(single, pairs)
