"""What the rows of bench/values.py say together: averages, the bars of ours, and every loss.

Used where values.py prints and where docs/make_values.py writes the page, so both say the same.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from value_judges import MeanBar

Row = dict[str, Any]
KEY: Final = ("table", "who", "seed")
OURS: Final = "sfumato"
MAIN: Final = f"{OURS} declared"
"""What is compared with the peers, who get the same limits."""
INSTEAD: Final = f"{OURS} edges"
"""Compared where the plain declaration has no figures."""
SMALLER: Final = ("mean", "worst_mean", "median", "ks", "spearman", "group", "pairs")
"""Figures of a release that are better the smaller they are."""
LARGER: Final = ("auc", "sdmetrics")
SHOWN: Final = (*SMALLER, *LARGER)
NAMES: Final = {
    "mean": "mean error",
    "worst_mean": "worst mean",
    "median": "median error",
    "deciles": "decile error",
    "ks": "KS",
    "spearman": "Spearman",
    "group": "group means",
    "pairs": "pairs",
    "auc": "AUC",
    "auc_gap": "AUC gap",
    "sdmetrics": "SDMetrics",
}
MOST_KS: Final = 0.02
MOST_PAIRS: Final = 0.05
GAP_SHARE: Final = 2 / 3
"""Of the gap of AUC before."""
GAP_TABLES: Final = ("bank", "adult")
SPEARMAN_SHARE: Final = 1 / 2
AS_GOOD_AS_INDEPENDENT: Final = ("student", "small")
"""Tables too small for trees: not worse than independent columns, where these were run too."""
TOLERANCE: Final = 1.05
REAL_BARS: Final = {
    ("bank", f"{OURS} drafted"): {"mean": 0.03, "ks": 0.01, "sdmetrics": 0.98},
    ("bank", f"{OURS} none"): {"sdmetrics": 0.95},
}


def stored(path: Path) -> dict[str, Any]:
    """A file of results, or an empty one."""
    if not path.exists():
        return {"releases": []}
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def merged(old: Sequence[Row], new: Sequence[Row]) -> list[Row]:
    """Every row once; a new one takes the place of the old one with the same key."""
    keys = {tuple(row[field] for field in KEY) for row in new}
    return [row for row in old if tuple(row[field] for field in KEY) not in keys] + list(new)


@dataclass(frozen=True, kw_only=True)
class Average:
    """The releases of one table by one program, averaged over its seeds."""

    table: str
    who: str
    rows: tuple[Row, ...]

    @property
    def judged(self) -> list[Row]:
        return [row for row in self.rows if row.get("figures")]

    @property
    def outcome(self) -> str:
        """What went wrong, or nothing."""
        failed = [row["outcome"] for row in self.rows if not row.get("figures")]
        return f"{len(failed)} of {len(self.rows)}: {failed[0]}" if failed else ""

    @property
    def seeds(self) -> int:
        return len(self.judged)

    def figure(self, name: str) -> float:
        """Its mean, NaN where no release has it."""
        found = [row["figures"].get(name) for row in self.judged]
        values = [value for value in found if value is not None]
        return float(np.mean(values)) if values else float("nan")

    def cost(self, name: str) -> float:
        values = [row[name] for row in self.judged]
        return float(np.mean(values)) if values else float("nan")

    @property
    def lost_columns(self) -> list[str]:
        return sorted({name for row in self.judged for name in row["figures"]["lost_columns"]})

    def columns(self) -> dict[str, dict[str, float]]:
        """The errors of each number, averaged."""
        if not self.judged:
            return {}
        found: dict[str, dict[str, float]] = {}
        for name, first in self.judged[0]["columns"].items():
            every = [row["columns"][name] for row in self.judged]
            found[name] = {
                figure: float(np.mean([one[figure] for one in every if one[figure] is not None]))
                if any(one[figure] is not None for one in every)
                else float("nan")
                for figure in first
            }
        return found


def averages(rows: Sequence[Row]) -> list[Average]:
    """By table and program, in the order of the rows."""
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row["table"], row["who"]), []).append(row)
    return [
        Average(table=table, who=who, rows=tuple(group)) for (table, who), group in groups.items()
    ]


def is_ours(who: str) -> bool:
    return who.split()[0] == OURS


@dataclass(frozen=True, kw_only=True)
class Loss:
    """A bar that was missed, or a peer that is ahead."""

    table: str
    who: str
    what: str
    reached: str
    wanted: str
    factor: float
    """How many times worse than wanted; the largest stand first."""


def losses(
    found: Sequence[Average], before: Sequence[Average], *, generated: Sequence[str]
) -> list[Loss]:
    """Every loss of ours, the largest first."""
    every = [*peers_ahead(found), *bars_missed(found, before, generated=generated)]
    return sorted(every, key=lambda loss: -loss.factor)


def compared(found: Sequence[Average], table: str) -> Average | None:
    """Ours that stands against the peers on a table."""
    for who in (MAIN, INSTEAD):
        for one in found:
            if (one.table, one.who) == (table, who) and one.judged:
                return one
    return None


def peers_ahead(found: Sequence[Average]) -> Iterator[Loss]:
    for table in dict.fromkeys(one.table for one in found):
        ours = compared(found, table)
        peers = [one for one in found if one.table == table and not is_ours(one.who) and one.judged]
        for figure in SHOWN if ours else ():
            mine = ours.figure(figure)
            larger = figure in LARGER
            values = {peer.who: peer.figure(figure) for peer in peers}
            better = {
                who: value
                for who, value in values.items()
                if np.isfinite(value) and (value > mine if larger else value < mine)
            }
            if better:
                best = (max if larger else min)(better, key=lambda who: better[who])
                factor = (1 - mine) / (1 - better[best] + 1e-9) if larger else mine / better[best]
                yield Loss(
                    table=table,
                    who=ours.who,
                    what=f"{NAMES[figure]}: ahead of every peer",
                    reached=f"{mine:.3f}",
                    wanted=f"{better[best]:.3f} ({best})",
                    factor=factor,
                )


def bars_missed(
    found: Sequence[Average], before: Sequence[Average], *, generated: Sequence[str]
) -> Iterator[Loss]:
    earlier, now = ({(one.table, one.who): one for one in part} for part in (before, found))
    for one in found:
        if not is_ours(one.who):
            continue
        if one.outcome:
            yield _loss(one, "releases", one.outcome, "a release", float("inf"))
        if not one.judged:
            continue
        if one.lost_columns:
            lost = ", ".join(one.lost_columns)
            yield _loss(one, "columns lost", lost, "none", float("inf"))
        if one.table in generated:
            yield from _number_bars(one)
            yield from _at_most(one, "pairs", MOST_PAIRS)
            old = _before(earlier, one)
            if old is not None:
                yield from _at_most(one, "spearman", SPEARMAN_SHARE * old.figure("spearman"))
        if one.table in (*generated, *GAP_TABLES):
            old = _before(earlier, one)
            if old is not None:
                yield from _at_most(one, "auc_gap", GAP_SHARE * max(old.figure("auc_gap"), 0.0))
        alone = now.get((one.table, f"{one.who}, independent"))
        if one.table in AS_GOOD_AS_INDEPENDENT and alone is not None and alone.judged:
            for figure in ("mean", "ks", "group", "pairs"):
                yield from _at_most(one, figure, TOLERANCE * alone.figure(figure))
        for figure, bar in REAL_BARS.get((one.table, one.who), {}).items():
            value = one.figure(figure)
            if figure in LARGER and value < bar:
                what = NAMES[figure]
                yield _loss(one, what, f"{value:.3f}", f">= {bar}", (1 - value) / (1 - bar))
            elif figure not in LARGER:
                yield from _at_most(one, figure, bar)


def _before(earlier: dict[tuple[str, str], Average], one: Average) -> Average | None:
    """Today's figures of the same path, or of a drafted schema where that path had none."""
    for who in (one.who, f"{OURS} drafted"):
        found = earlier.get((one.table, who))
        if found is not None and found.judged:
            return found
    return None


def _number_bars(one: Average) -> Iterator[Loss]:
    for name, errors in one.columns().items():
        bar = MeanBar(error=errors["mean"], alone=errors["alone"])
        if not bar.passed:
            what, factor = f"mean of {name}", bar.error / bar.most
            yield _loss(one, what, f"{bar.error:.3f}", f"<= {bar.most:.3f}", factor)
        if not errors["ks"] < MOST_KS:
            what, factor = f"KS of {name}", errors["ks"] / MOST_KS
            yield _loss(one, what, f"{errors['ks']:.3f}", f"< {MOST_KS}", factor)
        if errors["deciles_off"] > 0:
            what = f"deciles of {name} beyond one class"
            yield _loss(one, what, f"{errors['deciles_off']:.1f} of 9", "0", 1.0)


def _at_most(one: Average, figure: str, bar: float) -> Iterator[Loss]:
    value = one.figure(figure)
    if np.isfinite(value) and not value <= bar:
        factor = value / bar if bar else float("inf")
        yield _loss(one, NAMES[figure], f"{value:.3f}", f"<= {bar:.3f}", factor)


def _loss(one: Average, what: str, reached: str, wanted: str, factor: float) -> Loss:
    return Loss(
        table=one.table, who=one.who, what=what, reached=reached, wanted=wanted, factor=factor
    )
