"""Answers of honest people and of fakes, to questions and to surveys, from seeded randomness.

Crafted answers are those of the maximal gain attack on several targets: Cao, Jia, Gong 2021, "Data
poisoning attacks to local differential privacy protocols", USENIX Security, arXiv 1911.02046. An
answer of unary encoding is filled up to the usual number of ones, hash seeds are the best of many,
a set holds as many targets as fit.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.local.frequency.hadamard import HadamardResponse
from sfumato.local.frequency.local_hashing import MULTIPLIERS, FastOlh, Olh
from sfumato.local.frequency.subset_selection import SubsetSelection
from sfumato.local.frequency.unary import Unary
from sfumato.local.mechanism import FrequencyMechanism
from sfumato.randomness import Rng
from sfumato.schema import Schema
from sfumato.survey.dp2pub import two_round
from sfumato.survey.dp2pub.round_tally import count
from sfumato.survey.protocol.rounds import Agreement, AnswerRows, PartsQuestion, RecordRows

TARGETS = 10
SEEDS_EACH = 50


def skewed(categories: int, people: int, *, rng: Rng) -> NDArray[np.uint32]:
    """Codes whose frequencies fall off by a random power, in a random order."""
    power = 2 * float(rng.uniform(1)[0])
    shares = np.arange(1, categories + 1) ** -power
    drawn = np.searchsorted(np.cumsum(shares / shares.sum())[:-1], rng.uniform(people))
    return rng.permutation(categories)[drawn].astype(np.uint32)


def targets_of(categories: int, *, rng: Rng, most: int = TARGETS) -> NDArray[np.int64]:
    """Some codes to be lifted: at most a quarter of them."""
    return np.sort(rng.permutation(categories)[: max(1, min(most, categories // 4))])


def crafted(
    mechanism: FrequencyMechanism, targets: NDArray[np.int64], people: int, *, rng: Rng
) -> Any:
    """So many crafted answers, each of which supports as many targets as it can."""
    if isinstance(mechanism, Unary):
        return _crafted_bits(mechanism, targets, people, _usual_ones(mechanism), rng)
    if isinstance(mechanism, SubsetSelection):
        return _crafted_bits(mechanism, targets, people, mechanism.size, rng)
    if isinstance(mechanism, Olh):
        return _crafted_olh(mechanism, targets, people, rng)
    support = [_supported(mechanism, targets, cell) for cell in range(mechanism.layout.below)]
    best = np.flatnonzero(np.array(support) == max(support))
    return best[rng.below(best.size, people)].astype(np.uint64)


@dataclass(frozen=True)
class MadeSurvey:
    """A survey that was asked once, honestly."""

    agreed: Agreement
    codes: dict[str, NDArray[np.uint32]]
    question: Any

    @staticmethod
    def draw(sizes: Sequence[int], people: int, *, epsilon: Fraction, variant: str, rng: Rng):
        columns = [
            {"name": f"c{place}", "kind": "integer", "low": 1, "high": size}
            for place, size in enumerate(sizes)
        ]
        schema = Schema.from_dict({"sfumato": 1, "columns": columns})
        agreed = Agreement(schema=schema, epsilon=epsilon, variant=variant)
        codes = {column.name: skewed(column.size, people, rng=rng) for column in schema}
        return MadeSurvey(agreed, codes, two_round.first_question(agreed))

    def honest(self, *, rng: Rng):
        """Everybody's answers."""
        return self.question.answer_many(self.codes, self.agreed.schema, rng=rng)

    def tally(self, rows):
        return count(self.question, self.agreed, rows)


def replaced(rows: Any, fakes: Any) -> Any:
    """Answers of which the first are fakes instead."""
    if isinstance(rows, RecordRows):
        codes = rows.codes.copy()
        codes[:, : fakes.shape[1]] = fakes
        return RecordRows(question=rows.question, codes=codes, simulated=True)
    part, answer = rows.part.copy(), rows.answer.copy()
    part[: len(fakes[0])], answer[: len(fakes[0])] = fakes
    return AnswerRows(question=rows.question, part=part, answer=answer, simulated=True)


def crafted_parts(survey: MadeSurvey, fakes: int, *, rng: Rng) -> tuple[Any, Any]:
    """Parts as the question says, and crafted answers about each."""
    question: PartsQuestion = survey.question
    share = np.array(question.weights) / sum(question.weights)
    part = np.searchsorted(np.cumsum(share)[:-1], rng.uniform(fakes))
    answer = np.zeros(fakes, dtype=np.uint64)
    for place in np.unique(part):
        mechanism = question.parts[place].mechanism(survey.agreed.schema, question.epsilon)
        targets = targets_of(mechanism.categories, rng=rng, most=5)
        mine = part == place
        answer[mine] = crafted(mechanism, targets, int(mine.sum()), rng=rng)
    return part, answer


def copied_parts(survey: MadeSurvey, fakes: int, *, rng: Rng) -> tuple[Any, Any]:
    """One and the same answer, about the part that is asked most."""
    place = int(np.argmax(survey.question.weights))
    mechanism = survey.question.parts[place].mechanism(
        survey.agreed.schema, survey.question.epsilon
    )
    one = crafted(mechanism, targets_of(mechanism.categories, rng=rng), 1, rng=rng)
    return np.full(fakes, place), np.full(fakes, one[0], dtype=np.uint64)


def one_part(survey: MadeSurvey, fakes: int, *, rng: Rng) -> tuple[Any, Any]:
    """Answers that look honest, all about the part that is asked least."""
    place = int(np.argmin(survey.question.weights))
    mechanism = survey.question.parts[place].mechanism(
        survey.agreed.schema, survey.question.epsilon
    )
    said = mechanism.answer_many(np.zeros(fakes, dtype=np.uint32), rng=rng)
    return np.full(fakes, place), said.astype(np.uint64)


def copied_records(survey: MadeSurvey, fakes: int, *, rng: Rng) -> Any:
    """One and the same record."""
    sizes = survey.agreed.schema.shape(survey.agreed.columns)
    record = np.array([int(rng.below(size, 1)[0]) for size in sizes])
    return np.repeat(record[:, None], fakes, axis=1)


def _usual_ones(mechanism: Unary) -> int:
    return round(float(mechanism.p + (mechanism.categories - 1) * mechanism.q))


def _crafted_bits(mechanism, targets, people, ones, rng):
    bits = np.zeros((people, mechanism.categories), dtype=np.bool_)
    others = np.setdiff1d(np.arange(mechanism.categories), targets)
    for row in bits:
        row[targets[rng.permutation(targets.size)[:ones]]] = True
        row[others[rng.permutation(others.size)[: max(0, ones - targets.size)]]] = True
    return np.packbits(bits, axis=1, bitorder="little")


def _crafted_olh(mechanism: Olh, targets, people, rng):
    seeds = (rng.words(people * SEEDS_EACH) >> np.uint64(32)).astype(np.uint32)
    shift = 32 - mechanism.response.value_bits
    hashes = np.stack([_mixed(seeds, int(target)) >> np.uint32(shift) for target in targets])
    values = np.arange(mechanism.response.values)
    held = np.stack([(hashes == value).sum(axis=0) for value in values])
    best = np.argsort(-held.max(axis=0), kind="stable")[:people]
    told = held.argmax(axis=0)[best]
    return seeds[best].astype(np.uint64) * np.uint64(values.size) + told.astype(np.uint64)


def _mixed(seeds, code):
    of_code, first, second = (np.uint32(multiplier) for multiplier in MULTIPLIERS)
    x = seeds ^ np.uint32(code * int(of_code) & 0xFFFFFFFF)
    x = (x ^ x >> np.uint32(16)) * first
    return (x ^ x >> np.uint32(15)) * second


def _supported(mechanism, targets, cell):
    if isinstance(mechanism, HadamardResponse):
        return sum((int(target) + 1 & cell).bit_count() % 2 == 0 for target in targets)
    if isinstance(mechanism, FastOlh):
        seed, value = divmod(cell, mechanism.response.values)
        return sum(mechanism.hashed(seed, int(target)) == value for target in targets)
    return sum(int(target) == cell for target in targets)
