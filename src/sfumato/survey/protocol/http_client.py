"""Requests to a server of surveys: JSON over HTTP with the standard library, patient and bounded.

A server that is busy or can't be reached is asked again with the same bytes. Redirects are not
followed: a server must not send a device elsewhere. Replies are read up to a limit.
"""

import http.client
import json
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from sfumato import check
from sfumato._version import __version__
from sfumato.errors import BusyError, InputError, StorageError
from sfumato.randomness import secure_rng
from sfumato.survey.protocol.announcements import server_address

LARGEST_REPLY: Final = 64 * 2**20
"""Bytes of a reply that are read, at most: a limit against abuse."""
_BUSY: Final = (429, 503)
"""The server says that it did nothing."""
_AWAY: Final = (502, 504)
"""A proxy says that it can't tell."""
_NOBODY: Final = (ConnectionRefusedError, socket.gaierror)
"""Nobody listens there: nothing was sent."""
_SHOWN: Final = 300
"""Characters of a server's refusal that are shown, at most: a limit against abuse."""
_SAME_AGAIN: Final = "Try again later: the same is sent."
_MAYBE_DONE: Final = "What was asked may have been done all the same: look at the status."


@dataclass(frozen=True, kw_only=True)
class Patience:
    """How often a server is asked that does not answer, and how long that takes."""

    tries: int = 6
    """With waits of 0.5 s that double, about half a minute to a minute; chosen by judgment."""
    first_wait_s: float = 0.5
    """Doubled after every try, and multiplied by a random number from 1 to 2: devices that were
    turned away together do not come back together."""
    longest_wait_s: float = 30.0
    """Of one wait, whatever the server asks for."""
    timeout_s: float = 30.0
    """Of one request."""

    def __post_init__(self) -> None:
        check.whole(at_least=1, at_most=1_000, tries=self.tries)
        check.positive(timeout_s=self.timeout_s)

    def wait_s(self, tried: int, requested_s: float = 0.0) -> float:
        """How long to wait after some tries; at least what the server asks for, up to the limit."""
        doubled = self.first_wait_s * 2.0 ** min(tried - 1, 30)
        spread = 1.0 + float(secure_rng().uniform(1)[0])
        return min(max(doubled, requested_s) * spread, self.longest_wait_s)


@dataclass(frozen=True)
class Reply:
    """What a server said."""

    status: int
    body: bytes = field(repr=False)

    @property
    def message(self) -> Any:
        """The JSON object in it."""
        try:
            message = json.loads(self.body)
        except (ValueError, RecursionError):
            message = None
        if not isinstance(message, dict):
            raise StorageError("what answers there is no server of surveys.")
        return message

    @property
    def refusal(self) -> str:
        """Why the server refused, in its own words, as far as they can be shown."""
        try:
            error = self.message.get("error")
        except StorageError:
            error = None
        if not isinstance(error, str):
            return f"status {self.status}"
        return "".join(sign for sign in error if sign.isprintable())[:_SHOWN]


@dataclass(frozen=True, kw_only=True)
class Server:
    """A server of surveys, as a device or an owner's program calls it."""

    address: str
    patience: Patience = Patience()
    sleep: Callable[[float], None] = time.sleep

    def __post_init__(self) -> None:
        object.__setattr__(self, "address", server_address(self.address))

    def call(
        self,
        path: str,
        body: bytes | None = None,
        *,
        token: str | None = None,
        repeatable: bool = True,
        most: int = LARGEST_REPLY,
    ) -> Reply:
        """GET, or POST of JSON; asked again while the server is busy or away.

        Args:
            path: From the server's address on.
            body: To be posted.
            token: Of an owner.
            repeatable: Whether doing it twice does it once; if not, a request that may have
                arrived is not sent again.
            most: Bytes of a reply.

        Raises:
            BusyError: If it stayed busy.
            StorageError: If it could not be reached.
        """
        for tried in range(1, self.patience.tries + 1):
            reply, requested_s, arrived = self._once(path, body, token, most)
            away = reply is None or reply.status in _AWAY
            if reply is not None and not away and reply.status not in _BUSY:
                return reply
            if tried == self.patience.tries or (away and arrived and not repeatable):
                break
            self.sleep(self.patience.wait_s(tried, requested_s))
        if not away:
            raise BusyError(f"{self.address} is busy. Come again later.")
        raise StorageError(
            f"{self.address} can't be reached. Is the address right, and the network there? "
            + (_SAME_AGAIN if repeatable or not arrived else _MAYBE_DONE)
        )

    def owned(
        self, path: str, request: Any = None, *, token: str, most: int = LARGEST_REPLY
    ) -> Reply:
        """A request of an owner; a refusal is an error with the server's words."""
        body = None if request is None else json.dumps(request).encode()
        reply = self.call(path, body, token=token, repeatable=body is None, most=most)
        if reply.status >= 300:
            raise InputError(f"the server refused: {reply.refusal}")
        return reply

    def _once(
        self, path: str, body: bytes | None, token: str | None, most: int
    ) -> tuple[Reply | None, float, bool]:
        """One try: the reply, how many seconds it asks to wait, whether anything may have come."""
        headers = {"user-agent": f"sfumato/{__version__}"}
        if body is not None:
            headers["content-type"] = "application/json"
        if token is not None:
            headers["authorization"] = f"Bearer {token}"
        request = urllib.request.Request(self.address + path, data=body, headers=headers)
        try:
            with _OPENER.open(request, timeout=self.patience.timeout_s) as reply:
                return Reply(reply.status, _bounded(reply, most)), 0.0, True
        except urllib.error.HTTPError as error:
            with error:
                return Reply(error.code, _bounded(error, most)), _seconds(error.headers), True
        except (OSError, http.client.HTTPException) as error:
            return None, 0.0, not isinstance(getattr(error, "reason", error), _NOBODY)


class _Staying(urllib.request.HTTPRedirectHandler):
    """A redirect is an answer like any other."""

    def redirect_request(self, *_about: Any) -> None:
        return None


_OPENER: Final = urllib.request.build_opener(_Staying)


def _bounded(reply: Any, most: int) -> bytes:
    body = bytes(reply.read(most + 1))
    if len(body) > most:
        raise StorageError(f"the reply of the server is longer than {most // 2**20} MiB.")
    return body


def _seconds(headers: Any) -> float:
    text = str(headers.get("retry-after", ""))
    return float(text) if text.isdigit() and len(text) < 6 else 0.0
