"""What the page of a table release shows: a view from a release, all of it publishable."""

from collections.abc import Sequence
from decimal import Decimal
from itertools import combinations
from typing import TYPE_CHECKING, cast

from sfumato.models.model import answer_ranges
from sfumato.privacy.guarantees import ZCDP, ApproxDP, LocalDP
from sfumato.privacy.sensitivity import OneRow, Protection
from sfumato.release import TableRelease
from sfumato.report.measurements import (
    column_note,
    from_independence,
    marginal_sigma,
    measured_view,
    pair_note,
)
from sfumato.report.method_descriptions import method_facts, method_words, origin, read_structure
from sfumato.report.promise import TWO, Unit, account, made_on, promise_of, survey_account
from sfumato.report.view import ColumnView, PairView, QueryView, ReportView
from sfumato.schema import Marginal, Range, Schema, Workload

if TYPE_CHECKING:  # most releases have another model
    from sfumato.models.graphical.model import GraphicalModel

MOST_PAIRS = 6
"""Maps of pairs on the page."""
MOST_PAIR_CELLS = 2_500
"""A pair of more cells has no map: its cells would be too small to see."""
MOST_QUERIES = 200
"""Of a workload, on the page."""
MOST_COLUMNS = 36
"""Charts of columns; a page with more is not read to its end. The rest is in the table."""

NOT_PROTECTED = (
    "What is true of groups. If the table shows that smokers fall ill, it says so of every smoker, "
    "you too, whether your row is in it or not.",
    "What somebody knows already, or finds elsewhere, and joins to this table.",
    "What other releases about the same people reveal. Promises add up: two releases of epsilon 1 "
    "promise together what one of epsilon 2 does.",
    "The real table itself, from whoever holds it, its copies or the computer it lies on.",
)
DECLARED = "The values that the schema declares in public: categories, limits and bins."
INFERRED = (
    "The names of the columns, which are taken as public. Categories, limits and bins were found "
    "privately: they are within the promise."
)
ONE_ROW = (
    "One row counts as one person here. Whoever has several rows is protected for each of them, "
    "and for all together less than stated."
)
ONE_PERSON = "Of a person with more rows, only that many were counted."


def report_view(
    release: TableRelease, *, workload: Workload | None = None, csv: bool = False
) -> ReportView:
    """The page that may be published: numbers of the model and of the ledger only.

    Args:
        release: What the page is about.
        workload: Its ranges are answered on the page.
        csv: Whether the folder of the page holds the table as CSV too.
    """
    epsilon = None if isinstance(release.guarantee, ZCDP) else release.guarantee.epsilon
    structure, unusable = read_structure(
        release.method, columns=release.schema.names, epsilon=epsilon
    )
    replaced = release.protect.neighbors == "replace"
    promise = promise_of(release.ledger, release.guarantee, unit=_unit(release), replaced=replaced)
    return ReportView(
        title="a private table" if release.private else "a simulation",
        dataset=release.dataset,
        private=release.private,
        internal=False,
        made=made_on(release.ledger),
        promise=_promise(release),
        odds=promise.odds(),
        strength=promise.strength(),
        chances=promise.chances(),
        formulas=promise.formulas(),
        protects=_protects(release),
        not_protected=(*NOT_PROTECTED, INFERRED if "inferred" in release.method else DECLARED),
        facts=_facts(release),
        method_words=method_words(release.method),
        account=account(release.ledger, release.guarantee),
        survey=survey_account(release.method, release.ledger, release.guarantee),
        files=_files(release, csv=csv),
        structure=structure,
        measured=measured_view(release),
        columns=tuple(_column(release, name) for name in release.schema.names[:MOST_COLUMNS]),
        all_columns=len(release.schema),
        pairs=_pairs(release),
        queries=_queries(release, workload.ranges if workload else ()),
        notes=(*_notes(release), *unusable),
    )


def _promise(release: TableRelease) -> tuple[str, ...]:
    whose = f"{release.protect}"
    promised = {
        "pure": "Every possible published table is almost as likely",
        "zcdp": "What is published has almost the same distribution",
        "approximate": f"But for an event as unlikely as delta{_rarity(release)}, every table is "
        "almost as likely",
        "local": "Every possible answer of a device is almost as likely",
    }[release.guarantee.kind]
    strict = "This holds between tables that fit the schema: others were refused."
    return (
        f"{promised} with {whose} as without that change: {release.guarantee}.",
        *((strict,) if release.schema.file.strict else ()),
        origin(release),
    )


def _rarity(release: TableRelease) -> str:
    """A delta as people say it."""
    guarantee = release.guarantee
    return f" (1 in {int(1 / guarantee.delta):,})" if isinstance(guarantee, ApproxDP) else ""


def _protects(release: TableRelease) -> str:
    if not release.private:
        return "Nobody: this page is for trying things out, and may not be published."
    protect: Protection = release.protect
    replaced = protect.neighbors == "replace"
    if isinstance(protect, OneRow):
        if replaced:
            protected = "Every single row: what it says. How many rows there are is public."
        else:
            protected = (
                f"Every single row: whether it is in the table at all, and what it says. {TWO}"
            )
        return f"{protected} {ONE_ROW}"
    whose = f"Every single person, with up to {protect.max_rows} rows"
    if replaced:
        protected = f"{whose}: what their rows say. How many people there are is not hidden."
    else:
        protected = f"{whose}: whether they are in the table at all, and what their rows say. {TWO}"
    return f"{protected} {ONE_PERSON}"


def _unit(release: TableRelease) -> Unit:
    if isinstance(release.guarantee, LocalDP):
        return "answer"
    return "row" if isinstance(release.protect, OneRow) else "person"


def _files(release: TableRelease, *, csv: bool) -> tuple[tuple[str, str], ...]:
    """What a publication puts beside the page."""
    noisy, inferred = release.noisy is not None, "inferred" in release.method
    files = {
        "data.parquet": f"the table: {release.data.num_rows:,} rows, with their types",
        "data.csv": "the same as text" if csv else "",
        "marginals.parquet": "every noisy count with its standard error" if noisy else "",
        "marginals.csv": "the same as text" if csv and release.marginals_fit_csv else "",
        "model.npz": "the model, to draw more rows from",
        "schema.json": "the columns as they were inferred, with noise" if inferred else "",
        "release.json": "promise, method, schema and ledger, for programs",
    }
    return tuple((name, what) for name, what in files.items() if what)


def _facts(release: TableRelease) -> tuple[tuple[str, str], ...]:
    method = dict(release.method)
    facts = [("Method", str(method.pop("name")))]
    if "reason" in method:
        facts.append(("Chosen because", str(method.pop("reason"))))
    facts += method_facts(release)
    options = {key: value for key, value in method.items() if isinstance(value, int)}
    if options:
        facts.append(("Options", ", ".join(f"{key} {value}" for key, value in options.items())))
    facts += [
        ("Guarantee", _guarantee(release)),
        ("Protected", str(release.protect) if release.private else "nobody"),
        ("Rows published", f"{release.data.num_rows:,}"),
        ("Columns", str(len(release.schema))),
        ("Combinations of values", _large(release.schema.cells(release.schema.names))),
        ("Measurements", f"{len(release.measurements):,}"),
        *_public_facts(release),
        ("Made with", f"sfumato {release.versions['sfumato']}"),
    ]
    return tuple(facts)


def _public_facts(release: TableRelease) -> list[tuple[str, str]]:
    """What the publisher declared to be public knowledge, beside the columns."""
    facts = []
    if "inferred" in release.method:
        facts.append(("Schema", "found privately, within the promise; see the ledger"))
    if known := release.method.get("public_totals"):
        facts.append(("Public totals", ", ".join(known)))
    if excluded := release.schema.impossible:
        facts.append(("Declared impossible", f"{len(excluded):,} combinations of values"))
    return facts


def _large(number: int) -> str:
    """Up to a trillion every digit; above it three, also beyond the reach of a float."""
    return f"{number:,}" if number <= 10**12 else f"{Decimal(number):.2e}"


def _guarantee(release: TableRelease) -> str:
    if not release.private:
        return "none: a simulation"
    return f"{release.guarantee} ({release.guarantee.kind} differential privacy)"


def _column(release: TableRelease, name: str) -> ColumnView:
    column = release.schema[name]
    sigma = marginal_sigma(release, (name,))
    return ColumnView(
        name=name,
        kind=column.kind,
        labels=column.labels,
        published=tuple(release.model.marginal((name,)).tolist()),
        sigma=sigma or None,  # a public total has none
        note=column_note(release, name, sigma),
    )


def _pairs(release: TableRelease) -> tuple[PairView, ...]:
    """The pairs that the model ties most, by distance from independence: post-processing."""
    if not release.model.total > 0:
        return ()
    schema, model = release.schema, release.model
    tied = []
    for x, y in _pair_names(release):
        if schema.cells((x, y)) <= MOST_PAIR_CELLS:
            counts = model.marginal((x, y))
            tied.append((from_independence(counts), x, y, counts))
    tied.sort(key=lambda entry: -entry[0])
    return tuple(
        PairView(
            x=x,
            y=y,
            x_labels=schema[x].labels,
            y_labels=schema[y].labels,
            published=tuple(tuple(row) for row in counts.tolist()),
            note=pair_note(release, (x, y)),
        )
        for _, x, y, counts in tied[:MOST_PAIRS]
    )


def _pair_names(release: TableRelease) -> list[Marginal]:
    """The pairs that a page may show: all of a dense model, of a graphical one those measured."""
    if release.model_kind == "dense":
        return list(combinations(release.schema.names, 2))
    return [tuple(pair) for pair in release.method.get("measured", ()) if len(pair) == 2]


def _queries(release: TableRelease, ranges: Sequence[Range]) -> QueryView | None:
    if not ranges:
        return None
    shown = ranges[:MOST_QUERIES]
    return QueryView(
        labels=tuple(range_label(release.schema, box) for box in shown),
        published=tuple(answer_ranges(release.model, shown).tolist()),
    )


def range_label(schema: Schema, box: Range) -> str:
    """A range in the words of its columns: ``age 10 to 11, member true``."""
    parts = []
    for name, low, high in box.bounds:
        labels = schema[name].labels
        ends = labels[low] if low == high else f"{labels[low]} to {labels[high]}"
        parts.append(f"{name} {ends}")
    return ", ".join(parts)


def _has_independent_columns(release: TableRelease) -> bool:
    """Whether the model is a graphical one that was made of tables of single columns."""
    if release.model_kind != "graphical" or "measured" in release.method:
        return False
    return all(len(names) == 1 for names in cast("GraphicalModel", release.model).cliques)


def _notes(release: TableRelease) -> tuple[str, ...]:
    notes = [
        "Numbers inside a bin are drawn uniformly. Values outside the limits count as the nearest "
        "inside; other values that are not declared as other, missing or the first one."
    ]
    if _has_independent_columns(release):
        measured = any(len(one.get("target", ())) == 2 for one in release.measurements)
        measured |= (
            any(release.method.get("asked_about_pairs") or ()) or "network" in release.method
        )
        why = "pairs were measured, but the answers are not clear enough to use"
        none = "no pair was measured"
        notes.append(f"Columns are independent in this table: {why if measured else none}.")
    if unseen := release.method.get("never_measured"):
        notes.append(f"Never measured, spread evenly by assumption: {', '.join(unseen)}.")
    if release.noisy is not None:
        notes.append(
            f"marginals.parquet beside the table holds the {release.noisy.num_rows:,} counts as "
            "they were measured, each with the standard error of its noise: about 19 times in 20 "
            "the true count is less than two of them away. Some lie below zero, and sums over "
            "different columns do not agree."
        )
    if release.method.get("public_totals"):
        notes.append("Public totals are no secret: the promise is about everything else.")
    holds_zeros = release.model_kind == "dense" or "measured" in release.method
    if release.schema.impossible and not holds_zeros:
        notes.append(
            "Rows that are declared impossible were drawn again, which moves the columns concerned "
            "away from the counts above."
        )
    return tuple(notes)
