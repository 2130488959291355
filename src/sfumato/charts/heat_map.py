"""Heat maps: a table of counts for two columns, or of correlations, as shades."""

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sfumato import check
from sfumato.charts.canvas import (
    INK,
    LEFT,
    RIGHT,
    TOP,
    Vector,
    compact,
    cut,
    finite,
    label_axis,
    px,
    ratio,
    readable,
    sheet,
    shorten,
    width_px,
)
from sfumato.errors import InputError

MAX_HEAT_CELLS: Final = 40
"""Along each side; above it neighboring cells are added up, and the map says so."""

_SHADES: Final = 20
"""Steps from empty to the darkest; chosen by judgment: finer ones can't be distinguished."""
_DARK_ABOVE: Final = 15
"""Shades on which numbers are light: on each side of it they have the contrast of WCAG AA."""
_NAMES_PX: Final = 120
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
    across, down, table, note = _merged(x_labels, y_labels, _checked(x_labels, y_labels, counts))
    largest = float(np.abs(table).max(initial=0.0)) if signed else float(table.max(initial=0.0))
    top = (largest or 1.0) if darkest is None else float(check.positive(darkest=darkest))
    names = [shorten(label, _NAMES_PX) for label in down]
    left = max([LEFT, *(width_px(name) + 14 for name in names)])
    axis = label_axis(across, left=left, right=width - RIGHT)
    grid = _Grid(table, left=axis.left, right=width - RIGHT, top=top, signed=signed, zeros=zeros)
    centers = [grid.x(i + 0.5) for i in range(len(across))]
    bottom = grid.y(len(down))
    body = [
        *grid.shades(),
        *grid.numbers(),
        _names(names, down, grid),
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


def _checked(
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


def _merged(
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
    return next((text for text in (whole, start) if width_px(text) <= _NAMES_PX), first)


def _names(names: Sequence[str], labels: Sequence[str], grid: _Grid) -> str:
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
