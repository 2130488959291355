"""The rounds of the variant with groups: what each person is asked once, counted, and fitted.

Half of the people answer first, most about one column and some about a pair of them; what they
say decides how the other half is asked. All functions take public values: the server sees answers
only.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import sqrt
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sfumato import check
from sfumato.errors import InputError
from sfumato.local.mechanism import FrequencyMechanism
from sfumato.local.records.parts import by_part
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
from sfumato.models.answers.group_fit import GroupedFit, fit_grouped, strongest_ties
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
from sfumato.privacy.protection import OneRow
from sfumato.randomness import Rng
from sfumato.release import TableRelease, draw_table
from sfumato.schema.columns import Column
from sfumato.schema.schema import Marginal
from sfumato.survey.protocol.messages import Answer
from sfumato.survey.protocol.rounds import (
    PROTOCOLS,
    Agreement,
    AnswerRows,
    PlanPart,
    RoundPlan,
    check_question,
    mechanism_of,
)

Collected = AnswerRows | Answer | Mapping[str, Any] | None
"""What may be counted: many answers, one, its message, or None from who had nothing to answer."""

_UNIT: Final = 2**32
"""Shares become whole-number weights out of this."""


@dataclass(frozen=True, kw_only=True, eq=False)
class RoundTally:
    """The counted answers to a plan: an array for each part."""

    plan: RoundPlan
    counts: tuple[NDArray[np.int64], ...]
    answers: NDArray[np.int64]
    """The number of people who answered about each part."""
    simulated: bool

    @property
    def people(self) -> int:
        """Everybody who answered."""
        return int(self.answers.sum())

    def of(self, columns: Marginal) -> tuple[NDArray[np.int64], int] | None:
        """Counts and people of the part about these columns, if it was asked about."""
        for part, counts, people in zip(self.plan.parts, self.counts, self.answers, strict=True):
            if part.columns == columns:
                return counts, int(people)
        return None


@dataclass(frozen=True, kw_only=True, eq=False)
class SecondRound:
    """The plan of the second round and why: bins of every column, the predicted error."""

    plan: RoundPlan
    bins: Mapping[str, Bins]
    choice: PairChoice
    seen: Dependence | None
    """The mean squared total variation between columns and their product, by the first round."""


def first_plan(agreed: Agreement) -> RoundPlan:
    """Most people are asked about one column, larger ones more often; some about a pair.

    As many about pairs as hardly cost anything should columns be independent: see
    ``choose_pilot``. Bins of columns with many codes are cut evenly.
    """
    people = _population(agreed)
    questions = choose_pilot(people)
    bins = {name: even_bins(people.sizes[name], most=k) for name, k in questions.bins.items()}
    return _plan(agreed, 1, questions, bins)


def columns_plan(agreed: Agreement) -> RoundPlan:
    """Everybody of the first round is asked about one column: what others are compared with."""
    return _plan(agreed, 1, NO_PAIRS, {})


def second_plan(agreed: Agreement, heard: RoundTally) -> SecondRound:
    """How the second round is asked, from what was heard in the first: post-processing.

    As many people are expected to answer as in the first round: a coin divides them.
    """
    if heard.people == 0:
        raise InputError("nobody answered in the first round: there is nothing to plan with.")
    schema, one_ways = agreed.schema, column_tables(agreed, [heard])
    cut = {column.name: _bins_of(heard.plan, column) for column in schema}
    pairs = {each.columns: each.table() for each in pair_answers(agreed, [heard], cut)}
    known = known_columns(schema, one_ways=one_ways, pairs=pairs, bins=cut)
    averages = column_averages(one_ways=one_ways, pairs=pairs, bins=cut)
    seen = mean_dependence(pairs, averages) if pairs else None
    kept = {name: known[name].variance / table.variance for name, table in one_ways.items()}
    people = _population(agreed, smoothed=kept)
    asked = {name for part in heard.plan.parts for name in part.columns if len(part.columns) == 2}
    whole_ones = {name for name in asked if cut[name].count == cut[name].codes}
    choice = choose_pairs(people, known, left=heard.people, observed=seen, whole=whole_ones)
    bins = {
        column.name: bins_by_mass(
            known[column.name].frequencies,
            most=choice.questions.bins.get(column.name, column.size),
            ordered=ordered_codes(column),
        )
        for column in schema
    }
    plan = _plan(agreed, 2, choice.questions, bins)
    return SecondRound(plan=plan, bins=bins, choice=choice, seen=seen)


def count(
    plan: RoundPlan, agreed: Agreement, answers: Collected | Iterable[Collected]
) -> RoundTally:
    """Check and count answers to a plan; one that does not fit refuses all of them."""
    mechanisms = [part.mechanism(agreed.schema, plan.epsilon) for part in plan.parts]
    counts = tuple(np.zeros(mechanism.cells, dtype=np.int64) for mechanism in mechanisms)
    people = np.zeros(len(plan.parts), dtype=np.int64)
    simulated = False
    for rows in _gathered(answers, plan):
        simulated |= rows.simulated
        for place, mine in by_part(rows.part, len(plan.parts)):
            mechanism = mechanisms[place]
            mechanism.add(mechanism.layout.checked_many(rows.answer[mine]), counts[place])
            people[place] += mine.size
    return RoundTally(plan=plan, counts=counts, answers=people, simulated=simulated)


def column_tables(agreed: Agreement, rounds: Iterable[RoundTally]) -> dict[str, NoisyTable]:
    """The debiased one-way tables from all answers about one column; without any, none."""
    rounds, found = list(rounds), {}
    for name in agreed.asked:
        heard = [own for own in (each.of((name,)) for each in rounds) if own is not None]
        people = sum(own[1] for own in heard)
        if people == 0:
            continue
        mechanism = best_protocol(agreed.schema[name].size, agreed.epsilon)[1]
        supports = mechanism.supports(np.sum([own[0] for own in heard], axis=0))
        p, q = float(mechanism.p), float(mechanism.q)
        found[name] = NoisyTable(
            frequencies=(supports / people - q) / (p - q),
            variance=cell_noise(mechanism) / people,
        )
    return found


def pair_answers(
    agreed: Agreement, rounds: Iterable[RoundTally], bins: Mapping[str, Bins]
) -> list[PairAnswers]:
    """The counted answers about pairs of columns, of all rounds that asked in these bins."""
    found: dict[Edge, PairAnswers] = {}
    for heard in rounds:
        for part, counts in zip(heard.plan.parts, heard.counts, strict=True):
            if len(part.columns) == 1 or not counts.any():
                continue
            edge = part.columns[0], part.columns[1]
            if part != _pair_part(edge, bins):
                continue
            mechanism = part.mechanism(agreed.schema, agreed.epsilon)
            table = counts.reshape(part.shape(agreed.schema))
            total = table + found[edge].counts if edge in found else table
            p, q = float(mechanism.p), float(mechanism.q)
            found[edge] = PairAnswers(columns=edge, counts=total, p=p, q=q)
    return list(found.values())


def release(
    agreed: Agreement, asked: SecondRound, first: RoundTally, second: RoundTally, *, rng: Rng
) -> TableRelease:
    """Fit and draw: a row for each person who answered, a number that is public."""
    people = first.people + second.people
    one_ways = column_tables(agreed, [first, second])
    pairs = pair_answers(agreed, [first, second], asked.bins)
    fit = fit_grouped(
        agreed.schema,
        total=float(people),
        one_ways=one_ways,
        answers=pairs,
        bins=asked.bins,
        rng=rng,
    )
    tables: dict[Marginal, NoisyTable] = {(name,): table for name, table in one_ways.items()}
    tables |= {each.columns: each.table() for each in pairs}
    return TableRelease(
        dataset=agreed.schema.dataset or f"survey {agreed.id}",
        guarantee=agreed.guarantee,
        protect=OneRow(neighbors="replace"),
        private=not (first.simulated or second.simulated),
        method=_method(agreed, asked, fit, first, second),
        schema=agreed.schema,
        model=fit.model,
        measurements=tuple(
            {"target": list(columns), "sigma_counts": people * sqrt(table.variance)}
            for columns, table in tables.items()
        ),
        data=draw_table(fit.model, n_rows=people, rng=rng),
        ledger={"head": {"seq": 0, "hash": agreed.id}, "entries": []},  # devices keep their own
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
    sizes = {name: agreed.schema[name].size for name in agreed.asked}
    alone = {
        size: cell_noise(best_protocol(size, agreed.epsilon)[1]) for size in set(sizes.values())
    }
    wide = {name for name in sizes if ordered_codes(agreed.schema[name]) >= WIDE}
    kept = {name: part for name, part in (smoothed or {}).items() if name in wide}
    return Population(
        sizes=sizes,
        alone={name: alone[size] * kept.get(name, 1.0) for name, size in sizes.items()},
        noise=lambda cells: _pair_noise(cells, agreed.epsilon),
        shares=column_shares(sizes, noise=alone.__getitem__),
    )


def _bins_of(plan: RoundPlan, column: Column) -> Bins:
    """The bins in which a plan asks about pairs with a column; each code, if it does not."""
    for part in plan.parts:
        if len(part.columns) == 2 and column.name in part.columns:
            asked = part.bins[part.columns.index(column.name)]
            return whole(column.size) if asked is None else Bins(of=np.array(asked))
    return whole(column.size)


def _pair_part(edge: Edge, bins: Mapping[str, Bins]) -> PlanPart:
    cuts = [bins[name] for name in edge]
    asked = (None if cut.count == cut.codes else tuple(cut.of.tolist()) for cut in cuts)
    return PlanPart(columns=edge, bins=tuple(asked))


def _plan(
    agreed: Agreement, number: int, questions: Questions, bins: Mapping[str, Bins]
) -> RoundPlan:
    people, found = _population(agreed), list[tuple[PlanPart, float]]()
    for name, share in people.shares.items():
        left = 1 - questions.share if name in questions.bins else 1.0
        if left > 0:
            protocol = best_protocol(people.sizes[name], agreed.epsilon)[0]
            part = PlanPart(columns=(name,), bins=(None,), protocol=protocol)
            found.append((part, left * share))
    each = people.each(questions)
    found += [(_pair_part(edge, bins), each) for edge in questions.edges]
    return RoundPlan(
        survey=agreed.id,
        round=number,
        epsilon=agreed.epsilon,
        parts=tuple(part for part, _ in found),
        weights=tuple(max(1, round(share * _UNIT)) for _, share in found),
    )


def _method(
    agreed: Agreement, asked: SecondRound, fit: GroupedFit, first: RoundTally, second: RoundTally
) -> dict[str, Any]:
    """What a release says of how it was made: public numbers only."""
    return {
        "name": "dp2pub",
        "trust": "nobody",
        "variant": agreed.variant,
        "survey": agreed.id,
        "answers": [first.people, second.people],
        "asked_about_pairs": [_asked_about_pairs(plan) for plan in (first.plan, second.plan)],
        "dependence": None if asked.seen is None else [asked.seen.squared, asked.seen.error],
        "most_bins": max(asked.choice.questions.bins.values(), default=0),
        "predicted": asked.choice.predicted,
        "structure": fit.kind,
        "ties": strongest_ties(fit),
        "worth": dict(fit.worth),
    }


def _asked_about_pairs(plan: RoundPlan) -> float:
    weighed = zip(plan.parts, plan.weights, strict=True)
    pairs = sum(weight for part, weight in weighed if len(part.columns) == 2)
    return pairs / sum(plan.weights)


def _gathered(answers: Collected | Iterable[Collected], plan: RoundPlan) -> Iterable[AnswerRows]:
    """Checked answers as rows: those of one person each put together at the end."""
    if answers is None or isinstance(answers, AnswerRows | Answer | Mapping):
        answers = [answers]
    if not isinstance(answers, Iterable) or isinstance(answers, str | bytes):
        raise InputError(
            f"answers are rows, answers or their messages; got {type(answers).__name__}."
        )
    parts, values, simulated = [], [], False
    for each in answers:
        if each is None:
            continue
        if isinstance(each, AnswerRows):
            yield _checked(each, plan)
            continue
        answer = each if isinstance(each, Answer) else Answer.from_dict(each)
        place, value = _read(answer, plan)
        parts.append(place)
        values.append(value)
        simulated |= answer.simulated
    yield AnswerRows(
        question=plan.id,
        part=np.array(parts, dtype=np.int64),
        answer=np.array(values, dtype=np.uint64),
        simulated=simulated,
    )


def _read(answer: Answer, plan: RoundPlan) -> tuple[int, int]:
    check_question(answer.question, plan)
    value = answer.value
    if not isinstance(value, list | tuple) or len(value) != 2:
        raise InputError("an answer is a part and what is answered about it.")
    place = check.whole(at_least=0, at_most=len(plan.parts) - 1, part=value[0])
    return place, check.whole(at_least=0, at_most=2**63 - 1, answer=value[1])


def _checked(rows: AnswerRows, plan: RoundPlan) -> AnswerRows:
    check_question(rows.question, plan)
    part, answer = np.asarray(rows.part), np.asarray(rows.answer)
    whole_numbers = part.dtype.kind in "iu" and answer.dtype.kind in "iu"
    if part.ndim != 1 or part.shape != answer.shape or not whole_numbers:
        raise InputError("rows are two arrays of whole numbers, of one length.")
    if part.size and (part.min() < 0 or part.max() >= len(plan.parts)):
        raise InputError(f"parts are from 0 to {len(plan.parts) - 1}; some are not.")
    return rows
