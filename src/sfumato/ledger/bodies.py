"""What is written into an entry, checked: names, labels, costs, caps, and the day for people."""

import hashlib
import re
import unicodedata
from datetime import UTC, datetime

from sfumato.errors import InputError
from sfumato.ledger.entries import Body, Event
from sfumato.ledger.rules import count_as
from sfumato.privacy import guarantees, protection
from sfumato.privacy.composition import Cap, Price
from sfumato.privacy.guarantees import ZCDP, ApproxDP, PureDP
from sfumato.privacy.protection import Protection

_LONGEST_NAME = 200
_LONGEST_LABEL = 2_000
_INVISIBLE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
"""Printable by their category, and yet nobody sees them."""


def note(event: Event, dataset: str, text: str) -> Body:
    """What every entry has, but for the day: the ledger adds that of its opening."""
    return {"event": event, "dataset": dataset, "label": label(text)}


def opening(dataset: str, protect: Protection) -> Body:
    """The entry that fixes whom a dataset protects."""
    return {**note("open", dataset, "first spend"), "protect": protection.to_ledger(protect)}


def capping(dataset: str, cap: Cap, text: str) -> Body:
    """The entry that sets a cap."""
    if not isinstance(cap, PureDP | ZCDP | ApproxDP):
        raise InputError(
            f"a cap must be PureDP, ZCDP or ApproxDP, like ApproxDP(3, 1e-6), got {cap!r}"
        )
    return {**note("cap", dataset, text), "cap": guarantees.to_json(cap)}


def spending(
    dataset: str,
    cost: Price,
    *,
    text: str,
    asked: Protection,
    kept: Protection,
    request: str | None,
) -> Body:
    """The entry of a cost, with what it counts as in a ledger that keeps ``kept``."""
    if not isinstance(cost, PureDP | ZCDP | ApproxDP):
        raise InputError(
            f"a cost must be PureDP or ZCDP, or ApproxDP if it is the first, got {cost!r}"
        )
    body: Body = {
        **note("spend", dataset, text),
        "cost": guarantees.to_json(cost),
        "protect": protection.to_ledger(asked),
        "charged": guarantees.to_json(count_as(cost, asked=asked, kept=kept)),
    }
    return body if request is None else {**body, "request": request}


def keeping(dataset: str, key: str, payload: bytes) -> Body:
    """The entry that fixes an outcome by its hash, so that the head moves when one is kept."""
    return {
        **note("kept", dataset, "outcome kept before it is told"),
        "request": key,
        "sha256": fingerprint(payload),
    }


def outcome_key(request: str, step: int) -> str:
    """What an outcome goes by; no request has a line break in it, so no two are alike."""
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
    seen = isinstance(value, str) and value.isprintable() and not _INVISIBLE.search(value)
    if not seen or value != value.strip():
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
