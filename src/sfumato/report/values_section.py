"""How an internal page begins: what is worst about the values, the verdict, every number."""

from collections.abc import Iterable, Iterator
from typing import Final

from sfumato import charts
from sfumato.evaluation.discrepancies import percent, shown
from sfumato.evaluation.result import Evaluation
from sfumato.evaluation.value_comparison import NumberComparison, ValueComparison
from sfumato.report.view import CorrelationView, Figure, NumberView, ValuesView

MOST_NUMBERS: Final = 60
"""Numbers in the table of numbers; the rest stands in ``internal.json``."""
MOST_GROUPS: Final = 100
"""The same of the table of group means."""
FIGURES: Final = {
    "mean_error": (
        "Error of means",
        "|published - real| / max(|real|, sd / 10), mean over numbers",
    ),
    "worst_mean_error": ("Error of the worst mean", ""),
    "median_error": ("Error of medians", "the same, of medians"),
    "decile_error": ("Error of deciles", "the same, mean over the nine deciles"),
    "sd_error": ("Error of standard deviations", "|published - real| / real"),
    "ks": ("Kolmogorov and Smirnov", "the largest difference of cumulative shares"),
    "wasserstein": ("Wasserstein", "how far values must move, in standard deviations"),
    "group_error": ("Error of group means", "mean over rows of the error of their group's mean"),
    "rank_error": ("Error of rank correlations", "mean over pairs of numbers"),
    "pair_distance": (
        "Total variation of pairs",
        "numbers in codes from the real quantiles, which no bin of the schema can hide from",
    ),
}
"""Figures of ``ValueComparison.figures``: what a page calls them, and what they are."""


def values_view(evaluation: Evaluation) -> ValuesView | None:
    """The section of an evaluation; None if values were not compared."""
    values = evaluation.values
    if values is None:
        return None
    severity: dict[str, float] = {}
    for each in evaluation.discrepancies:
        for name in each.columns[:1]:
            severity[name] = max(each.severity, severity.get(name, 0.0))
    numbers = sorted(values.numbers.values(), key=lambda each: -severity.get(each.name, 0.0))
    return ValuesView(
        worst=tuple(each.text for each in evaluation.discrepancies),
        verdict=evaluation.verdict,
        measures=tuple(_measures(evaluation)),
        numbers=tuple(map(_number, numbers[:MOST_NUMBERS])),
        columns=tuple(_columns(values)),
        groups=tuple(_groups(values)),
        rules=tuple(
            (each.rule, percent(each.published), percent(each.real)) for each in values.checks
        ),
        ranks=_ranks(values),
    )


def _measures(evaluation: Evaluation) -> Iterator[Figure]:
    """Figures of all numbers together, beside those of the baselines."""
    sides = [evaluation, *evaluation.baselines.values()]
    figures = [each.values.figures for each in sides if each.values is not None]
    for name, (title, note) in FIGURES.items():
        value, *beside = (each[name] for each in figures)
        if value is not None:
            texts = tuple("" if each is None else f"{each:.4f}" for each in beside)
            yield Figure(name=title, value=f"{value:,.4f}", note=note, beside=texts)


def _number(number: NumberComparison) -> NumberView:
    errors = {
        "mean": number.mean_error,
        "median": number.median_error,
        "deciles": number.decile_error,
        "standard deviation": number.sd_error,
        "KS": number.ks,
        "Wasserstein / sd": number.wasserstein,
    }
    if number.code_distance is not None:
        errors["total variation of codes"] = number.code_distance
    return NumberView(
        name=number.name,
        kind=number.kind,
        figures=tuple(_figures(number)),
        deciles=tuple((f"{tenth}0% lie below", *_deciles(number, tenth)) for tenth in range(1, 10)),
        errors=tuple((name, f"{error:.3f}") for name, error in errors.items()),
    )


def _figures(number: NumberComparison) -> Iterator[tuple[str, str, str]]:
    kind, sides = number.kind, (number.published, number.real)
    time = kind in ("date", "datetime")

    def row(name: str, texts: Iterable[str]) -> tuple[str, str, str]:
        published, real = texts
        return name, published, real

    yield row("mean", (shown(side.mean, kind) for side in sides))
    yield row("median", (shown(side.median, kind) for side in sides))
    if not time:
        yield row("standard deviation", (shown(side.sd, kind) for side in sides))
    if not time:
        yield row("zeros", (percent(side.zeros) for side in sides))
    if time or number.heaviest_value != 0:
        value = shown(number.heaviest_value, kind)
        yield row(f"value {value}", (percent(side.heaviest) for side in sides))
    yield row("missing", (percent(side.missing) for side in sides))
    limits = " to ".join(shown(limit, kind) for limit in number.limits)
    yield f"outside {limits}", "", percent(number.clipped)
    if number.unfit:
        yield "does not fit the schema", "", percent(number.unfit)


def _deciles(number: NumberComparison, tenth: int) -> tuple[str, str]:
    """Published and real."""
    sides = (number.published, number.real)
    at = [side.deciles[tenth - 1] if side.deciles else None for side in sides]
    return shown(at[0], number.kind), shown(at[1], number.kind)


def _columns(values: ValueComparison) -> Iterator[tuple[str, ...]]:
    """The columns where anything is missing, other or lost."""
    for each in values.columns.values():
        if any((*each.missing, *each.other, each.unfit)):
            (real, published), (real_other, published_other) = each.missing, each.other
            shares = (published, real, published_other, real_other, each.unfit)
            became = f" ({each.became})" if each.unfit else ""
            *others, unfit = map(percent, shares)
            yield (each.name, *others, unfit + became)


def _groups(values: ValueComparison) -> Iterator[tuple[str, ...]]:
    for each in values.groups[:MOST_GROUPS]:
        kind = values.numbers[each.number].kind
        means = (shown(each.published, kind), shown(each.real, kind))
        yield each.number, each.groups, f"{each.error:.3f}", each.worst, *means


def _ranks(values: ValueComparison) -> CorrelationView | None:
    if values.ranks is None:
        return None
    part = slice(charts.MAX_HEAT_CELLS)
    return CorrelationView(
        columns=values.ranks.columns[part],
        real=tuple(map(tuple, values.ranks.real[part, part].tolist())),
        published=tuple(map(tuple, values.ranks.published[part, part].tolist())),
    )
