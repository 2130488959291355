"""What all charts share: the sheet, the scales, both axes, the legend."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from sfumato.charts.labels import cut, safe, shorten, width_px
from sfumato.charts.numbers import Vector, compact, px
from sfumato.errors import InputError

TOP: Final = 30
LEFT: Final = 42
RIGHT: Final = 10
PLOT_HEIGHT: Final = 170

INK: Final = 'class="sf-ink" fill="#4a4754"'
ACCENT: Final = "#7292aa"
REAL: Final = "#b4573c"

_SLOPE_DEGREES: Final = 40
_LABEL_ROOM_PX: Final = 112
_NARROWEST_PX: Final = 19  # between two sloped labels: 12 px apart across the slope
_MOST_THINNED: Final = 12  # where labels are left out anyway, a few are enough to find the way
_THINNING: Final = (1, 2, 5, 10, 20, 25, 50, 100, 200, 400)


@dataclass(frozen=True, kw_only=True, slots=True)
class Scale:
    """Where a value lies, in pixels; the first pixel belongs to the lowest value."""

    low: float
    high: float
    pixels: tuple[float, float]
    log: bool = False

    def at(self, value: float) -> float:
        """The pixel of a value."""
        low, high, here = self.low, self.high, value
        if self.log:
            low, high, here = math.log(low), math.log(high), math.log(value)
        start, stop = self.pixels
        return start + (stop - start) * (here - low) / (high - low)

    def ticks(self) -> list[float]:
        """Round numbers inside the scale: multiples of 1, 2 or 5 times a power of ten."""
        if self.log and (found := self._log_ticks()):
            return found  # a narrow stretch, like 201 to 402, may hold none: then evenly
        rough = (self.high - self.low) / 4
        power = 10.0 ** math.floor(math.log10(rough))
        step = power * next(digit for digit in (1, 2, 5, 10) if digit * power >= 0.999 * rough)
        first, last = math.ceil(self.low / step), math.floor(self.high / step)
        return [i * step for i in range(first, last + 1)]

    def _log_ticks(self) -> list[float]:
        first, last = math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))
        digits = (1, 2, 5) if last - first <= 3 else (1,)
        apart = math.ceil((last - first) / 8)
        ticks = [digit * 10.0**i for i in range(first, last + 1, max(1, apart)) for digit in digits]
        return [tick for tick in ticks if self.low <= tick <= self.high]


def scale_from_zero(values: Vector, *, pixels: tuple[float, float]) -> Scale:
    """Holds zero and all values, with a little air above; 0 to 1 if all are zero."""
    low, high = float(values.min(initial=0.0)), float(values.max(initial=0.0))
    high = low + 1.0 if high - low < 1e-100 else high + 0.04 * (high - low)
    return Scale(low=low, high=high, pixels=pixels)


def scale_over(values: Vector, *, pixels: tuple[float, float], log: bool) -> Scale:
    """Holds the values from the smallest to the largest."""
    if log and (values <= 0).any():
        raise InputError("a logarithmic axis needs numbers above 0.")
    low, high = (float(values.min()), float(values.max())) if values.size else (1.0, 10.0)
    if low == high:
        low, high = (low / 2, high * 2) if log else (low - 0.5, high + 0.5)
    return Scale(low=low, high=high, pixels=pixels, log=log)


def value_axis(scale: Scale, *, left: float, right: float) -> list[str]:
    """Grid lines and numbers at the ticks, and a firmer line at zero or at the bottom."""
    ticks = [(tick, scale.at(tick)) for tick in scale.ticks()]
    grid = "".join(f"M{px(left)} {px(y)}H{px(right)}" for _, y in ticks)
    base = scale.pixels[0] if scale.log else scale.at(0.0)
    numbers = "".join(
        f'<text x="{px(left - 6)}" y="{px(y + 3.5)}">{compact(tick)}</text>' for tick, y in ticks
    )
    return [
        f'<path class="sf-grid" stroke="#e4e0e6" d="{grid}"/>',
        f'<path class="sf-axis" stroke="#a9a4b0" d="M{px(left)} {px(base)}H{px(right)}"/>',
        f'<g {INK} text-anchor="end">{numbers}</g>',
    ]


@dataclass(frozen=True, kw_only=True, slots=True)
class LabelAxis:
    """Labels below a chart: which of them are written, level or sloped, and the room they take."""

    texts: list[str]
    """As far as there is room."""
    labels: Sequence[str]
    """The same, whole."""
    every: int
    sloped: bool
    height: float
    left: float
    """Where the plot must start so that the first label is not cut off."""

    def draw(self, centers: Sequence[float], *, y: float) -> str:
        """The labels, centered below (or, sloped, ending at) their points."""
        named = map(cut, self.texts, self.labels)
        chosen = list(zip(named, centers, strict=True))[:: self.every]
        if not self.sloped:
            texts = (f'<text x="{px(x)}" y="{px(y + 16)}">{t}</text>' for t, x in chosen)
            return f'<g {INK} text-anchor="middle">{"".join(texts)}</g>'
        slope = f"rotate(-{_SLOPE_DEGREES})"
        texts = (
            f'<text transform="translate({px(x + 4)} {px(y + 13)}){slope}">{t}</text>'
            for t, x in chosen
        )
        return f'<g {INK} text-anchor="end">{"".join(texts)}</g>'


def label_axis(labels: Sequence[str], *, left: float, right: float) -> LabelAxis:
    """Level labels if they fit, else sloped ones, else every second, fifth, tenth, ... of them."""
    texts = [shorten(label, _LABEL_ROOM_PX) for label in labels]
    widest = max((width_px(text) for text in texts), default=0.0)
    pitch = (right - left) / max(1, len(labels))
    if widest + 6 <= pitch:
        return LabelAxis(texts=texts, labels=labels, every=1, sloped=False, height=26, left=left)
    sloped = pitch >= _NARROWEST_PX or widest > 44
    room = _NARROWEST_PX if sloped else widest + 8
    if pitch < room:
        room = max(room, pitch * len(labels) / _MOST_THINNED)
    every = next((step for step in _THINNING if step * pitch >= room), _THINNING[-1])
    if not sloped:
        return LabelAxis(
            texts=texts, labels=labels, every=every, sloped=False, height=26, left=left
        )
    written = texts[::every]
    slope = math.radians(_SLOPE_DEGREES)
    overhang = max(width_px(t) * math.cos(slope) - i * every * pitch for i, t in enumerate(written))
    height = 22 + widest * math.sin(slope)
    start = max(left, overhang - pitch / 2 + 2)
    return LabelAxis(
        texts=texts, labels=labels, every=every, sloped=True, height=height, left=start
    )


def legend(entries: Sequence[tuple[str, str]], *, width: float) -> list[str]:
    """Pairs of a 14 px wide mark (drawn from 0, 0 upwards) and its name, right-aligned on top."""
    names = [shorten(name, 120) for _, name in entries]
    x = width - RIGHT - sum(width_px(name) + 32 for name in names) + 12
    parts = []
    for (mark, _), name in zip(entries, names, strict=True):
        text = f'<text {INK} x="19" y="0">{safe(name)}</text>'
        parts.append(f'<g transform="translate({px(x)} 16)">{mark}{text}</g>')
        x += width_px(name) + 32
    return parts


def sheet(
    body: Sequence[str], *, title: str, says: str, width: float, height: float, note: str = ""
) -> str:
    """The whole SVG document: title, description, paper, body, and a note at the bottom."""
    if note:
        body = [*body, f'<text {INK} x="{LEFT}" y="{px(height + 8)}">{safe(note)}</text>']
        height += 16
    size = f'width="{px(width)}" height="{px(height)}"'
    heading = safe(shorten(title, width * 0.5))
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" class="sf-chart" role="img" '
        f'viewBox="0 0 {px(width)} {px(height)}" {size} '
        'font-family="system-ui,sans-serif" font-size="11" fill="none">'
        f"<title>{safe(title)}</title><desc>{safe(f'{says} {note}'.strip())}</desc>"
        f'<rect class="sf-paper" {size} fill="#fff"/>'
        f'<text class="sf-title" x="10" y="17" fill="#2b2933" font-size="12" '
        f'font-weight="600">{heading}</text>{"".join(body)}</svg>'
    )
