"""The link that a person gets: the server, the survey, its key and hash, the invitation.

What stands behind ``#`` is for the device alone; a browser does not send it.
"""

import base64
import binascii
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import parse_qs, quote, urlsplit

from sfumato.errors import InputError
from sfumato.survey.protocol.announcements import HASH, ID, TOKEN, is_text_like
from sfumato.survey.protocol.envelopes import KEY_BYTES

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
        found = _fragment(behind)
        server = found.get("server") or page.partition("?")[0].removesuffix(PAGE)
        return SurveyLink(
            server=server,
            task=found.get("survey", ""),
            key=found.get("key"),
            survey_hash=found.get("hash"),
            token=found.get("token"),
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
        found = urlsplit(text) if isinstance(text, str) else None
        usable = found is not None and found.scheme in ("http", "https") and bool(found.hostname)
    except ValueError:
        found, usable = None, False
    if found is None or not usable or found.query or found.username or not text.isprintable():
        raise InputError("a server is given like https://survey.example.")
    return str(text).rstrip("/")


def _fragment(text: str) -> dict[str, str]:
    try:
        found = parse_qs(text, strict_parsing=True, max_num_fields=len(_PARTS))
    except ValueError:
        raise _no_link("it has survey, and may have key, hash and token, behind #") from None
    if not set(found) <= _PARTS or any(len(values) > 1 for values in found.values()):
        raise _no_link("behind # it has survey, key, hash and token, each once")
    return {name: values[0] for name, values in found.items()}


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
