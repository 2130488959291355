"""From noisy marginals to a graphical model: post-processing, it sees public numbers only."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import numpy as np

from sfumato.errors import InputError, InternalError
from sfumato.models.graphical.beliefs import Beliefs, Floats
from sfumato.models.graphical.junction_tree import (
    Clique,
    JunctionTree,
    check_fits,
    junction_tree,
)
from sfumato.models.graphical.likelihood import PULL, Observation, fit_beliefs
from sfumato.models.graphical.model import GraphicalModel, Numbering
from sfumato.models.model import project
from sfumato.schema.measurement import Coarse, Measurement
from sfumato.schema.schema import Marginal, possible

LIMIT_MB: Final = 64.0
"""The default for the tables of all cliques; a fit holds three copies."""

_EXACT_SIGMA: Final = 0.5
"""The noise in counts with which a public count enters the likelihood; raking makes it exact."""
_SWEEPS, _CLOSE = 100, 1e-9
_LEAST: Final = 0.05
"""A cell of a column starts with at least so many standard deviations of its own noise."""


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
        pull: The weight of the relative entropy to independent columns (``likelihood``).
    """
    numbering = Numbering(view.schema)
    total = max(total, 1.0)
    seen = _together(_observed(view, numbering, one, total) for one in measurements)
    tree = _tree(view, numbering, seen, sets, start)
    check_fits(tree, limit_mb=limit_mb)
    beliefs = _independent(tree, seen)
    for names in dict.fromkeys(one.names for one in view.fine.impossible):
        clique = numbering.clique(names)
        left = view.sum(possible(view.fine, names).astype(np.int64), names) > 0
        mask = numbering.inside(left.astype(np.float64), names)
        beliefs.multiply(_home(tree, clique), clique, mask)
    beliefs.calibrate()
    known = start.potentials if start is not None else {}
    fitted = fit_beliefs(
        beliefs,
        seen,
        people=total,
        potentials=[known.get(o.columns, np.zeros_like(o.shares)) for o in seen] if known else None,
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
        potentials={o.columns: p for o, p in zip(seen, fitted.potentials, strict=True)},
    )


def _observed(view: Coarse, numbering: Numbering, one: Measurement, total: float) -> Observation:
    """A measurement as shares of the view's codes; merged codes add up their noise."""
    names = one.target
    if not isinstance(names, tuple):
        raise InputError(f"a graphical model is fitted to marginals, got the range {names}.")
    if one.merged is not None and not one.merged.same_groups(view):
        raise InputError(
            f"the marginal {names} was measured with other codes merged than in the model's view. "
            "Fit it in the view that it was measured in."
        )
    values, merged = one.values, np.ones(one.values.shape, dtype=np.int64)
    if one.merged is None:
        values, merged = _summed(view, values, names), view.sum(merged, names)
    sigma = max(one.sigma_counts, _EXACT_SIGMA)
    precision = np.asarray(total**2 / (sigma**2 * merged), dtype=np.float64)
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
    found: dict[Clique, Observation] = {}
    for one in observations:
        if (known := found.get(one.columns)) is not None:
            precision = known.precision + one.precision
            weighed = known.precision * known.shares + one.precision * one.shares
            one = Observation(columns=one.columns, shares=weighed / precision, precision=precision)
        found[one.columns] = one
    return list(found.values())


def _tree(
    view: Coarse,
    numbering: Numbering,
    seen: Sequence[Observation],
    sets: Iterable[Marginal],
    start: GraphicalModel | None,
) -> JunctionTree:
    needed = [one.columns for one in seen]
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


def _independent(tree: JunctionTree, seen: Sequence[Observation]) -> Beliefs:
    """Independent columns, each as it was measured by itself; even where it was not."""
    beliefs = Beliefs(tree)
    for one in seen:
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
            place = _home(beliefs.tree, one.columns)
            now = beliefs.marginal(place, one.columns)
            worst = max(worst, float(np.abs(now - one.shares).max()))
            ratio = np.divide(one.shares, now, out=np.zeros_like(now), where=now > 0)
            beliefs.multiply(place, one.columns, ratio)
            beliefs.calibrate()
        if worst < _CLOSE:
            return


def _home(tree: JunctionTree, clique: Clique) -> int:
    place = tree.home(clique)
    if place is None:
        raise InternalError(f"no clique holds {clique}")
    return place


def _within(view: Coarse, measurements: Sequence[Measurement]) -> Mapping[str, Floats]:
    """For merged codes, each one's share of its group, from what was measured code by code."""
    found = {}
    for name, groups in view.groups.items():
        own = [m for m in measurements if m.target == (name,) and m.merged is None]
        weights = np.array([1 / max(m.sigma_counts, _EXACT_SIGMA) ** 2 for m in own])
        counts = np.zeros(groups.size)
        if own:
            counts = np.tensordot(weights / weights.sum(), [m.values for m in own], axes=1)
        allowed = possible(view.fine, (name,)).astype(np.float64)
        counts = allowed * project(counts, max(1.0, float(counts.sum())))
        held = np.bincount(groups, weights=counts)[groups]
        even = allowed / np.maximum(np.bincount(groups, weights=allowed)[groups], 1.0)
        found[name] = np.where(held > 0, counts / np.maximum(held, 1e-300), even)
    return found
