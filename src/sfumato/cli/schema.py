"""``sfumato schema``: draft the description of a table, and confirm what the draft took."""

import csv
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sfumato.cli import options, progress, show
from sfumato.errors import InputError

if TYPE_CHECKING:
    from sfumato.commands.schema import Draft

app = typer.Typer()

_WIDEST = 60


@app.callback(invoke_without_command=True)
def _help(context: typer.Context) -> None:
    """Draft and confirm the public description of a table."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command()
def draft(
    table: options.TableArgument,
    out: Annotated[Path, typer.Option("--out", "-o", help="The file to write.")] = Path(
        "schema.json"
    ),
    dataset: Annotated[
        str | None, typer.Option(help="The name the budget belongs to; its ledger notes the look.")
    ] = None,
    header: Annotated[
        bool | None,
        typer.Option(
            "--header/--no-header", help="Whether the first line of a CSV file holds names."
        ),
    ] = None,
    names: Annotated[
        str | None,
        typer.Option(help="The fields of a CSV file without a header, like age,town,income."),
    ] = None,
    encoding: options.Encoding = "utf-8",
    delimiter: options.Delimiter = None,
    ledger: options.LedgerPlace = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an older schema.")] = False,
    quiet: options.Quiet = False,
    json: Annotated[bool, typer.Option("--json", help="Print the draft as JSON.")] = False,
) -> None:
    """Read a table, without any guarantee, and draft a schema for a person to confirm."""
    from sfumato.commands import schema

    schema.check_place(out, force=force, table=table)
    with progress.shown(quiet=quiet or json) as tell:
        made = schema.draft_schema(
            table,
            dataset=dataset,
            header=header,
            names=() if names is None else _fields(names),
            encoding=encoding,
            delimiter=delimiter,
            ledger=ledger,
            tell=tell,
        )
    made.save(out, force=force)
    if json:
        show.as_json(made.to_dict())
        return
    _show(made, out)


def _fields(text: str) -> list[str]:
    """Names as the first line of a CSV file writes them, with quotes where one holds a comma."""
    try:
        fields = next(csv.reader([text], skipinitialspace=True, strict=True), [])
    except csv.Error:
        raise InputError(
            "--names can't be read: a quote is not closed, or text follows one. Write names like "
            "age,town or, with a comma in one, 'age,\"town, state\"'."
        ) from None
    return [name.strip() for name in fields]


@app.command()
def confirm(
    file: Annotated[Path, typer.Argument(help="The drafted schema.")],
    columns: Annotated[
        list[str] | None, typer.Argument(help="Some of its columns. [default: all]")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print what was confirmed.")] = False,
) -> None:
    """Show what a draft took from the data, and confirm that all of it is public knowledge."""
    from sfumato.commands import schema

    marked = schema.marked_columns(file, columns or ())
    if not json:
        _show_marked(marked)
    if marked and not yes:
        _ask(len(marked))
    done = schema.confirm_schema(file, columns=columns or ())
    if json:
        show.as_json({"confirmed": dict(done.confirmed), "left": dict(done.left)})
        return
    typer.echo(f"confirmed   {show.counted(len(done.confirmed), 'column')}: {file}")
    if done.left:
        typer.echo(f"left        {', '.join(done.left)}")


def _ask(number: int) -> None:
    if not sys.stdin.isatty():
        raise InputError(
            f"{show.counted(number, 'column')} to confirm, and nobody to ask. Read them, then say "
            "--yes."
        )
    if not typer.confirm("Could anybody have written this without the table?"):
        raise InputError("not confirmed. Correct the file, then confirm it.")


def _show(made: "Draft", out: Path) -> None:
    typer.echo("This read the table without any guarantee. Keep the draft as you keep the table.")
    for each, entry in zip(made.columns, made.to_dict()["columns"], strict=True):
        typer.echo(f"  {_line(entry)}")
        for note in each.notes:
            typer.echo(f"  {'':<18}   note: {note}")
    for left in made.left_out:
        typer.echo(f"  {show.label(left.name, 18):<18} left out: {left.why}")
    typer.echo(f"draft       {out}: {show.counted(len(made.unconfirmed), 'column')} to confirm")
    typer.echo(f"next        read and correct it, then: sfumato schema confirm {out}")


def _show_marked(marked: list[dict[str, Any]]) -> None:
    for entry in marked:
        typer.echo(f"  {_line(entry)}")


def _line(entry: dict[str, Any]) -> str:
    """One column: its name, its kind, and what of it was taken from the data."""
    taken = entry.get("unconfirmed", [])
    said = ", ".join(f"{key} {_value(entry.get(key))}" for key in taken if key != "kind")
    return f"{show.label(entry['name'], 18):<18} {entry['kind']:<9} {said}".rstrip()


def _value(value: Any) -> str:
    if not isinstance(value, list):
        return show.label(str(value).lower() if isinstance(value, bool) else str(value), _WIDEST)
    shown = show.label(", ".join(map(str, value)), _WIDEST)
    return f"({len(value)}: {shown})" if len(value) > 1 else f"({shown})"
