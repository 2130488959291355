"""Publishing a table and comparing it with the real one, from file to folder.

Order of a publication: everything that can be checked without the data, then the cap, then the
format of the table, then the charge, then the look.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

from sfumato import check, reporting
from sfumato.curator import Curator
from sfumato.engine import open_table
from sfumato.errors import InputError
from sfumato.evaluation import Evaluation, check_label, labels_of
from sfumato.jobs.internal import (
    check_internal,
    compare,
    internal_folder,
    publishable,
    remove_comparison,
    write_internal,
)
from sfumato.models.dense import CELL_LIMIT
from sfumato.privacy.composition import Cap
from sfumato.privacy.ledger import Ledger
from sfumato.privacy.protection import Neighbors, OnePerson, OneRow, Protection
from sfumato.publishing import algorithm_named, budget_for, check_promise, publish
from sfumato.randomness import secure_rng, simulation_rng
from sfumato.release import TableRelease, check_free, check_usable, new_folder
from sfumato.reporting.contents import report_view
from sfumato.schema import Schema, Workload, all_marginals, load_workload
from sfumato.schema.totals import PublicTotal, load_totals

log = logging.getLogger(__name__)

Tell = Callable[[str, int, int], None]
"""Progress: what is being done, how much of it is, how much there is; 0 of 0 begins a phase."""

Make = Callable[[Curator], TableRelease]
"""The part of a publication that spends: everything else is the same for all of them."""


@dataclass(frozen=True, kw_only=True)
class Publication:
    """All that a publication was told, checked before the table is opened."""

    schema: Schema
    budget: Cap
    protect: Protection
    dataset: str
    workload: Workload | None = None
    """Its ranges are answered in the report."""
    out: Path | None = None
    ledger: Path | None = None
    cap: Cap | None = None
    seed: int | None = None
    evaluate: bool = False
    force: bool = False
    csv: bool = False

    @property
    def folder(self) -> Path | None:
        """Where the release goes: a simulation may only be written to the internal folder."""
        if self.out is None or self.seed is None:
            return self.out
        return internal_folder(self.out)


def publish_table(
    table: Any,
    *,
    schema: Schema | Mapping[str, Any] | str | Path,
    epsilon: check.Number,
    delta: check.Number | None = None,
    method: str = "auto",
    workload: Workload | str | Path | None = None,
    options: Mapping[str, str] | None = None,
    rows: int | None = None,
    totals: Sequence[PublicTotal] | str | Path = (),
    neighbors: Neighbors = "add-remove",
    person: str | None = None,
    max_rows: int | None = None,
    out: str | Path | None = None,
    dataset: str | None = None,
    ledger: str | Path | None = None,
    cap: Cap | None = None,
    evaluate: bool = False,
    force: bool = False,
    csv: bool = False,
    encoding: str = "utf-8",
    delimiter: str | None = None,
    seed: int | None = None,
    tell: Tell | None = None,
) -> TableRelease:
    """Publish a table: `sfumato publish` in one call.

    Args:
        table: A path (csv, parquet, json, sqlite), or a data frame.
        schema: The public description of its columns, as a schema, as the content of its file,
            or as the file.
        epsilon: The budget of this release.
        delta: For Gaussian noise, where that is smaller. A method that needs none stays pure;
            one that does takes 1e-9 by default.
        method: ``auto``, ``histogram``, ``independent``, ``mwem``, ``mst``, ``cliquetree``,
            ``aim``, ``privbayes`` or ``dp2pub``.
        workload: ``"1-way"``, ``"2-way"``, ``"3-way"``, a workload file, or a workload.
        options: A method's own options as text, for example ``{"rounds": "30"}``.
        rows: The table's true number of rows, if that is public knowledge; saves budget.
        totals: Marginal counts of the table that are public knowledge, or their file; the release
            agrees with them.
        neighbors: ``add-remove``, or ``replace``, which makes the number of rows public.
        person: The column that names the person, where one person has several rows.
        max_rows: The most rows of one person that count.
        out: The folder to write, which may then be published whole.
        dataset: The name that the budget belongs to; by default the schema's.
        ledger: The ledger file; by default the one of this user.
        cap: The most that all releases of this data set together may cost.
        evaluate: Compare with the real data, into ``OUT-internal``.
        force: Replace an older release.
        csv: Write ``data.csv`` too.
        encoding: Of a CSV file.
        delimiter: Of a CSV file; by default the one that explains its header.
        seed: Make a simulation that protects nobody, into ``OUT-internal``.
        tell: Called with the progress.
    """
    known = loaded_schema(schema)
    wanted = asked_workload(known, workload)
    check_ranges(wanted)
    _check_rows(rows, neighbors)
    algorithm = algorithm_named(
        method,
        workload=wanted,
        rows=rows,
        totals=_totals(known, totals),
        options=options or {},
    )
    algorithm.check(known)
    plan = Publication(
        schema=known,
        budget=budget_for(algorithm, known, epsilon=epsilon, delta=delta),
        protect=_protection(neighbors, person, max_rows),
        dataset=dataset_name(known, dataset),
        workload=wanted,
        out=None if out is None else publishable(Path(out)),
        ledger=None if ledger is None else Path(ledger),
        cap=cap,
        seed=seed,
        evaluate=evaluate,
        force=force,
        csv=csv,
    )
    check_promise(algorithm, known, protect=plan.protect, budget=plan.budget)
    check_outputs(plan, table)
    return run(
        plan,
        table,
        partial(publish, algorithm),
        encoding=encoding,
        delimiter=delimiter,
        tell=tell or silent,
        doing="measuring and fitting",
    )


def evaluate_release(
    folder: str | Path,
    *,
    against: Any,
    workload: str | Path | None = None,
    label: str | Sequence[str] | None = None,
    all_labels: bool = False,
    ledger: str | Path | None = None,
    encoding: str = "utf-8",
    delimiter: str | None = None,
) -> Evaluation:
    """Compare a published folder with the real table: `sfumato evaluate` in one call.

    Writes ``internal.html`` and ``internal.json`` into ``FOLDER-internal``.

    Args:
        folder: What was published.
        against: The real table.
        workload: A file of ranges to compare.
        label: A column, or several, to be predicted by classifiers that learn from published
            rows and from real ones; needs scikit-learn.
        all_labels: Predict every column of 2 to 20 values in turn.
        ledger: The ledger file; by default the one of this user.
        encoding: Of a CSV file.
        delimiter: Of a CSV file; by default the one that explains its header.
    """
    folder = Path(folder)
    release = TableRelease.load(folder)
    chosen = asked_workload(release.schema, workload) if workload is not None else None
    if chosen is not None:
        check_ranges(chosen)
    named = (label,) if isinstance(label, str) else tuple(label or ())
    labels = labels_of(release.schema, named) if named or all_labels else ()
    for name in labels:
        check_label(release.schema, name)
    table = open_table(against, release.schema, encoding=encoding, delimiter=delimiter)
    table.validate()
    check_internal(internal_folder(folder))
    book = Ledger.open(ledger, dataset=release.dataset, create=False)
    found = compare(release, table, chosen, book, rng=simulation_rng(0), labels=labels)
    write_internal(internal_folder(folder), release, found)
    return found


def run(
    plan: Publication,
    source: Any,
    make: Make,
    *,
    encoding: str,
    delimiter: str | None,
    tell: Tell,
    doing: str,
) -> TableRelease:
    """Open, charge, look, write and compare, in that order.

    Args:
        plan: What was asked for, already checked.
        source: The table, as it was given.
        make: Spends, and makes the release.
        encoding: Of a CSV file.
        delimiter: Of a CSV file.
        tell: Called with the progress.
        doing: What ``make`` does, in the progress.
    """
    rng = secure_rng() if plan.seed is None else simulation_rng(plan.seed)
    tell("checking the table", 0, 0)
    table = open_table(source, plan.schema, encoding=encoding, delimiter=delimiter)
    _name_left_out(table.describe(), table.left_out(), plan.protect)
    ledger = Ledger.open(plan.ledger, dataset=plan.dataset, cap=plan.cap)
    curator = Curator(
        table, protect=plan.protect, budget=plan.budget, ledger=ledger, rng=rng, progress=tell
    )
    tell(doing, 0, 0)
    release = make(curator)
    if plan.folder is not None:
        tell("writing", 0, 0)
        _write(plan, plan.folder, release)
        if plan.force:
            remove_comparison(internal_folder(plan.folder))
    if plan.evaluate and plan.out is not None:
        tell("comparing with the real table", 0, 0)
        found = compare(release, table, plan.workload, ledger, rng=rng)
        write_internal(internal_folder(plan.out), release, found)
    return release


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


def _write(plan: Publication, folder: Path, release: TableRelease) -> None:
    with new_folder(folder, force=plan.force, internal=not release.private) as inside:
        release.write_into(inside, csv=plan.csv)
        reporting.write(report_view(release, workload=plan.workload), inside / "report.html")


def check_outputs(plan: Publication, table: Any) -> None:
    """Refuse outputs that exist, can't be written or hold the input, before anything is spent."""
    if plan.folder is None:
        if plan.evaluate:
            raise InputError(
                "an evaluation needs a folder to write to: give out. Nothing was spent"
            )
        return
    if isinstance(table, str | Path):
        source = Path(str(table).partition("::")[0]).resolve()
        if plan.folder.resolve() in (source, *source.parents):
            raise InputError(f"the output {plan.folder} holds the input. Nothing was spent.")
    check_free(plan.folder, force=plan.force)
    if plan.evaluate and plan.out is not None:
        check_internal(internal_folder(plan.out))
        check_usable(internal_folder(plan.out))


def loaded_schema(given: Schema | Mapping[str, Any] | str | Path) -> Schema:
    """A schema as it is given: itself, its content or its file."""
    if isinstance(given, Schema):
        return given
    return Schema.from_dict(given) if isinstance(given, Mapping) else Schema.load(given)


def _check_rows(rows: int | None, neighbors: Neighbors) -> None:
    if rows is None:
        return
    check.whole(at_least=1, rows=rows)
    if neighbors == "replace":
        raise InputError(
            "with replace the number of rows is public and counted: leave --rows out. "
            "Nothing was spent."
        )


def asked_workload(schema: Schema, given: Workload | str | Path | None) -> Workload:
    """A workload as it is given: itself, a degree, its file, or none: then all pairs."""
    if isinstance(given, Workload):
        if given.schema.columns != schema.columns:
            raise InputError("the workload was made for another schema. Nothing was spent.")
        return given
    if given is None:
        return all_marginals(schema, degree=min(2, len(schema)))
    degree = {"1-way": 1, "2-way": 2, "3-way": 3}.get(str(given))
    if degree is not None:
        return all_marginals(schema, degree=degree)
    if not Path(given).is_file():
        raise InputError(
            f"workload must be 1-way, 2-way, 3-way or a file, got {str(given)!r}. "
            "Nothing was spent."
        )
    return load_workload(schema, given)


def _totals(schema: Schema, given: Sequence[PublicTotal] | str | Path) -> tuple[PublicTotal, ...]:
    return load_totals(schema, given) if isinstance(given, str | Path) else tuple(given)


def check_ranges(workload: Workload) -> None:
    """Refuse, before anything is spent, a range that no report could answer."""
    for box in workload.ranges:
        cells = workload.schema.cells(box.marginal)
        if cells > CELL_LIMIT:
            raise InputError(
                f"the workload has a range over {len(box.bounds)} columns with "
                f"{Decimal(cells):.2e} cells; "
                f"at most {CELL_LIMIT:,} can be answered. Nothing was spent. Limit fewer columns."
            )


def _protection(neighbors: Neighbors, person: str | None, max_rows: int | None) -> Protection:
    if (person is None) != (max_rows is None):
        raise InputError(
            "one person with many rows needs both the column that names the person (--person) "
            "and the most rows that count (--max-rows). Nothing was spent."
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
            "or give --dataset NAME. Nothing was spent."
        )
    return name


def silent(what: str, done: int, of: int) -> None:
    """Nobody watches."""
