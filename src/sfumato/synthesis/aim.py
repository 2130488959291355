"""AIM: again and again, measure the marginal that the model gets most wrong for its noise.

McKenna, Mullins, Sheldon, Miklau 2022, "AIM: an adaptive and iterative mechanism for differentially
private synthetic data", arXiv 2201.12677, algorithm 4. Rounds are small at first; when a
measurement changed the model by less than its noise, the next ones get four times the budget. The
model may grow with the budget that is used. Rare values are merged first, which the paper leaves
to whoever prepares the data.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from sfumato import check
from sfumato.gate import Curator, L1Error, WeightedL1Error
from sfumato.models.graphical.fit import fit_graphical
from sfumato.models.graphical.model import GraphicalModel, Numbering
from sfumato.models.graphical.structure import (
    Growth,
    downward_closure,
    overlaps,
    write_answers,
)
from sfumato.privacy.guarantees import Cost, PureDP, portion
from sfumato.schema import Marginal, Schema, Workload
from sfumato.schema.measurement import Coarse, PublicTotal, described, rows_of
from sfumato.schema.workload import check_targets, layout
from sfumato.synthesis.algorithm import Fit
from sfumato.synthesis.graphical_steps import begin, check_begin, limits, structure, tied

_ROUNDS_PER_COLUMN: Final = 16
"""As in the paper: T = 16 d."""
_COLUMNS: Final = Fraction(3, 10)
"""Of the budget, for the first look at single columns; the paper gives them 0.9 / 16."""
_MEASURE: Final = Fraction(9, 10)
"""Of a round's cost; the rest selects."""
_WEIGHT_STEPS: Final = 2**10
"""Weights are whole numbers up to this."""
_MOST_COUNTED: Final = 2**18
"""A candidate with more cells, before rare values are merged, is never counted."""
_ROUND_ITERATIONS, _LAST_ITERATIONS = 80, 400
"""Steps of a fit; too few between rounds, and annealing takes an unfinished fit for a settled one
(Adult, epsilon 1: total variation .040 with 15 steps, .035 with 40 or more)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Aim:
    """Select, measure and fit until the budget is used."""

    workload: Workload
    """What matters: its marginals, and of ranges the columns that they limit."""
    rows: int | None = None
    """The number of rows, if it is public knowledge; otherwise the columns' sums tell it."""
    degree: int = 3
    """Candidates are all parts of the workload's marginals with at most this many columns."""
    rounds: int = -1
    """The number of rounds that the budget is divided by, of which annealing joins some; -1 stands
    for 16 a column, as published."""
    model_mb: int = 4
    """The largest model, in megabytes; a fit holds three copies."""
    merge_sigmas: float = 2.0
    """Values with a count below this many standard deviations of its noise are merged."""
    totals: tuple[PublicTotal, ...] = ()
    """Counts that are public knowledge; the model holds them exactly."""

    name: ClassVar[str] = "aim"
    takes_many_bins: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.rounds == -1:
            columns = len(self.workload.schema)
            object.__setattr__(self, "rounds", _ROUNDS_PER_COLUMN * columns)
        check.whole(at_least=1, degree=self.degree)
        check.whole(at_least=2, rounds=self.rounds)
        check.whole(at_least=1, at_most=100_000, model_mb=self.model_mb)
        check.positive(merge_sigmas=self.merge_sigmas)
        object.__setattr__(self, "rows", rows_of(self.totals, self.rows))

    def check(self, schema: Schema) -> None:
        """Single columns, and what public facts tie together, must fit into the model."""
        check_targets(schema, self.workload.targets)
        check_begin(schema, self.totals, model_mb=self.model_mb, method=self.name)

    def run(self, curator: Curator) -> Fit:
        """The loop of the paper; shares are of the whole budget."""
        self.check(curator.schema)
        whole, share = curator.left, Fraction(1, self.rounds)
        begun = begin(  # MEASURE
            curator,
            cost=portion(whole, _COLUMNS),
            rows=self.rows,
            totals=self.totals,
            merge_sigmas=self.merge_sigmas,
            limit_mb=self.model_mb,
        )
        model, measured, view = begun.model, begun.measurements, begun.view
        offered = _Offered(self, curator.schema, view)
        left = _share(curator.left, whole) if offered.targets else Fraction(0)
        if left:
            curator.reserve(curator.left, label="aim: selections and measurements")
        while left > 0:
            left -= share
            curator.tell("percent of the budget of AIM", round(100 * (1 - left)), 100)
            select = portion(whole, share * (1 - _MEASURE))
            measure = portion(whole, share * _MEASURE)
            allowed = offered.fitting(self.model_mb, used=1 - left)
            if not allowed.any():
                break
            noise = offered.noise(curator, measure)
            index = curator.select(  # SELECT
                offered.targets,
                score=offered.score(model, noise, allowed),
                cost=select,
                allowed=allowed,
                merged=view,
            )
            target = offered.targets[index]
            measured = measured + curator.measure([target], costs=[measure], merged=view)  # MEASURE
            before = model
            model = fit_graphical(  # FIT
                view,
                measured,
                total=begun.total,
                start=before,
                limit_mb=2.0 * self.model_mb,
                iterations=_ROUND_ITERATIONS if left else _LAST_ITERATIONS,
            )
            offered.hold(target)
            settled = _moved(before, model, target) <= noise[index]
            share = next_share(share, left, settled=settled, pure=isinstance(whole, PureDP))
        return Fit(model=model, measurements=tuple(measured), facts=structure(model, measured))

    def describe(self) -> dict[str, Any]:
        """Its options and the public totals."""
        return {
            "degree": self.degree,
            "rounds": self.rounds,
            "model_mb": self.model_mb,
            "merge_sigmas": self.merge_sigmas,
            "targets": len(self.workload),
            **described(self.totals),
        }


def next_share(share: Fraction, left: Fraction, *, settled: bool, pure: bool = False) -> Fraction:
    """What the next round gets: algorithm 3 of the paper, annealing.

    Noise of half the size costs four times the rho, or twice the epsilon. Where less than two
    rounds would be left, one takes all of it.

    >>> next_share(Fraction(1, 100), Fraction(1, 2), settled=True)
    Fraction(1, 25)
    >>> next_share(Fraction(1, 100), Fraction(3, 50), settled=True)
    Fraction(3, 50)
    """
    following = share * (2 if pure else 4) if settled else share
    return left if left <= 2 * following else following


class _Offered:
    """The candidates: what is public about them, and the model's answers to those in reach."""

    def __init__(self, spec: Aim, schema: Schema, view: Coarse) -> None:
        marginals = [
            schema.marginal(target if isinstance(target, tuple) else target.marginal)
            for target in spec.workload.targets
        ]
        known = [set(total.marginal) for total in spec.totals]
        most = limits(spec.model_mb).clique_cells
        self.targets = tuple(
            target
            for target in downward_closure(marginals, degree=spec.degree)
            if view.schema.cells(target) <= most
            and schema.cells(target) <= _MOST_COUNTED
            and min(view.schema.shape(target)) > 1
            and not any(set(target) <= one for one in known)
        )
        worth = overlaps(self.targets, marginals, spec.workload.importance)
        scaled = np.rint(worth / worth.max(initial=1e-300) * _WEIGHT_STEPS)
        self._weights = np.maximum(1, scaled).astype(np.int64)
        self._offsets = layout(view.schema, self.targets)
        self._answers = np.zeros(int(self._offsets[-1]))
        self._growth = Growth(Numbering(view.schema), self.targets)
        self._growth.hold(tied(schema, spec.totals))

    def hold(self, target: Marginal) -> None:
        """Take a measured marginal into the graph whose growth is limited."""
        self._growth.hold([target])

    def fitting(self, model_mb: float, *, used: Fraction) -> NDArray[np.bool_]:
        """The candidates with which the model stays within the used share of its limit.

        Where there are none, and single columns are public, those within all of it.
        """
        result = self._growth.fitting(limits(model_mb * float(used)))
        return result if result.any() else self._growth.fitting(limits(model_mb))

    def noise(self, curator: Curator, cost: Cost) -> NDArray[np.float64]:
        """The L1 error that measuring each candidate would bring: E|noise| times its cells.

        sqrt(2 / pi) sigma for a Gaussian, sigma / sqrt(2) for Laplace noise.
        """
        mean = np.sqrt(1 / 2) if isinstance(cost, PureDP) else np.sqrt(2 / np.pi)
        sigma = curator.sigma_of(self.targets[0], cost)
        return np.asarray(mean * sigma * np.diff(self._offsets))

    def score(
        self, model: GraphicalModel, noise: NDArray[np.float64], allowed: NDArray[np.bool_]
    ) -> WeightedL1Error:
        """w_r (|M_r(D) - M_r(p)|_1 - E|noise|_1), with the model's answers where they matter."""
        write_answers(self._answers, model, self.targets, allowed)
        error = L1Error(answers=self._answers, penalties=noise)
        return WeightedL1Error(error=error, weights=self._weights)


def _moved(before: GraphicalModel, after: GraphicalModel, target: Marginal) -> float:
    """How far a model's answer has moved, in counts."""
    (old,), (new,) = before.coarse_marginals([target]), after.coarse_marginals([target])
    return float(np.abs(new - old).sum())


def _share(part: Cost, whole: Cost) -> Fraction:
    """A cost as a share of another of the same kind."""
    one, other = (c.epsilon if isinstance(c, PureDP) else c.rho for c in (part, whole))
    return one / other
