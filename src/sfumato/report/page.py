"""One self-contained HTML file from a view: no script, no request, readable offline and in print.

The policy in the page's head allows exactly one style sheet, by its hash, and nothing else.
"""

import base64
import hashlib
import os
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Final, Protocol

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from sfumato import charts
from sfumato.durable import write_file
from sfumato.errors import StorageError
from sfumato.report.method_descriptions import exact_text, sum_sentence
from sfumato.report.table_page import Ties, matrix_ties, measured_sentence, size_sentence
from sfumato.report.view import (
    ColumnView,
    CorrelationView,
    PairView,
    QueryView,
    ReportView,
    StructureView,
)

INTERNAL: Final = "INTERNAL: compares with the real data. Do not publish."
SIMULATION: Final = "SIMULATION: seeded noise protects nobody."
WHISKER_SIGMAS: Final = 2
"""Whiskers reach two standard deviations: about 19 draws in 20, Gaussian or Laplace."""

_NARROW: Final = 420  # pixels: a chart in one of two columns
_WIDE: Final = 920  # pixels: a chart across the page
_WIDE_FROM: Final = 32
"""Cells across from which a chart takes the whole width of the page."""
_STANDING_BARS: Final = 12
"""Bars up to which long labels can slope below them."""
_LEVEL_LABEL_PX: Final = 44  # pixels, above which a label does not fit below a bar
_LONGEST_QUERY: Final = 24
"""Characters up to which a query stands below the axis of its chart."""
_WIDE_TIES_FROM: Final = 10
"""Columns from which a matrix of ties is wide: in a narrow one its numbers have no room."""
MOST_ROWS: Final = 500
"""Rows of a table on the page; the rest stands in the files beside it."""
_MOST_MARGINALS: Final = 100
"""Rows of a table of measured marginals: nobody reads more, and a page stays small."""
_MOST_PAIRS: Final = 60
"""Rows of a list of pairs of columns."""
_MOST_WORST: Final = 12
"""Sentences about values that stand in full view."""
MOST_NUMBERS: Final = 120
"""Rows of the table of numbers below a chart."""


def render(view: ReportView) -> str:
    """The page as text. The same view gives the same bytes."""
    return render_framed(
        "report.html",
        view,
        private=view.private,
        internal=view.internal,
        parts={
            "column_chart": _column_chart,
            "lies": _lies,
            "pair_charts": _pair_charts,
            "query_chart": _query_chart,
            "correlation_charts": _correlation_charts,
            "score_text": _score_text,
            "ties_chart": _ties_chart,
            "tied_columns": _tied_columns,
            "budget_chart": _budget_chart,
            "matrix_ties": matrix_ties,
            "measured_sentence": measured_sentence,
            "size_sentence": size_sentence,
            "share_text": _share_text,
            "sum_sentence": sum_sentence,
            "exact_text": exact_text,
            "group_colors": len(charts.GROUP_COLORS),
            "wide_from": _WIDE_FROM,
            "wide_ties_from": _WIDE_TIES_FROM,
            "most_numbers": MOST_NUMBERS,
            "most_marginals": _MOST_MARGINALS,
            "most_pairs": _MOST_PAIRS,
            "most_worst": _MOST_WORST,
        },
    )


def write(view: ReportView, path: str | os.PathLike[str]) -> None:
    """Render into a file that appears whole or not at all.

    Raises:
        StorageError: the file can't be written; an older one is left as it was.
    """
    write_text(render(view), path)


def write_text(text: str, path: str | os.PathLike[str]) -> None:
    """Write a file of a report; it appears whole or not at all, and a link is not followed.

    Raises:
        StorageError: the file can't be written; an older one is left as it was.
    """
    try:
        write_file(Path(path), text.encode())
    except OSError as error:
        raise StorageError(
            f"the report {path} can't be written: {error.strerror}. Check the folder and the "
            "free space."
        ) from error


@cache
def environment() -> Environment:
    """Where templates are rendered: strict, escaped, every label printable."""
    environment = Environment(
        loader=PackageLoader("sfumato.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        finalize=_clean,
    )
    environment.filters["readable"] = charts.readable
    return environment


def dress(*, private: bool, internal: bool) -> dict[str, Any]:
    """What the frame of every page needs: its marks, its style sheet and the hash of that.

    The words of a mark stand on no page but those that need it, where they are on top of every
    printed sheet too.
    """
    marks = [("internal", INTERNAL)] if internal else []
    marks += [] if private else [("simulation", SIMULATION)]
    style = _style_sheet() + "".join(_on_paper(*mark) for mark in marks[:1])
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return {
        "private": private,
        "internal": internal,
        "marks": marks,
        "style": Markup(style),  # ours: no word of a release is in it
        "style_hash": f"sha256-{digest}",
    }


def _on_paper(kind: str, mark: str) -> str:
    """A mark above every printed sheet, and before headings where a browser has no page margins."""
    above = f'content: "{mark}"; font: bold 9pt system-ui; color: #a3301f;'
    before = f'content: "{kind.capitalize()} \\B7  "; color: var(--alarm);'
    return f"@page {{ @top-center {{ {above} }} }}\n@media print {{ h2::before {{ {before} }} }}\n"


@cache
def _style_sheet() -> str:
    """What all pages share."""
    return (files("sfumato.report") / "templates" / "style.css").read_text("utf-8")


def _clean(value: Any) -> Any:
    """Labels may hold anything, even half a surrogate pair, which no file can store."""
    if isinstance(value, str) and not isinstance(value, Markup):
        return charts.printable(value)
    return value


def _column_chart(column: ColumnView) -> Markup:
    errors = None
    if column.sigma is not None:
        errors = [WHISKER_SIGMAS * column.sigma] * len(column.labels)
    draw = charts.sideways_chart if _lies(column) else charts.histogram_chart
    chart = draw(
        column.labels,
        column.published,
        real=column.real,
        errors=errors,
        title=column.name,
        width=_NARROW if _lies(column) else _width(column.labels),
    )
    return Markup(chart)  # charts escape every label


def _lies(column: ColumnView) -> bool:
    """Whether bars lie: many values without an order and with long names, the largest on top."""
    if column.kind != "category" or len(column.labels) <= _STANDING_BARS:
        return False
    return max(map(charts.width_px, column.labels)) > _LEVEL_LABEL_PX


def _pair_charts(pair: PairView) -> list[Markup]:
    """The published map and, on an internal page, the real one in the same shades."""
    name = f"{pair.x} × {pair.y}"
    tables = {f"{name}: published": pair.published}
    if pair.real is not None:
        tables[f"{name}: real"] = pair.real
    top = _common_top(list(tables.values()))
    width = _width(pair.x_labels)
    maps = (
        charts.heat_map(pair.x_labels, pair.y_labels, table, title=title, darkest=top, width=width)
        for title, table in tables.items()
    )
    return [Markup(chart) for chart in maps]


def _correlation_charts(correlations: CorrelationView) -> list[Markup]:
    """The published map and the real one, in the same shades."""
    names = correlations.columns
    maps = (
        charts.heat_map(
            names, names, table, title=f"Correlations: {title}", darkest=1.0, signed=True
        )
        for title, table in (
            ("published", correlations.published),
            ("real", correlations.real),
        )
    )
    return [Markup(chart) for chart in maps]


def _score_text(score: float | None) -> str:
    return "" if score is None else f"{score:.3f}"


def _width(across: tuple[str, ...]) -> int:
    return _WIDE if len(across) > _WIDE_FROM else _NARROW


def _common_top(tables: list[tuple[tuple[float, ...], ...]]) -> float | None:
    """The largest count of all maps; none where cells are merged, then each map has its own."""
    sides = [len(tables[0]), *(len(row) for row in tables[0])]
    top = max((count for table in tables for row in table for count in row), default=0.0)
    return top if top > 0 and max(sides) <= charts.MAX_HEAT_CELLS else None


def _query_chart(queries: QueryView) -> Markup:
    margins = None
    if queries.sigma is not None:
        margins = [WHISKER_SIGMAS * queries.sigma] * len(queries.labels)
    lines = [charts.Line(name="published", values=queries.published, margins=margins)]
    if queries.real is not None:
        lines.append(charts.Line(name="real", values=queries.real))
    labels: tuple[str, ...] = queries.labels
    if max(map(len, labels)) > _LONGEST_QUERY:  # numbers below the axis, words in the table
        labels = tuple(str(number) for number in range(1, len(labels) + 1))
    chart = charts.line_chart(lines, x_labels=labels, title="Answers to the queries", width=_WIDE)
    return Markup(chart)


def _ties_chart(ties: Ties) -> Markup:
    """The strengths of ties between columns as a symmetric matrix of percentages."""
    columns = list(dict.fromkeys(name for one, other, _ in ties for name in (one, other)))
    index = {name: number for number, name in enumerate(columns)}
    table = [[0.0] * len(columns) for _ in columns]
    for one, other, strength in ties:
        for row, column in ((index[one], index[other]), (index[other], index[one])):
            table[row][column] = 100 * strength
    title = "Ties between columns, in %"
    width = _WIDE if len(columns) > _WIDE_TIES_FROM else _NARROW
    return Markup(charts.heat_map(columns, columns, table, title=title, zeros=False, width=width))


def _tied_columns(ties: Ties) -> int:
    return len({name for tie in ties for name in tie[:2]})


def _share_text(share: float) -> str:
    """A share as a percentage; beyond 100% nothing is left to compare.

    >>> _share_text(0.1234), _share_text(0.00012), _share_text(7.5)
    ('12.3%', '0.012%', 'over 100%')
    """
    if share > 1:
        return "over 100%"
    return f"{100 * share:.1f}%" if share >= 0.01 else f"{100 * share:.2g}%"


def _budget_chart(structure: StructureView) -> Markup:
    """The columns from the largest budget to the smallest, rounds end to end."""
    total = structure.column_budgets
    order = sorted(range(len(structure.columns)), key=lambda at: -total[structure.columns[at]])
    order = order[:MOST_ROWS]
    parts = {
        budget.label: [float(budget.epsilons[at]) for at in order] for budget in structure.budgets
    }
    chart = charts.bar_rows(
        [structure.columns[at] for at in order],
        parts,
        title="Budget of each column",
        groups=structure.cluster_of,
    )
    return Markup(chart)


class Titled(Protocol):
    """What the frame shows of a view."""

    @property
    def title(self) -> str:
        """What the page is: a few words that follow the name of the data set."""

    @property
    def dataset(self) -> str:
        """Whose ratings or rows they are."""

    @property
    def made(self) -> str:
        """The date, as text."""


def render_framed(
    template: str, view: Titled, *, private: bool, internal: bool, parts: Mapping[str, Any]
) -> str:
    """A page as text.

    Args:
        template: A file that extends ``frame.html``.
        view: What the page shows.
        private: False for what a seeded generator made: a banner says so.
        internal: True for what compares with the real data: a banner says so.
        parts: What else the template uses.
    """
    given = dress(private=private, internal=internal) | dict(parts)
    return environment().get_template(template).render(given, view=view, most_rows=MOST_ROWS)
