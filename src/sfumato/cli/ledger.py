"""``sfumato ledger``: what was spent, whether the record holds, and the record itself."""

import json as json_text
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sfumato.cli import show

if TYPE_CHECKING:
    from sfumato.privacy import Ledger

app = typer.Typer()

LedgerFile = Annotated[
    Path | None, typer.Option("--ledger", help="The ledger file. [default: this user's]")
]
Dataset = Annotated[str | None, typer.Option(help="One data set. [default: all]")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.callback(invoke_without_command=True)
def _help(context: typer.Context) -> None:
    """Show, verify or export the budget ledger."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command("show")
def show_(ledger: LedgerFile = None, dataset: Dataset = None, json: Json = False) -> None:
    """What each data set has spent, its cap, and every entry."""
    found = [_summary(_open(ledger, name)) for name in _datasets(ledger, dataset)]
    if json:
        show.as_json(found[0] if len(found) == 1 else {"datasets": found})
        return
    for part in found:
        typer.echo(f"{part['dataset']}: spent {part['spent_text']}, cap {part['cap_text']}")
        for entry in part["entries"]:
            cost = entry["cost_text"] or entry["event"]
            typer.echo(f"  {entry['seq']:>5}  {cost:<24} {entry['label']}")


@app.command()
def verify(
    ledger: LedgerFile = None,
    release: Annotated[
        list[Path] | None, typer.Option(help="A release whose head must be in the ledger.")
    ] = None,
    json: Json = False,
) -> None:
    """Recompute the whole chain and compare it with every known anchor."""
    from sfumato.privacy import Head

    heads = []
    for folder in release or []:
        head = _release_head(folder)
        heads.append(Head(head["seq"], head["hash"]))
    verified = _open(ledger, "verify").verify(anchors=heads)
    if json:
        show.as_json(
            {
                "ok": True,
                "head": str(verified.head),
                "anchor": None if verified.anchor is None else str(verified.anchor),
                "rollback_excluded": verified.rollback_excluded,
            }
        )
        return
    typer.echo(str(verified))


@app.command()
def export(
    ledger: LedgerFile = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="A file to write.")] = None,
) -> None:
    """All entries with their hashes as JSON, which can be checked without the ledger."""
    exported = _open(ledger, "export").export()
    if out is None:
        show.as_json(exported)
        return
    out.write_text(json_text.dumps(exported, indent=1) + "\n", encoding="utf-8")
    typer.echo(f"{len(exported['entries']):,} entries: {out}")


def _open(path: Path | None, dataset: str) -> "Ledger":
    from sfumato.privacy import Ledger

    return Ledger.open(path, dataset=dataset, create=False)


def _datasets(path: Path | None, dataset: str | None) -> list[str]:
    known = _open(path, dataset or "show").datasets()
    return [dataset] if dataset is not None else list(known)


def _summary(ledger: "Ledger") -> dict[str, Any]:
    from sfumato.privacy import guarantees

    spent, cap = ledger.composed(), ledger.cap
    return {
        "dataset": ledger.dataset,
        "spent": guarantees.to_json(spent) if spent is not None else None,
        "spent_text": str(spent) if spent is not None else "nothing",
        "cap": guarantees.to_json(cap) if cap is not None else None,
        "cap_text": str(cap) if cap is not None else "none",
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
        ],
    }


def _release_head(folder: Path) -> dict[str, Any]:
    from sfumato.release import TableRelease

    return dict(TableRelease.load(folder).ledger["head"])
