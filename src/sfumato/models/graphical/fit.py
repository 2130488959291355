"""From noisy marginals to a graphical model: post-processing, it sees public numbers only.

Maximum likelihood: the closest distribution that a junction tree can hold. With Gaussian noise the
negative log-likelihood is a sum of squares of marginals, convex in the distribution. It is lowered
by accelerated mirror descent in the geometry of relative entropy, which moves each measured
marginal's log-potential along its residual and never leaves the simplex.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil, sqrt
from typing import Final

import numpy as np

from sfumato.errors import InputError, InternalError
from sfumato.models.graphical.beliefs import Beliefs, CliqueWork, Floats
from sfumato.models.graphical.junction_tree import (
    Clique,
    JunctionTree,
    check_fits,
    junction_tree,
)
from sfumato.models.graphical.model import GraphicalModel, Numbering
from sfumato.models.model import project
from sfumato.schema.measurement import Coarse, Measurement
from sfumato.schema.schema import Marginal, possible

PULL = 0.003
"""The weight of the relative entropy to the starting point, per person. Where the noise is larger
than a cell's count it keeps the cell near the start, instead of fitting the noise."""

_ENOUGH = 0.55
"""Half a squared standard deviation is expected of each measured cell of several columns (single
columns are met from the start); a fit that reached this part of that has begun to follow the noise.
From .25 to .6 on the made-up tables of ``bench/values.py``: with less, ties are nearer, rare cells
farther."""
_SLOW, _WINDOW = 0.01, 10
"""A loss that falls by less than this share in ``_WINDOW`` iterations has settled."""
_STEEPEST, _FARTHEST = 20.0, 200.0
"""No log-potential moves by more in one iteration, and all of one clique together by no more: a
cell that moved by a factor of e^700 would have left the range of floats."""
_WARM = 60.0
"""No log-potential starts farther out: a cell that an earlier fit gave up can come back."""
_ROUNDING = 1e-14
"""What floating point may take off a relative entropy, in parts of its terms."""
_BACK, _FORTH = 2.0, 0.9
"""How the curvature is corrected when a step was too long, and tried lower after each."""
_TRIES = 64
"""The most corrections of the curvature in one iteration: a factor of 2^64."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Observation:
    """Shares of a marginal as measured, and how precisely."""

    columns: Clique
    shares: Floats
    """Flat, in rising order of columns; noise may have taken some below 0."""
    precision: Floats
    """One over the variance of each share."""


@dataclass(kw_only=True, eq=False)
class Fitted:
    """Calibrated beliefs and what a later fit can start from."""

    beliefs: Beliefs
    potentials: list[Floats]
    """For each observation, how far its log-potential is from the start's."""
    losses: list[float] = field(default_factory=list)
    """Half the squared standardized residuals, before each iteration and after the last."""


def fit_beliefs(
    start: Beliefs,
    observations: Sequence[Observation],
    *,
    people: float,
    potentials: Sequence[Floats] | None = None,
    iterations: int = 400,
    pull: float = PULL,
) -> Fitted:
    """Lower ``sum_m precision_m |p_m - shares_m|^2 / 2 + pull * people * KL(p || start)``.

    Tseng 2008, "On accelerated proximal gradient methods for convex-concave optimization",
    algorithm 1, with the entropy as distance (Auslender, Teboulle 2006): a fast point z, whose
    potentials move, and its running mean x, which is the answer. The curvature L is estimated on
    the way: a step is taken when ``|z' - z|^2 / 2 <= L KL(z' || z)`` in the norm of the loss.

    Args:
        start: Calibrated beliefs, which are changed; the pull is towards them.
        observations: What was measured; each must lie in a clique.
        people: The number that shares are of.
        potentials: Where to start from, one for each observation: those of an earlier fit.
        iterations: The most.
        pull: The weight of the relative entropy.
    """
    problem = _Problem(start.tree, observations)
    moved = [np.zeros_like(one.shares) for one in observations]
    if potentials is not None:
        moved = [np.clip(one, -_WARM, _WARM) for one in potentials]
        problem.move(start, moved)
    return _descend(problem, start, moved, iterations=iterations, weight=pull * people)


def _descend(
    problem: "_Problem", fast: Beliefs, moved: list[Floats], *, iterations: int, weight: float
) -> Fitted:
    """The loop of ``fit_beliefs``, begun anew at the mean whenever the loss rises.

    O'Donoghue, Candes 2015, "Adaptive restart for accelerated gradient schemes". The potentials'
    mean stands for the mean, so that the fast point keeps its form.
    """
    before, now, mean_moved = Beliefs(fast.tree), problem.marginals(fast), moved
    mean, mean_now = [table.copy() for table in fast.tables], list(now)
    losses, share, curvature = [problem.loss(now)], 1.0, problem.first_curvature
    begun = 0
    for _ in range(iterations):
        if problem.settled(losses[begun:]):
            break
        slopes = problem.slopes(_mixed(mean_now, now, share))
        before.copy_from(fast)
        for _ in range(_TRIES):
            scale = 1 / (share * curvature + weight)
            directions = [
                -scale * (slope + weight * t) for slope, t in zip(slopes, moved, strict=True)
            ]
            steps = problem.steps(directions, now)
            result, apart = problem.take(fast, steps)
            if problem.distance(result, now) <= curvature * apart:
                break
            curvature *= _BACK
            fast.copy_from(before)
        else:
            break  # rounding hides what any step would gain
        moved, now = [t + step for t, step in zip(moved, steps, strict=True)], result
        mean_now, mean_moved = (
            _mixed(mean_now, now, share),
            _mixed(mean_moved, moved, share),
        )
        for x, z in zip(mean, fast.tables, strict=True):
            x += share * (z - x)
        losses.append(problem.loss(mean_now))
        curvature *= _FORTH
        if losses[-1] > (1 + _SLOW / _WINDOW) * losses[-2] and share < 1:
            problem.move(fast, [x - z for x, z in zip(mean_moved, moved, strict=True)])
            moved, now, share, begun = mean_moved, problem.marginals(fast), 1.0, len(losses)
        else:
            share = (sqrt(share**4 + 4 * share**2) - share**2) / 2
    return Fitted(beliefs=Beliefs.of(fast.tree, mean), potentials=mean_moved, losses=losses)


def _mixed(slow: Sequence[Floats], fast: Sequence[Floats], share: float) -> list[Floats]:
    return [(1 - share) * x + share * z for x, z in zip(slow, fast, strict=True)]


class _Problem:
    """The observations, sorted by the clique that answers for each."""

    def __init__(self, tree: JunctionTree, observations: Sequence[Observation]) -> None:
        self.observations = observations
        homes = [tree.home(one.columns) for one in observations]
        self._at_clique: dict[int, list[int]] = {}
        for number, home in enumerate(homes):
            if home is None:
                raise InternalError(f"no clique holds {observations[number].columns}")
            self._at_clique.setdefault(home, []).append(number)
        self._work = {
            index: CliqueWork(
                tree.sizes, tree.cliques[index], [observations[n].columns for n in numbers]
            )
            for index, numbers in self._at_clique.items()
        }
        several = [one.shares.size for one in observations if len(one.columns) > 1]
        self._expected = sum(several) / 2
        self._most = [_STEEPEST] * len(observations)
        for numbers in self._at_clique.values():
            for number in numbers:
                self._most[number] = min(_STEEPEST, _FARTHEST / len(numbers))

    @property
    def first_curvature(self) -> float:
        return 0.01 * max((float(one.precision.max()) for one in self.observations), default=1.0)

    def marginals(self, beliefs: Beliefs) -> list[Floats]:
        """The beliefs' marginal of each observation."""
        result: list[Floats] = [np.empty(0)] * len(self.observations)
        for index, numbers in self._at_clique.items():
            computed = self._work[index].marginals(beliefs.tables[index])
            for number, marginal in zip(numbers, computed, strict=True):
                result[number] = marginal
        return result

    def _multiply(self, beliefs: Beliefs, steps: Sequence[Floats]) -> None:
        for index, numbers in self._at_clique.items():
            factors = [np.exp(steps[number]) for number in numbers]
            self._work[index].multiply(beliefs.tables[index], factors)
            beliefs.touch(index)

    def steps(self, directions: Sequence[Floats], current: Sequence[Floats]) -> list[Floats]:
        """Steps around their own mean, as a constant changes nothing, and none too long."""
        return [
            np.clip(step - float(step @ z), -most, most)
            for step, z, most in zip(directions, current, self._most, strict=True)
        ]

    def take(self, beliefs: Beliefs, steps: Sequence[Floats]) -> tuple[list[Floats], float]:
        """One step: its marginals, and KL(after || before), what rounding may have lost added."""
        self._multiply(beliefs, steps)
        log_total = beliefs.calibrate()
        result = self.marginals(beliefs)
        terms = [float(step @ z) for step, z in zip(steps, result, strict=True)]
        lost = _ROUNDING * (len(beliefs.tables) + abs(log_total) + sum(abs(term) for term in terms))
        return result, sum(terms) - log_total + lost

    def move(self, beliefs: Beliefs, by: Sequence[Floats]) -> None:
        """Add to the log-potentials, in parts that are no longer than steps."""
        farthest = zip(by, self._most, strict=True)
        parts = ceil(max((float(np.abs(one).max()) / most for one, most in farthest), default=0.0))
        for _ in range(parts):
            self._multiply(beliefs, [one / parts for one in by])
            beliefs.calibrate()

    def slopes(self, current: Sequence[Floats]) -> list[Floats]:
        """The gradient of the loss in each marginal."""
        pairs = zip(self.observations, current, strict=True)
        return [one.precision * (marginal - one.shares) for one, marginal in pairs]

    def loss(self, current: Sequence[Floats]) -> float:
        """Half the squared standardized residuals."""
        return self.distance(current, [one.shares for one in self.observations])

    def distance(self, left: Sequence[Floats], right: Sequence[Floats]) -> float:
        """Half the squared distance of two sets of marginals in the norm of the loss."""
        total = 0.0
        for one, a, b in zip(self.observations, left, right, strict=True):
            gap = a - b
            total += float((one.precision * gap) @ gap) / 2
        return total

    def settled(self, losses: Sequence[float]) -> bool:
        """Whether the loss since the last start has reached the noise, or stands still."""
        if not losses:
            return False
        if losses[-1] <= _ENOUGH * self._expected:
            return True
        return len(losses) > _WINDOW and losses[-1] > (1 - _SLOW) * losses[-1 - _WINDOW]


LIMIT_MB: Final = 64.0
"""The default for the tables of all cliques; a fit holds three copies."""

_EXACT_SIGMA: Final = 0.5
"""The noise in counts with which a public count enters the likelihood; raking makes it exact."""
_SWEEPS, _CLOSE = 100, 1e-9
"""The most sweeps of raking, and the gap in shares at which it stops; chosen by judgment."""
_LEAST: Final = 0.05
"""A cell of a column starts with at least this many standard deviations of its own noise."""


def fit_graphical(
    view: Coarse,
    measurements: Sequence[Measurement],
    *,
    total: float,
    sets: Iterable[Marginal] = (),
    start: GraphicalModel | None = None,
    limit_mb: float = LIMIT_MB,
    iterations: int = 400,
    pull: float = PULL,
) -> GraphicalModel:
    """The most likely model of measured marginals on the smallest junction tree that holds them.

    Args:
        view: The columns, some of them with codes taken together.
        measurements: Noisy marginals of the view or of all codes; several of one target are
            weighed by precision. Without noise (``sigma_counts`` 0) they hold exactly.
        total: The number of rows that the model stands for.
        sets: Further marginals that a clique should hold.
        start: An earlier model of the same view to start from; its tree is kept where it holds
            all that was measured.
        limit_mb: Refuse a larger model before anything is allocated.
        iterations: The most steps of the fit.
        pull: The weight of the relative entropy to independent columns (``fit_beliefs``).
    """
    numbering = Numbering(view.schema)
    total = max(total, 1.0)
    observations = _together(_observed(view, numbering, one, total) for one in measurements)
    tree = _tree(view, numbering, observations, sets, start)
    check_fits(tree, limit_mb=limit_mb)
    beliefs = _independent(tree, observations)
    for names in dict.fromkeys(one.names for one in view.fine.impossible):
        clique = numbering.clique(names)
        left = view.sum(possible(view.fine, names).astype(np.int64), names) > 0
        mask = numbering.inside(left.astype(np.float64), names)
        beliefs.multiply(_home(tree, clique), clique, mask)
    beliefs.calibrate()
    known = start.potentials if start is not None else {}
    fitted = fit_beliefs(
        beliefs,
        observations,
        people=total,
        potentials=[known.get(o.columns, np.zeros_like(o.shares)) for o in observations]
        if known
        else None,
        iterations=iterations,
        pull=pull,
    )
    exact = [_observed(view, numbering, m, total) for m in measurements if m.sigma_counts == 0]
    _rake(fitted.beliefs, exact)
    return GraphicalModel(
        view=view,
        total=total,
        beliefs=fitted.beliefs,
        within=_within(view, measurements),
        potentials={o.columns: p for o, p in zip(observations, fitted.potentials, strict=True)},
    )


def _observed(view: Coarse, numbering: Numbering, one: Measurement, total: float) -> Observation:
    """A measurement as shares of the view's codes; merged codes add up their noise."""
    names = one.target
    if not isinstance(names, tuple):
        raise InputError(f"a graphical model is fitted to marginals, got the range {names}.")
    if one.merged is not None and not one.merged.same_groups(view, names):
        raise InputError(
            f"the marginal {names} was measured with other codes merged than in the model's view. "
            "Fit it in the view that it was measured in."
        )
    values, variances = one.values, one.variances
    if variances is None:
        variances = np.full(values.shape, max(one.sigma_counts, _EXACT_SIGMA) ** 2)
    if one.merged is None:
        values, variances = _summed(view, values, names), _summed(view, variances, names)
    precision = np.asarray(total**2 / np.maximum(variances, _EXACT_SIGMA**2), dtype=np.float64)
    return Observation(
        columns=numbering.clique(names),
        shares=numbering.inside(values, names) / total,
        precision=numbering.inside(precision, names),
    )


def _summed(view: Coarse, values: Floats, names: Marginal) -> Floats:
    for axis, name in enumerate(names):
        if name in view.groups:
            order = np.argsort(view.groups[name], kind="stable")
            starts = np.flatnonzero(np.diff(view.groups[name][order], prepend=-1))
            values = np.add.reduceat(values.take(order, axis=axis), starts, axis=axis)
    return values


def _together(observations: Iterable[Observation]) -> list[Observation]:
    """Observations of the same columns averaged by precision."""
    result: dict[Clique, Observation] = {}
    for one in observations:
        if (known := result.get(one.columns)) is not None:
            precision = known.precision + one.precision
            weighed = known.precision * known.shares + one.precision * one.shares
            one = Observation(columns=one.columns, shares=weighed / precision, precision=precision)
        result[one.columns] = one
    return list(result.values())


def _tree(
    view: Coarse,
    numbering: Numbering,
    observations: Sequence[Observation],
    sets: Iterable[Marginal],
    start: GraphicalModel | None,
) -> JunctionTree:
    needed = [one.columns for one in observations]
    needed += [numbering.clique(names) for names in sets]
    needed += [numbering.clique(one.names) for one in view.fine.impossible]
    if start is not None and start.numbering.names != numbering.names:
        raise InputError(
            "the model to start from is of another view. Start from a model of the same view, or "
            "from none."
        )
    if start is not None and all(start.tree.home(one) is not None for one in needed):
        return start.tree
    return junction_tree(numbering.sizes, needed)


def _independent(tree: JunctionTree, observations: Sequence[Observation]) -> Beliefs:
    """Independent columns, each as it was measured by itself; even where it was not."""
    beliefs = Beliefs(tree)
    for one in observations:
        if len(one.columns) == 1:
            least = _LEAST / np.sqrt(one.precision)
            shares = np.maximum(project(one.shares, 1.0), least)
            factor = shares / shares.sum() * shares.size
            beliefs.multiply(_home(tree, one.columns), one.columns, factor)
    beliefs.calibrate()
    return beliefs


def _rake(beliefs: Beliefs, exact: Sequence[Observation]) -> None:
    """Proportional fitting to counts that hold exactly, in turn, until all do.

    Deming, Stephan 1940; Ireland, Kullback 1968.
    """
    for _ in range(_SWEEPS if exact else 0):
        worst = 0.0
        for one in exact:
            index = _home(beliefs.tree, one.columns)
            now = beliefs.marginal(index, one.columns)
            worst = max(worst, float(np.abs(now - one.shares).max()))
            ratio = np.divide(one.shares, now, out=np.zeros_like(now), where=now > 0)
            beliefs.multiply(index, one.columns, ratio)
            beliefs.calibrate()
        if worst < _CLOSE:
            return


def _home(tree: JunctionTree, clique: Clique) -> int:
    index = tree.home(clique)
    if index is None:
        raise InternalError(f"no clique holds {clique}")
    return index


def _within(view: Coarse, measurements: Sequence[Measurement]) -> Mapping[str, Floats]:
    """For merged codes, each one's share of its group, from what was measured code by code."""
    result = {}
    for name, groups in view.groups.items():
        own = [m for m in measurements if m.target == (name,) and m.merged is None]
        weights = np.array([1 / max(m.sigma_counts, _EXACT_SIGMA) ** 2 for m in own])
        counts = np.zeros(groups.size)
        if own:
            counts = np.tensordot(weights / weights.sum(), [m.values for m in own], axes=1)
        allowed = possible(view.fine, (name,)).astype(np.float64)
        counts = allowed * project(counts, max(1.0, float(counts.sum())))
        group_counts = np.bincount(groups, weights=counts)[groups]
        even = allowed / np.maximum(np.bincount(groups, weights=allowed)[groups], 1.0)
        result[name] = np.where(group_counts > 0, counts / np.maximum(group_counts, 1e-300), even)
    return result
