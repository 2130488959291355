"""Bins for numbers that declare none: found privately, before a method looks at several columns.

A tree of counts for each such column. Its first level are public classes (``schema.classes``); each
further level divides the bins that hold many rows for sure. What it costs is zCDP, or epsilon, of a
level: a row is in one bin of a level. All levels count later as measurements of the column, so
nothing is paid twice (``models.numbers``).

Graphical methods take these bins as the codes of a column and join them into few groups for
pairs. Other methods run on few bins; what is drawn in a bin then follows the finer counts.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError
from sfumato.gate import Curator
from sfumato.models.divided import bins_of_groups, divided_model, regrouped
from sfumato.models.numbers import (
    MOST_BINS,
    Level,
    as_measurement,
    cut_at_classes,
    estimated_counts,
    even_groups,
    finer,
    group_count,
    smoother,
    starts_of,
)
from sfumato.privacy.guarantees import Cost, portion
from sfumato.schema import Marginal, Measurement, Schema
from sfumato.schema.measurement import Coarse, KnownNumbers
from sfumato.synthesis.algorithm import Algorithm, Fit
from sfumato.synthesis.independent import agreed_total

SHARE: Final = Fraction(1, 10)
"""Of the budget, for the trees of all columns together; chosen by the specification's prototype."""
LEVELS: Final = (Fraction(2, 5), Fraction(1, 5), Fraction(1, 5), Fraction(1, 5))
"""Of a column's share: the first level decides most. What is not needed is left to the method."""
ROW_COUNT: Final = Fraction(1, 200)
"""Of the budget, for a rough number of rows where it is not public."""
LEAST_ROWS: Final = 16
"""Standard deviations of the first level's noise that the rows must be worth: below, about a
thousand rows at epsilon 1, no bin but the heaviest could stand out."""


@dataclass(frozen=True, kw_only=True)
class Trees:
    """The bins of every column, and the levels that led to them."""

    bins: Mapping[str, tuple[int, ...]]
    levels: Mapping[str, Sequence[Level]]
    rows: float


def check(algorithm: Any, schema: Schema) -> None:
    """Refuse, before any spend, what the method refuses on public bins."""
    for total in getattr(algorithm, "totals", ()):
        for name in total.marginal:
            if schema[name].adaptive:
                raise InputError(
                    f"the public total of {total} needs bins of {name!r}, which declares none. "
                    "Declare a step, or edges."
                )
    bins = dict(schema.public_bins)
    if getattr(algorithm, "takes_many_bins", False):
        most = {name: max(MOST_BINS, len(bins[name])) for name in divisible(schema)}
        bins |= {name: tuple(range(min(schema.grid(name).cells, n))) for name, n in most.items()}
    with_bins = schema.with_bins(bins)
    on(algorithm, with_bins).check(with_bins)


def divisible(schema: Schema) -> list[str]:
    """The columns that get a tree: those without bins that no impossible combination names."""
    fixed = {name for each in schema.impossible for name in each.names}
    return [name for name in schema.public_bins if name not in fixed]


def on(algorithm: Any, schema: Schema) -> Any:
    """The same method for a schema with bins."""
    workload = getattr(algorithm, "workload", None)
    return algorithm if workload is None else replace(algorithm, workload=workload.on(schema))


def run(algorithm: Algorithm, curator: Curator) -> tuple[Fit, Schema]:
    """What the method fits, and the schema with the bins that were found."""
    if not any(column.adaptive for column in curator.schema):
        return algorithm.run(curator), curator.schema
    noise = noise_of_a_pair(curator)
    trees = grow(curator, rows=getattr(algorithm, "rows", None))
    schema = curator.schema.with_bins(trees.bins)
    levels = {
        name: [as_measurement(schema, name, level) for level in own]
        for name, own in trees.levels.items()
        if own
    }
    published = tuple(level for own in levels.values() for level in own)
    most = group_count(trees.rows, noise)
    counts = {
        name: estimated_counts(schema, name, own, total=trees.rows) for name, own in levels.items()
    }
    if algorithm.takes_many_bins or len(schema) == 1:
        groups = {
            name: even_groups(schema.grid(name), own, groups=most) for name, own in counts.items()
        }
        parts = {name: cut_at_classes(schema.grid(name), own) for name, own in groups.items()}
        numbers = KnownNumbers(
            levels=published,
            groups=Coarse(fine=schema, groups=groups),
            parts=Coarse(fine=schema, groups=parts),
        )
        binned = curator.binned(trees.bins, numbers=numbers)
        fit = on(algorithm, schema).run(binned)
        return replace(fit, measurements=(*published, *fit.measurements)), schema
    groups = _few_enough(algorithm, schema, counts, most)
    coarse = curator.binned(dict(trees.bins) | bins_of_groups(schema, groups))
    fit = on(algorithm, coarse.schema).run(coarse)
    model = divided_model(fit.model, schema, groups=groups, counts=counts, rng=curator.rng)
    own = tuple(regrouped(one, schema, groups) for one in fit.measurements)
    return replace(fit, model=model, measurements=(*published, *own)), schema


def _few_enough(
    algorithm: Algorithm, schema: Schema, counts: Mapping[str, NDArray[np.float64]], most: int
) -> dict[str, NDArray[np.int64]]:
    """Intervals of bins, so few that the method takes them: the levels are paid by now.

    It takes one interval of each column, as it takes public classes (``check``), of which there are
    as many or more.
    """
    while True:
        groups = {
            name: _contiguous(even_groups(schema.grid(name), own, groups=most))
            for name, own in counts.items()
        }
        few = schema.with_bins(bins_of_groups(schema, groups))
        try:
            on(algorithm, few).check(few)
        except InputError:
            if most == 1:
                raise
            most //= 2
        else:
            return groups


def noise_of_a_pair(curator: Curator) -> float:
    """The noise, in counts, of a pair if half the budget were divided over as many as columns."""
    pairs = max(1, len(curator.schema) - 1)
    return curator.sigma_of(curator.schema.names[:1], portion(curator.left, Fraction(1, 2 * pairs)))


def grow(curator: Curator, *, rows: int | None) -> Trees:
    """The trees of all columns that declare no bins, level by level, each in one look."""
    schema = curator.schema
    bins = dict(schema.public_bins)
    open_columns = divisible(schema)
    levels: dict[str, list[Level]] = {name: [] for name in bins}
    known = _rows(curator, rows)
    each = portion(curator.left, SHARE / max(1, len(open_columns)))
    first = curator.sigma_of(schema.names[:1], portion(each, LEVELS[0]))
    if known < LEAST_ROWS * first:
        return Trees(bins=bins, levels=levels, rows=known)
    for number, share in enumerate(LEVELS):
        if not open_columns:
            break
        curator.tell("finding bins of numbers", number, len(LEVELS))
        measured = measure_level(curator, bins, open_columns, portion(each, share))
        if number == 0 and rows is None and not curator.knows_rows:
            known = max(1.0, agreed_total(measured))
        further = []
        for name, one in zip(open_columns, measured, strict=True):
            column = schema.with_bins({name: bins[name]}).grid(name)
            level = Level(
                starts=starts_of(column), counts=one.values, sigma_counts=one.sigma_counts
            )
            levels[name].append(level)
            last = number == len(LEVELS) - 1
            divided = bins[name] if last else finer(column, level, rows=known)
            if divided != bins[name]:
                bins[name] = divided
                further.append(name)
        open_columns = further
    for name, own in levels.items():
        bins[name] = smoother(schema.grid(name), own, bins[name], rows=known)
    return Trees(bins=bins, levels=levels, rows=known)


def _rows(curator: Curator, rows: int | None) -> float:
    if curator.knows_rows:
        return float(curator.total().values)
    if rows is not None:
        return float(rows)
    return max(1.0, float(curator.total(cost=portion(curator.left, ROW_COUNT)).values))


def measure_level(
    curator: Curator, bins: Mapping[str, tuple[int, ...]], names: Sequence[str], cost: Cost
) -> list[Measurement]:
    """One level of some columns, each for the same cost."""
    targets: list[Marginal] = [(name,) for name in names]
    return curator.binned(bins).measure(targets, costs=[cost] * len(targets))


def _contiguous(groups: NDArray[np.int64]) -> NDArray[np.int64]:
    """Groups that are intervals: one that others interrupt becomes several."""
    return np.cumsum(np.diff(groups, prepend=groups[:1]) != 0).astype(np.int64)
