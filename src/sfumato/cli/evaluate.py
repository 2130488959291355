"""``sfumato evaluate``: real against published, for the people who hold the data."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sfumato.cli import options, progress, release_check, run_files, show

if TYPE_CHECKING:
    from sfumato.evaluation.result import Evaluation

MOST_APART = 0.2
_NAME = 26
_COLUMN = 18


def evaluate(
    context: typer.Context,
    folder: Annotated[Path, typer.Argument(help="A folder that `publish` wrote.")],
    against: Annotated[str, typer.Option(help="The real table.")],
    workload: Annotated[str | None, typer.Option(help="Ranges to compare, as a file.")] = None,
    label: Annotated[
        list[str] | None,
        typer.Option(
            help="A column that classifiers shall predict; may be repeated. Needs scikit-learn."
        ),
    ] = None,
    all_labels: Annotated[
        bool, typer.Option("--all-labels", help="Predict every column of 2 to 20 values.")
    ] = False,
    ledger: options.LedgerPlace = None,
    encoding: options.Encoding = "utf-8",
    delimiter: options.Delimiter = None,
    save_run: options.SaveRun = None,
    quiet: options.Quiet = False,
    json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False,
) -> None:
    """Internal: compare a release with the real table, into FOLDER-internal."""
    from sfumato.commands.evaluate import evaluate_release
    from sfumato.commands.internal_folder import internal_folder
    from sfumato.commands.publication import check_comparison

    release_check.check_described(folder)
    check_comparison(folder, against, workload, ledger)
    run_files.keep(context, save_run, command=evaluate, force=False)
    with progress.shown(quiet=quiet or json) as tell:
        found = evaluate_release(
            folder,
            against=against,
            workload=workload,
            label=label,
            all_labels=all_labels,
            ledger=ledger,
            encoding=encoding,
            delimiter=delimiter,
            tell=tell,
        )
    if json:
        show.as_json(found.to_dict())
        return
    typer.echo("Internal: these figures come from the real data. Do not publish them.")
    _print_rows(found)
    _print_figures(found)
    _print_worst(found)
    _print_classifiers(found)
    for note in found.notes:
        typer.echo(f"note: {note}")
    typer.echo(f"internal    {internal_folder(folder) / 'internal.html'}")


def _print_rows(found: "Evaluation") -> None:
    real, published = found.rows
    typer.echo(f"rows                    {real:,} real, {published:,} published")
    if abs(real - published) > MOST_APART * real:
        typer.echo(
            "warning: the numbers of rows differ by more than 20%; the noise is that large, or "
            "this is another table."
        )


def _print_figures(found: "Evaluation") -> None:
    """A line for each figure: the release, then what stands beside it."""
    sides = [found, *found.baselines.values()]
    if found.baselines:
        _print_line("", ["published", *found.baselines])
    for degree in found.tv:
        _print_line(f"{degree}-way total variation", [f"{each.tv[degree]:.4f}" for each in sides])
    if found.information_error is not None:
        _print_line("mutual information, nats", [f"{each.information_error:.4f}" for each in sides])
    tied = [each.correlations for each in sides if each.correlations is not None]
    if tied:
        _print_line("correlations", [f"{each.error:.4f}" for each in tied])
    absolute = [each.queries.to_dict() for each in sides if each.queries is not None]
    for name in absolute[0] if absolute else ():
        title = f"query error, {name.replace('_', ' ')}"
        _print_line(title, [f"{each[name]:,.1f}" for each in absolute])
    relative = [each.relative_queries for each in sides if each.relative_queries is not None]
    if relative:
        _print_line("query error, relative", [f"{each.mean:.2%}" for each in relative])


def _print_worst(found: "Evaluation") -> None:
    for degree, each in found.distances.items():
        worst = show.label(", ".join(each.worst), 60)
        some = "" if each.compared == each.of else f"{each.compared:,} at random among "
        typer.echo(
            f"{degree}-way, of {some}{each.of:,}: least {each.min:.4f}, worst {each.max:.4f} "
            f"({worst})"
        )
    if found.correlations is not None:
        pair, gap = found.correlations.worst
        typer.echo(f"correlation furthest off: {gap:.4f} ({show.label(', '.join(pair), 60)})")


def _print_classifiers(found: "Evaluation") -> None:
    for name, errors in found.misclassification.items():
        shares = f"{errors.published:.1%} learned from published rows, {errors.real:.1%} from real"
        typer.echo(f"label got wrong         {shares} ({show.label(name, 30)})")
    for name, scores in found.classifiers.items():
        typer.echo(
            f"guesses of {show.label(name, 30)}: balanced accuracy after published rows, after "
            f"real rows; always the same {scores.majority.balanced_accuracy:.3f}"
        )
        for model, after in scores.published.items():
            real = scores.real[model]
            _print_line(model, [f"{each.balanced_accuracy:.3f}" for each in (after, real)])


def _print_line(name: str, values: list[str]) -> None:
    typer.echo(f"{name:<{_NAME}}" + "".join(f"{value:>{_COLUMN}}" for value in values))
