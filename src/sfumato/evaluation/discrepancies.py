"""What is worst about published values, in words and in the units of the user, the worst first.

Every figure has a bar; what lies above its bar is a discrepancy, and its severity is how many
times the bar it is. So figures of different kinds can be ranked. The bars are judgement; they are
listed in docs/evaluation.md.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from math import sqrt
from types import MappingProxyType
from typing import Final

from sfumato.charts import value_text
from sfumato.evaluation.value_comparison import (
    CheckedRule,
    ColumnFill,
    GroupMeans,
    NumberComparison,
    ValueComparison,
)

BARS: Final[Mapping[str, float]] = MappingProxyType(
    {
        "mean": 0.1,
        "median": 0.25,
        "decile": 0.5,
        "sd": 0.25,
        "share": 0.05,
        "clipped": 0.01,
        "lost": 0.01,
        "ks": 0.05,
        "wasserstein": 0.1,
        "group": 0.25,
        "rank": 0.1,
        "pair": 0.1,
        "check": 0.01,
    }
)
"""Above which a figure is named: errors of means and quantiles, and differences of shares."""
MOST_PARTS: Final = 4
"""Figures of one column that are named together."""
MOST_OF_A_KIND: Final = 3
"""Groups, and pairs of ranks, that are named."""
USELESS: Final[Mapping[str, float]] = MappingProxyType(
    {"mean": 1.0, "ks": 0.3, "clipped": 0.3, "lost": 0.5}
)
"""From which the values of a column should not be used at all: say, a mean twice what it is."""
KS_CHANCE: Final = 1.63
"""Of two samples of n and m rows KS exceeds 1.63 sqrt((n + m) / (n m)) by chance once in 100."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Discrepancy:
    """One thing that is wrong with published values. Internal: it is not private."""

    columns: tuple[str, ...]
    severity: float
    """The figure over its bar, above 1; of several figures of a column the largest."""
    text: str
    """A sentence in the units of the user."""
    numeric: bool = False
    """Whether it is about the values of one column of numbers."""


def discrepancies(values: ValueComparison) -> tuple[Discrepancy, ...]:
    """Everything above its bar, the worst first."""
    own = {
        name: result
        for name, number in values.numbers.items()
        if (result := _of_number(number, values.columns.get(name))) is not None
    }
    fills = [
        _together((name,), parts)
        for name, fill in values.columns.items()
        if name not in values.numbers and (parts := _above(_of_fill(fill)))
    ]
    others = (*_groups(values), *_ranks(values), *_checks(values.checks))
    every = [*own.values(), *fills, *others, *_pairs(values)]
    return tuple(sorted(every, key=lambda each: -each.severity))


def verdict(values: ValueComparison) -> str:
    """What to make of it, in a few sentences."""
    worst = discrepancies(values)
    return " ".join([*_judged(values, worst), *_left_out(values)])


def _judged(values: ValueComparison, worst: tuple[Discrepancy, ...]) -> Iterator[str]:
    if not worst:
        yield (
            "The published values agree with the real ones: every figure of every number, group, "
            "pair and rule lies within its bar."
        )
        return
    wrong = [each for each in worst if each.numeric]
    if useless := [n for each in wrong if _is_useless(values, n := each.columns[0])]:
        yield f"Do not use the values of {_listed(useless)} as they are."
    if values.numbers:
        are = "is" if len(wrong) == 1 else "are"
        yield f"{len(wrong)} of {_counted(values.numbers, 'number')} {are} far from the real ones."
    if others := worst[len(wrong) :]:
        yield f"{_counted(others, 'more finding')} about texts, groups, ranks, pairs or rules."
    if hidden := hidden_by_codes(values):
        most = max(values.numbers[name].code_distance or 0.0 for name in hidden)
        yield (
            f"The codes of {_listed(hidden)} agree with the real ones (total variation "
            f"{most:.4f} at most), and the values inside them do not: bins of the schema are too "
            "wide there. Declare limits and a resolution, or narrower bins."
        )


def _left_out(values: ValueComparison) -> Iterator[str]:
    if names := list(values.left_out):
        are = "is" if len(names) == 1 else "are"
        yield f"{_counted(names, 'column')} of the real table {are} not in the release: " + (
            f"{_listed(names)}."
        )


def hidden_by_codes(values: ValueComparison) -> list[str]:
    """Numbers whose codes look right and whose values are not, as bins are too wide.

    Where KS exceeds the total variation of the codes, the rest lies inside of codes, or beyond
    the limits.
    """
    return [
        name
        for name, each in values.numbers.items()
        if each.code_distance is not None
        and each.ks - each.code_distance - each.clipped > _ks_bar(each)
        and each.ks > 2 * each.code_distance
    ]


def _is_useless(values: ValueComparison, name: str) -> bool:
    number, fill = values.numbers[name], values.columns.get(name)
    figures = {"mean": number.mean_error, "ks": number.ks, "clipped": number.clipped}
    figures["lost"] = fill.lost if fill is not None else 0.0
    return any(figure >= USELESS[what] for what, figure in figures.items())


def _ks_bar(number: NumberComparison) -> float:
    """The bar, or in small tables what chance does once in 100."""
    rows = (max(1, number.real.rows), max(1, number.published.rows))
    return max(BARS["ks"], KS_CHANCE * sqrt(sum(1 / n for n in rows)))


def shown(value: float | None, kind: str) -> str:
    """A value of a column in its own unit: a number, a day or a moment.

    >>> shown(4660.4, "integer"), shown(0.0, "date"), shown(None, "number")
    ('4,660', '1970-01-01', 'none')
    """
    return "none" if value is None else value_text(value, kind)


def percent(share: float) -> str:
    """A share as people read it.

    >>> percent(0.5), percent(0.00042), percent(0.0)
    ('50%', '0.042%', '0%')
    """
    return f"{100 * share:.0f}%" if share >= 0.1 or not share else f"{100 * share:.2g}%"


Part = tuple[float, str, str]
"""Severity, a sentence that can begin a line, and the same in short, to follow another one."""


def _of_number(number: NumberComparison, fill: ColumnFill | None) -> Discrepancy | None:
    mean, *others = _figures(number)
    above = _above([*others, *(_of_fill(fill) if fill is not None else ())])
    if mean[0] > 1:  # the figure that people ask for first
        above = [mean, *above]
    return _together((number.name,), above, numeric=True) if above else None


def _figures(number: NumberComparison) -> Iterator[Part]:
    """Every figure of a number with its severity, its mean first."""
    real, published, kind = number.real, number.published, number.kind

    def pair(one: float | None, other: float | None) -> tuple[str, str]:
        return shown(one, kind), shown(other, kind)

    p, r = pair(published.mean, real.mean)
    yield _figure(number.mean_error / BARS["mean"], f"mean {p}", r, "one")
    p, r = pair(published.median, real.median)
    yield _figure(number.median_error / BARS["median"], f"median {p}", r, "one")
    decile, error = number.worst_decile
    at = round(10 * decile) - 1
    p, r = pair(*(side.deciles[at] if side.deciles else None for side in (published, real)))
    severity = 0.0 if decile == 0.5 else error / BARS["decile"]
    yield _figure(severity, f"{percent(decile)} of the rows lie below {p}", r, "figure")
    if kind not in ("date", "datetime"):
        p, r = pair(published.sd, real.sd)
        yield _figure(number.sd_error / BARS["sd"], f"standard deviation {p}", r, "one")
        severity = abs(published.zeros - real.zeros) / BARS["share"]
        yield _figure(
            severity,
            f"{percent(published.zeros)} of the values are 0",
            percent(real.zeros),
            "share",
        )
    if kind in ("date", "datetime") or number.heaviest_value != 0:
        severity = abs(published.heaviest - real.heaviest) / BARS["share"]
        what = (
            f"{percent(published.heaviest)} of the values are {shown(number.heaviest_value, kind)}"
        )
        yield _figure(severity, what, percent(real.heaviest), "share")
    low, high = pair(*number.limits)
    text = (
        f"{percent(number.clipped)} of the real values lie outside the declared limits {low} to "
        f"{high} and were moved to them"
    )
    yield number.clipped / BARS["clipped"], text, text
    text = f"the largest difference of cumulative shares (KS) is {number.ks:.3f}"
    yield number.ks / _ks_bar(number), text, f"KS {number.ks:.3f}"
    text = f"values are {number.wasserstein:.2f} standard deviations from the real ones on average"
    yield number.wasserstein / BARS["wasserstein"], text, text


def _of_fill(fill: ColumnFill) -> Iterator[Part]:
    if fill.unfit:
        text = (
            f"{percent(fill.unfit)} of the real values do not fit the schema and became "
            f"{fill.became}"
        )
        yield fill.unfit / BARS["lost"], text, text
    if fill.other[0]:
        text = f"{percent(fill.other[0])} of the real values are not declared and became (other)"
        yield fill.other[0] / BARS["lost"], text, text
    real, published = fill.missing
    what = f"{percent(published)} of the values are missing"
    yield _figure(abs(published - real) / BARS["share"], what, percent(real), "share")


def _figure(severity: float, published: str, real: str, what: str) -> Part:
    return severity, f"{published} where the real {what} is {real}", f"{published} (real {real})"


def _above(parts: Iterator[Part] | list[Part]) -> list[Part]:
    return sorted((part for part in parts if part[0] > 1), key=lambda part: -part[0])


def _together(columns: tuple[str, ...], parts: list[Part], *, numeric: bool = False) -> Discrepancy:
    """One sentence of the figures of a column, in this order."""
    texts = [parts[0][1], *(short for _, _, short in parts[1:MOST_PARTS])]
    text = f"{' × '.join(columns)}: {'; '.join(texts)}"
    severity = max(severity for severity, _, _ in parts)
    return Discrepancy(columns=columns, severity=severity, text=text, numeric=numeric)


def _groups(values: ValueComparison) -> list[Discrepancy]:
    """Means of groups that are off beyond chance, of numbers whose own mean is not."""
    results = []
    for each in values.groups:
        severity = (each.worst_error - each.worst_chance) / BARS["group"]
        number = values.numbers[each.number]
        if severity > 1 and number.mean_error <= BARS["mean"]:
            results.append(_group(each, number.kind, severity))
    results.sort(key=lambda each: -each.severity)
    return results[:MOST_OF_A_KIND]


def _group(each: GroupMeans, kind: str, severity: float) -> Discrepancy:
    published, real = shown(each.published, kind), shown(each.real, kind)
    text = (
        f"{each.number} where {each.groups} is {each.worst}: mean {published} where the real one "
        f"is {real}"
    )
    return Discrepancy(columns=(each.number, each.groups), severity=severity, text=text)


def _ranks(values: ValueComparison) -> list[Discrepancy]:
    if values.ranks is None:
        return []
    ranks, results = values.ranks, []
    for i, one in enumerate(ranks.columns):
        for j in range(i):
            real, published = float(ranks.real[i, j]), float(ranks.published[i, j])
            severity = abs(real - published) / BARS["rank"]
            if severity > 1:
                columns = (ranks.columns[j], one)
                text = (
                    f"{' × '.join(columns)}: rank correlation {published:.2f} where the real one "
                    f"is {real:.2f}"
                )
                results.append(Discrepancy(columns=columns, severity=severity, text=text))
    return sorted(results, key=lambda each: -each.severity)[:MOST_OF_A_KIND]


def _pairs(values: ValueComparison) -> list[Discrepancy]:
    pairs = values.pairs
    bar = BARS["pair"] + values.pair_chance
    if pairs is None or pairs.mean <= bar:
        return []
    text = (
        f"pairs of columns: {percent(pairs.mean)} of the rows lie in a wrong cell of the real "
        f"quantiles, on average over pairs; worst {' × '.join(pairs.worst)}, {percent(pairs.max)}"
    )
    return [Discrepancy(columns=pairs.worst, severity=pairs.mean / bar, text=text)]


def _checks(checks: tuple[CheckedRule, ...]) -> list[Discrepancy]:
    results = []
    for each in checks:
        severity = abs(each.published - each.real) / BARS["check"]
        if severity > 1:
            text = (
                f"{each.rule}: broken in {percent(each.published)} of the published rows, in "
                f"{percent(each.real)} of the real ones"
            )
            results.append(Discrepancy(columns=(), severity=severity, text=text))
    return results


def _counted(things: Collection[object], name: str) -> str:
    return f"{len(things):,} {name}{'' if len(things) == 1 else 's'}"


def _listed(names: list[str], most: int = 6) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
