"""What the page of a table release shows: a view from a release, all of it publishable.

Also what was measured, the noise of each figure, and what ties columns: from the published model
and what ``release.json`` says of the measurements; what the file says of ranges, totals or unknown
columns is passed over. Models weigh all measurements together, so they are usually nearer to the
truth; where nothing is known of a figure, a sentence says so.
"""

import math
from collections.abc import Sequence
from decimal import Decimal
from itertools import combinations
from typing import TYPE_CHECKING, Final, cast

import numpy as np
from numpy.typing import NDArray

from sfumato import charts
from sfumato.models.model import PublishedRows, answer_ranges, total_variation
from sfumato.models.prediction import unprojected_noise
from sfumato.privacy.guarantees import ZCDP, ApproxDP, LocalDP, PureDP
from sfumato.privacy.sensitivity import OneRow, Protection
from sfumato.release import TableRelease
from sfumato.report.method_descriptions import method_facts, method_words, origin, read_structure
from sfumato.report.promise import TWO, Unit, account, made_on, promise_of, survey_account
from sfumato.report.view import (
    ColumnView,
    MarginalView,
    MeasuredView,
    PairView,
    PublishedNumber,
    QueryView,
    ReportView,
)
from sfumato.schema import Marginal, Range, Schema, Workload
from sfumato.schema.classes import in_classes
from sfumato.schema.columns import Column, GridColumn

if TYPE_CHECKING:
    from sfumato.models.graphical.model import GraphicalModel

MOST_PAIRS = 6
"""Maps of pairs on the page."""
MOST_PAIR_CELLS = 2_500
"""A pair of more cells has no map: its cells would be too small to see."""
MOST_QUERIES = 200
"""Of a workload, on the page."""
MOST_MOVED = 6
"""Columns of which the notes say how far the repair of rules moved them."""
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
DECLARED = "What the schema declares in public: categories, limits, and bins where it has any."
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
        numbers=_numbers(release),
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
    if release.schema.rules:
        facts.append(("Rules kept in every row", ", ".join(map(str, release.schema.rules))))
    return facts


def _large(number: int) -> str:
    """Up to a trillion every digit; above it three, also beyond the reach of a float."""
    return f"{number:,}" if number <= 10**12 else f"{Decimal(number):.2e}"


def _guarantee(release: TableRelease) -> str:
    if not release.private:
        return "none: a simulation"
    return f"{release.guarantee} ({release.guarantee.kind} differential privacy)"


def many_bins(column: Column) -> bool:
    """Whether a column has more privately found bins than a chart has bars: classes are shown."""
    return (
        isinstance(column, GridColumn) and column.bins is not None and column.size > charts.MAX_BARS
    )


def _numbers(release: TableRelease) -> tuple[PublishedNumber, ...]:
    if not any(isinstance(column, GridColumn) for column in release.schema):
        return ()
    from sfumato.report.numbers_section import published_numbers

    return published_numbers(release)


def _column(release: TableRelease, name: str) -> ColumnView:
    column = release.schema[name]
    sigma = marginal_sigma(release, (name,))
    counts = release.model.marginal((name,))
    labels, counts = in_classes(column, counts) if many_bins(column) else (column.labels, counts)
    return ColumnView(
        name=name,
        kind=column.kind,
        labels=labels,
        published=tuple(counts.tolist()),
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
        "Values outside the limits count as the nearest inside; other values that are not declared "
        "as other, missing or the first one. Numbers that share a count are drawn evenly."
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
    notes += _rule_notes(release)
    return tuple(notes)


def _rule_notes(release: TableRelease) -> list[str]:
    """What keeping the rules between columns changed in the drawn rows: their price."""
    price = release.method.get("rules")
    if not isinstance(price, dict) or not release.schema.rules:
        return []
    moved = price.get("moved")
    share, changed, rows = (price.get(key) for key in ("repaired_share", "changed", "rows"))
    figures = (share, changed, rows, *(moved.values() if isinstance(moved, dict) else [None]))
    if not all(isinstance(each, int | float) for each in figures):
        return []  # a file that was edited may hold anything
    if not share:
        return ["Every drawn row kept the rules between columns as it was drawn."]
    shifts = sorted(cast("dict[str, float]", moved).items(), key=lambda entry: -entry[1])
    most = ", ".join(f"{name} {_share(shift)}" for name, shift in shifts[:MOST_MOVED])
    return [
        f"{_share(cast('float', share))} of the drawn rows broke a rule between columns. Values "
        "were exchanged among rows of about the same values "
        f"({cast('int', changed):,} rows changed), and where that was not enough moved to the "
        "nearest that keep the rules. Single columns moved by at most this share of the rows, up "
        f"to any value: {most}."
    ]


def _share(share: float) -> str:
    return "0" if share == 0 else f"{share:.2%}" if share >= 0.0001 else "less than 0.01%"


_UNITS: Final = ((2**20, "MB"), (2**10, "kB"))
"""Units of a size, the largest first: powers of 1,024 by convention."""

Ties = tuple[tuple[str, str, float], ...]


def measured_view(release: TableRelease) -> MeasuredView | None:
    """What was measured and how it ties columns; None where no graphical model was fitted to it."""
    if "measured" not in release.method:
        return None
    from sfumato.models.graphical.junction_tree import cells as cells_of

    model = cast("GraphicalModel", release.model)
    noises = _noises(release)
    marginals = [_marginal(release, model, names, each) for names, each in noises.items()]
    pairs = zip(model.cliques, model.tree.cliques, strict=True)
    cliques = [(names, cells_of(model.tree.sizes, clique)) for names, clique in pairs]
    return MeasuredView(
        columns=release.schema.names,
        marginals=tuple(sorted(marginals, key=lambda one: (-one.noise, one.names))),
        ties=_ties(model, list(noises)),
        cliques=tuple(sorted(cliques, key=lambda clique: -clique[1])),
    )


def from_independence(counts: NDArray[np.float64]) -> float:
    """Total variation of a pair from independent columns with the same single counts.

    The share of rows that would have to change to make the columns independent, if the counts of
    each column stay the same: only one independent table has these counts.

    >>> from_independence(np.array([[50.0, 0.0], [0.0, 50.0]]))
    0.5
    """
    product = np.outer(counts.sum(axis=1), counts.sum(axis=0))
    return min(1.0, total_variation(counts, product))


def matrix_ties(ties: Ties) -> Ties:
    """The ties that a matrix can show: those of the columns with the strongest ties.

    Args:
        ties: The strongest first.
    """
    columns: set[str] = set()
    shown = []
    for tie in ties:
        joined = columns.union(tie[:2])
        if len(joined) <= charts.MAX_HEAT_CELLS:
            columns = joined
            shown.append(tie)
    return tuple(shown)


def measured_sentence(view: MeasuredView) -> str:
    """How many marginals were measured, by how many columns they have.

    >>> one = MarginalView(names=("a",), cells=2, sigma=1.0, noise=0.1)
    >>> measured_sentence(MeasuredView(columns=("a",), marginals=(one,)))
    '1 single column was counted with noise.'
    """
    noisy = [len(one.names) for one in view.marginals if one.sigma > 0]
    numbers = {
        "single column": noisy.count(1),
        "pair": noisy.count(2),
        "larger set": sum(size > 2 for size in noisy),
    }
    parts = [_several(count, what) for what, count in numbers.items() if count]
    listed = " and ".join(filter(None, (", ".join(parts[:-1]), *parts[-1:]))) or "Nothing"
    sentence = f"{listed} {'was' if len(noisy) < 2 else 'were'} counted with noise"
    public = len(view.marginals) - len(noisy)
    known = f"{_several(public, 'table')} of counts {'was' if public == 1 else 'were'} public"
    return f"{sentence}; {known}." if public else f"{sentence}."


def size_sentence(view: MeasuredView) -> str:
    """How large the model is.

    >>> size_sentence(MeasuredView(columns=("a",), marginals=(), cliques=((("a",), 3),)))
    'The model is 1 table with 3 cells: 24 bytes.'
    """
    from sfumato.models.graphical.junction_tree import BYTES_PER_CELL

    size = view.cells * BYTES_PER_CELL
    unit, name = next((one for one in _UNITS if size >= one[0]), (1, "bytes"))
    text = f"{charts.readable(size / unit)} {name}"
    tables = _several(len(view.cliques), "table")
    return f"The model is {tables} with {_several(view.cells, 'cell')}: {text}."


def _several(count: int, what: str) -> str:
    return f"{count:,} {what}" + ("" if count == 1 else "s")


def _noises(release: TableRelease) -> dict[Marginal, list[tuple[float, int]]]:
    """The noise of every measurement of each marginal of known columns, and the number of counts.

    That number is 0 where the file does not tell that codes were merged.
    """
    schema = release.schema
    noises: dict[Marginal, list[tuple[float, int]]] = {}
    for entry in release.measurements:
        target = entry["target"]
        if target and isinstance(target, list | tuple) and all(n in schema.names for n in target):
            one = float(entry["sigma_counts"]), int(entry.get("cells", 0))
            noises.setdefault(schema.marginal(target), []).append(one)
    return noises


def _marginal(
    release: TableRelease,
    model: "GraphicalModel",
    names: Marginal,
    noises: list[tuple[float, int]],
) -> MarginalView:
    """Several measurements of one marginal count as their mean, weighted by precision.

    1 / sigma^2 = sum over measurements of 1 / sigma_i^2. Rare values of columns that are measured
    together were merged before; of a single column, every value was counted. A number whose bins
    were found privately was counted in ever finer bins: told is what had the least noise.
    """
    sigmas = [sigma for sigma, _ in noises]
    exact = not all(sigmas)
    schema = release.schema if len(names) == 1 or exact else model.view.schema
    cells = schema.cells(names)
    if len(names) == 1 and not exact and any(number for _, number in noises):
        sigma, number = min(noises)
        cells = number or cells
    else:
        sigma = 0.0 if exact else 1 / math.sqrt(sum(one**-2 for one in sigmas))
    noise = unprojected_noise(
        cells=cells,
        sigma_counts=sigma,
        rows=max(1.0, model.total),
        laplace=isinstance(release.guarantee, PureDP),
    )
    return MarginalView(names=names, cells=cells, sigma=sigma, noise=noise, times=len(sigmas))


def _ties(model: "GraphicalModel", measured: list[Marginal]) -> Ties:
    """Every two columns that were measured together, by the model's distance from independence."""
    pairs = sorted({pair for names in measured for pair in combinations(names, 2)})
    ties = [
        (*pair, from_independence(counts))
        for pair, counts in zip(pairs, model.coarse_marginals(pairs), strict=True)
    ]
    return tuple(sorted(ties, key=lambda tie: (-tie[2], tie[:2])))


Floats = NDArray[np.float64]

PUBLIC: Final = "These counts are public: no noise was added to them."
UNSEEN: Final = "Never measured: spread evenly, by assumption."
RANDOMIZED: Final = (
    "Each row was randomized before it was counted, so the error of a count is not given here."
)
STEPWISE: Final = (
    "The method moves its table towards noisy answers step by step, so the error is not known."
)
BINS: Final = (
    "Its bins were found privately, finer where more rows are; where there are many, bars are "
    "public classes."
)
BINS_WITH_ERRORS: Final = f"{BINS} The errors of its mean and its quartiles stand above."
UNKNOWN: Final = "Only sums over other cells were measured, so the error of a bar is not known."


def marginal_sigma(release: TableRelease, names: Marginal) -> float | None:
    """The standard deviation of the noise on each cell of a marginal; 0 where it is public.

    Several measurements of it count as their mean, weighted by precision: 1 / sigma^2 = sum of
    1 / sigma_i^2. Where only larger marginals were measured, the best of them, added up to this
    one: sigma^2 times the cells that fall together. None where it is not known.
    """
    if _agrees_with_none(release):
        return None
    own, larger = [], []
    for entry in release.measurements:
        target = entry["target"]
        if not isinstance(target, list | tuple) or not set(names) <= set(target):
            continue  # a range is written as text, and says nothing of single cells
        if not set(target) <= set(release.schema.names):
            continue
        sigma = float(entry["sigma_counts"])
        if len(target) == len(names):
            if "cells" in entry and len(names) == 1:
                return None  # of bins that were found privately, each count has its own error
            own.append(sigma)
        else:
            rest = tuple(name for name in target if name not in names)
            larger.append(sigma * math.sqrt(release.schema.cells(rest)))
    if own:
        return 0.0 if not all(own) else 1 / math.sqrt(sum(sigma**-2 for sigma in own))
    return min(larger, default=None)


def column_note(release: TableRelease, name: str, sigma: float | None) -> str:
    """The expected error of a column's bars in counts and points, or why it is not given."""
    if sigma == 0:
        return PUBLIC
    if getattr(release.schema[name], "bins", None) is not None:
        stated = release.method.get("number_errors")
        return BINS_WITH_ERRORS if isinstance(stated, dict) and name in stated else BINS
    if sigma is None:
        return _why_unknown(release, name)
    cells = charts.cells_per_bar(release.schema[name].size)
    reach = sigma * math.sqrt(cells)
    points = 100 * reach / max(1.0, release.model.total)
    bar = "each bar" if cells == 1 else f"each bar of {cells} cells"
    return (
        f"Expected error of {bar}: ±{charts.readable(reach)} rows, ±{points:.2g} percentage "
        "points of all. Whiskers are twice as long."
    )


def pair_note(release: TableRelease, pair: Marginal) -> str:
    """The expected total variation of a pair from its noise, as a share of rows."""
    sigma = marginal_sigma(release, pair)
    if sigma == 0:
        return PUBLIC
    if sigma is None and release.method.get("name") == "mwem":
        return STEPWISE
    if sigma is None:
        return "These two were not measured together: what the model says of them is inferred."
    counts = _measured_cells(release, pair)
    share = misplaced(counts, sigma=sigma, laplace=isinstance(release.guarantee, PureDP))
    if share >= 1:
        return "Expected error: the noise is larger than all counts together."
    text = f"{100 * share:.2g}" if share < 0.995 else "nearly 100"
    return f"Expected error: up to about {text}% of the rows in a wrong cell, from noise."


def misplaced(counts: Floats, *, sigma: float, laplace: bool) -> float:
    """Expected total variation from noise on every cell, where what falls below zero is cut.

    sum over cells of E|max(c + x, 0) - c| / (2n). For Gaussian noise that is sigma (2 phi(0) -
    phi(c / sigma)) + c Phi(-c / sigma); for Laplace noise of scale b it is b (1 - exp(-c/b) / 2).
    The published counts stand in for the real ones.

    >>> round(misplaced(np.full(10, 100.0), sigma=10.0, laplace=False), 4)
    0.0399
    """
    total, positive = float(counts.sum()), np.maximum(counts, 0.0)
    if not total > 0:
        return 1.0
    if laplace:
        scale = sigma / math.sqrt(2)
        moved = scale * (1 - np.exp(-positive / scale) / 2)
    else:
        peak = 1 / math.sqrt(2 * math.pi)
        density = peak * np.exp(-((positive / sigma) ** 2) / 2)
        moved = sigma * (2 * peak - density) + positive * _tail(positive / sigma)
    return float(moved.sum()) / (2 * total)


def _tail(heights: Floats) -> Floats:
    """The probability that a standard normal number is below minus each height."""
    flat = [math.erfc(height / math.sqrt(2)) / 2 for height in heights.reshape(-1).tolist()]
    return np.array(flat).reshape(heights.shape)


def _measured_cells(release: TableRelease, pair: Marginal) -> Floats:
    """The pair as it was measured: rare values merged where the model merged them."""
    if release.model_kind == "graphical":
        coarse = cast("GraphicalModel", release.model).coarse_marginals([pair])
        return np.asarray(next(iter(coarse)), dtype=np.float64)
    return np.asarray(release.model.marginal(pair), dtype=np.float64)


def _agrees_with_none(release: TableRelease) -> bool:
    """Whether what is published was not fitted to the measurements that the release lists."""
    randomized = isinstance(release.model, PublishedRows)
    as_they_came = randomized and release.method.get("published") != "redrawn"
    return as_they_came or release.method.get("name") == "mwem"


def _why_unknown(release: TableRelease, name: str) -> str:
    if name in release.method.get("never_measured", ()):
        return UNSEEN
    if release.method.get("name") == "mwem":
        return STEPWISE
    if isinstance(release.model, PublishedRows) or "trust" in release.method:
        return RANDOMIZED
    return UNKNOWN
