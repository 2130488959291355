"""From an algorithm and a curator to a release, and the automatic choice of an algorithm.

The choice looks only at public facts: the schema, the workload, the budget, whom it protects, and
a declared or paid number of rows. It compares the noise that each method would bring.
"""

import logging
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any, ClassVar, Literal, get_args, get_origin, overload

import numpy as np

from sfumato import check
from sfumato.curator import Curator
from sfumato.errors import InputError
from sfumato.models.dense import CELL_LIMIT
from sfumato.privacy.composition import Cap
from sfumato.privacy.conversions import zcdp_budget
from sfumato.privacy.guarantees import ApproxDP, Cost, PureDP, portion, to_json
from sfumato.privacy.protection import Protection
from sfumato.recommendation import (
    AutoRecommender,
    ItemBias,
    ItemNeighbors,
    ItemPopularity,
    ItemRidge,
    ItemTastes,
    release_recommender,
)
from sfumato.release import TableRelease, describe_measurements, draw_table
from sfumato.release.recommender import RecommenderRelease
from sfumato.schema import Schema, Target, Workload
from sfumato.synthesis import Algorithm, Dp2Pub, Fit, Histogram, Independent, Mwem
from sfumato.synthesis.algorithm import total_and_rest

log = logging.getLogger(__name__)

METHODS = ("auto", "dp2pub", "histogram", "independent", "mwem")

RecommenderMethod = (
    AutoRecommender | ItemBias | ItemNeighbors | ItemPopularity | ItemRidge | ItemTastes
)
RECOMMENDERS: Mapping[str, type[RecommenderMethod]] = {
    "auto": AutoRecommender,
    "bias": ItemBias,
    "neighbors": ItemNeighbors,
    "popularity": ItemPopularity,
    "ridge": ItemRidge,
    "tastes": ItemTastes,
}

UNMEASURED = 0.08
"""What leaving a pair out is taken to cost in total variation: .05 to .16 on the real tables we
know. A public guess; a release tells what was predicted with it."""

AUTO_ROUNDS = (5, 10, 20, 30)

Sigma = Callable[[Target, Cost], float]
"""The noise in counts of measuring a target for a cost, as ``Curator.sigma_of`` tells it."""


_REASONS = {
    "histogram": "one noisy count of every cell brings the least error",
    "mwem": "the domain is large: measuring a few parts of it brings less error than every cell",
    "independent": "too few rows for this epsilon: pairs would be noise, single columns are not",
}


@overload
def publish(algorithm: "Algorithm | Auto", curator: Curator) -> TableRelease: ...
@overload
def publish(algorithm: RecommenderMethod, curator: Curator) -> RecommenderRelease: ...
def publish(
    algorithm: "RecommenderMethod | Algorithm | Auto", curator: Curator
) -> TableRelease | RecommenderRelease:
    """Run an algorithm on a curator's table or ratings; the result may be published.

    A second call is a second spend.
    """
    if isinstance(algorithm, RecommenderMethod):
        return release_recommender(algorithm, curator, receipt=ledger_part)
    algorithm.check(curator.schema)
    method: dict[str, Any] = {}
    if isinstance(algorithm, Auto):
        choice = algorithm.choose(curator)
        log.info("auto: %s, because %s", choice.algorithm.name, choice.reason)
        algorithm = choice.algorithm
        method = {"chosen_by": "auto", "reason": choice.reason, "predicted": choice.predicted}
    fit = algorithm.run(curator)
    described = {"name": algorithm.name, **algorithm.describe(), **fit.found, **method}
    if unseen := _never_measured(curator.schema, fit):
        described["never_measured"] = unseen
    return _release(curator, fit, described)


@dataclass(frozen=True, kw_only=True, slots=True)
class Choice:
    """A method, why it was taken, and the noise predicted for those that were compared."""

    algorithm: Algorithm
    reason: str
    predicted: dict[str, float]
    """Mean error over the workload as a share of all rows (for marginals: total variation)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Auto:
    """Let public facts choose between the histogram, MWEM and independent columns."""

    workload: Workload
    rows: int | None = None
    """The number of rows, if it is public knowledge; otherwise a part of the budget counts it."""

    name: ClassVar[str] = "auto"

    def check(self, schema: Schema) -> None:
        """Something works on every schema."""

    def choose(self, curator: Curator) -> Choice:
        """The choice for a curator's schema and budget; may pay for the number of rows."""
        if curator.schema.cells(curator.schema.names) > CELL_LIMIT:
            reason = "the domain is too large for a dense histogram"
            return Choice(algorithm=Independent(rows=self.rows), reason=reason, predicted={})
        if len(curator.schema) == 1:
            reason = "one column: every cell is counted once"
            return Choice(algorithm=Histogram(rows=self.rows), reason=reason, predicted={})
        rows, budget = total_and_rest(curator, rows=self.rows)
        return choose(self.workload, rows=rows, budget=budget, sigma=curator.sigma_of)


def choose(workload: Workload, *, rows: float, budget: Cost, sigma: Sigma) -> Choice:
    """The method with the least predicted error, from public facts alone.

    The noise is known; what is left unmeasured is taken to cost ``UNMEASURED`` a target.
    """
    schema, whole = workload.schema, sigma(workload.schema.names, budget)
    public_rows = max(1, round(rows))

    def mwem_error(rounds: int) -> float:
        step = portion(budget, Fraction(1, 2 * rounds))
        noise = _mean_share(workload, rows, lambda target: sigma(target, step))
        return noise + UNMEASURED * (1 - rounds / len(workload))

    rounds = min((min(r, len(workload)) for r in AUTO_ROUNDS), key=mwem_error)
    predicted = {
        "histogram": _mean_share(workload, rows, lambda t: whole * math.sqrt(_merged(schema, t))),
        "mwem": mwem_error(rounds),
        "independent": UNMEASURED,
    }
    best = min(predicted, key=lambda name: predicted[name])
    algorithms: dict[str, Algorithm] = {
        "histogram": Histogram(rows=public_rows),
        "mwem": Mwem(workload=workload, rounds=rounds, rows=public_rows),
        "independent": Independent(rows=public_rows),
    }
    return Choice(algorithm=algorithms[best], reason=_REASONS[best], predicted=predicted)


def algorithm_named(
    name: str, *, workload: Workload, rows: int | None, options: Mapping[str, str]
) -> "Algorithm | Auto":
    """The algorithm that a command names, with its own options given as text."""
    kinds: dict[str, Any] = {
        "auto": Auto,
        "dp2pub": Dp2Pub,
        "histogram": Histogram,
        "independent": Independent,
        "mwem": Mwem,
    }
    if name not in kinds:
        listed = ", ".join(METHODS)
        raise InputError(f"method must be one of {listed}, got {name!r}. Nothing was spent.")
    given = {"workload": workload, "rows": rows}
    made: Algorithm | Auto = _with_options(name, kinds[name], given, options)
    return made


def recommender_named(name: str, *, options: Mapping[str, str]) -> RecommenderMethod:
    """The recommender that a command names, with its own options given as text."""
    if name not in RECOMMENDERS:
        listed = ", ".join(RECOMMENDERS)
        raise InputError(f"method must be one of {listed}, got {name!r}. Nothing was spent.")
    made: RecommenderMethod = _with_options(name, RECOMMENDERS[name], {}, options)
    return made


def check_promise(
    algorithm: "Algorithm | Auto", schema: Schema, *, protect: Protection, budget: Cap
) -> None:
    """Refuse, before a table is opened, what an algorithm can't promise."""
    if isinstance(algorithm, Dp2Pub):
        algorithm.check_promise(schema, protect, budget)


def budget_for(
    algorithm: "Algorithm | Auto",
    schema: Schema,
    *,
    epsilon: check.Number,
    delta: check.Number | None,
) -> Cap:
    """The kind of budget with which an algorithm has the least noise, from public facts.

    Pure where that brings less noise, no delta was given or rows are randomized one by one,
    otherwise approximate:
    k equal steps have Laplace noise of sqrt(2) k / epsilon, or Gaussian of sqrt(k / 2 rho).
    """
    pure = PureDP(epsilon)
    if delta is None or isinstance(algorithm, Dp2Pub):
        return pure
    approximate = ApproxDP(epsilon, delta)
    steps = 1
    if isinstance(algorithm, Independent):
        steps = len(schema)
    elif isinstance(algorithm, Mwem):
        steps = 2 * algorithm.rounds
    elif isinstance(algorithm, Auto) and len(schema) > 1:
        steps = 2 * AUTO_ROUNDS[0]
    laplace = math.sqrt(2) * steps / float(pure.epsilon)
    gaussian = math.sqrt(steps / (2 * float(zcdp_budget(approximate).rho)))
    return approximate if gaussian < laplace else pure


def ledger_part(curator: Curator) -> dict[str, Any]:
    """The head of the ledger and the entries of this run: what a reader can check."""
    paid = [
        {
            "seq": entry.seq,
            "label": entry.label,
            "cost": to_json(entry.cost),
            "hash": entry.hash,
        }
        for entry in curator.ledger.entries()
        if entry.cost is not None and (entry.request or "").startswith(curator.run)
    ]
    head = curator.ledger.head
    return {
        "id": curator.ledger.ledger_id,
        "head": {"seq": head.seq, "hash": head.hash},
        "entries": paid,
    }


def _release(curator: Curator, fit: Fit, method: dict[str, Any]) -> TableRelease:
    return TableRelease(
        dataset=curator.ledger.dataset,
        guarantee=curator.budget,
        protect=curator.protect,
        private=curator.private,
        method=method,
        schema=curator.schema,
        model=fit.model,
        measurements=describe_measurements(fit.measurements),
        data=draw_table(fit.model, n_rows=round(fit.model.total), rng=curator.rng),
        ledger=ledger_part(curator),
    )


def _never_measured(schema: Schema, fit: Fit) -> list[str]:
    """Columns that no measurement speaks of: the model spreads them evenly, by assumption.

    Of a column of one value there is nothing to assume.
    """
    seen: set[str] = set()
    for measurement in fit.measurements:
        target = measurement.target
        seen |= set(target if isinstance(target, tuple) else target.marginal)
    return [column.name for column in schema if column.size > 1 and column.name not in seen]


def _mean_share(workload: Workload, rows: float, sigma: Callable[[Target], float]) -> float:
    """Mean over targets of the expected noise, sigma * sqrt(2/pi) a cell, as a share of the rows.

    A marginal's cells are added and halved: total variation before any projection.
    """
    sizes = [
        workload.schema.cells(target) / 2 if isinstance(target, tuple) else 1.0
        for target in workload.targets
    ]
    noise = np.array([sigma(target) for target in workload.targets]) * np.array(sizes)
    return min(1.0, float(noise.mean() * math.sqrt(2 / math.pi) / max(1.0, rows)))


def _merged(schema: Schema, target: Target) -> float:
    """How many cells of the whole domain add up to one answer."""
    cells = schema.cells(schema.names)
    if isinstance(target, tuple):
        return cells / schema.cells(target)
    inside = math.prod((high - low + 1) / schema[name].size for name, low, high in target.bounds)
    return cells * inside


def _with_options(
    name: str, kind: Any, given: Mapping[str, Any], options: Mapping[str, str]
) -> Any:
    """A spec of a kind: what is given where it has such fields, and options read as their types."""
    known = {entry.name: entry.type for entry in fields(kind)}
    settable = sorted(set(known) - set(given))
    chosen = {field: value for field, value in given.items() if field in known}
    for option, text in options.items():
        if option not in settable:
            listed = ", ".join(settable) or "none"
            message = f"{name} has no option {option!r}; its options: {listed}. Nothing was spent."
            raise InputError(message)
        chosen[option] = _option(option, text, kind=known[option])
    return kind(**chosen)


def _option(name: str, text: str, *, kind: Any) -> int | bool | str:
    if get_origin(kind) is Literal:
        return str(check.one_of(get_args(kind), **{name: text}))
    if kind is int:
        try:
            return int(text)
        except ValueError:
            raise InputError(f"{name} must be a whole number, got {text!r}") from None
    if text.lower() not in ("true", "false"):
        raise InputError(f"{name} must be true or false, got {text!r}")
    return text.lower() == "true"
