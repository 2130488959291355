"""The values a ledger is made of: rows linked by hashes, entries, and a dataset's state.

A row is what is stored: a canonical JSON body, the hash before it and ``sha256(previous + body)``.
An entry is the same for reading. Each body carries the state of its dataset after it, so a spend
reads one row, however long the ledger is.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from sfumato.errors import LedgerCorruptError
from sfumato.privacy import composition, guarantees
from sfumato.privacy.composition import Cap, Price, Totals
from sfumato.privacy.sensitivity import Protection, protection_from_json, protection_to_ledger

FORMAT = 1
"""Of the bodies of entries; a ledger of another one is refused."""
NO_HASH = "0" * 64
"""What the first row links to."""

Event = Literal["open", "cap", "spend", "kept", "look", "simulation"]
Body = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Head:
    """The position and hash of a row; the last one stands for the whole ledger."""

    seq: int
    hash: str

    def __str__(self) -> str:
        return f"{self.seq}:{self.hash}"


@dataclass(frozen=True, slots=True)
class Row:
    """One stored row."""

    seq: int
    body: str
    previous: str
    hash: str

    def __post_init__(self) -> None:
        if [*map(type, (self.seq, self.body, self.previous, self.hash))] != [int, str, str, str]:
            raise corrupt("database structure", "a value of an entry is of another type")

    @property
    def head(self) -> Head:
        """The ledger's head when this row was its last."""
        return Head(self.seq, self.hash)


@dataclass(frozen=True, kw_only=True, slots=True)
class State:
    """What is in force for a dataset: its sums, its cap, whom it protects."""

    spent: Totals = field(default_factory=Totals)
    cap: Cap | None = None
    protect: Protection | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """One thing that happened to a dataset. Order is by ``seq``, never by ``time``."""

    seq: int
    hash: str
    dataset: str
    event: Event
    label: str
    time: str
    """The day (UTC) on which the ledger was opened for this run, for people only."""
    request: str | None
    cost: Price | None
    """What was asked for."""
    charged: Price | None
    """What it counts as in this ledger's relation."""
    after: State

    def to_json(self) -> dict[str, Any]:
        """As it stands in ``release.json``: exact numbers as text."""
        return {
            "seq": self.seq,
            "hash": self.hash,
            "event": self.event,
            "label": self.label,
            "time": self.time,
            "request": self.request,
            "cost": guarantees.to_json(self.cost) if self.cost else None,
            "charged": guarantees.to_json(self.charged) if self.charged else None,
        }


def canonical(body: Body) -> str:
    """The one text of a body: sorted keys, no spaces, ASCII."""
    return json.dumps(body, sort_keys=True, separators=(",", ":"), allow_nan=False)


def linked(body: Body, after: Head | None) -> Row:
    """The row that puts a body behind a head; the first one stands behind none."""
    text = canonical(body)
    seq, previous = (after.seq + 1, after.hash) if after else (0, NO_HASH)
    return Row(seq, text, previous, digest(previous, text))


def digest(previous: str, body: str) -> str:
    """``sha256(previous + body)`` in hexadecimal."""
    return hashlib.sha256((previous + body).encode(errors="surrogatepass")).hexdigest()


def genesis(ledger_id: str, time: str) -> Row:
    """The first row: it names the ledger and its format."""
    return linked({"event": "genesis", "format": FORMAT, "ledger": ledger_id, "time": time}, None)


def entry_of(row: Row) -> Entry:
    """The entry that a row (not the first one) holds."""
    body: Body = json.loads(row.body)
    return Entry(
        seq=row.seq,
        hash=row.hash,
        dataset=body["dataset"],
        event=body["event"],
        label=body["label"],
        time=body["time"],
        request=body.get("request"),
        cost=price_from_json(body["cost"]) if "cost" in body else None,
        charged=price_from_json(body["charged"]) if "charged" in body else None,
        after=state_from_json(body["after"]),
    )


def state_to_json(state: State) -> dict[str, Any]:
    """A state with exact numbers as text."""
    return {
        "spent": composition.to_json(state.spent),
        "cap": guarantees.to_json(state.cap) if state.cap else None,
        "protect": protection_to_ledger(state.protect) if state.protect else None,
    }


def state_from_json(value: Mapping[str, Any]) -> State:
    """The value that ``state_to_json`` wrote."""
    return State(
        spent=composition.from_json(value["spent"]),
        cap=price_from_json(value["cap"]) if value["cap"] else None,
        protect=protection_from_json(value["protect"]) if value["protect"] else None,
    )


def price_from_json(value: Mapping[str, Any]) -> Price:
    """A stored cost or cap; a local guarantee can't be one."""
    price = guarantees.from_json(value)
    if isinstance(price, guarantees.LocalDP):
        raise ValueError(f"not a cost: {price}")
    return price


def corrupt(failed_check: str, detail: str) -> LedgerCorruptError:
    """The error of a ledger that can't be trusted, naming the check that failed."""
    return LedgerCorruptError(
        f"this ledger can't be trusted: the check of its {failed_check} failed: {detail}. Put the "
        "untouched file back, or find out who changed it; starting over means that all earlier "
        "releases stay uncounted"
    )
