"""Real against published: for the people who hold the data, never for publication."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations
from math import comb, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato import check
from sfumato.engine import Table, count_marginals, open_table
from sfumato.errors import InputError
from sfumato.evaluation.distances import QueryErrors, mean_squared_error, total_variation
from sfumato.privacy.ledger import Ledger
from sfumato.randomness import Rng
from sfumato.release import TableRelease
from sfumato.schema import Marginal, Range, Schema, Workload, random_ranges
from sfumato.schema.workload import sum_ranges

MOST_MARGINALS = 1_000
"""Of more marginals than this a random thousand is compared."""
MOST_CELLS = 5_000_000
"""A marginal with more cells than this is not compared."""
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


Measure = TotalVariation | CountError | RangeQueries

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
    degrees = {m.degree for m in measures if not isinstance(m, RangeQueries)}
    for degree in degrees:
        check.whole(at_least=1, at_most=len(release.schema), degree=degree)
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
    for measure in measures:
        if isinstance(measure, RangeQueries):
            found |= _compare_ranges(against, published, measure, rng)
    return Evaluation(**found)


def comparable_degrees(schema: Schema, *, at_most: int = 3) -> range:
    """The degrees at which some marginal is small enough to be compared."""
    sizes = sorted(column.size for column in schema)[:at_most]
    return range(1, 1 + sum(prod(sizes[:d]) <= MOST_CELLS for d in range(1, len(sizes) + 1)))


def _columns(real: Table, published: Table) -> dict[str, tuple[list[int], list[int]]]:
    single = [(name,) for name in real.schema.names]
    a, b = count_marginals(real, single), count_marginals(published, single)
    return {name: (a[name,].tolist(), b[name,].tolist()) for name in real.schema.names}


def compare_marginals(
    real: Table, published: Table, degree: int, rng: Rng
) -> tuple[float, tuple[Marginal, float], float]:
    """Over the marginals of a degree: mean total variation, the worst one, mean squared error."""
    chosen = _marginals(real.schema, degree, rng)
    distances, squares = [], []
    for part in in_batches(real.schema, chosen):
        a, b = count_marginals(real, part), count_marginals(published, part)
        distances += [_distance(a[m], b[m]) for m in part]
        squares += [mean_squared_error(a[m], b[m]) for m in part]
    worst = int(np.argmax(distances))
    return float(np.mean(distances)), (chosen[worst], distances[worst]), float(np.mean(squares))


def _worst_pairs(real: Table, published: Table) -> dict[Marginal, tuple[PairCounts, PairCounts]]:
    """The pairs that can be shown and differ most."""
    every = combinations(real.schema.names, 2)
    small = [pair for pair in every if real.schema.cells(pair) <= MOST_SHOWN_CELLS]
    part = small[:MOST_MARGINALS]
    if not part:
        return {}
    a, b = count_marginals(real, part), count_marginals(published, part)
    worst = sorted(part, key=lambda pair: -_distance(a[pair], b[pair]))[:MOST_SHOWN_PAIRS]
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


def _distance(real: NDArray[np.int64], published: NDArray[np.int64]) -> float:
    """Total variation; 1 where so little was published that no row is left to compare."""
    return total_variation(real, published) if published.any() else 1.0


def _random_ranges(schema: Schema, n: int, rng: Rng) -> tuple[Range, ...]:
    """Ranges over all columns, or over small marginals in turn where that is too many cells.

    In a wide domain a random box of all columns would hold no row at all.
    """
    if schema.cells(schema.names) <= MOST_CELLS:
        return random_ranges(schema, n=n, rng=rng).ranges
    small = _marginals(schema, comparable_degrees(schema, at_most=2)[-1], rng)
    chosen = [small[place] for place in rng.permutation(len(small))[:n].tolist()]
    each = -(-n // len(chosen))
    drawn: list[Range] = []
    for marginal in chosen:
        part = schema.pick(marginal)
        possible = prod(column.size * (column.size + 1) // 2 for column in part)
        drawn += random_ranges(part, n=min(each, possible), rng=rng).ranges
    return tuple(drawn[:n])


def _marginals(schema: Schema, degree: int, rng: Rng) -> list[Marginal]:
    if comb(len(schema), degree) > MOST_MARGINALS:
        drawn = {
            tuple(sorted(rng.permutation(len(schema))[:degree].tolist()))
            for _ in range(MOST_MARGINALS)
        }
        every = [tuple(schema.names[place] for place in places) for places in sorted(drawn)]
    else:
        every = list(combinations(schema.names, degree))
    kept = [marginal for marginal in every if schema.cells(marginal) <= MOST_CELLS]
    if not kept:
        raise InputError(f"no marginal of {degree} columns has at most {MOST_CELLS:,} cells")
    return kept


def in_batches(schema: Schema, marginals: list[Marginal]) -> list[list[Marginal]]:
    """Marginals counted together, so many at a time that their cells fit into memory."""
    batches: list[list[Marginal]] = [[]]
    cells = 0
    for marginal in marginals:
        if batches[-1] and cells + schema.cells(marginal) > MOST_CELLS:
            batches.append([])
            cells = 0
        batches[-1].append(marginal)
        cells += schema.cells(marginal)
    return batches
