"""Checking a ledger from its rows alone: links, hashes, sums, caps and anchors.

A truncated chain and an older backup are valid chains. Only a head that was stored elsewhere (an
anchor) shows that something is missing at the end.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sfumato.errors import InputError, SfumatoError, StorageError
from sfumato.ledger.entries import (
    FORMAT,
    NO_HASH,
    Body,
    Entry,
    Head,
    Row,
    State,
    canonical,
    corrupt,
    digest,
    entry_of,
    fingerprint,
    paid_by,
    replay,
    state_to_json,
)
from sfumato.privacy.guarantees import Price
from sfumato.privacy.sensitivity import Protection, protection_to_ledger


@dataclass(frozen=True, kw_only=True, slots=True)
class Verified:
    """A ledger whose every check held."""

    ledger_id: str
    head: Head
    anchor: Head | None
    """The latest head from outside the ledger that the chain was compared with."""

    @property
    def rollback_excluded(self) -> bool:
        """Whether the last entry itself is anchored."""
        return self.anchor == self.head

    def __str__(self) -> str:
        whole = f"{self.head.seq + 1} entries hold together, head {self.head}"
        if self.anchor is None:
            return f"{whole}; no anchor was found, so a rollback can't be excluded"
        if not self.rollback_excluded:
            return f"{whole}; anchored up to entry {self.anchor.seq}, not after it"
        return f"{whole}; the head is anchored"


def verify_rows(rows: Iterable[Row], anchors: Iterable[Head] = ()) -> Verified:
    """Recompute a whole ledger: chain, format, states, caps, request ids, anchors.

    Raises:
        LedgerCorruptError: Naming the first check that failed.
    """
    missing = set(anchors)
    latest = max(missing, key=lambda anchor: anchor.seq, default=None)
    states: dict[str, State] = {}
    requests: set[tuple[str, str]] = set()
    ledger_id, head = "", Head(-1, NO_HASH)
    for row in checked_links(rows):
        head = row.head
        body = _body(row)
        if row.seq == 0:
            ledger_id = genesis_id(row)
        else:
            _check_entry(row.seq, body, states, requests)
        missing.discard(head)
        if any(anchor.seq == row.seq for anchor in missing):
            raise corrupt("anchor", f"entry {row.seq} has another hash than was anchored")
    if missing and latest:
        raise rolled_back(latest, head)
    return Verified(ledger_id=ledger_id, head=head, anchor=latest)


def verify_export(export: Mapping[str, Any], anchors: Iterable[Head] = ()) -> Verified:
    """Check what ``Ledger.export`` wrote, without the ledger.

    Raises:
        LedgerCorruptError: Naming the first check that failed.
    """
    try:
        rows = [
            Row(entry["seq"], canonical(entry["body"]), entry["previous"], entry["hash"])
            for entry in export["entries"]
        ]
    except (KeyError, TypeError, ValueError) as error:
        raise corrupt("structure", f"not an exported ledger ({error!r})") from None
    return verify_rows(rows, anchors)


def check_outcomes(rows: Iterable[Row], outcomes: Iterable[tuple[str, str, bytes]]) -> None:
    """Refuse outcomes that no entry fixed, others than it fixed, and entries without theirs."""
    bodies = (_body(row) for row in rows)
    fixed = {
        (body["dataset"], body["request"]): body.get("sha256")
        for body in bodies
        if body["event"] == "kept"
    }
    for dataset, key, payload in outcomes:
        check_outcome(key, payload, fixed.pop((dataset, key), None))
    for _, key in fixed:
        check_outcome(key, None, "")


def check_outcome(key: str, payload: bytes | None, fixed: str | None) -> None:
    """Refuse an outcome that is not the one whose hash an entry fixed, or that is missing."""
    if payload is None:
        raise corrupt("outcomes", f"what was kept for request {paid_by(key)!r} is gone")
    if fixed != fingerprint(payload):
        raise corrupt("outcomes", f"what was kept for request {paid_by(key)!r} was changed")


def checked_links(rows: Iterable[Row]) -> Iterator[Row]:
    """The rows, each after its number, link and hash were checked."""
    last = Head(-1, NO_HASH)
    for row in rows:
        if row.seq != last.seq + 1:
            raise corrupt("sequence", f"after entry {last.seq} comes entry {row.seq}")
        if row.previous != last.hash:
            raise corrupt("chain", f"entry {row.seq} does not follow entry {last.seq}")
        check_hash(row)
        _check_noise_not_fixed(row)
        yield row
        last = row.head
    if last.seq < 0:
        raise corrupt("first entry", "there is none")


def _check_noise_not_fixed(row: Row) -> None:
    """Refuse an entry whose cost stands for noise that was fixed in advance.

    Such an entry could stand over the cap that its rho fits. In canonical text the key can't be
    part of a label, whose quotes are escaped.
    """
    if '"plan":[' in row.body:
        raise StorageError(
            f"entry {row.seq} of this ledger was made by a development version of sfumato that "
            "could fix all noise of a run in advance; this version can't count it. Keep the file "
            "as a record, and go on with a new ledger under a cap that is lower by what this one "
            "says was spent"
        )


def check_hash(row: Row) -> None:
    """Refuse a row whose body is not the one that was hashed."""
    if digest(row.previous, row.body) != row.hash:
        raise corrupt("hashes", f"the content of entry {row.seq} was changed")


def same_request(paid: Row, cost: Price, label: str, protect: Protection) -> Entry:
    """The entry that paid for a request, if cost, label and protection are the same as then."""
    check_hash(paid)
    entry, protected = entry_of(paid), json.loads(paid.body)["protect"]
    if (entry.cost, entry.label, protected) != (cost, label, protection_to_ledger(protect)):
        raise InputError(
            f"request {entry.request!r} was already paid as {entry.label!r} at {entry.cost}, not "
            f"{label!r} at {cost}. Use a new request id"
        )
    return entry


def genesis_id(row: Row) -> str:
    """The ledger's name from its first row, whose format must be ours."""
    body = _body(row)
    if body.get("event") != "genesis":
        raise corrupt("first entry", "it does not open a ledger")
    if body.get("format") != FORMAT:
        raise corrupt(
            "format version", f"it is {body.get('format')!r}, this version reads {FORMAT}"
        )
    ledger_id = str(body.get("ledger"))
    if len(ledger_id) != 32 or not set(ledger_id) <= set("0123456789abcdef"):
        raise corrupt("first entry", "the ledger's name is not 32 hexadecimal digits")
    return ledger_id


def rolled_back(anchor: Head, head: Head) -> SfumatoError:
    """The error of a ledger that ends before an anchor of its own."""
    return corrupt(
        "anchor",
        f"entry {anchor.seq} was anchored, but the ledger ends at entry {head.seq}: it was "
        "truncated, or this is an older backup",
    )


def _check_entry(
    seq: int, body: Body, states: dict[str, State], requests: set[tuple[str, str]]
) -> None:
    try:
        dataset, request = body["dataset"], body.get("request")
        after = replay(states.get(dataset, State()), body)
    except (SfumatoError, KeyError, TypeError, ValueError) as error:
        raise corrupt("rules", f"entry {seq} should not have been admitted ({error})") from None
    if state_to_json(after) != body.get("after"):
        raise corrupt("sums", f"the state kept in entry {seq} does not follow from the one before")
    if request is not None:
        if (dataset, request) in requests:
            raise corrupt("request ids", f"entry {seq} repeats one")
        if body["event"] == "kept" and (dataset, paid_by(request)) not in requests:
            raise corrupt("request ids", f"entry {seq} keeps what nobody paid for")
        requests.add((dataset, request))
    states[dataset] = after


def _body(row: Row) -> Body:
    try:
        body = json.loads(row.body)
    except ValueError:
        raise corrupt("structure", f"entry {row.seq} is not JSON") from None
    if not isinstance(body, dict) or canonical(body) != row.body:
        raise corrupt("structure", f"entry {row.seq} is not in canonical form")
    return body
