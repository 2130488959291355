"""Real against published: for the people who hold the data, never for publication."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations
from math import comb
from typing import Any

import numpy as np

from sfumato import check
from sfumato.engine import Table, count_marginals, open_table
from sfumato.errors import InputError
from sfumato.evaluation.distances import QueryErrors, mean_squared_error, total_variation
from sfumato.privacy.ledger import Ledger
from sfumato.randomness import Rng
from sfumato.release import TableRelease
from sfumato.schema import Marginal, Range, Schema, Workload, random_ranges
from sfumato.schema.workload import box_sums, boxes

MOST_MARGINALS = 1_000
"""Of more marginals than this a random thousand is compared."""
MOST_CELLS = 5_000_000
"""A marginal with more cells than this is not compared."""


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
    workload: Workload | None = None


Measure = TotalVariation | CountError | RangeQueries


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
    internal: bool = True

    def to_dict(self) -> dict[str, Any]:
        """For ``--json``; carries the word internal."""
        return {
            "internal": True,
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
    if against.schema.columns != release.schema.columns:
        raise InputError("the table to compare with has another schema than the release")
    degrees = {m.degree for m in measures if not isinstance(m, RangeQueries)}
    for degree in degrees:
        check.whole(at_least=1, at_most=len(release.schema), degree=degree)
    (ledger or Ledger.open(dataset=release.dataset)).look("evaluation: real against published")
    published = open_table(release.data, release.schema)
    found: dict[str, Any] = {"columns": _columns(against, published)}
    for degree in sorted(degrees):
        tv, worst, mse = _compare_marginals(against, published, degree, rng)
        if TotalVariation(degree=degree) in measures:
            found.setdefault("tv", {})[degree] = tv
            found.setdefault("worst", {})[degree] = worst
        if CountError(degree=degree) in measures:
            found.setdefault("mse", {})[degree] = mse
    for measure in measures:
        if isinstance(measure, RangeQueries):
            found |= _compare_ranges(against, published, measure, rng)
    return Evaluation(**found)


def _columns(real: Table, published: Table) -> dict[str, tuple[list[int], list[int]]]:
    single = [(name,) for name in real.schema.names]
    a, b = count_marginals(real, single), count_marginals(published, single)
    return {name: (a[name,].tolist(), b[name,].tolist()) for name in real.schema.names}


def _compare_marginals(
    real: Table, published: Table, degree: int, rng: Rng
) -> tuple[float, tuple[Marginal, float], float]:
    chosen = _marginals(real.schema, degree, rng)
    distances, squares = [], []
    for part in _in_batches(real.schema, chosen):
        a, b = count_marginals(real, part), count_marginals(published, part)
        distances += [total_variation(a[m], b[m]) for m in part]
        squares += [mean_squared_error(a[m], b[m]) for m in part]
    worst = int(np.argmax(distances))
    return float(np.mean(distances)), (chosen[worst], distances[worst]), float(np.mean(squares))


def _compare_ranges(
    real: Table, published: Table, measure: RangeQueries, rng: Rng
) -> dict[str, Any]:
    workload = measure.workload or random_ranges(real.schema, n=measure.n, rng=rng)
    truth, answers = _answers(real, workload.ranges), _answers(published, workload.ranges)
    pairs = zip(workload.ranges, truth.tolist(), answers.tolist(), strict=True)
    return {"queries": QueryErrors.of(truth, answers), "answers": tuple(pairs)}


def _answers(table: Table, wanted: Sequence[Range]) -> np.ndarray:
    marginals = list(dict.fromkeys(box.marginal for box in wanted))
    counts = count_marginals(table, marginals)
    out = np.empty(len(wanted), dtype=np.int64)
    for marginal in marginals:
        places = [place for place, box in enumerate(wanted) if box.marginal == marginal]
        limits = boxes(table.schema, marginal, [wanted[place] for place in places])
        out[places] = box_sums(counts[marginal], limits)
    return out


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


def _in_batches(schema: Schema, marginals: list[Marginal]) -> list[list[Marginal]]:
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
