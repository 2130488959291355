"""What a survey tells everybody before anything is asked, and what goes over the wire afterwards.

Messages are small versioned JSON. The announcement and the questions are signed (``envelopes``); an
upload names itself by a report id, so that sending it again changes nothing; the receipt says
the round and an hour, no more. Ideas: Distributed Aggregation Protocol, draft-ietf-ppm-dap.
A person gets all of this by a link (``SurveyLink``): the server, the survey, its key and hash, the
invitation. What stands behind ``#`` is for the device alone; a browser does not send it.
"""

import base64
import binascii
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import parse_qs, quote, urlsplit

from sfumato import check
from sfumato.errors import InputError
from sfumato.survey.protocol.envelopes import KEY_BYTES
from sfumato.survey.protocol.messages import VERSION, Answer, version
from sfumato.survey.protocol.rounds import Agreement, check_fields, check_spelling

ID: Final = re.compile(r"[0-9a-f]{32}")
HASH: Final = re.compile(r"[0-9a-f]{40}")
TOKEN: Final = re.compile(r"[0-9a-f]{48}")
_DIGEST: Final = re.compile(r"[0-9a-f]{64}")
_INVISIBLE: Final = "\n\N{ZERO WIDTH NON-JOINER}\N{ZERO WIDTH JOINER}"
"""Signs without a shape that texts need, Persian ones for example."""
LONGEST_TITLE: Final = 200
"""Characters of a survey's title, at most; chosen by judgment."""
LONGEST_TEXT: Final = 4_000
"""Characters of the text that explains a survey, at most; chosen by judgment."""
LONGEST_QUESTION: Final = 500
"""Characters of the question about a column, at most; chosen by judgment."""

_ANNOUNCED: Final = {
    *("sfumato", "kind", "task", "title", "text", "questions", "survey", "agreement"),
    *("minimum", "invited", "closes", "page", "first_plan"),
}
_REHEARSAL: Final = "rehearsal"
"""A field that stands in an announcement only where it is true."""
_UPLOAD: Final = {"sfumato", "kind", "report", "token", "answer"}


@dataclass(frozen=True, kw_only=True)
class Announcement:
    """A survey as it is shown to a person: the words, and the agreement that a device pins."""

    task: str
    """The random name of the survey: 32 hexadecimal digits."""
    title: str
    agreement: Agreement
    first_question: str
    """The fingerprint of the question of the first round, so that devices refuse another one."""
    text: str = ""
    """What it is for, in the owner's words."""
    questions: Mapping[str, str] = field(default_factory=dict)
    """By column, how it is asked for; a column without one is asked for by its name."""
    minimum: int = 1_000
    """Answers below which nobody is shown an estimate of a column or a pair, and by which what is
    shown of an open round changes."""
    invited: bool = True
    """Whether an answer needs an invitation; without, one person can answer many times."""
    closes: str | None = None
    """The last moment of the survey, in UTC, for people; None if the owner closes it."""
    page: str = ""
    """SHA-256 of the page that the server hands out, if it does."""
    rehearsal: bool = False
    """Whether this is no real survey: only then simulated answers are taken, and everything is
    shown to the owner at once."""

    def __post_init__(self) -> None:
        matching(ID, task=self.task)
        short_text(LONGEST_TITLE, title=self.title, at_least=1)
        short_text(LONGEST_TEXT, text=self.text)
        check.whole(at_least=1, at_most=10**12, minimum=self.minimum)
        for name in ("invited", "rehearsal"):
            if not isinstance(value := getattr(self, name), bool):
                raise InputError(f"{name} must be true or false, got {value!r:.40}")
        _check_questions(self.questions, self.agreement)
        if self.page != "":
            matching(_DIGEST, page=self.page)
        matching(ID, first_question=self.first_question)
        if self.closes is not None:
            moment(closes=self.closes)

    def to_dict(self) -> dict[str, Any]:
        """The message."""
        return {
            "sfumato": VERSION,
            "kind": "survey",
            "task": self.task,
            "title": self.title,
            "text": self.text,
            "questions": dict(self.questions),
            "survey": self.agreement.id,
            "agreement": self.agreement.manifest(),
            "minimum": self.minimum,
            "invited": self.invited,
            "closes": self.closes,
            "page": self.page,
            "first_plan": self.first_question,
            **({_REHEARSAL: True} if self.rehearsal else {}),
        }

    @staticmethod
    def from_dict(message: Any) -> "Announcement":
        """The announcement in a message; anything else is refused."""
        optional = {_REHEARSAL} & set(message) if isinstance(message, Mapping) else set()
        if isinstance(message, Mapping) and not message.get("first_plan"):
            raise InputError(
                "the survey does not announce the question of its first round: each device could "
                "get another one."
            )
        check_fields(message, _ANNOUNCED | optional, "a survey")
        questions = message["questions"]
        if not isinstance(questions, Mapping):
            raise InputError("questions must be an object of one text for each column.")
        announcement = Announcement(
            task=message["task"],
            title=message["title"],
            agreement=Agreement.from_manifest(message["agreement"]),
            text=message["text"],
            questions=dict(questions),
            minimum=message["minimum"],
            invited=message["invited"],
            closes=message["closes"],
            page=message["page"],
            rehearsal=message.get(_REHEARSAL, False),
            first_question=message["first_plan"],
        )
        check_spelling(announcement.to_dict(), message, "survey")
        return announcement


@dataclass(frozen=True, kw_only=True, slots=True)
class Upload:
    """One answer on its way: drawn once, and sent as often as the network needs."""

    report: str
    """The random name of this answer: 32 hexadecimal digits, drawn on the device."""
    answer: Answer
    token: str | None = None
    """The invitation; None where none is needed."""

    def to_dict(self) -> dict[str, Any]:
        """The message."""
        return {
            "sfumato": VERSION,
            "kind": "upload",
            "report": self.report,
            "token": self.token,
            "answer": self.answer.to_dict(),
        }

    @staticmethod
    def from_dict(message: Any) -> "Upload":
        """The upload in a message; anything else is refused, and never quoted."""
        if not isinstance(message, Mapping) or set(message) != _UPLOAD:
            raise InputError("an upload has sfumato, kind, report, token and answer.")
        version(message)
        report, token = message["report"], message["token"]
        if message["kind"] != "upload" or not is_text_like(ID, report):
            raise InputError("an upload names itself by 32 hexadecimal digits.")
        if token is not None and not is_text_like(TOKEN, token):
            raise InputError("an invitation has 48 hexadecimal digits.")
        return Upload(report=report, token=token, answer=Answer.from_dict(message["answer"]))


@dataclass(frozen=True, kw_only=True, slots=True)
class Receipt:
    """What the server says of an answer that it keeps."""

    report: str
    round: int
    hour: str
    """When it came, rounded down to the hour, in UTC: no finer time is kept anywhere."""
    repeated: bool
    """Whether it had come before; it counts once."""

    def to_dict(self) -> dict[str, Any]:
        """The message."""
        return {
            "sfumato": VERSION,
            "kind": "receipt",
            "report": self.report,
            "round": self.round,
            "hour": self.hour,
            "repeated": self.repeated,
        }


def survey_hash(payload: str) -> str:
    """The short name of what a survey announced: the first 40 digits of its SHA-256.

    Whoever compares it with others knows that all were shown the same survey and first question.
    """
    return hashlib.sha256(payload.encode()).hexdigest()[:40]


def hour_of(time: datetime) -> str:
    """A time rounded down to the hour.

    >>> hour_of(datetime(2026, 11, 16, 10, 59, tzinfo=UTC))
    '2026-11-16T10Z'
    """
    return time.astimezone(UTC).isoformat()[:13] + "Z"


def moment(**named: Any) -> datetime:
    """A moment in UTC, written like 2026-12-31T18:00Z."""
    ((name, text),) = named.items()
    try:
        return datetime.strptime(text, "%Y-%m-%dT%H:%MZ").replace(tzinfo=UTC)
    except (TypeError, ValueError):
        raise InputError(f"{name} must be in UTC, like 2026-12-31T18:00Z") from None


def matching(pattern: re.Pattern[str], **named: Any) -> str:
    """A text of a fixed form; the error names the field, not what was given."""
    ((name, text),) = named.items()
    if not is_text_like(pattern, text):
        raise InputError(f"{name} must look like {pattern.pattern}")
    return str(text)


def is_text_like(pattern: re.Pattern[str], text: Any) -> bool:
    """Whether something is a text of a fixed form."""
    return isinstance(text, str) and pattern.fullmatch(text) is not None


def short_text(longest: int, *, at_least: int = 0, **named: Any) -> str:
    """A text that people wrote: not too long, nothing in it that moves or hides other signs."""
    ((name, text),) = named.items()
    if not isinstance(text, str) or not at_least <= len(text.strip()) <= len(text) <= longest:
        raise InputError(f"{name} must be a text of {at_least} to {longest:,} characters")
    if not all(sign.isprintable() or sign in _INVISIBLE for sign in text):
        raise InputError(f"{name} must not hold control characters")
    return text


def _check_questions(questions: Mapping[str, str], agreement: Agreement) -> None:
    for name, text in questions.items():
        if name not in agreement.schema.names:
            raise InputError("questions are about columns of the survey; one is not.")
        short_text(LONGEST_QUESTION, question=text, at_least=1)


PAGE: Final = "/answer"
_PARTS: Final = {"server", "survey", "key", "hash", "token"}


@dataclass(frozen=True, kw_only=True)
class SurveyLink:
    """Where a survey is, and what it is known by.

    Errors never quote a link: its invitation is a secret.
    """

    server: str
    """Like https://survey.example."""
    task: str
    """The random name of the survey."""
    key: str | None = None
    """The public key that the survey signs with; None to pin the first one that is seen."""
    survey_hash: str | None = None
    """The hash of what the survey announced; None to take what the server shows first."""
    token: str | None = field(default=None, repr=False)
    """The invitation; None where none is needed."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "server", server_address(self.server))
        if not is_text_like(ID, self.task):
            raise _no_link("it names a survey by 32 hexadecimal digits")
        if self.key is not None and not _is_key(self.key):
            raise _no_link("its key is not the key of a survey")
        if self.survey_hash is not None and not is_text_like(HASH, self.survey_hash):
            raise _no_link("its hash is not 40 hexadecimal digits")
        if self.token is not None and not is_text_like(TOKEN, self.token):
            raise _no_link("its invitation is not 48 hexadecimal digits")

    @staticmethod
    def read(text: str) -> "SurveyLink":
        """The link as it was written down.

        >>> link = SurveyLink.read("https://survey.example/answer#survey=" + 32 * "0")
        >>> link.server, link.key
        ('https://survey.example', None)
        """
        if not isinstance(text, str):
            raise _no_link("it is a text")
        page, _, behind = text.strip().partition("#")
        fields = _fragment(behind)
        server = fields.get("server") or page.partition("?")[0].removesuffix(PAGE)
        return SurveyLink(
            server=server,
            task=fields.get("survey", ""),
            key=fields.get("key"),
            survey_hash=fields.get("hash"),
            token=fields.get("token"),
        )

    def __str__(self) -> str:
        """The link as a browser takes it, with its secret."""
        named = {"survey": self.task, "key": self.key, "hash": self.survey_hash}
        named["token"] = self.token
        behind = "&".join(f"{name}={quote(text, safe='')}" for name, text in named.items() if text)
        return f"{self.server}{PAGE}#{behind}"


def server_address(text: Any) -> str:
    """An address of a server, without a slash at its end."""
    try:
        parts = urlsplit(text if isinstance(text, str) else "")
        usable = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        usable = False
    if not usable or parts.query or parts.username or not text.isprintable():
        raise InputError("a server is given like https://survey.example.")
    return str(text).rstrip("/")


def _fragment(text: str) -> dict[str, str]:
    try:
        fields = parse_qs(text, strict_parsing=True, max_num_fields=len(_PARTS))
    except ValueError:
        raise _no_link("it has survey, and may have key, hash and token, behind #") from None
    if not set(fields) <= _PARTS or any(len(values) > 1 for values in fields.values()):
        raise _no_link("behind # it has survey, key, hash and token, each once")
    return {name: values[0] for name, values in fields.items()}


def _is_key(text: Any) -> bool:
    try:
        return len(base64.b64decode(text, validate=True)) == KEY_BYTES
    except (TypeError, ValueError, binascii.Error):
        return False


def _no_link(why: str) -> InputError:
    return InputError(
        f"this is no link to a survey: {why}. Copy the whole link, like "
        "https://survey.example/answer#survey=...&key=...&hash=...&token=..."
    )
