"""The rules of a dataset's budget: what a spend counts as, and whether it is admitted.

``replay`` is the only transition. The ledger calls it to write an entry and ``verify`` to check
one, so what is enforced and what is verified can't drift apart.
"""

from dataclasses import replace

from sfumato.errors import BudgetError, InputError
from sfumato.privacy import composition, guarantees, protection
from sfumato.privacy._entries import Body, State, cap_from_json
from sfumato.privacy.composition import Cap
from sfumato.privacy.guarantees import ZCDP, Cost, PureDP
from sfumato.privacy.protection import Protection


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
        case "look" | "simulation":
            return before
        case unknown:
            raise InputError(f"no such event: {unknown!r}")


def count_as(cost: Cost, *, asked: Protection, kept: Protection) -> Cost:
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
        f"the ledger protects {kept}, and a cost for {asked} can't be counted in it. Nothing was "
        "looked at. Use the ledger's protection, or another dataset name for other data"
    )


def same_unit(one: Protection, other: Protection) -> bool:
    """Whether two protections differ at most in their relation."""
    return type(one) is type(other) and one.rows == other.rows


def _after_spend(before: State, body: Body) -> State:
    cost = guarantees.from_json(body["cost"])
    if not isinstance(cost, PureDP | ZCDP) or before.protect is None:
        raise InputError("a spend needs a cost and an opened dataset")
    asked = protection.from_json(body["protect"])
    charged = count_as(cost, asked=asked, kept=before.protect)
    if guarantees.to_json(charged) != body["charged"]:
        raise InputError("the charge is not what the cost counts as")
    after = replace(before, spent=before.spent.plus(charged))
    if before.cap and not composition.within(after.spent, before.cap):
        raise BudgetError(_refusal(before, before.cap, cost, charged, body))
    return after


def _refusal(before: State, cap: Cap, cost: Cost, charged: Cost, body: Body) -> str:
    asks = f"{body['label']!r} asks for {cost}"
    if charged != cost:
        asks += f", which counts as {charged} where rows are replaced,"
    left = composition.left(before.spent, cap, type(charged))
    if left is None and isinstance(cap, PureDP) and isinstance(charged, ZCDP):
        problem = "but only pure costs fit the"
    elif left is None:
        problem = "but nothing is left of the"
    elif str(left) == str(charged):
        problem = f"but only a little less, {exactly(left)}, is left of the"
    else:
        problem = f"but only {left} is left of the"
    return (
        f"{asks} {problem} cap {cap} of dataset {body['dataset']!r}. Nothing was looked at. "
        "Lower the request or raise the cap with Ledger.set_cap"
    )


def exactly(cost: Cost) -> str:
    """A cost with all its digits."""
    return f"epsilon={cost.epsilon}" if isinstance(cost, PureDP) else f"rho={cost.rho}"
