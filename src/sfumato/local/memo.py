"""The same question again: the same answer, drawn once from a secret and never stored.

Fresh answers to a repeated question average to the truth: after 30 of them (epsilon 1, four
categories) it is known for 95% of people. A memo gives the same answer as long as the value is
the same.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from numbers import Integral
from typing import Any, Final, Protocol, TypeVar

from sfumato import check
from sfumato.errors import InputError
from sfumato.local.means.duchi import DuchiVector
from sfumato.local.means.mechanism import record_of
from sfumato.local.means.sampled import SampledMeans
from sfumato.local.probabilities import local_epsilon
from sfumato.privacy.guarantees import LocalDP
from sfumato.randomness import Rng, derived_rng

Value = TypeVar("Value", int, Sequence[int], contravariant=True)
Reply = TypeVar("Reply", covariant=True)

_VERSION: Final = 1
"""Of the format of ``to_dict``."""
_HEX: Final = re.compile(r"(?:[0-9a-f]{2}){16,}")


class Answering(Protocol[Value, Reply]):
    """Whatever turns a code, or a record of codes, into an answer."""

    def answer(self, value: Value, /, *, rng: Rng) -> Reply:
        """One answer."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Memo:
    """A person's secret, from which all answers follow: keep it on the device for the whole survey.

    The answer to a question about a value is drawn with a generator keyed by the secret, the
    question, the mechanism and the value. Answers that differ in any of these are independent, so
    each is paid for; the same ones together cost no more than one.

    What it does not hide: that the value changed, or came back. Two different answers to one
    question prove that the value changed (two equal answers prove nothing).

    A device keeps ``to_dict()``, with the secret in it, where nobody else reads it, and continues
    with ``Memo.from_dict``. A memo made of the secret alone counts as a simulation.

    >>> memo = Memo(secret=bytes(16))
    >>> Memo.from_dict(memo.to_dict()) == memo
    True
    """

    secret: bytes = field(repr=False)
    secure: bool = False
    """Whether the secret came from the operating system: see ``derived_rng``."""

    def __post_init__(self) -> None:
        derived_rng(self.secret, b"")  # refuses what is no secret
        if not isinstance(self.secure, bool):
            raise InputError(f"secure must be True or False, got {type(self.secure).__name__}")

    @classmethod
    def fresh(cls, *, rng: Rng) -> "Memo":
        """A memo with a new secret of 32 bytes."""
        return cls(secret=rng.words(4).tobytes(), secure=rng.secure)

    @classmethod
    def from_dict(cls, value: Any) -> "Memo":
        """The memo that ``to_dict`` gave; anything else is refused and not shown."""
        if not isinstance(value, Mapping) or set(value) != {"sfumato", "secret", "secure"}:
            raise InputError("a kept memo has sfumato, secret and secure, and nothing else.")
        if type(value["sfumato"]) is not int or value["sfumato"] != _VERSION:
            raise InputError(
                f"a kept memo of version {_VERSION} can be read here, this is another. Use the "
                "version of sfumato that kept it, or a newer one."
            )
        secret, secure = value["secret"], value["secure"]
        if not isinstance(secret, str) or not _HEX.fullmatch(secret) or type(secure) is not bool:
            raise InputError(
                "the secret of a kept memo is 32 or more hexadecimal digits, in pairs and in "
                "small letters, and secure is true or false."
            )
        return cls(secret=bytes.fromhex(secret), secure=secure)

    def to_dict(self) -> dict[str, Any]:
        """What the device keeps, for JSON; whoever reads it can undo every answer."""
        return {"sfumato": _VERSION, "secret": self.secret.hex(), "secure": self.secure}

    def answer(self, mechanism: Answering[Value, Reply], value: Value, question: str) -> Reply:
        """The one answer to this question for this value.

        Args:
            mechanism: How it is answered; another one, or another epsilon, is another question.
            value: The code, or the record of codes.
            question: The name of the question, the same in every round.
        """
        if not isinstance(question, str) or not question:
            raise InputError(f"question must be a name, got {question!r:.60}")
        context = _joined(question, _described(mechanism), _plain(_spelled(mechanism, value)))
        return mechanism.answer(value, rng=derived_rng(self.secret, context, secure=self.secure))


def total_guarantee(epsilon: check.Number, rounds: int, values: int | None = None) -> LocalDP:
    """What T answers to one question promise together: min(T, k) epsilon, or T epsilon.

    With a memo, a person whose value takes at most k different values in T rounds gives at most
    min(T, k) independent answers, each worth epsilon. That bounds what answers reveal about the
    values, between two histories that change and return in the same rounds. When the value changes
    is not hidden (see ``Memo``); a value that never changes, k = 1, reveals nothing else. Without a
    memo every answer is fresh: T epsilon, between any two histories.

    Args:
        epsilon: The promise of one answer.
        rounds: How often it is asked, T.
        values: The most different values with a memo, k; None without one.

    >>> str(total_guarantee("0.5", rounds=30, values=2)), str(total_guarantee("0.5", rounds=30))
    ('epsilon=1 on the device', 'epsilon=15 on the device')
    """
    exact = local_epsilon(epsilon)
    answers = check.whole(at_least=1, rounds=rounds)
    if values is not None:
        answers = min(answers, check.whole(at_least=1, values=values))
    return LocalDP(exact * answers)


def _described(mechanism: Any) -> str:
    """Kind and parameters of a mechanism, in the order of their names."""
    texts = sorted(f"{f.name}={getattr(mechanism, f.name)!r}" for f in fields(mechanism))
    return f"{type(mechanism).__name__}({', '.join(texts)})"


def _spelled(mechanism: object, value: Any) -> Any:
    """A record as its codes, where the mechanism also takes one code for all of them.

    Two spellings of one record must not get two answers.
    """
    if isinstance(mechanism, DuchiVector):
        return record_of(value, base=2, length=mechanism.dimensions)
    if isinstance(mechanism, SampledMeans):
        return record_of(value, base=mechanism.points, length=mechanism.dimensions)
    return value


def _plain(value: int | Sequence[int]) -> str:
    """A code or a record as text, whatever integers it came as."""
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ",".join(_plain(code) for code in value)
    if not isinstance(value, Integral) or isinstance(value, bool) or value < 0:
        raise InputError("the code must be a whole number of at least 0.")
    return str(int(value))


def _joined(*texts: str) -> bytes:
    """Texts as bytes, each after its length: no two lists of texts give the same bytes."""
    encoded = [text.encode() for text in texts]
    return b"".join(b"%d:%s" % (len(text), text) for text in encoded)
