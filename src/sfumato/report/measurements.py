"""What was measured, the noise of each figure, and what ties columns, from a release alone.

The published model and what ``release.json`` says of the measurements; what the file says of
ranges, totals or unknown columns is passed over. Models weigh all measurements together, so they
are usually nearer to the truth; where nothing is known of a figure, a sentence says so.
"""

import math
from itertools import combinations
from typing import TYPE_CHECKING, Final, cast

import numpy as np
from numpy.typing import NDArray

from sfumato import charts
from sfumato.models.model import PublishedRows, total_variation
from sfumato.models.prediction import unprojected_noise
from sfumato.privacy.guarantees import PureDP
from sfumato.release import TableRelease
from sfumato.report.view import MarginalView, MeasuredView
from sfumato.schema import Marginal

if TYPE_CHECKING:  # most releases have another model
    from sfumato.models.graphical.model import GraphicalModel

_UNITS: Final = ((2**20, "MB"), (2**10, "kB"))
"""Units of a size, the largest first: powers of 1,024 by convention."""

Ties = tuple[tuple[str, str, float], ...]


def measured_view(release: TableRelease) -> MeasuredView | None:
    """What was measured and how it ties columns; None where no graphical model was fitted to it."""
    if "measured" not in release.method:
        return None
    from sfumato.models.graphical.junction_tree import cells as cells_of

    model = cast("GraphicalModel", release.model)
    sigmas = _sigmas(release)
    marginals = [_marginal(release, model, names, each) for names, each in sigmas.items()]
    pairs = zip(model.cliques, model.tree.cliques, strict=True)
    cliques = [(names, cells_of(model.tree.sizes, clique)) for names, clique in pairs]
    return MeasuredView(
        columns=release.schema.names,
        marginals=tuple(sorted(marginals, key=lambda one: (-one.noise, one.names))),
        ties=_ties(model, list(sigmas)),
        cliques=tuple(sorted(cliques, key=lambda clique: -clique[1])),
    )


def from_independence(counts: NDArray[np.float64]) -> float:
    """Total variation of a pair from independent columns with the same single counts.

    The share of rows that would have to change to make the columns independent, if the counts of
    each column stay the same: only one independent table has these counts.

    >>> from_independence(np.array([[50.0, 0.0], [0.0, 50.0]]))
    0.5
    """
    product = np.outer(counts.sum(axis=1), counts.sum(axis=0))
    return min(1.0, total_variation(counts, product))


def matrix_ties(ties: Ties) -> Ties:
    """The ties that a matrix can show: those of the columns with the strongest ties.

    Args:
        ties: The strongest first.
    """
    columns: set[str] = set()
    shown = []
    for tie in ties:
        joined = columns.union(tie[:2])
        if len(joined) <= charts.MAX_HEAT_CELLS:
            columns = joined
            shown.append(tie)
    return tuple(shown)


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
    from sfumato.models.graphical.junction_tree import BYTES_PER_CELL

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
    sigmas: dict[Marginal, list[float]] = {}
    for entry in release.measurements:
        target = entry["target"]
        if target and isinstance(target, list | tuple) and all(n in schema.names for n in target):
            sigmas.setdefault(schema.marginal(target), []).append(float(entry["sigma_counts"]))
    return sigmas


def _marginal(
    release: TableRelease, model: "GraphicalModel", names: Marginal, sigmas: list[float]
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


def _ties(model: "GraphicalModel", measured: list[Marginal]) -> Ties:
    """Every two columns that were measured together, by the model's distance from independence."""
    pairs = sorted({pair for names in measured for pair in combinations(names, 2)})
    ties = [
        (*pair, from_independence(counts))
        for pair, counts in zip(pairs, model.coarse_marginals(pairs), strict=True)
    ]
    return tuple(sorted(ties, key=lambda tie: (-tie[2], tie[:2])))


Floats = NDArray[np.float64]

PUBLIC: Final = "These counts are public: no noise was added to them."
UNSEEN: Final = "Never measured: spread evenly, by assumption."
RANDOMIZED: Final = (
    "Each row was randomized before it was counted, so the error of a count is not given here."
)
STEPWISE: Final = (
    "The method moves its table towards noisy answers step by step, so the error is not known."
)
UNKNOWN: Final = "Only sums over other cells were measured, so the error of a bar is not known."


def marginal_sigma(release: TableRelease, names: Marginal) -> float | None:
    """The standard deviation of the noise on each cell of a marginal; 0 where it is public.

    Several measurements of it count as their mean, weighted by precision: 1 / sigma^2 = sum of
    1 / sigma_i^2. Where only larger marginals were measured, the best of them, added up to this
    one: sigma^2 times the cells that fall together. None where it is not known.
    """
    if _agrees_with_none(release):
        return None
    own, larger = [], []
    for entry in release.measurements:
        target = entry["target"]
        if not isinstance(target, list | tuple) or not set(names) <= set(target):
            continue  # a range is written as text, and says nothing of single cells
        if not set(target) <= set(release.schema.names):
            continue
        sigma = float(entry["sigma_counts"])
        if len(target) == len(names):
            own.append(sigma)
        else:
            rest = tuple(name for name in target if name not in names)
            larger.append(sigma * math.sqrt(release.schema.cells(rest)))
    if own:
        return 0.0 if not all(own) else 1 / math.sqrt(sum(sigma**-2 for sigma in own))
    return min(larger, default=None)


def column_note(release: TableRelease, name: str, sigma: float | None) -> str:
    """The expected error of a column's bars in counts and points, or why it is not given."""
    if sigma == 0:
        return PUBLIC
    if sigma is None:
        return _why_unknown(release, name)
    cells = charts.cells_per_bar(release.schema[name].size)
    reach = sigma * math.sqrt(cells)
    points = 100 * reach / max(1.0, release.model.total)
    bar = "each bar" if cells == 1 else f"each bar of {cells} cells"
    return (
        f"Expected error of {bar}: ±{charts.readable(reach)} rows, ±{points:.2g} percentage "
        "points of all. Whiskers are twice as long."
    )


def pair_note(release: TableRelease, pair: Marginal) -> str:
    """The expected total variation of a pair from its noise, as a share of rows."""
    sigma = marginal_sigma(release, pair)
    if sigma == 0:
        return PUBLIC
    if sigma is None and release.method.get("name") == "mwem":
        return STEPWISE
    if sigma is None:
        return "These two were not measured together: what the model says of them is inferred."
    counts = _measured_cells(release, pair)
    share = misplaced(counts, sigma=sigma, laplace=isinstance(release.guarantee, PureDP))
    if share >= 1:
        return "Expected error: the noise is larger than all counts together."
    text = f"{100 * share:.2g}" if share < 0.995 else "nearly 100"
    return f"Expected error: up to about {text}% of the rows in a wrong cell, from noise."


def misplaced(counts: Floats, *, sigma: float, laplace: bool) -> float:
    """Expected total variation from noise on every cell, where what falls below zero is cut.

    sum over cells of E|max(c + x, 0) - c| / (2n). For Gaussian noise that is sigma (2 phi(0) -
    phi(c / sigma)) + c Phi(-c / sigma); for Laplace noise of scale b it is b (1 - exp(-c/b) / 2).
    The published counts stand in for the real ones.

    >>> round(misplaced(np.full(10, 100.0), sigma=10.0, laplace=False), 4)
    0.0399
    """
    total, positive = float(counts.sum()), np.maximum(counts, 0.0)
    if not total > 0:
        return 1.0
    if laplace:
        scale = sigma / math.sqrt(2)
        moved = scale * (1 - np.exp(-positive / scale) / 2)
    else:
        peak = 1 / math.sqrt(2 * math.pi)
        density = peak * np.exp(-((positive / sigma) ** 2) / 2)
        moved = sigma * (2 * peak - density) + positive * _tail(positive / sigma)
    return float(moved.sum()) / (2 * total)


def _tail(heights: Floats) -> Floats:
    """The probability that a standard normal number is below minus each height."""
    flat = [math.erfc(height / math.sqrt(2)) / 2 for height in heights.reshape(-1).tolist()]
    return np.array(flat).reshape(heights.shape)


def _measured_cells(release: TableRelease, pair: Marginal) -> Floats:
    """The pair as it was measured: rare values merged where the model merged them."""
    if release.model_kind == "graphical":
        coarse = cast("GraphicalModel", release.model).coarse_marginals([pair])
        return np.asarray(next(iter(coarse)), dtype=np.float64)
    return np.asarray(release.model.marginal(pair), dtype=np.float64)


def _agrees_with_none(release: TableRelease) -> bool:
    """Whether what is published was not fitted to the measurements that the release lists."""
    randomized = isinstance(release.model, PublishedRows)
    as_they_came = randomized and release.method.get("published") != "redrawn"
    return as_they_came or release.method.get("name") == "mwem"


def _why_unknown(release: TableRelease, name: str) -> str:
    if name in release.method.get("never_measured", ()):
        return UNSEEN
    if release.method.get("name") == "mwem":
        return STEPWISE
    if isinstance(release.model, PublishedRows) or "trust" in release.method:
        return RANDOMIZED
    return UNKNOWN
