"""What the page of a table release shows: a view from a release, all of it publishable."""

import math
from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal
from itertools import combinations

from sfumato.models.dense import DenseModel
from sfumato.models.graphical import GraphicalModel
from sfumato.models.model import answer_ranges
from sfumato.models.product import ProductModel
from sfumato.privacy.guarantees import ZCDP, ApproxDP, LocalDP, from_json
from sfumato.privacy.protection import OneRow, Protection
from sfumato.release import TableRelease
from sfumato.reporting.measured import from_independence, measured_view
from sfumato.reporting.structure import read_structure
from sfumato.reporting.trust import method_facts, origin
from sfumato.reporting.view import (
    ColumnView,
    LedgerRow,
    PairView,
    QueryView,
    ReportView,
    Unit,
    odds_sentence,
)
from sfumato.schema import Marginal, Range, Schema, Workload

MOST_PAIRS = 6
MOST_PAIR_CELLS = 2_500
MOST_QUERIES = 200

NOT_PROTECTED = (
    "What is true of everybody. If the table shows that smokers fall ill, it says so of you too, "
    "whether your row is in it or not.",
    "What somebody knows already and joins to this table.",
    "Rows beyond the declared unit: a person with more rows than the unit allows is protected "
    "less than stated.",
    "The values that the schema declares in public: categories, limits and bins.",
)


def report_view(release: TableRelease, *, workload: Workload | None = None) -> ReportView:
    """The page that may be published: numbers of the model and of the ledger only."""
    epsilon = None if isinstance(release.guarantee, ZCDP) else release.guarantee.epsilon
    structure, unusable = read_structure(
        release.method, columns=release.schema.names, epsilon=epsilon
    )
    return ReportView(
        title="a private table" if release.private else "a simulation",
        dataset=release.dataset,
        private=release.private,
        internal=False,
        made=datetime.now(UTC).strftime("%Y-%m-%d"),
        promise=_promise(release),
        odds=_odds(release),
        protects=_protects(release),
        not_protected=NOT_PROTECTED,
        facts=_facts(release),
        ledger=_ledger(release),
        ledger_head=f"{release.ledger['head']['seq']}:{release.ledger['head']['hash']}",
        structure=structure,
        measured=measured_view(release),
        columns=tuple(_column(release, name) for name in release.schema.names),
        pairs=_pairs(release),
        queries=_queries(release, workload.ranges if workload else ()),
        notes=(*_notes(release), *unusable),
    )


def _promise(release: TableRelease) -> tuple[str, ...]:
    whose = f"{release.protect}"
    promised = {
        "pure": "Every possible published table is almost as likely",
        "zcdp": "What is published has almost the same distribution",
        "approximate": "But for an event as unlikely as delta, every table is almost as likely",
        "local": "Every possible answer of a device is almost as likely",
    }[release.guarantee.kind]
    return (
        f"{promised} with {whose} as without that change: {release.guarantee}.",
        origin(release),
    )


def _protects(release: TableRelease) -> str:
    if not release.private:
        return "Nobody: this page is for trying things out, and may not be published."
    protect: Protection = release.protect
    replaced = protect.neighbors == "replace"
    if isinstance(protect, OneRow):
        if replaced:
            return "Every single row: what it says. How many rows there are is public."
        return "Every single row: whether it is in the table at all, and what it says."
    whose = f"Every single person, with up to {protect.max_rows} rows"
    if replaced:
        return f"{whose}: what their rows say. How many people there are is not hidden."
    return f"{whose}: whether they are in the table at all, and what their rows say."


def _odds(release: TableRelease) -> str:
    guarantee = release.guarantee
    unit: Unit = "row" if isinstance(release.protect, OneRow) else "person"
    if isinstance(guarantee, LocalDP):
        unit = "answer"
    if isinstance(guarantee, ZCDP):
        return ""
    delta = float(guarantee.delta) if isinstance(guarantee, ApproxDP) else None
    return odds_sentence(float(guarantee.epsilon), delta, unit=unit)


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


def _ledger(release: TableRelease) -> tuple[LedgerRow, ...]:
    return tuple(
        LedgerRow(
            seq=entry["seq"],
            label=entry["label"],
            cost=str(from_json(entry["cost"])),
            hash=entry["hash"],
        )
        for entry in release.ledger["entries"]
    )


def _column(release: TableRelease, name: str) -> ColumnView:
    column = release.schema[name]
    return ColumnView(
        name=name,
        kind=column.kind,
        labels=column.labels,
        published=tuple(release.model.marginal((name,)).tolist()),
        sigma=_sigma(release, name),
    )


def _sigma(release: TableRelease, name: str) -> float | None:
    """The noise on a column's counts, where the column or the whole table was measured."""
    schema = release.schema
    for entry in release.measurements:
        if entry["target"] == [name]:
            return float(entry["sigma_counts"]) or None  # a public total has none
        if entry["target"] == list(schema.names):
            merged = schema.cells(schema.names) / schema[name].size
            return float(entry["sigma_counts"]) * math.sqrt(merged)
    return None


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
        )
        for _, x, y, counts in tied[:MOST_PAIRS]
    )


def _pair_names(release: TableRelease) -> list[Marginal]:
    """The pairs that a page may show: all of a dense model, of a graphical one those measured."""
    if isinstance(release.model, DenseModel):
        return list(combinations(release.schema.names, 2))
    if not isinstance(release.model, GraphicalModel):
        return []
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


def _notes(release: TableRelease) -> tuple[str, ...]:
    notes = ["Numbers inside a bin are drawn uniformly; values outside the limits count inside."]
    if isinstance(release.model, ProductModel):
        notes.append("Columns are independent in this table: no pair was measured.")
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
    holds_zeros = isinstance(release.model, DenseModel | GraphicalModel)
    if release.schema.impossible and not holds_zeros:
        notes.append(
            "Rows that are declared impossible were drawn again, which moves the columns concerned "
            "away from the counts above."
        )
    return tuple(notes)
