"""One self-contained HTML file from a view: no script, no request, readable offline and in print.

The policy in the page's head allows exactly one style sheet, by its hash, and nothing else.
"""

import base64
import hashlib
import math
import os
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from sfumato import drawing
from sfumato.errors import StorageError
from sfumato.reporting.measured import drawn_ties, measured_sentence, size_sentence
from sfumato.reporting.structure import exact_text, sum_sentence
from sfumato.reporting.view import (
    ColumnView,
    CorrelationView,
    MeasuredView,
    PairView,
    QueryView,
    ReportView,
    StructureView,
)

WHISKER_SIGMAS: Final = 2
"""Whiskers reach two standard deviations: about 19 draws in 20, Gaussian or Laplace."""

_NARROW: Final = 420
_WIDE: Final = 920
_WIDE_FROM: Final = 32
"""Cells across from which a chart takes the whole width of the page."""
_LONGEST_QUERY: Final = 24
"""Characters up to which a query stands below the axis of its chart."""
_LARGE_FROM: Final = 60
"""Columns from which a network keeps its size and is scrolled: fitted to a page, names shrink."""
MOST_ROWS: Final = 500
"""Rows of a table on the page; the rest stands in the files beside it."""
_MOST_MARGINALS: Final = 200
"""Rows of a table of measured marginals: nobody reads more, and a page stays small."""


def render(view: ReportView) -> str:
    """The page as text. The same view gives the same bytes."""
    style = style_sheet()
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return (
        environment()
        .get_template("report.html")
        .render(
            view=view,
            private=view.private,
            internal=view.internal,
            style=Markup(style),
            style_hash=f"sha256-{digest}",
            column_chart=_column_chart,
            bar_cells=drawing.cells_per_bar,
            bar_reach=_bar_reach,
            pair_charts=_pair_charts,
            query_chart=_query_chart,
            correlation_charts=_correlation_charts,
            score_text=_score_text,
            network_chart=_network_chart,
            ties_chart=_ties_chart,
            budget_chart=_budget_chart,
            measured_chart=_measured_chart,
            drawn_ties=drawn_ties,
            measured_sentence=measured_sentence,
            size_sentence=size_sentence,
            share_text=_share_text,
            sum_sentence=sum_sentence,
            exact_text=exact_text,
            group_colors=len(drawing.GROUP_COLORS),
            wide_from=_WIDE_FROM,
            most_rows=MOST_ROWS,
            most_marginals=_MOST_MARGINALS,
            large_from=_LARGE_FROM,
        )
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
    target = Path(path)
    draft = target.with_name(f".{target.name}.{os.getpid()}.draft")
    try:
        try:
            with draft.open("xb") as file:
                file.write(text.encode())
                file.flush()
                os.fsync(file.fileno())
            draft.replace(target)
        finally:
            draft.unlink(missing_ok=True)
    except OSError as error:
        raise StorageError(
            f"the report {target} can't be written: {error.strerror}. "
            "Nothing was changed; check the folder and the free space."
        ) from error


@cache
def environment() -> Environment:
    """Where templates are rendered: strict, escaped, every label printable."""
    environment = Environment(
        loader=PackageLoader("sfumato.reporting"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        finalize=_clean,
    )
    environment.filters["readable"] = drawing.readable
    return environment


@cache
def style_sheet() -> str:
    """The one style sheet of all pages."""
    return (files("sfumato.reporting") / "templates" / "style.css").read_text("utf-8")


def _clean(value: Any) -> Any:
    """Labels may hold anything, even half a surrogate pair, which no file can store."""
    if isinstance(value, str) and not isinstance(value, Markup):
        return drawing.printable(value)
    return value


def _column_chart(column: ColumnView) -> Markup:
    errors = None
    if column.sigma is not None:
        errors = [WHISKER_SIGMAS * column.sigma] * len(column.labels)
    chart = drawing.histogram_chart(
        column.labels,
        column.published,
        real=column.real,
        errors=errors,
        title=column.name,
        width=_width(column.labels),
    )
    return Markup(chart)  # drawing escapes every label


def _bar_reach(column: ColumnView) -> float | None:
    """Half the length of a whisker: noise of cells that a bar adds up, in squares."""
    if column.sigma is None:
        return None
    return WHISKER_SIGMAS * column.sigma * math.sqrt(drawing.cells_per_bar(len(column.labels)))


def _pair_charts(pair: PairView) -> list[Markup]:
    """The published map and, on an internal page, the real one in the same shades."""
    name = f"{pair.x} × {pair.y}"
    tables = {f"{name}: published": pair.published}
    if pair.real is not None:
        tables[f"{name}: real"] = pair.real
    top = _common_top(list(tables.values()))
    width = _width(pair.x_labels)
    charts = (
        drawing.heat_map(pair.x_labels, pair.y_labels, table, title=title, darkest=top, width=width)
        for title, table in tables.items()
    )
    return [Markup(chart) for chart in charts]


def _correlation_charts(found: CorrelationView) -> list[Markup]:
    """The published map and the real one, in the same shades."""
    names = found.columns
    charts = (
        drawing.heat_map(
            names, names, table, title=f"Correlations: {title}", darkest=1.0, signed=True
        )
        for title, table in (("published", found.published), ("real", found.real))
    )
    return [Markup(chart) for chart in charts]


def _score_text(score: float | None) -> str:
    return "" if score is None else f"{score:.3f}"


def _width(across: tuple[str, ...]) -> int:
    return _WIDE if len(across) > _WIDE_FROM else _NARROW


def _common_top(tables: list[tuple[tuple[float, ...], ...]]) -> float | None:
    """The largest count of all maps; none where cells are merged, then each map has its own."""
    sides = [len(tables[0]), *(len(row) for row in tables[0])]
    top = max((count for table in tables for row in table for count in row), default=0.0)
    return top if top > 0 and max(sides) <= drawing.MAX_HEAT_CELLS else None


def _query_chart(queries: QueryView) -> Markup:
    margins = None
    if queries.sigma is not None:
        margins = [WHISKER_SIGMAS * queries.sigma] * len(queries.labels)
    lines = [drawing.Line(name="published", values=queries.published, margins=margins)]
    if queries.real is not None:
        lines.append(drawing.Line(name="real", values=queries.real))
    labels: tuple[str, ...] = queries.labels
    if max(map(len, labels)) > _LONGEST_QUERY:  # numbers below the axis, words in the table
        labels = tuple(str(number) for number in range(1, len(labels) + 1))
    chart = drawing.line_chart(lines, x_labels=labels, title="Answers to the queries", width=_WIDE)
    return Markup(chart)


def _network_chart(structure: StructureView) -> Markup | None:
    """Arrows from parents to children; None where there are more than a drawing can hold."""
    children = zip(structure.columns, structure.parents, strict=True)
    edges = [drawing.Edge(start=name, end=child) for child, names in children for name in names]
    return _graph(structure, edges, directed=True, title="Network of columns")


def _ties_chart(structure: StructureView) -> Markup | None:
    """Lines as wide as the ties are strong; None where there are more than a drawing can hold."""
    edges = [drawing.Edge(start=a, end=b, strength=width) for a, b, width in structure.ties]
    return _graph(structure, edges, directed=False, title="Ties between columns")


def _graph(
    structure: StructureView, edges: list[drawing.Edge], *, directed: bool, title: str
) -> Markup | None:
    if len(structure.columns) > drawing.MAX_NODES or len(edges) > drawing.MAX_EDGES:
        return None
    groups = structure.cluster_of
    return Markup(
        drawing.network_chart(
            structure.columns, edges, directed=directed, title=title, groups=groups
        )
    )


def _measured_chart(measured: MeasuredView) -> Markup:
    """Lines between columns that were measured together, as wide as the model ties them."""
    columns, ties = drawn_ties(measured)
    edges = [drawing.Edge(start=a, end=b, strength=width) for a, b, width in ties]
    title = "Columns that were measured together"
    return Markup(drawing.network_chart(columns, edges, directed=False, title=title))


def _share_text(share: float) -> str:
    """A share as a percentage; beyond 100% nothing is left to tell apart.

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
    chart = drawing.bar_rows(
        [structure.columns[at] for at in order],
        parts,
        title="Budget of each column",
        groups=structure.cluster_of,
    )
    return Markup(chart)
