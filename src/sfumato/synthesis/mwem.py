"""MWEM: again and again, measure the question that the model answers worst.

Hardt, Ligett, McSherry 2012, "A simple and practical algorithm for differentially private data
release", arXiv 1012.4763. Expected largest error over the workload Q at most
2 n sqrt(log|D| / T) + 10 T log|Q| / epsilon with probability 1 - 2T/|Q|, for the average iterate.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from sfumato import check
from sfumato.errors import InputError
from sfumato.gate import Curator, L1Error
from sfumato.models.dense.model import CELL_LIMIT, DenseAnswers, DenseModel, check_size, rake
from sfumato.models.dense.multiplicative_weights import WeightedHistogram
from sfumato.models.graphical.fit import fit_graphical
from sfumato.models.graphical.model import Numbering
from sfumato.models.graphical.structure import Growth, write_answers
from sfumato.privacy.guarantees import Cost, portion
from sfumato.schema import Schema, Workload
from sfumato.schema.measurement import (
    Coarse,
    PublicTotal,
    as_measurements,
    check_totals,
    described,
    rows_of,
)
from sfumato.schema.workload import check_targets, layout
from sfumato.synthesis.algorithm import Fit, total_and_rest
from sfumato.synthesis.graphical_steps import check_begin, limits, tied


@dataclass(frozen=True, kw_only=True, slots=True)
class Mwem:
    """A private choice of what to measure, and a model fitted to it: dense or graphical."""

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
    totals: tuple[PublicTotal, ...] = ()
    """Counts that are public knowledge; the first model agrees with them, and the last."""
    model: Literal["auto", "dense", "graphical"] = "auto"
    """A count for every cell, or a graphical model of marginals (``models.graphical``), fitted by
    maximum likelihood; auto: dense where the domain allows it."""
    model_mb: int = 4
    """The largest graphical model, in megabytes; marginals that would exceed it are passed over."""

    name: ClassVar[str] = "mwem"
    takes_many_bins: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.rounds == -1:
            object.__setattr__(self, "rounds", min(10, len(self.workload)))
        check.whole(at_least=1, rounds=self.rounds)
        check.whole(at_least=1, repetitions=self.repetitions)
        object.__setattr__(self, "rows", rows_of(self.totals, self.rows))
        if self.rounds > len(self.workload):
            raise InputError(
                f"rounds must be at most the {len(self.workload)} targets of the workload, since "
                f"each is measured once; got {self.rounds}."
            )
        check.one_of(("auto", "dense", "graphical"), model=self.model)
        check.whole(at_least=1, at_most=100_000, model_mb=self.model_mb)
        if self.model == "graphical" and (self.workload.ranges or self.average):
            raise InputError(
                "mwem on a graphical model takes marginals and publishes its last iterate, so "
                "neither ranges nor average. Ask for the marginals of the ranges, or use "
                "model=dense."
            )

    def check(self, schema: Schema) -> None:
        """The model must fit into memory, and the public totals it."""
        if not self._on_graph(schema):
            check_size(schema, method=self.name)
            check_totals(schema, self.totals)
            return
        check_targets(schema, self.workload.targets)
        check_begin(schema, self.totals, model_mb=self.model_mb, method=self.name)
        for target in self.workload.marginals:
            if schema.cells(target) > limits(self.model_mb).clique_cells:
                raise InputError(
                    f"{' × '.join(target)} has {schema.cells(target):,} cells and never fits into "
                    f"a model of {self.model_mb} MB (model_mb). Allow a larger model, or leave it "
                    "out of the workload."
                )

    def _on_graph(self, schema: Schema) -> bool:
        """Whether the model is a graphical one."""
        too_large = schema.cells(schema.names) > CELL_LIMIT
        able = not (self.workload.ranges or self.average)
        return self.model == "graphical" or (self.model == "auto" and too_large and able)

    def run(self, curator: Curator) -> Fit:
        """The loop of the paper; a target that was measured is not selected again."""
        self.check(curator.schema)
        return self._run_graph(curator) if self._on_graph(curator.schema) else self._run(curator)

    def _run(self, curator: Curator) -> Fit:
        """On all cells, with multiplicative weights."""
        targets = self.workload.targets
        total, budget = total_and_rest(curator, rows=self.rows)
        step = portion(budget, Fraction(1, 2 * self.rounds))
        curator.reserve(budget, label=f"mwem: {self.rounds} selections and measurements")
        model = self._start(curator, total)
        answers = DenseAnswers(curator.schema, targets)
        penalties = self._penalties(curator, step)
        open_targets = np.ones(len(targets), dtype=np.bool_)
        mean, measured = np.zeros_like(model.cells) if self.average else None, []
        for done in range(self.rounds):
            curator.tell("rounds of MWEM", done, self.rounds)
            score = L1Error(answers=answers.of(model.cells), penalties=penalties)
            index = curator.select(targets, score=score, cost=step, allowed=open_targets)  # SELECT
            open_targets[index] = False
            measured += curator.measure([targets[index]], costs=[step])  # MEASURE
            model.add(measured[-1])
            model.fit(repetitions=self.repetitions, rng=curator.rng)  # FIT
            if mean is not None:
                mean += model.cells / self.rounds
        cells = model.cells if mean is None else mean
        counts = cells.reshape(curator.schema.shape(curator.schema.names))
        fitted = rake(DenseModel(schema=curator.schema, counts=counts), self.totals)
        return Fit(model=fitted, measurements=(*as_measurements(self.totals), *measured))

    def describe(self) -> dict[str, Any]:
        """Its options; weights of the workload would change what a selection reveals."""
        unused = {} if self.workload.weights is None else {"weights": "not used"}
        return {
            "rounds": self.rounds,
            "repetitions": self.repetitions,
            "average": self.average,
            "targets": len(self.workload),
            "model": self.model,
            **unused,
            **described(self.totals),
        }

    def _run_graph(self, curator: Curator) -> Fit:
        """On a graphical model; where nothing new fits, something is measured again."""
        schema, targets = curator.schema, self.workload.marginals
        total, budget = total_and_rest(curator, rows=self.rows)
        step = portion(budget, Fraction(1, 2 * self.rounds))
        curator.reserve(budget, label=f"mwem: {self.rounds} selections and measurements")
        view, measured = Coarse(fine=schema, groups={}), list(as_measurements(self.totals))
        model = fit_graphical(view, measured, total=total, limit_mb=self.model_mb)
        growth = Growth(Numbering(schema), targets)
        growth.hold(tied(schema, self.totals))
        answers = np.zeros(int(layout(schema, targets)[-1]))
        penalties, unseen = self._penalties(curator, step), np.ones(len(targets), dtype=np.bool_)
        for done in range(self.rounds):
            curator.tell("rounds of MWEM", done, self.rounds)
            fitting = growth.fitting(limits(self.model_mb))
            if not fitting.any():  # what is public fills the model
                break
            allowed = fitting & unseen if (fitting & unseen).any() else fitting
            write_answers(answers, model, targets, allowed)
            score = L1Error(answers=answers, penalties=penalties)
            index = curator.select(targets, score=score, cost=step, allowed=allowed)  # SELECT
            unseen[index] = False
            measured += curator.measure([targets[index]], costs=[step])  # MEASURE
            growth.hold([targets[index]])
            model = fit_graphical(  # FIT
                view, measured, total=total, start=model, limit_mb=2.0 * self.model_mb
            )
        return Fit(model=model, measurements=tuple(measured))

    def _start(self, curator: Curator, total: float) -> WeightedHistogram:
        """All cells alike, but for what is public."""
        room = self.rounds + len(self.totals)
        model = WeightedHistogram(schema=curator.schema, total=total, capacity=room)
        for known in as_measurements(self.totals):
            model.add(known)
        model.fit(repetitions=self.repetitions, rng=curator.rng)
        return model

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
