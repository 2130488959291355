"""What runs on the person's device: numpy and cryptography, nothing heavier.

A ``Form`` is a question as the device holds it. It turns one value into one answer by plain
integers; what was not answered never leaves.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Self

from sfumato.errors import InputError
from sfumato.local.means.grid import Grid
from sfumato.local.mechanism import LocalMechanism
from sfumato.local.memo import Memo
from sfumato.local.probabilities import local_epsilon
from sfumato.privacy.guarantees import LocalDP
from sfumato.randomness import Rng, check_rng, derived_rng
from sfumato.schema import files
from sfumato.schema.classes import with_steps
from sfumato.schema.columns import Column
from sfumato.schema.values import code_of, number_of
from sfumato.survey.protocol import mechanism_choice
from sfumato.survey.protocol.messages import (
    VERSION,
    Answer,
    device_form,
    exact_epsilon,
    fingerprint,
    version,
)


@dataclass(frozen=True, kw_only=True)
class Form:
    """A question about one column, with the promise that its answer keeps.

    Formal guarantee: an answer is epsilon-local DP, whatever the value was. Every further answer
    to a fresh draw costs epsilon again; ``answer_again`` repeats the first one instead.
    """

    column: Column
    epsilon: Fraction
    """Numbers and texts are taken exactly: 0.1 is 1/10."""
    protocol: str = "auto"
    """A name of ``mechanism_choice.PROTOCOLS``; auto takes the one of least variance."""

    def __post_init__(self) -> None:
        if not isinstance(self.column, Column):
            raise InputError(
                f"column must be a Column, like Category or Integer, got {self.column!r:.60}"
            )
        object.__setattr__(self, "column", with_steps(self.column))
        epsilon = local_epsilon(self.epsilon)
        chosen = mechanism_choice.protocol_of(self.column, epsilon, self.protocol)
        object.__setattr__(self, "epsilon", epsilon)
        object.__setattr__(self, "protocol", chosen)
        _ = self.mechanism  # a question that can't be asked is refused here

    @cached_property
    def guarantee(self) -> LocalDP:
        """The promise to the person who answers once."""
        return LocalDP(self.epsilon)

    @property
    def about_numbers(self) -> bool:
        """Whether a mean or the distribution of a number is asked for."""
        return self.protocol not in mechanism_choice.FREQUENCIES

    @cached_property
    def mechanism(self) -> LocalMechanism:
        """What randomizes the answer: the one definition of its probabilities."""
        if self.about_numbers:
            return mechanism_choice.number_mechanism(self.column, self.epsilon, self.protocol)[0]
        return mechanism_choice.frequency_mechanism(self.column, self.epsilon, self.protocol)

    @cached_property
    def grid(self) -> Grid | None:
        """The public points that a number is rounded to, without bias."""
        if not self.about_numbers:
            return None
        return mechanism_choice.number_mechanism(self.column, self.epsilon, self.protocol)[1]

    @cached_property
    def id(self) -> str:
        """The fingerprint that answers carry."""
        return fingerprint(self.manifest())

    def manifest(self) -> dict[str, Any]:
        """The question as a message: public, versioned, all that a device needs.

        ``layout`` and ``points`` follow from the rest; they are in it so that a program that
        would draw or read answers otherwise notices.
        """
        return {
            "sfumato": VERSION,
            "column": device_form(self.column),
            "protocol": self.protocol,
            "epsilon": str(self.epsilon),
            "layout": asdict(self.mechanism.layout),
            "points": None if self.grid is None else self.grid.points,
        }

    @classmethod
    def from_manifest(cls, manifest: Any) -> Self:
        """The question in a message."""
        if not isinstance(manifest, Mapping):
            raise InputError("a question is a JSON object.")
        version(manifest)
        expected = {"sfumato", "column", "protocol", "epsilon", "layout", "points"}
        if set(manifest) != expected:
            raise InputError(f"a question has {', '.join(sorted(expected))}.")
        column = files.column_from_dict(manifest["column"])
        epsilon = exact_epsilon(manifest["epsilon"])
        form = cls(column=column, epsilon=epsilon, protocol=str(manifest["protocol"]))
        if form.manifest() != dict(manifest):
            raise InputError(
                "this question was written otherwise than this program asks it (another layout of "
                "answers, or another spelling). Use the program that made it."
            )
        return form

    def answer(self, value: Any, *, rng: Rng) -> Answer:
        """The answer to send: drawn afresh, so ask it once."""
        check_rng(rng)
        drawn = self.mechanism.answer(self._code(value, rng), rng=rng)
        shown = self.mechanism.layout.to_json(drawn)
        return Answer(question=self.id, value=shown, simulated=not rng.secure)

    def answer_again(self, value: Any, *, memo: Memo) -> Answer:
        """The same answer every time, for as long as the value stays the same."""
        if not isinstance(memo, Memo):
            raise InputError(f"memo must be a Memo, got {type(memo).__name__}.")
        known = code_of(self.column, value) if self.grid is None else number_of(self.column, value)
        context = f"{self.id} {known!r}".encode()  # the fingerprint holds protocol and epsilon
        rng = derived_rng(memo.secret, context, secure=memo.secure)
        return self.answer(value, rng=rng)

    def _code(self, value: Any, rng: Rng) -> int:
        if self.grid is None:
            return code_of(self.column, value)
        return self.grid.round_one(number_of(self.column, value), rng=rng)
