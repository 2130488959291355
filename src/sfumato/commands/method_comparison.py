"""Methods compared before anything is spent: the work of ``sfumato plan``.

From a schema, a number of rows and perhaps a public table; the private one is never opened. Every
method that can be used is rehearsed, at and around the requested epsilon.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, floor, log10
from pathlib import Path
from typing import Any, Final

from sfumato import check
from sfumato.commands.plan import PlanRequest
from sfumato.commands.publication import check_ranges, loaded_schema, silent, workload_of
from sfumato.commands.request import ProgressCall
from sfumato.errors import InputError
from sfumato.models.prediction import non_adaptive_optimum
from sfumato.planning import noise
from sfumato.planning.plan import (
    LARGEST_NOISE,
    MOST_DEPENDENCE,
    TYPICAL_DEPENDENCE,
    Plan,
    Prediction,
)
from sfumato.planning.rehearsal import Stage, rehearse, scaled_budget, stage
from sfumato.privacy.composition import Cap
from sfumato.privacy.guarantees import MAX_EPSILON, ApproxDP, PureDP
from sfumato.privacy.sensitivity import OneRow, Protection
from sfumato.publishing.auto import Auto
from sfumato.publishing.methods import DELTA, METHODS, algorithm_named, budget_for, check_promise
from sfumato.schema import Marginal, Schema, Workload
from sfumato.synthesis.algorithm import Algorithm
from sfumato.synthesis.independent import Independent

AROUND: Final = (Fraction(1, 10), Fraction(1), Fraction(10))
"""The epsilons that are rehearsed, as multiples of the requested one."""
SLOW: Final = ("aim", "dp2pub", "privbayes")
"""Methods that are rehearsed at the requested epsilon only."""
ON_REQUEST: Final = ("aim",)
"""Methods so slow that they are rehearsed on a public table, or if they are named."""
FEW_TARGETS: Final = 20
"""Up to this many targets the error of one run depends too much on chance."""
RUNS: Final = 3
"""Rehearsals of a method where there are few targets; their errors are averaged."""


@dataclass(frozen=True, kw_only=True)
class _Comparison:
    """All that a plan was comparison, checked."""

    schema: Schema
    workload: Workload
    epsilon: Fraction
    delta: Fraction | None
    protect: Protection
    ranged: bool
    """Whether the model part is shown as a range."""

    def algorithm(self, method: str) -> Algorithm:
        """A method with its default options; an InputError if it can't be used here."""
        made = algorithm_named(method, workload=self.workload, rows=None, options={})
        if isinstance(made, Auto):
            raise InputError(
                "auto can't be compared: it chooses one of the methods. Name those to compare."
            )
        made.check(self.schema)
        check_promise(
            made, self.schema, protect=self.protect, budget=self.budget(made, self.epsilon)
        )
        return made

    def budget(self, algorithm: Algorithm, epsilon: Fraction) -> Cap:
        """What a publication would give the method."""
        return budget_for(algorithm, self.schema, epsilon=epsilon, delta=self.delta)


def compare_methods(request: PlanRequest) -> Plan:
    """Rehearse the methods, and judge them. No private table is opened."""
    started, tell, like = time.monotonic(), request.tell or silent, request.like
    comparison = _checked(request)
    n_rows = check.whole(at_least=1, rows=request.rows)
    algorithms, refused = _usable(comparison, request.methods, public=like is not None)
    tell("setting the stage", 0, 0)
    on = stage(comparison.schema, n_rows, comparison.workload, like=like, encoding=request.encoding)
    predictions = tuple(_rehearsed(comparison, algorithms, on, tell))
    columns = comparison.budget(Independent(), comparison.epsilon)
    factor = noise.factor_needed(on, columns, comparison.protect)
    plan = Plan(
        schema=comparison.schema,
        n_rows=n_rows,
        epsilon=comparison.epsilon,
        delta=comparison.delta,
        protect=comparison.protect,
        like=None if like is None else _named(like),
        predictions=predictions,
        refused=refused,
        auto=_start_of_auto(comparison, on),
        column_noise=noise.column_noise(on, columns, comparison.protect, less=Fraction(1)),
        enough=None if factor is None else _enough(n_rows, columns, factor),
        seconds=time.monotonic() - started,
    )
    return replace(plan, predictions=tuple(_judged(plan, each) for each in predictions))


def _checked(request: PlanRequest) -> _Comparison:
    declared = loaded_schema(request.schema)
    workload = workload_of(declared, request.workload)
    check_ranges(workload)
    schema = declared.with_bins(declared.public_bins)
    epsilon, delta = request.epsilon, request.delta
    return _Comparison(
        schema=schema,
        workload=workload.on(schema),
        epsilon=PureDP(epsilon).epsilon,
        delta=None if delta is None else ApproxDP(epsilon, delta).delta,
        protect=OneRow(neighbors=request.neighbors),
        ranged=request.like is None,
    )


def _usable(
    comparison: _Comparison, methods: Sequence[str] | None, *, public: bool
) -> tuple[dict[str, Algorithm], dict[str, str]]:
    """The methods to rehearse, and why others can't be; a named one must be usable."""
    if methods is not None:
        return {method: comparison.algorithm(method) for method in methods}, {}
    usable, refused = {}, {}
    for method in METHODS:
        if method == "auto":
            continue
        if method in ON_REQUEST and not public:
            refused[method] = "slow to rehearse: name it to have it compared, or give --like"
            continue
        try:
            usable[method] = comparison.algorithm(method)
        except InputError as error:
            refused[method] = str(error)
    return usable, refused


def _rehearsed(
    comparison: _Comparison, algorithms: Mapping[str, Algorithm], on: Stage, tell: ProgressCall
) -> Iterator[Prediction]:
    """Every method at every epsilon that it is rehearsed at."""
    around = [comparison.epsilon * factor for factor in AROUND]
    every = [
        (method, epsilon)
        for method in algorithms
        for epsilon in around
        if epsilon == comparison.epsilon or (epsilon <= MAX_EPSILON and method not in SLOW)
    ]
    marginals = comparison.workload.marginals
    least = non_adaptive_optimum(comparison.schema, marginals) if marginals else None
    optima = {epsilon: _optimum(comparison, on, least, epsilon) for epsilon in around}
    for index, (method, epsilon) in enumerate(every):
        tell("rehearsing methods", index, len(every))
        try:
            yield _predicted(comparison, method, algorithms[method], on, epsilon, optima[epsilon])
        except InputError:
            if epsilon == comparison.epsilon:
                raise
    tell("rehearsing methods", len(every), len(every))


def _predicted(
    comparison: _Comparison,
    method: str,
    algorithm: Algorithm,
    on: Stage,
    epsilon: Fraction,
    optimum: float | None,
) -> Prediction:
    often = len(on.targets) <= FEW_TARGETS and method not in SLOW
    budget = comparison.budget(algorithm, epsilon)
    rehearsal = rehearse(
        algorithm, on, budget=budget, protect=comparison.protect, runs=RUNS if often else 1
    )
    by_noise = noise.noise_part(on, rehearsal)
    model = rehearsal.error - by_noise
    most = model * MOST_DEPENDENCE / TYPICAL_DEPENDENCE
    return Prediction(
        method=method,
        epsilon=epsilon,
        predicted=rehearsal.error,
        noise=by_noise,
        model_low=0.0 if comparison.ranged else model,
        model_high=most if comparison.ranged else model,
        optimum=optimum,
        measured=noise.planned(on, rehearsal),
    )


def _optimum(
    comparison: _Comparison,
    on: Stage,
    least: Mapping[Marginal, float] | None,
    epsilon: Fraction,
) -> float | None:
    if least is None or epsilon > MAX_EPSILON:
        return None
    budget = ApproxDP(epsilon, comparison.delta if comparison.delta is not None else DELTA)
    return noise.optimum_error(on, least, budget, comparison.protect)


def _start_of_auto(comparison: _Comparison, on: Stage) -> str:
    """The method that the automatic choice would begin with, on this stage."""
    auto = Auto(workload=comparison.workload)
    budget = budget_for(auto, comparison.schema, epsilon=comparison.epsilon, delta=comparison.delta)
    return auto.choose(on.curator(budget, comparison.protect, run=0)).algorithm.name


def _judged(plan: Plan, one: Prediction) -> Prediction:
    """With a verdict that stands beside the figures."""
    verdict = ""
    if plan.enough is not None or one.noise > LARGEST_NOISE:
        verdict = "too few rows for this"
    elif one.method == plan.recommended and one.epsilon == plan.epsilon:
        verdict = "recommended"
    return replace(one, verdict=verdict)


def _enough(n_rows: int, budget: Cap, factor: Fraction) -> tuple[int, Fraction]:
    """Rows, or an epsilon, that divide the noise of a row by ``factor``, rounded up."""
    needed = scaled_budget(budget, factor)
    if not isinstance(needed, PureDP | ApproxDP):
        raise TypeError(f"a plan is made for an epsilon, got {needed}")
    return int(_two_digits_up(n_rows * factor)), _two_digits_up(needed.epsilon)


def _two_digits_up(number: Fraction) -> Fraction:
    """No more than two digits that are not zero.

    >>> _two_digits_up(Fraction(12_345))
    Fraction(13000, 1)
    """
    unit = Fraction(10) ** (floor(log10(number)) - 1)
    return ceil(number / unit) * unit


def _named(like: Any) -> str:
    """A file by its name, anything else by its kind."""
    return Path(like).name if isinstance(like, str | Path) else type(like).__name__
