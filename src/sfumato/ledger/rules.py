"""The rules of a dataset's budget: what entries say, what a spend counts as, what is admitted.

``replay`` is the only transition. The ledger calls it to write an entry and ``verify`` to check
one, so what is enforced and what is verified can't drift apart.
"""

import hashlib
import re
import shlex
import unicodedata
from dataclasses import replace
from datetime import UTC, datetime

from sfumato.errors import BudgetError, InputError
from sfumato.ledger.entries import Body, Event, State, cap_from_json
from sfumato.privacy import composition, guarantees, protection
from sfumato.privacy.composition import Cap, Price, Totals
from sfumato.privacy.conversions import zcdp_budget
from sfumato.privacy.guarantees import ZCDP, ApproxDP, Cost, PureDP
from sfumato.privacy.protection import OnePerson, Protection


def replay(before: State, body: Body) -> State:
    """The state after an event.

    Raises:
        BudgetError: If the event is a spend that the rules refuse.
    """
    match body["event"]:
        case "open":
            if before.protect:
                raise InputError("a dataset is opened once")
            return replace(before, protect=protection.from_json(body["protect"]))
        case "cap":
            return replace(before, cap=cap_from_json(body["cap"]))
        case "spend":
            return _after_spend(before, body)
        case "kept" | "look" | "simulation":
            return before
        case unknown:
            raise InputError(f"no such event: {unknown!r}")


def count_as(cost: Price, *, asked: Protection, kept: Protection) -> Price:
    """What a cost under one protection counts as in a ledger kept under another.

    Add-remove under replace counts twice (``composition.scaled``). Nothing follows the other way
    round: a replace guarantee says nothing about two tables of different size.

    Raises:
        BudgetError: If the units differ, or for replace in an add-remove ledger.
    """
    if same_unit(asked, kept) and asked.neighbors == kept.neighbors:
        return cost
    if same_unit(asked, kept) and kept.neighbors == "replace":
        return composition.scaled(cost, 2)
    raise BudgetError(
        f"the ledger protects {_named(kept)}, and a cost for {_named(asked)} can't be counted in "
        "it. Use the ledger's protection, or another dataset name for other data"
    )


def same_unit(one: Protection, other: Protection) -> bool:
    """Whether two protections differ at most in their relation."""
    return replace(one, neighbors=other.neighbors) == other


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


def _after_spend(before: State, body: Body) -> State:
    cost = guarantees.from_json(body["cost"])
    if not isinstance(cost, PureDP | ZCDP | ApproxDP) or before.protect is None:
        raise InputError("a spend needs a cost and an opened dataset")
    asked = protection.from_json(body["protect"])
    charged = count_as(cost, asked=asked, kept=before.protect)
    if guarantees.to_json(charged) != body["charged"]:
        raise InputError("the charge is not what the cost counts as")
    after = replace(before, spent=before.spent.plus(charged))
    if before.cap and not composition.within(after.spent, before.cap):
        raise BudgetError(_refusal(before, before.cap, cost, charged, body))
    return after


def _refusal(before: State, cap: Cap, cost: Price, charged: Price, body: Body) -> str:
    asks = f"{body['label']!r} asks for {cost}"
    if charged != cost:
        asks += f", which counts as {charged} where rows are replaced,"
    if isinstance(charged, ApproxDP):
        problem, advice = _too_large(cap)
    elif isinstance(cap, ApproxDP) and _other_kind(before.spent, charged):
        problem, advice = _mixed(before.spent, cap, charged, times=1 if charged == cost else 2)
    else:
        problem, advice = _not_left(before, cap, charged)
    return (
        f"{asks} {problem} cap {cap} of dataset {body['dataset']!r}. {advice}: "
        f"{how_to_cap(body['dataset'])}"
    )


def _too_large(cap: Cap) -> tuple[str, str]:
    if isinstance(cap, ApproxDP):
        return "but that is more than the", "Lower the request, or raise the cap"
    return "but a delta does not fit the", "Set a cap with one, like 2,1e-6"


def _not_left(before: State, cap: Cap, charged: Cost) -> tuple[str, str]:
    left = composition.left(before.spent, cap, type(charged))
    advice = "Lower the request, or raise the cap"
    if left is None and isinstance(cap, PureDP) and isinstance(charged, ZCDP):
        advice = (
            "This cap has no delta, which Gaussian noise needs: set one with a delta, like "
            f"{guarantees.short(cap.epsilon)},1e-6, or choose a method with a pure budget"
        )
        return "but only pure costs fit the", advice
    if left is None:
        return "but nothing is left of the", advice
    if str(left) == str(charged):
        return f"but only a little less, {exactly(left)}, is left of the", advice
    return f"but only {left} is left of the", advice


def _other_kind(spent: Totals, asked: Cost) -> bool:
    """Whether a cost is of another kind than all before it: then both count in rho."""
    return bool(spent.rho) and isinstance(asked, PureDP) == spent.has_zcdp


def _mixed(spent: Totals, cap: ApproxDP, asked: Cost, *, times: int) -> tuple[str, str]:
    """What is left in either kind, and a release that would fit, where a cost changes the kind.

    Args:
        spent: The charges so far.
        cap: What they may add up to.
        asked: What was refused.
        times: How many times the cost of a release counts: twice where rows are replaced.
    """
    pure = composition.left(spent, cap, PureDP)
    gaussian = composition.left(spent, cap, ZCDP)
    paid = "in rho, for Gaussian noise" if spent.has_zcdp else "in pure epsilon"
    for_pure, for_gaussian = _amount_left(pure, asked), _amount_left(gaussian, asked)
    problem = (
        f"but the charges so far were {paid} ({spent}): costs of both kinds add up in rho, where "
        f"pure epsilon counts as epsilon^2/2. So {for_pure} for pure costs, or {for_gaussian} for "
        "Gaussian noise, is left of the"
    )
    advice = "Lower the request, or raise the cap"
    if isinstance(asked, ZCDP) and pure is not None:
        advice = (
            "Choose a method with pure noise (histogram, independent or mwem, without --delta), "
            "or raise the cap"
        )
    elif isinstance(asked, PureDP) and isinstance(gaussian, ZCDP):
        same = zcdp_budget(ApproxDP(asked.epsilon / times, cap.delta))
        if same.rho * times**2 <= gaussian.rho:
            advice = (
                f"Give --delta {guarantees.short(cap.delta)}, for Gaussian noise too: the same "
                f"epsilon costs {same} then, which fits. Or lower the request, or raise the cap"
            )
    return problem, advice


def _amount_left(left: Cost | None, asked: Cost) -> str:
    if left is None:
        return "nothing"
    return exactly(left) if str(left) == str(asked) else str(left)


def _named(protect: Protection) -> str:
    column = protect.column if isinstance(protect, OnePerson) else None
    return str(protect) if column is None else f"{protect} (named by the column {column!r})"


def exactly(cost: Cost) -> str:
    """A cost with all its digits."""
    return f"epsilon={cost.epsilon}" if isinstance(cost, PureDP) else f"rho={cost.rho}"


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
