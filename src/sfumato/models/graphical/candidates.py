"""The marginals that an adaptive method chooses from, and which of them a model can still hold."""

from collections.abc import Iterable, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from sfumato.models.graphical.beliefs import Floats
from sfumato.models.graphical.clique_growth import Limits, holds
from sfumato.models.graphical.model import GraphicalModel, Numbering
from sfumato.schema.schema import Marginal
from sfumato.schema.workload import layout


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
        asked = sum(c for s, c in zip(marginals, weights, strict=True) if name in s)
        worth += [asked if name in candidate else 0.0 for candidate in candidates]
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
        from sfumato.models.graphical.elimination_kernels import fill

        for marginal in marginals:
            _join(self._edges, self._numbering.clique(marginal))
        filled = self._edges.copy()
        fill(self._edges, self._sizes, filled)
        spare = filled.copy()
        for place, clique in enumerate(self._cliques):
            if holds(filled, clique):
                self._needed[place] = 0.0
                continue
            edges = self._edges.copy()
            _join(edges, clique)
            self._needed[place] = fill(edges, self._sizes, spare)

    def fitting(self, limits: Limits) -> NDArray[np.bool_]:
        """The candidates that the model holds already, or would within the limits."""
        largest, total = self._needed.T
        return np.asarray((largest <= limits.clique_cells) & (total <= limits.all_cells))


def write_answers(
    answers: Floats, model: GraphicalModel, targets: Sequence[Marginal], wanted: NDArray[np.bool_]
) -> None:
    """Put a model's counts for the wanted targets into a flat vector of all (``layout``)."""
    offsets = layout(model.view.schema, targets)
    places = np.flatnonzero(wanted).tolist()
    found = model.coarse_marginals([targets[place] for place in places])
    for place, counts in zip(places, found, strict=True):
        answers[offsets[place] : offsets[place + 1]] = counts.reshape(-1)


def _join(edges: NDArray[np.bool_], columns: Sequence[int]) -> None:
    for one, other in combinations(columns, 2):
        edges[one, other] = edges[other, one] = True
