"""The versioned messages between a device and a server.

A question is a small JSON object, the manifest; its fingerprint names it. An answer carries that
name, so that an answer to another question, or to this one with another epsilon, is refused.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

from sfumato.errors import InputError
from sfumato.schema import files
from sfumato.schema.columns import Column, DateTime, Number

VERSION: Final = 1
"""Of all messages between devices, owners and servers; raised when a message changes its form."""
_FRACTION: Final = re.compile(r"[0-9]{1,30}(/[1-9][0-9]{0,29})?")
_FIELDS: Final = {"sfumato", "question", "answer", "simulated"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """One person's answer, as it leaves the device."""

    question: str
    """The fingerprint of the question."""
    value: Any
    """What JSON holds: an integer, base64 text of packed bits, or a list of such."""
    simulated: bool = False
    """Whether seeded randomness made it, which protects nobody."""

    def to_dict(self) -> dict[str, Any]:
        """The message."""
        head = {"sfumato": VERSION, "question": self.question, "answer": self.value}
        return head | ({"simulated": True} if self.simulated else {})

    def to_json(self) -> str:
        """The message as text, without spaces."""
        return json.dumps(self.to_dict(), separators=(",", ":"))

    @staticmethod
    def from_dict(message: Any) -> "Answer":
        """The answer in a message; anything else is refused."""
        if not isinstance(message, Mapping) or not {"question", "answer"} <= set(message):
            raise InputError("an answer is an object with sfumato, question and answer.")
        version(message)
        if unknown := sorted(str(name) for name in set(message) - _FIELDS):
            raise InputError(f"an answer has no {', '.join(unknown)}.")
        simulated = message.get("simulated", False)
        if not isinstance(message["question"], str) or not isinstance(simulated, bool):
            raise InputError("the question of an answer is a text and simulated true or false.")
        return Answer(question=message["question"], value=message["answer"], simulated=simulated)

    @staticmethod
    def from_json(text: str | bytes) -> "Answer":
        """The answer in a text; a truncated one is refused."""
        return Answer.from_dict(parse(text))


def fingerprint(manifest: Mapping[str, Any]) -> str:
    """32 hexadecimal digits that name a question: SHA-256 of its sorted JSON.

    >>> fingerprint({"b": 1, "a": 2}) == fingerprint({"a": 2, "b": 1})
    True
    """
    text = json.dumps(manifest, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def version(message: Mapping[str, Any]) -> None:
    """Refuse a message of another version."""
    given = message.get("sfumato")
    if type(given) is not int or given != VERSION:
        raise InputError(
            f"this message says version {given!r:.40}; this program speaks version {VERSION}. Use "
            "the program that made it, or a newer sfumato."
        )


def exact_epsilon(text: Any) -> Fraction:
    """The epsilon of a manifest: a whole number or a fraction of two, as text."""
    if not isinstance(text, str) or not _FRACTION.fullmatch(text):
        raise InputError(f"epsilon must be a fraction as text, like '1/10'; got {text!r:.40}")
    return Fraction(text)


def parse(text: str | bytes) -> Any:
    """JSON, or one clear refusal."""
    if not isinstance(text, str | bytes):
        raise InputError(f"a message is JSON text, got {type(text).__name__}.")
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        shown = text[:40] if isinstance(text, str) else text[:40].decode(errors="replace")
        raise InputError(f"not whole JSON (truncated?): {shown!r}.") from None


def device_form(column: Column) -> dict[str, Any]:
    """A column in a message: in the one spelling that devices know."""
    shown = files.column_to_dict(column)
    if isinstance(column, Number) and column.edges is not None:
        shown["edges"] = [float(edge) for edge in column.edges]  # 0 and 0.0 are one edge
    if isinstance(column, DateTime) and column.step == "day":
        del shown["step"]  # days are what a moment without a step means to devices
    return shown
