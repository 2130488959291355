"""Which marginals to measure on a clique tree: several trees are grown, the best predicted wins.

Everything here reads public numbers: noisy columns, noisy scores, sizes and a budget. So the
choice costs nothing, and nothing in it can see the data.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from sfumato.models.graphical.allocation import (
    Allocation,
    Candidate,
    Floats,
    Single,
    allocate,
    misplaced,
)
from sfumato.models.graphical.clique_growth import Limits, fits, holds, supported
from sfumato.models.graphical.junction_tree import Clique
from sfumato.models.graphical.model import Numbering
from sfumato.models.graphical.spanning_forest import spanning_forest
from sfumato.models.model import project
from sfumato.schema.measurement import Coarse, Measurement
from sfumato.schema.schema import Marginal

_PENALTIES = (0.0, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
"""Rows that a cell must be worth before its marginal joins a tree, in standard deviations of the
noise that the whole budget would leave: several are tried."""

_LEAST_SIGMA = 0.05
_SHARES, _SHARES_PER_COLUMN = 512, 64
"""What would get less than one of so many equal shares of the budget is not measured."""
_ROUNDED = 1e-9
"""A share must exceed the least that can be paid by so much, since shares are rounded."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Scored:
    """Marginals with how wrong independent columns are about each."""

    view: Coarse
    columns: Sequence[Measurement]
    """One for each column, all codes, in the schema's order."""
    rows: float
    targets: Sequence[Marginal]
    errors: Floats
    """Rows that independent columns put into wrong cells; noisy."""
    weights: Floats
    column_weights: Floats
    """What each column's own table is worth, in the schema's order."""
    held: Sequence[Marginal] = ()
    """What public facts tie together: any tree must hold each of these."""


@dataclass(frozen=True, kw_only=True, eq=False)
class TreePlan:
    """What to measure, each with its precision, 1 / variance of a count."""

    targets: tuple[Marginal, ...]
    precisions: Floats
    columns: tuple[Marginal, ...]
    """Single columns to be measured once more."""
    column_precisions: Floats
    gain: float
    """Predicted: rows in right cells more than with single columns only, over all targets."""


def plan_tree(scored: Scored, *, precision: float, limits: Limits) -> TreePlan:
    """The plan with the largest predicted gain over the trees that were tried.

    Args:
        scored: What is known.
        precision: The sum to be divided. What would get next to nothing of it is left out.
        limits: How large the model may be.
    """
    numbering = Numbering(scored.view.schema)
    singles = _singles(scored, numbering)
    cliques = [numbering.clique(target) for target in scored.targets]
    counts = [one.reshape(-1) for one in independent_counts(scored)]
    candidates = [
        Candidate(
            columns=clique,
            error=_without_noise(float(error), [singles[column] for column in clique]),
            counts=count,
            weight=float(weight),
        )
        for clique, error, count, weight in zip(
            cliques, scored.errors, counts, scored.weights, strict=True
        )
    ]
    best, kept = Allocation(candidates=np.empty(0), singles=np.empty(0), gain=-np.inf), []
    room = _Room(sizes=numbering.sizes, limits=limits, held=[*map(numbering.clique, scored.held)])
    for inside in _trees(candidates, room, precision):
        chosen = [candidates[place] for place in inside]
        found = allocate(chosen, _with_the_rest(singles, candidates, inside), precision=precision)
        if found.gain > best.gain:
            best, kept = found, inside
    best = _within(best, [cliques[place] for place in kept], room)
    return _plan(scored, numbering, best, kept, precision=precision)


def first_forest(scored: Scored, *, precision: float, limits: Limits) -> list[Marginal]:
    """The pairs of the maximum spanning forest that tell more than the noise of measuring them.

    The noise is that of a pair that gets its share if all columns are joined.
    """
    numbering = Numbering(scored.view.schema)
    singles = _singles(scored, numbering)
    counts = independent_counts(scored)
    pairs = [
        place
        for place, target in enumerate(scored.targets)
        if len(target) == 2 and counts[place].size <= limits.clique_cells
    ]
    if not pairs:
        return []
    cliques = np.array([numbering.clique(scored.targets[place]) for place in pairs])
    sigma = (precision / max(1, len(singles) - 1)) ** -0.5
    gains = [
        _without_noise(float(scored.errors[place]), [singles[c] for c in clique])
        - misplaced(counts[place].reshape(-1), sigma)
        for place, clique in zip(pairs, cliques, strict=True)
    ]
    ties = [numbering.clique(one) for one in scored.held]
    chosen = spanning_forest(cliques, np.array(gains), columns=len(singles), ties=ties)
    return [scored.targets[pairs[place]] for place in chosen]


def precision_of(sigma_counts: float) -> float:
    """One over the variance of a count; of noise that is hardly ever other than 0, a large one."""
    return float(max(sigma_counts, _LEAST_SIGMA) ** -2.0)


def independent_counts(scored: Scored) -> list[Floats]:
    """What independent columns, as they were measured, expect in each cell of each target."""
    shares = {one.target: _column_shares(scored.view, one, scored.rows) for one in scored.columns}
    found = []
    for target in scored.targets:
        counts = np.array(scored.rows)
        for name in target:
            counts = np.multiply.outer(counts, shares[(name,)])
        found.append(counts)
    return found


def _column_shares(view: Coarse, one: Measurement, rows: float) -> Floats:
    """A column's shares of the view's codes."""
    (name,) = one.target if isinstance(one.target, tuple) else ("",)
    counts = project(one.values, max(rows, 1.0)) / max(rows, 1.0)
    if name in view.groups:
        return np.asarray(np.bincount(view.groups[name], weights=counts), dtype=np.float64)
    return counts


def _singles(scored: Scored, numbering: Numbering) -> list[Single]:
    """The columns as numbered inside."""
    by_name = {
        one.target: Single(
            counts=project(one.values, max(scored.rows, 1.0)),
            precision=precision_of(one.sigma_counts) if one.sigma_counts > 0 else np.inf,
            weight=float(weight),
        )
        for one, weight in zip(scored.columns, scored.column_weights, strict=True)
    }
    return [by_name[(name,)] for name in numbering.names]


def _with_the_rest(
    singles: Sequence[Single], candidates: Sequence[Candidate], inside: Sequence[int]
) -> list[Single]:
    """Columns with the weight of the candidates that a tree does not hold: these rest on them."""
    weights, held = np.array([one.weight for one in singles]), set(inside)
    for place, one in enumerate(candidates):
        if place not in held:
            weights[list(one.columns)] += one.weight
    return [replace(one, weight=float(w)) for one, w in zip(singles, weights, strict=True)]


def _without_noise(error: float, columns: Sequence[Single]) -> float:
    """What is wrong with independence itself, without the noise of the columns it is made of.

    Independent errors add up in squares.
    """
    noise = sum(misplaced(one.counts, one.precision**-0.5) ** 2 for one in columns)
    return float(np.sqrt(max(0.0, error * abs(error) - noise)))


@dataclass(frozen=True, kw_only=True, slots=True)
class _Room:
    """Where a tree must fit in, and what it must hold."""

    sizes: tuple[int, ...]
    limits: Limits
    held: Sequence[Clique]


def _trees(candidates: Sequence[Candidate], room: _Room, precision: float) -> Iterator[list[int]]:
    """Places of the candidates that different trees hold; each set once, none first."""
    seen: set[tuple[int, ...]] = set()
    for ranked in ([], *_rankings(candidates, precision)):
        filled = supported(room.sizes, ranked, limits=room.limits, held=room.held)
        inside = tuple(place for place, one in enumerate(candidates) if holds(filled, one.columns))
        if inside not in seen:
            seen.add(inside)
            yield list(inside)


def _rankings(candidates: Sequence[Candidate], precision: float) -> Iterator[list[Clique]]:
    """Candidates by what they are worth less a price of their cells, and by worth a cell."""
    worth = np.array([one.weight * one.error for one in candidates])
    cells = np.array([float(one.counts.size) for one in candidates])
    sigma = precision**-0.5
    values = [worth - penalty * sigma * cells for penalty in _PENALTIES]
    values.append(worth / cells ** (2 / 3))
    for value in values:
        order = np.argsort(-value, kind="stable")
        yield [candidates[place].columns for place in order if value[place] > 0]


def _within(best: Allocation, cliques: Sequence[Clique], room: _Room) -> Allocation:
    """Without the marginals that get least, as long as those that stay need too large a tree.

    The tree of what is measured is another one than what was grown, and rarely larger.
    """
    found = best.candidates.copy()
    while found.any():
        chosen = [clique for clique, share in zip(cliques, found, strict=True) if share > 0]
        if fits(room.sizes, chosen, limits=room.limits, held=room.held):
            break
        found[np.argmin(np.where(found > 0, found, np.inf))] = 0.0
    return replace(best, candidates=found)


def _plan(
    scored: Scored,
    numbering: Numbering,
    best: Allocation,
    kept: list[int],
    *,
    precision: float,
) -> TreePlan:
    """The allocation by names, without what would get next to nothing."""
    names = numbering.names
    least = precision / max(_SHARES, _SHARES_PER_COLUMN * len(names))
    targets = [scored.targets[place] for place in kept]
    both = _payable(
        np.concatenate([best.candidates, best.singles]), precision=precision, least=least
    )
    found, again = both[: len(targets)], both[len(targets) :]
    return TreePlan(
        targets=tuple(t for t, p in zip(targets, found, strict=True) if p > 0),
        precisions=found[found > 0],
        columns=tuple((n,) for n, p in zip(names, again, strict=True) if p > 0),
        column_precisions=again[again > 0],
        gain=best.gain,
    )


def _payable(shares: Floats, *, precision: float, least: float) -> Floats:
    """Shares scaled to a sum, the smallest left out until each of the others is large enough."""
    order = np.argsort(-shares, kind="stable")
    falling = shares[order]
    enough = falling * precision >= least * (1 + _ROUNDED) * np.cumsum(falling)
    kept = np.flatnonzero(enough & (falling > 0))
    found = np.zeros(shares.size)
    if kept.size:
        chosen = order[: kept[-1] + 1]
        found[chosen] = shares[chosen] / shares[chosen].sum() * precision
    return found
