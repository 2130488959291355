"""Options that several commands have, described once."""

from pathlib import Path
from typing import Annotated

import typer

from sfumato.errors import InputError

TableArgument = Annotated[
    str, typer.Argument(help="csv, parquet, json (also gz, zst) or sqlite (file.db::table).")
]
SchemaFile = Annotated[Path, typer.Option(help="The public description of the columns.")]
Epsilon = Annotated[str, typer.Option(help="The budget of this release, for example 1.")]
Out = Annotated[Path, typer.Option(help="The folder to write; it may be published whole.")]
LedgerFile = Annotated[Path | None, typer.Option(help="The ledger file.")]
Dataset = Annotated[
    str | None, typer.Option(help="The name the budget belongs to. [default: the schema's]")
]
Cap = Annotated[
    str | None,
    typer.Option(
        help="EPSILON[,DELTA]: the most all releases may cost together; kept from the first run "
        "that gives it."
    ),
]
Evaluate = Annotated[
    bool, typer.Option("--evaluate", help="Compare with the real table, into OUT-internal.")
]
Csv = Annotated[bool, typer.Option("--csv", help="Write data.csv too.")]
Force = Annotated[bool, typer.Option("--force", help="Replace an older release.")]
Encoding = Annotated[str, typer.Option(help="Of a CSV file.")]
Delimiter = Annotated[
    str | None,
    typer.Option(
        callback=lambda given: "\t" if given in ("tab", "\\t") else given,
        help="Of a CSV file, one character or tab. [default: taken from the header]",
    ),
]
Seed = Annotated[int | None, typer.Option(help="Make a simulation that protects nobody.")]
ReleaseJson = Annotated[bool, typer.Option("--json", help="Print release.json and nothing else.")]


def settings(given: list[str]) -> dict[str, str]:
    """Options of a method, given as name=value."""
    pairs = [entry.partition("=") for entry in given]
    for name, equals, _ in pairs:
        if not name or not equals:
            raise InputError(f"--set takes name=value, for example rounds=30; got {name!r}")
    names = [name for name, _, _ in pairs]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise InputError(f"--set names {', '.join(twice)} twice")
    return {name: value for name, _, value in pairs}
