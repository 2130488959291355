"""Displays for notebooks: a title, facts, small tables and charts, as HTML without script.

Text and lines take the notebook's own color, so that light and dark themes both read well; a
chart brings its own paper. Every text is escaped here and nowhere else.
"""

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Final

from sfumato.charts.canvas import printable

MOST_ROWS: Final = 12
"""Of a table in a notebook; of more, the first ones and how many are left."""

_LINE: Final = "border-top:1px solid rgba(128,128,128,.35)"
_CELL: Final = f"padding:.2em .8em .2em 0;text-align:left;vertical-align:top;{_LINE}"
_TABLE: Final = "border-collapse:collapse;font-size:inherit;margin:.3em 0 .6em"
_WARNING: Final = "border-left:.3em solid #b4573c;padding:.2em .6em;margin:.4em 0;font-weight:600"
_CHARTS: Final = "display:flex;flex-wrap:wrap;gap:.5em;margin:.6em 0"


def card(title: str, *parts: str, warning: str = "") -> str:
    """One display: a title, a warning if there is one, and parts that are HTML already."""
    loud = f'<div style="{_WARNING}">{text(warning)}</div>' if warning else ""
    head = f'<div style="font-weight:600;margin:.3em 0" dir="auto">{text(title)}</div>'
    return f'<div class="sf-card" style="max-width:62em">{head}{loud}{"".join(parts)}</div>'


def facts(named: Mapping[str, str]) -> str:
    """Names and what is to be said of each, one below the other."""
    rows = "".join(
        f'<tr><th style="{_CELL};font-weight:400;opacity:.75">{text(name)}</th>'
        f'<td style="{_CELL}" dir="auto">{text(value)}</td></tr>'
        for name, value in named.items()
    )
    return _scrolling(f'<table style="{_TABLE}">{rows}</table>')


def rows_table(head: Sequence[str], rows: Iterable[Sequence[str]], *, note: str = "") -> str:
    """A small table of texts; of many rows the first ones, and a line that says so."""
    listed = list(rows)
    left = f"and {len(listed) - MOST_ROWS:,} more" if len(listed) > MOST_ROWS else ""
    names = "".join(f'<th style="{_CELL}" dir="auto">{text(name)}</th>' for name in head)
    body = "".join(
        "<tr>"
        + "".join(f'<td style="{_CELL}" dir="auto">{text(cell)}</td>' for cell in row)
        + "</tr>"
        for row in listed[:MOST_ROWS]
    )
    below = "; ".join(each for each in (left, note) if each)
    line = f'<div style="opacity:.75">{text(below)}</div>' if below else ""
    return _scrolling(f'<table style="{_TABLE}"><tr>{names}</tr>{body}</table>') + line


def charts(drawn: Iterable[str]) -> str:
    """Charts side by side where there is room; they are SVG from this package, and safe."""
    return f'<div style="{_CHARTS}">{"".join(drawn)}</div>'


def text(content: str) -> str:
    """A text as HTML shows it, whatever it holds."""
    return escape(printable(content))


def _scrolling(inside: str) -> str:
    return f'<div style="overflow-x:auto">{inside}</div>'
