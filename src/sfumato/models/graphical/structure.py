"""Which marginals a junction tree of limited size can hold: candidates, greedy growth, forests.

Adding a marginal joins its columns; the graph is triangulated anew and the marginal stays if the
cliques are still small enough. Reads public numbers only, so it costs no budget.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from sfumato.models.graphical.beliefs import Floats
from sfumato.models.graphical.junction_tree import Clique
from sfumato.models.graphical.model import GraphicalModel, Numbering
from sfumato.schema.schema import Marginal
from sfumato.schema.workload import layout

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
    required: Sequence[Clique] = (),
) -> NDArray[np.bool_]:
    """The triangulated graph (column, column) of the marginals that fit, taken in order.

    Args:
        sizes: The number of codes of each column.
        ranked: Marginals, the most useful first.
        limits: How large the model may be; as large as what is required needs in any case.
        required: Marginals that every tree must hold.
    """
    edges = _joined(len(sizes), required)
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
    required: Sequence[Clique] | None = None,
) -> bool:
    """Whether one tree holds all these marginals and is within the limits.

    Args:
        sizes: The number of codes of each column.
        marginals: What it must hold.
        limits: How large it may be.
        required: Marginals that every tree must hold; then it may be as large as these need.
    """
    _, needed = _filled(sizes, _joined(len(sizes), [*marginals, *(required or ())]))
    least = Limits(clique_cells=0.0, all_cells=0.0)
    if required is not None:
        _, least = _filled(sizes, _joined(len(sizes), required))
    return _within(needed, limits, least)


def holds(filled: NDArray[np.bool_], marginal: Clique) -> bool:
    """Whether a clique of a triangulated graph holds a marginal: all its columns are joined."""
    return all(filled[one, other] for one, other in combinations(marginal, 2))


def _filled(sizes: Sequence[int], edges: NDArray[np.bool_]) -> tuple[NDArray[np.bool_], Limits]:
    """A graph triangulated, and how large a model of it is."""
    from sfumato.models.graphical.kernels import fill

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


def downward_closure(marginals: Iterable[Marginal], *, degree: int) -> tuple[Marginal, ...]:
    """Every part of a marginal with one up to ``degree`` columns, each once, small ones first.

    >>> downward_closure([("a", "b"), ("b", "c")], degree=2)
    (('a',), ('b',), ('c',), ('a', 'b'), ('b', 'c'))
    """
    parts = {
        part
        for marginal in marginals
        for size in range(1, min(degree, len(marginal)) + 1)
        for part in combinations(marginal, size)
    }
    return tuple(sorted(parts, key=lambda part: (len(part), part)))


def overlaps(
    candidates: Sequence[Marginal], marginals: Sequence[Marginal], weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    """What each candidate is worth: ``w_r = sum_s c_s |r and s|`` over the workload's marginals.

    McKenna, Mullins, Sheldon, Miklau 2022, arXiv 2201.12677, section 4.2.

    >>> overlaps([("a",), ("a", "b")], [("a", "b"), ("b", "c")], np.array([2.0, 1.0])).tolist()
    [2.0, 5.0]
    """
    worth = np.zeros(len(candidates))
    for name in {name for marginal in marginals for name in marginal}:
        requested = sum(c for s, c in zip(marginals, weights, strict=True) if name in s)
        worth += [requested if name in candidate else 0.0 for candidate in candidates]
    return worth


class Growth:
    """The graph of what a model holds, and the candidates that would leave it small enough."""

    def __init__(self, numbering: Numbering, candidates: Sequence[Marginal]) -> None:
        self._sizes = np.array(numbering.sizes, dtype=np.float64)
        self._cliques = [numbering.clique(one) for one in candidates]
        self._numbering = numbering
        columns = len(numbering.sizes)
        self._edges = np.zeros((columns, columns), dtype=np.bool_)
        self._needed = np.zeros((len(candidates), 2))

    def hold(self, marginals: Iterable[Marginal]) -> None:
        """Join the columns of each marginal, and find what every candidate would make of it."""
        from sfumato.models.graphical.kernels import fill

        for marginal in marginals:
            _join(self._edges, self._numbering.clique(marginal))
        filled = self._edges.copy()
        fill(self._edges, self._sizes, filled)
        spare = filled.copy()
        for index, clique in enumerate(self._cliques):
            if holds(filled, clique):
                self._needed[index] = 0.0
                continue
            edges = self._edges.copy()
            _join(edges, clique)
            self._needed[index] = fill(edges, self._sizes, spare)

    def fitting(self, limits: Limits) -> NDArray[np.bool_]:
        """The candidates that the model holds already, or would within the limits."""
        largest, total = self._needed.T
        return np.asarray((largest <= limits.clique_cells) & (total <= limits.all_cells))


def write_answers(
    answers: Floats, model: GraphicalModel, targets: Sequence[Marginal], chosen: NDArray[np.bool_]
) -> None:
    """Put a model's counts for the chosen targets into a flat vector of all (``layout``)."""
    offsets = layout(model.view.schema, targets)
    indices = np.flatnonzero(chosen).tolist()
    result = model.coarse_marginals([targets[index] for index in indices])
    for index, counts in zip(indices, result, strict=True):
        answers[offsets[index] : offsets[index + 1]] = counts.reshape(-1)


Pairs = NDArray[np.int64]
"""Numbers of two columns in each row."""


def joining(
    pairs: Pairs, chosen: Sequence[int], *, columns: int, ties: Sequence[Clique] = ()
) -> NDArray[np.bool_]:
    """The pairs that join what the chosen ones leave apart, and so close no circle with them.

    Ties are sets of columns that a model holds together anyway. A pair within one of them makes
    the model no larger; two sets that are tied already are joined by no other pair, as a circle of
    ties and pairs would need larger cliques.

    >>> pairs = np.array([[0, 1], [0, 2], [1, 2]])
    >>> joining(pairs, [0], columns=3).tolist()
    [False, True, True]
    >>> joining(pairs, [0, 1], columns=3).tolist()
    [False, False, False]
    """
    own = [pairs[index].tolist() for index in chosen]
    apart = _apart(pairs, components(columns, own))
    if not ties:
        return apart
    within = np.array([any(set(pair) <= set(tie) for tie in ties) for pair in pairs.tolist()])
    return _apart(pairs, components(columns, [*own, *ties])) | (within & apart)


def spanning_forest(
    pairs: Pairs, gains: NDArray[np.float64], *, columns: int, ties: Sequence[Clique] = ()
) -> list[int]:
    """Indices of the pairs of the forest with the largest sum of gains, the largest gain first.

    Kruskal 1956, "On the shortest spanning subtree of a graph". A pair without gain is left out.

    >>> spanning_forest(np.array([[0, 1], [0, 2], [1, 2]]), np.array([3.0, 1.0, 2.0]), columns=3)
    [0, 2]
    """
    chosen: list[int] = []
    while True:
        left = np.where(joining(pairs, chosen, columns=columns, ties=ties), gains, -np.inf)
        best = int(np.argmax(left)) if left.size else 0
        if not left.size or left[best] <= 0:
            return chosen
        chosen.append(best)


def components(columns: int, sets: Iterable[Iterable[int]]) -> NDArray[np.int64]:
    """For each column a number that it shares with all that sets tie to it.

    >>> components(4, [(0, 2), (2, 3)]).tolist()
    [0, 1, 0, 0]
    """
    result = np.arange(columns)
    for one in sets:
        tied = np.isin(result, result[list(one)])
        result[tied] = result[tied].min()
    return result


def _apart(pairs: Pairs, component: NDArray[np.int64]) -> NDArray[np.bool_]:
    return np.asarray(component[pairs[:, 0]] != component[pairs[:, 1]])
