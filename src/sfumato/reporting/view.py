"""What a report page shows, as plain numbers and text: no release, no privacy types.

A view is checked at birth. Above all, a page that is not marked internal can't carry real counts:
there is no way to render them by mistake.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from sfumato import check
from sfumato.errors import InputError

Counts = tuple[float, ...]
Unit = Literal["row", "person", "answer"]

_BET: dict[Unit, str] = {
    "row": "Suppose a reader knows every other row of the table and gives even odds to two "
    "possibilities about yours. After this release",
    "person": "Suppose a reader knows everybody else's data and gives even odds to two "
    "possibilities about yours. After this release",
    "answer": "Suppose a reader gives even odds to two possible truths about you and then sees "
    "the very answer that left your device. After that",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class LedgerRow:
    """One entry of the ledger."""

    seq: int
    label: str
    cost: str
    hash: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Figure:
    """One number with its name and how to read it."""

    name: str
    value: str
    note: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class ColumnView:
    """The counts of one column."""

    name: str
    kind: str
    labels: tuple[str, ...]
    published: Counts
    sigma: float | None = None
    """Standard deviation, in counts, of the noise that was added to each cell, where known."""
    real: Counts | None = None

    def __post_init__(self) -> None:
        _same_length(f"column {self.name!r}", self.labels, self.published, self.real)
        _check_sigma(self.sigma)


@dataclass(frozen=True, kw_only=True, slots=True)
class PairView:
    """The counts of two columns together: ``published[i][j]`` is at x label i and y label j."""

    x: str
    y: str
    x_labels: tuple[str, ...]
    y_labels: tuple[str, ...]
    published: tuple[Counts, ...]
    real: tuple[Counts, ...] | None = None

    def __post_init__(self) -> None:
        where = f"pair ({self.x!r}, {self.y!r})"
        _same_length(where, self.x_labels, self.published, self.real)
        for table in (self.published, self.real or ()):
            for row in table:
                _same_length(where, self.y_labels, row)


@dataclass(frozen=True, kw_only=True, slots=True)
class QueryView:
    """Answers to the queries of a workload."""

    labels: tuple[str, ...]
    published: Counts
    real: Counts | None = None
    sigma: float | None = None

    def __post_init__(self) -> None:
        _same_length("the queries", self.labels, self.published, self.real)
        _check_sigma(self.sigma)


@dataclass(frozen=True, kw_only=True, slots=True)
class ReportView:
    """Everything on one page, in the order in which it appears."""

    title: str
    """What the page is: a few words that follow the name of the data set."""
    dataset: str
    private: bool
    """False for a simulation, whose seeded noise anyone can remove: the page says so on top."""
    internal: bool
    """True for a page that compares with the real data: the page says so on top."""
    made: str
    """The date, as text."""
    promise: tuple[str, ...]
    odds: str
    protects: str
    not_protected: tuple[str, ...]
    facts: tuple[tuple[str, str], ...]
    ledger: tuple[LedgerRow, ...]
    ledger_head: str
    columns: tuple[ColumnView, ...] = ()
    pairs: tuple[PairView, ...] = ()
    queries: QueryView | None = None
    measures: tuple[Figure, ...] = ()
    """On a publishable page predictions only: a comparison with the real data is internal."""
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        parts: list[ColumnView | PairView | QueryView] = [*self.columns, *self.pairs]
        if self.queries is not None:
            parts.append(self.queries)
        if not self.internal and any(part.real is not None for part in parts):
            raise InputError(
                "the view carries real counts but is not marked internal. No page was made. "
                "Leave real=None, or set internal=True and keep the page inside."
            )


def odds_sentence(epsilon: float, delta: float | None, *, unit: Unit = "row") -> str:
    """The promise as a bet that a reader can check, the percentage rounded up.

    Under epsilon-DP a belief that starts at 50% ends at most at e^epsilon / (1 + e^epsilon), by
    Bayes' rule. Under (epsilon, delta)-DP single beliefs have no bound, but the share of right
    guesses has: (e^epsilon + delta) / (1 + e^epsilon), from the two inequalities on the errors of
    any test (Wasserman, Zhou 2010, arXiv 0811.2501, theorem 2.4; Kairouz, Oh, Viswanath 2015,
    arXiv 1311.0776). Both are tight. The reader is assumed to know all the rest: what a whole
    population has in common may be learned, and is no breach.

    >>> odds_sentence(1.0, None).split("release ")[1]
    'neither can look likelier than 73.2% (epsilon = 1).'
    """
    check.positive(epsilon=epsilon)
    check.one_of(_BET, unit=unit)
    if delta is not None and not 0 <= delta < 1:
        raise InputError(f"delta must be at least 0 and below 1, got {delta!r}")
    rest = math.exp(-epsilon)
    percent = math.ceil(1000 * (1 + (delta or 0.0) * rest) / (1 + rest)) / 10
    if percent > 99.9:
        end = f"one may look all but certain: epsilon = {epsilon:g} promises little."
    elif not delta:
        end = f"neither can look likelier than {percent:g}% (epsilon = {epsilon:g})."
    else:
        which = f"(epsilon = {epsilon:g}, delta = {delta:g})"
        end = f"the reader picks the right one at most {percent:g}% of the time {which}."
    return f"{_BET[unit]} {end}"


def _same_length(where: str, labels: Sequence[str], *columns: Sequence[object] | None) -> None:
    for values in columns:
        if values is not None and len(values) != len(labels):
            raise InputError(f"{where} has {len(labels)} labels but {len(values)} counts")


def _check_sigma(sigma: float | None) -> None:
    if sigma is not None:
        check.positive(sigma=sigma)
