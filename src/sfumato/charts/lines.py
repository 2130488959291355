"""Line charts: answers to many queries, error against epsilon."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final

import numpy as np

from sfumato.charts.canvas import (
    LEFT,
    PLOT_HEIGHT,
    RIGHT,
    TOP,
    Scale,
    Vector,
    finite,
    label_axis,
    legend,
    px,
    readable,
    safe,
    same_length,
    scale_from_zero,
    scale_over,
    sheet,
    value_axis,
)
from sfumato.errors import InputError

MAX_POINTS: Final = 400
"""Above it only every second, third, ... point is drawn, and the chart says so."""

_STYLES: Final = (
    ("#4f7d96", ""),
    ("#b4573c", "5 3"),
    ("#6b7f4e", ""),
    ("#8a6aa0", "2 3"),
    ("#a8843a", ""),
    ("#55606b", "7 3 2 3"),
)
MAX_LINES: Final = len(_STYLES)
"""More can't be told apart."""
_MOST_DOTS: Final = 80
"""Points up to which each has a dot with a tooltip."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Line:
    """One line: its name in the legend and one value per point."""

    name: str
    values: Sequence[float]
    margins: Sequence[float] | None = None
    """Half the height of a band around the line, one number per point."""


def line_chart(
    series: Sequence[Line],
    *,
    x_labels: Sequence[str],
    title: str,
    x_values: Sequence[float] | None = None,
    log_x: bool = False,
    log_y: bool = False,
    width: int = 420,
) -> str:
    """Lines over labeled points, evenly spaced or at ``x_values``; a linear axis holds zero.

    Raises:
        InputError: lengths differ, a number is NaN or infinite, a logarithm meets a number that
            is not above zero, or there are more lines than can be told apart.
    """
    if len(series) > MAX_LINES:
        raise InputError(f"a chart shows at most {MAX_LINES} lines, got {len(series)}")
    every = max(1, -(-len(x_labels) // MAX_POINTS))
    labels = list(x_labels)[::every]
    positions = finite(x_values=list(range(len(x_labels))) if x_values is None else x_values)
    same_length(x_labels=x_labels, x_values=positions)
    curves = [_curve(i, line, points=len(x_labels), every=every) for i, line in enumerate(series)]
    axis = label_axis(labels, left=LEFT, right=width - RIGHT)
    across = (axis.left + RIGHT, width - 2.0 * RIGHT)
    x = scale_over(positions[::every], pixels=across, log=log_x)
    y = _heights(curves, log=log_y)
    centers = [x.at(float(position)) for position in positions[::every]]
    body = [
        *value_axis(y, left=axis.left, right=width - RIGHT),
        *chain.from_iterable(curve.draw(centers, y) for curve in reversed(curves)),
        *_dots(curves, labels, centers, y),
        axis.draw(centers, y=TOP + PLOT_HEIGHT),
        *legend([(c.mark(), c.name) for c in curves] if len(curves) > 1 else [], width=width),
    ]
    says = f"{len(labels)} points: {', '.join(curve.name for curve in curves)}."
    note = "" if every == 1 else f"1 of {every} points is drawn, of {len(x_labels):,}."
    height = TOP + PLOT_HEIGHT + axis.height
    return sheet(body, title=title, says=says, note=note, width=width, height=height)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Curve:
    name: str
    number: int
    values: Vector
    margins: Vector

    def stroke(self) -> str:
        color, dashes = _STYLES[self.number]
        dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
        return f'class="sf-line-{self.number}" stroke="{color}" stroke-width="1.7"{dashed}'

    def mark(self) -> str:
        return f'<path {self.stroke()} d="M0-4h14"/>'

    def draw(self, centers: Sequence[float], y: Scale) -> list[str]:
        """The band, if there is one, and the line over it."""
        line = (
            f'<path {self.stroke()} stroke-linejoin="round" d="{_path(centers, self.values, y)}"/>'
        )
        if not self.margins.any():
            return [line]
        upper = _path(centers, self.values + self.margins, y)
        lower = _path(centers[::-1], (self.values - self.margins)[::-1], y)
        fill = f'class="sf-band-{self.number}" fill="{_STYLES[self.number][0]}"'
        return [f'<path {fill} fill-opacity=".18" d="{upper}L{lower[1:]}z"/>', line]


def _curve(number: int, line: Line, *, points: int, every: int) -> _Curve:
    values = finite(values=line.values)
    margins = np.zeros(points) if line.margins is None else finite(margins=line.margins)
    same_length(x_labels=range(points), values=values, margins=margins)
    return _Curve(
        name=line.name, number=number, values=values[::every], margins=np.abs(margins[::every])
    )


def _heights(curves: Sequence[_Curve], *, log: bool) -> Scale:
    edges = [edge for c in curves for edge in (c.values - c.margins, c.values + c.margins)]
    values = np.concatenate([np.zeros(0), *edges])
    pixels = (float(TOP + PLOT_HEIGHT), float(TOP))
    if log:
        return scale_over(values, pixels=pixels, log=True)
    return scale_from_zero(values, pixels=pixels)


def _path(centers: Sequence[float], values: Vector, y: Scale) -> str:
    spots = (f"{px(x)} {px(y.at(float(v)))}" for x, v in zip(centers, values, strict=True))
    return "M" + "L".join(spots) if len(centers) else ""


def _dots(
    curves: Sequence[_Curve], labels: Sequence[str], centers: Sequence[float], y: Scale
) -> list[str]:
    """A dot per point of the first line, whose tooltip names the values of all lines."""
    if not curves or len(labels) > _MOST_DOTS:
        return []
    dots = []
    for i, (label, x) in enumerate(zip(labels, centers, strict=True)):
        values = ", ".join(f"{c.name} {readable(float(c.values[i]))}" for c in curves)
        spot = f'cx="{px(x)}" cy="{px(y.at(float(curves[0].values[i])))}" r="2.2"'
        dots.append(f"<circle {spot}><title>{safe(f'{label}: {values}')}</title></circle>")
    return [f'<g class="sf-dot" fill="{_STYLES[0][0]}">{"".join(dots)}</g>']
