"""Which curves ``bench/growth.py`` draws, and how an exponent is fitted to one.

Only the standard library is loaded here: docs/make_growth.py writes its pages with it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log
from typing import Any, Final, Literal

Axis = Literal["rows", "columns", "cells", "epsilon", "ratings"]
Point = dict[str, Any]

MOST_EXPONENT: Final = 1.05
"""Held by every curve against rows."""
UPPER_POINTS: Final = 3
LEAST_CPU_S: Final = 0.25
"""Less than this above the smallest size is noise and caches, and says nothing about growth."""
DONE: Final = "done"

TENS: Final = (1e4, 1e5, 1e6, 1e7, 1e8)
COLUMNS: Final = (5, 10, 20, 50, 100, 200)
CELLS: Final = (1e3, 1e4, 1e5, 1e6, 1e7)
EPSILONS: Final = (0.1, 0.3, 1, 3, 10)
RATINGS: Final = (1e5, 1e6, 1e7, 2e7)


@dataclass(frozen=True, kw_only=True)
class Curve:
    """One job against one quantity."""

    name: str
    title: str
    axis: Axis
    sizes: tuple[float, ...]
    job: str
    """Of ``growth_jobs.JOBS``."""
    input: str = "table"
    """Of ``growth_jobs.INPUTS``."""
    method: str = ""
    timeout_s: float = 60.0
    """Of one point; a point that takes longer is stopped, and told as that."""
    most_mb: float | None = None
    """What no point may take more memory than: held where rows are streamed."""


_INPUTS: Final[dict[Axis, str]] = {
    "rows": "table",
    "columns": "wide",
    "cells": "cube",
    "epsilon": "narrow",
    "ratings": "ratings",
}


def _rows(name: str, title: str, job: str, *, upto: float = 1e8, **more: Any) -> Curve:
    sizes = tuple(size for size in TENS if size <= upto)
    return Curve(name=name, title=title, axis="rows", sizes=sizes, job=job, **more)


def _publish(axis: Axis, method: str, sizes: tuple[float, ...], **more: Any) -> Curve:
    return Curve(
        name=f"{axis}-{method}",
        title=f"`publish`, {method}",
        axis=axis,
        sizes=sizes,
        job=f"publish-{axis}",
        input=_INPUTS[axis],
        method=method,
        **more,
    )


CURVES: Final = (
    _rows("count-parquet", "count all 190 pairs, Parquet", "count"),
    _rows("count-csv", "count all 190 pairs, CSV", "count", input="csv", timeout_s=180),
    _publish("rows", "histogram", TENS[:4]),
    _publish("rows", "independent", TENS, timeout_s=400, most_mb=2_000),
    _publish("rows", "mst", TENS, timeout_s=400, most_mb=2_000),
    _publish("rows", "cliquetree", TENS[:4], timeout_s=120),
    _rows("answers-simulate", "`answers simulate`", "simulate", most_mb=1_000),
    _rows(
        "answers-estimate", "`answers estimate`", "estimate", input="answers", most_mb=1_000
    ),
    _rows(
        "dp2pub", "`dp2pub --trust semi-honest`", "dp2pub", upto=1e7, method="semi-honest",
        timeout_s=120,
    ),
    _rows("survey", "a survey in two rounds", "dp2pub", upto=1e7, method="nobody", timeout_s=120),
    _publish("columns", "independent", COLUMNS, timeout_s=120),
    _publish("columns", "mst", COLUMNS, timeout_s=120),
    _publish("columns", "auto", COLUMNS, timeout_s=120),
    _publish("cells", "histogram", CELLS),
    _publish("cells", "mwem", CELLS),
    _publish("epsilon", "mst", EPSILONS),
    _publish("epsilon", "cliquetree", EPSILONS),
    _publish("epsilon", "aim", EPSILONS),
    Curve(
        name="ratings-ridge",
        title="`recommend fit`, ridge",
        axis="ratings",
        sizes=RATINGS,
        job="recommend",
        input="ratings",
        method="ridge",
    ),
)  # fmt: skip


def exponent(points: Sequence[Point]) -> tuple[float, int] | None:
    """The power of the size that the cost follows, and from how many points that was fitted.

    log(cost - cost of the smallest size) against log(size - smallest size), least squares over the
    largest three sizes that were done and took a quarter of a second more: what every size has to
    pay is taken off, and a straight line has the exponent 1 exactly.

    >>> line = [{"size": 10.0**n, "cpu_s": 2 + 10.0**n, "outcome": "done"} for n in range(5)]
    >>> power, used = exponent(line)
    >>> round(power, 2), used
    (1.0, 3)
    """
    done = sorted((p for p in points if p["outcome"] == DONE), key=lambda p: p["size"])
    if not done:
        return None
    least, small = done[0]["cpu_s"], done[0]["size"]
    more = [(p["size"] - small, p["cpu_s"] - least) for p in done[1:]]
    grown = [(size, cost) for size, cost in more if cost > LEAST_CPU_S]
    upper = grown[-UPPER_POINTS:]
    if len(upper) < 2:
        return None
    return _slope([log(size) for size, _ in upper], [log(cost) for _, cost in upper]), len(upper)


def fitted(curve: Curve, points: Sequence[Point]) -> tuple[float, int] | None:
    """The exponent of a curve; against epsilon over all sizes, with nothing taken off."""
    if curve.axis != "epsilon":
        return exponent(points)
    done = [(log(p["size"]), log(p["cpu_s"])) for p in points if p["outcome"] == DONE]
    return (_slope(*zip(*done, strict=True)), len(done)) if len(done) > 1 else None


def broken(curve: Curve, points: Sequence[Point]) -> list[str]:
    """What a curve was to hold and does not, and points that were not reached, in words."""
    found = fitted(curve, points)
    told = []
    if curve.axis == "rows" and found and found[0] > MOST_EXPONENT:
        told.append(f"exponent {found[0]:.2f}, hold {MOST_EXPONENT}")
    if curve.most_mb is not None:
        most = max((p["memory_mb"] for p in points if p["outcome"] == DONE), default=0)
        if most > curve.most_mb:
            told.append(f"{most:,.0f} MB, hold {curve.most_mb:,.0f}")
    missed = [p for p in points if p["outcome"] != DONE]
    told += [f"{size_text(curve.axis, p['size'])}: {p['outcome']}" for p in missed]
    return told


def size_text(axis: Axis, size: float) -> str:
    """A size as people write it.

    >>> size_text("rows", 1e7), size_text("ratings", 2e7), size_text("columns", 50)
    ('10^7 rows', '2*10^7 ratings', '50 columns')
    """
    if axis == "epsilon":
        return f"epsilon {size:g}"
    if size < 1_000:
        return f"{size:g} {axis}"
    power = len(f"{size:.0f}") - 1
    first = size / 10**power
    return f"{'' if first == 1 else f'{first:g}*'}10^{power} {axis}"


def _slope(x: Sequence[float], y: Sequence[float]) -> float:
    middle_x, middle_y = sum(x) / len(x), sum(y) / len(y)
    spread = sum((a - middle_x) ** 2 for a in x)
    return sum((a - middle_x) * (b - middle_y) for a, b in zip(x, y, strict=True)) / spread
