"""Drawn rows made to keep the rules between columns: mathematics of arrays, on drawn rows only.

First rows that break a rule trade single values with rows of about the same values; what is left
is paired again, by rank, among a few such rows. Both leave every single column as it was drawn.
Rows near each other are taken because the smaller of two intervals around one center lies inside
the larger: a row that breaks ``a <= b`` and one that keeps it by more than that both keep it when
they trade a value. What is left is moved to the nearest values that keep the rules; and a row that
would become impossible by that takes the columns concerned from another row.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sfumato.randomness import Rng
from sfumato.schema.axes import Points
from sfumato.schema.rules import Rule, RuleOrder, tied_columns

Mask = NDArray[np.bool_]
Indices = NDArray[np.int64]
Possible = Callable[[Mapping[str, Points], Indices], Mask]
"""Whether rows, given by their indices and the points of columns of rules, are not impossible."""

FIRST_BLOCK: Final = 2
"""Rows that are paired again together at first; then ``GROWTH`` times as many."""
GROWTH: Final = 4
"""By how much blocks, and the distances of partners, grow from one pass to the next."""
TRIES: Final = 12
"""Partners that each column of a row is offered at each distance."""
WORTH: Final = 100
"""A block is paired again if at least one row in this number breaks a rule; fewer are moved."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Moved:
    """What a repair did to some rows."""

    rows: int
    broke: int
    """Rows that broke a rule as they were drawn."""
    changed: int
    """Rows of which some value is another one now: partners of an exchange too."""
    columns: Mapping[str, int]
    """For each column the most rows by which the number of values up to any value changed."""

    def __add__(self, other: "Moved") -> "Moved":
        """Of both parts; of columns an upper bound."""
        return Moved(
            rows=self.rows + other.rows,
            broke=self.broke + other.broke,
            changed=self.changed + other.changed,
            columns={name: most + other.columns[name] for name, most in self.columns.items()},
        )


@dataclass(kw_only=True, eq=False)
class RuledRows:
    """Rows as points of the columns that rules compare, while they are repaired."""

    order: RuleOrder
    points: dict[str, Points]
    present: Mapping[str, Mask]
    """Where a value is missing, or other, there is no point and no rule is broken."""
    possible: Possible | None = None
    """None where no combination is declared impossible."""
    watched: frozenset[str] = frozenset()
    """Columns of rules that such combinations name."""
    broken: NDArray[np.int64] = field(init=False)
    """The number of rules that each row breaks as it was drawn."""

    def __post_init__(self) -> None:
        self.broken = self.breaks(self.order.rules, None)

    def breaks(self, rules: tuple[Rule, ...], rows: Indices | None) -> NDArray[np.int64]:
        """How many of some rules each row breaks."""
        size = len(self.points[self.order.names[0]]) if rows is None else rows.size
        total = np.zeros(size, dtype=np.int64)
        for rule in rules:
            left, right = self._of(rule.left, rows), self._of(rule.right, rows)
            wrong = left[0] >= right[0] if rule.strict else left[0] > right[0]
            total += wrong & left[1] & right[1]
        return total

    def _of(self, name: str, rows: Indices | None) -> tuple[Points, Mask]:
        points, present = self.points[name], self.present[name]
        return (points, present) if rows is None else (points[rows], present[rows])


def repair(rows: RuledRows, *, rng: Rng) -> Indices:
    """Make all rows keep all rules, in place.

    Returns the rows that became impossible by that: they keep the rules, and must take all columns
    concerned from others.
    """
    _pair_nearby(rows, rng)
    wrong = np.flatnonzero(rows.breaks(rows.order.rules, None))
    if wrong.size:
        _move(rows, wrong)
    if rows.possible is None:
        return wrong[:0]
    return wrong[~rows.possible(rows.points, wrong)]


def column_shift(before: Points, after: Points, present: tuple[Mask, Mask]) -> int:
    """The most rows by which the number of values up to any value changed: Kolmogorov's distance.

    >>> there = np.array([True, True])
    >>> column_shift(np.array([1, 2]), np.array([2, 1]), (there, there))
    0
    """
    old, new = np.sort(before[present[0]]), np.sort(after[present[1]])
    ends = np.concatenate([old, new])
    if not ends.size:
        return 0
    shift = np.searchsorted(old, ends, side="right") - np.searchsorted(new, ends, side="right")
    return max(int(np.abs(shift).max()), abs(old.size - new.size))


def _pair_nearby(rows: RuledRows, rng: Rng) -> None:
    """Pair the values of columns again among rows near each other, where some break a rule.

    Each pattern of missing values is paired by itself, so that these stay where they are.
    """
    rules = rows.order.rules
    pattern = np.zeros(rows.broken.size, dtype=np.int64)
    for name in sorted({name for rule in rules for name in rule.names}):
        _, pattern = np.unique(pattern * 2 + rows.present[name], return_inverse=True)
    for own in np.unique(pattern[rows.broken > 0]).tolist():
        members = np.flatnonzero(pattern == own)
        one = members[0]
        active = [each for each in rules if all(rows.present[name][one] for name in each.names)]
        for group in tied_columns(active):
            names = [name for name in rows.order.names if name in group]
            within = tuple(rule for rule in active if rule.left in group)
            _pair_group(rows, names, within, members, rng)


def _pair_group(
    rows: RuledRows, names: list[str], rules: tuple[Rule, ...], members: Indices, rng: Rng
) -> None:
    """Pair one group of columns by rank in blocks of rows of about the same mean value.

    Blocks grow around rows that still break a rule, so that what is paired again keeps its ties to
    all columns at the resolution of a block; up to all rows where many are left.
    """
    mean = sum(rows.points[name][members] / len(names) for name in names)
    shuffled = rng.permutation(members.size)
    line = members[shuffled[np.argsort(np.asarray(mean)[shuffled], kind="stable")]]
    _exchange(rows, names, rules, line, rng)
    size = FIRST_BLOCK
    while size < GROWTH * line.size:
        whole = line.size // size * size
        _pair_blocks(rows, names, rules, line[:whole].reshape(-1, size))
        _pair_blocks(rows, names, rules, line[whole:].reshape(1, -1))
        size *= GROWTH


def _exchange(
    rows: RuledRows, names: list[str], rules: tuple[Rule, ...], line: Indices, rng: Rng
) -> None:
    """Let rows that break a rule trade a value with a near one, if both break rules by less then.

    What two rows trade is otherwise as it was drawn: unlike a pairing by rank this ties no columns
    to each other more than the rules say. Farther partners are tried where near ones did not help.
    """
    rank, reach = np.empty(rows.broken.size, dtype=np.int64), FIRST_BLOCK
    rank[line] = np.arange(line.size)
    while reach < GROWTH * line.size:
        for turn in range(TRIES * len(names)):
            wrong = line[rows.breaks(rules, line) > 0]
            if not wrong.size:
                return
            near = min(reach, line.size // 2)
            first = np.clip(rank[wrong] - near, 0, max(line.size - 1 - 2 * near, 0))
            other = line[first + rng.below(min(2 * near + 1, line.size), wrong.size)]
            partners, index = np.unique(other, return_index=True)
            chosen = index[~np.isin(partners, wrong)]  # each once, and none that breaks a rule
            _trade(rows, names[turn % len(names)], rules, wrong[chosen], other[chosen])
        reach *= GROWTH


def _trade(
    rows: RuledRows, name: str, rules: tuple[Rule, ...], one: Indices, other: Indices
) -> None:
    """Exchange the values of a column in pairs of rows that break rules by less then."""
    points, both = rows.points[name], np.stack([one, other], axis=1)
    _, before = _broken_in(rows, rules, both)
    points[one], points[other] = points[other], points[one]
    _, after = _broken_in(rows, rules, both)
    bad = after >= before
    if rows.possible is not None and name in rows.watched:
        bad |= ~rows.possible(rows.points, one) | ~rows.possible(rows.points, other)
    back, there = one[bad], other[bad]
    points[back], points[there] = points[there], points[back]


def _pair_blocks(
    rows: RuledRows, names: list[str], rules: tuple[Rule, ...], blocks: Indices
) -> None:
    """Pair by rank inside each block in which enough rows break a rule, if that is nearer to them.

    The first column stays where it is: it keeps its ties to columns that no rule compares.
    """
    before, _ = _broken_in(rows, rules, blocks)
    blocks = blocks[(before > 0) & (before * WORTH >= blocks.shape[1])]
    if not blocks.size:
        return
    order = np.argsort(rows.points[names[0]][blocks], axis=1, kind="stable")
    blocks = np.take_along_axis(blocks, order, axis=1)
    old = {name: rows.points[name][blocks] for name in names}
    before, far = _broken_in(rows, rules, blocks)
    for name in names[1:]:
        rows.points[name][blocks] = np.sort(old[name], axis=1)
    after, near = _broken_in(rows, rules, blocks)
    bad = (near > far) | ((near == far) & (after >= before))
    if rows.possible is not None and rows.watched.intersection(names):
        bad |= ~rows.possible(rows.points, blocks.reshape(-1)).reshape(blocks.shape).all(axis=1)
    for name in names[1:]:
        rows.points[name][blocks[bad]] = old[name][bad]


def _broken_in(
    rows: RuledRows, rules: tuple[Rule, ...], blocks: Indices
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """How many rules are broken in the rows of each block, and by how much together."""
    number = np.zeros(len(blocks), dtype=np.int64)
    excess = np.zeros(len(blocks))
    for rule in rules:
        left, right = rows.points[rule.left][blocks], rows.points[rule.right][blocks]
        wrong = (left >= right) if rule.strict else (left > right)
        number += np.count_nonzero(wrong, axis=1)
        excess += np.where(wrong, left - 1.0 * right, 0.0).sum(axis=1)
    return number, excess


def _move(rows: RuledRows, wrong: Indices) -> None:
    """Move values to the nearest that keep the rules: up or down, whatever changes fewer values.

    All values are first brought where the limits of the others leave room; the least of such is
    found along the rules, the largest against them. Then a larger left value lifts the right one,
    or a smaller right value lowers the left one; of equal changes every second row does each, so
    that no column bears all of it.
    """
    present = {name: rows.present[name][wrong] for name in rows.order.names}
    given = {name: rows.points[name][wrong] for name in rows.order.names}
    axes = rows.order.axes
    lows = {n: np.full(wrong.size, axis.first, given[n].dtype) for n, axis in axes.items()}
    highs = {n: np.full(wrong.size, axis.last, given[n].dtype) for n, axis in axes.items()}
    _lift(rows.order, lows, present)
    _lower(rows.order, highs, present)
    inside = {n: np.clip(points, lows[n], highs[n]) for n, points in given.items()}
    up = {name: points.copy() for name, points in inside.items()}
    down = {name: points.copy() for name, points in inside.items()}
    _lift(rows.order, up, present)
    _lower(rows.order, down, present)
    for group in rows.order.groups:
        up_number, up_far = _cost(group, given, up, present)
        down_number, down_far = _cost(group, given, down, present)
        even = np.arange(wrong.size) % 2 == 0
        equal = (up_far < down_far) | ((up_far == down_far) & even)
        lifted = (up_number < down_number) | ((up_number == down_number) & equal)
        needed = rows.breaks(tuple(r for r in rows.order.rules if r.left in group), wrong) > 0
        for name in group:
            new = np.where(lifted, up[name], down[name])
            changed = needed & present[name]
            rows.points[name][wrong[changed]] = new[changed]


def _lift(order: RuleOrder, points: dict[str, Points], present: Mapping[str, Mask]) -> None:
    """Raise right values to the next that is allowed above the left ones."""
    for rule in order.rules:
        both = present[rule.left] & present[rule.right]
        bound = order.axes[rule.right].at_least(points[rule.left], strict=rule.strict)
        lifted = np.maximum(points[rule.right], bound)
        points[rule.right] = np.where(both, lifted, points[rule.right])


def _lower(order: RuleOrder, points: dict[str, Points], present: Mapping[str, Mask]) -> None:
    """Lower left values to the next that is allowed below the right ones."""
    for rule in order.downwards:
        both = present[rule.left] & present[rule.right]
        bound = order.axes[rule.left].at_most(points[rule.right], strict=rule.strict)
        lowered = np.minimum(points[rule.left], bound)
        points[rule.left] = np.where(both, lowered, points[rule.left])


def _cost(
    group: frozenset[str],
    given: Mapping[str, Points],
    made: Mapping[str, Points],
    present: Mapping[str, Mask],
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """How many values change in each row, and by how much together."""
    apart = {
        name: np.where(present[name], np.abs(made[name] - 1.0 * given[name]), 0.0)
        for name in sorted(group)
    }
    number = sum((far > 0).astype(np.int64) for far in apart.values())
    return np.asarray(number), np.asarray(sum(apart.values()))
