"""A schema for a table that has none, inferred privately for a stated share of the budget.

The columns are inferred by ``publishing.inference``. The ledger keeps what each look showed, and
the schema, so that all is paid for and drawn once: later releases use the same schema.
"""

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
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
from sfumato.ledger.entries import Entry
from sfumato.ledger.ledger import Ledger, after_earlier_charge
from sfumato.privacy import composition, guarantees
from sfumato.privacy.composition import Cap, Totals, unstated
from sfumato.privacy.guarantees import ZCDP, ApproxDP, LocalDP, Price, PureDP, zcdp_budget
from sfumato.privacy.sensitivity import Protection, protection_from_json, protection_to_ledger
from sfumato.publishing.algorithm_release import released
from sfumato.publishing.auto import Auto
from sfumato.publishing.column_rules import LeftOut
from sfumato.publishing.inference import FORM, TEXTS_DELTA, Costs, InferredColumns, infer
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

SHARE: Final = Fraction(3, 20)
"""Of the budget in rho, for the schema, by default; docs/inference.md says why."""
RUN: Final = "inferred schema"
"""The ledger's name for the looks at a table without a schema: one run for each data set."""
SCHEMA: Final = f"{RUN}/kinds"
"""The charge with which the ledger keeps the schema, as its second outcome."""
SIMULATED: Final = "infer a schema: seeded noise, protects nobody"

STAND_IN: Final = Schema(columns=tuple(Boolean(name=name) for name in "abc"))
"""Stands in for a schema that is not known yet, while all else is checked."""

SEED_OFFSET: Final = 2**32
"""Between the seeds of a schema and of its release: beyond any seed that people choose."""


@dataclass(frozen=True, kw_only=True)
class Inferred:
    """An inferred schema, and what it cost."""

    schema: Schema
    costs: tuple[Price, ...]
    """What each look cost; charged, unless it was a simulation."""
    about: Mapping[str, Any]
    """For people: the columns, what was left out and why, how much noise there was."""
    private: bool = True
    """False if the noise was seeded: it cost nothing and may not be published."""
    aside: Fraction = Fraction(0)
    """Of the delta of the run that found it, the part for texts, whether there were any or not."""

    @property
    def spent(self) -> Totals:
        """What the looks cost together."""
        return _sum(self.costs)

    def total(self, budget: Cap) -> ApproxDP:
        """What a release with ``budget`` promises together with this.

        The deltas add up. A release without a delta is given one as large as the schema's, to
        convert rho with.
        """
        spent = self.spent
        if isinstance(budget, ApproxDP):
            return _stated(spent.plus(zcdp_budget(budget)), spent.delta + budget.delta)
        delta = 2 * spent.delta or DELTA
        before = composition.composed(spent, delta)
        if isinstance(budget, PureDP) and isinstance(before, ApproxDP):
            return ApproxDP(before.epsilon + budget.epsilon, delta)  # Dwork, Roth 2014, thm. 3.16
        return _stated(spent.plus(budget), delta)

    def rest(self, whole: ApproxDP) -> ZCDP:
        """What is left of a budget for the release, all of it in rho.

        The delta of texts is set aside even if there were none: whether it was used is a matter
        of the data (``privacy.composition.within``).
        """
        delta = max(self.spent.delta, self.aside, whole.delta * TEXTS_DELTA)
        rho = Fraction(0)
        if delta < whole.delta:
            rho = zcdp_budget(ApproxDP(whole.epsilon, whole.delta - delta)).rho - self.spent.rho
        if rho <= 0:
            raise BudgetError(
                f"inferring the schema cost {self.spent}, which leaves nothing of {whole} for a "
                "release. Give more epsilon, and delta where that is less."
            )
        return ZCDP(rho)


def _sum(costs: Iterable[Price]) -> Totals:
    totals = Totals()
    for cost in costs:
        totals = totals.plus(cost)
    return totals


def _stated(totals: Totals, delta: Fraction) -> ApproxDP:
    promise = composition.composed(totals, delta)
    if not isinstance(promise, ApproxDP):
        raise InputError(f"schema and release together promise {unstated(totals)}")
    return promise


def inferred_schema(
    table: Any,
    *,
    whole: ApproxDP,
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
        whole: The budget of schema and release together.
        share: Of its rho, for the schema.
        protect: Whom to protect.
        ledger: Of the data set; charged before each look.
        rng: Where the noise comes from; with a simulation generator nothing is charged, and that
            is noted.
        encoding: Of a CSV file.
        delimiter: Of a CSV file.
    """
    source = source_of(table, (), encoding, delimiter)
    _check_header(source)
    if rng.secure and (stored := ledger.outcome(SCHEMA, step=1)) is not None:
        return _from_json(stored, protect, ledger)
    costs = Costs.of(whole, share, protect)
    still = _still(costs, whole, ledger if rng.secure else None)
    scout = Scout(
        UndeclaredTable(source), protect=protect, costs=still, ledger=ledger, rng=rng, run=RUN
    )
    if not rng.secure:
        ledger.simulation(SIMULATED)
    outcome = _to_json(infer(scout, costs), scout, ledger.dataset, aside=whole.delta * TEXTS_DELTA)
    if rng.secure:  # the result is what the ledger has stored, also if that is no schema
        outcome = ledger.journal(SCHEMA, outcome, step=1)
    return _from_json(outcome, protect, ledger, private=rng.secure)


def _still(costs: Costs, whole: ApproxDP, ledger: Ledger | None) -> list[Price]:
    """What is to be paid for schema and release, beside what a refused or stopped run has paid.

    A cap that would admit the looks and refuse the release then refuses before the looks.
    """
    paid = () if ledger is None else _charged(ledger)
    asked = set() if ledger is None else {e.request for e in ledger.entries() if _of_schema(e)}
    own = {"kinds": costs.kinds, "texts": costs.texts}
    looks = ({} if costs.free_rows else {"rows": costs.rows}) | own
    unpaid = [cost for step, cost in looks.items() if f"{RUN}/{step}" not in asked]
    together = Inferred(schema=STAND_IN, costs=(*paid, *unpaid), about={})
    return [*unpaid, together.rest(whole)]


def least_rest(whole: ApproxDP, share: Fraction, protect: Protection) -> ZCDP:
    """What a release has at least, before anything was looked at."""
    return _release_part(Costs.of(whole, share, protect), whole)


def _release_part(costs: Costs, whole: ApproxDP) -> ZCDP:
    return Inferred(schema=STAND_IN, costs=costs.all, about={}).rest(whole)


@contextmanager
def note_schema_charge(ledger: Ledger) -> Iterator[None]:
    """Give whatever stops the search a note, if its charge is in the ledger."""
    before = ledger.head
    try:
        yield
    except BaseException as error:
        if ledger.head != before and (paid := _charged(ledger)):
            error.add_note(
                f"Charged, and recorded in the ledger of {ledger.dataset!r}: {_sum(paid)} for "
                "inferring a schema. The same command again does not pay for that again."
            )
        raise


def inferred_earlier(ledger: Ledger, schema: Schema, protect: Protection) -> Inferred | None:
    """What a data set paid for the columns of a schema, if they were inferred from its table.

    All columns must be as they were inferred: a column that somebody changed counts as
    one that a person wrote.

    Raises:
        BudgetError: If they were inferred for another protection; the two guarantees do not add up.
    """
    stored = ledger.outcome(SCHEMA, step=1)
    if stored is None or not set(schema.without_bins().columns) <= _columns_of(stored):
        return None
    return _from_json(stored, protect, ledger)


def published(
    algorithm: Algorithm | Auto,
    inferred: Inferred | None,
    curator: Curator,
    *,
    whole: ApproxDP | None = None,
) -> TableRelease:
    """A release, with the cost of its schema if that was inferred."""
    return counted(partial(released, algorithm), inferred, curator, whole=whole)


def counted(
    make: Callable[[Curator], TableRelease],
    inferred: Inferred | None,
    curator: Curator,
    *,
    whole: ApproxDP | None = None,
) -> TableRelease:
    """What ``make`` releases, with the cost of its schema if that was inferred.

    Args:
        make: Spends the curator's budget.
        inferred: The schema, if it was inferred.
        curator: Of the release.
        whole: The budget of schema and release together, if it was one.
    """
    release = make(curator)
    if inferred is None:
        return release
    return with_inference(release, inferred, curator.ledger, whole)


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
    """The share of the budget for a schema, as it is given."""
    share = SHARE if given is None else check.exact(infer_share=given)
    if not 0 < share < 1:
        raise InputError(f"infer_share must be above 0 and below 1, got {given!r}")
    return share


def whole_budget(epsilon: check.Number, delta: check.Number | None) -> ApproxDP:
    """The budget of schema and release together; without a delta no text could be published."""
    return ApproxDP(epsilon, DELTA if delta is None else delta)


def with_inference(
    release: TableRelease, inferred: Inferred, ledger: Ledger, whole: ApproxDP | None = None
) -> TableRelease:
    """The release with the cost of its schema in its guarantee and among its entries.

    Args:
        release: Made for a budget of its own, or for the rest of ``whole``.
        inferred: Its schema.
        ledger: Where both were charged.
        whole: The budget of both, if it was one.
    """
    entries = [
        {
            "seq": entry.seq,
            "label": entry.label,
            "cost": guarantees.to_json(entry.cost),
            "hash": entry.hash,
        }
        for entry in ledger.entries()
        if entry.cost is not None and _of_schema(entry)
    ]
    account = {**release.ledger, "entries": [*entries, *release.ledger["entries"]]}
    method = {**release.method, "inferred": dict(inferred.about)}
    if whole is not None and release.guarantee == inferred.rest(whole):
        guarantee = whole
    elif isinstance(release.guarantee, LocalDP):
        raise InputError(f"a schema can't be inferred for a release with {release.guarantee}")
    else:
        guarantee = inferred.total(release.guarantee)
    spent = ledger.composed(guarantee.delta)
    if release.private and spent is not None:
        account["spent"] = guarantees.to_json(spent)
    return replace(release, guarantee=guarantee, method=method, ledger=account)


def _check_header(source: Source) -> None:
    if isinstance(source, CsvFile) and first_row_is_data(source.first_row()):
        raise TableError(
            f"{source.describe()}, line 1: this looks like a row of values, not like names of "
            "columns, which are taken as public. Write names into the first line, or use a "
            "schema: `sfumato schema draft --names age,town,...`"
        )


def _of_schema(entry: Entry) -> bool:
    return (entry.request or "").startswith(f"{RUN}/")


def _charged(ledger: Ledger) -> tuple[Price, ...]:
    """What the looks at a table without a schema have cost so far."""
    entries = (entry for entry in ledger.entries() if _of_schema(entry))
    return tuple(entry.cost for entry in entries if entry.cost is not None)


def _to_json(result: InferredColumns, scout: Scout, dataset: str, *, aside: Fraction) -> bytes:
    declared = tuple(each for each in result.columns.values() if not isinstance(each, LeftOut))
    left_out = {n: each.why for n, each in result.columns.items() if isinstance(each, LeftOut)}
    schema = None
    if declared:
        schema = Schema(columns=declared, dataset=dataset, file=FORM, exclude=tuple(left_out))
    value = {
        "schema": None if schema is None else schema.to_dict(),
        "costs": [guarantees.to_json(cost) for cost in scout.charged],
        "aside": str(aside),
        "protect": protection_to_ledger(scout.protect),
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
    left_out = value["found"]["left_out"]
    costs = tuple(guarantees.price_from_json(cost) for cost in value["costs"])
    if value["protect"] != protection_to_ledger(protect):
        raise BudgetError(
            f"the schema of dataset {ledger.dataset!r} was inferred for "
            f"{protection_from_json(value['protect'])}, not for {protect}. Protect the same, or "
            "write a schema."
        )
    if value["schema"] is None:
        charged = "which stays charged" if private else "which was simulated"
        raise after_earlier_charge(
            TableError(
                f"no column of dataset {ledger.dataset!r} can be published for {_sum(costs)}, "
                f"{charged}: {'; '.join(f'{name!r} ({why})' for name, why in left_out.items())}. "
                "Write a schema: `sfumato schema draft` helps."
            )
        )
    spent = _sum(costs)
    about = {"rho": float(spent.rho), "delta": float(spent.delta), **value["found"]}
    schema = Schema.from_dict(value["schema"])
    aside = Fraction(value.get("aside", 0))
    return Inferred(schema=schema, costs=costs, about=about, private=private, aside=aside)


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
    paid = f"Before that, a schema was inferred for {inferred.spent}, which is spent."
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
