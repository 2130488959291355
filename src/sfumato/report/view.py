"""What a report page shows, as plain numbers and text: no release, no privacy types.

A view is checked at birth. Above all, a page that is not marked internal can't carry real counts:
there is no way to render them by mistake.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from graphlib import CycleError, TopologicalSorter
from itertools import chain, combinations

from sfumato import check
from sfumato.errors import InputError

MOST_ROUNDS = 4
"""Of budgets: the parts of a bar that a reader can distinguish."""

Counts = tuple[float, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class ChanceTable:
    """How likely events are otherwise, and at most with somebody's data."""

    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Formula:
    """A figure of a page, what it is, from which inequality, and its formula with numbers in it."""

    figure: str
    what: str
    how: str
    formula: str


@dataclass(frozen=True, kw_only=True, slots=True)
class LedgerRow:
    """One entry of the ledger."""

    seq: int
    label: str
    cost: str
    hash: str
    total: str = ""
    """What all entries up to this one promise together."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Account:
    """What a page says of a ledger."""

    rows: tuple[LedgerRow, ...]
    head: str
    spent: str = ""
    """By all releases of the data set so far, this one too, where the release says so."""
    cap: str = ""
    """The most that they may cost together, where there is a cap."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SurveyAccount:
    """What a page says of a survey, which is in no ledger of a server."""

    rounds: tuple[tuple[str, str, str], ...]
    """Number of the round, answers, epsilon of each person who answered in it."""
    words: str
    """What each person was promised in all."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Figure:
    """One number with its name and how to read it."""

    name: str
    value: str
    note: str = ""
    beside: tuple[str, ...] = ()
    """The same figure of each baseline of the page."""


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
    note: str = ""
    """The expected error in words, or why it is not known."""

    def __post_init__(self) -> None:
        _same_length(f"column {self.name!r}", self.labels, self.published, self.real)
        _check_sigma(self.sigma)


@dataclass(frozen=True, kw_only=True, slots=True)
class PublishedNumber:
    """What the published values of a number say, and how far noise may have moved it: texts."""

    name: str
    declared: str
    """Limits and resolution."""
    mean: str
    error: str
    """The standard error of the mean; empty where it is not known."""
    quantiles: tuple[tuple[str, str], ...]
    """Of ``QUARTILES``: the value, and where it lies 19 times in 20; empty if not known."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PairView:
    """The counts of two columns together: ``published[i][j]`` is at x label i and y label j."""

    x: str
    y: str
    x_labels: tuple[str, ...]
    y_labels: tuple[str, ...]
    published: tuple[Counts, ...]
    real: tuple[Counts, ...] | None = None
    note: str = ""
    """The expected error in words; on an internal page how much the two differ."""

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
class CorrelationView:
    """The correlation of every two columns, from -1 to 1, in the real and the published table."""

    columns: tuple[str, ...]
    published: tuple[Counts, ...]
    real: tuple[Counts, ...]

    def __post_init__(self) -> None:
        _same_length("the correlations", self.columns, self.published, self.real)
        for row in (*self.published, *self.real):
            _same_length("the correlations", self.columns, row)

    @property
    def gaps(self) -> list[tuple[str, str, float, float]]:
        """Pairs of columns with the real and the published correlation, the worst first."""
        pairs = combinations(range(len(self.columns)), 2)
        gaps = [
            (self.columns[i], self.columns[j], self.real[i][j], self.published[i][j])
            for i, j in pairs
        ]
        return sorted(gaps, key=lambda gap: -abs(gap[2] - gap[3]))


@dataclass(frozen=True, kw_only=True, slots=True)
class ScoreRow:
    """How well a classifier guesses a label of real rows."""

    label: str
    model: str
    learned_from: str
    figures: tuple[float | None, ...]
    """Accuracy, balanced accuracy, F1, and the area under the curve where there is one."""


@dataclass(frozen=True, kw_only=True, slots=True)
class NumberView:
    """A column of numbers, published and real."""

    name: str
    kind: str
    figures: tuple[tuple[str, str, str], ...]
    """Name, published and real, as texts in the units of the column."""
    deciles: tuple[tuple[str, str, str], ...]
    """The same of the values below which shares of the rows lie."""
    errors: tuple[tuple[str, str], ...]
    """Name and error, as texts."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ValuesView:
    """Raw values, real against published: internal."""

    worst: tuple[str, ...]
    """Sentences in the units of the columns, the worst first."""
    verdict: str
    measures: tuple[Figure, ...] = ()
    numbers: tuple[NumberView, ...] = ()
    """The worst first."""
    columns: tuple[tuple[str, ...], ...] = ()
    """For each column where values are missing or do not fit: name and shares, as texts."""
    groups: tuple[tuple[str, ...], ...] = ()
    """Number, groups, error, worst group, its real and its published mean, as texts."""
    rules: tuple[tuple[str, ...], ...] = ()
    """Rule, share of published and of real rows that break it, as texts."""
    ranks: CorrelationView | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class BudgetView:
    """The epsilon of every column of a structure in one round; 0 where it has none."""

    label: str
    epsilons: tuple[Fraction, ...]
    rounded: bool = False
    """Whether some are near the truth only, so that nothing may be said of their exact sum."""

    def __post_init__(self) -> None:
        if any(epsilon < 0 for epsilon in self.epsilons):
            raise InputError(f"the budgets of {self.label!r} must be >= 0")

    @property
    def total(self) -> Fraction:
        """What all columns get together."""
        return sum(self.epsilons, Fraction(0))


@dataclass(frozen=True, kw_only=True, slots=True)
class StructureView:
    """How columns depend on each other, as far as noisy numbers show, and what each may spend."""

    columns: tuple[str, ...]
    parents: tuple[tuple[str, ...], ...] = ()
    """Of each column, in a network without circles; empty if there is no network."""
    ties: tuple[tuple[str, str, float], ...] = ()
    """Two columns and their estimated distance from independence, from 0 to 1."""
    clusters: tuple[tuple[str, ...], ...] = ()
    """Disjoint; numbered from 1 on the page."""
    shares: tuple[float, ...] = ()
    """Of each cluster in the budget, where no budgets of columns are given."""
    budgets: tuple[BudgetView, ...] = ()
    """One for each round."""
    epsilon: Fraction | None = None
    """What the release promises to each person, where that is an epsilon."""

    def __post_init__(self) -> None:
        if len(set(self.columns)) < len(self.columns):
            raise InputError("the columns of a structure must be different")
        _check_network(self.columns, self.parents)
        _check_ties(self.columns, self.ties)
        members = list(chain.from_iterable(self.clusters))
        _check_known(self.columns, members)
        if not all(self.clusters) or len(set(members)) < len(members):
            raise InputError("clusters must have members, and none in two of them")
        if self.shares and len(self.shares) != len(self.clusters):
            raise InputError(f"{len(self.clusters)} clusters but {len(self.shares)} shares")
        if len(self.budgets) > MOST_ROUNDS:
            raise InputError(f"a page shows at most {MOST_ROUNDS} rounds, got {len(self.budgets)}")
        for budget in self.budgets:
            _same_length(f"the budget {budget.label!r}", self.columns, budget.epsilons)

    @property
    def cluster_of(self) -> dict[str, int]:
        """The number of each column's cluster, from 1."""
        return {name: at for at, names in enumerate(self.clusters, 1) for name in names}

    @property
    def total(self) -> Fraction:
        """The budgets of all columns and rounds."""
        return sum((budget.total for budget in self.budgets), Fraction(0))

    @property
    def column_budgets(self) -> dict[str, Fraction]:
        """Of each column in all rounds together."""
        rounds = zip(*(budget.epsilons for budget in self.budgets), strict=True)
        sums = [sum(each, Fraction(0)) for each in rounds] or [Fraction(0)] * len(self.columns)
        return dict(zip(self.columns, sums, strict=True))

    @property
    def cluster_shares(self) -> tuple[float, ...]:
        """Of each cluster in the budget, from the budgets of its columns where they are known."""
        if not self.total:
            return self.shares
        each = self.column_budgets
        return tuple(float(sum(each[n] for n in names) / self.total) for names in self.clusters)


@dataclass(frozen=True, kw_only=True, slots=True)
class MarginalView:
    """One measured marginal and what its noise does to it."""

    names: tuple[str, ...]
    cells: int
    sigma: float
    """Standard deviation of the noise on each cell, in counts; 0 where the counts are public."""
    noise: float
    """Expected share of the rows that the noise puts into a wrong cell; it may exceed 1."""
    times: int = 1
    """How often it was measured; ``sigma`` is that of the weighted mean."""

    def __post_init__(self) -> None:
        if not self.names:
            raise InputError("a measured marginal must have a column")
        check.whole(at_least=1, cells=self.cells)
        check.whole(at_least=1, times=self.times)
        if not (0 <= self.sigma < math.inf and 0 <= self.noise < math.inf):
            raise InputError(
                f"sigma and noise must be finite and >= 0, got {self.sigma!r} and {self.noise!r}"
            )


@dataclass(frozen=True, kw_only=True, slots=True)
class MeasuredView:
    """What a graphical model was fitted to, and the tables that it is made of."""

    columns: tuple[str, ...]
    marginals: tuple[MarginalView, ...]
    ties: tuple[tuple[str, str, float], ...] = ()
    """Columns that were counted together and the published model's distance from independence,
    from 0 to 1, the strongest first."""
    cliques: tuple[tuple[tuple[str, ...], int], ...] = ()
    """The columns of each table of the model, and its cells."""

    def __post_init__(self) -> None:
        _check_known(self.columns, [name for one in self.marginals for name in one.names])
        _check_known(self.columns, [name for names, _ in self.cliques for name in names])
        _check_ties(self.columns, self.ties)

    @property
    def cells(self) -> int:
        """Of all tables of the model together."""
        return sum(cells for _, cells in self.cliques)


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
    account: Account
    survey: SurveyAccount | None = None
    """For a survey of devices: shown instead of the ledger."""
    strength: str = ""
    """What the odds are worth, in a sentence."""
    chances: ChanceTable | None = None
    """The promise once more: what one's data can do to the chance of an event."""
    formulas: tuple[Formula, ...] = ()
    """Where each figure of the odds and the chances comes from."""
    method_words: str = ""
    files: tuple[tuple[str, str], ...] = ()
    """Of the folder that holds the page: names, and what is in them."""
    structure: StructureView | None = None
    measured: MeasuredView | None = None
    numbers: tuple[PublishedNumber, ...] = ()
    columns: tuple[ColumnView, ...] = ()
    all_columns: int = 0
    """How many there are, where ``columns`` holds some of them only."""
    distances: tuple[tuple[str, float], ...] = ()
    """Of every column its total variation from the real one, the worst first: internal."""
    pairs: tuple[PairView, ...] = ()
    queries: QueryView | None = None
    measures: tuple[Figure, ...] = ()
    """On a publishable page predictions only: a comparison with the real data is internal."""
    baselines: tuple[str, ...] = ()
    """What stands beside every figure: names of tables made from the real one."""
    correlations: CorrelationView | None = None
    scores: tuple[ScoreRow, ...] = ()
    tested_on: str = ""
    """Which real rows classifiers were tested on, and whether they took part in the release."""
    values: ValuesView | None = None
    """What an internal page begins with."""
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        parts: list[ColumnView | PairView | QueryView] = [*self.columns, *self.pairs]
        if self.queries is not None:
            parts.append(self.queries)
        compared = (
            self.values or self.baselines or self.correlations or self.scores or self.distances
        )
        if not self.internal and (compared or any(part.real is not None for part in parts)):
            raise InputError(
                "the view carries real counts but is not marked internal. Leave real=None, or set "
                "internal=True and keep the page inside."
            )
        for figure in self.measures:
            if figure.beside and len(figure.beside) != len(self.baselines):
                raise InputError(
                    f"{figure.name!r} has {len(figure.beside)} figures beside it but the page has "
                    f"{len(self.baselines)} baselines"
                )


def _same_length(where: str, labels: Sequence[str], *columns: Sequence[object] | None) -> None:
    for values in columns:
        if values is not None and len(values) != len(labels):
            raise InputError(f"{where} has {len(labels)} labels but {len(values)} counts")


def _check_known(columns: Sequence[str], names: Sequence[str]) -> None:
    if unknown := [name for name in names if name not in columns]:
        raise InputError(f"{unknown[0]!r:.60} is not one of the columns")


def _check_network(columns: Sequence[str], parents: Sequence[tuple[str, ...]]) -> None:
    if not parents:
        return
    if len(parents) != len(columns):
        raise InputError(f"{len(columns)} columns but the parents of {len(parents)}")
    _check_known(columns, list(chain.from_iterable(parents)))
    if any(len(set(names)) < len(names) for names in parents):
        raise InputError("a column has the same parent twice")
    try:
        TopologicalSorter(dict(zip(columns, parents, strict=True))).prepare()
    except CycleError as error:
        raise InputError("the arrows of the network run in a circle") from error


def _check_ties(columns: Sequence[str], ties: Sequence[tuple[str, str, float]]) -> None:
    _check_known(columns, [name for one, other, _ in ties for name in (one, other)])
    pairs = {frozenset((one, other)) for one, other, _ in ties}
    if len(pairs) < len(ties) or any(len(pair) < 2 for pair in pairs):
        raise InputError("a tie is between two different columns, and stands once")
    if not all(0 <= strength <= 1 for _, _, strength in ties):
        raise InputError("the strength of a tie is between 0 and 1")


def _check_sigma(sigma: float | None) -> None:
    if sigma is not None:
        check.positive(sigma=sigma)
