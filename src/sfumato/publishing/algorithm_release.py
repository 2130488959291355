"""From an algorithm and a curator to a release."""

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast, overload

import numpy as np

from sfumato.errors import InputError
from sfumato.gate import Curator, refuse_too_many_cells, spending_boundary
from sfumato.models.model import Model
from sfumato.privacy.guarantees import MAX_EPSILON, ApproxDP, to_json
from sfumato.publishing.auto import Auto
from sfumato.publishing.methods import check_fits, check_promise, is_recommender
from sfumato.release import TableRelease, draw_rows, noisy_marginals
from sfumato.release.folder import with_copy
from sfumato.schema import Schema
from sfumato.schema.measurement import Measurement, PublicTotal
from sfumato.synthesis.algorithm import Algorithm, Fit

if TYPE_CHECKING:
    from sfumato.recommend.algorithm import RecommenderAlgorithm
    from sfumato.release.recommender import RecommenderRelease

log = logging.getLogger(__name__)


@overload
def publish(algorithm: "Algorithm | Auto", curator: Curator) -> TableRelease: ...
@overload
def publish(algorithm: "RecommenderAlgorithm", curator: Curator) -> "RecommenderRelease": ...
@spending_boundary()
def publish(
    algorithm: "RecommenderAlgorithm | Algorithm | Auto", curator: Curator
) -> "TableRelease | RecommenderRelease":
    """Run an algorithm on a curator's table or ratings; the result may be published.

    A second call is a second spend. If the ledger is a file, a copy of the release is kept beside
    it until ``save`` has written one: what was paid for survives the process.
    """
    with _resume_note(curator):
        release = released(algorithm, curator)
        return with_copy(release, curator.ledger.path, run=curator.run)


@contextmanager
def _resume_note(curator: Curator) -> Iterator[None]:
    """Give an error after a charge a note on whether this run can be resumed, and how."""
    try:
        yield
    except BaseException as error:
        if curator.private and curator.journal.resumable:
            error.add_note(
                "The ledger has recorded what was charged and the outcomes. To go on without a new "
                "charge, use a new Curator with journal=sf.Journal.resume(ledger, command=...)."
            )
        elif curator.private and curator.journal.charged:
            error.add_note(
                "What was charged stays charged, and this run can't be resumed. One that is begun "
                "with Curator(..., journal=sf.Journal.begin(ledger, command=...)) can, unless it "
                "asks every row or is of ratings."
            )
        raise


@overload
def released(algorithm: "Algorithm | Auto", curator: Curator) -> TableRelease: ...
@overload
def released(algorithm: "RecommenderAlgorithm", curator: Curator) -> "RecommenderRelease": ...
def released(
    algorithm: "RecommenderAlgorithm | Algorithm | Auto", curator: Curator
) -> "TableRelease | RecommenderRelease":
    """What ``publish`` returns, without a copy on disk."""
    if is_recommender(algorithm):
        from sfumato.recommend.algorithm import release_recommender

        return release_recommender(algorithm, curator, receipt=ledger_part)
    return _released_table(cast("Algorithm | Auto", algorithm), curator)


def _released_table(algorithm: "Algorithm | Auto", curator: Curator) -> TableRelease:
    check_fits(algorithm, curator.schema)
    if curator.schema.public_bins:  # trees are paid before the method runs
        check_promise(algorithm, curator.schema, protect=curator.protect, budget=curator.budget)
    _check_room(curator.schema, getattr(algorithm, "totals", ()))
    _check_totals(curator, getattr(algorithm, "totals", ()))
    method: dict[str, Any] = {}
    if isinstance(algorithm, Auto):
        choice = algorithm.choose(curator)
        log.info("auto: %s, because %s", choice.algorithm.name, choice.reason)
        algorithm = choice.algorithm
        method = {"chosen_by": "auto", "reason": choice.reason, "predicted": choice.predicted}
    fit, schema = _fit(algorithm, curator)
    described = {"name": algorithm.name, **algorithm.describe(), **fit.facts, **method}
    if unseen := _never_measured(schema, fit):
        described["never_measured"] = unseen
    return _release(curator, fit, schema, described)


def _fit(algorithm: Algorithm, curator: Curator) -> tuple[Fit, Schema]:
    """What the method fits, and the schema with the bins of columns that declared none."""
    if not curator.schema.public_bins:
        return algorithm.run(curator), curator.schema
    from sfumato.synthesis import number_bins  # only here: it loads models

    return number_bins.run(algorithm, curator)


def _check_room(schema: Schema, totals: Sequence[PublicTotal]) -> None:
    """Refuse, before anything is paid, columns whose counts do not fit into memory together."""
    known = {total.marginal for total in totals}
    schema = schema.with_bins(schema.public_bins)
    refuse_too_many_cells(schema, [(n,) for n in schema.names if (n,) not in known])


def _check_totals(curator: Curator, totals: Sequence[PublicTotal]) -> None:
    """Refuse public totals of another table, where the number of rows is public."""
    if not totals or not curator.knows_rows:
        return
    rows = round(float(curator.total().values))
    if totals[0].rows != rows:
        raise InputError(
            f"the public totals of {totals[0]} are of {totals[0].rows:,} rows, but the table has "
            f"{rows:,}, which is public where one row is replaced. Give totals of this very "
            "table, or leave them out."
        )


def ledger_part(curator: Curator) -> dict[str, Any]:
    """The head of the ledger, the entries of this run, and what all runs have cost: to be checked.

    The total is stated at the delta of this run's budget, if it has one. One that is too large for
    any guarantee is stated as ``spent_beyond`` that epsilon.
    """
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
    ledger, budget = curator.ledger, curator.budget
    head, cap = ledger.head, ledger.cap
    spent = ledger.composed(budget.delta if isinstance(budget, ApproxDP) else None)
    beyond = spent is None and not ledger.spent.nothing
    return {
        "id": ledger.ledger_id,
        "day": ledger.day,
        "head": {"seq": head.seq, "hash": head.hash},
        "entries": paid,
        **({"spent": to_json(spent)} if spent is not None else {}),
        **({"spent_beyond": str(MAX_EPSILON)} if beyond else {}),
        **({"cap": to_json(cap)} if cap is not None else {}),
    }


def _release(curator: Curator, fit: Fit, schema: Schema, method: dict[str, Any]) -> TableRelease:
    curator.tell("drawing rows", 0, 0)
    measured = [raw for one in fit.measurements for raw in one.as_measured or (one,)]
    if errors := number_errors(schema, fit.model, measured):
        method = {**method, "number_errors": errors}
    drawn = draw_rows(fit.model, n_rows=round(fit.model.total), rng=curator.rng)
    return TableRelease(
        dataset=curator.ledger.dataset,
        guarantee=curator.budget,
        protect=curator.protect,
        private=curator.private,
        method={**method, **drawn.facts},
        schema=schema,
        model=drawn.model,
        measurements=tuple(measurement.to_dict() for measurement in measured),
        noisy=noisy_marginals(schema, measured),
        data=drawn.table,
        ledger=ledger_part(curator),
    )


def number_errors(
    schema: Schema, model: Model, measured: Sequence[Measurement]
) -> dict[str, dict[str, Any]]:
    """The standard errors, from noise, of the mean and of quantiles of each number."""
    from sfumato.models.number_errors import number_error  # only here: it loads models
    from sfumato.schema.classes import middles

    result = {}
    for column in schema:
        own = [one for one in measured if one.target == (column.name,)]
        values = middles(column) if own else None
        if values is not None:
            counts = np.asarray(model.marginal((column.name,)), dtype=np.float64)
            error = number_error(schema, column.name, own, counts=counts, values=values)
            if error is not None:
                result[column.name] = error.to_dict()
    return result


def _never_measured(schema: Schema, fit: Fit) -> list[str]:
    """Columns that no measurement contains: the model spreads them evenly, by assumption.

    Of a column of one value there is nothing to assume.
    """
    measured: set[str] = set()
    for measurement in fit.measurements:
        target = measurement.target
        measured |= set(target if isinstance(target, tuple) else target.marginal)
    return [column.name for column in schema if column.size > 1 and column.name not in measured]
