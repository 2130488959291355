"""``sfumato dp2pub``: a table published as under one of three kinds of trust."""

from typing import Annotated

import typer

from sfumato.cli import cap_text, options, progress, run_files, show


def dp2pub(
    context: typer.Context,
    table: options.TablesArgument,
    schema: options.SchemaFile,
    epsilon: options.Epsilon,
    trust: Annotated[
        str,
        typer.Option(
            help="server: it holds the records. semi-honest: it gets one randomized report a "
            "person. nobody: two rounds of randomized answers."
        ),
    ],
    out: options.Out,
    variant: Annotated[
        str | None,
        typer.Option(
            help="grouped (nobody only) or faithful. [default: grouped with nobody, else faithful]"
        ),
    ] = None,
    degree: Annotated[
        int | None,
        typer.Option(
            help="The most parents of a column in the network; not with nobody. "
            "[default: 2 with server, else 3]"
        ),
    ] = None,
    max_cluster: Annotated[
        int | None,
        typer.Option(help="The most columns redrawn together; not with nobody. [default: 3]"),
    ] = None,
    rows: Annotated[
        int | None,
        typer.Option(help="How many rows to publish. [default: as many as the table has]"),
    ] = None,
    neighbors: Annotated[
        str, typer.Option(help="replace: this method publishes the number of rows.")
    ] = "replace",
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
    """Publish a high-dimensional table by DP2-Pub, under one of three kinds of trust."""
    from sfumato.commands.dp2pub import TRUSTS, VARIANTS, dp2pub_table
    from sfumato.privacy.protection import NEIGHBORS

    chosen = options.one_of(NEIGHBORS, neighbors=neighbors)
    limit = None if cap is None else cap_text.cap(cap, name="--cap")
    source = options.one_table(table)
    options.apart(out, schema)
    run_files.keep(context, save_run, command=dp2pub, force=force)
    with progress.shown(quiet=quiet or json) as tell:
        made = dp2pub_table(
            source,
            schema=schema,
            epsilon=epsilon,
            trust=options.one_of(TRUSTS, trust=trust),
            variant=None if variant is None else options.one_of(VARIANTS, variant=variant),
            degree=degree,
            max_cluster=max_cluster,
            rows=rows,
            neighbors=chosen,
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
