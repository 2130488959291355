"""``sfumato ledger``: what was spent, the cap, whether the record holds, and the record itself."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

from sfumato.commands import lines
from sfumato.commands.request import Command, Option, cap
from sfumato.errors import InputError

if TYPE_CHECKING:
    from sfumato.ledger import Head, Ledger, Verified
    from sfumato.privacy.composition import Cap
    from sfumato.release import TableRelease
    from sfumato.release.recommender import RecommenderRelease

_WIDEST: Final = 200
"""Columns of the name of a data set, and of the label of an entry."""


@dataclass(frozen=True, kw_only=True, eq=False)
class LedgerRequest:
    """The options of every command on a ledger."""

    ledger: Annotated[
        str | None,
        Option(
            "The ledger: a file, or postgresql://user@host/database. [default: this user's]",
            metavar="PLACE",
        ),
    ] = None


@dataclass(frozen=True, kw_only=True, eq=False)
class ShowRequest(LedgerRequest):
    """What each data set has spent, its cap, and every entry."""

    dataset: Annotated[str | None, Option("One data set. [default: all]")] = None


@dataclass(frozen=True, kw_only=True, eq=False)
class CapRequest(LedgerRequest):
    """Set, raise or lower the cap of a data set, as an entry that everyone can see."""

    dataset: Annotated[str, Option("The data set's name.", argument=True)]
    limit: Annotated[
        "Cap",
        Option(
            "The new cap. Without DELTA it is 1e-6; 3,0 is pure.",
            argument=True,
            metavar="EPSILON[,DELTA]",
            read=partial(cap, name="a cap"),
        ),
    ]


@dataclass(frozen=True, kw_only=True, eq=False)
class VerifyRequest(LedgerRequest):
    """Recompute the whole chain and compare it with every known anchor."""

    release: Annotated[
        tuple[Path, ...],
        Option("A release whose head must be in the ledger.", kind=Path, many=True),
    ] = ()


@dataclass(frozen=True, kw_only=True, eq=False)
class ExportRequest(LedgerRequest):
    """All entries with their hashes as JSON, which can be checked without the ledger."""

    out: Annotated[Path | None, Option("A file to write.", kind=Path, names="--out/-o")] = None


def summaries(request: ShowRequest) -> list[dict[str, Any]]:
    """Each data set: what it spent, its cap and its entries."""
    return [_summary(_open(request, name)) for name in _datasets(request)]


def set_cap(request: CapRequest) -> "Ledger":
    """Write the cap into the ledger, which is made where there is none."""
    from sfumato.ledger import Ledger

    ledger = Ledger.open(request.ledger, dataset=request.dataset)
    ledger.set_cap(request.limit)
    return ledger


def verify(request: VerifyRequest) -> "tuple[Verified, dict[Path, Head]]":
    """Check the chain; also the head that each release has in it."""
    releases = {folder: _release(folder) for folder in request.release}
    ledger = _open(request, "verify")
    heads = {folder: _head(made, folder, ledger.ledger_id) for folder, made in releases.items()}
    return ledger.verify(anchors=heads.values()), heads


def export(request: ExportRequest) -> dict[str, Any]:
    """The whole ledger; into a new file if one is named."""
    exported = _open(request, "export").export()
    if request.out is not None:
        try:
            with request.out.open("x", encoding="utf-8") as file:
                file.write(json.dumps(exported, indent=1) + "\n")
        except FileExistsError:
            raise InputError(
                f"{request.out} exists. Name another file, or remove that one"
            ) from None
    return exported


def show_summaries(request: ShowRequest, datasets: list[dict[str, Any]]) -> Iterator[str]:
    """The data sets, each with its entries."""
    yield f"ledger {_location(request)}" if datasets else f"no entries in {_location(request)}"
    for part in datasets:
        name = lines.label(part["dataset"], _WIDEST)
        yield f"{name}: spent {part['spent_text']}, cap {part['cap_text']}"
        if part["largest_cap"] != part["cap"]:
            yield f"  largest cap, which all releases promise: {part['largest_cap_text']}"
        for entry in part["entries"]:
            cost = entry["cost_text"] or entry["event"]
            yield f"  {entry['seq']:>5}  {cost:<28} {lines.label(entry['label'], _WIDEST)}"


def show_cap(request: CapRequest, ledger: "Ledger") -> Iterator[str]:
    """What was spent, and the new cap."""
    from sfumato.privacy.composition import unstated

    yield f"ledger {_location(request)}"
    spent = ledger.composed() or unstated(ledger.spent)
    yield f"{ledger.dataset}: spent {spent}, cap {request.limit}"


def show_verified(
    request: VerifyRequest, result: "tuple[Verified, dict[Path, Head]]"
) -> Iterator[str]:
    """That the chain holds, and which heads are in it."""
    verified, heads = result
    parts = [
        f"; the head of {folder}, entry {head.seq}, was found" for folder, head in heads.items()
    ]
    yield f"{verified}{''.join(parts)}"


def show_export(request: ExportRequest, exported: dict[str, Any]) -> Iterator[str]:
    """The ledger as JSON, or the file that has it."""
    if request.out is None:
        yield lines.json_text(exported)
    else:
        yield f"{len(exported['entries']):,} entries: {request.out}"


def _summaries_json(_: ShowRequest, datasets: list[dict[str, Any]]) -> dict[str, Any]:
    alone = datasets[0] if len(datasets) == 1 else {}
    return {"datasets": datasets, **alone}


def _verified_json(_: VerifyRequest, result: "tuple[Verified, dict[Path, Head]]") -> dict[str, Any]:
    verified, heads = result
    return {
        "ok": True,
        "head": str(verified.head),
        "anchor": None if verified.anchor is None else str(verified.anchor),
        "rollback_excluded": verified.rollback_excluded,
        "releases": {str(folder): str(head) for folder, head in heads.items()},
    }


def _open(request: LedgerRequest, dataset: str) -> "Ledger":
    from sfumato.ledger import Ledger

    return Ledger.open(request.ledger, dataset=dataset, create=False)


def _location(request: LedgerRequest) -> str:
    from sfumato.ledger import default_path

    return request.ledger if request.ledger is not None else str(default_path())


def _datasets(request: ShowRequest) -> list[str]:
    ledger = _open(request, request.dataset or "show")
    known = list(ledger.datasets())
    if request.dataset is None:
        return known
    if ledger.dataset in known:
        return [ledger.dataset]
    close = get_close_matches(ledger.dataset, known, n=1)
    hint = f" (did you mean {close[0]!r}?)" if close else ""
    names = ", ".join(map(repr, known)) or "no entries at all"
    raise InputError(
        f"no data set {request.dataset!r}{hint} in {_location(request)}. It has {names}"
    )


def _summary(ledger: "Ledger") -> dict[str, Any]:
    from sfumato.privacy import guarantees

    spent, cap, largest = ledger.composed(), ledger.cap, ledger.largest_cap
    return {
        "dataset": ledger.dataset,
        "spent": guarantees.to_json(spent) if spent is not None else None,
        "spent_text": lines.spent_text(ledger),
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


def _release(folder: Path) -> "TableRelease | RecommenderRelease":
    """A release that a ledger knows; for one that only devices know, what checks it instead."""
    from sfumato.commands.internal_folder import check_described
    from sfumato.release.load import load_release

    check_described(folder)
    release = load_release(folder)
    if "survey" in release.method and not release.ledger["entries"]:
        raise InputError(
            f"{folder} is the release of a survey: devices keep their own accounts, and no ledger "
            f"has an entry of it. Use `sfumato survey verify {folder}`, which tells whether its "
            "files are as the survey signed them."
        )
    return release


def _head(release: "TableRelease | RecommenderRelease", folder: Path, ledger_id: str) -> "Head":
    """The entry of a ledger that a release was made with."""
    from sfumato.ledger import Head

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


SHOW = Command(
    words="ledger show",
    request=ShowRequest,
    run=summaries,
    show=show_summaries,
    json=_summaries_json,
    json_help="Print JSON.",
)
CAP = Command(
    words="ledger cap",
    request=CapRequest,
    run=set_cap,
    show=show_cap,
    json=lambda _, ledger: _summary(ledger),
    json_help="Print JSON.",
)
VERIFY = Command(
    words="ledger verify",
    request=VerifyRequest,
    run=verify,
    show=show_verified,
    json=_verified_json,
    json_help="Print JSON.",
)
EXPORT = Command(
    words="ledger export",
    request=ExportRequest,
    run=export,
    show=show_export,
)
COMMANDS: Final = (SHOW, CAP, VERIFY, EXPORT)
