"""Where the boxes of a network stand: parents above children, few crossings, nothing overlaps.

The layered method of Sugiyama, Tagawa, Toda 1981 ("Methods for visual understanding of hierarchical
system structures"): rows, an order inside each row, coordinates. A line that passes a row has a
place in it like a box, so that no line runs through a box; lines from one box share these places.
"""

from bisect import bisect_right, insort
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean
from typing import Final

from sfumato.errors import InputError

Arrow = tuple[int, int]
"""From a node above to a node below it; nodes are numbered 0, 1, ..."""

TRUNK_PX: Final = 6.0
_GAP_PX: Final = 14.0
_ORDER_SWEEPS: Final = 24
_PLACE_SWEEPS: Final = 16
_STRAIGHT: Final = 6.0  # how much more a long line resists a bend than a box resists a shift


@dataclass(frozen=True, kw_only=True, slots=True)
class Layers:
    """Places of nodes, and of the points where lines pass a row (numbered after the nodes)."""

    rows: tuple[tuple[int, ...], ...]
    """From top to bottom, each from left to right."""
    x: tuple[float, ...]
    """The middle of each node and point."""
    routes: Mapping[Arrow, tuple[int, ...]]
    """What each arrow passes, row by row, from its upper node to its lower one."""

    @property
    def row_of(self) -> dict[int, int]:
        """The row of each node and point."""
        return {item: place for place, row in enumerate(self.rows) for item in row}


def layered(widths: Sequence[float], arrows: Sequence[Arrow], *, capacity: int) -> Layers:
    """Rows of at most ``capacity`` boxes of these widths, every arrow from a row to a lower one.

    Raises:
        InputError: the arrows run in a circle.
    """
    routes, row_of = _routed(_rows_of(len(widths), arrows, capacity), arrows)
    rows = _spread(row_of, nodes=len(widths))
    links = _linked(routes, items=len(row_of))
    rows = _ordered(rows, links)
    sizes = [*widths, *[TRUNK_PX] * (len(row_of) - len(widths))]
    x = _placed(rows, links, sizes, nodes=len(widths))
    return Layers(rows=tuple(tuple(row) for row in rows), x=tuple(x), routes=routes)


def depths(nodes: int, arrows: Sequence[Arrow]) -> list[int]:
    """The length of the longest path that ends in each node.

    Raises:
        InputError: the arrows run in a circle.

    >>> depths(3, [(0, 1), (1, 2), (0, 2)])
    [0, 1, 2]
    """
    found, waiting = [0] * nodes, [0] * nodes
    below: list[list[int]] = [[] for _ in range(nodes)]
    for upper, lower in arrows:
        below[upper].append(lower)
        waiting[lower] += 1
    ready = [node for node in range(nodes) if not waiting[node]]
    for node in ready:  # grows while it is read
        for lower in below[node]:
            found[lower] = max(found[lower], found[node] + 1)
            waiting[lower] -= 1
            if not waiting[lower]:
                ready.append(lower)
    if len(ready) < nodes:
        raise InputError("the arrows run in a circle: a network has no cycles.")
    return found


def walk(nodes: int, ties: Mapping[Arrow, float]) -> list[int]:
    """All nodes, each after the one that ties it most: down the branches of the strongest forest.

    Kruskal 1956, "On the shortest spanning subtree of a graph"; every tree starts at its hub, the
    node with the largest sum of strengths.

    >>> walk(4, {(0, 1): 0.1, (1, 2): 0.5, (0, 2): 0.2})
    [2, 1, 0, 3]
    """
    tree, weight = list(range(nodes)), [0.0] * nodes
    beside: list[list[int]] = [[] for _ in range(nodes)]
    for (one, other), strength in sorted(ties.items(), key=lambda tie: (-tie[1], tie[0])):
        weight[one] += strength
        weight[other] += strength
        old, new = tree[one], tree[other]
        if old != new:
            tree = [new if name == old else name for name in tree]
            beside[one].append(other)
            beside[other].append(one)
    seen: dict[int, None] = {}
    stack = sorted(range(nodes), key=lambda node: (weight[node], -node))
    while stack:
        node = stack.pop()
        if node not in seen:
            seen[node] = None
            stack.extend(reversed(beside[node]))
    return list(seen)


def _rows_of(nodes: int, arrows: Sequence[Arrow], capacity: int) -> list[int]:
    """The first row below all parents that still has room."""
    depth = depths(nodes, arrows)
    above: list[list[int]] = [[] for _ in range(nodes)]
    for upper, lower in arrows:
        above[lower].append(upper)
    rows, taken = [0] * nodes, [0] * (nodes + 1)
    for node in sorted(range(nodes), key=lambda node: (depth[node], node)):
        row = max((rows[upper] + 1 for upper in above[node]), default=0)
        while taken[row] >= capacity:
            row += 1
        rows[node] = row
        taken[row] += 1
    return rows


def _routed(
    row_of: Sequence[int], arrows: Sequence[Arrow]
) -> tuple[dict[Arrow, tuple[int, ...]], list[int]]:
    """What each arrow passes, and the rows of all nodes and points.

    From an upper node one line goes down, and the lines to its lower nodes branch off from it.
    """
    rows, routes = list(row_of), {}
    points: dict[tuple[int, int], int] = {}
    for upper, lower in arrows:
        passed = []
        for row in range(row_of[upper] + 1, row_of[lower]):
            if (upper, row) not in points:
                points[upper, row] = len(rows)
                rows.append(row)
            passed.append(points[upper, row])
        routes[upper, lower] = (upper, *passed, lower)
    return routes, rows


def _spread(row_of: Sequence[int], *, nodes: int) -> list[list[int]]:
    """The first order: nodes as they come, lines that pass a row in the middle of it."""
    rows: list[list[int]] = [[] for _ in range(max(row_of, default=-1) + 1)]
    for node in range(nodes):
        rows[row_of[node]].append(node)
    half = [len(row) // 2 for row in rows]
    for point in range(nodes, len(row_of)):
        rows[row_of[point]].insert(half[row_of[point]], point)
    return rows


@dataclass(frozen=True, kw_only=True, slots=True)
class _Links:
    """What each node or point is connected with, in the row above and in the row below."""

    above: list[list[int]]
    below: list[list[int]]


def _linked(routes: Mapping[Arrow, tuple[int, ...]], *, items: int) -> _Links:
    pairs = {pair: None for route in routes.values() for pair in pairwise(route)}
    links = _Links(above=[[] for _ in range(items)], below=[[] for _ in range(items)])
    for upper, lower in pairs:
        links.below[upper].append(lower)
        links.above[lower].append(upper)
    return links


def _ordered(rows: list[list[int]], links: _Links) -> list[list[int]]:
    """Sorted by the mean place of the neighbors, downwards and upwards in turn; the best is kept.

    The barycenter heuristic of the same paper.
    """
    best, fewest = rows, _crossings(rows, links)
    for sweep in range(_ORDER_SWEEPS):
        down = sweep % 2 == 0
        rows = _swept(rows, links.above if down else links.below, down=down)
        crossings = _crossings(rows, links)
        if crossings < fewest:
            best, fewest = rows, crossings
    return best


def _swept(
    rows: list[list[int]], beside: Sequence[Sequence[int]], *, down: bool
) -> list[list[int]]:
    place = {item: float(at) for row in rows for at, item in enumerate(row)}
    swept = []
    for row in rows if down else reversed(rows):
        means = {
            item: fmean(place[other] for other in beside[item]) if beside[item] else place[item]
            for item in row
        }
        row = sorted(row, key=means.__getitem__)
        place.update({item: float(at) for at, item in enumerate(row)})
        swept.append(row)
    return swept if down else swept[::-1]


def _crossings(rows: Sequence[Sequence[int]], links: _Links) -> int:
    """Pairs of lines that change sides between two rows."""
    place = {item: at for row in rows for at, item in enumerate(row)}
    crossings = 0
    for row in rows:
        ends: list[int] = []
        for item in row:
            lower = sorted(place[other] for other in links.below[item])
            crossings += sum(len(ends) - bisect_right(ends, end) for end in lower)
            for end in lower:
                insort(ends, end)
    return crossings


def _placed(
    rows: Sequence[Sequence[int]], links: _Links, sizes: Sequence[float], *, nodes: int
) -> list[float]:
    """Below and above the neighbors where possible, no closer than the boxes allow."""
    x = [0.0] * len(sizes)
    for row in rows:
        _settle(row, [0.0] * len(row), [1.0] * len(row), sizes, x)
    for sweep in range(_PLACE_SWEEPS):
        down = sweep % 2 == 0
        for row in rows if down else reversed(rows):
            pulls = [links.above[item] if down else links.below[item] for item in row]
            _pull(row, pulls, sizes, x, nodes=nodes)
    for row in rows:  # at last both sides, but a long line goes on as straight as it came
        pulls = [
            [above for above in links.above[item] if min(item, above) >= nodes]
            or [*links.above[item], *links.below[item]]
            for item in row
        ]
        _pull(row, pulls, sizes, x, nodes=nodes)
    left = min((x[item] - sizes[item] / 2 for item in range(len(sizes))), default=0.0)
    return [middle - left for middle in x]


def _pull(
    row: Sequence[int],
    pulls: Sequence[Sequence[int]],
    sizes: Sequence[float],
    x: list[float],
    *,
    nodes: int,
) -> None:
    """Towards the mean of what pulls each, or where it is."""
    pairs = zip(row, pulls, strict=True)
    wanted = [fmean(x[other] for other in by) if by else x[item] for item, by in pairs]
    weights = [_STRAIGHT if item >= nodes else 1.0 for item in row]
    _settle(row, wanted, weights, sizes, x)


def _settle(
    row: Sequence[int],
    wanted: Sequence[float],
    weights: Sequence[float],
    sizes: Sequence[float],
    x: list[float],
) -> None:
    """Nearest to the wanted places in weighted squares, with the order and the gaps kept.

    With the gaps subtracted this is isotonic regression, solved by pooling neighbors that are in
    the wrong order (Ayer et al. 1955, "An empirical distribution function for sampling").
    """
    shifts = [0.0]
    for one, other in pairwise(row):
        shifts.append(shifts[-1] + (sizes[one] + sizes[other]) / 2 + _GAP_PX)
    pools: list[tuple[float, float, int]] = []  # mean, weight, members
    for want, weight, shift in zip(wanted, weights, shifts, strict=True):
        mean, total, members = want - shift, weight, 1
        while pools and pools[-1][0] > mean:
            before, heavy, more = pools.pop()
            mean = (before * heavy + mean * total) / (heavy + total)
            total, members = heavy + total, members + more
        pools.append((mean, total, members))
    settled = [mean for mean, _, members in pools for _ in range(members)]
    for item, place, shift in zip(row, settled, shifts, strict=True):
        x[item] = place + shift
