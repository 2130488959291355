"""Charts of counts: standing bars, lying bars, rows of parts end to end, and heat maps.

A heat map shows a table of counts for two columns, or of correlations, as shades.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sfumato import check
from sfumato.charts.canvas import (
    ACCENT,
    BADGE_PX,
    INK,
    LEFT,
    PLOT_HEIGHT,
    REAL,
    RIGHT,
    TOP,
    Scale,
    Vector,
    badge,
    compact,
    cut,
    finite,
    label_axis,
    legend,
    px,
    ratio,
    readable,
    safe,
    same_length,
    scale_from_zero,
    sheet,
    shorten,
    value_axis,
    width_px,
)
from sfumato.errors import InputError

MAX_BARS: Final = 200
"""Above it neighboring bars are added up, and the chart says so."""
MOST_TIPS: Final = 60
"""Bars up to which each has a tooltip; above it a page would grow by what nobody can point at."""

BAR: Final = f'class="sf-bar" fill="{ACCENT}"'
OUTLINE: Final = f'class="sf-real" stroke="{REAL}" stroke-width="1.4"'
WHISKER: Final = 'class="sf-noise" stroke="#4a4754" stroke-width="1.1"'
MARKS: Final = {
    "published": f'<path {BAR} d="M0 0h14v-9h-14z"/>',
    "real": f'<path {OUTLINE} d="M1 0v-8.5h12v8.5"/>',
    "known noise": f'<path {WHISKER} d="M7 0v-9M4 0h6M4-9h6"/>',
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Bars:
    """One bar per label, beside it what is real and how far the noise reaches."""

    labels: list[str]
    published: Vector
    real: Vector | None
    errors: Vector | None
    note: str = ""

    @staticmethod
    def of(
        labels: Sequence[str],
        published: Sequence[float],
        real: Sequence[float] | None,
        errors: Sequence[float] | None,
    ) -> "Bars":
        """The bars, if their numbers go together."""
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
        return Bars(labels=list(labels), published=heights, real=truth, errors=reach)

    def extremes(self) -> Vector:
        """Every height that the axis must hold."""
        reach = 0.0 if self.errors is None else self.errors
        real = self.published if self.real is None else self.real
        return np.concatenate([self.published - reach, self.published + reach, real])

    def marks(self, names: tuple[str, str]) -> list[tuple[str, str]]:
        """The legend: the bars and the whiskers by these names. Bars alone need none."""
        called = dict(zip(("published", "known noise"), names, strict=True))
        extra = {"real": self.real, "known noise": self.errors}
        present = [name for name, values in extra.items() if values is not None]
        shown = ["published", *present] if present else []
        return [(MARKS[part], called.get(part, part)) for part in shown]

    def describe(self) -> str:
        """What a reader who can't see the chart should know."""
        if not self.labels:
            return "No bars."
        most = int(self.published.argmax())
        sentences = [
            f"{len(self.labels)} bars from {self.labels[0]} to {self.labels[-1]}; the largest, "
            f"{self.labels[most]}, is {readable(self.published[most])}."
        ]
        if self.errors is not None:
            sentences.append(
                f"Noise reaches up to {readable(float(self.errors.max()))} either way."
            )
        if self.real is not None:
            gaps = np.abs(self.published - self.real)
            worst = int(gaps.argmax())
            sentences.append(
                f"Published and real differ most at {self.labels[worst]}: "
                f"{readable(self.published[worst])} and {readable(self.real[worst])}."
            )
        return " ".join(sentences)

    def tooltip(self, i: int) -> str:
        """The label of a bar and its numbers."""
        real = "" if self.real is None else f", real {readable(self.real[i])}"
        return f"{self.labels[i]}: {readable(self.published[i])}{real}"

    def merged(self) -> "Bars":
        """At most MAX_BARS bars: neighbors add up, errors of independent noise in squares."""
        n = len(self.labels)
        size = cells_per_bar(n)
        if size == 1:
            return self
        starts = np.arange(0, n, size)
        pairs = zip(starts, [*(starts[1:] - 1), n - 1], strict=True)
        errors = self.errors
        return Bars(
            labels=[f"{self.labels[a]} … {self.labels[b]}" for a, b in pairs],
            published=np.add.reduceat(self.published, starts),
            real=None if self.real is None else np.add.reduceat(self.real, starts),
            errors=None if errors is None else np.sqrt(np.add.reduceat(errors**2, starts)),
            note=f"Each bar adds up {size} neighboring cells of {n:,}.",
        )

    def largest(self, most: int) -> "Bars":
        """The largest bars from the top down; a note says how many are left out."""
        order = np.argsort(-self.published, kind="stable")[:most]
        left = len(self.labels) - len(order)
        return Bars(
            labels=[self.labels[i] for i in order],
            published=self.published[order],
            real=None if self.real is None else self.real[order],
            errors=None if self.errors is None else self.errors[order],
            note=f"The {most} largest; {left:,} more hold less each." if left else "",
        )


def cells_per_bar(cells: int) -> int:
    """How many neighboring cells a bar adds up, so that there are at most MAX_BARS bars."""
    return max(1, -(-cells // MAX_BARS))


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
    zero, parts, tips = scale.at(0.0), [], len(bars.labels) <= MOST_TIPS
    for i, (value, x) in enumerate(zip(bars.published, centers, strict=True)):
        y = scale.at(float(value))
        if abs(y - zero) < _LEAST_PX:
            continue
        if tips:
            box = f'x="{px(x - width / 2)}" y="{px(min(y, zero))}" width="{px(width)}"'
            tip = f"<title>{safe(bars.tooltip(i))}</title>"
            parts.append(f'<rect {box} height="{px(abs(y - zero))}">{tip}</rect>')
        else:
            parts.append(f"M{px(x - width / 2)} {px(zero)}V{px(y)}h{px(width)}V{px(zero)}z")
    drawn = "".join(parts)
    return f"<g {BAR}>{drawn}</g>" if tips else f'<path {BAR} d="{drawn}"/>'


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


MOST_ROWS: Final = 24
"""Of a chart; the rest, which hold less each, stand in the table beside it."""

_ROW_PX: Final = 19.0
"""Height of a row: a line of text at 11 px."""
_BAR_PX: Final = 11.0
"""Height of its bar."""
_NAMES_PX: Final = 150.0
"""Width of the longest name."""


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
        _row_rects(bars, scale),
        *_row_outlines(bars, scale),
        *_row_whiskers(bars, scale),
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


def _row_rects(bars: Bars, scale: Scale) -> str:
    zero, parts = scale.at(0.0), []
    for row, value in enumerate(bars.published.tolist()):
        x = scale.at(value)
        box = f'x="{px(min(x, zero))}" y="{px(_middle(row) - _BAR_PX / 2)}"'
        size = f'width="{px(abs(x - zero))}" height="{px(_BAR_PX)}"'
        parts.append(f"<rect {box} {size}><title>{safe(bars.tooltip(row))}</title></rect>")
    return f"<g {BAR}>{''.join(parts)}</g>"


def _row_outlines(bars: Bars, scale: Scale) -> list[str]:
    if bars.real is None:
        return []
    zero, deep = px(scale.at(0.0)), px(_BAR_PX + 4)
    steps = (
        f"M{zero} {px(_middle(row) - _BAR_PX / 2 - 2)}H{px(scale.at(value))}v{deep}H{zero}"
        for row, value in enumerate(bars.real.tolist())
    )
    return [f'<path {OUTLINE} d="{"".join(steps)}"/>']


def _row_whiskers(bars: Bars, scale: Scale) -> list[str]:
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


_STACK_PX: Final = 22.0
"""Height of a row of parts."""
_STACK_BAR_PX: Final = 12.0
"""Height of its bar."""
_STACK_NAMES_PX: Final = 120.0
"""Width of the longest name beside it."""
_PARTS: Final = (
    f'class="sf-bar" fill="{ACCENT}"',
    'class="sf-part-1" fill="#b08a5b"',
    'class="sf-part-2" fill="#8a6aa0"',
    'class="sf-part-3" fill="#6b7f4e"',
)


def bar_rows(
    labels: Sequence[str],
    parts: Mapping[str, Sequence[float]],
    *,
    title: str,
    groups: Mapping[str, int] | None = None,
    width: int = 420,
) -> str:
    """One bar for each label; several named parts stand end to end and have a legend.

    ``groups`` numbers the groups of labels from 1: a badge beside the name.

    Raises:
        InputError: the lengths differ, a number is negative or none, or there are too many parts.
    """
    lengths = _checked(labels, parts)
    totals = lengths.sum(axis=0)
    ends = [readable(total) for total in totals.tolist()]
    names = [shorten(label, _STACK_NAMES_PX) for label in labels]
    start = 10 + max((width_px(name) * 1.06 for name in names), default=0.0) + 8
    start += BADGE_PX + 6 if groups else 0.0
    stop = width - RIGHT - max((width_px(end) for end in ends), default=0.0) - 8
    pixels = (stop - start) / (float(totals.max(initial=0.0)) or 1.0)
    body = []
    for row, label in enumerate(labels):
        y = TOP + row * _STACK_PX
        body.append(_name(names[row], (groups or {}).get(label), y=y, right=start))
        body.append(_bar(label, list(parts), lengths[:, row], x=start, y=y, pixels=pixels))
        at = f'x="{px(start + totals[row] * pixels + 6)}" y="{px(y + _STACK_PX / 2 + 3.8)}"'
        body.append(f"<text {INK} {at}>{ends[row]}</text>")
    marks = [
        (f'<path {style} d="M0 0h14v-9h-14z"/>', name)
        for style, name in zip(_PARTS, parts, strict=False)
    ]
    body += legend(marks if len(parts) > 1 else [], width=width)
    says = f"{len(labels)} bars."
    if len(labels):
        most = int(totals.argmax())
        says = f"{len(labels)} bars; the largest, {labels[most]}, is {ends[most]}."
    height = TOP + len(labels) * _STACK_PX + 8
    return sheet(body, title=title, says=says, width=width, height=height)


def _checked(labels: Sequence[str], parts: Mapping[str, Sequence[float]]) -> Vector:
    if not 1 <= len(parts) <= len(_PARTS):
        raise InputError(f"bars have 1 to {len(_PARTS)} parts, got {len(parts)}")
    for values in parts.values():
        same_length(labels=labels, part=values)
    lengths = finite(parts=np.array(list(parts.values()), dtype=np.float64))
    if (lengths < 0).any():
        raise InputError("parts must be >= 0: they are lengths of bars.")
    return lengths.reshape(len(parts), len(labels))


def _name(name: str, group: int | None, *, y: float, right: float) -> str:
    at = f'x="{px(right - 8)}" y="{px(y + _STACK_PX / 2 + 3.8)}"'
    label = f'<text class="sf-dark" fill="#2b2933" text-anchor="end" {at}>{safe(name)}</text>'
    if group is None:
        return label
    return badge(group, x=10, y=y + 3, height=_STACK_PX - 6) + label


def _bar(
    label: str, names: Sequence[str], lengths: Vector, *, x: float, y: float, pixels: float
) -> str:
    parts = []
    for style, name, length in zip(_PARTS, names, lengths.tolist(), strict=False):
        top = y + (_STACK_PX - _STACK_BAR_PX) / 2
        box = f'x="{px(x)}" y="{px(top)}" width="{px(length * pixels)}"'
        which = f", {safe(name)}" if len(names) > 1 else ""
        tip = f"<title>{safe(label)}{which}: {readable(length)}</title>"
        parts.append(f'<g {style}><rect {box} height="{px(_STACK_BAR_PX)}">{tip}</rect></g>')
        x += length * pixels
    return "".join(parts)


MAX_HEAT_CELLS: Final = 40
"""Along each side; above it neighboring cells are added up, and the map says so."""

_SHADES: Final = 20
"""Steps from empty to the darkest; chosen by judgment: finer ones can't be distinguished."""
_DARK_ABOVE: Final = 15
"""Shades on which numbers are light: on each side of it they have the contrast of WCAG AA."""
_ROW_NAMES_PX: Final = 120
"""Room for the names of rows, chosen by judgment: about 17 letters."""
_LEAST_HEIGHT_PX: Final = 12.0
"""Of a row: the text of a name and of a number is 11 px high."""
_ON_LIGHT: Final = 'class="sf-low" fill="#000"'
_ON_DARK: Final = 'class="sf-on" fill="#fff"'
_SHADE: Final = 'class="sf-cell" stroke="#25506b"'
_BELOW: Final = 'class="sf-below" stroke="#803722"'
_MOST_NUMBERS: Final = 240
"""Cells up to which their numbers are written, chosen by judgment: more make a page large."""


def heat_map(
    x_labels: Sequence[str],
    y_labels: Sequence[str],
    counts: Sequence[Sequence[float]],
    *,
    title: str,
    darkest: float | None = None,
    signed: bool = False,
    zeros: bool = True,
    width: int = 420,
) -> str:
    """A shaded table: ``counts[i][j]`` belongs to ``x_labels[i]`` (across), ``y_labels[j]`` (down).

    The shade grows linearly from zero to ``darkest``, by default the largest count; two maps with
    the same ``darkest`` can be compared. Cells at or below zero stay empty; where numbers are
    ``signed``, those below zero have shades of another color and numbers keep two decimals.
    ``zeros=False`` writes no number into a cell that is exactly zero.

    Raises:
        InputError: the table has another shape than the labels, or holds NaN or infinity.
    """
    across, down, table, note = _merged_table(
        x_labels, y_labels, _checked_table(x_labels, y_labels, counts)
    )
    largest = float(np.abs(table).max(initial=0.0)) if signed else float(table.max(initial=0.0))
    top = (largest or 1.0) if darkest is None else float(check.positive(darkest=darkest))
    names = [shorten(label, _ROW_NAMES_PX) for label in down]
    left = max([LEFT, *(width_px(name) + 14 for name in names)])
    axis = label_axis(across, left=left, right=width - RIGHT)
    grid = _Grid(table, left=axis.left, right=width - RIGHT, top=top, signed=signed, zeros=zeros)
    centers = [grid.x(i + 0.5) for i in range(len(across))]
    bottom = grid.y(len(down))
    body = [
        *grid.shades(),
        *grid.numbers(),
        _row_names(names, down, grid),
        axis.draw(centers, y=bottom),
        _ramp(top, right=width - RIGHT, signed=signed),
    ]
    says = _says(across, down, table)
    height = bottom + axis.height
    return sheet(body, title=title, says=says, note=note, width=width, height=height)


def _says(across: Sequence[str], down: Sequence[str], table: Vector) -> str:
    """What a reader who can't see the map should know: its size, its largest cells."""
    size = f"{len(across)} by {len(down)} cells"
    if not table.size:
        return f"{size}."
    order = np.argsort(-table, axis=None, kind="stable")[:3]
    cells = [np.unravel_index(cell, table.shape) for cell in order]
    named = [f"{across[i]} and {down[j]} with {readable(float(table[i, j]))}" for i, j in cells]
    return f"{size}; the largest: {'; '.join(named)}."


class _Grid:
    """Where the cells lie, and their shades: 0 is empty, _SHADES and -_SHADES are the darkest."""

    def __init__(
        self, table: Vector, *, left: float, right: float, top: float, signed: bool, zeros: bool
    ) -> None:
        self.table = table
        self.decimals = 2 if signed else 0
        self.zeros = zeros
        self.left = left
        columns, rows = max(1, table.shape[0]), max(1, table.shape[1])
        self.width: float = (right - left) / columns
        self.height: float = min(30.0, max(_LEAST_HEIGHT_PX, 170 / rows))
        share = np.clip(table / top, -1.0 if signed else 0.0, 1.0)
        steps = np.ceil(np.abs(share) * _SHADES - 1e-9)
        self.levels: NDArray[np.int64] = (np.sign(share) * steps).astype(np.int64)

    def x(self, column: float) -> float:
        return self.left + column * self.width

    def y(self, row: float) -> float:
        return TOP + row * self.height

    def shades(self) -> list[str]:
        """One path per shade, in units of a cell, so that a map of 1,600 cells stays small.

        A cell is a stroke from its left to its right side, as wide as the cell is high.
        """
        frame = f"M{px(self.left)} {TOP}h{px(self.width * len(self.table))}"
        frame += f"V{px(self.y(self.table.shape[1]))}H{px(self.left)}z"
        parts = [f'<path class="sf-frame" stroke="#e4e0e6" d="{frame}"/>']
        gap = 1.0 if min(self.width, self.height) > 11 else 0.0
        across, deep = ratio(1 - gap / self.width), ratio(1 - gap / self.height)
        for level in np.unique(self.levels[self.levels != 0]).tolist():
            cells = np.argwhere(self.levels == level)
            d = "".join(f"M{i} {j}h{across}" for i, j in cells)
            color = _SHADE if level > 0 else _BELOW
            opacity = ratio(abs(level) / _SHADES)
            parts.append(f'<path {color} stroke-opacity="{opacity}" d="{d}"/>')
        middle = f"{px(self.left)} {px(TOP + (self.height - gap) / 2)}"
        size = f"{self.width:.5g} {self.height:.5g}"
        units = f'transform="translate({middle}) scale({size})" stroke-width="{deep}"'
        return [parts[0], f"<g {units}>{''.join(parts[1:])}</g>"]

    def numbers(self) -> list[str]:
        """The counts themselves, where the cells have room for them."""
        counts = np.ndenumerate(np.round(self.table, self.decimals))
        written = {cell: compact(float(count), digits=2) for cell, count in counts}
        widest = max((width_px(text) for text in written.values()), default=0.0)
        narrow = widest * 0.9 + 3 > self.width
        if narrow or len(written) > _MOST_NUMBERS:
            return []
        groups: dict[str, list[str]] = {_ON_LIGHT: [], _ON_DARK: []}
        for (i, j), text in written.items():
            if not self.zeros and self.table[i, j] == 0:
                continue
            group = _ON_DARK if abs(self.levels[i, j]) > _DARK_ABOVE else _ON_LIGHT
            spot = f'x="{px(self.x(i + 0.5))}" y="{px(self.y(j + 0.5) + 3.2)}"'
            groups[group].append(f"<text {spot}>{text}</text>")
        style = 'font-size="10" text-anchor="middle"'
        return [f"<g {ink} {style}>{''.join(texts)}</g>" for ink, texts in groups.items() if texts]


def _checked_table(
    x_labels: Sequence[str], y_labels: Sequence[str], counts: Sequence[Sequence[float]]
) -> Vector:
    shape = (len(x_labels), len(y_labels))
    if len({len(row) for row in counts}) > 1:
        raise InputError("counts must have rows of the same length.")
    table = finite(counts=counts)
    if 0 in shape and table.size == 0:
        return np.zeros(shape)
    if table.shape != shape:
        raise InputError(
            f"counts must have the shape {shape} of x_labels and y_labels, got {table.shape}"
        )
    return table


def _merged_table(
    x_labels: Sequence[str], y_labels: Sequence[str], table: Vector
) -> tuple[list[str], list[str], Vector, str]:
    sizes = [max(1, -(-n // MAX_HEAT_CELLS)) for n in table.shape]
    labels = []
    for side, (names, size) in enumerate(zip((x_labels, y_labels), sizes, strict=True)):
        starts = list(range(0, len(names), size))
        ends = [min(start + size, len(names)) - 1 for start in starts]
        pairs = zip(starts, ends, strict=True)
        labels.append([names[a] if a == b else _span(names[a], names[b]) for a, b in pairs])
        table = np.add.reduceat(table, starts, axis=side) if size > 1 else table
    merged = max(sizes) > 1
    note = f"Each cell adds up {sizes[0]} by {sizes[1]} neighboring cells." if merged else ""
    return labels[0], labels[1], table, note


def _span(first: str, last: str) -> str:
    """From one label to another; only the first where both have no room."""
    whole, start = f"{first} … {last}", f"{first} …"
    return next((text for text in (whole, start) if width_px(text) <= _ROW_NAMES_PX), first)


def _row_names(names: Sequence[str], labels: Sequence[str], grid: _Grid) -> str:
    x = px(grid.left - 7)
    texts = (
        f'<text x="{x}" y="{px(grid.y(j + 0.5) + 3.5)}">{cut(name, labels[j])}</text>'
        for j, name in enumerate(names)
    )
    return f'<g {INK} text-anchor="end">{"".join(texts)}</g>'


def _ramp(top: float, *, right: float, signed: bool) -> str:
    """The legend: from zero, or from the least, to the darkest shade and what that stands for."""
    least, most = compact(-top) if signed else "0", compact(top)
    levels = [level for level in range(-6 if signed else 1, 7) if level]
    start = right - width_px(most) - 5 - 10 * len(levels)
    steps = "".join(
        f'<path {_SHADE if level > 0 else _BELOW} stroke-width="9" '
        f'stroke-opacity="{ratio(abs(level) / 6)}" d="M{px(start + 10 * i)} 12.5h10"/>'
        for i, level in enumerate(levels)
    )
    left = f'<text x="{px(start - 5)}" y="16" text-anchor="end">{least}</text>'
    end = px(start + 10 * len(levels) + 5)
    return f'{steps}<g {INK}>{left}<text x="{end}" y="16">{most}</text></g>'
