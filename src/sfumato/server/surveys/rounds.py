"""The variants of a survey for the service: questions, checked answers, tallies, releases.

All of it works on answers, which devices randomized; nothing here can tell more than they do. The
last part explains a round's question to the owner in words and numbers.
"""

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import sqrt
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError, InternalError
from sfumato.local.layout import IntegerLayout, Layout
from sfumato.models.answers.pair_tables import NoisyTable
from sfumato.randomness import Rng
from sfumato.release import TableRelease
from sfumato.survey.dp2pub import faithful_rounds, grouped_rounds, two_round
from sfumato.survey.dp2pub.round_tally import ColumnsTally, PartsTally, RoundTally, count
from sfumato.survey.protocol.envelopes import Envelope
from sfumato.survey.protocol.rounds import (
    Agreement,
    AnswerRows,
    ColumnsQuestion,
    PartsQuestion,
    RecordRows,
    RoundQuestion,
)

_ONE: Final = np.dtype([("part", "<u4"), ("value", "<u8")])
"""An answer about one part, as it is stored; one about every column is its codes as ``<u4``."""
_pack_one: Final = struct.Struct("<IQ").pack


@dataclass(frozen=True, kw_only=True)
class Round:
    """A round of a survey: its question, and how answers are checked against it, fast."""

    agreed: Agreement
    question: RoundQuestion
    signed: Envelope
    """The question as devices get it."""
    why: Mapping[str, Any]
    """How the question was chosen; empty for a first round."""

    @cached_property
    def limits(self) -> tuple[int, ...]:
        """For each part, or each column, the number that its answers are below."""
        question, schema = self.question, self.agreed.schema
        if isinstance(question, ColumnsQuestion):
            return schema.shape(self.agreed.columns)
        mechanisms = (part.mechanism(schema, question.epsilon) for part in question.parts)
        return tuple(_limit(mechanism.layout) for mechanism in mechanisms)

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """The length of the tally of each part, or of each column where all are asked about."""
        question, schema = self.question, self.agreed.schema
        if isinstance(question, ColumnsQuestion):
            return np.array(self.limits, dtype=np.int64)
        cells = [part.mechanism(schema, question.epsilon).cells for part in question.parts]
        return np.array(cells, dtype=np.int64)

    def contents(self, values: Sequence[Any]) -> bytes:
        """Answers of the right form as they are stored; the error never quotes one."""
        if isinstance(self.question, ColumnsQuestion):
            return b"".join([self._codes(value) for value in values])
        return b"".join([self._one(value) for value in values])

    def _one(self, value: Any) -> bytes:
        """An answer about one part."""
        if type(value) is not list or len(value) != 2:
            raise _misfit()
        part, answer = value
        if type(part) is not int or type(answer) is not int or not 0 <= part < len(self.limits):
            raise _misfit()
        if not 0 <= answer < self.limits[part]:
            raise _misfit()
        return _pack_one(part, answer)

    def _codes(self, value: Any) -> bytes:
        """An answer about every column."""
        if type(value) is not list or len(value) != len(self.limits):
            raise _misfit()
        for code, limit in zip(value, self.limits, strict=True):
            if type(code) is not int or not 0 <= code < limit:
                raise _misfit()
        return struct.pack(f"<{len(value)}I", *value)

    def tally(self, contents: bytes, *, simulated: bool) -> RoundTally:
        """The counted answers, from all that was stored of a round."""
        question = self.question
        if isinstance(question, ColumnsQuestion):
            block = np.frombuffer(contents, dtype="<u4").reshape(-1, len(self.limits)).T
            rows = RecordRows(question=question.id, codes=block, simulated=simulated)
            return count(question, self.agreed, rows)
        stored = np.frombuffer(contents, dtype=_ONE)
        answers = AnswerRows(
            question=question.id,
            part=stored["part"].astype(np.int64),
            answer=stored["value"].astype(np.uint64),
            simulated=simulated,
        )
        return count(question, self.agreed, answers)


def second_round(
    agreed: Agreement, heard: RoundTally, *, minimum: int
) -> tuple[RoundQuestion, dict[str, Any]]:
    """What is asked next, and why: what the owner is shown of the choice.

    How much columns depend on each other is part of it if at least ``minimum`` people answered
    about pairs.
    """
    second = two_round.second_round(agreed, heard)
    if isinstance(second, faithful_rounds.SecondRound):
        why: dict[str, Any] = {
            "network": {child: list(parents) for child, parents in second.network.items()},
            "clusters": [list(cluster) for cluster in second.clusters],
            "budgets": {name: float(share) for name, share in second.question.budgets.items()},
        }
        return second.question, why
    pairs = 0
    if isinstance(heard, PartsTally):
        parts = zip(heard.question.parts, heard.answers, strict=True)
        pairs = sum(int(people) for part, people in parts if len(part.columns) == 2)
    return second.question, _reasons_of(second, enough=pairs >= minimum)


def release(
    agreed: Agreement,
    tallies: Sequence[RoundTally],
    questions: Sequence[RoundQuestion],
    *,
    rng: Rng,
) -> TableRelease:
    """The table of a model fitted to the answers of all rounds.

    The question of the second round follows from the answers of the first, so it is computed
    again; the result must be the question that people were asked.
    """
    again = None
    if agreed.rounds > 1:
        again = two_round.second_round(agreed, tallies[0])
        _check_same(again.question, questions[1])
    return two_round.release(agreed, tallies, again, rng=rng)


def column_tables(agreed: Agreement, tallies: Sequence[RoundTally]) -> Mapping[str, NoisyTable]:
    """Of each column that anybody answered about, its frequencies without bias."""
    heard = [tally for tally in tallies if tally.people]
    records = [tally for tally in heard if isinstance(tally, ColumnsTally)]
    if records:
        return {
            name: faithful_rounds.noisy_table(agreed, records, (name,)) for name in agreed.columns
        }
    parts = [tally for tally in heard if isinstance(tally, PartsTally)]
    return grouped_rounds.column_tables(agreed, parts)


def _reasons_of(second: grouped_rounds.SecondRound, *, enough: bool) -> dict[str, Any]:
    parts, weights = second.question.parts, second.question.weights
    dependence = second.dependence
    pairs = [
        {"columns": list(part.columns), "share": weight / sum(weights)}
        for part, weight in zip(parts, weights, strict=True)
        if len(part.columns) == 2
    ]
    return {
        "pairs": sorted(pairs, key=lambda pair: -pair["share"]),
        "bins": {name: bins.count for name, bins in second.bins.items()},
        "dependence": [dependence.squared, dependence.error] if enough and dependence else None,
        "predicted": second.choice.predicted,
    }


def _check_same(again: RoundQuestion, first: RoundQuestion) -> None:
    if again.id != first.id:
        raise InternalError(
            "the answers of the first round lead to another question than people were asked: the "
            "service was updated between the rounds."
        )


def _limit(layout: Layout) -> int:
    if not isinstance(layout, IntegerLayout):
        raise InternalError("the answers to a question are whole numbers")
    return layout.below


def _misfit() -> InputError:
    return InputError("this is not an answer to the question of this round.")


MOST_PARTS: Final = 60
"""Parts that are listed: those asked most often."""


def explained(this: Round) -> dict[str, Any]:
    """A round as the owner reads it."""
    agreed, question, why = this.agreed, this.question, this.why
    if isinstance(question, ColumnsQuestion):
        made = _record(question, why)
    else:
        made = _parts(agreed, question, why)
    return {"round": question.round, "plan": question.to_dict(), "why": dict(why), **made}


def _record(question: ColumnsQuestion, why: Mapping[str, Any]) -> dict[str, Any]:
    budgets = {name: float(epsilon) for name, epsilon in question.budgets.items()}
    least, most = min(budgets, key=budgets.__getitem__), max(budgets, key=budgets.__getitem__)
    words = [f"Everybody answers about all {len(budgets)} questions, randomized one by one."]
    if budgets[least] == budgets[most]:
        words.append(f"Each answer has epsilon {budgets[most]:.3g}.")
    else:
        words.append(
            f"Epsilon is divided by what the first round showed: {most} has {budgets[most]:.3g}, "
            f"{least} has {budgets[least]:.3g}."
        )
    if clusters := why.get("clusters"):
        tied = [" and ".join(cluster) for cluster in clusters if len(cluster) > 1]
        listed = "; ".join(tied) if tied else "none"
        words.append(f"Columns that belong together, by the first round: {listed}.")
    return {"words": words, "budgets": budgets, "parts": []}


def _parts(agreed: Agreement, question: PartsQuestion, why: Mapping[str, Any]) -> dict[str, Any]:
    total = sum(question.weights)
    parts: list[dict[str, Any]] = [
        {
            "columns": list(part.columns),
            "share": weight / total,
            "protocol": part.protocol,
            "cells": list(part.shape(agreed.schema)),
        }
        for part, weight in zip(question.parts, question.weights, strict=True)
    ]
    parts.sort(key=lambda part: -part["share"])
    pairs = [part for part in parts if len(part["columns"]) == 2]
    share = sum(part["share"] for part in pairs)
    words = [
        f"Each person answers one question, drawn by chance, with all of epsilon "
        f"{float(question.epsilon):.3g}."
    ]
    if pairs:
        words.append(
            f"{share:.0%} are asked about a pair of columns ({len(pairs):,} "
            f"{'pair' if len(pairs) == 1 else 'pairs'}), {1 - share:.0%} about one column."
        )
    elif agreed.rounds == 2:
        words.append("Nobody is asked about a pair of columns.")
    words += _reasons(agreed, why, pairs=bool(pairs))
    return {"words": words, "parts": parts[:MOST_PARTS], "budgets": {}}


def _reasons(agreed: Agreement, why: Mapping[str, Any], *, pairs: bool) -> list[str]:
    """What the first round said, and what is expected of the second."""
    words = []
    if dependence := why.get("dependence"):
        squared, error = dependence
        if squared > 2 * error:
            words.append(
                f"The first round shows that columns depend on each other: they are "
                f"{sqrt(squared):.1%} away from independence, on average."
            )
        else:
            words.append("The first round does not show that columns depend on each other.")
    if "predicted" in why:
        words.append(
            f"Tables of two columns are expected to be {why['predicted']:.1%} off, on average "
            "(total variation)."
        )
    bins = why.get("bins", {}).items() if pairs else ()
    if binned := {name: count for name, count in bins if count < agreed.schema[name].size}:
        words.append(
            "In pairs, values are taken together: "
            + ", ".join(f"{name} in {count}" for name, count in binned.items())
            + "."
        )
    return words
