"""Histograms: one bar per label, beside it what was measured and how far the noise reaches."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from sfumato.drawing.canvas import (
    ACCENT,
    LEFT,
    PLOT_HEIGHT,
    REAL,
    RIGHT,
    TOP,
    Scale,
    label_axis,
    legend,
    scale_from_zero,
    sheet,
    value_axis,
)
from sfumato.drawing.numbers import Vector, finite, px, readable, same_length
from sfumato.drawing.text import safe
from sfumato.errors import InputError

MAX_BARS: Final = 200
"""Above it neighboring bars are added up, and the chart says so."""

_BAR: Final = f'class="sf-bar" fill="{ACCENT}"'
_OUTLINE: Final = f'class="sf-real" stroke="{REAL}" stroke-width="1.4"'
_WHISKER: Final = 'class="sf-noise" stroke="#4a4754" stroke-width="1.1"'
_MARKS: Final = {
    "published": f'<path {_BAR} d="M0 0h14v-9h-14z"/>',
    "real": f'<path {_OUTLINE} d="M1 0v-8.5h12v8.5"/>',
    "known noise": f'<path {_WHISKER} d="M7 0v-9M4 0h6M4-9h6"/>',
}


def cells_per_bar(cells: int) -> int:
    """How many neighboring cells a bar adds up, so that there are at most MAX_BARS bars."""
    return max(1, -(-cells // MAX_BARS))


def histogram_chart(
    labels: Sequence[str],
    published: Sequence[float],
    *,
    title: str,
    real: Sequence[float] | None = None,
    errors: Sequence[float] | None = None,
    names: tuple[str, str] = ("published", "known noise"),
    width: int = 420,
) -> str:
    """Bars from zero; ``real`` adds outlines, ``errors`` whiskers of that half length.

    ``names`` are what the legend calls the bars and the whiskers.

    Raises:
        InputError: the lengths differ, or a number is NaN, infinite or a negative error.
    """
    bars = _merged(_checked(labels, published, real, errors))
    called = dict(zip(("published", "known noise"), names, strict=True))
    axis = label_axis(bars.labels, left=LEFT, right=width - RIGHT)
    pitch = (width - RIGHT - axis.left) / max(1, len(bars.labels))
    centers = [axis.left + pitch * (i + 0.5) for i in range(len(bars.labels))]
    floor = TOP + PLOT_HEIGHT
    scale = scale_from_zero(bars.extremes(), pixels=(floor, TOP))
    body = [
        *value_axis(scale, left=axis.left, right=width - RIGHT),
        _rects(bars, centers, scale, width=pitch * 0.78),
        *_outlines(bars, centers, scale, width=pitch * 0.92),
        *_whiskers(bars, centers, scale, arm=min(3.0, pitch * 0.25)),
        axis.draw(centers, y=floor),
        *legend([(_MARKS[part], called.get(part, part)) for part in bars.parts()], width=width),
    ]
    height = floor + axis.height
    return sheet(
        body, title=title, says=bars.describe(), note=bars.note, width=width, height=height
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class _Bars:
    labels: list[str]
    published: Vector
    real: Vector | None
    errors: Vector | None
    note: str = ""

    def extremes(self) -> Vector:
        reach = 0.0 if self.errors is None else self.errors
        real = self.published if self.real is None else self.real
        return np.concatenate([self.published - reach, self.published + reach, real])

    def parts(self) -> list[str]:
        """What needs a legend; bars alone need none."""
        extra = {"real": self.real, "known noise": self.errors}
        present = [name for name, values in extra.items() if values is not None]
        return ["published", *present] if present else []

    def describe(self) -> str:
        if not self.labels:
            return "No bars."
        most = int(self.published.argmax())
        span = f"{len(self.labels)} bars from {self.labels[0]} to {self.labels[-1]}"
        return f"{span}; the largest, {self.labels[most]}, is {readable(self.published[most])}."

    def tooltip(self, i: int) -> str:
        real = "" if self.real is None else f", real {readable(self.real[i])}"
        return f"{self.labels[i]}: {readable(self.published[i])}{real}"


def _checked(
    labels: Sequence[str],
    published: Sequence[float],
    real: Sequence[float] | None,
    errors: Sequence[float] | None,
) -> _Bars:
    heights = finite(published=published)
    truth = None if real is None else finite(real=real)
    reach = None if errors is None else finite(errors=errors)
    same_length(labels=labels, published=heights)
    if truth is not None:
        same_length(labels=labels, real=truth)
    if reach is not None:
        same_length(labels=labels, errors=reach)
        if (reach < 0).any():
            raise InputError("errors must be >= 0: they are half the lengths of the whiskers.")
    return _Bars(labels=list(labels), published=heights, real=truth, errors=reach)


def _merged(bars: _Bars) -> _Bars:
    """At most MAX_BARS bars: counts of neighbors add, errors of independent noise in squares."""
    n = len(bars.labels)
    size = cells_per_bar(n)
    if size == 1:
        return bars
    starts = np.arange(0, n, size)
    ends = [*(starts[1:] - 1), n - 1]
    return _Bars(
        labels=[f"{bars.labels[a]} … {bars.labels[b]}" for a, b in zip(starts, ends, strict=True)],
        published=np.add.reduceat(bars.published, starts),
        real=None if bars.real is None else np.add.reduceat(bars.real, starts),
        errors=None if bars.errors is None else np.sqrt(np.add.reduceat(bars.errors**2, starts)),
        note=f"Each bar adds up {size} neighboring cells of {n:,}.",
    )


def _rects(bars: _Bars, centers: Sequence[float], scale: Scale, *, width: float) -> str:
    zero, parts = scale.at(0.0), []
    for i, (value, x) in enumerate(zip(bars.published, centers, strict=True)):
        y = scale.at(float(value))
        if abs(y - zero) >= 0.005:
            box = f'x="{px(x - width / 2)}" y="{px(min(y, zero))}" width="{px(width)}"'
            tip = f"<title>{safe(bars.tooltip(i))}</title>"
            parts.append(f'<rect {box} height="{px(abs(y - zero))}">{tip}</rect>')
    return f"<g {_BAR}>{''.join(parts)}</g>"


def _outlines(bars: _Bars, centers: Sequence[float], scale: Scale, *, width: float) -> list[str]:
    if bars.real is None:
        return []
    zero = px(scale.at(0.0))
    steps = (
        f"M{px(x - width / 2)} {zero}V{px(scale.at(float(value)))}h{px(width)}V{zero}"
        for value, x in zip(bars.real, centers, strict=True)
    )
    return [f'<path {_OUTLINE} d="{"".join(steps)}"/>']


def _whiskers(bars: _Bars, centers: Sequence[float], scale: Scale, *, arm: float) -> list[str]:
    if bars.errors is None:
        return []
    parts, across, back = [], f"h{px(2 * arm)}", px(-2 * arm)
    for value, reach, x in zip(bars.published, bars.errors, centers, strict=True):
        low, high = scale.at(float(value - reach)), scale.at(float(value + reach))
        stem = f"M{px(x)} {px(low)}V{px(high)}"
        parts.append(f"{stem}m{px(-arm)} 0{across}m{back} {px(low - high)}{across}")
    return [f'<path {_WHISKER} d="{"".join(parts)}"/>']
