"""A table about nobody that stands in for a real one of the same columns, to rehearse methods on.

Real columns hold most rows in few values, and are tied to each other, some pairs more than
others. Uniform columns would make noise look two to five times as bad as it is, and independent
ones would show a method that measures pairs nothing to measure.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from sfumato.models.model import Rows, repaired
from sfumato.randomness import Rng
from sfumato.schema.schema import Schema

Floats = NDArray[np.float64]

SKEW: Final = 1.75
"""Shares fall with the rank to this power: then noise costs about what it does on Adult, NLTCS
and BR2000."""
_WEAKEST: Final = 0.2
"""How strongly the least tied column is tied, against the most tied."""
_STEPS: Final = 40
"""Halvings of the interval of the common strength: beyond what dependence can be noticed."""


def stand_in_rows(schema: Schema, n_rows: int, *, dependence: float, rng: Rng) -> Rows:
    """Skewed columns that all depend on one hidden coin, each to its own degree.

    Given the coin h = 1 or -1, column i has the shares b_i(x) (1 + h t_i a_i(x)), with b_i skewed,
    sum b_i a_i = 0 and |a_i| <= 1: its own shares are b_i, and two columns are at the total
    variation t_i t_j E|a_i| E|a_j| / 2 from independence.

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
    ties = _ties(sizes, spreads, dependence)
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


def _ties(sizes: NDArray[np.int64], spreads: Floats, dependence: float) -> Floats:
    """How strongly each column follows the coin, so that the mean over pairs is as wanted.

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
