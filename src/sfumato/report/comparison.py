"""What the internal page shows: a view from an evaluation, real beside published."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from sfumato import charts
from sfumato.evaluation.classifiers import LabelScores, Scores
from sfumato.evaluation.correlations import Correlations
from sfumato.evaluation.result import Evaluation, PairCounts
from sfumato.models.model import total_variation
from sfumato.release import TableRelease
from sfumato.report.table_page import (
    MOST_COLUMNS,
    MOST_PAIRS,
    MOST_QUERIES,
    many_bins,
    range_label,
    report_view,
)
from sfumato.report.values_section import values_view
from sfumato.report.view import (
    ColumnView,
    CorrelationView,
    Figure,
    PairView,
    QueryView,
    ReportView,
    ScoreRow,
)
from sfumato.schema import Marginal, Schema
from sfumato.schema.classes import in_classes

_UNITS: Final = {"mean_squared": "in squared counts"}


def internal_view(release: TableRelease, evaluation: Evaluation) -> ReportView:
    """The page that compares with the real data; it must not be published."""
    page = report_view(release)
    distances = _column_distances(evaluation)
    return replace(
        page,
        title="real against published",
        internal=True,
        files=(),  # they are in the folder that may be published
        measured=None,  # and so is what was measured
        distances=distances,
        columns=tuple(
            _compared_column(release.schema, name, distance, *evaluation.columns[name])
            for name, distance in distances[:MOST_COLUMNS]
        ),
        pairs=tuple(
            _compared_pair(release.schema, marginal, *counts)
            for marginal, counts in list(evaluation.pairs.items())[:MOST_PAIRS]
        ),
        queries=_compared_queries(release.schema, evaluation),
        measures=tuple(_measures(evaluation)),
        baselines=tuple(evaluation.baselines),
        correlations=_correlations(evaluation.correlations),
        scores=tuple(
            row for label, each in evaluation.classifiers.items() for row in _scores(label, each)
        ),
        tested_on=_tested_on(evaluation),
        values=values_view(evaluation),
        notes=(*page.notes, *evaluation.notes),
    )


def _tested_on(evaluation: Evaluation) -> str:
    """Plainly, whether the rows that classifiers were tested on took part in the release."""
    if evaluation.held_back is None:
        return (
            "The real rows that classifiers are tested on took part in the release: they are a "
            "fifth of its table, kept from the classifiers that learned from real rows only. The "
            "guarantee limits how much that can help. To test on rows that took no part, hold "
            "some back before publishing and give them with --held-back."
        )
    return (
        f"The {evaluation.held_back:,} real rows that classifiers are tested on took no part in "
        "the release: they were held back."
    )


def _column_distances(evaluation: Evaluation) -> tuple[tuple[str, float], ...]:
    """Every column with its total variation from the real one, the worst first."""
    distances = [
        (name, _gap(real, published)) for name, (real, published) in evaluation.columns.items()
    ]
    return tuple(sorted(distances, key=lambda column: -column[1]))


def _gap(real: ArrayLike, published: ArrayLike) -> float:
    """Total variation; 1 where one of the tables is empty."""
    counts = [np.asarray(each, dtype=np.float64) for each in (real, published)]
    return total_variation(*counts) if all(each.sum() > 0 for each in counts) else 1.0


def _gap_note(distance: float, where: str) -> str:
    share = f"{100 * distance:.2g}% of the rows are in a wrong {where}"
    return f"Total variation {distance:.4f}: {share}."


def _compared_column(
    schema: Schema, name: str, distance: float, real: Sequence[int], published: Sequence[int]
) -> ColumnView:
    column, sides = schema[name], (np.asarray(published), np.asarray(real))
    labels = column.labels
    if many_bins(column):
        (labels, one), (_, other) = (in_classes(column, side) for side in sides)
        sides = one, other
    return ColumnView(
        name=name,
        kind=column.kind,
        labels=labels,
        published=tuple(map(float, sides[0])),
        real=tuple(map(float, sides[1])),
        note=_gap_note(distance, "bar"),
    )


def _compared_pair(
    schema: Schema, marginal: Marginal, real: PairCounts, published: PairCounts
) -> PairView:
    x, y = marginal
    return PairView(
        x=x,
        y=y,
        x_labels=schema[x].labels,
        y_labels=schema[y].labels,
        published=tuple(tuple(map(float, row)) for row in published),
        real=tuple(tuple(map(float, row)) for row in real),
        note=_gap_note(_gap(real, published), "cell"),
    )


def _compared_queries(schema: Schema, evaluation: Evaluation) -> QueryView | None:
    """The ranges that hold most rows, from the largest down."""
    if not evaluation.answers:
        return None
    shown = sorted(evaluation.answers, key=lambda answer: -answer[1])[:MOST_QUERIES]
    return QueryView(
        labels=tuple(range_label(schema, box) for box, _, _ in shown),
        real=tuple(float(real) for _, real, _ in shown),
        published=tuple(float(published) for _, _, published in shown),
    )


def _correlations(correlations: Correlations | None) -> CorrelationView | None:
    """As many columns as a heat map can hold."""
    if correlations is None:
        return None
    shown = slice(charts.MAX_HEAT_CELLS)
    return CorrelationView(
        columns=correlations.columns[shown],
        real=tuple(map(tuple, correlations.real[shown, shown].tolist())),
        published=tuple(map(tuple, correlations.published[shown, shown].tolist())),
    )


def _scores(label: str, scores: LabelScores) -> list[ScoreRow]:
    rows = [_score_row(label, "always the most frequent", "real", scores.majority)]
    for model in scores.published:
        rows.append(_score_row(label, model, "published", scores.published[model]))
        rows.append(_score_row(label, model, "real", scores.real[model]))
    return rows


def _score_row(label: str, model: str, learned_from: str, scores: Scores) -> ScoreRow:
    figures = (scores.accuracy, scores.balanced_accuracy, scores.f1, scores.auc)
    return ScoreRow(label=label, model=model, learned_from=learned_from, figures=figures)


def _measures(evaluation: Evaluation) -> list[Figure]:
    """Every figure of the release, and beside it those of the baselines."""
    return [
        *_distances(evaluation),
        *_dependence(evaluation),
        *_query_errors(evaluation),
        *(
            Figure(
                name=f"Wrong guesses of {label}",
                value=f"{errors.published:.1%}",
                note="by a linear classifier that learned from published rows; from real rows "
                f"{errors.real:.1%}",
                beside=("",) * len(evaluation.baselines),
            )
            for label, errors in evaluation.misclassification.items()
        ),
    ]


def _distances(evaluation: Evaluation) -> list[Figure]:
    others, figures = evaluation.baselines.values(), []
    for degree, each in evaluation.distances.items():
        every = f"all {each.of:,}" if each.compared == each.of else f"{each.compared:,}"
        note = (
            f"mean over {every} marginals of {degree}; least {each.min:.4f}, worst "
            f"{', '.join(each.worst)} at {each.max:.4f}"
        )
        figures.append(
            Figure(
                name=f"{degree}-way total variation",
                value=f"{each.mean:.4f}",
                note=note,
                beside=tuple(f"{other.tv[degree]:.4f}" for other in others),
            )
        )
    for degree, value in evaluation.mse.items():
        beside = tuple(f"{other.mse[degree]:,.1f}" for other in others)
        name = f"{degree}-way squared error"
        figures.append(Figure(name=name, value=f"{value:,.1f}", beside=beside))
    return figures


def _dependence(evaluation: Evaluation) -> list[Figure]:
    others, figures = evaluation.baselines.values(), []
    if evaluation.information_error is not None:
        figures.append(
            Figure(
                name="Error of mutual information",
                value=f"{evaluation.information_error:.4f}",
                note="mean over pairs of columns of the difference in mutual information, in nats",
                beside=tuple(f"{other.information_error:.4f}" for other in others),
            )
        )
    if evaluation.correlations is not None:
        pair, gap = evaluation.correlations.worst
        figures.append(
            Figure(
                name="Error of correlations",
                value=f"{evaluation.correlations.error:.4f}",
                note=f"mean over pairs of columns; worst {', '.join(pair)}, off by {gap:.4f}",
                beside=tuple(
                    f"{other.correlations.error:.4f}" for other in others if other.correlations
                ),
            )
        )
    return figures


def _query_errors(evaluation: Evaluation) -> list[Figure]:
    others, figures = evaluation.baselines.values(), []
    if evaluation.queries is not None:
        figures += [
            Figure(
                name=f"Query error, {name.replace('_', ' ')}",
                value=f"{value:,.1f}",
                note=_UNITS.get(name, "in counts"),
                beside=tuple(f"{getattr(other.queries, name):,.1f}" for other in others),
            )
            for name, value in evaluation.queries.to_dict().items()
        ]
    if evaluation.relative_queries is not None:
        floor = charts.readable(evaluation.relative_queries.floor)
        figures += [
            Figure(
                name=f"Relative query error, {name}",
                value=f"{getattr(evaluation.relative_queries, name):.1%}",
                note=f"of the real answer; answers below {floor} count as {floor}",
                beside=tuple(f"{getattr(other.relative_queries, name):.1%}" for other in others),
            )
            for name in ("mean", "median")
        ]
    return figures
