"""Publishing a table, from file to folder: `sfumato publish` in one call.

Order of a publication: everything that can be checked without the data, then the cap, then the
format of the table, then the charge, then the look.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from sfumato import check
from sfumato.commands.inferred_schema import (
    STAND_IN,
    check_inferable,
    check_share_unused,
    find_schema,
    inferred_before,
    published,
    share_of,
    whole_budget,
)
from sfumato.commands.inputs import (
    asked_protection,
    asked_totals,
    asked_workload,
    check_one_table,
    check_ranges,
    check_resume,
    check_rows,
    dataset_name,
    loaded_schema,
    named_workload,
    read_strictly,
    told,
)
from sfumato.commands.internal_folder import publishable
from sfumato.commands.kept_schema import keeping_schema
from sfumato.commands.publication import Make, Publication, Tell, check_outputs, run, silent
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.outcome import spending_boundary
from sfumato.privacy.composition import Cap
from sfumato.privacy.guarantees import ApproxDP
from sfumato.privacy.protection import Neighbors
from sfumato.publishing.auto import Auto
from sfumato.publishing.methods import algorithm_named, budget_for, check_promise
from sfumato.release import TableRelease
from sfumato.schema import Schema, Workload
from sfumato.schema.measurement import PublicTotal
from sfumato.synthesis.algorithm import Algorithm


@spending_boundary()
def publish_table(
    table: Any,
    *,
    schema: Schema | Mapping[str, Any] | str | Path | None = None,
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
    strict: bool = False,
    seed: int | None = None,
    resume: bool | None = None,
    infer_share: check.Number | None = None,
    tell: Tell | None = None,
) -> TableRelease:
    """Publish a table: `sfumato publish` in one call.

    Args:
        table: A path (csv, parquet, json, sqlite), or a data frame.
        schema: The public description of its columns, as a schema, as the content of its file,
            or as the file. Without one, limits and values are found privately, for a share of
            the budget; names of columns are taken as public.
        epsilon: The budget of this release, with that of finding a schema.
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
        strict: Refuse a table with a value that does not fit. By default it counts as a public
            code, so that no single row decides whether there is a release.
        seed: Make a simulation that protects nobody, into ``OUT-internal``.
        resume: Go on with the last run of this very command that was stopped, without a new
            charge. False leaves such a run and pays again; None, the default, refuses if there
            is one.
        infer_share: The share of epsilon that pays for finding a schema where none is given, by
            default a fifth; half of delta goes with it.
        tell: Called with the progress.
    """
    wish = _Wish(
        table=table,
        epsilon=epsilon,
        delta=delta,
        method=method,
        workload=workload,
        options=options,
        rows=rows,
        totals=totals,
        neighbors=neighbors,
        person=person,
        max_rows=max_rows,
        out=None if out is None else Path(out),
        dataset=dataset,
        ledger=None if ledger is None else Path(ledger),
        cap=cap,
        evaluate=evaluate,
        force=force,
        csv=csv,
        encoding=encoding,
        delimiter=delimiter,
        strict=strict,
        seed=seed,
        resume=resume,
        infer_share=infer_share,
        tell=tell or silent,
    )
    return wish.without_schema() if schema is None else wish.with_schema(schema)


@dataclass(frozen=True, kw_only=True)
class _Wish:
    """The arguments of ``publish_table``, which says what each of them means."""

    table: Any
    epsilon: check.Number
    delta: check.Number | None
    method: str
    workload: Workload | str | Path | None
    options: Mapping[str, str] | None
    rows: int | None
    totals: Sequence[PublicTotal] | str | Path
    neighbors: Neighbors
    person: str | None
    max_rows: int | None
    out: Path | None
    dataset: str | None
    ledger: Path | None
    cap: Cap | None
    evaluate: bool
    force: bool
    csv: bool
    encoding: str
    delimiter: str | None
    strict: bool
    seed: int | None
    resume: bool | None
    infer_share: check.Number | None
    tell: Tell

    def with_schema(self, schema: Schema | Mapping[str, Any] | str | Path) -> TableRelease:
        """The release of a table whose columns are declared."""
        with spending_boundary():
            check_one_table(self.table)
            check_share_unused(self.infer_share)
            algorithm, plan = self._planned(
                read_strictly(loaded_schema(schema), self.strict), left=None
            )
            found = inferred_before(plan)
        return self._run(plan, partial(published, algorithm, found))

    def without_schema(self) -> TableRelease:
        """The release of a table whose columns are found out first, privately."""
        with spending_boundary():
            check_one_table(self.table)
            check_inferable(self.workload, self.totals, strict=self.strict)
            whole, share = whole_budget(self.epsilon, self.delta), share_of(self.infer_share)
            _, plan = self._planned(STAND_IN, left=whole)
            ledger = Ledger.open(plan.ledger, dataset=plan.dataset, cap=plan.cap)
        found = find_schema(
            plan,
            self.table,
            budget=whole,
            share=share,
            ledger=ledger,
            encoding=self.encoding,
            delimiter=self.delimiter,
            tell=self.tell,
        )
        with keeping_schema(found, plan.folder):
            algorithm, plan = self._planned(found.schema, left=found.rest(whole))
            return self._run(plan, partial(published, algorithm, found), ledger)

    def _planned(
        self, known: Schema, *, left: ApproxDP | None
    ) -> tuple[Algorithm | Auto, Publication]:
        """All that is asked for, checked before the table is opened.

        Args:
            known: The schema.
            left: What is left of the budget after finding it, if it was found.
        """
        wanted = asked_workload(known, self.workload)
        check_ranges(wanted)
        check_rows(self.rows, self.neighbors)
        check_resume(self.resume, self.seed)
        totals = asked_totals(known, self.totals)
        algorithm = algorithm_named(
            self.method,
            workload=wanted,
            rows=self.rows,
            totals=totals,
            options=self.options or {},
        )
        algorithm.check(known)
        epsilon, delta = (self.epsilon, self.delta) if left is None else (left.epsilon, left.delta)
        plan = Publication(
            schema=known,
            budget=budget_for(algorithm, known, epsilon=epsilon, delta=delta),
            protect=asked_protection(self.neighbors, self.person, self.max_rows),
            dataset=dataset_name(known, self.dataset),
            workload=wanted,
            totals=totals,
            command=self._command(),
            resume=self.resume,
            out=None if self.out is None else publishable(self.out),
            ledger=self.ledger,
            cap=self.cap,
            seed=self.seed,
            evaluate=self.evaluate,
            force=self.force,
            csv=self.csv,
        )
        check_promise(algorithm, known, protect=plan.protect, budget=plan.budget)
        check_outputs(plan, self.table)
        return algorithm, plan

    def _command(self) -> dict[str, Any]:
        """What a release says of how it was asked for: public options, no paths."""
        return told(
            command="publish",
            epsilon=self.epsilon,
            delta=self.delta,
            method=self.method,
            set=self.options,
            workload=named_workload(self.workload),
            rows=self.rows,
            neighbors=self.neighbors,
            person=self.person,
            max_rows=self.max_rows,
            dataset=self.dataset,
            infer_share=self.infer_share,
            strict=True if self.strict else None,
        )

    def _run(self, plan: Publication, make: Make, ledger: Ledger | None = None) -> TableRelease:
        return run(
            plan,
            self.table,
            make,
            ledger=ledger,
            encoding=self.encoding,
            delimiter=self.delimiter,
            tell=self.tell,
            doing="measuring and fitting",
        )
