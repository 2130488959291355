"""What all charts share: texts and numbers in SVG, the sheet, scales, axes, legend, badges."""

import math
import re
import unicodedata
from collections.abc import Sequence, Sized
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from html import escape
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.errors import InputError

_NOT_IN_XML: Final = re.compile(
    "[^\t\n\r\u0020-\u007e\u0085\u00a0-\ud7ff\ue000-\ufdcf\ufdf0-\ufffd\U00010000-\U0010ffff]"
)
_DIRECTION: Final = frozenset({"R", "AL", "AN", "RLE", "RLO", "RLI", "LRE", "LRO", "LRI", "FSI"})
_ISOLATE: Final = "\u2068"
_END_ISOLATE: Final = "\u2069"
_CHARACTER_PX: Final = 7.0  # of DejaVu Sans at 11 px: about the widest that a reader may have
_CAPITAL_PX: Final = 8.2  # the same for capitals
_WIDE_CHARACTER_PX: Final = 11.2  # for m, w, % and full-width letters
_NARROW_CHARACTER_PX: Final = 4.0  # for i, l and punctuation
_NO_WIDTH: Final = frozenset({"Mn", "Me", "Cf"})
"""Marks above and below letters, joiners and direction marks."""
_NARROW: Final = frozenset("iljtfI.,:;'|()[]! ")
_BROAD: Final = frozenset("mwMW%&+=<>@…")


def printable(text: str) -> str:
    """The text with each character that XML does not allow replaced by U+FFFD.

    >>> printable("a" + chr(0) + "b") == "a" + chr(0xFFFD) + "b"
    True
    """
    return _NOT_IN_XML.sub("\ufffd", text)


def safe(text: str) -> str:
    """The text as SVG content: clean, escaped, its writing direction kept to itself.

    A label that holds right-to-left letters or direction marks stands between the Unicode
    isolates U+2068 and U+2069, which do for SVG text what ``dir="auto"`` does in HTML.
    """
    clean = escape(printable(text))
    if any(unicodedata.bidirectional(c) in _DIRECTION for c in clean):
        return f"{_ISOLATE}{clean}{_END_ISOLATE}"
    return clean


def cut(shown: str, whole: str) -> str:
    """A label as SVG content; where it was cut, the whole of it is its tooltip."""
    return safe(shown) if shown == whole else f"{safe(shown)}<title>{safe(whole)}</title>"


def shorten(text: str, room_px: float) -> str:
    """The text, cut with an ellipsis where it would be wider than the room."""
    if width_px(text) <= room_px:
        return text
    short = text
    while short and width_px(short) + _WIDE_CHARACTER_PX > room_px:
        short = short[:-1]
    return short.rstrip() + "…"


def width_px(text: str) -> float:
    """How wide the text is at 11 px, in a wide font."""
    return sum(_character_px(c) for c in text)


def _character_px(character: str) -> float:
    if unicodedata.category(character) in _NO_WIDTH:
        return 0.0
    if character in _NARROW:
        return _NARROW_CHARACTER_PX
    wide = character in _BROAD or unicodedata.east_asian_width(character) in "WF"
    if wide:
        return _WIDE_CHARACTER_PX
    return _CAPITAL_PX if character.isupper() else _CHARACTER_PX


Vector = NDArray[np.float64]

_LARGEST: Final = 1e100  # differences and squares of such numbers are still finite


def finite(**named: ArrayLike) -> Vector:
    """The one array given by keyword, as floats.

    Raises:
        InputError: an entry is NaN, infinite or beyond 1e100.
    """
    ((name, values),) = named.items()
    array = np.asarray(values, dtype=np.float64)
    if not np.all(np.abs(array) <= _LARGEST):  # NaN compares false
        raise InputError(
            f"{name} must hold finite numbers, got NaN or infinity. Leave out the cells without a "
            "number."
        )
    return array


def same_length(**named: Sized) -> None:
    """Refuse arrays that do not go together."""
    lengths = {name: len(values) for name, values in named.items()}
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{name} has {length}" for name, length in lengths.items())
        raise InputError(f"{listed}. All must have the same length.")


def readable(value: float) -> str:
    """A number for a sentence or a table: whole from 100 on, else up to three digits.

    >>> readable(12345.6), readable(0.12345), readable(3.0)
    ('12,346', '0.123', '3')
    """
    if value == round(value) or abs(value) >= 100:
        return f"{round(value):,}"
    return f"{value:.3g}"


def value_text(value: float, kind: str) -> str:
    """A value of a column of this kind: a number, a day or a moment, counted from 1970.

    >>> value_text(4660.4, "integer"), value_text(0.0, "date")
    ('4,660', '1970-01-01')
    """
    try:
        if kind == "date":
            return (date(1970, 1, 1) + timedelta(days=round(value))).isoformat()
        if kind == "datetime":
            return (datetime(1970, 1, 1) + timedelta(seconds=round(value))).isoformat(sep=" ")
        return readable(value)
    except (OverflowError, ValueError):  # beyond the calendar, or infinite
        return f"{value:g}"


def compact(value: float, *, digits: int = 3) -> str:
    """A number for an axis or a cell: a few digits and a unit. Nothing below 1,000 loses a digit.

    >>> compact(12_000), compact(999_999), compact(0.25), compact(1_550, digits=2)
    ('12k', '1M', '0.25', '1.6k')
    """
    size = abs(value)
    for unit, symbol in ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "k")):
        if 0.9995 * unit <= size < 1e15:  # so that 999,999 is 1M, not 1000k
            enough = max(digits, len(f"{size / unit:.0f}"))
            return f"{value / unit:.{enough}g}{symbol}"
    return f"{value:.3g}" if size >= 1e-12 else "0"


def px(length: float) -> str:
    """A coordinate with at most one decimal: finer than a screen shows, and short.

    >>> px(12.0), px(0.256), px(-0.01)
    ('12', '0.3', '0')
    """
    text = f"{length:.1f}".removesuffix(".0")
    return "0" if text == "-0" else text


def ratio(part: float) -> str:
    """A number from 0 to 1 with at most two decimals: an opacity, or a place in a unit cell.

    >>> ratio(0.25), ratio(1.0), ratio(0.333)
    ('.25', '1', '.33')
    """
    return f"{part:.2f}".rstrip("0").rstrip(".").removeprefix("0") or "0"


TOP: Final = 30
"""Pixels above a plot, for the title."""
LEFT: Final = 42
"""Pixels at its left, for the numbers of an axis."""
RIGHT: Final = 10
"""Pixels at its right."""
PLOT_HEIGHT: Final = 170
"""Pixels of the plot itself."""

INK: Final = 'class="sf-ink" fill="#4a4754"'
ACCENT: Final = "#7292aa"
REAL: Final = "#b4573c"

_SLOPE_DEGREES: Final = 40  # of labels that do not fit side by side
_LABEL_ROOM_PX: Final = 112  # the longest label below an axis
_NARROWEST_PX: Final = 19  # between two sloped labels: 12 px apart across the slope
_MOST_THINNED: Final = 12  # where labels are left out anyway, a few are enough to find the way
_THINNING: Final = (1, 2, 5, 10, 20, 25, 50, 100, 200, 400)
"""One of how many labels is written."""


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
        if self.log and (ticks := self._log_ticks()):
            return ticks  # a narrow stretch, like 201 to 402, may hold none: then evenly
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


GROUP_COLORS: Final = ("#3f6f8a", "#a84c32", "#5a6e3f", "#7d5d94", "#85651f", "#55606b")
"""They come round again after the sixth group; the numbers do not."""

BADGE_PX: Final = 20.0
"""Width of the badge of a group, for two digits."""


def badge(group: int, *, x: float, y: float, height: float) -> str:
    """The number of a group, counted from 1, on its color."""
    at = (group - 1) % len(GROUP_COLORS)
    size = f'width="{px(BADGE_PX)}" height="{px(height)}" rx="4"'
    color = f'class="sf-badge-{at}" fill="{GROUP_COLORS[at]}"'
    middle = f'x="{px(x + BADGE_PX / 2)}" y="{px(y + height / 2 + 3.5)}"'
    style = 'class="sf-on" fill="#fff" font-size="10" font-weight="600" text-anchor="middle"'
    rect = f'<rect x="{px(x)}" y="{px(y)}" {size} {color}/>'
    return f"{rect}<text {style} {middle}>{group}</text>"
