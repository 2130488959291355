"""What a survey in two rounds agrees with a device, asks it, and gets back: public, strict values.

The agreement is pinned before anything is asked. A question of the variant "grouped" lists parts,
one of which a device draws and answers about. In "faithful" it answers about every column: each has
its own epsilon, and their sum is what the answers of one person cost; what a device can still
afford only its own ledger knows. Whatever does not fit the agreement is refused as a whole.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from math import prod
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sfumato import check
from sfumato.errors import BudgetError, InputError, SchemaError
from sfumato.local.frequency.grr import Grr
from sfumato.local.mechanism import FrequencyMechanism
from sfumato.local.probabilities import MAX_EPSILON, MIN_EPSILON, local_epsilon
from sfumato.local.records.parts import Part, answer_parts, check_weights, draw_part
from sfumato.privacy.guarantees import LocalDP
from sfumato.randomness import Rng
from sfumato.schema import files
from sfumato.schema.classes import with_steps
from sfumato.schema.schema import Marginal, Schema
from sfumato.survey.protocol.mechanism_choice import FREQUENCIES
from sfumato.survey.protocol.messages import (
    VERSION,
    device_form,
    exact_epsilon,
    fingerprint,
    version,
)

VARIANTS: Final = ("grouped", "faithful", "single")
TWO_ROUNDS: Final = ("grouped", "faithful")
ROUNDS: Final = 2
"""Of a survey that asks again: DP2-Pub has two, Jiang et al. 2023."""
PROTOCOLS: Final = ("grr", "fast-olh", "hadamard")
"""Those whose answers are one integer."""
MAX_PARTS: Final = 50_000
"""The most parts that one round lists; chosen by judgment, so that a message stays small."""
MAX_CELLS: Final = 1_000_000
"""The most cells of one part; chosen by judgment, so that a device's memory suffices."""
BUDGET_UNITS: Final = 2**24
"""A column's epsilon is a whole number of these units of an even share: short to spell."""

_DIGITS: Final = 30
"""Of the longest number that ``exact_epsilon`` reads."""
_AGREED: Final = {"sfumato", "kind", "columns", "epsilon", "variant", "shares"}
_PARTS_QUESTION: Final = {"sfumato", "kind", "survey", "round", "epsilon", "bins", "parts"}
_PART: Final = {"columns", "bins", "protocol", "weight"}


@dataclass(frozen=True, kw_only=True)
class Agreement:
    """What every participant is shown first: the columns, epsilon, and what is halved.

    In the variant "grouped" it is the people: each belongs to one round, drawn at random, and
    answer with all of epsilon. In "faithful" it is epsilon: everybody answers in both rounds. In
    "single" nothing is: there is one round, and everybody answers in it.
    """

    schema: Schema
    epsilon: Fraction
    variant: str = "grouped"

    def __post_init__(self) -> None:
        if not isinstance(self.schema, Schema):
            raise InputError(f"schema must be a Schema, got {type(self.schema).__name__}")
        check.one_of(VARIANTS, variant=self.variant)
        columns = tuple(with_steps(column) for column in self.schema)
        if columns != self.schema.columns:
            object.__setattr__(self, "schema", replace(self.schema, columns=columns))
        if not self.columns:
            raise InputError("every column has one value only: there is nothing to ask.")
        halved = self.variant == "faithful"
        exact = (
            _halved_epsilon(self.epsilon, self.columns) if halved else local_epsilon(self.epsilon)
        )
        object.__setattr__(self, "epsilon", exact)

    @property
    def guarantee(self) -> LocalDP:
        """The promise to each person, for all that they answer in both rounds."""
        return LocalDP(self.epsilon)

    @property
    def rounds(self) -> int:
        """How many rounds of answers there are."""
        return 1 if self.variant == "single" else ROUNDS

    @property
    def round_epsilon(self) -> Fraction:
        """What one round costs a person who answers in it."""
        return self.epsilon / ROUNDS if self.variant == "faithful" else self.epsilon

    @cached_property
    def columns(self) -> Marginal:
        """The columns that anything can be asked about: those of two codes or more."""
        return tuple(column.name for column in self.schema if column.size > 1)

    @cached_property
    def id(self) -> str:
        """The fingerprint that names the survey."""
        return fingerprint(self.manifest())

    def manifest(self) -> dict[str, Any]:
        """The agreement as a message: public, versioned, what a device pins."""
        columns = [device_form(column) for column in self.schema]
        return {
            "sfumato": VERSION,
            "kind": "one-round" if self.rounds == 1 else "two-round",
            "columns": columns,
            "epsilon": str(self.epsilon),
            "variant": self.variant,
            "shares": ["1"] if self.rounds == 1 else ["1/2", "1/2"],
        }

    @staticmethod
    def from_manifest(manifest: Any) -> "Agreement":
        """The agreement in a message; anything else is refused."""
        check_fields(manifest, _AGREED, "an agreement")
        schema = Schema.from_dict({"sfumato": files.VERSION, "columns": manifest["columns"]})
        agreement = Agreement(
            schema=schema,
            epsilon=exact_epsilon(manifest["epsilon"]),
            variant=str(manifest["variant"]),
        )
        check_spelling(agreement.manifest(), manifest, "agreement")
        return agreement


@dataclass(frozen=True, kw_only=True, slots=True)
class QuestionPart:
    """A question about one column or about the bins of two."""

    columns: Marginal
    bins: tuple[tuple[int, ...] | None, ...]
    """For each column the bin of every code, or None: every code is asked for itself."""
    protocol: str = "grr"

    def __post_init__(self) -> None:
        check.one_of((1, 2), columns_of_a_part=len(self.columns))
        check.one_of(PROTOCOLS if len(self.columns) == 1 else ("grr",), protocol=self.protocol)
        if len(self.bins) != len(self.columns):
            raise InputError("a part has bins, or none, for each of its columns.")
        for cut in self.bins:
            if cut is not None and (not cut or set(cut) != set(range(max(cut) + 1))):
                raise InputError("bins are numbered from 0 on, none is empty.")

    def shape(self, schema: Schema) -> tuple[int, ...]:
        """The number of bins, or of codes, of each column."""
        sizes = schema.shape(self.columns)
        pairs = zip(self.bins, sizes, strict=True)
        return tuple(size if cut is None else max(cut) + 1 for cut, size in pairs)

    def mechanism(self, schema: Schema, epsilon: Fraction) -> FrequencyMechanism:
        """What randomizes the cell."""
        return mechanism_of(self.protocol, prod(self.shape(schema)), epsilon)

    def made(self, schema: Schema, epsilon: Fraction) -> Part:
        """The part as devices answer it."""
        return Part(
            columns=self.columns,
            sizes=schema.shape(self.columns),
            bins=self.bins,
            mechanism=self.mechanism(schema, epsilon),
        )

    def check(self, schema: Schema) -> None:
        """Refuse what does not fit the agreed columns."""
        try:
            ordered = schema.marginal(self.columns)
        except SchemaError as error:
            raise InputError(f"a part does not fit the agreed columns: {error}") from None
        if ordered != self.columns:
            raise InputError("a part names columns in the agreed order.")
        for cut, size in zip(self.bins, schema.shape(self.columns), strict=True):
            if cut is not None and len(cut) != size:
                raise InputError(
                    f"a part has bins for {len(cut)} codes of a column that was agreed to have "
                    f"{size}."
                )
        check.whole(at_least=2, at_most=MAX_CELLS, cells_of_a_part=prod(self.shape(schema)))


@dataclass(frozen=True, kw_only=True)
class PartsQuestion:
    """What the people of one round are asked: each draws one part and answers about it.

    Formal guarantee: the draw does not depend on the person, and an answer about any part is
    epsilon-local DP for the whole record. So is the part with its answer.
    """

    survey: str
    """The fingerprint of the agreement."""
    round: int
    epsilon: Fraction
    parts: tuple[QuestionPart, ...]
    weights: tuple[int, ...]
    """A part is drawn with its weight out of their sum."""

    def __post_init__(self) -> None:
        check.one_of((1, 2), round=self.round)
        check.whole(at_least=1, at_most=MAX_PARTS, parts=len(self.parts))
        check_weights(self.weights, len(self.parts))

    @property
    def cost(self) -> Fraction:
        """The epsilon of an answer."""
        return self.epsilon

    def answer(self, codes: Mapping[str, int], schema: Schema, *, rng: Rng) -> list[int]:
        """One person's answer: the number of the part that was drawn, and the answer about it."""
        index = draw_part(self.weights, rng=rng)
        part = self.parts[index].made(schema, self.epsilon)
        drawn = part.mechanism.answer(part.cell(codes), rng=rng)
        return [index, int(part.mechanism.layout.to_json(drawn))]

    def answer_many(
        self, codes: Mapping[str, NDArray[Any]], schema: Schema, *, rng: Rng
    ) -> "AnswerRows":
        """The answers of many people, whose codes were checked: the same distribution."""
        people = len(next(iter(codes.values())))
        parts = [part.made(schema, self.epsilon) for part in self.parts]
        drawn, answers = answer_parts(parts, self.weights, codes, people, rng=rng)
        return AnswerRows(question=self.id, part=drawn, answer=answers, simulated=not rng.secure)

    @cached_property
    def id(self) -> str:
        """The fingerprint that answers carry."""
        return fingerprint(self.to_dict())

    def to_dict(self) -> dict[str, Any]:
        """The message; bins stand in it once, parts name them by their index."""
        indices: dict[tuple[int, ...], int] = {}
        parts = [
            {
                "columns": list(part.columns),
                "bins": [
                    None if cut is None else indices.setdefault(cut, len(indices))
                    for cut in part.bins
                ],
                "protocol": part.protocol,
                "weight": weight,
            }
            for part, weight in zip(self.parts, self.weights, strict=True)
        ]
        return {
            "sfumato": VERSION,
            "kind": "plan",
            "survey": self.survey,
            "round": self.round,
            "epsilon": str(self.epsilon),
            "bins": [list(cut) for cut in indices],
            "parts": parts,
        }

    @staticmethod
    def from_dict(message: Any, agreed: Agreement) -> "PartsQuestion":
        """The question in a message of the agreed survey; anything else is refused."""
        check_fields(message, _PARTS_QUESTION, "a question")
        _check_promise(message, agreed)
        bins = _read_bins(message["bins"], agreed.schema)
        listed = message["parts"]
        if not isinstance(listed, list) or not 0 < len(listed) <= MAX_PARTS:
            raise InputError(f"a question lists 1 to {MAX_PARTS:,} parts.")
        parts = tuple(_read_part(entry, bins, agreed.schema) for entry in listed)
        if len({part.columns for part in parts}) < len(parts):
            raise InputError("a question has two parts about the same columns.")
        question = PartsQuestion(
            survey=agreed.id,
            round=check.whole(at_least=1, at_most=agreed.rounds, round=message["round"]),
            epsilon=agreed.epsilon,
            parts=parts,
            weights=tuple(entry["weight"] for entry in listed),
        )
        check_spelling(question.to_dict(), message, "question")
        return question


@dataclass(frozen=True, kw_only=True, eq=False)
class AnswerRows:
    """The answers of many people to one question in two arrays."""

    question: str
    """The fingerprint of the question."""
    part: NDArray[np.int64]
    """The part that each person drew."""
    answer: NDArray[np.uint64]
    simulated: bool = False
    """Whether seeded randomness made them, which protects nobody."""

    def __len__(self) -> int:
        return len(self.part)


@lru_cache(maxsize=4_096)
def mechanism_of(protocol: str, cells: int, epsilon: Fraction) -> FrequencyMechanism:
    """The mechanism of a part: made once for all parts of equal size."""
    made: FrequencyMechanism = FREQUENCIES[protocol](categories=cells, epsilon=epsilon)
    return made


def check_fields(message: Any, expected: set[str], what: str) -> None:
    """Refuse what is no object of this version with exactly these fields."""
    if not isinstance(message, Mapping):
        raise InputError(f"{what} is a JSON object.")
    version(message)
    if set(message) != expected:
        raise InputError(f"{what} has {', '.join(sorted(expected))}.")


def check_spelling(spelled: Mapping[str, Any], message: Mapping[str, Any], what: str) -> None:
    """Refuse a message that says the same in other words: it would have another fingerprint."""
    if spelled != dict(message):
        raise InputError(
            f"this {what} is written otherwise than this program writes it. Use the program that "
            "made it."
        )


def _halved_epsilon(epsilon: check.Number, names: Marginal) -> Fraction:
    """An epsilon of which each round gets half, exact.

    An even share of a half must be enough for an answer about one column, and all of it must not be
    too much: the second round may give nearly all of it to one.
    """
    exact, columns = check.exact(epsilon=epsilon), len(names)
    low, high = ROUNDS * columns * MIN_EPSILON, ROUNDS * MAX_EPSILON
    if not low <= exact <= high:
        raise InputError(
            f"epsilon of two answers about {columns} columns must be between {float(low):g} and "
            f"{high}, got {epsilon!r}."
        )
    if exact.denominator * ROUNDS * columns * BUDGET_UNITS * MAX_EPSILON >= 10**_DIGITS:
        raise InputError(
            f"epsilon has too many digits to be divided among {columns} columns, got {epsilon!r}. "
            "Round it."
        )
    return exact


def _check_promise(message: Mapping[str, Any], agreed: Agreement) -> None:
    """The survey and its epsilon are the agreed ones."""
    epsilon = exact_epsilon(message["epsilon"])
    if epsilon > agreed.epsilon:
        raise BudgetError(
            f"the question asks for epsilon {epsilon}, but {agreed.epsilon} was agreed."
        )
    if message["survey"] != agreed.id or epsilon != agreed.epsilon:
        raise InputError(
            "the question belongs to another survey: other columns, epsilon or rules than agreed."
        )


def _read_bins(listed: Any, schema: Schema) -> tuple[tuple[int, ...], ...]:
    """The bins of a message; their number and lengths are limited by the agreed columns."""
    longest = max(column.size for column in schema)
    if not isinstance(listed, list) or len(listed) > len(schema):
        raise InputError("a question lists bins at most once a column.")
    return tuple(_whole_numbers(cut, longest) for cut in listed)


def _whole_numbers(listed: Any, longest: int) -> tuple[int, ...]:
    if not isinstance(listed, list) or not 0 < len(listed) <= longest:
        raise InputError("bins are a list, one for each code of a column.")
    if any(type(each) is not int or not 0 <= each < len(listed) for each in listed):
        raise InputError("bins are whole numbers from 0 on.")
    return tuple(listed)


def _read_part(entry: Any, bins: Sequence[tuple[int, ...]], schema: Schema) -> QuestionPart:
    if not isinstance(entry, Mapping) or set(entry) != _PART:
        raise InputError(f"a part has {', '.join(sorted(_PART))}.")
    columns, cuts = entry["columns"], entry["bins"]
    if not isinstance(columns, list) or not isinstance(cuts, list) or len(cuts) > 2:
        raise InputError("columns and bins of a part are lists of one or two.")
    indices = [
        None if cut is None else check.whole(at_least=0, at_most=len(bins) - 1, bins=cut)
        for cut in cuts
    ]
    part = QuestionPart(
        columns=tuple(columns),
        bins=tuple(None if index is None else bins[index] for index in indices),
        protocol=entry["protocol"],
    )
    part.check(schema)
    return part


_COLUMNS_QUESTION: Final = {"sfumato", "kind", "survey", "round", "budgets"}


@dataclass(frozen=True, kw_only=True)
class ColumnsQuestion:
    """What everybody is asked in one round: each column by randomized response.

    Formal guarantee: the answers about a record are ``cost``-local DP for all of it, the sum of
    the columns' epsilons, because they are drawn independently of each other.
    """

    survey: str
    """The fingerprint of the agreement."""
    round: int
    budgets: Mapping[str, Fraction]
    """By column, in the agreed order, the epsilon of its answer."""

    def __post_init__(self) -> None:
        check.whole(at_least=1, at_most=ROUNDS, round=self.round)
        if not self.budgets:
            raise InputError("a question has budgets for one column or more.")
        exact = {name: local_epsilon(epsilon) for name, epsilon in self.budgets.items()}
        object.__setattr__(self, "budgets", exact)
        exact_epsilon(str(self.cost))  # a ledger must be able to spell it

    @cached_property
    def cost(self) -> Fraction:
        """The epsilon of one person's answers."""
        return sum(self.budgets.values(), Fraction(0))

    @cached_property
    def id(self) -> str:
        """The fingerprint that answers carry."""
        return fingerprint(self.to_dict())

    def mechanisms(self, schema: Schema) -> dict[str, Grr]:
        """What randomizes each column, in the order of the answers."""
        return {
            name: Grr(categories=schema[name].size, epsilon=epsilon)
            for name, epsilon in self.budgets.items()
        }

    def answer(self, codes: Mapping[str, int], schema: Schema, *, rng: Rng) -> list[int]:
        """One person's answer: a code for each column."""
        made = self.mechanisms(schema)
        return [int(own.answer(codes[name], rng=rng)) for name, own in made.items()]

    def answer_many(
        self, codes: Mapping[str, NDArray[Any]], schema: Schema, *, rng: Rng
    ) -> "RecordRows":
        """The answers of many people, whose codes were checked: the same distribution."""
        made = self.mechanisms(schema)
        rows = [own.answer_many(codes[name], rng=rng) for name, own in made.items()]
        return RecordRows(question=self.id, codes=np.stack(rows), simulated=not rng.secure)

    def to_dict(self) -> dict[str, Any]:
        """The message."""
        return {
            "sfumato": VERSION,
            "kind": "record-plan",
            "survey": self.survey,
            "round": self.round,
            "budgets": {name: str(epsilon) for name, epsilon in self.budgets.items()},
        }

    @staticmethod
    def from_dict(message: Any, agreed: Agreement) -> "ColumnsQuestion":
        """The question in a message of the agreed survey; anything else is refused."""
        check_fields(message, _COLUMNS_QUESTION, "a question")
        if message["survey"] != agreed.id:
            raise InputError(
                "the question belongs to another survey: other columns, epsilon or rules than "
                "agreed."
            )
        listed = message["budgets"]
        if not isinstance(listed, Mapping) or set(listed) != set(agreed.columns):
            raise InputError(
                "a question must have one budget for each agreed column, and no others."
            )
        question = ColumnsQuestion(
            survey=agreed.id,
            round=message["round"],
            budgets={name: exact_epsilon(listed[name]) for name in agreed.columns},
        )
        check_spelling(question.to_dict(), message, "question")
        if question.round == 1:
            _check_first(question, agreed)
        question.mechanisms(
            agreed.schema
        )  # refused now, if at all: later a record would be at hand
        return question


@dataclass(frozen=True, kw_only=True, eq=False)
class RecordRows:
    """The answers of many people about every column."""

    question: str
    """The fingerprint of the question."""
    codes: NDArray[np.unsignedinteger[Any]]
    """A row for each column that was asked about, in the agreed order; a column for each person."""
    simulated: bool = False
    """Whether seeded randomness made them, which protects nobody."""

    def __len__(self) -> int:
        return int(self.codes.shape[1])


def first_budgets(agreed: Agreement) -> dict[str, Fraction]:
    """The agreed ones of the first round: half of epsilon, the same for each column."""
    return dict.fromkeys(agreed.columns, agreed.round_epsilon / len(agreed.columns))


RoundQuestion = PartsQuestion | ColumnsQuestion
"""What the people of one round are asked."""


def read_question(message: Any, agreed: Agreement) -> RoundQuestion:
    """The question in a message of the agreed variant; anything else is refused."""
    kind = ColumnsQuestion if agreed.variant == "faithful" else PartsQuestion
    return kind.from_dict(message, agreed)


def check_question(given: str, question: RoundQuestion) -> None:
    """Refuse an answer to another round or survey: it carries another fingerprint."""
    if given != question.id:
        raise InputError(
            f"this is an answer to another question ({given[:40]!r}, not {question.id!r}): another "
            "round or survey."
        )


def _check_first(question: ColumnsQuestion, agreed: Agreement) -> None:
    if question.cost > agreed.round_epsilon:
        raise BudgetError(
            f"the question asks for epsilon {question.cost}, but {agreed.round_epsilon} was agreed "
            "for the first round."
        )
    if dict(question.budgets) != first_budgets(agreed):
        raise InputError(
            "the columns of the first round are asked with the same epsilon each, as agreed."
        )
