"""Values that noise would drown, taken together before pairs are counted.

A code whose noisy count is within a few standard deviations of nothing tells little by itself,
and in a pair it has a whole row of cells that are noise only. Reads public numbers, costs nothing.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError
from sfumato.schema.measurement import Coarse, Groups, Measurement
from sfumato.schema.schema import Schema

NEVER_RARE: Final = 0.1
"""A code with so much of all rows is kept however loud the noise: without it a column of two or
three values would be gone at a small epsilon."""


def rare_groups(
    schema: Schema,
    measurements: Sequence[Measurement],
    *,
    total: float,
    sigmas: float = 2.0,
) -> Coarse:
    """The view in which the rare codes of each column are one.

    Rare is a noisy count below ``min(sigmas * sigma, NEVER_RARE * total)``; one rare code alone
    stays as it is. Columns that a declared impossible combination names are left whole, since the
    combination speaks of their codes. McKenna, Miklau, Sheldon 2021, "Winning the NIST contest",
    arXiv 2108.04978, section 4.2, with 3 sigmas.

    Args:
        schema: The columns.
        measurements: Those of single columns are used, by precision if there are several.
        total: The number of rows.
        sigmas: How loud noise must be to drown a count; 0 merges nothing.
    """
    if not 0 <= sigmas < np.inf:
        raise InputError(f"sigmas must be a number of at least 0, got {sigmas!r}")
    tied = {name for combination in schema.impossible for name in combination.names}
    groups = {}
    for name in schema.names:
        own = [one for one in measurements if one.target == (name,) and one.merged is None]
        if own and name not in tied:
            counts, sigma = _averaged(own)
            rare = counts < min(sigmas * sigma, NEVER_RARE * total)
            if rare.sum() >= 2:
                groups[name] = _groups(rare)
    return Coarse(fine=schema, groups=groups)


def _averaged(own: Sequence[Measurement]) -> tuple[NDArray[np.float64], float]:
    """Measurements of one column weighed by precision, and the noise that is left."""
    public = [one.values for one in own if one.sigma_counts == 0]
    if public:
        return public[0], 0.0
    precision = np.array([one.sigma_counts**-2.0 for one in own])
    counts = np.tensordot(precision / precision.sum(), [one.values for one in own], axes=1)
    return counts, float(precision.sum() ** -0.5)


def _groups(rare: NDArray[np.bool_]) -> Groups:
    """A number for each code, all rare ones with that of the first of them.

    >>> _groups(np.array([False, True, False, True])).tolist()
    [0, 1, 2, 1]
    """
    first = int(np.flatnonzero(rare)[0])
    leader = np.where(rare, first, np.arange(rare.size))
    return np.asarray(np.unique(leader, return_inverse=True)[1], dtype=np.int64)
