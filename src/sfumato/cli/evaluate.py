"""``sfumato evaluate``: real against published, for the people who hold the data."""

from pathlib import Path
from typing import Annotated

import typer

from sfumato.cli import options, show

MOST_APART = 0.2


def evaluate(
    folder: Annotated[Path, typer.Argument(help="A folder that `publish` wrote.")],
    against: Annotated[str, typer.Option(help="The real table.")],
    workload: Annotated[str | None, typer.Option(help="Ranges to compare, as a file.")] = None,
    label: Annotated[
        str | None,
        typer.Option(help="A column that classifiers shall predict; needs scikit-learn."),
    ] = None,
    ledger: options.LedgerFile = None,
    encoding: options.Encoding = "utf-8",
    json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False,
) -> None:
    """Internal: compare a release with the real table, into FOLDER-internal."""
    from sfumato import jobs

    found = jobs.evaluate_release(
        folder, against=against, workload=workload, label=label, ledger=ledger, encoding=encoding
    )
    if json:
        show.as_json(found.to_dict())
        return
    typer.echo("Internal: these figures come from the real data. Do not publish them.")
    real, published = found.rows
    typer.echo(f"rows                    {real:,} real, {published:,} published")
    if abs(real - published) > MOST_APART * real:
        typer.echo(
            "warning: the numbers of rows differ by more than 20%; the noise is that large, or "
            "this is another table."
        )
    for degree, value in found.tv.items():
        typer.echo(f"{degree}-way total variation   {value:.4f}")
    if found.information_error is not None:
        typer.echo(f"mutual information      {found.information_error:.4f} nats off, mean of pairs")
    for name, errors in found.misclassification.items():
        shares = f"{errors.published:.1%} learned from published rows, {errors.real:.1%} from real"
        typer.echo(f"label got wrong         {shares} ({show.label(name, 30)})")
    if found.queries is not None:
        for name, value in found.queries.to_dict().items():
            typer.echo(f"query error, {name:13} {value:,.1f}")
    typer.echo(f"internal    {jobs.internal_folder(folder) / 'internal.html'}")
