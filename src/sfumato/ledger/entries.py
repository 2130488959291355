"""The values a ledger is made of, and the rules of a dataset's budget: what is admitted.

A row is what is stored: a canonical JSON body, the hash before it and ``sha256(previous + body)``.
An entry is the same for reading. Each body carries the state of its dataset after it, so a spend
reads one row, however long the ledger is.

``replay`` is the only transition. The ledger calls it to write an entry and ``verify`` to check
one, so what is enforced and what is verified can't drift apart.
"""

import hashlib
import json
import re
import shlex
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Final, Literal

from sfumato.errors import BudgetError, InputError, LedgerCorruptError
from sfumato.privacy import composition, guarantees
from sfumato.privacy.composition import PRICES, Cap, Totals
from sfumato.privacy.guarantees import (
    ZCDP,
    ApproxDP,
    ApproxZCDP,
    Cost,
    Price,
    PureDP,
    price_from_json,
    zcdp_budget,
)
from sfumato.privacy.sensitivity import (
    OnePerson,
    Protection,
    protection_from_json,
    protection_to_ledger,
)

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
        cap=_cap_from_json(value["cap"]) if value["cap"] else None,
        protect=protection_from_json(value["protect"]) if value["protect"] else None,
    )


def _cap_from_json(value: Mapping[str, Any]) -> Cap:
    cap = guarantees.from_json(value)
    if isinstance(cap, guarantees.LocalDP):
        raise ValueError(f"not a cap: {cap}")
    return cap


def corrupt(failed_check: str, detail: str) -> LedgerCorruptError:
    """The error of a ledger that can't be trusted, naming the check that failed."""
    return LedgerCorruptError(
        f"this ledger can't be trusted: the check of its {failed_check} failed: {detail}. Put the "
        "untouched file back, or find out who changed it; starting over means that all earlier "
        "releases stay uncounted"
    )


def replay(before: State, body: Body) -> State:
    """The state after an event.

    Raises:
        BudgetError: If the event is a spend that the rules refuse.
    """
    match body["event"]:
        case "open":
            if before.protect:
                raise InputError(
                    "the ledger's data set is opened already; it can be opened once only"
                )
            return replace(before, protect=protection_from_json(body["protect"]))
        case "cap":
            return replace(before, cap=_cap_from_json(body["cap"]))
        case "spend":
            return _after_spend(before, body)
        case "kept" | "look" | "simulation":
            return before
        case unknown:
            raise InputError(f"the ledger has no events of the kind {unknown!r}")


def _after_spend(before: State, body: Body) -> State:
    if before.protect is None:
        raise InputError("a spend needs an opened dataset")
    cost, protect = price_from_json(body["cost"]), protection_from_json(body["protect"])
    charged = count_as(cost, protect=protect, ledger_protects=before.protect)
    if guarantees.to_json(charged) != body["charged"]:
        raise InputError("the charge is not what the cost counts as")
    after = replace(before, spent=before.spent.plus(charged))
    if before.cap and not composition.within(after.spent, before.cap):
        raise BudgetError(_refusal(before, before.cap, cost, charged, body))
    return after


def count_as(cost: Price, *, protect: Protection, ledger_protects: Protection) -> Price:
    """What a cost under one protection counts as in a ledger with another.

    Add-remove under replace counts twice (``composition.scaled``). Nothing follows the other way
    round: a replace guarantee says nothing about two tables of different size.

    Raises:
        BudgetError: If the units differ, or for replace in an add-remove ledger.
    """
    if protect == ledger_protects:
        return cost
    if replace(protect, neighbors="replace") == ledger_protects:  # the same unit, added or removed
        return composition.scaled(cost, 2)
    raise BudgetError(
        f"the ledger protects {_named(ledger_protects)}, and a cost for {_named(protect)} can't be "
        "counted in it. Use the ledger's protection, or another dataset name for other data"
    )


def _named(protect: Protection) -> str:
    column = protect.column if isinstance(protect, OnePerson) else None
    return str(protect) if column is None else f"{protect} (named by the column {column!r})"


def check_first_cap(state: State, cap: Cap, dataset: str) -> None:
    """Refuse a first cap that is already passed: it would only refuse all that follows."""
    if not composition.within(state.spent, cap):
        raise BudgetError(
            f"dataset {dataset!r} has already spent {state.spent}, more than the cap {cap} "
            f"admits. No cap was set. Give a higher one, or set this one to "
            f"refuse everything: {how_to_cap(dataset)}"
        )


def how_to_cap(dataset: str) -> str:
    """The command, and the method, that change a cap."""
    return f"`sfumato ledger cap {shlex.quote(dataset)} EPSILON[,DELTA]` or Ledger.set_cap"


def _refusal(before: State, cap: Cap, cost: Price, charged: Price, body: Body) -> str:
    """What was requested, what is left of the cap, and what can be done."""
    request = f"{body['label']!r} asks for {cost}"
    if charged != cost:
        request += f", which counts as {charged} where rows are replaced,"
    advice = "Lower the request, or raise the cap"
    if not isinstance(charged, ApproxDP | ApproxZCDP):
        left, advice = _left(before, cap, charged, doubled=charged != cost)
    elif not isinstance(cap, ApproxDP):
        left, advice = "a delta does not fit", "Set a cap with one, like 2,1e-6"
    elif before.spent.nothing or before.spent.first_delta:
        left = "that is more than"
    else:
        left = (
            f"{before.spent} was spent before: approximate costs are admitted only where the very "
            "first of a data set is one, and so do not fit"
        )
        advice = "Use a schema (`sfumato schema draft`), another dataset name for other data"
    dataset = body["dataset"]
    return f"{request} but {left} the cap {cap} of dataset {dataset!r}. {advice}: " + how_to_cap(
        dataset
    )


def _left(before: State, cap: Cap, charged: Cost, *, doubled: bool) -> tuple[str, str]:
    """What is left of a cap, and what can be done, where a charge does not fit."""
    advice = "Lower the request, or raise the cap"
    left, pure = composition.left(before.spent, cap, type(charged)), isinstance(charged, PureDP)
    if isinstance(cap, ApproxDP) and before.spent.rho and pure == before.spent.has_zcdp:
        return _left_in_both_kinds(before, cap, charged, times=2 if doubled else 1)
    if left is not None:
        shown = _shown(left, charged)
        return (
            f"only {shown if shown == str(left) else f'a little less, {shown},'} is left of",
            advice,
        )
    if isinstance(cap, PureDP) and not pure:
        advice = (
            "This cap has no delta, which Gaussian noise needs: set one with a delta, like "
            f"{guarantees.short(cap.epsilon)},1e-6, or choose a method with a pure budget"
        )
        return "only pure costs fit", advice
    return "nothing is left of", advice


def _left_in_both_kinds(
    before: State, cap: ApproxDP, charged: Cost, *, times: int
) -> tuple[str, str]:
    """As ``_left``, where a cost is of another kind than all before it: then all count in rho.

    Args:
        before: With the charges so far.
        cap: What they may add up to.
        charged: What was refused.
        times: How many times the cost of a release counts: twice where rows are replaced.
    """
    pure = composition.left(before.spent, cap, PureDP)
    gaussian = composition.left(before.spent, cap, ZCDP)
    kind = "in rho, for Gaussian noise" if before.spent.has_zcdp else "in pure epsilon"
    left = (
        f"the charges so far were {kind} ({before.spent}): costs of both kinds add up in rho, "
        f"where pure epsilon counts as epsilon^2/2. So {_shown(pure, charged)} for pure costs, or "
        f"{_shown(gaussian, charged)} for Gaussian noise, is left of"
    )
    if isinstance(charged, ZCDP) and pure is not None:
        return left, (
            "Choose a method with pure noise (histogram, independent or mwem, without --delta), "
            "or raise the cap"
        )
    if isinstance(charged, PureDP) and isinstance(gaussian, ZCDP):
        same = zcdp_budget(ApproxDP(charged.epsilon / times, cap.delta))
        if same.rho * times**2 <= gaussian.rho:
            return left, (
                f"Give --delta {guarantees.short(cap.delta)}, for Gaussian noise too: the same "
                f"epsilon costs {same} then, which fits. Or lower the request, or raise the cap"
            )
    return left, "Lower the request, or raise the cap"


def _shown(left: Cost | None, charged: Cost) -> str:
    """What is left; with all digits where it would look like what was requested."""
    if left is None or str(left) != str(charged):
        return "nothing" if left is None else str(left)
    return f"epsilon={left.epsilon}" if isinstance(left, PureDP) else f"rho={left.rho}"


_LONGEST_NAME: Final = 200
"""Characters of a dataset or a request: a limit against abuse."""
_LONGEST_LABEL: Final = 2_000
"""Characters of a label: a limit against abuse."""
_INVISIBLE: Final = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
"""Printable by their category, and yet nobody sees them."""


def note(event: Event, dataset: str, text: str) -> Body:
    """What every entry has, but for the day: the ledger adds that of its opening."""
    return {"event": event, "dataset": dataset, "label": label(text)}


def open_body(dataset: str, protect: Protection) -> Body:
    """The entry that fixes whom a dataset protects."""
    return {**note("open", dataset, "first spend"), "protect": protection_to_ledger(protect)}


def cap_body(dataset: str, cap: Cap, text: str) -> Body:
    """The entry that sets a cap."""
    if not isinstance(cap, PureDP | ZCDP | ApproxDP):
        raise InputError(
            f"a cap must be PureDP, ZCDP or ApproxDP, like ApproxDP(3, 1e-6), got {cap!r}"
        )
    return {**note("cap", dataset, text), "cap": guarantees.to_json(cap)}


def spend_body(
    state: State,
    dataset: str,
    cost: Price,
    *,
    text: str,
    protect: Protection,
    request: str | None,
) -> Body:
    """The entry of a cost, with what it counts as where the ledger protects somebody else."""
    if not isinstance(cost, PureDP | ZCDP | ApproxDP | ApproxZCDP):
        raise InputError(f"a cost must be {PRICES}, got {cost!r}")
    charged = count_as(cost, protect=protect, ledger_protects=state.protect or protect)
    body: Body = {
        **note("spend", dataset, text),
        "cost": guarantees.to_json(cost),
        "protect": protection_to_ledger(protect),
        "charged": guarantees.to_json(charged),
    }
    return body if request is None else {**body, "request": request}


def outcome_body(dataset: str, key: str, payload: bytes) -> Body:
    """The entry that fixes an outcome by its hash, so that the head moves when one is stored."""
    return {
        **note("kept", dataset, "outcome stored before it is returned"),
        "request": key,
        "sha256": fingerprint(payload),
    }


def outcome_key(request: str, step: int) -> str:
    """The name of an outcome; no request has a line break in it, so no two are alike."""
    return f"{name(request=request)}\n{step}"


def paid_by(key: str) -> str:
    """The request of an outcome."""
    return key.rpartition("\n")[0]


def fingerprint(payload: bytes) -> str:
    """``sha256`` in hexadecimal."""
    return hashlib.sha256(payload).hexdigest()


def name(**named: str) -> str:
    """A dataset or request name in one spelling: two that look alike are the same."""
    ((field, value),) = named.items()
    visible = isinstance(value, str) and value.isprintable() and not _INVISIBLE.search(value)
    if not visible or value != value.strip():
        raise InputError(f"{field} must be printable text without spaces around it, got {value!r}")
    if not 0 < len(value) <= _LONGEST_NAME:
        raise InputError(f"{field} must have 1 to {_LONGEST_NAME} characters, got {len(value)}")
    return unicodedata.normalize("NFC", value)


def label(value: str) -> str:
    """What an entry is for, in words."""
    if not isinstance(value, str) or not 0 < len(value) <= _LONGEST_LABEL:
        raise InputError(f"label must be text of 1 to {_LONGEST_LABEL} characters, got {value!r}")
    return value


def today() -> str:
    """The day in UTC, for people; nothing is decided by it.

    Never finer: entries are public, and how long a look takes depends on the data.
    """
    return datetime.now(UTC).date().isoformat()
