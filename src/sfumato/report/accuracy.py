"""The internal page of an evaluation of recommenders: figures, and charts of them over epsilon."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isnan
from typing import Final

from markupsafe import Markup

from sfumato import charts
from sfumato.report.page import render_framed

_FEWEST_POINTS: Final = 2  # of a line over epsilon


@dataclass(frozen=True, kw_only=True, slots=True)
class AccuracyRow:
    """How well one recommender does; nan where it is not known."""

    label: str
    mae: float
    rmse: float
    ndcg: float
    recall: float
    coverage: float
    epsilon: float | None = None
    """None for what is there to compare with."""
    note: str = ""

    @property
    def figures(self) -> tuple[float, ...]:
        """In the order of the table."""
        return (self.mae, self.rmse, self.ndcg, self.recall, self.coverage)


@dataclass(frozen=True, kw_only=True, slots=True)
class AccuracyView:
    """What the page shows: real errors, so it is internal always."""

    dataset: str
    made: str
    facts: tuple[tuple[str, str], ...]
    rows: tuple[AccuracyRow, ...]
    k: int
    """The length of the lists."""
    title: str = "how good recommendations are"


def render_accuracy(view: AccuracyView) -> str:
    """The page as text. The same view gives the same bytes."""
    return render_framed(
        "accuracy.html",
        view,
        private=True,
        internal=True,
        parts={"charts": accuracy_charts(view), "figure": _figure},
    )


def accuracy_charts(view: AccuracyView) -> list[tuple[str, Markup, str]]:
    """What is gained over the own mean, and the quality of lists, over epsilon.

    None for a single epsilon, and none of what is not known.
    """
    private = sorted((row for row in view.rows if row.epsilon is not None), key=_epsilon)
    epsilons = [_epsilon(row) for row in private]
    if len(set(epsilons)) < _FEWEST_POINTS:
        return []
    shown = []
    if (own := _beside(view, "mae")) is not None:
        gains = {
            "MAE": [100 * (1 - row.mae / own.mae) for row in private],
            "RMSE": [100 * (1 - row.rmse / own.rmse) for row in private],
        }
        note = f"More is better; zero is the error of {own.label} ({own.note})."
        shown.append(("Error saved over the own mean, in %", gains, note))
    lists = {
        f"NDCG@{view.k}": [row.ndcg for row in private],
        f"recall@{view.k}": [row.recall for row in private],
    }
    note = "More is better."
    if (popular := _beside(view, "ndcg")) is not None:
        lists[f"NDCG of {popular.label}"] = [popular.ndcg] * len(private)
        note += f" The level line is {popular.label} ({popular.note})."
    shown.append(("Quality of lists", lists, note))
    return [
        (name, _chart(name, lines, epsilons), f"{note} The axis of epsilon is logarithmic.")
        for name, lines, note in shown
        if not any(isnan(value) for values in lines.values() for value in values)
    ]


def _epsilon(row: AccuracyRow) -> float:
    return 0.0 if row.epsilon is None else row.epsilon


def _beside(view: AccuracyView, figure: str) -> AccuracyRow | None:
    """The first row without an epsilon that knows a figure."""
    known = (row for row in view.rows if row.epsilon is None and not isnan(getattr(row, figure)))
    return next(known, None)


def _chart(name: str, lines: Mapping[str, Sequence[float]], epsilons: Sequence[float]) -> Markup:
    shown = [charts.Line(name=label, values=values) for label, values in lines.items()]
    return Markup(
        charts.line_chart(
            shown,
            x_labels=[f"{epsilon:g}" for epsilon in epsilons],
            x_values=epsilons,
            log_x=True,
            title=name,
        )
    )


def _figure(value: float) -> str:
    return "" if isnan(value) else f"{value:.3f}"
