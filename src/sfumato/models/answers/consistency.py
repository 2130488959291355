"""One- and two-way frequency tables that agree with each other.

Tables estimated from different answers contradict each other: each says something else about the
attributes they share. The agreed tables are the nearest ones in weighted least squares; all that
is known of an attribute goes into it, so errors fall.
"""

from collections.abc import Mapping
from math import isfinite
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError, InternalError
from sfumato.models.model import project

Marginal = tuple[str, ...]
Table = NDArray[np.float64]

_ROUNDS: Final = 10_000  # some 30 to 90 are needed


def consistent(
    tables: Mapping[Marginal, Table],
    variances: Mapping[Marginal, float],
    *,
    non_negative: bool = False,
    tolerance: float = 1e-6,
) -> dict[Marginal, Table]:
    """The tables that sum to 1 and imply the same frequencies of every attribute they share.

    A table with cell variance v implies the frequencies of an attribute with variance k v, where k
    cells are summed for each. They are averaged with weights 1/(k v), and the difference is spread
    evenly over the cells of the other attribute, which leaves that one as it was. This is the
    orthogonal projection in the norm that divides each table's squares by its variance. Qardaji,
    Yang, Li 2014, "PriView: practical differentially private release of marginal contingency
    tables", section 4.4; Hay, Rastogi, Miklau, Suciu 2010, arXiv 0904.0942.

    Args:
        tables: Frequencies by marginal: one name and a vector, or two names and a matrix.
        variances: The (average) variance of one cell of each table.
        non_negative: Whether cells must also be >= 0.
        tolerance: The largest part of the uniform distribution that may be mixed in at the end to
            lift the last cells to zero.
    """
    found = _checked(tables, variances)
    found = _agreed(found, variances)
    if not non_negative:
        return found
    rounds = 0
    while _uniform_part(found) > tolerance:
        if (rounds := rounds + 1) > _ROUNDS:
            raise InternalError(f"the tables did not settle in {_ROUNDS} rounds. None is returned.")
        # Norm-sub is a projection in the same norm: alternating converges to tables in both sets.
        found = _agreed({key: project(table, 1.0) for key, table in found.items()}, variances)
    part = _uniform_part(found)
    return {
        key: np.maximum((1 - part) * table + part / table.size, 0.0) for key, table in found.items()
    }


def _agreed(
    tables: Mapping[Marginal, Table], variances: Mapping[Marginal, float]
) -> dict[Marginal, Table]:
    """The projection: sums first, then one attribute after the other; no step undoes another."""
    found = {key: table + (1 - table.sum()) / table.size for key, table in tables.items()}
    for name in dict.fromkeys(name for key in found for name in key):
        having = [key for key in found if name in key]
        implied = [_implied(found[key], key.index(name)) for key in having]
        cells = [found[key].size // implied[0].size for key in having]
        weights = [1 / (k * variances[key]) for k, key in zip(cells, having, strict=True)]
        average = np.average(implied, axis=0, weights=weights)
        for key, own, k in zip(having, implied, cells, strict=True):
            change = (average - own) / k
            along_rows = len(key) == 2 and key.index(name) == 0
            found[key] = found[key] + (change[:, None] if along_rows else change)
    return found


def _implied(table: Table, axis: int) -> Table:
    """The frequencies of one attribute that a table implies."""
    return table if table.ndim == 1 else np.asarray(table.sum(axis=1 - axis))


def _uniform_part(tables: Mapping[Marginal, Table]) -> float:
    """The least part of uniform tables, which agree too, whose admixture leaves no cell < 0."""
    needs = [-float(table.min()) * table.size for table in tables.values()]
    return max([0.0, *(need / (1 + need) for need in needs if need > 0)])


def _checked(
    tables: Mapping[Marginal, Table], variances: Mapping[Marginal, float]
) -> dict[Marginal, Table]:
    """The tables as arrays of floats of their own, or an error that names the misfit."""
    found: dict[Marginal, Table] = {}
    sizes: dict[str, int] = {}
    for key, given in tables.items():
        table = np.array(given, dtype=np.float64)
        if len(set(key)) != table.ndim or len(key) != table.ndim or table.ndim not in (1, 2):
            raise InputError(
                f"a table has one or two different names and as many axes, got {key!r} with "
                f"{table.ndim} axes."
            )
        if key[::-1] in found:
            raise InputError(f"{key!r} is there twice, in both orders. Keep one table.")
        if not table.size or not np.isfinite(table).all():
            raise InputError(f"the table {key!r} must have finite cells.")
        for name, size in zip(key, table.shape, strict=True):
            if sizes.setdefault(name, size) != size:
                raise InputError(
                    f"{name!r} has {sizes[name]} categories in one table and {size} in {key!r}."
                )
        _check_variance(key, variances)
        found[key] = table
    return found


def _check_variance(key: Marginal, variances: Mapping[Marginal, float]) -> None:
    variance = variances.get(key)
    if variance is None or not isfinite(variance) or variance <= 0:
        raise InputError(
            f"the table {key!r} needs a finite cell variance above 0, got {variance!r}."
        )
