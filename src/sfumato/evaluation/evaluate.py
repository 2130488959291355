"""Real against published: for the people who hold the data, never for publication."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato import check
from sfumato.engine import Table, count_marginals, open_table
from sfumato.errors import InputError
from sfumato.evaluation.dependence import (
    LabelErrors,
    check_label,
    compare_classifiers,
    information_error,
)
from sfumato.evaluation.distances import QueryErrors
from sfumato.evaluation.marginals import (
    MOST_CELLS,
    MOST_MARGINALS,
    comparable_degrees,
    compare_marginals,
    distance,
    in_batches,
    marginals_of,
)
from sfumato.privacy.ledger import Ledger
from sfumato.randomness import Rng
from sfumato.release import TableRelease
from sfumato.schema import Marginal, Range, Schema, Workload, random_ranges
from sfumato.schema.workload import sum_ranges

MOST_SHOWN_CELLS = 2_500
MOST_SHOWN_PAIRS = 6
"""So many pairs, of at most so many cells, are kept to be looked at."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TotalVariation:
    """Total variation distance over all marginals of ``degree`` columns."""

    degree: int

    def __post_init__(self) -> None:
        check.whole(at_least=1, degree=self.degree)


@dataclass(frozen=True, kw_only=True, slots=True)
class CountError:
    """Mean squared error of the counts of all marginals of ``degree`` columns."""

    degree: int

    def __post_init__(self) -> None:
        check.whole(at_least=1, degree=self.degree)


@dataclass(frozen=True, kw_only=True, slots=True)
class RangeQueries:
    """Errors of ``n`` random ranges, or of the ranges of a workload."""

    n: int = 500
    """How many; over all columns, or over pairs in turn where all have too many cells."""
    workload: Workload | None = None

    def __post_init__(self) -> None:
        check.whole(at_least=1, n=self.n)
        if self.workload is not None and not self.workload.ranges:
            raise InputError("the workload to compare has no ranges")


@dataclass(frozen=True, kw_only=True, slots=True)
class InformationError:
    """What is lost or made up of the mutual information of pairs of columns, in nats."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Misclassification:
    """How often a classifier of ``label`` errs that learned from published rows, and from real."""

    label: str


Measure = TotalVariation | CountError | RangeQueries | InformationError | Misclassification

PairCounts = list[list[int]]
"""Counts of two columns: a list for each code of the first."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Evaluation:
    """What a comparison with the real data found. Internal: it is not private."""

    tv: dict[int, float] = field(default_factory=dict)
    """Mean total variation by degree."""
    worst: dict[int, tuple[Marginal, float]] = field(default_factory=dict)
    """The marginal with the largest total variation, by degree."""
    mse: dict[int, float] = field(default_factory=dict)
    """Mean squared error of counts by degree."""
    information_error: float | None = None
    """The mean over pairs of columns of |I - I'|, their mutual information, in nats."""
    misclassification: dict[str, LabelErrors] = field(default_factory=dict)
    """By label."""
    queries: QueryErrors | None = None
    answers: tuple[tuple[Range, float, float], ...] = ()
    """Each range with its real and its published count."""
    columns: dict[str, tuple[list[int], list[int]]] = field(default_factory=dict)
    """Real and published counts of each column."""
    pairs: dict[Marginal, tuple[PairCounts, PairCounts]] = field(default_factory=dict)
    """Real and published counts of the pairs that differ most, the worst first."""
    internal: bool = True

    @property
    def rows(self) -> tuple[int, int]:
        """How many rows were compared, real and published."""
        real, published = next(iter(self.columns.values()), ([], []))
        return sum(real), sum(published)

    def to_dict(self) -> dict[str, Any]:
        """For ``--json``; carries the word internal."""
        return {
            "internal": True,
            "rows": dict(zip(("real", "published"), self.rows, strict=True)),
            "tv": {str(degree): value for degree, value in self.tv.items()},
            "worst": {str(d): {"marginal": list(m), "tv": v} for d, (m, v) in self.worst.items()},
            "mse": {str(degree): value for degree, value in self.mse.items()},
            "information_error": self.information_error,
            "misclassification": {
                label: found.to_dict() for label, found in self.misclassification.items()
            },
            "queries": self.queries.to_dict() if self.queries else None,
        }


def evaluate(
    release: TableRelease,
    *,
    against: Table,
    measures: Sequence[Measure],
    rng: Rng,
    ledger: Ledger | None = None,
) -> Evaluation:
    """Compare the published rows with the real ones; the look is written in the ledger, at cost 0.

    Args:
        release: What was published.
        against: The real table, with the same schema.
        measures: What to compare.
        rng: For random ranges and for the choice among very many marginals.
        ledger: Where the look is noted; by default the ledger of the release's data set.
    """
    if not isinstance(getattr(against, "schema", None), Schema):
        raise InputError(
            f"against must be an open table, got {type(against).__name__}. Nothing was compared. "
            "Pass sf.open_table(df, schema)."
        )
    if against.schema.columns != release.schema.columns:
        raise InputError("the table to compare with has another schema than the release")
    degrees = {m.degree for m in measures if isinstance(m, TotalVariation | CountError)}
    for degree in degrees:
        check.whole(at_least=1, at_most=len(release.schema), degree=degree)
    for measure in measures:
        if isinstance(measure, Misclassification):
            check_label(release.schema, measure.label)
    (ledger or Ledger.open(dataset=release.dataset)).look("evaluation: real against published")
    published = open_table(release.data, release.schema)
    found: dict[str, Any] = {"columns": _columns(against, published)}
    for degree in sorted(degrees):
        tv, worst, mse = compare_marginals(against, published, degree, rng)
        if TotalVariation(degree=degree) in measures:
            found.setdefault("tv", {})[degree] = tv
            found.setdefault("worst", {})[degree] = worst
        if CountError(degree=degree) in measures:
            found.setdefault("mse", {})[degree] = mse
    if TotalVariation(degree=2) in measures:
        found["pairs"] = _worst_pairs(against, published)
    return Evaluation(**found, **_compare_rest(against, published, measures, rng))


def _compare_rest(
    real: Table, published: Table, measures: Sequence[Measure], rng: Rng
) -> dict[str, Any]:
    """The measures that are not about marginals of a degree."""
    found: dict[str, Any] = {}
    for measure in measures:
        if isinstance(measure, RangeQueries):
            found |= _compare_ranges(real, published, measure, rng)
        elif isinstance(measure, InformationError):
            pairs = marginals_of(real.schema, 2, rng)
            found["information_error"] = information_error(real, published, pairs=pairs)
        elif isinstance(measure, Misclassification):
            errors = compare_classifiers(real, published, measure.label, rng=rng)
            found.setdefault("misclassification", {})[measure.label] = errors
    return found


def _columns(real: Table, published: Table) -> dict[str, tuple[list[int], list[int]]]:
    single = [(name,) for name in real.schema.names]
    a, b = count_marginals(real, single), count_marginals(published, single)
    return {name: (a[name,].tolist(), b[name,].tolist()) for name in real.schema.names}


def _worst_pairs(real: Table, published: Table) -> dict[Marginal, tuple[PairCounts, PairCounts]]:
    """The pairs that can be shown and differ most."""
    every = combinations(real.schema.names, 2)
    small = [pair for pair in every if real.schema.cells(pair) <= MOST_SHOWN_CELLS]
    part = small[:MOST_MARGINALS]
    if not part:
        return {}
    a, b = count_marginals(real, part), count_marginals(published, part)
    worst = sorted(part, key=lambda pair: -distance(a[pair], b[pair]))[:MOST_SHOWN_PAIRS]
    return {pair: (a[pair].tolist(), b[pair].tolist()) for pair in worst}


def _compare_ranges(
    real: Table, published: Table, measure: RangeQueries, rng: Rng
) -> dict[str, Any]:
    given = measure.workload
    wanted = given.ranges if given is not None else _random_ranges(real.schema, measure.n, rng)
    truth, answers = _answers(real, wanted), _answers(published, wanted)
    pairs = zip(wanted, truth.tolist(), answers.tolist(), strict=True)
    return {"queries": QueryErrors.of(truth, answers), "answers": tuple(pairs)}


def _answers(table: Table, wanted: Sequence[Range]) -> NDArray[np.int64]:
    out = np.empty(len(wanted), dtype=np.int64)
    for part in in_batches(table.schema, list(dict.fromkeys(box.marginal for box in wanted))):
        counts = count_marginals(table, part)
        places = [place for place, box in enumerate(wanted) if box.marginal in counts.marginals]
        inside = [wanted[place] for place in places]
        out[places] = sum_ranges(table.schema, inside, counts.__getitem__)
    return out


def _random_ranges(schema: Schema, n: int, rng: Rng) -> tuple[Range, ...]:
    """Ranges over all columns, or over small marginals in turn where that is too many cells.

    In a wide domain a random box of all columns would hold no row at all. Answering one sums a
    table with a border, which of 16 columns of two values has not 2^16 cells but 3^16.
    """
    if prod(column.size + 1 for column in schema) <= MOST_CELLS:
        return random_ranges(schema, n=n, rng=rng).ranges
    small = marginals_of(schema, comparable_degrees(schema, at_most=2)[-1], rng)
    chosen = [small[place] for place in rng.permutation(len(small))[:n].tolist()]
    each = -(-n // len(chosen))
    drawn: list[Range] = []
    for marginal in chosen:
        part = schema.pick(marginal)
        possible = prod(column.size * (column.size + 1) // 2 for column in part)
        drawn += random_ranges(part, n=min(each, possible), rng=rng).ranges
    return tuple(drawn[:n])
