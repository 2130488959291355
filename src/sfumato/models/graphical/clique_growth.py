"""Which marginals a junction tree of limited size can hold: grown greedily by what they are worth.

Adding a marginal joins its columns; the graph is triangulated anew and the marginal stays if the
cliques are still small enough. Reads public numbers only, so it costs no budget.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from sfumato.models.graphical.junction_tree import Clique

_PATIENCE = 400
"""Marginals refused in a row after which smaller ones are not tried either."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """How large a model may get."""

    clique_cells: float
    all_cells: float


def supported(
    sizes: Sequence[int],
    ranked: Sequence[Clique],
    *,
    limits: Limits,
    held: Sequence[Clique] = (),
) -> NDArray[np.bool_]:
    """The triangulated graph (column, column) of the marginals that fit, taken in order.

    Args:
        sizes: The number of codes of each column.
        ranked: Marginals, the most wanted first.
        limits: How large the model may be; as large as what is held needs in any case.
        held: Marginals that every tree must hold.
    """
    edges = _joined(len(sizes), held)
    filled, least = _filled(sizes, edges)
    refused = 0
    for marginal in ranked:
        if holds(filled, marginal):
            continue
        before = edges.copy()
        _join(edges, marginal)
        tried, needed = _filled(sizes, edges)
        if _within(needed, limits, least):
            filled, refused = tried, 0
        else:
            edges, refused = before, refused + 1
            if refused > _PATIENCE:
                break
    return filled


def fits(
    sizes: Sequence[int],
    marginals: Sequence[Clique],
    *,
    limits: Limits,
    held: Sequence[Clique] | None = None,
) -> bool:
    """Whether one tree holds all these marginals and is within the limits.

    Args:
        sizes: The number of codes of each column.
        marginals: What it is asked for.
        limits: How large it may be.
        held: Marginals that every tree must hold; then it may be as large as these need.
    """
    _, needed = _filled(sizes, _joined(len(sizes), [*marginals, *(held or ())]))
    least = Limits(clique_cells=0.0, all_cells=0.0)
    if held is not None:
        _, least = _filled(sizes, _joined(len(sizes), held))
    return _within(needed, limits, least)


def holds(filled: NDArray[np.bool_], marginal: Clique) -> bool:
    """Whether a clique of a triangulated graph holds a marginal: all its columns are joined."""
    return all(filled[one, other] for one, other in combinations(marginal, 2))


def _filled(sizes: Sequence[int], edges: NDArray[np.bool_]) -> tuple[NDArray[np.bool_], Limits]:
    """A graph triangulated, and how large a model of it is."""
    from sfumato.models.graphical.elimination_kernels import fill

    filled = np.empty_like(edges)
    largest, total = fill(edges, np.array(sizes, dtype=np.float64), filled)
    return filled, Limits(clique_cells=largest, all_cells=total)


def _within(needed: Limits, limits: Limits, least: Limits) -> bool:
    return needed.clique_cells <= max(limits.clique_cells, least.clique_cells) and (
        needed.all_cells <= max(limits.all_cells, least.all_cells)
    )


def _joined(columns: int, marginals: Sequence[Clique]) -> NDArray[np.bool_]:
    edges = np.zeros((columns, columns), dtype=np.bool_)
    for marginal in marginals:
        _join(edges, marginal)
    return edges


def _join(edges: NDArray[np.bool_], marginal: Clique) -> None:
    for one, other in combinations(marginal, 2):
        edges[one, other] = edges[other, one] = True
