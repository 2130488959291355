"""Publishing a table, with its schema or without one: the work of ``sfumato publish``.

Order of a publication: everything that can be checked without the data, then the cap, then the
format of the table, then the charge, then the look.
"""

from functools import partial
from pathlib import Path

from sfumato import check
from sfumato.commands.inferred_schema import (
    STAND_IN,
    check_inferable,
    check_share_unused,
    find_schema,
    inferred_before,
    published,
    share_of,
    whole_budget,
)
from sfumato.commands.inputs import (
    asked_protection,
    asked_totals,
    asked_workload,
    check_ranges,
    check_resume,
    check_rows,
    check_schema_share,
    dataset_name,
    loaded_schema,
    read_strictly,
)
from sfumato.commands.internal_folder import publishable
from sfumato.commands.kept_schema import keeping_schema
from sfumato.commands.parameters import asked_cap, check_one_table
from sfumato.commands.publication import Publication, check_outputs, run
from sfumato.commands.publish import PublishRequest
from sfumato.commands.request import as_path, public_options
from sfumato.ledger.ledger import Ledger
from sfumato.privacy.guarantees import ApproxDP
from sfumato.privacy.protection import NEIGHBORS
from sfumato.publishing.auto import Auto
from sfumato.publishing.methods import algorithm_named, budget_for, check_promise
from sfumato.release import TableRelease
from sfumato.schema import Schema
from sfumato.synthesis.algorithm import Algorithm

_DOING = "measuring and fitting"


def publish(request: PublishRequest) -> TableRelease:
    """Publish a table whose columns are declared, or are found out first, privately."""
    check_one_table(request.table)
    check.one_of(NEIGHBORS, neighbors=request.neighbors)
    return _without_schema(request) if request.schema is None else _with_schema(request)


def _with_schema(request: PublishRequest) -> TableRelease:
    check_share_unused(request.infer_share)
    known = loaded_schema(request.schema) if request.schema is not None else STAND_IN
    algorithm, plan = _planned(request, read_strictly(known, request.strict), left=None)
    found = inferred_before(plan)
    return run(plan, partial(published, algorithm, found), doing=_DOING)


def _without_schema(request: PublishRequest) -> TableRelease:
    check_inferable(request.workload, request.totals, strict=request.strict)
    check_schema_share(request.epsilon, request.infer_share)
    whole, share = whole_budget(request.epsilon, request.delta), share_of(request.infer_share)
    _, plan = _planned(request, STAND_IN, left=whole)
    ledger = Ledger.open(plan.ledger, dataset=plan.dataset, cap=asked_cap(request.cap))
    found = find_schema(plan, budget=whole, share=share, ledger=ledger)
    with keeping_schema(found, plan.folder):
        algorithm, plan = _planned(request, found.schema, left=found.rest(whole))
        return run(plan, partial(published, algorithm, found), doing=_DOING, ledger=ledger)


def _planned(
    request: PublishRequest, known: Schema, *, left: ApproxDP | None
) -> tuple[Algorithm | Auto, Publication]:
    """All that is asked for, checked before the table is opened.

    Args:
        request: As it was given.
        known: The schema.
        left: What is left of the budget after finding it, if it was found.
    """
    wanted = asked_workload(known, request.workload)
    check_ranges(wanted)
    check_rows(request.rows, request.neighbors)
    check_resume(request.resume, request.seed)
    totals = asked_totals(known, request.totals)
    algorithm = algorithm_named(
        request.method,
        workload=wanted,
        rows=request.rows,
        totals=totals,
        options=request.options or {},
    )
    algorithm.check(known)
    epsilon, delta = request.epsilon, request.delta
    if left is not None:
        epsilon, delta = left.epsilon, left.delta
    if (out := as_path(request.out)) is not None:
        publishable(out)
    plan = Publication(
        request=request,
        table=request.table,
        schema=known,
        budget=budget_for(algorithm, known, epsilon=epsilon, delta=delta),
        protect=asked_protection(request.neighbors, request.person, request.max_rows),
        dataset=dataset_name(known, request.dataset),
        workload=wanted,
        totals=totals,
        command=public_options("publish", request),
    )
    check_promise(algorithm, known, protect=plan.protect, budget=plan.budget)
    files = (request.schema, request.workload, request.totals)
    check_outputs(plan, *(given for given in files if isinstance(given, str | Path)))
    return algorithm, plan
