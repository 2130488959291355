"""Steps that methods on the graphical model share: the first look, and how a release describes it.

The first look measures single columns, the number of rows and merges rare values. What comes out
is a model of independent columns, from which methods go on to pairs and more.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import sqrt

from sfumato.errors import InputError
from sfumato.gate import Curator
from sfumato.models.graphical.fit import fit_graphical
from sfumato.models.graphical.junction_tree import BYTES_PER_CELL
from sfumato.models.graphical.model import GraphicalModel, Numbering, rare_groups
from sfumato.models.graphical.structure import Limits, fits
from sfumato.models.numbers import improved
from sfumato.privacy.guarantees import Cost, portion
from sfumato.schema import Marginal, Measurement, Schema
from sfumato.schema.measurement import Coarse, PublicTotal, as_measurements, check_totals
from sfumato.synthesis.algorithm import TOTAL_SHARE
from sfumato.synthesis.independent import (
    agreed_total,
    column_sizes,
    measure_columns,
    shares_by_cells,
)


@dataclass(frozen=True, kw_only=True, eq=False)
class Begun:
    """What is known after the first look."""

    model: GraphicalModel
    """Independent columns, rare values merged."""
    measurements: list[Measurement]
    """Public totals and the columns that were measured."""

    @property
    def view(self) -> Coarse:
        """The columns with rare values merged."""
        return self.model.view

    @property
    def total(self) -> float:
        """The number of rows to work with."""
        return self.model.total


def begin(
    curator: Curator,
    *,
    cost: Cost,
    rows: int | None,
    totals: Sequence[PublicTotal] = (),
    merge_sigmas: float,
    limit_mb: float,
) -> Begun:
    """Measure the columns whose counts are not public, in one look, and fit them.

    Args:
        curator: The gate.
        cost: What all columns cost together.
        rows: The number of rows, if it is public; else the columns' sums or a count tell it.
        totals: Counts that are public.
        merge_sigmas: Values with a count below this many standard deviations are merged.
        limit_mb: The largest model.
    """
    schema, measured = curator.schema, list(as_measurements(totals))
    known = {total.marginal for total in totals}
    requested: list[Marginal] = [(name,) for name in schema.names if (name,) not in known]
    total = _public_rows(curator, rows)
    if total is None and _worth_counting(curator, requested, cost):
        total = float(curator.total(cost=portion(cost, TOTAL_SHARE)).values)
        cost = portion(cost, 1 - TOTAL_SHARE)
    if requested:
        columns = measure_columns(curator, requested, cost)  # MEASURE
        total = agreed_total(columns) if total is None else total
        measured += columns
    total = max(1.0, total or 0.0)
    measured = improved(schema, measured, known=curator.numbers, total=total)
    numbers = None if curator.numbers is None else curator.numbers.groups
    view = rare_groups(schema, measured, total=total, sigmas=merge_sigmas, numbers=numbers)
    return Begun(
        model=fit_graphical(view, measured, total=total, limit_mb=limit_mb), measurements=measured
    )


def tied(schema: Schema, totals: Sequence[PublicTotal]) -> list[Marginal]:
    """Columns that public facts tie together: any model must hold each of these sets."""
    return [one.names for one in schema.impossible] + [total.marginal for total in totals]


def check_begin(
    schema: Schema, totals: Sequence[PublicTotal], *, model_mb: float, method: str
) -> None:
    """Refuse totals that contradict the schema, and a limit that not even the columns fit into."""
    check_totals(schema, totals)
    needed = [*tied(schema, totals), *((name,) for name in schema.names)]
    numbering = Numbering(schema)
    if not fits(
        numbering.sizes, [numbering.clique(one) for one in needed], limits=limits(model_mb)
    ):
        largest = max(needed, key=schema.cells)
        raise InputError(
            f"the model of {method} may take {model_mb:g} MB (model_mb), too little even for "
            f"single columns and what public facts tie together; {' × '.join(largest)} alone has "
            f"{schema.cells(largest):,} cells. Allow a larger model, or bin or group the values."
        )


def limits(model_mb: float) -> Limits:
    """How many cells a model of that size has, in one clique or in all."""
    cells = model_mb * 2**20 / BYTES_PER_CELL
    return Limits(clique_cells=cells, all_cells=cells)


def _public_rows(curator: Curator, rows: int | None) -> float | None:
    if curator.knows_rows:
        return float(curator.total().values)
    return None if rows is None else float(rows)


def _worth_counting(curator: Curator, marginals: Sequence[Marginal], cost: Cost) -> bool:
    """Whether a count of the rows for a part of the cost is closer than the columns' sums."""
    sizes = column_sizes(curator, marginals)
    costs = shares_by_cells(cost, sizes)
    noise = [curator.sigma_of(one, share) for one, share in zip(marginals, costs, strict=True)]
    summed = sqrt(sum(1 / (size * sigma**2) for size, sigma in zip(sizes, noise, strict=True)))
    return summed * curator.sigma_of((), portion(cost, TOTAL_SHARE)) < 1


def structure(
    model: GraphicalModel, measurements: Iterable[Measurement]
) -> dict[str, list[list[str]]]:
    """For ``release.json``: the structure that noisy counts chose.

    Returns:
        ``measured``: the marginals of two and more columns that were counted with noise, each
        once, in the order of their first measurement. ``cliques``: the columns of each table of
        the model.
    """
    targets = [one.target for one in measurements if one.sigma_counts > 0]
    several = dict.fromkeys(t for t in targets if isinstance(t, tuple) and len(t) > 1)
    return {
        "measured": [list(names) for names in several],
        "cliques": [list(names) for names in model.cliques],
    }
