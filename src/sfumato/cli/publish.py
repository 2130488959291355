"""``sfumato publish``: a table in, a private table with its guarantee and report out."""

from pathlib import Path
from typing import Annotated

import typer

from sfumato.cli import cap_text, options, progress, run_files, show


def publish(
    context: typer.Context,
    table: options.TablesArgument,
    epsilon: options.Epsilon,
    out: options.Out,
    schema: Annotated[
        Path | None,
        typer.Option(
            help="The public description of the columns. Without one, limits and values are found "
            "privately for a share of the budget; names of columns are taken as public."
        ),
    ] = None,
    infer_share: Annotated[
        str | None,
        typer.Option(
            help="The share of epsilon that pays for that; half of delta goes with it. "
            "[default: 0.2]"
        ),
    ] = None,
    delta: Annotated[
        str | None,
        typer.Option(
            help="For Gaussian noise, where that is smaller. A method that needs none stays pure; "
            "one that does takes 1e-9 by default, and the release says so."
        ),
    ] = None,
    method: Annotated[
        str,
        typer.Option(
            help="auto, histogram, independent, mwem, mst, cliquetree, aim, privbayes or dp2pub."
        ),
    ] = "auto",
    workload: Annotated[
        str | None, typer.Option(help="1-way, 2-way, 3-way or a file. [default: 2-way]")
    ] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="A method's option, like rounds=30.")
    ] = None,
    rows: Annotated[
        int | None,
        typer.Option(
            help="The table's true number of rows, if it is public knowledge; saves budget. Not "
            "how many rows to write."
        ),
    ] = None,
    totals: Annotated[
        Path | None,
        typer.Option(help="A file of marginal counts that are public knowledge; agreed with."),
    ] = None,
    neighbors: Annotated[
        str, typer.Option(help="add-remove, or replace: then the number of rows is public.")
    ] = "add-remove",
    person: Annotated[str | None, typer.Option(help="The column that names the person.")] = None,
    max_rows: Annotated[int | None, typer.Option(help="Rows of one person that count.")] = None,
    ledger: options.LedgerPlace = None,
    dataset: options.Dataset = None,
    cap: options.Cap = None,
    evaluate: options.Evaluate = False,
    csv: options.Csv = False,
    force: options.Force = False,
    encoding: options.Encoding = "utf-8",
    delimiter: options.Delimiter = None,
    strict: options.Strict = False,
    seed: options.Seed = None,
    resume: options.Resume = None,
    save_run: options.SaveRun = None,
    quiet: options.Quiet = False,
    json: options.ReleaseJson = False,
) -> None:
    """Publish a table: a synthetic table, a machine-readable guarantee and a report."""
    from sfumato.commands.inputs import check_schema_share
    from sfumato.commands.publish import publish_table
    from sfumato.privacy.protection import NEIGHBORS

    chosen_options = options.settings(settings or [])
    chosen = options.one_of(NEIGHBORS, neighbors=neighbors)
    limit = None if cap is None else cap_text.cap(cap, name="--cap")
    source = options.one_table(table)
    options.apart(out, schema, workload, totals)
    check_schema_share(epsilon, infer_share)
    run_files.keep(context, save_run, command=publish, force=force)
    with progress.shown(quiet=quiet or json) as tell:
        made = publish_table(
            source,
            schema=schema,
            infer_share=infer_share,
            epsilon=epsilon,
            delta=delta,
            method=method,
            workload=workload,
            options=chosen_options,
            rows=rows,
            totals=totals if totals is not None else (),
            neighbors=chosen,
            person=person,
            max_rows=max_rows,
            out=out,
            dataset=dataset,
            ledger=ledger,
            cap=limit,
            evaluate=evaluate,
            force=force,
            csv=csv,
            encoding=encoding,
            delimiter=delimiter,
            strict=strict,
            seed=seed,
            resume=resume,
            tell=tell,
        )
    if json:
        show.as_json(made.to_dict())
        return
    show.published(made, out=out, ledger=ledger, evaluated=evaluate)
