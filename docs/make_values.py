"""Writes docs/values.md from bench/results/values*.json: losses first, then every table.

A test runs this and fails when the page on disk is not what it writes.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "bench"))

import numpy as np

from value_figures import (
    NAMES,
    Average,
    averages,
    is_ours,
    losses,
    stored,
)
from value_judges import MEAN_BAR, TIMES_ALONE, MeanBar
from value_tables import LARGE, MADE, REAL, TABLES, made_table

ROOT = Path(__file__).resolve().parents[1]
OUT = ROOT / "docs" / "values.md"
STORED = ROOT / "bench" / "results" / "values.json"
BEFORE = ROOT / "bench" / "results" / "values_before.json"
SHOWN = ("mean", "worst_mean", "median", "ks", "spearman", "group", "pairs", "auc", "sdmetrics")
MOST_LOSSES = 60
HEAD = """# Raw values

Written by `python docs/make_values.py` from what this command found; do not edit.

```text
SFUMATO_DATA=... python bench/values.py --json bench/results/values.json
```

Published rows are compared with real rows in the units of the columns: the judges know no bins and
no codes of a schema, so a bad bin can't hide. Epsilon 1, delta 1e-9. Ours goes through the commands
as a user would: **declared** has limits, a resolution and lists of categories, and no bins;
**edges** has the same limits with 1-2-5 edges by hand; **drafted** is what `sfumato schema draft`
proposed, confirmed as it is; **none** is `publish` without a schema. The other libraries get the
declared limits and lists, and make their bins themselves as their documentation says; OpenDP can't,
and gets the 1-2-5 edges.

"""
FIGURES = {
    "mean error": "difference of the means / max(mean, a tenth of a standard deviation), over the "
    "numbers; of dates, whose zero means nothing, / a tenth; the worst of them beside it",
    "median error": "difference of the medians, on the same scale",
    "KS": "the largest distance of the distribution functions, over the numbers",
    "Spearman": "difference of rank correlations, over pairs of numbers",
    "group means": "difference of the mean of a number in a group / standard deviation; groups of "
    "at least 1% of the rows; a lost group counts 1",
    "pairs": "total variation of all pairs of columns; numbers in 16 codes by the *real* "
    "quantiles, heavy values alone",
    "AUC": "gradient boosting that learns from the release, tested on real rows that took no part "
    "in it",
    "SDMetrics": "its quality report, as a second opinion: it bins real and published rows each by "
    "its own range",
}
BAR = (
    f"Errors of means pass below {MEAN_BAR}, or at {TIMES_ALONE:g} times the error of that mean "
    "measured alone: Gaussian noise on the clipped column, with one column's share of rho.\n\n"
)
TABLES_HEAD = """## How the generated tables are made

30,000 rows that are published (`small`: 800) and 7,500 more for the models;
`bench/value_tables.py` has the code and the declared limits.

"""
PEERS = {
    "dpmm": "PrivTree bins for a tenth of epsilon (its default), limits and categories given",
    "smartnoise": "its `cube` style: 20 even bins between the limits, whose middles come out",
    "datasynthesizer": "20 even bins between the limits; pure epsilon, no delta",
    "opendp": "cuts at the 1-2-5 edges, drawn evenly between",
}

Row = dict[str, Any]


def main() -> None:
    """Write the page."""
    OUT.write_text(page())


def page() -> str:
    """The whole page as text."""
    now = stored(STORED)
    found = averages(now["releases"])
    before = averages(stored(BEFORE)["releases"])
    parts = [HEAD, figures(), missed(found, before)]
    parts += [table(name, found, before) for name in TABLES]
    return "".join([*parts, peers(found), made(), around(now, stored(BEFORE))])


def figures() -> str:
    """What each figure is."""
    lines = [f"| {name} | {what} |\n" for name, what in FIGURES.items()]
    return "| figure | what it is |\n|---|---|\n" + "".join(lines) + "\n" + BAR


def missed(found: Sequence[Average], before: Sequence[Average]) -> str:
    """Peers that are ahead, and bars that were missed: the largest first."""
    if not found:
        return "## Losses\n\nNothing was measured yet but what stands under *before*.\n\n"
    every = losses(found, before, generated=LARGE)
    if not every:
        return "## Losses\n\nNone.\n\n"
    head = (
        f"## Losses\n\n{len(every)}, the largest first: peers that are ahead, bars that were missed"
    )
    head += ".\n\n" if len(every) <= MOST_LOSSES else f"; the first {MOST_LOSSES} are shown.\n\n"
    head += "| table | program | what | reached | wanted |\n|---|---|---|---|---|\n"
    lines = [
        f"| {loss.table} | {loss.who} | {loss.what} | {loss.reached} | {loss.wanted} |\n"
        for loss in every[:MOST_LOSSES]
    ]
    return head + "".join(lines) + "\n"


def table(name: str, found: Sequence[Average], before: Sequence[Average]) -> str:
    """Every program on one table, and each number of ours."""
    now = [one for one in found if one.table == name]
    old = [one for one in before if one.table == name]
    if not now and not old:
        return ""
    heads = ["program", "seeds", *(NAMES[figure] for figure in SHOWN), "CPU-s", "MB"]
    lines = [f"## {name}\n\n", f"| {' | '.join(heads)} |\n", "|---" * len(heads) + "|\n"]
    lines += [line(one, one.who) for one in now]
    lines += [line(one, f"*before: {one.who}*") for one in old]
    real = next((one.figure("auc_real") for one in [*now, *old] if one.judged), float("nan"))
    if np.isfinite(real):
        lines.append(f"\nModels that learn from the real rows: AUC {real:.3f}.\n")
    return "".join(lines) + "\n" + numbers(now or old, now=bool(now))


def line(one: Average, title: str) -> str:
    """One program on one table."""
    if not one.judged:
        return f"| {title} | 0 | {one.outcome} |" + " |" * (len(SHOWN) + 1) + "\n"
    title = f"**{title}**" if is_ours(one.who) and not title.startswith("*") else title
    if one.lost_columns:
        title += f" (lost: {', '.join(one.lost_columns)})"
    if one.outcome:
        title += f" ({one.outcome})"
    cells = [number(one.figure(figure)) for figure in SHOWN]
    costs = [f"{one.cost('cpu_s'):.0f}", f"{one.cost('memory_mb'):.0f}"]
    return f"| {' | '.join([title, str(one.seeds), *cells, *costs])} |\n"


def number(value: float) -> str:
    """Three decimals, or a dash.

    >>> number(0.01234), number(float("nan"))
    ('.012', '-')
    """
    if not np.isfinite(value):
        return "-"
    return f"{value:.3f}".removeprefix("0") if value < 1 else f"{value:.2f}"


def numbers(shown: Sequence[Average], *, now: bool) -> str:
    """The numbers of ours on one table: mean, bar, median, KS, before and after."""
    ours = [one for one in shown if is_ours(one.who) and one.judged]
    if not ours:
        return ""
    title = "Each number" if now else "Each number, before"
    lines = [
        f"### {title}\n\n",
        "| program | column | real mean | published | mean error | alone | bar | median error | KS "
        "| deciles off | share of zero | heaviest value |\n",
        "|---" * 12 + "|\n",
    ]
    for one in ours:
        for name, errors in one.columns().items():
            bar = MeanBar(error=errors["mean"], alone=errors["alone"])
            told = [f"{errors[key]:,.6g}" for key in ("real_mean", "published_mean")]
            told += [number(errors["mean"]), number(errors["alone"])]
            told.append("pass" if bar.passed else "**miss**")
            told += [number(errors["median"]), number(errors["ks"])]
            told.append(f"{errors['deciles_off']:.1f}")
            told += [number(errors["zero"]), number(errors["heaviest"])]
            lines.append(f"| {one.who} | {name} | {' | '.join(told)} |\n")
    return "".join(lines) + "\n"


def peers(found: Sequence[Average]) -> str:
    """What each of the other libraries was given."""
    versions = {one.who: one.rows[0]["version"] for one in found if not is_ours(one.who)}
    if not versions:
        return ""
    lines = [
        f"| {who} | {version} | {PEERS[who.split()[0]]} |\n" for who, version in versions.items()
    ]
    head = "## The other libraries\n\n| program | version | what it gets |\n|---|---|---|\n"
    return head + "".join(lines) + "\n"


def made() -> str:
    """How each column of the generated tables is made."""
    lines = [TABLES_HEAD, "| table | column | made | declared |\n|---|---|---|---|\n"]
    for name in MADE:
        one = made_table(name, rows=10)
        for title, how in (one.made or {}).items():
            column = one.columns[title]
            told = f"{len(column['values'])} values" if "values" in column else _limits(column)
            lines.append(f"| {name} | {title} | {how} | {told} |\n")
    lines.append(f"\nReal files, from `SFUMATO_DATA`: {', '.join(REAL)}.\n\n")
    return "".join(lines)


def _limits(column: Row) -> str:
    told = f"{column['low']:,} to {column['high']:,}" if _is_plain(column) else ""
    told = told or f"{column['low']} to {column['high']}"
    return told + (f", resolution {column['resolution']}" if "resolution" in column else "")


def _is_plain(column: Row) -> bool:
    return not isinstance(column["low"], str)


def around(now: Row, before: Row) -> str:
    """Where and when."""
    lines = ["## Where\n\n"]
    for title, result in (("Now", now), ("Before", before)):
        if "machine" in result:
            machine, own = result["machine"], result["versions"]
            told = ", ".join(f"{name} {version}" for name, version in own.items())
            rows = result["releases"]
            commits = sorted({row["commit"] for row in rows if "commit" in row})
            loads = [row["load"] for row in rows]
            lines.append(
                f"{title}: {result['date']}, {machine['processor']}, {machine['cores']} cores, "
                f"{machine['memory_gb']} GB, Python {machine['python']}; {told}; commits "
                f"{', '.join(commits)}; load {min(loads):g} to {max(loads):g}. CPU and memory hold "
                "the start of the process.\n\n"
            )
    return "".join(lines).rstrip("\n") + "\n"


if __name__ == "__main__":
    main()
