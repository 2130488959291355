"""Real and published values side by side: numbers, groups, ranks, pairs, and rules of the user.

``values`` has the formulas, ``discrepancies`` says in words what is worst. Nothing here goes
through the bins of the schema: codes of one schema on both sides can't see what its bins do.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from itertools import combinations
from math import comb, isfinite
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sfumato.evaluation import values as measures
from sfumato.evaluation.column_checks import ColumnCheck
from sfumato.evaluation.correlations import Correlations
from sfumato.evaluation.marginals import Distances
from sfumato.evaluation.raw_rows import RawRows
from sfumato.evaluation.values import DECILES, QuantileCoding, Values
from sfumato.randomness import Rng
from sfumato.schema import Category, Marginal
from sfumato.schema.classes import raw_limits

MOST_PAIRS: Final = 300
"""Of more pairs of columns than this, this number is compared, taken at random."""
MOST_GROUPS: Final = 50
"""A column of more values does not divide the rows into groups."""
FEW_ROWS: Final = 30
"""A group of fewer real rows, or of less than 1% of them, is not named as the worst."""
MOST_CODES: Final = 32
"""In pairs, rare values of a column of more values share codes."""
Counts = NDArray[np.int64]
_TIMES: Final = ("date", "datetime")


@dataclass(frozen=True, kw_only=True, slots=True)
class NumberSummary:
    """One column of numbers, in its own units; days and moments since 1970, in days and seconds.

    Internal: that of the real table is not private. None where there is no value.
    """

    rows: int
    """How many rows have a value."""
    missing: float
    """The share of rows that have none."""
    mean: float | None
    sd: float | None
    """The standard deviation."""
    deciles: tuple[float, ...]
    """The values below which 10%, 20%, ... 90% of the rows lie."""
    zeros: float
    """The share of values that are 0."""
    heaviest: float
    """The share of values that are the real table's most frequent one."""

    @property
    def median(self) -> float | None:
        """The value below which half of the rows lie."""
        return self.deciles[len(DECILES) // 2] if self.deciles else None


@dataclass(frozen=True, kw_only=True, slots=True)
class NumberComparison:
    """A column of numbers, real and published. Internal: it is not private.

    An error of a mean or quantile is |published - real| / max(|real|, sd / 10), with the real
    standard deviation; of days and moments, which have no natural zero, it is |published - real| /
    sd.
    """

    name: str
    kind: str
    real: NumberSummary
    published: NumberSummary
    limits: tuple[float, float]
    """As the schema declares them."""
    heaviest_value: float
    """The real table's most frequent value."""
    clipped: float
    """The share of real values outside the limits: a release moves them there."""
    unfit: float
    """The share of real rows whose value the schema has no place for."""
    mean_error: float
    median_error: float
    decile_error: float
    """The mean over the nine deciles of their errors."""
    worst_decile: tuple[float, float]
    """Which decile has the largest error, and that error."""
    sd_error: float
    """|published sd - real sd| / real sd."""
    ks: float
    """The largest difference of the shares of rows up to a value (Kolmogorov and Smirnov)."""
    wasserstein: float
    """How far values must move, on average, to be the real ones: in real standard deviations."""
    code_distance: float | None = None
    """The total variation of the column's codes: small beside a large ``ks`` if bins are bad."""

    def to_dict(self) -> dict[str, Any]:
        """For ``--json``."""
        return dict(_plain(asdict(self)))


@dataclass(frozen=True, kw_only=True, slots=True)
class ColumnFill:
    """How many values of a column are there and fit. Internal: it is not private."""

    name: str
    missing: tuple[float, float]
    """The share of rows without a value, real and published."""
    other: tuple[float, float]
    """The share of rows with a value that counts as other, real and published."""
    unfit: float
    """The share of real rows whose value the schema has no place for."""
    became: str
    """What such values count as."""

    @property
    def lost(self) -> float:
        """The share of real rows whose value can't be in the release: unfit, or other."""
        return self.unfit + self.other[0]


@dataclass(frozen=True, kw_only=True, slots=True)
class GroupMeans:
    """The means of a number in the groups that another column makes. Internal: not private."""

    groups: str
    number: str
    error: float
    """The mean over rows of the error of their group's mean, with the unit of the number's mean;
    1 for a group of which nothing was published."""
    worst: str
    """The group with the largest error beyond chance, of 1% of the rows and 30 rows at least."""
    worst_error: float
    worst_chance: float
    """Three standard errors of that group's real mean, in the same unit."""
    real: float
    """The mean of the worst group."""
    published: float | None


@dataclass(frozen=True, kw_only=True, slots=True)
class CheckedRule:
    """A declared rule between columns: how many rows break it. Internal: it is not private."""

    rule: str
    real: float
    """The share of the real rows that break it, of those that have all of its values."""
    published: float
    judged: tuple[int, int]
    """How many rows have all of its values, real and published."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ValueComparison:
    """Raw values, real against published. Internal: it is not private."""

    numbers: Mapping[str, NumberComparison]
    columns: Mapping[str, ColumnFill] = field(default_factory=dict)
    groups: tuple[GroupMeans, ...] = ()
    """One for each number and each column that makes groups, the worst first."""
    ranks: Correlations | None = None
    """Spearman's rank correlations of the numbers."""
    pairs: Distances | None = None
    """Total variation of pairs of columns, numbers in codes from the real quantiles."""
    pair_chance: float = 0.0
    """What the mean of ``pairs`` would be about if the published rows were drawn from the real
    ones with replacement: of few rows and many cells much."""
    checks: tuple[CheckedRule, ...] = ()
    left_out: tuple[str, ...] = ()
    """Columns of the real table that the schema neither declares nor excludes."""
    rows: tuple[int, int] = (0, 0)
    """How many were compared, real and published."""
    of: tuple[int, int] = (0, 0)
    """How many there are."""

    @property
    def figures(self) -> dict[str, float | None]:
        """One figure of each kind, means over columns or pairs."""
        each = self.numbers.values()
        own = {
            name: _mean([getattr(number, name) for number in each])
            for name in ("mean_error", "median_error", "decile_error", "sd_error", "ks")
        }
        return {
            **own,
            "wasserstein": _mean([number.wasserstein for number in each]),
            "worst_mean_error": max((number.mean_error for number in each), default=None),
            "group_error": _mean([group.error for group in self.groups]),
            "rank_error": None if self.ranks is None else self.ranks.error,
            "pair_distance": None if self.pairs is None else self.pairs.mean,
        }

    def to_dict(self) -> dict[str, Any]:
        """For ``--json``."""
        return {
            "figures": _plain(self.figures),
            "numbers": {name: each.to_dict() for name, each in self.numbers.items()},
            "columns": {n: _plain(asdict(each)) for n, each in self.columns.items()},
            "groups": [_plain(asdict(each)) for each in self.groups],
            "ranks": None if self.ranks is None else self.ranks.to_dict(),
            "pairs": None if self.pairs is None else self.pairs.to_dict(),
            "pair_chance": self.pair_chance,
            "checks": [_plain(asdict(each)) for each in self.checks],
            "left_out": list(self.left_out),
            "rows": {"real": self.rows[0], "published": self.rows[1]},
        }


class RealSide:
    """The real values with what is computed of them once for all comparisons."""

    def __init__(self, rows: RawRows, *, rng: Rng) -> None:
        self.rows = rows
        names = [name for name in rows.numbers if _finite(rows.columns[name]).size]
        self.numbers = tuple(names)
        self.groups = tuple(n for n in rows.groups if rows.schema[n].size <= MOST_GROUPS)
        every = list(combinations(rows.schema.names, 2))
        self.pairs = [every[i] for i in _some(len(every), MOST_PAIRS, rng)]
        most = max(2, int((2 * MOST_PAIRS) ** 0.5))
        self.ranked = tuple(names[i] for i in _some(len(names), most, rng))

    @cached_property
    def ordered(self) -> dict[str, Values]:
        """The values of each number, sorted."""
        return {name: _sorted(self.rows.columns[name]) for name in self.numbers}

    @cached_property
    def ranks(self) -> Values:
        """The rank correlations."""
        return measures.rank_correlations([self.rows.columns[name] for name in self.ranked])

    @cached_property
    def codings(self) -> dict[str, QuantileCoding]:
        """Codings from real quantiles, of numbers and of columns of many values."""
        return {
            column.name: QuantileCoding.of(
                self.rows.columns[column.name].astype(np.float64),
                bins=measures.BINS if column.name in self.rows.numbers else MOST_CODES,
            )
            for column in self.rows.schema
            if column.name in self.rows.numbers or column.size > MOST_CODES
        }

    @cached_property
    def codes(self) -> dict[str, NDArray[np.int64]]:
        """The codes of the real rows."""
        return self.coded(self.rows)

    @cached_property
    def counts(self) -> dict[Marginal, Counts]:
        """How many real rows have each pair of codes."""
        return {pair: self.counted(self.codes, pair) for pair in self.pairs}

    def counted(self, codes: Mapping[str, NDArray[np.int64]], pair: Marginal) -> Counts:
        """How many rows have each pair of codes."""
        x, y = pair
        return measures.pair_counts(codes[x], codes[y], (self.size(x), self.size(y)))

    def coded(self, rows: RawRows) -> dict[str, NDArray[np.int64]]:
        """The codes of some rows in the codings of the real ones."""
        return {
            name: self.codings[name].codes(values.astype(np.float64))
            if name in self.codings
            else values.astype(np.int64)
            for name, values in rows.columns.items()
        }

    def size(self, name: str) -> int:
        """The number of codes of a column."""
        return self.codings[name].size if name in self.codings else self.rows.schema[name].size


def compare_values(
    real: RealSide,
    other: RawRows,
    *,
    checks: Sequence[ColumnCheck] = (),
    code_distances: Mapping[str, float] | None = None,
    tell: Callable[[], None] = lambda: None,
) -> ValueComparison:
    """All measures of one table against the real one.

    Args:
        real: The real values.
        other: The published ones, or those of a baseline.
        checks: Rules between columns.
        code_distances: For each column the total variation of its codes.
        tell: Called now and then.
    """
    known = code_distances or {}
    numbers = {}
    for name in real.numbers:
        numbers[name] = _compare_number(real, other, name, known.get(name))
        tell()
    pairs, pair_chance = _compare_pairs(real, other)
    rules = [_checked(check, real.rows, other) for check in checks]
    return ValueComparison(
        numbers=numbers,
        columns={name: _fill(real.rows, other, name) for name in real.rows.columns},
        groups=_compare_groups(real, other, numbers),
        ranks=_compare_ranks(real, other),
        pairs=pairs,
        pair_chance=pair_chance,
        checks=tuple(sorted(rules, key=lambda rule: rule.real - rule.published)),
        rows=(real.rows.rows, other.rows),
        of=(real.rows.of, other.of),
    )


def _compare_number(
    real: RealSide, other: RawRows, name: str, code_distance: float | None
) -> NumberComparison:
    column = real.rows.schema[name]
    ordered, published = real.ordered[name], _sorted(other.columns[name])
    limits = raw_limits(column)  # type: ignore[arg-type]  # a number, or it were not here
    heaviest = measures.heaviest_value(ordered)
    sides = [
        _summary(ordered, real.rows.rows, heaviest),
        _summary(published, other.rows, heaviest),
    ]
    spread = sides[0].sd or 0.0
    finite, finite_published = _finite(ordered), _finite(published)
    origin = float(finite.mean()) if column.kind in _TIMES else None
    mean_error = _error(sides[1].mean, sides[0].mean, spread, origin)
    errors = [
        _error(p, r, spread, origin)
        for p, r in zip(sides[1].deciles or (None,) * len(DECILES), sides[0].deciles, strict=True)
    ]
    worst = int(np.argmax(errors))
    moved = measures.wasserstein(finite, finite_published)
    low, high = limits
    outside = np.count_nonzero(ordered < low) + np.count_nonzero(ordered > high)
    return NumberComparison(
        name=name,
        kind=column.kind,
        real=sides[0],
        published=sides[1],
        limits=limits,
        heaviest_value=heaviest,
        clipped=float(outside / ordered.size),
        unfit=real.rows.unfit[name] / max(1, real.rows.rows),
        mean_error=mean_error,
        median_error=errors[len(DECILES) // 2],
        decile_error=float(np.mean(errors)),
        worst_decile=(DECILES[worst], errors[worst]),
        sd_error=_error(sides[1].sd, sides[0].sd, 0.0, None),
        ks=measures.kolmogorov_smirnov(ordered, published),
        wasserstein=moved / spread if spread and isfinite(moved) else float(moved != 0),
        code_distance=code_distance,
    )


def _summary(ordered: Values, rows: int, heaviest: float) -> NumberSummary:
    finite = _finite(ordered)
    return NumberSummary(
        rows=ordered.size,
        missing=1 - ordered.size / rows if rows else 0.0,
        mean=float(finite.mean()) if finite.size else None,
        sd=float(finite.std()) if finite.size else None,
        deciles=tuple(measures.quantiles(finite, DECILES).tolist()) if finite.size else (),
        zeros=measures.share_of_value(ordered, 0.0),
        heaviest=measures.share_of_value(ordered, heaviest),
    )


def _error(
    published: float | None, real: float | None, spread: float, origin: float | None
) -> float:
    """The error of a mean or quantile; 1 where there is none."""
    if published is None or real is None:
        return 1.0
    if origin is None:
        return measures.relative_error(published, real, spread=spread)
    gap = abs(published - real)
    return float(gap / spread) if spread else float(gap > 0)


def _fill(real: RawRows, other: RawRows, name: str) -> ColumnFill:
    column = real.schema[name]
    sides: list[tuple[float, float]] = []
    for rows in (real, other):
        values, n = rows.columns[name], max(1, rows.rows)
        if name in real.numbers:
            sides.append((float(np.count_nonzero(np.isnan(values)) / n), 0.0))
        else:
            codes = (column.missing_code, column.other_code)
            missing, others = (
                0.0 if code is None else float(np.count_nonzero(values == code) / n)
                for code in codes
            )
            sides.append((missing, others))
    unfit = real.unfit[name] / max(1, real.rows)
    (missing, others), (published_missing, published_others) = sides
    if name in real.numbers or column.unfit_code == column.missing_code:
        missing = max(0.0, missing - unfit)
    elif column.unfit_code == column.other_code:
        others = max(0.0, others - unfit)
    labels = column.labels if isinstance(column, Category) else ()
    return ColumnFill(
        name=name,
        missing=(missing, published_missing),
        other=(others, published_others),
        unfit=unfit,
        became=_became(column.missing_code is not None, labels, column.unfit_code),
    )


def _became(may_miss: bool, labels: Sequence[str], code: int) -> str:
    if labels:
        return labels[code]
    return "(missing)" if may_miss else "the lowest value"


def _compare_groups(
    real: RealSide, other: RawRows, numbers: Mapping[str, NumberComparison]
) -> tuple[GroupMeans, ...]:
    compared = [
        each
        for groups in real.groups
        for name in real.numbers
        if (each := _compare_group(real.rows, other, groups, numbers[name])) is not None
    ]
    return tuple(sorted(compared, key=lambda each: -each.error))


def _compare_group(
    real: RawRows, other: RawRows, groups: str, number: NumberComparison
) -> GroupMeans | None:
    size = real.schema[groups].size
    (means, counts), (published, _) = (
        measures.group_means(rows.columns[groups].astype(np.int64), rows.columns[number.name], size)
        for rows in (real, other)
    )
    there = counts > 0
    if np.count_nonzero(there) < 2:
        return None
    unit = _unit(number)
    gaps = np.abs(published - means)
    errors = np.where(np.isnan(gaps), 1.0, gaps / unit if unit else (gaps > 0).astype(float))
    chance = 3 * (number.real.sd or 0.0) / np.sqrt(np.maximum(counts, 1)) / (unit or 1.0)
    named = there & (counts >= max(FEW_ROWS, counts.sum() / 100))
    if not named.any():
        named = there
    worst = int(np.argmax(np.where(named, errors - chance, -np.inf)))
    return GroupMeans(
        groups=groups,
        number=number.name,
        error=float(np.sum(errors[there] * counts[there]) / counts.sum()),
        worst=real.schema[groups].labels[worst],
        worst_error=float(errors[worst]),
        worst_chance=float(chance[worst]),
        real=float(means[worst]),
        published=None if np.isnan(published[worst]) else float(published[worst]),
    )


def _unit(number: NumberComparison) -> float:
    """What an error of a mean of this number is divided by."""
    spread = number.real.sd or 0.0
    if number.kind in _TIMES:
        return spread
    return max(abs(number.real.mean or 0.0), measures.SPREAD_SHARE * spread)


def _compare_ranks(real: RealSide, other: RawRows) -> Correlations | None:
    if len(real.ranked) < 2:
        return None
    published = measures.rank_correlations([other.columns[name] for name in real.ranked])
    of = len(real.numbers)
    return Correlations(columns=real.ranked, of=of, real=real.ranks, published=published)


def _compare_pairs(real: RealSide, other: RawRows) -> tuple[Distances | None, float]:
    """The distances of pairs, and what their mean would be about by chance alone.

    Of m rows drawn from shares p, a share is off by sqrt(2 p (1 - p) / (pi m)) on average.
    """
    if not real.pairs:
        return None, 0.0
    codes, distances, chances = real.coded(other), [], []
    for pair, counts in real.counts.items():
        distances.append(measures.share_distance(counts, real.counted(codes, pair)))
        shares = counts / max(1, counts.sum())
        off = np.sqrt(2 * shares * (1 - shares) / (np.pi * max(1, other.rows)))
        chances.append(min(1.0, float(off.sum() / 2)))
    worst = int(np.argmax(distances))
    return Distances(
        mean=float(np.mean(distances)),
        min=float(np.min(distances)),
        max=float(distances[worst]),
        worst=real.pairs[worst],
        compared=len(distances),
        of=comb(len(real.rows.schema), 2),
    ), float(np.mean(chances))


def _checked(check: ColumnCheck, real: RawRows, other: RawRows) -> CheckedRule:
    holds = [check.holds_in(rows.columns) for rows in (real, other)]
    broken = [float(1 - each.mean()) if each.size else 0.0 for each in holds]
    judged = (holds[0].size, holds[1].size)
    return CheckedRule(rule=check.text, real=broken[0], published=broken[1], judged=judged)


def _some(n: int, most: int, rng: Rng) -> list[int]:
    """All indices, or of very many some at random, in order."""
    return list(range(n)) if n <= most else sorted(rng.permutation(n)[:most].tolist())


def _sorted(values: Values) -> Values:
    return np.asarray(np.sort(values[~np.isnan(values)]))


def _finite(values: Values) -> Values:
    finite = np.isfinite(values)
    return values if finite.all() else values[finite]


def _mean(figures: Sequence[float]) -> float | None:
    return float(np.mean(figures)) if figures else None


def _plain(value: Any) -> Any:
    """Without numbers that JSON does not have."""
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return None if isinstance(value, float) and not isfinite(value) else value
