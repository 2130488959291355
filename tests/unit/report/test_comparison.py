"""The internal page: figures beside their baselines, correlations, classifiers."""

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from sfumato.commands.publish import publish_table
from sfumato.errors import InputError
from sfumato.evaluation.evaluate import (
    Classifiers,
    InformationError,
    Misclassification,
    PairCorrelations,
    RangeQueries,
    TotalVariation,
    evaluate,
)
from sfumato.evaluation.result import Evaluation
from sfumato.ledger import Ledger
from sfumato.randomness import simulation_rng
from sfumato.readers.open_table import open_table
from sfumato.release import TableRelease
from sfumato.report import render
from sfumato.report.comparison import internal_view
from sfumato.report.table_page import report_view
from sfumato.report.view import CorrelationView, Figure, ScoreRow
from sfumato.schema import Boolean, Category, Integer, Schema

SCHEMA = Schema(
    dataset="inside",
    columns=(
        Integer(name="age", low=0, high=4),
        Category(name="town<b>", values=("A", "B", "C")),
        Boolean(name="member"),
    ),
)
ROWS = pa.table(
    {
        "age": [n % 5 for n in range(300)],
        "town<b>": ["ABC"[n % 3] for n in range(300)],
        "member": [n % 3 == 0 for n in range(300)],
    }
)


@pytest.fixture(scope="module")
def release() -> TableRelease:
    return publish_table(ROWS, schema=SCHEMA, epsilon=1, method="histogram", seed=1)


def found(release: TableRelease, *measures: Any) -> Evaluation:
    return evaluate(
        release, against=open_table(ROWS, SCHEMA), measures=measures, rng=simulation_rng(0),
        ledger=Ledger.in_memory(dataset="inside"), baselines=True,
    )  # fmt: skip


def test_every_figure_stands_beside_its_baselines(release: TableRelease) -> None:
    measures = (TotalVariation(degree=2), InformationError(), PairCorrelations())
    compared = found(release, *measures, RangeQueries(n=50))
    view = internal_view(release, compared)
    assert view.baselines == ("permuted columns", "resampled rows")
    assert all(len(figure.beside) == 2 for figure in view.measures)
    named = {figure.name: figure for figure in view.measures}
    permuted = compared.baselines["permuted columns"]
    assert named["2-way total variation"].beside[0] == f"{permuted.tv[2]:.4f}"
    assert {"Error of correlations", "Relative query error, mean"} <= named.keys()
    page = render(view)
    assert "Permuted columns" in page
    assert f'<td class="number">{permuted.tv[2]:.4f}</td>' in page


def test_correlations_are_drawn_twice_and_the_pairs_that_differ_most_are_listed(
    release: TableRelease,
) -> None:
    compared = found(release, PairCorrelations())
    view = internal_view(release, compared)
    assert view.correlations is not None
    pair, gap = compared.correlations.worst if compared.correlations else ((), 0)
    one, other, real, published = view.correlations.gaps[0]
    assert ((one, other), abs(real - published)) == (pair, pytest.approx(gap))
    page = render(view)
    assert "Correlations: published" in page
    assert "Correlations: real" in page
    assert "town<b>" not in page


def test_classifiers_stand_below_always_the_same_guess(release: TableRelease) -> None:
    pytest.importorskip("sklearn")
    models = ("logistic regression",)
    measures = (Classifiers(labels=("member",), models=models), Misclassification(label="member"))
    view = internal_view(release, found(release, *measures))
    assert [(row.model, row.learned_from) for row in view.scores] == [
        ("always the most frequent", "real"),
        ("logistic regression", "published"),
        ("logistic regression", "real"),
    ]
    assert view.scores[2].figures[0] == 1
    page = render(view)
    assert "Train on published, test on real" in page
    assert "Wrong guesses of member" in page


def test_what_was_left_out_stands_among_the_notes(release: TableRelease) -> None:
    view = internal_view(release, found(release, PairCorrelations(most_columns=2)))
    assert any("Of 3 columns the correlations of 2" in note for note in view.notes)


@pytest.mark.parametrize(
    "part",
    [
        {"baselines": ("resampled rows",)},
        {"correlations": CorrelationView(columns=("a",), real=((1.0,),), published=((1.0,),))},
        {"scores": (ScoreRow(label="a", model="m", learned_from="real", figures=(1.0,)),)},
    ],
    ids=str,
)
def test_a_page_that_may_be_published_takes_nothing_of_a_comparison(
    part: Any, release: TableRelease
) -> None:
    with pytest.raises(InputError, match="not marked internal"):
        replace(report_view(release), **part)


def test_a_view_is_valid_from_birth(release: TableRelease) -> None:
    with pytest.raises(InputError, match="the correlations has 2 labels but 1 counts"):
        CorrelationView(columns=("a", "b"), real=((1.0,),), published=((1.0,),))
    lonely = Figure(name="tv", value="1", beside=("2", "3"))
    with pytest.raises(InputError, match="2 figures beside it but the page has 0 baselines"):
        replace(report_view(release), internal=True, measures=(lonely,))
