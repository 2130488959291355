"""Bars that lie: one row for each name, its parts end to end, the number at the end."""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from sfumato.charts.badges import BADGE_PX, chip
from sfumato.charts.canvas import ACCENT, INK, RIGHT, TOP, legend, sheet
from sfumato.charts.labels import safe, shorten, width_px
from sfumato.charts.numbers import Vector, finite, px, readable, same_length
from sfumato.errors import InputError

_ROW_PX: Final = 22.0
_BAR_PX: Final = 12.0
_NAMES_PX: Final = 120.0
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
    names = [shorten(label, _NAMES_PX) for label in labels]
    start = 10 + max((width_px(name) * 1.06 for name in names), default=0.0) + 8
    start += BADGE_PX + 6 if groups else 0.0
    stop = width - RIGHT - max((width_px(end) for end in ends), default=0.0) - 8
    pixels = (stop - start) / (float(totals.max(initial=0.0)) or 1.0)
    body = []
    for row, label in enumerate(labels):
        y = TOP + row * _ROW_PX
        body.append(_name(names[row], (groups or {}).get(label), y=y, right=start))
        body.append(_bar(label, list(parts), lengths[:, row], x=start, y=y, pixels=pixels))
        at = f'x="{px(start + totals[row] * pixels + 6)}" y="{px(y + _ROW_PX / 2 + 3.8)}"'
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
    height = TOP + len(labels) * _ROW_PX + 8
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
    place = f'x="{px(right - 8)}" y="{px(y + _ROW_PX / 2 + 3.8)}"'
    label = f'<text class="sf-dark" fill="#2b2933" text-anchor="end" {place}>{safe(name)}</text>'
    if group is None:
        return label
    return chip(group, x=10, y=y + 3, height=_ROW_PX - 6) + label


def _bar(
    label: str, names: Sequence[str], lengths: Vector, *, x: float, y: float, pixels: float
) -> str:
    parts = []
    for style, name, length in zip(_PARTS, names, lengths.tolist(), strict=False):
        box = f'x="{px(x)}" y="{px(y + (_ROW_PX - _BAR_PX) / 2)}" width="{px(length * pixels)}"'
        which = f", {safe(name)}" if len(names) > 1 else ""
        tip = f"<title>{safe(label)}{which}: {readable(length)}</title>"
        parts.append(f'<g {style}><rect {box} height="{px(_BAR_PX)}">{tip}</rect></g>')
        x += length * pixels
    return "".join(parts)
