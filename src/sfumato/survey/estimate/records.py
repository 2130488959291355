"""Questions about several columns of a record at once; the unit is the whole record."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sfumato import charts, check
from sfumato.charts import cards
from sfumato.errors import InputError
from sfumato.local.records.mechanism import (
    PartwiseMechanism,
    RecordAnswers,
    Sampling,
    Splitting,
    State,
)
from sfumato.local.records.rsfd import RsFd
from sfumato.models.answers.pair_tables import consistent
from sfumato.privacy.guarantees import LocalDP
from sfumato.randomness import Rng, check_rng
from sfumato.schema.schema import Marginal, Schema
from sfumato.schema.values import code_of
from sfumato.survey.estimate.estimates import promise_text, z_of
from sfumato.survey.protocol.messages import VERSION, Answer, fingerprint

METHODS: Final = ("sampling", "splitting", "rsfd")
_CHARTS: Final = 6
"""Charts that a notebook shows."""


@dataclass(frozen=True, kw_only=True, eq=False)
class RecordBatch:
    """The answers of many people to one question about records."""

    question: str
    answers: Any
    """What ``answer_many`` of the mechanism gave."""
    simulated: bool = False


@dataclass(frozen=True, kw_only=True, eq=False)
class RecordEstimate:
    """Frequencies of marginals, an axis for each column, with their standard errors."""

    frequencies: Mapping[Marginal, NDArray[np.float64]]
    standard_errors: Mapping[Marginal, NDArray[np.float64]]
    labels: Mapping[str, tuple[str, ...]]
    """What the codes of each column stand for, in the order of its axis."""
    guarantee: LocalDP
    private: bool

    def consistent(self) -> Mapping[Marginal, NDArray[np.float64]]:
        """The same tables made to agree with each other, none below zero, each with sum one."""
        variances = {n: float(np.mean(errors**2)) for n, errors in self.standard_errors.items()}
        return consistent(self.frequencies, variances, non_negative=True)

    def _repr_html_(self) -> str:
        """For notebooks: columns as bars with intervals; of pairs a row for each."""
        promise = promise_text(self.guarantee, private=self.private)
        head = f"Frequencies of {len(self.frequencies)} marginals"
        promises = cards.facts({"promise": promise})
        single = [names for names in self.frequencies if len(names) == 1][:_CHARTS]
        drawn = cards.charts(self._chart(names) for names in single)
        rows = [
            (" × ".join(names), str(table.size), f"{self.standard_errors[names].mean():.3f}")
            for names, table in self.frequencies.items()
        ]
        table = cards.rows_table(("marginal", "cells", "mean standard error"), rows)
        return cards.card(head, promises, table, drawn)

    def _chart(self, names: Marginal) -> str:
        return charts.histogram_chart(
            self.labels[names[0]],
            (100 * self.frequencies[names]).tolist(),
            title=f"{names[0]}: percent",
            names=("estimate", "95% interval"),
            errors=(100 * z_of(0.95) * self.standard_errors[names]).tolist(),
        )


@dataclass(frozen=True, kw_only=True)
class RecordQuestion:
    """Asks for the frequencies of every column, or of every pair of columns.

    Formal guarantee: all that one person sends is epsilon-local DP for the whole record.
    """

    schema: Schema
    epsilon: Fraction
    method: str = "sampling"
    """sampling: one column or pair is drawn and answered with all of epsilon (the most accurate);
    splitting: every column with epsilon / d; rsfd: one column truly, all others at random."""
    degree: int = 1
    """2 asks for pairs of columns, by sampling."""

    def __post_init__(self) -> None:
        check.one_of(METHODS, method=self.method)
        check.one_of((1, 2), degree=self.degree)
        if self.degree == 2 and self.method != "sampling":
            raise InputError("pairs of columns are asked for by sampling: leave method out")
        object.__setattr__(self, "epsilon", self.mechanism.epsilon)

    @cached_property
    def mechanism(self) -> PartwiseMechanism | RsFd:
        """What randomizes the answer: the one definition of its probabilities."""
        sizes = self.schema.shape(self.schema.names)
        if self.method == "rsfd":
            return RsFd(sizes=sizes, epsilon=self.epsilon)
        if self.method == "splitting":
            return Splitting(sizes=sizes, epsilon=self.epsilon)
        return Sampling(sizes=sizes, epsilon=self.epsilon, degree=self.degree)

    @property
    def guarantee(self) -> LocalDP:
        """The promise to the person who answers once."""
        return self.mechanism.guarantee

    def manifest(self) -> dict[str, Any]:
        """The question as a message."""
        return {
            "sfumato": VERSION,
            "columns": self.schema.to_dict()["columns"],
            "method": self.method,
            "degree": self.degree,
            "epsilon": str(self.epsilon),
        }

    @cached_property
    def id(self) -> str:
        """The fingerprint that answers carry."""
        return fingerprint(self.manifest())

    def answer(self, record: Mapping[str, Any], *, rng: Rng) -> Answer:
        """One person's answer to send, from the record's values by name."""
        check_rng(rng)
        if not isinstance(record, Mapping):
            raise InputError("a record is a mapping of columns to values.")
        codes = [code_of(column, record.get(column.name)) for column in self.schema]
        drawn = self.mechanism.answer(codes, rng=rng)
        return Answer(question=self.id, value=self._to_json(drawn), simulated=not rng.secure)

    def answer_many(self, codes: Mapping[str, Any], *, rng: Rng) -> RecordBatch:
        """The answers of many people, from columns of codes."""
        check_rng(rng)
        lengths = {len(codes[name]) if name in codes else -1 for name in self.schema.names}
        if len(lengths) > 1 or -1 in lengths:
            raise InputError(
                f"codes are needed for {', '.join(self.schema.names)}, all of one length."
            )
        block = np.stack([np.asarray(codes[name]) for name in self.schema.names])
        answers = self.mechanism.answer_many(block, rng=rng)
        return RecordBatch(question=self.id, answers=answers, simulated=not rng.secure)

    def estimate(
        self, answers: RecordBatch | Answer | Iterable[RecordBatch | Answer]
    ) -> RecordEstimate:
        """Frequencies of every column or pair, with standard errors."""
        if isinstance(answers, RecordBatch | Answer):
            answers = [answers]
        state, simulated, singles = self.mechanism.zero(), False, []
        for answer in answers:
            if answer.question != self.id:
                raise InputError("this is an answer to another question.")
            simulated |= answer.simulated
            if isinstance(answer, RecordBatch):
                self._add(answer.answers, state)
            else:
                singles.append(self._from_json(answer.value))
        if singles:
            self._add(self.mechanism.gather(singles), state)
        parts = self.mechanism.estimate(state)
        names = [tuple(self.schema.names[i] for i in part.columns) for part in parts]
        return RecordEstimate(
            frequencies=dict(zip(names, (part.frequencies for part in parts), strict=True)),
            standard_errors=dict(zip(names, (part.standard_errors for part in parts), strict=True)),
            labels={column.name: column.labels for column in self.schema},
            guarantee=self.guarantee,
            private=not simulated,
        )

    def _add(self, answers: Any, state: State) -> None:
        if isinstance(self.mechanism, PartwiseMechanism) != isinstance(answers, RecordAnswers):
            raise InputError("these answers were made by another method.")
        self.mechanism.add(answers, state)

    def _to_json(self, drawn: Any) -> list[Any]:
        if not isinstance(self.mechanism, PartwiseMechanism):
            return list(drawn)
        parts = self.mechanism.parts
        return [[index, parts[index].mechanism.layout.to_json(value)] for index, value in drawn]

    def _from_json(self, value: Any) -> Any:
        if not isinstance(value, list):
            raise InputError("an answer about a record is a list.")
        if not isinstance(self.mechanism, PartwiseMechanism):
            return value
        parts, read = self.mechanism.parts, []
        for entry in value:
            if not isinstance(entry, list) or len(entry) != 2:
                raise InputError("each part of an answer names what it is about. Not counted.")
            index = check.whole(at_least=0, at_most=len(parts) - 1, part=entry[0])
            read.append((index, parts[index].mechanism.layout.from_json(entry[1])))
        return tuple(read)
