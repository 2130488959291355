"""Histograms: one bar per label, beside it what was measured and how far the noise reaches."""

from collections.abc import Sequence

from sfumato.charts.bars import BAR, MOST_TIPS, OUTLINE, WHISKER, Bars
from sfumato.charts.canvas import (
    LEFT,
    PLOT_HEIGHT,
    RIGHT,
    TOP,
    Scale,
    label_axis,
    legend,
    scale_from_zero,
    sheet,
    value_axis,
)
from sfumato.charts.labels import safe
from sfumato.charts.numbers import px

_LEAST_PX = 0.05
"""A lower bar can't be seen and is not drawn."""


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
    bars = Bars.of(labels, published, real, errors).merged()
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
        *legend(bars.marks(names), width=width),
    ]
    height = floor + axis.height
    return sheet(
        body, title=title, says=bars.describe(), note=bars.note, width=width, height=height
    )


def _rects(bars: Bars, centers: Sequence[float], scale: Scale, *, width: float) -> str:
    """A rectangle with a tooltip for each bar; of very many, one path."""
    zero, parts, told = scale.at(0.0), [], len(bars.labels) <= MOST_TIPS
    for i, (value, x) in enumerate(zip(bars.published, centers, strict=True)):
        y = scale.at(float(value))
        if abs(y - zero) < _LEAST_PX:
            continue
        if told:
            box = f'x="{px(x - width / 2)}" y="{px(min(y, zero))}" width="{px(width)}"'
            tip = f"<title>{safe(bars.tooltip(i))}</title>"
            parts.append(f'<rect {box} height="{px(abs(y - zero))}">{tip}</rect>')
        else:
            parts.append(f"M{px(x - width / 2)} {px(zero)}V{px(y)}h{px(width)}V{px(zero)}z")
    drawn = "".join(parts)
    return f"<g {BAR}>{drawn}</g>" if told else f'<path {BAR} d="{drawn}"/>'


def _outlines(bars: Bars, centers: Sequence[float], scale: Scale, *, width: float) -> list[str]:
    if bars.real is None:
        return []
    zero = px(scale.at(0.0))
    steps = (
        f"M{px(x - width / 2)} {zero}V{px(scale.at(float(value)))}h{px(width)}V{zero}"
        for value, x in zip(bars.real, centers, strict=True)
    )
    return [f'<path {OUTLINE} d="{"".join(steps)}"/>']


def _whiskers(bars: Bars, centers: Sequence[float], scale: Scale, *, arm: float) -> list[str]:
    if bars.errors is None:
        return []
    parts, across, back = [], f"h{px(2 * arm)}", px(-2 * arm)
    for value, reach, x in zip(bars.published, bars.errors, centers, strict=True):
        low, high = scale.at(float(value - reach)), scale.at(float(value + reach))
        stem = f"M{px(x)} {px(low)}V{px(high)}"
        parts.append(f"{stem}m{px(-arm)} 0{across}m{back} {px(low - high)}{across}")
    return [f'<path {WHISKER} d="{"".join(parts)}"/>']
