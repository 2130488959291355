"""How far noise is expected to move each figure of a page, from what was measured and how.

All from ``release.json`` and the published model. Models weigh all measurements together, so they
are usually nearer to the truth; where nothing is known of a figure, a sentence says so.
"""

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sfumato import charts
from sfumato.models.graphical.model import GraphicalModel
from sfumato.models.published_rows import PublishedRows
from sfumato.privacy.guarantees import PureDP
from sfumato.release import TableRelease
from sfumato.schema import Marginal

Floats = NDArray[np.float64]

PUBLIC: Final = "These counts are public: no noise was added to them."
UNSEEN: Final = "Never measured: spread evenly, by assumption."
RANDOMIZED: Final = (
    "Each row was randomized before it was counted, so the error of a count is not told here."
)
STEPWISE: Final = (
    "The method moves its table towards noisy answers step by step, so the error is not known."
)
UNKNOWN: Final = "Only sums over other cells were measured, so the error of a bar is not known."


def column_sigma(release: TableRelease, name: str) -> float | None:
    """The standard deviation of the noise on each count of a column; 0 where it is public.

    Several measurements of it count as their mean, weighted by precision: 1 / sigma^2 = sum of
    1 / sigma_i^2. Where only larger marginals were measured, the best of them, added up to this
    column: sigma^2 times the cells that fall together. None where nothing tells.
    """
    return marginal_sigma(release, (name,))


def marginal_sigma(release: TableRelease, names: Marginal) -> float | None:
    """The standard deviation of the noise on each cell of a marginal, as ``column_sigma`` says."""
    if _agrees_with_none(release):
        return None
    own, larger, asked = [], [], set(names)
    for entry in release.measurements:
        target = entry["target"]
        if not isinstance(target, list | tuple) or not asked <= set(target):
            continue  # a range is written as text, and tells nothing of single cells
        if not set(target) <= set(release.schema.names):
            continue
        sigma = float(entry["sigma_counts"])
        if len(target) == len(names):
            own.append(sigma)
        else:
            rest = tuple(name for name in target if name not in asked)
            larger.append(sigma * math.sqrt(release.schema.cells(rest)))
    if own:
        return 0.0 if not all(own) else 1 / math.sqrt(sum(sigma**-2 for sigma in own))
    return min(larger, default=None)


def column_note(release: TableRelease, name: str, sigma: float | None) -> str:
    """The expected error of a column's bars in counts and points, or why it is not told."""
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
    total, held = float(counts.sum()), np.maximum(counts, 0.0)
    if not total > 0:
        return 1.0
    if laplace:
        scale = sigma / math.sqrt(2)
        moved = scale * (1 - np.exp(-held / scale) / 2)
    else:
        peak = 1 / math.sqrt(2 * math.pi)
        density = peak * np.exp(-((held / sigma) ** 2) / 2)
        moved = sigma * (2 * peak - density) + held * _tail(held / sigma)
    return float(moved.sum()) / (2 * total)


def _tail(heights: Floats) -> Floats:
    """The probability that a standard normal number is below minus each height."""
    flat = [math.erfc(height / math.sqrt(2)) / 2 for height in heights.reshape(-1).tolist()]
    return np.array(flat).reshape(heights.shape)


def _measured_cells(release: TableRelease, pair: Marginal) -> Floats:
    """The pair as it was measured: rare values merged where the model merged them."""
    model = release.model
    if isinstance(model, GraphicalModel):
        return np.asarray(next(iter(model.coarse_marginals([pair]))), dtype=np.float64)
    return np.asarray(model.marginal(pair), dtype=np.float64)


def _agrees_with_none(release: TableRelease) -> bool:
    """Whether what is published was not fitted to the measurements that the release tells of."""
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
