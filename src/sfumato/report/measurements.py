"""What a graphical model was fitted to: measured marginals, their noise, ties and cliques.

All from the published model and from what ``release.json`` says of the measurements; what the file
says of ranges, totals or unknown columns is passed over.
"""

import math
from itertools import combinations
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sfumato import charts
from sfumato.evaluation.distances import total_variation
from sfumato.models.graphical.junction_tree import BYTES_PER_CELL
from sfumato.models.graphical.junction_tree import cells as cells_of
from sfumato.models.graphical.model import GraphicalModel
from sfumato.models.prediction import unprojected_noise
from sfumato.privacy.guarantees import PureDP
from sfumato.release import TableRelease
from sfumato.report.view import MarginalView, MeasuredView
from sfumato.schema import Marginal

MOST_TIES: Final = 120
"""Lines of a drawing; more of them hide each other."""

_UNITS: Final = ((2**20, "MB"), (2**10, "kB"))

Ties = tuple[tuple[str, str, float], ...]


def measured_view(release: TableRelease) -> MeasuredView | None:
    """What was measured and how it ties columns; None where the model is not a graphical one."""
    model = release.model
    if not isinstance(model, GraphicalModel):
        return None
    sigmas = _sigmas(release)
    marginals = [_marginal(release, model, names, each) for names, each in sigmas.items()]
    places = zip(model.cliques, model.tree.cliques, strict=True)
    cliques = [(names, cells_of(model.tree.sizes, clique)) for names, clique in places]
    return MeasuredView(
        columns=release.schema.names,
        marginals=tuple(sorted(marginals, key=lambda one: (-one.noise, one.names))),
        ties=_ties(model, list(sigmas)),
        cliques=tuple(sorted(cliques, key=lambda clique: -clique[1])),
    )


def from_independence(counts: NDArray[np.float64]) -> float:
    """Total variation of a pair from independent columns with the same single counts.

    The share of rows that would have to move until one column tells nothing about the other.

    >>> from_independence(np.array([[50.0, 0.0], [0.0, 50.0]]))
    0.5
    """
    product = np.outer(counts.sum(axis=1), counts.sum(axis=0))
    return min(1.0, total_variation(counts, product))


def drawn_ties(view: MeasuredView) -> tuple[tuple[str, ...], Ties]:
    """The columns and the lines that a drawing can show: all, or the strongest.

    Of more columns than a drawing can hold, those that the strongest lines join.
    """
    if len(view.columns) <= charts.MAX_NODES:
        return view.columns, view.ties[:MOST_TIES]
    ties = view.ties[: charts.MAX_NODES // 2]
    joined = {name for one, other, _ in ties for name in (one, other)}
    return tuple(name for name in view.columns if name in joined), ties


def measured_sentence(view: MeasuredView) -> str:
    """How many marginals were measured, by how many columns they have.

    >>> one = MarginalView(names=("a",), cells=2, sigma=1.0, noise=0.1)
    >>> measured_sentence(MeasuredView(columns=("a",), marginals=(one,)))
    '1 single column was counted with noise.'
    """
    noisy = [len(one.names) for one in view.marginals if one.sigma > 0]
    numbers = {
        "single column": noisy.count(1),
        "pair": noisy.count(2),
        "larger set": sum(size > 2 for size in noisy),
    }
    parts = [_several(count, what) for what, count in numbers.items() if count]
    listed = " and ".join(filter(None, (", ".join(parts[:-1]), *parts[-1:]))) or "Nothing"
    sentence = f"{listed} {'was' if len(noisy) < 2 else 'were'} counted with noise"
    public = len(view.marginals) - len(noisy)
    known = f"{_several(public, 'table')} of counts {'was' if public == 1 else 'were'} public"
    return f"{sentence}; {known}." if public else f"{sentence}."


def size_sentence(view: MeasuredView) -> str:
    """How large the model is.

    >>> size_sentence(MeasuredView(columns=("a",), marginals=(), cliques=((("a",), 3),)))
    'The model is 1 table with 3 cells: 24 bytes.'
    """
    size = view.cells * BYTES_PER_CELL
    unit, name = next((one for one in _UNITS if size >= one[0]), (1, "bytes"))
    text = f"{charts.readable(size / unit)} {name}"
    tables = _several(len(view.cliques), "table")
    return f"The model is {tables} with {_several(view.cells, 'cell')}: {text}."


def _several(count: int, what: str) -> str:
    return f"{count:,} {what}" + ("" if count == 1 else "s")


def _sigmas(release: TableRelease) -> dict[Marginal, list[float]]:
    """The noise of every measurement of each marginal of known columns."""
    schema = release.schema
    found: dict[Marginal, list[float]] = {}
    for entry in release.measurements:
        target = entry["target"]
        if target and isinstance(target, list | tuple) and all(n in schema.names for n in target):
            found.setdefault(schema.marginal(target), []).append(float(entry["sigma_counts"]))
    return found


def _marginal(
    release: TableRelease, model: GraphicalModel, names: Marginal, sigmas: list[float]
) -> MarginalView:
    """Several measurements of one marginal count as their mean, weighted by precision.

    1 / sigma^2 = sum over measurements of 1 / sigma_i^2. Rare values of columns that are measured
    together were merged before; of a single column, every value was counted.
    """
    exact = not all(sigmas)
    sigma = 0.0 if exact else 1 / math.sqrt(sum(one**-2 for one in sigmas))
    schema = release.schema if len(names) == 1 or exact else model.view.schema
    cells = schema.cells(names)
    noise = unprojected_noise(
        cells=cells,
        sigma_counts=sigma,
        rows=max(1.0, model.total),
        laplace=isinstance(release.guarantee, PureDP),
    )
    return MarginalView(names=names, cells=cells, sigma=sigma, noise=noise, times=len(sigmas))


def _ties(model: GraphicalModel, measured: list[Marginal]) -> Ties:
    """Every two columns that were measured together, by the model's distance from independence."""
    pairs = sorted({pair for names in measured for pair in combinations(names, 2)})
    ties = [
        (*pair, from_independence(counts))
        for pair, counts in zip(pairs, model.coarse_marginals(pairs), strict=True)
    ]
    return tuple(sorted(ties, key=lambda tie: (-tie[2], tie[:2])))
