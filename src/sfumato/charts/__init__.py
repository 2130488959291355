"""SVG text from numbers: the charts of reports and of notebook displays.

Pure functions; the same numbers give the same bytes. Colors are presentation attributes, so that a
chart saved as a file looks right by itself, and every part has a class (``sf-bar``, ``sf-real``)
by which a page's style sheet colors it anew, for dark mode. No script, no style attribute.
"""

from sfumato.charts.bars import (
    MAX_BARS,
    MAX_HEAT_CELLS,
    bar_rows,
    cells_per_bar,
    heat_map,
    histogram_chart,
    sideways_chart,
)
from sfumato.charts.canvas import GROUP_COLORS, compact, printable, readable, value_text, width_px
from sfumato.charts.lines import MAX_LINES, MAX_POINTS, Line, line_chart

__all__ = [
    "GROUP_COLORS",
    "MAX_BARS",
    "MAX_HEAT_CELLS",
    "MAX_LINES",
    "MAX_POINTS",
    "Line",
    "bar_rows",
    "cells_per_bar",
    "compact",
    "heat_map",
    "histogram_chart",
    "line_chart",
    "printable",
    "readable",
    "sideways_chart",
    "value_text",
    "width_px",
]
