"""Questions about key-value pairs: which of some public things a person has, and how much."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import isfinite
from typing import Any, Final

from sfumato.charts import cards
from sfumato.errors import InputError
from sfumato.local.keyvalue.pairs import Pairs
from sfumato.local.keyvalue.pckv import PckvGrr, PckvUe
from sfumato.local.keyvalue.sampled_key import (
    F2M,
    BiSample,
    KeyValueMechanism,
    PrivKv,
    StateEncoding,
)
from sfumato.models.answers import keyvalue
from sfumato.models.answers.keyvalue import KeyValueEstimate
from sfumato.privacy import guarantees
from sfumato.privacy.guarantees import LocalDP
from sfumato.randomness import Rng, check_rng
from sfumato.survey.estimate.estimates import promise_text
from sfumato.survey.estimate.tally import AnswerBatch, Collected, Tally
from sfumato.survey.protocol.messages import VERSION, Answer, fingerprint

SAMPLED: Final[Mapping[str, Any]] = {
    "privkv": PrivKv,
    "state": StateEncoding,
    "f2m": F2M,
    "bisample": BiSample,
}
PADDED: Final[Mapping[str, Any]] = {"pckv-ue": PckvUe, "pckv-grr": PckvGrr}


@dataclass(frozen=True, kw_only=True, eq=False)
class PairsEstimate:
    """Frequency and mean of every key, by name, each with its standard error."""

    keys: tuple[str, ...]
    found: KeyValueEstimate
    """The numbers, key by key in the order of ``keys``."""
    guarantee: LocalDP
    private: bool
    """False when seeded randomness made any of the answers."""

    def to_dict(self) -> dict[str, Any]:
        """The JSON form; what is not estimable is null."""
        figures = {}
        for index, key in enumerate(self.keys):
            figures[key] = {
                "answers": int(self.found.answers[index]),
                "frequency": self.found.frequency_of(index),
                "frequency_error": _finite(self.found.frequency_errors[index]),
                "mean": self.found.mean_of(index),
                "mean_error": _finite(self.found.mean_errors[index]),
            }
        promise = guarantees.to_json(self.guarantee) if self.private else None
        return {"private": self.private, "guarantee": promise, "keys": figures}

    def __str__(self) -> str:
        described = (self.found.describe(index) for index in range(len(self.keys)))
        texts = (text.partition(": ")[2] for text in described)
        return "\n".join(f"{key}: {text}" for key, text in zip(self.keys, texts, strict=True))

    def _repr_html_(self) -> str:
        """For notebooks: a row for each key."""
        promise = promise_text(self.guarantee, private=self.private)
        lines = (line.partition(": ") for line in str(self).splitlines())
        rows = [(key, text) for key, (_, _, text) in zip(self.keys, lines, strict=True)]
        table = cards.rows_table(("key", "estimate"), rows)
        return cards.card("Keys and their values", cards.facts({"promise": promise}), table)


@dataclass(frozen=True, kw_only=True)
class PairsQuestion:
    """Asks how many people have each of some public keys, and the mean of its value in [-1, 1].

    Formal guarantee: one answer is epsilon-local DP for all of a person's pairs together.
    """

    keys: tuple[str, ...]
    """The public names of the keys."""
    epsilon: Fraction
    protocol: str = "pckv-grr"
    """privkv, state, f2m, bisample, pckv-ue or pckv-grr."""
    padding: int = 1
    """For pckv: the number of pairs that people are expected to have; see ``PckvGrr``."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "keys", tuple(self.keys))
        if not self.keys or len(set(self.keys)) < len(self.keys):
            raise InputError("keys must name one or more different keys")
        if self.protocol not in (*SAMPLED, *PADDED):
            listed = ", ".join((*SAMPLED, *PADDED))
            raise InputError(f"protocol must be one of {listed}; got {self.protocol!r}")
        object.__setattr__(self, "epsilon", self.mechanism.epsilon)

    @cached_property
    def mechanism(self) -> KeyValueMechanism:
        """What randomizes the answer: the one definition of its probabilities."""
        made: KeyValueMechanism
        if self.protocol in SAMPLED:
            made = SAMPLED[self.protocol](keys=len(self.keys), epsilon=self.epsilon)
        else:
            made = PADDED[self.protocol](
                keys=len(self.keys), epsilon=self.epsilon, padding=self.padding
            )
        return made

    @property
    def guarantee(self) -> LocalDP:
        """The promise to the person who answers once."""
        return self.mechanism.guarantee

    def manifest(self) -> dict[str, Any]:
        """The question as a message."""
        return {
            "sfumato": VERSION,
            "keys": list(self.keys),
            "protocol": self.protocol,
            "epsilon": str(self.epsilon),
            "padding": self.padding,
        }

    @cached_property
    def id(self) -> str:
        """The fingerprint that answers carry."""
        return fingerprint(self.manifest())

    def answer(self, pairs: Mapping[str, float], *, rng: Rng) -> Answer:
        """One person's answer to send, from the pairs by name."""
        check_rng(rng)
        if not isinstance(pairs, Mapping):
            raise InputError("pairs are a mapping of keys to values.")
        unknown = set(pairs) - set(self.keys)
        if unknown:
            raise InputError("a pair has a key that is not in the question.")
        by_index = {self.keys.index(name): value for name, value in pairs.items()}
        drawn = self.mechanism.answer(by_index, rng=rng)
        shown = self.mechanism.layout.to_json(drawn)
        return Answer(question=self.id, value=shown, simulated=not rng.secure)

    def answer_many(self, pairs: Pairs, *, rng: Rng) -> AnswerBatch:
        """One answer for each of many people."""
        check_rng(rng)
        values = self.mechanism.answer_many(pairs, rng=rng)
        return AnswerBatch(question=self.id, values=values, simulated=not rng.secure)

    def tally(self) -> Tally:
        """An empty count of answers."""
        return Tally(form=self)

    def estimate(self, answers: Tally | Collected | Iterable[Collected]) -> PairsEstimate:
        """Frequency and mean of each key, with standard errors; some may not be estimable."""
        tally = answers if isinstance(answers, Tally) else self.tally()
        if not isinstance(answers, Tally):
            tally.add(answers)
        if tally.form.id != self.id:
            raise InputError("these answers were counted for another question.")
        return PairsEstimate(
            keys=self.keys,
            found=keyvalue.estimate(self.mechanism, tally.counts),
            guarantee=self.guarantee,
            private=not tally.simulated,
        )


def _finite(number: float) -> float | None:
    return float(number) if isfinite(number) else None
