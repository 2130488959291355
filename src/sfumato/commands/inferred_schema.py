"""A schema for a table that has none, inferred privately for a stated share of the budget.

The columns are inferred by ``publishing.inference``. The ledger records the result, so that it
is paid for and drawn once: later releases use the same schema.
"""

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any, Final

from sfumato import check
from sfumato.commands.request import WORKLOADS
from sfumato.errors import BudgetError, InputError, StorageError, TableError
from sfumato.gate import Curator, Scout
from sfumato.ledger.ledger import Ledger, after_earlier_charge
from sfumato.privacy import composition, guarantees
from sfumato.privacy.composition import Cap
from sfumato.privacy.guarantees import ApproxDP, PureDP, zcdp_budget
from sfumato.privacy.sensitivity import Protection, protection_from_json, protection_to_ledger
from sfumato.publishing.algorithm_release import released
from sfumato.publishing.auto import Auto
from sfumato.publishing.column_rules import LeftOut
from sfumato.publishing.inference import FORM, InferredColumns, infer
from sfumato.publishing.methods import DELTA
from sfumato.randomness import Rng
from sfumato.readers.csv import CsvFile
from sfumato.readers.open_table import source_of
from sfumato.readers.profile import first_row_is_data
from sfumato.readers.source import Source
from sfumato.readers.undeclared_table import UndeclaredTable
from sfumato.release import TableRelease
from sfumato.schema import Schema
from sfumato.schema.columns import Boolean, Column
from sfumato.synthesis.algorithm import Algorithm

SHARE: Final = Fraction(1, 5)
"""Of epsilon, for the schema, by default; docs/inference.md says why."""
DELTA_SHARE: Final = Fraction(1, 2)
"""Of delta, for the schema: the rest is for Gaussian noise."""
REQUEST: Final = "inferred schema"
"""The ledger's name for an inferred schema: one for each data set."""
SIMULATED: Final = "infer a schema: seeded noise, protects nobody"

STAND_IN: Final = Schema(columns=tuple(Boolean(name=name) for name in "abc"))
"""Stands in for a schema that is not known yet, while all else is checked."""

SEED_OFFSET: Final = 2**32
"""Between the seeds of a schema and of its release: beyond any seed that people choose."""


@dataclass(frozen=True, kw_only=True)
class Inferred:
    """An inferred schema, and what it cost."""

    schema: Schema
    cost: ApproxDP
    about: Mapping[str, Any]
    """For people: the columns, what was left out and why, how much noise there was."""
    private: bool = True
    """False if the noise was seeded: it cost nothing and may not be published."""

    def total(self, budget: Cap) -> ApproxDP:
        """What a run with ``budget`` promises together with this: the sums."""
        if not isinstance(budget, PureDP | ApproxDP):
            raise InputError(f"a release has a budget in epsilon, got {budget!r}")
        more = budget.delta if isinstance(budget, ApproxDP) else Fraction(0)
        return ApproxDP(self.cost.epsilon + budget.epsilon, self.cost.delta + more)

    def rest(self, whole: ApproxDP) -> ApproxDP:
        """What is left of a budget for the release."""
        if whole.epsilon <= self.cost.epsilon or whole.delta <= self.cost.delta:
            raise BudgetError(
                f"inferring the schema cost {self.cost}, which leaves nothing of {whole} for a "
                "release. Give more epsilon, and delta where that is less."
            )
        return ApproxDP(whole.epsilon - self.cost.epsilon, whole.delta - self.cost.delta)


def inferred_schema(
    table: Any,
    *,
    budget: ApproxDP,
    share: Fraction,
    protect: Protection,
    ledger: Ledger,
    rng: Rng,
    encoding: str = "utf-8",
    delimiter: str | None = None,
) -> Inferred:
    """The schema inferred for a data set before, or one inferred now for a share of a budget.

    Args:
        table: A path or a data frame.
        budget: Of schema and release together.
        share: Of its epsilon; half of delta goes with it.
        protect: Whom to protect.
        ledger: Of the data set; charged before the first look.
        rng: Where the noise comes from; with a simulation generator nothing is charged, and that
            is noted.
        encoding: Of a CSV file.
        delimiter: Of a CSV file.
    """
    source = source_of(table, (), encoding, delimiter)
    _check_header(source)
    if rng.secure and (stored := ledger.outcome(REQUEST)) is not None:
        return _from_json(stored, protect, ledger)
    cost = _paid(ledger) if rng.secure else None
    if cost is None:
        cost = ApproxDP(budget.epsilon * share, budget.delta * DELTA_SHARE)
        _check_fits(ledger, cost, budget)
    scout = Scout(
        UndeclaredTable(source),
        protect=protect,
        budget=cost,
        ledger=ledger,
        rng=rng,
        request=REQUEST,
    )
    if not rng.secure:
        ledger.simulation(SIMULATED)
    outcome = _to_json(infer(scout), cost, protect, ledger.dataset)
    if rng.secure:  # the result is what the ledger has stored, also if that is no schema
        outcome = ledger.journal(REQUEST, outcome)
    return _from_json(outcome, protect, ledger, private=rng.secure)


@contextmanager
def note_schema_charge(ledger: Ledger) -> Iterator[None]:
    """Give whatever stops the search a note, if its charge is in the ledger."""
    before = ledger.head
    try:
        yield
    except BaseException as error:
        if ledger.head != before and (paid := _paid(ledger)) is not None:
            error.add_note(
                f"Charged, and recorded in the ledger of {ledger.dataset!r}: {paid} for inferring "
                "a schema. The same command again does not pay for that again."
            )
        raise


def inferred_earlier(ledger: Ledger, schema: Schema, protect: Protection) -> Inferred | None:
    """What a data set paid for the columns of a schema, if they were inferred from its table.

    All columns must be as they were inferred: a column that somebody changed counts as
    one that a person wrote.

    Raises:
        BudgetError: If they were inferred for another protection; the two guarantees do not add up.
    """
    stored = ledger.outcome(REQUEST)
    if stored is None or not set(schema.columns) <= _columns_of(stored):
        return None
    return _from_json(stored, protect, ledger)


def published(
    algorithm: Algorithm | Auto, inferred: Inferred | None, curator: Curator
) -> TableRelease:
    """A release, with the cost of its schema if that was inferred."""
    return counted(partial(released, algorithm), inferred, curator)


def counted(
    make: Callable[[Curator], TableRelease], inferred: Inferred | None, curator: Curator
) -> TableRelease:
    """What ``make`` releases, with the cost of its schema if that was inferred."""
    release = make(curator)
    return release if inferred is None else with_inference(release, inferred, curator.ledger)


def check_inferable(workload: object, totals: object, *, strict: bool) -> None:
    """Refuse what speaks of columns that are not known yet."""
    if strict:
        raise InputError(
            "--strict is for a schema that is given: without one there is nothing to fit. Give "
            "--schema, or leave --strict out."
        )
    if totals or not (workload is None or workload in WORKLOADS):
        raise InputError(
            "a workload or public totals speak of columns and values, which are not known without "
            "a schema. Give --schema, or leave them out."
        )


def check_share_unused(given: check.Number | None) -> None:
    """Refuse a share for inferring a schema where one is given."""
    if given is not None:
        raise InputError("infer_share is for a table without a schema: give one of both")


def share_of(given: check.Number | None) -> Fraction:
    """The share of epsilon for a schema, as it is given."""
    share = SHARE if given is None else check.exact(infer_share=given)
    if not 0 < share < 1:
        raise InputError(f"infer_share must be above 0 and below 1, got {given!r}")
    return share


def whole_budget(epsilon: check.Number, delta: check.Number | None) -> ApproxDP:
    """The budget of schema and release together; without a delta no text could be published."""
    return ApproxDP(epsilon, DELTA if delta is None else delta)


def with_inference(release: TableRelease, inferred: Inferred, ledger: Ledger) -> TableRelease:
    """The release with the cost of its schema in its guarantee and among its entries."""
    entries = [
        {
            "seq": entry.seq,
            "label": entry.label,
            "cost": guarantees.to_json(inferred.cost),
            "hash": entry.hash,
        }
        for entry in ledger.entries()
        if entry.request == REQUEST
    ]
    account = {**release.ledger, "entries": [*entries, *release.ledger["entries"]]}
    method = {**release.method, "inferred": dict(inferred.about)}
    if not isinstance(release.guarantee, PureDP | ApproxDP):
        raise InputError(f"a schema can't be inferred for a release with {release.guarantee}")
    total = inferred.total(release.guarantee)
    return replace(release, guarantee=total, method=method, ledger=account)


def _check_header(source: Source) -> None:
    if isinstance(source, CsvFile) and first_row_is_data(source.first_row()):
        raise TableError(
            f"{source.describe()}, line 1: this looks like a row of values, not like names of "
            "columns, which are taken as public. Write names into the first line, or use a "
            "schema: `sfumato schema draft --names age,town,...`"
        )


def _paid(ledger: Ledger) -> ApproxDP | None:
    """What a stopped run paid for a schema that it never got."""
    costs = (entry.cost for entry in ledger.entries() if entry.request == REQUEST)
    return next((cost for cost in costs if isinstance(cost, ApproxDP)), None)


def _check_fits(ledger: Ledger, cost: ApproxDP, whole: ApproxDP) -> None:
    """Refuse, before anything is paid, a schema whose release the cap would not admit."""
    cap = ledger.cap
    if cap is None or not ledger.spent.nothing:
        return  # the charge itself is refused if it is not the first
    after = ledger.spent.plus(cost)
    rest = ApproxDP(whole.epsilon - cost.epsilon, whole.delta - cost.delta)
    ways = (PureDP(rest.epsilon), zcdp_budget(rest))
    if not any(composition.within(after.plus(way), cap) for way in ways):
        raise BudgetError(
            f"a schema for {cost} and a release for {rest} are more than the cap {cap} of dataset "
            f"{ledger.dataset!r} admits. Lower epsilon or delta, or raise the cap."
        )


def _to_json(result: InferredColumns, cost: ApproxDP, protect: Protection, dataset: str) -> bytes:
    declared = tuple(each for each in result.columns.values() if not isinstance(each, LeftOut))
    left_out = {n: each.why for n, each in result.columns.items() if isinstance(each, LeftOut)}
    schema = None
    if declared:
        schema = Schema(columns=declared, dataset=dataset, file=FORM, exclude=tuple(left_out))
    value = {
        "schema": None if schema is None else schema.to_dict(),
        "cost": guarantees.to_json(cost),
        "protect": protection_to_ledger(protect),
        "found": {**result.about, "left_out": left_out},
    }
    return json.dumps(value, ensure_ascii=False).encode()


def _columns_of(outcome: bytes) -> set[Column]:
    schema = json.loads(outcome)["schema"]
    return set() if schema is None else set(Schema.from_dict(schema).columns)


def _from_json(
    outcome: bytes, protect: Protection, ledger: Ledger, *, private: bool = True
) -> Inferred:
    """An inferred schema, as the ledger has stored it."""
    value = json.loads(outcome)
    cost, left_out = guarantees.from_json(value["cost"]), value["found"]["left_out"]
    if not isinstance(cost, ApproxDP) or value["protect"] != protection_to_ledger(protect):
        raise BudgetError(
            f"the schema of dataset {ledger.dataset!r} was inferred for "
            f"{protection_from_json(value['protect'])}, not for {protect}. Protect the same, or "
            "write a schema."
        )
    if value["schema"] is None:
        spent = "which stays charged" if private else "which was simulated"
        raise after_earlier_charge(
            TableError(
                f"no column of dataset {ledger.dataset!r} could be described for {cost}, {spent}: "
                f"{'; '.join(f'{name!r} ({why})' for name, why in left_out.items())}. "
                "Write a schema: `sfumato schema draft` helps."
            )
        )
    about = {"epsilon": float(cost.epsilon), "delta": float(cost.delta), **value["found"]}
    schema = Schema.from_dict(value["schema"])
    return Inferred(schema=schema, cost=cost, about=about, private=private)


@contextmanager
def leave_schema_on_failure(inferred: Inferred, out: Path | None) -> Iterator[None]:
    """If the release fails, leave the schema that was paid for beside its folder and say so."""
    try:
        yield
    except BaseException as error:
        error.add_note(_what_is_left(inferred, out))
        raise


def _what_is_left(inferred: Inferred, out: Path | None) -> str:
    """What a run leaves that failed after inferring a schema: nothing, if it was a simulation."""
    if not inferred.private:
        return (
            "Before that, a schema was inferred with seeded noise. This was a simulation: nothing "
            "was charged, and nothing was stored."
        )
    paid = f"Before that, a schema was inferred for {inferred.cost}, which is spent."
    again = "give this command again: it does not pay for the schema again."
    beside = None if out is None else out.with_name(f"{out.name}.schema.json")
    if beside is None or not _written(inferred.schema, beside):
        return f"{paid} The ledger keeps it: {again}"
    return (
        f"{paid} It is in {beside} and may be published. To go on, give it with --schema, where "
        f"the guarantee includes that cost too, or {again}"
    )


def _written(schema: Schema, path: Path) -> bool:
    """Whether a schema could be written into a new file: why not matters less than what failed."""
    if os.path.lexists(path):
        return False
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        schema.save(path)
    except (OSError, StorageError):
        with suppress(OSError):
            path.unlink(missing_ok=True)
        return False
    return True
