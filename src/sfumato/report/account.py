"""The part of a ledger that a release carries: what each step cost, what they cost together."""

from collections.abc import Mapping
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any, Final

from sfumato.errors import InputError, SfumatoError
from sfumato.privacy.composition import BEYOND, Price, Totals, composed
from sfumato.privacy.conversions import as_epsilon_delta, zcdp_budget
from sfumato.privacy.guarantees import ZCDP, ApproxDP, Guarantee, LocalDP, from_json
from sfumato.report.odds import Concentrated, Promise, Unit
from sfumato.report.view import Account, LedgerRow, SurveyAccount

_TOLD_DELTA: Final = Fraction(1, 10**9)


def account(ledger: Mapping[str, Any], guarantee: Guarantee) -> Account:
    """The account of a release, totals at the delta that it promises."""
    delta = guarantee.delta if isinstance(guarantee, ApproxDP) else None
    head = ledger["head"]
    return Account(
        rows=_rows(ledger["entries"], delta),
        head=f"{head['seq']}:{head['hash']}",
        spent=BEYOND if "spent_beyond" in ledger else _promise(ledger.get("spent")),
        cap=_promise(ledger.get("cap")),
    )


def made_on(ledger: Mapping[str, Any]) -> str:
    """The day of a release: that on which its ledger was opened, never one after a look.

    A release that names none, of an older version or of a survey, is of today.
    """
    return str(ledger.get("day") or datetime.now(UTC).date().isoformat())


def survey_account(
    method: Mapping[str, Any], ledger: Mapping[str, Any], guarantee: Guarantee
) -> SurveyAccount | None:
    """The account of a survey of devices, which keep their own; None for any other release."""
    if "survey" not in method or ledger["entries"] or not isinstance(guarantee, LocalDP):
        return None
    epsilon, answers = guarantee.epsilon, method.get("answers", ())
    variant = method.get("variant")
    own = epsilon / 2 if variant == "faithful" else epsilon
    up_to = "up to " if variant == "faithful" else ""
    words = {
        "faithful": f"Everybody answers in both rounds, with epsilon {epsilon} for both together.",
        "grouped": f"Everybody answers in one of the two rounds, with all of epsilon {epsilon}.",
    }.get(str(variant), f"Everybody answers once, with all of epsilon {epsilon}.")
    rows = enumerate(answers, start=1)
    rounds = tuple((str(number), f"{kept:,}", f"{up_to}{own}") for number, kept in rows)
    return SurveyAccount(rounds=rounds, words=words)


def epsilon_delta(guarantee: Guarantee) -> tuple[float, float | None]:
    """The numbers of a promise for sentences: its epsilon, and its delta if it has one.

    A promise in zCDP is told at a delta of 1e-9.
    """
    promise = as_epsilon_delta(guarantee, _TOLD_DELTA) if isinstance(guarantee, ZCDP) else guarantee
    delta = float(promise.delta) if isinstance(promise, ApproxDP) else None
    return float(promise.epsilon), delta


def told_promise(
    ledger: Mapping[str, Any], guarantee: Guarantee, *, unit: Unit, replaced: bool
) -> Promise:
    """What a page says of the promise of a release: the odds, their strength, the chances."""
    epsilon, delta = epsilon_delta(guarantee)
    known = concentrated(ledger, guarantee)
    return Promise(epsilon=epsilon, delta=delta, unit=unit, replaced=replaced, known=known)


def concentrated(ledger: Mapping[str, Any], guarantee: Guarantee) -> Concentrated | None:
    """What the noise of a release promises beyond its epsilon and delta, where that is known.

    A run with a delta that pays in rho is stopped at the rho of its budget (``zcdp_budget``), so
    it is zCDP with that rho, whatever its steps were and whenever they were chosen. Its entries
    tell whether it did; their sum counts if it is more. An approximate first cost, of finding
    a schema, stands apart. None where nothing was paid in rho, or an entry can't be read.
    """
    if isinstance(guarantee, ZCDP):
        return Concentrated(rho=float(guarantee.rho))
    if not isinstance(guarantee, ApproxDP):
        return None
    try:
        costs = [from_json(entry["cost"]) for entry in ledger["entries"]]
        first = costs.pop(0) if costs and isinstance(costs[0], ApproxDP) else None
        if not costs or not all(isinstance(cost, ZCDP) for cost in costs):
            return None
        spent = sum(cost.rho for cost in costs if isinstance(cost, ZCDP))
        rest = guarantee
        if isinstance(first, ApproxDP):
            rest = ApproxDP(guarantee.epsilon - first.epsilon, guarantee.delta - first.delta)
        rho = float(max(spent, zcdp_budget(rest).rho))
    except (SfumatoError, KeyError, TypeError, ValueError):
        return None
    before = (float(first.epsilon), float(first.delta)) if isinstance(first, ApproxDP) else None
    return Concentrated(rho=rho, first=before)


def _rows(entries: list[Mapping[str, Any]], delta: Fraction | None) -> tuple[LedgerRow, ...]:
    rows, totals = [], Totals()
    for entry in entries:
        try:
            totals = totals.plus(_charge(entry))
            together = str(composed(totals, delta) or "")
        except InputError:  # a file that was edited: what it says stands there, but adds up to none
            together = ""
        rows.append(
            LedgerRow(
                seq=entry["seq"],
                label=entry["label"],
                cost=str(from_json(entry["cost"])),
                hash=entry["hash"],
                total=together,
            )
        )
    return tuple(rows)


def _charge(entry: Mapping[str, Any]) -> Price:
    cost = from_json(entry["cost"])
    if isinstance(cost, LocalDP):
        raise InputError("a device keeps its own ledger: its cost is in no other")
    return cost


def _promise(value: object) -> str:
    return str(from_json(value)) if isinstance(value, Mapping) else ""
