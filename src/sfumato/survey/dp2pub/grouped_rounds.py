"""The variants in which each person answers once, about one part of a question.

"grouped": half of the people answer first, most about one column and some about a pair; their
answers decide the question for the other half. "single": everybody answers about one column, so
nothing is learned about how columns depend on each other. All functions take public values.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Final

import numpy as np

from sfumato.errors import InputError
from sfumato.local.mechanism import FrequencyMechanism
from sfumato.models.answers.dependence import (
    NO_PAIRS,
    Dependence,
    PairChoice,
    Population,
    Questions,
    choose_pairs,
    choose_pilot,
    column_shares,
    mean_dependence,
)
from sfumato.models.answers.group_fit import fit_grouped, strongest_ties
from sfumato.models.answers.pair_tables import (
    WIDE,
    Bins,
    Edge,
    NoisyTable,
    PairAnswers,
    bins_by_mass,
    column_averages,
    even_bins,
    known_columns,
    ordered_codes,
    whole,
)
from sfumato.models.answers.tree import fit_tree
from sfumato.randomness import Rng
from sfumato.release import TableRelease
from sfumato.schema.columns import Column
from sfumato.schema.schema import Marginal
from sfumato.survey.dp2pub.round_tally import PartsTally, table_release
from sfumato.survey.protocol.rounds import (
    PROTOCOLS,
    Agreement,
    PartsQuestion,
    QuestionPart,
    mechanism_of,
)

_UNIT: Final = 2**32
"""Shares become whole-number weights out of this."""


@dataclass(frozen=True, kw_only=True, eq=False)
class SecondRound:
    """The question of the second round and why: bins of every column, the predicted error."""

    question: PartsQuestion
    bins: Mapping[str, Bins]
    choice: PairChoice
    dependence: Dependence | None
    """The mean squared total variation between columns and their product, by the first round."""


def first_question(agreed: Agreement) -> PartsQuestion:
    """Most people are asked about one column, larger ones more often; some about a pair.

    As many about pairs as hardly cost anything should columns be independent: see
    ``choose_pilot``. Bins of columns with many codes are cut evenly.
    """
    people = _population(agreed)
    questions = choose_pilot(people)
    bins = {name: even_bins(people.sizes[name], most=k) for name, k in questions.bins.items()}
    return _question(agreed, 1, questions, bins)


def one_column_question(agreed: Agreement) -> PartsQuestion:
    """Everybody is asked about one column: all that the variant "single" asks."""
    return _question(agreed, 1, NO_PAIRS, {})


def second_question(agreed: Agreement, first: PartsTally) -> SecondRound:
    """The question of the second round, from the answers of the first: post-processing.

    As many people are expected to answer as in the first round: they are divided at random.
    """
    if first.people == 0:
        raise InputError("nobody answered in the first round: there is nothing to plan with.")
    schema, one_ways = agreed.schema, column_tables(agreed, [first])
    cut = {column.name: _bins_of(first.question, column) for column in schema}
    pairs = {each.columns: each.table() for each in pair_answers(agreed, [first], cut)}
    known = known_columns(schema, one_ways=one_ways, pairs=pairs, bins=cut)
    averages = column_averages(one_ways=one_ways, pairs=pairs, bins=cut)
    dependence = mean_dependence(pairs, averages) if pairs else None
    smoothed = {name: known[name].variance / table.variance for name, table in one_ways.items()}
    people = _population(agreed, smoothed=smoothed)
    pairs_of = [part.columns for part in first.question.parts if len(part.columns) == 2]
    paired = {name for columns in pairs_of for name in columns}
    unbinned = {name for name in paired if cut[name].count == cut[name].codes}
    choice = choose_pairs(people, known, left=first.people, observed=dependence, whole=unbinned)
    bins = {
        column.name: bins_by_mass(
            known[column.name].frequencies,
            most=choice.questions.bins.get(column.name, column.size),
            ordered=ordered_codes(column),
        )
        for column in schema
    }
    question = _question(agreed, 2, choice.questions, bins)
    return SecondRound(question=question, bins=bins, choice=choice, dependence=dependence)


def column_tables(agreed: Agreement, tallies: Iterable[PartsTally]) -> dict[str, NoisyTable]:
    """The debiased one-way tables from all answers about one column; without any, none."""
    tallies, tables = list(tallies), {}
    for name in agreed.columns:
        matches = [match for match in (tally.of((name,)) for tally in tallies) if match is not None]
        people = sum(own for _, own in matches)
        if people == 0:
            continue
        mechanism = best_protocol(agreed.schema[name].size, agreed.epsilon)[1]
        supports = mechanism.supports(np.sum([counts for counts, _ in matches], axis=0))
        p, q = float(mechanism.p), float(mechanism.q)
        tables[name] = NoisyTable(
            frequencies=(supports / people - q) / (p - q),
            variance=cell_noise(mechanism) / people,
        )
    return tables


def pair_answers(
    agreed: Agreement, tallies: Iterable[PartsTally], bins: Mapping[str, Bins]
) -> list[PairAnswers]:
    """The counted answers about pairs of columns, of all rounds that asked in these bins."""
    pairs: dict[Edge, PairAnswers] = {}
    for tally in tallies:
        for part, counts in zip(tally.question.parts, tally.counts, strict=True):
            if len(part.columns) == 1 or not counts.any():
                continue
            edge = part.columns[0], part.columns[1]
            if part != _pair_part(edge, bins):
                continue
            mechanism = part.mechanism(agreed.schema, agreed.epsilon)
            table = counts.reshape(part.shape(agreed.schema))
            total = table + pairs[edge].counts if edge in pairs else table
            p, q = float(mechanism.p), float(mechanism.q)
            pairs[edge] = PairAnswers(columns=edge, counts=total, p=p, q=q)
    return list(pairs.values())


def release(
    agreed: Agreement, chosen: SecondRound, first: PartsTally, second: PartsTally, *, rng: Rng
) -> TableRelease:
    """Fit and draw: a row for each person who answered."""
    tallies, people = [first, second], first.people + second.people
    one_ways = column_tables(agreed, tallies)
    pairs = pair_answers(agreed, tallies, chosen.bins)
    fit = fit_grouped(
        agreed.schema,
        total=float(people),
        one_ways=one_ways,
        answers=pairs,
        bins=chosen.bins,
        rng=rng,
    )
    tables: dict[Marginal, NoisyTable] = {(name,): table for name, table in one_ways.items()}
    tables |= {each.columns: each.table() for each in pairs}
    dependence = chosen.dependence
    method = {
        "asked_about_pairs": [_share_of_pairs(tally.question) for tally in tallies],
        "dependence": None if dependence is None else [dependence.squared, dependence.error],
        "most_bins": max(chosen.choice.questions.bins.values(), default=0),
        "predicted": chosen.choice.predicted,
        "structure": fit.kind,
        "ties": strongest_ties(fit),
        "worth": dict(fit.worth),
    }
    return table_release(
        agreed, tallies, people=people, model=fit.model, tables=tables, method=method, rng=rng
    )


def release_columns(agreed: Agreement, tally: PartsTally, *, rng: Rng) -> TableRelease:
    """A table of independent columns, from one round: a row for each person who answered."""
    tables = column_tables(agreed, [tally])
    bins = {column.name: whole(column.size) for column in agreed.schema}
    known = known_columns(agreed.schema, one_ways=tables, pairs={}, bins=bins)
    shares = {name: table.frequencies for name, table in known.items()}
    return table_release(
        agreed,
        [tally],
        people=tally.people,
        model=fit_tree(agreed.schema, total=float(tally.people), shares=shares, pairs={}),
        tables={(name,): table for name, table in tables.items()},
        method={"structure": "none"},
        rng=rng,
    )


def cell_noise(mechanism: FrequencyMechanism) -> float:
    """The variance of an average cell times the number of answers: of noise and of sampling.

    v(m, k) = m.variance(1/k) + (1 - 1/k)/k for k categories.
    """
    share = 1 / mechanism.categories
    return mechanism.variance(share) + share * (1 - share)


@lru_cache(maxsize=4_096)
def best_protocol(categories: int, epsilon: Fraction) -> tuple[str, FrequencyMechanism]:
    """Of the protocols with integer answers the one of least noise, the simplest of equals."""
    made = {name: mechanism_of(name, categories, epsilon) for name in PROTOCOLS}
    best = min(made, key=lambda name: cell_noise(made[name]))
    return best, made[best]


@lru_cache(maxsize=4_096)
def _pair_noise(cells: int, epsilon: Fraction) -> float:
    return cell_noise(mechanism_of("grr", cells, epsilon))


def _population(agreed: Agreement, *, smoothed: Mapping[str, float] | None = None) -> Population:
    """The columns that are asked about; smoothing lowers the noise of ordered ones by a factor."""
    sizes = {name: agreed.schema[name].size for name in agreed.columns}
    alone = {
        size: cell_noise(best_protocol(size, agreed.epsilon)[1]) for size in set(sizes.values())
    }
    wide = {name for name in sizes if ordered_codes(agreed.schema[name]) >= WIDE}
    factors = {name: part for name, part in (smoothed or {}).items() if name in wide}
    return Population(
        sizes=sizes,
        alone={name: alone[size] * factors.get(name, 1.0) for name, size in sizes.items()},
        noise=lambda cells: _pair_noise(cells, agreed.epsilon),
        shares=column_shares(sizes, noise=alone.__getitem__),
    )


def _bins_of(question: PartsQuestion, column: Column) -> Bins:
    """The bins in which a question asks about pairs with a column; each code, if it does not."""
    for part in question.parts:
        if len(part.columns) == 2 and column.name in part.columns:
            cut = part.bins[part.columns.index(column.name)]
            return whole(column.size) if cut is None else Bins(of=np.array(cut))
    return whole(column.size)


def _pair_part(edge: Edge, bins: Mapping[str, Bins]) -> QuestionPart:
    cuts = [bins[name] for name in edge]
    coarser = (None if cut.count == cut.codes else tuple(cut.of.tolist()) for cut in cuts)
    return QuestionPart(columns=edge, bins=tuple(coarser))


def _question(
    agreed: Agreement, number: int, questions: Questions, bins: Mapping[str, Bins]
) -> PartsQuestion:
    people, parts = _population(agreed), list[tuple[QuestionPart, float]]()
    for name, share in people.shares.items():
        left = 1 - questions.share if name in questions.bins else 1.0
        if left > 0:
            protocol = best_protocol(people.sizes[name], agreed.epsilon)[0]
            part = QuestionPart(columns=(name,), bins=(None,), protocol=protocol)
            parts.append((part, left * share))
    each = people.each(questions)
    parts += [(_pair_part(edge, bins), each) for edge in questions.edges]
    return PartsQuestion(
        survey=agreed.id,
        round=number,
        epsilon=agreed.epsilon,
        parts=tuple(part for part, _ in parts),
        weights=tuple(max(1, round(share * _UNIT)) for _, share in parts),
    )


def _share_of_pairs(question: PartsQuestion) -> float:
    weighed = zip(question.parts, question.weights, strict=True)
    pairs = sum(weight for part, weight in weighed if len(part.columns) == 2)
    return pairs / sum(question.weights)
