"""Networks of columns: arrows from parents to children, or ties as wide as they are strong."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean
from typing import Final

from sfumato import check
from sfumato.charts.canvas import (
    BADGE_PX,
    RIGHT,
    TOP,
    badge,
    finite,
    outline,
    px,
    ratio,
    readable,
    safe,
    sheet,
    shorten,
    width_px,
)
from sfumato.charts.layered_layout import Arrow, Layers, layered, walk
from sfumato.errors import InputError

MAX_NODES: Final = 120
"""More are no drawing that a person reads."""
MAX_EDGES: Final = 480

_BOX_PX: Final = 24.0
_NAME_PX: Final = 92.0
_PAPER_PX: Final = 900.0
_NARROWEST_PX: Final = 340
_MARGIN_PX: Final = 10.0
_PITCH_PX: Final = _BOX_PX + 12
_RING_PITCH_PX: Final = _BOX_PX + 18
_DENSE: Final = 1.7
"""Ties per box from which they are drawn across a ring, as rows would be many and short."""
_FAINTEST: Final = 0.3
"""Of the weakest ties: where lines cross, the strong ones stand out."""
_LINE: Final = 'class="sf-edge" stroke="#8d8896"'
_NAME: Final = 'class="sf-dark" fill="#2b2933"'


@dataclass(frozen=True, kw_only=True, slots=True)
class Edge:
    """A line between two nodes; where arrows are drawn, from ``start`` to ``end``."""

    start: str
    end: str
    strength: float | None = None
    """At least 0. Lines are as wide as they are strong, compared with the strongest of them."""


def network_chart(
    nodes: Sequence[str],
    edges: Sequence[Edge],
    *,
    directed: bool,
    title: str,
    groups: Mapping[str, int] | None = None,
) -> str:
    """Boxes with names and lines between them, as wide as the drawing needs.

    Directed: every arrow points down, from a parent to its child. Undirected: the strongest ties
    go down from the hub of each tree, or across a ring where there are many. Nodes without a line
    stand below all others. ``groups`` numbers groups of nodes from 1: a color and a number.

    Raises:
        InputError: a name stands twice, an edge has an unknown end, stands twice or is a loop, a
            strength is negative or no number, arrows run in a circle, or there are too many.
    """
    graph = _checked(nodes, edges, groups or {}, directed=directed)
    joined = sorted({end for pair in graph.pairs for end in pair})
    ring = not directed and len(edges) > _DENSE * len(joined) and len(joined) > 3
    spots, paths = _in_ring(graph, joined) if ring else _in_rows(graph, joined)
    rest = [node for node in range(len(nodes)) if node not in spots]
    spots |= _loose(graph, rest, below=max((spot.y for spot in spots.values()), default=None))
    extent = max((spot.x + spot.width / 2 for spot in spots.values()), default=0.0)
    extent = max([extent, *(path.reach for path in paths.values())]) + _MARGIN_PX
    width = max(_NARROWEST_PX, extent + RIGHT)
    aside = (width - extent) / 2
    drawing = [graph.line(pair, path.d) for pair, path in paths.items()]
    drawing += [graph.box(node, spot) for node, spot in sorted(spots.items())]
    body = [f'<g transform="translate({px(aside)} 0)">{"".join(drawing)}</g>']
    height = max((spot.y + _BOX_PX for spot in spots.values()), default=TOP) + 14
    return sheet(body, title=title, says=graph.says(), width=width, height=height)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Spot:
    x: float
    """The middle of the box."""
    y: float
    """Its upper side."""
    width: float


@dataclass(frozen=True, kw_only=True, slots=True)
class _Path:
    d: str
    reach: float
    """The rightmost point."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Graph:
    names: tuple[str, ...]
    labels: tuple[str, ...]
    """The names as far as a box has room."""
    pairs: tuple[Arrow, ...]
    strengths: tuple[float | None, ...]
    groups: Mapping[int, int]
    directed: bool

    def width(self, node: int) -> float:
        """Of the box of a node."""
        room = BADGE_PX if node in self.groups else 0.0
        return room + 16 + max(18.0, min(_NAME_PX, width_px(self.labels[node]) * 1.06))

    def ties(self) -> dict[Arrow, float]:
        """The strength of each line; 1 where none is given."""
        known = (1.0 if strength is None else strength for strength in self.strengths)
        return dict(zip(self.pairs, known, strict=True))

    def line(self, pair: Arrow, d: str) -> str:
        """One line, from its path."""
        strength = self.strengths[self.pairs.index(pair)]
        largest = max((value for value in self.strengths if value is not None), default=0.0)
        share = strength / largest if strength is not None and largest > 0 else 0.13
        sign = "→" if self.directed else "–"
        one, other = (safe(self.names[end]) for end in pair)
        known = "" if strength is None else f": {readable(strength)}"
        tip = f"<title>{one} {sign} {other}{known}</title>"
        faint = "" if strength is None else f' stroke-opacity="{ratio(_FAINTEST ** (1 - share))}"'
        return f'<path {_LINE}{faint} stroke-width="{px(0.8 + 3.7 * share)}" d="{d}">{tip}</path>'

    def box(self, node: int, spot: _Spot) -> str:
        """One node: its box, the number of its group, its name as far as there is room."""
        group, left = self.groups.get(node), spot.x - spot.width / 2
        tip = safe(self.names[node]) + ("" if group is None else f", cluster {group}")
        size = f'width="{px(spot.width)}" height="{px(_BOX_PX)}" rx="5"'
        frame = f'<rect {outline(group)} x="{px(left)}" y="{px(spot.y)}" {size}/>'
        mark = "" if group is None else badge(group, x=left, y=spot.y, height=_BOX_PX)
        middle = spot.x + (0.0 if group is None else BADGE_PX / 2)
        place = f'x="{px(middle)}" y="{px(spot.y + _BOX_PX / 2 + 3.8)}"'
        name = safe(self.labels[node])
        label = f'<text {_NAME} text-anchor="middle" {place}>{name}</text>'
        return f'<g class="sf-node"><title>{tip}</title>{frame}{mark}{label}</g>'

    def says(self) -> str:
        """The drawing in words."""
        boxes = f"{len(self.names)} columns"
        boxes += f" in {len(set(self.groups.values()))} clusters" if self.groups else ""
        if self.directed:
            return f"{boxes}, {len(self.pairs)} arrows from parents above to children below."
        if not any(self.strengths):
            return f"{boxes}, {len(self.pairs)} ties."
        ties = self.ties()
        one, other = (self.names[end] for end in max(ties, key=ties.__getitem__))
        most = readable(max(ties.values()))
        return f"{boxes}, {len(self.pairs)} ties; the strongest, {one} and {other}, is {most}."


def _checked(
    nodes: Sequence[str], edges: Sequence[Edge], groups: Mapping[str, int], *, directed: bool
) -> _Graph:
    place = {name: at for at, name in enumerate(nodes)}
    if len(place) < len(nodes):
        raise InputError("nodes must be different names.")
    if len(nodes) > MAX_NODES or len(edges) > MAX_EDGES:
        raise InputError(
            f"a drawing holds at most {MAX_NODES} nodes and {MAX_EDGES} edges, got {len(nodes)} "
            f"and {len(edges)}. Leave out the weakest, or write a list."
        )
    ends = [end for edge in edges for end in (edge.start, edge.end)]
    if unknown := [name for name in [*ends, *groups] if name not in place]:
        raise InputError(f"{unknown[0]!r:.60} is not one of the nodes.")
    pairs = tuple((place[edge.start], place[edge.end]) for edge in edges)
    sets = {pair if directed else (min(pair), max(pair)) for pair in pairs}
    if len(sets) < len(pairs) or any(start == end for start, end in pairs):
        raise InputError("an edge joins two different nodes, and once.")
    if (finite(strength=[edge.strength or 0.0 for edge in edges]) < 0).any():
        raise InputError("strength must be >= 0.")
    return _Graph(
        names=tuple(nodes),
        labels=_labels(nodes),
        pairs=pairs,
        strengths=tuple(edge.strength for edge in edges),
        groups={place[name]: check.whole(at_least=1, group=n) for name, n in groups.items()},
        directed=directed,
    )


def _labels(names: Sequence[str]) -> tuple[str, ...]:
    """Long names lose their end, or their middle where they would look the same without the end."""
    cut = [shorten(name, _NAME_PX) for name in names]
    alike = Counter(cut)
    return tuple(
        label if alike[label] == 1 or label == name else _without_middle(name)
        for name, label in zip(names, cut, strict=True)
    )


def _without_middle(name: str) -> str:
    end = shorten(name[::-1], _NAME_PX / 2)[-2::-1]
    return shorten(name, _NAME_PX - width_px(end)) + end


def _in_rows(graph: _Graph, joined: Sequence[int]) -> tuple[dict[int, _Spot], dict[Arrow, _Path]]:
    """Parents above children; a tie goes down from the end that the walk meets first."""
    order = {node: at for at, node in enumerate(joined)}
    arrows = {(one, other): (order[one], order[other]) for one, other in graph.pairs}
    if not graph.directed:
        ties = {arrows[pair]: strength for pair, strength in graph.ties().items()}
        met = {node: at for at, node in enumerate(walk(len(joined), ties))}
        arrows = {pair: _by(met, ends) for pair, ends in arrows.items()}
    widths = [graph.width(node) for node in joined]
    capacity = max(3, int(_PAPER_PX / (fmean(widths) + 24))) if widths else 1
    layers = layered(widths, list(arrows.values()), capacity=capacity)
    x = [_MARGIN_PX + middle for middle in layers.x]
    row_of, tops = layers.row_of, _tops(layers, x)
    spots = {
        node: _Spot(x=x[at], y=tops[row_of[at]], width=widths[at]) for node, at in order.items()
    }
    ports = _ports(layers.routes, x, widths)
    paths = {}
    for pair, arrow in arrows.items():
        route = layers.routes[arrow]
        lane = [x[item] for item in route[:-1]] + [ports[arrow]]
        heights = [tops[row_of[item]] for item in route]
        d = _downwards(lane, heights) + ("m-3.5-5.5l3.5 5l3.5-5" if graph.directed else "")
        paths[pair] = _Path(d=d, reach=max(lane))
    return spots, paths


def _by(met: Mapping[int, int], pair: Arrow) -> Arrow:
    one, other = pair
    return pair if met[one] < met[other] else (other, one)


def _tops(layers: Layers, x: Sequence[float]) -> list[float]:
    """The upper side of each row: the further lines go sideways, the more room they have."""
    row_of, room = layers.row_of, [0.0] * len(layers.rows)
    for route in layers.routes.values():
        for upper, lower in pairwise(route):
            room[row_of[lower]] = max(room[row_of[lower]], abs(x[upper] - x[lower]))
    tops = [float(TOP)]
    for sideways in room[1:]:
        tops.append(tops[-1] + _BOX_PX + 30 + min(44.0, sideways * 0.12))
    return tops


def _ports(
    routes: Mapping[Arrow, tuple[int, ...]], x: Sequence[float], widths: Sequence[float]
) -> dict[Arrow, float]:
    """Where each line meets its lower box: side by side, in the order in which they come."""
    coming: dict[int, list[Arrow]] = {}
    for arrow in sorted(routes, key=lambda arrow: x[routes[arrow][-2]]):
        coming.setdefault(arrow[1], []).append(arrow)
    ports = {}
    for lower, arrows in coming.items():
        apart = min(14.0, (widths[lower] - 16) / len(arrows))
        for place, arrow in enumerate(arrows):
            ports[arrow] = x[lower] + apart * (place - (len(arrows) - 1) / 2)
    return ports


def _downwards(lane: Sequence[float], tops: Sequence[float]) -> str:
    """From below the first box to the top of the last, straight beside the boxes in between."""
    d, here = f"M{px(lane[0])} {px(tops[0] + _BOX_PX)}", tops[0] + _BOX_PX
    for (x, to), top in zip(pairwise(lane), tops[1:], strict=True):
        bend = (here + top) / 2
        d += f"C{px(x)} {px(bend)} {px(to)} {px(bend)} {px(to)} {px(top)}"
        here = top
        if top != tops[-1]:
            here = top + _BOX_PX
            d += f"V{px(here)}"
    return d


def _in_ring(graph: _Graph, joined: Sequence[int]) -> tuple[dict[int, _Spot], dict[Arrow, _Path]]:
    """Boxes down the right side of an ellipse and up the left, ties bent towards its middle."""
    order = {node: at for at, node in enumerate(joined)}
    ties = {(order[one], order[other]): known for (one, other), known in graph.ties().items()}
    met = [joined[at] for at in walk(len(joined), ties)]
    right, left = met[: -(-len(met) // 2)], met[-(-len(met) // 2) :][::-1]
    widest = max(graph.width(node) for node in joined)
    deep = (len(right) - 1) * _RING_PITCH_PX / 2
    broad = max(150.0, 0.9 * deep)
    center = _MARGIN_PX + broad + widest
    spots, inner = {}, {}
    for nodes, side in ((right, 1), (left, -1)):
        for place, node in enumerate(nodes):
            down = (place + 0.5) / len(nodes) * 2 - 1
            out = 10 + broad * math.sqrt(1 - down**2)
            width, y = graph.width(node), TOP + place * _RING_PITCH_PX
            spots[node] = _Spot(x=center + side * (out + width / 2), y=y, width=width)
            inner[node] = (center + side * out, y + _BOX_PX / 2)
    paths = {}
    for one, other in graph.pairs:
        (x, y), (to, end) = inner[one], inner[other]
        bend = f"{px(center)} {px((y + end) / 2 * 0.5 + (TOP + deep) * 0.5)}"
        paths[one, other] = _Path(d=f"M{px(x)} {px(y)}Q{bend} {px(to)} {px(end)}", reach=max(x, to))
    return spots, paths


def _loose(graph: _Graph, nodes: Sequence[int], *, below: float | None) -> dict[int, _Spot]:
    """Nodes without a line, side by side below the others."""
    y = float(TOP) if below is None else below + _BOX_PX + 26
    x, spots = _MARGIN_PX, {}
    for node in nodes:
        width = graph.width(node)
        if x > _MARGIN_PX and x + width > _PAPER_PX:
            x, y = _MARGIN_PX, y + _PITCH_PX
        spots[node] = _Spot(x=x + width / 2, y=y, width=width)
        x += width + 14
    return spots
