"""What all publications of a table do: open, charge, look, write, compare, in that order."""

import json
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from sfumato import report
from sfumato.commands.inputs import check_size
from sfumato.commands.internal_folder import (
    check_internal,
    compare,
    internal_folder,
    remove_comparison,
    write_internal,
)
from sfumato.commands.parameters import TableRun, Tell, asked_cap
from sfumato.commands.request import as_path
from sfumato.commands.resume import journal_for, keeping, telling, telling_what_was_paid
from sfumato.errors import InputError
from sfumato.gate import FINISHED, Curator
from sfumato.ledger import default_path
from sfumato.ledger.ledger import Ledger
from sfumato.privacy.composition import Cap
from sfumato.privacy.protection import OnePerson, Protection
from sfumato.randomness import secure_rng, simulation_rng
from sfumato.readers.open_table import open_table
from sfumato.release import TableRelease, check_apart, check_free, check_usable, new_folder
from sfumato.release.folder import with_copy
from sfumato.report.table_page import report_view
from sfumato.schema import Schema, Workload
from sfumato.schema.measurement import PublicTotal

log = logging.getLogger(__name__)

Make = Callable[[Curator], TableRelease]
"""The part of a publication that spends: everything else is the same for all of them."""


_NOTICED_S: Final = 2.0

_SAID_EXACTLY: Final = (
    "epsilon", "delta", "workload", "totals", "neighbors", "person", "max-rows", "dataset"
)  # fmt: skip
"""Options of which a publication has the meaning, however they were spelled."""


@dataclass(frozen=True, kw_only=True)
class Publication:
    """A request to publish a table, checked before the table is opened."""

    request: TableRun
    """Of which the public options are in ``command``."""
    table: Any
    """As it was given."""
    schema: Schema
    budget: Cap
    protect: Protection
    dataset: str
    workload: Workload | None = None
    """Its ranges are answered in the report."""
    totals: tuple[PublicTotal, ...] = ()
    command: Mapping[str, Any] = field(default_factory=dict)
    """The public options, as they were given: in ``release.json``, and what a run is known by."""

    @property
    def out(self) -> Path | None:
        """The folder that was named."""
        return as_path(self.request.out)

    @property
    def ledger(self) -> str | Path | None:
        """The ledger that was named: a file, or the address of a database."""
        return self.request.ledger

    @property
    def tell(self) -> Tell:
        """Called with the progress."""
        return self.request.tell or silent

    @property
    def folder(self) -> Path | None:
        """Where the release goes: a simulation may only be written to the internal folder."""
        if self.out is None or self.request.seed is None:
            return self.out
        return internal_folder(self.out)

    def identity(self) -> str:
        """Everything public that makes two commands the same one; no path is in it."""
        counts = [[total.marginal, total.counts.tobytes().hex()] for total in self.totals]
        asked = self.workload and (self.workload.targets, self.workload.weights)
        public = [self.budget, self.protect, self.dataset, asked, counts, self.schema.to_dict()]
        options = {name: said for name, said in self.command.items() if name not in _SAID_EXACTLY}
        return json.dumps([options, *public], default=repr, sort_keys=True)


def run(plan: Publication, make: Make, *, doing: str, ledger: Ledger | None = None) -> TableRelease:
    """Open, charge, look, write and compare, in that order.

    Args:
        plan: What was asked for, already checked.
        make: Spends, and makes the release.
        doing: What ``make`` does, in the progress.
        ledger: Of a run that has opened it already, so that all entries tell one day.
    """
    request, tell = plan.request, plan.tell
    rng = secure_rng() if request.seed is None else simulation_rng(request.seed)
    tell("checking the table", 0, 0)
    table = open_table(
        plan.table, plan.schema, encoding=request.encoding, delimiter=request.delimiter
    )
    table.watch(reading(tell))
    _name_left_out(table.describe(), table.left_out(), plan.protect)
    if ledger is None:
        ledger = Ledger.open(plan.ledger, dataset=plan.dataset, cap=asked_cap(request.cap))
    journal = None
    if rng.secure:
        journal = journal_for(ledger, command=plan.identity(), resume=request.resume)
    curator = Curator(
        table,
        protect=plan.protect,
        budget=plan.budget,
        ledger=ledger,
        rng=rng,
        progress=tell,
        journal=journal,
    )
    with telling_what_was_paid(journal):
        tell(doing, 0, 0)
        release = replace(make(curator), command=plan.command)
        release = _kept(plan, release, curator, tell)
        curator.journal.close(FINISHED)
    if plan.request.evaluate and plan.out is not None:
        with telling(f"The release in {plan.out} is complete; only the comparison is missing."):
            found = compare(release, table, plan.workload, ledger, rng=rng, tell=tell)
            write_internal(internal_folder(plan.out), release, found)
    return release


def check_outputs(plan: Publication, *inputs: Any) -> None:
    """Refuse outputs that exist, can't be written or hold an input, before anything is spent.

    Args:
        plan: What was asked for.
        inputs: What is read beside the table: paths, or what is none.
    """
    if "rows" in plan.command:
        check_size(int(plan.command["rows"]), len(plan.schema))
    if plan.folder is None:
        if plan.request.evaluate:
            raise InputError("an evaluation needs a folder to write to: give out.")
        return
    for given in (plan.table, *inputs):
        check_apart(plan.folder, given, named="the input")
    check_apart(plan.folder, plan.ledger or default_path(), named="the ledger")
    check_comparison(plan.folder, plan.table, plan.ledger)
    check_free(plan.folder, force=plan.request.force)
    if plan.request.evaluate and plan.out is not None:
        check_usable(internal_folder(plan.out))
        check_internal(internal_folder(plan.out))


def check_comparison(folder: Path, *inputs: Any) -> None:
    """Refuse inputs that a comparison beside a release takes the place of, or ``--force`` removes.

    Args:
        folder: Of the release.
        inputs: Paths, or what is none.
    """
    for name in ("internal.html", "internal.json"):
        for given in inputs:
            check_apart(internal_folder(folder) / name, given, named="the input")


def silent(what: str, done: int, of: int) -> None:
    """Nobody watches."""


def reading(tell: Tell, clock: Callable[[], float] = time.monotonic) -> Callable[[int, int], None]:
    """Tell how far a table is read, in percent once that is known, where it takes long."""
    began, before = clock(), 0

    def watch(done: int, of: int) -> None:
        nonlocal began, before
        if done <= before:  # from the first row again
            began = clock()
        before = done
        if clock() - began <= _NOTICED_S:
            return
        if of:
            tell("reading the table, percent", min(99, 100 * done // of), 100)
        else:  # never how many rows: that number may be private, and what is shown gets copied
            tell("reading the table", 0, 0)

    return watch


def _name_left_out(source: str, names: Sequence[str], protect: Protection) -> None:
    """Say which columns of the table nobody spoke of: forgotten, or meant to be left out."""
    person = protect.column if isinstance(protect, OnePerson) else None
    if forgotten := [name for name in names if name != person]:
        shown = ", ".join(map(repr, forgotten[:12])) + (", ..." if len(forgotten) > 12 else "")
        log.warning(
            "%s: not in the schema, so not read and not published: %s. "
            'Declare them, or name them under "exclude".',
            source,
            shown,
        )


def _kept(plan: Publication, release: TableRelease, curator: Curator, tell: Tell) -> TableRelease:
    """The release, in the folder that was named; beside the ledger if there is none."""
    if plan.folder is None:
        return with_copy(release, curator.ledger.path, run=curator.run)
    tell("writing", 0, 0)
    with keeping(release, curator):
        _write(plan, plan.folder, release)
    if plan.request.force:
        remove_comparison(internal_folder(plan.folder))
    return release


def _write(plan: Publication, folder: Path, release: TableRelease) -> None:
    with new_folder(folder, force=plan.request.force, internal=not release.private) as inside:
        release.write_into(inside, csv=plan.request.csv)
        if "inferred" in release.method:
            release.schema.save(inside / "schema.json")
        page = report_view(release, workload=plan.workload, csv=plan.request.csv)
        report.write(page, inside / "report.html")
