"""The columns of a table without a schema, from noisy counts of public classes of its values.

Two looks through ``gate.Scout``: at the shapes of all columns (``schema.text_shapes``); then at the
texts of columns of texts, and once more at numbers and days whose limits are still wide. All else
is post-processing by public rules. A class of values counts as present if its noisy number of rows
is above ``SURE`` standard deviations of the noise: of 20 columns, some empty class is, once in 200
tables. All limits are edges of public classes, so no value of a person is among them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date
from fractions import Fraction
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sfumato.gate import Scout, thresholding_of
from sfumato.privacy import guarantees
from sfumato.privacy.guarantees import ApproxDP
from sfumato.publishing import column_rules as rules
from sfumato.publishing.column_rules import BINS, EVERY_NUMBER, LeftOut
from sfumato.schema.columns import MISSING, OTHER, Category, Column, Date, DateTime, Integer, Number
from sfumato.schema.files import FileForm
from sfumato.schema.measurement import Measurement
from sfumato.schema.schema import Schema
from sfumato.schema.text_shapes import EITHER, MOST_DECIMALS, SHAPES, SURE_MARKS, Shape

FORM: Final = FileForm(trim=True)
"""How a table without a schema is read: no single value can stop a run that was paid."""
SURE: Final = 5.0
"""Standard deviations above which noise alone comes 3 times in ten millions."""
NEAR: Final = 4.0
"""The same for classes beside one that is present, of which there are few."""

_SHAPES: Final = (Fraction(2, 5), Fraction(1, 4))
"""The shares of epsilon and of delta that pay for the shapes of all columns."""
_TEXT_WEIGHT: Final = 3
"""How much more of the rest a column of texts gets than one that is measured again."""
_ABSENT: Final = ("missing", "mark", "sentinel")
_MOSTLY: Final = 0.9
"""The share of what is present that must be of a kind; with less, a column is one of texts."""
_SHARED: Final = 0.2
"""The share of what is present that must be of texts that are shown."""
_NARROW: Final = 5
"""Limits of which one is at most 5 times the other leave most even bins empty."""
_NARROW_YEARS: Final = 30
"""Days within fewer years than this, three decades, lie in few of the classes of a decade each."""
_TOGETHER: Final = 6
"""Classes beside one that is present whose rows are added up, at most."""
_BINS_AGAIN: Final = (5, 50)
"""The fewest and the most bins of a second measurement."""
_ROWS_A_BIN: Final = 6
"""Standard deviations of noise that a bin of the second measurement should hold, on average."""


@dataclass(frozen=True, kw_only=True)
class InferredColumns:
    """What two looks showed, column by column: to be declared, or left out."""

    columns: Mapping[str, Column | LeftOut]
    about: Mapping[str, Any]
    """How much noise there was."""


def infer(scout: Scout) -> InferredColumns:
    """Two looks, of which the second is chosen by what the first one showed."""
    first, rest = _first_and_rest(scout.budget)
    shapes = scout.shapes(cost=first)
    known = {name: from_shapes(name, counts) for name, counts in shapes.items()}
    columns: dict[str, Column | LeftOut] = {}
    columns |= {name: each for name, each in known.items() if isinstance(each, LeftOut)}
    usable = {name: each for name, each in known.items() if isinstance(each, NoisyColumn)}
    texts = {name: each for name, each in usable.items() if each.kind == "text"}
    wide = {name: each for name, each in usable.items() if each.needs_finer_limits(bool(texts))}
    for_texts, for_limits = _divided(rest, _TEXT_WEIGHT * len(texts), len(wide))
    about: dict[str, Any] = {
        "shapes": {
            "cost": guarantees.to_json(first),
            "sigma_counts": round(next(iter(shapes.values())).sigma_counts, 2),
        }
    }
    if for_limits is not None:
        usable |= _with_finer_limits(scout, wide, for_limits)
        about["limits"] = {"cost": guarantees.to_json(for_limits), "columns": list(wide)}
    columns |= {name: declared(each) for name, each in usable.items() if name not in texts}
    if for_texts is not None:
        shown = scout.texts(list(texts), cost=for_texts)
        columns |= {name: category(each, shown[name]) for name, each in texts.items()}
        spec = thresholding_of(for_texts, scout.protect, columns=len(texts))
        about["texts"] = {
            "cost": guarantees.to_json(for_texts),
            "columns": list(texts),
            "shown_above_rows": spec.reach,
        }
    return InferredColumns(columns={name: columns[name] for name in scout.names}, about=about)


def _first_and_rest(budget: ApproxDP) -> tuple[ApproxDP, ApproxDP]:
    epsilon, delta = budget.epsilon * _SHAPES[0], budget.delta * _SHAPES[1]
    return ApproxDP(epsilon, delta), ApproxDP(budget.epsilon - epsilon, budget.delta - delta)


def _divided(rest: ApproxDP, *weights: int) -> list[ApproxDP | None]:
    """The rest in proportion to weights; nothing for a weight of 0."""
    shares = [Fraction(weight, sum(weights)) if weight else None for weight in weights]
    return [ApproxDP(rest.epsilon * part, rest.delta * part) if part else None for part in shares]


def _with_finer_limits(
    scout: Scout, wide: Mapping[str, "NoisyColumn"], cost: ApproxDP
) -> dict[str, "NoisyColumn"]:
    sigma = scout.sigma_of(cost, tables=len(wide))
    bins = tuple(finer_bins(each, sigma=sigma) for each in wide.values())
    schema = Schema(columns=bins, file=FORM)
    counts = scout.measure(schema, cost=cost)
    return {name: finer_limits(each, schema[name], counts[name]) for name, each in wide.items()}


@dataclass(frozen=True, kw_only=True)
class NoisyColumn:
    """What the noisy shapes show of a column."""

    name: str
    kind: str
    """boolean, number, day, moment or text."""
    present: float
    """About how many rows have a value."""
    shapes: tuple[tuple[Shape, float], ...]
    """The shapes of that kind that are present, and about how many rows each has."""
    low: float = 0.0
    """The lower limit of numbers; of days and moments a year."""
    high: float = 0.0
    """The upper limit."""
    sentinels: tuple[str, ...] = ()
    """Numbers that stand for a missing one."""

    @property
    def decimals(self) -> int:
        """The most digits after the point; ``MOST_DECIMALS + 1`` stands for more."""
        return max(shape.decimals for shape, _ in self.shapes)

    @property
    def whole(self) -> bool:
        """Whether numbers are whole ones."""
        return self.kind == "number" and not self.decimals

    @property
    def sizes(self) -> dict[tuple[float, float], float]:
        """Rows of each class of size, whatever the digits after the point."""
        sizes: dict[tuple[float, float], float] = {}
        for shape, rows in self.shapes:
            sizes[shape.low, shape.high] = sizes.get((shape.low, shape.high), 0.0) + rows
        return sizes

    @property
    def narrow(self) -> bool:
        """Whether a second measurement would show much better where the values lie."""
        if self.kind in ("day", "moment"):
            return self.high - self.low < _NARROW_YEARS
        if self.kind != "number" or self.low * self.high <= 0:
            return False
        sizes = sorted((abs(self.low), abs(self.high)))
        return sizes[1] - sizes[0] > 1 and sizes[1] <= _NARROW * sizes[0]

    @property
    def skewed(self) -> bool:
        """Whether even bins would put most rows into one."""
        if self.kind != "number" or (self.whole and self.high - self.low < EVERY_NUMBER):
            return False
        edges = rules.even_edges(self.low, self.high)
        return len(self.sizes) > 1 and rules.fullest_share(edges, self.sizes) > rules.SKEWED

    def needs_finer_limits(self, texts: bool) -> bool:
        """Whether to measure once more; if no texts need the budget, wherever it helps."""
        if self.kind not in ("number", "day", "moment"):
            return False
        if self.whole and self.high - self.low < BINS:
            return False
        return self.narrow or (not texts and self.low < self.high and not self.skewed)

    @property
    def common(self) -> dict[str, Any]:
        """What every column declares: a missing value is always possible."""
        return {"name": self.name, "missing": True, "missing_texts": self.sentinels}


def from_shapes(name: str, counts: Measurement) -> NoisyColumn | LeftOut:
    """What kind of column the noisy counts of its shapes show."""
    sure = np.flatnonzero(counts.values > SURE * counts.sigma_counts)
    shapes = [(SHAPES[code], float(counts.values[code])) for code in sure]
    masses: dict[str, float] = {}
    for shape, rows in shapes:
        masses[shape.kind] = masses.get(shape.kind, 0.0) + rows
    present = sum(masses.values()) - sum(masses.get(kind, 0.0) for kind in _ABSENT)
    if not present:
        why = "it is empty, or every kind of value has too few rows to be seen above the noise"
        return LeftOut(name=name, why=why)
    if masses.get("long", 0.0) > present / 2:
        return LeftOut(name=name, why="long texts: free text")
    kinds = ("boolean", "number", "day", "moment")
    kind = next((k for k in kinds if masses.get(k, 0.0) >= _MOSTLY * present), "text")
    own = tuple((shape, rows) for shape, rows in shapes if shape.kind == kind)
    column = NoisyColumn(name=name, kind=kind, present=present, shapes=own)
    if kind in ("boolean", "text"):
        return column
    marks = tuple(str(shape.written) for shape, _ in shapes if shape.kind == "sentinel")
    return _with_limits(replace(column, sentinels=marks if kind == "number" else ()), counts)


def _with_limits(column: NoisyColumn, counts: Measurement) -> NoisyColumn:
    """The limits of the classes that are present, and of neighbors that have rows together."""
    forms = {(shape.decimals, shape.written) for shape, _ in column.shapes}
    classes: dict[tuple[float, float], float] = {}
    for code, shape in enumerate(SHAPES):
        if shape.kind == column.kind and (shape.decimals, shape.written) in forms:
            size = shape.low, shape.high
            classes[size] = classes.get(size, 0.0) + float(counts.values[code])
    sizes = list(classes)  # in order, as the shapes are
    own = [sizes.index((shape.low, shape.high)) for shape, _ in column.shapes]
    values, sigma = np.array(list(classes.values())), counts.sigma_counts * len(forms) ** 0.5
    first = min(own) - _more(values[: min(own)][::-1], sigma)
    last = max(own) + _more(values[max(own) + 1 :], sigma)
    low, high = sizes[first][0], sizes[last][1]
    if not column.whole:
        return replace(column, low=low, high=high)
    # a class of whole numbers ends one before the next begins, towards zero on either side
    return replace(column, low=low + 1 if low < 0 else low, high=high - 1 if high > 0 else high)


def _more(outward: NDArray[np.float64], sigma: float) -> int:
    """How many further classes count as present: up to the first clear sum of rows, and so on."""
    sums = np.cumsum(outward[:_TOGETHER])
    sure = np.flatnonzero(sums > NEAR * sigma * np.sqrt(np.arange(1, sums.size + 1)))
    if not sure.size:
        return 0
    step = int(sure[0]) + 1
    return step + _more(outward[step:], sigma)


def finer_bins(column: NoisyColumn, *, sigma: float) -> Column:
    """The bins of a second measurement inside the limits: fewer where the noise is large."""
    if column.kind in ("day", "moment"):
        return replace(_calendar_column(column), step="year")
    bins = int(column.present / (_ROWS_A_BIN * max(sigma, 1e-9)))
    most = min(max(bins, _BINS_AGAIN[0]), _BINS_AGAIN[1])
    if column.whole:
        low, high, step = rules.whole_steps(int(column.low), int(column.high), most=most)
        return Integer(low=low, high=high, step=step, **column.common)
    edges = rules.even_edges(column.low, column.high, most=most)
    return rules.number(edges, digits=None, **column.common)


def finer_limits(column: NoisyColumn, bins: Column, counts: Measurement) -> NoisyColumn:
    """The limits narrowed to the bins of a second measurement, if most rows lie in sure ones."""
    values = counts.values[: bins.size - 1]  # without those that are missing
    sure = np.flatnonzero(values > SURE * counts.sigma_counts)
    if values[sure].sum() < _MOSTLY * column.present:
        return column  # too noisy: many rows lie in bins that may as well be empty
    first, last = int(sure[0]), int(sure[-1])
    if isinstance(bins, Number) and bins.edges is not None:
        return replace(column, low=bins.edges[first], high=bins.edges[last + 1])
    if isinstance(bins, Integer) and bins.step is not None:
        low, high = (bins.low + code * bins.step for code in (first, last + 1))
        return replace(column, low=low, high=min(high - 1, bins.high))
    return replace(column, low=column.low + first, high=column.low + last)


def declared(column: NoisyColumn) -> Column:
    """The column that a schema declares; not for texts."""
    if column.kind == "boolean":
        spelled = {shape.written for shape, _ in column.shapes}
        pair = spelled.pop() if len(spelled) == 1 else None
        return rules.boolean(pair if isinstance(pair, tuple) else None, **column.common)
    if column.kind in ("day", "moment"):
        return _calendar_column(column)
    known_digits = column.decimals if column.decimals <= MOST_DECIMALS else None
    if not column.narrow and column.skewed:
        return rules.number(_class_edges(column), digits=known_digits, **column.common)
    if not column.whole:
        edges = rules.even_edges(column.low, column.high)
        return rules.number(edges, digits=known_digits, **column.common)
    # of one number alone: what lies above, below the noise, counts as one more
    high = column.high + (column.low == column.high)
    return rules.whole_number(int(column.low), int(high), **column.common)


def category(column: NoisyColumn, shown: Mapping[str, int]) -> Column | LeftOut:
    """The category of the texts that enough rows share; marks of missing values are such."""
    marks = tuple(mark for mark in SURE_MARKS if mark in shown)
    texts = {text: n for text, n in shown.items() if text not in (*SURE_MARKS, OTHER, MISSING)}
    if sum(texts.values()) < _SHARED * column.present:
        why = "keys or free text: no text is shared by enough people"
        return LeftOut(name=column.name, why=why)
    values = rules.frequent(texts)
    return Category(name=column.name, values=values, other=True, missing=True, missing_texts=marks)


def _class_edges(column: NoisyColumn) -> tuple[float, ...]:
    """Edges of the classes of size, 1, 2, 5 times powers of ten; zero has a bin of its own."""
    edges = {edge for size in column.sizes for edge in size}
    if (0.0, 0.0) in column.sizes and column.high > 0:
        edges.add(10.0 ** -min(column.decimals, MOST_DECIMALS))
    return rules.plain_edges(sorted(edges))


def _calendar_column(column: NoisyColumn) -> Date | DateTime:
    first, last = date(int(column.low), 1, 1), date(int(column.high), 12, 31)
    if column.kind == "day":
        return rules.day(first, last, written=_day_format(column), **column.common)
    instants = any(shape.written for shape, _ in column.shapes)
    return rules.moment(first, last, instants=instants, **column.common)


def _day_format(column: NoisyColumn) -> str:
    """The format of most days; the day first where nothing shows which comes first."""
    rows: dict[str, float] = {}
    for shape, count in column.shapes:
        rows[str(shape.written)] = rows.get(str(shape.written), 0.0) + count
    either = rows.pop(EITHER, 0.0)
    slashed = max(("%d/%m/%Y", "%m/%d/%Y"), key=lambda written: rows.get(written, 0.0))
    rows[slashed] = rows.get(slashed, 0.0) + either
    return max(rows, key=lambda written: rows[written])
