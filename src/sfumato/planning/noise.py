"""What noise does to a workload: of a rehearsal's measurements, of single columns, and at least."""

from collections.abc import Mapping
from fractions import Fraction
from math import prod, sqrt
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sfumato.gate import sigma_of
from sfumato.models.prediction import projected_noise, unprojected_noise
from sfumato.planning.plan import LARGEST_NOISE, PlannedMeasurement
from sfumato.planning.rehearsal import Rehearsal, Stage, scaled_budget
from sfumato.privacy import sensitivity
from sfumato.privacy.composition import Cap
from sfumato.privacy.guarantees import ApproxDP, Cost, PureDP, zcdp_budget
from sfumato.privacy.sensitivity import Protection
from sfumato.randomness import simulation_rng
from sfumato.schema import Marginal, Measurement, Range, Schema, Target
from sfumato.synthesis.independent import shares_by_cells

_SEED: Final = 2_000
"""Of simulations: the same request gives the same prediction."""
_FURTHEST: Final = 2.0**40
"""The largest factor that is tried: more rows than any table has."""
_LEAST_EPSILON: Final = Fraction(1, 10**9)
"""With less there is nothing but noise, and no method is compared."""
_DRAWS: Final = 20_000
"""Cells drawn for a mean over many marginals: each of them needs few."""


def planned(on: Stage, rehearsal: Rehearsal) -> tuple[PlannedMeasurement, ...]:
    """Every measurement of a rehearsal with what its noise does to it."""
    return tuple(
        _planned(on, each, laplace=rehearsal.laplace)
        for each in rehearsal.measurements
        if each.target
    )


def noise_part(on: Stage, rehearsal: Rehearsal) -> float:
    """The mean over targets of what noise brings: of the least noisy table that holds a target.

    Cells of a larger table are added up, and their noise with them. A marginal that none holds
    is put together from its columns, whose errors add up to its own at most.
    """
    single = {name: _noise_of(on, (name,), rehearsal) or 0.0 for name in on.schema.names}
    noises = []
    for target in on.targets:
        noise = _noise_of(on, target, rehearsal)
        names = target if isinstance(target, tuple) else target.marginal
        noises.append(sum(single[name] for name in names) if noise is None else noise)
    return min(rehearsal.error, float(np.average(noises, weights=on.weights)))


def column_noise(on: Stage, budget: Cap, protect: Protection, *, less: Fraction) -> float:
    """The mean over columns of what noise does to one, if single columns are all that is measured.

    Args:
        on: Where.
        budget: Shared out as independent columns do it.
        protect: What one unit is.
        less: The noise is divided by this.
    """
    scaled = scaled_budget(budget, on.scale)
    working: Cost = zcdp_budget(scaled) if isinstance(scaled, ApproxDP) else scaled
    names = [column.name for column in on.schema if column.size > 1]
    if not names:
        return 0.0
    costs = shares_by_cells(working, [on.schema[name].size for name in names])
    rng = simulation_rng(_SEED)
    return float(
        np.mean(
            [
                projected_noise(
                    on.counts((name,)),
                    sigma_counts=sigma_of(cost, is_range=False, protect=protect) / float(less),
                    rng=rng,
                    laplace=isinstance(working, PureDP),
                )
                for name, cost in zip(names, costs, strict=True)
            ]
        )
    )


def factor_needed(on: Stage, budget: Cap, protect: Protection) -> Fraction | None:
    """By how much the noise of single columns must shrink to be bearable; None if it is.

    This many times more rows would do; bisection, to one part in a hundred.
    """
    low, high = Fraction(1), Fraction(1)
    while column_noise(on, budget, protect, less=high) > LARGEST_NOISE and high < _FURTHEST:
        low, high = high, 2 * high
    if high == 1:
        return None
    while high - low > low / 100:
        middle = (low + high) / 2
        enough = column_noise(on, budget, protect, less=middle) <= LARGEST_NOISE
        low, high = (low, middle) if enough else (middle, high)
    return high


def optimum_error(
    on: Stage, least: Mapping[Marginal, float], budget: ApproxDP, protect: Protection
) -> float:
    """The mean error of marginals measured with the least noise, each projected by itself.

    As the noise of a cell, sigma^2 = (squared sensitivity) / (2 rho).
    """
    some = ApproxDP(max(budget.epsilon, _LEAST_EPSILON), budget.delta)
    scaled = scaled_budget(some, on.scale)
    rho = float(zcdp_budget(scaled).rho) if isinstance(scaled, ApproxDP) else 0.0
    sigma = sqrt(sensitivity.histogram_l2_squared(protect) / (2 * rho))
    rng = simulation_rng(_SEED)
    marginals = [target for target in on.targets if isinstance(target, tuple)]
    return float(
        np.mean(
            [
                projected_noise(
                    on.counts(marginal),
                    sigma_counts=sigma * least[marginal],
                    rng=rng,
                    draws=_DRAWS // len(marginals),
                )
                for marginal in marginals
            ]
        )
    )


def _planned(on: Stage, one: Measurement, *, laplace: bool) -> PlannedMeasurement:
    target = one.target
    if isinstance(target, Range):
        share = 2 * unprojected_noise(
            cells=1, sigma_counts=one.sigma_counts, rows=on.n_rows, laplace=laplace
        )
        return PlannedMeasurement(
            columns=target.marginal,
            box=str(target),
            cells=1,
            sigma_counts=one.sigma_counts * float(on.scale),
            noise=share,
            projected=share,
        )
    counts = _merged_counts(on, one, target)
    return PlannedMeasurement(
        columns=target,
        cells=counts.size,
        sigma_counts=one.sigma_counts * float(on.scale),
        noise=unprojected_noise(
            cells=counts.size, sigma_counts=one.sigma_counts, rows=on.n_rows, laplace=laplace
        ),
        projected=projected_noise(
            counts,
            sigma_counts=one.sigma_counts,
            rng=simulation_rng(_SEED),
            laplace=laplace,
        ),
    )


def _noise_of(on: Stage, target: Target, rehearsal: Rehearsal) -> float | None:
    """What noise does to a target by the least noisy table that holds it; None if none does."""
    names = target if isinstance(target, tuple) else target.marginal
    best: tuple[float, Measurement, float] | None = None
    for one in rehearsal.measurements:
        if not one.target or not _holds(one.target, target):
            continue
        merged = _merged(on.schema, one, target)
        sigma = one.sigma_counts * sqrt(merged)
        size = sigma * one.values.size / merged
        if best is None or size < best[0]:
            best = (size, one, sigma)
    if best is None:
        return None
    _, one, sigma = best
    if isinstance(target, Range):
        noise = unprojected_noise(
            cells=1, sigma_counts=sigma, rows=on.n_rows, laplace=rehearsal.laplace
        )
        return min(1.0, 2 * noise)
    counts = _merged_counts(on, one, names)
    single = rehearsal.laplace and counts.size == one.values.size  # a sum of many is about Gaussian
    return projected_noise(counts, sigma_counts=sigma, rng=simulation_rng(_SEED), laplace=single)


def _holds(table: Target, target: Target) -> bool:
    """Whether the answer to a target can be added up from what was measured."""
    if isinstance(table, Range):
        return table == target
    names = target if isinstance(target, tuple) else target.marginal
    return set(names) <= set(table)


def _merged(schema: Schema, one: Measurement, target: Target) -> float:
    """How many cells of a measured table add up to one cell of a target."""
    if isinstance(one.target, Range):
        return 1.0
    view = schema if one.merged is None else one.merged.schema
    if isinstance(target, tuple):
        return one.values.size / view.cells(target)
    inside = prod((high - low + 1) / schema[name].size for name, low, high in target.bounds)
    return max(1.0, one.values.size * inside)


def _merged_counts(on: Stage, one: Measurement, names: Marginal) -> NDArray[np.int64]:
    """A marginal of the stage with codes merged as a measurement has them."""
    counts = on.counts(names)
    return counts if one.merged is None else one.merged.sum(counts, names)
