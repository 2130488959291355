"""Writes docs/growth.md, docs/scale.md and docs/images/growth.svg from bench/results/growth.json.

A test runs this and fails when a page on disk is not what it writes.
"""

import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "bench"))

from growth_curves import (
    CURVES,
    DONE,
    LEAST_CPU_S,
    MOST_EXPONENT,
    UPPER_POINTS,
    Curve,
    Point,
    broken,
    fitted,
    size_text,
)
from growth_scale import scale_page
from sfumato.charts import Line, line_chart

ROOT = Path(__file__).resolve().parents[1]
ROOT = Path(__file__).resolve().parents[1]
ROOT = Path(__file__).resolve().parents[1]
ROOT = Path(__file__).resolve().parents[1]
ROOT = Path(__file__).resolve().parents[1]
RESULT = ROOT / "bench" / "results" / "growth.json"
GROWTH, SCALE = ROOT / "docs" / "growth.md", ROOT / "docs" / "scale.md"
PICTURE = ROOT / "docs" / "images" / "growth.svg"
PANEL, ACROSS, BETWEEN = 250, 4, 10
LEAST_SHOWN_S = 0.001
TIMES = ", ".join(f"{seconds:g} s" for seconds in sorted({curve.timeout_s for curve in CURVES}))
HEAD = f"""# Growth

Written by `python docs/make_growth.py` from what `python bench/growth.py` found; do not edit.
Each main job, from file to folder, at growing sizes: every point is a run in a process of its
own, none is extrapolated. Figures are CPU-seconds of all threads, without the start of Python and
compilation (a small run comes first). Memory is what the process alone holds, looked at 20 times a
second; pages of files, which the system takes back when it needs them, are not counted.

**Exponent**: log(cost - cost of the smallest size) against log(size - smallest size), least
squares over the largest {UPPER_POINTS} sizes that took at least {LEAST_CPU_S} CPU-seconds more
than the smallest: 1 is linear; against epsilon over all sizes, nothing subtracted. Held: at most
{MOST_EXPONENT} against rows. A point that passes the time limit of its curve ({TIMES}) or the
machine's memory is stopped and stands here as that; larger ones are then not run.

"""
AXES = {
    "rows": (
        "Rows",
        "20 columns of 2 to 20 values, each tied to the one before, as Parquet; the histogram has "
        "four of them (1,920 cells). `publish` and `dp2pub` write as many rows as they read. "
        "`answers` are about one column of 20 values.",
    ),
    "columns": ("Columns", "100,000 rows; the same kinds of columns."),
    "cells": ("Cells", "100,000 rows of 3 to 7 columns of ten values; all pairs are asked for."),
    "epsilon": ("Epsilon", "100,000 rows x 10 columns."),
    "ratings": (
        "Ratings",
        "A catalogue of 2,000 items, 50 ratings a person on average, of which 100 count.",
    ),
}

Result = dict[str, Any]


def main() -> None:
    """Write both pages and the picture."""
    found = stored()
    GROWTH.write_text(growth_page(found), encoding="utf-8")
    SCALE.write_text(scale_page(found), encoding="utf-8")
    PICTURE.write_text(picture(found) + "\n", encoding="utf-8")


def stored() -> Result:
    """What the last runs left."""
    found: Result = json.loads(RESULT.read_text())
    return found


def of(curve: Curve, found: Result) -> list[Point]:
    """The points of a curve, smallest first."""
    mine = [point for point in found["points"] if point["curve"] == curve.name]
    return sorted(mine, key=lambda point: point["size"])


def growth_page(found: Result) -> str:
    """The whole page of curves as text."""
    parts = [HEAD, ran(found), not_held(found)]
    parts.append("![CPU-seconds of every job against its size](images/growth.svg)\n\n")
    return "".join([*parts, *(section(axis, found) for axis in AXES)])


def ran(found: Result) -> str:
    """Where, when and with what."""
    here, points = found["machine"], [p for p in found["points"] if "load" in p]
    loads = [point["load"] for point in points]
    with_what = ", ".join(f"{name} {number}" for name, number in found["versions"].items())
    return (
        f"`{found['command']}`, {found['date']}: {here['processor']}, {here['cores']} cores, "
        f"{here['memory_gb']} GB, Python {here['python']}; load before a point {min(loads)} to "
        f"{max(loads)}. {with_what}.\n\n"
    )


def not_held(found: Result) -> str:
    """What does not hold, first."""
    lines = [
        f"| {curve.title}, against {curve.axis} | {'; '.join(told)} |\n"
        for curve in CURVES
        if (told := broken(curve, of(curve, found)))
    ]
    missing = [curve.name for curve in CURVES if len(of(curve, found)) < len(curve.sizes)]
    text = "## Goals that are missed, or were not reached\n\n"
    text += "| job | what |\n|---|---|\n" + "".join(lines) + "\n" if lines else "Nothing.\n\n"
    return text + (f"Points are still to be run: {', '.join(missing)}.\n\n" if missing else "")


def section(axis: str, found: Result) -> str:
    """The curves against one quantity: cost, then memory where it grows."""
    title, says = AXES[axis]
    curves = [curve for curve in CURVES if curve.axis == axis and of(curve, found)]
    if not curves:
        return ""
    text = f"## {title}\n\n{says}\n\nCPU-seconds:\n\n{table(curves, found, 'cpu_s')}\n"
    if axis in ("rows", "columns", "cells", "ratings"):
        text += f"Peak memory, MB:\n\n{table(curves, found, 'memory_mb')}\n"
    return text


def table(curves: list[Curve], found: Result, field: str) -> str:
    """A row for each curve, a column for each size; the exponent is that of the cost."""
    sizes = sorted({size for curve in curves for size in curve.sizes})
    heads = [size_text(curves[0].axis, size) for size in sizes]
    cost = field == "cpu_s"
    lines = [f"| job | {' | '.join(heads)} |{' exponent |' if cost else ''}\n"]
    lines.append("|---" * (len(sizes) + 1 + cost) + "|\n")
    for curve in curves:
        by_size = {point["size"]: point for point in of(curve, found)}
        cells = [shown(by_size.get(size), field, planned=size in curve.sizes) for size in sizes]
        power = fitted(curve, of(curve, found))
        last = f" {power[0]:.2f} |" if cost and power else " - |" if cost else ""
        lines.append(f"| {curve.title} | {' | '.join(cells)} |{last}\n")
    return "".join(lines)


def shown(point: Point | None, field: str, *, planned: bool) -> str:
    """A figure, or what came instead of it.

    >>> shown({"outcome": "done", "cpu_s": 0.0123}, "cpu_s", planned=True)
    '0.012'
    >>> shown(None, "cpu_s", planned=True), shown(None, "cpu_s", planned=False)
    ('not run yet', '-')
    """
    if point is None:
        return "not run yet" if planned else "-"
    if point["outcome"] != DONE:
        return str(point["outcome"]).partition(":")[0]
    value = float(point[field])
    return f"{value:,.0f}" if value >= 100 else f"{value:.2g}" if value < 1 else f"{value:.1f}"


def picture(found: Result) -> str:
    """Small charts beside and below each other, one for each curve, both axes logarithmic."""
    charts = [chart(curve, found) for curve in CURVES if _drawable(curve, found)]
    heights = [_height(each) for each in charts]
    row_height = max(heights, default=0) + BETWEEN
    inside = "".join(
        each.replace(
            "<svg ",
            f'<svg x="{place % ACROSS * (PANEL + BETWEEN)}" y="{place // ACROSS * row_height}" ',
            1,
        )
        for place, each in enumerate(charts)
    )
    width = ACROSS * (PANEL + BETWEEN) - BETWEEN
    height = -(-len(charts) // ACROSS) * row_height - BETWEEN
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}"><title>CPU-seconds against size</title>'
        f'<rect width="{width}" height="{height}" fill="#fff"/>{inside}</svg>'
    )


def chart(curve: Curve, found: Result) -> str:
    """One curve."""
    done = [point for point in of(curve, found) if point["outcome"] == DONE]
    return line_chart(
        [Line(name="CPU-s", values=[max(p["cpu_s"], LEAST_SHOWN_S) for p in done])],
        x_labels=[_short(curve, point["size"]) for point in done],
        x_values=[p["size"] for p in done],
        log_x=True,
        log_y=True,
        title=curve.name,
        width=PANEL,
    )


def _short(curve: Curve, size: float) -> str:
    return size_text(curve.axis, size).replace(curve.axis, "").strip()


def _drawable(curve: Curve, found: Result) -> bool:
    return sum(point["outcome"] == DONE for point in of(curve, found)) > 1


def _height(svg: str) -> int:
    return round(float(svg.partition('height="')[2].partition('"')[0]))


if __name__ == "__main__":
    main()
