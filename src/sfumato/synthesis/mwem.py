"""MWEM: again and again, measure the question that the model answers worst.

Hardt, Ligett, McSherry 2012, "A simple and practical algorithm for differentially private data
release", arXiv 1012.4763. Expected largest error over the workload Q at most
2 n sqrt(log|D| / T) + 10 T log|Q| / epsilon with probability 1 - 2T/|Q|, for the average iterate.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sfumato import check
from sfumato.curator import Curator, L1Error
from sfumato.errors import InputError
from sfumato.models.answers import DenseAnswers
from sfumato.models.dense import DenseModel, check_size
from sfumato.models.weights import WeightedHistogram
from sfumato.privacy.guarantees import Cost, portion
from sfumato.schema import Schema, Workload
from sfumato.synthesis.algorithm import Fit, total_and_rest


@dataclass(frozen=True, kw_only=True, slots=True)
class Mwem:
    """Multiplicative weights with a private choice of what to measure, on a dense domain."""

    workload: Workload
    rounds: int = -1
    """Selections and measurements; the budget is split evenly over them. -1 stands for 10, or for
    as many as there are targets."""
    repetitions: int = 20
    """Passes over all measurements after each new one."""
    average: bool = False
    """Publish the mean of all iterates, as the theorem has it, instead of the last."""
    rows: int | None = None
    """The number of rows, if it is public knowledge; otherwise a part of the budget counts it."""

    name: ClassVar[str] = "mwem"

    def __post_init__(self) -> None:
        if self.rounds == -1:
            object.__setattr__(self, "rounds", min(10, len(self.workload)))
        check.whole(at_least=1, rounds=self.rounds)
        check.whole(at_least=1, repetitions=self.repetitions)
        if self.rows is not None:
            check.whole(at_least=1, rows=self.rows)
        if self.rounds > len(self.workload):
            raise InputError(
                f"rounds must be at most the {len(self.workload)} targets of the workload, since "
                f"each is measured once; got {self.rounds}. Nothing was spent."
            )

    def check(self, schema: Schema) -> None:
        """The domain must fit into memory."""
        check_size(schema, method=self.name)

    def run(self, curator: Curator) -> Fit:
        """The loop of the paper; a target that was measured is not selected again."""
        self.check(curator.schema)
        targets = self.workload.targets
        total, budget = total_and_rest(curator, rows=self.rows)
        step = portion(budget, Fraction(1, 2 * self.rounds))
        curator.reserve(budget, label=f"mwem: {self.rounds} selections and measurements")
        model = WeightedHistogram(schema=curator.schema, total=total, capacity=self.rounds)
        answers = DenseAnswers(curator.schema, targets)
        penalties = self._penalties(curator, step)
        open_targets = np.ones(len(targets), dtype=np.bool_)
        mean, seen = np.zeros_like(model.cells) if self.average else None, []
        for done in range(self.rounds):
            curator.tell("rounds of MWEM", done, self.rounds)
            score = L1Error(answers=answers.of(model.cells), penalties=penalties)
            place = curator.select(targets, score=score, cost=step, allowed=open_targets)  # SELECT
            open_targets[place] = False
            seen += curator.measure([targets[place]], costs=[step])  # MEASURE
            model.add(seen[-1])
            model.fit(repetitions=self.repetitions, rng=curator.rng)  # FIT
            if mean is not None:
                mean += model.cells / self.rounds
        cells = model.cells if mean is None else mean
        counts = cells.reshape(curator.schema.shape(curator.schema.names))
        fitted = DenseModel(schema=curator.schema, counts=counts)
        return Fit(model=fitted, measurements=tuple(seen))

    def describe(self) -> dict[str, Any]:
        """Its options."""
        return {
            "rounds": self.rounds,
            "repetitions": self.repetitions,
            "average": self.average,
            "targets": len(self.workload),
        }

    def _penalties(self, curator: Curator, step: Cost) -> NDArray[np.float64] | None:
        """The error that measuring a marginal would bring: cells * sigma * sqrt(2 / pi).

        So that a large marginal is chosen only if it is wrong by more than its noise. A public
        number: it depends on the schema and the cost.
        """
        if not self.workload.marginals:
            return None
        schema, shrink = curator.schema, np.sqrt(2 / np.pi)
        return np.array(
            [
                shrink
                * curator.sigma_of(target, step)
                * (schema.cells(target) if isinstance(target, tuple) else 1)
                for target in self.workload.targets
            ]
        )
