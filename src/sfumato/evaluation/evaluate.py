"""Real against published: for the people who hold the data, never for publication."""

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any

from sfumato import check
from sfumato.counting.exact_counts import count_marginals
from sfumato.counting.table import Table
from sfumato.errors import InputError
from sfumato.evaluation.classifiers import compare_models, labels_of, scikit_learn
from sfumato.evaluation.correlations import chosen_columns, comparable_columns, compare_correlations
from sfumato.evaluation.dependence import check_label, compare_classifiers, information_error
from sfumato.evaluation.distances import QueryErrors, RelativeErrors
from sfumato.evaluation.marginals import (
    MOST_MARGINALS,
    compare_counts,
    compare_distances,
    distance,
    marginals_of,
)
from sfumato.evaluation.measures import (
    Classifiers,
    CountError,
    InformationError,
    Measure,
    Misclassification,
    PairCorrelations,
    RangeQueries,
    TotalVariation,
)
from sfumato.evaluation.range_queries import FLOOR, answer, drawn_ranges, whole_ranges
from sfumato.evaluation.result import Evaluation, PairCounts
from sfumato.evaluation.rows import MOST_BASELINE_CODES, baseline_tables
from sfumato.ledger.ledger import Ledger
from sfumato.randomness import Rng
from sfumato.readers.open_table import open_table
from sfumato.release import TableRelease
from sfumato.schema import Marginal, Schema

MOST_SHOWN_CELLS = 2_500
MOST_SHOWN_PAIRS = 6
"""So many pairs, of at most so many cells, are kept to be looked at."""

Found = dict[str, Any]
"""Fields of an ``Evaluation``."""


def evaluate(
    release: TableRelease,
    *,
    against: Table,
    measures: Sequence[Measure],
    rng: Rng,
    ledger: Ledger | None = None,
    baselines: bool = False,
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
        tell: Called with the progress.
    """
    _check(release, against, measures)
    (ledger or Ledger.open(dataset=release.dataset)).look("evaluation: real against published")
    published = open_table(release.data, release.schema)
    columns = _columns(against, published)
    beside, left_out = _baselines(against, columns, rng) if baselines else ({}, ())
    found = _compare(against, [published, *beside.values()], measures, rng, tell=tell)
    first, rest = found[0], [Evaluation(**each) for each in found[1:]]
    if any(isinstance(measure, TotalVariation) and measure.degree == 2 for measure in measures):
        first["pairs"] = _worst_pairs(against, published)
    return Evaluation(
        columns=columns,
        baselines=dict(zip(beside, rest, strict=True)),
        notes=(*_sampled(first), *left_out),
        **first,
    )


def _check(release: TableRelease, against: Table, measures: Sequence[Measure]) -> None:
    """Refuse, before the look, what can't be compared."""
    if not isinstance(getattr(against, "schema", None), Schema):
        raise InputError(
            f"against must be an open table, got {type(against).__name__}. Pass sf.open_table(df, "
            "schema)."
        )
    if against.schema.columns != release.schema.columns:
        raise InputError("the table to compare with has another schema than the release")
    for measure in measures:
        if isinstance(measure, TotalVariation | CountError):
            check.whole(at_least=1, at_most=len(release.schema), degree=measure.degree)
        elif isinstance(measure, InformationError):
            check.whole(at_least=2, number_of_columns=len(release.schema))
        elif isinstance(measure, PairCorrelations):
            comparable_columns(release.schema)
        elif isinstance(measure, Misclassification):
            check_label(release.schema, measure.label)
        elif isinstance(measure, Classifiers):
            labels_of(release.schema, measure.labels)
            scikit_learn("ensemble")


def _compare(
    real: Table,
    others: Sequence[Table],
    measures: Sequence[Measure],
    rng: Rng,
    *,
    tell: Callable[[str, int, int], None] | None,
) -> list[Found]:
    """All figures of each other table; classifiers learn from the first one only."""
    found: list[Found] = [{} for _ in others]
    for done, measure in enumerate(measures):
        if tell is not None:
            tell("comparing with the real table", done, len(measures))
        if isinstance(measure, Misclassification | Classifiers):
            results = [_learned(real, others[0], measure, rng)]
        elif isinstance(measure, RangeQueries):
            results = _compare_ranges(real, others, measure, rng)
        else:
            results = _compare_marginals(real, others, measure, rng)
        for fields, more in zip(found, results, strict=False):
            for name, value in more.items():
                fields[name] = fields.get(name, {}) | value if isinstance(value, dict) else value
    return found


def _compare_marginals(
    real: Table,
    others: Sequence[Table],
    measure: TotalVariation | CountError | InformationError | PairCorrelations,
    rng: Rng,
) -> list[Found]:
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
        nats = [information_error(real, table, pairs=pairs) for table in others]
        return [{"information_error": each} for each in nats]
    columns = chosen_columns(schema, most=measure.most_columns, rng=rng)
    return [{"correlations": each} for each in compare_correlations(real, others, columns)]


def _learned(
    real: Table, published: Table, measure: Misclassification | Classifiers, rng: Rng
) -> Found:
    if isinstance(measure, Misclassification):
        errors = compare_classifiers(real, published, measure.label, rng=rng)
        return {"misclassification": {measure.label: errors}}
    labels = labels_of(real.schema, measure.labels)
    scores = compare_models(real, published, labels, models=measure.models, rng=rng)
    return {"classifiers": scores}


def _compare_ranges(
    real: Table, others: Sequence[Table], measure: RangeQueries, rng: Rng
) -> list[Found]:
    schema, most = real.schema, measure.most_columns
    if measure.workload is not None:
        wanted = measure.workload.ranges
    elif most is None:
        wanted = whole_ranges(schema, measure.n, rng=rng)
    else:
        wanted = drawn_ranges(schema, measure.n, most_columns=most, rng=rng)
    truth = answer(real, wanted)
    rows = int(count_marginals(real, [()])[()].sum())
    found = []
    for table in others:
        answers = answer(table, wanted)
        found.append(
            {
                "queries": QueryErrors.of(truth, answers),
                "relative_queries": RelativeErrors.of(truth, answers, floor=max(1.0, FLOOR * rows)),
                "answers": tuple(zip(wanted, truth.tolist(), answers.tolist(), strict=True)),
            }
        )
    return found


def _baselines(
    real: Table, columns: dict[str, tuple[list[int], list[int]]], rng: Rng
) -> tuple[dict[str, Table], tuple[str, ...]]:
    """The tables to compare beside the release, and why there are none."""
    rows = sum(next(iter(columns.values()))[0])
    if 0 < rows * len(columns) <= MOST_BASELINE_CODES:
        return baseline_tables(real, rng=rng), ()
    most = f"{MOST_BASELINE_CODES:,}"
    return {}, (f"Nothing stands beside the figures: that needs 1 to {most} codes in memory.",)


def _sampled(found: Found) -> tuple[str, ...]:
    """Where a part was compared, how large it is."""
    notes = [
        f"Of {each.of:,} marginals of {degree} columns {each.compared:,} were compared, at random "
        "or for their size."
        for degree, each in found.get("distances", {}).items()
        if each.compared < each.of
    ]
    tied = found.get("correlations")
    if tied is not None and len(tied.columns) < tied.of:
        kept = len(tied.columns)
        notes.append(
            f"Of {tied.of:,} columns the correlations of {kept} were compared, at random or for "
            "their size."
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
