"""Options that several commands have, described once."""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from sfumato import check
from sfumato.errors import InputError

T = TypeVar("T")

_TABLE = (
    "csv, parquet, json (also gz, zst), sqlite (file.db::table) or "
    "postgresql://user@host/database::table, or spark::TABLE (or a path) to let Spark read it."
)
TableArgument = Annotated[str, typer.Argument(help=_TABLE)]
TablesArgument = Annotated[
    list[str],
    typer.Argument(metavar="TABLE", help=_TABLE),
]
SchemaFile = Annotated[Path, typer.Option(help="The public description of the columns.")]
Epsilon = Annotated[str, typer.Option(help="The budget of this release, for example 1.")]
Out = Annotated[Path, typer.Option(help="The folder to write; it may be published whole.")]
LedgerPlace = Annotated[
    str | None,
    typer.Option(metavar="PLACE", help="The ledger: a file, or postgresql://user@host/database."),
]
Dataset = Annotated[
    str | None, typer.Option(help="The name the budget belongs to. [default: the schema's]")
]
Cap = Annotated[
    str | None,
    typer.Option(
        metavar="EPSILON[,DELTA]",
        help="The most all releases may cost together, kept from the first run that gives it. "
        "Without DELTA it is 1e-6; 3,0 is a pure cap.",
    ),
]
Evaluate = Annotated[
    bool, typer.Option("--evaluate", help="Compare with the real table, into OUT-internal.")
]
Csv = Annotated[bool, typer.Option("--csv", help="Write data.csv too.")]
Force = Annotated[bool, typer.Option("--force", help="Replace an older release.")]
Strict = Annotated[
    bool,
    typer.Option(
        "--strict",
        help="Refuse a table with a value that does not fit. By default it counts as other, "
        "missing or the first value, so that no single row decides whether there is a release.",
    ),
]
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
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")]
Resume = Annotated[
    bool | None,
    typer.Option(
        "--resume/--no-resume",
        help="Go on with a run of this very command that was stopped, without a new charge; or "
        "leave it, and pay again. [default: refuse if there is one]",
    ),
]
SaveRun = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Write this command as TOML, for `sfumato run FILE`."),
]


def one_table(given: list[str]) -> str:
    """The one table of a command; several are refused with what to do instead."""
    if len(given) > 1:
        from sfumato.commands.inputs import check_one_table

        check_one_table(given)
    return given[0]


def apart(out: Path, *inputs: str | Path | None) -> None:
    """Refuse a folder that holds what the command reads, and that --force would replace."""
    from sfumato.release import check_apart

    for given in inputs:
        check_apart(out, given, named="the input")


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


def one_of(allowed: Iterable[T], **named: str) -> T:
    """One of a few words, by the name of its option."""
    return check.one_of(allowed, **named)
