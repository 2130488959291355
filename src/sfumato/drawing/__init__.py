"""SVG text from numbers: the charts of reports and of notebook displays.

Pure functions; the same numbers give the same bytes. Colors are presentation attributes, so that a
chart saved as a file looks right by itself, and every part has a class (``sf-bar``, ``sf-real``)
by which a page's style sheet colors it anew, for dark mode. No script, no style attribute.
"""

from sfumato.drawing.badges import GROUP_COLORS
from sfumato.drawing.bars import MAX_BARS, cells_per_bar
from sfumato.drawing.heat import MAX_HEAT_CELLS, heat_map
from sfumato.drawing.histogram import histogram_chart
from sfumato.drawing.lines import MAX_LINES, MAX_POINTS, Line, line_chart
from sfumato.drawing.network import MAX_EDGES, MAX_NODES, Edge, network_chart
from sfumato.drawing.numbers import compact, readable
from sfumato.drawing.rows import bar_rows
from sfumato.drawing.sideways import sideways_chart
from sfumato.drawing.text import printable, width_px

__all__ = [
    "GROUP_COLORS",
    "MAX_BARS",
    "MAX_EDGES",
    "MAX_HEAT_CELLS",
    "MAX_LINES",
    "MAX_NODES",
    "MAX_POINTS",
    "Edge",
    "Line",
    "bar_rows",
    "cells_per_bar",
    "compact",
    "heat_map",
    "histogram_chart",
    "line_chart",
    "network_chart",
    "printable",
    "readable",
    "sideways_chart",
    "width_px",
]
