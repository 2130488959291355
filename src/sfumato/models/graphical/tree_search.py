"""Which marginals to measure on a clique tree, and how precisely: the least predicted error wins.

A measured marginal brings noise, an unmeasured one what independence gets wrong there plus the
noise of its single columns. Several trees are grown, and the budget is divided on each. Everything
is predicted from public numbers (noisy columns, noisy scores, sizes and a budget), so the choice
costs nothing, and nothing in it can see the data.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from sfumato.models.graphical.junction_tree import Clique
from sfumato.models.graphical.model import Numbering
from sfumato.models.graphical.structure import Limits, fits, holds, spanning_forest, supported
from sfumato.models.model import project
from sfumato.schema.columns import GridColumn
from sfumato.schema.measurement import Coarse, Measurement
from sfumato.schema.schema import Marginal

Floats = NDArray[np.float64]

MEAN_ABSOLUTE = float(np.sqrt(2 / np.pi))
"""The mean of |x| for Gaussian noise of standard deviation 1."""

_ROUNDS = 3
"""Sizes depend on the noise and the noise on sizes: so often each is computed from the other."""
_HALVINGS = 80
"""Halvings of the interval of the level: far below the precision of floats."""
_WORTH_AGAIN = 0.05
"""A column is measured again if that adds at least this share of its precision."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Candidate:
    """A marginal that could be measured."""

    columns: Clique
    error: float
    """Rows that independent columns put into wrong cells; noisy."""
    counts: Floats
    """What independent columns expect in each cell."""
    weight: float = 1.0
    """How much it matters, against other candidates."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Single:
    """A column that was measured once."""

    counts: Floats
    precision: float
    """One over the variance of a count; infinite where the counts are public."""
    weight: float = 0.0
    """What its own table is worth, beside those of candidates that are not measured."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Allocation:
    """What to measure next: 1 / variance of a count for each; zero where nothing is measured."""

    candidates: Floats
    singles: Floats
    gain: float
    """Predicted: misplaced rows, weighed and summed over candidates, fewer than if only single
    columns were measured once more."""


def misplaced(counts: Floats, sigma_counts: float) -> float:
    """Rows in wrong cells after fitting counts with noise: ``sum min(E|noise|, 2 count) / 2``.

    A cell far above the noise keeps its noise; one far below is lost in it, and its rows land in
    other cells. Within a factor 1.5 of simulated projections of flat, geometric and spiky tables,
    1.7 where all counts are a third of the noise (see the tests). Too low for a table that is
    almost empty: cells of no rows count for nothing here, and noise puts some into them.

    >>> round(misplaced(np.array([1000.0, 1.0]), 10.0), 3)
    4.989
    """
    return float(np.minimum(MEAN_ABSOLUTE * sigma_counts, 2 * counts).sum()) / 2


def allocate(
    candidates: Sequence[Candidate], singles: Sequence[Single], *, precision: float
) -> Allocation:
    """Choose candidates and precisions whose sum is ``precision``.

    Minimize ``sum_m w_m misplaced_m + sum_u w_u (error_u + its columns' misplaced)`` over the
    measured m and the unmeasured u. With effective cells s and misplaced rows c s / sqrt(b), the
    best split of a budget b over given terms has b proportional to (w s)^(2/3), and the sum is
    ``c (sum (w s)^(2/3))^(3/2) / sqrt(b)`` (Lagrange). Candidates are tried in order of
    w error / (w s)^(2/3) and taken if they lower the sum.
    """
    pooled = precision + float(_paid(singles).sum())
    sizes = np.array([float(one.counts.size) for one in candidates])
    single_sizes = np.array([0.0 if _public(one) else float(one.counts.size) for one in singles])
    chosen = np.zeros(len(candidates), dtype=np.bool_)
    gain = 0.0
    for _ in range(_ROUNDS):
        keys = _Keys(candidates, singles, sizes, single_sizes, pooled)
        chosen, gain = keys.search()
        sizes, single_sizes = keys.effective(singles)
    return _settled(keys, chosen, singles, precision, gain)


class _Keys:
    """The terms of the objective for given effective sizes: each enters as (w s)^(2/3)."""

    def __init__(
        self,
        candidates: Sequence[Candidate],
        singles: Sequence[Single],
        sizes: Floats,
        single_sizes: Floats,
        pooled: float,
    ) -> None:
        self.candidates, self.single_sizes, self.pooled = candidates, single_sizes, pooled
        self.weights = np.array([one.weight for one in candidates])
        self.keys = (self.weights * sizes) ** (2 / 3)
        self.open = np.array([one.weight for one in singles])  # and of unmeasured candidates
        for one in candidates:
            self.open[list(one.columns)] += one.weight
        self.key_sum = float(self.single_keys(range(len(singles))).sum())

    def search(self) -> tuple[NDArray[np.bool_], float]:
        """The candidates that lower the objective, and by how much they do together."""
        errors = self.weights * np.array([one.error for one in self.candidates])
        chosen = np.zeros(len(self.candidates), dtype=np.bool_)
        value = start = -self._noise(self.key_sum)
        saved = 0.0
        for index in np.argsort(-errors / self.keys, kind="stable"):
            if errors[index] <= 0:
                break
            columns, weight = list(self.candidates[index].columns), self.weights[index]
            before = self.single_keys(columns).sum()
            self.open[columns] -= weight
            key_sum = self.key_sum + self.keys[index] + self.single_keys(columns).sum() - before
            if saved + errors[index] - self._noise(key_sum) > value:
                chosen[index], self.key_sum, saved = True, key_sum, saved + errors[index]
                value = saved - self._noise(key_sum)
            else:
                self.open[columns] += weight
        return chosen, value - start

    def effective(self, singles: Sequence[Single]) -> tuple[Floats, Floats]:
        """The number of cells that matter at the noise each term would get."""
        result = [
            _cells_above(one.counts, self._sigma(key))
            for one, key in zip(self.candidates, self.keys, strict=True)
        ]
        keys = self.single_keys(range(len(singles)))
        columns = [
            0.0
            if _public(one)
            else _cells_above(one.counts, min(self._sigma(key), one.precision**-0.5))
            for one, key in zip(singles, keys, strict=True)
        ]
        return np.array(result), np.array(columns)

    def single_keys(self, columns: Sequence[int] | range) -> Floats:
        indices = list(columns)
        open_weight = np.maximum(self.open[indices], 0.0)  # a sum of floats may end just below 0
        return np.asarray((open_weight * self.single_sizes[indices]) ** (2 / 3))

    def _noise(self, key_sum: float) -> float:
        return float(MEAN_ABSOLUTE / 2 * max(key_sum, 0.0) ** 1.5 / np.sqrt(self.pooled))

    def _sigma(self, key: float) -> float:
        share = key / max(self.key_sum, key) if key > 0 else 0.0
        return float(1 / np.sqrt(max(share * self.pooled, 1e-300)))


def _public(single: Single) -> bool:
    return bool(np.isinf(single.precision))


def _paid(singles: Sequence[Single]) -> Floats:
    """The precision that was bought; public counts took none."""
    return np.array([0.0 if _public(one) else one.precision for one in singles])


def _cells_above(counts: Floats, sigma_counts: float) -> float:
    """Cells as if all that matter had the full noise; at least one."""
    return max(1.0, misplaced(counts, sigma_counts) / (MEAN_ABSOLUTE / 2 * sigma_counts))


def _settled(
    keys: _Keys,
    chosen: NDArray[np.bool_],
    singles: Sequence[Single],
    precision: float,
    gain: float,
) -> Allocation:
    """The exact split: singles keep what they have, so some get nothing more."""
    weighed = np.where(chosen, keys.keys, 0.0)
    column_keys, had = keys.single_keys(range(len(singles))), _paid(singles)
    if not weighed.any() and not column_keys.any():
        nothing = np.zeros(len(singles))
        return Allocation(candidates=np.zeros(weighed.size), singles=nothing, gain=gain)
    least, most = (
        0.0,
        (precision + had.sum()) / max(float(weighed.sum() + column_keys.sum()), 1e-300),
    )
    for _ in range(_HALVINGS):
        level = (least + most) / 2
        spent = level * weighed.sum() + np.maximum(level * column_keys - had, 0).sum()
        least, most = (level, most) if spent <= precision else (least, level)
    more = np.maximum(least * column_keys - had, 0)
    worth = more >= _WORTH_AGAIN * had
    if weighed.any() or worth.any():  # else a little for all is what is left to buy
        more[~worth] = 0
    result = least * weighed
    scale = precision / max(float(result.sum() + more.sum()), 1e-300)
    return Allocation(candidates=result * scale, singles=more * scale, gain=gain)


_PENALTIES = (0.0, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
"""Rows that a cell must be worth before its marginal joins a tree, in standard deviations of the
noise that the whole budget would leave: several are tried."""

_LEAST_SIGMA = 0.05
"""Noise in counts below which a precision does not grow any more; chosen by judgment."""
_SHARES, _SHARES_PER_COLUMN = 512, 64
"""The budget in equal shares, at least and for each column: what would get less than one of them is
not measured."""
_ROUNDED = 1e-9
"""A share must exceed the least that can be paid by this part of it, since shares are rounded."""


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
    required: Sequence[Marginal] = ()
    """What public facts tie together: any tree must hold each of these."""


@dataclass(frozen=True, kw_only=True, eq=False)
class TreeChoice:
    """What to measure, each with its precision, 1 / variance of a count."""

    targets: tuple[Marginal, ...]
    precisions: Floats
    columns: tuple[Marginal, ...]
    """Single columns to be measured once more."""
    column_precisions: Floats
    gain: float
    """Predicted: rows in right cells more than with single columns only, over all targets."""


def choose_tree(scored: Scored, *, precision: float, limits: Limits) -> TreeChoice:
    """What to measure for the largest predicted gain over the trees that were tried.

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
    best, chosen_indices = Allocation(candidates=np.empty(0), singles=np.empty(0), gain=-np.inf), []
    room = _Room(
        sizes=numbering.sizes, limits=limits, required=[*map(numbering.clique, scored.required)]
    )
    for inside in _trees(candidates, room, precision):
        chosen = [candidates[index] for index in inside]
        result = allocate(chosen, _with_the_rest(singles, candidates, inside), precision=precision)
        if result.gain > best.gain:
            best, chosen_indices = result, inside
    best = _within(best, [cliques[index] for index in chosen_indices], room)
    return _choice(scored, numbering, best, chosen_indices, precision=precision)


def first_forest(scored: Scored, *, precision: float, limits: Limits) -> list[Marginal]:
    """The pairs of the maximum spanning forest that tell more than the noise of measuring them.

    The noise is that of a pair that gets its share if all columns are joined.
    """
    numbering = Numbering(scored.view.schema)
    singles = _singles(scored, numbering)
    counts = independent_counts(scored)
    pairs = [
        index
        for index, target in enumerate(scored.targets)
        if len(target) == 2 and counts[index].size <= limits.clique_cells
    ]
    if not pairs:
        return []
    cliques = np.array([numbering.clique(scored.targets[index]) for index in pairs])
    sigma = (precision / max(1, len(singles) - 1)) ** -0.5
    gains = [
        _without_noise(float(scored.errors[index]), [singles[c] for c in clique])
        - misplaced(counts[index].reshape(-1), sigma)
        for index, clique in zip(pairs, cliques, strict=True)
    ]
    ties = [numbering.clique(one) for one in scored.required]
    chosen = spanning_forest(cliques, np.array(gains), columns=len(singles), ties=ties)
    return [scored.targets[pairs[index]] for index in chosen]


def precision_of(sigma_counts: float) -> float:
    """One over the variance of a count; of noise that is hardly ever other than 0, a large one."""
    return float(max(sigma_counts, _LEAST_SIGMA) ** -2.0)


def independent_counts(scored: Scored) -> list[Floats]:
    """What independent columns, as they were measured, expect in each cell of each target."""
    shares = {one.target: _column_shares(scored.view, one, scored.rows) for one in scored.columns}
    result = []
    for target in scored.targets:
        counts = np.array(scored.rows)
        for name in target:
            counts = np.multiply.outer(counts, shares[(name,)])
        result.append(counts)
    return result


def _column_shares(view: Coarse, one: Measurement, rows: float) -> Floats:
    """A column's shares of the view's codes."""
    (name,) = one.target if isinstance(one.target, tuple) else ("",)
    counts = project(one.values, max(rows, 1.0)) / max(rows, 1.0)
    if name in view.groups:
        return np.asarray(np.bincount(view.groups[name], weights=counts), dtype=np.float64)
    return counts


def _singles(scored: Scored, numbering: Numbering) -> list[Single]:
    """The columns as numbered inside; of numbers with bins, their groups."""
    by_name = {
        one.target: _single(scored, one, float(weight))
        for one, weight in zip(scored.columns, scored.column_weights, strict=True)
    }
    return [by_name[(name,)] for name in numbering.names]


def _single(scored: Scored, one: Measurement, weight: float) -> Single:
    (name,) = one.target if isinstance(one.target, tuple) else ("",)
    counts, sigma = project(one.values, max(scored.rows, 1.0)), one.sigma_counts
    column = scored.view.fine[name]
    if name in scored.view.groups and isinstance(column, GridColumn) and column.bins is not None:
        groups = scored.view.groups[name]
        counts = np.bincount(groups, weights=counts)
        sigma *= sqrt(groups.size / counts.size)
    precision = precision_of(sigma) if sigma > 0 else np.inf
    return Single(counts=counts, precision=precision, weight=weight)


def _with_the_rest(
    singles: Sequence[Single], candidates: Sequence[Candidate], inside: Sequence[int]
) -> list[Single]:
    """Columns with the weight of the candidates that a tree does not hold: these rest on them."""
    weights, contained = np.array([one.weight for one in singles]), set(inside)
    for index, one in enumerate(candidates):
        if index not in contained:
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
    required: Sequence[Clique]


def _trees(candidates: Sequence[Candidate], room: _Room, precision: float) -> Iterator[list[int]]:
    """Places of the candidates that different trees hold; each set once, none first."""
    known: set[tuple[int, ...]] = set()
    for ranked in ([], *_rankings(candidates, precision)):
        filled = supported(room.sizes, ranked, limits=room.limits, required=room.required)
        inside = tuple(index for index, one in enumerate(candidates) if holds(filled, one.columns))
        if inside not in known:
            known.add(inside)
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
        yield [candidates[index].columns for index in order if value[index] > 0]


def _within(best: Allocation, cliques: Sequence[Clique], room: _Room) -> Allocation:
    """Without the marginals that get least, as long as those that stay need too large a tree.

    The tree of what is measured is another one than what was grown, and rarely larger.
    """
    result = best.candidates.copy()
    while result.any():
        chosen = [clique for clique, share in zip(cliques, result, strict=True) if share > 0]
        if fits(room.sizes, chosen, limits=room.limits, required=room.required):
            break
        result[np.argmin(np.where(result > 0, result, np.inf))] = 0.0
    return replace(best, candidates=result)


def _choice(
    scored: Scored,
    numbering: Numbering,
    best: Allocation,
    chosen_indices: list[int],
    *,
    precision: float,
) -> TreeChoice:
    """The allocation by names, without what would get next to nothing."""
    names = numbering.names
    least = precision / max(_SHARES, _SHARES_PER_COLUMN * len(names))
    targets = [scored.targets[index] for index in chosen_indices]
    both = _payable(
        np.concatenate([best.candidates, best.singles]), precision=precision, least=least
    )
    result, again = both[: len(targets)], both[len(targets) :]
    return TreeChoice(
        targets=tuple(t for t, p in zip(targets, result, strict=True) if p > 0),
        precisions=result[result > 0],
        columns=tuple((n,) for n, p in zip(names, again, strict=True) if p > 0),
        column_precisions=again[again > 0],
        gain=best.gain,
    )


def _payable(shares: Floats, *, precision: float, least: float) -> Floats:
    """Shares scaled to a sum, the smallest left out until each of the others is large enough."""
    order = np.argsort(-shares, kind="stable")
    falling = shares[order]
    enough = falling * precision >= least * (1 + _ROUNDED) * np.cumsum(falling)
    affordable = np.flatnonzero(enough & (falling > 0))
    result = np.zeros(shares.size)
    if affordable.size:
        chosen = order[: affordable[-1] + 1]
        result[chosen] = shares[chosen] / shares[chosen].sum() * precision
    return result
