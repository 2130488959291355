"""Publishing a table and comparing it with the real one, from file to folder.

Order of a publication: everything that can be checked without the data, then the cap, then the
format of the table, then the charge, then the look.
"""

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from sfumato import check, reporting
from sfumato.curator import Curator
from sfumato.engine import Table, open_table
from sfumato.errors import InputError, StorageError
from sfumato.evaluation import (
    Evaluation,
    Measure,
    RangeQueries,
    TotalVariation,
    comparable_degrees,
    evaluate,
)
from sfumato.models.dense import CELL_LIMIT
from sfumato.privacy.composition import Cap
from sfumato.privacy.ledger import Ledger
from sfumato.privacy.protection import Neighbors, OnePerson, OneRow, Protection
from sfumato.publishing import Auto, algorithm_named, budget_for, publish
from sfumato.randomness import Rng, secure_rng, simulation_rng
from sfumato.release import TableRelease, check_free, check_usable, new_folder
from sfumato.reporting.contents import internal_view, report_view
from sfumato.schema import Schema, Workload, all_marginals, load_workload
from sfumato.synthesis import Algorithm

_INTERNAL = "-internal"
_COMPARISON = ("internal.html", "internal.json")

Tell = Callable[[str, int, int], None]
"""Progress: what is being done, how much of it is, how much there is; 0 of 0 begins a phase."""


@dataclass(frozen=True, kw_only=True)
class Publication:
    """All that `sfumato publish` was told, checked before the table is opened."""

    schema: Schema
    budget: Cap
    protect: Protection
    algorithm: Algorithm | Auto
    workload: Workload
    dataset: str
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
    seed: int | None = None,
    tell: Tell | None = None,
) -> TableRelease:
    """Publish a table: `sfumato publish` in one call.

    Args:
        table: A path (csv, parquet, json, sqlite), or a data frame.
        schema: The public description of its columns, as a schema, as the content of its file,
            or as the file.
        epsilon: The budget of this release.
        delta: Allows noise that may be smaller for many measurements; without it the guarantee
            is pure.
        method: ``auto``, ``histogram``, ``independent`` or ``mwem``.
        workload: ``"1-way"``, ``"2-way"``, ``"3-way"``, a workload file, or a workload.
        options: A method's own options as text, for example ``{"rounds": "30"}``.
        rows: The table's true number of rows, if that is public knowledge; saves budget.
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
        seed: Make a simulation that protects nobody, into ``OUT-internal``.
        tell: Called with the progress.
    """
    known = loaded_schema(schema)
    wanted = _workload(known, workload)
    _check_ranges(wanted)
    _check_rows(rows, neighbors)
    algorithm = algorithm_named(method, workload=wanted, rows=rows, options=options or {})
    algorithm.check(known)
    plan = Publication(
        schema=known,
        budget=budget_for(algorithm, known, epsilon=epsilon, delta=delta),
        protect=_protection(neighbors, person, max_rows),
        algorithm=algorithm,
        workload=wanted,
        dataset=dataset_name(known, dataset),
        out=None if out is None else publishable(Path(out)),
        ledger=None if ledger is None else Path(ledger),
        cap=cap,
        seed=seed,
        evaluate=evaluate,
        force=force,
        csv=csv,
    )
    _check_outputs(plan, table)
    return _run(plan, table, encoding=encoding, tell=tell or silent)


def evaluate_release(
    folder: str | Path,
    *,
    against: Any,
    workload: str | Path | None = None,
    ledger: str | Path | None = None,
    encoding: str = "utf-8",
) -> Evaluation:
    """Compare a published folder with the real table: `sfumato evaluate` in one call.

    Writes ``internal.html`` and ``internal.json`` into ``FOLDER-internal``.
    """
    folder = Path(folder)
    release = TableRelease.load(folder)
    chosen = _workload(release.schema, workload) if workload is not None else None
    if chosen is not None:
        _check_ranges(chosen)
    table = open_table(against, release.schema, encoding=encoding)
    table.validate()
    _check_internal(internal_folder(folder))
    book = Ledger.open(ledger, dataset=release.dataset, create=False)
    found = _evaluate(release, table, chosen, book, rng=simulation_rng(0))
    _write_internal(internal_folder(folder), release, found)
    return found


def internal_folder(folder: Path) -> Path:
    """Beside a folder that may be published, the one that may not."""
    return folder.with_name(folder.name + _INTERNAL)


def publishable(out: Path) -> Path:
    """Refuse a name that is none, or that would mark the folder as not to be published."""
    if out.name in ("", ".."):
        raise InputError(f"out must name a folder, got {str(out)!r}. Nothing was spent.")
    if out.name.casefold().endswith(_INTERNAL):
        raise InputError(
            f"the output {out} ends in {_INTERNAL}, the name of folders that may not be "
            "published. Nothing was spent. Choose another --out."
        )
    return out


def _run(plan: Publication, source: Any, *, encoding: str, tell: Tell) -> TableRelease:
    rng = secure_rng() if plan.seed is None else simulation_rng(plan.seed)
    tell("checking the table", 0, 0)
    table = open_table(source, plan.schema, encoding=encoding)
    ledger = Ledger.open(plan.ledger, dataset=plan.dataset, cap=plan.cap)
    curator = Curator(
        table, protect=plan.protect, budget=plan.budget, ledger=ledger, rng=rng, progress=tell
    )
    tell("measuring and fitting", 0, 0)
    release = publish(plan.algorithm, curator)
    if plan.folder is not None:
        tell("writing", 0, 0)
        _write(plan, plan.folder, release)
        if plan.force:
            _remove_comparison(internal_folder(plan.folder))
    if plan.evaluate and plan.out is not None:
        tell("comparing with the real table", 0, 0)
        found = _evaluate(release, table, plan.workload, ledger, rng=rng)
        _write_internal(internal_folder(plan.out), release, found)
    return release


def _write(plan: Publication, folder: Path, release: TableRelease) -> None:
    with new_folder(folder, force=plan.force, internal=not release.private) as inside:
        release.write_into(inside, csv=plan.csv)
        reporting.write(report_view(release, workload=plan.workload), inside / "report.html")


def _evaluate(
    release: TableRelease, table: Table, workload: Workload | None, ledger: Ledger, *, rng: Rng
) -> Evaluation:
    boxes = math.prod(column.size * (column.size + 1) // 2 for column in release.schema)
    chosen = workload if workload is not None and workload.ranges else None
    queries = RangeQueries(n=min(500, boxes), workload=chosen)
    measures: list[Measure] = [
        TotalVariation(degree=degree) for degree in comparable_degrees(release.schema)
    ]
    return evaluate(release, against=table, measures=[*measures, queries], rng=rng, ledger=ledger)


def _write_internal(folder: Path, release: TableRelease, found: Evaluation) -> None:
    _check_internal(folder)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise StorageError(f"can't write {folder}: {error.strerror}") from None
    text = json.dumps(found.to_dict(), indent=1)
    reporting.write_text(text + "\n", folder / "internal.json")
    reporting.write(internal_view(release, found), folder / "internal.html")


def _remove_comparison(folder: Path) -> None:
    """An evaluation of the release that was replaced says nothing of the new one."""
    if folder.is_symlink() or not folder.is_dir():
        return
    try:
        for name in _COMPARISON:
            (folder / name).unlink(missing_ok=True)
    except OSError as error:
        raise StorageError(
            f"the release is written, but the old evaluation in {folder} can't be removed: "
            f"{error.strerror}. Remove it; it is not of this release."
        ) from None


def _check_internal(folder: Path) -> None:
    """Refuse a folder for real counts that may be published, or that leads somewhere else."""
    for path in (folder, *(folder / name for name in _COMPARISON)):
        if path.is_symlink():
            raise InputError(f"{path} is a link: real counts are written to no other place.")
    kept = folder / "release.json"
    if not kept.exists():
        return
    try:
        private = json.loads(kept.read_text(encoding="utf-8"))["private"]
    except (OSError, ValueError, KeyError, TypeError):
        private = None
    if private is not False:
        raise InputError(
            f"{folder} holds a release that may be published: real counts do not belong there. "
            "Move it, or choose another --out."
        )


def _check_outputs(plan: Publication, table: Any) -> None:
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
        _check_internal(internal_folder(plan.out))
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


def _workload(schema: Schema, given: Workload | str | Path | None) -> Workload:
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


def _check_ranges(workload: Workload) -> None:
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
