"""DP2-Pub rehearsed on a table: its rows answer as people would, through the gate.

Whoever runs this holds the table, so the promise is the curator's budget, to everybody who sees the
release, and the table's ledger is charged with it. Whatever could be refused is refused before.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from math import comb
from typing import Any, Final, get_args

import numpy as np
from numpy.typing import NDArray

from sfumato import check
from sfumato.errors import InputError
from sfumato.gate import Curator
from sfumato.models.model import PublishedRows
from sfumato.models.pram.clusters import Pram
from sfumato.privacy.guarantees import PureDP
from sfumato.privacy.protection import OneRow
from sfumato.randomness import Rng
from sfumato.release import TableRelease
from sfumato.schema.classes import first_classes
from sfumato.schema.codes import code_type
from sfumato.schema.columns import EVERY_VALUE, Date, GridColumn, Integer
from sfumato.schema.schema import Marginal, Schema
from sfumato.survey.dp2pub.semi_honest import check_pairs, publish_answers
from sfumato.survey.dp2pub.two_round import TwoRound
from sfumato.survey.protocol.rounds import (
    MAX_PARTS,
    Agreement,
    AnswerRows,
    ColumnsQuestion,
    PartsQuestion,
    RecordRows,
    read_question,
)

Receipt = Callable[[Curator], Mapping[str, Any]]
"""What a release says of the ledger that was charged: its head and the entries of this run."""

Ask = Callable[[Mapping[str, Any]], AnswerRows | RecordRows]
"""From the message of a round to the answers of its people."""

LEAST_PEOPLE: Final = 32
"""Rows are divided into two groups at random; of 32 rows one group is empty with chance 2^-31."""


def semi_honest_release(
    curator: Curator,
    *,
    receipt: Receipt,
    degree: int = 3,
    max_cluster: int = 3,
    pram: Pram = "auto",
    rows: int | None = None,
) -> TableRelease:
    """Every row answers every column once, with an equal part of epsilon; then PRAM.

    Formal guarantee: the curator's budget, for one row that is replaced.

    Args:
        curator: Holds the table; all that is left of its budget is spent.
        receipt: Asked after the charge.
        degree: The most parents of a column in the network.
        max_cluster: The most columns that are redrawn together.
        pram: See ``publish_answers``.
        rows: How many rows to publish, at most as many as there are; by default all of them.
    """
    curator = with_fixed_bins(curator)
    columns, schema = answerable_columns(curator.schema), curator.schema
    check.whole(at_least=1, degree=degree)
    check.whole(at_least=1, max_cluster=max_cluster)
    check.one_of(get_args(Pram), pram=pram)
    check_pairs(schema)
    if rows is not None:
        people_of(curator, rows=check.whole(at_least=1, rows=rows))
    epsilon = _epsilon(curator) / len(columns)
    answers = curator.respond(dict.fromkeys(columns, epsilon))
    curator.tell("network, clusters and redrawing", 0, 0)
    result = publish_answers(
        schema,
        _block(schema, answers.codes, answers.rows),
        [answers.mechanisms.get(name) for name in schema.names],
        degree=degree,
        max_cluster=max_cluster,
        pram=pram,
        rng=curator.rng,
    )
    made = result.release(
        dataset=curator.ledger.dataset,
        private=curator.private,
        ledger=receipt(curator),
        rng=curator.rng,
        guarantee=curator.budget,
    )
    return resized(made, rows, rng=curator.rng)


def two_round_release(
    curator: Curator,
    *,
    variant: str = "grouped",
    receipt: Receipt,
    rows: int | None = None,
) -> TableRelease:
    """A survey in two rounds among the rows, as ``TwoRound`` asks them.

    Formal guarantee: the curator's budget, for one row that is replaced. In the variant "grouped" a
    row answers in one round, with all of epsilon; in "faithful" in both, with half of it in each.

    Args:
        curator: Holds the table; all that is left of its budget is spent, in one entry.
        variant: "grouped" or "faithful".
        receipt: Asked after the charge.
        rows: How many rows to draw from the model; by default as many as there are.
    """
    if rows is not None:
        check.whole(at_least=1, rows=rows)
    curator = with_fixed_bins(curator)
    survey = TwoRound(curator.schema, _epsilon(curator), variant=variant)
    agreed = Agreement.from_manifest(survey.manifest)
    first = survey.first_round()
    read_question(first, agreed)  # what no device would answer is refused before it is paid for
    ask = _groups(curator, agreed) if variant == "grouped" else _everybody(curator, agreed)
    answers = ask(survey.second_round(ask(first)))
    curator.tell("fitting and drawing", 0, 0)
    made = survey.publish(answers, rng=curator.rng)
    restated = replace(
        made,
        dataset=curator.ledger.dataset,
        guarantee=curator.budget,
        ledger=receipt(curator),
    )
    return resized(restated, rows, rng=curator.rng)


def with_fixed_bins(curator: Curator) -> Curator:
    """The same run with public bins of numbers and moments, which devices could not find."""
    bins = {
        column.name: first_classes(column) if column.adaptive else tuple(range(column.cells))
        for column in curator.schema
        if isinstance(column, GridColumn)
        and column.on_grid
        and column.bins is None
        and not (isinstance(column, Integer | Date) and column.cells <= EVERY_VALUE)
    }
    return curator.binned(bins) if bins else curator


def answerable_columns(schema: Schema) -> Marginal:
    """The columns that have anything to answer: those of two values or more; there must be one."""
    columns = tuple(column.name for column in schema if column.size > 1)
    if not columns:
        raise InputError("every column of the schema has one value only: there is nothing to ask.")
    return columns


def people_of(curator: Curator, *, rows: int | None = None, at_least: int = 1) -> int:
    """The number of rows, which is public here; refused before any spend if it can't do.

    Args:
        curator: Holds the table.
        rows: How many are to be published where there is no model to draw more from.
        at_least: How many rows are needed.
    """
    _check_replace(curator)
    people = int(curator.total().values)
    if people < at_least:
        raise InputError(
            f"two groups of rows need at least {at_least:,} rows, and the table has "
            f"{people:,}. Use the variant 'faithful'."
        )
    if rows is not None and rows > people:
        raise InputError(
            f"{rows:,} rows are to be published, but the table has {people:,} and there is no "
            "model to draw more from. Ask for no more than that."
        )
    return people


def resized(release: TableRelease, rows: int | None, *, rng: Rng) -> TableRelease:
    """The release with another number of rows, if one is given: post-processing."""
    if rows is None:
        return release
    data = release.table(n_rows=check.whole(at_least=1, rows=rows), rng=rng)
    if not isinstance(release.model, PublishedRows):
        return replace(release, data=data)
    return replace(release, data=data, model=PublishedRows.of(release.schema, data))


def _groups(curator: Curator, agreed: Agreement) -> Ask:
    """Rows that are asked once, with all of epsilon, in a round drawn at random; now paid for.

    The second round may ask about every column and every pair.
    """
    columns = len(agreed.columns)
    if comb(columns, 2) + columns > MAX_PARTS:
        raise InputError(
            f"{columns:,} columns have more pairs than the {MAX_PARTS:,} parts that a question may "
            "have. Publish fewer columns."
        )
    people_of(curator, at_least=LEAST_PEOPLE)
    interview = curator.interview(PureDP(agreed.epsilon), columns=agreed.columns)

    def ask(message: Mapping[str, Any]) -> AnswerRows:
        question = PartsQuestion.from_dict(message, agreed)
        curator.tell(f"asking round {question.round}", 0, 0)
        parts = [part.made(agreed.schema, agreed.epsilon) for part in question.parts]
        drawn, values = interview.ask(parts, question.weights)
        simulated = not curator.private
        return AnswerRows(question=question.id, part=drawn, answer=values, simulated=simulated)

    return ask


def _everybody(curator: Curator, agreed: Agreement) -> Ask:
    """Rows that are asked in both rounds, about every column; now paid for."""
    label = f"respond in two rounds, {len(agreed.columns)} targets"
    curator.reserve(PureDP(agreed.epsilon), label=label)

    def ask(message: Mapping[str, Any]) -> RecordRows:
        question = ColumnsQuestion.from_dict(message, agreed)
        curator.tell(f"asking round {question.round}", 0, 0)
        answers = curator.respond(question.budgets).codes
        codes = np.stack([answers[name] for name in question.budgets])
        return RecordRows(question=question.id, codes=codes, simulated=not curator.private)

    return ask


def _check_replace(curator: Curator) -> None:
    if curator.protect != OneRow(neighbors="replace"):
        raise InputError(
            "rows randomized one by one publish how many there are, so one row that is replaced "
            f"is protected, not {curator.protect}. Use OneRow(neighbors='replace')."
        )


def _epsilon(curator: Curator) -> Fraction:
    """The rest of the budget; refused if it is not pure epsilon."""
    _check_replace(curator)
    left = curator.left
    if not isinstance(left, PureDP):
        raise InputError(
            f"answers cost pure epsilon, but the budget is {curator.budget}. Give epsilon without "
            "delta."
        )
    return left.epsilon


def _block(schema: Schema, codes: Mapping[str, NDArray[Any]], rows: int) -> NDArray[Any]:
    """A row for each column of the schema; a column of one value holds nothing but that."""
    block = np.zeros((len(schema), rows), dtype=np.result_type(*map(code_type, schema)))
    for index, name in enumerate(schema.names):
        if name in codes:
            block[index] = codes[name]
    return block
