"""``sfumato ledger``: what was spent, the cap, whether the record holds, and the record itself."""

import json as json_text
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sfumato.cli import cap_text, release_check, show
from sfumato.errors import InputError

if TYPE_CHECKING:
    from sfumato.ledger import Head, Ledger

app = typer.Typer()

WIDEST = 200
LedgerPlace = Annotated[
    str | None,
    typer.Option(
        "--ledger",
        metavar="PLACE",
        help="The ledger: a file, or postgresql://user@host/database. [default: this user's]",
    ),
]
Dataset = Annotated[str | None, typer.Option(help="One data set. [default: all]")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.callback(invoke_without_command=True)
def _help(context: typer.Context) -> None:
    """Show, cap, verify or export the budget ledger."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command("show")
def show_(ledger: LedgerPlace = None, dataset: Dataset = None, json: Json = False) -> None:
    """What each data set has spent, its cap, and every entry."""
    found = [_summary(_open(ledger, name)) for name in _datasets(ledger, dataset)]
    if json:
        alone = found[0] if len(found) == 1 else {}
        show.as_json({"datasets": found, **alone})
        return
    typer.echo(f"ledger {_place(ledger)}" if found else f"no entries in {_place(ledger)}")
    for part in found:
        name = show.label(part["dataset"], WIDEST)
        typer.echo(f"{name}: spent {part['spent_text']}, cap {part['cap_text']}")
        if part["largest_cap"] != part["cap"]:
            typer.echo(f"  largest cap, which all releases promise: {part['largest_cap_text']}")
        for entry in part["entries"]:
            cost = entry["cost_text"] or entry["event"]
            typer.echo(f"  {entry['seq']:>5}  {cost:<28} {show.label(entry['label'], WIDEST)}")


@app.command("cap")
def cap_(
    dataset: Annotated[str, typer.Argument(help="The data set's name.")],
    limit: Annotated[
        str,
        typer.Argument(
            metavar="EPSILON[,DELTA]", help="The new cap. Without DELTA it is 1e-6; 3,0 is pure."
        ),
    ],
    ledger: LedgerPlace = None,
    json: Json = False,
) -> None:
    """Set, raise or lower the cap of a data set, as an entry that everyone can see."""
    from sfumato.ledger import Ledger
    from sfumato.privacy.composition import unstated

    cap = cap_text.cap(limit, name="a cap")
    book = Ledger.open(ledger, dataset=dataset)
    book.set_cap(cap)
    if json:
        show.as_json(_summary(book))
        return
    typer.echo(f"ledger {_place(ledger)}")
    spent = book.composed() or unstated(book.spent)
    typer.echo(f"{book.dataset}: spent {spent}, cap {cap}")


@app.command()
def verify(
    ledger: LedgerPlace = None,
    release: Annotated[
        list[Path] | None, typer.Option(help="A release whose head must be in the ledger.")
    ] = None,
    json: Json = False,
) -> None:
    """Recompute the whole chain and compare it with every known anchor."""
    for folder in release or []:
        _refuse_survey(folder)
    book = _open(ledger, "verify")
    heads = {folder: _release_head(folder, book.ledger_id) for folder in release or []}
    verified = book.verify(anchors=heads.values())
    if json:
        show.as_json(
            {
                "ok": True,
                "head": str(verified.head),
                "anchor": None if verified.anchor is None else str(verified.anchor),
                "rollback_excluded": verified.rollback_excluded,
                "releases": {str(folder): str(head) for folder, head in heads.items()},
            }
        )
        return
    found = [
        f"; the head of {folder}, entry {head.seq}, was found" for folder, head in heads.items()
    ]
    typer.echo(f"{verified}{''.join(found)}")


@app.command()
def export(
    ledger: LedgerPlace = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="A file to write.")] = None,
) -> None:
    """All entries with their hashes as JSON, which can be checked without the ledger."""
    exported = _open(ledger, "export").export()
    if out is None:
        show.as_json(exported)
        return
    try:
        with out.open("x", encoding="utf-8") as file:
            file.write(json_text.dumps(exported, indent=1) + "\n")
    except FileExistsError:
        raise InputError(f"{out} exists. Name another file, or remove that one") from None
    typer.echo(f"{len(exported['entries']):,} entries: {out}")


def _open(place: str | None, dataset: str) -> "Ledger":
    from sfumato.ledger import Ledger

    return Ledger.open(place, dataset=dataset, create=False)


def _place(given: str | None) -> str:
    from sfumato.ledger import default_path

    return given if given is not None else str(default_path())


def _datasets(place: str | None, dataset: str | None) -> list[str]:
    book = _open(place, dataset or "show")
    known = list(book.datasets())
    if dataset is None:
        return known
    if book.dataset in known:
        return [book.dataset]
    close = get_close_matches(book.dataset, known, n=1)
    hint = f" (did you mean {close[0]!r}?)" if close else ""
    names = ", ".join(map(repr, known)) or "no entries at all"
    raise InputError(f"no data set {dataset!r}{hint} in {_place(place)}. It has {names}")


def _summary(ledger: "Ledger") -> dict[str, Any]:
    from sfumato.privacy import guarantees

    spent, cap, largest = ledger.composed(), ledger.cap, ledger.largest_cap
    return {
        "dataset": ledger.dataset,
        "spent": guarantees.to_json(spent) if spent is not None else None,
        "spent_text": show.spent_text(ledger),
        "cap": guarantees.to_json(cap) if cap is not None else None,
        "cap_text": str(cap) if cap is not None else "none",
        "largest_cap": guarantees.to_json(largest) if largest is not None else None,
        "largest_cap_text": str(largest) if largest is not None else "none",
        "entries": [
            {
                "seq": entry.seq,
                "event": entry.event,
                "label": entry.label,
                "cost": guarantees.to_json(entry.cost) if entry.cost is not None else None,
                "cost_text": str(entry.cost) if entry.cost is not None else "",
                "time": entry.time,
                "hash": entry.hash,
            }
            for entry in ledger.entries()
            if entry.event != "kept"  # one for each step of a run; ``export`` has them
        ],
    }


def _refuse_survey(folder: Path) -> None:
    """A survey of devices is in no ledger: say what checks it instead."""
    from sfumato.release.load import load_release

    release_check.check_described(folder)
    found = load_release(folder)
    if "survey" in found.method and not found.ledger["entries"]:
        raise InputError(
            f"{folder} is the release of a survey: devices keep their own accounts, and no ledger "
            f"has an entry of it. Use `sfumato survey verify {folder}`, which tells whether its "
            "files are as the survey signed them."
        )


def _release_head(folder: Path, ledger_id: str) -> "Head":
    from sfumato.ledger import Head
    from sfumato.release.load import load_release

    release_check.check_described(folder)
    release = load_release(folder)
    if not release.private:
        raise InputError(f"{folder}: a simulation has no entry in a ledger")
    made_with = release.ledger.get("id", ledger_id)
    if made_with != ledger_id:
        raise InputError(
            f"{folder}: this release was made with another ledger (id {made_with}, this one is "
            f"{ledger_id}). Name its ledger with --ledger"
        )
    head = release.ledger["head"]
    return Head(head["seq"], head["hash"])
