"""Real against published: what can be compared, and ``evaluate``, which notes the look.

For the people who hold the data, never for publication.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

from sfumato import check
from sfumato.counting.exact_counts import count_marginals
from sfumato.counting.table import Table
from sfumato.errors import InputError
from sfumato.evaluation.classifiers import (
    MODELS,
    check_label,
    compare_misclassification,
    compare_models,
    labels_of,
    scikit_learn,
)
from sfumato.evaluation.column_checks import ColumnCheck
from sfumato.evaluation.correlations import (
    chosen_columns,
    comparable_columns,
    compare_correlations,
    compare_information,
)
from sfumato.evaluation.marginals import (
    MOST_MARGINALS,
    compare_counts,
    compare_distances,
    distance,
    marginals_of,
)
from sfumato.evaluation.range_queries import (
    FLOOR,
    QueryErrors,
    RelativeErrors,
    answer,
    drawn_ranges,
    whole_ranges,
)
from sfumato.evaluation.raw_rows import raw_baselines, read_raw
from sfumato.evaluation.result import Evaluation, PairCounts
from sfumato.evaluation.rows import MOST_BASELINE_CODES, baseline_tables, on_bins
from sfumato.evaluation.value_comparison import RealSide, compare_values
from sfumato.evaluation.values import share_distance
from sfumato.ledger.ledger import Ledger
from sfumato.randomness import Rng
from sfumato.readers.open_table import open_table
from sfumato.readers.source import RawTable
from sfumato.release import TableRelease
from sfumato.schema import Marginal, Schema, Workload

MOST_SHOWN_CELLS = 2_500
"""A pair of columns with more cells is not shown on the page."""
MOST_SHOWN_PAIRS = 6
"""How many pairs are shown, those that differ most."""

Fields = dict[str, Any]
"""Of an ``Evaluation``."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TotalVariation:
    """Total variation distance over all marginals of ``degree`` columns."""

    degree: int
    most: int = MOST_MARGINALS
    """Of more marginals than this, this number is compared, taken at random."""

    def __post_init__(self) -> None:
        check.whole(at_least=1, degree=self.degree)
        check.whole(at_least=1, most=self.most)


@dataclass(frozen=True, kw_only=True, slots=True)
class CountError:
    """Mean squared error of the counts of all marginals of ``degree`` columns."""

    degree: int

    def __post_init__(self) -> None:
        check.whole(at_least=1, degree=self.degree)


@dataclass(frozen=True, kw_only=True, slots=True)
class RangeQueries:
    """Errors of ``n`` random ranges, or of the ranges of a workload."""

    n: int = 500
    """How many; over all columns, or over pairs in turn where all have too many cells."""
    workload: Workload | None = None
    most_columns: int | None = None
    """If given, each random range limits 1 to this many columns: an interval of an ordered column,
    a single value of another. In a wide table a range over all columns holds hardly a row."""

    def __post_init__(self) -> None:
        check.whole(at_least=1, n=self.n)
        if self.most_columns is not None:
            check.whole(at_least=1, most_columns=self.most_columns)
        if self.workload is not None and not self.workload.ranges:
            raise InputError("the workload to compare has no ranges")


@dataclass(frozen=True, kw_only=True, slots=True)
class InformationError:
    """What is lost or made up of the mutual information of pairs of columns, in nats."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PairCorrelations:
    """The correlation of every two columns, real and published: see ``Correlations``."""

    most_columns: int = 40
    """Of more columns than this, this number is compared, taken at random."""

    def __post_init__(self) -> None:
        check.whole(at_least=2, most_columns=self.most_columns)


@dataclass(frozen=True, kw_only=True, slots=True)
class Misclassification:
    """How often a classifier of ``label`` errs that learned from published rows, and from real."""

    label: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Classifiers:
    """Train on published rows, test on real ones: scores of several classifiers of each label."""

    labels: tuple[str, ...] = ()
    """The columns to predict, each from all others; none: every column of 2 to 20 values."""
    models: tuple[str, ...] = tuple(MODELS)
    """Of ``logistic regression``, ``random forest`` and ``gradient boosting``."""

    def __post_init__(self) -> None:
        for model in self.models:
            check.one_of(MODELS, model=model)
        if not self.models:
            raise InputError(f"models must name some of {', '.join(MODELS)}, got none")


@dataclass(frozen=True, kw_only=True, slots=True)
class RawValues:
    """Values as they are written, by no bins of the schema: see ``ValueComparison``.

    Both tables must have values: a file, a data frame or a database, not codes and not Spark.
    """

    checks: tuple[str, ...] = ()
    """Rules between columns, like ``"jail_in <= jail_out"`` or ``"a + b = c"``: how many real and
    how many published rows break each."""

    def __post_init__(self) -> None:
        if not isinstance(self.checks, tuple):
            raise InputError(f"checks must be a tuple of texts, got {self.checks!r:.60}")


Measure = (
    RawValues
    | TotalVariation
    | CountError
    | RangeQueries
    | InformationError
    | PairCorrelations
    | Misclassification
    | Classifiers
)


def evaluate(
    release: TableRelease,
    *,
    against: Table,
    measures: Sequence[Measure],
    rng: Rng,
    ledger: Ledger | None = None,
    baselines: bool = False,
    held_back: Table | None = None,
    tell: Callable[[str, int, int], None] | None = None,
) -> Evaluation:
    """Compare the published rows with the real ones; the look is written in the ledger, at cost 0.

    Args:
        release: What was published.
        against: The real table, with the same schema.
        measures: What to compare.
        rng: For random ranges, for the choice among very many marginals, for held-out rows.
        ledger: Where the look is noted; by default the ledger of the release's data set.
        baselines: Take the same figures of the real rows with every column permuted, and of real
            rows resampled: what is reached without any pair, and what chance alone leaves. They
            are held in memory and left out above 200 million codes.
        held_back: Real rows that took no part in the release, with the same schema, for
            classifiers to be tested on; without them a fifth of the real rows is.
        tell: Called with the progress.
    """
    _check(release, against, measures)
    against = on_bins(against, release.schema)
    if held_back is not None:
        _check_held_back(release, held_back, measures)
        held_back = on_bins(held_back, release.schema)
    (ledger or Ledger.open(dataset=release.dataset)).look("evaluation: real against published")
    published = open_table(release.data, release.schema)
    columns = _columns(against, published)
    beside, left_out = _baselines(against, columns, rng) if baselines else ({}, ())
    tables = {"published": published, **beside}
    first, *others = _compare(against, tables, measures, rng, held_back=held_back, tell=tell)
    if (values := first.get("values")) is not None:
        first["values"] = replace(values, left_out=_left_out(against))
    if any(isinstance(measure, TotalVariation) and measure.degree == 2 for measure in measures):
        first["pairs"] = _worst_pairs(against, published)
    return Evaluation(
        columns=columns,
        baselines={n: Evaluation(**each) for n, each in zip(beside, others, strict=True)},
        notes=(*_sampled(first), *left_out),
        held_back=None if held_back is None else _size(held_back),
        **first,
    )


def _check(release: TableRelease, against: Table, measures: Sequence[Measure]) -> None:
    """Refuse, before the look, what can't be compared."""
    if not isinstance(getattr(against, "schema", None), Schema):
        raise InputError(
            f"against must be an open table, got {type(against).__name__}. Pass sf.open_table(df, "
            "schema)."
        )
    for measure in measures:
        if isinstance(measure, TotalVariation | CountError):
            check.whole(at_least=1, at_most=len(release.schema), degree=measure.degree)
        elif isinstance(measure, InformationError):
            check.whole(at_least=2, number_of_columns=len(release.schema))
        elif isinstance(measure, PairCorrelations):
            comparable_columns(release.schema)
        elif isinstance(measure, RawValues):
            _checks_of(release.schema, measure)
            require_values(against)
        elif isinstance(measure, Misclassification):
            check_label(release.schema, measure.label)
        elif isinstance(measure, Classifiers):
            labels_of(release.schema, measure.labels)
            scikit_learn("ensemble")


def _check_held_back(release: TableRelease, held_back: Table, measures: Sequence[Measure]) -> None:
    """Refuse rows that were held back for nothing, or have another schema."""
    if not isinstance(getattr(held_back, "schema", None), Schema):
        raise InputError(
            f"held_back must be an open table, got {type(held_back).__name__}. Pass "
            "sf.open_table(df, schema)."
        )
    if held_back.schema.names != release.schema.names:
        raise InputError("the table that was held back has another schema than the release")
    if not any(isinstance(measure, Misclassification | Classifiers) for measure in measures):
        raise InputError(
            "rows that were held back are for classifiers to be tested on, and none is compared. "
            "Name a label."
        )


def require_values(table: Table) -> RawTable:
    """The table, if it has values to compare and not only codes."""
    if not isinstance(table, RawTable):
        raise InputError(
            "raw values are compared of files, data frames and databases, not of codes, of Spark "
            f"tables or of bounded people; got {type(table).__name__}. Leave RawValues out, or "
            "write the table to a file."
        )
    return table


def _checks_of(schema: Schema, measure: RawValues) -> tuple[ColumnCheck, ...]:
    return tuple(ColumnCheck.of(text, schema) for text in measure.checks)


def _compare(
    real: Table,
    others: Mapping[str, Table],
    measures: Sequence[Measure],
    rng: Rng,
    *,
    held_back: Table | None,
    tell: Callable[[str, int, int], None] | None,
) -> list[Fields]:
    """All figures of each other table; classifiers learn from the first one only."""
    figures: list[Fields] = [{} for _ in others]
    tables = list(others.values())
    for done, measure in enumerate(measures):
        if tell is not None:
            tell("comparing with the real table", done, len(measures))
        if isinstance(measure, Misclassification | Classifiers):
            results = [_learned(real, tables[0], measure, rng, held_back)]
        elif isinstance(measure, RawValues):
            results = _compare_values(real, others, measure, rng)
        elif isinstance(measure, RangeQueries):
            results = _compare_ranges(real, tables, measure, rng)
        else:
            results = _compare_marginals(real, tables, measure, rng)
        for fields, more in zip(figures, results, strict=False):
            for name, value in more.items():
                fields[name] = fields.get(name, {}) | value if isinstance(value, dict) else value
    return figures


def _compare_values(
    real: Table, others: Mapping[str, Table], measure: RawValues, rng: Rng
) -> list[Fields]:
    """Of the published table, and of baselines made of real values; one in memory at a time."""
    checks = _checks_of(real.schema, measure)
    published, *beside = others
    rows = read_raw(require_values(real), rng=rng)
    side = RealSide(rows, rng=rng)
    shown = read_raw(require_values(others[published]), rng=rng)
    distances = _code_distances(real, others[published])
    first = compare_values(side, shown, checks=checks, code_distances=distances)
    del shown
    baselines = raw_baselines(rows, beside, rng=rng)
    return [{"values": first}, *({"values": compare_values(side, each)} for each in baselines)]


def _code_distances(real: Table, published: Table) -> dict[str, float]:
    single = [(name,) for name in real.schema.names]
    a, b = count_marginals(real, single), count_marginals(published, single)
    return {name: share_distance(a[name,], b[name,]) for name in real.schema.names}


def _left_out(table: Table) -> tuple[str, ...]:
    """Columns of the real table that are not in the release, where the table can say so."""
    left_out: Callable[[], tuple[str, ...]] = getattr(table, "left_out", lambda: ())
    return tuple(left_out())


def _size(table: Table) -> int:
    return int(count_marginals(table, [()])[()].sum())


def _compare_marginals(
    real: Table,
    others: Sequence[Table],
    measure: TotalVariation | CountError | InformationError | PairCorrelations,
    rng: Rng,
) -> list[Fields]:
    schema = real.schema
    if isinstance(measure, TotalVariation):
        chosen = marginals_of(schema, measure.degree, rng, most=measure.most)
        distances = compare_distances(real, others, chosen)
        return [{"distances": {measure.degree: each}} for each in distances]
    if isinstance(measure, CountError):
        errors = compare_counts(real, others, marginals_of(schema, measure.degree, rng))
        return [{"mse": {measure.degree: each}} for each in errors]
    if isinstance(measure, InformationError):
        pairs = marginals_of(schema, 2, rng)
        return [{"information_error": e} for e in compare_information(real, others, pairs)]
    columns = chosen_columns(schema, most=measure.most_columns, rng=rng)
    return [{"correlations": each} for each in compare_correlations(real, others, columns)]


def _learned(
    real: Table,
    published: Table,
    measure: Misclassification | Classifiers,
    rng: Rng,
    held_back: Table | None,
) -> Fields:
    if isinstance(measure, Misclassification):
        errors = compare_misclassification(
            real, published, measure.label, rng=rng, held_back=held_back
        )
        return {"misclassification": {measure.label: errors}}
    labels = labels_of(real.schema, measure.labels)
    scores = compare_models(
        real, published, labels, models=measure.models, rng=rng, held_back=held_back
    )
    return {"classifiers": scores}


def _compare_ranges(
    real: Table, others: Sequence[Table], measure: RangeQueries, rng: Rng
) -> list[Fields]:
    schema, most = real.schema, measure.most_columns
    if measure.workload is not None:
        ranges = measure.workload.ranges
    elif most is None:
        ranges = whole_ranges(schema, measure.n, rng=rng)
    else:
        ranges = drawn_ranges(schema, measure.n, most_columns=most, rng=rng)
    truth = answer(real, ranges)
    rows = _size(real)
    errors = []
    for table in others:
        answers = answer(table, ranges)
        errors.append(
            {
                "queries": QueryErrors.of(truth, answers),
                "relative_queries": RelativeErrors.of(truth, answers, floor=max(1.0, FLOOR * rows)),
                "answers": tuple(zip(ranges, truth.tolist(), answers.tolist(), strict=True)),
            }
        )
    return errors


def _baselines(
    real: Table, columns: dict[str, tuple[list[int], list[int]]], rng: Rng
) -> tuple[dict[str, Table], tuple[str, ...]]:
    """The tables to compare beside the release, and why there are none."""
    rows = sum(next(iter(columns.values()))[0])
    if 0 < rows * len(columns) <= MOST_BASELINE_CODES:
        return baseline_tables(real, rng=rng), ()
    most = f"{MOST_BASELINE_CODES:,}"
    return {}, (f"Nothing stands beside the figures: that needs 1 to {most} codes in memory.",)


def _sampled(fields: Fields) -> tuple[str, ...]:
    """Where a part was compared, how large it is."""
    notes = [
        f"Of {each.of:,} marginals of {degree} columns {each.compared:,} were compared, at random "
        "or for their size."
        for degree, each in fields.get("distances", {}).items()
        if each.compared < each.of
    ]
    tied = fields.get("correlations")
    if tied is not None and len(tied.columns) < tied.of:
        notes.append(
            f"Of {tied.of:,} columns the correlations of {len(tied.columns)} were compared, at "
            "random or for their size."
        )
    values = fields.get("values")
    if values is not None and values.rows != values.of:
        notes.append(
            f"Raw values were compared of {values.rows[0]:,} of {values.of[0]:,} real and "
            f"{values.rows[1]:,} of {values.of[1]:,} published rows, at random."
        )
    return tuple(notes)


def _columns(real: Table, published: Table) -> dict[str, tuple[list[int], list[int]]]:
    single = [(name,) for name in real.schema.names]
    a, b = count_marginals(real, single), count_marginals(published, single)
    return {name: (a[name,].tolist(), b[name,].tolist()) for name in real.schema.names}


def _worst_pairs(real: Table, published: Table) -> dict[Marginal, tuple[PairCounts, PairCounts]]:
    """The pairs that can be shown and differ most."""
    every = combinations(real.schema.names, 2)
    small = [pair for pair in every if real.schema.cells(pair) <= MOST_SHOWN_CELLS]
    part = small[:MOST_MARGINALS]
    if not part:
        return {}
    a, b = count_marginals(real, part), count_marginals(published, part)
    worst = sorted(part, key=lambda pair: -distance(a[pair], b[pair]))[:MOST_SHOWN_PAIRS]
    return {pair: (a[pair].tolist(), b[pair].tolist()) for pair in worst}
