"""Publishing a table, with its schema or without one: the work of ``sfumato publish``.

Order of a publication: everything that can be checked without the data, then the cap, then the
format of the table, then the charge, then the look, then the files, then the comparison.
"""

import json
import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from sfumato import check, report
from sfumato.commands.inferred_schema import (
    SEED_OFFSET,
    STAND_IN,
    Inferred,
    check_inferable,
    check_share_unused,
    inferred_earlier,
    inferred_schema,
    least_rest,
    leave_schema_on_failure,
    note_schema_charge,
    published,
    share_of,
    whole_budget,
)
from sfumato.commands.internal_folder import (
    check_internal,
    compare,
    internal_folder,
    publishable,
    remove_comparison,
    write_internal,
)
from sfumato.commands.publish import PublishRequest
from sfumato.commands.request import (
    WORKLOADS,
    ProgressCall,
    TableRun,
    as_path,
    cap_of,
    check_one_table,
    public_options,
)
from sfumato.errors import InputError
from sfumato.gate import FINISHED, Curator, Journal, PaidStep, runs_of
from sfumato.ledger import default_path
from sfumato.ledger.ledger import Ledger, after_earlier_charge
from sfumato.models.dense.model import CELL_LIMIT
from sfumato.privacy.composition import Cap
from sfumato.privacy.guarantees import ZCDP, ApproxDP
from sfumato.privacy.sensitivity import NEIGHBORS, Neighbors, OnePerson, OneRow, Protection
from sfumato.publishing.auto import Auto
from sfumato.publishing.inference import is_small
from sfumato.publishing.methods import (
    LEAST_EPSILON,
    algorithm_named,
    budget_for,
    check_fits,
    check_promise,
)
from sfumato.randomness import secure_rng, simulation_rng
from sfumato.readers.open_table import open_table
from sfumato.release import TableRelease, check_apart, check_free, check_usable, new_folder
from sfumato.release.folder import naming_copy, with_copy
from sfumato.report.table_page import report_view
from sfumato.schema import Schema, Workload, all_marginals, load_workload
from sfumato.schema.measurement import PublicTotal, load_totals
from sfumato.synthesis.algorithm import Algorithm

if TYPE_CHECKING:
    from sfumato.release.recommender import RecommenderRelease


log = logging.getLogger(__name__)

Make = Callable[[Curator], TableRelease]
"""The part of a publication that spends: everything else is the same for all of them."""


MOST_VALUES: Final = 2 * 10**10
"""Rows times columns of what is published: a billion rows of twenty columns can be written."""
LEAST_SCHEMA_EPSILON: Final = Fraction(1, 10**6)
"""For inferring a schema: with less there is nothing but noise."""
GO_ON: Final = (
    "Nothing half-written is left. To go on without a new charge, give the same command with "
    "--resume (in Python, resume=True)."
)
NO_WAY_ON: Final = (
    "Nothing half-written is left. This run can't be resumed, as its answers are not kept: the "
    "same command again is a new charge."
)
"""Notes of an error or an interruption that came after a charge; others compare with them."""

_MOST_NAMED: Final = 3
"""Charges of a stopped run that a message lists."""
_DOING: Final = "measuring and fitting"
_NOTICED_S: Final = 2.0
"""Seconds of reading after which a person wants to see progress."""

_IN_IDENTITY: Final = (
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
    def tell(self) -> ProgressCall:
        """Called with the progress."""
        return self.request.tell or silent

    @property
    def folder(self) -> Path | None:
        """Where the release goes: a simulation may only be written to the internal folder."""
        if self.out is None or self.request.seed is None:
            return self.out
        return internal_folder(self.out)

    def workload_of(self, release: TableRelease) -> Workload | None:
        """The workload over the bins of the release."""
        return None if self.workload is None else self.workload.on(release.schema)

    def identity(self) -> str:
        """Everything public that makes two commands the same one; no path is in it."""
        counts = [[total.marginal, total.counts.tobytes().hex()] for total in self.totals]
        workload = self.workload and (self.workload.targets, self.workload.weights)
        public = [self.budget, self.protect, self.dataset, workload, counts, self.schema.to_dict()]
        options = {name: value for name, value in self.command.items() if name not in _IN_IDENTITY}
        return json.dumps([options, *public], default=repr, sort_keys=True)


def publish(request: PublishRequest) -> TableRelease:
    """Publish a table whose columns are declared, or are inferred first, privately."""
    check_one_table(request.table)
    check.one_of(NEIGHBORS, neighbors=request.neighbors)
    return _without_schema(request) if request.schema is None else _with_schema(request)


def _with_schema(request: PublishRequest) -> TableRelease:
    check_share_unused(request.infer_share)
    known = loaded_schema(request.schema) if request.schema is not None else STAND_IN
    known = known.without_bins()  # which another release paid for
    algorithm, plan = _planned(request, read_strictly(known, request.strict), left=None)
    inferred = inferred_before(plan)
    return run(plan, partial(published, algorithm, inferred), doing=_DOING)


def _without_schema(request: PublishRequest) -> TableRelease:
    check_inferable(request.workload, request.totals, strict=request.strict)
    check_schema_share(request.epsilon, request.infer_share)
    whole, share = whole_budget(request.epsilon, request.delta), share_of(request.infer_share)
    protect = protection_of(request.neighbors, request.person, request.max_rows)
    _, plan = _planned(request, STAND_IN, left=least_rest(whole, share, protect))
    ledger = Ledger.open(plan.ledger, dataset=plan.dataset, cap=cap_of(request.cap))
    inferred = infer_schema(plan, whole=whole, share=share, ledger=ledger)
    if is_small(inferred.about):
        log.warning(
            "the table is small for inferring a schema: only texts shared by %s of about %s rows "
            "are shown. A declared schema loses nothing: `sfumato schema draft` proposes one.",
            f"{inferred.about['texts']['shown_from_rows']:,}",
            f"{inferred.about['rows']:,}",
        )
    with leave_schema_on_failure(inferred, plan.folder):
        algorithm, plan = _planned(request, inferred.schema, left=inferred.rest(whole))
        make = partial(published, algorithm, inferred, whole=whole)
        return run(plan, make, doing=_DOING, ledger=ledger)


def _planned(
    request: PublishRequest, known: Schema, *, left: ZCDP | None
) -> tuple[Algorithm | Auto, Publication]:
    """The algorithm and the publication, checked before the table is opened.

    Args:
        request: As it was given.
        known: The schema.
        left: What is left of the budget after inferring it, if it was inferred.
    """
    workload = workload_of(known, request.workload)
    check_ranges(workload)
    check_rows(request.rows, request.neighbors)
    check_resume(request.resume, request.seed)
    totals = totals_of(known, request.totals)
    algorithm = algorithm_named(
        request.method,
        workload=workload,
        rows=request.rows,
        totals=totals,
        options=request.options or {},
    )
    check_fits(algorithm, known)
    if left is not None and algorithm.name == "dp2pub":
        raise InputError(
            "dp2pub has a budget in epsilon alone, and inferring a schema takes a delta. Give "
            "--schema (`sfumato schema draft` proposes one), or choose another method"
        )
    budget = left or budget_for(algorithm, known, epsilon=request.epsilon, delta=request.delta)
    if (out := as_path(request.out)) is not None:
        publishable(out)
    plan = Publication(
        request=request,
        table=request.table,
        schema=known,
        budget=budget,
        protect=protection_of(request.neighbors, request.person, request.max_rows),
        dataset=dataset_name(known, request.dataset),
        workload=workload,
        totals=totals,
        command=public_options("publish", request),
    )
    check_promise(algorithm, known, protect=plan.protect, budget=plan.budget)
    files = (request.schema, request.workload, request.totals)
    check_outputs(plan, *(given for given in files if isinstance(given, str | Path)))
    return algorithm, plan


def infer_schema(
    plan: Publication, *, whole: ApproxDP, share: Fraction, ledger: Ledger
) -> Inferred:
    """The schema for a publication that was given none; all else of ``plan`` was checked.

    Args:
        plan: The table, whom it protects, and its seed.
        whole: The budget of schema and release together.
        share: Of its rho, for the schema.
        ledger: Of the data set; the release is charged in the same one.
    """
    request = plan.request
    # another stream than the release's, whose noise would else be the same
    rng = secure_rng() if request.seed is None else simulation_rng(request.seed + SEED_OFFSET)
    plan.tell("inferring a schema, privately", 0, 0)
    with ledger, note_schema_charge(ledger):
        return inferred_schema(
            plan.table,
            whole=whole,
            share=share,
            protect=plan.protect,
            ledger=ledger,
            rng=rng,
            encoding=request.encoding,
            delimiter=request.delimiter,
        )


def inferred_before(plan: Publication) -> Inferred | None:
    """What the data set paid for the schema's columns, if they were inferred from its table."""
    with Ledger.open(plan.ledger, dataset=plan.dataset) as ledger:
        return inferred_earlier(ledger, plan.schema, plan.protect)


def run(plan: Publication, make: Make, *, doing: str, ledger: Ledger | None = None) -> TableRelease:
    """Open, charge, look, write and compare, in that order.

    Args:
        plan: What to publish, already checked.
        make: Spends, and makes the release.
        doing: What ``make`` does, in the progress.
        ledger: Of a run that has opened it already, so that all entries have one day.
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
        ledger = Ledger.open(plan.ledger, dataset=plan.dataset, cap=cap_of(request.cap))
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
    with note_charges(journal):
        tell(doing, 0, 0)
        release = replace(make(curator), command=plan.command)
        release = _saved(plan, release, curator, tell)
        curator.journal.close(FINISHED)
    if plan.request.evaluate and plan.out is not None:
        with note_on_failure(
            f"The release in {plan.out} is complete; only the comparison is missing."
        ):
            workload = plan.workload_of(release)
            comparison = compare(release, table, workload, ledger, rng=rng, tell=tell)
            write_internal(internal_folder(plan.out), release, comparison)
    return release


def check_outputs(plan: Publication, *inputs: Any) -> None:
    """Refuse outputs that exist, can't be written or hold an input, before anything is spent.

    Args:
        plan: What to publish.
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


def reading(
    tell: ProgressCall, clock: Callable[[], float] = time.monotonic
) -> Callable[[int, int], None]:
    """Report how far a table is read, in percent once that is known, where it takes long."""
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
    """Warn of columns that the schema neither declares nor excludes: they may be forgotten."""
    person = protect.column if isinstance(protect, OnePerson) else None
    if forgotten := [name for name in names if name != person]:
        shown = ", ".join(map(repr, forgotten[:12])) + (", ..." if len(forgotten) > 12 else "")
        log.warning(
            "%s: not in the schema, so not read and not published: %s. "
            'Declare them, or name them under "exclude".',
            source,
            shown,
        )


def _saved(
    plan: Publication, release: TableRelease, curator: Curator, tell: ProgressCall
) -> TableRelease:
    """The release, in the folder that was named; beside the ledger if there is none."""
    if plan.folder is None:
        return with_copy(release, curator.ledger.path, run=curator.run)
    tell("writing", 0, 0)
    with copy_on_failure(release, curator):
        _write(plan, plan.folder, release)
    if plan.request.force:
        remove_comparison(internal_folder(plan.folder))
    return release


def _write(plan: Publication, folder: Path, release: TableRelease) -> None:
    with new_folder(folder, force=plan.request.force, internal=not release.private) as inside:
        release.write_into(inside, csv=plan.request.csv)
        if "inferred" in release.method:
            _save_schema(release.schema.without_bins(), inside / "schema.json", release.private)
        workload = plan.workload_of(release)
        page = report_view(release, workload=workload, csv=plan.request.csv)
        report.write(page, inside / "report.html")


def _save_schema(schema: Schema, path: Path, private: bool) -> None:
    """Write an inferred schema; with seeded noise it is a draft, which a person must confirm."""
    if private:
        schema.save(path)
        return
    content = schema.to_dict()
    for column in content["columns"]:
        column["unconfirmed"] = sorted(column.keys() - {"name"})
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def loaded_schema(given: Schema | Mapping[str, Any] | str | Path) -> Schema:
    """A schema as it is given: itself, its content or its file."""
    if isinstance(given, Mapping):
        return Schema.from_dict(given)
    return given if isinstance(given, Schema) else Schema.load(given)


def read_strictly(schema: Schema, strict: bool) -> Schema:
    """The same schema; with ``strict``, values that do not fit are errors."""
    return replace(schema, file=replace(schema.file, strict=True)) if strict else schema


def workload_of(schema: Schema, given: Workload | str | Path | None) -> Workload:
    """A workload as it is given: itself, a degree, its file, or none: then all pairs."""
    if isinstance(given, Workload):
        if given.schema.columns != schema.columns:
            raise InputError("the workload was made for another schema.")
        return given
    if given is None:
        return all_marginals(schema, degree=min(2, len(schema)))
    degree = WORKLOADS.get(str(given))
    if degree is not None:
        return all_marginals(schema, degree=degree)
    if not Path(given).is_file():
        raise InputError(f"workload must be 1-way, 2-way, 3-way or a file, got {str(given)!r}.")
    return load_workload(schema, given)


def check_ranges(workload: Workload) -> None:
    """Refuse, before anything is spent, a range that no report could answer."""
    schema = workload.schema.with_bins(workload.schema.public_bins)
    for box in workload.ranges:
        cells = schema.cells(box.marginal)
        if cells > CELL_LIMIT:
            raise InputError(
                f"the workload has a range over {len(box.bounds)} columns with "
                f"{Decimal(cells):.2e} cells; at most {CELL_LIMIT:,} can be answered. Limit fewer "
                "columns."
            )


def totals_of(schema: Schema, given: Sequence[PublicTotal] | str | Path) -> tuple[PublicTotal, ...]:
    """Public totals as they are given: themselves, or their file."""
    return load_totals(schema, given) if isinstance(given, str | Path) else tuple(given)


def check_rows(rows: int | None, neighbors: Neighbors) -> None:
    """Refuse a public number of rows that is none, or that the neighbors make public anyway."""
    if rows is None:
        return
    check.whole(at_least=1, at_most=MOST_VALUES, rows=rows)
    if neighbors == "replace":
        raise InputError("with replace the number of rows is public and counted: leave --rows out.")


def check_size(rows: int, columns: int, *, values: int = MOST_VALUES) -> int:
    """A number of rows that can be drawn and written; more are refused before any spend.

    Args:
        rows: To be published.
        columns: Of the schema.
        values: The most rows times columns.
    """
    most = values // columns
    if check.whole(at_least=1, rows=rows) > most:
        raise InputError(f"rows must be at most {most:,} for {columns} columns, got {rows:,}.")
    return rows


def check_schema_share(epsilon: check.Number, share: check.Number | None) -> None:
    """Refuse a share of epsilon that finds no schema or leaves no release, before it is spent."""
    if share is None:
        return
    whole, part = check.exact(epsilon=epsilon), check.exact(infer_share=share)
    if not 0 < part < 1 or whole < LEAST_EPSILON:
        return  # refused by other checks
    if whole * part < LEAST_SCHEMA_EPSILON or whole * (1 - part) < LEAST_EPSILON:
        raise InputError(
            f"infer_share {share!s:.40} of epsilon {epsilon!s:.40} leaves nothing but noise: a "
            f"schema takes an epsilon of at least {float(LEAST_SCHEMA_EPSILON):g}, a release of at "
            f"least {float(LEAST_EPSILON):g}."
        )


def protection_of(neighbors: Neighbors, person: str | None, max_rows: int | None) -> Protection:
    """Whom to protect: one row, or one person with a bounded number of rows."""
    if (person is None) != (max_rows is None):
        raise InputError(
            "one person with many rows needs both the column that names the person (--person) and "
            "the most rows that count (--max-rows)."
        )
    if person is None or max_rows is None:
        return OneRow(neighbors=neighbors)
    return OnePerson(column=person, max_rows=max_rows, neighbors=neighbors)


def dataset_name(schema: Schema, given: str | None) -> str:
    """The name that the budget belongs to; one must be given."""
    name = given if given is not None else schema.dataset
    if name is None or not name.strip():
        raise InputError(
            'the budget belongs to a data set, and none is named. Put "dataset" into the schema '
            "or give --dataset NAME."
        )
    return name


def check_resume(resume: bool | None, seed: int | None) -> None:
    """Refuse to resume what keeps no journal."""
    if resume and seed is not None:
        raise InputError(
            "a simulation costs nothing and keeps no journal, so it can't be resumed. Leave "
            "--resume or --seed out."
        )


def journal_for(ledger: Ledger, *, command: str, resume: bool | None) -> Journal:
    """The journal of a new run, or of one that was stopped.

    Args:
        ledger: Where it pays.
        command: All that is public about the request, as text.
        resume: Go on with the last run of the same command that was stopped; False begins a new
            one, which is charged again; None refuses if there is one to go on with.
    """
    if resume:
        return Journal.resume(ledger, command=command)
    if resume is None:
        _refuse_stopped(ledger, command)
    return Journal.begin(ledger, command=command)


@contextmanager
def note_charges(journal: Journal | None) -> Iterator[None]:
    """Give whatever stops a run notes (PEP 678) that say what was charged and how to go on."""
    try:
        yield
    except BaseException as error:
        if journal is not None and journal.charged:
            known = getattr(error, "__notes__", [])
            paid = f"Charged, and recorded in the ledger of {journal.ledger.dataset!r}: "
            notes = (paid + _named(journal.charged), GO_ON if journal.resumable else NO_WAY_ON)
            for note in notes:
                if note not in known:
                    error.add_note(note)
        raise


@contextmanager
def copy_on_failure(
    release: "TableRelease | RecommenderRelease", curator: Curator
) -> Iterator[None]:
    """If a release can't be written and its run not be resumed, keep a copy beside the ledger."""
    try:
        yield
    except BaseException:
        if curator.journal.resumable:
            raise
        copy = with_copy(release, curator.ledger.path, run=curator.run).kept
        with naming_copy(copy):
            raise


@contextmanager
def note_on_failure(note: str) -> Iterator[None]:
    """Give whatever stops the block a note."""
    try:
        yield
    except BaseException as error:
        error.add_note(note)
        raise


def _refuse_stopped(ledger: Ledger, command: str) -> None:
    runs = runs_of(ledger, command=command)
    if runs and runs[-1].closed is None:
        last = runs[-1]
        raise after_earlier_charge(
            InputError(
                f"this very command was paid for on {last.steps[0].time} and did not finish: "
                f"{_named(last.steps)} Add --resume to go on with it, without "
                "a new charge, or --no-resume to leave it and pay again."
            )
        )


def _named(steps: "tuple[PaidStep, ...] | list[PaidStep]") -> str:
    shown = "; ".join(map(str, steps[:_MOST_NAMED]))
    more = len(steps) - _MOST_NAMED
    return f"{shown}." if more <= 0 else f"{shown}; and {more} more, to entry {steps[-1].seq}."
