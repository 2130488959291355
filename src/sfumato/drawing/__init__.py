"""SVG text from numbers: the charts of reports and of notebook displays.

Pure functions; the same numbers give the same bytes. Colors are presentation attributes, so that a
chart saved as a file looks right by itself, and every part has a class (``sf-bar``, ``sf-real``)
by which a page's style sheet colors it anew, for dark mode. No script, no style attribute.
"""

from sfumato.drawing.heat import MAX_HEAT_CELLS, heat_map
from sfumato.drawing.histogram import MAX_BARS, cells_per_bar, histogram_chart
from sfumato.drawing.lines import MAX_LINES, MAX_POINTS, Line, line_chart
from sfumato.drawing.numbers import compact, readable
from sfumato.drawing.text import printable

__all__ = [
    "MAX_BARS",
    "MAX_HEAT_CELLS",
    "MAX_LINES",
    "MAX_POINTS",
    "Line",
    "cells_per_bar",
    "compact",
    "heat_map",
    "histogram_chart",
    "line_chart",
    "printable",
    "readable",
]
