"""The columns of a table without a schema, from noisy counts of public classes of its values.

Three looks through ``gate.Scout``: at the number of rows, which says whether the table is large
enough for the others; at the shapes of all columns (``schema.text_shapes``); at the texts of the
columns of texts. All else is post-processing by public rules. Numbers and days get limits at the
edges of public classes, so no value of a person is among them, and no bins: methods find those
(``synthesis.number_bins``).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import TableError
from sfumato.gate import Scout, text_threshold
from sfumato.privacy import guarantees
from sfumato.privacy.guarantees import ZCDP, ApproxDP, ApproxZCDP, zcdp_budget
from sfumato.privacy.sensitivity import Protection, total
from sfumato.publishing import column_rules as rules
from sfumato.publishing.column_rules import LeftOut
from sfumato.publishing.number_rules import MOST_CELLS
from sfumato.schema.calendar import PRECISIONS
from sfumato.schema.columns import MISSING, OTHER, Category, Column, Date, DateTime, Integer, Number
from sfumato.schema.files import FileForm
from sfumato.schema.measurement import Measurement
from sfumato.schema.text_shapes import (
    COMMA,
    DAY_FORMATS,
    EITHER,
    LADDER,
    MOST_DECIMALS,
    PAIRS,
    SHAPES,
    SURE_MARKS,
    Shape,
)

FORM: Final = FileForm(trim=True)
"""How a table without a schema is read: no single value can stop a run that was paid."""
SURE: Final = 5.0
"""Standard deviations above which noise alone comes 3 times in ten millions: there are about a
thousand classes in a column."""
CLEAR: Final = 4.7
"""The same for runs of classes of one column, written in the same way: some thousand."""
NEAR: Final = 3.0
"""The same for classes beside one that is present, of which there are few."""

ROWS_PART: Final = Fraction(1, 100)
"""Of epsilon, for the number of rows: what a refusal costs."""
TEXTS_DELTA: Final = Fraction(1, 2)
"""Of delta, for texts; the rest is for the conversion of rho."""
_FIRST_DELTA: Final = Fraction(1, 1000)
"""Of the delta of texts, charged with the first cost: then later costs may have a delta as well
(``privacy.composition.within``)."""
_KINDS: Final = Fraction(1, 4)
"""Of what inference costs in rho, for the shapes; the rest is for texts."""
TOO_SMALL: Final = 5
"""A table is too small if a text would have to be shared by more than one row in this number."""
SMALL: Final = 50
"""And few values will be shown if it is one row in this number. Both by judgment."""

_ABSENT: Final = ("missing", "mark")
_MOSTLY: Final = 0.9
"""The share of what is present that must be of a kind; with less, a column is one of texts."""
_SHARED: Final = 0.05
"""The share of what is present that must be of texts that are shown."""
_NOTED: Final = 0.005
"""A share of values that do not read as the column's kind, from which on it is said."""
_TOGETHER: Final = 6
"""Classes beside one that is present whose rows are added up, at most."""
_LONGEST_RUN: Final = 8
"""Classes whose rows are added up, where none of them is clear by itself."""
_TAILS_FROM: Final = 100.0
"""Numbers from this size on may have a tail that no class shows, such as a top code: grades, ages
and codes end where they are seen to."""
_TAIL: Final = 3
"""Round classes of such a tail: a factor of ten. Limits may be generous, as methods expect tails
to decline; but what lies outside of them is lost."""
_DECLINE: Final = 4.0
"""Tails fall by this factor from a round class to the next, as ``models.numbers`` expects too."""
_DOUBTFUL: Final = 2.0
"""Standard deviations by which the next class has too few rows for a tail."""
_FADED: Final = 8.0
"""Standard deviations of the last class below which rows may go on, unseen, to the end of its
round class; with more, they would be seen to decline."""
_FADING_FROM: Final = 5.0
"""The same holds for numbers of this size or more: of smaller ones each has a class."""
_COMPUTED_CELLS: Final = 10**6
"""Of numbers with too many digits to count: each is published with about six."""


@dataclass(frozen=True, kw_only=True)
class Costs:
    """What each look costs."""

    rows: ApproxDP
    kinds: ZCDP | ApproxZCDP
    texts: ApproxZCDP
    free_rows: bool
    """Whether the number of rows is public."""

    @classmethod
    def of(cls, whole: ApproxDP, share: Fraction, protect: Protection) -> "Costs":
        """The costs of a share of the rho that ``whole`` leaves after the delta of texts."""
        delta = whole.delta * TEXTS_DELTA
        rho = zcdp_budget(ApproxDP(whole.epsilon, whole.delta - delta)).rho * share
        first, free = delta * _FIRST_DELTA, total(protect) == 0
        kinds = ZCDP(rho * _KINDS)
        return cls(
            rows=ApproxDP(whole.epsilon * ROWS_PART, first),
            kinds=ApproxZCDP(kinds.rho, first) if free else kinds,
            texts=ApproxZCDP(rho * (1 - _KINDS), delta - first),
            free_rows=free,
        )

    @property
    def all(self) -> tuple[ApproxDP | ZCDP | ApproxZCDP, ...]:
        """In the order in which they are charged."""
        return (*(() if self.free_rows else (self.rows,)), self.kinds, self.texts)


@dataclass(frozen=True, kw_only=True)
class InferredColumns:
    """What the looks showed, column by column: to be declared, or left out."""

    columns: Mapping[str, Column | LeftOut]
    about: Mapping[str, Any]
    """How much noise there was, and what happened to values that fit nowhere."""


def infer(scout: Scout, costs: Costs) -> InferredColumns:
    """Three looks, each chosen by what the earlier ones showed."""
    rows = scout.rows(cost=costs.rows)
    threshold = text_threshold(costs.texts, scout.protect, columns=len(scout.names))
    if threshold * TOO_SMALL > rows:
        raise TableError(_too_small(rows, threshold, scout, costs))
    shapes = scout.shapes(cost=costs.kinds)
    known = {name: from_shapes(name, counts) for name, counts in shapes.items()}
    texts = [n for n, each in known.items() if isinstance(each, NoisyColumn) and each.is_text]
    sigma = next(iter(shapes.values())).sigma_counts
    about: dict[str, Any] = {
        "rows": max(0, rows),
        "shapes": {"cost": guarantees.to_json(costs.kinds), "sigma_counts": round(sigma, 2)},
    }
    shown: Mapping[str, Mapping[str, int]] = {}
    if texts:
        shown = scout.texts(texts, cost=costs.texts)
        threshold = text_threshold(costs.texts, scout.protect, columns=len(texts))
        about["texts"] = {
            "cost": guarantees.to_json(costs.texts),
            "columns": texts,
            "shown_from_rows": threshold,
        }
    columns: dict[str, Column | LeftOut] = {}
    for name, each in known.items():
        if isinstance(each, LeftOut):
            columns[name] = each
        elif each.is_text:
            columns[name] = category(each, shown[name], threshold=threshold, rows=rows)
        else:
            columns[name] = declared(each)
    about["notes"] = {
        name: each.note
        for name, each in known.items()
        if isinstance(each, NoisyColumn) and each.note
    }
    return InferredColumns(columns=columns, about=about)


def _too_small(rows: int, threshold: int, scout: Scout, costs: Costs) -> str:
    """That a table is too small, in numbers, and what can be done."""
    exactly = "" if costs.free_rows else "about "
    columns = len(scout.names)
    most = next(
        (
            fewer
            for fewer in range(columns - 1, 0, -1)
            if text_threshold(costs.texts, scout.protect, columns=fewer) * TOO_SMALL <= rows
        ),
        0,
    )
    keep = f", or keep at most {most} of the {columns} columns" if most else ""
    return (
        f"this table is too small to infer a schema from: it has {exactly}{max(0, rows):,} rows, "
        f"and of {columns} columns a text would be shown only if {threshold:,} rows or more share "
        f"it. At most a fifth of the rows may be needed. Declare a schema (`sfumato schema draft` "
        f"proposes one){keep}, or give more epsilon"
    )


def is_small(about: Mapping[str, Any]) -> bool:
    """Whether few values will be shown, by what was found."""
    return bool(about.get("texts", {}).get("shown_from_rows", 0) * SMALL > about["rows"])


@dataclass(frozen=True, kw_only=True)
class NoisyColumn:
    """What the noisy shapes show of a column."""

    name: str
    kind: str
    """number, day, moment or text."""
    present: float
    """About how many rows have a value."""
    sigma_counts: float
    """Of the noise of each class."""
    forms: tuple[tuple[int, str | None], ...] = ()
    """The ways of writing that are present, the most frequent first: digits after the point, and
    format."""
    low: float = 0.0
    """The lower limit of numbers; of days and moments a year."""
    high: float = 0.0
    """The upper limit; of numbers that are not whole, or of days, included."""
    sentinels: tuple[int, ...] = ()
    """Numbers that nearly always stand for a missing one: special codes."""
    note: str = ""
    """What happens to values of other kinds."""

    @property
    def is_text(self) -> bool:
        """Whether its texts have to be counted."""
        return self.kind == "text"

    @property
    def decimals(self) -> int:
        """The most digits after the point; ``MOST_DECIMALS + 1`` stands for more."""
        return max(digits for digits, _ in self.forms)

    @property
    def mark(self) -> str:
        """The decimal mark of numbers."""
        return "," if any(written == COMMA for _, written in self.forms) else "."

    @property
    def whole(self) -> bool:
        """Whether numbers are whole ones."""
        return self.kind == "number" and not self.decimals


def from_shapes(name: str, counts: Measurement) -> NoisyColumn | LeftOut:
    """What kind of column the noisy counts of its shapes show."""
    sigma = counts.sigma_counts
    parts = _parts(counts)
    masses: dict[str, float] = {}
    for (kind, *_), rows in parts.items():
        masses[kind] = masses.get(kind, 0.0) + rows
    masses = {kind: rows for kind, rows in masses.items() if rows > 0}
    present = sum(rows for kind, rows in masses.items() if kind not in _ABSENT)
    if not present:
        why = f"it is empty, or no kind of value has {SURE * sigma:,.0f} rows or more"
        return LeftOut(name=name, why=why)
    grouped = masses.pop("grouped", 0.0)
    if grouped and grouped + masses.get("number", 0.0) >= _MOSTLY * present:
        why = (
            f"about {grouped:,.0f} rows hold numbers with separators of thousands, like 1.234,50. "
            "Only a schema can say how they are written: sfumato schema draft reads them"
        )
        return LeftOut(name=name, why=why)
    masses["text"] = masses.get("text", 0.0) + grouped
    if masses.get("long", 0.0) > present / 2:
        return LeftOut(name=name, why="long texts: free text")
    masses["number"] = masses.get("number", 0.0) + masses.get("sentinel", 0.0)
    kind = next(
        (k for k in ("number", "day", "moment") if masses.get(k, 0) >= _MOSTLY * present), ""
    )
    column = NoisyColumn(name=name, kind=kind or "text", present=present, sigma_counts=sigma)
    if column.is_text:
        return column
    others = 1 - masses[kind] / present
    own = {form[1:]: rows for form, rows in parts.items() if form[0] == kind and rows > 0}
    if kind == "number":
        own, unread = _one_mark(own)
        others += unread / present
    column = replace(
        column,
        forms=tuple(sorted(own, key=lambda form: -own[form])) or ((0, None),),
        note=f"about {others:.1%} of the values can't be read as {kind}s: they count as missing"
        if others > _NOTED
        else "",
    )
    return _with_limits(column, counts)


def _one_mark(
    rows: Mapping[tuple[int, str | None], float],
) -> tuple[dict[tuple[int, str | None], float], float]:
    """The forms of numbers with the decimal mark that most have, and the rows of the others."""
    with_comma = sum(each for (_, written), each in rows.items() if written)
    with_point = sum(each for (digits, written), each in rows.items() if digits and not written)
    comma = with_comma > with_point
    own = {f: each for f, each in rows.items() if f == (0, None) or (f[1] is not None) == comma}
    return own, min(with_comma, with_point)


def _parts(counts: Measurement) -> dict[tuple[str, int, str | None], float]:
    """About how many rows each kind and way of writing has, where that is sure."""
    sigma, rows = counts.sigma_counts, counts.values
    result: dict[tuple[str, int, str | None], float] = {}
    for key, codes in _codes_of_forms().items():
        values, groups = rows[codes], _groups([SHAPES[code] for code in codes])
        sure = np.where(values > SURE * sigma, values, 0.0)
        sums, sizes = np.bincount(groups, values), np.bincount(groups)
        clear = sums > SURE * sigma * np.sqrt(sizes)
        result[key] = float(np.where(clear, sums, np.bincount(groups, sure)).sum())
    return result


def _codes_of_forms() -> dict[tuple[str, int, str | None], list[int]]:
    """The codes of all shapes of a kind and a way of writing, in order."""
    codes: dict[tuple[str, int, str | None], list[int]] = {}
    for code, shape in enumerate(SHAPES):
        written = None if shape.kind == "sentinel" else shape.written
        codes.setdefault((shape.kind, shape.decimals, written), []).append(code)
    return codes


def _groups(shapes: Iterable[Shape]) -> NDArray[np.int64]:
    """The number of the round class, 1, 2, 5 times a power of ten or a decade, of each shape."""
    labels = []
    for shape in shapes:
        if shape.kind == "number":
            nearer = min(abs(shape.low), abs(shape.high))
            label = float(np.searchsorted(LADDER, nearer, side="right")) + 1
            labels.append(np.sign(shape.low + shape.high) * label)
        else:
            labels.append(shape.low // 10 if shape.kind in ("day", "moment") else len(labels))
    return np.cumsum(np.diff(labels, prepend=labels[0]) != 0).astype(np.int64)


def _with_limits(column: NoisyColumn, counts: Measurement) -> NoisyColumn:
    """The limits of the classes that are present, a little further where rows decline."""
    classes: dict[tuple[float, float], float] = {}
    for (kind, digits, written), codes in _codes_of_forms().items():
        if kind == column.kind and (digits, written) in column.forms:
            for code in codes:
                size = SHAPES[code].low, SHAPES[code].high
                if column.whole and not all(map(float.is_integer, map(float, size))):
                    continue  # no whole number is in it
                classes[size] = classes.get(size, 0.0) + float(counts.values[code])
    sizes = list(classes)  # in order, as the shapes are
    values = np.array(list(classes.values()))
    sigma = counts.sigma_counts * len(column.forms) ** 0.5
    groups = _groups(Shape(kind=column.kind, low=low, high=high) for low, high in sizes)  # type: ignore[arg-type]
    reach = np.array([high for _, high in sizes]) * (column.kind == "number")
    last = _end(values, groups, reach, sigma)
    reach = np.array([-low for low, _ in sizes]) * (column.kind == "number")
    mirrored = values[::-1], groups.max() - groups[::-1], reach[::-1]
    first = len(sizes) - 1 - _end(*mirrored, sigma)
    if first > last:  # special codes alone
        first = last = sizes.index((0.0, 0.0))
    low, high = sizes[first][0], sizes[last][1]
    marks: tuple[int, ...] = ()
    if column.kind == "number":
        low, high = _number_limits(low, high, whole=column.whole)
        marks = tuple(
            int(str(shape.written))
            for code, shape in enumerate(SHAPES)
            if shape.kind == "sentinel" and counts.values[code] > SURE * counts.sigma_counts
        )
    return replace(column, low=min([low, *marks]), high=high, sentinels=marks)


def _end(
    values: NDArray[np.float64],
    groups: NDArray[np.int64],
    reach: NDArray[np.float64],
    sigma: float,
) -> int:
    """The index of the last class that belongs to the column; -1 if none is clear.

    Args:
        values: Noisy rows of the classes, in order.
        groups: Of each class the number of its round class.
        reach: How far from zero a class ends; not above 0 where it lies on the other side.
        sigma: The noise of each value.
    """
    ends = np.cumsum(np.bincount(groups)) - 1
    last = -1
    while further := _next(values[last + 1 :], sigma):
        last += further
    if last < 0:
        return last
    last += _more(values[last + 1 :], sigma)
    if reach[last] > _FADING_FROM and values[last] < _FADED * sigma:
        last = int(ends[groups[last]])
    if reach[last] < _TAILS_FROM:
        return last
    beyond = min(groups[last] + (ends[groups[last]] == last), ends.size - 1)
    own = values[: last + 1][groups[: last + 1] == groups[last]].sum()
    rest = values[last + 1 : ends[beyond] + 1]
    if own / _DECLINE > rest.sum() + _DOUBTFUL * sigma * rest.size**0.5:
        return last  # it ends here: else more rows would be seen
    return int(ends[min(groups[last] + _TAIL, ends.size - 1)])


def _next(values: NDArray[np.float64], sigma: float) -> int:
    """The end of the outermost run of classes that is clear, of the shortest runs that are."""
    for width in range(1, min(_LONGEST_RUN, values.size) + 1):
        sums = np.convolve(values, np.ones(width), mode="valid")
        clear = np.flatnonzero(sums > CLEAR * sigma * width**0.5)
        if clear.size:
            return int(clear[-1]) + width
    return 0


def _more(outward: NDArray[np.float64], sigma: float) -> int:
    """How many further classes count as present: up to the first clear sum of rows, and so on."""
    sums = np.cumsum(outward[:_TOGETHER])
    sure = np.flatnonzero(sums > NEAR * sigma * np.sqrt(np.arange(1, sums.size + 1)))
    if not sure.size:
        return 0
    step = int(sure[0]) + 1
    return step + _more(outward[step:], sigma)


def _number_limits(low: float, high: float, *, whole: bool) -> tuple[float, float]:
    """From the ends of classes to limits that somebody could have known before."""
    least = 0.0
    if whole:  # a class ends one before the next begins, towards zero on either side
        low, high = (low + 1 if low < 0 else low), (high - 1 if high > 0 else high)
        least = 1.0 if 1 <= low < _FADING_FROM else 0.0
    if low > least and 2 * low <= high:
        low = least
    if high < 0 and low <= 2 * high:
        high = 0.0
    return low, high


def declared(column: NoisyColumn) -> Column:
    """The column that a schema declares; not for texts. A missing value is always possible."""
    if column.kind == "day":
        first, last = date(int(column.low), 1, 1), date(int(column.high), 12, 31)
        written = _day_format(column)
        form = None if written == DAY_FORMATS[0] else written
        return Date(name=column.name, low=first, high=last, format=form, missing=True)
    if column.kind == "moment":
        return _moments(column)
    if column.whole:
        return _whole_number(column)
    least, largest = Decimal(str(column.low)), Decimal(str(column.high))
    many = column.decimals > MOST_DECIMALS
    fine = Decimal(1).scaleb(-9 if many else -column.decimals)
    step = _resolution(largest - least, fine, _COMPUTED_CELLS if many else MOST_CELLS)
    return Number(
        name=column.name,
        low=_plain(least // step * step),
        high=_plain(-(-largest // step) * step),
        resolution=_plain(step),
        alone=tuple(code for code in column.sentinels if not code % step),
        decimal=column.mark,
        missing=True,
    )


def _whole_number(column: NoisyColumn) -> Integer:
    low, high = int(column.low), int(column.high)
    high += low == high  # of one number alone: what lies above counts as one more
    step = int(_resolution(Decimal(high - low), Decimal(1), MOST_CELLS))
    low = low // step * step
    return Integer(
        name=column.name,
        low=low,
        high=-(-high // step) * step,
        resolution=step,
        alone=tuple(code for code in column.sentinels if not code % step),
        decimal=column.mark,
        missing=True,
    )


def _resolution(span: Decimal, fine: Decimal, cells: int) -> Decimal:
    """The finest power of ten, from ``fine`` on, of which few enough values lie within a span."""
    while span / fine + 2 > cells:
        fine *= 10
    return fine


def _plain(value: Decimal) -> float:
    return int(value) if value == int(value) else float(value)


def _moments(column: NoisyColumn) -> DateTime:
    zone = UTC if any(written for _, written in column.forms) else None
    low = datetime.combine(date(int(column.low), 1, 1), time(), zone)
    high = datetime.combine(date(int(column.high), 12, 31), time(23, 59, 59), zone)
    micros = (high - low).total_seconds() * 10**6
    fits = [each for each in ("second", "minute", "hour") if micros / PRECISIONS[each] < MOST_CELLS]
    return DateTime(
        name=column.name, low=low, high=high, precision=fits[0],  # type: ignore[arg-type]
        zone="UTC" if zone else None, missing=True,
    )  # fmt: skip


def _day_format(column: NoisyColumn) -> str:
    """The format of the days; the day first where nothing shows which comes first."""
    written = [str(each) for _, each in column.forms if each != EITHER]
    return written[0] if written else "%d/%m/%Y"


def category(
    column: NoisyColumn, shown: Mapping[str, int], *, threshold: int, rows: int
) -> Column | LeftOut:
    """The texts that are shared; any other is ``(other)``, unless it means a missing value."""
    marks = tuple(mark for mark in SURE_MARKS if mark in shown)
    texts = {text: n for text, n in shown.items() if text not in {*marks, OTHER, MISSING}}
    if not texts:
        why = f"no text is shared by {threshold:,} or more of about {max(0, rows):,} rows"
        return LeftOut(name=column.name, why=why)
    if (share := sum(texts.values()) / column.present) < _SHARED:
        why = f"only {share:.1%} of the rows have a text that {threshold:,} rows or more share"
        return LeftOut(name=column.name, why=why)
    rest = column.present - sum(texts.values())
    pair = next((pair for pair in _spelled_pairs() if set(pair) == set(texts)), None)
    if pair is not None and rest < NEAR * column.sigma_counts:
        return rules.boolean(pair, name=column.name, missing=True, missing_texts=marks)
    return Category(
        name=column.name,
        values=rules.frequent(texts),
        other=True,
        missing=True,
        missing_texts=marks,
    )


def _spelled_pairs() -> list[tuple[str, str]]:
    spellings = (str.lower, str.capitalize, str.upper)
    return [(to(a), to(b)) for a, b in PAIRS for to in spellings]
