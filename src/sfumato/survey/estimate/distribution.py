"""The whole distribution of a number from square-wave answers: EM with smoothing.

Its errors have no formula, so they are measured: the counted answers are perturbed as chance would
have done, and fitted again.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from sfumato.local.means.grid import Grid
from sfumato.local.means.mechanism import MeanMechanism
from sfumato.models.answers.frequencies import expectation_maximization
from sfumato.randomness import simulation_rng
from sfumato.schema.columns import Column, Integer, Number
from sfumato.schema.values import limits

_FITS: Final = 20
"""Fits for the standard errors, which are then themselves good to about 16%."""

Vector = NDArray[np.float64]


def distribution(
    column: Column, grid: Grid, mechanism: MeanMechanism, counts: NDArray[np.int64]
) -> tuple[Vector, Vector]:
    """The frequency of each of the column's codes, and its standard error."""
    matrix = mechanism.probabilities()
    bins = bins_of(column, grid)
    in_codes = (bins == np.arange(column.size)[:, None]).astype(np.float64)
    fits = [
        in_codes @ expectation_maximization(drawn, matrix, smooth=True)
        for drawn in (counts.astype(np.float64), *_resampled(counts))
    ]
    return fits[0], np.asarray(np.std(fits[1:], axis=0, ddof=1))


def bins_of(column: Column, grid: Grid) -> NDArray[np.int64]:
    """The code that each point of the grid lies in."""
    if isinstance(column, Integer):
        nearest = np.rint(grid.values).astype(np.int64)
        return (nearest - column.low) // column.step
    edges = column.edges if isinstance(column, Number) else limits(column)
    inner = np.array(edges[1:-1], dtype=np.float64)
    return np.searchsorted(inner, grid.values, side="right").astype(np.int64)


def _resampled(counts: NDArray[np.int64]) -> list[Vector]:
    """Counts with the chance of so many independent answers: normal, with their variance.

    Post-processing of what is public already, so a fixed seed is right: the same answers give the
    same errors.
    """
    rng = simulation_rng(0)
    drawn = []
    for _ in range(_FITS):
        radius = np.sqrt(-2 * np.log1p(-rng.uniform(counts.size)))
        normal = radius * np.cos(2 * np.pi * rng.uniform(counts.size))
        drawn.append(np.maximum(0.0, counts + np.sqrt(counts) * normal))
    return drawn
