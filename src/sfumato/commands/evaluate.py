"""``sfumato evaluate``: real against published, for the people who hold the data."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

from sfumato.commands import lines
from sfumato.commands.request import (
    Command,
    Delimiter,
    Encoding,
    LedgerGiven,
    Option,
    Progress,
    function,
)
from sfumato.errors import InputError

if TYPE_CHECKING:
    from sfumato.evaluation.result import Evaluation
    from sfumato.release import TableRelease

MOST_APART: Final = 0.2
"""Numbers of rows that differ by a larger share are pointed out."""
MOST_WORST: Final = 8
"""Lines about values; the page has all."""
TESTED_ON_RELEASED: Final = (
    "classifiers are tested on real rows that took part in the release; --held-back tests them on "
    "rows that did not"
)
TESTED_ON_HELD_BACK: Final = "classifiers are tested on {} real rows that took no part"
VALUE_FIGURES: Final = {
    "mean_error": "error of means",
    "worst_mean_error": "error of the worst mean",
    "median_error": "error of medians",
    "decile_error": "error of deciles",
    "sd_error": "error of standard dev.",
    "ks": "KS",
    "wasserstein": "Wasserstein / sd",
    "group_error": "error of group means",
    "rank_error": "error of rank corr.",
    "pair_distance": "pairs, real quantiles",
}
"""Figures of ``ValueComparison.figures`` by what they are called."""
_line = partial(lines.row, widths=(26, 18))
"""A line of the comparison."""


@dataclass(frozen=True, kw_only=True, eq=False)
class EvaluateRequest:
    """Internal: compare a release with the real table, into FOLDER-internal."""

    folder: Annotated[
        "str | Path", Option("A folder that `publish` wrote.", kind=Path, argument=True)
    ] = field(kw_only=False)
    against: Annotated[Any, Option("The real table.", python="A path or a data frame.")]
    workload: Annotated["str | Path | None", Option("Ranges to compare, as a file.")] = None
    label: Annotated[
        "str | Sequence[str] | None",
        Option(
            "A column that classifiers shall predict; may be repeated. Needs scikit-learn.",
            many=True,
        ),
    ] = None
    held_back: Annotated[
        Any,
        Option(
            "Real rows that took no part in the release, to test classifiers on. Without them a "
            "fifth of the real table is, which did take part.",
            kind=str,
            metavar="TABLE",
            python="A path or a data frame.",
        ),
    ] = None
    check: Annotated[
        "str | Sequence[str] | None",
        Option(
            "A rule between columns, like 'jail_in <= jail_out' or 'a + b = c': how many real and "
            "published rows break it; may be repeated.",
            many=True,
        ),
    ] = None
    all_labels: Annotated[bool, Option("Predict every column of 2 to 20 values.", kind=bool)] = (
        False
    )
    ledger: LedgerGiven = None
    encoding: Encoding = "utf-8"
    delimiter: Delimiter = None
    tell: Progress = None


def run(request: EvaluateRequest) -> "Evaluation":
    """Compare, and write ``FOLDER-internal``; the ledger notes the look, at cost 0."""
    from sfumato.commands.internal_folder import (
        check_described,
        check_internal,
        compare,
        internal_folder,
        write_internal,
    )
    from sfumato.commands.publication import (
        check_comparison,
        check_ranges,
        reading,
        silent,
        workload_of,
    )
    from sfumato.ledger.ledger import Ledger
    from sfumato.randomness import simulation_rng
    from sfumato.readers.open_table import open_table
    from sfumato.release import TableRelease

    folder = Path(request.folder)
    check_described(folder)
    check_comparison(folder, request.against, request.workload, request.ledger)
    release = TableRelease.load(folder)
    chosen = None
    if request.workload is not None:
        chosen = workload_of(release.schema, request.workload)
        check_ranges(chosen)
    labels = _labels(request, release)
    checks = _checks(request, release)
    tell = request.tell or silent
    opened = partial(
        open_table, schema=release.schema, encoding=request.encoding, delimiter=request.delimiter
    )
    table = opened(request.against)
    held_back = None if request.held_back is None else opened(request.held_back)
    table.watch(reading(tell))
    tell("checking the table", 0, 0)
    table.validate()
    if held_back is not None:
        held_back.validate()
    check_internal(internal_folder(folder))
    ledger = Ledger.open(request.ledger, dataset=release.dataset, create=False)
    rng = simulation_rng(0)
    result = compare(
        release,
        table,
        chosen,
        ledger,
        rng=rng,
        labels=labels,
        checks=checks,
        held_back=held_back,
        tell=tell,
    )
    write_internal(internal_folder(folder), release, result)
    return result


def _labels(request: EvaluateRequest, release: "TableRelease") -> tuple[str, ...]:
    """The columns that classifiers shall predict."""
    from sfumato.evaluation.classifiers import check_label, labels_of

    given = request.label
    named = (given,) if isinstance(given, str) else tuple(given or ())
    if not named and not request.all_labels:
        if request.held_back is not None:
            raise InputError(
                "rows that were held back are for classifiers to be tested on, and no label is "
                "named. Give --label COLUMN or --all-labels, or leave --held-back out."
            )
        return ()
    labels = labels_of(release.schema, named)
    for name in labels:
        check_label(release.schema, name)
    return tuple(labels)


def _checks(request: EvaluateRequest, release: "TableRelease") -> tuple[str, ...]:
    """The rules between columns, read once before any look."""
    from sfumato.evaluation.column_checks import ColumnCheck

    given = request.check
    texts = (given,) if isinstance(given, str) else tuple(given or ())
    for text in texts:
        ColumnCheck.of(text, release.schema)
    return texts


def show(request: EvaluateRequest, result: "Evaluation") -> Iterator[str]:
    """What is worst about the values, the verdict, then figures beside those of the baselines."""
    from sfumato.commands.internal_folder import internal_folder

    yield "Internal: these figures come from the real data. Do not publish them."
    yield from _worst_values(result)
    yield from _rows(result)
    yield from _value_figures(result)
    yield from _broken_rules(result)
    yield from _figures(result)
    yield from _worst(result)
    yield from _classifiers(result)
    for note in result.notes:
        yield f"note: {note}"
    yield f"internal    {internal_folder(Path(request.folder)) / 'internal.html'}"


def _worst_values(result: "Evaluation") -> Iterator[str]:
    """What is worst in the units of the user, then what to make of it."""
    worst = result.discrepancies
    for each in worst[:MOST_WORST]:
        yield f"worst  {lines.label(each.text, 300)}"
    if len(worst) > MOST_WORST:
        yield f"       and {len(worst) - MOST_WORST} more, on the page"
    if result.verdict:
        yield f"verdict  {result.verdict}"


def _value_figures(result: "Evaluation") -> Iterator[str]:
    """Means over the numbers, beside those of the baselines."""
    sides = [each.values.figures for each in (result, *result.baselines.values()) if each.values]
    if not sides:
        return
    yield _line("values", ["published", *result.baselines])
    for name, title in VALUE_FIGURES.items():
        if sides[0][name] is not None:
            yield _line(title, [_figure(side[name]) for side in sides])


def _figure(value: float | None) -> str:
    return "" if value is None else f"{value:,.4f}"


def _broken_rules(result: "Evaluation") -> Iterator[str]:
    for each in result.values.checks if result.values is not None else ():
        yield (
            f"rule {lines.label(each.rule, 60)}: broken in {each.published:.2%} of "
            f"{each.judged[1]:,} published rows, in {each.real:.2%} of {each.judged[0]:,} real ones"
        )


def _rows(result: "Evaluation") -> Iterator[str]:
    real, published = result.rows
    yield f"rows                    {real:,} real, {published:,} published"
    if abs(real - published) > MOST_APART * real:
        yield (
            "warning: the numbers of rows differ by more than 20%; the noise is that large, or "
            "this is another table."
        )


def _figures(result: "Evaluation") -> Iterator[str]:
    """A line for each figure: the release, then what stands beside it."""
    sides = [result, *result.baselines.values()]
    if result.baselines:
        yield _line("", ["published", *result.baselines])
    for degree in result.tv:
        yield _line(f"{degree}-way total variation", [f"{each.tv[degree]:.4f}" for each in sides])
    if result.information_error is not None:
        yield _line("mutual information, nats", [f"{each.information_error:.4f}" for each in sides])
    tied = [each.correlations for each in sides if each.correlations is not None]
    if tied:
        yield _line("correlations", [f"{each.error:.4f}" for each in tied])
    absolute = [each.queries.to_dict() for each in sides if each.queries is not None]
    for name in absolute[0] if absolute else ():
        title = f"query error, {name.replace('_', ' ')}"
        yield _line(title, [f"{each[name]:,.1f}" for each in absolute])
    relative = [each.relative_queries for each in sides if each.relative_queries is not None]
    if relative:
        yield _line("query error, relative", [f"{each.mean:.2%}" for each in relative])


def _worst(result: "Evaluation") -> Iterator[str]:
    for degree, each in result.distances.items():
        worst = lines.label(", ".join(each.worst), 60)
        some = "" if each.compared == each.of else f"{each.compared:,} at random among "
        yield (
            f"{degree}-way, of {some}{each.of:,}: least {each.min:.4f}, worst {each.max:.4f} "
            f"({worst})"
        )
    if result.correlations is not None:
        pair, gap = result.correlations.worst
        yield f"correlation furthest off: {gap:.4f} ({lines.label(', '.join(pair), 60)})"


def _classifiers(result: "Evaluation") -> Iterator[str]:
    for name, errors in result.misclassification.items():
        shares = f"{errors.published:.1%} learned from published rows, {errors.real:.1%} from real"
        yield f"label got wrong         {shares} ({lines.label(name, 30)})"
    if result.classifiers or result.misclassification:
        yield (
            TESTED_ON_RELEASED
            if result.held_back is None
            else TESTED_ON_HELD_BACK.format(f"{result.held_back:,}")
        )
    for name, scores in result.classifiers.items():
        yield (
            f"guesses of {lines.label(name, 30)}: balanced accuracy after published rows, after "
            f"real rows; always the same {scores.majority.balanced_accuracy:.3f}"
        )
        for model, after in scores.published.items():
            real = scores.real[model]
            yield _line(model, [f"{each.balanced_accuracy:.3f}" for each in (after, real)])


evaluate_release = function(EvaluateRequest, run, name="evaluate_release")

COMMAND = Command(
    words="evaluate",
    request=EvaluateRequest,
    run=run,
    show=show,
    json=lambda _, result: result.to_dict(),
    json_help="Print the figures as JSON.",
    saved=True,
)
