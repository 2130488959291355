"""Bars that lie, the largest on top: for many values with long names, on a phone too."""

from collections.abc import Sequence
from typing import Final

from sfumato.charts.bars import BAR, OUTLINE, WHISKER, Bars
from sfumato.charts.canvas import INK, RIGHT, TOP, Scale, legend, scale_from_zero, sheet
from sfumato.charts.labels import cut, safe, shorten, width_px
from sfumato.charts.numbers import compact, px

MOST_ROWS: Final = 24
"""Of a chart; the rest, which hold less each, stand in the table beside it."""

_ROW_PX: Final = 19.0
_BAR_PX: Final = 11.0
_NAMES_PX: Final = 150.0


def sideways_chart(
    labels: Sequence[str],
    published: Sequence[float],
    *,
    title: str,
    real: Sequence[float] | None = None,
    errors: Sequence[float] | None = None,
    names: tuple[str, str] = ("published", "known noise"),
    width: int = 420,
) -> str:
    """The largest values of a histogram as rows, from the top down, with whole names.

    The same numbers as ``histogram_chart`` draws; ``real`` adds outlines, ``errors`` whiskers.

    Raises:
        InputError: the lengths differ, or a number is NaN, infinite or a negative error.
    """
    bars = Bars.of(labels, published, real, errors).largest(MOST_ROWS)
    texts = [shorten(label, _NAMES_PX) for label in bars.labels]
    left = 10 + max((width_px(text) for text in texts), default=0.0) + 8
    scale = scale_from_zero(bars.extremes(), pixels=(left, width - RIGHT - 4.0))
    bottom = TOP + len(texts) * _ROW_PX
    body = [
        *_axis(scale, top=TOP, bottom=bottom),
        _names(bars, texts, left=left),
        _rects(bars, scale),
        *_outlines(bars, scale),
        *_whiskers(bars, scale),
        *legend(bars.marks(names), width=width),
    ]
    says = bars.describe()
    return sheet(body, title=title, says=says, note=bars.note, width=width, height=bottom + 22)


def _axis(scale: Scale, *, top: float, bottom: float) -> list[str]:
    ticks = [(tick, scale.at(tick)) for tick in scale.ticks()]
    grid = "".join(f"M{px(x)} {px(top)}V{px(bottom)}" for _, x in ticks)
    numbers = "".join(
        f'<text x="{px(x)}" y="{px(bottom + 14)}">{compact(tick)}</text>' for tick, x in ticks
    )
    zero = px(scale.at(0.0))
    return [
        f'<path class="sf-grid" stroke="#e4e0e6" d="{grid}"/>',
        f'<path class="sf-axis" stroke="#a9a4b0" d="M{zero} {px(top)}V{px(bottom)}"/>',
        f'<g {INK} text-anchor="middle">{numbers}</g>',
    ]


def _names(bars: Bars, texts: Sequence[str], *, left: float) -> str:
    """Names that end where the bars begin; one that was cut is whole in its tooltip."""
    parts = []
    for row, (text, label) in enumerate(zip(texts, bars.labels, strict=True)):
        spot = f'x="{px(left - 8)}" y="{px(_middle(row) + 3.8)}"'
        parts.append(f"<text {spot}>{cut(text, label)}</text>")
    return f'<g {INK} text-anchor="end">{"".join(parts)}</g>'


def _rects(bars: Bars, scale: Scale) -> str:
    zero, parts = scale.at(0.0), []
    for row, value in enumerate(bars.published.tolist()):
        x = scale.at(value)
        box = f'x="{px(min(x, zero))}" y="{px(_middle(row) - _BAR_PX / 2)}"'
        size = f'width="{px(abs(x - zero))}" height="{px(_BAR_PX)}"'
        parts.append(f"<rect {box} {size}><title>{safe(bars.tooltip(row))}</title></rect>")
    return f"<g {BAR}>{''.join(parts)}</g>"


def _outlines(bars: Bars, scale: Scale) -> list[str]:
    if bars.real is None:
        return []
    zero, deep = px(scale.at(0.0)), px(_BAR_PX + 4)
    steps = (
        f"M{zero} {px(_middle(row) - _BAR_PX / 2 - 2)}H{px(scale.at(value))}v{deep}H{zero}"
        for row, value in enumerate(bars.real.tolist())
    )
    return [f'<path {OUTLINE} d="{"".join(steps)}"/>']


def _whiskers(bars: Bars, scale: Scale) -> list[str]:
    if bars.errors is None:
        return []
    parts = []
    ends = zip(bars.published - bars.errors, bars.published + bars.errors, strict=True)
    for row, (low, high) in enumerate(ends):
        start, stop, y = px(scale.at(float(low))), px(scale.at(float(high))), _middle(row)
        parts.append(f"M{start} {px(y)}H{stop}m0-3v6M{start} {px(y - 3)}v6")
    return [f'<path {WHISKER} d="{"".join(parts)}"/>']


def _middle(row: int) -> float:
    return TOP + (row + 0.5) * _ROW_PX
