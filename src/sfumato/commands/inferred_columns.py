"""From noisy counts of shapes and texts to columns: post-processing, by rules that are public.

A class of values counts as seen if its noisy number of rows is above ``SURE`` standard deviations
of the noise: of 20 columns, some empty class is, once in 200 tables. All limits are edges of public
classes, so nothing here is a value of somebody.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import pairwise
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sfumato.commands.column_guess import BINS, LeftOut
from sfumato.schema.columns import (
    MISSING,
    OTHER,
    Boolean,
    Category,
    Column,
    Date,
    DateTime,
    Integer,
    Number,
)
from sfumato.schema.measurement import Measurement
from sfumato.schema.round_numbers import even_edges, outward, round_unit
from sfumato.schema.text_shapes import EITHER, MOST_DECIMALS, PAIRS, SHAPES, SURE_MARKS, Shape

SURE: Final = 5.0
"""Standard deviations above which noise alone comes 3 times in ten millions."""
NEAR: Final = 4.0
"""The same for classes beside one that was seen, of which there are few."""
MOST_TEXTS: Final = 50
"""Texts of a category; the others count as ``(other)``."""

_ABSENT: Final = ("missing", "mark", "sentinel")
_MOSTLY: Final = 0.9
"""The share of what is present that must be of a kind; with less, a column is one of texts."""
_SHARED: Final = 0.2
"""The share of what is present that must be of texts that are shown."""
_SKEWED: Final = 0.75
"""The share in one bin above which even bins are of little use."""
_EVERY_NUMBER: Final = 100
_NARROW: Final = 5
"""Limits of which one is at most so many times the other leave most even bins empty."""
_FEW_DECADES: Final = 3
_TOGETHER: Final = 6
"""Classes beside one that was seen whose rows are looked at together, at most."""
_MOST_BINS_AGAIN: Final = 50
_LEAST_BINS_AGAIN: Final = 5
_ROWS_A_BIN: Final = 6
"""Standard deviations of noise that a bin of the second look should hold in rows, on average."""


@dataclass(frozen=True, kw_only=True)
class Seen:
    """What the noisy shapes say of a column."""

    name: str
    kind: str
    """boolean, number, day, moment or text."""
    present: float
    """About how many rows have a value."""
    shapes: tuple[tuple[Shape, float], ...]
    """The shapes of that kind that were seen, and about how many rows each has."""
    low: float = 0.0
    high: float = 0.0
    """Of numbers; of days and moments as years."""
    sentinels: tuple[str, ...] = ()
    """Numbers that stand for a missing one."""

    @property
    def whole(self) -> bool:
        """Whether numbers are whole ones."""
        return self.kind == "number" and not any(shape.decimals for shape, _ in self.shapes)

    @property
    def narrow(self) -> bool:
        """Whether a second look would tell much more about where the values lie."""
        if self.kind in ("day", "moment"):
            return self.high - self.low < 10 * _FEW_DECADES
        if self.kind != "number" or self.low * self.high <= 0:
            return False
        sizes = sorted((abs(self.low), abs(self.high)))
        return sizes[1] - sizes[0] > 1 and sizes[1] <= _NARROW * sizes[0]

    @property
    def has_few_numbers(self) -> bool:
        """Whether every number may have a code of its own."""
        return self.whole and self.high - self.low < _EVERY_NUMBER

    @property
    def skewed(self) -> bool:
        """Whether even bins would put most rows into one."""
        if self.kind != "number" or self.has_few_numbers:
            return False
        return len(_sizes(self)) > 1 and _largest_share(self) > _SKEWED

    def worth_a_second_look(self, texts: bool) -> bool:
        """Whether limits are to be drawn closer; if no texts need the budget, wherever it helps."""
        if self.kind not in ("number", "day", "moment"):
            return False
        if self.whole and self.high - self.low < BINS:
            return False
        return self.narrow or (not texts and self.low < self.high and not self.skewed)


def first_look(name: str, counts: Measurement) -> Seen | LeftOut:
    """What kind of column the noisy counts of its shapes show."""
    sure = np.flatnonzero(counts.values > SURE * counts.sigma_counts)
    seen = [(SHAPES[place], float(counts.values[place])) for place in sure]
    masses: dict[str, float] = {}
    for shape, rows in seen:
        masses[shape.kind] = masses.get(shape.kind, 0.0) + rows
    present = sum(masses.values()) - sum(masses.get(kind, 0.0) for kind in _ABSENT)
    if not present:
        why = "no class of values has more rows than the noise hides: empty, or too few rows"
        return LeftOut(name=name, why=why)
    if masses.get("long", 0.0) > present / 2:
        return LeftOut(name=name, why="long texts: free text")
    kinds = ("boolean", "number", "day", "moment")
    kind = next((k for k in kinds if masses.get(k, 0.0) >= _MOSTLY * present), "text")
    own = tuple((shape, rows) for shape, rows in seen if shape.kind == kind)
    found = Seen(name=name, kind=kind, present=present, shapes=own)
    if kind in ("boolean", "text"):
        return found
    marks = tuple(str(shape.written) for shape, _ in seen if shape.kind == "sentinel")
    return _with_limits(replace(found, sentinels=marks if kind == "number" else ()), counts)


def _with_limits(seen: Seen, counts: Measurement) -> Seen:
    """The limits of the classes that were seen, and of their neighbors that have rows together."""
    forms = {(shape.decimals, shape.written) for shape, _ in seen.shapes}
    classes: dict[tuple[float, float], float] = {}
    for place, shape in enumerate(SHAPES):
        if shape.kind == seen.kind and (shape.decimals, shape.written) in forms:
            size = shape.low, shape.high
            classes[size] = classes.get(size, 0.0) + float(counts.values[place])
    sizes = list(classes)  # in order, as the shapes are
    own = [sizes.index((shape.low, shape.high)) for shape, _ in seen.shapes]
    values, sigma = np.array(list(classes.values())), counts.sigma_counts * len(forms) ** 0.5
    first = min(own) - _more(values[: min(own)][::-1], sigma)
    last = max(own) + _more(values[max(own) + 1 :], sigma)
    low, high = sizes[first][0], sizes[last][1]
    if not seen.whole:
        return replace(seen, low=low, high=high)
    # a class of whole numbers ends one before the next begins, towards zero on either side
    return replace(seen, low=low + 1 if low < 0 else low, high=high - 1 if high > 0 else high)


def _more(outward: NDArray[np.float64], sigma: float) -> int:
    """How many further classes have rows: the first ones whose sum is sure, and so on."""
    sums = np.cumsum(outward[:_TOGETHER])
    sure = np.flatnonzero(sums > NEAR * sigma * np.sqrt(np.arange(1, sums.size + 1)))
    if not sure.size:
        return 0
    step = int(sure[0]) + 1
    return step + _more(outward[step:], sigma)


def again(seen: Seen, *, sigma: float) -> Column:
    """The bins of a second look inside the limits: fewer where the noise is large."""
    if seen.kind in ("day", "moment"):
        return _calendar_column(seen, step="year")
    bins = int(seen.present / (_ROWS_A_BIN * max(sigma, 1e-9)))
    most = min(max(bins, _LEAST_BINS_AGAIN), _MOST_BINS_AGAIN)
    if seen.whole:
        return _whole_column(seen, most=most)
    edges = even_edges(seen.low, seen.high, most=most)
    return Number(name=seen.name, edges=edges, **_missing(seen))


def second_look(seen: Seen, asked: Column, counts: Measurement) -> Seen:
    """The limits drawn closer, to the bins of a second look, if those that have rows are known."""
    values = counts.values[: asked.size - 1]  # without those that are missing
    sure = np.flatnonzero(values > SURE * counts.sigma_counts)
    if values[sure].sum() < _MOSTLY * seen.present:
        return seen  # too noisy: much lies in bins that can't be told from empty ones
    first, last = int(sure[0]), int(sure[-1])
    if isinstance(asked, Number):
        return replace(seen, low=asked.edges[first], high=asked.edges[last + 1])
    if isinstance(asked, Integer):
        low, high = (asked.low + place * asked.step for place in (first, last + 1))
        return replace(seen, low=low, high=min(high - 1, asked.high))
    return replace(seen, low=seen.low + first, high=seen.low + last)


def column_of(seen: Seen) -> Column:
    """The column that a schema declares for what was seen; not for texts."""
    if seen.kind == "boolean":
        return _boolean(seen)
    if seen.kind in ("day", "moment"):
        years = seen.high - seen.low + 1
        return _calendar_column(
            seen, step="month" if years <= 5 else "quarter" if years <= 12 else "year"
        )
    if not seen.narrow and seen.skewed:
        return _uneven(seen)
    if not seen.whole:
        return _number_column(seen)
    if seen.low == seen.high:  # what lies above, below the noise, counts as one more
        return _whole_column(replace(seen, high=seen.high + 1), most=BINS)
    steps = _whole_column(seen, most=BINS)
    return replace(steps, step=1) if seen.has_few_numbers and isinstance(steps, Integer) else steps


def category_of(seen: Seen, shown: Mapping[str, int]) -> Column | LeftOut:
    """The category of the texts that enough rows share; marks of missing values are such."""
    marks = tuple(mark for mark in SURE_MARKS if mark in shown)
    kept = {text: n for text, n in shown.items() if text not in (*SURE_MARKS, OTHER, MISSING)}
    if sum(kept.values()) < _SHARED * seen.present:
        why = "keys or free text: no text is shared by enough people"
        return LeftOut(name=seen.name, why=why)
    often = sorted(kept, key=lambda text: (-kept[text], text))[:MOST_TEXTS]
    return Category(
        name=seen.name, values=tuple(sorted(often)), other=True, missing=True, missing_texts=marks
    )


def _boolean(seen: Seen) -> Column:
    """In the spelling that was seen, if it was one."""
    spelled = {shape.written for shape, _ in seen.shapes}
    pair = spelled.pop() if len(spelled) == 1 else None
    texts = pair if isinstance(pair, tuple) and pair != PAIRS[0] else None
    return Boolean(name=seen.name, texts=texts, missing=True)


def _whole_column(seen: Seen, *, most: int) -> Column:
    """A code for each number, or for each of at most about so many steps of a round length."""
    low, high = int(seen.low), int(seen.high)
    said: dict[str, Any] = {"name": seen.name, **_missing(seen)}
    if high - low < most:
        return Integer(low=low, high=high, **said)
    unit = max(int(round_unit(Decimal(high - low), most=most)), 1)
    low, high = outward(low, high, unit)
    return Integer(low=low, high=high, step=unit, **said)


def _number_column(seen: Seen) -> Column:
    return _binned(seen, even_edges(seen.low, seen.high, most=BINS))


def _uneven(seen: Seen) -> Column:
    """Bins at the edges of the classes of size, 1, 2, 5 times powers of ten; zero for itself."""
    sizes = _sizes(seen)
    edges = {edge for low, high in sizes for edge in (low, high)}
    if (0.0, 0.0) in sizes and seen.high > 0:
        edges.add(1.0 if seen.whole else 10.0 ** -min(_decimals(seen), MOST_DECIMALS))
    return _binned(seen, tuple(_short(edge) for edge in sorted(edges)))


def _binned(seen: Seen, edges: tuple[float, ...]) -> Column:
    """With the digits after the point that were seen, where bins have room for them."""
    digits = _decimals(seen)
    narrowest = min(right - left for left, right in pairwise(edges))
    fits = digits <= MOST_DECIMALS and narrowest >= 10.0**-digits
    fits &= max(map(abs, edges)) * 10.0**digits < 10.0**15
    decimals = digits if fits else None
    return Number(name=seen.name, edges=edges, decimals=decimals, **_missing(seen))


def _missing(seen: Seen) -> dict[str, Any]:
    return {"missing": True} | ({"missing_texts": seen.sentinels} if seen.sentinels else {})


def _decimals(seen: Seen) -> int:
    return max(shape.decimals for shape, _ in seen.shapes)


def _sizes(seen: Seen) -> dict[tuple[float, float], float]:
    """Rows of each class of size, whatever the digits after the point."""
    sizes: dict[tuple[float, float], float] = {}
    for shape, rows in seen.shapes:
        place = shape.low, shape.high
        sizes[place] = sizes.get(place, 0.0) + rows
    return sizes


def _largest_share(seen: Seen) -> float:
    """The share of rows in the fullest of the even bins, as far as the classes of size tell."""
    edges: NDArray[np.float64] = np.array(even_edges(seen.low, seen.high, most=BINS))
    bins = np.zeros(edges.size)
    for (low, high), rows in _sizes(seen).items():
        first, last = np.searchsorted(edges, (low, high), side="right")
        bins[first - 1 : max(last, first)] += rows / (max(last, first) - first + 1)
    return float(bins.max() / max(bins.sum(), 1e-9))


def _short(edge: float) -> float:
    return int(edge) if edge.is_integer() else edge


def _calendar_column(seen: Seen, *, step: str) -> Column:
    first, last = int(seen.low), int(seen.high)
    said: dict[str, Any] = {"name": seen.name, "missing": True, "step": step}
    if seen.kind == "day":
        return Date(low=date(first, 1, 1), high=date(last, 12, 31), format=_format(seen), **said)
    zone = UTC if any(shape.written for shape, _ in seen.shapes) else None
    low = datetime(first, 1, 1, tzinfo=zone)
    high = datetime(last, 12, 31, 23, 59, 59, tzinfo=zone)
    return DateTime(low=low, high=high, zone="UTC" if zone else None, **said)


def _format(seen: Seen) -> str | None:
    """The format of most days; None for ISO, and the day first where nothing tells."""
    rows: dict[str, float] = {}
    for shape, count in seen.shapes:
        rows[str(shape.written)] = rows.get(str(shape.written), 0.0) + count
    either = rows.pop(EITHER, 0.0)
    slashed = max(("%d/%m/%Y", "%m/%d/%Y"), key=lambda written: rows.get(written, 0.0))
    rows[slashed] = rows.get(slashed, 0.0) + either
    found = max(rows, key=lambda written: rows[written])
    return None if found == "%Y-%m-%d" else found
