"""``sfumato schema``: draft the description of a table, and confirm what the draft took."""

import csv
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

from sfumato.commands import lines
from sfumato.commands.request import (
    Command,
    Delimiter,
    Encoding,
    LedgerGiven,
    OneTable,
    Option,
    Progress,
    function,
)
from sfumato.errors import InputError

if TYPE_CHECKING:
    from sfumato.commands.schema_draft import Confirmation, Draft

_WIDEST: Final = 60
"""Columns of what was taken from the data."""


def field_names(text: str) -> list[str]:
    """Names as the first line of a CSV file writes them, with quotes where one holds a comma."""
    try:
        names = next(csv.reader([text], skipinitialspace=True, strict=True), [])
    except csv.Error:
        raise InputError(
            "--names can't be read: a quote is not closed, or text follows one. Write names like "
            "age,town or, with a comma in one, 'age,\"town, state\"'."
        ) from None
    return [name.strip() for name in names]


@dataclass(frozen=True, kw_only=True, eq=False)
class DraftRequest:
    """Read a table, without any guarantee, and draft a schema for a person to confirm."""

    table: OneTable = field(kw_only=False)
    out: Annotated[
        Path, Option("The file to write.", kind=Path, names="--out/-o", shell_only=True)
    ] = Path("schema.json")
    dataset: Annotated[
        str | None, Option("The name of the data set; its ledger records that the table was read.")
    ] = None
    header: Annotated[
        bool | None,
        Option(
            "Whether the first line of a CSV file holds names.",
            python="By default a first line that looks like values is refused.",
            kind=bool,
            names="--header/--no-header",
        ),
    ] = None
    names: Annotated[
        Sequence[str],
        Option(
            "The fields of a CSV file without a header, like age,town,income.",
            python="As a list.",
            read=field_names,
        ),
    ] = ()
    encoding: Encoding = "utf-8"
    delimiter: Delimiter = None
    ledger: LedgerGiven = None
    force: Annotated[bool, Option("Replace an existing schema.", kind=bool, shell_only=True)] = (
        False
    )
    tell: Progress = None


@dataclass(frozen=True, kw_only=True, eq=False)
class ConfirmRequest:
    """Show what a draft took from the data, and confirm that all of it is public knowledge."""

    path: Annotated[
        "str | Path",
        Option(
            "The drafted schema.",
            python="It is changed: whoever calls this vouches that anybody could have written "
            "these limits and values without the table.",
            kind=Path,
            argument=True,
            metavar="FILE",
        ),
    ] = field(kw_only=False)
    columns: Annotated[
        Sequence[str], Option("Some of its columns. [default: all]", argument=True, many=True)
    ] = ()
    yes: Annotated[bool, Option("Do not ask.", kind=bool, names="--yes/-y", shell_only=True)] = (
        False
    )


def draft(request: DraftRequest) -> "Draft":
    """Look at the table; where the data set is named, its ledger notes that, at cost 0."""
    from sfumato.commands.schema_draft import draft_of

    return draft_of(request)


def draft_file(request: DraftRequest) -> "Draft":
    """Draft a schema into its file, after a look at whether that can be written."""
    from sfumato.commands.schema_draft import check_output

    check_output(request.out, force=request.force, table=request.table)
    made = draft(request)
    made.save(request.out, force=request.force)
    return made


def confirm(request: ConfirmRequest) -> "Confirmation":
    """Take out what marks the columns as unconfirmed; at the end, the notes of the draft too."""
    from sfumato.commands.schema_draft import confirmed

    return confirmed(request.path, request.columns)


def marked_columns(request: ConfirmRequest) -> list[dict[str, Any]]:
    """What there is to confirm."""
    from sfumato.commands import schema_draft

    return schema_draft.marked_columns(request.path, request.columns)


def show_draft(request: DraftRequest, made: "Draft") -> Iterator[str]:
    """The columns with what was taken from the data, and what to do next."""
    yield "This read the table without any guarantee. Keep the draft as you keep the table."
    for each, entry in zip(made.columns, made.to_dict()["columns"], strict=True):
        yield f"  {_line(entry)}"
        for note in each.notes:
            yield f"  {'':<18}   note: {note}"
    for left in made.left_out:
        yield f"  {lines.label(left.name, 18):<18} left out: {left.why}"
    to_confirm = lines.counted(len(made.unconfirmed), "column")
    yield f"draft       {request.out}: {to_confirm} to confirm"
    yield f"next        read and correct it, then: sfumato schema confirm {request.out}"


def show_confirmation(request: ConfirmRequest, marked: list[dict[str, Any]]) -> Iterator[str]:
    """What there is to confirm; then a person is asked, and it is confirmed."""
    for entry in marked:
        yield f"  {_line(entry)}"
    done = _ask_and_confirm(request, marked)
    yield f"confirmed   {lines.counted(len(done.confirmed), 'column')}: {request.path}"
    if done.left:
        yield f"left        {', '.join(done.left)}"


def _confirmation_json(request: ConfirmRequest, marked: list[dict[str, Any]]) -> dict[str, Any]:
    done = _ask_and_confirm(request, marked)
    return {"confirmed": dict(done.confirmed), "left": dict(done.left)}


def _ask_and_confirm(request: ConfirmRequest, marked: list[dict[str, Any]]) -> "Confirmation":
    if marked and not request.yes:
        _ask(len(marked))
    return confirm(request)


def _ask(number: int) -> None:
    import typer

    if not sys.stdin.isatty():
        raise InputError(
            f"{lines.counted(number, 'column')} to confirm, but there is no terminal to ask at. "
            "Read them, then add --yes."
        )
    if not typer.confirm("Could anybody have written this without the table?"):
        raise InputError("not confirmed. Correct the file, then confirm it.")


def _line(entry: dict[str, Any]) -> str:
    """One column: its name, its kind, and what of it was taken from the data."""
    keys = entry.get("unconfirmed", [])
    values = ", ".join(f"{key} {_value(entry.get(key))}" for key in keys if key != "kind")
    return f"{lines.label(entry['name'], 18):<18} {entry['kind']:<9} {values}".rstrip()


def _value(value: Any) -> str:
    if not isinstance(value, list):
        return lines.label(str(value).lower() if isinstance(value, bool) else str(value), _WIDEST)
    shown = lines.label(", ".join(map(str, value)), _WIDEST)
    return f"({len(value)}: {shown})" if len(value) > 1 else f"({shown})"


draft_schema = function(DraftRequest, draft, name="draft_schema")
confirm_schema = function(
    ConfirmRequest,
    confirm,
    name="confirm_schema",
    summary="Confirm that all that a draft took from the data is public knowledge.",
)

DRAFT = Command(
    words="schema draft",
    request=DraftRequest,
    run=draft_file,
    show=show_draft,
    json=lambda _, made: made.to_dict(),
    json_help="Print the draft as JSON.",
)
CONFIRM = Command(
    words="schema confirm",
    request=ConfirmRequest,
    run=marked_columns,
    show=show_confirmation,
    json=_confirmation_json,
    json_help="Print what was confirmed.",
)
COMMANDS: Final = (DRAFT, CONFIRM)
