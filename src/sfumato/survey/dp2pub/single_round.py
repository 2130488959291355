"""A survey in one round: everybody is asked about one column, with all of epsilon.

What is learned are the frequencies of each column. Nothing is learned about how columns depend on
each other, so the table that is drawn has independent ones, and the release says so.
"""

from collections.abc import Iterable, Mapping
from math import sqrt
from typing import Any

from sfumato.models.answers.pair_tables import NoisyTable, known_columns, whole
from sfumato.models.product import ProductModel
from sfumato.privacy.protection import OneRow
from sfumato.randomness import Rng
from sfumato.release import TableRelease, draw_table
from sfumato.survey.dp2pub import grouped_rounds
from sfumato.survey.dp2pub.grouped_rounds import Collected, RoundTally, column_tables, columns_plan
from sfumato.survey.protocol.rounds import Agreement, RoundPlan


def first_plan(agreed: Agreement) -> RoundPlan:
    """Larger columns are asked about more often, so that all are told about equally well."""
    return columns_plan(agreed)


def count(
    plan: RoundPlan, agreed: Agreement, answers: Collected | Iterable[Collected]
) -> RoundTally:
    """Check and count answers to the plan; one that does not fit refuses all of them."""
    return grouped_rounds.count(plan, agreed, answers)


def release(agreed: Agreement, heard: RoundTally, *, rng: Rng) -> TableRelease:
    """A table of independent columns: a row for each person who answered, a public number."""
    people = heard.people
    told = column_tables(agreed, [heard])
    bins = {column.name: whole(column.size) for column in agreed.schema}
    known = known_columns(agreed.schema, one_ways=told, pairs={}, bins=bins)
    shares = {name: table.frequencies for name, table in known.items()}
    model = ProductModel(schema=agreed.schema, total=float(people), shares=shares)
    return TableRelease(
        dataset=agreed.schema.dataset or f"survey {agreed.id}",
        guarantee=agreed.guarantee,
        protect=OneRow(neighbors="replace"),
        private=not heard.simulated,
        method=_method(agreed, heard),
        schema=agreed.schema,
        model=model,
        measurements=_measured(told, people),
        data=draw_table(model, n_rows=people, rng=rng),
        ledger={"head": {"seq": 0, "hash": agreed.id}, "entries": []},  # devices keep their own
    )


def _method(agreed: Agreement, heard: RoundTally) -> dict[str, Any]:
    return {
        "name": "survey",
        "trust": "nobody",
        "variant": agreed.variant,
        "survey": agreed.id,
        "answers": [heard.people],
        "structure": "none",
    }


def _measured(told: Mapping[str, NoisyTable], people: int) -> tuple[dict[str, Any], ...]:
    return tuple(
        {"target": [name], "sigma_counts": people * sqrt(table.variance)}
        for name, table in told.items()
    )
