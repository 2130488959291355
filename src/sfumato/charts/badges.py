"""Groups of names in a chart: a color, and beside it a number, as color alone says too little."""

from typing import Final

from sfumato.charts.numbers import px

GROUP_COLORS: Final = ("#3f6f8a", "#a84c32", "#5a6e3f", "#7d5d94", "#85651f", "#55606b")
"""They come round again after the sixth group; the numbers do not."""

BADGE_PX: Final = 20.0


def outline(group: int | None) -> str:
    """The class and color of a line around something of a group, counted from 1."""
    if group is None:
        return 'class="sf-box" fill="#fff" stroke="#a9a4b0"'
    at = (group - 1) % len(GROUP_COLORS)
    return f'class="sf-box sf-group-{at}" fill="#fff" stroke="{GROUP_COLORS[at]}"'


def badge(group: int, *, x: float, y: float, height: float) -> str:
    """The number of a group on its color, round at the left like the box that it opens."""
    inner = height - 10
    shape = f"M{px(x + BADGE_PX)} {px(y)}v{px(height)}h{px(5 - BADGE_PX)}"
    shape += f"q-5 0-5-5v{px(-inner)}q0-5 5-5z"
    return _numbered(group, f'<path d="{shape}"', x=x, y=y, height=height)


def chip(group: int, *, x: float, y: float, height: float) -> str:
    """The number of a group on its color, by itself."""
    size = f'width="{px(BADGE_PX)}" height="{px(height)}" rx="4"'
    shape = f'<rect x="{px(x)}" y="{px(y)}" {size}'
    return _numbered(group, shape, x=x, y=y, height=height)


def _numbered(group: int, shape: str, *, x: float, y: float, height: float) -> str:
    at = (group - 1) % len(GROUP_COLORS)
    middle = f'x="{px(x + BADGE_PX / 2)}" y="{px(y + height / 2 + 3.5)}"'
    style = 'class="sf-on" fill="#fff" font-size="10" font-weight="600" text-anchor="middle"'
    color = f'class="sf-badge-{at}" fill="{GROUP_COLORS[at]}"'
    return f"{shape} {color}/><text {style} {middle}>{group}</text>"
